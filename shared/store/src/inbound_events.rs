//! What a gateway or a mail service has told us, by its own name for that: it may say it again.

use chrono::{DateTime, TimeDelta, Utc};

use super::{Table, TableError, keys};
use dynamo::n;

/// Longer than anything is told again: for three days by Stripe itself, for 15 days by a person there.
const KEPT: TimeDelta = TimeDelta::days(30);

impl Table {
    /// Whether what is called `id` was worked on. GetItem.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn was_told(&self, id: &str) -> Result<bool, TableError> {
        Ok(self.get(keys::told(id)).await?.is_some())
    }

    /// Notes at `now` that what is called `id` was worked on. PutItem.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn note_told(&self, id: &str, now: DateTime<Utc>) -> Result<(), TableError> {
        let mut item = keys::told(id).attributes();
        item.insert("TTL".to_owned(), n((now + KEPT).timestamp()));
        self.put(item).await
    }
}
