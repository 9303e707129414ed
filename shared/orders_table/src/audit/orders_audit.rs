//! The audit of the order desk's table: compares each stored number with the records from which it can be computed again,
//! and can check all items.
//!
//! A scan is not a snapshot: a number can change while the scan reads the records of this number. So a difference is
//! reported only if a second scan finds it again, and if the number was not written during the second scan: its
//! revision was the same before and after this scan.

use futures::stream::{self, StreamExt as _, TryStreamExt as _};

use crate::OrdersTable;
use crate::audit::audit_scan::AuditScan;
use crate::audit::revisions::{NumberRevision, UnopenedStock};
use crate::write_transaction::WriteOutcome;
use chrono::{DateTime, Utc};
use clock::Clock;
use dynamo::{FaultyItem, TableError};
use orders::{AuditLedger, AuditedItem, AuditedNumber, Movement, MovementKind, NumberDifference, Order, StockChange};

/// The largest number of times that the table is scanned again, to verify the differences of the first scan or to compute
/// opening movements.
const MAX_VERIFICATIONS: usize = 3;
/// The largest number of requests that the audit sends at the same time.
const MAX_CONCURRENT_REQUESTS: usize = 16;

/// An audit of the order desk's table, whose first scan is not finished yet.
#[derive(Debug)]
pub struct OrdersAudit {
    table: OrdersTable,
    scan: AuditScan,
    ledger: AuditLedger,
    report: OrdersAuditReport,
}

/// The result of an audit.
#[derive(Debug, Default)]
pub struct OrdersAuditReport {
    /// The number of items that the first scan read.
    pub items: u64,
    /// The verified differences, sorted.
    pub differences: Vec<NumberDifference>,
    /// The numbers that could not be compared, because they changed during each scan.
    pub unverified: Vec<AuditedNumber>,
    /// The stocks from before movements were recorded that have no opening movement yet. They are not compared with
    /// their movements.
    pub unopened: Vec<AuditedNumber>,
    /// The faulty items, such as items that cannot be read; empty unless [`OrdersAudit::with_items_checked`] was called.
    pub faulty: Vec<FaultyItem>,
}

/// Returns the stock that `change` changed, as a number that the audit compares.
fn audited_number_of_stock(change: &StockChange) -> AuditedNumber {
    AuditedNumber::Stock { product: change.product.clone(), warehouse: change.warehouse.clone() }
}

/// Reads all items of `table` again. Returns the ledger, and true if the ledger contains all items, or false if some items
/// are unreadable. Calls `on_page` after each page of the scan.
async fn scan_items_again(table: &OrdersTable, on_page: &mut impl FnMut()) -> Result<(AuditLedger, bool), TableError> {
    let mut always = || {
        on_page();
        true
    };
    let scanned = scan_items_again_in_time(table, &mut always).await?;
    Ok(scanned.unwrap_or_default())
}

/// Like [`scan_items_again`], but calls `is_in_time` after each page of the scan. If it returns false, stops and
/// returns `None`.
async fn scan_items_again_in_time(
    table: &OrdersTable,
    is_in_time: &mut impl FnMut() -> bool,
) -> Result<Option<(AuditLedger, bool)>, TableError> {
    let mut scan = table.scan_for_audit();
    let mut ledger = AuditLedger::default();
    let mut is_complete = true;
    while let Some(page) = scan.next_page().await? {
        is_complete &= page.iter().all(Result::is_ok);
        page.iter().flatten().for_each(|item| ledger.add_item(item));
        if !is_in_time() {
            return Ok(None);
        }
    }
    Ok(Some((ledger, is_complete)))
}

/// Returns the revision of each of `numbers`: a value that changes with each write of the number. An item that cannot
/// be read has the default revision, so it counts as unchanged; it is also a faulty item.
async fn read_revisions(table: &OrdersTable, numbers: &[AuditedNumber]) -> Result<Vec<NumberRevision>, TableError> {
    let revision = |number| async move {
        match table.revision_of_number(number).await {
            Err(TableError::Unreadable { .. }) => Ok(NumberRevision::default()),
            read => read,
        }
    };
    stream::iter(numbers).map(revision).buffered(MAX_CONCURRENT_REQUESTS).try_collect().await
}

impl OrdersAudit {
    /// Begins an audit of `table`. Sends no request.
    pub fn begin(table: &OrdersTable) -> Self {
        let (scan, table) = (table.scan_for_audit(), table.clone());
        Self { table, scan, ledger: AuditLedger::default(), report: OrdersAuditReport::default() }
    }

    /// Returns the same audit, which also checks all items at the time `now`.
    pub fn with_items_checked(self, now: DateTime<Utc>) -> Self {
        Self { scan: self.scan.with_items_checked(now), ..self }
    }

