//! Processes the rows of due payments: claims and charges the payment, or handles the row whose payment cannot be
//! claimed.

use billing::{CatchUp, ClaimRefusal, Period, Subscription};
use charging::{ApplyError, NotClaimed};
use chrono::{DateTime, NaiveDate, Utc};
use store::{DueEntry, ignore_refusal};

use super::row_error::RowError;
use super::row_result::deferred_because_charging_is_off;
use super::run::RowContext;
use super::{CLAIM_MARGIN, PaymentBatch, PaymentOutcome, RowResult};

impl PaymentBatch {
    /// Claims the due payment of the row `due` and charges it. If the claim is refused, handles the row according to
    /// the reason. Claims nothing while charging is switched off.
    pub(super) async fn process_due_row(
        &self,
        context: RowContext<'_>,
        due: &DueEntry,
    ) -> Result<RowResult, ApplyError> {
        let RowContext { run, today, deadline } = context;
        if !run.charges.is_charging_enabled() {
            return self.result_while_switched_off(due, today).await;
        }
        if due.on > today {
            return Ok(RowError::IndexDateInFuture { on: due.on, today }.into());
        }
        let seen_on = self.waive_months_of_outage(due, today).await?.unwrap_or(due.on);
        self.charger.wait_for_turn().await;
        if !self.charger.has_time_to_charge(deadline - CLAIM_MARGIN) {
            return Ok(RowResult::OutOfTime);
        }
        // Charging may have been switched off after this row was read. The run reads the settings again with every list
        // page.
        let Some(table_id) = run.charges.table_to_charge() else {
            return self.result_while_switched_off(due, today).await;
        };
        match self.charger.claim_payment(&due.key, table_id, seen_on, today).await {
            Ok(permit) => {
                let claimed_at = permit.attempt.claimed_at;
                let applied = self.charger.charge_claimed(context.charge_context(), permit).await?;
                Ok(self.row_result(context, &due.key, claimed_at, applied))
            }
            Err(NotClaimed::Table(error)) => Err(error.into()),
            Err(NotClaimed::Missing) => Ok(RowResult::Counted(PaymentOutcome::Skipped)),
            Err(NotClaimed::Refused { reason, stored }) => self.result_of_refusal(reason, *stored, today).await,
        }
    }

    /// Handles the row of `stored`, which refused the claim for `reason`.
    async fn result_of_refusal(
        &self,
        reason: ClaimRefusal,
        stored: Subscription,
        today: NaiveDate,
    ) -> Result<RowResult, ApplyError> {
        let due_on = stored.due_on;
        match reason {
            ClaimRefusal::InDoubt(_) | ClaimRefusal::Leased => Ok(RowResult::LeftToOtherLane),
            ClaimRefusal::DueLater { on } => Ok(RowError::DueLater { on, due_on }.into()),
            ClaimRefusal::AlreadyPaid => Ok(RowError::AlreadyPaid { due_on }.into()),
            ClaimRefusal::OpenFinding => Ok(RowError::OpenFinding { due_on }.into()),
            ClaimRefusal::Disputed => self.process_disputed_subscription(stored).await,
            ClaimRefusal::CancellationDue => self.cancel_as_scheduled(stored, today).await,
            ClaimRefusal::NotChargeable => {
                self.remove_from_index(&stored, Subscription { next_payment_on: None, ..stored.clone() }).await
            }
            // The claim itself handles its own claim and a stale date; a second stale date is left to the next run.
            ClaimRefusal::NotDue | ClaimRefusal::DueOn(_) | ClaimRefusal::OwnClaim => {
                Ok(RowResult::Counted(PaymentOutcome::Skipped))
            }
        }
    }

