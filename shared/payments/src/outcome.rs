//! The outcomes of due payments, and how they are counted and logged.

use store::PaymentCounts;
use sweep::{Outcome, Report};

/// The outcome of a due payment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PaymentOutcome {
    /// It was charged, and has a receipt.
    Paid,
    /// The gateway declined it; it is tried again, or this was the last try.
    Declined,
    /// The gateway refused the request and made nothing.
    Rejected,
    /// The bank is working on it.
    Processing,
    /// It was begun, and its outcome is unknown.
    InDoubt,
    /// It is owed, and not charged: its payment method is disputed.
    Disputed,
    /// There was nothing to charge.
    Skipped,
}

impl Outcome for PaymentOutcome {
    type Counts = PaymentCounts;

    fn count(self, counts: &mut PaymentCounts) -> &mut u64 {
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

    fn log(report: &Report<PaymentCounts>) {
        let Report { batch, date, complete, sums, unreminded, .. } = report;
        let (is_done, stopped) = (report.is_done(), report.stopped.as_deref());
        let PaymentCounts { due, paid, declined, rejected, processing, in_doubt, disputed, skipped, failed } =
            report.counts;
        tracing::info!(
            %batch, %date, is_done, complete, due, paid, declined, rejected, processing, in_doubt, disputed, skipped, failed,
            unreminded, paid_sums = %sums.paid, declined_sums = %sums.declined, stopped, "a run has ended"
        );
    }
}
