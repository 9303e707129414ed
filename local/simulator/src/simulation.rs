//! A simulation: months of a whole deployment on a private engine in memory, with every invariant checked.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use chrono::{Days, Months, NaiveDate, NaiveTime};
use emulator::{Deployment, Engine, EnrolError, Wire};
use serde::Serialize;
use shared::billing::{Account, Currency, MailStatus, Money, NewSubscription, PaymentMethod, SubscriptionId, Sums};
use shared::clock::{Clock as _, SimulatedClock};
use shared::config::Config;
use shared::gateway::{Entry, Ledger, Sandbox};
use shared::mail::{Mail, MailError, Mailer};
use shared::sweep::SweepError;
use shared::table::{Table, TableError};
use ulid::Ulid;

use crate::books::books;
use crate::check::{Finding, check};
use crate::play::Play;
use crate::storm::Storm;
use crate::trouble::{Odds, Troubled};

/// Days without trouble at the end: what is past due is tried for the last time, and what an outage left is caught up.
const CALM_DAYS: Days = Days::new(16);

/// What a simulation came to.
#[derive(Debug, Serialize)]
pub struct Simulation {
    pub from: NaiveDate,
    /// The last day played.
    pub to: NaiveDate,
    pub subscriptions: usize,
    pub charges: usize,
    pub charged: Sums,
    pub receipts: usize,
    pub reminders: u64,
    pub declined: usize,
    pub processing: usize,
    pub runs: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<Troubles>,
    pub findings: Vec<Finding>,
    /// The table and the ledger, for whoever looks closer.
    #[serde(skip)]
    pub table: Table,
    #[serde(skip)]
    pub ledger: Vec<Entry>,
}

/// What trouble there was.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Troubles {
    pub seed: u64,
    /// Requests that were lost, refused, or the last of their run.
    pub faults: u64,
    /// Runs that ended before their end.
    pub crashes: u64,
    /// Days without a run, or without the gateway.
    pub outage_days: usize,
    /// What customers did.
    pub acts: usize,
}

impl Simulation {
    /// Whether every invariant holds.
    pub fn holds(&self) -> bool {
        self.findings.iter().all(Finding::holds)
    }
}

/// A subscription to play, and its account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Enrolment {
    pub account: Account,
    pub subscription: NewSubscription,
}

/// How far a simulation is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    pub day: NaiveDate,
    pub days_done: u64,
    pub days: u64,
    pub charged: u64,
}

