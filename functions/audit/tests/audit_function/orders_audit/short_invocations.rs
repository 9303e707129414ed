//! Audits whose invocations have little time, or fail before their end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use audit::check_stored_numbers;
use audit_function::{AuditResponse, TableAuditResponse, TableChecks};
use chrono::{DateTime, TimeDelta, Utc};
use clock::{Clock, SimulatedClock};
use emulator::{EngineConnection, ExternalCall, Fault};
use orders::Product;
use ulid::Ulid;

use super::world::{ORDERS, World, at, audit, violations};

/// A clock that advances by `step` each time the code reads it.
#[derive(Debug)]
struct AdvancingClock {
    start: DateTime<Utc>,
    step: TimeDelta,
    /// How many times the code has read the clock.
    looks: AtomicI64,
    ids: SimulatedClock,
}

impl Clock for AdvancingClock {
    fn now(&self) -> DateTime<Utc> {
        self.start + self.step * i32::try_from(self.looks.fetch_add(1, Ordering::Relaxed)).unwrap()
    }

    fn ulid(&self) -> Ulid {
        self.ids.ulid()
    }

    fn random_secret(&self) -> [u8; 32] {
        self.ids.random_secret()
    }
}

#[tokio::test]
async fn audit_that_stops_again_and_again_finds_the_same_damages() {
    let world = World::new().await;
    world.add_large_items().await;
    world.damage().await;
    world.system.clock.set(at("2027-01-12T01:40:00Z"));
    let ids = SimulatedClock::new(at("2027-01-12T01:40:00Z"), 9);
    let (start, step) = (at("2027-01-12T01:40:00Z"), TimeDelta::seconds(1));
    let clock = Arc::new(AdvancingClock { start, step, looks: AtomicI64::new(0), ids });
    let checks = world.checks(clock.clone());
    let mut responses: Vec<TableAuditResponse> = Vec::new();
    while !responses.last().is_some_and(|response| response.complete) {
        // Each invocation has time for a few accounts, or for a few list pages of orders. Only the invocation after all
        // orders were read has more time.
        let has_read_orders = responses.last().is_some_and(|response| response.orders == 11);
        let time = TimeDelta::seconds(if has_read_orders { 900 } else { 36 });
        responses.push(audit(&checks, clock.now() + time).await);
        assert!(responses.len() < 20, "{responses:?}");
    }
    let last = responses.last().unwrap();
    assert!(responses.len() > 3 && responses.iter().all(|response| response.audit == last.audit), "{responses:?}");
    assert_eq!((last.accounts, last.orders), (12, 11), "{responses:?}");
    assert!(
        responses.iter().any(|response| (1..11).contains(&response.orders)),
        "stopped between orders: {responses:?}"
    );
    assert_eq!(world.violations(&last.audit).await, world.damages());
}

#[tokio::test]
async fn numbers_that_cannot_be_compared_in_time_are_a_violation_and_the_audit_ends() {
    let world = World::new().await;
    let unreadable = world.make_first_order_unreadable().await;
    world.add_large_items().await;
    world.system.clock.set(at("2027-01-12T01:40:00Z"));
    let ids = SimulatedClock::new(at("2027-01-12T01:40:00Z"), 9);
    let (start, step) = (at("2027-01-12T01:40:00Z"), TimeDelta::minutes(1));
    let clock = Arc::new(AdvancingClock { start, step, looks: AtomicI64::new(0), ids });
    let checks = world.checks(clock.clone());
    let mut last = audit(&checks, clock.now() + TimeDelta::minutes(5)).await;
    while !last.complete {
        last = audit(&checks, clock.now() + TimeDelta::minutes(5)).await;
    }
    assert_eq!((last.accounts, last.orders), (12, 11), "{last:?}");
    let expected = [("compared", "orders table"), ("readable", unreadable.as_str())];
    assert_eq!(world.violations(&last.audit).await, violations(&expected));
}

#[tokio::test]
async fn numbers_for_which_only_a_part_of_the_time_was_left_are_compared_by_the_next_invocation() {
    let world = World::new().await;
    world.add_large_items().await;
    world.system.clock.set(at("2027-01-12T01:40:00Z"));
    let ids = SimulatedClock::new(at("2027-01-12T01:40:00Z"), 9);
    let (start, step) = (at("2027-01-12T01:40:00Z"), TimeDelta::minutes(2));
    let clock = Arc::new(AdvancingClock { start, step, looks: AtomicI64::new(0), ids });
    let checks = world.checks(clock.clone());
    // Some of the first invocations end during the scan that compares the stored numbers.
    let mut begun = 0;
    for minutes in (30..90).step_by(2) {
        let mut last = audit(&checks, clock.now() + TimeDelta::minutes(minutes)).await;
        begun += i32::from(!last.complete && last.orders == 12);
        while !last.complete {
            last = audit(&checks, clock.now() + TimeDelta::hours(2)).await;
        }
        assert_eq!((last.orders, last.violations), (12, 0), "{minutes} minutes: {last:?}");
    }
    assert!(begun > 5, "only {begun} audits had read all orders and not all numbers");
}

