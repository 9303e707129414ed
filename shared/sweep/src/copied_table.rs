//! Checks that the table is the one for which its settings were written, and not a restored backup or a copy of it.

use super::{Sweep, SweepError, Task};
use store::Settings;

impl<T: Task> Sweep<T> {
    /// Returns the reason why no run may begin in the table; `None` if a run may begin. A run must not begin if the
    /// table's DynamoDB id is not the id for which its `settings` were written: the table is then a restored backup or
    /// a copy. A restored backup does not contain the payments and e-mails after the backup, so a run would charge and
    /// send them again. In this case, also switches charging off, so that sign-ups are not charged either. The first
    /// run stores the id in the table's settings.
    pub(super) async fn reason_to_refuse_copied_table(
        &self,
        settings: &Settings,
    ) -> Result<Option<String>, SweepError> {
        let Some(current) = self.table.dynamodb_id().await? else {
            tracing::warn!("DynamoDB returned no id of the table: a restored backup would not be noticed");
            return Ok(None);
        };
        let stored = match &settings.dynamodb_id {
            Some(stored) => stored.clone(),
            None => self.table.init_dynamodb_id(&current).await?,
        };
        if stored == current {
            return Ok(None);
        }
        if settings.charging || settings.copy_noticed_at.is_none() {
            self.table.record_copy(self.clock.now()).await?;
        }
        Ok(Some(format!(
            "this table was restored from a backup or copied: its id is {current}, and its settings were written for the \
             table {stored}. Charging is switched off until `dueday confirm-table`"
        )))
    }
}