/// Why a simulation could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    #[error("the simulation would leave the calendar")]
    Calendar,
    #[error("{account}: {source}")]
    Enrol { account: String, source: EnrolError },
    #[error("a run did not come to its end or does not add up: {report}")]
    Unfinished { report: String },
    #[error(transparent)]
    Sweep(#[from] SweepError),
    #[error(transparent)]
    Table(#[from] TableError),
}

/// Counts reminders instead of keeping them.
#[derive(Debug, Default)]
struct CountingMailer(AtomicU64);

#[async_trait]
impl Mailer for CountingMailer {
    async fn send(&self, _: &Mail) -> Result<(), MailError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Plays `enrolments` over `months` from the day `from`, in as much trouble as `odds` make; tells `on_day` of each day.
///
/// # Errors
/// [`SimulationError`]: subscriptions that cannot begin, a run that did not come to its end without trouble.
pub async fn simulate(
    config: Config,
    enrolments: Vec<Enrolment>,
    (from, months): (NaiveDate, u32),
    odds: Option<Odds>,
    on_day: impl Fn(Progress),
) -> Result<Simulation, SimulationError> {
    let ends = from.checked_add_months(Months::new(months));
    let (Some(eve), Some(to)) = (from.pred_opt(), ends.and_then(|day| day.pred_opt())) else {
        return Err(SimulationError::Calendar);
    };
    let seed = odds.map_or(0, |odds| odds.seed);
    let clock = Arc::new(SimulatedClock::new(eve.and_time(NaiveTime::MIN).and_utc(), seed));
    let engine = Engine::memory();
    let sandbox = Arc::new(Sandbox::new(Ledger::memory(), clock.clone()));
    let mailer = Arc::new(CountingMailer::default());
    let client = engine.client_over(Arc::new(Wire::without_tokens()));
    let calm = Deployment::new(client, config, sandbox.clone(), mailer.clone(), clock.clone()).ready().await?;
    let subscriptions = enrolments.len();
    for Enrolment { account, subscription } in enrolments {
        // Made here: equal seeds give equal identifiers.
        let subscription = NewSubscription { id: SubscriptionId::new(clock.ulid()), ..subscription };
        let account = Account { created_at: clock.now(), ..account };
        let enrolled = calm.enrol(&account, subscription, eve).await;
        enrolled.map_err(|source| SimulationError::Enrol { account: account.id.to_string(), source })?;
    }

    let mut storm = match odds {
        Some(odds) => Some(Storm::gather(&calm.table, odds).await?),
        None => None,
    };
    let played = match &storm {
        Some(storm) => Deployment {
            gateway: Arc::new(Troubled { inner: sandbox.clone(), trouble: storm.trouble.clone() }),
            mailer: Arc::new(Troubled { inner: mailer.clone(), trouble: storm.trouble.clone() }),
            ..calm.over(engine.client_over(Arc::new(storm.trouble.wire())))
        },
        None => calm.clone(),
    };
    let mut play = Play::of(played, clock.clone()).await?;
    let calm_days = if storm.is_some() { CALM_DAYS } else { Days::new(0) };
    let last = to.checked_add_days(calm_days).unwrap_or(to);
    let days = u64::try_from((last - from).num_days()).unwrap_or(0) + 1;
    for (days_done, day) in (1..).zip(from.iter_days().take_while(|day| *day <= last)) {
        match &mut storm {
            Some(storm) if day <= to => storm.day(day, &mut play, &calm).await?,
            _ => play.day(day).await?,
        }
        on_day(Progress { day, days_done, days, charged: play.charged.paid });
    }

    let before = books(&calm.table, &sandbox.entries()).await?;
    let mut findings = match &storm {
        None => check(&before, last),
        Some(storm) => storm.check(&before, &sandbox.entries(), &calm.config, (ends.unwrap_or(last), last)),
    };
    let sent = mailer.0.load(Ordering::Relaxed);
    play.both(last, play.times(last)[1]).await?;
    let mut after = books(&calm.table, &sandbox.entries()).await?;
    let runs = std::mem::replace(&mut after.runs, before.runs.clone()).len();
    let mut changed = Vec::new();
    if after != before {
        changed.push("the books differ".to_owned());
    }
    if mailer.0.load(Ordering::Relaxed) != sent {
        changed.push("reminders were sent again".to_owned());
    }
    findings.push(Finding::new("running a finished day again changes nothing but run records", changed));

    let amount = |minor: i64, code: &str| Some(Money::new(minor, code.parse::<Currency>().ok()?));
    Ok(Simulation {
        from,
        to: last,
        subscriptions,
        charges: before.charges.len(),
        charged: before.charges.iter().filter_map(|charge| amount(charge.amount, &charge.currency)).collect(),
        receipts: before.receipts.len(),
        reminders: sent,
        declined: before.declined,
        processing: before.processing,
        runs,
        trouble: storm.map(|storm| storm.troubles()),
        findings,
        table: calm.table,
        ledger: sandbox.entries(),
    })
}

/// `count` subscriptions over all payment days, prices of four currencies, three to an account.
///
/// # Panics
/// Never: they are valid.
pub fn population(count: u32) -> Vec<Enrolment> {
    let currencies = ["EUR", "USD", "JPY", "KWD"];
    let enrolment = |n: u32| -> Option<Enrolment> {
        let currency: Currency = currencies[usize::try_from(n).ok()? % currencies.len()].parse().ok()?;
        let name = format!("account-{:06}", n / 3);
        let account = Account {
            id: name.parse().ok()?,
            email: format!("{name}@example.com").parse().ok()?,
            name: format!("Customer {}", n / 3).parse().ok()?,
            locale: Default::default(),
            mail_status: MailStatus::default(),
            created_at: chrono::DateTime::UNIX_EPOCH,
            version: 1,
        };
        let subscription = NewSubscription {
            account: account.id.clone(),
            id: SubscriptionId::new(Ulid::nil()),
            sku: format!("plan-{}", n % 5).parse().ok()?,
            product_name: format!("Plan {}", n % 5).parse().ok()?,
            email: None,
            payment_day: i64::from(n % 31 + 1).try_into().ok()?,
            price: currency.price(500 + i64::from(n % 97) * 100).ok()?,
            payment_method: PaymentMethod {
                customer: format!("cus_{name}").parse().ok()?,
                payment_method: "pm_card_visa".parse().ok()?,
            },
            first_payment_on: None,
        };
        Some(Enrolment { account, subscription })
    };
    (0..count).map(|n| enrolment(n).expect("the population is valid")).collect()
}
