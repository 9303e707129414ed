//! The last step of the comparison of a day: compares the receipts, refunds and disputes that the table stored on that
//! day with the gateway.

use billing::{DayReconciliation, Dispute, GatewayList, RefundStatus};
use chrono::{Days, NaiveTime};
use gateways::TimeRange;
use store::AccountPartition;

use crate::comparison_rules::{compare_receipt, compare_stored_dispute, compare_stored_refund};
use crate::reconciler::{ReconcileError, Reconciler};
use crate::request_retries::with_retries;

/// The number of accounts after which the comparison stores its position, from which it continues after an
/// interruption.
const ACCOUNTS_PER_UPDATE: usize = 1_000;
/// The number of requests to the gateway after which the comparison stores its position.
const REQUESTS_PER_UPDATE: u32 = 100;

impl Reconciler {
    /// Compares the receipts, refunds and disputes of the next accounts with the gateway, and records the result in
    /// `day`. Only records that were stored in `range` are compared.
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
                let payment = with_retries(|| self.gateway.payment(&receipt.payment)).await?;
                let difference = compare_receipt(receipt, payment.as_ref(), self.table_id, range);
                difference.into_iter().for_each(|difference| self.add(day, difference));
            }
        }
        let is_compared = |status: RefundStatus| status != RefundStatus::Failed;
        for refund in
            partition.refunds.iter().filter(|refund| range.contains(refund.created_at) && is_compared(refund.status))
        {
            requests = requests.saturating_add(1);
            let made = with_retries(|| self.gateway.refunds_of(&refund.payment)).await?;
            compare_stored_refund(refund, &made).into_iter().for_each(|difference| self.add(day, difference));
        }
        for dispute in partition.disputes.iter().filter(|dispute| range.contains(dispute.opened_at)) {
            requests = requests.saturating_add(1);
            match self.is_listed(dispute).await? {
                Some(is_listed) => {
                    compare_stored_dispute(dispute, is_listed)
                        .into_iter()
                        .for_each(|difference| self.add(day, difference));
                }
                None => drop(day.not_compared.insert(GatewayList::Disputes)),
            }
        }
        Ok(requests)
    }

    /// Returns whether the gateway lists `dispute`; `None` if the gateway does not offer the list of disputes. First
    /// requests only the disputes that were opened around the stored time of `dispute`. If `dispute` is not among them,
    /// requests all disputes since the due date of the payment: a dispute that began as an inquiry has an earlier time
    /// at the gateway.
    async fn is_listed(&self, dispute: &Dispute) -> Result<Option<bool>, ReconcileError> {
        let around = TimeRange::within_an_hour_of(dispute.opened_at);
        let due_on = dispute.receipt.due_on;
        let first_day = due_on.checked_sub_days(Days::new(1)).unwrap_or(due_on);
        let since = TimeRange { from: first_day.and_time(NaiveTime::MIN).and_utc(), to: around.to };
        for range in [around, since] {
            let mut after = None;
            loop {
                let page = with_retries(|| self.gateway.disputes_in(&range, after.as_deref())).await?;
                let Some(page) = page else { return Ok(None) };
                if page.items.iter().any(|listed| listed.id == dispute.id) {
                    return Ok(Some(true));
                }
                match page.next {
                    Some(next) => after = Some(next),
                    None => break,
                }
            }
        }
        Ok(Some(false))
    }
}
