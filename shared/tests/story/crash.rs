//! A crash at every step. For each outside call of a run (every DynamoDB request, gateway call and mail) and each way it
//! can go wrong, the run is made with that one fault, and then runs are made until nothing is open. Whatever happened,
//! the customer was charged what a run without a fault charges.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use emulator::{Fault, Wire};
use shared::billing::{GatewayToken, Payment, PaymentStatus, Status, Subscription};
use shared::config::{Config, Env};
use shared::gateway::{ChargeAnswer, ChargeRequest, Entry, LookUpError, PaymentGateway};
use shared::mail::{Mail, MailError, Mailer, Merchant};
use shared::payments::ChargeDue;
use shared::reminders::RemindDue;
use shared::sweep::{BatchRequest, Report, Sweep, Task};
use shared::table::{Paging, Table};
use tokio::sync::Notify;

use crate::world::{Letterbox, Mishap, Unreliable, World, card, counts, date, morning, new_subscription};

const DAY: &str = "2026-03-10";

/// How one call goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Blow {
    /// It is lost before it takes effect.
    LostBefore,
    /// It takes effect, and its answer is lost.
    LostAfter,
    /// The run ends there, before it takes effect.
    CrashBefore,
    /// The run ends there, after it took effect.
    CrashAfter,
}

/// Counts outside calls from the moment it is armed, and blows at one of them.
#[derive(Debug, Default)]
struct Fuse {
    /// The call to blow at, from 1; 0 is unarmed.
    at: AtomicU64,
    calls: AtomicU64,
    blown: AtomicU64,
    crash: Notify,
}

impl Fuse {
    fn next(&self, blow: Blow) -> Option<Blow> {
        let at = self.at.load(Ordering::SeqCst);
        if at == 0 || self.calls.fetch_add(1, Ordering::SeqCst) + 1 != at {
            return None;
        }
        self.blown.fetch_add(1, Ordering::SeqCst);
        if matches!(blow, Blow::CrashBefore | Blow::CrashAfter) {
            self.crash.notify_one();
        }
        Some(blow)
    }

    /// Makes a call, or does to it what the fuse says.
    async fn call<T>(&self, blow: Blow, lost: impl FnOnce() -> T, call: impl Future<Output = T>) -> T {
        match self.next(blow) {
            None => call.await,
            Some(Blow::LostBefore) => lost(),
            Some(Blow::LostAfter) => {
                call.await;
                lost()
            }
            Some(Blow::CrashBefore) => std::future::pending().await,
            Some(Blow::CrashAfter) => {
                call.await;
                std::future::pending().await
            }
        }
    }
}

/// The gateway and the letterbox, behind the fuse.
#[derive(Debug)]
struct Fused<T> {
    inner: Arc<T>,
    fuse: Arc<Fuse>,
    blow: Blow,
}

#[async_trait]
impl PaymentGateway for Fused<Unreliable> {
    async fn charge(&self, request: &ChargeRequest) -> ChargeAnswer {
        let lost = || ChargeAnswer::Unknown { reason: "no answer".to_owned() };
        self.fuse.call(self.blow, lost, self.inner.charge(request)).await
    }

    async fn payments_of(&self, customer: &GatewayToken, since: DateTime<Utc>) -> Result<Vec<Payment>, LookUpError> {
        let lost = || Err(LookUpError::Unknown { reason: "no answer".to_owned() });
        self.fuse.call(self.blow, lost, self.inner.payments_of(customer, since)).await
    }
}

#[async_trait]
impl Mailer for Fused<Letterbox> {
    async fn send(&self, mail: &Mail) -> Result<(), MailError> {
        let lost = || Err(MailError { reason: "no answer".to_owned(), is_transient: true });
        self.fuse.call(self.blow, lost, self.inner.send(mail)).await
    }
}

/// What happens before the run that is disturbed.
struct Scene {
    story: &'static str,
    subscription: Subscription,
    /// Brings the world to where that run begins.
    before: fn(&World, &Subscription) -> futures::future::BoxFuture<'static, ()>,
}

