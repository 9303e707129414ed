//! Tests of the proof that the runs of a day processed all due rows. The proof is computed from the run records.

use audit::unfinished_runs;
use billing::{ClaimToken, Currency, Subscription};
use chrono::{DateTime, TimeDelta, Utc};
use clock::Clock as _;
use days::{DayReader, DayRecords, DayState, ShardProof, ShardState};
use store::{Batch, Claim, DueIndexPosition, Lane, Paging, PaymentCounts, RunCounts, RunEnd, RunRecord, RunSums};
use sweep::BatchRequest;
use ulid::Ulid;

use crate::world::{SHARDS, World, billing_time, card, date, key, new_subscription, numbered_subscription};

/// Returns the record of a run of shard 0 that began at the position with the number `from` and ended at the position
/// with the number `next`. If `from` is 0, the run began at the start of the shard. If `next` is 0, the run reached the
/// end of the shard. `id_number` determines the id of the run.
fn run_record(id_number: u64, from: u8, next: u8) -> RunRecord {
    let position = |number: u8| DueIndexPosition {
        lane: Lane::Due,
        shard: 0,
        on: "2026-03-07".into(),
        pk: format!("ACC#{number}"),
        sk: "SUB#".into(),
    };
    let end = RunEnd {
        ended_at: billing_time("2026-03-07"),
        counts: PaymentCounts { due: 2, paid: 2, ..PaymentCounts::default() }.into(),
        sums: RunSums { paid: "EUR=25.98".parse().unwrap(), ..RunSums::default() },
        next: (next > 0).then(|| position(next)),
        stopped: None,
    };
    RunRecord {
        batch: Batch::Payments,
        on: date("2026-03-07"),
        shard: 0,
        id: Ulid::from_parts(id_number, 0),
        started_at: billing_time("2026-03-07"),
        deadline: Some(billing_time("2026-03-07") + TimeDelta::minutes(15)),
        shards: Some(1),
        from: (from > 0).then(|| position(from)),
        end: Some(end),
    }
}

/// Returns the records of the day March 7, with the run records `records`. The proof is computed on the next morning.
fn day_with_records(records: Vec<RunRecord>) -> DayRecords {
    DayRecords::new(Batch::Payments, date("2026-03-07"), 1, billing_time("2026-03-08")).with_records(records)
}

/// Returns the state of shard 0 that follows from `records`.
fn shard_state(records: &[RunRecord]) -> ShardState {
    day_with_records(records.to_vec()).prove_shard(0).walked
}

/// Returns `record` with a start `minutes` after the billing time of its date. An ended run took one minute.
fn started_after(minutes: i64, record: RunRecord) -> RunRecord {
    let at = billing_time(&record.on.to_string()) + TimeDelta::minutes(minutes);
    let end = record.end.map(|end| RunEnd { ended_at: at + TimeDelta::minutes(1), ..end });
    let id = Ulid::from_parts(u64::try_from(at.timestamp_millis()).unwrap(), record.id.random());
    RunRecord { id, started_at: at, deadline: Some(at + TimeDelta::minutes(15)), end, ..record }
}

/// Returns the record of a run with two rows: one row was paid, and `set_other` sets the count for the other row.
fn run_with_unpaid_row(id_number: u64, from: u8, next: u8, set_other: fn(&mut PaymentCounts)) -> RunRecord {
    let mut record = run_record(id_number, from, next);
    let mut counts = PaymentCounts { due: 2, paid: 1, ..PaymentCounts::default() };
    set_other(&mut counts);
    record.end.as_mut().unwrap().counts = counts.into();
    record
}

/// Returns the record of a run that reached the end of the shard with charging switched off.
fn run_with_charging_switched_off(id_number: u64) -> RunRecord {
    let mut stopped = run_record(id_number, 0, 0);
    stopped.end.as_mut().unwrap().stopped = Some("charging is switched off".to_owned());
    stopped
}

