//! Orders, and their changes.

use chrono::{DateTime, Days, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString};

use crate::fulfilment::follow_up::FollowUp;
use crate::fulfilment::order_status::OrderStatus;
use crate::fulfilment::refunds::OrderRefunds;
use crate::ids::{EmployeeId, OrderId, ProductId, WarehouseId};
use crate::people::customer::{Customer, ShippingAddress};
use crate::people::quarter::Quarter;
use billing::{AccountId, Label, Money};

/// The first and the last day of a range of days (UTC), both included.
pub type DateRange = (NaiveDate, NaiveDate);

/// Returns a range that contains the days of all orders: from 1970-01-01 until 73,000 days (about 200 years) later.
pub fn range_of_all_days() -> DateRange {
    let first = NaiveDate::default();
    (first, first.checked_add_days(Days::new(73_000)).unwrap_or(first))
}

/// The reason why an order is backordered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Display, EnumString)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum BackOrderReason {
    /// The customer has no shipping address.
    Address,
    /// No single warehouse has enough stock of all products of the order.
    Stock,
}

/// One product and its quantity. An order has a list of lines. A SKU also has a list of lines: the products that are
/// shipped for each paid month.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct OrderLine {
    pub product: ProductId,
    pub quantity: u32,
}

/// An order of the products for one paid month of a subscription, or of some of these products.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Order {
    pub id: OrderId,
    /// For a follow-up order: the order that was split or is replaced, and the reason. `None` for the main order of a
    /// paid month.
    pub follow_up: Option<FollowUp>,
    /// The number of follow-up orders that were ever created for the paid month. Only the main order counts them: a
    /// follow-up order has 0.
    pub follow_ups: u8,
    pub customer: AccountId,
    /// The employee to whom the order is credited. `None` if the customer had no representative.
    pub representative: Option<EmployeeId>,
    pub status: OrderStatus,
    /// Why the order is backordered; `None` if its status is not `BACKORDERED`.
    pub waits_for: Option<BackOrderReason>,
    /// The products of which no warehouse had enough when the order began to wait for stock, each with the number of
    /// missing pieces. A later change of the stock does not change a list that is not empty. The list is empty if the
    /// order does not wait for stock. It is also empty if each product was in stock, but in different warehouses.
    pub missing: Vec<OrderLine>,
    /// The lines of the order, which can change until the order is picked. The order's own item contains a copy of the
    /// lines, so that each event of the order contains them. If an earlier version of Dueday placed the order, the copy
    /// is empty until the status or the products of the order change.
    pub lines: Vec<OrderLine>,
    /// The warehouse from whose stock the products were deducted; `None` if no products were ever deducted. If the
    /// order is cancelled or returned, sellable products are added to this stock again.
    pub warehouse: Option<WarehouseId>,
    /// The address that the order is shipped to: the address that the customer had when the order was placed, or a
    /// later correction. If the customer had no address then, this field is `None` until the products are deducted from
    /// the stock. It is also `None` after the account was erased.
    pub address: Option<ShippingAddress>,
    /// How the order was shipped; `None` until it is shipped.
    pub shipment: Option<Shipment>,
    /// Whether the returned products were not sellable, so that they were not added to the stock again.
    pub is_written_off: bool,
    /// The amount of the payment; 0 for a follow-up order, because its main order has the amount.
    pub total: Money,
    /// The part of the payment that was refunded. The quarter total of the representative does not include this part.
    pub refunded: Money,
    /// When the payment was made, which counts as the time at which the order was placed.
    pub placed_at: DateTime<Utc>,
    /// The index of the bucket that contains the order: one of the partitions of GSI-2, the index over all orders.
    pub bucket: u32,
    pub version: u64,
}

/// How an order was shipped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shipment {
    pub shipped_at: DateTime<Utc>,
    pub parcel: Parcel,
}

/// The carrier and the tracking number of the parcel in which an order is shipped.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Parcel {
    /// The name of the company that carries the parcel.
    pub carrier: Option<Label>,
    /// The number by which the carrier finds the parcel.
    pub tracking_number: Option<Label>,
}

/// A request to change an order to its next status, or to return or cancel the order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OrderStep {
    /// The status that the order shall get: `PICKED`, `SHIPPED`, `DELIVERED`, `RETURNED` or `CANCELLED`.
    pub next: OrderStatus,
    /// The parcel in which the order is shipped. Used only if `next` is `SHIPPED`.
    pub parcel: Parcel,
    /// Whether the returned products are not sellable, so that they are not added to the stock again. Used only if
    /// `next` is `RETURNED`.
    pub is_unsellable: bool,
}

