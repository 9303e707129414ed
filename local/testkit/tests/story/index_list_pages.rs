//! Tests of the list pages that a run reads from the payment index: the position at which the next run continues, short
//! list pages, and the settings that a run reads with each list page.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use deployment::Deployment;
use emulator::{EngineConnection, Fault};
use gateways::ChargeResponse;
use payments::PaymentOutcome;
use serde_json::json;
use store::{DueEntry, DueIndexPosition, DuePage, Lane, Table, TableError};
use sweep::{BatchRequest, BatchTask, RowResult, RunReport};

use crate::world::{World, billing_time, date, key, nonzero_counts, numbered_subscription, subscription_of_acme};

/// The day of the runs. On this day, all subscriptions of these tests are due.
const DAY: &str = "2026-03-10";

/// Stores and returns seven subscriptions of different accounts in shard 0, in the order of the payment index.
async fn store_seven_subscriptions(world: &World) -> Vec<billing::Subscription> {
    let all: Vec<_> = (0..7).map(|n| numbered_subscription(n * 4, 1 + i64::from(n), "2026-02-28")).collect();
    for subscription in &all {
        world.store(subscription).await;
    }
    all
}

/// A task that has no time for two of its concurrent rows. It returns `OutOfTime` for both rows, first for the row with
/// the later due date.
#[derive(Debug)]
struct TaskWithoutTimeForTwoRows {
    /// The due dates of the two rows, the earlier date first. The task returns the result of the row with the earlier
    /// date after the results of all other rows.
    skipped: [NaiveDate; 2],
    /// The number of times that the task has returned a result for the row with the earlier date.
    waited: AtomicU32,
}

#[async_trait]
impl BatchTask for TaskWithoutTimeForTwoRows {
    type Outcome = PaymentOutcome;
    type Run = ();

    fn start_run(&self, _: NonZeroU32) {}

    fn lease_duration(&self) -> TimeDelta {
        TimeDelta::minutes(20)
    }

    async fn read_page(
        &self,
        (): &(),
        table: &Table,
        shard: u32,
        on: NaiveDate,
        after: Option<&DueIndexPosition>,
        _: i32,
    ) -> Result<DuePage, TableError> {
        table.get_due_payments_by_date(shard, on, after, 100).await
    }

    async fn work_on_row(
        &self,
        (): &(),
        _: Lane,
        due: &DueEntry,
        _: NaiveDate,
        _: DateTime<Utc>,
    ) -> RowResult<PaymentOutcome> {
        if due.on == self.skipped[0] {
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
            self.waited.fetch_add(1, Ordering::Relaxed);
            return RowResult::OutOfTime;
        }
        if due.on == self.skipped[1] {
            assert_eq!(self.waited.load(Ordering::Relaxed), 0, "the task must return for the later row first");
            return RowResult::OutOfTime;
        }
        RowResult::Counted(PaymentOutcome::Paid)
    }

    fn log_report(_: &RunReport<PaymentOutcome>, _: DateTime<Utc>) {}
}

#[tokio::test]
async fn next_run_continues_at_the_first_row_for_which_the_run_had_no_time() {
    let world = World::new().await;
    let all = store_seven_subscriptions(&world).await;
    let task = TaskWithoutTimeForTwoRows { skipped: [all[2].due_on, all[5].due_on], waited: AtomicU32::new(0) };
    let sweep = world.system.deployment.batch_of_task(task).await.unwrap();
    world.clock.set(billing_time(DAY));
    let report = sweep.run(&BatchRequest::for_date(date(DAY)), billing_time(DAY) + TimeDelta::hours(1)).await.unwrap();
    assert_eq!((report.complete, report.counts.due, report.counts.paid), (false, 5, 5));
    let next = report.next.unwrap();
    assert_eq!(
        (next.pk, next.on),
        (key(&all[1]).key().pk, all[1].due_on.to_string()),
        "the next run continues after the second row"
    );
}

/// A task that completes one slow row only after all other rows were started, and completes the other rows at once.
#[derive(Debug)]
struct TaskWithOneSlowRow {
    /// The due date of the slow row.
    slow: NaiveDate,
    /// Whether reading the third list page fails.
    is_failing: bool,
    /// The number of rows that the run started.
    started: AtomicU32,
    /// The number of list pages that the run requested.
    pages: AtomicU32,
}

#[async_trait]
impl BatchTask for TaskWithOneSlowRow {
    type Outcome = PaymentOutcome;
    type Run = ();

