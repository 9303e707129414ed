//! Stores the state of refunds and disputes at the gateway whose event never came. They are stored by the same services
//! that store them after an event: [`gateway_objects::RefundRequester`] and [`gateway_objects::DisputeRecorder`].

use billing::{AccountId, DayReconciliation, Dispute, GatewayDifference, GatewayToken, Payment, ReceiptId, Refund};
use gateway_objects::RefundError;
use gateways::{DisputeDetails, GatewayDispute};

use crate::reconciler::{CorrectionMode, ReconcileError, Reconciler};
use crate::request_retries::with_retries;
use crate::table_records::DisputeLookup;

impl Reconciler {
    /// Stores the state of all refunds of a payment as the gateway reports them, because `difference` was found.
    /// `still_differs` compares the stored refunds of the receipt again. If the difference remains, or nothing may be
    /// written, adds it to `day`; otherwise counts it as applied.
    pub(crate) async fn apply_refunds(
        &self,
        account: &AccountId,
        receipt: &ReceiptId,
        payment: &GatewayToken,
        difference: GatewayDifference,
        still_differs: impl Fn(&[Refund]) -> Option<GatewayDifference>,
        day: &mut DayReconciliation,
    ) -> Result<(), ReconcileError> {
        if !self.may_apply(&difference) {
            self.add_difference(day, difference);
            return Ok(());
        }
        let update = async || match self.refunds.update_refunds_from_gateway(account, receipt, payment).await {
            Err(RefundError::Gateway(error)) => Err(error),
            result => Ok(result),
        };
        // The futures of the services are boxed, so that the future of the comparison stays small.
        let remaining = match Box::pin(with_retries(update)).await? {
            Ok(()) => still_differs(&self.table.get_refunds_by_receipt(account, receipt).await?),
            Err(RefundError::Table(error)) => return Err(error.into()),
            Err(error) => Some(with_reason_not_applied(&difference, &error.to_string())),
        };
        match remaining {
            Some(remaining) => self.add_difference(day, remaining),
            None => count_as_applied(day, &difference),
        }
        Ok(())
    }

    /// Stores the state of the `stored` dispute as the gateway reports it, because `difference` was found, and counts it
    /// as applied. If nothing may be written, only adds the difference to `day`. `listed` is the dispute as the gateway
    /// listed it.
    pub(crate) async fn apply_stored_dispute(
        &self,
        stored: &Dispute,
        listed: &GatewayDispute,
        difference: GatewayDifference,
        day: &mut DayReconciliation,
    ) -> Result<(), ReconcileError> {
        match self.may_apply(&difference) {
            true => self.store_dispute(stored.clone(), listed, &difference, day).await,
            false => {
                self.add_difference(day, difference);
                Ok(())
            }
        }
    }

    /// Stores the dispute `listed` of `payment`, which is not stored, and counts it as applied. If nothing may be
    /// written, or the gateway does not return the details of the dispute, only adds `difference` to `day`.
    pub(crate) async fn apply_new_dispute(
        &self,
        payment: &Payment,
        listed: &GatewayDispute,
        difference: GatewayDifference,
        day: &mut DayReconciliation,
    ) -> Result<(), ReconcileError> {
        if !self.may_apply(&difference) {
            self.add_difference(day, difference);
            return Ok(());
        }
        let read = with_retries(|| self.gateway.dispute_details(&listed.id)).await;
        let Some(details) = self.value_or_difference(read, &listed.id, day)? else { return Ok(()) };
        let Some(DisputeDetails { reason, payment_method: Some(payment_method), .. }) = details else {
            self.add_difference(
                day,
                with_reason_not_applied(&difference, "the gateway does not return the disputed payment method"),
            );
            return Ok(());
        };
        let Some(receipt) = self.receipt_id_of(payment).await? else {
            self.add_difference(
                day,
                with_reason_not_applied(&difference, "the subscription of the payment does not exist"),
            );
            return Ok(());
        };
        let dispute = Dispute {
            id: listed.id.clone(),
            account: payment.account.clone(),
            receipt,
            payment: payment.id.clone(),
            payment_method,
            amount: listed.amount,
            reason,
            status: listed.status,
            opened_at: listed.opened_at,
            closed_at: None,
            version: 1,
        };
        self.store_dispute(dispute, listed, &difference, day).await
    }

    /// Stores `dispute` with its current state at the gateway, and counts `difference` as applied. If a second look-up
    /// does not find the dispute, uses the state `listed`.
    async fn store_dispute(
        &self,
        dispute: Dispute,
        listed: &GatewayDispute,
        difference: &GatewayDifference,
        day: &mut DayReconciliation,
    ) -> Result<(), ReconcileError> {
        let (account, id) = (dispute.account.clone(), dispute.id.clone());
        let read = async {
            let current = match self.look_up_dispute(&dispute).await? {
                DisputeLookup::Found(current) => current,
                DisputeLookup::NotFound | DisputeLookup::NotOffered | DisputeLookup::Unreadable(_) => listed.clone(),
            };
            let (amount, status) = (current.amount, current.status);
            let closed_at = status.is_closed().then(|| self.clock.now());
            Ok::<_, ReconcileError>(Dispute { amount, status, closed_at, ..dispute })
        };
        Box::pin(self.disputes.store_reported_dispute(&account, id.as_str(), read, self.clock.now())).await?;
        count_as_applied(day, difference);
        Ok(())
    }

    /// Returns the id of the receipt of `payment`. If the payment has no receipt, returns the id that the receipt would
    /// have; `None` if the subscription does not exist.
    async fn receipt_id_of(&self, payment: &Payment) -> Result<Option<ReceiptId>, ReconcileError> {
        let receipt = self.receipt_of_period(payment).await?.filter(|receipt| receipt.payment == payment.id);
        if let Some(receipt) = receipt {
            return Ok(Some(receipt.id()));
        }
        let subscription = self.table.get_subscription(&payment.account, payment.subscription).await?;
        Ok(subscription.map(|subscription| ReceiptId {
            due_on: payment.due_on,
            subscription: subscription.id,
            sku: subscription.sku,
        }))
    }

    /// Returns whether the comparison may change the table because of `difference`: it does not only report, and no
    /// person has accepted the difference.
    fn may_apply(&self, difference: &GatewayDifference) -> bool {
        self.corrections != CorrectionMode::ReportOnly && !self.is_accepted(difference)
    }
}

/// Returns `difference` with the reason why it was not applied.
fn with_reason_not_applied(difference: &GatewayDifference, reason: &str) -> GatewayDifference {
    GatewayDifference { what: format!("{}: {reason}", difference.what), ..difference.clone() }
}

/// Counts in `day` that the table was changed so that `difference` no longer exists, and logs the change.
fn count_as_applied(day: &mut DayReconciliation, difference: &GatewayDifference) {
    day.counts.applied = day.counts.applied.saturating_add(1);
    let GatewayDifference { kind, id, what } = difference;
    tracing::warn!(date = %day.on, %kind, id, what, "the state at the gateway was stored, because its event never came");
}
