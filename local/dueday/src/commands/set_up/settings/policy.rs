//! The policy of the table: adopts it in a table of an earlier version, and changes one of its settings.

use billing::{ActionKind, Policy, PolicySetting, StoredPolicy};
use chrono::{DateTime, NaiveDate, Utc};
use store::{Batch, DueList, SetPolicyOutcome};

use super::SettingChange;
use crate::Failure;
use crate::context::CommandContext;
use crate::machine::open_table::OpenTable;
use crate::terminal::confirmation::ConfirmationArgs;
use crate::terminal::output::{self, format_count};

/// The number of rows that one request reads from an index.
const PAGE_ROWS: usize = 1_000;

/// Stores the policy of the flags in a table of an earlier version, after the question whether these are the deployed
/// values. A setting without a flag and without a variable gets its default. A table that has a policy keeps it.
///
/// # Errors
/// [`Failure::PolicyFlag`] if the table has another value than a flag. [`Failure::Refused`] if the answer is not yes.
pub async fn adopt_policy_of_flags(
    context: &CommandContext,
    open_table: &OpenTable,
    confirmation: ConfirmationArgs,
) -> Result<StoredPolicy, Failure> {
    let given = StoredPolicy::from(&context.config.table.configured_policy.policy);
    let stored = match &open_table.settings.policy {
        Some(stored) => stored.clone(),
        None => {
            let values = Policy::setting_names().map(|setting| format!("  {setting} {}", given.value_text(setting)));
            output::print_message(values.collect::<Vec<_>>().join("\n"));
            confirmation.confirm_change("Are these the values with which the functions are deployed?")?;
            let action = context.new_log_entry(ActionKind::ChangeSettings, None);
            open_table.table.adopt_policy(&given, Some(&action)).await?
        }
    };
    if let Ok(policy) = stored.read() {
        context.check_policy_flags(&policy)?;
    }
    Ok(stored)
}

/// Sets `setting` of the table's policy to the value in `text`, after the question whether the described change is
/// wanted.
///
/// # Errors
/// [`Failure::Refused`] if the value is not allowed, the time zone cannot be set now, a daily execution is running, the
/// answer is not yes, or the settings have changed since the table was opened. Nothing is changed.
pub async fn set_policy_setting(
    context: &CommandContext,
    open_table: &OpenTable,
    setting: PolicySetting,
    text: &str,
    confirmation: ConfirmationArgs,
) -> Result<SettingChange, Failure> {
    let refused = |reason: String| Failure::Refused(reason);
    let settings = &open_table.settings;
    let Some(before) = &settings.policy else {
        return Err(refused("the table has no policy: adopt it with `dueday settings adopt`".to_owned()));
    };
    let after = before.with_setting(setting, text).map_err(|error| refused(error.to_string()))?;
    let change = SettingChange {
        setting: setting.to_string(),
        before: before.value_text(setting),
        after: after.value_text(setting),
    };
    if change.before == change.after {
        return Ok(change);
    }
    let now = context.clock.now();
    after.check_replaces(before, settings.latest_run_day(), now).map_err(|error| refused(error.to_string()))?;
    // A policy that cannot be read has no dates that could move.
    if let (Ok(before), Ok(after)) = (before.read(), after.read()) {
        output::print_message(preview_policy_change(open_table, &before, &after, setting, now).await?);
    }
    confirmation.confirm_change(&format!("Change {setting} from {} to {}?", change.before, change.after))?;
    let action = context.new_log_entry(ActionKind::ChangeSettings, None);
    match open_table.table.set_policy(settings, &after, context.clock.now(), &action).await? {
        SetPolicyOutcome::Set => Ok(change),
        SetPolicyOutcome::Changed => {
            let reason = "the policy was changed, or a run began, after this command had read the settings; run the command again";
            Err(refused(reason.to_owned()))
        }
        SetPolicyOutcome::Running { batch, by, until } => Err(refused(format!(
            "the daily execution {by} of the {batch} batch is running, until {until} at the latest; run the command after it"
        ))),
    }
}

/// Returns which planned dates the change of `setting` moves, and which payments and reminders become due.
async fn preview_policy_change(
    open_table: &OpenTable,
    before: &Policy,
    after: &Policy,
    setting: PolicySetting,
    now: DateTime<Utc>,
) -> Result<String, Failure> {
    let (today, then) = (before.date_at(now), after.date_at(now));
    let moved_figures = "In reports and exports, payments near midnight count on another day, also in past months.";
    Ok(match setting {
        PolicySetting::TimeZone if today == then => {
            format!("Today stays {today}. No planned date moves. {moved_figures}")
        }
        PolicySetting::TimeZone if today > then => {
            format!("Today becomes {then} instead of {today}. No planned date moves. {moved_figures}")
        }
        PolicySetting::TimeZone => {
            let mut due = Vec::new();
            for (batch, noun) in [(Batch::Payments, "payment"), (Batch::Reminders, "reminder")] {
                let count = count_newly_due(open_table, batch, today, then).await?;
                due.push(format_count(count, noun));
            }
            let due = due.join(" and ");
            format!("Today becomes {then} instead of {today}: {due} become due at once. {moved_figures}")
        }
        PolicySetting::ReminderLeadDays => {
            "No planned reminder moves. The reminder of a date that is computed after the change uses the new value. After a \
             higher value, `dueday audit` reports the planned reminders as too late, and `dueday audit --fix` moves them."
                .to_owned()
        }
        PolicySetting::ReceiptDays => {
            "No stored record gets another expiry. Records that are written after the change expire after the new time. After \
             a higher value, `dueday audit` may report months whose receipts have already expired, until the new time has passed."
                .to_owned()
        }
        PolicySetting::ActionDays => {
            "No stored entry gets another expiry. Entries that are written after the change expire after the new time. `dueday \
             log` lists only entries of the new time."
                .to_owned()
        }
        PolicySetting::RetryGaps => {
            "No planned date moves. The retry after a decline that follows uses the new gaps. After shorter gaps, `dueday \
             audit` reports planned retries that are later than the new gaps permit."
                .to_owned()
        }
        PolicySetting::AfterLastRetry
        | PolicySetting::CatchUp
        | PolicySetting::Resume
        | PolicySetting::AfterWonDispute => {
            "No planned date moves. Outcomes and decisions after the change use the new value.".to_owned()
        }
    })
}

/// Returns the number of payments or reminders of `batch` that become due because today becomes `then` instead of
/// `today`.
async fn count_newly_due(
    open_table: &OpenTable,
    batch: Batch,
    today: NaiveDate,
    then: NaiveDate,
) -> Result<u64, Failure> {
    let (mut count, mut next) = (0_u64, None);
    loop {
        let shards = open_table.settings.shards;
        let page: DueList =
            open_table.table.get_due_and_postponed_by_date(batch, shards, then, then, next, PAGE_ROWS).await?;
        let newly_due = page.rows.iter().filter_map(|row| row.due.as_ref().ok()).filter(|due| due.on > today);
        count = count.saturating_add(newly_due.count() as u64);
        match page.next {
            Some(position) => next = Some(position),
            None => return Ok(count),
        }
    }
}
