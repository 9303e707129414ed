use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::items::{GatewayText, subscription_of_record};
use crate::keys;
use crate::table::payments_table::PaymentsSchema;
use billing::{AttemptEnd, AttemptRecord, Currency, GatewayToken, Money};
use dynamo::{Entity, Instant};
use dynamo::{Key, TableError};

#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct AttemptRecordItem {
    attempt_no: u32,
    due_date: NaiveDate,
    payment_amount: i64,
    currency: Currency,
    gateway_customer_id: Option<GatewayToken>,
    outcome: AttemptEnd,
    code: GatewayText,
    hard: bool,
    /// Present only if a rejected attempt counted as a decline.
    counted: Option<bool>,
    processed_date: Instant,
    /// The time at which the record expires. Not serialized here: `Table::build_record_item` sets it when the record is
    /// written.
    #[serde(rename = "TTL", skip_serializing)]
    #[allow(dead_code)]
    ttl: i64,
}

impl Entity<PaymentsSchema> for AttemptRecord {
    type Attributes = AttemptRecordItem;

    fn key(&self) -> Key {
        keys::key_of_attempt_record(&self.account, self.subscription, self.due_on, self.attempt_no)
    }

    fn attributes(&self) -> AttemptRecordItem {
        AttemptRecordItem {
            attempt_no: self.attempt_no,
            due_date: self.due_on,
            payment_amount: self.amount.minor(),
            currency: self.amount.currency(),
            gateway_customer_id: self.customer.clone(),
            outcome: self.outcome,
            code: self.code.as_str().into(),
            hard: self.hard,
            counted: (self.is_decline && self.outcome != AttemptEnd::Declined).then_some(true),
            processed_date: Instant(self.processed_at),
            ttl: 0,
        }
    }

    fn read(key: Key, item: AttemptRecordItem) -> Result<Self, TableError> {
        let (account, subscription) = subscription_of_record(key)?;
        Ok(Self {
            account,
            subscription,
            due_on: item.due_date,
            attempt_no: item.attempt_no,
            amount: Money::new(item.payment_amount, item.currency),
            customer: item.gateway_customer_id,
            outcome: item.outcome,
            code: item.code.into(),
            hard: item.hard,
            is_decline: item.outcome == AttemptEnd::Declined || item.counted == Some(true),
            processed_at: item.processed_date.0,
        })
    }
}
