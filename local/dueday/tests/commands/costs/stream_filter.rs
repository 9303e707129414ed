//! Checks that the filter of a table's stream drops only changes that cause no event, and that it drops the claims of
//! payments and reminders.

use std::sync::Arc;

use billing::{Attempt, ClaimToken, ReminderClaim, Subscription, SubscriptionId, SubscriptionStatus};
use chrono::DateTime;
use clock::SimulatedClock;
use emulator::{Engine, TableStream};
use orders::{OrderStatus, PaidPeriod};
use orders_desk::OrderDesk;
use orders_table::{BucketCount, OrdersTable};
use serde_json::{Value, json};
use simulator::{Company, CompanySize, is_dropped_by_stream_filter};
use store::{CreateOutcome, Table, UpdateOutcome};
use testkit::{sample_account, sample_subscription};
use ulid::Ulid;

use super::stack::Stack;
use super::workload::{new_records, publish};

/// The largest number of patterns that Lambda allows in a filter ("Event filtering" in the Lambda Developer Guide).
const MAX_PATTERNS: usize = 5;

/// A table with the stream of its changes, and the position up to which the test has read the stream.
struct World {
    engine: Engine,
    table: Table,
    stream: TableStream,
    position: Option<String>,
}

impl World {
    /// Creates an empty table, and enables its stream.
    async fn new() -> Self {
        let engine = Engine::in_memory();
        let table = Table::new(engine.client(), "dueday");
        table.create_if_absent().await.unwrap();
        let stream = engine.stream("dueday").unwrap();
        Self { engine, table, stream, position: None }
    }

    /// Returns the stream record of the only change since the last call. Panics if there is not exactly one change.
    fn record(&mut self) -> Value {
        let records = new_records(&self.stream, &mut self.position);
        let [record] = records.as_slice() else { panic!("not one change: {records:?}") };
        record.clone()
    }

    /// Executes a request that the code of Dueday never sends, such as the deletion of an item by a person.
    fn execute(&self, operation: &str, mut request: Value) {
        request["TableName"] = "dueday".into();
        self.engine.execute(operation, &request).unwrap();
    }
}

/// Returns the item before and after the change in `record`, in DynamoDB JSON; `None` if the item did not exist.
fn images(record: &Value) -> (Option<&Value>, Option<&Value>) {
    (record["dynamodb"].get("OldImage"), record["dynamodb"].get("NewImage"))
}

/// Returns the sort key of the item in `record`.
fn sort_key(record: &Value) -> String {
    record["dynamodb"]["Keys"]["SK"]["S"].as_str().unwrap().to_owned()
}

/// Returns a copy of `subscription`, with an open attempt if `has_attempt` is true, and with a claimed reminder if
/// `has_reminder` is true.
fn claimed_copy(subscription: &Subscription, has_attempt: bool, has_reminder: bool) -> Subscription {
    let (claim_token, leased_until) = (ClaimToken(Ulid(3)), DateTime::UNIX_EPOCH);
    let attempt = Attempt {
        table: Some(Ulid(1)),
        no: subscription.attempt_seq,
        due_on: subscription.due_on,
        amount: subscription.price,
        payment_method: subscription.payment_method.clone(),
        claimed_at: DateTime::UNIX_EPOCH,
        leased_until,
        claim_token,
    };
    Subscription {
        attempt: has_attempt.then_some(attempt),
        reminder_claim: has_reminder.then_some(ReminderClaim { claim_token, leased_until }),
        ..subscription.clone()
    }
}

#[tokio::test]
async fn stream_filter_drops_only_the_change_that_opens_an_attempt_or_claims_a_reminder() {
    let (stack, mut world) = (Stack::read(), World::new().await);
    assert!(stack.stream_filters().len() <= MAX_PATTERNS);
    world.table.put_account(&sample_account()).await.unwrap();
    assert!(stack.is_passed(&world.record()), "an account was created");
    let both = [false, true];
    let states: Vec<(bool, bool)> = both.iter().flat_map(|attempt| both.map(|reminder| (*attempt, reminder))).collect();
    let (mut dropped, mut number) = (0, 0);
    for (old_attempt, old_reminder) in &states {
        for (new_attempt, new_reminder) in &states {
            for is_public in both {
                number += 1;
                let created = Subscription {
                    id: SubscriptionId::new(Ulid::from_parts(2, number)),
                    attempt_seq: 1,
                    ..sample_subscription(10, "2026-01-01".parse().unwrap())
                };
                let old = claimed_copy(&created, *old_attempt, *old_reminder);
                let created = world.table.create_subscription(&old, None).await.unwrap();
                assert_eq!(created, CreateOutcome::Created);
                // The creation also writes an item with the code of the subscription.
                let created = new_records(&world.stream, &mut world.position);
                let created = created.iter().find(|record| images(record).1.unwrap().get("Status").is_some()).unwrap();
                assert!(stack.is_passed(created), "a subscription was created: {created:#}");
                let new = claimed_copy(&old, *new_attempt, *new_reminder);
                let status = if is_public { SubscriptionStatus::Paused } else { old.status };
                // Each write of a subscription changes its version.
                let written = world.table.update_subscription(&old, &Subscription { status, ..new }).await.unwrap();
                assert!(matches!(written, UpdateOutcome::Applied(_)));
                let records = new_records(&world.stream, &mut world.position);
                let Some(record) = records.first() else { continue };
                let (before, after) = images(record);
                let is_claim = is_dropped_by_stream_filter(&sort_key(record), before, after);
                assert_eq!(stack.is_passed(record), !is_claim, "{record:#}");
                let events = publish(&[record]).await;
                assert!(stack.is_passed(record) || events.is_empty() || is_public, "{record:#}");
                assert_eq!(!events.is_empty(), is_public, "{record:#}");
                dropped += usize::from(is_claim);
            }
        }
    }
    assert_eq!(dropped, 6, "an attempt, a reminder or both were claimed, each with and without another change");
}

