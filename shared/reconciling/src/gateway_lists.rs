//! The first three steps of the comparison of a day: compares the payments, refunds and disputes that the gateway lists
//! for the day with the table. Stores the state of refunds and disputes whose event never came.

use billing::{
    DayReconciliation, DifferenceKind, GatewayDifference, GatewayList, GatewayToken, Payment, PaymentStatus, Receipt,
    Refund,
};
use futures::future::try_join_all;
use gateways::{
    GatewayError, PaymentComparison, TimeRange, UnreadableObject, compare_dispute, compare_payment, compare_refund,
};

use crate::reconciler::{CorrectionMode, ReconcileError, Reconciler};
use crate::request_retries::with_retries;
use crate::without_receipt::MissingReceiptResult;

/// The maximum number of receipts that are read from the table concurrently.
const MAX_CONCURRENT_RECEIPT_READS: usize = 16;

impl Reconciler {
    /// Compares one list page of the gateway's payments in `range` with the receipts, and records the result in `day`.
    /// If the gateway does not offer this list and the table was restored from a backup, compares the payments of the
    /// next customers in the table.
    pub(crate) async fn compare_payments(
        &mut self,
        range: &TimeRange,
        day: &mut DayReconciliation,
    ) -> Result<(), ReconcileError> {
        if !day.not_compared.contains(&GatewayList::Payments) {
            let (gateway, after) = (self.gateway.clone(), day.position.take());
            if let Some(page) = with_retries(|| gateway.payments_in_range(range, after.as_deref())).await? {
                self.record_progress(&page, day.on)?;
                self.compare_listed_payments(&page.items, day).await?;
                let is_of_table = |object: &&UnreadableObject| object.table.is_none_or(|table| table == self.table_id);
                page.unreadable.iter().filter(is_of_table).for_each(|object| self.add_unreadable(day, object));
                day.position = page.next;
                return Ok(());
            }
            day.not_compared.insert(GatewayList::Payments);
        }
        match self.corrections {
            CorrectionMode::WriteReceiptsOfRestoredTable => self.compare_payments_of_customers(range, day).await,
            // If an operator confirmed the table after the comparison of its customers was interrupted, the position of
            // that comparison is still stored. Remove the position, so that the step ends.
            CorrectionMode::SettleOrStoreFinding | CorrectionMode::ReportOnly => {
                day.position = None;
                Ok(())
            }
        }
    }

