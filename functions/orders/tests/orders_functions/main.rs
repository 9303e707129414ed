//! Tests of the functions of the order desk, invoked over the Lambda Runtime API.

mod forged_events;
mod orders_lambda;
mod paid_months;
mod payments_table;
