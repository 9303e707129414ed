//! Settles attempts, and decides the outcome of each attempt's row.

use billing::{Attempt, Outcome, Subscription};
use settling::{SettleError, SettleOutcome};

use super::run::RowContext;
use super::{PaymentBatch, PaymentOutcome, RowResult};

impl PaymentBatch {
    /// Settles `held`, the attempt of `subscription` that this worker has leased, with `outcome`. Returns the result of
    /// the attempt's row, with the outcome by which the run counts the row.
    pub(super) async fn settle(
        &self,
        context: RowContext<'_>,
        subscription: Subscription,
        held: &Attempt,
        outcome: Outcome,
    ) -> Result<RowResult, SettleError> {
        let counted = match outcome {
            Outcome::Succeeded(_) => PaymentOutcome::Paid,
            Outcome::Declined(_) => PaymentOutcome::Declined,
            Outcome::Rejected { .. } => PaymentOutcome::Rejected,
            Outcome::Dropped => PaymentOutcome::Skipped,
        };
        let (account, id) = (subscription.account.clone(), subscription.id);
        let RowContext { run, today, .. } = context;
        let settled = self.settling.settle(subscription, held, &outcome, today, &run.uncounted_charges).await?;
        let (settled, was_reminded) = match settled {
            SettleOutcome::Settled { subscription, was_reminded } => (subscription, was_reminded),
            SettleOutcome::AlreadySettled => return Ok(RowResult::Counted(counted)),
            SettleOutcome::StaysOpen => return Ok(RowResult::Counted(PaymentOutcome::InDoubt)),
        };
        if let Outcome::Succeeded(payment) = &outcome {
            run.add_paid(payment.amount, was_reminded);
            if !was_reminded {
                tracing::info!(%account, %id, "a payment was charged before its reminder was sent");
            }
        }
        // If the gateway keeps rejecting a payment method, the customer must replace it, as after a decline. So the
        // rejection counts as a decline.
        let is_final = counted == PaymentOutcome::Rejected && settled.is_permanently_rejected();
        let counted = if is_final { PaymentOutcome::Declined } else { counted };
        if counted == PaymentOutcome::Declined {
            run.add_declined(held.amount);
        }
        Ok(RowResult::Counted(counted))
    }
}
