//! Pages of an index: where a walk goes on, when it is at the end, and what is read anew with each page.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use emulator::{Deployment, Fault, Wire};
use gateways::ChargeAnswer;
use payments::PaymentOutcome;
use serde_json::json;
use store::{Due, DuePage, Lane, Position, Table, TableError};
use sweep::{BatchRequest, Done, Task};

use crate::world::{World, another, counts, date, key, morning, of_acme};

const DAY: &str = "2026-03-10";

/// Seven subscriptions in one shard, each of an account of its own, in the order of the index.
async fn seven(world: &World) -> Vec<billing::Subscription> {
    let all: Vec<_> = (0..7).map(|n| another(n * 4, 1 + i64::from(n), "2026-02-28")).collect();
    for subscription in &all {
        world.has(subscription).await;
    }
    all
}

/// A task that has no time for some rows, and says so of the later one first.
#[derive(Debug)]
struct OutOfOrder {
    /// The rows that are not begun: the second answers only after the others.
    unbegun: [NaiveDate; 2],
    waited: AtomicU32,
}

#[async_trait]
impl Task for OutOfOrder {
    type Outcome = PaymentOutcome;
    type Run = ();

    fn begin(&self, _: NonZeroU32) {}

    fn lease(&self) -> TimeDelta {
        TimeDelta::minutes(20)
    }

    async fn page(
        &self,
        (): &(),
        table: &Table,
        shard: u32,
        on: NaiveDate,
        after: Option<&Position>,
        _: i32,
    ) -> Result<DuePage, TableError> {
        table.get_due_payments_by_date(shard, on, after, 100).await
    }

    async fn work(&self, (): &(), _: Lane, due: &Due, _: NaiveDate, _: DateTime<Utc>) -> Done<PaymentOutcome> {
        if due.on == self.unbegun[0] {
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
            self.waited.fetch_add(1, Ordering::Relaxed);
            return Done::OutOfTime;
        }
        if due.on == self.unbegun[1] {
            assert_eq!(self.waited.load(Ordering::Relaxed), 0, "the later row answers first");
            return Done::OutOfTime;
        }
        Done::Counted(PaymentOutcome::Paid)
    }
}

#[tokio::test]
async fn run_goes_on_before_the_first_row_that_was_not_begun_in_whatever_order_rows_end() {
    let world = World::new().await;
    let all = seven(&world).await;
    let task = OutOfOrder { unbegun: [all[2].due_on, all[5].due_on], waited: AtomicU32::new(0) };
    let sweep = world.system.deployment.sweep(task).await.unwrap();
    world.clock.set(morning(DAY));
    let report = sweep.run(&BatchRequest::on(date(DAY)), morning(DAY) + TimeDelta::hours(1)).await.unwrap();
    assert_eq!((report.complete, report.counts.due, report.counts.paid), (false, 5, 5));
    let next = report.next.unwrap();
    assert_eq!((next.pk, next.on), (key(&all[1]).key().pk, all[1].due_on.to_string()), "after the second row");
}

/// A task of which each row but one is done at once, and that one only when all others were begun.
#[derive(Debug)]
struct OneIsSlow {
    slow: NaiveDate,
    is_failing: bool,
    begun: AtomicU32,
    pages: AtomicU32,
}

#[async_trait]
impl Task for OneIsSlow {
    type Outcome = PaymentOutcome;
    type Run = ();

    fn begin(&self, _: NonZeroU32) {}

    fn lease(&self) -> TimeDelta {
        TimeDelta::minutes(20)
    }

    async fn page(
        &self,
        (): &(),
        table: &Table,
        shard: u32,
        on: NaiveDate,
        after: Option<&Position>,
        limit: i32,
    ) -> Result<DuePage, TableError> {
        if self.pages.fetch_add(1, Ordering::Relaxed) == 2 && self.is_failing {
            return Err(TableError::Missing { key: key(&of_acme(1, "2026-02-28")).key() });
        }
        table.get_due_payments_by_date(shard, on, after, limit).await
    }

    async fn work(&self, (): &(), _: Lane, due: &Due, _: NaiveDate, _: DateTime<Utc>) -> Done<PaymentOutcome> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        let all = if self.is_failing { 4 } else { 7 };
        for _ in 0..10_000 {
            if due.on != self.slow || self.begun.load(Ordering::Relaxed) == all {
                return Done::Counted(PaymentOutcome::Paid);
            }
            tokio::task::yield_now().await;
        }
        Done::Failed { reason: "the others waited for it".to_owned() }
    }
}

#[tokio::test]
async fn row_that_is_slow_keeps_no_later_page_waiting() {
    let world = World::new().await;
    let all = seven(&world).await;
    let mut deployment = world.system.over(Arc::new(Wire::default()));
    (deployment.config.limits.page_rows, deployment.config.limits.concurrency) = (2, 2);
    for is_failing in [false, true] {
        let (begun, pages) = (AtomicU32::new(0), AtomicU32::new(0));
        let task = OneIsSlow { slow: all[0].due_on, is_failing, begun, pages };
        let sweep = deployment.sweep(task).await.unwrap();
        world.clock.set(morning(DAY));
        let report = sweep.run(&BatchRequest::on(date(DAY)), morning(DAY) + TimeDelta::hours(1)).await.unwrap();
        assert_eq!(report.failures, []);
        if is_failing {
            // The third page cannot be read: what the first two have shown is done all the same.
            assert_eq!((report.complete, report.counts.due, report.counts.paid), (false, 4, 4));
            assert_eq!(report.next.unwrap().pk, key(&all[3]).key().pk);
        } else {
            assert_eq!((report.complete, report.counts.due, report.counts.paid), (true, 7, 7));
        }
    }
}

