//! Two concurrent payment runs, a customer who acts meanwhile, charges that are lost and leases that lapse. A seed decides
//! their order: at each call to the outside another task may go first. A red seed is red again.

use std::sync::{Arc, Mutex};

use billing::{Changes, LeadDays, OnResume, Settlement, Subscription};
use chrono::TimeDelta;
use clock::Clock as _;
use emulator::{Call, Fault, Faults, Injector, Operation, Wire};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use store::{Changed, PaymentCounts, ReminderCounts};
use sweep::{BatchRequest, Report};
use testkit::Faulty;

use crate::crash::{assert_invariants, new_world, until_clean};
use crate::world::{World, another, card, date, morning, new_subscription};

const DAY: &str = "2026-03-10";
const SEEDS: u64 = 300;

/// Random numbers, reproducible by their seed, that decide who goes first.
#[derive(Debug)]
struct Order(Mutex<ChaCha8Rng>);

impl Order {
    fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self(Mutex::new(ChaCha8Rng::seed_from_u64(seed))))
    }

    fn below(&self, end: u32) -> u32 {
        self.0.lock().unwrap().random_range(0..end)
    }
}

impl Faults for Order {
    fn next(&self, _: &Call<'_>) -> Option<Fault> {
        None
    }

    fn turns(&self) -> u32 {
        self.below(4)
    }
}

/// A payment run as a process of its own would make it.
async fn run(world: &World, order: &Arc<Order>) -> Report<PaymentCounts> {
    let injector = Arc::new(Injector::new(order.clone()));
    let gateway = Arc::new(Faulty::new(world.gateway.clone(), injector.clone()));
    let sweep = world.payments_over(Wire::through(injector), gateway).await;
    let report = sweep.run(&BatchRequest::on(date(DAY)), morning(DAY) + TimeDelta::hours(1)).await.unwrap();
    assert!(report.complete && report.adds_up(), "{report:?}");
    report
}

/// At some time the customer does one thing.
async fn act(world: &World, subscription: &Subscription, order: &Order) {
    for _ in 0..order.below(40) {
        tokio::task::yield_now().await;
    }
    let (lead, today, what) = (LeadDays::default(), date(DAY), order.below(6));
    let new_card = Changes { payment_method: Some(card("pm_card_mastercard")), ..Changes::default() };
    let new_day = Changes { payment_day: Some(28.try_into().unwrap()), ..Changes::default() };
    let change = |stored: &Subscription| match what {
        0 => stored.pause(today).map(Settlement::from),
        1 => Ok(stored.cancel(today, morning(DAY))),
        2 => stored.cancel_at_period_end(today).map(Settlement::from),
        3 => stored.change(&new_card, lead, today).map(Settlement::from),
        4 => stored.change(&new_day, lead, today).map(Settlement::from),
        _ => stored.pause(today)?.resume(OnResume::Charge, lead, today, morning(DAY)),
    };
    let of = (&subscription.account, subscription.id);
    let changed = world.table.change_subscription(of.0, of.1, None, |_| String::new(), change).await.unwrap();
    assert!(!matches!(changed, Changed::Missing));
}

/// At two times a lease lapses.
async fn time(world: &World, order: &Order) {
    for _ in 0..2 {
        for _ in 0..order.below(80) {
            tokio::task::yield_now().await;
        }
        world.clock.set(world.clock.now() + TimeDelta::minutes(21));
    }
}

#[tokio::test]
async fn charge_is_made_once_by_two_concurrent_runs_and_a_customer_who_acts() {
    let (mut met, mut acted) = (0, 0);
    for seed in 1..=SEEDS {
        let world = new_world().await;
        let methods = ["pm_card_visa", "pm_card_visa_chargeDeclined", "pm_usBankAccount_success"];
        let subscriptions = [8, 9, 10].map(|day| {
            let method = methods[usize::try_from((seed + day) % 3).unwrap()];
            Subscription { payment_method: card(method), ..new_subscription(i64::try_from(day).unwrap(), "2026-02-20") }
        });
        for subscription in &subscriptions {
            world.has(subscription).await;
        }
        world.clock.set(morning(DAY));
        let order = Order::new(seed);
        let whose = &subscriptions[usize::try_from(order.below(3)).unwrap()];
        let faults = [None, None, Some(Fault::LostBefore), Some(Fault::LostAfter)];
        let of_charges: Vec<_> = (0..6).map(|_| faults[usize::try_from(order.below(4)).unwrap()]).collect();
        world.script.add(Operation::Charge, of_charges);
        let runs = async { tokio::join!(run(&world, &order), run(&world, &order)) };
        let ((first, second), (), ()) = tokio::join!(runs, act(&world, whose, &order), time(&world, &order));
        world.script.clear(Operation::Charge);
        met += u32::from(first.counts.due + second.counts.due > 3);
        acted += u32::from(world.stored(whose).await.status != billing::Status::Active);
        for subscription in &subscriptions {
            until_clean(&world, subscription).await;
        }
        let story = format!("seed {seed}");
        let entries = world.sandbox.entries().len();
        assert!(entries >= 2, "{story}: {entries} entries in the ledger");
        for subscription in &subscriptions {
            assert_invariants(&world, subscription, &story).await;
        }
    }
    assert!(met > 20, "the two runs met in only {met} of {SEEDS} orders");
    assert!(acted > 20, "the customer's act told in only {acted}");
}

/// A reminder run as a process of its own would make it.
async fn remind(world: &World, order: &Arc<Order>) -> Report<ReminderCounts> {
    let injector = Arc::new(Injector::new(order.clone()));
    let sweep = world.reminders_over(Wire::through(injector.clone()), injector).await;
    let report = sweep.run(&BatchRequest::on(date(DAY)), morning(DAY) + TimeDelta::hours(1)).await.unwrap();
    assert!(report.complete && report.adds_up(), "{report:?}");
    report
}

#[tokio::test]
async fn reminder_is_sent_once_by_two_concurrent_runs() {
    let mut met = 0;
    for seed in 1..=100 {
        let world = new_world().await;
        for n in 0..3 {
            let subscription = another(n, 12, "2026-02-20");
            world.has(&Subscription { shard: 0, ..subscription }).await;
        }
        world.clock.set(morning(DAY));
        let order = Order::new(seed);
        let (first, second) = tokio::join!(remind(&world, &order), remind(&world, &order));
        assert_eq!(first.counts.sent + second.counts.sent, 3, "seed {seed}");
        assert_eq!(world.letterbox.mails().len(), 3, "seed {seed}");
        met += u32::from(first.counts.due + second.counts.due > 3);
    }
    assert!(met > 50, "the two runs met in only {met} of 100 orders");
}
