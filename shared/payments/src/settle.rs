//! What a settled attempt is counted as.

use billing::{Attempt, Outcome, Subscription};
use settling::{SettleError, SettledAs};

use super::run::Work;
use super::{ChargeDue, Done, PaymentOutcome};

impl ChargeDue {
    /// Settles the attempt `held` of `subscription` as `outcome`, and counts it.
    pub(super) async fn settle(
        &self,
        work: Work<'_>,
        subscription: Subscription,
        held: &Attempt,
        outcome: Outcome,
    ) -> Result<Done, SettleError> {
        let counted = match outcome {
            Outcome::Succeeded(_) => PaymentOutcome::Paid,
            Outcome::Declined(_) => PaymentOutcome::Declined,
            Outcome::Rejected { .. } => PaymentOutcome::Rejected,
            Outcome::Dropped => PaymentOutcome::Skipped,
        };
        let (account, id) = (subscription.account.clone(), subscription.id);
        let (settled, was_reminded) = match self.settling.settle(subscription, held, &outcome, work.today).await? {
            SettledAs::Now { subscription, was_reminded } => (subscription, was_reminded),
            SettledAs::Before => return Ok(Done::Counted(counted)),
            SettledAs::StaysOpen => return Ok(Done::Counted(PaymentOutcome::InDoubt)),
        };
        if let Outcome::Succeeded(payment) = &outcome {
            work.run.add_paid(payment.amount, was_reminded);
            if !was_reminded {
                tracing::warn!(%account, %id, "a payment was charged before its reminder was sent");
            }
        }
        // What the gateway will never know is the customer's to mend, as a decline is.
        let is_for_good = counted == PaymentOutcome::Rejected && settled.is_rejected_for_good();
        let counted = if is_for_good { PaymentOutcome::Declined } else { counted };
        if counted == PaymentOutcome::Declined {
            work.run.add_declined(held.amount);
        }
        Ok(Done::Counted(counted))
    }
}
