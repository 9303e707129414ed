//! The handling of the gateway's payments that have no receipt: they are settled if that is safe, stored as findings,
//! or reported as differences.

use billing::{Difference, DifferenceKind, Finding, FindingReason, Payment, Period};
use chrono::TimeDelta;
use gateways::{GatewayError, PaymentGateway};
use settling::{
    AttemptResolver, FindingDecision, FindingError, Findings, LatePaymentOutcome, ResolveOutcome, StatedOutcome,
};

use crate::reconciler::{ReconcileError, Reconciler, Settlement};
use crate::request_retries::with_retries;

/// How long a comparison leases an open attempt that it settles. This time is not longer than the shortest lease of a
/// run.
const ATTEMPT_LEASE: TimeDelta = TimeDelta::minutes(10);

/// The result of handling a payment without a receipt.
pub(crate) enum MissingReceiptResult {
    /// The payment has got its receipt.
    Settled,
    /// A person has decided about the payment, or another worker has written its receipt meanwhile.
    Resolved,
    /// The payment still has no receipt. Contains the difference to report.
    Reported(Difference),
}

impl Reconciler {
    /// Settles `payment`, which has no receipt, or stores the payment as a finding, about which a person decides.
    /// `difference` is the difference to report if neither is possible.
    pub(crate) async fn handle_without_receipt(
        &self,
        payment: &Payment,
        difference: Difference,
    ) -> Result<MissingReceiptResult, ReconcileError> {
        if self.has_finding(payment, |is_resolved| is_resolved).await? {
            return Ok(MissingReceiptResult::Resolved);
        }
        let reported = |kind: DifferenceKind, reason: &str| {
            let what = format!("{}: {reason}", difference.what);
            MissingReceiptResult::Reported(Difference { kind, what, ..difference.clone() })
        };
        let (account, id) = (&payment.account, payment.subscription);
        let Some(stored) = self.table.get_subscription(account, id).await? else {
            return Ok(reported(difference.kind, "its subscription does not exist"));
        };
        if self.settlement == Settlement::ReportOnly {
            return Ok(MissingReceiptResult::Reported(difference));
        }
        let findings = Findings { settling: &self.settling, gateway: self.gateway.as_ref() };
        let mut outcome = findings.settle_or_store_finding(payment, &stored.sku, self.today).await?;
        if outcome == LatePaymentOutcome::HandledElsewhere && !self.has_receipt(payment).await? {
            let reason = match self.settle_open_attempt(payment).await? {
                ResolveOutcome::Leased(until) => {
                    format!("its attempt is leased until {}", until.format("%Y-%m-%d %H:%M:%S UTC"))
                }
                ResolveOutcome::Contradicted(reason) => {
                    format!("its attempt is still open: {reason} (`dueday resolve`)")
                }
                ResolveOutcome::NotLookedUp(error @ GatewayError::Unusable { .. }) => return Err(error.into()),
                ResolveOutcome::NotLookedUp(error) => {
                    format!("its attempt could not be looked up: {error} (`dueday resolve`)")
                }
                ResolveOutcome::Settled(_) if self.has_receipt(payment).await? => {
                    return Ok(MissingReceiptResult::Settled);
                }
                // The attempt was settled with another payment of the same month, or by another worker.
                ResolveOutcome::Settled(_) | ResolveOutcome::NoOpenAttempt | ResolveOutcome::Missing => String::new(),
            };
            if !reason.is_empty() {
                return Ok(reported(difference.kind, &reason));
            }
            outcome = findings.settle_or_store_finding(payment, &stored.sku, self.today).await?;
        }
        Ok(match outcome {
            LatePaymentOutcome::Settled(_) => MissingReceiptResult::Settled,
            LatePaymentOutcome::FindingStored(finding) if finding.resolved.is_some() => MissingReceiptResult::Resolved,
            LatePaymentOutcome::FindingStored(finding) if self.may_be_missing_in_backup(&finding) => {
                let decision = (FindingDecision::Receipt, "the backup does not contain this payment");
                match findings.resolve((account, &payment.id), decision.0, decision.1, self.today).await {
                    Ok(_) => MissingReceiptResult::Settled,
                    // An earlier try whose response was lost may have written the receipt.
                    Err(FindingError::NoReceipt { reason, .. }) => match self.has_receipt(payment).await? {
                        true => MissingReceiptResult::Settled,
                        false => reported(DifferenceKind::PaymentWithoutReceipt, reason),
                    },
                    Err(error) => return Err(error.into()),
                }
            }
            LatePaymentOutcome::FindingStored(finding) => {
                let kind = match finding.reason {
                    FindingReason::PaidTwice => DifferenceKind::PaidTwice,
                    FindingReason::AmountDiffers => DifferenceKind::AmountDiffers,
                    FindingReason::NotDue | FindingReason::NoAttempt | FindingReason::Refunded => {
                        DifferenceKind::PaymentWithoutReceipt
                    }
                };
                reported(kind, finding.reason.sentence())
            }
            LatePaymentOutcome::HandledElsewhere if self.has_receipt(payment).await? => MissingReceiptResult::Resolved,
            LatePaymentOutcome::HandledElsewhere => reported(difference.kind, "its attempt is still open"),
            LatePaymentOutcome::Missing => reported(difference.kind, "its subscription does not exist"),
        })
    }

