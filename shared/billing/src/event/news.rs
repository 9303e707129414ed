//! The types of events, and what each of them says.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use strum::{Display, EnumDiscriminants, EnumIter, EnumString};

use super::super::{
    Account, AccountId, AttemptRecord, Dispute, DisputeStatus, GatewayToken, Label, Locale, MailStatus, Money,
    PaymentDay, Period, Receipt, Refund, Sku, Status, Subscription, SubscriptionId, WaivedPeriod, WaivedReason,
};

/// What has happened, with its particulars.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, EnumDiscriminants)]
#[serde(tag = "type", content = "data")]
#[strum_discriminants(name(EventType), doc = "The types of events, by the names that listeners know.")]
#[strum_discriminants(derive(Display, EnumIter, EnumString, Hash, PartialOrd, Ord))]
pub enum News {
    #[serde(rename = "account.created")]
    #[strum_discriminants(strum(serialize = "account.created"))]
    AccountCreated(AccountNews),
    #[serde(rename = "account.changed")]
    #[strum_discriminants(strum(serialize = "account.changed"))]
    AccountChanged(AccountNews),
    #[serde(rename = "account.erased")]
    #[strum_discriminants(strum(serialize = "account.erased"))]
    AccountErased(AccountNews),
    #[serde(rename = "subscription.created")]
    #[strum_discriminants(strum(serialize = "subscription.created"))]
    SubscriptionCreated(SubscriptionNews),
    /// What was agreed is another thing: the price, the payment day, the product, where its mail goes, or how it is paid.
    #[serde(rename = "subscription.changed")]
    #[strum_discriminants(strum(serialize = "subscription.changed"))]
    SubscriptionChanged(SubscriptionNews),
    #[serde(rename = "subscription.paused")]
    #[strum_discriminants(strum(serialize = "subscription.paused"))]
    SubscriptionPaused(SubscriptionNews),
    #[serde(rename = "subscription.resumed")]
    #[strum_discriminants(strum(serialize = "subscription.resumed"))]
    SubscriptionResumed(SubscriptionNews),
    /// It is to be cancelled at the end of a period, or that was undone: `cancel_from` says which.
    #[serde(rename = "subscription.ending")]
    #[strum_discriminants(strum(serialize = "subscription.ending"))]
    SubscriptionEnding(SubscriptionNews),
    /// A payment has failed, for the first time or again; `next_payment_on` is when it is tried next.
    #[serde(rename = "subscription.past_due")]
    #[strum_discriminants(strum(serialize = "subscription.past_due"))]
    SubscriptionPastDue(SubscriptionNews),
    #[serde(rename = "subscription.unpaid")]
    #[strum_discriminants(strum(serialize = "subscription.unpaid"))]
    SubscriptionUnpaid(SubscriptionNews),
    /// What was past due is paid, or what was unpaid is tried again.
    #[serde(rename = "subscription.revived")]
    #[strum_discriminants(strum(serialize = "subscription.revived"))]
    SubscriptionRevived(SubscriptionNews),
    #[serde(rename = "subscription.cancelled")]
    #[strum_discriminants(strum(serialize = "subscription.cancelled"))]
    SubscriptionCancelled(SubscriptionNews),
    /// The customer was reminded of `due_on`.
    #[serde(rename = "subscription.reminded")]
    #[strum_discriminants(strum(serialize = "subscription.reminded"))]
    SubscriptionReminded(SubscriptionNews),
    #[serde(rename = "payment.succeeded")]
    #[strum_discriminants(strum(serialize = "payment.succeeded"))]
    PaymentSucceeded(PaymentNews),
    /// A payment, or a part of it, was given back.
    #[serde(rename = "payment.refunded")]
    #[strum_discriminants(strum(serialize = "payment.refunded"))]
    PaymentRefunded(RefundNews),
    /// It was not given back after all.
    #[serde(rename = "payment.refund_failed")]
    #[strum_discriminants(strum(serialize = "payment.refund_failed"))]
    RefundFailed(RefundNews),
    /// Its customer has asked the bank to take it back.
    #[serde(rename = "payment.disputed")]
    #[strum_discriminants(strum(serialize = "payment.disputed"))]
    PaymentDisputed(DisputeNews),
    #[serde(rename = "payment.dispute_closed")]
    #[strum_discriminants(strum(serialize = "payment.dispute_closed"))]
    DisputeClosed(DisputeNews),
    /// The bank took it back after it had succeeded: a dispute was lost, or a debit failed afterwards.
    #[serde(rename = "payment.reversed")]
    #[strum_discriminants(strum(serialize = "payment.reversed"))]
    PaymentReversed(ReversalNews),
    #[serde(rename = "payment.declined")]
    #[strum_discriminants(strum(serialize = "payment.declined"))]
    PaymentDeclined(DeclineNews),
    /// The gateway refused the request, and made nothing.
    #[serde(rename = "payment.rejected")]
    #[strum_discriminants(strum(serialize = "payment.rejected"))]
    PaymentRejected(DeclineNews),
    #[serde(rename = "period.waived")]
    #[strum_discriminants(strum(serialize = "period.waived"))]
    PeriodWaived(WaivedNews),
    #[serde(rename = "receipt.expired")]
    #[strum_discriminants(strum(serialize = "receipt.expired"))]
    ReceiptExpired(ExpiredNews),
}
crate::openapi_schema!(EventType, "EventType", schema());