    /// Compares `listed`, payments that the gateway listed for the compared day, with the stored receipts, and records
    /// the result in `day`.
    pub(crate) async fn compare_listed_payments(
        &mut self,
        listed: &[Payment],
        day: &mut DayReconciliation,
    ) -> Result<(), ReconcileError> {
        let is_compared = |payment: &&Payment| {
            payment.status == PaymentStatus::Succeeded && self.was_requested_by_this_table(payment)
        };
        let payments: Vec<&Payment> = listed.iter().filter(is_compared).collect();
        let is_processing = |payment: &&Payment| {
            payment.status == PaymentStatus::Processing && self.was_requested_by_this_table(payment)
        };
        if self.corrections == CorrectionMode::WriteReceiptsOfRestoredTable {
            for payment in listed.iter().filter(|payment| self.was_requested_by_this_table(payment)) {
                self.continue_after_attempt_of(payment).await?;
            }
        }
        for payment in listed.iter().filter(is_processing) {
            day.counts.processing = day.counts.processing.saturating_add(1);
            self.block_if_missing_in_backup(payment).await?;
        }
        for payments in payments.chunks(MAX_CONCURRENT_RECEIPT_READS) {
            let receipts = try_join_all(payments.iter().map(|payment| self.receipt_of_period(payment))).await?;
            for (payment, receipt) in payments.iter().zip(&receipts) {
                // A payment that is on two list pages is one payment.
                if !self.seen.contains(&payment.id) {
                    day.counts.payments = day.counts.payments.saturating_add(1);
                }
                match compare_payment(payment, receipt.as_ref()) {
                    PaymentComparison::Matches => self.seen.insert(&payment.id),
                    PaymentComparison::Differs(difference) => {
                        self.seen.insert(&payment.id);
                        self.add_difference(day, difference);
                    }
                    PaymentComparison::WithoutReceipt(difference) => {
                        let handled = self.handle_without_receipt(payment, difference).await;
                        let handled = match handled {
                            // A refund of the payment cannot be read, so it is unknown whether the payment is refunded.
                            Err(ReconcileError::Gateway(GatewayError::Unreadable { reason })) => {
                                let (kind, id) = (DifferenceKind::Unreadable, payment.id.to_string());
                                MissingReceiptResult::Reported(GatewayDifference { kind, id, what: reason })
                            }
                            handled => handled?,
                        };
                        match handled {
                            MissingReceiptResult::Settled => {
                                self.seen.insert(&payment.id);
                                day.counts.settled = day.counts.settled.saturating_add(1);
                            }
                            MissingReceiptResult::Resolved => {}
                            MissingReceiptResult::Reported(difference) => self.add_difference(day, difference),
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Compares one list page of the gateway's refunds in `range` with the stored refunds.
    pub(crate) async fn compare_refunds(
        &mut self,
        range: &TimeRange,
        day: &mut DayReconciliation,
    ) -> Result<(), ReconcileError> {
        let (gateway, after) = (self.gateway.clone(), day.position.take());
        let Some(page) = with_retries(|| gateway.refunds_in_range(range, after.as_deref())).await? else {
            day.not_compared.insert(GatewayList::Refunds);
            return Ok(());
        };
        self.record_progress(&page, day.on)?;
        self.report_unreadable(&page.unreadable, day).await?;
        for (id, refund) in &page.items {
            let Some(payment) = self.payment_of_this_table(id, day).await? else { continue };
            day.counts.refunds = day.counts.refunds.saturating_add(1);
            let receipt = self.receipt_of_period(&payment).await?.filter(|receipt| receipt.payment == *id);
            let stored = match &receipt {
                Some(receipt) => self.table.get_refunds_by_receipt(&receipt.account, &receipt.id()).await?,
                // If there is a finding about the payment, do not compare its refunds: a person decides about the
                // finding, and then sees the refunds. Also do not compare the refunds if the receipt may have expired.
                None if self.has_finding(&payment, |_| true).await? || self.may_have_expired(&payment) => continue,
                None => Vec::new(),
            };
            let Some(difference) = compare_refund(refund, &payment.account, id, &stored) else { continue };
            match receipt {
                Some(receipt) => {
                    let still_differs = |stored: &[Refund]| compare_refund(refund, &payment.account, id, stored);
                    let receipt_id = receipt.id();
                    self.apply_refunds(&receipt.account, &receipt_id, id, difference, still_differs, day).await?;
                }
                None => self.add_difference(day, difference),
            }
        }
        day.position = page.next;
        Ok(())
    }

    /// Compares one list page of the gateway's disputes in `range` with the stored disputes.
    pub(crate) async fn compare_disputes(
        &mut self,
        range: &TimeRange,
        day: &mut DayReconciliation,
    ) -> Result<(), ReconcileError> {
        let (gateway, after) = (self.gateway.clone(), day.position.take());
        let Some(page) = with_retries(|| gateway.disputes_in_range(range, after.as_deref())).await? else {
            day.not_compared.insert(GatewayList::Disputes);
            return Ok(());
        };
        self.record_progress(&page, day.on)?;
        self.report_unreadable(&page.unreadable, day).await?;
        for dispute in &page.items {
            let Some(id) = &dispute.payment else { continue };
            let Some(payment) = self.payment_of_this_table(id, day).await? else { continue };
            day.counts.disputes = day.counts.disputes.saturating_add(1);
            let stored = self.table.get_disputes_by_account(&payment.account).await?;
            if let Some(difference) = compare_dispute(dispute, &payment.account, id, &stored) {
                match stored.iter().find(|stored| stored.id == dispute.id) {
                    Some(stored) => self.apply_stored_dispute(stored, dispute, difference, day).await?,
                    None => self.apply_new_dispute(&payment, dispute, difference, day).await?,
                }
            }
        }
        day.position = page.next;
        Ok(())
    }

    /// Returns the receipt of the subscription and the period of `payment`.
    pub(crate) async fn receipt_of_period(&self, payment: &Payment) -> Result<Option<Receipt>, ReconcileError> {
        let (period, now) = (payment.period(), self.clock.now());
        Ok(self.table.get_receipt_of_month(&payment.account, payment.subscription, period, now).await?)
    }

    /// Returns whether the receipt of the period of `payment` contains this payment.
    pub(crate) async fn has_receipt(&self, payment: &Payment) -> Result<bool, ReconcileError> {
        Ok(self.receipt_of_period(payment).await?.is_some_and(|receipt| receipt.payment == payment.id))
    }

    /// Returns the payment `id` at the gateway; `None` if this table did not request it. If the payment cannot be read,
    /// adds a difference to `day` and returns `None`.
    async fn payment_of_this_table(
        &self,
        id: &GatewayToken,
        day: &mut DayReconciliation,
    ) -> Result<Option<Payment>, ReconcileError> {
        let read = with_retries(|| self.gateway.payment(id)).await;
        let payment = self.value_or_difference(read, id, day)?.flatten();
        Ok(payment.filter(|payment| self.was_requested_by_this_table(payment)))
    }

    /// Returns the value of `read`, the response to a request for the object `id`. If the object cannot be read, adds a
    /// difference to `day` and returns `None`: one unreadable object does not end the comparison of the day.
    pub(crate) fn value_or_difference<T>(
        &self,
        read: Result<T, GatewayError>,
        id: &GatewayToken,
        day: &mut DayReconciliation,
    ) -> Result<Option<T>, ReconcileError> {
        match read {
            Ok(value) => Ok(Some(value)),
            Err(GatewayError::Unreadable { reason }) => {
                self.add_difference(
                    day,
                    GatewayDifference { kind: DifferenceKind::Unreadable, id: id.to_string(), what: reason },
                );
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Adds a difference to `day` for each of the refunds or disputes `unreadable` whose payment this table requested.
    async fn report_unreadable(
        &self,
        unreadable: &[UnreadableObject],
        day: &mut DayReconciliation,
    ) -> Result<(), ReconcileError> {
        for object in unreadable {
            let Some(payment) = &object.payment else { continue };
            if self.payment_of_this_table(payment, day).await?.is_some() {
                self.add_unreadable(day, object);
            }
        }
        Ok(())
    }

    /// Adds the difference for `object`, which cannot be read, to `day`.
    fn add_unreadable(&self, day: &mut DayReconciliation, object: &UnreadableObject) {
        let UnreadableObject { id, reason, .. } = object.clone();
        self.add_difference(day, GatewayDifference { kind: DifferenceKind::Unreadable, id, what: reason });
    }

    /// Returns whether there is a finding about `payment` for which `is_wanted` returns true. The argument of
    /// `is_wanted` is whether the finding is resolved.
    pub(crate) async fn has_finding(
        &self,
        payment: &Payment,
        is_wanted: impl Fn(bool) -> bool,
    ) -> Result<bool, ReconcileError> {
        let findings = self.table.get_findings_by_account(&payment.account).await?;
        Ok(findings.iter().any(|finding| finding.payment == payment.id && is_wanted(finding.resolved.is_some())))
    }

    /// Returns whether the receipt of `payment` may have expired.
    fn may_have_expired(&self, payment: &Payment) -> bool {
        let oldest = self.clock.now().checked_sub_signed(self.table.receipt_retention());
        oldest.is_some_and(|oldest| payment.created_at <= oldest)
    }
}
