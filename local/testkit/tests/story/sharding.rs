//! More shards than before: in the middle of a month, and of a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use billing::{GatewayAccount, GatewayToken, Payment, Status, Subscription};
use chrono::{DateTime, NaiveDate, Utc};
use emulator::Wire;
use futures::StreamExt as _;
use gateways::{ChargeAnswer, ChargeRequest, GatewayError, PaymentGateway, Sandbox};
use proptest::prelude::*;
use store::{Demand, Resharded, Table};

use crate::world::{World, another, counts, date, morning};

/// Moves everything to where it belongs: how many were moved, and how many had to stay.
async fn reshard(table: &Table, today: NaiveDate) -> (u32, u32) {
    let settings = table.get_settings().await.unwrap().unwrap();
    let all: Vec<Subscription> = table.all_subscriptions().map(Result::unwrap).collect().await;
    let (mut moved, mut stay) = (0, 0);
    for stored in all {
        match table.reshard(stored, &settings, today).await.unwrap() {
            Resharded::Moved => moved += 1,
            Resharded::Stays => stay += 1,
            Resharded::InPlace => {}
        }
    }
    (moved, stay)
}

/// The sandbox; at its third charge, somebody raises the number of shards and moves what is there.
#[derive(Debug)]
struct Raises {
    sandbox: Arc<Sandbox>,
    table: Table,
    today: NaiveDate,
    seen: AtomicU32,
}

#[async_trait]
impl PaymentGateway for Raises {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        self.sandbox.account().await
    }

    async fn charge(&self, request: &ChargeRequest) -> ChargeAnswer {
        if self.seen.fetch_add(1, Ordering::Relaxed) == 2 {
            assert_eq!(self.table.raise_shards(8).await.unwrap(), 8);
            let (moved, stay) = reshard(&self.table, self.today).await;
            assert!(moved > 0 && stay > 0, "{moved} moved, {stay} stay");
        }
        self.sandbox.charge(request).await
    }

    async fn payments_of(&self, customer: &GatewayToken, since: DateTime<Utc>) -> Result<Vec<Payment>, GatewayError> {
        self.sandbox.payments_of(customer, since).await
    }

    async fn payment(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        self.sandbox.payment(id).await
    }
}

#[tokio::test]
async fn shards_are_raised_in_the_middle_of_a_month_and_of_a_run_and_everyone_is_charged_once() {
    let world = World::new().await;
    let settings = world.table.get_settings().await.unwrap().unwrap();
    let all: Vec<Subscription> = (0..30)
        .map(|n| {
            let subscription = another(n, 1 + i64::from(n % 28), "2026-02-28");
            Subscription { shard: settings.shard_of(&subscription.account), ..subscription }
        })
        .collect();
    for subscription in &all {
        world.has(subscription).await;
    }
    // The first ten days were missed: much is due at once, when it happens.
    let today = date("2026-03-10");
    let (sandbox, table) = (world.sandbox.clone(), world.table.clone());
    let gateway = Arc::new(Raises { sandbox, table, today, seen: AtomicU32::new(0) });
    let payments = world.payments_over(Wire::default(), gateway).await;
    for day in today.iter_days().take(31) {
        world.charge_by(&payments, &day.to_string(), morning(&day.to_string())).await;
        reshard(&world.table, day).await;
    }
    for subscription in &all {
        let expected: Vec<String> = world.receipts(subscription).await;
        let until = subscription.first_due_on.iter_days().step_by(1).take_while(|day| *day <= date("2026-04-09"));
        let due: Vec<String> = until
            .filter(|day| chrono::Datelike::day(day) == chrono::Datelike::day(&subscription.first_due_on))
            .map(|day| day.to_string())
            .collect();
        assert_eq!(expected, due, "{}", subscription.account);
    }
    let settings = world.table.get_settings().await.unwrap().unwrap();
    assert_eq!(reshard(&world.table, date("2026-04-10")).await.0, 0, "all that can is in its place");
    let stored = world.table.all_subscriptions().map(Result::unwrap).collect::<Vec<_>>().await;
    assert!(stored.iter().any(|stored| stored.shard > 3 && stored.shard == settings.shard_of(&stored.account)));
}

