//! Tests of the exact DynamoDB costs of batches and lists: the number of requests by operation, and the consumed
//! capacity units of the table and its indexes, as the embedded engine reports them.

use std::collections::BTreeMap;
use std::sync::Arc;

use billing::Subscription;
use chrono::TimeDelta;
use emulator::EngineConnection;
use store::Paging;
use sweep::{BatchRequest, BatchTask, Sweep};

use crate::world::{World, billing_time, date, numbered_subscription};

/// The day of the measured runs.
const DAY: &str = "2026-03-10";

/// The number of requests by DynamoDB operation, and the capacity units of the table, GSI-1 (the reminder index) and
/// GSI-2 (the payment index).
type Cost = (BTreeMap<String, u64>, [f64; 3]);

/// Returns the cost of the requests that were sent through `connection` after an earlier moment. `before` contains the
/// request counts at that moment.
fn measure_cost_since(connection: &EngineConnection, before: &BTreeMap<String, u64>) -> Cost {
    let units = connection.take_capacity_units();
    let requests = connection.request_counts().into_iter().filter_map(|(operation, count)| {
        let new = count - before.get(&operation).copied().unwrap_or(0);
        (new > 0).then_some((operation, new))
    });
    (requests.collect(), ["table", "GSI-1", "GSI-2"].map(|name| units.get(name).copied().unwrap_or(0.0)))
}

/// Returns the cost of one run of `sweep` on [`DAY`] over shard 0.
async fn measure_cost_of_run<T: BatchTask>(world: &World, connection: &EngineConnection, sweep: &Sweep<T>) -> Cost {
    world.clock.set(billing_time(DAY));
    connection.take_capacity_units();
    let before = connection.request_counts();
    let request = BatchRequest { shards: Some(vec![0]), ..BatchRequest::for_date(date(DAY)) };
    let report = sweep.run(&request, billing_time(DAY) + TimeDelta::hours(1)).await.unwrap();
    assert!(report.is_done(), "{report:?}");
    measure_cost_since(connection, &before)
}

/// Returns the cost of a run that processes `rows` due rows. `row` creates a subscription from its number. Runs
/// the payment batch if `is_payments` is true, otherwise the reminder batch. The measured run is not the first run on
/// its table.
async fn measure_cost_of_rows(rows: u32, row: &impl Fn(u32) -> Subscription, is_payments: bool) -> Cost {
    let world = World::new().await;
    let connection = Arc::new(EngineConnection::counting_capacity_units());
    let mut deployment = world.system.with_connection(connection.clone());
    deployment.config.limits.page_rows = 200;
    let (payments, reminders) = (deployment.payment_batch().await.unwrap(), deployment.reminder_batch().await.unwrap());
    let run = async || match is_payments {
        true => measure_cost_of_run(&world, &connection, &payments).await,
        false => measure_cost_of_run(&world, &connection, &reminders).await,
    };
    // The first run on a table makes extra requests, because it stores the gateway's account in the settings.
    run().await;
    for n in 0..rows {
        world.store(&Subscription { shard: 0, ..row(n) }).await;
    }
    run().await
}

/// Returns the cost of one row of the payment batch if `is_payments` is true, otherwise of the reminder batch. The cost
/// is the difference between the costs of twenty rows and of ten rows, divided by ten. Both runs read the same number
/// of list pages. `row` creates a subscription from its number.
async fn compute_cost_per_row(row: impl Fn(u32) -> Subscription, is_payments: bool) -> Cost {
    let (ten, ten_units) = measure_cost_of_rows(10, &row, is_payments).await;
    let (twenty, twenty_units) = measure_cost_of_rows(20, &row, is_payments).await;
    let differences = twenty.into_iter().map(|(operation, count)| {
        let difference = count - ten.get(&operation).copied().unwrap_or(0);
        assert_eq!(difference % 10, 0, "{operation}");
        (operation, difference / 10)
    });
    let units = [0, 1, 2].map(|index| ((twenty_units[index] - ten_units[index]) / 10.0).floor());
    (differences.filter(|(_, count)| *count > 0).collect(), units)
}

/// Returns the expected number of requests for each DynamoDB operation.
fn requests_by_operation(expected: &[(&str, u64)]) -> BTreeMap<String, u64> {
    expected.iter().map(|(operation, count)| ((*operation).to_owned(), *count)).collect()
}

/// Returns the subscription with the number `n`, which is due on [`DAY`] and whose reminder was sent.
fn reminded_subscription(n: u32) -> Subscription {
    Subscription { next_reminder_on: None, ..numbered_subscription(n * 4, 10, "2026-03-01") }
}