/// The world after `fault` at call `at`, and how many calls there were; `None` if the run makes fewer calls than that.
struct Disturbed<C> {
    world: World,
    fuse: Arc<Fuse>,
    /// What the disturbed run answered, if it came to its end.
    report: Option<Report<C>>,
}

async fn disturb<T: Task>(
    world: World,
    blow: Blow,
    at: u64,
    has_retries: bool,
    task: impl FnOnce(&World, Table, Arc<Fuse>, &Config) -> T,
) -> Disturbed<T::Counts> {
    let fuse = Arc::new(Fuse::default());
    let wired = fuse.clone();
    let wire = Wire::with_faults(move |_, _| match wired.next(blow) {
        None => Fault::None,
        Some(Blow::LostBefore) => Fault::LostBefore,
        Some(Blow::LostAfter) => Fault::LostAfter,
        Some(Blow::CrashBefore) => Fault::SilentBefore,
        Some(Blow::CrashAfter) => Fault::SilentAfter,
    });
    let wire = Arc::new(if has_retries { wire } else { wire.and_no_retries() });
    let mut config = Config::read(Env(&|_| None)).unwrap();
    config.gateway_rate = None;
    config.page_rows = 3;
    let table = Table::new(world.engine.client_over(wire), &config.table, config.receipts_kept);
    let task = task(&world, table.clone(), fuse.clone(), &config);
    let sweep = Sweep::new(table, task, &config, world.clock.clone()).await.unwrap();
    fuse.at.store(at, Ordering::SeqCst);
    let request = BatchRequest::on(date(DAY));
    let deadline = morning(DAY) + TimeDelta::hours(1);
    world.clock.set(morning(DAY));
    let report = tokio::select! {
        biased;
        () = fuse.crash.notified() => None,
        report = sweep.run(&request, deadline) => report.ok(),
    };
    Disturbed { world, fuse, report }
}

/// The due dates of the successful charges of `subscription` in the ledger; each attempt is in it once.
fn charged(world: &World, subscription: &Subscription) -> Vec<String> {
    let (mut paid, mut tried) = (Vec::new(), BTreeSet::new());
    let entries = world.gateway.sandbox.entries();
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
    /// An attempt of the day before, its charge lost one way or the other.
    fn in_doubt(world: &World, mishap: Mishap) -> futures::future::BoxFuture<'static, ()> {
        world.gateway.plan.lock().unwrap().push(mishap);
        let (clock, gateway, table) = (world.clock.clone(), world.gateway.clone(), world.table.clone());
        Box::pin(async move {
            let mut config = Config::read(Env(&|_| None)).unwrap();
            config.gateway_rate = None;
            clock.set(morning(DAY) - TimeDelta::hours(1));
            let charge_due = ChargeDue::new(table.clone(), gateway, &config, clock.clone());
            let sweep = Sweep::new(table, charge_due, &config, clock).await.unwrap();
            let report = sweep.run(&BatchRequest::on(date(DAY)), morning(DAY)).await.unwrap();
            assert_eq!(counts(&report), [("in_doubt", 1)]);
        })
    }
    fn stopped(world: &World, subscription: &Subscription, status: Status) -> futures::future::BoxFuture<'static, ()> {
        let doubt = in_doubt(world, if status == Status::Paused { Mishap::LostBefore } else { Mishap::LostAfter });
        let (table, account, id) = (world.table.clone(), subscription.account.clone(), subscription.id);
        Box::pin(async move {
            doubt.await;
            let before = table.get_subscription(&account, id).await.unwrap().unwrap();
            let after = if status == Status::Paused { before.pause().unwrap() } else { before.cancel() };
            table.update_subscription(&before, &after).await.unwrap();
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
        scene("a take-over, never charged", "pm_card_visa", |world, _| in_doubt(world, Mishap::LostBefore)),
        scene("a take-over, charged", "pm_card_visa", |world, _| in_doubt(world, Mishap::LostAfter)),
        scene("paused in doubt", "pm_card_visa", |world, s| stopped(world, s, Status::Paused)),
        scene("cancelled in doubt", "pm_card_visa", |world, s| stopped(world, s, Status::Cancelled)),
    ]
}

