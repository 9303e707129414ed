//! Tests of the functions of the order desk, invoked over the Lambda Runtime API.

mod orders_lambda;
mod paid_months;
