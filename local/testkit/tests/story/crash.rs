//! A crash at every step. For each outside call of a run (every DynamoDB request, gateway call and mail) and each way it
//! can go wrong, the run is made with that one fault, and then runs are made until nothing is open. Whatever happened,
//! the customer was charged what a run without a fault charges.

use std::collections::BTreeSet;
use std::sync::Arc;

use billing::{PaymentStatus, Status, Subscription};
use chrono::{DateTime, TimeDelta};
use emulator::{Deployment, Fault, Injector, Wire};
use gateways::Entry;
use store::Paging;
use sweep::{BatchRequest, CountsOf, Report, Task};
use testkit::{Faulty, nth};

use crate::world::{World, cancelled, card, counts, date, morning, new_subscription, paused};

const DAY: &str = "2026-03-10";

const FAULTS: [Fault; 4] = [Fault::LostBefore, Fault::LostAfter, Fault::CrashBefore, Fault::CrashAfter];

/// What happens before the run that is disturbed.
struct Scene {
    story: &'static str,
    subscription: Subscription,
    /// Brings the world to where that run begins.
    before: fn(&World, &Subscription) -> futures::future::BoxFuture<'static, ()>,
}

/// A world after a run with one fault.
struct Disturbed<C> {
    world: World,
    /// Calls to the outside that the run made.
    calls: u64,
    /// What the run answered, if it came to its end.
    report: Option<Report<C>>,
}

/// Makes a run of the batch that `task` belongs to, with `fault` at its call number `at`.
async fn disturb<T: Task>(
    world: World,
    (fault, at, has_retries): (Fault, u64, bool),
    task: impl FnOnce(&Deployment) -> T,
) -> Disturbed<CountsOf<T>> {
    let injector = Arc::new(Injector::for_runs(Arc::new(nth(at, fault))));
    let wire = Wire::through(injector.clone());
    let wire = if has_retries { wire } else { wire.and_no_retries() };
    let deployment = Deployment {
        gateway: Arc::new(Faulty::new(world.gateway.clone(), injector.clone())),
        mailer: Arc::new(Faulty::new(world.letterbox.clone(), injector.clone())),
        ..world.system.over(Arc::new(wire))
    };
    let sweep = deployment.sweep(task(&deployment)).await.unwrap();
    world.clock.set(morning(DAY));
    let (request, deadline) = (BatchRequest::on(date(DAY)), morning(DAY) + TimeDelta::hours(1));
    let ran = injector.run(sweep.run(&request, deadline)).await;
    Disturbed { world, calls: injector.calls(), report: ran.and_then(Result::ok) }
}

/// The due dates of the successful charges of `subscription` in the ledger; each attempt is in it once.
fn charged(world: &World, subscription: &Subscription) -> Vec<String> {
    let (mut paid, mut tried) = (Vec::new(), BTreeSet::new());
    let entries = world.sandbox.entries();
    for entry in &entries {
        let Entry::Payment(made) = entry else { continue };
        if made.request.subscription != subscription.id {
            continue;
        }
        assert!(tried.insert((made.request.due_on, made.request.attempt_no)), "an attempt was made twice: {entries:?}");
        let mut ends = entries.iter().filter_map(|entry| match entry {
            Entry::Resolved { id, status, .. } if *id == made.id => Some(status),
            _ => None,
        });
        if *ends.next_back().unwrap_or(&made.status) == PaymentStatus::Succeeded {
            paid.push(made.request.due_on.to_string());
        }
    }
    paid
}

/// Runs until nothing is open any more: the same day again, and the days after.
pub async fn until_clean(world: &World, subscription: &Subscription) {
    world.set_clock_back(morning(DAY) + TimeDelta::hours(2)).await;
    world.charge_at(DAY, morning(DAY) + TimeDelta::hours(2)).await;
    for day in ["2026-03-11", "2026-03-12", "2026-03-13", "2026-03-14"] {
        world.charge(day).await;
    }
    let stored = world.stored(subscription).await;
    assert_eq!(stored.attempt, None, "an attempt is left open: {stored:?}");
}

