//! Movements of stock. Each change of the stock of a product in a warehouse is recorded as a movement, in the same
//! transaction. So the stock can be computed again: it is the sum of its movements.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use strum::{Display, EnumIter, EnumString};
use ulid::Ulid;

use crate::fulfilment::order::{Order, OrderLine, StockEffect};
use crate::ids::{OrderId, ProductId, WarehouseId};
use billing::Label;

/// The kind of a movement that a person or a program requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Display, EnumString, EnumIter)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(
    feature = "openapi",
    schema(
        description = "The kind of a movement. `opening`: the stock from before the first recorded movement. `count`: the \
            stock is set to the number of pieces that were found. `write_off`: the pieces are lost or broken."
    )
)]
pub enum MovementKind {
    /// A delivery arrived.
    Delivery,
    /// An import set the initial stock.
    InitialStock,
    /// The stock from before the first recorded movement.
    Opening,
    /// The stock was set to the number of pieces that were found.
    Count,
    /// The pieces are lost or broken.
    WriteOff,
    /// The pieces were moved to another warehouse.
    Transfer,
}

/// A movement of the stock of a product that a person or a program requested, such as a delivery or a transfer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Movement {
    /// The identifier that the caller chose, by which a repeated request is recognized.
    pub id: Ulid,
    pub product: ProductId,
    pub kind: MovementKind,
    /// When the movement was recorded.
    pub at: DateTime<Utc>,
    pub warehouse: WarehouseId,
    /// The warehouse that gets the pieces of a transfer; `None` for every other kind.
    pub to: Option<WarehouseId>,
    /// The number of pieces in the request: for a count the pieces that were found, otherwise those that are moved.
    pub quantity: u64,
    /// The change of the stock in `warehouse`, in pieces. A transfer changes the stock in `to` by the opposite.
    pub stock_change: i64,
    /// Why the movement was requested; `None` if no reason was given.
    pub reason: Option<Label>,
}

/// A movement of the stock that an order caused: its products were taken from the stock of a warehouse, added to this
/// stock again, or written off.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OrderMovement {
    pub order: OrderId,
    /// The version that the order had after the change that caused this stock movement.
    pub version: u64,
    pub effect: StockEffect,
    /// When the movement was recorded.
    pub at: DateTime<Utc>,
    pub warehouse: WarehouseId,
    pub lines: Vec<OrderMovementLine>,
}

/// The movement of one product of an order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OrderMovementLine {
    pub product: ProductId,
    /// The number of pieces in the order; 0 if another product replaced this product.
    pub quantity: u32,
    /// The change of the stock, in pieces: 0 for returned products that are not sellable.
    pub stock_change: i64,
}

/// The change of the stock of a product in a warehouse that a movement causes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StockChange {
    pub product: ProductId,
    pub warehouse: WarehouseId,
    /// The number of added pieces; negative if the stock becomes smaller.
    pub pieces: i64,
}

/// A movement that a person requests for a product.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MovementRequest {
    /// Set the stock in the warehouse to the number of pieces that were found.
    Count { warehouse: WarehouseId, found: u64, reason: Label },
    /// Subtract pieces that are lost or broken from the stock in the warehouse.
    WriteOff { warehouse: WarehouseId, quantity: u64, reason: Label },
    /// Move pieces to another warehouse.
    Transfer { from: WarehouseId, to: WarehouseId, quantity: u64, reason: Option<Label> },
}

/// The reason why a movement is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MovementError {
    #[error("the stock of {product} in {warehouse} is only {stock}, and {quantity} were requested")]
    MoreThanStock { product: ProductId, warehouse: WarehouseId, stock: u64, quantity: u64 },
    #[error("the pieces are in {0} already; name another warehouse")]
    SameWarehouse(WarehouseId),
    #[error("a stock can be at most {}", i64::MAX)]
    StockTooLarge,
}

/// Returns the change of a stock from `before` to `after` pieces; `None` if the change is too large for an `i64`.
fn stock_difference(before: u64, after: u64) -> Option<i64> {
    i64::try_from(i128::from(after).checked_sub(i128::from(before))?).ok()
}

impl MovementRequest {
    /// Returns the warehouse whose stock is counted or becomes smaller.
    pub fn warehouse(&self) -> &WarehouseId {
        match self {
            Self::Count { warehouse, .. }
            | Self::WriteOff { warehouse, .. }
            | Self::Transfer { from: warehouse, .. } => warehouse,
        }
    }