/// The schema of an [`EventType`]: the names of all types.
#[cfg(feature = "openapi")]
fn schema() -> utoipa::openapi::ObjectBuilder {
    use strum::IntoEnumIterator as _;

    let names = EventType::iter().map(|event_type| event_type.to_string());
    crate::openapi::text("A type of events.").enum_values(Some(names))
}

impl News {
    /// Its type.
    pub fn event_type(&self) -> EventType {
        self.into()
    }
}

/// Of an account.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AccountNews {
    pub account: AccountId,
    pub version: u64,
    pub locale: Locale,
    pub mail_status: MailStatus,
}

impl AccountNews {
    pub(super) fn of(account: &Account) -> Self {
        let Account { id, version, locale, mail_status, .. } = account.clone();
        Self { account: id, version, locale, mail_status }
    }
}

/// Of a subscription: as it is now.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SubscriptionNews {
    pub account: AccountId,
    pub subscription: SubscriptionId,
    pub version: u64,
    pub sku: Sku,
    pub product_name: Label,
    pub status: Status,
    pub payment_day: PaymentDay,
    #[serde(flatten)]
    pub price: Money,
    /// The earliest due date that is neither paid nor waived.
    pub due_on: NaiveDate,
    /// When the payment batch looks again.
    pub next_payment_on: Option<NaiveDate>,
    /// Declines in a row.
    pub failed_attempts: u32,
    /// The first month that is not owed any more.
    pub cancel_from: Option<Period>,
}

impl SubscriptionNews {
    pub(super) fn of(s: &Subscription) -> Self {
        Self {
            account: s.account.clone(),
            subscription: s.id,
            version: s.version,
            sku: s.sku.clone(),
            product_name: s.product_name.clone(),
            status: s.status,
            payment_day: s.payment_day,
            price: s.price,
            due_on: s.due_on,
            next_payment_on: s.next_payment_on,
            failed_attempts: s.failed_attempts,
            cancel_from: s.cancel_from,
        }
    }
}

/// Of a payment that was made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PaymentNews {
    pub account: AccountId,
    pub subscription: SubscriptionId,
    /// What its receipt is known by.
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

impl PaymentNews {
    pub(super) fn of(receipt: &Receipt) -> Self {
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

/// Of a payment, or a part of it, that was given back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RefundNews {
    pub account: AccountId,
    pub subscription: SubscriptionId,
    /// What its receipt is known by.
    pub receipt: String,
    pub sku: Sku,
    pub due_on: NaiveDate,
    /// The refund's own id.
    pub refund: String,
    #[serde(flatten)]
    pub amount: Money,
    /// The gateway's identifier of the payment.
    pub payment: GatewayToken,
}

impl RefundNews {
    pub(super) fn of(refund: &Refund) -> Self {
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

/// Of a payment that is disputed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DisputeNews {
    pub account: AccountId,
    pub subscription: SubscriptionId,
    /// What its receipt is known by.
    pub receipt: String,
    pub sku: Sku,
    pub due_on: NaiveDate,
    /// The gateway's identifier of the dispute.
    pub dispute: GatewayToken,
    pub status: DisputeStatus,
    /// The gateway's word for why.
    pub reason: String,
    #[serde(flatten)]
    pub amount: Money,
    /// The gateway's identifier of the payment.
    pub payment: GatewayToken,
}

impl DisputeNews {
    pub(super) fn of(dispute: &Dispute) -> Self {
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

/// Of a payment that the bank took back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReversalNews {
    pub account: AccountId,
    pub subscription: SubscriptionId,
    /// The id of its receipt.
    pub receipt: String,
    pub sku: Sku,
    pub due_on: NaiveDate,
    /// The gateway's identifier of the lost dispute; `None` if the payment failed without one.
    pub dispute: Option<GatewayToken>,
    /// The gateway's word for the reason.
    pub reason: String,
    /// The amount that was taken back.
    #[serde(flatten)]
    pub amount: Money,
    /// The gateway's identifier of the payment.
    pub payment: GatewayToken,
}

impl ReversalNews {
    pub(super) fn of(dispute: &Dispute) -> Self {
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

/// Of an attempt that did not succeed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DeclineNews {
    pub account: AccountId,
    pub subscription: SubscriptionId,
    pub due_on: NaiveDate,
    pub attempt_no: u32,
    #[serde(flatten)]
    pub amount: Money,
    /// The gateway's own word.
    pub code: String,
    /// It is not tried again with the same payment method.
    pub hard: bool,
    pub processed_at: DateTime<Utc>,
}

impl DeclineNews {
    pub(super) fn of(record: &AttemptRecord) -> Self {
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

/// Of a month that is not owed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WaivedNews {
    pub account: AccountId,
    pub subscription: SubscriptionId,
    pub due_on: NaiveDate,
    pub reason: WaivedReason,
    pub waived_at: DateTime<Utc>,
}

impl WaivedNews {
    pub(super) fn of(waived: &WaivedPeriod) -> Self {
        let WaivedPeriod { account, subscription, due_on, reason, waived_at } = waived.clone();
        Self { account, subscription, due_on, reason, waived_at }
    }
}

/// Of a receipt that the table keeps no longer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ExpiredNews {
    pub account: AccountId,
    pub subscription: SubscriptionId,
    /// What it was known by.
    pub receipt: String,
    pub due_on: NaiveDate,
    #[serde(flatten)]
    pub amount: Money,
}

impl ExpiredNews {
    pub(super) fn of(receipt: &Receipt) -> Self {
        Self {
            account: receipt.account.clone(),
            subscription: receipt.subscription,
            receipt: receipt.id().to_string(),
            due_on: receipt.due_on,
            amount: receipt.amount,
        }
    }
}
