//! A simulation: months of a whole deployment on a private engine in memory, with every invariant checked.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use billing::{Account, Currency, Money, NewSubscription, SubscriptionId, Sums};
use chrono::{Months, NaiveDate, NaiveTime};
use clock::{Clock as _, SimulatedClock};
use emulator::Config;
use gateways::Entry;
use mail::{Mail, MailError, Mailer};
use serde::Serialize;
use store::{Table, TableError};
use testkit::InMemory;

use crate::SimulationError;
use crate::books::Books;
use crate::checker::check;
use crate::daily_runs::DailyRuns;
use crate::invariant::{Finding, Invariant};
use crate::population::Enrolment;

/// What a simulation came to.
#[derive(Debug, Serialize)]
pub struct Simulation {
    pub from: NaiveDate,
    /// The last day.
    pub to: NaiveDate,
    pub subscriptions: usize,
    pub charges: usize,
    pub charged: Sums,
    pub receipts: usize,
    pub reminders: u64,
    pub declined: usize,
    pub processing: usize,
    pub runs: usize,
    pub findings: Vec<Finding>,
    /// The table and the ledger, for whoever looks closer.
    #[serde(skip)]
    pub table: Table,
    #[serde(skip)]
    pub ledger: Vec<Entry>,
}

impl Simulation {
    /// Whether every invariant holds.
    pub fn holds(&self) -> bool {
        self.findings.iter().all(Finding::holds)
    }
}

/// How far a simulation is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    pub day: NaiveDate,
    pub days_done: u64,
    pub days: u64,
    pub charged: u64,
}

/// Counts reminders instead of keeping them.
#[derive(Debug, Default)]
struct CountingMailer(AtomicU64);

impl CountingMailer {
    fn sent(&self) -> u64 {
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

/// Runs `enrolments` over `months` from the day `from`, without trouble; tells `on_day` of each day.
///
/// # Errors
/// [`SimulationError`]: subscriptions that cannot begin, a run that did not come to its end.
pub async fn simulate(
    config: Config,
    enrolments: Vec<Enrolment>,
    (from, months): (NaiveDate, u32),
    on_day: impl Fn(Progress),
) -> Result<Simulation, SimulationError> {
    let timespan = Timespan::new(from, months)?;
    let clock = SimulatedClock::new(timespan.eve.and_time(NaiveTime::MIN).and_utc(), 0);
    let mailer = Arc::new(CountingMailer::default());
    let system = InMemory::new(config, clock, mailer.clone()).await?;
    let subscriptions = enrolments.len();
    enrol(&system, enrolments, timespan.eve).await?;
    let mut runs = DailyRuns::new(system.deployment.clone(), system.clock.clone()).await?;
    for (days_done, day) in (1..).zip(timespan.days()) {
        runs.day(day).await?;
        on_day(Progress { day, days_done, days: timespan.count(), charged: runs.charged.paid });
    }

    let before = read_books(&system).await?;
    let mut findings = check(&before, timespan.last);
    let reminders = mailer.sent();
    runs.both(timespan.last, runs.times(timespan.last)[1]).await?;
    let after = read_books(&system).await?;
    findings.push(unchanged(&before, &after, mailer.sent() - reminders));
    Ok(Simulation {
        from,
        to: timespan.last,
        subscriptions,
        charges: before.charges.len(),
        charged: sums(&before),
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
struct Timespan {
    /// The day before the first.
    eve: NaiveDate,
    first: NaiveDate,
    last: NaiveDate,
}

impl Timespan {
    fn new(from: NaiveDate, months: u32) -> Result<Self, SimulationError> {
        let days = || {
            let last = from.checked_add_months(Months::new(months))?.pred_opt()?;
            Some(Self { eve: from.pred_opt()?, first: from, last })
        };
        days().ok_or(SimulationError::Calendar)
    }

    fn days(&self) -> impl Iterator<Item = NaiveDate> + use<> {
        let last = self.last;
        self.first.iter_days().take_while(move |day| *day <= last)
    }

    fn count(&self) -> u64 {
        u64::try_from((self.last - self.eve).num_days()).unwrap_or(0)
    }
}

async fn enrol(system: &InMemory, enrolments: Vec<Enrolment>, eve: NaiveDate) -> Result<(), SimulationError> {
    for Enrolment { account, subscription } in enrolments {
        // Made here: equal seeds give equal identifiers.
        let subscription = NewSubscription { id: SubscriptionId::new(system.clock.ulid()), ..subscription };
        let account = Account { created_at: system.clock.now(), ..account };
        let enrolled = system.deployment.enrol(&account, subscription, eve).await;
        enrolled.map_err(|source| SimulationError::Enrol { account: account.id.to_string(), source })?;
    }
    Ok(())
}

async fn read_books(system: &InMemory) -> Result<Books, TableError> {
    Books::read(&system.deployment.table, &system.sandbox.entries()).await
}

/// The books of a finished day `before` it was run again, and `after`.
fn unchanged(before: &Books, after: &Books, reminders_sent: u64) -> Finding {
    let mut changed = Vec::new();
    let apart_from_runs = Books { runs: before.runs.clone(), ..after.clone() };
    if apart_from_runs != *before {
        changed.push("the books differ".to_owned());
    }
    if reminders_sent > 0 {
        changed.push(format!("{reminders_sent} reminders were sent again"));
    }
    Finding::new(Invariant::Repeatable, changed)
}

fn sums(books: &Books) -> Sums {
    let amount = |minor: i64, code: &str| Some(Money::new(minor, code.parse::<Currency>().ok()?));
    books.charges.iter().filter_map(|charge| amount(charge.amount, &charge.currency)).collect()
}
