//! The dispute of a payment, and what its status means for charging.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use strum::Display;

use super::{AccountId, GatewayToken, Money, ReceiptId};

/// A payment that its customer has questioned or disputed at the bank, or that the bank has taken back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dispute {
    /// The gateway's identifier of the dispute; of a payment that failed after it had succeeded, the payment's own.
    pub id: GatewayToken,
    pub account: AccountId,
    /// The receipt of the payment; it may have expired.
    pub receipt: ReceiptId,
    /// The gateway's identifier of the payment.
    pub payment: GatewayToken,
    /// The payment method of the payment. It is not charged while the dispute [stops charging](Dispute::stops_charging).
    pub payment_method: GatewayToken,
    /// The amount that the bank takes back if the dispute is lost.
    pub amount: Money,
    /// The gateway's word for the reason, such as `fraudulent`.
    pub reason: String,
    pub status: DisputeStatus,
    /// When the dispute was opened. An inquiry that becomes a dispute is opened at that moment.
    pub opened_at: DateTime<Utc>,
    /// When we learned how it ended.
    pub closed_at: Option<DateTime<Utc>>,
    /// Raised by one with every write.
    pub version: u64,
}

/// The status of a dispute.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Display, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum DisputeStatus {
    /// The bank asks about the payment, and has taken nothing back. Charging goes on.
    Inquiry,
    /// The bank has not decided.
    Open,
    /// The payment stays the merchant's.
    Won,
    /// The bank took the payment back.
    Lost,
    /// A payment that had succeeded failed afterwards, without a dispute: the bank took the debit back.
    Returned,
}

impl DisputeStatus {
    /// Whether the outcome is known.
    pub fn is_closed(self) -> bool {
        match self {
            DisputeStatus::Inquiry | DisputeStatus::Open => false,
            DisputeStatus::Won | DisputeStatus::Lost | DisputeStatus::Returned => true,
        }
    }

    /// Whether the bank took the payment back for good.
    pub fn is_reversal(self) -> bool {
        matches!(self, DisputeStatus::Lost | DisputeStatus::Returned)
    }
}

impl Dispute {
    /// Whether it keeps its payment method from being charged. A lost one does so for good: a customer who took one payment
    /// back takes back the next.
    pub fn stops_charging(&self) -> bool {
        match self.status {
            DisputeStatus::Open | DisputeStatus::Lost | DisputeStatus::Returned => true,
            DisputeStatus::Inquiry | DisputeStatus::Won => false,
        }
    }

    /// The stored dispute after the gateway reported `reported` at `now`. What the gateway does not report stays unchanged.
    pub fn updated(&self, reported: &Dispute, now: DateTime<Utc>) -> Dispute {
        let closed_at = if reported.status == self.status { self.closed_at } else { reported.closed_at };
        let is_escalated = self.status == DisputeStatus::Inquiry && reported.stops_charging();
        let opened_at = if is_escalated { now } else { self.opened_at };
        Dispute { receipt: self.receipt.clone(), opened_at, closed_at, version: self.version, ..reported.clone() }
    }
}
