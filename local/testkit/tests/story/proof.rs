//! The completeness proof: what a day's run records say, and what they do not.

use audit::unfinished_runs;
use billing::{Currency, Subscription, Token};
use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use clock::Clock as _;
use days::{DayReader, DayRecords, DayState, ShardProof, Walked};
use store::{Batch, Claim, Lane, Paging, PaymentCounts, Position, RunCounts, RunEnd, RunRecord, RunSums};
use sweep::BatchRequest;
use ulid::Ulid;

use crate::world::{SHARDS, World, another, card, date, key, morning, new_subscription};

/// A run from one place to another; `from` and `next` 0 are the start and the end.
fn run(n: u64, from: u8, next: u8) -> RunRecord {
    let at = |place: u8| Position {
        lane: Lane::Due,
        shard: 0,
        on: "2026-03-07".into(),
        pk: format!("ACC#{place}"),
        sk: "SUB#".into(),
    };
    let end = RunEnd {
        ended_at: morning("2026-03-07"),
        counts: PaymentCounts { due: 2, paid: 2, ..PaymentCounts::default() }.into(),
        sums: RunSums { paid: "EUR=25.98".parse().unwrap(), ..RunSums::default() },
        next: (next > 0).then(|| at(next)),
        stopped: None,
    };
    RunRecord {
        batch: Batch::Payments,
        on: date("2026-03-07"),
        shard: 0,
        id: Ulid::from_parts(n, 0),
        started_at: morning("2026-03-07"),
        deadline: Some(morning("2026-03-07") + TimeDelta::minutes(15)),
        shards: Some(1),
        from: (from > 0).then(|| at(from)),
        end: Some(end),
    }
}

/// The day with these records, as it is judged on the morning after.
fn day(records: Vec<RunRecord>) -> DayRecords {
    DayRecords::new(Batch::Payments, date("2026-03-07"), 1, morning("2026-03-08")).with(records)
}

fn walked(records: &[RunRecord]) -> Walked {
    day(records.to_vec()).prove_shard(0).walked
}

/// `record` so many minutes into the morning of its date: its beginning, and its end if it has one.
fn minutes(minutes: i64, record: RunRecord) -> RunRecord {
    let at = morning(&record.on.to_string()) + TimeDelta::minutes(minutes);
    let end = record.end.map(|end| RunEnd { ended_at: at + TimeDelta::minutes(1), ..end });
    let id = Ulid::from_parts(u64::try_from(at.timestamp_millis()).unwrap(), record.id.random());
    RunRecord { id, started_at: at, deadline: Some(at + TimeDelta::minutes(15)), end, ..record }
}

/// A run that left one of its two rows as `counts` says.
fn left(n: u64, from: u8, next: u8, counts: fn(&mut PaymentCounts)) -> RunRecord {
    let mut left = run(n, from, next);
    let mut counted = PaymentCounts { due: 2, paid: 1, ..PaymentCounts::default() };
    counts(&mut counted);
    left.end.as_mut().unwrap().counts = counted.into();
    left
}

/// A run that came to its end and held back on the way.
fn stopped(n: u64) -> RunRecord {
    let mut stopped = run(n, 0, 0);
    stopped.end.as_mut().unwrap().stopped = Some("charging is switched off".to_owned());
    stopped
}

