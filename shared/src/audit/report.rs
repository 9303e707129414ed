//! What was taken on each day, by the receipts, and whether the day was done, by its run records.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, RangeInclusive};

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;
use serde::Serialize;

use super::{ShardProof, prove};
use crate::billing::{Currency, Money, Receipt, Sku};
use crate::table::{Batch, Paging, Table, TableError};

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

/// A day of a report.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ReportedDay {
    pub date: NaiveDate,
    /// Whether its runs prove that everything due was asked for. If not, more may be taken for it.
    pub complete: bool,
    /// By currency and product. A payment is of the day on which it was made, whatever month it was for.
    pub taken: Vec<Taken>,
}

/// Days with what was taken on them.
#[derive(Debug, Default)]
pub struct Report {
    pub days: Vec<ReportedDay>,
    /// Receipts that cannot be read, and are not counted.
    pub unreadable: Vec<TableError>,
}

/// The first day of `zone` of which no receipt has expired by `now`, when they are kept for `kept`.
pub fn reported_from(kept: TimeDelta, zone: Tz, now: DateTime<Utc>) -> NaiveDate {
    let expiring = (now - kept).with_timezone(&zone).date_naive();
    expiring.succ_opt().unwrap_or(expiring)
}

type Sums = BTreeMap<(Currency, Sku), Taken>;

/// What was taken in `table`, which has so many `shards`, on the `days` of `zone`. Scan of the receipts, and a Query of the
/// run records for each day.
///
/// # Errors
/// [`TableError`].
pub async fn report(
    table: &Table,
    shards: u32,
    zone: Tz,
    days: RangeInclusive<NaiveDate>,
) -> Result<Report, TableError> {
    let mut taken: BTreeMap<NaiveDate, Sums> = BTreeMap::new();
    let mut report = Report::default();
    let each = |receipt: Result<Receipt, TableError>| {
        match receipt {
            Ok(receipt) => {
                let day = receipt.processed_at.with_timezone(&zone).date_naive();
                if days.contains(&day) {
                    add(taken.entry(day).or_default(), receipt);
                }
            }
            Err(error) => report.unreadable.push(error),
        }
        ControlFlow::Continue(())
    };
    table.scan_receipts(each).await?;
    let (first, last) = days.into_inner();
    for date in first.iter_days().take_while(|date| *date <= last) {
        let runs = table.get_runs_by_date(Batch::Payments, date, &Paging::all()).await?.items;
        let complete = prove(Batch::Payments, shards, &runs).iter().all(ShardProof::holds);
        let taken = taken.remove(&date).unwrap_or_default().into_values().collect();
        report.days.push(ReportedDay { date, complete, taken });
    }
    Ok(report)
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