    fn start_run(&self, _: NonZeroU32) {}

    fn lease_duration(&self) -> TimeDelta {
        TimeDelta::minutes(20)
    }

    async fn read_page(
        &self,
        (): &(),
        table: &Table,
        shard: u32,
        on: NaiveDate,
        after: Option<&DueIndexPosition>,
        limit: i32,
    ) -> Result<DuePage, TableError> {
        if self.pages.fetch_add(1, Ordering::Relaxed) == 2 && self.is_failing {
            return Err(TableError::Missing { key: key(&subscription_of_acme(1, "2026-02-28")).key() });
        }
        table.get_due_payments_by_date(shard, on, after, limit).await
    }

    async fn work_on_row(
        &self,
        (): &(),
        _: Lane,
        due: &DueEntry,
        _: NaiveDate,
        _: DateTime<Utc>,
    ) -> RowResult<PaymentOutcome> {
        self.started.fetch_add(1, Ordering::Relaxed);
        let all = if self.is_failing { 4 } else { 7 };
        for _ in 0..10_000 {
            if due.on != self.slow || self.started.load(Ordering::Relaxed) == all {
                return RowResult::Counted(PaymentOutcome::Paid);
            }
            tokio::task::yield_now().await;
        }
        RowResult::Failed { error_type: "Waited", reason: "the other rows waited for this row".to_owned() }
    }

    fn log_report(_: &RunReport<PaymentOutcome>, _: DateTime<Utc>) {}
}

#[tokio::test]
async fn slow_row_does_not_delay_later_list_pages() {
    let world = World::new().await;
    let all = store_seven_subscriptions(&world).await;
    let mut deployment = world.system.with_connection(Arc::new(EngineConnection::default()));
    (deployment.config.limits.page_rows, deployment.config.limits.concurrency) = (2, 2);
    for is_failing in [false, true] {
        let (started, pages) = (AtomicU32::new(0), AtomicU32::new(0));
        let task = TaskWithOneSlowRow { slow: all[0].due_on, is_failing, started, pages };
        let sweep = deployment.batch_of_task(task).await.unwrap();
        world.clock.set(billing_time(DAY));
        let report =
            sweep.run(&BatchRequest::for_date(date(DAY)), billing_time(DAY) + TimeDelta::hours(1)).await.unwrap();
        assert_eq!(report.failures, []);
        if is_failing {
            // The third list page cannot be read. The rows of the first two list pages are
            // processed nevertheless.
            assert_eq!((report.complete, report.counts.due, report.counts.paid), (false, 4, 4));
            assert_eq!(report.next.unwrap().pk, key(&all[3]).key().pk);
        } else {
            assert_eq!((report.complete, report.counts.due, report.counts.paid), (true, 7, 7));
        }
    }
}

#[tokio::test]
async fn sweep_continues_after_a_short_list_page() {
    let world = World::new().await;
    store_seven_subscriptions(&world).await;
    // The connection removes the last row of each list page, and sets LastEvaluatedKey to the key of the row before it.
    let connection = EngineConnection::with_changed_responses(|request, response| {
        let Some(items) = response["Items"].as_array_mut() else { return };
        if request["IndexName"] == "GSI-2" && items.len() > 1 {
            items.pop();
            let last = items.last().unwrap().clone();
            let keys = ["PK", "SK", "Shard", "NextPaymentDate"].map(|name| (name.to_owned(), last[name].clone()));
            response["LastEvaluatedKey"] = json!(keys.into_iter().collect::<serde_json::Map<_, _>>());
        }
    });
    let payments = world.separate_payment_batch(connection, world.gateway.clone()).await;
    let report = world.run_payment_batch(&payments, DAY, billing_time(DAY)).await;
    assert_eq!((report.complete, nonzero_counts(&report)), (true, vec![("paid", 7)]));
}

