//! The report of a batch run, as text.

use store::{Counts, RunCounts};
use sweep::Report;

/// Formats the report of a batch run as text for a person.
pub fn format_report(report: &Report<impl Counts>) -> String {
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
    if !report.counts.adds_up() {
        text += "  a due row has no outcome: run it again\n";
    }
    if !report.complete {
        text += "  the run did not reach the last row: run it again\n";
    }
    text
}
