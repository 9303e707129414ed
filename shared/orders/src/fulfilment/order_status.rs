//! The statuses of orders, and which status can follow which.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumIter, EnumString};

/// The status of an order.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, Display, EnumString, EnumIter,
)]
#[serde(rename_all = "UPPERCASE")]
#[strum(serialize_all = "UPPERCASE")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(
    feature = "openapi",
    schema(
        description = "The status of an order. `BACKORDERED`: the order waits for stock or for a shipping address. \
            `OPEN`: the products are deducted from the stock of a warehouse, and the order is ready to be picked."
    )
)]
pub enum OrderStatus {
    /// The order waits for stock or for a shipping address.
    BackOrdered,
    /// The products are deducted from the stock of a warehouse, and the order is ready to be picked.
    Open,
    Picked,
    Shipped,
    Delivered,
    Returned,
    Cancelled,
}

impl OrderStatus {
    /// Returns whether the products of an order in this status are deducted from the stock of a warehouse.
    pub fn has_stock_deducted(self) -> bool {
        matches!(self, Self::Open | Self::Picked | Self::Shipped | Self::Delivered)
    }

    /// Returns whether an order in this status still has to be shipped. Only such orders are handed over to another
    /// representative together with their customer.
    pub fn needs_shipping(self) -> bool {
        matches!(self, Self::BackOrdered | Self::Open | Self::Picked)
    }

    /// Returns whether the amount of an order in this status is part of its representative's quarter total.
    pub fn counts_in_quarter_total(self) -> bool {
        !matches!(self, Self::Returned | Self::Cancelled)
    }

    /// Returns whether an order in this status can get the status `next`.
    pub(crate) fn can_become(self, next: Self) -> bool {
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
