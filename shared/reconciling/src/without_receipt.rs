//! The handling of the gateway's payments that have no receipt: they are settled if that is safe, stored as findings,
//! or reported as differences.

use billing::{DifferenceKind, Finding, FindingReason, GatewayDifference, Payment};
use charging::{ApplyResult, FindingDecision, FindingError, LookUpError, OpenReason, StatedOutcome};
use gateways::{GatewayError, PaymentGateway};
use store::TableError;

use crate::reconciler::{CorrectionMode, ReconcileError, Reconciler};
use crate::request_retries::with_retries;

/// The result of handling a payment without a receipt.
pub(crate) enum MissingReceiptResult {
    /// The payment has got its receipt.
    Settled,
    /// A person has decided about the payment, or another worker has written its receipt meanwhile.
    Resolved,
    /// The payment still has no receipt. Contains the difference to report.
    Reported(GatewayDifference),
}

impl Reconciler {
    /// Settles `payment`, which has no receipt, or stores the payment as a finding, about which a person decides.
    /// `difference` is the difference to report if neither is possible.
    pub(crate) async fn handle_without_receipt(
        &self,
        payment: &Payment,
        difference: GatewayDifference,
    ) -> Result<MissingReceiptResult, ReconcileError> {
        if self.has_finding(payment, |is_resolved| is_resolved).await? {
            return Ok(MissingReceiptResult::Resolved);
        }
        let reported = |kind: DifferenceKind, reason: &str| {
            let what = format!("{}: {reason}", difference.what);
            MissingReceiptResult::Reported(GatewayDifference { kind, what, ..difference.clone() })
        };
        let no_subscription = || reported(difference.kind, "its subscription does not exist");
        if self.corrections == CorrectionMode::ReportOnly {
            let stored = self.table.get_subscription(&payment.account, payment.subscription).await?;
            return Ok(match stored {
                Some(_) => MissingReceiptResult::Reported(difference),
                None => no_subscription(),
            });
        }
        Ok(match self.apply_payment(payment).await? {
            ApplyResult::Settled(_) => MissingReceiptResult::Settled,
            ApplyResult::AlreadySettled(_) | ApplyResult::NothingOpen => MissingReceiptResult::Resolved,
            ApplyResult::FindingStored(finding) if finding.resolved.is_some() => MissingReceiptResult::Resolved,
            ApplyResult::FindingStored(finding) if self.may_be_missing_in_backup(&finding) => {
                match self.write_receipt_lost_by_restore(payment).await? {
                    None => MissingReceiptResult::Settled,
                    Some(reason) => reported(DifferenceKind::PaymentWithoutReceipt, reason),
                }
            }
            ApplyResult::FindingStored(finding) => {
                let kind = match finding.reason {
                    FindingReason::PaidTwice => DifferenceKind::PaidTwice,
                    FindingReason::AmountDiffers => DifferenceKind::AmountDiffers,
                    FindingReason::NotDue | FindingReason::NoAttempt | FindingReason::Refunded => {
                        DifferenceKind::PaymentWithoutReceipt
                    }
                };
                reported(kind, finding.reason.sentence())
            }
            ApplyResult::Open(OpenReason::NoResponse(error @ GatewayError::Unusable { .. })) => {
                return Err(error.into());
            }
            ApplyResult::Open(OpenReason::NoResponse(error)) => {
                reported(difference.kind, &format!("its attempt could not be looked up: {error} (`dueday resolve`)"))
            }
            ApplyResult::Open(reason @ OpenReason::Leased { .. }) => reported(difference.kind, &reason.to_string()),
            ApplyResult::Open(reason) => {
                reported(difference.kind, &format!("its attempt is still open: {reason} (`dueday resolve`)"))
            }
            ApplyResult::Missing => no_subscription(),
        })
    }

    /// Writes the receipt of `payment`, which a backup does not contain. Returns the reason if the payment can get no
    /// receipt; otherwise `None`.
    async fn write_receipt_lost_by_restore(&self, payment: &Payment) -> Result<Option<&'static str>, ReconcileError> {
        let Payment { account, id, .. } = payment;
        let decision = FindingDecision::ReceiptLostByRestore;
        let because = "the backup does not contain this payment";
        match self.engine.resolve_finding(self.gateway.as_ref(), account, id, decision, because, self.today).await {
            Ok(_) => Ok(None),
            // An earlier try whose response was lost may have written the receipt.
            Err(FindingError::NoReceipt { reason, .. }) => Ok((!self.has_receipt(payment).await?).then_some(reason)),
            Err(error) => Err(error.into()),
        }
    }

    /// In a table that was restored from a backup, prevents a second charge for the month of `payment`, which the bank
    /// is still processing: if the backup contains no attempt of this month, stores a finding about the payment. The
    /// open finding blocks charges of the subscription until a person has resolved it.
    pub(crate) async fn block_if_missing_in_backup(&self, payment: &Payment) -> Result<(), ReconcileError> {
        if self.corrections != CorrectionMode::WriteReceiptsOfRestoredTable || self.has_receipt(payment).await? {
            return Ok(());
        }
        let (account, id) = (&payment.account, payment.subscription);
        let Some(stored) = self.table.get_subscription(account, id).await? else { return Ok(()) };
        if stored.has_open_attempt_of(payment.period()) {
            return Ok(());
        }
        self.engine.store_finding(stored, payment, FindingReason::NoAttempt).await?;
        Ok(())
    }

    /// Applies `payment` as the gateway reports it. In a restored table, no run may begin until an operator has confirmed
    /// the table, so an attempt that was open in the backup would otherwise stay open.
    async fn apply_payment(&self, payment: &Payment) -> Result<ApplyResult, LookUpError> {
        let gateway = self.gateway.as_ref();
        repeat_look_up(async || Box::pin(self.engine.apply_payment(gateway, payment, self.today)).await).await
    }

    /// Settles the open attempt of the subscription of `payment` with the outcome that the gateway reports.
    pub(crate) async fn settle_open_attempt(&self, payment: &Payment) -> Result<ApplyResult, TableError> {
        let gateway: &dyn PaymentGateway = self.gateway.as_ref();
        let (account, id) = (&payment.account, payment.subscription);
        let stated = StatedOutcome::AsGatewayReports;
        repeat_look_up(async || {
            Box::pin(self.engine.resolve_attempt(Some(gateway), account, id, &stated, self.today)).await
        })
        .await
    }

    /// Returns whether the table was restored from a backup that probably does not contain the attempt of the payment
    /// in `finding`. A payment that was not due when the finding was stored may be due now, because the
    /// comparison of an earlier day has written the receipts of the earlier months.
    fn may_be_missing_in_backup(&self, finding: &Finding) -> bool {
        self.corrections == CorrectionMode::WriteReceiptsOfRestoredTable
            && matches!(finding.reason, FindingReason::NoAttempt | FindingReason::NotDue)
    }
}

/// Calls `apply`. If the look-up of the attempt failed, calls it again: while the gateway throttles its requests, or once.
async fn repeat_look_up<E>(apply: impl AsyncFn() -> Result<ApplyResult, E>) -> Result<ApplyResult, E> {
    let apply = async || match apply().await {
        Ok(ApplyResult::Open(OpenReason::NoResponse(error))) => Err(error),
        result => Ok(result),
    };
    let result = match with_retries(&apply).await {
        Err(GatewayError::Unknown { .. }) => apply().await,
        result => result,
    };
    result.unwrap_or_else(|error| Ok(ApplyResult::Open(OpenReason::NoResponse(error))))
}
