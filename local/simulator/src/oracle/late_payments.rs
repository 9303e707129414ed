//! Late payments: payments that the gateway makes hours after it responded to the request with an error.
//!
//! Dueday cannot prevent late payments. As soon as a look-up can find a late payment, the oracle checks that no later
//! attempt charges the same month, and that the payment gets a receipt or a finding.

use billing::{Payment, PaymentStatus};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use super::Oracle;
use super::expected_subscription::{ExpectedSubscription, OpenAttempt};
use super::ledger::LedgerPayment;
use super::written_records::{RecordedFinding, RecordedReceipt, WrittenRecords};
use crate::calendar::month_of;
use crate::stored_items::SubscriptionName;

impl LedgerPayment {
    /// Returns whether the payment has succeeded or may still succeed.
    pub fn is_succeeded_or_pending(&self) -> bool {
        !matches!(self.status, PaymentStatus::Declined(_))
    }

    /// Returns whether a look-up could find the payment during the whole duration `time` before `now`.
    pub fn was_visible_at_gateway(&self, now: DateTime<Utc>, time: TimeDelta) -> bool {
        self.made_late_at.is_none_or(|at| now - at > time)
    }
}

impl Oracle {
    /// Records a payment that the gateway made only at `now`, after it had responded to the charge request with an
    /// error. `card` is the charged payment method.
    pub fn record_late_payment(&mut self, now: DateTime<Utc>, payment: &Payment, card: &str) {
        let ledger_payment = LedgerPayment::from_payment(payment, card);
        let is_charged = |(_, other): (&String, &LedgerPayment)| other.is_succeeded_or_pending();
        let is_undetectable =
            self.ledger.payments_of_month(&ledger_payment.subscription, ledger_payment.due).any(is_charged);
        self.counts.late_payments += 1;
        self.counts.late_duplicates += u64::from(is_undetectable && ledger_payment.is_succeeded_or_pending());
        self.ledger.payments.insert(
            payment.id.to_string(),
            LedgerPayment { made_late_at: Some(now), is_undetectable, ..ledger_payment },
        );
    }

    /// Checks and records findings (successful payments without a receipt) of `subscription`. A finding does not change
    /// the subscription.
    pub(super) fn record_findings(
        &mut self,
        now: DateTime<Utc>,
        subscription: &SubscriptionName,
        records: &WrittenRecords,
    ) {
        for finding in &records.findings {
            let expected = self
                .expected_subscriptions
                .get(subscription)
                .ok_or("the subscription of the finding does not exist".to_owned());
            match expected.and_then(|expected| self.check_finding(expected, finding)) {
                Ok(()) => {
                    self.ledger.findings.insert(finding.payment.clone());
                }
                Err(reason) => self.report_violation(now, subscription, reason),
            }
        }
    }

    /// Checks the write with which the webhook receiver settles a successful payment whose attempt is no longer open,
    /// and applies the write to `next`.
    pub(super) fn predict_after_late_success(
        &self,
        now: DateTime<Utc>,
        today: NaiveDate,
        next: &mut ExpectedSubscription,
        records: &WrittenRecords,
    ) -> Result<(), String> {
        match (&records.receipts[..], &records.failed_attempts[..], &records.findings[..]) {
            ([receipt], [], []) => self.apply_receipt_of_closed_attempt(now, today, next, receipt),
            _ => Err(format!("the webhook receiver wrote unexpected records: {records:?}")),
        }
    }

    /// Checks the receipt of a payment whose attempt was no longer open when its success arrived, and marks the month
    /// as paid in `next`.
    fn apply_receipt_of_closed_attempt(
        &self,
        now: DateTime<Utc>,
        today: NaiveDate,
        next: &mut ExpectedSubscription,
        receipt: &RecordedReceipt,
    ) -> Result<(), String> {
        let ledger_payment = self
            .ledger
            .payments
            .get(&receipt.payment)
            .ok_or("a receipt names a payment that the gateway does not have")?;
        let closed = OpenAttempt {
            no: ledger_payment.no,
            due: next.due,
            amount: ledger_payment.amount,
            card: ledger_payment.card.clone(),
            holder: 0,
            is_chargeable: false,
            held_since: now,
            leased_until: now,
            claimed_at: now,
        };
        // The receipt has the due date of the payment. The payment day may have been another one since then.
        self.check_receipt(&OpenAttempt { due: ledger_payment.due, ..closed.clone() }, next, receipt)?;
        next.mark_paid(&closed, &receipt.payment, today, &self.rules);
        Ok(())
    }

    /// Checks that the payment of `finding` is successful, has no receipt, and is not for the month that is due. Also
    /// checks the reason and the due date of the finding.
    fn check_finding(&self, next: &ExpectedSubscription, finding: &RecordedFinding) -> Result<(), String> {
        let ledger_payment = self
            .ledger
            .payments
            .get(&finding.payment)
            .filter(|ledger_payment| ledger_payment.subscription == next.name);
        let ledger_payment =
            ledger_payment.ok_or_else(|| format!("{finding:?} names a payment that the gateway does not have"))?;
        if ledger_payment.status != PaymentStatus::Succeeded || self.ledger.receipted.contains(&finding.payment) {
            return Err(format!(
                "{finding:?} names a payment that did not succeed or has a receipt: {ledger_payment:?}"
            ));
        }
        let month = month_of(ledger_payment.due);
        let expected = if next.paid.contains_key(&month) { "paid_twice" } else { "not_due" };
        if finding.reason != expected || finding.due != ledger_payment.due || month == month_of(next.due) {
            return Err(format!(
                "{finding:?} should have the reason {expected} and the due date {}; the due date of the subscription is {}",
                ledger_payment.due, next.due
            ));
        }
        Ok(())
    }
}