/// A clock that advances by a day after the code has read it a number of times.
#[derive(Debug)]
struct EndingClock {
    start: DateTime<Utc>,
    /// How many times the code can still read the clock before it advances.
    looks_left: AtomicI64,
    ids: SimulatedClock,
}

impl Clock for EndingClock {
    fn now(&self) -> DateTime<Utc> {
        let is_over = self.looks_left.fetch_sub(1, Ordering::Relaxed) <= 0;
        self.start + TimeDelta::days(i64::from(is_over))
    }

    fn ulid(&self) -> Ulid {
        self.ids.ulid()
    }

    fn random_secret(&self) -> [u8; 32] {
        self.ids.random_secret()
    }
}

#[tokio::test]
async fn numbers_are_not_compared_if_the_time_ends_during_any_of_their_scans() {
    let world = World::new().await;
    world.add_large_items().await;
    world.damage().await;
    let (table, start) = (&world.desk.table, at("2027-01-12T01:40:00Z"));
    let (mut scan, mut pages) = (table.scan_for_audit(), 0);
    while scan.next_page().await.unwrap().is_some() {
        pages += 1;
    }
    assert!(pages > 2, "{pages}");
    let mut unfinished = 0;
    let found = loop {
        let ids = SimulatedClock::new(start, 9);
        let clock = EndingClock { start, looks_left: AtomicI64::new(unfinished), ids };
        match check_stored_numbers(table, &clock, start + TimeDelta::hours(1)).await.unwrap() {
            Some(found) => break found,
            None => unfinished += 1,
        }
    };
    // The check reads the clock after each list page of both scans, and three more times.
    assert_eq!(unfinished, 2 * pages + 3);
    assert_eq!(found.iter().map(|broken| broken.key.as_str()).collect::<Vec<_>>(), ["beans in ams"]);
}

#[tokio::test]
async fn violations_of_numbers_are_recorded_once_if_the_end_of_the_audit_fails() {
    let world = World::new().await;
    let (table, clock) = (&world.desk.table, &world.system.clock);
    // One violation more than an audit writes to the table together.
    const WRONG_COUNT: u64 = 26;
    let wrong: Vec<String> = (0..WRONG_COUNT).map(|n| format!("product-{n}")).collect();
    for id in &wrong {
        let (id, name) = (id.parse().unwrap(), id.parse().unwrap());
        let product = Product { id, name, total_stock: 0, created_at: clock.now(), version: 1 };
        table.create_product(&product).await.unwrap();
        world.desk.receive_stock(&product.id, &"ams".parse().unwrap(), 5, clock.ulid()).await.unwrap();
        world.delete(ORDERS, &format!("PRODUCT#{}", product.id), "MOVEMENT#").await;
    }
    clock.set(at("2027-01-12T01:40:00Z"));
    let deadline = at("2027-01-12T01:55:00Z");
    // In each try, all requests to the payments table after the first `failures` requests fail. Each try lets one more
    // request succeed, until the audit ends.
    let mut failures: u64 = 0;
    let last = loop {
        let left = AtomicI64::new(i64::try_from(failures).unwrap());
        let faults =
            move |_: &ExternalCall<'_>| (left.fetch_sub(1, Ordering::Relaxed) <= 0).then_some(Fault::LostBefore);
        let deployment =
            world.system.with_connection(Arc::new(EngineConnection::with_faults(faults).without_retries()));
        let checks = TableChecks::new(deployment.table, clock.clone()).with_orders(table.clone());
        match checks.run_requested_check(serde_json::json!({ "check": "table" }), deadline).await {
            Ok(AuditResponse::Table(response)) => break response,
            Ok(other) => panic!("{other:?}"),
            Err(_) => failures += 1,
        }
    };
    assert!(last.complete && failures > WRONG_COUNT, "{failures}: {last:?}");
    let found: BTreeSet<String> = world.violations(&last.audit).await.into_iter().map(|(_, key)| key).collect();
    assert_eq!((last.violations, found.len() as u64), (WRONG_COUNT, WRONG_COUNT), "each violation is recorded once");
}
