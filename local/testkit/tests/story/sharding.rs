//! Tests of an increase of the table's number of shards, also during a month and during a run, and of the recommended
//! number of shards.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use billing::{GatewayAccount, GatewayToken, Payment, Subscription, SubscriptionStatus};
use chrono::{DateTime, NaiveDate, Utc};
use emulator::EngineConnection;
use futures::StreamExt as _;
use gateways::{ChargeRequest, ChargeResponse, GatewayError, PaymentGateway};
use proptest::prelude::*;
use sandbox::Sandbox;
use store::{PeakLoad, ReshardOutcome, Table};

use crate::world::{World, billing_time, date, nonzero_counts, numbered_subscription};

/// The numbers of subscriptions that were moved to their new shards, and of postponed moves.
struct ReshardCounts {
    moved: u32,
    postponed: u32,
}

/// Moves all subscriptions to their new shards.
async fn reshard_all(table: &Table, today: NaiveDate) -> ReshardCounts {
    let settings = table.get_settings().await.unwrap().unwrap();
    let all: Vec<Subscription> = table.all_subscriptions().map(Result::unwrap).collect().await;
    let mut counts = ReshardCounts { moved: 0, postponed: 0 };
    for stored in all {
        match table.reshard_subscription(stored, &settings, today).await.unwrap() {
            ReshardOutcome::Moved => counts.moved += 1,
            ReshardOutcome::Postponed => counts.postponed += 1,
            ReshardOutcome::AlreadyInPlace => {}
        }
    }
    counts
}

/// The sandbox gateway, but its third charge increases the number of shards and moves the subscriptions, as an operator
/// may do during a run.
#[derive(Debug)]
struct GatewayThatAddsShards {
    sandbox: Arc<Sandbox>,
    table: Table,
    today: NaiveDate,
    /// The number of charge requests.
    charges: AtomicU32,
}

#[async_trait]
impl PaymentGateway for GatewayThatAddsShards {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        self.sandbox.account().await
    }

    async fn charge(&self, request: &ChargeRequest) -> ChargeResponse {
        if self.charges.fetch_add(1, Ordering::Relaxed) == 2 {
            assert_eq!(self.table.raise_shard_count(8, None).await.unwrap(), 8);
            let ReshardCounts { moved, postponed } = reshard_all(&self.table, self.today).await;
            assert!(moved > 0 && postponed > 0, "{moved} moved, {postponed} postponed");
        }
        self.sandbox.charge(request).await
    }

    async fn payments_of_customer(
        &self,
        customer: &GatewayToken,
        since: DateTime<Utc>,
    ) -> Result<Vec<Payment>, GatewayError> {
        self.sandbox.payments_of_customer(customer, since).await
    }

    async fn payment(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        self.sandbox.payment(id).await
    }
}

#[tokio::test]
async fn each_payment_is_charged_once_if_shards_are_added_during_a_run() {
    let world = World::new().await;
    let settings = world.table.get_settings().await.unwrap().unwrap();
    let all: Vec<Subscription> = (0..30)
        .map(|n| {
            let subscription = numbered_subscription(n, 1 + i64::from(n % 28), "2026-02-28");
            Subscription { shard: settings.shard_of(&subscription.account), ..subscription }
        })
        .collect();
    for subscription in &all {
        world.store(subscription).await;
    }
    // The payment batch did not run in the first days of March, so many payments are due when the shards are added.
    let today = date("2026-03-10");
    let (sandbox, table) = (world.sandbox.clone(), world.table.clone());
    let gateway = Arc::new(GatewayThatAddsShards { sandbox, table, today, charges: AtomicU32::new(0) });
    let payments = world.separate_payment_batch(EngineConnection::default(), gateway).await;
    for day in today.iter_days().take(31) {
        world.run_payment_batch(&payments, &day.to_string(), billing_time(&day.to_string())).await;
        reshard_all(&world.table, day).await;
    }
    for subscription in &all {
        let receipts: Vec<String> = world.receipt_due_dates(subscription).await;
        let until = subscription.first_due_on.iter_days().step_by(1).take_while(|day| *day <= date("2026-04-09"));
        let expected: Vec<String> = until
            .filter(|day| chrono::Datelike::day(day) == chrono::Datelike::day(&subscription.first_due_on))
            .map(|day| day.to_string())
            .collect();
        assert_eq!(receipts, expected, "{}", subscription.account);
    }
    let settings = world.table.get_settings().await.unwrap().unwrap();
    assert_eq!(reshard_all(&world.table, date("2026-04-10")).await.moved, 0, "no subscription is left to move");
    let stored = world.table.all_subscriptions().map(Result::unwrap).collect::<Vec<_>>().await;
    assert!(stored.iter().any(|stored| stored.shard > 3 && stored.shard == settings.shard_of(&stored.account)));
}

