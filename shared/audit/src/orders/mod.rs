//! The checks of the order desk's table: the comparison of its orders with the receipts of their payments, and the
//! check of its stored numbers.

mod difference;
mod order_checker;
mod paid_orders;
mod stored_numbers;

pub use difference::OrderDifference;
pub use order_checker::{MAX_ORDER_DELAY, OrderChecker, is_account_erased, order_id_of_receipt};
pub use paid_orders::{OrderSummary, OrdersComparison, compare_orders_with_receipts};
pub use stored_numbers::{check_stored_numbers, numbers_not_compared};
