//! Tests with stale reads of the payment index (outdated, missing and duplicate rows), and with a table that
//! temporarily rejects requests. A row of the index is only a hint. The stored item decides whether a payment is due.

use std::collections::HashMap;
use std::sync::Mutex;

use aws_sdk_dynamodb::types::AttributeValue;
use billing::{Settlement, Subscription};
use chrono::TimeDelta;
use emulator::{EngineConnection, ExternalOperation, Fault};
use payments::PaymentBatch;
use serde_json::Value;
use sweep::Sweep;
use testkit::fault_in_first_calls;

use crate::world::{World, billing_time, cancel, date, key, new_subscription, nonzero_counts, pause};

/// The day on which the subscriptions of these tests are due.
const DAY: &str = "2026-03-10";

/// Returns a connection to the table that always repeats the first response to each query of the index.
fn connection_with_frozen_index() -> EngineConnection {
    let first_responses = Mutex::new(HashMap::<String, Value>::new());
    EngineConnection::with_changed_responses(move |request, response| {
        if request.get("IndexName").is_some() {
            let query = [&request["ExpressionAttributeValues"][":shard"], &request["ExclusiveStartKey"]];
            *response = first_responses.lock().unwrap().entry(format!("{query:?}")).or_insert(response.clone()).clone();
        }
    })
}

/// Returns a connection to the table that applies `change` to the rows of each response of the index.
fn connection_with_changed_rows(change: impl Fn(&mut Vec<Value>) + Send + Sync + 'static) -> EngineConnection {
    EngineConnection::with_changed_responses(move |request, response| {
        if let (Some(_), Some(rows)) = (request.get("IndexName"), response["Items"].as_array_mut()) {
            change(rows);
        }
    })
}

/// Returns a payment batch that always sees the payment index in the state at the time of this call, even after later
/// changes of the index. To record the index, the batch runs once with charging switched off.
async fn batch_with_stale_index(world: &World) -> Sweep<PaymentBatch> {
    let payments = world.separate_payment_batch(connection_with_frozen_index(), world.gateway.clone()).await;
    world.table.set_charging(false, None).await.unwrap();
    assert_eq!(nonzero_counts(&world.run_payment_batch(&payments, DAY, billing_time(DAY)).await), [("skipped", 1)]);
    world.table.set_charging(true, None).await.unwrap();
    payments
}

#[tokio::test]
async fn row_that_is_no_longer_due_is_skipped() {
    type Change = fn(&Subscription) -> Settlement;
    let changes: [(&str, Change); 3] = [
        ("paused", |s| pause(s).into()),
        ("cancelled", cancel),
        ("due date moved", |s| {
            let on = date("2026-03-12");
            Subscription { due_on: on, next_payment_on: Some(on), ..s.clone() }.into()
        }),
    ];
    for (case, change) in changes {
        let (world, subscription) = (World::new().await, new_subscription(10, "2026-03-01"));
        world.store(&subscription).await;
        let payments = batch_with_stale_index(&world).await;
        world.change_subscription(&subscription, change).await;
        let before = world.load(&subscription).await;
        let report = world.run_payment_batch(&payments, DAY, billing_time(DAY)).await;
        assert_eq!((nonzero_counts(&report), world.charged_due_dates().len()), (vec![("skipped", 1)], 0), "{case}");
        assert_eq!(world.load(&subscription).await, before, "{case}: the subscription is unchanged");
    }
}

#[tokio::test]
async fn row_of_a_paid_subscription_is_skipped_on_the_same_and_on_the_next_day() {
    let (world, subscription) = (World::new().await, new_subscription(10, "2026-03-01"));
    world.store(&subscription).await;
    let payments = batch_with_stale_index(&world).await;
    assert_eq!(nonzero_counts(&world.run_payments(DAY).await), [("paid", 1)]);
    for day in [DAY, "2026-03-11"] {
        assert_eq!(
            nonzero_counts(&world.run_payment_batch(&payments, day, billing_time(day)).await),
            [("skipped", 1)],
            "{day}"
        );
    }
    assert_eq!(world.charged_due_dates(), [DAY]);
}

#[tokio::test]
async fn row_of_a_deleted_item_is_skipped() {
    let (world, subscription) = (World::new().await, new_subscription(10, "2026-03-01"));
    world.store(&subscription).await;
    let payments = batch_with_stale_index(&world).await;
    let item_key = key(&subscription).key();
    let delete = world.table.client().delete_item().table_name(world.table.name());
    delete.key("PK", AttributeValue::S(item_key.pk)).key("SK", AttributeValue::S(item_key.sk)).send().await.unwrap();
    assert_eq!(nonzero_counts(&world.run_payment_batch(&payments, DAY, billing_time(DAY)).await), [("skipped", 1)]);
    let stored = world.table.get_subscription(&subscription.account, subscription.id).await.unwrap();
    assert_eq!((stored, world.charged_due_dates().len()), (None, 0), "the claim does not create the item");
}

