//! Tests with a fault at every step of a run. For each external call of a run (DynamoDB request, gateway request or
//! mail) and each kind of fault, one test run has this fault at this call, and later runs complete the open attempts.
//! In all cases, the customer is charged the same as without faults.

use std::collections::BTreeSet;
use std::slice::from_ref;
use std::sync::Arc;

use billing::{PaymentStatus, Subscription, SubscriptionStatus};
use chrono::{DateTime, TimeDelta};
use deployment::{Deployment, FaultyService};
use emulator::{EngineConnection, Fault, FaultInjector};
use sandbox::LedgerEntry;
use store::Paging;
use sweep::{BatchRequest, BatchTask, Outcome, RunReport};
use testkit::fault_at_call;

use crate::world::{World, billing_time, cancel, card, date, new_subscription, nonzero_counts, pause};

/// The day of the run with a fault.
const DAY: &str = "2026-03-10";

/// The faults that the tests inject at each call, and whether the SDK retries its requests: no retry follows a crash. A
/// crash before a call leaves the same state as a crash after the call before it.
const FAULTS: [(Fault, bool); 5] = [
    (Fault::LostBefore, true),
    (Fault::LostBefore, false),
    (Fault::LostAfter, true),
    (Fault::LostAfter, false),
    (Fault::CrashAfter, false),
];

/// A situation in which a run with a fault starts.
struct Scenario {
    name: &'static str,
    subscription: Subscription,
    /// Creates the situation in the test's world.
    prepare: fn(&World, &Subscription) -> futures::future::BoxFuture<'static, ()>,
}

/// The result of a run with one fault.
struct FaultyRun<O: Outcome> {
    world: World,
    /// The number of external calls of the run.
    calls: u64,
    /// The report of the run; `None` if the run failed or was killed.
    report: Option<RunReport<O>>,
}

/// Runs the batch of `task`, with `fault` at the external call with the number `at`. If `has_retries` is true, the SDK
/// retries failed requests to the table.
async fn run_with_fault<T: BatchTask>(
    world: World,
    fault: Fault,
    at: u64,
    has_retries: bool,
    task: impl FnOnce(&Deployment) -> T,
) -> FaultyRun<T::Outcome> {
    let injector = Arc::new(FaultInjector::active_during_runs(Arc::new(fault_at_call(at, fault))));
    let connection = EngineConnection::with_injector(injector.clone());
    let connection = if has_retries { connection } else { connection.without_retries() };
    let deployment = Deployment {
        gateway: Arc::new(FaultyService::new(world.gateway.clone(), injector.clone())),
        mailer: Arc::new(FaultyService::new(world.mails_sent.clone(), injector.clone())),
        ..world.system.with_connection(Arc::new(connection))
    };
    let sweep = deployment.batch_of_task(task(&deployment)).await.unwrap();
    world.clock.set(billing_time(DAY));
    let (request, deadline) = (BatchRequest::for_date(date(DAY)), billing_time(DAY) + TimeDelta::hours(1));
    let result = injector.run(sweep.run(&request, deadline)).await;
    FaultyRun { world, calls: injector.call_count(), report: result.and_then(Result::ok) }
}

/// Returns the due dates of the successful charges of `subscription` in the ledger. Asserts that no attempt is charged
/// twice.
fn charged_due_dates(world: &World, subscription: &Subscription) -> Vec<String> {
    let (mut paid, mut attempts) = (Vec::new(), BTreeSet::new());
    let entries = world.sandbox.entries();
    for entry in &entries {
        let LedgerEntry::Payment(payment) = entry else { continue };
        let request = &payment.request;
        if request.subscription != subscription.id {
            continue;
        }
        assert!(attempts.insert((request.due_on, request.attempt_no)), "an attempt was charged twice: {entries:?}");
        let mut later_statuses = entries.iter().filter_map(|entry| match entry {
            LedgerEntry::Resolved { id, status, .. } if *id == payment.id => Some(status),
            _ => None,
        });
        if *later_statuses.next_back().unwrap_or(&payment.status) == PaymentStatus::Succeeded {
            paid.push(request.due_on.to_string());
        }
    }
    paid
}

/// Runs the payment batch again for the same day and for two later days, and asserts that no attempt of
/// `subscriptions` stays open.
pub async fn run_until_settled(world: &World, subscriptions: &[Subscription]) {
    world.set_clock_back(billing_time(DAY) + TimeDelta::hours(2)).await;
    world.run_payments_at(DAY, billing_time(DAY) + TimeDelta::hours(2)).await;
    for day in ["2026-03-11", "2026-03-14"] {
        world.run_payments(day).await;
    }
    for subscription in subscriptions {
        let stored = world.load(subscription).await;
        assert_eq!(stored.attempt, None, "an attempt is still open: {stored:?}");
    }
}

