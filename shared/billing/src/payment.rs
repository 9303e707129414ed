//! What a payment processor knows: payment methods and payments.

use std::fmt;

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use super::card::{Card, if_readable};
use super::{AccountId, GatewayToken, Money, SubscriptionId};

/// The payment gateway's tokens, never a card number.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PaymentMethod {
    /// The customer, as the gateway knows it.
    pub customer: GatewayToken,
    /// The customer's card or account, as the gateway knows it.
    pub payment_method: GatewayToken,
}

/// Whose account at which gateway takes a table's payments. What was paid at one is unknown to another.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct GatewayAccount {
    /// The gateway: `sandbox`, `stripe`.
    pub kind: String,
    /// The account, as the gateway names it.
    pub account: String,
    /// Whether it moves money.
    pub live: bool,
}

impl fmt::Display for GatewayAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, account, live } = self;
        write!(f, "{kind} {account} ({})", if *live { "live" } else { "test" })
    }
}

/// A payment as the gateway tells it, with the names we gave it when we asked for it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Payment {
    /// The gateway's identifier.
    pub id: GatewayToken,
    /// The id of the table that asked for it; absent of those that were made before it was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<Ulid>,
    pub account: AccountId,
    pub subscription: SubscriptionId,
    pub due_on: NaiveDate,
    pub attempt_no: u32,
    #[serde(flatten)]
    pub amount: Money,
    pub status: PaymentStatus,
    /// What was charged, if it was a card.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "if_readable")]
    pub card: Option<Box<Card>>,
    pub created_at: DateTime<Utc>,
}

/// Where a payment stands. Only `Processing` can still change.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PaymentStatus {
    Succeeded,
    /// The bank has not answered yet; days may pass.
    Processing,
    /// It did not succeed and can no longer.
    Declined(Decline),
}

/// Why a payment did not succeed.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Decline {
    /// The gateway's code, such as `insufficient_funds`.
    pub code: String,
    /// Trying the same payment method again is useless (lost, stolen or expired card, closed account).
    pub hard: bool,
}