impl From<OrderStatus> for OrderStep {
    fn from(next: OrderStatus) -> Self {
        Self { next, parcel: Parcel::default(), is_unsellable: false }
    }
}

/// The error for an order whose address cannot be corrected in its status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the address of an order that is {0} cannot be corrected; it must be BACKORDERED, OPEN or PICKED")]
pub struct AddressCorrectionError(pub OrderStatus);

/// The error for an order whose products cannot be changed in its status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the products of an order that is {0} cannot be changed; it must be BACKORDERED or OPEN")]
pub struct OrderProductsError(pub OrderStatus);

/// The effect of a change on the stock of the warehouse of an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum StockEffect {
    None,
    /// The products were deducted from the stock.
    Deducted,
    /// The products of a cancelled or returned order were added to the stock again.
    Restored,
    /// The products were returned, but they are not sellable, so the stock is unchanged.
    WrittenOff,
    /// The products of an order that is not picked yet were replaced by others, or by another quantity.
    Exchanged,
}

/// The effects of a change of an order on the stock and on the quarter total of its representative.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransitionEffects {
    pub stock: StockEffect,
    /// The amount that is added to the quarter total of the representative. Negative if the order is cancelled, returned or
    /// refunded.
    pub added_to_total: Money,
}

/// The error for an order that cannot change from its status to the requested status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an order that is {from} cannot become {to}")]
pub struct TransitionError {
    pub from: OrderStatus,
    pub to: OrderStatus,
}

impl Order {
    /// Returns the order without the address, the carrier and the tracking number. The tracking number is personal
    /// data, because the carrier shows the recipient to everyone who knows this number.
    pub fn without_personal_data(&self) -> Self {
        let shipment =
            self.shipment.as_ref().map(|shipment| Shipment { parcel: Parcel::default(), ..shipment.clone() });
        Self { address: None, shipment, ..self.clone() }
    }

    /// Returns the amount of the order in the quarter total of its representative: the payment without its refunded part, or 0
    /// if the order is cancelled or returned.
    pub fn amount_in_quarter_total(&self) -> Money {
        let minor = match self.status.counts_in_quarter_total() {
            true => self.total.minor().saturating_sub(self.refunded.minor()),
            false => 0,
        };
        Money::new(minor, self.total.currency())
    }

    /// Returns whether the whole payment was refunded. False for a follow-up order, which has no payment of its own.
    pub fn is_refunded_in_full(&self) -> bool {
        self.follow_up.is_none() && self.refunded == self.total
    }

    /// Returns the order with the sum of `refunds` as its refunded amount. If the whole payment is refunded and the
    /// order is not shipped yet, the returned order is cancelled.
    pub fn refunded_by(&self, refunds: &OrderRefunds) -> Self {
        let refunded = Money::new(refunds.refunded_minor().clamp(0, self.total.minor()), self.total.currency());
        let order = Self { refunded, ..self.clone() };
        match order.is_refunded_in_full() {
            true => order.with_status(OrderStatus::Cancelled).unwrap_or(order),
            false => order,
        }
    }

    /// Returns the quarter in which the order was placed. The amount of the order is part of the quarter total of its
    /// representative in this quarter.
    pub fn quarter(&self) -> Quarter {
        Quarter::from_day(self.placed_at.date_naive())
    }

    /// Returns the order with the address of `customer`. If the order already has an address, returns the order
    /// unchanged.
    pub fn with_address_of(&self, customer: &Customer) -> Self {
        Self { address: self.address.clone().or_else(|| customer.address.clone()), ..self.clone() }
    }

    /// Returns the order with the status `OPEN`, with `warehouse` as the warehouse that ships it. Does not change the stock.
    ///
    /// # Errors
    /// The order is not backordered.
    pub fn filled_from(&self, warehouse: WarehouseId) -> Result<Self, TransitionError> {
        let filled = self.with_status(OrderStatus::Open)?;
        Ok(Self { warehouse: Some(warehouse), ..filled })
    }

    /// Returns this backordered order with `reason` as the reason why it waits, and with `missing`, the products that
    /// are missing now. An order that already waits for stock keeps its earlier list of missing products, unless the
    /// earlier list is empty.
    pub fn waiting_for(&self, reason: BackOrderReason, missing: Vec<OrderLine>) -> Self {
        if self.waits_for == Some(reason) && (!self.missing.is_empty() || missing.is_empty()) {
            return self.clone();
        }
        Self { waits_for: Some(reason), missing, ..self.clone() }
    }

