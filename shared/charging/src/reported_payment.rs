//! Applies a payment that the gateway reports, for example in an event or in a list: settles its open attempt or the
//! payment itself, or stores the payment as a finding.

use billing::{AttemptOutcome, LateSuccess, Payment, PaymentStatus, Receipt, Subscription};
use chrono::NaiveDate;
use gateways::{GatewayError, RefundState, Refunds};
use store::TableError;

use crate::{ApplyResult, ChargingEngine, LookUpError, OpenReason, StatedOutcome};

impl ChargingEngine {
    /// Applies `payment`, as `gateway` reports it, on the day `today`.
    /// - If an attempt of the payment's period is open, looks it up, and settles it with the outcome that the gateway
    ///   reports.
    /// - If the payment has succeeded but has no open attempt and no receipt, settles it if that is safe; otherwise
    ///   stores it as a finding, about which a person must decide. If a person has decided before, changes nothing.
    /// - A declined payment settles only its own attempt, because another attempt of the period may be open.
    ///
    /// # Errors
    /// [`LookUpError`] if a request failed. The caller can repeat the call.
    pub async fn apply_payment(
        &self,
        gateway: &dyn Refunds,
        payment: &Payment,
        today: NaiveDate,
    ) -> Result<ApplyResult, LookUpError> {
        let stored = self.table.get_subscription(&payment.account, payment.subscription).await?;
        let Some(mut stored) = stored else { return Ok(ApplyResult::Missing) };
        let mut receipt = None;
        let open = stored.attempt.as_ref();
        match &payment.status {
            PaymentStatus::Processing => return Ok(ApplyResult::Open(OpenReason::Processing)),
            PaymentStatus::Declined(decline) if open.is_none_or(|open| open.no != payment.attempt_no) => {
                return Ok(ApplyResult::AlreadySettled(Box::new(AttemptOutcome::Declined(decline.clone()))));
            }
            PaymentStatus::Declined(_) => {}
            PaymentStatus::Succeeded => {
                receipt = self.find_receipt_of(payment).await?;
                if receipt.as_ref().is_some_and(|receipt| receipt.payment == payment.id) {
                    return Ok(already_succeeded(payment));
                }
            }
        }
        // An open attempt of another period stays open: this payment must not settle it.
        if stored.has_open_attempt_of(payment.period()) {
            let stated = StatedOutcome::AsGatewayReports;
            match self.apply_to_open_attempt(Some(gateway), stored, &stated, today).await? {
                ApplyResult::Settled(settled) if settled.pays_with(payment) => {
                    return Ok(ApplyResult::Settled(settled));
                }
                // The attempt was settled with another payment of the period, or by another worker.
                ApplyResult::Settled(_) | ApplyResult::AlreadySettled(_) | ApplyResult::NothingOpen => {}
                other => return Ok(other),
            }
            match self.table.get_subscription(&payment.account, payment.subscription).await? {
                Some(current) => stored = current,
                None => return Ok(ApplyResult::Missing),
            }
            receipt = self.find_receipt_of(payment).await?;
        }
        if let PaymentStatus::Declined(decline) = &payment.status {
            return Ok(ApplyResult::AlreadySettled(Box::new(AttemptOutcome::Declined(decline.clone()))));
        }
        self.apply_late_success(gateway, stored, receipt, payment, today).await
    }

    /// Settles the successful `payment` of `stored` on the day `today` if that is safe; otherwise stores the payment as a
    /// finding. Leaves it open if an attempt of its period was opened in the meantime. `receipt` is the receipt of its
    /// period.
    async fn apply_late_success(
        &self,
        gateway: &dyn Refunds,
        stored: Subscription,
        receipt: Option<Receipt>,
        payment: &Payment,
        today: NaiveDate,
    ) -> Result<ApplyResult, LookUpError> {
        let (account, id) = (&payment.account, payment.subscription);
        let now = self.clock.now();
        if receipt.as_ref().is_some_and(|receipt| receipt.payment == payment.id) {
            return Ok(already_succeeded(payment));
        }
        if let Some(open) = stored.attempt.as_ref().filter(|open| open.period() == payment.period()) {
            return Ok(ApplyResult::Open(OpenReason::Leased { until: open.leased_until }));
        }
        let findings = self.table.get_findings_by_account(account).await?;
        let is_decided = |found: &billing::Finding| found.payment == payment.id && found.resolved.is_some();
        if let Some(decided) = findings.into_iter().find(is_decided) {
            return Ok(ApplyResult::FindingStored(Box::new(decided)));
        }
        let record = self.table.get_attempt_record(account, id, payment.due_on, payment.attempt_no).await?;
        let late = LateSuccess {
            payment,
            record: record.as_ref(),
            is_refunded: is_payment_refunded(gateway, payment).await?,
            is_paid_by_another: receipt.is_some(),
        };
        let settle = |stored: &Subscription| stored.settle_late_payment(&late, self.table.policy().lead, today, now);
        let reason = match self.table.write_settlement(stored.clone(), settle).await {
            Ok(settled) => {
                self.write_charge(&settled, today).await;
                return Ok(ApplyResult::settled(settled, true));
            }
            Err(refused) => match refused.into_reason()? {
                Some(reason) => reason,
                None => return Ok(ApplyResult::Missing),
            },
        };
        // Read the receipt again: another worker, or an earlier try of this write whose response was lost, may have
        // settled the payment since the receipt was read above.
        if self.find_receipt_of(payment).await?.is_some_and(|receipt| receipt.payment == payment.id) {
            return Ok(already_succeeded(payment));
        }
        let finding = self.store_finding(stored, payment, reason).await?;
        Ok(finding.map_or(ApplyResult::Missing, |finding| ApplyResult::FindingStored(Box::new(finding))))
    }

    /// Returns the stored receipt of the period of `payment`. Looks for the receipt by month and not by due date, because
    /// the payment day may have changed since the payment was requested.
    async fn find_receipt_of(&self, payment: &Payment) -> Result<Option<Receipt>, TableError> {
        let now = self.clock.now();
        self.table.get_receipt_of_month(&payment.account, payment.subscription, payment.period(), now).await
    }
}

/// Returns the result for the successful `payment`, which has its receipt.
fn already_succeeded(payment: &Payment) -> ApplyResult {
    ApplyResult::AlreadySettled(Box::new(AttemptOutcome::Succeeded(payment.clone())))
}

/// Returns whether `payment` has a refund at `gateway` that succeeded or is pending.
async fn is_payment_refunded(gateway: &dyn Refunds, payment: &Payment) -> Result<bool, GatewayError> {
    let refunds = gateway.refunds_of_payment(&payment.id).await?;
    Ok(refunds.iter().any(|refund| !matches!(refund.state, RefundState::Failed { .. })))
}
