//! Checks that the table is the one for which its settings were written, and not a restored backup or a copy of it.

use chrono::{DateTime, Utc};
use store::{Settings, Table, TableError};

/// Returns the reason why nothing may be charged in `table`: the table is a restored backup or a copy, because DynamoDB
/// has given it another id than the id in its `settings`. In this case, also switches charging off. Such a table does
/// not contain the payments and e-mails after the backup, so a run would charge and send them again, and a sign-up that
/// a customer repeats would be charged again. Returns `None` if charging is allowed. If the settings contain no id,
/// stores the table's id in the settings.
///
/// # Errors
/// [`TableError`] if a request to the table failed.
pub async fn reason_to_refuse_copied_table(
    table: &Table,
    settings: &Settings,
    now: DateTime<Utc>,
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
        table.record_copy(now).await?;
    }
    Ok(Some(format!(
        "this table was restored from a backup or copied: its id is {current}, and its settings were written for the \
         table {stored}. Charging is switched off until `dueday confirm-table`"
    )))
}
