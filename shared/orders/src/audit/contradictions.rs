//! The rules that the stored values of an order, and of a stock movement, must obey together. The operations of the
//! order desk never break them, so a contradiction shows that a stored item was changed by other means.

use crate::fulfilment::order::{BackOrderReason, Order};
use crate::fulfilment::order_status::OrderStatus;
use crate::fulfilment::refunds::OrderRefunds;
use crate::goods::movement::{Movement, MovementKind};

impl Order {
    /// Returns whether the refunded amount is the sum of `refunds`, the recorded refunds of the payment; `None` if there
    /// are none.
    pub fn agrees_with_refunds(&self, refunds: Option<&OrderRefunds>) -> bool {
        let refunded = refunds.map_or(0, |refunds| refunds.refunded_minor().clamp(0, self.total.minor().max(0)));
        self.refunded.minor() == refunded
    }

    /// Returns the rules that the values of the order break. Each rule is a sentence with the names of the stored
    /// attributes.
    pub fn contradictions(&self) -> Vec<&'static str> {
        use OrderStatus::{BackOrdered, Cancelled, Delivered, Returned, Shipped};
        let follows = self.follow_up.map(|follow_up| follow_up.follows);
        // The columns are: whether the order obeys the rule, and the rule.
        let rules = [
            (
                self.waits_for.is_some() == (self.status == BackOrdered),
                "WaitsFor must exist if Status is BACKORDERED, and only then",
            ),
            (
                self.missing.is_empty() || self.waits_for == Some(BackOrderReason::Stock),
                "Missing may exist only if WaitsFor is stock",
            ),
            (
                self.status == Cancelled || self.warehouse.is_some() == (self.status != BackOrdered),
                "Warehouse must exist if the order was filled, and only then",
            ),
            (
                self.shipment.is_none() || matches!(self.status, Shipped | Delivered | Returned),
                "ShippedDate may exist only if the order was shipped",
            ),
            (!self.is_written_off || self.status == Returned, "WrittenOff may exist only if Status is RETURNED"),
            (
                follows.is_some() != self.id.is_main_order()
                    && follows.is_none_or(|follows| follows != self.id && follows.main_order() == self.id.main_order()),
                "Follows and Reason must exist if the id has a part number, and name an order of the same month",
            ),
            (self.follow_ups == 0 || self.id.is_main_order(), "FollowUps may exist only in the main order"),
            (self.id.is_main_order() || self.total.minor() == 0, "PaymentAmount must be 0 in a follow-up order"),
        ];
        rules.into_iter().filter(|(is_obeyed, _)| !is_obeyed).map(|(_, rule)| rule).collect()
    }
}

impl Movement {
    /// Returns the rules that the values of the movement break. Each rule is a sentence with the names of the stored
    /// attributes.
    pub fn contradictions(&self) -> Vec<&'static str> {
        let pieces = i64::try_from(self.quantity).unwrap_or(i64::MAX);
        let is_change_possible = match self.kind {
            MovementKind::Delivery | MovementKind::InitialStock => self.stock_change == pieces,
            MovementKind::WriteOff | MovementKind::Transfer => self.stock_change == pieces.saturating_neg(),
            MovementKind::Opening => self.stock_change.unsigned_abs() == self.quantity,
            MovementKind::Count => self.stock_change <= pieces,
        };
        let rules = [
            (is_change_possible, "StockChange must follow from Kind and Quantity"),
            (
                self.to.is_some() == (self.kind == MovementKind::Transfer),
                "ToWarehouse must exist if Kind is transfer, and only then",
            ),
        ];
        rules.into_iter().filter(|(is_obeyed, _)| !is_obeyed).map(|(_, rule)| rule).collect()
    }
}
