//! Claiming what is due, and what is done with a row that cannot be claimed.

use chrono::{DateTime, NaiveDate, Utc};

use super::charge::Permit;
use super::run::Work;
use super::{CLAIM_TIME, ChargeDue, Done, PaymentOutcome, switched_off};
use billing::{CatchUp, Period, Standing, Subscription, standing};
use settling::SettleError;
use store::{Claimed, Due, Rewritten};

impl ChargeDue {
    /// Claims `due` and charges it, or does what its stored item asks for instead.
    pub(super) async fn charge_due(&self, work: Work<'_>, due: &Due) -> Result<Done, SettleError> {
        let Work { run, today, deadline } = work;
        let mut seen = due.on;
        if seen > today {
            // Dates compare as text in the index; one that sorts wrongly must not be charged.
            return Ok(Done::Failed { reason: format!("the index shows it due on {seen}, after {today}") });
        }
        if let Some(latest) = self.skip_missed(due, today).await? {
            seen = latest;
        }
        // Before the claim: what is claimed is charged at once.
        self.pace.turn().await;
        if !self.has_time_to_charge(deadline - CLAIM_TIME) {
            return Ok(Done::OutOfTime);
        }
        // It may have been switched off meanwhile, as a later page has shown.
        if !run.is_charging() {
            return self.hold_back(due, today).await;
        }
        // Twice at most: the index may show a date that is no longer the item's.
        for _ in 0..2 {
            let (claim, table_id) = (self.new_claim(), self.table_id.get().copied().unwrap_or_default());
            let stored = match self.table.claim_payment(&due.key, seen, table_id, claim).await? {
                Claimed::Held(held) => return self.charge_claimed(work, Permit::of(*held, claim)?).await,
                Claimed::Refused(None) => return Ok(Done::Counted(PaymentOutcome::Skipped)),
                Claimed::Refused(Some(stored)) => *stored,
            };
            match standing(&stored, claim.token, seen, today, claim.now) {
                Standing::Ours => return self.charge_claimed(work, Permit::of(stored, claim)?).await,
                Standing::InDoubt(_) | Standing::HeldElsewhere => return Ok(Done::PassedBy),
                Standing::DueOn(on) => seen = on,
                Standing::Found => return Ok(found(&stored)),
                Standing::Disputed => return self.disputed(stored).await,
                Standing::NotDue => return Ok(Done::Counted(PaymentOutcome::Skipped)),
                Standing::Ended => return self.end(stored, today).await,
                Standing::Stranded => {
                    return self.take_out(&stored, Subscription { next_payment_on: None, ..stored.clone() }).await;
                }
            }
        }
        Ok(Done::Counted(PaymentOutcome::Skipped))
    }

    /// With charging switched off, nothing is claimed.
    pub(super) async fn hold_back(&self, due: &Due, today: NaiveDate) -> Result<Done, SettleError> {
        Ok(match self.table.get_subscription(&due.key.account, due.key.subscription).await? {
            Some(stored) if stored.attempt.is_some() => Done::PassedBy,
            Some(stored) if stored.open_findings > 0 && is_due(&stored, today) => found(&stored),
            Some(stored) if stored.disputed_at.is_some() => Done::Counted(PaymentOutcome::Disputed),
            Some(stored) if is_payable(&stored, today) => switched_off(PaymentOutcome::Skipped),
            _ => Done::Counted(PaymentOutcome::Skipped),
        })
    }

    /// Settles what the gateway knows of an open attempt. What has become payable since the first lane passed it by is
    /// charged.
    pub(super) async fn settle_open(&self, work: Work<'_>, due: &Due) -> Result<Done, SettleError> {
        let Some(stored) = self.table.get_subscription(&due.key.account, due.key.subscription).await? else {
            return Ok(Done::PassedBy);
        };
        match &stored.attempt {
            Some(open) if open.is_in_doubt(self.clock.now()) => self.take_over(work, &due.key, open.clone()).await,
            Some(_) => Ok(Done::Counted(PaymentOutcome::InDoubt)),
            None if work.run.is_charging() && is_payable(&stored, work.today) => self.charge_due(work, due).await,
            None => Ok(Done::PassedBy),
        }
    }

    /// Waives the months of `due` that an outage has missed, if that is the policy; answers the due date that is left.
    async fn skip_missed(&self, due: &Due, today: NaiveDate) -> Result<Option<NaiveDate>, SettleError> {
        if self.policy.catch_up == CatchUp::Each || Period::of(due.due_on) >= Period::of(today) {
            return Ok(None);
        }
        let Some(stored) = self.table.get_subscription(&due.key.account, due.key.subscription).await? else {
            return Ok(None);
        };
        // No outage has missed it.
        if stored.disputed_at.is_some() {
            return Ok(None);
        }
        let skip =
            |stored: &Subscription| self.policy.catch_up.skip(stored, today, self.clock.now()).ok_or(stored.due_on);
        match self.table.settle(stored, skip).await? {
            Rewritten::Applied(skipped) => Ok(skipped.next_payment_on),
            Rewritten::Left(_) | Rewritten::Gone => Ok(None),
        }
    }

    /// Leaves a disputed subscription unchanged, or gives up what it owes 28 days after the dispute was lost.
    async fn disputed(&self, stored: Subscription) -> Result<Done, SettleError> {
        let disputes = self.table.get_disputes_by_account(&stored.account).await?;
        let day_of = |at: DateTime<Utc>| at.with_timezone(&self.zone).date_naive();
        let give_up = |stored: &Subscription| {
            stored.give_up_after_lost_dispute(&disputes, &self.policy, day_of, self.clock.now()).ok_or(())
        };
        self.table.settle(stored, give_up).await?;
        Ok(Done::Counted(PaymentOutcome::Disputed))
    }

    /// Cancels what was to be cancelled when this day comes.
    async fn end(&self, stored: Subscription, today: NaiveDate) -> Result<Done, SettleError> {
        let end = |stored: &Subscription| {
            let is_over = stored.is_ending() && stored.due_on <= today && stored.attempt.is_none();
            if is_over { Ok(stored.cancel(today, self.clock.now())) } else { Err(()) }
        };
        self.table.settle(stored, end).await?;
        Ok(Done::Counted(PaymentOutcome::Skipped))
    }

    /// Takes `stored` out of the index, as `out`. Another writer is quicker or slower: a later sweep sees.
    async fn take_out(&self, stored: &Subscription, out: Subscription) -> Result<Done, SettleError> {
        self.table.update_subscription(stored, &out).await?;
        Ok(Done::Counted(PaymentOutcome::Skipped))
    }
}

fn is_payable(stored: &Subscription, today: NaiveDate) -> bool {
    stored.disputed_at.is_none() && stored.open_findings == 0 && is_due(stored, today)
}

fn is_due(stored: &Subscription, today: NaiveDate) -> bool {
    stored.status.is_chargeable() && stored.next_payment_on.is_some_and(|on| on <= today)
}

/// A due subscription is not charged while a payment of it has no receipt. Its day fails, so that a person looks.
fn found(stored: &Subscription) -> Done {
    let due_on = stored.due_on;
    Done::Failed {
        reason: format!("a payment of {due_on} or later has no receipt, and is a finding to resolve (dueday findings)"),
    }
}
