//! Checks that the table is the one whose payments the settings describe, and not a restored backup or a copy of it.

use super::PaymentBatch;
use store::{Settings, Table, TableError};

impl PaymentBatch {
    /// Returns the reason why nothing may be charged in `table`: DynamoDB has given it another id than the table for
    /// which its settings were written. Such a table does not contain the payments that were made after the backup, so
    /// a run would charge them again. Switches charging off then, so that sign-ups are not charged either. Returns
    /// `None` if the payments may be charged. The first run stores the id in the table's settings.
    pub(super) async fn reason_to_refuse_copied_table(
        &self,
        table: &Table,
        settings: &Settings,
    ) -> Result<Option<String>, TableError> {
        let Some(current) = table.dynamodb_id().await? else {
            tracing::warn!("DynamoDB returned no id of the table: a restored backup would not be noticed");
            return Ok(None);
        };
        let stored = match &settings.dynamodb_id {
            Some(stored) => stored.clone(),
            None => table.init_dynamodb_id(&current).await?,
        };
        if stored == current {
            return Ok(None);
        }
        if settings.charging || settings.copy_noticed_at.is_none() {
            table.record_copy(self.clock.now()).await?;
        }
        Ok(Some(format!(
            "this table was restored from a backup or copied: its id is {current}, and its settings were written for the \
             table {stored}. Charging is switched off until `dueday confirm-table`"
        )))
    }
}