/// What must hold however it went.
pub async fn assert_invariants(world: &World, subscription: &Subscription, story: &str) {
    let paid = charged(world, subscription);
    let months: BTreeSet<&str> = paid.iter().map(|due_on| &due_on[..7]).collect();
    assert_eq!(months.len(), paid.len(), "{story}: a month was charged twice: {paid:?}");
    let account = &subscription.account;
    let receipts = world.table.get_receipts_by_account(account, &Paging::all(), DateTime::UNIX_EPOCH).await.unwrap();
    let receipts: Vec<_> =
        receipts.items.into_iter().filter(|receipt| receipt.subscription == subscription.id).collect();
    let receipted: Vec<String> = receipts.iter().rev().map(|receipt| receipt.due_on.to_string()).collect();
    assert_eq!(receipted, paid, "{story}: receipts and charges differ");
    assert!(receipts.iter().all(|receipt| receipt.amount == subscription.price), "{story}");
    let stored = world.stored(subscription).await;
    assert!(paid.iter().all(|due_on| date(due_on) < stored.due_on), "{story}: it has not advanced: {stored:?}");
    let is_due = stored.next_payment_on.is_some();
    assert_eq!(is_due, stored.status.is_chargeable(), "{story}: {stored:?}");
}

fn paying_with(method: &str) -> Subscription {
    Subscription { payment_method: card(method), ..new_subscription(10, "2026-02-20") }
}

fn scenes() -> Vec<Scene> {
    fn nothing(_: &World, _: &Subscription) -> futures::future::BoxFuture<'static, ()> {
        Box::pin(async {})
    }
    /// An attempt of an hour ago, whose charge was lost before or after it took effect.
    fn in_doubt(world: &World, fault: Fault) -> futures::future::BoxFuture<'static, ()> {
        world.next_charge(fault);
        let (clock, wired) = (world.clock.clone(), world.system.over(world.wire.clone()));
        let deployment = Deployment { gateway: world.gateway.clone(), ..wired };
        Box::pin(async move {
            clock.set(morning(DAY) - TimeDelta::hours(1));
            let sweep = deployment.payments().await.unwrap();
            let report = sweep.run(&BatchRequest::on(date(DAY)), morning(DAY)).await.unwrap();
            assert_eq!(counts(&report), [("in_doubt", 1)]);
        })
    }
    fn stopped(world: &World, subscription: &Subscription, status: Status) -> futures::future::BoxFuture<'static, ()> {
        let doubt = in_doubt(world, if status == Status::Paused { Fault::LostBefore } else { Fault::LostAfter });
        let (table, account, id) = (world.table.clone(), subscription.account.clone(), subscription.id);
        Box::pin(async move {
            doubt.await;
            let before = table.get_subscription(&account, id).await.unwrap().unwrap();
            let stop = |s: &Subscription| if status == Status::Paused { paused(s).into() } else { cancelled(s) };
            table.settle(before, |stored| Ok::<_, ()>(stop(stored))).await.unwrap();
        })
    }
    let scene = |story, method, before| Scene { story, subscription: paying_with(method), before };
    let mut past_due = scene("a try after a decline", "pm_card_visa", nothing);
    (past_due.subscription.status, past_due.subscription.failed_attempts) = (Status::PastDue, 2);
    let mut ending = scene("the end of the last period", "pm_card_visa", nothing);
    ending.subscription.cancel_from = Some("2026-03".parse().unwrap());
    vec![
        scene("a success", "pm_card_visa", nothing),
        scene("a soft decline", "pm_card_visa_chargeDeclined", nothing),
        scene("a hard decline", "pm_card_visa_chargeDeclinedLostCard", nothing),
        scene("a rejection", "pm_unknown", nothing),
        scene("a debit that takes its time", "pm_usBankAccount_success", nothing),
        past_due,
        ending,
        scene("a take-over, never charged", "pm_card_visa", |world, _| in_doubt(world, Fault::LostBefore)),
        scene("a take-over, charged", "pm_card_visa", |world, _| in_doubt(world, Fault::LostAfter)),
        scene("paused in doubt", "pm_card_visa", |world, s| stopped(world, s, Status::Paused)),
        scene("cancelled in doubt", "pm_card_visa", |world, s| stopped(world, s, Status::Cancelled)),
    ]
}

