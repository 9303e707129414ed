//! The order desk's two functions: the one that orders what was paid, and the HTTP API.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod fill_waiting;
mod queue;

use std::sync::Arc;

use clock::Clock;
use config::{ConfigError, Env};
use orders::{Buckets, ORDER_BUCKETS, ORDERS_TABLE, OrderDesk, OrdersTable};
use store::{ENDPOINT, TableError, dynamodb, sdk};

pub use queue::{Done, Request, Waiting, handle};

/// Why a function could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetUpError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Table(#[from] TableError),
}

/// The desk as the environment describes it.
///
/// # Errors
/// [`SetUpError`].
pub async fn set_up(env: Env<'_>, clock: Arc<dyn Clock>) -> Result<OrderDesk, SetUpError> {
    let client = dynamodb(&sdk().await, env.given(&ENDPOINT).as_deref());
    let table = OrdersTable::new(client, env.text(&ORDERS_TABLE)?);
    let buckets = table.buckets(Buckets::new(env.number(&ORDER_BUCKETS)?)).await?;
    Ok(OrderDesk::new(table, buckets, clock))
}