#[test]
fn shard_is_complete_only_with_a_chain_of_runs_from_its_start_to_its_end() {
    let open = RunRecord { end: None, ..run_record(9, 0, 0) };
    let (failed, in_doubt) = (|c: &mut PaymentCounts| c.failed = 1, |c: &mut PaymentCounts| c.in_doubt = 1);
    let (rejected, processing) = (|c: &mut PaymentCounts| c.rejected = 1, |c: &mut PaymentCounts| c.processing = 1);
    for (case, records, expected) in [
        ("no run", vec![], ShardState::Missing),
        ("one run to the end", vec![run_record(1, 0, 0)], ShardState::Complete),
        (
            "three runs, one after the other",
            vec![run_record(3, 2, 0), run_record(1, 0, 1), run_record(2, 1, 2)],
            ShardState::Complete,
        ),
        ("two runs to the end", vec![run_record(1, 0, 0), run_record(2, 0, 0)], ShardState::Complete),
        (
            "out of time, and a new run from the start",
            vec![run_record(1, 0, 1), run_record(2, 0, 0)],
            ShardState::Complete,
        ),
        ("out of time", vec![run_record(1, 0, 1)], ShardState::Unfinished),
        ("out of time twice", vec![run_record(1, 0, 1), run_record(2, 1, 2)], ShardState::Unfinished),
        (
            "continued at a position that no run reached",
            vec![run_record(1, 0, 1), run_record(2, 2, 0)],
            ShardState::Gap,
        ),
        ("the first run record is missing", vec![run_record(2, 1, 0)], ShardState::Gap),
        ("a run without an end: running or killed", vec![open.clone()], ShardState::Open),
        ("killed, and another run to the end", vec![open, run_record(10, 0, 0)], ShardState::Complete),
        ("a row failed", vec![run_with_unpaid_row(1, 0, 0, failed)], ShardState::LeftBehind),
        ("a row is in doubt", vec![run_with_unpaid_row(1, 0, 0, in_doubt)], ShardState::LeftBehind),
        (
            "a row failed, and another run to the end",
            vec![run_with_unpaid_row(1, 0, 0, failed), run_record(2, 0, 0)],
            ShardState::Complete,
        ),
        (
            "a row failed in the second half, which was repeated",
            vec![run_record(1, 0, 1), run_with_unpaid_row(2, 1, 0, failed), run_record(3, 1, 0)],
            ShardState::Complete,
        ),
        (
            "a row failed in the second half",
            vec![run_record(1, 0, 1), run_with_unpaid_row(2, 1, 0, failed)],
            ShardState::LeftBehind,
        ),
        ("the bank is processing a debit", vec![run_with_unpaid_row(1, 0, 0, processing)], ShardState::Complete),
        (
            "a row was rejected, and another run to the end",
            vec![run_with_unpaid_row(1, 0, 0, rejected), run_record(2, 0, 0)],
            ShardState::Rejected,
        ),
        ("stopped", vec![run_with_charging_switched_off(1)], ShardState::Stopped),
        (
            "stopped, and another run to the end",
            vec![run_with_charging_switched_off(1), run_record(2, 0, 0)],
            ShardState::Complete,
        ),
    ] {
        assert_eq!(shard_state(&records), expected, "{case}");
    }
}

#[test]
fn counts_that_do_not_add_up_matter_until_a_later_run_walks_the_whole_shard() {
    let with_wrong_counts = |no: u64| {
        let mut run = run_record(no, 0, 0);
        run.end.as_mut().unwrap().counts = PaymentCounts { due: 3, paid: 2, ..PaymentCounts::default() }.into();
        run
    };
    // The columns are: the records, and whether the shard is complete.
    for (case, records, expected) in [
        ("no later run", vec![with_wrong_counts(1)], false),
        ("an earlier run", vec![run_record(1, 0, 0), with_wrong_counts(10)], false),
        ("a later run", vec![with_wrong_counts(1), run_record(2, 0, 0)], true),
        ("a later run of a part", vec![with_wrong_counts(1), run_record(2, 1, 0)], false),
        ("two later runs", vec![with_wrong_counts(1), run_record(2, 0, 1), run_record(3, 1, 0)], true),
        ("a later run with wrong counts", vec![with_wrong_counts(1), with_wrong_counts(2)], false),
    ] {
        let proof = &day_with_records(records).prove_shards()[0];
        assert_eq!(proof.walked, ShardState::Complete, "{case}");
        assert_eq!((proof.adds_up, proof.is_complete()), (expected, expected), "{case}");
    }
}

