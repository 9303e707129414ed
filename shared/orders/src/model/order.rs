//! Orders, and what may become of them.

use chrono::{DateTime, Days, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use strum::{Display, EnumIter, EnumString};

use super::{EmployeeId, OrderId, ProductId, Quarter, WarehouseId};
use billing::{AccountId, Money};

/// All days on which an order may have been placed.
pub fn all_days() -> (NaiveDate, NaiveDate) {
    let first = NaiveDate::default();
    (first, first.checked_add_days(Days::new(73_000)).unwrap_or(first))
}

/// How an order stands.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, Display, EnumString, EnumIter,
)]
#[serde(rename_all = "UPPERCASE")]
#[strum(serialize_all = "UPPERCASE")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(
    feature = "openapi",
    schema(
        description = "`BACKORDERED`: it waits, for stock or for an address. `OPEN`: its stock is taken, and it is to be picked."
    )
)]
pub enum OrderStatus {
    /// It waits for stock, or for an address.
    BackOrdered,
    /// Its stock is taken, and it is to be picked.
    Open,
    Picked,
    Shipped,
    Delivered,
    Returned,
    Cancelled,
}

/// What an order that is back-ordered waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Display, EnumString)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum WaitsFor {
    /// The customer has no shipping address yet.
    Address,
    /// No warehouse has all that it needs.
    Stock,
}

/// So many of a product.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct OrderLine {
    pub product: ProductId,
    pub quantity: u32,
}

/// An order: what a paid month is worth in goods. Its lines never change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Order {
    pub id: OrderId,
    pub customer: AccountId,
    /// Who is credited with it.
    pub representative: Option<EmployeeId>,
    pub status: OrderStatus,
    pub waits_for: Option<WaitsFor>,
    /// Where its stock was taken from, and to which it is given back.
    pub warehouse: Option<WarehouseId>,
    /// What was paid for it.
    pub total: Money,
    /// When that was paid.
    pub placed_at: DateTime<Utc>,
    /// Its partition in the index over all orders.
    pub bucket: u32,
    pub version: u64,
}

/// What a change of an order does to the stock of its warehouse.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StockEffect {
    None,
    Taken,
    GivenBack,
}

/// What goes with a change of an order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Effects {
    pub stock: StockEffect,
    /// It no longer counts among what its representative's customers have ordered.
    pub loses_credit: bool,
}

/// An order cannot become what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an order that is {from} cannot become {to}")]
pub struct TransitionError {
    pub from: OrderStatus,
    pub to: OrderStatus,
}

impl OrderStatus {
    /// Whether stock is taken for it that has not left for good.
    pub fn holds_stock(self) -> bool {
        matches!(self, Self::Open | Self::Picked | Self::Shipped | Self::Delivered)
    }

    /// Whether it is still to be worked on: it goes with its customer to another representative.
    pub fn is_open(self) -> bool {
        matches!(self, Self::BackOrdered | Self::Open | Self::Picked)
    }

    /// Whether it counts among what was ordered.
    pub fn is_credited(self) -> bool {
        !matches!(self, Self::Returned | Self::Cancelled)
    }

    fn may_become(self, next: Self) -> bool {
        use OrderStatus::{BackOrdered, Cancelled, Delivered, Open, Picked, Returned, Shipped};
        matches!(
            (self, next),
            (BackOrdered, Open | Cancelled)
                | (Open, Picked | Cancelled)
                | (Picked, Shipped | Cancelled)
                | (Shipped, Delivered | Returned)
                | (Delivered, Returned)
        )
    }
}

impl Order {
    /// The quarter in which it counts.
    pub fn quarter(&self) -> Quarter {
        Quarter::of(self.placed_at.date_naive())
    }

    /// It, filled from `warehouse`.
    ///
    /// # Errors
    /// [`TransitionError`] if it does not wait.
    pub fn filled(&self, warehouse: WarehouseId) -> Result<Self, TransitionError> {
        let filled = self.to(OrderStatus::Open)?;
        Ok(Self { warehouse: Some(warehouse), waits_for: None, ..filled })
    }

    /// It, picked, shipped, delivered, returned or cancelled.
    ///
    /// # Errors
    /// [`TransitionError`]. What is to be filled is [`Order::filled`].
    pub fn moved(&self, next: OrderStatus) -> Result<Self, TransitionError> {
        match next {
            OrderStatus::Open => Err(TransitionError { from: self.status, to: next }),
            next => self.to(next),
        }
    }

    fn to(&self, next: OrderStatus) -> Result<Self, TransitionError> {
        if !self.status.may_become(next) {
            return Err(TransitionError { from: self.status, to: next });
        }
        Ok(Self { status: next, waits_for: None, ..self.clone() })
    }

    /// What goes with becoming `next`.
    pub fn effects(&self, next: &Order) -> Effects {
        let stock = match (self.status.holds_stock(), next.status.holds_stock()) {
            (false, true) => StockEffect::Taken,
            (true, false) => StockEffect::GivenBack,
            _ => StockEffect::None,
        };
        Effects { stock, loses_credit: self.status.is_credited() && !next.status.is_credited() }
    }
}

#[cfg(test)]
mod tests {
    use strum::IntoEnumIterator as _;

    use super::*;

    fn order(status: OrderStatus) -> Order {
        Order {
            id: "2027-01-31.01JZXCVBNM0123456789ABCDEF".parse().unwrap(),
            customer: "acme".parse().unwrap(),
            representative: None,
            status,
            waits_for: None,
            warehouse: Some("ams".parse().unwrap()),
            total: Money::new(1_299, "EUR".parse().unwrap()),
            placed_at: "2027-03-31T23:59:59Z".parse().unwrap(),
            bucket: 0,
            version: 1,
        }
    }

    #[test]
    fn order_becomes_only_what_follows_and_gives_its_stock_back_once() {
        use OrderStatus::{BackOrdered, Cancelled, Delivered, Open, Picked, Returned, Shipped};
        let allowed = [
            (BackOrdered, Cancelled, StockEffect::None, true),
            (Open, Picked, StockEffect::None, false),
            (Open, Cancelled, StockEffect::GivenBack, true),
            (Picked, Shipped, StockEffect::None, false),
            (Picked, Cancelled, StockEffect::GivenBack, true),
            (Shipped, Delivered, StockEffect::None, false),
            (Shipped, Returned, StockEffect::GivenBack, true),
            (Delivered, Returned, StockEffect::GivenBack, true),
        ];
        for from in OrderStatus::iter() {
            for to in OrderStatus::iter() {
                let (before, moved) = (order(from), order(from).moved(to));
                match allowed.iter().find(|(a, b, ..)| (*a, *b) == (from, to)) {
                    None => assert_eq!(moved, Err(TransitionError { from, to })),
                    Some((_, _, stock, loses_credit)) => {
                        let after = moved.unwrap();
                        assert_eq!(after.status, to);
                        let effects = Effects { stock: *stock, loses_credit: *loses_credit };
                        assert_eq!(before.effects(&after), effects, "{from} to {to}");
                    }
                }
            }
            let filled = order(from).filled("ber".parse().unwrap());
            match from {
                BackOrdered => {
                    let after = filled.unwrap();
                    assert_eq!((after.status, after.warehouse.as_ref().unwrap().as_str()), (Open, "ber"));
                    assert_eq!(order(from).effects(&after).stock, StockEffect::Taken);
                }
                from => assert_eq!(filled, Err(TransitionError { from, to: Open })),
            }
        }
    }
}
