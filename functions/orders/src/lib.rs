//! The two Lambda functions of the order desk: one places the orders for payments, the other serves the HTTP API.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod fill_waiting_orders;
mod queue;
mod stored_payments;

use std::sync::Arc;

use chrono::TimeDelta;
use clock::Clock;
use config::Env;
use orders_desk::OrderDesk;
use orders_table::{BucketCount, ORDER_BUCKETS, ORDERS_TABLE, OrdersTable};
use store::{ENDPOINT, TableConfig, TableSetUpError, create_dynamodb_client, load_sdk_config};

pub use queue::{OrdersQueueRequest, OrdersQueueResponse, OrdersToFill, handle_orders_queue_invocation};
pub use stored_payments::PaymentsReader;

/// The longest time after which a change of the table is visible in its indexes. Usually it takes less than a second.
const INDEX_DELAY: TimeDelta = TimeDelta::seconds(30);

/// Creates the order desk of a Lambda function from the environment variables.
///
/// # Errors
/// An environment variable is missing or not valid, or the table cannot be used.
pub async fn set_up_order_desk(env: Env<'_>, clock: Arc<dyn Clock>) -> Result<OrderDesk, TableSetUpError> {
    let client = create_dynamodb_client(&load_sdk_config().await, env.get(&ENDPOINT).as_deref());
    let table = OrdersTable::new(client, env.required_text(&ORDERS_TABLE)?);
    table.refuse_planned_changes().await?;
    let buckets = table.get_or_store_buckets(BucketCount::new(env.number(&ORDER_BUCKETS)?)).await?;
    Ok(OrderDesk::new(table, buckets, clock).with_index_delay(INDEX_DELAY))
}

/// Creates the order desk of the Lambda function that processes the queue. It compares each payment with the payments table.
///
/// # Errors
/// An environment variable is missing or not valid, or the table of the order desk cannot be used.
pub async fn set_up_order_desk_for_queue(env: Env<'_>, clock: Arc<dyn Clock>) -> Result<OrderDesk, TableSetUpError> {
    let desk = set_up_order_desk(env, clock.clone()).await?;
    let payments = TableConfig::read(env)?.connect_with(desk.table.client().clone());
    Ok(desk.with_payment_records(Arc::new(PaymentsReader::new(payments, clock))))
}