    /// Returns the number of items that the first scan has read so far.
    pub fn items(&self) -> u64 {
        self.scan.items_read()
    }

    /// Reads the next page of the first scan, and returns its orders; `None` after the last page.
    pub async fn next_orders(&mut self) -> Result<Option<Vec<Order>>, TableError> {
        let Some(page) = self.scan.next_page().await? else { return Ok(None) };
        let mut orders = Vec::new();
        self.report.items = self.scan.items_read();
        self.report.faulty.extend(self.scan.take_faulty_items());
        // An item that cannot be read is a faulty item.
        for item in page.into_iter().flatten() {
            self.ledger.add_item(&item);
            if let AuditedItem::Order(order) = item {
                orders.push(*order);
            }
        }
        Ok(Some(orders))
    }

    /// Returns whether the first scan found differences. Then [`OrdersAudit::finish`] reads the whole table again, at
    /// most three times.
    pub fn must_verify(&self) -> bool {
        !self.ledger.differences().is_empty()
    }

    /// Verifies the differences of the first scan, and returns the report. Sends no request if the first scan found no
    /// differences. Calls `on_page` after each page of a scan.
    pub async fn finish(self, mut on_page: impl FnMut()) -> Result<OrdersAuditReport, TableError> {
        let always = || {
            on_page();
            true
        };
        Ok(self.finish_in_time(always).await?.unwrap_or_default())
    }

    /// Like [`OrdersAudit::finish`], but calls `is_in_time` after each page of a scan. If it returns false, stops and
    /// returns `None`.
    pub async fn finish_in_time(
        self,
        mut is_in_time: impl FnMut() -> bool,
    ) -> Result<Option<OrdersAuditReport>, TableError> {
        let Self { table, ledger, mut report, .. } = self;
        report.unopened = ledger.stocks_without_opening().iter().map(audited_number_of_stock).collect();
        let mut candidates: Vec<AuditedNumber> =
            ledger.differences().into_iter().map(|difference| difference.number).collect();
        for _ in 0..MAX_VERIFICATIONS {
            if candidates.is_empty() {
                break;
            }
            let before = read_revisions(&table, &candidates).await?;
            let Some((scanned, _)) = scan_items_again_in_time(&table, &mut is_in_time).await? else { return Ok(None) };
            let found = scanned.differences();
            let after = read_revisions(&table, &candidates).await?;
            let mut changed = Vec::new();
            for (number, is_unchanged) in candidates.into_iter().zip(before.iter().zip(&after).map(|(a, b)| a == b)) {
                match found.iter().find(|difference| difference.number == number) {
                    None => {}
                    Some(difference) if is_unchanged => report.differences.push(difference.clone()),
                    Some(_) => changed.push(number),
                }
            }
            candidates = changed;
        }
        report.unverified = candidates;
        report.differences.sort();
        Ok(Some(report))
    }
}

/// Writes the opening movement of each stock in `numbers`: a movement of the pieces that the recorded movements do not
/// explain. Returns the number of written movements. A stock that changes during each scan gets no opening movement; a
/// later call writes it. While an item cannot be read, no opening movement is written, because the item can be a
/// movement.
/// Calls `on_page` after each page of a scan.
pub async fn write_opening_movements(
    table: &OrdersTable,
    clock: &dyn Clock,
    numbers: &[AuditedNumber],
    mut on_page: impl FnMut(),
) -> Result<u64, TableError> {
    let mut opened: u64 = 0;
    for _ in 0..MAX_VERIFICATIONS {
        let read =
            stream::iter(numbers).map(|number| table.stock_without_opening(number)).buffered(MAX_CONCURRENT_REQUESTS);
        let before: Vec<Option<UnopenedStock>> = read.try_collect().await?;
        if before.iter().all(Option::is_none) {
            break;
        }
        let (ledger, is_complete) = scan_items_again(table, &mut on_page).await?;
        if !is_complete {
            break;
        }
        let unopened = ledger.stocks_without_opening();
        for (number, before) in numbers.iter().zip(&before) {
            let change = unopened.iter().find(|change| audited_number_of_stock(change) == *number);
            let (Some(change), Some(before)) = (change, before) else { continue };
            let opening = Movement {
                id: clock.ulid(),
                product: change.product.clone(),
                kind: MovementKind::Opening,
                at: clock.now(),
                warehouse: change.warehouse.clone(),
                to: None,
                quantity: change.pieces.unsigned_abs(),
                stock_change: change.pieces,
                reason: None,
            };
            if table.write_opening_movement(&opening, before).await? == WriteOutcome::Done {
                opened = opened.saturating_add(1);
            }
        }
    }
    Ok(opened)
}
