//! Tests of the daily execution of a batch by the state machine: only one execution runs at a time, and an execution is
//! complete when its own runs have processed all shards. Other runs of the same day do not count.

use billing::ClaimToken;
use chrono::{DateTime, TimeDelta, Utc};
use days::{DayReader, DayState};
use emulator::Fault;
use serde_json::{Value, json};
use store::{Batch, Claim, ClaimOutcome};
use sweep::BatchRequest;
use ulid::Ulid;

use crate::world::{World, billing_time, date, key, new_subscription};

/// The day for which the executions run.
const DAY: &str = "2026-03-10";

/// Returns the time `minutes` after the billing time of [`DAY`].
fn minutes_later(minutes: i64) -> DateTime<Utc> {
    billing_time(DAY) + TimeDelta::minutes(minutes)
}

/// Invokes the payment batch with `event`, `minutes` after the billing time. Returns the result of the batch, or the
/// type and text of the error.
async fn invoke_payment_batch(world: &World, minutes: i64, event: Value) -> Result<Value, String> {
    world.clock.set(minutes_later(minutes));
    let result = world.payments.handle_invocation(event, minutes_later(minutes) + TimeDelta::minutes(15)).await;
    result
        .map(|result| serde_json::to_value(result).unwrap())
        .map_err(|error| format!("{}: {error}", error.error_type()))
}

/// Invokes the payment batch with the first event of the execution, which gets the lease and the list of shards.
async fn begin_execution(world: &World, minutes: i64, execution: &str) -> Result<Value, String> {
    let begin = json!({"begin": {"scheduled_time": minutes_later(0), "execution": execution, "at_once": 3}});
    invoke_payment_batch(world, minutes, begin).await
}

/// Invokes the payment batch with the execution's event for `shard`. The batch then processes the rows of this shard.
async fn process_shard(world: &World, minutes: i64, execution: &str, shard: u32) -> Result<Value, String> {
    let walk = json!({"date": DAY, "shards": [shard], "next": null, "at_once": 3, "execution": execution});
    invoke_payment_batch(world, minutes, walk).await
}

/// Invokes the payment batch with the last event of the execution `first`. `begun` is the result of
/// [`begin_execution`].
async fn finish_execution(world: &World, minutes: i64, begun: &Value, has_waited: bool) -> Value {
    let (date, begun_at) = (&begun["date"], &begun["begun_at"]);
    let finish =
        json!({"finish": {"date": date, "begun_at": begun_at, "execution": "first", "has_waited": has_waited}});
    invoke_payment_batch(world, minutes, finish).await.unwrap()
}

#[tokio::test]
async fn execution_is_done_when_it_has_processed_all_rows_of_its_shards() {
    let world = World::new().await;
    // Another run of the same day completed all shards before the subscription was created. The execution must not
    // count that run.
    world.clock.set(minutes_later(-60));
    assert!(world.payments.run(&BatchRequest::for_date(date(DAY)), minutes_later(0)).await.unwrap().complete);
    world.store(&new_subscription(10, "2026-03-01")).await;

    let begun = begin_execution(&world, 0, "first").await.unwrap();
    assert_eq!((&begun["shards"], &begun["at_once"]), (&json!([0, 1, 2, 3]), &json!(3)));
    assert_eq!((&begun["date"], &begun["lease_seconds"]), (&json!(DAY), &json!(1200)));
    for shard in [0, 1, 3] {
        process_shard(&world, 1, "first", shard).await.unwrap();
    }
    let finished = finish_execution(&world, 2, &begun, false).await;
    assert_eq!((&finished["done"], &finished["wait"]), (&json!(false), &json!(false)));
    assert_eq!(finished["cause"], "1 of 4 shards are not done: shard 2 missing");

    assert_eq!(process_shard(&world, 3, "first", 2).await.unwrap()["counts"]["paid"], 1);
    let finished = finish_execution(&world, 4, &begun, false).await;
    assert_eq!(finished, json!({"date": DAY, "done": true, "wait": false, "cause": ""}));
}

#[tokio::test]
async fn execution_waits_once_for_its_open_attempts() {
    let world = World::new().await;
    let subscription = new_subscription(10, "2026-03-01");
    world.store(&subscription).await;
    world.inject_charge_fault(Fault::LostAfter);
    let begun = begin_execution(&world, 0, "first").await.unwrap();
    for shard in 0..4 {
        process_shard(&world, 1, "first", shard).await.unwrap();
    }
    let finished = finish_execution(&world, 2, &begun, false).await;
    assert_eq!((&finished["done"], &finished["wait"]), (&json!(false), &json!(true)));
    assert_eq!(begin_execution(&world, 3, "second").await.unwrap()["held_by"], "first");
    assert_eq!(finish_execution(&world, 3, &begun, true).await["wait"], false, "the execution has waited once");

    let begun = begin_execution(&world, 30, "first").await.unwrap();
    for shard in 0..4 {
        process_shard(&world, 31, "first", shard).await.unwrap();
    }
    assert_eq!(finish_execution(&world, 32, &begun, true).await["done"], true);
    assert_eq!(world.receipt_due_dates(&subscription).await, [DAY]);
}