    /// In a table that was restored from a backup, prevents a second charge for the month of `payment`, which the bank
    /// is still processing: if the backup contains no attempt of this month, stores a finding about the payment. The
    /// open finding blocks charges of the subscription until a person has resolved it.
    pub(crate) async fn block_if_missing_in_backup(&self, payment: &Payment) -> Result<(), ReconcileError> {
        if self.settlement != Settlement::WriteReceiptsOfRestoredTable || self.has_receipt(payment).await? {
            return Ok(());
        }
        let (account, id) = (&payment.account, payment.subscription);
        let Some(stored) = self.table.get_subscription(account, id).await? else { return Ok(()) };
        let period = Period::from_day(payment.due_on);
        if stored.attempt.as_ref().is_some_and(|open| Period::from_day(open.due_on) == period) {
            return Ok(());
        }
        let findings = Findings { settling: &self.settling, gateway: self.gateway.as_ref() };
        let sku = stored.sku.clone();
        findings.store_finding(stored, (payment, &sku), FindingReason::NoAttempt).await?;
        Ok(())
    }

    /// Settles the open attempt of the subscription of `payment` with the outcome that the gateway reports. In a
    /// restored table, no run may begin until an operator has confirmed the table, so an attempt that was open in the
    /// backup would otherwise stay open. Repeats the look-up once if it fails.
    async fn settle_open_attempt(&self, payment: &Payment) -> Result<ResolveOutcome, ReconcileError> {
        let gateway: &dyn PaymentGateway = self.gateway.as_ref();
        let resolver = AttemptResolver { settling: &self.settling, gateway: Some(gateway), lease: ATTEMPT_LEASE };
        let (subscription, stated) = ((&payment.account, payment.subscription), StatedOutcome::AsGatewayReports);
        let resolve = async || match resolver.resolve(subscription, &stated, self.today).await {
            Ok(ResolveOutcome::NotLookedUp(error)) => Err(error),
            result => Ok(result),
        };
        match with_retries(&resolve).await {
            Ok(result) => Ok(result?),
            Err(GatewayError::Unknown { .. }) => match resolve().await {
                Ok(result) => Ok(result?),
                Err(error) => Ok(ResolveOutcome::NotLookedUp(error)),
            },
            Err(error) => Ok(ResolveOutcome::NotLookedUp(error)),
        }
    }

    /// Returns whether the table was restored from a backup that probably does not contain the attempt of the payment
    /// in `finding`.
    fn may_be_missing_in_backup(&self, finding: &Finding) -> bool {
        self.settlement == Settlement::WriteReceiptsOfRestoredTable && finding.reason == FindingReason::NoAttempt
    }
}
