//! The concerns: everything that needs a person. One function finds them in the facts of the system, and the command,
//! the API and the exit codes use this function, so that no two of them contradict each other.

use chrono::{DateTime, Days, NaiveDate, TimeDelta, Utc};
use ulid::Ulid;

use billing::AccountId;

use super::postponed_payments::describe_postponed_payments;
use super::system_facts::{LatestAudit, LatestComparison, ProvenDay, SystemFacts};
use super::{DayState, ShardProof, ShardState};
use store::Batch;

/// The largest time by which a clock may be behind the start of the latest run. If the clock is further behind, no run
/// begins.
pub const MAX_BEHIND_LATEST_RUN: TimeDelta = TimeDelta::hours(1);

/// The time in which an audit must check the whole table.
pub const MAX_AUDIT_DURATION: TimeDelta = TimeDelta::days(31);

/// The maximum number of days from the latest day that was compared with the gateway to today. A day is compared on the
/// following day, and the comparison may take until the end of the following day. One more day is allowed, because
/// compared days are days in UTC, and today is a date in the billing time zone.
const MAX_DAYS_WITHOUT_COMPARISON: Days = Days::new(3);

/// The maximum number of days from the start of the latest audit that has ended to today. An audit begins every night.
const MAX_DAYS_WITHOUT_AUDIT: Days = Days::new(3);

/// A cause that needs a person, with the figures of its description.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Concern {
    #[error("charging is switched off, so runs charge nothing")]
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
    #[error("payments without a receipt that cannot be read: {count}; {first}")]
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
}

impl Concern {
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
            Self::PostponedPayments { .. } => "Repair them with `dueday audit --fix`.",
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

impl ProvenDay {
    /// Returns what needs a person after the day has ended, or while it lasts if the day is `today`.
    pub fn concerns(&self, today: NaiveDate) -> Vec<Concern> {
        let concern = if self.date < today { self.concern_of_ended_day() } else { self.concern_of_today() };
        concern.into_iter().chain(self.concern_of_unreadable_runs()).collect()
    }

    /// Returns the concern if the day has ended and is not done. Rejected charges are a concern of their own, because no
    /// other run completes their day.
    fn concern_of_ended_day(&self) -> Option<Concern> {
        let Self { batch, date, shards, .. } = self;
        let is_left = |shard: &&ShardProof| !shard.is_complete() && shard.walked != ShardState::Rejected;
        let stopped = match self.state() {
            DayState::Done | DayState::Running => return None,
            DayState::Expired => Some("its run records have expired".to_owned()),
            DayState::NotDone if !shards.is_empty() && !shards.iter().any(|shard| is_left(&shard)) => return None,
            DayState::NotDone => self.reason_of(is_left),
        };
        let complete_shards = self.complete_shards();
        Some(Concern::DayNotDone { batch: *batch, date: *date, complete_shards, shards: shards.len(), stopped })
    }

