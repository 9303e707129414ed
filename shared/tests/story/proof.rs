//! The completeness proof: what a day's run records say, and what they do not.

use chrono::TimeDelta;
use shared::audit::{ShardProof, Walked, prove};
use shared::billing::{Currency, Subscription};
use shared::sweep::BatchRequest;
use shared::table::{Batch, Lane, Paging, PaymentCounts, Position, RunCounts, RunEnd, RunRecord, RunSums};
use ulid::Ulid;

use crate::world::{SHARDS, World, another, card, date, morning, new_subscription};

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
        from: (from > 0).then(|| at(from)),
        end: Some(end),
    }
}

fn walked(records: &[RunRecord]) -> Walked {
    prove(Batch::Payments, 1, records)[0].walked
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
    let proof = &prove(Batch::Payments, 1, &[wrong])[0];
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
        let records = world.table.get_runs_by_date(Batch::Payments, date(day), &Paging::all()).await.unwrap();
        prove(Batch::Payments, shards, &records.items)
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

    // Cut off after all was done, it changes nothing; the only one of its day, it shows.
    for (day, expected) in [
        ("2026-03-07", [Walked::Complete; 4]),
        ("2026-03-08", [Walked::Missing, Walked::Open, Walked::Missing, Walked::Missing]),
    ] {
        let cut_off = RunRecord { shard: 1, on: date(day), end: None, id: Ulid::from_parts(99, 0), ..run(1, 0, 0) };
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
    let proved = prove(Batch::Payments, SHARDS, &records);
    let mut of_all = RunSums::default();
    proved.iter().for_each(|shard| of_all.add(&shard.sums));
    assert_eq!(of_all, sums, "each walk tells its own part");
    assert_eq!(world.charge("2026-03-07").await.sums, RunSums::default(), "and nothing twice");
}
