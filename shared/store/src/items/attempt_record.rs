use chrono::{NaiveDate, TimeDelta};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::super::{Key, TableError, keys};
use super::of_record;
use billing::{AttemptEnd, AttemptRecord, Currency, GatewayToken, Money};
use dynamo::{Instant, expiry};

#[skip_serializing_none]
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
    gateway_customer_id: Option<GatewayToken>,
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
            gateway_customer_id: record.customer.clone(),
            outcome: record.outcome,
            code: record.code.clone(),
            hard: record.hard,
            processed_date: Instant(record.processed_at),
            ttl: expiry(record.processed_at, kept),
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
            customer: item.gateway_customer_id,
            outcome: item.outcome,
            code: item.code,
            hard: item.hard,
            processed_at: item.processed_date.0,
        })
    }
}
