//! What things cost, exactly: requests by operation, and capacity units of the table and its indexes, as the engine bills
//! them.

use std::collections::BTreeMap;
use std::sync::Arc;

use billing::Subscription;
use chrono::TimeDelta;
use emulator::Wire;
use store::Paging;
use sweep::{BatchRequest, Sweep, Task};

use crate::world::{World, another, date, morning};

const DAY: &str = "2026-03-10";

/// Requests by operation, and units of table, GSI-1 and GSI-2.
type Cost = (BTreeMap<String, u64>, [f64; 3]);

fn cost_of(wire: &Wire, before: &BTreeMap<String, u64>) -> Cost {
    let units = wire.take_units();
    let requests = wire.requests().into_iter().filter_map(|(operation, count)| {
        let made = count - before.get(&operation).copied().unwrap_or(0);
        (made > 0).then_some((operation, made))
    });
    (requests.collect(), ["table", "GSI-1", "GSI-2"].map(|name| units.get(name).copied().unwrap_or(0.0)))
}

/// What a run of `sweep` over shard 0 costs.
async fn run_cost<T: Task>(world: &World, wire: &Wire, sweep: &Sweep<T>) -> Cost {
    world.clock.set(morning(DAY));
    wire.take_units();
    let before = wire.requests();
    let request = BatchRequest { shards: Some(vec![0]), ..BatchRequest::on(date(DAY)) };
    let report = sweep.run(&request, morning(DAY) + TimeDelta::hours(1)).await.unwrap();
    assert!(report.is_done(), "{report:?}");
    cost_of(wire, &before)
}

/// What a run with `rows` due costs, when the table and its gateway are known.
async fn busy_cost(rows: u32, row: &impl Fn(u32) -> Subscription, is_payments: bool) -> Cost {
    let world = World::new().await;
    let wire = Arc::new(Wire::metered());
    let mut deployment = world.system.over(wire.clone());
    deployment.config.limits.page_rows = 200;
    let (payments, reminders) = (deployment.payments().await.unwrap(), deployment.reminders().await.unwrap());
    let run = async || match is_payments {
        true => run_cost(&world, &wire, &payments).await,
        false => run_cost(&world, &wire, &reminders).await,
    };
    // The first run names the gateway in the settings.
    run().await;
    for n in 0..rows {
        world.has(&Subscription { shard: 0, ..row(n) }).await;
    }
    run().await
}

/// What each row costs: that of twenty rows less that of ten, for the pages are the same.
async fn row_cost(row: impl Fn(u32) -> Subscription, is_payments: bool) -> Cost {
    let (ten, ten_units) = busy_cost(10, &row, is_payments).await;
    let (twenty, twenty_units) = busy_cost(20, &row, is_payments).await;
    let more = twenty.into_iter().map(|(operation, count)| {
        let more = count - ten.get(&operation).copied().unwrap_or(0);
        assert_eq!(more % 10, 0, "{operation}");
        (operation, more / 10)
    });
    let written = [0, 1, 2].map(|place| ((twenty_units[place] - ten_units[place]) / 10.0).floor());
    (more.filter(|(_, count)| *count > 0).collect(), written)
}

fn counts(expected: &[(&str, u64)]) -> BTreeMap<String, u64> {
    expected.iter().map(|(operation, count)| ((*operation).to_owned(), *count)).collect()
}

/// Due on the day, and reminded of it.
fn reminded(n: u32) -> Subscription {
    Subscription { next_reminder_on: None, ..another(n * 4, 10, "2026-03-01") }
}

#[tokio::test]
async fn payment_costs_one_claim_one_transaction_and_eight_units_and_reads_nothing() {
    let (requests, units) = row_cost(reminded, true).await;
    assert_eq!(requests, counts(&[("TransactWriteItems", 1), ("UpdateItem", 1)]));
    // The claim 1, the settlement 2 + 2 in a transaction; into the reminder index 1, along the payment index 2.
    assert_eq!(units, [5.0, 1.0, 2.0]);

    let (requests, units) = row_cost(|n| another(n * 4, 10, "2026-03-01"), true).await;
    assert_eq!(requests, counts(&[("TransactWriteItems", 1), ("UpdateItem", 1)]));
    assert_eq!(units, [5.0, 2.0, 2.0], "one more when its reminder was never sent: it moves along that index, too");
}

#[tokio::test]
async fn payment_of_an_item_above_a_kilobyte_costs_eleven_units() {
    let large = |n| Subscription {
        product_name: "x".repeat(200).parse().unwrap(),
        email: Some(format!("{}@{}.example.com", "a".repeat(60), "b".repeat(60)).parse().unwrap()),
        payment_method: billing::PaymentMethod {
            customer: "c".repeat(190).parse().unwrap(),
            payment_method: "p".repeat(190).parse().unwrap(),
        },
        ..reminded(n)
    };
    let world = World::new().await;
    world.has(&large(0)).await;
    // The sandbox knows no such card: what the claim alone costs tells that the item is above a kilobyte with its attempt.
    let wire = Arc::new(Wire::metered());
    let table = world.system.over(wire.clone()).table;
    let now = morning(DAY);
    let claim = store::Claim { token: billing::Token(ulid::Ulid(9)), now, leased_until: now + TimeDelta::minutes(20) };
    wire.take_units();
    let key = crate::world::key(&large(0));
    table.claim_payment(&key, date(DAY), ulid::Ulid(7), claim).await.unwrap();
    assert_eq!(
        wire.take_units()["table"],
        2.0,
        "the claim; the settlement is then 4 + 2, and 3 in the indexes: eleven"
    );
}

#[tokio::test]
async fn reminder_costs_a_claim_and_a_mark_and_reads_its_account() {
    let (requests, units) = row_cost(|n| another(n * 4, 15, "2026-03-01"), false).await;
    assert_eq!(requests, counts(&[("GetItem", 1), ("UpdateItem", 2)]));
    // The claim 1, the mark 1 and 1 out of the index; the account is read for its address.
    assert_eq!(units, [3.0, 1.0, 0.0]);
}

#[tokio::test]
async fn shard_with_nothing_due_costs_a_query_and_a_run_record_for_each_lane() {
    let (payments, _) = busy_cost(0, &reminded, true).await;
    // Beside them, the settings: for the run, for its gateway, and with each page.
    assert_eq!(payments, counts(&[("GetItem", 4), ("PutItem", 2), ("Query", 2), ("UpdateItem", 2)]));
    let (reminders, _) = busy_cost(0, &reminded, false).await;
    assert_eq!(reminders, counts(&[("GetItem", 1), ("PutItem", 1), ("Query", 1), ("UpdateItem", 1)]));
}

#[tokio::test]
async fn lists_of_an_account_cost_one_query_a_page() {
    let world = World::new().await;
    let subscription = reminded(1);
    world.has(&subscription).await;
    let wire = Arc::new(Wire::metered());
    let table = world.system.over(wire.clone()).table;
    let one = Paging { after: None, limit: Some(1) };
    table.get_subscriptions_by_account(&subscription.account, &one).await.unwrap();
    table.get_receipts_by_account(&subscription.account, &one, morning(DAY)).await.unwrap();
    assert_eq!(wire.requests(), counts(&[("Query", 2)]));
}