#[tokio::test]
async fn reshard_leaves_what_is_due_by_tomorrow_or_under_way() {
    let world = World::new().await;
    world.table.raise_shards(64).await.unwrap();
    let settings = world.table.get_settings().await.unwrap().unwrap();
    let subscription = another(1, 10, "2026-03-01");
    assert_ne!(subscription.shard, settings.shard_of(&subscription.account));
    world.has(&subscription).await;
    let reminded = |stored: &Subscription| Subscription { next_reminder_on: None, ..stored.clone() };
    let reshard_on = async |day: &str| {
        let stored = world.stored(&subscription).await;
        world.table.reshard(stored, &settings, date(day)).await.unwrap()
    };
    assert_eq!(reshard_on("2026-03-02").await, Resharded::Stays, "its reminder is due on the third");
    world.customer(&subscription, reminded).await;
    for day in ["2026-03-09", "2026-03-10", "2026-03-11"] {
        assert_eq!(reshard_on(day).await, Resharded::Stays, "{day}: its payment is due on the tenth");
    }
    // A payment is open, whatever the index shows.
    world.next_charge(emulator::Fault::LostAfter);
    assert_eq!(counts(&world.charge("2026-03-10").await), [("in_doubt", 1)]);
    let far = |stored: &Subscription| Subscription { next_payment_on: Some(date("2026-04-10")), ..stored.clone() };
    world.customer(&subscription, far).await;
    assert_eq!(reshard_on("2026-03-10").await, Resharded::Stays);
    let settled = |stored: &Subscription| Subscription { attempt: None, ..stored.clone() };
    world.customer(&subscription, settled).await;
    assert_eq!(reshard_on("2026-03-10").await, Resharded::Moved);
    assert_eq!(reshard_on("2026-03-10").await, Resharded::InPlace);
    // What is in no index can be moved as well.
    let paused = |stored: &Subscription| Subscription {
        status: Status::Paused,
        next_payment_on: None,
        next_reminder_on: None,
        shard: 0,
        ..stored.clone()
    };
    world.customer(&subscription, paused).await;
    assert_eq!(reshard_on("2026-03-10").await, Resharded::Moved);
}

#[tokio::test]
async fn shards_are_raised_and_never_lowered() {
    let world = World::new().await;
    for (asked, then) in [(4, 4), (9, 9), (3, 9), (9, 9), (10, 10)] {
        assert_eq!(world.table.raise_shards(asked).await.unwrap(), then, "{asked}");
        assert_eq!(world.table.get_settings().await.unwrap().unwrap().shards, then);
    }
}

#[test]
fn needed_shards_follow_the_formula_at_its_edges() {
    let needed = |payments, imports, row_bytes| {
        let needed = Demand { payments, imports, row_bytes }.needed();
        (needed.reads, needed.payments, needed.imports, needed.shards())
    };
    assert_eq!(needed(0, 0, 1), (0, 0, 0, 1), "one there must be");
    assert_eq!(needed(333, 0, 400), (1, 1, 0, 1));
    assert_eq!(needed(334, 0, 400), (1, 2, 0, 2));
    assert_eq!(needed(6_000, 0, 4_096), (1, 18, 0, 18));
    assert_eq!(needed(6_001, 0, 4_097), (3, 19, 0, 19));
    assert_eq!(needed(1, 667, 400), (1, 1, 2, 2));
    assert_eq!(needed(100, 0, 400_000), (2, 1, 0, 2), "large rows ask for reads");
}

proptest! {
    /// No partition is asked for more than it can do: 1,000 writes and 3,000 read units a second.
    #[test]
    fn needed_shards_keep_each_partition_within_its_limits(payments in 0_u32..1_000_000, imports in 0_u32..1_000_000, row_bytes in 1_u32..400_000) {
        let shards = u64::from(Demand { payments, imports, row_bytes }.needed().shards());
        let units = u64::from(row_bytes.div_ceil(4_096));
        prop_assert!(u64::from(payments) * 2 <= shards * 1_000);
        prop_assert!(u64::from(imports) <= shards * 1_000);
        prop_assert!(u64::from(payments) * units <= shards * 6_000);
    }
}
