//! Tests of two concurrent runs, while a customer changes a subscription, charges get lost, and leases expire. A random
//! seed decides the order of the concurrent tasks: before each external call, other tasks may run. If a test fails with
//! one seed, it fails with this seed in every test run.

use std::sync::{Arc, Mutex};

use billing::{LeadDays, OnResume, Settlement, Subscription, SubscriptionChanges};
use chrono::TimeDelta;
use clock::Clock as _;
use deployment::FaultyService;
use emulator::{EngineConnection, ExternalCall, ExternalOperation, Fault, FaultDecider, FaultInjector};
use payments::PaymentOutcome;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use reminders::ReminderOutcome;
use store::ChangeOutcome;
use sweep::{BatchRequest, RunReport};
use testkit::short_or_long;

use crate::crashes::{assert_invariants, run_until_settled};
use crate::world::{World, billing_time, card, date, new_subscription, numbered_subscription};

/// The day of the concurrent runs.
const DAY: &str = "2026-03-10";

/// A seeded random number generator that decides the order of the concurrent tasks.
#[derive(Debug)]
struct TaskOrder(Mutex<ChaCha8Rng>);

impl TaskOrder {
    /// Creates the order of the tasks that belongs to `seed`.
    fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self(Mutex::new(ChaCha8Rng::seed_from_u64(seed))))
    }

    /// Returns a random number below `end`.
    fn random_below(&self, end: u32) -> u32 {
        self.0.lock().unwrap().random_range(0..end)
    }
}

impl FaultDecider for TaskOrder {
    fn fault_of_call(&self, _: &ExternalCall<'_>) -> Option<Fault> {
        None
    }

    fn yields_per_call(&self) -> u32 {
        self.random_below(4)
    }
}

/// Creates a separate payment batch, as another process would, and runs this batch.
async fn run_payments(world: &World, order: &Arc<TaskOrder>) -> RunReport<PaymentOutcome> {
    let injector = Arc::new(FaultInjector::new(order.clone()));
    let gateway = Arc::new(FaultyService::new(world.gateway.clone(), injector.clone()));
    let sweep = world.separate_payment_batch(EngineConnection::with_injector(injector), gateway).await;
    let report = sweep.run(&BatchRequest::for_date(date(DAY)), billing_time(DAY) + TimeDelta::hours(1)).await.unwrap();
    assert!(report.complete && report.adds_up(), "{report:?}");
    report
}

/// Makes one random change of the subscription at a random time, as its customer does.
async fn change_subscription_at_random_time(world: &World, subscription: &Subscription, order: &TaskOrder) {
    for _ in 0..order.random_below(40) {
        tokio::task::yield_now().await;
    }
    let (lead, today, choice) = (LeadDays::default(), date(DAY), order.random_below(6));
    let new_card =
        SubscriptionChanges { payment_method: Some(card("pm_card_mastercard")), ..SubscriptionChanges::default() };
    let new_day = SubscriptionChanges { payment_day: Some(28.try_into().unwrap()), ..SubscriptionChanges::default() };
    let change = |stored: &Subscription| match choice {
        0 => stored.pause(today).map(Settlement::from),
        1 => Ok(stored.cancel(today, billing_time(DAY))),
        2 => stored.cancel_at_period_end(today).map(Settlement::from),
        3 => stored.apply_changes(&new_card, lead, today).map(Settlement::from),
        4 => stored.apply_changes(&new_day, lead, today).map(Settlement::from),
        _ => stored.pause(today)?.resume(OnResume::Charge, lead, today, billing_time(DAY)),
    };
    let (account, id) = (&subscription.account, subscription.id);
    let outcome = world.table.change_subscription(account, id, None, |_| String::new(), change).await.unwrap();
    assert!(!matches!(outcome, ChangeOutcome::Missing));
}

/// Advances the clock at two random times so that leases expire.
async fn expire_leases(world: &World, order: &TaskOrder) {
    for _ in 0..2 {
        for _ in 0..order.random_below(80) {
            tokio::task::yield_now().await;
        }
        world.clock.set(world.clock.now() + TimeDelta::minutes(21));
    }
}

