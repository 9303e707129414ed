//! Claims due payments, and handles the rows whose payment cannot be claimed.

use chrono::{DateTime, NaiveDate, Utc};

use super::charge::ChargePermit;
use super::row_error::RowError;
use super::run::RowContext;
use super::{CLAIM_MARGIN, PaymentBatch, PaymentOutcome, PaymentRun, RowResult, deferred_because_charging_is_off};
use billing::{Attempt, CatchUp, ClaimRefusal, Period, Subscription, attempt_contradiction, claim_refusal};
use settling::SettleError;
use store::{ClaimOutcome, Due, RewriteOutcome};

impl PaymentBatch {
    /// Claims the due payment of the row `due` and charges it. If the claim is refused, handles the row according to
    /// the reason.
    pub(super) async fn charge_due(&self, context: RowContext<'_>, due: &Due) -> Result<RowResult, SettleError> {
        let RowContext { run, today, deadline } = context;
        let mut seen = due.on;
        if seen > today {
            return Ok(RowError::IndexDateInFuture { on: seen, today }.into());
        }
        if let Some(latest) = self.waive_missed_periods(due, today).await? {
            seen = latest;
        }
        // Wait for the rate limit before the claim, so that a claimed payment can be charged immediately.
        self.pace.wait_for_turn().await;
        if !self.has_time_to_charge(deadline - CLAIM_MARGIN) {
            return Ok(RowResult::OutOfTime);
        }
        // Charging may have been switched off after this row was read. The run reads the settings again with every list
        // page.
        if !run.is_charging_enabled() {
            return self.result_while_switched_off(due, today).await;
        }
        // Try at most twice: the index may return a stale date.
        for _ in 0..2 {
            let (claim, table_id) = (self.new_claim(), self.table_id.get().copied().unwrap_or_default());
            let stored = match self.table.claim_payment(&due.key, seen, table_id, claim).await? {
                ClaimOutcome::Claimed(held) => {
                    return self.charge_claimed_attempt(context, ChargePermit::from_claim(*held, claim)?).await;
                }
                ClaimOutcome::Refused(None) => return Ok(RowResult::Counted(PaymentOutcome::Skipped)),
                ClaimOutcome::Refused(Some(stored)) => *stored,
            };
            match claim_refusal(&stored, claim.token, seen, today, claim.now) {
                ClaimRefusal::OwnClaim => {
                    return self.charge_claimed_attempt(context, ChargePermit::from_claim(stored, claim)?).await;
                }
                ClaimRefusal::InDoubt(_) | ClaimRefusal::Leased => return Ok(RowResult::LeftToOtherLane),
                ClaimRefusal::DueOn(on) => seen = on,
                ClaimRefusal::DueLater => return Ok(RowError::DueLater { on: seen, due_on: stored.due_on }.into()),
                ClaimRefusal::AlreadyPaid => return Ok(RowError::AlreadyPaid { due_on: stored.due_on }.into()),
                ClaimRefusal::OpenFinding => return Ok(RowError::OpenFinding { due_on: stored.due_on }.into()),
                ClaimRefusal::Disputed => return self.process_disputed_subscription(stored).await,
                ClaimRefusal::NotDue => return Ok(RowResult::Counted(PaymentOutcome::Skipped)),
                ClaimRefusal::CancellationDue => return self.cancel_as_scheduled(stored, today).await,
                ClaimRefusal::NotChargeable => {
                    return self
                        .remove_from_index(&stored, Subscription { next_payment_on: None, ..stored.clone() })
                        .await;
                }
            }
        }
        Ok(RowResult::Counted(PaymentOutcome::Skipped))
    }

    /// Returns the result of the row `due` while charging is switched off. Claims nothing.
    pub(super) async fn result_while_switched_off(
        &self,
        due: &Due,
        today: NaiveDate,
    ) -> Result<RowResult, SettleError> {
        Ok(match self.table.get_subscription(&due.key.account, due.key.subscription).await? {
            Some(stored) if stored.attempt.is_some() => RowResult::LeftToOtherLane,
            Some(stored) if stored.open_findings > 0 && is_due(&stored, today) => {
                RowError::OpenFinding { due_on: stored.due_on }.into()
            }
            Some(stored) if stored.disputed_at.is_some() => RowResult::Counted(PaymentOutcome::Disputed),
            Some(stored) if is_payable(&stored, today) => deferred_because_charging_is_off(PaymentOutcome::Skipped),
            _ => RowResult::Counted(PaymentOutcome::Skipped),
        })
    }

