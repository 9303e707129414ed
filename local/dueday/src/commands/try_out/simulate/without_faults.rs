//! The simulation without faults: every due payment is charged on its date.

use chrono::Months;
use indicatif::ProgressBar;
use simulator::{NewSubscriber, SimulationResult};

use super::{SimulateArgs, format_names_and_values};
use crate::context::CommandContext;
use crate::terminal::progress::ProgressDisplay;
use crate::{Exit, Failure};

/// Simulates the subscriptions in `rows` without faults, and prints the result.
pub async fn print_simulation_without_faults(
    context: &CommandContext,
    args: &SimulateArgs,
    rows: Vec<NewSubscriber>,
) -> Result<Exit, Failure> {
    // The simulation reports the exact number of days on the first day.
    let days = args.from.checked_add_months(Months::new(args.months)).map(|end| (end - args.from).num_days());
    let bar = ProgressBar::new(days.and_then(|days| u64::try_from(days).ok()).unwrap_or(1));
    let bar = ProgressDisplay::show(bar, "{bar:40} {pos}/{len} days, {msg}{left}", ProgressBar::message);
    let on_day = |progress: simulator::SimulationProgress| {
        bar.set_length(progress.days);
        bar.set_position(progress.days_done);
        bar.set_message(format!("{}: {} charged", progress.day, progress.charged));
    };
    let simulated =
        simulator::simulate_without_faults(context.config.clone(), rows, args.from, args.months, on_day).await?;
    drop(bar);
    context.print(&simulated, || simulation_text(&simulated))?;
    Ok(Exit::done_if(simulated.do_all_invariants_hold()))
}

fn simulation_text(simulated: &SimulationResult) -> String {
    let mut text = format_names_and_values([
        ("days", format!("{} to {}", simulated.from, simulated.to)),
        ("subscriptions", simulated.subscriptions.to_string()),
        ("charges", format!("{} ({})", simulated.charges, simulated.charged)),
        ("receipts", simulated.receipts.to_string()),
        ("reminders", simulated.reminders.to_string()),
        ("declined", simulated.declined.to_string()),
        ("processing", simulated.processing.to_string()),
        ("runs", simulated.runs.to_string()),
    ]);
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