#[tokio::test]
async fn two_concurrent_runs_charge_once_despite_changes_by_the_customer() {
    // The number of random orders of the tasks, and the minimum numbers of overlapping runs and of effective changes.
    let (seeds, min_overlapping, min_changes) = short_or_long((50, 7, 7), (300, 40, 40));
    let (mut overlapping_runs, mut effective_changes) = (0, 0);
    for seed in 1..=seeds {
        let world = World::with_one_shard().await;
        let methods = ["pm_card_visa", "pm_card_visa_chargeDeclined", "pm_usBankAccount_success"];
        let subscriptions = [8, 9, 10].map(|day| {
            let method = methods[usize::try_from((seed + day) % 3).unwrap()];
            Subscription { payment_method: card(method), ..new_subscription(i64::try_from(day).unwrap(), "2026-02-20") }
        });
        for subscription in &subscriptions {
            world.store(subscription).await;
        }
        world.clock.set(billing_time(DAY));
        let order = TaskOrder::new(seed);
        let changed = &subscriptions[usize::try_from(order.random_below(3)).unwrap()];
        let faults = [None, None, Some(Fault::LostBefore), Some(Fault::LostAfter)];
        let charge_faults: Vec<_> = (0..6).map(|_| faults[usize::try_from(order.random_below(4)).unwrap()]).collect();
        world.script.add(ExternalOperation::Charge, charge_faults);
        let runs = async { tokio::join!(run_payments(&world, &order), run_payments(&world, &order)) };
        let change = change_subscription_at_random_time(&world, changed, &order);
        let ((first, second), (), ()) = tokio::join!(runs, change, expire_leases(&world, &order));
        world.script.clear(ExternalOperation::Charge);
        overlapping_runs += u32::from(first.counts.due + second.counts.due > 3);
        effective_changes += u32::from(world.load(changed).await.status != billing::SubscriptionStatus::Active);
        run_until_settled(&world, &subscriptions).await;
        let scenario = format!("seed {seed}");
        let entries = world.sandbox.entries().len();
        assert!(entries >= 2, "{scenario}: {entries} entries in the ledger");
        for subscription in &subscriptions {
            assert_invariants(&world, subscription, &scenario).await;
        }
    }
    assert!(overlapping_runs > min_overlapping, "the two runs overlapped in only {overlapping_runs} of {seeds} seeds");
    assert!(
        effective_changes > min_changes,
        "the change made the subscription inactive in only {effective_changes} seeds"
    );
}

/// Creates a separate reminder batch, as another process would, and runs this batch.
async fn run_reminders(world: &World, order: &Arc<TaskOrder>) -> RunReport<ReminderOutcome> {
    let injector = Arc::new(FaultInjector::new(order.clone()));
    let sweep = world.separate_reminder_batch(EngineConnection::with_injector(injector.clone()), injector).await;
    let report = sweep.run(&BatchRequest::for_date(date(DAY)), billing_time(DAY) + TimeDelta::hours(1)).await.unwrap();
    assert!(report.complete && report.adds_up(), "{report:?}");
    report
}

#[tokio::test]
async fn two_concurrent_runs_send_each_reminder_once() {
    let (seeds, min_overlapping) = short_or_long((40, 20), (200, 100));
    let mut overlapping_runs = 0;
    for seed in 1..=seeds {
        let world = World::with_one_shard().await;
        for n in 0..3 {
            let subscription = numbered_subscription(n, 12, "2026-02-20");
            world.store(&Subscription { shard: 0, ..subscription }).await;
        }
        world.clock.set(billing_time(DAY));
        let order = TaskOrder::new(seed);
        let (first, second) = tokio::join!(run_reminders(&world, &order), run_reminders(&world, &order));
        assert_eq!(first.counts.sent + second.counts.sent, 3, "seed {seed}");
        assert_eq!(world.mails_sent.mails().len(), 3, "seed {seed}");
        overlapping_runs += u32::from(first.counts.due + second.counts.due > 3);
    }
    assert!(overlapping_runs > min_overlapping, "the two runs overlapped in only {overlapping_runs} of {seeds} seeds");
}
