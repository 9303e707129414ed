//! The report of sales per day, computed from the receipts, with the state of each day from its run records.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Arc;

use chrono::{DateTime, Datelike as _, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;
use serde::Serialize;

use billing::{Currency, Money, Policy, Receipt, Refund, RefundStatus, Sku, Subscription};
use days::{DayReader, DayState, ProvenDay};
use store::{Batch, ScannedItem, Settings, Table, TableError};

/// The sales of one product in one currency on one day. Money that customers get back counts on the day on which they get
/// it, and not on the day of their payment: the figures of a day that has passed stay the same.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ProductSales {
    pub sku: Sku,
    /// The number of successful payments.
    pub payments: u64,
    /// The gross amount: the total amount of the payments, before refunds and reversals.
    #[serde(flatten)]
    pub sum: Money,
    /// The number of refunds that were requested on this day and have not failed on this day.
    pub refunds: u64,
    /// The total amount of these refunds, in minor units, minus the earlier refunds that failed on this day.
    pub refunded_amount: i64,
    /// The number of payments that the bank reversed on this day.
    pub reversals: u64,
    /// The total amount that the bank reversed on this day, in minor units.
    pub reversed_amount: i64,
    /// The gross amount minus the refunded and the reversed amount of this day, in minor units.
    pub net_amount: i64,
}

impl ProductSales {
    /// Returns the entry of `sku` in `currency` before any sale is counted.
    fn without_sales(sku: Sku, currency: Currency) -> Self {
        Self {
            sku,
            payments: 0,
            sum: Money::new(0, currency),
            refunds: 0,
            refunded_amount: 0,
            reversals: 0,
            reversed_amount: 0,
            net_amount: 0,
        }
    }

    /// Counts a successful payment of `amount`.
    fn add_payment(&mut self, amount: Money) {
        self.payments += 1;
        // If the sum is too large for its type, use the largest possible amount.
        self.sum = self.sum.checked_add(amount).unwrap_or(Money::new(i64::MAX, amount.currency()));
        self.net_amount = self.net_amount.saturating_add(amount.minor());
    }

    /// Counts a refund of `amount`.
    fn add_refund(&mut self, amount: Money) {
        self.refunds += 1;
        self.refunded_amount = self.refunded_amount.saturating_add(amount.minor());
        self.net_amount = self.net_amount.saturating_sub(amount.minor());
    }

    /// Counts the failure of an earlier refund of `amount`, which the merchant keeps.
    fn add_failed_refund(&mut self, amount: Money) {
        self.refunded_amount = self.refunded_amount.saturating_sub(amount.minor());
        self.net_amount = self.net_amount.saturating_add(amount.minor());
    }

    /// Counts the reversal of `amount` by the bank.
    fn add_reversal(&mut self, amount: Money) {
        self.reversals += 1;
        self.reversed_amount = self.reversed_amount.saturating_add(amount.minor());
        self.net_amount = self.net_amount.saturating_sub(amount.minor());
    }
}

/// The number of payments that are not settled at the time of the report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct UnsettledNow {
    /// The number of due payments without an open attempt.
    pub due: u64,
    /// The number of open attempts: attempts with an unknown outcome, attempts that a bank is processing, and attempts
    /// that are being charged.
    pub open: u64,
}

/// The sales and the state of one day.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ReportedDay {
    pub date: NaiveDate,
    /// Whether the run records prove that every due payment was charged or declined and, after the day has ended, that
    /// every due reminder was sent. If not, more sales may follow for this day.
    pub complete: bool,
    /// The state of the day over both batches, from their run records.
    pub state: DayState,
    /// The unsettled payments at the time of the report; `None` for a day other than today.
    pub now: Option<UnsettledNow>,
    /// The sales by currency and product. A payment counts on the day on which it succeeded, even if it was due
    /// earlier. A refund counts on the day of its request.
    pub taken: Vec<ProductSales>,
}

/// A report of the sales on several days.
#[derive(Debug, Default)]
pub struct SalesReport {
    pub days: Vec<ReportedDay>,
    /// The run records of the reported days, from which the concerns about these days are found.
    pub proven: Vec<ProvenDay>,
    /// One error for each unreadable item, which the report does not include.
    pub unreadable: Vec<TableError>,
}

