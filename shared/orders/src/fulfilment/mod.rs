//! Orders and their follow-up orders, from the payment to the return.

pub mod fill_task;
pub mod follow_up;
pub mod follow_up_rules;
pub mod lines;
pub mod order;
pub mod order_events;
pub mod order_status;
pub mod paid_period;
pub mod refunds;
