//! Fill tasks: the requests to try again to fill the backordered orders of a product or of a customer.

use std::fmt;

use chrono::{DateTime, Utc};
use ulid::Ulid;

use crate::ids::{OrderId, ProductId};
use billing::AccountId;

/// The backordered orders that a fill task tries to fill: those that contain a product, or those of a customer.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FillTarget {
    Product(ProductId),
    Customer(AccountId),
}

impl fmt::Display for FillTarget {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Product(product) => write!(text, "the product {product}"),
            Self::Customer(account) => write!(text, "the customer {account}"),
        }
    }
}

/// A request to try to fill the backordered orders of a target, for example because the stock of a product or the
/// shipping address of a customer changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FillTask {
    pub target: FillTarget,
    /// The identifier of the latest change that requested the task, such as a delivery. Each further change replaces
    /// this identifier.
    pub change: Ulid,
    /// Further products whose backordered orders this task tries to fill. Before the work on the tasks begins, each
    /// further product gets a task of its own. So a transaction can request to fill the orders of many products with
    /// only one write.
    pub further: Vec<ProductId>,
    /// The current pass over the backordered orders of the target (from the oldest order to the newest); `None` if no
    /// order of a pass was tried yet.
    pub pass: Option<FillPass>,
}

/// One pass over the backordered orders of a target, from the oldest to the newest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FillPass {
    /// The identifier of the latest change that had requested the task when the pass started. If another change
    /// requests the task later, another pass follows.
    pub change: Ulid,
    pub started_at: DateTime<Utc>,
    /// The last order that was tried; `None` if no order was tried yet.
    pub after: Option<WaitingOrder>,
    /// The products of which no warehouse had enough for an order of this pass. A newer order that contains such a
    /// product is not filled in this pass, so that the older order comes first.
    pub out_of_stock: Vec<ProductId>,
}

/// A backordered order, and its position in the list of the orders of a target. The list is sorted by the time of the
/// payment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitingOrder {
    pub order: OrderId,
    /// When the payment was made, which counts as the time at which the order was placed.
    pub placed_at: DateTime<Utc>,
}

impl FillTask {
    /// Returns the current pass over the backordered orders of the target. If there is none, returns a new pass, which
    /// starts at `now` with the oldest order.
    pub fn current_or_new_pass(&self, now: DateTime<Utc>) -> FillPass {
        self.pass.clone().unwrap_or(FillPass {
            change: self.change,
            started_at: now,
            after: None,
            out_of_stock: Vec::new(),
        })
    }
}