/// Asserts that no month was charged twice, and that receipts, charges and the stored subscription agree.
pub async fn assert_invariants(world: &World, subscription: &Subscription, scenario: &str) {
    let paid = charged_due_dates(world, subscription);
    let months: BTreeSet<&str> = paid.iter().map(|due_on| &due_on[..7]).collect();
    assert_eq!(months.len(), paid.len(), "{scenario}: a month was charged twice: {paid:?}");
    let account = &subscription.account;
    let receipts = world.table.get_receipts_by_account(account, &Paging::all(), DateTime::UNIX_EPOCH).await.unwrap();
    let receipts: Vec<_> =
        receipts.items.into_iter().filter(|receipt| receipt.subscription == subscription.id).collect();
    let receipt_dates: Vec<String> = receipts.iter().rev().map(|receipt| receipt.due_on.to_string()).collect();
    assert_eq!(receipt_dates, paid, "{scenario}: receipts and charges differ");
    assert!(receipts.iter().all(|receipt| receipt.amount == subscription.price), "{scenario}");
    let stored = world.load(subscription).await;
    let has_advanced = paid.iter().all(|due_on| date(due_on) < stored.due_on);
    assert!(has_advanced, "{scenario}: the due date of a paid month has not advanced: {stored:?}");
    let is_due = stored.next_payment_on.is_some();
    assert_eq!(is_due, stored.status.is_chargeable(), "{scenario}: {stored:?}");
}

/// Returns a subscription that is due on [`DAY`] and has the test payment method `method`.
fn subscription_with_card(method: &str) -> Subscription {
    Subscription { payment_method: card(method), ..new_subscription(10, "2026-02-20") }
}

/// Returns all situations in which a run with a fault starts.
fn scenarios() -> Vec<Scenario> {
    fn prepare_nothing(_: &World, _: &Subscription) -> futures::future::BoxFuture<'static, ()> {
        Box::pin(async {})
    }
    /// Creates a payment attempt with an unknown outcome: an hour before the billing time, its charge got no response.
    /// `fault` decides whether the charge succeeded.
    fn create_attempt_in_doubt(world: &World, fault: Fault) -> futures::future::BoxFuture<'static, ()> {
        world.inject_charge_fault(fault);
        let (clock, deployment) = (world.clock.clone(), world.system.with_connection(world.connection.clone()));
        let deployment = Deployment { gateway: world.gateway.clone(), ..deployment };
        Box::pin(async move {
            clock.set(billing_time(DAY) - TimeDelta::hours(1));
            let sweep = deployment.payment_batch().await.unwrap();
            let report = sweep.run(&BatchRequest::for_date(date(DAY)), billing_time(DAY)).await.unwrap();
            assert_eq!(nonzero_counts(&report), [("in_doubt", 1)]);
        })
    }
    /// Creates a payment attempt with an unknown outcome, and then pauses or cancels the subscription.
    fn stop_subscription_in_doubt(
        world: &World,
        subscription: &Subscription,
        status: SubscriptionStatus,
    ) -> futures::future::BoxFuture<'static, ()> {
        let fault = if status == SubscriptionStatus::Paused { Fault::LostBefore } else { Fault::LostAfter };
        let create_attempt = create_attempt_in_doubt(world, fault);
        let (table, account, id) = (world.table.clone(), subscription.account.clone(), subscription.id);
        Box::pin(async move {
            create_attempt.await;
            let before = table.get_subscription(&account, id).await.unwrap().unwrap();
            let stop =
                |s: &Subscription| if status == SubscriptionStatus::Paused { pause(s).into() } else { cancel(s) };
            table.write_settlement(before, |stored| Ok::<_, ()>(stop(stored))).await.unwrap();
        })
    }
    let scenario = |name, method, prepare| Scenario { name, subscription: subscription_with_card(method), prepare };
    let mut past_due = scenario("a retry after a decline", "pm_card_visa", prepare_nothing);
    (past_due.subscription.status, past_due.subscription.failed_attempts) = (SubscriptionStatus::PastDue, 2);
    let mut ending = scenario("the end of the last period", "pm_card_visa", prepare_nothing);
    ending.subscription.cancel_from = Some("2026-03".parse().unwrap());
    vec![
        scenario("a success", "pm_card_visa", prepare_nothing),
        scenario("a soft decline", "pm_card_visa_chargeDeclined", prepare_nothing),
        scenario("a hard decline", "pm_card_visa_chargeDeclinedLostCard", prepare_nothing),
        scenario("a rejection", "pm_unknown", prepare_nothing),
        scenario("a debit with processing status", "pm_usBankAccount_success", prepare_nothing),
        past_due,
        ending,
        scenario("a take-over of an attempt that was not charged", "pm_card_visa", |world, _| {
            create_attempt_in_doubt(world, Fault::LostBefore)
        }),
        scenario("a take-over of an attempt that was charged", "pm_card_visa", |world, _| {
            create_attempt_in_doubt(world, Fault::LostAfter)
        }),
        scenario("paused while in doubt", "pm_card_visa", |world, s| {
            stop_subscription_in_doubt(world, s, SubscriptionStatus::Paused)
        }),
        scenario("cancelled while in doubt", "pm_card_visa", |world, s| {
            stop_subscription_in_doubt(world, s, SubscriptionStatus::Cancelled)
        }),
    ]
}