#[tokio::test]
async fn reshard_postpones_subscriptions_that_are_due_by_tomorrow_or_have_an_open_attempt() {
    let world = World::new().await;
    world.table.raise_shard_count(64, None).await.unwrap();
    let settings = world.table.get_settings().await.unwrap().unwrap();
    let subscription = numbered_subscription(1, 10, "2026-03-01");
    assert_ne!(subscription.shard, settings.shard_of(&subscription.account));
    world.store(&subscription).await;
    let reminded = |stored: &Subscription| Subscription { next_reminder_on: None, ..stored.clone() };
    let reshard_on = async |day: &str| {
        let stored = world.load(&subscription).await;
        world.table.reshard_subscription(stored, &settings, date(day)).await.unwrap()
    };
    assert_eq!(reshard_on("2026-03-02").await, ReshardOutcome::Postponed, "the reminder is due on March 3");
    world.change_subscription(&subscription, reminded).await;
    for day in ["2026-03-09", "2026-03-10", "2026-03-11"] {
        assert_eq!(reshard_on(day).await, ReshardOutcome::Postponed, "{day}: the payment is due on March 10");
    }
    // An open attempt postpones the move, even if the subscription's row in the payment index has a later date.
    world.inject_charge_fault(emulator::Fault::LostAfter);
    assert_eq!(nonzero_counts(&world.run_payments("2026-03-10").await), [("in_doubt", 1)]);
    let far = |stored: &Subscription| Subscription { next_payment_on: Some(date("2026-04-10")), ..stored.clone() };
    world.change_subscription(&subscription, far).await;
    assert_eq!(reshard_on("2026-03-10").await, ReshardOutcome::Postponed);
    let settled = |stored: &Subscription| Subscription { attempt: None, ..stored.clone() };
    world.change_subscription(&subscription, settled).await;
    assert_eq!(reshard_on("2026-03-10").await, ReshardOutcome::Moved);
    assert_eq!(reshard_on("2026-03-10").await, ReshardOutcome::AlreadyInPlace);
    // A subscription that is in none of the indexes can be moved, too.
    let paused = |stored: &Subscription| Subscription {
        status: SubscriptionStatus::Paused,
        next_payment_on: None,
        next_reminder_on: None,
        shard: 0,
        ..stored.clone()
    };
    world.change_subscription(&subscription, paused).await;
    assert_eq!(reshard_on("2026-03-10").await, ReshardOutcome::Moved);
}

#[tokio::test]
async fn number_of_shards_is_increased_and_never_decreased() {
    let world = World::new().await;
    for (requested, expected) in [(4, 4), (9, 9), (3, 9), (9, 9), (10, 10)] {
        assert_eq!(world.table.raise_shard_count(requested, None).await.unwrap(), expected, "{requested}");
        assert_eq!(world.table.get_settings().await.unwrap().unwrap().shards, expected);
    }
}

#[test]
fn required_shards_at_the_limits_of_the_formula() {
    // Returns the numbers of shards that reads, payments and imports need, and the recommended number.
    let needed = |payments, imports, row_bytes| {
        let needed = PeakLoad { payments, imports, row_bytes }.required_shards();
        (needed.reads, needed.payments, needed.imports, needed.recommended())
    };
    assert_eq!(needed(0, 0, 1), (0, 0, 0, 1), "at least one shard is needed");
    assert_eq!(needed(333, 0, 400), (1, 1, 0, 1));
    assert_eq!(needed(334, 0, 400), (1, 2, 0, 2));
    assert_eq!(needed(6_000, 0, 4_096), (1, 18, 0, 18));
    assert_eq!(needed(6_001, 0, 4_097), (3, 19, 0, 19));
    assert_eq!(needed(1, 667, 400), (1, 1, 2, 2));
    assert_eq!(needed(100, 0, 400_000), (2, 1, 0, 2), "large rows need more reads");
}

proptest! {
    /// A DynamoDB partition supports 1,000 write units and 3,000 read units per second.
    #[test]
    fn recommended_shards_keep_each_partition_within_its_limits(payments in 0_u32..1_000_000, imports in 0_u32..1_000_000, row_bytes in 1_u32..400_000) {
        let shards = u64::from(PeakLoad { payments, imports, row_bytes }.required_shards().recommended());
        let units = u64::from(row_bytes.div_ceil(4_096));
        prop_assert!(u64::from(payments) * 2 <= shards * 1_000);
        prop_assert!(u64::from(imports) <= shards * 1_000);
        prop_assert!(u64::from(payments) * units <= shards * 6_000);
    }
}
