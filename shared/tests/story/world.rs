//! A world to tell stories in: one builder for a subscription, and a system on the engine with a clock that is set.

use std::sync::Arc;
use std::sync::Mutex;

use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use emulator::{Engine, Wire, sample};
use shared::billing::{GatewayToken, Payment, PaymentMethod, Subscription};
use shared::clock::SimulatedClock;
use shared::config::{Config, Env};
use shared::gateway::{ChargeAnswer, ChargeRequest, Entry, Ledger, LookUpError, PaymentGateway, Sandbox};
use shared::mail::{Mail, MailError, Mailer, Merchant};
use shared::payments::ChargeDue;
use shared::reminders::RemindDue;
use shared::sweep::{BatchRequest, Report, Sweep};
use shared::table::{Counts, Created, Paging, PaymentCounts, ReminderCounts, SubscriptionKey, Table};

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

/// A subscription of 12.99 EUR on `payment_day`, begun on `created`.
pub fn new_subscription(payment_day: i64, created: &str) -> Subscription {
    sample::subscription(payment_day, date(created))
}

/// A gateway that does to each charge what it is told to, around the sandbox.
#[derive(Debug)]
pub struct Unreliable {
    pub sandbox: Sandbox,
    /// What happens to the next charges, in order.
    pub plan: Mutex<Vec<Mishap>>,
}

/// What happens to a charge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mishap {
    /// It arrives and is answered.
    None,
    /// It never arrives.
    LostBefore,
    /// It is made, and the answer is lost.
    LostAfter,
    /// The gateway does not know us.
    Unusable,
}

#[async_trait]
impl PaymentGateway for Unreliable {
    async fn charge(&self, request: &ChargeRequest) -> ChargeAnswer {
        let next = { self.plan.lock().unwrap().pop() };
        let lost = || ChargeAnswer::Unknown { reason: "no answer".to_owned() };
        match next {
            None | Some(Mishap::None) => self.sandbox.charge(request).await,
            Some(Mishap::LostBefore) => lost(),
            Some(Mishap::LostAfter) => {
                self.sandbox.charge(request).await;
                lost()
            }
            Some(Mishap::Unusable) => ChargeAnswer::Unusable { reason: "401".to_owned() },
        }
    }

    async fn payments_of(&self, customer: &GatewayToken, since: DateTime<Utc>) -> Result<Vec<Payment>, LookUpError> {
        self.sandbox.payments_of(customer, since).await
    }
}

/// Keeps mails in memory, or refuses them.
#[derive(Debug, Default)]
pub struct Letterbox {
    pub mails: Mutex<Vec<Mail>>,
    pub is_closed: Mutex<bool>,
}

#[async_trait]
impl Mailer for Letterbox {
    async fn send(&self, mail: &Mail) -> Result<(), MailError> {
        if *self.is_closed.lock().unwrap() {
            return Err(MailError { reason: "closed".to_owned(), is_transient: true });
        }
        self.mails.lock().unwrap().push(mail.clone());
        Ok(())
    }
}

pub struct World {
    pub engine: Engine,
    pub clock: Arc<SimulatedClock>,
    pub table: Table,
    pub gateway: Arc<Unreliable>,
    pub letterbox: Arc<Letterbox>,
    pub payments: Sweep<ChargeDue>,
    pub reminders: Sweep<RemindDue>,
    pub wire: Arc<Wire>,
}

impl World {
    pub async fn new() -> Self {
        Self::over(Wire::metered()).await
    }

    /// A world whose batches reach the table over `wire`; what a test itself does goes another way.
    pub async fn over(wire: Wire) -> Self {
        Self::set_up(wire, |_| None).await
    }

    pub async fn set_up(wire: Wire, variable: impl Fn(&str) -> Option<String> + Sync) -> Self {
        let engine = Engine::memory();
        let wire = Arc::new(wire);
        let clock = Arc::new(SimulatedClock::new(morning("2026-01-01"), 7));
        let mut config = Config::read(Env(&variable)).unwrap();
        config.gateway_rate = None;
        config.page_rows = 3;
        let table = Table::new(engine.client(), &config.table, config.receipts_kept);
        table.create_if_absent().await.unwrap();
        table.init_settings(&config.initial_settings(clock.as_ref())).await.unwrap();
        let gateway =
            Arc::new(Unreliable { sandbox: Sandbox::new(Ledger::memory(), clock.clone()), plan: Mutex::default() });
        let letterbox = Arc::new(Letterbox::default());
        let wired = Table::new(engine.client_over(wire.clone()), &config.table, config.receipts_kept);
        let charge_due = ChargeDue::new(wired.clone(), gateway.clone(), &config, clock.clone());
        let merchant = Merchant { name: "Shop".to_owned() };
        let remind_due = RemindDue::new(wired.clone(), letterbox.clone(), merchant, clock.clone());
        // The sweeps read over an undisturbed wire: a test says which write of a task is lost.
        let payments = Sweep::new(table.clone(), charge_due, &config, clock.clone()).await.unwrap();
        let reminders = Sweep::new(table.clone(), remind_due, &config, clock.clone()).await.unwrap();
        Self { engine, clock, table, gateway, letterbox, payments, reminders, wire }
    }

    /// The payment batch as a process of its own would run it: over `wire`, through `gateway`.
    pub async fn payments_over(&self, wire: Wire, gateway: Arc<dyn PaymentGateway>) -> Sweep<ChargeDue> {
        let mut config = Config::read(Env(&|_| None)).unwrap();
        config.gateway_rate = None;
        config.page_rows = 2;
        let table = Table::new(self.engine.client_over(Arc::new(wire)), &config.table, config.receipts_kept);
        let charge_due = ChargeDue::new(table.clone(), gateway, &config, self.clock.clone());
        Sweep::new(table, charge_due, &config, self.clock.clone()).await.unwrap()
    }

    /// Stores `subscription` and its account.
    pub async fn has(&self, subscription: &Subscription) {
        self.table.put_account(&sample::account()).await.unwrap();
        assert_eq!(self.table.create_subscription(subscription, None).await.unwrap(), Created::Created);
    }

    /// What is stored of `subscription` now.
    pub async fn stored(&self, subscription: &Subscription) -> Subscription {
        self.table.get_subscription(&subscription.account, subscription.id).await.unwrap().unwrap()
    }

    /// Writes what a customer does.
    pub async fn customer(&self, subscription: &Subscription, act: impl Fn(&Subscription) -> Subscription) {
        let before = self.stored(subscription).await;
        self.table.update_subscription(&before, &act(&before)).await.unwrap();
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
        let made = self.gateway.sandbox.entries().into_iter().filter_map(|entry| match entry {
            Entry::Payment(made) if made.status == shared::billing::PaymentStatus::Succeeded => {
                Some(made.request.due_on.to_string())
            }
            _ => None,
        });
        made.collect()
    }
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
