//! A daily execution as its state machine sees it: one at a time, begun once, judged by what it has walked itself.

use billing::Token;
use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use days::{DayReader, DayState};
use emulator::Fault;
use serde_json::{Value, json};
use store::{Batch, Claim, Claimed};
use sweep::BatchRequest;
use ulid::Ulid;

use crate::world::{World, date, key, morning, new_subscription};

const DAY: &str = "2026-03-10";

fn at(minutes: i64) -> DateTime<Utc> {
    morning(DAY) + TimeDelta::minutes(minutes)
}

/// What the payment batch answers to `event`, so many minutes into the morning.
async fn asked(world: &World, minutes: i64, event: Value) -> Result<Value, String> {
    world.clock.set(at(minutes));
    let answer = world.payments.handle(event, at(minutes) + TimeDelta::minutes(15)).await;
    answer.map(|answer| serde_json::to_value(answer).unwrap()).map_err(|error| format!("{}: {error}", error.kind()))
}

async fn begin(world: &World, minutes: i64, execution: &str) -> Result<Value, String> {
    let begin = json!({"begin": {"scheduled_time": at(0), "execution": execution, "at_once": 3}});
    asked(world, minutes, begin).await
}

async fn walk(world: &World, minutes: i64, execution: &str, shard: u32) -> Result<Value, String> {
    let walk = json!({"date": DAY, "shards": [shard], "next": null, "at_once": 3, "execution": execution});
    asked(world, minutes, walk).await
}

async fn finish(world: &World, minutes: i64, begun: &Value, has_waited: bool) -> Value {
    let (date, begun_at) = (&begun["date"], &begun["begun_at"]);
    let finish =
        json!({"finish": {"date": date, "begun_at": begun_at, "execution": "first", "has_waited": has_waited}});
    asked(world, minutes, finish).await.unwrap()
}

#[tokio::test]
async fn execution_is_done_when_each_of_its_shards_was_walked_to_its_end_since_it_began() {
    let world = World::new().await;
    // Before anything was due, an earlier run of the day came to the end of every shard.
    world.clock.set(at(-60));
    assert!(world.payments.run(&BatchRequest::on(date(DAY)), at(0)).await.unwrap().complete);
    world.has(&new_subscription(10, "2026-03-01")).await;

    let begun = begin(&world, 0, "first").await.unwrap();
    assert_eq!((&begun["shards"], &begun["at_once"]), (&json!([0, 1, 2, 3]), &json!(3)));
    assert_eq!((&begun["date"], &begun["lease_seconds"]), (&json!(DAY), &json!(1200)));
    for shard in [0, 1, 3] {
        walk(&world, 1, "first", shard).await.unwrap();
    }
    let finished = finish(&world, 2, &begun, false).await;
    assert_eq!((&finished["done"], &finished["wait"]), (&json!(false), &json!(false)));
    assert_eq!(finished["cause"], "1 of 4 shards are not done: shard 2 missing");

    assert_eq!(walk(&world, 3, "first", 2).await.unwrap()["counts"]["paid"], 1);
    let finished = finish(&world, 4, &begun, false).await;
    assert_eq!(finished, json!({"date": DAY, "done": true, "wait": false, "cause": ""}));
}

#[tokio::test]
async fn execution_waits_once_for_what_it_has_left_open() {
    let world = World::new().await;
    let subscription = new_subscription(10, "2026-03-01");
    world.has(&subscription).await;
    world.next_charge(Fault::LostAfter);
    let begun = begin(&world, 0, "first").await.unwrap();
    for shard in 0..4 {
        walk(&world, 1, "first", shard).await.unwrap();
    }
    let finished = finish(&world, 2, &begun, false).await;
    assert_eq!((&finished["done"], &finished["wait"]), (&json!(false), &json!(true)));
    assert_eq!(begin(&world, 3, "second").await.unwrap()["held_by"], "first");
    assert_eq!(finish(&world, 3, &begun, true).await["wait"], false, "once");

    let begun = begin(&world, 30, "first").await.unwrap();
    for shard in 0..4 {
        walk(&world, 31, "first", shard).await.unwrap();
    }
    assert_eq!(finish(&world, 32, &begun, true).await["done"], true);
    assert_eq!(world.receipts(&subscription).await, [DAY]);
}

