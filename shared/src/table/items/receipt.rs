use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::super::{Key, TableError, keys};
use super::Instant;
use crate::billing::{
    AccountId, AttemptEnd, AttemptRecord, Currency, EmailAddress, GatewayToken, Label, Money, Receipt, Sku,
    SubscriptionId, WaivedPeriod, WaivedReason,
};

#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ReceiptItem {
    #[serde(rename = "PK")]
    pk: String,
    #[serde(rename = "SK")]
    sk: String,
    email: Option<EmailAddress>,
    #[serde(rename = "SKU")]
    sku: Sku,
    product_name: Label,
    due_date: NaiveDate,
    processed_date: Instant,
    processed_amount: i64,
    currency: Currency,
    gateway_payment_id: GatewayToken,
    #[serde(rename = "TTL")]
    ttl: i64,
}

impl ReceiptItem {
    pub fn new(receipt: &Receipt, kept: TimeDelta) -> Self {
        let id = receipt.id();
        let Key { pk, sk } = keys::receipt(&receipt.account, &id);
        Self {
            pk,
            sk,
            email: receipt.email.clone(),
            sku: id.sku,
            product_name: receipt.product_name.clone(),
            due_date: receipt.due_on,
            processed_date: Instant(receipt.processed_at),
            processed_amount: receipt.amount.minor(),
            currency: receipt.amount.currency(),
            gateway_payment_id: receipt.payment.clone(),
            ttl: expiry(receipt.processed_at, kept),
        }
    }

    /// Whether it is no longer shown at `now`.
    pub fn is_expired(&self, now: DateTime<Utc>) -> bool {
        self.ttl <= now.timestamp()
    }
}

impl TryFrom<ReceiptItem> for Receipt {
    type Error = TableError;

    fn try_from(item: ReceiptItem) -> Result<Self, TableError> {
        let (account, subscription) = of_record(item.pk, item.sk)?;
        Ok(Self {
            account,
            subscription,
            sku: item.sku,
            product_name: item.product_name,
            email: item.email,
            due_on: item.due_date,
            amount: Money::new(item.processed_amount, item.currency),
            payment: item.gateway_payment_id,
            processed_at: item.processed_date.0,
        })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct AttemptRecordItem {
    #[serde(rename = "PK")]
    pk: String,
    #[serde(rename = "SK")]
    sk: String,
    attempt_no: u32,
    due_date: NaiveDate,
    payment_amount: i64,
    currency: Currency,
    outcome: AttemptEnd,
    code: String,
    hard: bool,
    processed_date: Instant,
    #[serde(rename = "TTL")]
    ttl: i64,
}

impl AttemptRecordItem {
    pub fn new(record: &AttemptRecord, kept: TimeDelta) -> Self {
        let Key { pk, sk } =
            keys::attempt_record(&record.account, record.subscription, record.due_on, record.attempt_no);
        Self {
            pk,
            sk,
            attempt_no: record.attempt_no,
            due_date: record.due_on,
            payment_amount: record.amount.minor(),
            currency: record.amount.currency(),
            outcome: record.outcome,
            code: record.code.clone(),
            hard: record.hard,
            processed_date: Instant(record.processed_at),
            ttl: expiry(record.processed_at, kept),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct WaivedPeriodItem {
    #[serde(rename = "PK")]
    pk: String,
    #[serde(rename = "SK")]
    sk: String,
    due_date: NaiveDate,
    reason: WaivedReason,
    processed_date: Instant,
    #[serde(rename = "TTL")]
    ttl: i64,
}

impl WaivedPeriodItem {
    pub fn new(waived: &WaivedPeriod, kept: TimeDelta) -> Self {
        let Key { pk, sk } = keys::waived_period(&waived.account, waived.subscription, waived.due_on);
        Self {
            pk,
            sk,
            due_date: waived.due_on,
            reason: waived.reason,
            processed_date: Instant(waived.waived_at),
            ttl: expiry(waived.waived_at, kept),
        }
    }
}

impl TryFrom<AttemptRecordItem> for AttemptRecord {
    type Error = TableError;

    fn try_from(item: AttemptRecordItem) -> Result<Self, TableError> {
        let (account, subscription) = of_record(item.pk, item.sk)?;
        Ok(Self {
            account,
            subscription,
            due_on: item.due_date,
            attempt_no: item.attempt_no,
            amount: Money::new(item.payment_amount, item.currency),
            outcome: item.outcome,
            code: item.code,
            hard: item.hard,
            processed_at: item.processed_date.0,
        })
    }
}

impl TryFrom<WaivedPeriodItem> for WaivedPeriod {
    type Error = TableError;

    fn try_from(item: WaivedPeriodItem) -> Result<Self, TableError> {
        let (account, subscription) = of_record(item.pk, item.sk)?;
        let (due_on, reason, waived_at) = (item.due_date, item.reason, item.processed_date.0);
        Ok(Self { account, subscription, due_on, reason, waived_at })
    }
}

fn of_record(pk: String, sk: String) -> Result<(AccountId, SubscriptionId), TableError> {
    let key = Key { pk, sk };
    keys::of_record(&key).ok_or_else(|| TableError::unreadable(key, "its key names no subscription"))
}

/// TTL attributes are whole seconds since 1970.
fn expiry(from: DateTime<Utc>, kept: TimeDelta) -> i64 {
    from.timestamp().saturating_add(kept.num_seconds())
}