    /// Processes a row in the second lane, which looks up open attempts: takes over the row's open attempt if the
    /// attempt is in doubt. If no attempt is open, but the subscription is payable (since the first lane skipped the
    /// row), charges the subscription.
    pub(super) async fn process_open_attempt(
        &self,
        context: RowContext<'_>,
        due: &Due,
    ) -> Result<RowResult, SettleError> {
        let Some(stored) = self.table.get_subscription(&due.key.account, due.key.subscription).await? else {
            return Ok(RowResult::LeftToOtherLane);
        };
        match &stored.attempt {
            Some(open) => {
                if !open.is_in_doubt(self.clock.now()) {
                    add_leased_attempt(context.run, &stored, open);
                    return Ok(RowResult::Counted(PaymentOutcome::InDoubt));
                }
                let done = self.take_over(context, &due.key, open.clone()).await;
                if done.is_err() {
                    context.run.add_in_doubt(open.claimed_at);
                }
                done
            }
            None if context.run.is_charging_enabled() && is_payable(&stored, context.today) => {
                self.charge_due(context, due).await
            }
            None => Ok(RowResult::LeftToOtherLane),
        }
    }

    /// Waives the months that the subscription of `due` missed during an outage, if the catch-up policy requires it.
    /// Returns the new due date if months were waived, otherwise `None`.
    async fn waive_missed_periods(&self, due: &Due, today: NaiveDate) -> Result<Option<NaiveDate>, SettleError> {
        if self.policy.catch_up == CatchUp::Each || Period::from_day(due.due_on) >= Period::from_day(today) {
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
            self.policy.catch_up.waive_missed_periods(stored, today, self.clock.now()).ok_or(stored.due_on)
        };
        match self.table.settle(stored, skip).await? {
            RewriteOutcome::Applied(skipped) => Ok(skipped.next_payment_on),
            RewriteOutcome::Unchanged(_) | RewriteOutcome::Missing => Ok(None),
        }
    }

    /// Processes the row of a subscription whose payment method is disputed, without charging the subscription. Stops
    /// collecting the owed payment 28 days after the dispute was lost or after the due date, whichever is later.
    async fn process_disputed_subscription(&self, stored: Subscription) -> Result<RowResult, SettleError> {
        let disputes = self.table.get_disputes_by_account(&stored.account).await?;
        let day_of = |at: DateTime<Utc>| at.with_timezone(&self.zone).date_naive();
        let give_up = |stored: &Subscription| {
            stored.stop_collection_after_lost_dispute(&disputes, &self.policy, day_of, self.clock.now()).ok_or(())
        };
        self.table.settle(stored, give_up).await?;
        Ok(RowResult::Counted(PaymentOutcome::Disputed))
    }

    /// Cancels a subscription whose scheduled cancellation takes effect with the due period.
    async fn cancel_as_scheduled(&self, stored: Subscription, today: NaiveDate) -> Result<RowResult, SettleError> {
        let end = |stored: &Subscription| {
            let is_over = stored.is_ending() && stored.due_on <= today && stored.attempt.is_none();
            if is_over { Ok(stored.cancel(today, self.clock.now())) } else { Err(()) }
        };
        self.table.settle(stored, end).await?;
        Ok(RowResult::Counted(PaymentOutcome::Skipped))
    }

    /// Removes `stored` from the payment index by writing `without_date`, the same subscription without a next payment
    /// date. On a write conflict, leaves the item to the next run.
    async fn remove_from_index(
        &self,
        stored: &Subscription,
        without_date: Subscription,
    ) -> Result<RowResult, SettleError> {
        self.table.update_subscription(stored, &without_date).await?;
        Ok(RowResult::Counted(PaymentOutcome::Skipped))
    }
}

/// Returns whether `stored` is due on `today` and neither a dispute nor an open finding prevents its charge.
fn is_payable(stored: &Subscription, today: NaiveDate) -> bool {
    stored.disputed_at.is_none() && stored.open_findings == 0 && is_due(stored, today)
}

/// Returns whether `stored` is active or past due, and its next payment date is `today` or earlier.
fn is_due(stored: &Subscription, today: NaiveDate) -> bool {
    stored.status.is_chargeable() && stored.next_payment_on.is_some_and(|on| on <= today)
}

/// Adds the attempt `open` of `stored`, which another worker has leased, to the attempts in doubt of `run`. Does not
/// add the attempt if the run would not charge it again: such an attempt can stay open although the gateway has
/// responded to its look-up.
pub(super) fn add_leased_attempt(run: &PaymentRun, stored: &Subscription, open: &Attempt) {
    let may_charge_again = run.is_charging_enabled()
        && stored.disputed_at.is_none()
        && stored.open_findings == 0
        && attempt_contradiction(stored, open).is_none();
    if may_charge_again {
        run.add_in_doubt(open.claimed_at);
    }
}
