//! The refunds of an order's payment. Payment events report the refunds, in any sequence. Several events can report the
//! same refund.

use crate::ids::OrderId;
use billing::{AccountId, Money, RefundEventData};

/// A refund, as an event `payment.refunded` or `payment.refund_failed` reports it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefundEvent {
    /// The identifier of the order whose payment was refunded. The order may not be placed yet.
    pub order: OrderId,
    pub account: AccountId,
    /// The id of the refund.
    pub refund: String,
    pub amount: Money,
    /// Whether the refund failed. A refund can fail after it was reported as made.
    pub has_failed: bool,
}

impl RefundEvent {
    /// Returns the refund that the event `payment.refunded` with `data` reports, or the event `payment.refund_failed`
    /// if `has_failed` is true.
    pub fn new(data: RefundEventData, has_failed: bool) -> Self {
        let order = OrderId::of_month(data.due_on, data.subscription);
        Self { order, account: data.account, refund: data.refund, amount: data.amount, has_failed }
    }
}

/// A refund that the order desk has recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedRefund {
    pub id: String,
    /// The amount in minor units of the currency of the order.
    pub minor: i64,
    pub has_failed: bool,
}

/// All recorded refunds of an order's payment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OrderRefunds {
    pub order: OrderId,
    pub refunds: Vec<RecordedRefund>,
    pub version: u64,
}

impl OrderRefunds {
    /// Creates an empty list of refunds for `order`.
    pub fn none(order: OrderId) -> Self {
        Self { order, refunds: Vec::new(), version: 1 }
    }

    /// Returns the refunds after the event `event`: adds the refund of the event, or marks the recorded refund as
    /// failed. Returns `None` if the event changes nothing. A failed refund stays failed, even if the event
    /// `payment.refunded` arrives later.
    pub fn after_event(&self, event: &RefundEvent) -> Option<Self> {
        let mut refunds = self.refunds.clone();
        match refunds.iter_mut().find(|known| known.id == event.refund) {
            Some(known) if known.has_failed || !event.has_failed => return None,
            Some(known) => known.has_failed = true,
            None => {
                let (id, minor) = (event.refund.clone(), event.amount.minor());
                refunds.push(RecordedRefund { id, minor, has_failed: event.has_failed });
            }
        }
        Some(Self { refunds, ..self.clone() })
    }

    /// Returns the sum of the refunds that did not fail, in minor units.
    pub fn refunded_minor(&self) -> i64 {
        let made = self.refunds.iter().filter(|refund| !refund.has_failed);
        made.fold(0, |sum, refund| i64::saturating_add(sum, refund.minor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refunds_count_once_in_any_sequence_and_failed_refunds_do_not_count() {
        let event = |refund: &str, minor, has_failed| RefundEvent {
            order: "2027-01-31.01JZXCVBNM0123456789ABCDEF".parse().unwrap(),
            account: "acme".parse().unwrap(),
            refund: refund.to_owned(),
            amount: Money::new(minor, "EUR".parse().unwrap()),
            has_failed,
        };
        let (made, failed) = (false, true);
        // The columns are: the events in the sequence in which they are processed, and the sum of the refunds.
        for (all, expected) in [
            (vec![], 0),
            (vec![event("a", 300, made)], 300),
            (vec![event("a", 300, made), event("a", 300, made)], 300),
            (vec![event("a", 300, made), event("b", 200, made)], 500),
            (vec![event("a", 300, made), event("a", 300, failed), event("a", 300, failed)], 0),
            (vec![event("a", 300, failed), event("a", 300, made)], 0),
            (vec![event("a", 300, failed), event("b", 200, made), event("a", 300, made)], 200),
        ] {
            let none = OrderRefunds::none(event("a", 1, made).order);
            let known = all.iter().fold(none, |known, event| known.after_event(event).unwrap_or(known));
            assert_eq!(known.refunded_minor(), expected, "{all:?}");
        }
    }
}
