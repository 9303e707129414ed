//! The lease of a batch's daily execution: one at a time.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::ReturnValue;
use chrono::{DateTime, Utc};
use serde::Deserialize;

use super::items::{Instant, from_item};
use super::requests::{UpdateAnswer, s};
use super::{Batch, Table, TableError, keys};

/// What taking the lease came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Taken {
    Ours,
    /// It is another execution's.
    Held {
        by: String,
        until: DateTime<Utc>,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ExecutionItem {
    execution: String,
    leased_until: Instant,
}

impl Table {
    /// Takes the lease of `batch` for `execution` until `until`, or renews it, unless another execution has it still.
    /// UpdateItem.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn take_execution(
        &self,
        batch: Batch,
        execution: &str,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<Taken, TableError> {
        const TAKE: &str = "SET #Execution = :execution, #LeasedUntil = :until";
        const FREE: &str = "attribute_not_exists(#PK) OR #Execution = :execution OR #LeasedUntil <= :now";
        let values = HashMap::from([
            (":execution".to_owned(), s(execution)),
            (":until".to_owned(), s(Instant(until).text())),
            (":now".to_owned(), s(Instant(now).text())),
        ]);
        match self.update(self.update_of(keys::execution(batch), TAKE, FREE, values), ReturnValue::None).await? {
            UpdateAnswer::Done(_) => Ok(Taken::Ours),
            UpdateAnswer::Refused(Some(stored)) => {
                let ExecutionItem { execution, leased_until } = from_item(&stored)?;
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