#[tokio::test]
async fn charge_uses_date_and_amount_of_the_item_not_of_the_stale_row() {
    let (world, subscription) = (World::new().await, new_subscription(10, "2026-03-01"));
    world.store(&subscription).await;
    let payments = batch_with_stale_index(&world).await;
    let (later, new_price) = (date("2026-03-12"), subscription.price.currency().price(1599).unwrap());
    let moved =
        |s: &Subscription| Subscription { due_on: later, next_payment_on: Some(later), price: new_price, ..s.clone() };
    world.change_subscription(&subscription, moved).await;
    assert_eq!(
        nonzero_counts(&world.run_payment_batch(&payments, "2026-03-12", billing_time("2026-03-12")).await),
        [("paid", 1)]
    );
    assert_eq!(world.charged_due_dates(), ["2026-03-12"]);
    assert_eq!(world.receipt_amounts(&subscription).await, [("2026-03-12".to_owned(), 1599)]);
}

#[tokio::test]
async fn row_that_is_missing_today_is_charged_tomorrow() {
    let (world, subscription) = (World::new().await, new_subscription(10, "2026-03-01"));
    world.store(&subscription).await;
    let batch_without_rows =
        world.separate_payment_batch(connection_with_changed_rows(Vec::clear), world.gateway.clone()).await;
    let report = world.run_payment_batch(&batch_without_rows, DAY, billing_time(DAY)).await;
    assert_eq!((report.counts.due, report.complete), (0, true));
    assert_eq!(nonzero_counts(&world.run_payments("2026-03-11").await), [("paid", 1)]);
    assert_eq!(world.charged_due_dates(), [DAY], "the charge has the original due date");
}

#[tokio::test]
async fn duplicate_row_is_charged_once() {
    let (world, subscription) = (World::new().await, new_subscription(10, "2026-03-01"));
    world.store(&subscription).await;
    let duplicates = connection_with_changed_rows(|rows| rows.extend_from_within(..));
    let payments = world.separate_payment_batch(duplicates, world.gateway.clone()).await;
    let report = world.run_payment_batch(&payments, DAY, billing_time(DAY)).await;
    assert_eq!((report.counts.due, nonzero_counts(&report)), (2, vec![("paid", 1), ("skipped", 1)]));
    assert_eq!(world.charged_due_dates(), [DAY]);
}

/// Returns the temporary errors of DynamoDB: throttling (by table, index, account or key), internal errors, and
/// conflicts with another transaction. Each error has the name of an operation that may fail with this error.
fn temporary_errors() -> Vec<(&'static str, Fault)> {
    let throttled = [
        "ThrottlingException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "InternalServerError",
    ];
    let cancelled = ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"];
    let errors = throttled
        .iter()
        .flat_map(|code| ["UpdateItem", "TransactWriteItems"].map(|operation| (operation, Fault::Refused(code))));
    errors.chain(cancelled.iter().map(|reason| ("TransactWriteItems", Fault::Cancelled(reason)))).collect()
}

#[tokio::test]
async fn charge_is_made_exactly_once_despite_temporary_errors_of_the_table() {
    for (operation, fault) in temporary_errors() {
        for times in [1, 3, u64::MAX] {
            let connection = EngineConnection::with_faults(fault_in_first_calls(
                times,
                ExternalOperation::DynamoDb(operation),
                fault,
            ));
            let case = format!("{operation} rejected {times} times with {fault:?}");
            let (world, subscription) =
                (World::with_connection(connection.without_retries()).await, new_subscription(10, "2026-03-01"));
            world.store(&subscription).await;
            let first = world.run_payments(DAY).await;
            let is_settled = operation == "TransactWriteItems" && times < u64::MAX;
            let expected = if is_settled { ("paid", 1) } else { ("in_doubt", 1) };
            assert_eq!((nonzero_counts(&first), first.complete), (vec![expected], true), "{case}");
            let without_faults = world.separate_payment_batch(EngineConnection::default(), world.gateway.clone()).await;
            world.run_payment_batch(&without_faults, DAY, billing_time(DAY) + TimeDelta::hours(2)).await;
            assert_eq!(world.charged_due_dates(), [DAY], "{case}");
            assert_eq!(world.receipt_due_dates(&subscription).await, [DAY], "{case}");
            assert_eq!(world.load(&subscription).await.attempt, None, "{case}");
        }
    }
}

/// The SDK retries a request whose response was lost. If the first request took effect, the retry conflicts with the
/// write of the first request.
#[tokio::test]
async fn claim_and_settle_recognize_a_conflict_with_their_own_retried_request() {
    for operation in ["UpdateItem", "TransactWriteItems"] {
        for has_tokens in [true, false] {
            let connection = EngineConnection::with_faults(fault_in_first_calls(
                1,
                ExternalOperation::DynamoDb(operation),
                Fault::LostAfter,
            ));
            let case = format!("{operation}, client tokens {has_tokens}");
            let connection = if has_tokens { connection } else { connection.without_transaction_tokens() };
            let (world, subscription) = (World::with_connection(connection).await, new_subscription(10, "2026-03-01"));
            world.store(&subscription).await;
            assert_eq!(nonzero_counts(&world.run_payments(DAY).await), [("paid", 1)], "{case}: paid in the same run");
            assert!(world.connection.request_counts()[operation] >= 2, "{case}: the SDK has retried");
            assert_eq!(
                (world.charged_due_dates(), world.load(&subscription).await.attempt_seq),
                (vec![DAY.to_owned()], 1)
            );
            assert_eq!(world.receipt_due_dates(&subscription).await, [DAY], "{case}");
        }
    }
}