    /// Returns the result of the row `due` while charging is switched off. Claims nothing.
    async fn result_while_switched_off(&self, due: &DueEntry, today: NaiveDate) -> Result<RowResult, ApplyError> {
        Ok(match self.table.get_subscription(&due.key.account, due.key.subscription).await? {
            Some(stored) if stored.attempt.is_some() => RowResult::LeftToOtherLane,
            Some(stored) if stored.open_findings > 0 && is_subscription_due(&stored, today) => {
                RowError::OpenFinding { due_on: stored.due_on }.into()
            }
            Some(stored) if stored.disputed_at.is_some() => RowResult::Counted(PaymentOutcome::Disputed),
            Some(stored) if is_subscription_payable(&stored, today) => {
                deferred_because_charging_is_off(PaymentOutcome::Skipped)
            }
            _ => RowResult::Counted(PaymentOutcome::Skipped),
        })
    }

    /// Waives the months that the subscription of `due` missed during an outage, if the catch-up policy requires it.
    /// Returns the new due date if months were waived, otherwise `None`.
    async fn waive_months_of_outage(&self, due: &DueEntry, today: NaiveDate) -> Result<Option<NaiveDate>, ApplyError> {
        if self.table.policy().catch_up == CatchUp::Each || Period::from_day(due.due_on) >= Period::from_day(today) {
            return Ok(None);
        }
        let Some(stored) = self.table.get_subscription(&due.key.account, due.key.subscription).await? else {
            return Ok(None);
        };
        // The months of a disputed subscription were not charged because of the dispute, and not because of an outage.
        if stored.disputed_at.is_some() {
            return Ok(None);
        }
        let skip = |stored: &Subscription| {
            self.table.policy().catch_up.waive_months_of_outage(stored, today, self.clock.now()).ok_or(stored.due_on)
        };
        match self.table.write_settlement(stored, skip).await {
            Ok(skipped) => Ok(skipped.subscription.next_payment_on),
            Err(refused) => Ok(refused.into_reason().map(|_| None)?),
        }
    }

    /// Processes the row of a subscription whose payment method is disputed, without charging the subscription. Stops
    /// collecting the owed payment 28 days after the dispute was lost or after the due date, whichever is later.
    async fn process_disputed_subscription(&self, stored: Subscription) -> Result<RowResult, ApplyError> {
        let disputes = self.table.get_disputes_by_account(&stored.account).await?;
        let policy = self.table.policy();
        let day_of = |at: DateTime<Utc>| policy.date_at(at);
        let give_up = |stored: &Subscription| {
            stored.stop_collection_after_lost_dispute(&disputes, &policy, day_of, self.clock.now()).ok_or(())
        };
        ignore_refusal(self.table.write_settlement(stored, give_up).await)?;
        Ok(RowResult::Counted(PaymentOutcome::Disputed))
    }

    /// Cancels a subscription whose scheduled cancellation takes effect with the due period.
    async fn cancel_as_scheduled(&self, stored: Subscription, today: NaiveDate) -> Result<RowResult, ApplyError> {
        let end = |stored: &Subscription| {
            let is_over = stored.is_ending() && stored.due_on <= today && stored.attempt.is_none();
            if is_over { Ok(stored.cancel(today, self.clock.now())) } else { Err(()) }
        };
        ignore_refusal(self.table.write_settlement(stored, end).await)?;
        Ok(RowResult::Counted(PaymentOutcome::Skipped))
    }

    /// Removes `stored` from the payment index by writing `without_date`, the same subscription without a next payment
    /// date. On a write conflict, leaves the item to the next run.
    async fn remove_from_index(
        &self,
        stored: &Subscription,
        without_date: Subscription,
    ) -> Result<RowResult, ApplyError> {
        self.table.update_subscription(stored, &without_date).await?;
        Ok(RowResult::Counted(PaymentOutcome::Skipped))
    }
}

/// Returns whether `stored` is due on `today` and neither a dispute nor an open finding prevents its charge.
pub(super) fn is_subscription_payable(stored: &Subscription, today: NaiveDate) -> bool {
    stored.disputed_at.is_none() && stored.open_findings == 0 && is_subscription_due(stored, today)
}

/// Returns whether `stored` is active or past due, and its next payment date is `today` or earlier.
fn is_subscription_due(stored: &Subscription, today: NaiveDate) -> bool {
    stored.status.is_chargeable() && stored.next_payment_on.is_some_and(|on| on <= today)
}