/// A world of one shard: each shard more is a few calls more, and none of another kind.
pub async fn new_world() -> World {
    World::set_up(Wire::default(), |name| (name == "DUEDAY_SHARDS").then(|| "1".to_owned())).await
}

async fn set(scene: &Scene) -> World {
    let world = new_world().await;
    world.has(&scene.subscription).await;
    (scene.before)(&world, &scene.subscription).await;
    world
}

#[tokio::test]
async fn a_fault_at_any_step_of_a_payment_run_changes_nothing_in_the_end() {
    for scene in scenes() {
        let calm = set(&scene).await;
        calm.charge(DAY).await;
        until_clean(&calm, &scene.subscription).await;
        assert_invariants(&calm, &scene.subscription, scene.story).await;
        let expected = charged(&calm, &scene.subscription);
        let settled = calm.stored(&scene.subscription).await;
        for blow in [Blow::LostBefore, Blow::LostAfter, Blow::CrashBefore, Blow::CrashAfter] {
            for has_retries in [true, false] {
                let (mut at, mut reached_us) = (1, 0);
                loop {
                    let story = format!("{}, {blow:?} of call {at}, retries {has_retries}", scene.story);
                    let payments = |world: &World, table: Table, fuse: Arc<Fuse>, config: &Config| {
                        let gateway = Arc::new(Fused { inner: world.gateway.clone(), fuse, blow });
                        ChargeDue::new(table, gateway, config, world.clock.clone())
                    };
                    let Disturbed { world, fuse, report } =
                        disturb(set(&scene).await, blow, at, has_retries, payments).await;
                    let calls = fuse.calls.load(Ordering::SeqCst);
                    if fuse.blown.load(Ordering::SeqCst) == 0 {
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
                let is_crash = matches!(blow, Blow::CrashBefore | Blow::CrashAfter);
                assert!(!is_crash || u64::from(reached_us) == at - 1, "{}: a crash reaches us always", scene.story);
                assert!(has_retries || reached_us >= 2, "{}, {blow:?}: {reached_us} faults reached us", scene.story);
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
async fn a_fault_at_any_step_of_a_reminder_run_sends_one_more_at_most_and_never_none() {
    let subscription = new_subscription(15, "2026-02-20");
    for blow in [Blow::LostBefore, Blow::LostAfter, Blow::CrashBefore, Blow::CrashAfter] {
        for has_retries in [true, false] {
            let mut at = 1;
            loop {
                let story = format!("{blow:?} of call {at}, retries {has_retries}");
                let world = new_world().await;
                world.has(&subscription).await;
                let reminders = |world: &World, table: Table, fuse: Arc<Fuse>, _: &Config| {
                    let mailer = Arc::new(Fused { inner: world.letterbox.clone(), fuse, blow });
                    RemindDue::new(table, mailer, Merchant { name: "Shop".to_owned() }, world.clock.clone())
                };
                let Disturbed { world, fuse, .. } = disturb(world, blow, at, has_retries, reminders).await;
                if fuse.blown.load(Ordering::SeqCst) == 0 {
                    assert_eq!(fuse.calls.load(Ordering::SeqCst), at - 1, "{story}");
                    break;
                }
                world.remind("2026-03-11").await;
                world.remind("2026-03-12").await;
                let sent = world.letterbox.mails.lock().unwrap().len();
                assert!((1..=2).contains(&sent), "{story}: {sent} reminders");
                let stored = world.stored(&subscription).await;
                assert_eq!((stored.next_reminder_on, stored.reminded_for), (None, Some(date("2026-03-15"))), "{story}");
                at += 1;
            }
            assert!(at > 5, "only {at} calls");
        }
    }
}
