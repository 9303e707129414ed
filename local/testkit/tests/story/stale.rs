//! An index that lags behind, and a table that does not take everything at once. What the index shows is a hint: rows of
//! what was, rows that are missing, rows that come twice.

use std::collections::HashMap;
use std::sync::Mutex;

use aws_sdk_dynamodb::types::AttributeValue;
use billing::{Settlement, Subscription};
use chrono::TimeDelta;
use emulator::{Fault, Operation, Wire};
use payments::ChargeDue;
use serde_json::Value;
use sweep::Sweep;
use testkit::first;

use crate::world::{World, cancelled, counts, date, key, morning, new_subscription, paused};

const DAY: &str = "2026-03-10";

/// A wire whose index shows of each shard for ever what it showed of it first.
fn frozen() -> Wire {
    let shown = Mutex::new(HashMap::<String, Value>::new());
    Wire::with_answers(move |request, answer| {
        if request.get("IndexName").is_some() {
            let part = [&request["ExpressionAttributeValues"][":shard"], &request["ExclusiveStartKey"]];
            *answer = shown.lock().unwrap().entry(format!("{part:?}")).or_insert(answer.clone()).clone();
        }
    })
}

/// A wire whose index shows what `change` makes of its rows.
fn showing(change: impl Fn(&mut Vec<Value>) + Send + Sync + 'static) -> Wire {
    Wire::with_answers(move |request, answer| {
        if let (Some(_), Some(rows)) = (request.get("IndexName"), answer["Items"].as_array_mut()) {
            change(rows);
        }
    })
}

/// A batch that goes on seeing the index as it is now: it has walked it with charging switched off.
async fn lagging(world: &World) -> Sweep<ChargeDue> {
    let payments = world.payments_over(frozen(), world.gateway.clone()).await;
    world.table.set_charging(false).await.unwrap();
    assert_eq!(counts(&world.charge_by(&payments, DAY, morning(DAY)).await), [("skipped", 1)]);
    world.table.set_charging(true).await.unwrap();
    payments
}

#[tokio::test]
async fn sweep_skips_a_row_that_is_not_due_any_more() {
    type Act = fn(&Subscription) -> Settlement;
    let acts: [(&str, Act); 3] = [
        ("paused", |s| paused(s).into()),
        ("cancelled", cancelled),
        ("moved", |s| {
            let on = date("2026-03-12");
            Subscription { due_on: on, next_payment_on: Some(on), ..s.clone() }.into()
        }),
    ];
    for (story, act) in acts {
        let (world, subscription) = (World::new().await, new_subscription(10, "2026-03-01"));
        world.has(&subscription).await;
        let payments = lagging(&world).await;
        world.customer(&subscription, act).await;
        let before = world.stored(&subscription).await;
        let report = world.charge_by(&payments, DAY, morning(DAY)).await;
        assert_eq!((counts(&report), world.charged().len()), (vec![("skipped", 1)], 0), "{story}");
        assert_eq!(world.stored(&subscription).await, before, "{story}: it is as it was");
    }
}

#[tokio::test]
async fn sweep_skips_the_row_of_a_payment_that_was_made_also_the_day_after() {
    let (world, subscription) = (World::new().await, new_subscription(10, "2026-03-01"));
    world.has(&subscription).await;
    let payments = lagging(&world).await;
    assert_eq!(counts(&world.charge(DAY).await), [("paid", 1)]);
    for day in [DAY, "2026-03-11"] {
        assert_eq!(counts(&world.charge_by(&payments, day, morning(day)).await), [("skipped", 1)], "{day}");
    }
    assert_eq!(world.charged(), [DAY]);
}

#[tokio::test]
async fn sweep_skips_the_row_of_a_deleted_item() {
    let (world, subscription) = (World::new().await, new_subscription(10, "2026-03-01"));
    world.has(&subscription).await;
    let payments = lagging(&world).await;
    let of = key(&subscription).key();
    let delete = world.table.client().delete_item().table_name(world.table.name());
    delete.key("PK", AttributeValue::S(of.pk)).key("SK", AttributeValue::S(of.sk)).send().await.unwrap();
    assert_eq!(counts(&world.charge_by(&payments, DAY, morning(DAY)).await), [("skipped", 1)]);
    let left = world.table.get_subscription(&subscription.account, subscription.id).await.unwrap();
    assert_eq!((left, world.charged().len()), (None, 0), "no claim brings it back");
}

