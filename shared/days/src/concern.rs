//! The concerns: the causes that need a person, each with its sentence and with what the person does.

use chrono::{DateTime, NaiveDate, Utc};
use ulid::Ulid;

use billing::AccountId;
use store::Batch;

use super::postponed_payments::describe_postponed_payments;

/// The description of [`Concern::ChargingOff`]. A metric filter in `template.yaml` contains the same text.
pub const CHARGING_OFF_MESSAGE: &str = "charging is switched off, so runs charge nothing";

/// A cause that needs a person, with the figures of its description.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Concern {
    #[error("{CHARGING_OFF_MESSAGE}")]
    ChargingOff,
    #[error("the clock of this machine says {now}, and a run was recorded at {latest}, so no run starts")]
    ClockBehind { now: DateTime<Utc>, latest: DateTime<Utc> },
    #[error("the table was noticed to be a copy or a restored backup at {noticed_at}, so no run starts")]
    CopiedTable { noticed_at: DateTime<Utc> },
    #[error("the {batch} of {date} are not done: {complete_shards} of {shards} shards are complete{}", describe_reason(.stopped))]
    DayNotDone { batch: Batch, date: NaiveDate, complete_shards: usize, shards: usize, stopped: Option<String> },
    /// Runs of today have stopped or left rows unfinished. Later runs of today do the same unless a person removes the
    /// cause.
    #[error("the {batch} of {date}, today, {what} in {shards} of {all_shards} shards{}", describe_reason(.stopped))]
    TodayStopped {
        batch: Batch,
        date: NaiveDate,
        what: &'static str,
        shards: usize,
        all_shards: usize,
        stopped: Option<String>,
    },
    /// A run of today was killed, and no other run continues.
    #[error("the {batch} of {date}, today, were cut off in {shards} of {all_shards} shards, and no run continues")]
    CutOffToday { batch: Batch, date: NaiveDate, shards: usize, all_shards: usize },
    /// The gateway has rejected the charges of payments that are not settled yet.
    #[error("payments whose charge the gateway has rejected: {count}")]
    RejectedPayments { count: u64 },
    #[error("run records of the {batch} of {date} cannot be read: {count}; {first}")]
    UnreadableRuns { batch: Batch, date: NaiveDate, count: usize, first: String },
    #[error("payments are due and not settled; the oldest has been due since {since}")]
    LatePayments { since: NaiveDate },
    #[error("payments without a receipt: {count}")]
    OpenFindings { count: usize },
    #[error("findings (payments without a receipt) cannot be read: {count}; {first}")]
    UnreadableFindings { count: usize, first: String },
    #[error("{}", describe_postponed_payments(*.count))]
    PostponedPayments { count: u64 },
    #[error("the webhook endpoint {id} is disabled: {reason}")]
    DisabledEndpoint { id: Ulid, reason: String },
    #[error("webhook endpoints cannot be read: {count}; {first}")]
    UnreadableEndpoints { count: usize, first: String },
    /// A person or a merchant must end what the erasure waits for, such as an order.
    #[error("the erasure of the account {account}, requested on {since}, still waits: {waits_for}")]
    LateErasure { account: AccountId, since: NaiveDate, waits_for: String },
    #[error("records of erasures, audits or comparisons cannot be read: {count}; {first}")]
    UnreadableRecords { count: usize, first: String },
    #[error("violations that the audit {audit} found: {count}")]
    Violations { audit: Ulid, count: u64 },
    #[error("no audit was made{}", describe_time_since(.since))]
    NoAudit { since: Option<NaiveDate> },
    #[error("the audit {audit} has not ended since {since}")]
    LateAudit { audit: Ulid, since: NaiveDate },
    #[error("differences between the table and the gateway on {date}: {count}")]
    Differences { date: NaiveDate, count: u64 },
    #[error("no day{} was compared with the gateway", describe_days_after(.after))]
    NoComparison { after: Option<NaiveDate> },
    #[error("{description}")]
    PolicyDifference { description: String },
    #[error("{description}")]
    Queue { description: String },
    #[error("the queues could not be read: {reason}")]
    UnreadableQueues { reason: String },
}