#[tokio::test]
async fn run_stops_charging_at_the_next_list_page_after_charging_is_switched_off() {
    let world = World::new().await;
    store_seven_subscriptions(&world).await;
    let charge_count = Arc::new(AtomicU32::new(0));
    let (charges, table) = (charge_count.clone(), world.table.clone());
    // The first charge switches charging off. The run charges one row at a time and reads list pages of two rows: it
    // has read two list pages before the first charge, and reads the third list page before the third charge.
    let sandbox = world.sandbox.clone();
    let gateway = Arc::new(GatewayThatSwitchesChargingOff { sandbox, table, charges, throttles: false });
    let mut deployment = Deployment { gateway, ..world.system.with_connection(Arc::new(EngineConnection::default())) };
    (deployment.config.limits.page_rows, deployment.config.limits.concurrency) = (2, 1);
    let payments = deployment.payment_batch().await.unwrap();
    let report = world.run_payment_batch(&payments, DAY, billing_time(DAY)).await;
    assert!(charge_count.load(Ordering::Relaxed) > 0);
    assert_eq!((report.complete, report.stopped.as_deref()), (true, Some("charging is switched off")));
    assert_eq!(
        nonzero_counts(&report),
        [("paid", 2), ("skipped", 5)],
        "the run charges only the rows before the third list page"
    );
}

#[tokio::test]
async fn throttled_charge_is_not_retried_after_charging_is_switched_off() {
    let world = World::new().await;
    let all = store_seven_subscriptions(&world).await;
    let (sandbox, table) = (world.sandbox.clone(), world.table.clone());
    let gateway = GatewayThatSwitchesChargingOff { sandbox, table, charges: Arc::default(), throttles: true };
    let mut deployment = Deployment {
        gateway: Arc::new(gateway),
        ..world.system.with_connection(Arc::new(EngineConnection::default()))
    };
    (deployment.config.limits.page_rows, deployment.config.limits.concurrency) = (2, 1);
    let payments = deployment.payment_batch().await.unwrap();
    let report = world.run_payment_batch(&payments, DAY, billing_time(DAY)).await;
    assert_eq!(report.stopped.as_deref(), Some("charging is switched off"));
    assert_eq!(nonzero_counts(&report), [("in_doubt", 1), ("skipped", 6)]);
    assert!(world.charged_due_dates().is_empty(), "{:?}", world.charged_due_dates());
    assert!(world.load(&all[0]).await.attempt.is_some(), "a later run looks up the attempt");
}

/// The sandbox gateway, but its first charge request switches charging off, as an operator may do during a run.
#[derive(Debug)]
struct GatewayThatSwitchesChargingOff {
    sandbox: Arc<sandbox::Sandbox>,
    table: Table,
    /// The number of charge requests.
    charges: Arc<AtomicU32>,
    /// Whether the gateway throttles the first charge request, after a delay in which the run reads more list pages.
    throttles: bool,
}

#[async_trait]
impl gateways::PaymentGateway for GatewayThatSwitchesChargingOff {
    async fn account(&self) -> Result<billing::GatewayAccount, gateways::GatewayError> {
        self.sandbox.account().await
    }

    async fn charge(&self, request: &gateways::ChargeRequest) -> ChargeResponse {
        if self.charges.fetch_add(1, Ordering::Relaxed) == 0 {
            self.table.set_charging(false, None).await.unwrap();
            if self.throttles {
                for _ in 0..1_000 {
                    tokio::task::yield_now().await;
                }
                return ChargeResponse::Throttled { retry_after: Some(Duration::ZERO) };
            }
        }
        self.sandbox.charge(request).await
    }

    async fn payments_of_customer(
        &self,
        customer: &billing::GatewayToken,
        since: DateTime<Utc>,
    ) -> Result<Vec<billing::Payment>, gateways::GatewayError> {
        self.sandbox.payments_of_customer(customer, since).await
    }

    async fn payment(&self, id: &billing::GatewayToken) -> Result<Option<billing::Payment>, gateways::GatewayError> {
        self.sandbox.payment(id).await
    }
}

#[tokio::test]
async fn run_with_a_position_in_the_second_lane_continues_there() {
    let world = World::new().await;
    let all = store_seven_subscriptions(&world).await;
    world.inject_charge_fault(Fault::LostAfter);
    world.run_payments("2026-03-01").await;
    assert!(world.load(&all[0]).await.attempt.is_some());
    world.clock.set(billing_time(DAY));
    // A run has two lanes: the first lane charges due payments, and the second lane looks up open attempts.
    let next = Some(DueIndexPosition::start_of(Lane::Open, 0));
    let request = BatchRequest { next, ..BatchRequest::for_date(date(DAY)) };
    let report = world.payments.run(&request, billing_time(DAY) + TimeDelta::hours(1)).await.unwrap();
    assert_eq!(
        (report.complete, report.counts.paid),
        (true, 7),
        "the open attempt, and the remaining rows of the first lane"
    );
}
