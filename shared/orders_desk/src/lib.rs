//! The order desk: places one order for each paid month, deducts the products from the stock of a warehouse, and
//! credits the order to the employee who represents the customer. It fills backordered orders, and advances orders until
//! they are delivered, returned or cancelled.
//!
//! The order desk is a bounded context with its own table (`orders_table`), which follows the AWS example of relational data
//! in DynamoDB. Its domain types are in `orders`. It learns of payments only from `payment.succeeded` events; the crate
//! `billing` does not depend on it. The events of its orders are computed from the changes in the stream of its table.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod error;
mod fulfilment;
mod goods;
mod people;

use std::sync::Arc;

use chrono::TimeDelta;
use clock::Clock;
use dynamo::{Paging, TableError};
use orders_table::{BucketCount, OrdersTable, Requester};

pub use error::DeskError;
pub use fulfilment::advancing::AdvanceOutcome;
pub use fulfilment::filling::FillCounts;
pub use fulfilment::follow_ups::{CreatedFollowUp, FollowUpOutcome, ReplacementRequest};
pub use fulfilment::payment_records::PaymentLookup;
pub use fulfilment::placing::PlaceOutcome;
pub use fulfilment::queue::{
    ProcessEventError, SKU_WITHOUT_PRODUCTS_MESSAGE, UNRECORDED_PAYMENT_MESSAGE, process_event,
};

/// The maximum number of times that the order desk reads the items of a change and then tries to write the change. The
/// conditional write fails if other requests change the same items between the read and the write.
pub(crate) const MAX_ATTEMPTS: usize = 8;

/// Places, fills and advances orders.
#[derive(Clone, Debug)]
pub struct OrderDesk {
    pub table: OrdersTable,
    clock: Arc<dyn Clock>,
    buckets: BucketCount,
    index_delay: TimeDelta,
    /// Whether the merchant perhaps sells no goods (see [`OrderDesk::with_optional_goods`]).
    goods_are_optional: bool,
    /// Looks up receipts and refunds, so that a forged event changes no order; `None` if the callers have read the
    /// receipt or the refund themselves.
    payment_records: Option<Arc<dyn PaymentLookup>>,
}

impl OrderDesk {
    /// Creates an order desk that stores its data in `table`. `buckets` is the number of partitions over which new
    /// orders are spread in GSI-2, the index over all orders.
    pub fn new(table: OrdersTable, buckets: BucketCount, clock: Arc<dyn Clock>) -> Self {
        Self { table, clock, buckets, index_delay: TimeDelta::zero(), goods_are_optional: false, payment_records: None }
    }

    /// Sets the longest time that the indexes lag behind the table. A fill task is deleted only after a pass over its
    /// orders that started at least this long after the latest change: an earlier pass may have missed an order that
    /// was not in the index yet.
    pub fn with_index_delay(self, index_delay: TimeDelta) -> Self {
        Self { index_delay, ..self }
    }

    /// Returns this order desk for a merchant who perhaps sells no goods. A SKU without products is then reported only
    /// if the table contains a product or a warehouse.
    pub fn with_optional_goods(self) -> Self {
        Self { goods_are_optional: true, ..self }
    }

    /// Returns the clock of the order desk.
    pub fn clock(&self) -> &dyn Clock {
        self.clock.as_ref()
    }

    /// Returns an order desk on the same table, with `requester` as the person or program that requests its changes. Each
    /// change of this order desk writes an entry of the action log in the same transaction. It uses the date
    /// of `requester` as today, so it is for one request only.
    pub fn requested_by(&self, requester: Requester) -> Self {
        Self { table: self.table.requested_by(requester), ..self.clone() }
    }

    /// Returns the number of buckets (partitions of GSI-2) that new orders are spread over.
    pub fn buckets(&self) -> BucketCount {
        self.buckets
    }

    /// Returns whether the merchant sells goods.
    pub(crate) async fn sells_goods(&self) -> Result<bool, TableError> {
        if !self.goods_are_optional || !self.table.get_warehouses().await?.is_empty() {
            return Ok(true);
        }
        let products = self.table.get_products(&Paging { after: None, limit: Some(1) }).await?;
        Ok(!products.items.is_empty() || !products.unreadable.is_empty())
    }
}