/// Creates the world of `scenario`, in which a run with a fault can start.
async fn prepare_world(scenario: &Scenario) -> World {
    let world = World::with_one_shard().await;
    world.store(&scenario.subscription).await;
    (scenario.prepare)(&world, &scenario.subscription).await;
    world
}

#[tokio::test]
async fn payment_run_with_a_fault_at_any_call_has_the_same_final_state() {
    for scenario in scenarios() {
        let Scenario { name, subscription, .. } = &scenario;
        let prepared = prepare_world(&scenario).await;
        let without_fault = prepared.copy().await;
        without_fault.run_payments(DAY).await;
        run_until_settled(&without_fault, from_ref(subscription)).await;
        assert_invariants(&without_fault, subscription, name).await;
        let expected = charged_due_dates(&without_fault, subscription);
        let settled = without_fault.load(subscription).await;
        for (fault, has_retries) in FAULTS {
            let (mut at, mut visible_faults) = (1, 0);
            loop {
                let case = format!("{name}, {fault:?} at call {at}, retries {has_retries}");
                let run = run_with_fault(prepared.copy().await, fault, at, has_retries, Deployment::payment_task);
                let FaultyRun { world, calls, report } = run.await;
                if calls < at {
                    assert_eq!(calls, at - 1, "{case}: each call of a run had a fault in one of the runs");
                    break;
                }
                // The run does not notice a fault that a retry of the SDK hides. A visible fault ends the run or
                // changes its counts.
                visible_faults += u32::from(report.is_none_or(|report| {
                    !report.complete || nonzero_counts(&report) != counts_without_fault(&scenario)
                }));
                run_until_settled(&world, from_ref(subscription)).await;
                assert_invariants(&world, subscription, &case).await;
                let paid = charged_due_dates(&world, subscription);
                assert_eq!(paid, expected, "{case}");
                let stored = world.load(subscription).await;
                let final_state = |s: &Subscription| (s.status, s.due_on);
                assert_eq!(final_state(&stored), final_state(&settled), "{case}");
                at += 1;
            }
            assert!(at > 6, "{name}: only {at} calls");
            assert!(!fault.is_crash() || u64::from(visible_faults) == at - 1, "{name}: a crash had no effect");
            assert!(has_retries || visible_faults >= 2, "{name}, {fault:?}: {visible_faults} visible faults");
        }
    }
}

/// Returns the counts that a run of this scenario without a fault must report.
fn counts_without_fault(scenario: &Scenario) -> Vec<(&'static str, u64)> {
    vec![(
        match scenario.name {
            "a soft decline" | "a hard decline" => "declined",
            "a rejection" => "rejected",
            "a debit with processing status" => "processing",
            "the end of the last period" | "paused while in doubt" => "skipped",
            _ => "paid",
        },
        1,
    )]
}

#[tokio::test]
async fn reminder_run_with_a_fault_at_any_call_sends_one_or_two_mails() {
    let subscription = new_subscription(15, "2026-02-20");
    let prepared = World::with_one_shard().await;
    prepared.store(&subscription).await;
    for (fault, has_retries) in FAULTS {
        let mut at = 1;
        loop {
            let case = format!("{fault:?} at call {at}, retries {has_retries}");
            let run = run_with_fault(prepared.copy().await, fault, at, has_retries, Deployment::reminder_task);
            let FaultyRun { world, calls, .. } = run.await;
            if calls < at {
                assert_eq!(calls, at - 1, "{case}");
                break;
            }
            world.run_reminders("2026-03-11").await;
            world.run_reminders("2026-03-12").await;
            let sent = world.mails_sent.mails().len();
            assert!((1..=2).contains(&sent), "{case}: {sent} reminders");
            let stored = world.load(&subscription).await;
            assert_eq!((stored.next_reminder_on, stored.reminded_for), (None, Some(date("2026-03-15"))), "{case}");
            at += 1;
        }
        assert!(at > 5, "only {at} calls");
    }
}