/// The table of a report, with the settings for reading it.
#[derive(Clone, Copy, Debug)]
pub struct ReportSource<'a> {
    pub table: &'a Table,
    pub settings: &'a Settings,
    pub now: DateTime<Utc>,
}

/// The reason why the requested days cannot be reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReportedDaysError {
    #[error("must be {first} or later: older receipts have expired")]
    FromIsExpired { first: NaiveDate },
    #[error("must not be later than today, {today}: the report contains only payments that were made")]
    FromIsInFuture { today: NaiveDate },
    #[error("must not be before {from}, the first day of the report")]
    ToIsBeforeFrom { from: NaiveDate },
}

impl ReportedDaysError {
    /// Returns the name of the wrong field: `from` or `to`.
    pub fn field(&self) -> &'static str {
        match self {
            Self::FromIsExpired { .. } | Self::FromIsInFuture { .. } => "from",
            Self::ToIsBeforeFrom { .. } => "to",
        }
    }
}

impl ReportSource<'_> {
    /// Returns the date of the instant `at` in the billing time zone.
    fn date_of(&self, at: DateTime<Utc>) -> NaiveDate {
        self.table.policy().date_at(at)
    }

    /// Returns the days from `from` (`None`: the first day of this month) to `to` (`None`: today), without the days
    /// after today.
    ///
    /// # Errors
    /// [`ReportedDaysError`] in these cases: the receipts of `from` may have expired; `from` is after today; or `to` is
    /// before `from`.
    pub fn reported_days(
        &self,
        from: Option<NaiveDate>,
        to: Option<NaiveDate>,
    ) -> Result<RangeInclusive<NaiveDate>, ReportedDaysError> {
        let today = self.date_of(self.now);
        let from = from.unwrap_or_else(|| today.with_day(1).unwrap_or(today));
        let first = first_reportable_day(self.table.receipt_retention(), self.table.policy().zone, self.now);
        if from < first {
            return Err(ReportedDaysError::FromIsExpired { first });
        }
        if from > today {
            return Err(ReportedDaysError::FromIsInFuture { today });
        }
        let to = to.unwrap_or(today);
        if to < from { Err(ReportedDaysError::ToIsBeforeFrom { from }) } else { Ok(from..=to.min(today)) }
    }
}

/// Returns the first date in `zone` whose receipts cannot have expired at `now`. `kept` is the retention time of
/// receipts.
pub fn first_reportable_day(kept: TimeDelta, zone: Tz, now: DateTime<Utc>) -> NaiveDate {
    let expiring = (now - kept).with_timezone(&zone).date_naive();
    expiring.succ_opt().unwrap_or(expiring)
}

/// The sales of one day, by currency and product.
type SalesByProduct = BTreeMap<(Currency, Sku), ProductSales>;

/// Returns the report of `days`. Leaves out the days before the table was created that have neither payments nor
/// complete runs. Scans all receipts, refunds and due subscriptions, and queries the run records of each of `days`.
pub async fn build_sales_report(
    source: ReportSource<'_>,
    days: RangeInclusive<NaiveDate>,
) -> Result<SalesReport, TableError> {
    let ReportSource { table, settings, now } = source;
    let (today, created_on) = (source.date_of(now), source.date_of(settings.created_at()));
    let mut counter = SalesCounter::new(table.policy(), days);
    let count_item = |scanned: Result<ScannedItem, TableError>| {
        counter.count_item(scanned);
        ControlFlow::Continue(())
    };
    table.scan_sales_and_due(today, count_item).await?;
    let SalesCounter { days, mut taken, unsettled, unreadable, .. } = counter;
    let mut report = SalesReport { unreadable, ..SalesReport::default() };
    let (first, last) = days.into_inner();
    let mut readers = Batch::ALL.map(|batch| (batch, DayReader::new(table, batch, settings.shards, now)));
    for date in first.iter_days().take_while(|date| *date <= last) {
        let mut proven = Vec::new();
        // The reminders of today do not change what is paid today, and may still be sent.
        for (_, reader) in readers.iter_mut().filter(|(batch, _)| *batch == Batch::Payments || date < today) {
            proven.push(ProvenDay::from(reader.read(date).await?));
        }
        let state = DayState::from_proofs(proven.iter().flat_map(|day| &day.shards));
        let taken: Vec<_> = taken.remove(&date).unwrap_or_default().into_values().collect();
        // Leave out days before the table was created, unless they have payments or runs: a demo table contains
        // payments and runs from before its creation.
        if date < created_on && taken.is_empty() && !state.is_complete() {
            continue;
        }
        let now = (date == today).then_some(unsettled);
        let complete = state.is_complete() && proven.iter().all(|day| day.unreadable.is_empty());
        report.proven.extend(proven);
        report.days.push(ReportedDay { date, complete, state, now, taken });
    }
    Ok(report)
}

