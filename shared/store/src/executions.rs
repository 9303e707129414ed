//! The lease of a batch's daily execution: one at a time.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::ReturnValue;
use chrono::{DateTime, Utc};
use serde::Deserialize;

use super::{Batch, Table, TableError, keys};
use dynamo::{Instant, from_item};
use dynamo::{UpdateAnswer, n, s};

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
    execution: String,
    leased_until: Instant,
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
        const TAKE: &str = "SET #Execution = :execution, #LeasedUntil = :until";
        const BEGIN: &str = "SET #Execution = :execution, #LeasedUntil = :until, #Shards = :shards";
        const FREE: &str = "attribute_not_exists(#PK) OR #Execution = :execution OR #LeasedUntil <= :now";
        let mut values = HashMap::from([
            (":execution".to_owned(), s(execution)),
            (":until".to_owned(), s(Instant(until).text())),
            (":now".to_owned(), s(Instant(now).text())),
        ]);
        values.extend(shards.map(|shards| (":shards".to_owned(), n(shards))));
        let take = if shards.is_some() { BEGIN } else { TAKE };
        match self.update(self.update_of(keys::execution(batch), take, FREE, values), ReturnValue::AllNew).await? {
            UpdateAnswer::Done(stored) => Ok(Taken::Ours { shards: from_item::<ExecutionItem>(&stored)?.shards }),
            UpdateAnswer::Refused(Some(stored)) => {
                let ExecutionItem { execution, leased_until, .. } = from_item(&stored)?;
                Ok(Taken::Held { by: execution, until: leased_until.0 })
            }
            UpdateAnswer::Refused(None) => Err(TableError::Contended { key: keys::execution(batch) }),
        }
    }

    /// Gives the lease of `batch` back, if it is `execution`'s. UpdateItem.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn release_execution(&self, batch: Batch, execution: &str, now: DateTime<Utc>) -> Result<(), TableError> {
        let values =
            HashMap::from([(":execution".to_owned(), s(execution)), (":now".to_owned(), s(Instant(now).text()))]);
        let release =
            self.update_of(keys::execution(batch), "SET #LeasedUntil = :now", "#Execution = :execution", values);
        // Refused: another one has taken it, or nobody has.
        self.update(release, ReturnValue::None).await.map(drop)
    }
}
