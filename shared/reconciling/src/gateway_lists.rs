//! The first three steps of the comparison of a day: compares the payments, refunds and disputes that the gateway lists
//! for the day with the table.

use billing::{DayReconciliation, GatewayList, GatewayToken, Payment, PaymentStatus, Period, Receipt};
use futures::future::try_join_all;
use gateways::TimeRange;

use crate::comparison_rules::{PaymentComparison, compare_dispute, compare_payment, compare_refund};
use crate::reconciler::{ReconcileError, Reconciler, Settlement};
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
            if let Some(page) = with_retries(|| gateway.payments_in(range, after.as_deref())).await? {
                self.compare_listed_payments(&page.items, day).await?;
                day.position = page.next;
                return Ok(());
            }
            day.not_compared.insert(GatewayList::Payments);
        }
        match self.settlement {
            Settlement::WriteReceiptsOfRestoredTable => self.compare_payments_of_customers(range, day).await,
            // If an operator confirmed the table after the comparison of its customers was interrupted, the position of
            // that comparison is still stored. Remove the position, so that the step ends.
            Settlement::SettleOrStoreFinding | Settlement::ReportOnly => {
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
        let is_compared =
            |payment: &&Payment| payment.status == PaymentStatus::Succeeded && self.is_of_this_table(payment);
        let payments: Vec<&Payment> = listed.iter().filter(is_compared).collect();
        let is_processing =
            |payment: &&Payment| payment.status == PaymentStatus::Processing && self.is_of_this_table(payment);
        for payment in listed.iter().filter(is_processing) {
            day.counts.processing = day.counts.processing.saturating_add(1);
            self.block_if_missing_in_backup(payment).await?;
        }
        for payments in payments.chunks(MAX_CONCURRENT_RECEIPT_READS) {
            let receipts = try_join_all(payments.iter().map(|payment| self.receipt_of_period(payment))).await?;
            for (payment, receipt) in payments.iter().zip(&receipts) {
                day.counts.payments = day.counts.payments.saturating_add(1);
                match compare_payment(payment, receipt.as_ref()) {
                    PaymentComparison::Matches => self.seen.insert(&payment.id),
                    PaymentComparison::Differs(difference) => {
                        self.seen.insert(&payment.id);
                        self.add(day, difference);
                    }
                    PaymentComparison::WithoutReceipt(difference) => {
                        match self.handle_without_receipt(payment, difference).await? {
                            MissingReceiptResult::Settled => day.counts.settled = day.counts.settled.saturating_add(1),
                            MissingReceiptResult::Resolved => {}
                            MissingReceiptResult::Reported(difference) => self.add(day, difference),
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
        let Some(page) = with_retries(|| gateway.refunds_in(range, after.as_deref())).await? else {
            day.not_compared.insert(GatewayList::Refunds);
            return Ok(());
        };
        for (id, refund) in &page.items {
            let Some(payment) = self.payment_of_this_table(id).await? else { continue };
            day.counts.refunds = day.counts.refunds.saturating_add(1);
            let stored = match self.receipt_of_period(&payment).await? {
                Some(receipt) if receipt.payment == *id => {
                    self.table.get_refunds_by_receipt(&receipt.account, &receipt.id()).await?
                }
                // If there is a finding about the payment, do not compare its refunds: a person decides about the
                // finding, and then sees the refunds. Also do not compare the refunds if the receipt may have expired.
                _ if self.has_finding(&payment, |_| true).await? || self.may_have_expired(&payment) => continue,
                _ => Vec::new(),
            };
            compare_refund(refund, &payment, &stored).into_iter().for_each(|difference| self.add(day, difference));
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
        let Some(page) = with_retries(|| gateway.disputes_in(range, after.as_deref())).await? else {
            day.not_compared.insert(GatewayList::Disputes);
            return Ok(());
        };
        for dispute in &page.items {
            let Some(id) = &dispute.payment else { continue };
            let Some(payment) = self.payment_of_this_table(id).await? else { continue };
            day.counts.disputes = day.counts.disputes.saturating_add(1);
            let stored = self.table.get_disputes_by_account(&payment.account).await?;
            compare_dispute(dispute, &payment, &stored).into_iter().for_each(|difference| self.add(day, difference));
        }
        day.position = page.next;
        Ok(())
    }

    /// Returns the receipt of the subscription and the period of `payment`.
    pub(crate) async fn receipt_of_period(&self, payment: &Payment) -> Result<Option<Receipt>, ReconcileError> {
        let (period, now) = (Period::from_day(payment.due_on), self.clock.now());
        Ok(self.table.get_receipt_of_month(&payment.account, payment.subscription, period, now).await?)
    }

    /// Returns whether the receipt of the period of `payment` contains this payment.
    pub(crate) async fn has_receipt(&self, payment: &Payment) -> Result<bool, ReconcileError> {
        Ok(self.receipt_of_period(payment).await?.is_some_and(|receipt| receipt.payment == payment.id))
    }

    /// Returns the payment `id` at the gateway; `None` if this table did not request it.
    async fn payment_of_this_table(&self, id: &GatewayToken) -> Result<Option<Payment>, ReconcileError> {
        let payment = with_retries(|| self.gateway.payment(id)).await?;
        Ok(payment.filter(|payment| self.is_of_this_table(payment)))
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
