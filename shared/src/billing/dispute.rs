//! The dispute: a payment that its customer has asked the bank to take back.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use strum::Display;

use super::{AccountId, GatewayToken, Money, PaymentMethod, ReceiptId, Subscription};

/// One payment that is disputed, or was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dispute {
    /// The gateway's identifier of the dispute.
    pub id: GatewayToken,
    pub account: AccountId,
    /// The receipt of the payment; it may have expired.
    pub receipt: ReceiptId,
    /// The gateway's identifier of the payment.
    pub payment: GatewayToken,
    /// What was charged: it is charged no more while it is [marked](Dispute::keeps_from_charging).
    pub payment_method: GatewayToken,
    /// What is taken back, if it is lost.
    pub amount: Money,
    /// The gateway's word for why, such as `fraudulent`.
    pub reason: String,
    pub status: DisputeStatus,
    pub opened_at: DateTime<Utc>,
    /// When it was known to be won or lost.
    pub closed_at: Option<DateTime<Utc>>,
    /// Raised by one with every write.
    pub version: u64,
}

/// Where a dispute stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Display, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum DisputeStatus {
    /// The bank has not decided.
    Open,
    /// The payment stays the merchant's.
    Won,
    /// It was taken back.
    Lost,
}

impl Dispute {
    /// Whether its payment method is not to be charged. Of one that was lost it stays so: who has taken one payment back takes back
    /// the next.
    pub fn keeps_from_charging(&self) -> bool {
        matches!(self.status, DisputeStatus::Open | DisputeStatus::Lost)
    }
}

impl Subscription {
    /// Marks its payment method as disputed since `at`, if `method` is what it is paid with; or takes the mark away, if `at` is
    /// `None`.
    pub fn disputed(&self, method: &GatewayToken, at: Option<DateTime<Utc>>) -> Subscription {
        let PaymentMethod { payment_method, .. } = &self.payment_method;
        match payment_method == method {
            true => Subscription { disputed_at: at.map(|at| self.disputed_at.unwrap_or(at)), ..self.clone() },
            false => self.clone(),
        }
    }
}