#[test]
fn prove_needs_a_chain_of_runs_from_the_start_of_a_shard_to_its_end() {
    let open = RunRecord { end: None, ..run(9, 0, 0) };
    let (failed, in_doubt) = (|c: &mut PaymentCounts| c.failed = 1, |c: &mut PaymentCounts| c.in_doubt = 1);
    let (rejected, processing) = (|c: &mut PaymentCounts| c.rejected = 1, |c: &mut PaymentCounts| c.processing = 1);
    for (story, records, expected) in [
        ("nobody came", vec![], Walked::Missing),
        ("one run to the end", vec![run(1, 0, 0)], Walked::Complete),
        ("three, one after the other", vec![run(3, 2, 0), run(1, 0, 1), run(2, 1, 2)], Walked::Complete),
        ("twice", vec![run(1, 0, 0), run(2, 0, 0)], Walked::Complete),
        ("cut short, and begun anew", vec![run(1, 0, 1), run(2, 0, 0)], Walked::Complete),
        ("out of time", vec![run(1, 0, 1)], Walked::Unfinished),
        ("out of time again", vec![run(1, 0, 1), run(2, 1, 2)], Walked::Unfinished),
        ("went on from nowhere", vec![run(1, 0, 1), run(2, 2, 0)], Walked::Gap),
        ("the first one is lost", vec![run(2, 1, 0)], Walked::Gap),
        ("still going on, or cut off", vec![open.clone()], Walked::Open),
        ("cut off, and walked again", vec![open, run(10, 0, 0)], Walked::Complete),
        ("a row failed", vec![left(1, 0, 0, failed)], Walked::LeftBehind),
        ("a row is in doubt", vec![left(1, 0, 0, in_doubt)], Walked::LeftBehind),
        ("a row failed, and the walk was repeated", vec![left(1, 0, 0, failed), run(2, 0, 0)], Walked::Complete),
        (
            "a row failed on the second half, which was repeated",
            vec![run(1, 0, 1), left(2, 1, 0, failed), run(3, 1, 0)],
            Walked::Complete,
        ),
        ("a row failed after the last walk", vec![run(1, 0, 1), left(2, 1, 0, failed)], Walked::LeftBehind),
        ("at the bank", vec![left(1, 0, 0, processing)], Walked::Complete),
        ("rejected once, whatever came later", vec![left(1, 0, 0, rejected), run(2, 0, 0)], Walked::Rejected),
        ("stopped", vec![stopped(1)], Walked::Stopped),
        ("stopped, and walked again", vec![stopped(1), run(2, 0, 0)], Walked::Complete),
    ] {
        assert_eq!(walked(&records), expected, "{story}");
    }
    let mut wrong = run(1, 0, 0);
    wrong.end.as_mut().unwrap().counts = PaymentCounts { due: 3, paid: 2, ..PaymentCounts::default() }.into();
    let proof = &day(vec![wrong]).prove()[0];
    assert!(proof.walked == Walked::Complete && !proof.adds_up && !proof.holds());
}

#[tokio::test]
async fn prove_accepts_many_short_runs_and_shows_one_that_was_cut_off() {
    let world = World::new().await;
    for day in 1..=7 {
        world.has(&new_subscription(day, "2026-02-28")).await;
    }
    let shards = world.table.get_settings().await.unwrap().unwrap().shards;
    let proof = async |day: &str| -> Vec<ShardProof> {
        let mut reader = DayReader::new(&world.table, Batch::Payments, shards, Tz::UTC, world.clock.now());
        reader.read(date(day)).await.unwrap().prove()
    };
    assert!(proof("2026-03-07").await.iter().all(|shard| shard.walked == Walked::Missing));
    world.clock.set(morning("2026-03-07"));
    let (mut next, mut runs) = (None, 0);
    loop {
        // Time for one page of three at most.
        let request = BatchRequest { next, ..BatchRequest::on(date("2026-03-07")) };
        let deadline = morning("2026-03-07") + TimeDelta::seconds(if runs == 0 { 1 } else { 3_600 });
        let report = world.payments.run(&request, deadline).await.unwrap();
        runs += 1;
        next = report.next;
        if report.complete {
            break;
        }
        assert!(!proof("2026-03-07").await.iter().all(ShardProof::holds), "after {runs} runs");
    }
    let proved = proof("2026-03-07").await;
    assert!(proved.iter().all(ShardProof::holds), "{proved:?}");
    let paid = |shard: &ShardProof| if let RunCounts::Payments(counts) = shard.counts { counts.paid } else { 0 };
    assert_eq!(proved.iter().map(paid).sum::<u64>(), 7);

    // While it goes on, a later run changes nothing; when it was cut off, it shows.
    world.clock.set(morning("2026-03-09"));
    let complete = Walked::Complete;
    for (day, started_at, expected) in [
        ("2026-03-07", "2026-03-09", [complete, Walked::Running, complete, complete]),
        ("2026-03-07", "2026-03-07", [complete, Walked::Open, complete, complete]),
        ("2026-03-08", "2026-03-08", [Walked::Missing, Walked::Open, Walked::Missing, Walked::Missing]),
    ] {
        let cut_off = RunRecord { shard: 1, on: date(day), end: None, shards: Some(4), ..run(1, 0, 0) };
        let mut cut_off = minutes(5, cut_off);
        cut_off.started_at = morning(started_at) + TimeDelta::minutes(5);
        cut_off.deadline = Some(morning(started_at) + TimeDelta::minutes(20));
        world.table.put_run(&cut_off).await.unwrap();
        let walked: Vec<Walked> = proof(day).await.iter().map(|shard| shard.walked).collect();
        assert_eq!(walked, expected, "{day}");
    }
}