#[tokio::test]
async fn sweep_charges_by_the_item_when_its_row_has_an_old_date_or_amount() {
    let (world, subscription) = (World::new().await, new_subscription(10, "2026-03-01"));
    world.has(&subscription).await;
    let payments = lagging(&world).await;
    let (later, dearer) = (date("2026-03-12"), subscription.price.currency().price(1599).unwrap());
    let moved =
        |s: &Subscription| Subscription { due_on: later, next_payment_on: Some(later), price: dearer, ..s.clone() };
    world.customer(&subscription, moved).await;
    assert_eq!(counts(&world.charge_by(&payments, "2026-03-12", morning("2026-03-12")).await), [("paid", 1)]);
    assert_eq!(world.charged(), ["2026-03-12"]);
    assert_eq!(world.receipted(&subscription).await, [("2026-03-12".to_owned(), 1599)]);
}

#[tokio::test]
async fn sweep_charges_tomorrow_a_row_that_is_missing_today() {
    let (world, subscription) = (World::new().await, new_subscription(10, "2026-03-01"));
    world.has(&subscription).await;
    let blind = world.payments_over(showing(Vec::clear), world.gateway.clone()).await;
    let report = world.charge_by(&blind, DAY, morning(DAY)).await;
    assert_eq!((report.counts.due, report.complete), (0, true));
    assert_eq!(counts(&world.charge("2026-03-11").await), [("paid", 1)]);
    assert_eq!(world.charged(), [DAY], "for the day it was due");
}

#[tokio::test]
async fn sweep_charges_a_row_that_comes_twice_once() {
    let (world, subscription) = (World::new().await, new_subscription(10, "2026-03-01"));
    world.has(&subscription).await;
    let twice = showing(|rows| rows.extend_from_within(..));
    let payments = world.payments_over(twice, world.gateway.clone()).await;
    let report = world.charge_by(&payments, DAY, morning(DAY)).await;
    assert_eq!((report.counts.due, counts(&report)), (2, vec![("paid", 1), ("skipped", 1)]));
    assert_eq!(world.charged(), [DAY]);
}

/// The ways DynamoDB refuses a request for a while, by operation: throttled by table, index, account or key, or in the
/// way of another transaction.
fn refusals() -> Vec<(&'static str, Fault)> {
    let throttled = [
        "ThrottlingException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "InternalServerError",
    ];
    let cancelled = ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"];
    let answered = throttled
        .iter()
        .flat_map(|code| ["UpdateItem", "TransactWriteItems"].map(|operation| (operation, Fault::Refused(code))));
    answered.chain(cancelled.iter().map(|reason| ("TransactWriteItems", Fault::Cancelled(reason)))).collect()
}

#[tokio::test]
async fn charge_is_neither_doubled_nor_lost_when_the_table_refuses_for_a_while() {
    for (operation, fault) in refusals() {
        for times in [1, 3, u64::MAX] {
            let wire = Wire::with_faults(first(times, Operation::DynamoDb(operation), fault));
            let story = format!("{operation} refused {times} times with {fault:?}");
            let (world, subscription) = (World::over(wire.and_no_retries()).await, new_subscription(10, "2026-03-01"));
            world.has(&subscription).await;
            let first = world.charge(DAY).await;
            let is_settled = operation == "TransactWriteItems" && times < u64::MAX;
            let expected = if is_settled { ("paid", 1) } else { ("in_doubt", 1) };
            assert_eq!((counts(&first), first.complete), (vec![expected], true), "{story}");
            let calm = world.payments_over(Wire::default(), world.gateway.clone()).await;
            world.charge_by(&calm, DAY, morning(DAY) + TimeDelta::hours(2)).await;
            assert_eq!(world.charged(), [DAY], "{story}");
            assert_eq!(world.receipts(&subscription).await, [DAY], "{story}");
            assert_eq!(world.stored(&subscription).await.attempt, None, "{story}");
        }
    }
}

/// The SDK repeats a request whose answer was lost. Repeated, a write that took effect is refused by its own condition.
#[tokio::test]
async fn claim_and_settle_recognise_a_conflict_with_their_own_repeated_request() {
    for operation in ["UpdateItem", "TransactWriteItems"] {
        for has_tokens in [true, false] {
            let wire = Wire::with_faults(first(1, Operation::DynamoDb(operation), Fault::LostAfter));
            let story = format!("{operation}, tokens {has_tokens}");
            let wire = if has_tokens { wire } else { wire.and_no_tokens() };
            let (world, subscription) = (World::over(wire).await, new_subscription(10, "2026-03-01"));
            world.has(&subscription).await;
            assert_eq!(counts(&world.charge(DAY).await), [("paid", 1)], "{story}: in the very run");
            assert!(world.wire.requests()[operation] >= 2, "{story}: the SDK asked again");
            assert_eq!((world.charged(), world.stored(&subscription).await.attempt_seq), (vec![DAY.to_owned()], 1));
            assert_eq!(world.receipts(&subscription).await, [DAY], "{story}");
        }
    }
}