/// Counts the sales of the reported days and the unsettled payments from the scanned items.
struct SalesCounter {
    policy: Arc<Policy>,
    /// The reported days.
    days: RangeInclusive<NaiveDate>,
    taken: BTreeMap<NaiveDate, SalesByProduct>,
    unsettled: UnsettledNow,
    /// One error for each unreadable item.
    unreadable: Vec<TableError>,
}

impl SalesCounter {
    fn new(policy: Arc<Policy>, days: RangeInclusive<NaiveDate>) -> Self {
        Self { policy, days, taken: BTreeMap::new(), unsettled: UnsettledNow::default(), unreadable: Vec::new() }
    }

    fn count_item(&mut self, scanned: Result<ScannedItem, TableError>) {
        match scanned {
            Ok(ScannedItem::Due(subscription)) => self.unsettled.count_subscription(&subscription),
            Ok(ScannedItem::Receipt(receipt)) => self.count_receipt(&receipt),
            Ok(ScannedItem::Refund(refund)) => self.count_refund(&refund),
            Err(error) => self.unreadable.push(error),
        }
    }

    /// Counts the payment of `receipt`, and its reversal.
    fn count_receipt(&mut self, receipt: &Receipt) {
        let paid = self.policy.date_at(receipt.processed_at);
        self.change_sales(paid, &receipt.sku, receipt.amount, ProductSales::add_payment);
        if let Some(reversal) = &receipt.reversal {
            let reversed = self.policy.date_at(reversal.at);
            self.change_sales(reversed, &receipt.sku, reversal.amount, ProductSales::add_reversal);
        }
    }

    /// Counts `refund`, unless it failed on the day of its request, and its failure on a later day.
    fn count_refund(&mut self, refund: &Refund) {
        let failed_at = refund.settled_at.filter(|_| refund.status == RefundStatus::Failed);
        let failed = failed_at.map(|at| self.policy.date_at(at));
        let (requested, amount) = (self.policy.date_at(refund.created_at), refund.amount);
        if failed != Some(requested) {
            self.change_sales(requested, &refund.receipt.sku, amount, ProductSales::add_refund);
            if let Some(failed) = failed {
                self.change_sales(failed, &refund.receipt.sku, amount, ProductSales::add_failed_refund);
            }
        }
    }

    /// Applies `change` with `amount` to the sales of `sku` on `day`, if the day is reported.
    fn change_sales(&mut self, day: NaiveDate, sku: &Sku, amount: Money, change: fn(&mut ProductSales, Money)) {
        if self.days.contains(&day) {
            let key = (amount.currency(), sku.clone());
            let new = || ProductSales::without_sales(sku.clone(), amount.currency());
            change(self.taken.entry(day).or_default().entry(key).or_insert_with(new), amount);
        }
    }
}

impl UnsettledNow {
    /// Counts the open attempt of `subscription`, or its due payment if there is no attempt and the payment can be
    /// charged.
    fn count_subscription(&mut self, subscription: &Subscription) {
        let is_payable = subscription.status.is_chargeable()
            && subscription.disputed_at.is_none()
            && subscription.open_findings == 0;
        match &subscription.attempt {
            Some(_) => self.open += 1,
            None if is_payable && !subscription.is_ending() => self.due += 1,
            None => {}
        }
    }
}