#[tokio::test]
async fn many_short_runs_complete_a_day_and_a_killed_run_makes_it_incomplete() {
    let world = World::new().await;
    for day in 1..=7 {
        world.store(&new_subscription(day, "2026-02-28")).await;
    }
    let shards = world.table.get_settings().await.unwrap().unwrap().shards;
    let proof = async |day: &str| -> Vec<ShardProof> {
        let mut reader = DayReader::new(&world.table, Batch::Payments, shards, world.clock.now());
        reader.read(date(day)).await.unwrap().prove_shards()
    };
    assert!(proof("2026-03-07").await.iter().all(|shard| shard.walked == ShardState::Missing));
    world.clock.set(billing_time("2026-03-07"));
    let (mut next, mut runs) = (None, 0);
    loop {
        // The first run has time for at most one list page, which has three rows.
        let request = BatchRequest { next, ..BatchRequest::for_date(date("2026-03-07")) };
        let deadline = billing_time("2026-03-07") + TimeDelta::seconds(if runs == 0 { 1 } else { 3_600 });
        let report = world.payments.run(&request, deadline).await.unwrap();
        runs += 1;
        next = report.next;
        if report.complete {
            break;
        }
        assert!(!proof("2026-03-07").await.iter().all(ShardProof::is_complete), "after {runs} runs");
    }
    let proofs = proof("2026-03-07").await;
    assert!(proofs.iter().all(ShardProof::is_complete), "{proofs:?}");
    let paid = |shard: &ShardProof| if let RunCounts::Payments(counts) = shard.counts { counts.paid } else { 0 };
    assert_eq!(proofs.iter().map(paid).sum::<u64>(), 7);

    // A later run has started in a shard, and the end of this run is not recorded. The shard is `Running` until the
    // run's deadline, and then `Open`.
    world.clock.set(billing_time("2026-03-09"));
    let complete = ShardState::Complete;
    for (day, started_at, expected) in [
        ("2026-03-07", "2026-03-09", [complete, ShardState::Running, complete, complete]),
        ("2026-03-07", "2026-03-07", [complete, ShardState::Open, complete, complete]),
        ("2026-03-08", "2026-03-08", [ShardState::Missing, ShardState::Open, ShardState::Missing, ShardState::Missing]),
    ] {
        let without_end = RunRecord { shard: 1, on: date(day), end: None, shards: Some(4), ..run_record(1, 0, 0) };
        let mut without_end = started_after(5, without_end);
        without_end.started_at = billing_time(started_at) + TimeDelta::minutes(5);
        without_end.deadline = Some(billing_time(started_at) + TimeDelta::minutes(20));
        world.table.put_run_record(&without_end).await.unwrap();
        let states: Vec<ShardState> = proof(day).await.iter().map(|shard| shard.walked).collect();
        assert_eq!(states, expected, "{day}");
    }
}

#[tokio::test]
async fn run_records_contain_paid_and_declined_sums_by_currency() {
    let world = World::new().await;
    let in_yen =
        |s: Subscription| Subscription { price: "JPY".parse().and_then(|jpy: Currency| jpy.price(500)).unwrap(), ..s };
    let with_declined_card =
        |s: Subscription| Subscription { payment_method: card("pm_card_chargeDeclinedInsufficientFunds"), ..s };
    for subscription in [
        numbered_subscription(0, 1, "2026-02-28"),
        numbered_subscription(1, 2, "2026-02-28"),
        in_yen(numbered_subscription(2, 3, "2026-02-28")),
        with_declined_card(numbered_subscription(3, 4, "2026-02-28")),
    ] {
        world.store(&subscription).await;
    }
    let report = world.run_payments("2026-03-07").await;
    let sums = RunSums { paid: "EUR=25.98,JPY=500".parse().unwrap(), declined: "EUR=12.99".parse().unwrap() };
    assert_eq!(report.totals.sums, sums);
    let records =
        world.table.get_runs_by_date(Batch::Payments, date("2026-03-07"), &Paging::all()).await.unwrap().items;
    let day = DayRecords::new(Batch::Payments, date("2026-03-07"), SHARDS, world.clock.now());
    let proofs = day.with_records(records).prove_shards();
    let mut total = RunSums::default();
    proofs.iter().for_each(|shard| total.add(&shard.sums));
    assert_eq!(total, sums, "the sums of the run records add up to the sums of the report");
    assert_eq!(world.run_payments("2026-03-07").await.totals.sums, RunSums::default(), "a second run charges nothing");
}

#[tokio::test]
async fn reports_of_both_batches_have_the_same_fields() {
    let world = World::new().await;
    world.store(&numbered_subscription(0, 1, "2026-02-28")).await;
    let charged = serde_json::to_value(world.run_payments("2026-03-07").await).unwrap();
    let reminded = serde_json::to_value(world.run_reminders("2026-03-07").await).unwrap();
    let names = |report: &serde_json::Value| report.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&charged), names(&reminded));
    let expected = serde_json::json!({"sums": {"paid": [], "declined": []}, "unreminded": 0});
    assert_eq!(serde_json::json!({"sums": reminded["sums"], "unreminded": reminded["unreminded"]}), expected);
}

