//! The report of a run, in words.

use store::{Counts, RunCounts};
use sweep::Report;

/// Writes `report` in words, for a person.
pub fn text(report: &Report<impl Counts>) -> String {
    let counts: RunCounts = report.counts.into();
    let mut text = format!("{} of {}: {counts}\n", report.batch, report.date);
    for failure in &report.failures {
        text += &format!("  failed  {}: {}\n", failure.key, failure.reason);
    }
    if report.unreminded > 0 {
        text += &format!("  charged before their reminder was sent: {}\n", report.unreminded);
    }
    if let Some(stopped) = &report.stopped {
        text += &format!("  stopped: {stopped}\n");
    }
    if !report.complete {
        text += "  the end was not reached: run it again\n";
    }
    text
}