#[tokio::test]
async fn stream_filter_drops_deleted_items_except_accounts() {
    let (stack, mut world) = (Stack::read(), World::new().await);
    // The columns are: the sort key of an item of an account, and whether the filter passes the deletion of this item.
    for (sort_key, is_passed) in [
        ("ACC#acme", true),
        ("REC#2026-01-31#SKU#gold#SUB#1", false),
        ("SUB#1#SKU#gold", false),
        ("ATT#2026-01-31#SUB#1#1", false),
        ("ACTION#1", false),
    ] {
        let keys = json!({ "PK": { "S": "ACC#acme" }, "SK": { "S": sort_key } });
        let mut item = keys.clone();
        item["AttemptNo"] = json!({ "N": "1" });
        world.execute("PutItem", json!({ "Item": item }));
        assert!(stack.is_passed(&world.record()), "a new item is passed, also an attempt record with a number");
        world.execute("DeleteItem", json!({ "Key": keys }));
        let deleted = world.record();
        assert_eq!(stack.is_passed(&deleted), is_passed, "{deleted:#}");
        let (before, after) = images(&deleted);
        assert_eq!(is_dropped_by_stream_filter(sort_key, before, after), !is_passed, "{sort_key}");
    }
    for (partition_key, is_passed) in
        [("AUDITS", true), ("RECONCILED", true), ("CTL#heartbeat", true), ("CTL#settings", false), ("RUN#1", false)]
    {
        let item = json!({ "PK": { "S": partition_key }, "SK": { "S": "one" } });
        world.execute("PutItem", json!({ "Item": item }));
        assert_eq!(stack.is_passed(&world.record()), is_passed, "{partition_key}");
    }
}

#[test]
fn stream_filter_uses_only_the_key_that_lambda_documents() {
    for pattern in Stack::read().stream_filters() {
        let keys: Vec<&String> = pattern.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["dynamodb"]);
    }
}

#[tokio::test]
async fn stream_filter_of_the_orders_table_passes_only_orders_and_every_change_with_an_event() {
    let engine = Engine::in_memory();
    let table = OrdersTable::new(engine.client(), "dueday-orders");
    table.create_if_absent().await.unwrap();
    let stream = engine.stream("dueday-orders").unwrap();
    let desk = OrderDesk::new(table, BucketCount::default(), Arc::new(SimulatedClock::new(DateTime::UNIX_EPOCH, 1)));
    let company = Company::new(CompanySize { customers: 2, employees: 5, products: 2, warehouses: 1, months: 1 }, 5);
    for product in &company.products {
        desk.table.create_product(product).await.unwrap();
    }
    let (sku, lines) = &company.skus[0];
    desk.table.set_lines_of_sku(sku, lines).await.unwrap();
    let paid = PaidPeriod { sku: sku.clone(), ..company.paid[0].clone() };
    desk.place_order(&paid).await.unwrap();
    desk.advance_order(paid.order, OrderStatus::Cancelled).await.unwrap();

    let (stack, mut passed) = (Stack::read(), 0);
    for record in new_records(&stream, &mut None) {
        let keys = &record["dynamodb"]["Keys"];
        let begins_with = |key: &str, prefix: &str| keys[key]["S"].as_str().unwrap().starts_with(prefix);
        let is_order = begins_with("PK", "ORDER#") && begins_with("SK", "CUSTOMER#");
        assert_eq!(stack.is_passed_of_orders(&record), is_order, "{keys}");
        let events = publish(&[&record]).await;
        assert_eq!(!events.is_empty(), is_order, "{keys}");
        passed += usize::from(is_order);
    }
    assert_eq!(passed, 2, "the order was placed and cancelled");
}