    /// Returns the order with `lines` as its products. The amount of the order does not change.
    ///
    /// # Errors
    /// The order is neither backordered nor open.
    pub fn with_lines(&self, lines: Vec<OrderLine>) -> Result<Self, OrderProductsError> {
        match self.status {
            OrderStatus::BackOrdered | OrderStatus::Open => Ok(Self { lines, ..self.clone() }),
            status => Err(OrderProductsError(status)),
        }
    }

    /// Returns the order with `address` as the address that it is shipped to.
    ///
    /// # Errors
    /// The order is shipped, returned or cancelled already.
    pub fn with_corrected_address(&self, address: ShippingAddress) -> Result<Self, AddressCorrectionError> {
        match self.status {
            OrderStatus::BackOrdered | OrderStatus::Open | OrderStatus::Picked => {
                Ok(Self { address: Some(address), ..self.clone() })
            }
            status => Err(AddressCorrectionError(status)),
        }
    }

    /// Returns the order after the change of its status that `step` requests, made at the time `now`.
    ///
    /// # Errors
    /// The order cannot change from its status to the requested status. The requested status `OPEN` is always refused:
    /// only [`Order::filled_from`] opens an order.
    pub fn advanced_by(&self, step: &OrderStep, now: DateTime<Utc>) -> Result<Self, TransitionError> {
        match step.next {
            OrderStatus::Open => Err(TransitionError { from: self.status, to: step.next }),
            OrderStatus::Shipped => {
                let shipment = Shipment { shipped_at: now, parcel: step.parcel.clone() };
                Ok(Self { shipment: Some(shipment), ..self.with_status(step.next)? })
            }
            OrderStatus::Returned => Ok(Self { is_written_off: step.is_unsellable, ..self.with_status(step.next)? }),
            next => self.with_status(next),
        }
    }

    /// Returns the order with the status `next`. The returned order no longer waits for stock or for an address.
    fn with_status(&self, next: OrderStatus) -> Result<Self, TransitionError> {
        if !self.status.can_become(next) {
            return Err(TransitionError { from: self.status, to: next });
        }
        Ok(Self { status: next, waits_for: None, missing: Vec::new(), ..self.clone() })
    }

    /// Returns whether other orders may be filled after this order changes from `self` to `next`. This is the case if
    /// the change restores stock, or if it cancels a backordered order for which newer orders had to wait.
    pub fn unblocks_other_orders(&self, next: &Order) -> bool {
        let is_cancelled_backorder = self.status == OrderStatus::BackOrdered && next.status == OrderStatus::Cancelled;
        is_cancelled_backorder || self.transition_effects(next).stock == StockEffect::Restored
    }

    /// Returns the effects of changing the order from `self` to `next`.
    pub fn transition_effects(&self, next: &Order) -> TransitionEffects {
        let stock = match (self.status.has_stock_deducted(), next.status.has_stock_deducted()) {
            (false, true) => StockEffect::Deducted,
            (true, false) if next.is_written_off => StockEffect::WrittenOff,
            (true, false) => StockEffect::Restored,
            _ => StockEffect::None,
        };
        let added = next.amount_in_quarter_total().minor().saturating_sub(self.amount_in_quarter_total().minor());
        TransitionEffects { stock, added_to_total: Money::new(added, self.total.currency()) }
    }
}

#[cfg(test)]
mod tests {
    use strum::IntoEnumIterator as _;

    use super::*;
    use crate::fulfilment::refunds::RecordedRefund;

    /// Returns a sample order with the status `status`, whose payment of 12.99 EUR is not refunded.
    fn sample_order(status: OrderStatus) -> Order {
        Order {
            id: "2027-01-31.01JZXCVBNM0123456789ABCDEF".parse().unwrap(),
            follow_up: None,
            follow_ups: 0,
            customer: "acme".parse().unwrap(),
            representative: None,
            status,
            waits_for: None,
            missing: Vec::new(),
            lines: Vec::new(),
            warehouse: Some("ams".parse().unwrap()),
            address: None,
            shipment: None,
            is_written_off: false,
            total: Money::new(1_299, "EUR".parse().unwrap()),
            refunded: Money::new(0, "EUR".parse().unwrap()),
            placed_at: "2027-03-31T23:59:59Z".parse().unwrap(),
            bucket: 0,
            version: 1,
        }
    }

