//! The functions that find the concerns in the facts of the system.

use chrono::{Days, NaiveDate, TimeDelta};

use super::concern::Concern;
use super::proven_day::ProvenDay;
use super::queue_state::QueueState;
use super::run_facts::RunFacts;
use super::system_facts::{CheckSchedule, LatestAudit, LatestComparison, SystemFacts};
use super::{DayState, ShardProof, ShardState};

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

impl ProvenDay {
    /// Returns what needs a person after the day has ended, or while it lasts if the day is `today`.
    fn concerns(&self, today: NaiveDate) -> Vec<Concern> {
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
            DayState::NotDone => self.first_stop_reason(is_left),
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
        type ShardFilter = fn(&ShardProof) -> bool;
        let kinds: [(ShardFilter, &'static str); 3] = [
            (|shard| shard.walked == ShardState::Stopped, "have stopped"),
            (|shard| shard.walked == ShardState::LeftBehind, "have left rows unfinished"),
            (|shard| !shard.adds_up, "have counts that do not add up"),
        ];
        kinds.into_iter().find_map(|(is_of_kind, what)| {
            let shards = self.shards.iter().filter(|shard| is_of_kind(shard)).count();
            let stopped = self.first_stop_reason(|shard| is_of_kind(shard));
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
    fn concern_of_unreadable_runs(&self) -> Option<Concern> {
        let first = self.unreadable.first()?.clone();
        Some(Concern::UnreadableRuns { batch: self.batch, date: self.date, count: self.unreadable.len(), first })
    }

    /// Returns the first reason why a run stopped early or deferred rows, among the shards that `is_wanted` selects; `None`
    /// if there is no such run.
    fn first_stop_reason(&self, is_wanted: impl Fn(&&ShardProof) -> bool) -> Option<String> {
        self.shards.iter().filter(is_wanted).find_map(|shard| shard.stopped.clone())
    }
}

/// Returns everything that needs a person, the most urgent first. The command, the API, the check of the day and the
/// exit codes use this function, so no two of them contradict each other.
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
    concerns.extend(find_run_concerns(&facts.runs));
    concerns.extend(facts.late_payments_since.map(|since| Concern::LatePayments { since }));
    concerns.extend(
        facts
            .disabled_endpoints
            .iter()
            .map(|(id, reason)| Concern::DisabledEndpoint { id: *id, reason: reason.clone() }),
    );
    concerns.extend(concern_of_unreadable_items(&facts.unreadable_endpoints, |count, first| {
        Concern::UnreadableEndpoints { count, first }
    }));
    concerns.extend(concerns_about_erasures(facts));
    concerns.extend(concern_of_unreadable_items(&facts.unreadable_records, |count, first| {
        Concern::UnreadableRecords { count, first }
    }));
    concerns.extend(concerns_about_audits(facts));
    concerns.extend(concerns_about_comparisons(facts));
    concerns
        .extend(facts.policy_differences.iter().map(|text| Concern::PolicyDifference { description: text.clone() }));
    match &facts.queues {
        Ok(queues) => concerns
            .extend(queues.iter().filter_map(QueueState::problem).map(|description| Concern::Queue { description })),
        Err(reason) => concerns.push(Concern::UnreadableQueues { reason: reason.clone() }),
    }
    concerns
}

/// Returns everything that needs a person because of the runs of some days, the most urgent first. `runs` and `report` show
/// these concerns for the days that they show.
pub fn find_run_concerns(facts: &RunFacts) -> Vec<Concern> {
    let RunFacts { today, days, rejected_payments, open_findings, unreadable_findings, postponed_payments } = facts;
    let days = days.iter().flat_map(|day| day.concerns(*today));
    let rejected = (*rejected_payments > 0).then_some(Concern::RejectedPayments { count: *rejected_payments });
    let findings = (*open_findings > 0).then_some(Concern::OpenFindings { count: *open_findings });
    let unreadable =
        concern_of_unreadable_items(unreadable_findings, |count, first| Concern::UnreadableFindings { count, first });
    let postponed = (*postponed_payments > 0).then_some(Concern::PostponedPayments { count: *postponed_payments });
    days.chain(rejected).chain(findings).chain(unreadable).chain(postponed).collect()
}

/// Returns the concern about items that cannot be read, which `concern` creates from their number and the first of their
/// `descriptions`; `None` if there are no descriptions.
fn concern_of_unreadable_items(descriptions: &[String], concern: impl Fn(usize, String) -> Concern) -> Option<Concern> {
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
    let is_late = latest.unwrap_or(facts.created_on) + MAX_DAYS_WITHOUT_AUDIT < facts.runs.today;
    match running {
        Some(_) if facts.check_schedule == CheckSchedule::NotDeployed => {}
        Some(audit) if audit.started_at + MAX_AUDIT_DURATION < facts.now => {
            concerns.push(Concern::LateAudit { audit: audit.id, since: audit.started_at.date_naive() });
        }
        None if is_late && facts.check_schedule == CheckSchedule::Elsewhere => {
            concerns.push(Concern::NoAudit { since: latest })
        }
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
    let is_compared = |day: &&LatestComparison| day.ended_at.is_some() && day.date <= facts.runs.today;
    let latest = facts.comparisons.iter().find(is_compared).map(|compared| compared.date);
    let is_late = latest.unwrap_or(facts.created_on) + MAX_DAYS_WITHOUT_COMPARISON < facts.runs.today;
    if is_late && facts.check_schedule == CheckSchedule::Elsewhere {
        concerns.push(Concern::NoComparison { after: latest });
    }
    concerns
}
