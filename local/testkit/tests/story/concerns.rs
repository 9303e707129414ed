//! Tests of the function that decides what needs a person: each fact that alone must be reported, and each that must
//! not.

use billing::{Erasure, ErasureCounts, ErasureStep};
use chrono::TimeDelta;
use days::{
    CheckSchedule, Concern, LatestAudit, LatestComparison, ProvenDay, QueueState, RunFacts, ShardProof, ShardState,
    SystemFacts, find_concerns,
};
use store::{Batch, RunCounts, RunSums};
use ulid::Ulid;

use crate::world::{billing_time, date};

/// Returns a shard in the state `walked`, in which a run stopped because of `stopped`.
fn shard(batch: Batch, walked: ShardState, stopped: Option<&str>) -> ShardProof {
    let (counts, sums) = (RunCounts::none(batch), RunSums::default());
    let stopped = stopped.map(str::to_owned);
    ShardProof {
        batch,
        shard: 0,
        walked,
        runs: 1,
        counts,
        sums,
        adds_up: true,
        stopped,
        may_be_running: true,
        has_run_without_end: false,
    }
}

/// Returns an erasure that was requested on `on` and waits for `waits_for`.
fn erasure(on: &str, waits_for: Option<&str>) -> Erasure {
    Erasure {
        account: "acme".parse().unwrap(),
        requested_at: billing_time(on),
        step: ErasureStep::OrderDesk,
        position: None,
        counts: ErasureCounts::default(),
        waits_for: waits_for.map(str::to_owned),
        version: 1,
    }
}

/// Returns a queue with `waiting` messages, which are not late.
fn queue(name: &str, waiting: u64) -> QueueState {
    QueueState {
        waiting: Some(waiting),
        in_progress: Some(0),
        keeps_failed_messages: Some(false),
        ..QueueState::unknown(name.to_owned())
    }
}

/// Returns the facts of a system in which nothing needs a person: March 9 and 10 are done.
fn quiet_facts() -> SystemFacts {
    let day = |batch, on: &str| ProvenDay {
        batch,
        date: date(on),
        shards: vec![shard(batch, ShardState::Complete, None); 2],
        unreadable: Vec::new(),
    };
    let audit = LatestAudit {
        id: Ulid::from_parts(1, 0),
        started_at: billing_time("2026-03-10"),
        ended_at: Some(billing_time("2026-03-10")),
        violations: 0,
        is_scheduled: true,
        has_gateway_lists: false,
        has_orders: true,
    };
    let compared = LatestComparison {
        date: date("2026-03-09"),
        ended_at: Some(billing_time("2026-03-10")),
        differences: 0,
        has_missing_lists: false,
    };
    SystemFacts {
        now: billing_time("2026-03-10") + TimeDelta::hours(6),
        runs: RunFacts {
            today: date("2026-03-10"),
            days: vec![
                day(Batch::Reminders, "2026-03-09"),
                day(Batch::Payments, "2026-03-09"),
                day(Batch::Reminders, "2026-03-10"),
                day(Batch::Payments, "2026-03-10"),
            ],
            rejected_payments: 0,
            open_findings: 0,
            unreadable_findings: Vec::new(),
            postponed_payments: 0,
        },
        created_on: date("2026-01-01"),
        charging: true,
        latest_run_at: Some(billing_time("2026-03-10")),
        copy_noticed_at: None,
        late_payments_since: None,
        disabled_endpoints: Vec::new(),
        unreadable_endpoints: Vec::new(),
        erasures: Vec::new(),
        unreadable_records: Vec::new(),
        audits: vec![audit],
        comparisons: vec![compared],
        policy_differences: Vec::new(),
        queues: Ok(vec![queue("Deliveries", 5)]),
        check_schedule: CheckSchedule::Elsewhere,
    }
}

/// Sets the state of the second shard of the day with the number `day`.
fn set_shard(facts: &mut SystemFacts, day: usize, walked: ShardState, stopped: Option<&str>) {
    let batch = facts.runs.days[day].batch;
    facts.runs.days[day].shards[1] = shard(batch, walked, stopped);
}