#[tokio::test]
async fn execution_of_reminders_waits_for_the_lease_of_a_reminder_and_walks_again() {
    // Attempts are leased for a shorter time than reminders.
    let world = World::with(&[("DUEDAY_LEASE_MINUTES", "10")]).await;
    let subscription = new_subscription(17, "2026-03-01");
    world.has(&subscription).await;
    let claim = Claim { token: Token(Ulid(9)), now: at(0), leased_until: at(20) };
    let claimed = world.table.claim_reminder(&key(&subscription), date(DAY), claim).await.unwrap();
    assert!(matches!(claimed, Claimed::Held(_)), "a killed run holds it: {claimed:?}");

    let asked = async |minutes: i64, event: Value| {
        world.clock.set(at(minutes));
        serde_json::to_value(world.reminders.handle(event, at(minutes + 15)).await.unwrap()).unwrap()
    };
    let begin = json!({"begin": {"scheduled_time": at(0), "execution": "first", "at_once": 3}});
    let begun = asked(1, begin).await;
    assert_eq!(begun["lease_seconds"], 1200);
    for (minutes, has_waited, done) in [(2, false, false), (22, true, true)] {
        for shard in 0..4 {
            asked(minutes, json!({"date": DAY, "shards": [shard], "next": null, "execution": "first"})).await;
        }
        let (date, begun_at) = (&begun["date"], &begun["begun_at"]);
        let finish = json!({"date": date, "begun_at": begun_at, "execution": "first", "has_waited": has_waited});
        let finished = asked(minutes, json!({"finish": finish})).await;
        assert_eq!((&finished["done"], &finished["wait"]), (&json!(done), &json!(!has_waited)), "{finished}");
    }
    assert_eq!(world.letterbox.mails().len(), 1);
}

#[tokio::test]
async fn execution_is_not_failed_by_a_shard_that_is_added_meanwhile_and_neither_is_its_day() {
    let world = World::new().await;
    world.has(&new_subscription(10, "2026-03-01")).await;
    let begun = begin(&world, 0, "first").await.unwrap();
    assert_eq!(world.table.raise_shards(6).await.unwrap(), 6);
    for shard in 0..4 {
        walk(&world, 1, "first", shard).await.unwrap();
    }
    let (date_begun, begun_at, shards) = (&begun["date"], &begun["begun_at"], &begun["shards"]);
    let finish =
        json!({"date": date_begun, "begun_at": begun_at, "execution": "first", "has_waited": false, "shards": shards});
    let finished = asked(&world, 2, json!({"finish": finish})).await.unwrap();
    assert_eq!((&finished["done"], &finished["cause"]), (&json!(true), &json!("")));
    let mut reader = DayReader::new(&world.table, Batch::Payments, 6, Tz::UTC, at(3));
    assert_eq!(DayState::of(&reader.read(date(DAY)).await.unwrap().prove()), DayState::Done);
}

#[tokio::test]
async fn execution_keeps_others_away_until_it_has_ended_or_nobody_has_heard_of_it_for_long() {
    let world = World::new().await;
    let begun = begin(&world, 0, "first").await.unwrap();
    let second = begin(&world, 1, "second").await.unwrap();
    assert_eq!(second["held_by"], "first", "it has not begun, which is no failure: it asks again later");
    assert_eq!(
        walk(&world, 2, "second", 0).await.unwrap_err(),
        format!(
            "Execution: execution first of payments goes on, or was cut off: its lease lasts until {}",
            at(65).format("%Y-%m-%d %H:%M:%S UTC")
        )
    );
    let again = begin(&world, 3, "first").await.unwrap();
    assert_eq!(again["held_by"], Value::Null, "its beginning may be asked for again");
    walk(&world, 40, "first", 0).await.unwrap();
    assert_eq!(begin(&world, 104, "second").await.unwrap()["held_by"], "first", "each walk renews the lease");
    assert_eq!(begin(&world, 105, "second").await.unwrap()["held_by"], Value::Null, "the first one was cut off");
    assert!(walk(&world, 106, "first", 1).await.is_err(), "which goes on too late");

    // What has ended gives the lease back; what is not its own, it does not.
    finish(&world, 107, &begun, true).await;
    assert_eq!(begin(&world, 108, "third").await.unwrap()["held_by"], "second");
    let finish = json!({"finish": {"date": DAY, "begun_at": at(105), "execution": "second", "has_waited": true}});
    asked(&world, 109, finish).await.unwrap();
    assert_eq!(begin(&world, 110, "third").await.unwrap()["held_by"], Value::Null);
}

#[tokio::test]
async fn execution_counts_its_day_once_and_gives_the_lease_back_when_it_is_refused() {
    let world = World::with(&[("DUEDAY_MAX_CHARGES", "1")]).await;
    world.has(&new_subscription(10, "2026-03-01")).await;
    let begun = begin(&world, 0, "first").await.unwrap();
    // One more is due by now. The day was begun; that it is more than was counted, the next one finds.
    world.has(&new_subscription(9, "2026-03-01")).await;
    for shard in 0..4 {
        walk(&world, 1, "first", shard).await.unwrap();
    }
    assert_eq!(world.charged().len(), 2);
    assert_eq!(finish(&world, 2, &begun, false).await["done"], true);
    let refused = begin(&world, 3, "second").await.unwrap_err();
    assert!(refused.starts_with("Refused: the day is not begun: "), "{refused}");
    assert!(begin(&world, 4, "third").await.unwrap_err().starts_with("Refused: "), "the lease is free");
}