    /// Returns the concern if runs of today have stopped, were cut off or left rows unfinished. A shard that no run has
    /// reached yet is no concern, because runs follow.
    fn concern_of_today(&self) -> Option<Concern> {
        let Self { batch, date, .. } = self;
        let all_shards = self.shards.len();
        let cut_off = self.shards.iter().filter(|shard| shard.is_cut_off()).count();
        if cut_off > 0 {
            return Some(Concern::CutOffToday { batch: *batch, date: *date, shards: cut_off, all_shards });
        }
        type Selection = fn(&ShardProof) -> bool;
        let kinds: [(Selection, &'static str); 3] = [
            (|shard| shard.walked == ShardState::Stopped, "have stopped"),
            (|shard| shard.walked == ShardState::LeftBehind, "have left rows unfinished"),
            (|shard| !shard.adds_up, "have counts that do not add up"),
        ];
        kinds.into_iter().find_map(|(is_of_kind, what)| {
            let shards = self.shards.iter().filter(|shard| is_of_kind(shard)).count();
            let stopped = self.reason_of(|shard| is_of_kind(shard));
            (shards > 0).then_some(Concern::TodayStopped {
                batch: *batch,
                date: *date,
                what,
                shards,
                all_shards,
                stopped,
            })
        })
    }

    /// Returns the concern about the run records that cannot be read.
    pub fn concern_of_unreadable_runs(&self) -> Option<Concern> {
        let first = self.unreadable.first()?.clone();
        Some(Concern::UnreadableRuns { batch: self.batch, date: self.date, count: self.unreadable.len(), first })
    }

    /// Returns the reason why a run stopped in the first of the shards that `is_wanted` selects.
    fn reason_of(&self, is_wanted: impl Fn(&&ShardProof) -> bool) -> Option<String> {
        self.shards.iter().filter(is_wanted).find_map(|shard| shard.stopped.clone())
    }
}

/// Returns everything that needs a person, the most urgent first. This function is the only one that decides.
pub fn find_concerns(facts: &SystemFacts) -> Vec<Concern> {
    let mut concerns = Vec::new();
    // A copied table is not charged until a person has confirmed it, whether charging is on or off.
    if !facts.charging && facts.copy_noticed_at.is_none() {
        concerns.push(Concern::ChargingOff);
    }
    concerns.extend(
        facts
            .latest_run_at
            .filter(|latest| facts.now + MAX_BEHIND_LATEST_RUN < *latest)
            .map(|latest| Concern::ClockBehind { now: facts.now, latest }),
    );
    concerns.extend(facts.copy_noticed_at.map(|noticed_at| Concern::CopiedTable { noticed_at }));
    concerns.extend(facts.days.iter().flat_map(|day| day.concerns(facts.today)));
    concerns.extend(facts.late_payments_since.map(|since| Concern::LatePayments { since }));
    if facts.rejected_payments > 0 {
        concerns.push(Concern::RejectedPayments { count: facts.rejected_payments });
    }
    concerns.extend(concerns_about_payments(facts.open_findings, &facts.unreadable_findings, facts.postponed_payments));
    concerns.extend(
        facts
            .disabled_endpoints
            .iter()
            .map(|(id, reason)| Concern::DisabledEndpoint { id: *id, reason: reason.clone() }),
    );
    concerns
        .extend(first_of(&facts.unreadable_endpoints, |count, first| Concern::UnreadableEndpoints { count, first }));
    concerns.extend(concerns_about_erasures(facts));
    concerns.extend(first_of(&facts.unreadable_records, |count, first| Concern::UnreadableRecords { count, first }));
    concerns.extend(concerns_about_audits(facts));
    concerns.extend(concerns_about_comparisons(facts));
    concerns
        .extend(facts.policy_differences.iter().map(|text| Concern::PolicyDifference { description: text.clone() }));
    concerns
}

/// Returns the concerns about findings and postponed payments, which prevent that a day counts as complete.
/// `unreadable_findings` are the descriptions of the findings that cannot be read.
pub fn concerns_about_payments(
    open_findings: usize,
    unreadable_findings: &[String],
    postponed_payments: u64,
) -> Vec<Concern> {
    let findings = (open_findings > 0).then_some(Concern::OpenFindings { count: open_findings });
    let unreadable = first_of(unreadable_findings, |count, first| Concern::UnreadableFindings { count, first });
    let postponed = (postponed_payments > 0).then_some(Concern::PostponedPayments { count: postponed_payments });
    findings.into_iter().chain(unreadable).chain(postponed).collect()
}

/// Returns the concern about items that cannot be read, which `concern` creates from their number and the first of their
/// `descriptions`; `None` if there are no descriptions.
fn first_of(descriptions: &[String], concern: impl Fn(usize, String) -> Concern) -> Option<Concern> {
    descriptions.first().map(|first| concern(descriptions.len(), first.clone()))
}

/// Returns the concerns about erasures that still wait long after their request.
fn concerns_about_erasures(facts: &SystemFacts) -> impl Iterator<Item = Concern> + '_ {
    facts.erasures.iter().filter(|erasure| erasure.is_overdue(facts.now)).filter_map(|erasure| {
        let (account, since) = (erasure.account.clone(), erasure.requested_at.date_naive());
        Some(Concern::LateErasure { account, since, waits_for: erasure.waits_for.clone()? })
    })
}

/// Returns the concerns about violations, and about audits that are missing or late.
fn concerns_about_audits(facts: &SystemFacts) -> Vec<Concern> {
    // An audit in the future was made with a clock that was ahead.
    let audits: Vec<&LatestAudit> = facts.audits.iter().filter(|audit| audit.started_at <= facts.now).collect();
    // The violations of an audit count until a later audit of the same items has ended. A running audit has not checked
    // all items yet.
    let is_repeated = |n: usize| audits[..n].iter().any(|newer| newer.ended_at.is_some() && newer.covers(audits[n]));
    let counted = audits.iter().enumerate().filter(|(n, audit)| audit.violations > 0 && !is_repeated(*n));
    let mut concerns: Vec<_> =
        counted.map(|(_, audit)| Concern::Violations { audit: audit.id, count: audit.violations }).collect();
    // The schedule continues its audit for many nights. An audit of a person that was killed is not continued.
    let running = audits.iter().find(|audit| audit.is_scheduled).filter(|audit| audit.ended_at.is_none());
    let latest = audits.iter().filter_map(|audit| audit.ended_at).max().map(|at| at.date_naive());
    let is_late = latest.unwrap_or(facts.created_on) + MAX_DAYS_WITHOUT_AUDIT < facts.today;
    match running {
        Some(audit) if audit.started_at + MAX_AUDIT_DURATION < facts.now => {
            concerns.push(Concern::LateAudit { audit: audit.id, since: audit.started_at.date_naive() });
        }
        None if is_late => concerns.push(Concern::NoAudit { since: latest }),
        _ => {}
    }
    concerns
}

/// Returns the concerns about differences from the gateway, and about days that were not compared.
fn concerns_about_comparisons(facts: &SystemFacts) -> Vec<Concern> {
    let different = facts.comparisons.iter().filter(|day| day.differences > 0);
    let mut concerns: Vec<_> =
        different.map(|day| Concern::Differences { date: day.date, count: day.differences }).collect();
    // A day in the future was compared with a clock that was ahead.
    let is_compared = |day: &&LatestComparison| day.ended_at.is_some() && day.date <= facts.today;
    let latest = facts.comparisons.iter().find(is_compared).map(|compared| compared.date);
    if latest.unwrap_or(facts.created_on) + MAX_DAYS_WITHOUT_COMPARISON < facts.today {
        concerns.push(Concern::NoComparison { after: latest });
    }
    concerns
}