/// The numbers of the days in [`quiet_facts`].
const REMINDERS_YESTERDAY: usize = 0;
const PAYMENTS_YESTERDAY: usize = 1;
const REMINDERS_TODAY: usize = 2;
const PAYMENTS_TODAY: usize = 3;

#[test]
fn every_fact_that_needs_a_person_is_reported_and_no_other_fact() {
    use ShardState::{Complete, Expired, Gap, LeftBehind, Missing, Open, Rejected, Running, Stopped, Unfinished};
    type Change = fn(&mut SystemFacts);
    // The columns are: the fact, the change of the quiet facts, and a part of the reported concern (empty if nothing
    // needs a person).
    let cases: &[(&str, Change, &str)] = &[
        ("nothing", |_| {}, ""),
        ("charging is off", |f| f.charging = false, "charging is switched off"),
        ("the clock is behind", |f| f.latest_run_at = Some(f.now + TimeDelta::minutes(61)), "so no run starts"),
        ("the clock is an hour behind", |f| f.latest_run_at = Some(f.now + TimeDelta::hours(1)), ""),
        ("no run yet", |f| f.latest_run_at = None, ""),
        ("a copied table", |f| f.copy_noticed_at = Some(f.now), "a copy or a restored backup"),
        (
            "a copied table whose charges are off",
            |f| {
                f.copy_noticed_at = Some(f.now);
                f.charging = false;
            },
            "a copy or a restored backup",
        ),
        // Yesterday.
        (
            "no reminders",
            |f| set_shard(f, REMINDERS_YESTERDAY, Missing, None),
            "the reminders of 2026-03-09 are not done",
        ),
        ("no payments", |f| set_shard(f, PAYMENTS_YESTERDAY, Missing, None), "the payments of 2026-03-09 are not done"),
        ("a killed run", |f| set_shard(f, PAYMENTS_YESTERDAY, Open, None), "are not done: 1 of 2 shards are complete"),
        ("a gap", |f| set_shard(f, PAYMENTS_YESTERDAY, Gap, None), "are not done"),
        ("an unfinished shard", |f| set_shard(f, PAYMENTS_YESTERDAY, Unfinished, None), "are not done"),
        ("rows left behind", |f| set_shard(f, PAYMENTS_YESTERDAY, LeftBehind, None), "are not done"),
        ("a rejected charge that is settled", |f| set_shard(f, PAYMENTS_YESTERDAY, Rejected, None), ""),
        ("a rejected charge", |f| f.runs.rejected_payments = 1, "payments whose charge the gateway has rejected: 1"),
        ("a stopped run", |f| set_shard(f, PAYMENTS_YESTERDAY, Stopped, Some("401")), "are complete; 401"),
        ("a second run is running", |f| set_shard(f, PAYMENTS_YESTERDAY, Running, None), ""),
        ("expired records", |f| set_shard(f, PAYMENTS_YESTERDAY, Expired, None), "its run records have expired"),
        (
            "counts that do not add up",
            |f| f.runs.days[PAYMENTS_YESTERDAY].shards[0].adds_up = false,
            "the payments of 2026-03-09 are not done: 1 of 2",
        ),
        (
            "a day without shards",
            |f| f.runs.days[PAYMENTS_YESTERDAY].shards.clear(),
            "the payments of 2026-03-09 are not done: 0 of 0",
        ),
        // Today.
        ("today has no run yet", |f| set_shard(f, PAYMENTS_TODAY, Missing, None), ""),
        ("today's run is running", |f| set_shard(f, PAYMENTS_TODAY, Open, None), ""),
        (
            "today's run was killed",
            |f| {
                set_shard(f, PAYMENTS_TODAY, Open, None);
                f.runs.days[PAYMENTS_TODAY].shards[1].may_be_running = false;
            },
            "the payments of 2026-03-10, today, were cut off in 1 of 2 shards, and no run continues",
        ),
        (
            "counts of today that do not add up",
            |f| f.runs.days[PAYMENTS_TODAY].shards[0].adds_up = false,
            "today, have counts that do not add up in 1 of 2 shards",
        ),
        ("today's run continues", |f| set_shard(f, PAYMENTS_TODAY, Unfinished, None), ""),
        (
            "a ceiling would be exceeded",
            |f| set_shard(f, PAYMENTS_TODAY, Stopped, Some("the run was not started: max-charges")),
            "the payments of 2026-03-10, today, have stopped in 1 of 2 shards; the run was not started: max-charges",
        ),
        (
            "another gateway account",
            |f| set_shard(f, PAYMENTS_TODAY, Stopped, Some("another gateway account")),
            "today, have stopped in 1 of 2 shards; another gateway account",
        ),
        ("401 of the gateway", |f| set_shard(f, PAYMENTS_TODAY, Stopped, Some("401")), "today, have stopped"),
        (
            "the mail server is down",
            |f| set_shard(f, REMINDERS_TODAY, Stopped, Some("the mail server")),
            "the reminders of 2026-03-10, today, have stopped in 1 of 2 shards; the mail server",
        ),
        (
            "mails fail",
            |f| set_shard(f, REMINDERS_TODAY, LeftBehind, None),
            "today, have left rows unfinished in 1 of 2",
        ),
        ("a rejected charge today that is settled", |f| set_shard(f, PAYMENTS_TODAY, Rejected, None), ""),
        ("complete after a stop", |f| set_shard(f, PAYMENTS_TODAY, Complete, Some("401")), ""),
        (
            "an unreadable run record",
            |f| f.runs.days[PAYMENTS_TODAY].unreadable.push("the item X".to_owned()),
            "run records of the payments of 2026-03-10 cannot be read: 1; the item X",
        ),
        // Payments.
        ("a late payment", |f| f.late_payments_since = Some(date("2026-03-02")), "has been due since 2026-03-02"),
        ("a finding", |f| f.runs.open_findings = 2, "payments without a receipt: 2"),
        (
            "an unreadable finding",
            |f| f.runs.unreadable_findings.push("F".to_owned()),
            "findings (payments without a receipt) cannot be read: 1; F",
        ),
        ("a postponed payment", |f| f.runs.postponed_payments = 1, "a clock that was ahead"),
        // Endpoints.
        (
            "a disabled endpoint",
            |f| f.disabled_endpoints.push((Ulid::nil(), "410 Gone".to_owned())),
            "the webhook endpoint 00000000000000000000000000 is disabled: 410 Gone",
        ),
        (
            "an unreadable endpoint",
            |f| f.unreadable_endpoints.push("E".to_owned()),
            "webhook endpoints cannot be read: 1; E",
        ),
        // Erasures.
        (
            "an erasure that waits for two weeks",
            |f| f.erasures.push(erasure("2026-02-24", Some("1 order is open"))),
            "the erasure of the account acme, requested on 2026-02-24, still waits: 1 order is open",
        ),
        ("an erasure that waits for days", |f| f.erasures.push(erasure("2026-02-25", Some("1 order is open"))), ""),
        ("an old erasure in progress", |f| f.erasures.push(erasure("2026-01-25", None)), ""),
        (
            "an unreadable record",
            |f| f.unreadable_records.push("A".to_owned()),
            "records of erasures, audits or comparisons cannot be read: 1; A",
        ),
        // Checks.
        ("violations", |f| f.audits[0].violations = 3, "found: 3"),
        ("no audit ever", |f| f.audits.clear(), "no audit was made yet"),
        (
            "no audit for days",
            |f| f.audits[0].ended_at = Some(billing_time("2026-03-06")),
            "no audit was made since 2026-03-06",
        ),
        ("an audit three days ago", |f| f.audits[0].ended_at = Some(billing_time("2026-03-07")), ""),
        (
            "an audit that does not end",
            |f| {
                f.audits[0].ended_at = None;
                f.audits[0].started_at = billing_time("2026-02-01");
            },
            "has not ended since 2026-02-01",
        ),
        ("an audit of many nights", |f| f.audits[0].ended_at = None, ""),
        (
            "a killed audit of a person after an old audit",
            |f| {
                f.audits[0].ended_at = Some(billing_time("2026-03-06"));
                f.audits.insert(0, LatestAudit { ended_at: None, is_scheduled: false, ..f.audits[0].clone() });
            },
            "no audit was made since 2026-03-06",
        ),
        (
            "violations of an audit that a later audit of fewer items does not repeat",
            |f| {
                f.audits[0].violations = 2;
                f.audits.insert(0, LatestAudit { violations: 0, has_orders: false, ..f.audits[0].clone() });
            },
            "found: 2",
        ),
        (
            "violations of an audit that a later audit of the same items does not find",
            |f| {
                f.audits[0].violations = 2;
                f.audits.insert(0, LatestAudit { violations: 0, ..f.audits[0].clone() });
            },
            "",
        ),
        (
            "violations of an audit with the lists of the gateway",
            |f| {
                f.audits[0].violations = 2;
                f.audits[0].has_gateway_lists = true;
                f.audits.insert(0, LatestAudit { violations: 0, has_gateway_lists: false, ..f.audits[0].clone() });
            },
            "found: 2",
        ),
        (
            "a new table without audit and comparison",
            |f| {
                f.created_on = date("2026-03-07");
                f.audits.clear();
                f.comparisons.clear();
            },
            "",
        ),
        (
            "differences",
            |f| f.comparisons[0].differences = 1,
            "differences between the table and the gateway on 2026-03-09: 1",
        ),
        ("no comparison that has ended", |f| f.comparisons[0].ended_at = None, "no day was compared with the gateway"),
        (
            "a comparison in the future",
            |f| f.comparisons[0].date = date("2036-03-09"),
            "no day was compared with the gateway",
        ),
        ("an audit in the future", |f| f.audits[0].started_at = billing_time("2036-03-10"), "no audit was made yet"),
        ("a gateway without lists", |f| f.comparisons[0].has_missing_lists = true, ""),
        ("no comparison ever", |f| f.comparisons.clear(), "no day was compared with the gateway"),
        (
            "a server that makes the missing audit and comparison now",
            |f| {
                f.audits.clear();
                f.comparisons.clear();
                f.check_schedule = CheckSchedule::InThisProcess;
            },
            "",
        ),
        (
            "a deployment that makes no audits and comparisons",
            |f| {
                f.comparisons.clear();
                f.audits[0].ended_at = None;
                f.audits[0].started_at = billing_time("2026-02-01");
                f.check_schedule = CheckSchedule::NotDeployed;
            },
            "",
        ),
        // Queues.
        (
            "a message that could not be processed",
            |f| f.queues = Ok(vec![QueueState { keeps_failed_messages: Some(true), ..queue("NoticesFailed", 1) }]),
            "messages in the queue NoticesFailed that could not be processed: 1",
        ),
        (
            "a late message",
            |f| f.queues = Ok(vec![QueueState { late_since: Some(f.now), ..queue("Notices", 2) }]),
            "messages in the queue Notices: 2; the oldest has waited since 2026-03-10",
        ),
        (
            "a queue that could not be read",
            |f| {
                let unknown = QueueState::unknown("Notices".to_owned());
                f.queues = Ok(vec![QueueState { read_error: Some("403".to_owned()), ..unknown }]);
            },
            "the queue Notices could not be read: 403",
        ),
        (
            "a stack that could not be read",
            |f| f.queues = Err("no AWS region".to_owned()),
            "the queues could not be read: no AWS region",
        ),
        (
            "no comparison for days",
            |f| f.comparisons[0].date = date("2026-03-06"),
            "no day after 2026-03-06 was compared",
        ),
    ];
    for &(fact, change, expected) in cases {
        let mut facts = quiet_facts();
        change(&mut facts);
        let concerns = find_concerns(&facts);
        match expected {
            "" => assert_eq!(concerns, [], "{fact}"),
            expected => {
                let [concern] = concerns.as_slice() else { panic!("{fact}: {concerns:?}") };
                assert!(concern.to_string().contains(expected), "{fact}: {concern}");
                assert!(concern.next_step().ends_with('.'), "{fact}: {concern:?}");
            }
        }
    }
}

#[test]
fn all_concerns_are_reported_together_the_switched_off_charges_first() {
    let mut facts = quiet_facts();
    facts.charging = false;
    facts.runs.open_findings = 1;
    facts.policy_differences.push("the variable X differs".to_owned());
    let texts: Vec<String> = find_concerns(&facts).iter().map(Concern::to_string).collect();
    let expected =
        ["charging is switched off, so runs charge nothing", "payments without a receipt: 1", "the variable X differs"];
    assert_eq!(texts, expected);
}