#[tokio::test]
async fn payment_costs_one_update_one_transaction_and_eight_capacity_units() {
    let (requests, units) = compute_cost_per_row(reminded_subscription, true).await;
    assert_eq!(requests, requests_by_operation(&[("TransactWriteItems", 1), ("UpdateItem", 1)]));
    // Capacity units of the table: 1 for the claim, and 2 + 2 for the two items of the settlement's transaction.
    // Capacity units of the reminder index: 1 for the new row. Capacity units of the payment index: 2 to move the row.
    assert_eq!(units, [5.0, 1.0, 2.0]);

    let (requests, units) = compute_cost_per_row(|n| numbered_subscription(n * 4, 10, "2026-03-01"), true).await;
    assert_eq!(requests, requests_by_operation(&[("TransactWriteItems", 1), ("UpdateItem", 1)]));
    assert_eq!(
        units,
        [5.0, 2.0, 2.0],
        "the reminder was not sent, so the row of the reminder index moves too: 2 units"
    );
}

#[tokio::test]
async fn payment_costs_eleven_units_if_the_subscription_item_exceeds_a_kilobyte() {
    let large = |n| Subscription {
        product_name: "x".repeat(200).parse().unwrap(),
        email: Some(format!("{}@{}.example.com", "a".repeat(60), "b".repeat(60)).parse().unwrap()),
        payment_method: billing::PaymentMethod {
            customer: "c".repeat(190).parse().unwrap(),
            payment_method: "p".repeat(190).parse().unwrap(),
        },
        ..reminded_subscription(n)
    };
    let world = World::new().await;
    world.store(&large(0)).await;
    // Measure only the claim, because the sandbox cannot charge a payment method with such a long invented id. The
    // claim costs 2 capacity units, which shows that the subscription's item with its attempt is larger than a
    // kilobyte.
    let connection = Arc::new(EngineConnection::counting_capacity_units());
    let table = world.system.with_connection(connection.clone()).table;
    let now = billing_time(DAY);
    let claim =
        store::Claim { token: billing::ClaimToken(ulid::Ulid(9)), now, leased_until: now + TimeDelta::minutes(20) };
    connection.take_capacity_units();
    let key = crate::world::key(&large(0));
    table.claim_payment(&key, date(DAY), ulid::Ulid(7), claim).await.unwrap();
    assert_eq!(
        connection.take_capacity_units()["table"],
        2.0,
        "the claim costs 2 units; with 4 + 2 for the settlement and 3 for the indexes, the payment costs eleven"
    );
}

#[tokio::test]
async fn reminder_needs_two_updates_and_one_read_of_the_account() {
    let (requests, units) = compute_cost_per_row(|n| numbered_subscription(n * 4, 15, "2026-03-01"), false).await;
    assert_eq!(requests, requests_by_operation(&[("GetItem", 1), ("UpdateItem", 2)]));
    // Capacity units of the table: 1 for the claim, 1 for the mark that the reminder was sent, and 1 to read the
    // account with its mail address. Capacity units of the reminder index: 1 to remove the row.
    assert_eq!(units, [3.0, 1.0, 0.0]);
}

#[tokio::test]
async fn run_over_a_shard_without_due_rows_needs_one_query_and_one_run_record_per_lane() {
    let (payments, _) = measure_cost_of_rows(0, &reminded_subscription, true).await;
    // All three GetItem requests read the settings: one for the run, and two for the list pages of the two lanes (due
    // payments and open attempts). DescribeTable shows that the table is not a restored backup.
    let run = [("DescribeTable", 1), ("GetItem", 3), ("PutItem", 2), ("Query", 2), ("UpdateItem", 2)];
    assert_eq!(payments, requests_by_operation(&run));
    let (reminders, _) = measure_cost_of_rows(0, &reminded_subscription, false).await;
    let run = [("DescribeTable", 1), ("GetItem", 1), ("PutItem", 1), ("Query", 1), ("UpdateItem", 1)];
    assert_eq!(reminders, requests_by_operation(&run));
}

#[tokio::test]
async fn lists_of_an_account_need_one_query_per_list_page() {
    let world = World::new().await;
    let subscription = reminded_subscription(1);
    world.store(&subscription).await;
    let connection = Arc::new(EngineConnection::counting_capacity_units());
    let table = world.system.with_connection(connection.clone()).table;
    let one = Paging { after: None, limit: Some(1) };
    table.get_subscriptions_by_account(&subscription.account, &one).await.unwrap();
    table.get_receipts_by_account(&subscription.account, &one, billing_time(DAY)).await.unwrap();
    assert_eq!(connection.request_counts(), requests_by_operation(&[("Query", 2)]));
}