    #[test]
    fn only_allowed_status_transitions_succeed_and_stock_is_restored_once() {
        use OrderStatus::{BackOrdered, Cancelled, Delivered, Open, Picked, Returned, Shipped};
        // The columns are: the old status, the new status, the effect on the stock, and whether the amount is removed
        // from the representative's total. All transitions that are not listed must fail.
        let allowed = [
            (BackOrdered, Cancelled, StockEffect::None, true),
            (Open, Picked, StockEffect::None, false),
            (Open, Cancelled, StockEffect::Restored, true),
            (Picked, Shipped, StockEffect::None, false),
            (Picked, Cancelled, StockEffect::Restored, true),
            (Shipped, Delivered, StockEffect::None, false),
            (Shipped, Returned, StockEffect::Restored, true),
            (Delivered, Returned, StockEffect::Restored, true),
        ];
        for from in OrderStatus::iter() {
            for to in OrderStatus::iter() {
                let (before, advanced) =
                    (sample_order(from), sample_order(from).advanced_by(&to.into(), DateTime::UNIX_EPOCH));
                match allowed.iter().find(|(a, b, ..)| (*a, *b) == (from, to)) {
                    None => assert_eq!(advanced, Err(TransitionError { from, to })),
                    Some((_, _, stock, is_removed_from_total)) => {
                        let after = advanced.unwrap();
                        assert_eq!(after.status, to);
                        assert_eq!(after.shipment.is_some(), to == Shipped);
                        let added_to_total =
                            Money::new(if *is_removed_from_total { -1_299 } else { 0 }, before.total.currency());
                        let effects = TransitionEffects { stock: *stock, added_to_total };
                        assert_eq!(before.transition_effects(&after), effects, "{from} to {to}");
                        let unblocks_other_orders =
                            *stock == StockEffect::Restored || (from, to) == (BackOrdered, Cancelled);
                        assert_eq!(before.unblocks_other_orders(&after), unblocks_other_orders, "{from} to {to}");
                    }
                }
            }
            let filled = sample_order(from).filled_from("ber".parse().unwrap());
            match from {
                BackOrdered => {
                    let after = filled.unwrap();
                    assert_eq!((after.status, after.warehouse.as_ref().unwrap().as_str()), (Open, "ber"));
                    assert_eq!(sample_order(from).transition_effects(&after).stock, StockEffect::Deducted);
                }
                from => assert_eq!(filled, Err(TransitionError { from, to: Open })),
            }
        }
    }

    #[test]
    fn returned_products_that_are_not_sellable_are_written_off() {
        for status in OrderStatus::iter() {
            for is_unsellable in [false, true] {
                let step = OrderStep { is_unsellable, ..OrderStatus::Returned.into() };
                let before = sample_order(status);
                let Ok(after) = before.advanced_by(&step, DateTime::UNIX_EPOCH) else { continue };
                let stock = if is_unsellable { StockEffect::WrittenOff } else { StockEffect::Restored };
                assert_eq!((before.transition_effects(&after).stock, after.is_written_off), (stock, is_unsellable));
                assert_eq!(before.transition_effects(&after).added_to_total.minor(), -1_299, "{status}");
                assert_eq!(before.unblocks_other_orders(&after), !is_unsellable, "{status}");
            }
        }
    }

    #[test]
    fn refund_in_full_cancels_an_order_before_the_shipment_and_a_partial_refund_counts_in_the_total() {
        use OrderStatus::{BackOrdered, Cancelled, Delivered, Open, Picked, Returned, Shipped};
        // The columns are: the status, the refunded amount, the status after the refund, and the change of the total.
        for (status, minor, expected, added) in [
            (BackOrdered, 1_299, Cancelled, -1_299),
            (Open, 1_299, Cancelled, -1_299),
            (Picked, 2_000, Cancelled, -1_299),
            (Open, 1_298, Open, -1_298),
            (Shipped, 1_299, Shipped, -1_299),
            (Delivered, 300, Delivered, -300),
            (Returned, 1_299, Returned, 0),
            (Cancelled, 1_299, Cancelled, 0),
        ] {
            let before = sample_order(status);
            let refund = RecordedRefund { id: "r".to_owned(), minor, has_failed: false };
            let refunds = OrderRefunds { order: before.id, refunds: vec![refund], version: 1 };
            let after = before.refunded_by(&refunds);
            assert_eq!(
                (after.status, before.transition_effects(&after).added_to_total.minor()),
                (expected, added),
                "{status}"
            );
        }
    }
}
