//! The dispute of a payment, and its effect on later charges.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use strum::Display;

use crate::records::receipt_id::ReceiptId;
use crate::values::ids::{AccountId, GatewayToken};
use crate::values::money::Money;

/// The dispute of a payment: the customer has questioned or disputed the payment at the bank, or the bank has reversed
/// the payment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dispute {
    /// The gateway's id of the dispute. If the bank returned a successful debit without a dispute, this is the
    /// gateway's id of the payment.
    pub id: GatewayToken,
    pub account: AccountId,
    /// The id of the payment's receipt. The receipt itself may have expired and been deleted.
    pub receipt: ReceiptId,
    /// The gateway's id of the payment.
    pub payment: GatewayToken,
    /// The payment method with which the payment was made. This payment method is not charged while the dispute [stops
    /// charges](Dispute::stops_charging).
    pub payment_method: GatewayToken,
    /// The amount that the bank reverses if the dispute is lost.
    pub amount: Money,
    /// The gateway's code for the reason of the dispute, such as `fraudulent`.
    pub reason: String,
    pub status: DisputeStatus,
    /// When the dispute was opened. If the dispute began as an inquiry: when the inquiry became a dispute.
    pub opened_at: DateTime<Utc>,
    /// When the gateway reported the outcome of the dispute; `None` while there is no outcome.
    pub closed_at: Option<DateTime<Utc>>,
    /// The version of the stored item. Every write increases it by one.
    pub version: u64,
}

/// The stage of a dispute, or its outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Display, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum DisputeStatus {
    /// The bank has asked for information about the payment, and has not reversed the payment. Charges of the payment
    /// method continue.
    Inquiry,
    /// The payment is disputed, and the bank has not decided yet.
    Open,
    /// The bank decided for the merchant, who keeps the payment.
    Won,
    /// The bank decided for the customer and reversed the payment.
    Lost,
    /// The bank returned a debit that had succeeded before, without a dispute.
    Returned,
}

impl DisputeStatus {
    /// Returns whether the outcome of the dispute is known.
    pub fn is_closed(self) -> bool {
        match self {
            DisputeStatus::Inquiry | DisputeStatus::Open => false,
            DisputeStatus::Won | DisputeStatus::Lost | DisputeStatus::Returned => true,
        }
    }

    /// Returns whether the bank reversed the payment permanently.
    pub fn is_reversal(self) -> bool {
        matches!(self, DisputeStatus::Lost | DisputeStatus::Returned)
    }
}

impl Dispute {
    /// Returns whether the dispute stops charges of its payment method. A lost dispute stops charges permanently: the
    /// customer would probably dispute the next payment too.
    pub fn stops_charging(&self) -> bool {
        match self.status {
            DisputeStatus::Open | DisputeStatus::Lost | DisputeStatus::Returned => true,
            DisputeStatus::Inquiry | DisputeStatus::Won => false,
        }
    }

    /// Returns the stored dispute after the gateway reported `reported` at `now`. Fields that the gateway does not
    /// report stay unchanged.
    pub fn with_reported_state(&self, reported: &Dispute, now: DateTime<Utc>) -> Dispute {
        let closed_at = if reported.status == self.status { self.closed_at } else { reported.closed_at };
        let is_escalated = self.status == DisputeStatus::Inquiry && reported.stops_charging();
        let opened_at = if is_escalated { now } else { self.opened_at };
        Dispute { receipt: self.receipt.clone(), opened_at, closed_at, version: self.version, ..reported.clone() }
    }
}
