//! A setup of a payment method: one opening of the gateway's page.

use chrono::{DateTime, Utc};
use ulid::Ulid;

use crate::{AccountId, GatewayToken, PaymentMethod, SubscriptionId};

/// One opening of the gateway's page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setup {
    pub id: Ulid,
    pub account: AccountId,
    /// What the gateway calls its page.
    pub page: GatewayToken,
    /// Where the customer opens it.
    pub url: String,
    /// The subscriptions that are to use what is given; `None`: all that are not cancelled.
    pub subscriptions: Option<Vec<SubscriptionId>>,
    pub created_at: DateTime<Utc>,
    /// When the page closes.
    pub expires_at: DateTime<Utc>,
    /// What was given. Every subscription that was to use it does.
    pub payment_method: Option<PaymentMethod>,
    /// Raised by one with every write.
    pub version: u64,
}
