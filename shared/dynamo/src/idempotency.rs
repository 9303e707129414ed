//! Idempotency records: what was answered to a request that was made under a key.
//!
//! A record is written in the one transaction of what it answers: there is no moment in which the one is there without
//! the other.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue, TransactWriteItem};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use crate::{Dynamo, Item, Key, TableError};
use crate::{UpdateAnswer, n};
use crate::{from_item, to_item};

/// How long an answer is kept under its idempotency key: two days, so that a key that names a calendar day outlives it. On the day on
/// which the clocks are set back, a day has 25 hours.
pub const IDEMPOTENCY_KEPT: TimeDelta = TimeDelta::hours(48);

/// TTL deletes within days: a record that has expired no longer binds.
const ABSENT_OR_EXPIRED: &str = "attribute_not_exists(#PK) OR #TTL <= :now";

/// A request made under an idempotency key, with the answer to give whenever it is made again before it expires.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IdempotentRequest {
    pub made_at: DateTime<Utc>,
    /// Hash of caller, method, path and idempotency key.
    pub key_hash: String,
    /// Hash of the body.
    pub request_hash: String,
    pub answer: KeptAnswer,
    pub expires_at: DateTime<Utc>,
}

/// An answer about a subscription.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KeptAnswer {
    pub json: String,
    /// The version of the subscription that it states.
    pub version: u64,
}

/// What is known of a request's idempotency key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Replayed {
    /// The same request was answered before, with this answer.
    Answered(KeptAnswer),
    /// The idempotency key was used for another request.
    KeyReused,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct IdempotencyItem {
    #[serde(rename = "PK")]
    pk: String,
    #[serde(rename = "SK")]
    sk: String,
    request_hash: String,
    answer: String,
    answer_version: u64,
    #[serde(rename = "TTL")]
    ttl: i64,
}

/// The record of a request made under an idempotency key, by the hash of caller, method, path and key.
fn record(hash: &str) -> Key {
    let pk = format!("IDEM#{hash}");
    Key { sk: pk.clone(), pk }
}

impl IdempotentRequest {
    /// Judges the record `stored` under this request's key.
    pub fn replayed(&self, stored: &Item) -> Result<Replayed, TableError> {
        let stored: IdempotencyItem = from_item(stored)?;
        Ok(if stored.request_hash == self.request_hash {
            Replayed::Answered(KeptAnswer { json: stored.answer, version: stored.answer_version })
        } else {
            Replayed::KeyReused
        })
    }
}

impl<S> Dynamo<S> {
    /// What was answered to `request` before, if it was made under its key. GetItem, strongly consistent.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn get_answer(&self, request: &IdempotentRequest) -> Result<Option<Replayed>, TableError> {
        let stored = self.get(record(&request.key_hash)).await?;
        let is_bound = |item: &Item| from_item::<IdempotencyItem>(item).map(|i| i.ttl > request.made_at.timestamp());
        match stored {
            Some(item) if is_bound(&item)? => request.replayed(&item).map(Some),
            _ => Ok(None),
        }
    }

    /// Replaces the answer that is kept under `request`, because more is known now. Returns whether it was kept under the request still.
    /// UpdateItem.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn replace_answer(&self, request: &IdempotentRequest, answer: &KeptAnswer) -> Result<bool, TableError> {
        let values = HashMap::from([
            (":answer".to_owned(), AttributeValue::S(answer.json.clone())),
            (":version".to_owned(), AttributeValue::N(answer.version.to_string())),
            (":request".to_owned(), AttributeValue::S(request.request_hash.clone())),
        ]);
        let set = "SET #Answer = :answer, #AnswerVersion = :version";
        let update = self.update_of(record(&request.key_hash), set, "#RequestHash = :request", values);
        Ok(matches!(self.update(update, ReturnValue::None).await?, UpdateAnswer::Done(_)))
    }

    /// The write that keeps the answer of `request`: refused when there is one.
    pub fn keep_answer(&self, request: &IdempotentRequest) -> TransactWriteItem {
        let Key { pk, sk } = record(&request.key_hash);
        let record = IdempotencyItem {
            pk,
            sk,
            request_hash: request.request_hash.clone(),
            answer: request.answer.json.clone(),
            answer_version: request.answer.version,
            ttl: request.expires_at.timestamp(),
        };
        let now = HashMap::from([(":now".to_owned(), n(request.made_at.timestamp()))]);
        self.put_of_on(to_item(&record), ABSENT_OR_EXPIRED, Some(now))
    }
}