#[tokio::test]
async fn sweep_goes_on_after_a_short_page_of_the_index() {
    let world = World::new().await;
    seven(&world).await;
    // Each page holds one row less than it could, and says where to go on.
    let wire = Wire::with_answers(|request, answer| {
        let Some(items) = answer["Items"].as_array_mut() else { return };
        if request["IndexName"] == "GSI-2" && items.len() > 1 {
            items.pop();
            let last = items.last().unwrap().clone();
            let keys = ["PK", "SK", "Shard", "NextPaymentDate"].map(|name| (name.to_owned(), last[name].clone()));
            answer["LastEvaluatedKey"] = json!(keys.into_iter().collect::<serde_json::Map<_, _>>());
        }
    });
    let payments = world.payments_over(wire, world.gateway.clone()).await;
    let report = world.charge_by(&payments, DAY, morning(DAY)).await;
    assert_eq!((report.complete, counts(&report)), (true, vec![("paid", 7)]));
}

#[tokio::test]
async fn charging_switched_off_stops_a_run_at_its_next_page() {
    let world = World::new().await;
    seven(&world).await;
    let switched = Arc::new(AtomicU32::new(0));
    let (seen, table) = (switched.clone(), world.table.clone());
    // The first charge switches it off: with one at a time and pages of two, two pages were read by then, and the third is
    // read before the third charge.
    let gateway = Arc::new(SwitchesOff { world: world.sandbox.clone(), table, seen, throttles: false });
    let mut deployment = Deployment { gateway, ..world.system.over(Arc::new(Wire::default())) };
    (deployment.config.limits.page_rows, deployment.config.limits.concurrency) = (2, 1);
    let payments = deployment.payments().await.unwrap();
    let report = world.charge_by(&payments, DAY, morning(DAY)).await;
    assert!(switched.load(Ordering::Relaxed) > 0);
    assert_eq!((report.complete, report.stopped.as_deref()), (true, Some("charging is switched off")));
    assert_eq!(counts(&report), [("paid", 2), ("skipped", 5)], "what was on the pages read by then, and no more");
}

#[tokio::test]
async fn charge_that_is_asked_to_wait_is_not_made_once_charging_is_switched_off() {
    let world = World::new().await;
    let all = seven(&world).await;
    let gateway =
        SwitchesOff { world: world.sandbox.clone(), table: world.table.clone(), seen: Arc::default(), throttles: true };
    let mut deployment = Deployment { gateway: Arc::new(gateway), ..world.system.over(Arc::new(Wire::default())) };
    (deployment.config.limits.page_rows, deployment.config.limits.concurrency) = (2, 1);
    let payments = deployment.payments().await.unwrap();
    let report = world.charge_by(&payments, DAY, morning(DAY)).await;
    assert_eq!(report.stopped.as_deref(), Some("charging is switched off"));
    assert_eq!(counts(&report), [("in_doubt", 1), ("skipped", 6)]);
    assert!(world.charged().is_empty(), "{:?}", world.charged());
    assert!(world.stored(&all[0]).await.attempt.is_some(), "what was asked for is looked up by a later run");
}

/// The sandbox; with its first charge, somebody switches charging off.
#[derive(Debug)]
struct SwitchesOff {
    world: Arc<gateways::Sandbox>,
    table: Table,
    seen: Arc<AtomicU32>,
    /// The first charge is asked to wait, while more is read.
    throttles: bool,
}

#[async_trait]
impl gateways::PaymentGateway for SwitchesOff {
    async fn account(&self) -> Result<billing::GatewayAccount, gateways::GatewayError> {
        self.world.account().await
    }

    async fn charge(&self, request: &gateways::ChargeRequest) -> ChargeAnswer {
        if self.seen.fetch_add(1, Ordering::Relaxed) == 0 {
            self.table.set_charging(false).await.unwrap();
            if self.throttles {
                for _ in 0..1_000 {
                    tokio::task::yield_now().await;
                }
                return ChargeAnswer::Throttled { retry_after: Some(Duration::ZERO) };
            }
        }
        self.world.charge(request).await
    }

    async fn payments_of(
        &self,
        customer: &billing::GatewayToken,
        since: DateTime<Utc>,
    ) -> Result<Vec<billing::Payment>, gateways::GatewayError> {
        self.world.payments_of(customer, since).await
    }

    async fn payment(&self, id: &billing::GatewayToken) -> Result<Option<billing::Payment>, gateways::GatewayError> {
        self.world.payment(id).await
    }
}

#[tokio::test]
async fn run_that_is_handed_a_position_in_the_second_lane_goes_on_there() {
    let world = World::new().await;
    let all = seven(&world).await;
    world.next_charge(Fault::LostAfter);
    world.charge("2026-03-01").await;
    assert!(world.stored(&all[0]).await.attempt.is_some());
    world.clock.set(morning(DAY));
    let next = Some(Position::start_of(Lane::Open, 0));
    let request = BatchRequest { next, ..BatchRequest::on(date(DAY)) };
    let report = world.payments.run(&request, morning(DAY) + TimeDelta::hours(1)).await.unwrap();
    assert_eq!((report.complete, report.counts.paid), (true, 7), "the open one, and what the first lane has left");
}
