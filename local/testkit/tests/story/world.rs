//! The world in which the tests run: functions that create subscriptions, and a deployment in memory with a simulated
//! clock.

use std::sync::Arc;

use billing::{
    Account, ActionKind, Actor, NewAction, PaymentMethod, Policy, PolicySetting, Settlement, Subscription,
    SubscriptionId, SubscriptionStatus,
};
use charging::{ApplyResult, ChargingEngine, StatedOutcome};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use clock::{Clock as _, SimulatedClock};
use deployment::{Deployment, FaultyService, InMemoryDeployment};
use emulator::{EngineConnection, ExternalOperation, Fault, FaultInjector};
use gateways::PaymentGateway;
use payments::{PaymentBatch, PaymentOutcome};
use reminders::{ReminderBatch, ReminderOutcome};
use sandbox::{LedgerEntry, Sandbox};
use store::{CreateOutcome, OutcomeCounts as _, Paging, SetPolicyOutcome, SubscriptionKey, Table};
use sweep::{BatchRequest, Outcome, RunReport, Sweep};
use testkit::{FaultScript, RecordedMails, read_test_config, sample_account, sample_subscription};
use ulid::Ulid;

/// The number of shards of a world, unless a test configures another number.
pub const SHARDS: u32 = 4;

/// Parses a date such as `2026-03-10`.
pub fn date(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

/// Returns the time of the daily batches, 06:00 UTC, on `day`.
pub fn billing_time(day: &str) -> DateTime<Utc> {
    format!("{day}T06:00:00Z").parse().unwrap()
}

/// Returns the payment method `name` (a test card or a bank account) of the customer `cus_1`.
pub fn card(name: &str) -> PaymentMethod {
    PaymentMethod { customer: "cus_1".parse().unwrap(), payment_method: name.parse().unwrap() }
}

/// Returns a subscription of 12.99 EUR that was created on the date `created`. `payment_day` also determines its id,
/// its account and its shard.
pub fn new_subscription(payment_day: i64, created: &str) -> Subscription {
    const ACCOUNTS: [&str; 5] = ["acme", "bell", "larch", "oak", "pine"];
    let n = u32::try_from(payment_day).unwrap();
    let account = ACCOUNTS[n as usize % ACCOUNTS.len()].parse().unwrap();
    Subscription { account, shard: n % SHARDS, ..sample_subscription(payment_day, date(created)) }
}

/// Returns the same subscription as [`new_subscription`], but always of the account `acme` and in shard 0.
pub fn subscription_of_acme(payment_day: i64, created: &str) -> Subscription {
    sample_subscription(payment_day, date(created))
}

/// Returns the same subscription as [`new_subscription`], but the number `n` determines the id, the account and the
/// shard, so that many subscriptions can have the same payment day.
pub fn numbered_subscription(n: u32, payment_day: i64, created: &str) -> Subscription {
    let account = format!("account-{n}").parse().unwrap();
    let id = SubscriptionId::new(Ulid::from_parts(2, n.into()));
    Subscription { account, id, shard: n % SHARDS, ..new_subscription(payment_day, created) }
}

/// The world of a test. The tasks of its batches access the table through `connection`, charge with
/// `gateway`, and send their mails to `mails_sent`. `script` contains the faults of the gateway and of the mailer.
pub struct World {
    pub system: InMemoryDeployment,
    pub clock: Arc<SimulatedClock>,
    pub table: Table,
    pub sandbox: Arc<Sandbox>,
    pub gateway: Arc<FaultyService<Sandbox>>,
    pub mails_sent: Arc<RecordedMails>,
    pub script: Arc<FaultScript>,
    pub connection: Arc<EngineConnection>,
    pub payments: Sweep<PaymentBatch>,
    pub reminders: Sweep<ReminderBatch>,
}

impl World {
    /// Creates a world with the default settings.
    pub async fn new() -> Self {
        Self::with_connection(EngineConnection::counting_capacity_units()).await
    }

    /// Creates a world with one shard. More shards would add more calls, but no other kinds of calls.
    pub async fn with_one_shard() -> Self {
        Self::with_connection_and_settings(EngineConnection::default(), &[("DUEDAY_SHARDS", "1")]).await
    }

    /// Creates a world in which the batches process single rows with requests that pass through `connection`. Other
    /// requests to the table, such as those of the test itself, do not.
    pub async fn with_connection(connection: EngineConnection) -> Self {
        Self::with_connection_and_settings(connection, &[]).await
    }

    /// Creates a world with the environment variables `settings` (name, value).
    pub async fn with_settings(settings: &[(&str, &str)]) -> Self {
        Self::with_connection_and_settings(EngineConnection::counting_capacity_units(), settings).await
    }

    /// Creates a world in which the payment batch has the limits `texts` (name, value).
    pub async fn with_payment_limits(texts: &[(&str, &str)]) -> Self {
        let world = Self::new().await;
        world.set_payment_limits(texts).await;
        world
    }

    /// Changes the limits `texts` (name, value) of the payment batch.
    pub async fn set_payment_limits(&self, texts: &[(&str, &str)]) {
        let before = self.table.get_settings().await.unwrap().unwrap().payment_limits;
        let mut after = before.clone();
        texts.iter().for_each(|(name, text)| after.set_limit(name.parse().unwrap(), text).unwrap());
        assert!(self.table.set_payment_limits(&before, &after, None).await.unwrap());
    }

    /// Creates a world whose clock has the random `seed`, so that its table has another id than the table of other
    /// worlds.
    pub async fn with_seed(seed: u64) -> Self {
        Self::with_seed_and_settings(seed, EngineConnection::counting_capacity_units(), &[]).await
    }

    /// Creates a world with `connection` (see [`World::with_connection`]) and with the environment variables
    /// `settings`.
    pub async fn with_connection_and_settings(connection: EngineConnection, settings: &[(&str, &str)]) -> Self {
        Self::with_seed_and_settings(7, connection, settings).await
    }

    /// Creates a world whose clock has the random `seed`, with `connection` and `settings`.
    async fn with_seed_and_settings(seed: u64, connection: EngineConnection, settings: &[(&str, &str)]) -> Self {
        let settings = [settings, &[("DUEDAY_PAGE_ROWS", "3"), ("DUEDAY_MERCHANT", "Shop")]].concat();
        let clock = SimulatedClock::new(billing_time("2026-01-01"), seed);
        let (config, mailer) = (read_test_config(&settings).unwrap(), Arc::new(RecordedMails::default()));
        Self::of_system(InMemoryDeployment::new(config, clock, mailer).await.unwrap(), connection).await
    }

    /// Creates a world with copies of the table, the clock and the gateway's payments of this world, without its mails
    /// and without its faults. A test that needs the same situation many times creates it once, and copies it.
    pub async fn copy(&self) -> Self {
        Self::of_system(self.system.copy(), EngineConnection::default()).await
    }

    /// Creates a world with the deployment `system` and with `connection` (see [`World::with_connection`]).
    async fn of_system(mut system: InMemoryDeployment, connection: EngineConnection) -> Self {
        let (mails_sent, connection) = (Arc::new(RecordedMails::default()), Arc::new(connection));
        let script = Arc::new(FaultScript::default());
        let injector = Arc::new(FaultInjector::new(script.clone()));
        system.deployment.mailer = Arc::new(FaultyService::new(mails_sent.clone(), injector.clone()));
        let gateway = Arc::new(FaultyService::new(system.sandbox.clone(), injector));
        let deployment = Deployment { gateway: gateway.clone(), ..system.with_connection(connection.clone()) };
        // Only the requests of the tasks, which process single rows, are sent through the connection. The requests of
        // the sweep, which reads the list pages, are not, so that tests can count the requests of a task.
        let payments = system.deployment.batch_of_task(deployment.payment_task()).await.unwrap();
        let reminders = system.deployment.batch_of_task(deployment.reminder_task()).await.unwrap();
        let (clock, table, sandbox) = (system.clock.clone(), system.deployment.table.clone(), system.sandbox.clone());
        Self { system, clock, table, sandbox, gateway, mails_sent, script, connection, payments, reminders }
    }

    /// Returns the engine that applies decisions and reports of the gateway.
    pub fn engine(&self) -> ChargingEngine {
        self.system.deployment.charging_engine()
    }

    /// Resolves the open attempt of `subscription` with the outcome `stated`, as an operator does. The engine compares
    /// the outcome with the gateway's payments.
    pub async fn resolve_attempt(&self, subscription: &Subscription, stated: &StatedOutcome) -> ApplyResult {
        let Subscription { account, id, .. } = subscription;
        let today = self.clock.now().date_naive();
        let gateway = self.gateway.as_ref() as &dyn PaymentGateway;
        self.engine().resolve_attempt(Some(gateway), account, *id, stated, today).await.unwrap()
    }

    /// Returns another payment batch, as in another process. The requests of this batch to the table pass through
    /// `connection`, and the batch charges with `gateway`.
    pub async fn separate_payment_batch(
        &self,
        connection: EngineConnection,
        gateway: Arc<dyn PaymentGateway>,
    ) -> Sweep<PaymentBatch> {
        let mut deployment = Deployment { gateway, ..self.system.with_connection(Arc::new(connection)) };
        deployment.config.limits.page_rows = 2;
        deployment.payment_batch().await.unwrap()
    }

    /// Returns another reminder batch, as in another process. The requests of this batch to the table pass through
    /// `connection`, and `injector` decides on the faults of the mails.
    pub async fn separate_reminder_batch(
        &self,
        connection: EngineConnection,
        injector: Arc<FaultInjector>,
    ) -> Sweep<ReminderBatch> {
        let mailer = Arc::new(FaultyService::new(self.mails_sent.clone(), injector));
        let mut deployment = Deployment { mailer, ..self.system.with_connection(Arc::new(connection)) };
        deployment.config.limits.page_rows = 2;
        deployment.reminder_batch().await.unwrap()
    }

    /// Sets the clock to `now`, which may be before the latest run. Confirms the clock as an operator would, because a
    /// run rejects a clock that was set back and not confirmed.
    pub async fn set_clock_back(&self, now: DateTime<Utc>) {
        let latest = self.table.get_settings().await.unwrap().unwrap().latest_run_at;
        if let Some(latest) = latest.filter(|latest| *latest > now) {
            self.table.confirm_clock(now, latest, None).await.unwrap();
        }
        self.clock.set(now);
    }

    /// Injects `fault` into the next charge request.
    pub fn inject_charge_fault(&self, fault: Fault) {
        self.script.add(ExternalOperation::Charge, [Some(fault)]);
    }

    /// Sets `setting` of the stored policy to `text`. Returns the policy before and after.
    pub async fn set_policy(&self, setting: PolicySetting, text: &str) -> (Policy, Policy) {
        let settings = self.table.get_settings().await.unwrap().unwrap();
        let before = settings.policy.clone().unwrap();
        let (after, now) = (before.with_setting(setting, text).unwrap(), self.clock.now());
        let action = NewAction { at: now, actor: Actor::Anonymous, kind: ActionKind::ChangeSettings, reason: None };
        assert_eq!(self.table.set_policy(&settings, &after, now, &action).await.unwrap(), SetPolicyOutcome::Set);
        // The settings that were read before are outdated now.
        let again = self.table.set_policy(&settings, &before, now, &action).await.unwrap();
        assert_eq!(again, SetPolicyOutcome::Changed);
        (before.read().unwrap(), after.read().unwrap())
    }

    /// Stores `subscription` and its account.
    pub async fn store(&self, subscription: &Subscription) {
        let account = Account { id: subscription.account.clone(), ..sample_account() };
        self.table.put_account(&account).await.unwrap();
        let shards = self.table.get_settings().await.unwrap().unwrap().shards;
        let subscription = Subscription { shard: subscription.shard % shards, ..subscription.clone() };
        assert_eq!(self.table.create_subscription(&subscription, None).await.unwrap(), CreateOutcome::Created);
    }

    /// Loads the stored state of `subscription`.
    pub async fn load(&self, subscription: &Subscription) -> Subscription {
        self.table.get_subscription(&subscription.account, subscription.id).await.unwrap().unwrap()
    }

    /// Changes the stored subscription with `change`, for example as its customer does.
    pub async fn change_subscription<S: Into<Settlement>>(
        &self,
        subscription: &Subscription,
        change: impl Fn(&Subscription) -> S,
    ) {
        let before = self.load(subscription).await;
        self.table.write_settlement(before, |stored| Ok::<_, ()>(change(stored).into())).await.unwrap();
    }

    /// Runs the payment batch for `day` at 06:00 UTC on `day`.
    pub async fn run_payments(&self, day: &str) -> RunReport<PaymentOutcome> {
        self.run_payments_at(day, billing_time(day)).await
    }

    /// Runs the world's payment batch for `day` at the time `now`.
    pub async fn run_payments_at(&self, day: &str, now: DateTime<Utc>) -> RunReport<PaymentOutcome> {
        self.run_payment_batch(&self.payments, day, now).await
    }

    /// Runs `payments`, which may be a batch of another process, for `day` at the time `now`.
    pub async fn run_payment_batch(
        &self,
        payments: &Sweep<PaymentBatch>,
        day: &str,
        now: DateTime<Utc>,
    ) -> RunReport<PaymentOutcome> {
        self.clock.set(now);
        let report = payments.run(&BatchRequest::for_date(date(day)), now + TimeDelta::hours(1)).await.unwrap();
        assert!(report.adds_up(), "{report:?}");
        report
    }

    /// Runs the reminder batch for `day` at 06:00 UTC on `day`.
    pub async fn run_reminders(&self, day: &str) -> RunReport<ReminderOutcome> {
        self.clock.set(billing_time(day));
        let report = self
            .reminders
            .run(&BatchRequest::for_date(date(day)), billing_time(day) + TimeDelta::hours(1))
            .await
            .unwrap();
        assert!(report.adds_up(), "{report:?}");
        report
    }

    /// Returns the due dates of all receipts of the subscription's account, the oldest first.
    pub async fn receipt_due_dates(&self, subscription: &Subscription) -> Vec<String> {
        self.receipt_amounts(subscription).await.into_iter().map(|(due_on, _)| due_on).collect()
    }

    /// Returns the due date and the amount (in minor units) of each receipt of the subscription's account, the oldest
    /// first.
    pub async fn receipt_amounts(&self, subscription: &Subscription) -> Vec<(String, i64)> {
        let all = Paging::all();
        let receipts = self.table.get_receipts_by_account(&subscription.account, &all, DateTime::UNIX_EPOCH).await;
        let receipts = receipts.unwrap().items.into_iter().rev();
        receipts.map(|receipt| (receipt.due_on.to_string(), receipt.amount.minor())).collect()
    }

    /// Returns the due dates of all charges in the sandbox's ledger that succeeded at once, in their order.
    pub fn charged_due_dates(&self) -> Vec<String> {
        let due_dates = self.sandbox.entries().into_iter().filter_map(|entry| match entry {
            LedgerEntry::Payment(payment) if payment.status == billing::PaymentStatus::Succeeded => {
                Some(payment.request.due_on.to_string())
            }
            _ => None,
        });
        due_dates.collect()
    }
}

/// Creates a connection on which `act` runs right before its request with the number `request_number`.
pub fn connection_with_act_before<F: Future<Output = ()>>(
    request_number: u64,
    act: impl Fn() -> F + Clone + Send + Sync + 'static,
) -> EngineConnection {
    // Run `act` on its own thread, because the sender is blocked until its request proceeds.
    EngineConnection::with_faults(move |call| {
        if call.number == request_number {
            let act = act.clone();
            let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            std::thread::spawn(move || runtime().block_on(act())).join().unwrap();
        }
        None
    })
}

/// Returns a paused copy of `subscription`. The copy keeps an open attempt and its row in the payment index. Such a
/// subscription can exist after a run whose clock was fast.
pub fn pause(subscription: &Subscription) -> Subscription {
    let next_payment_on = subscription.next_payment_on.filter(|_| subscription.attempt.is_some());
    Subscription { status: SubscriptionStatus::Paused, next_payment_on, next_reminder_on: None, ..subscription.clone() }
}

/// Returns the result of cancelling `subscription` on its due date.
pub fn cancel(subscription: &Subscription) -> Settlement {
    subscription.cancel(subscription.due_on, billing_time(&subscription.due_on.to_string()))
}

/// Returns the key of `subscription` in the table.
pub fn key(subscription: &Subscription) -> SubscriptionKey {
    SubscriptionKey::from_subscription(subscription)
}

/// Returns the name and the value of each count of `report` that is not zero, sorted by name. `due` is not included.
pub fn nonzero_counts<O: Outcome>(report: &RunReport<O>) -> Vec<(&'static str, u64)> {
    let mut named: Vec<_> = report.counts.counts_by_name().into_iter().filter(|(_, count)| *count > 0).collect();
    named.sort_unstable();
    named
}
