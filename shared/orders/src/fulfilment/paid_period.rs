//! The part of a payment event that the order desk needs to place an order.

use chrono::{DateTime, Utc};

use crate::ids::OrderId;
use billing::{AccountId, Money, PaymentEventData, Sku};

/// A paid month of a subscription, for which one order is placed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PaidPeriod {
    /// The identifier of the order for this month.
    pub order: OrderId,
    pub account: AccountId,
    pub sku: Sku,
    pub amount: Money,
    pub paid_at: DateTime<Utc>,
}

impl From<PaymentEventData> for PaidPeriod {
    fn from(data: PaymentEventData) -> Self {
        Self {
            order: OrderId::of_month(data.due_on, data.subscription),
            account: data.account,
            sku: data.sku,
            amount: data.amount,
            paid_at: data.processed_at,
        }
    }
}
