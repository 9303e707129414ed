//! The functions of the order desk, fed over the Runtime API.

mod orders_lambda;
mod paid_months;