impl Concern {
    /// Returns whether this concern is only about the state of the runs of a day, which `runs` and `report` show in a table.
    pub fn is_state_of_runs(&self) -> bool {
        matches!(self, Self::DayNotDone { .. } | Self::TodayStopped { .. } | Self::CutOffToday { .. })
    }

    /// Returns whether the concern is that the schedule of a nightly check did not run, or does not end.
    pub fn is_missing_check(&self) -> bool {
        matches!(self, Self::NoAudit { .. } | Self::LateAudit { .. } | Self::NoComparison { .. })
    }

    /// Returns what a person does about the concern, as an imperative sentence.
    pub fn next_step(&self) -> String {
        let step = match self {
            Self::DayNotDone { batch, date, .. } => {
                return format!(
                    "Run the day again with `dueday run {batch} --date {date}`; on AWS: docs/trouble.md, \"A day is not done\"."
                );
            }
            Self::CutOffToday { batch, date, .. } => {
                return format!(
                    "Run the batch again with `dueday run {batch} --date {date}`; on AWS, start the day again."
                );
            }
            Self::Violations { audit, .. } => {
                return format!(
                    "See them with `dueday audit show {audit}`, repair them, and audit the same items again."
                );
            }
            Self::ChargingOff => "Switch it on with `dueday charging on`.",
            Self::ClockBehind { .. } => {
                "Set the clock of this machine right. If the earlier run had the wrong clock: `dueday confirm-clock`."
            }
            Self::CopiedTable { .. } => {
                "Compare the table with the gateway, and confirm it with `dueday confirm-table`."
            }
            Self::TodayStopped { .. } => {
                "See the shards with `dueday runs`, remove the cause, and run the batch again."
            }
            Self::UnreadableRuns { .. } => "Run the day again, and delete the unreadable records.",
            Self::LatePayments { .. } => "See the payments with `dueday due`, and why with `dueday why`.",
            Self::RejectedPayments { .. } => {
                "See the reason with `dueday why`, and correct the subscription: docs/trouble.md. A run of the next day tries \
                 again."
            }
            Self::OpenFindings { .. } => "See them with `dueday findings`, and resolve each.",
            Self::PostponedPayments { .. } => {
                "Repair them with `dueday audit --fix`, which lists those that only a person can repair."
            }
            Self::DisabledEndpoint { .. } => "Enable it with `dueday webhooks enable`, or delete it.",
            Self::UnreadableFindings { .. } | Self::UnreadableEndpoints { .. } | Self::UnreadableRecords { .. } => {
                "Repair the items, or restore them from a backup."
            }
            Self::LateErasure { .. } => "End what it waits for: docs/privacy.md.",
            Self::NoAudit { .. } => "Audit now with `dueday audit`, and find out why no schedule does.",
            Self::LateAudit { .. } => {
                "Audit now with `dueday audit`, and find out in the log why the scheduled audit does not end."
            }
            Self::Differences { .. } => "See them with `dueday reconcile --from DATE --to DATE`.",
            Self::NoComparison { .. } => "Compare now with `dueday reconcile`, and find out why no schedule does.",
            Self::PolicyDifference { .. } => "Remove the variable, or change the policy with `dueday settings`.",
            Self::UnreadableQueues { .. } => "Remove the reason, and read the status again.",
            Self::Queue { .. } => "See the messages: docs/operations.md, \"Alarms\".",
        };
        step.to_owned()
    }
}

/// Returns the text about the reason `stopped` why runs stopped.
fn describe_reason(stopped: &Option<String>) -> String {
    stopped.as_ref().map(|reason| format!("; {reason}")).unwrap_or_default()
}

/// Returns the text about the time since which there was no audit.
fn describe_time_since(since: &Option<NaiveDate>) -> String {
    since.map_or_else(|| " yet".to_owned(), |date| format!(" since {date}"))
}

/// Returns the text about the day after which no day was compared.
fn describe_days_after(after: &Option<NaiveDate>) -> String {
    after.map(|date| format!(" after {date}")).unwrap_or_default()
}
