//! The stored items of fill tasks: the requests to try again to fill backordered orders.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use ulid::Ulid;

use crate::{OrdersTable, keys};
use dynamo::{Entity, Instant, Key, TableError};
use orders::{FillPass, FillTask, OrderId, ProductId, WaitingOrder};

/// The stored item of a task to try to fill the backordered orders of a product or of a customer.
#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct FillTaskItem {
    change: Ulid,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    further: Vec<ProductId>,
    pass: Option<FillPassItem>,
}

dynamo::attributes!(FillTaskItem { CHANGE = change, FURTHER = further, PASS = pass, });

/// The current pass of a fill task over its orders, as a map in the item of the task.
#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct FillPassItem {
    change: Ulid,
    started_date: Instant,
    /// The last order that the pass has tried; absent if no order was tried yet.
    after: Option<WaitingOrderItem>,
    out_of_stock: Vec<ProductId>,
}

/// The order after which a pass continues, as a map in the item of the task.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct WaitingOrderItem {
    order: OrderId,
    placed_date: Instant,
}

impl From<FillPass> for FillPassItem {
    fn from(pass: FillPass) -> Self {
        let FillPass { change, started_at, after, out_of_stock } = pass;
        let after = after.map(|after| WaitingOrderItem { order: after.order, placed_date: Instant(after.placed_at) });
        Self { change, started_date: Instant(started_at), after, out_of_stock }
    }
}

impl From<FillPassItem> for FillPass {
    fn from(pass: FillPassItem) -> Self {
        let FillPassItem { change, started_date, after, out_of_stock } = pass;
        let after = after.map(|after| WaitingOrder { order: after.order, placed_at: after.placed_date.0 });
        Self { change, started_at: started_date.0, after, out_of_stock }
    }
}

impl Entity<OrdersTable> for FillTask {
    type Attributes = FillTaskItem;

    fn key(&self) -> Key {
        keys::key_of_fill_task(&self.target)
    }

    fn attributes(&self) -> FillTaskItem {
        FillTaskItem {
            change: self.change,
            further: self.further.clone(),
            pass: self.pass.clone().map(FillPassItem::from),
        }
    }

    fn read(key: Key, read: FillTaskItem) -> Result<Self, TableError> {
        let target = keys::parse_fill_target(&key.sk)
            .ok_or_else(|| TableError::unreadable(key, "the sort key is not the key of a product or of a customer"))?;
        Ok(Self { target, change: read.change, further: read.further, pass: read.pass.map(FillPass::from) })
    }
}
