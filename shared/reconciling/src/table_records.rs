//! The last step of the comparison of a day: compares the receipts, refunds and disputes that the table stored on that
//! day with the gateway, and also the earlier refunds and disputes that have no outcome yet.

use billing::{DayReconciliation, DifferenceKind, Dispute, GatewayDifference, GatewayList, Refund, RefundStatus};
use chrono::{Days, NaiveTime};
use gateways::{
    GatewayDispute, GatewayError, GatewayRefund, ListProgress, TimeRange, compare_dispute_status, compare_receipt,
    compare_refund_status, compare_stored_dispute, compare_stored_refund,
};
use store::AccountPartition;

use crate::reconciler::{ReconcileError, Reconciler};
use crate::request_retries::with_retries;

/// The number of accounts after which the comparison stores its position, from which it continues after an
/// interruption.
const ACCOUNTS_PER_UPDATE: usize = 1_000;
/// The number of requests to the gateway after which the comparison stores its position.
const REQUESTS_PER_UPDATE: u32 = 100;

impl Reconciler {
    /// Compares the receipts, refunds and disputes of the next accounts with the gateway, and records the result in
    /// `day`. Only records that were stored in `range` are compared, and earlier refunds and disputes that have no
    /// outcome yet.
    pub(crate) async fn compare_records(
        &mut self,
        range: &TimeRange,
        day: &mut DayReconciliation,
    ) -> Result<(), ReconcileError> {
        // The day ended more than an hour ago, so its records are old. Eventually consistent reads, which may lack the
        // changes of the last seconds, are therefore sufficient.
        let mut partitions = self.table.eventually_consistent_partitions_after(day.position.take());
        let mut requests = 0_u32;
        for _ in 0..ACCOUNTS_PER_UPDATE {
            let Some(partition) = partitions.next().await? else { return Ok(()) };
            requests = requests.saturating_add(self.compare_account(&partition, range, day).await?);
            if requests >= REQUESTS_PER_UPDATE {
                break;
            }
        }
        day.position = partitions.position().map(str::to_owned);
        Ok(())
    }

    /// Compares the records of one account. Returns the number of records for which requests were sent to the gateway.
    async fn compare_account(
        &self,
        partition: &AccountPartition,
        range: &TimeRange,
        day: &mut DayReconciliation,
    ) -> Result<u32, ReconcileError> {
        let mut requests = 0_u32;
        for receipt in partition.receipts.iter().filter(|receipt| range.contains(receipt.processed_at)) {
            day.counts.receipts = day.counts.receipts.saturating_add(1);
            if !self.seen.contains(&receipt.payment) {
                requests = requests.saturating_add(1);
                let read = with_retries(|| self.gateway.payment(&receipt.payment)).await;
                let Some(payment) = self.value_or_difference(read, &receipt.payment, day)? else { continue };
                let payment = payment.filter(|payment| self.was_requested_by_this_table(payment));
                let difference = compare_receipt(receipt, payment.as_ref(), range);
                difference.into_iter().for_each(|difference| self.add_difference(day, difference));
            }
        }
        for refund in partition.refunds.iter().filter(|refund| is_refund_compared(refund, range)) {
            requests = requests.saturating_add(1);
            let read = with_retries(|| self.gateway.refunds_of_payment(&refund.payment)).await;
            let Some(made) = self.value_or_difference(read, &refund.payment, day)? else { continue };
            self.compare_with_made_refunds(refund, &made, range, day).await?;
        }
        for dispute in partition.disputes.iter().filter(|dispute| is_dispute_compared(dispute, range)) {
            requests = requests.saturating_add(1);
            let is_of_day = range.contains(dispute.opened_at);
            match self.look_up_dispute(dispute).await? {
                // The step `ReconciliationStep::Disputes` has compared the disputes that the gateway lists for the day.
                DisputeLookup::Found(listed)
                    if range.contains(listed.opened_at) && !day.not_compared.contains(&GatewayList::Disputes) => {}
                DisputeLookup::Found(listed) => {
                    if let Some(difference) = compare_dispute_status(dispute, &listed) {
                        self.apply_stored_dispute(dispute, &listed, difference, day).await?;
                    }
                }
                // The comparison of the day on which the dispute was stored reports that the gateway does not have it.
                DisputeLookup::NotFound if is_of_day => {
                    compare_stored_dispute(dispute, false)
                        .into_iter()
                        .for_each(|difference| self.add_difference(day, difference));
                }
                // The step for disputes has reported an unreadable dispute of the day.
                DisputeLookup::Unreadable(reason) if !is_of_day => {
                    let id = dispute.id.to_string();
                    self.add_difference(day, GatewayDifference { kind: DifferenceKind::Unreadable, id, what: reason });
                }
                DisputeLookup::NotFound | DisputeLookup::Unreadable(_) => {}
                DisputeLookup::NotOffered => drop(day.not_compared.insert(GatewayList::Disputes)),
            }
        }
        Ok(requests)
    }

