//! Checks the settlement of an attempt, and predicts the subscription after the settlement.

use billing::{AfterLastRetry, PaymentStatus};
use chrono::{DateTime, Days, NaiveDate, TimeDelta, Utc};

use super::expected_subscription::{ExpectedSubscription, OpenAttempt};
use super::ledger::LedgerPayment;
use super::written_records::{RecordedFailedAttempt, RecordedReceipt, WrittenRecords};
use super::{ActorRole, BillingRules, MAX_ROW_TIME, Oracle, SimulatedActor};
use crate::calendar::{Month, month_of, next_month};
use crate::schedule::ActorId;
use crate::stored_items::StoredStatus::{Active, Cancelled, PastDue, Unpaid};

/// If this many days have passed since the first decline of a month, the next decline makes the subscription unpaid.
const LAST_TRY_DAYS: u64 = 28;
/// A rejection counts as a decline if at least this number of attempts in a row were rejected.
const MAX_REJECTIONS: u32 = 3;
/// An attempt without a payment at the gateway is settled as rejected this time after its claim.
const UNKNOWN_ATTEMPT_EXPIRY: TimeDelta = TimeDelta::hours(48);

impl Oracle {
    /// Checks that `records` state the outcome of the open attempt correctly. Applies the outcome to `next`, which then
    /// has the state that is expected after the write.
    ///
    /// # Errors
    /// The violation, if the records are wrong.
    pub(super) fn apply_settlement(
        &self,
        id: ActorId,
        actor: &SimulatedActor,
        now: DateTime<Utc>,
        today: NaiveDate,
        next: &mut ExpectedSubscription,
        records: &WrittenRecords,
    ) -> Result<(), String> {
        let open = next.open.take().ok_or("an attempt was settled, but none was open")?;
        match (&records.receipts[..], &records.failed_attempts[..]) {
            ([receipt], []) => {
                self.check_receipt(&open, next, receipt)?;
                next.mark_paid(&open, &receipt.payment, today, &self.rules);
            }
            ([], [failed_attempt]) => {
                self.check_failed_attempt(id, actor, now, &open, next, failed_attempt)?;
                match failed_attempt.outcome.as_str() {
                    "declined" => {
                        next.rejections = 0;
                        next.mark_declined(&open, failed_attempt.is_hard, today, &self.rules);
                    }
                    "rejected" => {
                        next.rejections += 1;
                        // Only a rejection of the card blames the customer. No other code of a rejected card occurs in
                        // simulations.
                        if next.rejections >= MAX_REJECTIONS && failed_attempt.code == "resource_missing" {
                            next.mark_declined(&open, false, today, &self.rules);
                        } else {
                            next.schedule_retry(today + Days::new(1));
                        }
                    }
                    _ => next.schedule_retry(today),
                }
            }
            _ => return Err(format!("an attempt was settled with unexpected records: {records:?}")),
        }
        Ok(())
    }

    /// Checks that a receipt states a successful payment at the gateway, with the due date and the amount of the
    /// attempt.
    pub(super) fn check_receipt(
        &self,
        open: &OpenAttempt,
        next: &ExpectedSubscription,
        receipt: &RecordedReceipt,
    ) -> Result<(), String> {
        let ledger_payment = self.ledger.payments.get(&receipt.payment);
        let ledger_payment = ledger_payment.ok_or_else(|| {
            format!("a receipt names the payment {}, which the gateway does not have", receipt.payment)
        })?;
        let stated = (receipt.amount, receipt.currency.as_str());
        if ledger_payment.status != PaymentStatus::Succeeded {
            return Err(format!(
                "a receipt names the payment {}, whose status is {:?}",
                receipt.payment, ledger_payment.status
            ));
        }
        if ledger_payment.subscription != next.name
            || month_of(ledger_payment.due) != month_of(open.due)
            || receipt.due != open.due
        {
            return Err(format!("the receipt for {} names another payment: {ledger_payment:?}", receipt.due));
        }
        if stated != (ledger_payment.amount, ledger_payment.currency.as_str()) {
            return Err(format!(
                "the receipt states {stated:?}, but the charge was {} {}",
                ledger_payment.amount, ledger_payment.currency
            ));
        }
        if ledger_payment.no == open.no && ledger_payment.amount != open.amount {
            return Err(format!(
                "the receipt states the amount {}, but the amount of the attempt is {}",
                ledger_payment.amount, open.amount
            ));
        }
        Ok(())
    }

