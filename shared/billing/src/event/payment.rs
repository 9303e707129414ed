//! The data of the events about a payment: success, decline, refund, dispute, reversal, and the expiry of the receipt.
//! Also the data of the event of a waived month.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};

use crate::records::attempt_record::AttemptRecord;
use crate::records::dispute::{Dispute, DisputeStatus};
use crate::records::receipt::Receipt;
use crate::records::refund::Refund;
use crate::records::waived_period::{WaivedPeriod, WaivedReason};
use crate::values::contact_data::Label;
use crate::values::ids::{AccountId, GatewayToken, Sku, SubscriptionId};
use crate::values::money::Money;

/// The data of the event of a successful payment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = PaymentData))]
pub struct PaymentEventData {
    pub account: AccountId,
    pub subscription: SubscriptionId,
    /// The id of the receipt.
    pub receipt: String,
    pub sku: Sku,
    pub product_name: Label,
    pub due_on: NaiveDate,
    #[serde(flatten)]
    pub amount: Money,
    /// The gateway's identifier of the payment.
    pub payment: GatewayToken,
    pub processed_at: DateTime<Utc>,
}

impl PaymentEventData {
    /// Creates the data from the receipt of the payment.
    pub(super) fn from_receipt(receipt: &Receipt) -> Self {
        Self {
            account: receipt.account.clone(),
            subscription: receipt.subscription,
            receipt: receipt.id().to_string(),
            sku: receipt.sku.clone(),
            product_name: receipt.product_name.clone(),
            due_on: receipt.due_on,
            amount: receipt.amount,
            payment: receipt.payment.clone(),
            processed_at: receipt.processed_at,
        }
    }
}

/// The data of the events of an unsuccessful payment attempt.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = DeclineData))]
pub struct DeclineEventData {
    pub account: AccountId,
    pub subscription: SubscriptionId,
    pub due_on: NaiveDate,
    pub attempt_no: u32,
    #[serde(flatten)]
    pub amount: Money,
    /// The gateway's code for the failure.
    pub code: String,
    /// Whether another try with the same payment method is useless.
    pub hard: bool,
    pub processed_at: DateTime<Utc>,
}

impl DeclineEventData {
    /// Creates the data from the record of the attempt.
    pub(super) fn from_attempt_record(record: &AttemptRecord) -> Self {
        Self {
            account: record.account.clone(),
            subscription: record.subscription,
            due_on: record.due_on,
            attempt_no: record.attempt_no,
            amount: record.amount,
            code: record.code.clone(),
            hard: record.hard,
            processed_at: record.processed_at,
        }
    }
}

/// The data of the event of a waived month.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = WaivedPeriodData))]
pub struct WaivedPeriodEventData {
    pub account: AccountId,
    pub subscription: SubscriptionId,
    pub due_on: NaiveDate,
    pub reason: WaivedReason,
    pub waived_at: DateTime<Utc>,
}

impl WaivedPeriodEventData {
    /// Creates the data from the record of the waived month.
    pub(super) fn from_waived_period(waived: &WaivedPeriod) -> Self {
        let WaivedPeriod { account, subscription, due_on, reason, waived_at } = waived.clone();
        Self { account, subscription, due_on, reason, waived_at }
    }
}

/// The data of the events of a refund.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = RefundData))]
pub struct RefundEventData {
    pub account: AccountId,
    pub subscription: SubscriptionId,
    /// The id of the receipt.
    pub receipt: String,
    pub sku: Sku,
    pub due_on: NaiveDate,
    /// The id of the refund.
    pub refund: String,
    #[serde(flatten)]
    pub amount: Money,
    /// The gateway's identifier of the payment.
    pub payment: GatewayToken,
}

impl RefundEventData {
    /// Creates the data from the refund after the change.
    pub(super) fn from_refund(refund: &Refund) -> Self {
        Self {
            account: refund.account.clone(),
            subscription: refund.receipt.subscription,
            receipt: refund.receipt.to_string(),
            sku: refund.receipt.sku.clone(),
            due_on: refund.receipt.due_on,
            refund: refund.id.to_string(),
            amount: refund.amount,
            payment: refund.payment.clone(),
        }
    }
}

/// The data of the events of a dispute.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = DisputeData))]
pub struct DisputeEventData {
    pub account: AccountId,
    pub subscription: SubscriptionId,
    /// The id of the receipt.
    pub receipt: String,
    pub sku: Sku,
    pub due_on: NaiveDate,
    /// The gateway's identifier of the dispute.
    pub dispute: GatewayToken,
    pub status: DisputeStatus,
    /// The gateway's code for the reason of the dispute or reversal.
    pub reason: String,
    #[serde(flatten)]
    pub amount: Money,
    /// The gateway's identifier of the payment.
    pub payment: GatewayToken,
}

impl DisputeEventData {
    /// Creates the data from the dispute after the change.
    pub(super) fn from_dispute(dispute: &Dispute) -> Self {
        Self {
            account: dispute.account.clone(),
            subscription: dispute.receipt.subscription,
            receipt: dispute.receipt.to_string(),
            sku: dispute.receipt.sku.clone(),
            due_on: dispute.receipt.due_on,
            dispute: dispute.id.clone(),
            status: dispute.status,
            reason: dispute.reason.clone(),
            amount: dispute.amount,
            payment: dispute.payment.clone(),
        }
    }
}

/// The data of the event of a payment that the bank reversed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = ReversalData))]
pub struct ReversalEventData {
    pub account: AccountId,
    pub subscription: SubscriptionId,
    /// The id of the receipt.
    pub receipt: String,
    pub sku: Sku,
    pub due_on: NaiveDate,
    /// The gateway's identifier of the lost dispute; `None` for a debit that was returned without a dispute.
    pub dispute: Option<GatewayToken>,
    /// The gateway's code for the reason of the dispute or reversal.
    pub reason: String,
    /// The amount that the bank reversed.
    #[serde(flatten)]
    pub amount: Money,
    /// The gateway's identifier of the payment.
    pub payment: GatewayToken,
}

impl ReversalEventData {
    /// Creates the data from the dispute after the change.
    pub(super) fn from_dispute(dispute: &Dispute) -> Self {
        Self {
            account: dispute.account.clone(),
            subscription: dispute.receipt.subscription,
            receipt: dispute.receipt.to_string(),
            sku: dispute.receipt.sku.clone(),
            due_on: dispute.receipt.due_on,
            dispute: (dispute.status == DisputeStatus::Lost).then(|| dispute.id.clone()),
            reason: dispute.reason.clone(),
            amount: dispute.amount,
            payment: dispute.payment.clone(),
        }
    }
}

/// The data of the event of an expired receipt.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = ExpiredReceiptData))]
pub struct ExpiredReceiptEventData {
    pub account: AccountId,
    pub subscription: SubscriptionId,
    /// The id of the receipt.
    pub receipt: String,
    pub due_on: NaiveDate,
    #[serde(flatten)]
    pub amount: Money,
}

impl ExpiredReceiptEventData {
    /// Creates the data from the receipt of the payment.
    pub(super) fn from_receipt(receipt: &Receipt) -> Self {
        Self {
            account: receipt.account.clone(),
            subscription: receipt.subscription,
            receipt: receipt.id().to_string(),
            due_on: receipt.due_on,
            amount: receipt.amount,
        }
    }
}
