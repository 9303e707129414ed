//! A simulation without faults: runs a whole deployment for some simulated months on a private DynamoDB engine in
//! memory, and then checks every invariant.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use billing::{Account, Currency, Money, MoneySums, NewSubscription, SubscriptionId};
use chrono::{Months, NaiveDate, NaiveTime};
use clock::{Clock as _, SimulatedClock};
use deployment::{DeploymentConfig, InMemoryDeployment};
use mail::{Mail, MailError, Mailer};
use sandbox::LedgerEntry;
use serde::Serialize;
use store::{Table, TableError};

use crate::SimulationError;
use crate::announcements::PaymentAnnouncements;
use crate::checker::check_invariants;
use crate::daily_runs::DailyRuns;
use crate::invariant::{Invariant, InvariantResult};
use crate::population::NewSubscriber;
use crate::table_contents::TableContents;

/// The result of a simulation without faults.
#[derive(Debug, Serialize)]
pub struct SimulationResult {
    /// The first day of the simulation.
    pub from: NaiveDate,
    /// The last day of the simulation.
    pub to: NaiveDate,
    pub subscriptions: usize,
    /// The number of successful charges.
    pub charges: usize,
    /// The sum of all successful charges, by currency.
    pub charged: MoneySums,
    pub receipts: usize,
    /// The number of reminder mails that were sent.
    pub reminders: u64,
    /// The number of declined payments.
    pub declined: usize,
    /// The number of payments that are still processing at the end.
    pub processing: usize,
    /// The number of run records in the table at the end. Each run has one record for each shard.
    pub runs: usize,
    /// For each invariant, the result of its check.
    pub findings: Vec<InvariantResult>,
    /// The table, for further checks by the caller.
    #[serde(skip)]
    pub table: Table,
    /// The gateway's ledger, for further checks by the caller.
    #[serde(skip)]
    pub ledger: Vec<LedgerEntry>,
}

impl SimulationResult {
    /// Returns whether every invariant holds.
    pub fn do_all_invariants_hold(&self) -> bool {
        self.findings.iter().all(InvariantResult::holds)
    }
}

/// The progress of a simulation, reported after each simulated day.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SimulationProgress {
    /// The simulated day.
    pub day: NaiveDate,
    /// The number of days that have been simulated so far.
    pub days_done: u64,
    /// The total number of days that the simulation will have.
    pub days: u64,
    /// The number of successful charges so far.
    pub charged: u64,
}

/// A mailer that counts the mails instead of sending them.
#[derive(Debug, Default)]
pub(crate) struct CountingMailer(AtomicU64);