/// A world of one shard: each shard more is a few calls more, and none of another kind.
pub async fn new_world() -> World {
    World::set_up(Wire::default(), &[("DUEDAY_SHARDS", "1")]).await
}

async fn set(scene: &Scene) -> World {
    let world = new_world().await;
    world.has(&scene.subscription).await;
    (scene.before)(&world, &scene.subscription).await;
    world
}

#[tokio::test]
async fn payment_run_ends_the_same_after_a_fault_at_any_call() {
    for scene in scenes() {
        let calm = set(&scene).await;
        calm.charge(DAY).await;
        until_clean(&calm, &scene.subscription).await;
        assert_invariants(&calm, &scene.subscription, scene.story).await;
        let expected = charged(&calm, &scene.subscription);
        let settled = calm.stored(&scene.subscription).await;
        for fault in FAULTS {
            for has_retries in [true, false] {
                let (mut at, mut reached_us) = (1, 0);
                loop {
                    let story = format!("{}, {fault:?} of call {at}, retries {has_retries}", scene.story);
                    let payments = disturb(set(&scene).await, (fault, at, has_retries), Deployment::charge_due);
                    let Disturbed { world, calls, report } = payments.await;
                    if calls < at {
                        assert_eq!(calls, at - 1, "{story}: every call before was disturbed in its turn");
                        break;
                    }
                    // A request the SDK repeats is one more call; what reaches us ends the run or shows in its counts.
                    reached_us +=
                        u32::from(report.is_none_or(|report| !report.complete || counts(&report) != counts_of(&scene)));
                    until_clean(&world, &scene.subscription).await;
                    assert_invariants(&world, &scene.subscription, &story).await;
                    let paid = charged(&world, &scene.subscription);
                    assert_eq!(paid, expected, "{story}");
                    let stored = world.stored(&scene.subscription).await;
                    let end = |s: &Subscription| (s.status, s.due_on);
                    assert_eq!(end(&stored), end(&settled), "{story}");
                    at += 1;
                }
                assert!(at > 6, "{}: only {at} calls", scene.story);
                assert!(
                    !fault.is_crash() || u64::from(reached_us) == at - 1,
                    "{}: a crash reaches us always",
                    scene.story
                );
                assert!(has_retries || reached_us >= 2, "{}, {fault:?}: {reached_us} faults reached us", scene.story);
            }
        }
    }
}

/// What a run of the scene without a fault counts.
fn counts_of(scene: &Scene) -> Vec<(&'static str, u64)> {
    vec![(
        match scene.story {
            "a soft decline" | "a hard decline" => "declined",
            "a rejection" => "rejected",
            "a debit that takes its time" => "processing",
            "the end of the last period" | "paused in doubt" => "skipped",
            _ => "paid",
        },
        1,
    )]
}

#[tokio::test]
async fn reminder_run_sends_at_least_one_and_at_most_two_mails_after_a_fault_at_any_call() {
    let subscription = new_subscription(15, "2026-02-20");
    for fault in FAULTS {
        for has_retries in [true, false] {
            let mut at = 1;
            loop {
                let story = format!("{fault:?} of call {at}, retries {has_retries}");
                let world = new_world().await;
                world.has(&subscription).await;
                let reminders = disturb(world, (fault, at, has_retries), Deployment::remind_due);
                let Disturbed { world, calls, .. } = reminders.await;
                if calls < at {
                    assert_eq!(calls, at - 1, "{story}");
                    break;
                }
                world.remind("2026-03-11").await;
                world.remind("2026-03-12").await;
                let sent = world.letterbox.mails().len();
                assert!((1..=2).contains(&sent), "{story}: {sent} reminders");
                let stored = world.stored(&subscription).await;
                assert_eq!((stored.next_reminder_on, stored.reminded_for), (None, Some(date("2026-03-15"))), "{story}");
                at += 1;
            }
            assert!(at > 5, "only {at} calls");
        }
    }
}
