//! The outcomes of the payment batch's rows, and how they are counted and logged.

use chrono::{DateTime, Utc};
use store::PaymentCounts;
use sweep::{Outcome, RunReport};

use super::totals::PaymentTotals;

/// The outcome of a row of the payment batch. A run counts its rows by outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum PaymentOutcome {
    /// The payment succeeded and has a receipt.
    Paid,
    /// The gateway declined the payment. A later run charges the payment again, unless the decline is hard or this was
    /// the last attempt of the retry schedule.
    Declined,
    /// The gateway rejected the request and made no payment.
    Rejected,
    /// The bank is processing the payment.
    Processing,
    /// The outcome of the attempt is unknown.
    InDoubt,
    /// The payment is owed, but was not charged because its payment method is disputed.
    Disputed,
    /// There was nothing to charge, for example because the payment was no longer due.
    Skipped,
}

impl Outcome for PaymentOutcome {
    type Counts = PaymentCounts;
    type Totals = PaymentTotals;

    fn counter_in(self, counts: &mut PaymentCounts) -> &mut u64 {
        match self {
            Self::Paid => &mut counts.paid,
            Self::Declined => &mut counts.declined,
            Self::Rejected => &mut counts.rejected,
            Self::Processing => &mut counts.processing,
            Self::InDoubt => &mut counts.in_doubt,
            Self::Disputed => &mut counts.disputed,
            Self::Skipped => &mut counts.skipped,
        }
    }

    fn is_expected(self) -> bool {
        matches!(self, Self::Paid | Self::Processing | Self::Skipped)
    }

    fn was_workable(self) -> bool {
        !matches!(self, Self::Processing | Self::Disputed | Self::Skipped)
    }
}

/// Logs the report of a payment run that ended at `now`.
pub(super) fn log_report(report: &RunReport<PaymentOutcome>, now: DateTime<Utc>) {
    let RunReport { batch, date, complete, totals, oldest_due_days, .. } = report;
    let (PaymentTotals { sums, unreminded, .. }, oldest_in_doubt_hours) = (totals, totals.oldest_in_doubt_hours(now));
    let (is_done, stopped) = (report.is_done(), report.stopped.as_deref());
    let PaymentCounts { due, paid, declined, rejected, processing, in_doubt, disputed, skipped, failed } =
        report.counts;
    tracing::info!(
        %batch, %date, is_done, complete, due, paid, declined, rejected, processing, in_doubt, disputed, skipped, failed,
        unreminded, oldest_due_days, oldest_in_doubt_hours, paid_sums = %sums.paid, declined_sums = %sums.declined, stopped, "a run has ended"
    );
    // The currency is a dimension of the metric, so each currency has a line of its own.
    for sum in sums.paid.iter() {
        tracing::info!(currency = %sum.currency(), minor = sum.minor(), "the sum of the payments in one currency");
    }
}
