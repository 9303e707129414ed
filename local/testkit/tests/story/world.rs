//! A world to tell stories in: one builder for a subscription, and a system on the engine with a clock that is set.

use std::sync::Arc;

use billing::{Account, PaymentMethod, Settlement, Status, Subscription, SubscriptionId};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use clock::SimulatedClock;
use emulator::{Deployment, Fault, Injector, Operation, Wire};
use gateways::{Entry, PaymentGateway, Sandbox};
use payments::ChargeDue;
use reminders::RemindDue;
use settling::{Resolving, Settling};
use store::{Counts, Created, Paging, PaymentCounts, ReminderCounts, Rewritten, SubscriptionKey, Table};
use sweep::{BatchRequest, Report, Sweep};
use testkit::{Faulty, InMemory, Letterbox, Script, config, sample};
use ulid::Ulid;

/// Shards of a world, unless it is set up with others.
pub const SHARDS: u32 = 4;

pub fn date(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

/// Six in the morning: the billing time.
pub fn morning(day: &str) -> DateTime<Utc> {
    format!("{day}T06:00:00Z").parse().unwrap()
}

pub fn card(name: &str) -> PaymentMethod {
    PaymentMethod { customer: "cus_1".parse().unwrap(), payment_method: name.parse().unwrap() }
}

/// A subscription of 12.99 EUR on `payment_day`, begun on `created`. Payment days spread over accounts and shards.
pub fn new_subscription(payment_day: i64, created: &str) -> Subscription {
    const ACCOUNTS: [&str; 5] = ["acme", "bell", "larch", "oak", "pine"];
    let n = u32::try_from(payment_day).unwrap();
    let account = ACCOUNTS[n as usize % ACCOUNTS.len()].parse().unwrap();
    Subscription { account, shard: n % SHARDS, ..sample::subscription(payment_day, date(created)) }
}

/// The same, but all of one account and in one shard.
pub fn of_acme(payment_day: i64, created: &str) -> Subscription {
    sample::subscription(payment_day, date(created))
}

/// The `n`th of many such subscriptions, of an account and in a shard of its own.
pub fn another(n: u32, payment_day: i64, created: &str) -> Subscription {
    let account = format!("account-{n}").parse().unwrap();
    let id = SubscriptionId::new(Ulid::from_parts(2, n.into()));
    Subscription { account, id, shard: n % SHARDS, ..new_subscription(payment_day, created) }
}

/// What a story takes place in. Its batches reach the table over `wire`, charge through `gateway` and send to
/// `letterbox`, with the faults of `script`.
pub struct World {
    pub system: InMemory,
    pub clock: Arc<SimulatedClock>,
    pub table: Table,
    pub settling: Settling,
    pub sandbox: Arc<Sandbox>,
    pub gateway: Arc<Faulty<Sandbox>>,
    pub letterbox: Arc<Letterbox>,
    pub script: Arc<Script>,
    pub wire: Arc<Wire>,
    pub payments: Sweep<ChargeDue>,
    pub reminders: Sweep<RemindDue>,
}

impl World {
    pub async fn new() -> Self {
        Self::over(Wire::metered()).await
    }

    /// A world whose batches reach the table over `wire`; what a test itself does goes another way.
    pub async fn over(wire: Wire) -> Self {
        Self::set_up(wire, &[]).await
    }

    /// A world with these settings.
    pub async fn with(settings: &[(&str, &str)]) -> Self {
        Self::set_up(Wire::metered(), settings).await
    }

    /// A world whose table has another id than the others' tables.
    pub async fn set_up_with_id(seed: u64) -> Self {
        Self::seeded(seed, Wire::metered(), &[]).await
    }

    pub async fn set_up(wire: Wire, settings: &[(&str, &str)]) -> Self {
        Self::seeded(7, wire, settings).await
    }

    async fn seeded(seed: u64, wire: Wire, settings: &[(&str, &str)]) -> Self {
        let settings = [settings, &[("DUEDAY_PAGE_ROWS", "3"), ("DUEDAY_MERCHANT", "Shop")]].concat();
        let (letterbox, wire) = (Arc::new(Letterbox::default()), Arc::new(wire));
        let script = Arc::new(Script::default());
        let injector = Arc::new(Injector::new(script.clone()));
        let mailer = Arc::new(Faulty::new(letterbox.clone(), injector.clone()));
        let clock = SimulatedClock::new(morning("2026-01-01"), seed);
        let system = InMemory::new(config(&settings).unwrap(), clock, mailer).await.unwrap();
        let gateway = Arc::new(Faulty::new(system.sandbox.clone(), injector));
        let wired = Deployment { gateway: gateway.clone(), ..system.over(wire.clone()) };
        // The sweeps read over an undisturbed wire: a test says which write of a task is lost.
        let payments = system.deployment.sweep(wired.charge_due()).await.unwrap();
        let reminders = system.deployment.sweep(wired.remind_due()).await.unwrap();
        let (clock, table, sandbox) = (system.clock.clone(), system.deployment.table.clone(), system.sandbox.clone());
        let policy = system.deployment.config.billing.policy.clone();
        let settling = Settling::new(table.clone(), policy, clock.clone());
        Self { system, clock, table, settling, sandbox, gateway, letterbox, script, wire, payments, reminders }
    }

    /// How attempts are resolved by hand here; the gateway is asked, or not.
    pub fn by_hand(&self, asks_the_gateway: bool) -> Resolving<'_> {
        let config = &self.system.deployment.config;
        let gateway = asks_the_gateway.then_some(self.gateway.as_ref() as &dyn PaymentGateway);
        Resolving { settling: &self.settling, gateway, lease: config.charging.lease }
    }

    /// The payment batch as a process of its own would run it: over `wire`, through `gateway`.
    pub async fn payments_over(&self, wire: Wire, gateway: Arc<dyn PaymentGateway>) -> Sweep<ChargeDue> {
        let mut deployment = Deployment { gateway, ..self.system.over(Arc::new(wire)) };
        deployment.config.limits.page_rows = 2;
        deployment.payments().await.unwrap()
    }

    /// The reminder batch as a process of its own would run it: over `wire`, its mails through `injector`.
    pub async fn reminders_over(&self, wire: Wire, injector: Arc<Injector>) -> Sweep<RemindDue> {
        let mailer = Arc::new(Faulty::new(self.letterbox.clone(), injector));
        let mut deployment = Deployment { mailer, ..self.system.over(Arc::new(wire)) };
        deployment.config.limits.page_rows = 2;
        deployment.reminders().await.unwrap()
    }

    /// Sets the clock, which may go back further than a run bears: as an operator would confirm.
    pub async fn set_clock_back(&self, now: DateTime<Utc>) {
        let latest = self.table.get_settings().await.unwrap().unwrap().latest_run_at;
        if let Some(latest) = latest.filter(|latest| *latest > now) {
            self.table.confirm_clock(now, latest).await.unwrap();
        }
        self.clock.set(now);
    }

    /// What happens to the next charge.
    pub fn next_charge(&self, fault: Fault) {
        self.script.add(Operation::Charge, [Some(fault)]);
    }

    /// Stores `subscription` and its account.
    pub async fn has(&self, subscription: &Subscription) {
        let account = Account { id: subscription.account.clone(), ..sample::account() };
        self.table.put_account(&account).await.unwrap();
        let shards = self.table.get_settings().await.unwrap().unwrap().shards;
        let subscription = Subscription { shard: subscription.shard % shards, ..subscription.clone() };
        assert_eq!(self.table.create_subscription(&subscription, None).await.unwrap(), Created::Created);
    }

    /// What is stored of `subscription` now.
    pub async fn stored(&self, subscription: &Subscription) -> Subscription {
        self.table.get_subscription(&subscription.account, subscription.id).await.unwrap().unwrap()
    }

    /// Writes what a customer does.
    pub async fn customer<S: Into<Settlement>>(&self, subscription: &Subscription, act: impl Fn(&Subscription) -> S) {
        let before = self.stored(subscription).await;
        let done = self.table.settle(before, |stored| Ok::<_, ()>(act(stored).into())).await.unwrap();
        assert!(matches!(done, Rewritten::Applied(_)), "{done:?}");
    }

    /// The payment batch of `day`, in the morning.
    pub async fn charge(&self, day: &str) -> Report<PaymentCounts> {
        self.charge_at(day, morning(day)).await
    }

    pub async fn charge_at(&self, day: &str, now: DateTime<Utc>) -> Report<PaymentCounts> {
        self.charge_by(&self.payments, day, now).await
    }

    /// A run of `payments` for `day`, at `now`.
    pub async fn charge_by(&self, payments: &Sweep<ChargeDue>, day: &str, now: DateTime<Utc>) -> Report<PaymentCounts> {
        self.clock.set(now);
        let report = payments.run(&BatchRequest::on(date(day)), now + TimeDelta::hours(1)).await.unwrap();
        assert!(report.adds_up(), "{report:?}");
        report
    }

    /// The reminder batch of `day`, in the morning.
    pub async fn remind(&self, day: &str) -> Report<ReminderCounts> {
        self.clock.set(morning(day));
        let report =
            self.reminders.run(&BatchRequest::on(date(day)), morning(day) + TimeDelta::hours(1)).await.unwrap();
        assert!(report.adds_up(), "{report:?}");
        report
    }

    /// The due dates of all receipts, oldest first.
    pub async fn receipts(&self, subscription: &Subscription) -> Vec<String> {
        self.receipted(subscription).await.into_iter().map(|(due_on, _)| due_on).collect()
    }

    /// The due dates and amounts of all receipts, oldest first.
    pub async fn receipted(&self, subscription: &Subscription) -> Vec<(String, i64)> {
        let all = Paging::all();
        let receipts = self.table.get_receipts_by_account(&subscription.account, &all, DateTime::UNIX_EPOCH).await;
        let receipts = receipts.unwrap().items.into_iter().rev();
        receipts.map(|receipt| (receipt.due_on.to_string(), receipt.amount.minor())).collect()
    }

    /// The due dates of all successful charges in the ledger, in order.
    pub fn charged(&self) -> Vec<String> {
        let made = self.sandbox.entries().into_iter().filter_map(|entry| match entry {
            Entry::Payment(made) if made.status == billing::PaymentStatus::Succeeded => {
                Some(made.request.due_on.to_string())
            }
            _ => None,
        });
        made.collect()
    }
}

/// Paused, also with an attempt open: so a clock that is ahead may leave it.
pub fn paused(subscription: &Subscription) -> Subscription {
    let next_payment_on = subscription.next_payment_on.filter(|_| subscription.attempt.is_some());
    Subscription { status: Status::Paused, next_payment_on, next_reminder_on: None, ..subscription.clone() }
}

/// Cancelled on its due date.
pub fn cancelled(subscription: &Subscription) -> Settlement {
    subscription.cancel(subscription.due_on, morning(&subscription.due_on.to_string()))
}

pub fn key(subscription: &Subscription) -> SubscriptionKey {
    SubscriptionKey::of(subscription)
}

/// The counts of a report that are not zero, besides `due`, by name.
pub fn counts<C: Counts>(report: &Report<C>) -> Vec<(&'static str, u64)> {
    let mut named: Vec<_> = report.counts.named().into_iter().filter(|(_, count)| *count > 0).collect();
    named.sort_unstable();
    named
}
