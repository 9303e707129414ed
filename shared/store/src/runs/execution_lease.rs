//! The execution lease of a batch. A daily execution is one execution of the state machine, which runs a batch over all
//! shards for one day. A daily execution runs only while it has this lease, so that each batch has at most one daily
//! execution at a time.

use aws_sdk_dynamodb::types::{ReturnValue, TransactWriteItem};
use chrono::{DateTime, Utc};
use serde::Deserialize;

use crate::items::keep_attributes;
use crate::keys;
use crate::table::batch::Batch;
use crate::table::payments_table::Table;
use dynamo::TableError;
use dynamo::{Instant, Item, Lease, LeaseHolder, LeaseResult, LeaseTerms, Values, from_item, n, s, values};

/// The attributes of the execution lease. The daily execution renews its lease before each of its steps.
const EXECUTION_LEASE: Lease = Lease { holder: "Execution", expires: "LeasedUntil", is_renewable: true };

/// The result of trying to acquire or renew the execution lease of a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ExecutionLeaseOutcome {
    /// This execution has the lease. `shards` is the number of shards that this execution stored when it began; `None`
    /// if no number is stored.
    Acquired { shards: Option<u32> },
    /// The execution with the name `by` has the lease until the time `until`.
    HeldByOther { by: String, until: DateTime<Utc> },
}

/// The attribute that an execution stores with its lease.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ExecutionItem {
    shards: Option<u32>,
}

/// Returns the attributes of `item`, an execution lease, that this program stores.
pub(crate) fn check_execution_lease(item: &Item) -> Result<Item, TableError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct LeaseItem {
        #[serde(rename = "Execution")]
        _execution: Option<String>,
        #[serde(rename = "LeasedUntil")]
        _leased_until: Option<Instant>,
    }
    from_item::<LeaseItem>(item)?;
    from_item::<ExecutionItem>(item)?;
    Ok(keep_attributes(item, |name| [EXECUTION_LEASE.holder, EXECUTION_LEASE.expires, "Shards"].contains(&name)))
}

impl Table {
    /// Acquires or renews the execution lease of `batch` for `execution` until `until`, unless another execution has a
    /// lease that has not expired. When an execution begins, it passes the table's number of `shards`, which is stored
    /// with the lease. Sends one UpdateItem request.
    pub async fn acquire_execution_lease(
        &self,
        batch: Batch,
        execution: &str,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        shards: Option<u32>,
    ) -> Result<ExecutionLeaseOutcome, TableError> {
        let (set, values) = match shards {
            Some(shards) => ("#Shards = :shards", values([(":shards", n(shards))])),
            None => ("", Values::new()),
        };
        let holder = LeaseHolder { token: execution.to_owned(), now, until };
        let terms = LeaseTerms { condition: "", set, values, returned: ReturnValue::AllNew };
        match self.acquire_lease(keys::key_of_execution_lease(batch), &EXECUTION_LEASE, &holder, terms).await? {
            LeaseResult::Acquired(stored) => {
                Ok(ExecutionLeaseOutcome::Acquired { shards: from_item::<ExecutionItem>(&stored)?.shards })
            }
            LeaseResult::Refused(Some(stored)) => {
                let (by, until) = EXECUTION_LEASE.read_holder_and_expiry(&stored)?;
                Ok(ExecutionLeaseOutcome::HeldByOther { by, until })
            }
            LeaseResult::Refused(None) => Err(TableError::Contended { key: keys::key_of_execution_lease(batch) }),
        }
    }

    /// Builds the part of a transaction that checks that no daily execution has the lease of `batch` at the time `now`.
    pub(crate) fn build_execution_check(&self, batch: Batch, now: DateTime<Utc>) -> TransactWriteItem {
        let values = values([(":now", s(Instant(now).to_text()))]);
        let is_free = "attribute_not_exists(#LeasedUntil) OR #LeasedUntil <= :now";
        self.build_condition_check(keys::key_of_execution_lease(batch), is_free, values)
    }

    /// Reads the name of the daily execution and the end of its lease from `item`, the item of an execution lease.
    pub(crate) fn read_execution(item: &Item) -> Result<(String, DateTime<Utc>), TableError> {
        EXECUTION_LEASE.read_holder_and_expiry(item)
    }

    /// Releases the execution lease of `batch`, if `execution` has it. The end of the lease is then in the past on every
    /// clock, so that an execution whose clock was ahead blocks no later execution. Sends one UpdateItem request.
    pub async fn release_execution_lease(&self, batch: Batch, execution: &str) -> Result<(), TableError> {
        let past = DateTime::UNIX_EPOCH;
        self.release_lease(keys::key_of_execution_lease(batch), &EXECUTION_LEASE, execution, past).await
    }
}
