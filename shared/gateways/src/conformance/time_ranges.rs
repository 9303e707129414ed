//! Checks of the lists of all payments, refunds and disputes of a time range, which `dueday reconcile` compares with
//! the table. A gateway does not have to offer these lists.

use std::collections::BTreeSet;

use chrono::{DateTime, SubsecRound as _, TimeDelta, Utc};

use super::PromiseVerdict;
use super::payment_lists::describe_difference;
use super::running_check::{
    CONCURRENTLY_REFUNDED_CHARGE_NO, CheckResult, ConformanceCheck, PARTLY_REFUNDED_CHARGE_NO,
    REFUNDED_BY_COPIES_CHARGE_NO, REFUNDED_CHARGE_NO, broken_by_gateway_error, broken_promise, ensure_promise,
};
use crate::{GatewayDispute, GatewayError, GatewayRefund, ListPage, TimeRange};
use billing::{GatewayToken, Payment, PaymentStatus};

/// The largest number of list pages of one list that the check reads.
const MAX_LIST_PAGES: usize = 100;
/// The time before the start of the check and after the current time that the lists include. The margin is necessary
/// because the clocks of the gateway and of the check differ.
const MARGIN: TimeDelta = TimeDelta::hours(1);

impl ConformanceCheck<'_> {
    /// Returns the time range in which this check has made all its payments and refunds.
    fn range_of_check(&self) -> TimeRange {
        TimeRange { from: self.started_at - MARGIN, to: self.now() + MARGIN }
    }

    /// Reads all list pages of the list `name` (such as `payments`). `read_page` reads the list page after a position.
    /// If the gateway does not offer the list, returns [`PromiseVerdict::NotChecked`].
    async fn read_list_pages<T>(
        &self,
        name: &str,
        read_page: impl AsyncFn(Option<&str>) -> Result<Option<ListPage<T>>, GatewayError>,
    ) -> CheckResult<Vec<T>> {
        let mut all = Vec::new();
        let mut position = None::<String>;
        let mut positions = BTreeSet::new();
        let mut is_last_page_empty = false;
        for _ in 0..MAX_LIST_PAGES {
            let page = self.repeat_if_throttled(async || read_page(position.as_deref()).await).await;
            let Some(page) = page.map_err(broken_by_gateway_error)? else {
                let reason = format!("the gateway does not offer the list of the {name} of a time range");
                return Err(PromiseVerdict::NotChecked(reason));
            };
            is_last_page_empty = page.items.is_empty();
            all.extend(page.items);
            let Some(next) = page.next else { return Ok(all) };
            ensure_promise(positions.insert(next.clone()), || {
                format!(
                    "two list pages have the same `next`, {next:?}: the last list page must not have the field `next`"
                )
            })?;
            position = Some(next);
        }
        if is_last_page_empty {
            return Err(broken_promise(format!(
                "the list page {MAX_LIST_PAGES} is empty and has the field `next`: the last list page must not have it"
            )));
        }
        let reason = format!("the list has more than {MAX_LIST_PAGES} list pages: use an account with fewer {name}");
        Err(PromiseVerdict::NotChecked(reason))
    }

    /// Lists the payments of this check that were created in `range`.
    async fn list_payments_in(&self, range: &TimeRange) -> CheckResult<Vec<Payment>> {
        let all =
            self.read_list_pages("payments", async |after| self.gateway.payments_in_range(range, after).await).await?;
        Ok(all.into_iter().filter(|payment| self.is_own_payment(payment)).collect())
    }

    /// Lists all refunds that were created in `range`.
    async fn list_refunds_in(&self, range: &TimeRange) -> CheckResult<Vec<(GatewayToken, GatewayRefund)>> {
        self.read_list_pages("refunds", async |after| self.gateway.refunds_in_range(range, after).await).await
    }

    /// Checks that the list of the payments of a time range contains exactly the payments in the lists of their
    /// customers, also the declined payments.
    pub async fn check_payments_in_range(&self) -> CheckResult {
        let of_customers = self.list_own_payments().await?;
        let in_range = self.list_payments_in(&self.range_of_check()).await?;
        for payment in &of_customers {
            // A payment in progress may have got its outcome between the two lists.
            let found = in_range.iter().find(|found| found.id == payment.id);
            let status = found.filter(|_| payment.status == PaymentStatus::Processing).map(|found| &found.status);
            let expected = Payment { status: status.unwrap_or(&payment.status).clone(), ..payment.clone() };
            if let Some(how) = describe_difference(&expected, &in_range) {
                return Err(broken_promise(format!(
                    "the payment {} with the status {:?} is in the list of its customer; in the list of the time \
                     range: {how}",
                    payment.id, payment.status
                )));
            }
        }
        let other = in_range.iter().find(|payment| of_customers.iter().all(|other| other.id != payment.id));
        ensure_promise(other.is_none(), || {
            format!("the list of the time range has a payment that is not in the list of its customer: {other:?}")
        })
    }

    /// Checks that a time range contains the payments that were created at its start, and not those that were created
    /// at its end. Reads two adjacent time ranges, between which a payment was created.
    pub async fn check_ends_of_ranges(&self) -> CheckResult {
        let mut made: Vec<DateTime<Utc>> = self.payments().values().map(|payment| payment.created_at).collect();
        made.sort_unstable();
        let middle =
            made.get(made.len() / 2).ok_or_else(|| broken_promise("no payment could be made"))?.trunc_subsecs(3);
        let whole = self.range_of_check();
        for range in [TimeRange { to: middle, ..whole }, TimeRange { from: middle, ..whole }] {
            let listed = self.list_payments_in(&range).await?;
            for payment in self.payments().values() {
                let count = listed.iter().filter(|other| other.id == payment.id).count();
                ensure_promise(count == usize::from(range.contains(payment.created_at)), || {
                    format!(
                        "the payment {} was created at {}, and is {count} times in the list from {} until just \
                         before {}",
                        payment.id, payment.created_at, range.from, range.to
                    )
                })?;
            }
        }
        Ok(())
    }

    /// Checks that the list of the refunds of a time range contains every refund that was made in the time range
    /// exactly once, with its payment, and that an earlier time range contains none of them.
    pub async fn check_refunds_in_range(&self) -> CheckResult {
        const REFUNDED: [u32; 4] = [
            PARTLY_REFUNDED_CHARGE_NO,
            REFUNDED_CHARGE_NO,
            CONCURRENTLY_REFUNDED_CHARGE_NO,
            REFUNDED_BY_COPIES_CHARGE_NO,
        ];
        let range = self.range_of_check();
        let in_range = self.list_refunds_in(&range).await?;
        let before = self.list_refunds_in(&TimeRange { from: range.from - TimeDelta::days(1), to: range.from }).await?;
        let paid = self.payments();
        for payment in REFUNDED.iter().filter_map(|no| paid.get(no)) {
            for refund in self.list_refunds(&payment.id).await? {
                let found: Vec<_> = in_range.iter().filter(|(_, found)| found.id == refund.id).collect();
                let is_same = |(of, found): &(GatewayToken, GatewayRefund)| {
                    *of == payment.id && found.refund == refund.refund && found.amount == refund.amount
                };
                ensure_promise(found.len() == 1 && found.iter().all(|found| is_same(found)), || {
                    format!(
                        "the refund {refund:?} of the payment {} must be once in the list of the time range, which has \
                         {found:?}",
                        payment.id
                    )
                })?;
                ensure_promise(before.iter().all(|(_, found)| found.id != refund.id), || {
                    format!("the refund {} is in the list of a time range that ended before it was made", refund.id)
                })?;
            }
        }
        Ok(())
    }

    /// Checks that the list of the disputes of a time range can be read to its end.
    pub async fn check_disputes_in_range(&self) -> CheckResult {
        let range = self.range_of_check();
        let read_page = async |after: Option<&str>| self.gateway.disputes_in_range(&range, after).await;
        self.read_list_pages::<GatewayDispute>("disputes", read_page).await.map(drop)
    }
}
