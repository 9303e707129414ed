//! What was taken on each day, by the receipts, and whether the day was done, by its run records.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, RangeInclusive};

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;
use serde::Serialize;

use billing::{Currency, Money, Receipt, Sku, Subscription};
use days::{DayReader, DayState};
use store::{Batch, Scanned, Table, TableError};

/// What was taken for a product on a day.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Taken {
    pub sku: Sku,
    pub payments: u64,
    #[serde(flatten)]
    pub sum: Money,
    /// The number of these payments that the bank took back since.
    pub reversed_payments: u64,
    /// What the bank took back of them, in minor units.
    pub reversed_amount: i64,
}

impl Taken {
    fn nothing(sku: Sku, currency: Currency) -> Self {
        Self { sku, payments: 0, sum: Money::new(0, currency), reversed_payments: 0, reversed_amount: 0 }
    }
}

/// The payments that are not settled at this moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct UnsettledNow {
    /// Due and not begun.
    pub due: u64,
    /// Begun and not settled: in doubt, at the bank, or being charged.
    pub open: u64,
}

/// A day of a report.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ReportedDay {
    pub date: NaiveDate,
    /// Whether its runs prove that everything due was charged or declined. If not, more may be taken for it.
    pub complete: bool,
    /// What its runs prove of it.
    pub state: DayState,
    /// What is unsettled at this moment; only of today.
    pub now: Option<UnsettledNow>,
    /// By currency and product. A payment is of the day on which it was made, whatever month it was for.
    pub taken: Vec<Taken>,
}

/// Days with what was taken on them.
#[derive(Debug, Default)]
pub struct Report {
    pub days: Vec<ReportedDay>,
    /// Items that cannot be read, and are not counted.
    pub unreadable: Vec<TableError>,
}

/// The table that is reported on, as it is read.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'a> {
    pub table: &'a Table,
    /// The number of shards of the table.
    pub shards: u32,
    /// The billing time zone, in which instants have a date.
    pub zone: Tz,
    pub now: DateTime<Utc>,
}

/// The first day of `zone` of which no receipt has expired by `now`, when they are kept for `kept`.
pub fn reported_from(kept: TimeDelta, zone: Tz, now: DateTime<Utc>) -> NaiveDate {
    let expiring = (now - kept).with_timezone(&zone).date_naive();
    expiring.succ_opt().unwrap_or(expiring)
}

type Sums = BTreeMap<(Currency, Sku), Taken>;

/// What was taken on the `days`, and what of today is not settled. Scan of the receipts and of what is due, and a Query of the
/// run records for each day.
///
/// # Errors
/// [`TableError`].
pub async fn report(
    Reading { table, shards, zone, now }: Reading<'_>,
    days: RangeInclusive<NaiveDate>,
) -> Result<Report, TableError> {
    let today = now.with_timezone(&zone).date_naive();
    let mut taken: BTreeMap<NaiveDate, Sums> = BTreeMap::new();
    let mut report = Report::default();
    let mut unsettled = UnsettledNow::default();
    let each = |scanned: Result<Scanned, TableError>| {
        match scanned {
            Ok(Scanned::Due(subscription)) => unsettled.count(&subscription),
            Ok(Scanned::Receipt(receipt)) => {
                let day = receipt.processed_at.with_timezone(&zone).date_naive();
                if days.contains(&day) {
                    add(taken.entry(day).or_default(), *receipt);
                }
            }
            Err(error) => report.unreadable.push(error),
        }
        ControlFlow::Continue(())
    };
    table.scan_receipts_and_due(today, each).await?;
    let (first, last) = days.into_inner();
    let mut reader = DayReader::new(table, Batch::Payments, shards, zone, now);
    for date in first.iter_days().take_while(|date| *date <= last) {
        let state = DayState::of(&reader.read(date).await?.prove());
        let now = (date == today).then_some(unsettled);
        let taken = taken.remove(&date).unwrap_or_default().into_values().collect();
        report.days.push(ReportedDay { date, complete: state.is_done(), state, now, taken });
    }
    Ok(report)
}

impl UnsettledNow {
    fn count(&mut self, subscription: &Subscription) {
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

fn add(sums: &mut Sums, receipt: Receipt) {
    let currency = receipt.amount.currency();
    let key = (currency, receipt.sku.clone());
    let taken = sums.entry(key).or_insert_with(|| Taken::nothing(receipt.sku, currency));
    taken.payments += 1;
    // A sum too large to hold is left at the largest amount.
    taken.sum = taken.sum.checked_add(receipt.amount).unwrap_or(Money::new(i64::MAX, currency));
    if let Some(reversal) = receipt.reversal {
        taken.reversed_payments += 1;
        taken.reversed_amount = taken.reversed_amount.saturating_add(reversal.amount.minor());
    }
}