#[tokio::test]
async fn execution_of_reminders_waits_for_a_claimed_reminder_and_processes_its_shards_again() {
    let world = World::new().await;
    let subscription = new_subscription(17, "2026-03-01");
    world.store(&subscription).await;
    let claim = Claim { token: ClaimToken(Ulid(9)), now: minutes_later(0), leased_until: minutes_later(20) };
    let claimed = world.table.claim_reminder(&key(&subscription), date(DAY), claim).await.unwrap();
    assert!(matches!(claimed, ClaimOutcome::Claimed(_)), "a run claimed the reminder and was killed: {claimed:?}");

    let invoke = async |minutes: i64, event: Value| {
        world.clock.set(minutes_later(minutes));
        serde_json::to_value(world.reminders.handle_invocation(event, minutes_later(minutes + 15)).await.unwrap())
            .unwrap()
    };
    let begin = json!({"begin": {"scheduled_time": minutes_later(0), "execution": "first", "at_once": 3}});
    let begun = invoke(1, begin).await;
    assert_eq!(begun["lease_seconds"], 1200);
    for (minutes, has_waited, done) in [(2, false, false), (22, true, true)] {
        for shard in 0..4 {
            invoke(minutes, json!({"date": DAY, "shards": [shard], "next": null, "execution": "first"})).await;
        }
        let (date, begun_at) = (&begun["date"], &begun["begun_at"]);
        let finish = json!({"date": date, "begun_at": begun_at, "execution": "first", "has_waited": has_waited});
        let finished = invoke(minutes, json!({"finish": finish})).await;
        assert_eq!((&finished["done"], &finished["wait"]), (&json!(done), &json!(!has_waited)), "{finished}");
    }
    assert_eq!(world.mails_sent.mails().len(), 1);
}

#[tokio::test]
async fn shard_added_during_an_execution_does_not_fail_the_execution_or_the_day() {
    let world = World::new().await;
    world.store(&new_subscription(10, "2026-03-01")).await;
    let begun = begin_execution(&world, 0, "first").await.unwrap();
    assert_eq!(world.table.raise_shard_count(6, None).await.unwrap(), 6);
    for shard in 0..4 {
        process_shard(&world, 1, "first", shard).await.unwrap();
    }
    let (date_begun, begun_at, shards) = (&begun["date"], &begun["begun_at"], &begun["shards"]);
    let finish =
        json!({"date": date_begun, "begun_at": begun_at, "execution": "first", "has_waited": false, "shards": shards});
    let finished = invoke_payment_batch(&world, 2, json!({"finish": finish})).await.unwrap();
    assert_eq!((&finished["done"], &finished["cause"]), (&json!(true), &json!("")));
    let mut reader = DayReader::new(&world.table, Batch::Payments, 6, minutes_later(3));
    assert_eq!(DayState::from_proofs(&reader.read(date(DAY)).await.unwrap().prove_shards()), DayState::Done);
}

#[tokio::test]
async fn only_one_execution_runs_until_it_finishes_or_its_lease_expires() {
    let world = World::new().await;
    let begun = begin_execution(&world, 0, "first").await.unwrap();
    let second = begin_execution(&world, 1, "second").await.unwrap();
    assert_eq!(second["held_by"], "first", "the second execution must try again later; this is not an error");
    assert_eq!(
        process_shard(&world, 2, "second", 0).await.unwrap_err(),
        format!(
            "Execution: the daily execution first of the payments batch has the lease until {}: \
             it is running or was cut off",
            minutes_later(65).format("%Y-%m-%d %H:%M:%S UTC")
        )
    );
    let repeated = begin_execution(&world, 3, "first").await.unwrap();
    assert_eq!(repeated["held_by"], Value::Null, "an execution may repeat its own begin request");
    process_shard(&world, 40, "first", 0).await.unwrap();
    assert_eq!(
        begin_execution(&world, 104, "second").await.unwrap()["held_by"],
        "first",
        "each run over a shard renews the lease of the execution"
    );
    assert_eq!(
        begin_execution(&world, 105, "second").await.unwrap()["held_by"],
        Value::Null,
        "the lease of the first execution expired"
    );
    assert!(process_shard(&world, 106, "first", 1).await.is_err(), "the first execution no longer has the lease");

    // The first execution finishes after its lease has expired. The second execution holds the lease now, so the lease
    // is not released.
    finish_execution(&world, 107, &begun, true).await;
    assert_eq!(begin_execution(&world, 108, "third").await.unwrap()["held_by"], "second");
    let finish =
        json!({"finish": {"date": DAY, "begun_at": minutes_later(105), "execution": "second", "has_waited": true}});
    invoke_payment_batch(&world, 109, finish).await.unwrap();
    assert_eq!(begin_execution(&world, 110, "third").await.unwrap()["held_by"], Value::Null);
}

#[tokio::test]
async fn daily_limit_is_checked_when_an_execution_begins_and_a_rejected_execution_releases_its_lease() {
    let world = World::with_payment_limits(&[("max-charges", "1")]).await;
    world.store(&new_subscription(10, "2026-03-01")).await;
    let begun = begin_execution(&world, 0, "first").await.unwrap();
    // Another payment becomes due after the check, so the execution exceeds the limit. Only the next execution is
    // rejected.
    world.store(&new_subscription(9, "2026-03-01")).await;
    for shard in 0..4 {
        process_shard(&world, 1, "first", shard).await.unwrap();
    }
    assert_eq!(world.charged_due_dates().len(), 2);
    assert_eq!(finish_execution(&world, 2, &begun, false).await["done"], true);
    let error = begin_execution(&world, 3, "second").await.unwrap_err();
    assert!(error.starts_with("Refused: the run was not started: "), "{error}");
    let error = begin_execution(&world, 4, "third").await.unwrap_err();
    assert!(error.starts_with("Refused: "), "the lease is free, so the limit is checked again: {error}");
}