#[test]
fn incomplete_run_after_a_complete_one_makes_the_shard_incomplete_until_another_complete_run() {
    let for_date = |day: &str, record: RunRecord| RunRecord { on: date(day), ..record };
    let without_end = |record: RunRecord| RunRecord { end: None, ..record };
    let in_doubt = |c: &mut PaymentCounts| c.in_doubt = 1;
    let complete = started_after(0, run_record(1, 0, 0));
    let killed = started_after(60, without_end(run_record(2, 0, 0)));
    for (case, records, later, expected) in [
        ("killed", vec![complete.clone(), killed.clone()], vec![], ShardState::Open),
        (
            "stopped",
            vec![complete.clone(), started_after(60, run_with_charging_switched_off(2))],
            vec![],
            ShardState::Stopped,
        ),
        (
            "a row in doubt",
            vec![complete.clone(), started_after(60, run_with_unpaid_row(2, 0, 0, in_doubt))],
            vec![],
            ShardState::LeftBehind,
        ),
        ("out of time", vec![complete.clone(), started_after(60, run_record(2, 0, 1))], vec![], ShardState::Unfinished),
        (
            "out of time, and continued",
            vec![complete.clone(), started_after(60, run_record(2, 0, 1)), started_after(62, run_record(3, 1, 0))],
            vec![],
            ShardState::Complete,
        ),
        (
            "killed, and another run over the second half only",
            vec![
                started_after(0, run_record(1, 0, 1)),
                started_after(2, run_record(2, 1, 0)),
                killed.clone(),
                started_after(90, run_record(3, 1, 0)),
            ],
            vec![],
            ShardState::Open,
        ),
        (
            "killed, and another run to the end",
            vec![complete.clone(), killed.clone(), started_after(90, run_record(3, 0, 0))],
            vec![],
            ShardState::Complete,
        ),
        (
            "killed, while a concurrent run reached the end",
            vec![
                complete.clone(),
                started_after(60, without_end(run_record(3, 0, 0))),
                started_after(60, run_record(2, 0, 0)),
            ],
            vec![],
            ShardState::Complete,
        ),
        (
            "killed, and a complete run for the next day",
            vec![complete.clone(), killed.clone()],
            vec![started_after(0, for_date("2026-03-08", run_record(3, 0, 0)))],
            ShardState::Complete,
        ),
        (
            "killed, and an incomplete run for the next day",
            vec![complete.clone(), killed.clone()],
            vec![started_after(0, for_date("2026-03-08", run_record(3, 0, 1)))],
            ShardState::Open,
        ),
        (
            "only a killed run, and a complete run for the next day",
            vec![started_after(0, without_end(run_record(1, 0, 0)))],
            vec![started_after(0, for_date("2026-03-08", run_record(3, 0, 0)))],
            ShardState::Complete,
        ),
        (
            "killed after the complete run for the next day",
            vec![complete.clone(), started_after(25 * 60, without_end(run_record(4, 0, 0)))],
            vec![started_after(0, for_date("2026-03-08", run_record(3, 0, 0)))],
            ShardState::Open,
        ),
        (
            "a row was rejected, and complete runs later",
            vec![
                complete.clone(),
                started_after(60, run_with_unpaid_row(2, 0, 0, |c| c.rejected = 1)),
                started_after(90, run_record(3, 0, 0)),
            ],
            vec![started_after(0, for_date("2026-03-08", run_record(3, 0, 0)))],
            ShardState::Rejected,
        ),
    ] {
        let now = billing_time("2026-03-09");
        let proof = DayRecords { later, now, ..day_with_records(records) }.prove_shard(0);
        assert_eq!(proof.walked, expected, "{case}");
        assert_eq!(proof.is_complete(), expected == ShardState::Complete, "{case}");
    }
}

#[test]
fn day_is_running_until_the_deadline_of_a_later_run_has_passed() {
    let open = RunRecord { end: None, ..run_record(2, 0, 0) };
    for (after, state) in [(0, DayState::Running), (20, DayState::Running), (21, DayState::NotDone)] {
        let now: DateTime<Utc> = billing_time("2026-03-07") + TimeDelta::minutes(60 + after);
        let records = vec![started_after(0, run_record(1, 0, 0)), started_after(60, open.clone())];
        let proofs = DayRecords { now, ..day_with_records(records) }.prove_shards();
        assert_eq!(
            (DayState::from_proofs(&proofs), state.is_complete()),
            (state, proofs[0].is_complete()),
            "after {after} minutes"
        );
    }
}