impl CountingMailer {
    /// Returns the number of mails so far.
    fn sent_count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Mailer for CountingMailer {
    async fn send(&self, _: &Mail) -> Result<(), MailError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Simulates the subscriptions of `new_subscribers` for `months` months from the day `from`, without faults. Calls
/// `on_day` after each simulated day. At the end, repeats the runs of the last day, which must change nothing except
/// run records.
///
/// # Errors
/// [`SimulationError`] in these cases:
/// - A date is out of range.
/// - A subscription cannot be created.
/// - The table cannot be accessed.
/// - A run does not reach the end of the index of due rows, or the counts in its report do not add up.
pub async fn simulate_without_faults(
    config: DeploymentConfig,
    new_subscribers: Vec<NewSubscriber>,
    from: NaiveDate,
    months: u32,
    on_day: impl Fn(SimulationProgress),
) -> Result<SimulationResult, SimulationError> {
    let timespan = SimulatedTimespan::new(from, months)?;
    let clock = SimulatedClock::new(timespan.day_before.and_time(NaiveTime::MIN).and_utc(), 0);
    let mailer = Arc::new(CountingMailer::default());
    let system = InMemoryDeployment::new(config, clock, mailer.clone()).await?;
    let subscriptions = new_subscribers.len();
    create_subscriptions(&system, new_subscribers, timespan.day_before).await?;
    let mut runs = DailyRuns::new(system.deployment.clone(), system.clock.clone()).await?;
    let mut announcements = PaymentAnnouncements::default();
    for (days_done, day) in (1..).zip(timespan.days()) {
        announcements.add_day(&system.deployment.table, day).await?;
        runs.run_day(day).await?;
        on_day(SimulationProgress { day, days_done, days: timespan.day_count(), charged: runs.charged.paid });
    }

    let before = read_table_and_ledger(&system).await?;
    let mut findings = check_invariants(&before, timespan.last);
    let zone = system.deployment.table.policy().zone;
    let differences = announcements.find_differences(&before, timespan.last, zone);
    findings.push(InvariantResult::new(Invariant::Announced, differences));
    let reminders = mailer.sent_count();
    runs.run_both_batches(timespan.last, runs.batch_run_times_on(timespan.last)[1]).await?;
    let after = read_table_and_ledger(&system).await?;
    findings.push(check_repeated_run_changed_nothing(&before, &after, mailer.sent_count() - reminders));
    Ok(SimulationResult {
        from,
        to: timespan.last,
        subscriptions,
        charges: before.charges.len(),
        charged: charged_sums(&before),
        receipts: before.receipts.len(),
        reminders,
        declined: before.declined,
        processing: before.processing,
        runs: after.runs.len(),
        findings,
        table: system.deployment.table,
        ledger: system.sandbox.entries(),
    })
}

/// The days of a simulation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct SimulatedTimespan {
    /// The day before the first day, on which the subscriptions are created.
    day_before: NaiveDate,
    first: NaiveDate,
    last: NaiveDate,
}

impl SimulatedTimespan {
    /// Returns the timespan of `months` months that begins on the day `from`.
    fn new(from: NaiveDate, months: u32) -> Result<Self, SimulationError> {
        let days = || {
            let last = from.checked_add_months(Months::new(months))?.pred_opt()?;
            Some(Self { day_before: from.pred_opt()?, first: from, last })
        };
        days().ok_or(SimulationError::Calendar)
    }

    fn days(&self) -> impl Iterator<Item = NaiveDate> + use<> {
        let last = self.last;
        self.first.iter_days().take_while(move |day| *day <= last)
    }

    /// Returns the number of days from `first` to `last`.
    fn day_count(&self) -> u64 {
        u64::try_from((self.last - self.day_before).num_days()).unwrap_or(0)
    }
}

async fn create_subscriptions(
    system: &InMemoryDeployment,
    new_subscribers: Vec<NewSubscriber>,
    day_before: NaiveDate,
) -> Result<(), SimulationError> {
    for NewSubscriber { account, subscription } in new_subscribers {
        // The simulated clock creates the subscription ids from its seed, so two simulations with equal arguments have
        // equal ids.
        let subscription = NewSubscription { id: SubscriptionId::new(system.clock.ulid()), ..subscription };
        let account = Account { created_at: system.clock.now(), ..account };
        let created = system.deployment.create_subscription(&account, subscription, day_before).await;
        created.map_err(|source| SimulationError::CreateSubscription { account: account.id.to_string(), source })?;
    }
    Ok(())
}

async fn read_table_and_ledger(system: &InMemoryDeployment) -> Result<TableContents, TableError> {
    TableContents::read(&system.deployment.table, &system.sandbox.entries()).await
}

/// Checks that a second run of a finished day changed nothing except the run records. `before` and `after` are the
/// contents of the table before and after the second run. `reminders_sent` is the number of reminders that the second
/// run sent.
fn check_repeated_run_changed_nothing(
    before: &TableContents,
    after: &TableContents,
    reminders_sent: u64,
) -> InvariantResult {
    let mut changed = Vec::new();
    let apart_from_runs = TableContents { runs: before.runs.clone(), ..after.clone() };
    if apart_from_runs != *before {
        changed.push("the repeated run changed the table or the gateway's ledger".to_owned());
    }
    if reminders_sent > 0 {
        changed.push(format!("number of reminders that were sent again: {reminders_sent}"));
    }
    InvariantResult::new(Invariant::Repeatable, changed)
}

/// Returns the sum of all successful charges in `contents`, by currency.
fn charged_sums(contents: &TableContents) -> MoneySums {
    let amount = |minor: i64, code: &str| Some(Money::new(minor, code.parse::<Currency>().ok()?));
    contents.charges.iter().filter_map(|charge| amount(charge.amount, &charge.currency)).collect()
}