    /// Compares the stored `refund` with `made`, the refunds of its payment at the gateway, and records the result in
    /// `day`.
    async fn compare_with_made_refunds(
        &self,
        refund: &Refund,
        made: &[GatewayRefund],
        range: &TimeRange,
        day: &mut DayReconciliation,
    ) -> Result<(), ReconcileError> {
        let is_of_day = range.contains(refund.created_at);
        let Some(reported) = made.iter().find(|made| made.matches(refund)) else {
            // The comparison of the day on which the refund was requested reports that the gateway does not have it.
            if is_of_day {
                compare_stored_refund(refund, made)
                    .into_iter()
                    .for_each(|difference| self.add_difference(day, difference));
            }
            return Ok(());
        };
        // If the gateway lists the refunds of the day, the step `ReconciliationStep::Refunds` has compared this refund.
        if is_of_day && !day.not_compared.contains(&GatewayList::Refunds) {
            return Ok(());
        }
        if let Some(difference) = compare_refund_status(refund, reported) {
            let still_differs = |stored: &[Refund]| {
                stored
                    .iter()
                    .find(|stored| stored.id == refund.id)
                    .and_then(|stored| compare_refund_status(stored, reported))
            };
            let Refund { account, receipt, payment, .. } = refund;
            self.apply_refunds(account, receipt, payment, difference, still_differs, day).await?;
        }
        Ok(())
    }

    /// Looks up the stored `dispute` at the gateway. If the gateway does not return single disputes, first requests only
    /// the disputes that were opened around the stored time of `dispute`. If `dispute` is not among them, requests all
    /// disputes since the due date of the payment: a dispute that began as an inquiry has an earlier time at the
    /// gateway.
    pub(crate) async fn look_up_dispute(&self, dispute: &Dispute) -> Result<DisputeLookup, ReconcileError> {
        match with_retries(|| self.gateway.dispute_details(&dispute.id)).await {
            Ok(Some(found)) => return Ok(DisputeLookup::Found(found.dispute)),
            Err(GatewayError::Unreadable { reason }) => return Ok(DisputeLookup::Unreadable(reason)),
            Err(error) => return Err(error.into()),
            Ok(None) => {}
        }
        let around = TimeRange::within_an_hour_of(dispute.opened_at);
        let due_on = dispute.receipt.due_on;
        let first_day = due_on.checked_sub_days(Days::new(1)).unwrap_or(due_on);
        let since = TimeRange { from: first_day.and_time(NaiveTime::MIN).and_utc(), to: around.to };
        for range in [around, since] {
            let (mut after, mut progress) = (None, ListProgress::default());
            loop {
                let page = with_retries(|| self.gateway.disputes_in_range(&range, after.as_deref())).await?;
                let Some(page) = page else { return Ok(DisputeLookup::NotOffered) };
                progress.record(&page)?;
                if let Some(found) = page.unreadable.into_iter().find(|listed| listed.id == dispute.id.as_str()) {
                    return Ok(DisputeLookup::Unreadable(found.reason));
                }
                if let Some(found) = page.items.into_iter().find(|listed| listed.id == dispute.id) {
                    return Ok(DisputeLookup::Found(found));
                }
                match page.next {
                    Some(next) => after = Some(next),
                    None => break,
                }
            }
        }
        Ok(DisputeLookup::NotFound)
    }
}

/// The result of looking up a stored dispute at the gateway.
pub(crate) enum DisputeLookup {
    Found(GatewayDispute),
    NotFound,
    /// The gateway does not offer the list of disputes.
    NotOffered,
    /// The gateway has the dispute, but it cannot be read. Contains the reason.
    Unreadable(String),
}

/// Returns whether the comparison of the day `range` compares the stored `refund`: it was requested on that day and has
/// not failed, or it was requested earlier and is still pending. The gateway's event of the outcome of an earlier refund
/// may never have come.
fn is_refund_compared(refund: &Refund, range: &TimeRange) -> bool {
    match refund.status {
        RefundStatus::Pending => refund.created_at < range.to,
        RefundStatus::Succeeded => range.contains(refund.created_at),
        RefundStatus::Failed => false,
    }
}

/// Returns whether the comparison of the day `range` compares the stored `dispute`: it was opened on that day, or it was
/// opened earlier and has no outcome yet. The gateway's event of the outcome of an earlier dispute may never have come.
fn is_dispute_compared(dispute: &Dispute, range: &TimeRange) -> bool {
    range.contains(dispute.opened_at) || (!dispute.status.is_closed() && dispute.opened_at < range.to)
}