    /// Returns the warehouse that gets the pieces of a transfer; `None` for every other kind.
    pub fn target_warehouse(&self) -> Option<&WarehouseId> {
        match self {
            Self::Transfer { to, .. } => Some(to),
            Self::Count { .. } | Self::WriteOff { .. } => None,
        }
    }

    /// Returns the number of pieces in the request: for a count the pieces that were found, otherwise those to move.
    pub fn quantity(&self) -> u64 {
        match self {
            Self::Count { found: quantity, .. } | Self::WriteOff { quantity, .. } | Self::Transfer { quantity, .. } => {
                *quantity
            }
        }
    }

    /// Returns the movement of `product` that this request causes if its warehouse has `stock` pieces. `id` and `at` are the
    /// identifier and the time of the movement.
    ///
    /// # Errors
    /// More pieces are requested than the stock has, both warehouses of a transfer are the same, or the change of the
    /// stock is too large.
    pub fn movement_from(
        &self,
        stock: u64,
        id: Ulid,
        product: &ProductId,
        at: DateTime<Utc>,
    ) -> Result<Movement, MovementError> {
        let (kind, reason) = match self {
            Self::Count { reason, .. } => (MovementKind::Count, Some(reason)),
            Self::WriteOff { reason, .. } => (MovementKind::WriteOff, Some(reason)),
            Self::Transfer { reason, .. } => (MovementKind::Transfer, reason.as_ref()),
        };
        let quantity = self.quantity();
        let warehouse = self.warehouse();
        if self.target_warehouse() == Some(warehouse) {
            return Err(MovementError::SameWarehouse(warehouse.clone()));
        }
        let more_than_stock = || {
            let (product, warehouse) = (product.clone(), warehouse.clone());
            MovementError::MoreThanStock { product, warehouse, stock, quantity }
        };
        let after = match kind {
            MovementKind::Count => quantity,
            _ => stock.checked_sub(quantity).ok_or_else(more_than_stock)?,
        };
        Ok(Movement {
            id,
            product: product.clone(),
            kind,
            at,
            warehouse: warehouse.clone(),
            to: self.target_warehouse().cloned(),
            quantity,
            stock_change: stock_difference(stock, after).ok_or(MovementError::StockTooLarge)?,
            reason: reason.cloned(),
        })
    }
}

impl Movement {
    /// Returns the changes of the stock by this movement.
    pub fn stock_changes(&self) -> Vec<StockChange> {
        let change = |warehouse: &WarehouseId, pieces| StockChange {
            product: self.product.clone(),
            warehouse: warehouse.clone(),
            pieces,
        };
        let to = self.to.as_ref().map(|to| change(to, self.stock_change.saturating_neg()));
        [change(&self.warehouse, self.stock_change)].into_iter().chain(to).collect()
    }

    /// Returns whether `other` was requested with the same values. The change of the stock is not compared: for a
    /// count, it depends on the stock at the time of the request.
    pub fn is_same_request_as(&self, other: &Self) -> bool {
        let values = |movement: &Self| {
            let Self { product, kind, warehouse, to, quantity, reason, .. } = movement.clone();
            (product, kind, warehouse, to, quantity, reason)
        };
        values(self) == values(other)
    }
}

impl OrderMovement {
    /// Returns the movement of the products `lines` of `order` that a change of the order causes. `effect` is the
    /// effect of the change on the stock. `version` is the version of the order after the change, and `at` is the time
    /// of the change. Returns `None` if no product moves: `effect` is [`StockEffect::None`], or the order has no
    /// warehouse.
    pub fn of_order_change(
        order: &Order,
        lines: &[OrderLine],
        effect: StockEffect,
        version: u64,
        at: DateTime<Utc>,
    ) -> Option<Self> {
        let warehouse = order.warehouse.clone().filter(|_| effect != StockEffect::None)?;
        let line = |OrderLine { product, quantity }: &OrderLine| {
            let pieces = i64::from(*quantity);
            let stock_change = match effect {
                StockEffect::None | StockEffect::WrittenOff | StockEffect::Exchanged => 0,
                StockEffect::Deducted => pieces.saturating_neg(),
                StockEffect::Restored => pieces,
            };
            OrderMovementLine { product: product.clone(), quantity: *quantity, stock_change }
        };
        let lines = lines.iter().map(line).collect();
        Some(Self { order: order.id, version, effect, at, warehouse, lines })
    }