#[tokio::test]
async fn run_records_tell_what_was_paid_and_what_was_declined_by_currency() {
    let world = World::new().await;
    let yen =
        |s: Subscription| Subscription { price: "JPY".parse().and_then(|jpy: Currency| jpy.price(500)).unwrap(), ..s };
    let bad = |s: Subscription| Subscription { payment_method: card("pm_card_chargeDeclinedInsufficientFunds"), ..s };
    for subscription in [
        another(0, 1, "2026-02-28"),
        another(1, 2, "2026-02-28"),
        yen(another(2, 3, "2026-02-28")),
        bad(another(3, 4, "2026-02-28")),
    ] {
        world.has(&subscription).await;
    }
    let report = world.charge("2026-03-07").await;
    let sums = RunSums { paid: "EUR=25.98,JPY=500".parse().unwrap(), declined: "EUR=12.99".parse().unwrap() };
    assert_eq!(report.sums, sums);
    let records =
        world.table.get_runs_by_date(Batch::Payments, date("2026-03-07"), &Paging::all()).await.unwrap().items;
    let day = DayRecords::new(Batch::Payments, date("2026-03-07"), SHARDS, world.clock.now());
    let proved = day.with(records).prove();
    let mut of_all = RunSums::default();
    proved.iter().for_each(|shard| of_all.add(&shard.sums));
    assert_eq!(of_all, sums, "each walk tells its own part");
    assert_eq!(world.charge("2026-03-07").await.sums, RunSums::default(), "and nothing twice");
}

#[test]
fn run_that_begins_after_the_proof_spoils_it_until_the_shard_is_walked_again() {
    let of = |day: &str, record: RunRecord| RunRecord { on: date(day), ..record };
    let cut_off = |record: RunRecord| RunRecord { end: None, ..record };
    let in_doubt = |c: &mut PaymentCounts| c.in_doubt = 1;
    let done = minutes(0, run(1, 0, 0));
    let killed = minutes(60, cut_off(run(2, 0, 0)));
    for (story, records, later, expected) in [
        ("cut off", vec![done.clone(), killed.clone()], vec![], Walked::Open),
        ("stopped", vec![done.clone(), minutes(60, stopped(2))], vec![], Walked::Stopped),
        ("left a row", vec![done.clone(), minutes(60, left(2, 0, 0, in_doubt))], vec![], Walked::LeftBehind),
        ("out of time", vec![done.clone(), minutes(60, run(2, 0, 1))], vec![], Walked::Unfinished),
        (
            "out of time, and gone on with",
            vec![done.clone(), minutes(60, run(2, 0, 1)), minutes(62, run(3, 1, 0))],
            vec![],
            Walked::Complete,
        ),
        (
            "cut off, and only its second half walked again",
            vec![minutes(0, run(1, 0, 1)), minutes(2, run(2, 1, 0)), killed.clone(), minutes(90, run(3, 1, 0))],
            vec![],
            Walked::Open,
        ),
        (
            "cut off, and walked again",
            vec![done.clone(), killed.clone(), minutes(90, run(3, 0, 0))],
            vec![],
            Walked::Complete,
        ),
        (
            "cut off, while another run went on and came to its end",
            vec![done.clone(), minutes(60, cut_off(run(3, 0, 0))), minutes(60, run(2, 0, 0))],
            vec![],
            Walked::Complete,
        ),
        (
            "cut off, and walked for the next day",
            vec![done.clone(), killed.clone()],
            vec![minutes(0, of("2026-03-08", run(3, 0, 0)))],
            Walked::Complete,
        ),
        (
            "cut off, and walked for the next day in part",
            vec![done.clone(), killed.clone()],
            vec![minutes(0, of("2026-03-08", run(3, 0, 1)))],
            Walked::Open,
        ),
        (
            "never complete, and walked for the next day",
            vec![minutes(0, cut_off(run(1, 0, 0)))],
            vec![minutes(0, of("2026-03-08", run(3, 0, 0)))],
            Walked::Open,
        ),
        (
            "cut off after the walk for the next day",
            vec![done.clone(), minutes(25 * 60, cut_off(run(4, 0, 0)))],
            vec![minutes(0, of("2026-03-08", run(3, 0, 0)))],
            Walked::Open,
        ),
        (
            "a row was rejected, whatever came later",
            vec![done.clone(), minutes(60, left(2, 0, 0, |c| c.rejected = 1)), minutes(90, run(3, 0, 0))],
            vec![minutes(0, of("2026-03-08", run(3, 0, 0)))],
            Walked::Rejected,
        ),
    ] {
        let now = morning("2026-03-09");
        let judged = DayRecords { later, now, ..day(records) }.prove_shard(0);
        assert_eq!(judged.walked, expected, "{story}");
        assert_eq!(judged.holds(), expected == Walked::Complete, "{story}");
    }
}

