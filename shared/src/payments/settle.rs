//! Settling an attempt whose outcome is known.

use chrono::NaiveDate;

use super::{ChargeDue, ChargeError, Done};
use crate::billing::{Attempt, Outcome, Payment, Period, ReceiptId, Settled, Settlement, Subscription, settle};
use crate::table::{PaymentOutcome, Rewritten, Table};

/// Why an attempt is not settled by us.
pub(super) enum NotSettled {
    /// Another worker has settled it.
    Already,
    /// It stays open.
    StaysOpen,
}

/// The settlement to write.
pub(super) fn to_write(settled: Settled) -> Result<Settlement, NotSettled> {
    match settled {
        Settled::Write(settlement) => Ok(*settlement),
        Settled::Already => Err(NotSettled::Already),
        Settled::StaysOpen => Err(NotSettled::StaysOpen),
    }
}

/// A success is believed only if it is the attempt's: its subscription, month, amount and currency. That of an earlier
/// attempt is held against that attempt's record. What contradicts is never receipted.
pub(super) async fn believe(
    table: &Table,
    subscription: &Subscription,
    held: &Attempt,
    payment: &Payment,
) -> Result<(), ChargeError> {
    let (account, id) = (&subscription.account, subscription.id);
    let contradicts = |reason: String| Err(ChargeError::Contradicts { payment: payment.id.clone(), reason });
    let is_tables = payment.table.is_none() || payment.table == held.table;
    if (&payment.account, payment.subscription) != (account, id) || !is_tables {
        return contradicts("it is another subscription's".to_owned());
    }
    if Period::of(payment.due_on) != Period::of(held.due_on) {
        return contradicts(format!("it is of {}, not of {}", payment.due_on, held.due_on));
    }
    let asked = if payment.attempt_no == held.no {
        Some(held.amount)
    } else {
        let record = table.get_attempt_record(account, id, payment.due_on, payment.attempt_no).await?;
        record.map(|record| record.amount)
    };
    match asked {
        Some(asked) if asked == payment.amount => Ok(()),
        Some(asked) => contradicts(format!("it is of {}, and {asked} was asked for", payment.amount)),
        None => contradicts(format!("there is no record of its attempt {}", payment.attempt_no)),
    }
}

impl ChargeDue {
    /// Settles on whatever is stored by now. A settlement that cannot be written leaves the attempt open: a later
    /// sweep looks it up and settles it then.
    pub(super) async fn settle(
        &self,
        subscription: Subscription,
        held: &Attempt,
        outcome: Outcome,
        today: NaiveDate,
    ) -> Result<Done, ChargeError> {
        if let Outcome::Succeeded(payment) = &outcome {
            believe(&self.table, &subscription, held, payment).await?;
        }
        let counted = match outcome {
            Outcome::Succeeded(_) => PaymentOutcome::Paid,
            Outcome::Declined(_) => PaymentOutcome::Declined,
            Outcome::Rejected { .. } => PaymentOutcome::Rejected,
            Outcome::Dropped => PaymentOutcome::Skipped,
        };
        let receipt = ReceiptId { due_on: held.due_on, subscription: subscription.id, sku: subscription.sku.clone() };
        let (account, id) = (subscription.account.clone(), subscription.id);
        let was_unreminded = subscription.next_reminder_on.is_some_and(|on| on <= today);
        let settlement =
            |stored: &Subscription| to_write(settle(stored, held, &outcome, &self.policy, today, self.clock.now()));
        match self.table.settle(subscription, settlement).await? {
            Rewritten::Applied(settled) => {
                if let Outcome::Succeeded(payment) = &outcome {
                    self.tally.charge(payment.amount, !was_unreminded);
                    if was_unreminded {
                        tracing::warn!(%account, %id, "a payment was charged before its reminder was sent");
                    }
                }
                // What the gateway will never know is the customer's to mend, as a decline is.
                let is_for_good = counted == PaymentOutcome::Rejected && settled.is_rejected_for_good();
                let counted = if is_for_good { PaymentOutcome::Declined } else { counted };
                if counted == PaymentOutcome::Declined {
                    self.tally.decline(held.amount);
                }
                return Ok(Done::Counted(counted));
            }
            Rewritten::Left(NotSettled::StaysOpen) => return Ok(Done::Counted(PaymentOutcome::InDoubt)),
            Rewritten::Left(NotSettled::Already) | Rewritten::Gone => {}
        }
        // Another worker has settled it. That must have come to the same, for a payment without its receipt is nothing to
        // pass over.
        let Outcome::Succeeded(payment) = outcome else { return Ok(Done::Counted(counted)) };
        let receipt = self.table.get_receipt(&account, &receipt, self.clock.now()).await?;
        if receipt.is_some_and(|receipt| receipt.payment == payment.id) {
            return Ok(Done::Counted(counted));
        }
        Err(ChargeError::Unreceipted { payment: payment.id, due_on: held.due_on })
    }
}
