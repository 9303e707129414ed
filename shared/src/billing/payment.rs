//! What a payment processor knows: payment methods and payments.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};

use super::{AccountId, GatewayToken, Money, SubscriptionId};

/// The gateway's tokens of who is charged and on what. Never a card number.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaymentMethod {
    pub customer: GatewayToken,
    pub payment_method: GatewayToken,
}

/// A payment as the gateway tells it, with the names we gave it when we asked for it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Payment {
    /// The gateway's identifier.
    pub id: GatewayToken,
    pub account: AccountId,
    pub subscription: SubscriptionId,
    pub due_on: NaiveDate,
    pub attempt_no: u32,
    #[serde(flatten)]
    pub amount: Money,
    pub status: PaymentStatus,
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