    /// Returns the movement that the change of the products of `order` from `old` to `new` causes. `version` is the
    /// version of the order after the change, and `at` is the time of the change. Returns `None` if no product moves:
    /// the products are the same, or the order has no warehouse.
    pub fn of_exchanged_lines(
        order: &Order,
        old: &[OrderLine],
        new: &[OrderLine],
        version: u64,
        at: DateTime<Utc>,
    ) -> Option<Self> {
        let warehouse = order.warehouse.clone()?;
        let mut changes = BTreeMap::<&ProductId, (u32, i64)>::new();
        for line in old {
            changes.entry(&line.product).or_default().1 = line.quantity.into();
        }
        for line in new {
            let (quantity, change) = changes.entry(&line.product).or_default();
            (*quantity, *change) = (line.quantity, change.saturating_sub(line.quantity.into()));
        }
        let line = |(product, (quantity, stock_change)): (&ProductId, (u32, i64))| OrderMovementLine {
            product: product.clone(),
            quantity,
            stock_change,
        };
        let lines: Vec<_> = changes.into_iter().filter(|(_, (_, change))| *change != 0).map(line).collect();
        let effect = StockEffect::Exchanged;
        (!lines.is_empty()).then_some(Self { order: order.id, version, effect, at, warehouse, lines })
    }

    /// Returns the changes of the stock by this movement.
    pub fn stock_changes(&self) -> Vec<StockChange> {
        let change = |line: &OrderMovementLine| StockChange {
            product: line.product.clone(),
            warehouse: self.warehouse.clone(),
            pieces: line.stock_change,
        };
        self.lines.iter().map(change).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the request for a movement of `quantity` pieces from the warehouse `ams`. A kind that is not listed is a
    /// transfer from `ams` to `ams`.
    fn movement_request(kind: &str, quantity: u64) -> MovementRequest {
        let (ams, nyc): (WarehouseId, WarehouseId) = ("ams".parse().unwrap(), "nyc".parse().unwrap());
        let reason: Label = "shelf 3".parse().unwrap();
        match kind {
            "count" => MovementRequest::Count { warehouse: ams, found: quantity, reason },
            "write-off" => MovementRequest::WriteOff { warehouse: ams, quantity, reason },
            "transfer" => MovementRequest::Transfer { from: ams, to: nyc, quantity, reason: None },
            _ => MovementRequest::Transfer { from: ams.clone(), to: ams, quantity, reason: None },
        }
    }

    #[test]
    fn movements_change_the_stock_as_requested_and_never_below_zero() {
        // The columns are: the request, the number of pieces in it, the stock, and the changes of the stock in each
        // warehouse or the error.
        for (kind, quantity, stock, expected) in [
            ("count", 7, 5, Ok(vec![("ams", 2)])),
            ("count", 5, 5, Ok(vec![("ams", 0)])),
            ("count", 0, 5, Ok(vec![("ams", -5)])),
            ("count", u64::MAX, 5, Err("a stock can be at most 9223372036854775807")),
            ("write-off", 5, 5, Ok(vec![("ams", -5)])),
            ("write-off", 6, 5, Err("the stock of beans in ams is only 5, and 6 were requested")),
            ("transfer", 2, 5, Ok(vec![("ams", -2), ("nyc", 2)])),
            ("transfer", 1, 0, Err("the stock of beans in ams is only 0, and 1 were requested")),
            ("transfer to itself", 1, 5, Err("the pieces are in ams already; name another warehouse")),
        ] {
            let product = "beans".parse().unwrap();
            let moved =
                movement_request(kind, quantity).movement_from(stock, Ulid::nil(), &product, DateTime::UNIX_EPOCH);
            let changes = moved.as_ref().map(|movement| {
                let changes = movement.stock_changes();
                changes.iter().map(|change| (change.warehouse.to_string(), change.pieces)).collect::<Vec<_>>()
            });
            let expected = expected
                .map(|changes| changes.into_iter().map(|(of, pieces)| (of.to_owned(), pieces)).collect::<Vec<_>>());
            assert_eq!(changes.map_err(ToString::to_string), expected.map_err(str::to_owned), "{kind} of {quantity}");
        }
    }

    #[test]
    fn movement_with_the_same_values_is_the_same_request_whatever_the_stock_was() {
        let product = "beans".parse().unwrap();
        let movement = |kind, quantity, stock| {
            movement_request(kind, quantity).movement_from(stock, Ulid::nil(), &product, DateTime::UNIX_EPOCH).unwrap()
        };
        assert!(movement("count", 3, 5).is_same_request_as(&movement("count", 3, 9)));
        assert!(!movement("count", 3, 5).is_same_request_as(&movement("count", 4, 5)));
        assert!(!movement("count", 3, 5).is_same_request_as(&movement("write-off", 3, 5)));
    }
}
