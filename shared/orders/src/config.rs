//! The table of the order desk, as the environment says.

use config::ReadBy::{Orders, OrdersApi};
use config::Variable;
use config::variables;

variables! {
    ORDERS_TABLE = Variable::new(&[Orders, OrdersApi], "DUEDAY_ORDERS_TABLE", "NAME", "The table of the order desk")
        .default("dueday-orders");
    ORDER_BUCKETS = Variable::new(&[Orders, OrdersApi], "DUEDAY_ORDER_BUCKETS", "N",
        "Partitions of the index over all orders of a new table").within(1, 1_000).default("4");
}
