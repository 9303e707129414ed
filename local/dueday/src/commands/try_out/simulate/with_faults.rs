//! The simulation with faults: simulates many seeds, and reports the problems of each seed.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use indicatif::ProgressBar;
use serde::Serialize;
use simulator::{
    FaultSimulationResult, FaultSimulationSettings, GatewayKind, NewSubscriber, RestoreCounts, simulate_seeds,
};

use super::{SimulateArgs, format_names_and_values, simulation_files};
use crate::context::CommandContext;
use crate::terminal::output;
use crate::terminal::progress::ProgressDisplay;
use crate::{Exit, Failure};

/// The totals of all simulated seeds, and the seeds with problems.
#[derive(Debug, Default, Serialize)]
struct SimulationReport {
    seeds: usize,
    first_seed: u64,
    subscription_years: u64,
    writes: u64,
    charges: u64,
    mails: u64,
    /// The number of API requests of customers and operators.
    requests: u64,
    /// The number of these API requests that were refused.
    refused: u64,
    events: usize,
    faults: u64,
    outage_days: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    late_payments: Option<LatePayments>,
    /// The acts after a backup has replaced the table at the end of each seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    restores: Option<RestoreCounts>,
    #[serde(rename = "wrong")]
    failed_seeds: Vec<FailedSeed>,
}

/// The numbers of late payments: payments that the stand-in for Stripe made hours after it had responded with an error.
#[derive(Debug, Default, Serialize)]
struct LatePayments {
    made: u64,
    /// The number of late payments for a month that another attempt has charged, too. No look-up before that attempt
    /// could find the late payment in time.
    after_another_charge: u64,
    /// The number of successful payments without a receipt, which are findings that a person must resolve.
    findings: u64,
}

/// A seed whose simulation found problems.
#[derive(Debug, Serialize)]
struct FailedSeed {
    seed: u64,
    #[serde(rename = "what")]
    problems: Vec<String>,
}

/// Simulates the requested seeds with the fraction `faults` of failing requests, and prints the report.
pub fn simulate_with_faults(
    context: &CommandContext,
    args: &SimulateArgs,
    new_subscribers: Vec<NewSubscriber>,
    faults: f64,
) -> Result<Exit, Failure> {
    let config = context.config.clone();
    let gateway = if args.stripe { GatewayKind::Stripe } else { GatewayKind::Sandbox };
    let settings = FaultSimulationSettings {
        config,
        new_subscribers,
        from: args.from,
        months: args.months,
        fault_rate: faults,
        gateway,
    };
    let first = args.seed.unwrap_or_else(rand::random);
    let count = match (args.time, args.seeds) {
        (Some(_), _) => u64::MAX,
        (None, seeds) => seeds.map_or(1, u64::from),
    };
    let template = "{spinner} {pos} seeds, {msg}, {elapsed}";
    let bar =
        ProgressDisplay::show(ProgressBar::new_spinner(), template, |bar| format!("{} seeds done", bar.position()));
    let began = Instant::now();
    let goes_on = || args.time.is_none_or(|time| began.elapsed() < time);
    let kept = Mutex::new(Ok(()));
    let on_result = |result: &FaultSimulationResult| {
        if let Some(folder) = &args.keep {
            *kept.lock().unwrap_or_else(PoisonError::into_inner) =
                simulation_files::write_simulation_files(folder, &result.records);
        }
        bar.inc(1);
        bar.set_message(format!("the last was {}", result.seed));
    };
    let results = simulate_seeds(&settings, first, count, goes_on, on_result)?;
    drop(bar);
    kept.into_inner().unwrap_or_else(PoisonError::into_inner)?;
    let report = SimulationReport::new(first, args.stripe, results);
    context.print(&report, || report.text())?;
    for failed in &report.failed_seeds {
        output::print_message(format!(
            "To reproduce the problem, run the same command with --seed {} and without --seeds or --for.",
            failed.seed
        ));
    }
    Ok(Exit::done_if(report.failed_seeds.is_empty()))
}

impl SimulationReport {
    /// Sums up the results of all seeds.
    fn new(first_seed: u64, is_stripe: bool, results: Vec<FaultSimulationResult>) -> Self {
        let late_payments = is_stripe.then(LatePayments::default);
        let restores = is_stripe.then(RestoreCounts::default);
        let mut report = Self { seeds: results.len(), first_seed, late_payments, restores, ..Self::default() };
        let days: u64 = results.iter().map(|result| result.subscription_days).sum();
        report.subscription_years = days / 365;
        for result in results {
            report.writes += result.counts.writes;
            report.charges += result.counts.charges;
            report.mails += result.counts.mails;
            report.requests += result.counts.accepted_requests + result.counts.refused_requests;
            report.refused += result.counts.refused_requests;
            report.events += result.events;
            report.faults += result.faults;
            report.outage_days += u64::from(result.outage_days);
            if let Some(late) = &mut report.late_payments {
                late.made += result.counts.late_payments;
                late.after_another_charge += result.counts.late_duplicates;
                late.findings += result.counts.findings;
            }
            if let Some(restores) = &mut report.restores {
                restores.add(&result.restore);
            }
            if !result.violations.is_empty() {
                report.failed_seeds.push(FailedSeed { seed: result.seed, problems: result.violations });
            }
        }
        report
    }

    /// Formats the report as text.
    fn text(&self) -> String {
        let mut text = format_names_and_values([
            ("seeds", format!("{}, from {}", self.seeds, self.first_seed)),
            ("simulated", format!("{} subscription years", self.subscription_years)),
            ("writes", self.writes.to_string()),
            ("charges", self.charges.to_string()),
            ("reminders", self.mails.to_string()),
            ("requests", format!("{}, of which {} were refused", self.requests, self.refused)),
            ("events", self.events.to_string()),
            ("faults", self.faults.to_string()),
            ("outages", format!("{} days", self.outage_days)),
        ]);
        if let Some(LatePayments { made, after_another_charge, findings }) = &self.late_payments {
            let late =
                format!("{made}, of which {after_another_charge} followed another charge, {findings} are findings");
            text += &format_names_and_values([("late payments", late)]);
        }
        if let Some(RestoreCounts { noticed, receipts, decisions, refused_decisions, payments }) = &self.restores {
            let restored = format!("{noticed} older tables were noticed, {receipts} receipts were written");
            let decided = format!("{decisions}, and {refused_decisions} wrong decisions were refused");
            text += &format_names_and_values([
                ("restores", restored),
                ("findings", decided),
                ("then", format!("{payments} payments without a second charge")),
            ]);
        }
        text += if self.failed_seeds.is_empty() { "\nNo problems were found.\n" } else { "\n" };
        for FailedSeed { seed, problems } in &self.failed_seeds {
            text += &format!("PROBLEMS with seed {seed}\n");
            problems.iter().for_each(|problem| text += &format!("          {problem}\n"));
        }
        text
    }
}
