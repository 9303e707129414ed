//! Idempotency records: the stored responses to requests that had an idempotency key.
//!
//! A record is written in the same transaction as the change that the request makes, so a crash
//! cannot leave a change without its record.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue, TransactWriteItem};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use crate::{DynamoTable, Item, Key, TableError};
use crate::{UpdateItemOutcome, n};
use crate::{from_item, to_item};

/// How long a response is stored under its idempotency key: two days. A caller may use a calendar day as a key, and the
/// key must then be valid for the whole day. A day has 25 hours when summer time ends.
pub const IDEMPOTENCY_RETENTION: TimeDelta = TimeDelta::hours(48);

/// The condition under which a record is written: no record is stored under the same key, or the stored record has
/// expired. DynamoDB deletes an expired record only days later.
const ABSENT_OR_EXPIRED: &str = "attribute_not_exists(#PK) OR #TTL <= :now";

/// A request with an idempotency key, and the response to return if the same request is repeated before the key
/// expires.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IdempotentRequest {
    /// The time of the request.
    pub made_at: DateTime<Utc>,
    /// The hash of the caller, the method, the path and the idempotency key.
    pub key_hash: String,
    /// The hash of the request's body.
    pub request_hash: String,
    pub response: StoredResponse,
    /// The time at which the idempotency key expires.
    pub expires_at: DateTime<Utc>,
}

/// A stored response: its JSON, and the version of the resource in it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StoredResponse {
    pub json: String,
    /// The version of the resource in `json`. The API returns it as the `ETag`.
    pub version: u64,
}

/// The earlier use of a request's idempotency key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum IdempotencyKeyReuse {
    /// The key was used for the same request, with this response.
    SameRequest(StoredResponse),
    /// The key was used for a request with another body.
    KeyReused,
}

/// The attributes of an idempotency record's item.
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

/// The beginning of the partition key of all idempotency records.
pub const IDEMPOTENCY_RECORDS: &str = "IDEM#";

/// Returns the primary key of the idempotency record of a request, from [`IdempotentRequest::key_hash`].
fn key_of_idempotency_record(key_hash: &str) -> Key {
    let pk = format!("{IDEMPOTENCY_RECORDS}{key_hash}");
    Key { sk: pk.clone(), pk }
}

/// Returns the item that this program would store for the idempotency record in `item`.
///
/// # Errors
/// [`TableError::Unreadable`] if an attribute is missing or has another type.
pub fn check_idempotency_record(item: &Item) -> Result<Item, TableError> {
    let mut record: IdempotencyItem = from_item(item)?;
    record.sk.clone_from(&record.pk);
    Ok(to_item(&record))
}

impl IdempotentRequest {
    /// Compares the request with `stored`, the record that is stored under the request's idempotency key.
    pub fn compare_with_record(&self, stored: &Item) -> Result<IdempotencyKeyReuse, TableError> {
        let stored: IdempotencyItem = from_item(stored)?;
        Ok(if stored.request_hash == self.request_hash {
            IdempotencyKeyReuse::SameRequest(StoredResponse { json: stored.answer, version: stored.answer_version })
        } else {
            IdempotencyKeyReuse::KeyReused
        })
    }
}

impl<Schema> DynamoTable<Schema> {
    /// Returns the response to an earlier request with the idempotency key of `request`; `None` if there was no such
    /// request or its record has expired. Sends one strongly consistent GetItem request.
    pub async fn get_stored_response(
        &self,
        request: &IdempotentRequest,
    ) -> Result<Option<IdempotencyKeyReuse>, TableError> {
        let stored = self.get(key_of_idempotency_record(&request.key_hash)).await?;
        let is_valid = |item: &Item| from_item::<IdempotencyItem>(item).map(|i| i.ttl > request.made_at.timestamp());
        match stored {
            Some(item) if is_valid(&item)? => request.compare_with_record(&item).map(Some),
            _ => Ok(None),
        }
    }

    /// Replaces the stored response to `request` with `response`, for example to store that the bank is processing the
    /// payment. Returns `false`, and writes nothing, if no record of the same request is stored. Sends one UpdateItem
    /// request.
    pub async fn replace_stored_response(
        &self,
        request: &IdempotentRequest,
        response: &StoredResponse,
    ) -> Result<bool, TableError> {
        let values = HashMap::from([
            (":answer".to_owned(), AttributeValue::S(response.json.clone())),
            (":version".to_owned(), AttributeValue::N(response.version.to_string())),
            (":request".to_owned(), AttributeValue::S(request.request_hash.clone())),
        ]);
        let set = "SET #Answer = :answer, #AnswerVersion = :version";
        let update =
            self.build_update(key_of_idempotency_record(&request.key_hash), set, "#RequestHash = :request", values);
        Ok(matches!(self.send_update(update, ReturnValue::None).await?, UpdateItemOutcome::Updated(_)))
    }

    /// Builds the write of a transaction that stores the response to `request`. The transaction fails if the
    /// idempotency key has a record that has not expired.
    pub fn build_idempotency_put(&self, request: &IdempotentRequest) -> TransactWriteItem {
        let Key { pk, sk } = key_of_idempotency_record(&request.key_hash);
        let record = IdempotencyItem {
            pk,
            sk,
            request_hash: request.request_hash.clone(),
            answer: request.response.json.clone(),
            answer_version: request.response.version,
            ttl: request.expires_at.timestamp(),
        };
        let now = HashMap::from([(":now".to_owned(), n(request.made_at.timestamp()))]);
        self.build_put_if(to_item(&record), ABSENT_OR_EXPIRED, Some(now))
    }
}
