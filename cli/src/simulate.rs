//! `dueday simulate`: months in a private table in memory, as fast as they can pass, with every invariant checked; calm,
//! or in trouble.

mod customers;
mod oracle;
mod storm;
mod trouble;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use chrono::{Days, Months, NaiveDate};
use indicatif::{ProgressBar, ProgressStyle};
use local::{Engine, Wire};
use serde::Serialize;
use shared::ambient;
use shared::billing::{Currency, Money, PaymentMethod};
use shared::gateway::{Entry, Ledger, Sandbox};
use shared::mail::{Mail, MailError, Mailer};
use shared::table::Table;

use crate::arguments::{Settings, Simulate};
use crate::books::books;
use crate::check::{Finding, check};
use crate::data::System;
use crate::due::sums;
use crate::import_file::{self, Row};
use crate::load::load;
use crate::play::Play;
use crate::{Failure, output};
use storm::Storm;
pub use trouble::Odds;
use trouble::Troubled;

/// Days without trouble at the end: what is past due is tried for the last time, and what an outage left is caught up.
const CALM_DAYS: Days = Days::new(16);

/// What a simulation came to.
#[derive(Debug, Serialize)]
pub struct Simulated {
    pub from: NaiveDate,
    /// The last day played.
    pub to: NaiveDate,
    pub subscriptions: usize,
    pub charges: usize,
    pub charged: Vec<Money>,
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

impl Simulated {
    /// Whether every invariant holds.
    pub fn holds(&self) -> bool {
        self.findings.iter().all(Finding::holds)
    }
}

/// Counts reminders instead of keeping them.
#[derive(Debug, Default)]
struct Counted(AtomicU64);

#[async_trait]
impl Mailer for Counted {
    async fn send(&self, _: &Mail) -> Result<(), MailError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

pub async fn command(settings: &Settings, command: &Simulate) -> Result<ExitCode, Failure> {
    let rows = match &command.file {
        Some(path) => import_file::read(path)?,
        None => population(command.subscriptions),
    };
    let bar = ProgressBar::new(0).with_style(
        ProgressStyle::with_template("{bar:40} {pos}/{len} days, {msg}, {eta} left")
            .unwrap_or(ProgressStyle::default_bar()),
    );
    let odds = command.faults.map(|faults| Odds { faults, seed: command.seed.unwrap_or_else(rand::random) });
    let simulated = simulate(settings, rows, (command.from, command.months), odds, &bar).await?;
    bar.finish_and_clear();
    if settings.json {
        output::json(&simulated)?;
    } else {
        output::print(&text(&simulated))?;
    }
    if let (Some(trouble), false) = (&simulated.trouble, simulated.holds()) {
        eprintln!("To see it again, give it --seed {} and the rest as before.", trouble.seed);
    }
    Ok(if simulated.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Plays `rows` over `months` from the day `from`, in as much trouble as `odds` make.
///
/// # Errors
/// [`Failure`]: settings that are wrong, rows that cannot begin, a run that did not come to its end without trouble.
pub async fn simulate(
    settings: &Settings,
    rows: Vec<Row>,
    (from, months): (NaiveDate, u32),
    odds: Option<Odds>,
    bar: &ProgressBar,
) -> Result<Simulated, Failure> {
    let ends = from.checked_add_months(Months::new(months));
    let (Some(eve), Some(to)) = (from.pred_opt(), ends.and_then(|day| day.pred_opt())) else {
        return Err(Failure::Refused("the simulation would leave the calendar".to_owned()));
    };
    let seed = odds.map_or(0, |odds| odds.seed);
    let clock = Arc::new(ambient::Simulated::new(eve.and_time(chrono::NaiveTime::MIN).and_utc(), seed));
    let engine = Engine::memory();
    let sandbox = Arc::new(Sandbox::new(Ledger::memory(), clock.clone()));
    let client = engine.client_over(Arc::new(Wire::without_tokens()));
    let system = System::over(client, sandbox.clone(), settings, clock.clone())?.ready().await?;
    let subscriptions = rows.len();
    load(&system.table, &system.config, rows, eve, clock.as_ref()).await?;

    let counted = Arc::new(Counted::default());
    let mut storm = match odds {
        Some(odds) => Some(Storm::gather(&system.table, odds).await?),
        None => None,
    };
    let mut play = match &storm {
        Some(storm) => {
            let gateway = Arc::new(Troubled { inner: sandbox.clone(), trouble: storm.trouble.clone() });
            let client = engine.client_over(Arc::new(storm.trouble.wire()));
            let mailer = Arc::new(Troubled { inner: counted.clone(), trouble: storm.trouble.clone() });
            Play::of(System::over(client, gateway, settings, clock.clone())?, clock.clone(), mailer).await?
        }
        None => Play::of(system.clone(), clock.clone(), counted.clone()).await?,
    };
    let calm_days = if storm.is_some() { CALM_DAYS } else { Days::new(0) };
    let last = to.checked_add_days(calm_days).unwrap_or(to);
    let days: Vec<NaiveDate> = from.iter_days().take_while(|day| *day <= last).collect();
    bar.set_length(u64::try_from(days.len()).unwrap_or(0));
    for day in days {
        match &mut storm {
            Some(storm) if day <= to => storm.day(day, &mut play, &system).await?,
            _ => play.day(day).await?,
        }
        bar.set_message(format!("{day}: {} charged", play.charged.get("paid").unwrap_or(&0)));
        bar.inc(1);
    }

    let before = books(&system.table, &sandbox.entries()).await?;
    let mut findings = match &storm {
        None => check(&before, last),
        Some(storm) => storm.check(&before, &sandbox.entries(), &system.config, (ends.unwrap_or(last), last)),
    };
    let sent = counted.0.load(Ordering::Relaxed);
    play.both(last, play.times(last)[1]).await?;
    let mut after = books(&system.table, &sandbox.entries()).await?;
    let runs = std::mem::replace(&mut after.runs, before.runs.clone()).len();
    let mut changed = Vec::new();
    if after != before {
        changed.push("the books differ".to_owned());
    }
    if counted.0.load(Ordering::Relaxed) != sent {
        changed.push("reminders were sent again".to_owned());
    }
    findings.push(Finding::new("running a finished day again changes nothing but run records", changed));

    let currency = |code: &str| code.parse::<Currency>();
    let amounts = before.charges.iter().filter_map(|c| Some(Money::new(c.amount, currency(&c.currency).ok()?)));
    Ok(Simulated {
        from,
        to: last,
        subscriptions,
        charges: before.charges.len(),
        charged: sums(amounts).into_values().collect(),
        receipts: before.receipts.len(),
        reminders: sent,
        declined: before.declined,
        processing: before.processing,
        runs,
        trouble: storm.map(|storm| storm.troubles()),
        findings,
        table: system.table,
        ledger: sandbox.entries(),
    })
}

/// `count` subscriptions over all payment days, prices of three currencies, three to an account.
pub fn population(count: u32) -> Vec<Row> {
    let currencies = ["EUR", "USD", "JPY", "KWD"];
    let row = |n: u32| -> Option<Row> {
        let currency: Currency = currencies[usize::try_from(n).ok()? % currencies.len()].parse().ok()?;
        let account = format!("account-{:06}", n / 3);
        Some(Row {
            email: format!("{account}@example.com").parse().ok()?,
            name: format!("Customer {}", n / 3).parse().ok()?,
            locale: Default::default(),
            external_id: n.to_string().parse().ok()?,
            sku: format!("plan-{}", n % 5).parse().ok()?,
            product_name: format!("Plan {}", n % 5).parse().ok()?,
            payment_day: i64::from(n % 31 + 1).try_into().ok()?,
            price: currency.price(500 + i64::from(n % 97) * 100).ok()?,
            payment_method: PaymentMethod {
                customer: format!("cus_{account}").parse().ok()?,
                payment_method: "pm_card_visa".parse().ok()?,
            },
            account: account.parse().ok()?,
            first_payment_on: None,
        })
    };
    (0..count).map(|n| row(n).expect("the population is valid")).collect()
}

fn text(simulated: &Simulated) -> String {
    let sums: Vec<String> = simulated.charged.iter().map(Money::to_string).collect();
    let rows = [
        ("days", format!("{} to {}", simulated.from, simulated.to)),
        ("subscriptions", simulated.subscriptions.to_string()),
        ("charges", format!("{} ({})", simulated.charges, sums.join(", "))),
        ("receipts", simulated.receipts.to_string()),
        ("reminders", simulated.reminders.to_string()),
        ("declined", simulated.declined.to_string()),
        ("processing", simulated.processing.to_string()),
        ("runs", simulated.runs.to_string()),
    ];
    let trouble = simulated.trouble.iter().flat_map(|trouble| {
        let Troubles { seed, faults, crashes, outage_days, acts } = trouble;
        [
            ("seed", seed.to_string()),
            ("faults", format!("{faults}, of which {crashes} ended a run")),
            ("outages", format!("{outage_days} days")),
            ("customers", format!("acted {acts} times")),
        ]
    });
    let mut text = String::new();
    for (name, value) in rows.into_iter().chain(trouble) {
        text += &format!("{name:<14} {value}\n");
    }
    text += "\n";
    for finding in &simulated.findings {
        text += &format!("{}  {}\n", if finding.holds() { "holds " } else { "BROKEN" }, finding.invariant);
        for example in &finding.examples {
            text += &format!("          {example}\n");
        }
        if finding.violations > finding.examples.len() {
            text += &format!("          and {} more\n", finding.violations - finding.examples.len());
        }
    }
    text
}
