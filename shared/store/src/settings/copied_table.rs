//! Checks that the table is the one for which its settings were written, and not a restored backup or a copy of it.

use chrono::{DateTime, Utc};

use crate::settings::settings_item::Settings;
use crate::table::payments_table::Table;
use dynamo::TableError;

/// The reason why nothing may be charged in a table that is older than the payments at the gateway or than the events.
pub const OLDER_TABLE: &str = "this table is older than the payments at the gateway or than its events: it was restored from \
                               a backup. Charging is switched off until `dueday confirm-table`";

impl Table {
    /// Returns the reason why nothing may be charged in this table: the table is a restored backup or a copy. DynamoDB
    /// has given it another id than the id in its `settings`, or a look-up at the gateway or a command has noticed that
    /// it is older than the payments or the events. In this case, also switches charging off. Such a table does not
    /// contain the payments and e-mails after the backup, so a run would charge and send them again, and a sign-up that
    /// a customer repeats would be charged again. Returns `None` if charging is allowed. If the settings contain no id,
    /// stores the table's id in the settings. `now` is the current time.
    pub async fn reason_to_refuse_copy(
        &self,
        settings: &Settings,
        now: DateTime<Utc>,
    ) -> Result<Option<String>, TableError> {
        let other_id = match self.dynamodb_id().await? {
            Some(current) => {
                let stored = match &settings.dynamodb_id {
                    Some(stored) => stored.clone(),
                    None => self.init_dynamodb_id(&current).await?,
                };
                (stored != current).then_some((current, stored))
            }
            None => {
                tracing::warn!("DynamoDB returned no id of the table: a restored backup would not be noticed");
                None
            }
        };
        if other_id.is_none() && settings.copy_noticed_at.is_none() {
            return Ok(None);
        }
        match &other_id {
            Some((current, _)) if settings.charging || settings.copy_noticed_in.as_ref() != Some(current) => {
                self.record_copy_with_id(current, now).await?;
            }
            None if settings.charging => self.record_copy(now).await?,
            _ => {}
        }
        Ok(Some(match other_id {
            Some((current, stored)) => format!(
                "this table was restored from a backup or copied: its id is {current}, and its settings were written for the \
                 table {stored}. Charging is switched off until `dueday confirm-table`"
            ),
            None => OLDER_TABLE.to_owned(),
        }))
    }
}
