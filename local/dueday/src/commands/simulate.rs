//! `dueday simulate`: months in a private table in memory, as fast as they can pass, with every invariant checked; calm,
//! or in trouble.

use std::process::ExitCode;

use chrono::DateTime;
use indicatif::{ProgressBar, ProgressStyle};
use shared::billing::SubscriptionId;
use simulator::{Enrolment, Odds, Simulation, TroubleSummary, population, simulate};
use ulid::Ulid;

use crate::Failure;
use crate::arguments::{Settings, Simulate};
use crate::commands::import_file;
use crate::terminal::output;

pub async fn simulate_command(settings: &Settings, command: &Simulate) -> Result<ExitCode, Failure> {
    let rows = match &command.file {
        Some(path) => import_file::read(path)?.into_iter().map(enrolment).collect(),
        None => population(command.subscriptions),
    };
    let bar = ProgressBar::new(0).with_style(
        ProgressStyle::with_template("{bar:40} {pos}/{len} days, {msg}, {eta} left")
            .unwrap_or(ProgressStyle::default_bar()),
    );
    let odds = command.faults.map(|faults| Odds { faults, seed: command.seed.unwrap_or_else(rand::random) });
    let on_day = |progress: simulator::Progress| {
        bar.set_length(progress.days);
        bar.set_position(progress.days_done);
        bar.set_message(format!("{}: {} charged", progress.day, progress.charged));
    };
    let simulated = simulate(settings.config()?, rows, (command.from, command.months), odds, on_day).await?;
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

fn enrolment(row: import_file::Row) -> Enrolment {
    let account = row.new_account(DateTime::UNIX_EPOCH);
    Enrolment { account, subscription: row.subscription(SubscriptionId::new(Ulid::nil())) }
}

fn text(simulated: &Simulation) -> String {
    let rows = [
        ("days", format!("{} to {}", simulated.from, simulated.to)),
        ("subscriptions", simulated.subscriptions.to_string()),
        ("charges", format!("{} ({})", simulated.charges, simulated.charged)),
        ("receipts", simulated.receipts.to_string()),
        ("reminders", simulated.reminders.to_string()),
        ("declined", simulated.declined.to_string()),
        ("processing", simulated.processing.to_string()),
        ("runs", simulated.runs.to_string()),
    ];
    let trouble = simulated.trouble.iter().flat_map(|trouble| {
        let TroubleSummary { seed, faults, crashes, outage_days, acts } = trouble;
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
