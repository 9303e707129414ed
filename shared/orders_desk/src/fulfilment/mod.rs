//! What the order desk does with orders, from the payment event to the return.

pub mod advancing;
pub mod filling;
pub mod follow_ups;
pub mod order_lines;
pub mod payment_records;
pub mod placing;
pub mod queue;
pub mod refunds;