#[test]
fn day_is_running_while_a_run_after_its_proof_may_still_end() {
    let open = RunRecord { end: None, ..run(2, 0, 0) };
    for (after, state) in [(0, DayState::Running), (20, DayState::Running), (21, DayState::NotDone)] {
        let now: DateTime<Utc> = morning("2026-03-07") + TimeDelta::minutes(60 + after);
        let proofs = DayRecords { now, ..day(vec![minutes(0, run(1, 0, 0)), minutes(60, open.clone())]) }.prove();
        assert_eq!((DayState::of(&proofs), state.is_done()), (state, proofs[0].holds()), "after {after} minutes");
    }
}

#[test]
fn day_is_judged_by_the_shards_that_it_had() {
    let of = |shard: u32, shards: Option<u32>| RunRecord { shard, shards, ..run(shard.into(), 0, 0) };
    for (story, records, expected) in [
        ("as many as there are now", vec![of(0, Some(2)), of(1, Some(2))], DayState::Done),
        ("one of them was not walked", vec![of(0, Some(2))], DayState::NotDone),
        ("an older version did not record them", vec![of(0, None), of(1, None)], DayState::NotDone),
        ("one was added for a later run", vec![of(0, Some(2)), of(1, Some(2)), of(2, Some(3))], DayState::Done),
        (
            "one was added, and its walk was cut off",
            vec![of(0, Some(2)), of(1, Some(2)), RunRecord { end: None, ..of(2, Some(3)) }],
            DayState::NotDone,
        ),
    ] {
        let proofs = DayRecords { table_shards: 8, ..day(records) }.prove();
        assert_eq!(DayState::of(&proofs), expected, "{story}");
    }
}

#[test]
fn day_whose_records_have_expired_cannot_be_judged() {
    let in_doubt = |c: &mut PaymentCounts| c.in_doubt = 1;
    for (records, state) in [
        (vec![], DayState::Expired),
        (vec![run(2, 1, 0)], DayState::Expired),
        (vec![left(1, 0, 0, in_doubt)], DayState::Expired),
        (vec![run(1, 0, 0)], DayState::Done),
        (vec![left(1, 0, 0, |c| c.rejected = 1)], DayState::NotDone),
    ] {
        let proofs = DayRecords { may_have_expired: true, ..day(records.clone()) }.prove();
        assert_eq!(DayState::of(&proofs), state, "{records:?}");
    }
}

#[tokio::test]
async fn killed_run_after_a_finished_one_spoils_the_day_and_the_run_of_the_next_day_restores_it() {
    let world = World::new().await;
    world.has(&another(0, 7, "2026-02-28")).await;
    assert!(world.charge("2026-03-07").await.is_done());
    let state = async || {
        let mut reader = DayReader::new(&world.table, Batch::Payments, SHARDS, Tz::UTC, world.clock.now());
        let state = DayState::of(&reader.read(date("2026-03-07")).await.unwrap().prove());
        (state, unfinished_runs(&mut reader, date("2026-03-07")).await.unwrap().len())
    };
    assert_eq!(state().await, (DayState::Done, 0));
    // Two sign up and are due today; a run claims a payment of theirs and is killed.
    world.has(&another(4, 7, "2026-03-01")).await;
    world.has(&another(8, 7, "2026-03-01")).await;
    let now = morning("2026-03-07") + TimeDelta::hours(1);
    world.clock.set(now);
    let limit = now + TimeDelta::minutes(15);
    let killed = RunRecord { started_at: now, deadline: Some(limit), shards: Some(SHARDS), end: None, ..run(0, 0, 0) };
    world.table.put_run(&RunRecord { id: world.clock.ulid(), ..killed }).await.unwrap();
    let claim = Claim { token: Token(Ulid(9)), now, leased_until: now + TimeDelta::minutes(20) };
    world.table.claim_payment(&key(&another(4, 7, "2026-03-01")), date("2026-03-07"), Ulid(7), claim).await.unwrap();
    assert_eq!(state().await, (DayState::Running, 0), "it may still go on");
    world.clock.set(limit + TimeDelta::minutes(6));
    assert_eq!(state().await, (DayState::NotDone, 1));
    assert!(world.charge("2026-03-08").await.is_done());
    assert_eq!(state().await, (DayState::Done, 0));
}
