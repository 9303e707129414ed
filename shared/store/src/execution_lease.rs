//! The lease of a batch's daily execution: one at a time.

use aws_sdk_dynamodb::types::ReturnValue;
use chrono::{DateTime, Utc};
use serde::Deserialize;

use super::{Batch, Table, TableError, keys};
use dynamo::{Holder, Lease, Leased, Terms, Values, from_item, n, values};

/// Held while an execution goes on. Its holder renews it before each step.
const LEASE: Lease = Lease { holder: "Execution", expires: "LeasedUntil", is_renewable: true };

/// What taking the lease came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Taken {
    /// It is this execution's, which was begun with so many shards; absent of one that did not say.
    Ours { shards: Option<u32> },
    /// It is another execution's.
    Held { by: String, until: DateTime<Utc> },
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ExecutionItem {
    shards: Option<u32>,
}

impl Table {
    /// Takes the lease of `batch` for `execution` until `until`, or renews it, unless another execution has it still.
    /// An execution that begins says how many `shards` there are. UpdateItem.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn take_execution(
        &self,
        batch: Batch,
        execution: &str,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        shards: Option<u32>,
    ) -> Result<Taken, TableError> {
        let (set, values) = match shards {
            Some(shards) => ("#Shards = :shards", values([(":shards", n(shards))])),
            None => ("", Values::new()),
        };
        let holder = Holder { token: execution.to_owned(), now, until };
        let terms = Terms { condition: "", set, values, returned: ReturnValue::AllNew };
        match self.take_lease(keys::execution(batch), &LEASE, &holder, terms).await? {
            Leased::Held(stored) => Ok(Taken::Ours { shards: from_item::<ExecutionItem>(&stored)?.shards }),
            Leased::Refused(Some(stored)) => {
                let (by, until) = LEASE.read(&stored)?;
                Ok(Taken::Held { by, until })
            }
            Leased::Refused(None) => Err(TableError::Contended { key: keys::execution(batch) }),
        }
    }

    /// Gives the lease of `batch` back, if it is `execution`'s. UpdateItem.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn release_execution(&self, batch: Batch, execution: &str, now: DateTime<Utc>) -> Result<(), TableError> {
        self.release_lease(keys::execution(batch), &LEASE, execution, now).await
    }
}
