//! What the order desk learns of a payment.

use chrono::{DateTime, Utc};

use super::OrderId;
use billing::{AccountId, Money, PaymentNews, Sku};

/// A month that was paid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PaidPeriod {
    pub order: OrderId,
    pub account: AccountId,
    pub sku: Sku,
    pub amount: Money,
    pub paid_at: DateTime<Utc>,
}

impl From<PaymentNews> for PaidPeriod {
    fn from(news: PaymentNews) -> Self {
        Self {
            order: OrderId { due_on: news.due_on, subscription: news.subscription },
            account: news.account,
            sku: news.sku,
            amount: news.amount,
            paid_at: news.processed_at,
        }
    }
}