#[test]
fn day_needs_only_the_shards_that_existed_when_its_runs_started() {
    let run_of_shard = |shard: u32, shards: Option<u32>| RunRecord { shard, shards, ..run_record(shard.into(), 0, 0) };
    for (case, records, expected) in [
        ("all shards have complete runs", vec![run_of_shard(0, Some(2)), run_of_shard(1, Some(2))], DayState::Done),
        ("one shard has no run", vec![run_of_shard(0, Some(2))], DayState::NotDone),
        (
            "an older version did not record the number of shards",
            vec![run_of_shard(0, None), run_of_shard(1, None)],
            DayState::NotDone,
        ),
        (
            "a later run has an additional shard",
            vec![run_of_shard(0, Some(2)), run_of_shard(1, Some(2)), run_of_shard(2, Some(3))],
            DayState::Done,
        ),
        (
            "a later run has an additional shard, and was killed",
            vec![
                run_of_shard(0, Some(2)),
                run_of_shard(1, Some(2)),
                RunRecord { end: None, ..run_of_shard(2, Some(3)) },
            ],
            DayState::NotDone,
        ),
    ] {
        let proofs = DayRecords { table_shards: 8, ..day_with_records(records) }.prove_shards();
        assert_eq!(DayState::from_proofs(&proofs), expected, "{case}");
    }
}

#[test]
fn incomplete_day_whose_records_may_have_expired_is_expired() {
    let in_doubt = |c: &mut PaymentCounts| c.in_doubt = 1;
    for (records, state) in [
        (vec![], DayState::Expired),
        (vec![run_record(2, 1, 0)], DayState::Expired),
        (vec![run_with_unpaid_row(1, 0, 0, in_doubt)], DayState::Expired),
        (vec![run_record(1, 0, 0)], DayState::Done),
        (vec![run_with_unpaid_row(1, 0, 0, |c| c.rejected = 1)], DayState::NotDone),
    ] {
        let proofs = DayRecords { may_have_expired: true, ..day_with_records(records.clone()) }.prove_shards();
        assert_eq!(DayState::from_proofs(&proofs), state, "{records:?}");
    }
}

#[tokio::test]
async fn killed_run_makes_a_done_day_incomplete_until_the_run_of_the_next_day() {
    let world = World::new().await;
    world.store(&numbered_subscription(0, 7, "2026-02-28")).await;
    assert!(world.run_payments("2026-03-07").await.is_done());
    let state = async || {
        let mut reader = DayReader::new(&world.table, Batch::Payments, SHARDS, world.clock.now());
        let state = DayState::from_proofs(&reader.read(date("2026-03-07")).await.unwrap().prove_shards());
        (state, unfinished_runs(&mut reader, date("2026-03-07")).await.unwrap().len())
    };
    assert_eq!(state().await, (DayState::Done, 0));
    // Two new subscriptions are due on March 7. A run claims the payment of one of them and is killed.
    world.store(&numbered_subscription(4, 7, "2026-03-01")).await;
    world.store(&numbered_subscription(8, 7, "2026-03-01")).await;
    let now = billing_time("2026-03-07") + TimeDelta::hours(1);
    world.clock.set(now);
    let limit = now + TimeDelta::minutes(15);
    let killed =
        RunRecord { started_at: now, deadline: Some(limit), shards: Some(SHARDS), end: None, ..run_record(0, 0, 0) };
    world.table.put_run_record(&RunRecord { id: world.clock.ulid(), ..killed }).await.unwrap();
    let claim = Claim { token: ClaimToken(Ulid(9)), now, leased_until: now + TimeDelta::minutes(20) };
    world
        .table
        .claim_payment(&key(&numbered_subscription(4, 7, "2026-03-01")), date("2026-03-07"), Ulid(7), claim)
        .await
        .unwrap();
    assert_eq!(state().await, (DayState::Running, 0), "the run may still be running");
    world.clock.set(limit + TimeDelta::minutes(6));
    assert_eq!(state().await, (DayState::NotDone, 1));
    assert!(world.run_payments("2026-03-08").await.is_done());
    assert_eq!(state().await, (DayState::Done, 0));
}