    /// Checks the record of a failed attempt. The gateway must have no payment of the month that has succeeded or may
    /// still succeed. The recorded outcome must agree with the attempt's payments at the gateway.
    fn check_failed_attempt(
        &self,
        id: ActorId,
        actor: &SimulatedActor,
        now: DateTime<Utc>,
        open: &OpenAttempt,
        next: &ExpectedSubscription,
        failed_attempt: &RecordedFailedAttempt,
    ) -> Result<(), String> {
        if (failed_attempt.no, failed_attempt.due) != (open.no, open.due) {
            return Err(format!("{failed_attempt:?} was recorded, but the open attempt was {open:?}"));
        }
        let is_visible = |ledger_payment: &LedgerPayment| {
            ledger_payment.is_succeeded_or_pending() && ledger_payment.was_visible_at_gateway(now, MAX_ROW_TIME)
        };
        if let Some((payment, _)) =
            self.ledger.payments_of_month(&next.name, open.due).find(|(_, ledger_payment)| is_visible(ledger_payment))
        {
            return Err(format!(
                "attempt {} of {} was recorded as {}, but the gateway has the payment {payment}",
                open.no, open.due, failed_attempt.outcome
            ));
        }
        let was_rejected = self.ledger.may_be_settled_as_rejected(&next.name, open.no, now);
        let is_expired = now + actor.skew - open.claimed_at > UNKNOWN_ATTEMPT_EXPIRY;
        let has_no_payment = was_rejected || is_expired || actor.role == ActorRole::Resolver;
        let declines = || {
            self.ledger.payments_of_attempt(&next.name, open.no).filter_map(|ledger_payment| {
                match &ledger_payment.status {
                    PaymentStatus::Declined(decline) => Some(decline.hard),
                    _ => None,
                }
            })
        };
        let is_correct = match failed_attempt.outcome.as_str() {
            "declined" => declines().any(|is_hard| is_hard == failed_attempt.is_hard),
            "rejected" => has_no_payment && !failed_attempt.is_hard && declines().next().is_none(),
            "dropped" => !next.is_chargeable() && declines().next().is_none(),
            _ => false,
        };
        if !is_correct {
            let rejections = next.rejections;
            return Err(format!(
                "{failed_attempt:?} was recorded, but is wrong: rejected {was_rejected}, expired {is_expired}, {rejections} rejections before, payments {:?}",
                self.ledger.payments_of_attempt(&next.name, open.no).collect::<Vec<_>>()
            ));
        }
        if !matches!(failed_attempt.outcome.as_str(), "declined") && open.holder != id {
            return Err(format!(
                "attempt {} was settled as {} by an actor that does not hold the claim",
                open.no, failed_attempt.outcome
            ));
        }
        Ok(())
    }
}

impl ExpectedSubscription {
    /// Applies a receipt: the month is paid, and the next month becomes due.
    pub(super) fn mark_paid(&mut self, open: &OpenAttempt, payment: &str, today: NaiveDate, rules: &BillingRules) {
        let paid = month_of(open.due);
        self.paid.insert(paid, payment.to_owned());
        self.end_month(paid, today, rules);
    }

    /// Makes the month due that follows `ended`, a month that was paid or waived.
    pub(super) fn end_month(&mut self, ended: Month, today: NaiveDate, rules: &BillingRules) {
        let next = self.next_due_month_after(ended, today);
        if self.status != Cancelled {
            self.waive_months(next_month(ended), next, "unpaid");
        }
        self.move_to_month(next);
        (self.was_unpaid, self.failed, self.rejections) = (false, 0, 0);
        if matches!(self.status, PastDue | Unpaid) {
            self.status = Active;
        }
        (self.next_payment, self.next_reminder) = (None, None);
        if self.status == Active {
            self.next_payment = Some(self.due.max(today + Days::new(1)));
            self.next_reminder =
                (self.due > today && !self.ends_on_due_date()).then(|| rules.reminder_date_before(self.due));
        }
    }

    /// Returns the month that becomes due when the month `paid` has been paid or waived.
    fn next_due_month_after(&self, paid: Month, today: NaiveDate) -> Month {
        match self.ends {
            Some(ends) if self.status == Cancelled => ends,
            _ if !self.was_unpaid => next_month(paid),
            ends => {
                let upcoming = month_of(self.first_due_date_after(today));
                next_month(paid).max(ends.map_or(upcoming, |ends| ends.min(upcoming)))
            }
        }
    }

    /// Applies a decline: the month is charged again later, or the subscription becomes unpaid.
    fn mark_declined(&mut self, open: &OpenAttempt, is_hard: bool, today: NaiveDate, rules: &BillingRules) {
        if !self.is_chargeable() {
            return self.schedule_retry(today);
        }
        self.next_reminder = None;
        let first = *self.first_declined.get_or_insert(today);
        let gap = if open.card != self.card {
            // A decline of the old card does not count for the new card, which is charged on the next day.
            self.failed = 0;
            Some(1)
        } else {
            self.failed += 1;
            rules.days_until_retry_after(self.failed).filter(|_| !is_hard)
        };
        match gap.filter(|_| today < first + Days::new(LAST_TRY_DAYS)) {
            Some(days) => (self.status, self.next_payment) = (PastDue, Some(today + Days::new(days))),
            None => {
                (self.status, self.was_unpaid, self.next_payment) = (Unpaid, true, None);
                if rules.policy.after_last_retry == AfterLastRetry::Cancelled || self.ends.is_some() {
                    self.cancel(today);
                }
            }
        }
    }

    /// Schedules the next try for the date `on`. If the subscription was cancelled while the attempt was open, the
    /// month is waived instead.
    fn schedule_retry(&mut self, on: NaiveDate) {
        self.next_payment = self.is_chargeable().then_some(on);
        if self.status == Cancelled {
            let unpaid = month_of(self.due);
            self.waive_months(unpaid, next_month(unpaid), "cancelled");
            let ends = self.ends.unwrap_or(next_month(unpaid));
            self.ends = Some(ends);
            self.move_to_month(ends);
        }
    }
}
