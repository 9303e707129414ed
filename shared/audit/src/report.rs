//! The report of sales per day, computed from the receipts, with the state of each day from its run records.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, RangeInclusive};

use chrono::{DateTime, Datelike as _, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;
use serde::Serialize;

use billing::{Currency, Money, Receipt, Sku, Subscription};
use days::{DayReader, DayState};
use store::{Batch, ScannedItem, Settings, Table, TableError};

/// The sales of one product in one currency on one day.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ProductSales {
    pub sku: Sku,
    /// The number of successful payments.
    pub payments: u64,
    /// The gross amount: the total amount of the payments, before refunds and reversals.
    #[serde(flatten)]
    pub sum: Money,
    /// The number of these payments that were refunded after they had succeeded, in full or in part.
    pub refunded_payments: u64,
    /// The total refunded amount of these payments, in minor units.
    pub refunded_amount: i64,
    /// The number of these payments that the bank reversed after they had succeeded.
    pub reversed_payments: u64,
    /// The total reversed amount of these payments, in minor units.
    pub reversed_amount: i64,
    /// The amount of these payments that the merchant keeps, in minor units; negative if the customers got more back
    /// than they paid.
    pub net_amount: i64,
}

impl ProductSales {
    /// Returns the entry of `sku` in `currency` before any sale is counted.
    fn without_sales(sku: Sku, currency: Currency) -> Self {
        Self {
            sku,
            payments: 0,
            sum: Money::new(0, currency),
            refunded_payments: 0,
            refunded_amount: 0,
            reversed_payments: 0,
            reversed_amount: 0,
            net_amount: 0,
        }
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
    /// Whether the run records prove that every due payment was charged or declined. If not, more sales may follow for
    /// this day.
    pub complete: bool,
    /// The state of the day, from its run records.
    pub state: DayState,
    /// The unsettled payments at the time of the report; `None` for a day other than today.
    pub now: Option<UnsettledNow>,
    /// The sales by currency and product. A payment counts on the day on which it succeeded, even if it was due
    /// earlier.
    pub taken: Vec<ProductSales>,
}

/// A report of the sales on several days.
#[derive(Debug, Default)]
pub struct Report {
    pub days: Vec<ReportedDay>,
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
    pub fn days(
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
/// complete runs. Scans all receipts and due subscriptions, and queries the run records of each of `days`.
pub async fn report(source: ReportSource<'_>, days: RangeInclusive<NaiveDate>) -> Result<Report, TableError> {
    let ReportSource { table, settings, now } = source;
    let (today, created_on) = (source.date_of(now), source.date_of(settings.created_at()));
    let mut taken: BTreeMap<NaiveDate, SalesByProduct> = BTreeMap::new();
    let mut report = Report::default();
    let mut unsettled = UnsettledNow::default();
    let count_item = |scanned: Result<ScannedItem, TableError>| {
        match scanned {
            Ok(ScannedItem::Due(subscription)) => unsettled.count_subscription(&subscription),
            Ok(ScannedItem::Receipt(receipt)) => {
                let day = source.date_of(receipt.processed_at);
                if days.contains(&day) {
                    add_receipt(taken.entry(day).or_default(), *receipt);
                }
            }
            Err(error) => report.unreadable.push(error),
        }
        ControlFlow::Continue(())
    };
    table.scan_receipts_and_due(today, count_item).await?;
    let (first, last) = days.into_inner();
    let mut reader = DayReader::new(table, Batch::Payments, settings.shards, now);
    for date in first.iter_days().take_while(|date| *date <= last) {
        let state = DayState::from_proofs(&reader.read(date).await?.prove());
        let taken: Vec<_> = taken.remove(&date).unwrap_or_default().into_values().collect();
        // Leave out days before the table was created, unless they have payments or runs: a demo table contains
        // payments and runs from before its creation.
        if date < created_on && taken.is_empty() && !state.is_complete() {
            continue;
        }
        let now = (date == today).then_some(unsettled);
        report.days.push(ReportedDay { date, complete: state.is_complete(), state, now, taken });
    }
    Ok(report)
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

/// Adds the payment of `receipt` to the sales of its day, `sums`.
fn add_receipt(sums: &mut SalesByProduct, receipt: Receipt) {
    let currency = receipt.amount.currency();
    let (net, refunded) = (receipt.net().minor(), receipt.refunded.minor());
    let key = (currency, receipt.sku.clone());
    let taken = sums.entry(key).or_insert_with(|| ProductSales::without_sales(receipt.sku, currency));
    taken.payments += 1;
    // If the sum is too large for its type, use the largest possible amount.
    taken.sum = taken.sum.checked_add(receipt.amount).unwrap_or(Money::new(i64::MAX, currency));
    taken.net_amount = taken.net_amount.saturating_add(net);
    if refunded > 0 {
        taken.refunded_payments += 1;
        taken.refunded_amount = taken.refunded_amount.saturating_add(refunded);
    }
    if let Some(reversal) = receipt.reversal {
        taken.reversed_payments += 1;
        taken.reversed_amount = taken.reversed_amount.saturating_add(reversal.amount.minor());
    }
}
