//! The report of a batch run, as text.

use store::RunCounts;
use sweep::{Outcome, RunReport, RunTotals as _};

/// Formats the report of a batch run as text for a person.
pub fn format_report(report: &RunReport<impl Outcome>) -> String {
    let counts: RunCounts = report.counts.into();
    let mut text = format!("{} of {}: {counts}\n", report.batch, report.date);
    for failure in &report.failures {
        text += &format!("  failed  {}: {}\n", failure.key, failure.reason);
    }
    if let Some(warning) = report.totals.warning() {
        text += &format!("  {warning}\n");
    }
    if let Some(stopped) = &report.stopped {
        text += &format!("  stopped: {stopped}\n");
    }
    if !report.adds_up() {
        text += "  a due row has no outcome: run it again\n";
    }
    if !report.complete {
        text += "  the run did not reach the last row: run it again\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use reminders::ReminderOutcome;
    use store::{Batch, ReminderCounts};

    use super::*;

    #[test]
    fn report_says_that_a_due_row_has_no_outcome() {
        for (due, expected) in [
            (1, "reminders of 2027-01-31: 1 due, 1 sent\n"),
            (2, "reminders of 2027-01-31: 2 due, 1 sent\n  a due row has no outcome: run it again\n"),
        ] {
            let counts = ReminderCounts { due, sent: 1, ..ReminderCounts::default() };
            let date = "2027-01-31".parse().unwrap();
            let report = RunReport::<ReminderOutcome>::new(Batch::Reminders, date, vec![0], counts);
            assert_eq!(format_report(&report), expected);
        }
    }
}
