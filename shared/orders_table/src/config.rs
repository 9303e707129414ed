//! The environment variables that configure the order desk.

use config::EnvVariable;
use config::ReadingFunction::{Audit, Erase, Orders, OrdersApi};
use config::variables;

variables! {
    ORDERS_TABLE = EnvVariable::new(&[Audit, Erase, Orders, OrdersApi], "DUEDAY_ORDERS_TABLE", "NAME", "The table of the order desk")
        .default("dueday-orders");
    ORDER_BUCKETS = EnvVariable::new(&[Orders, OrdersApi], "DUEDAY_ORDER_BUCKETS", "N",
        "Number of buckets of the index over all orders in a new table").in_range(1, 1_000).default("4");
}
