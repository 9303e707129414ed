//! The checks of the order desk, which are a part of the audit. They compare the receipts of each account with the
//! orders of these receipts, then the orders with their receipts, and check all items of the orders table. At the end
//! they compare the stored numbers (the stock and the quarter totals) with the records from which these numbers can be
//! computed again.

use std::ops::Range;

use ::orders::Order;
use billing::{AuditRecord, Receipt};
use chrono::{DateTime, TimeDelta, Utc};
use orders_table::{OrdersPage, OrdersTable};
use store::{AccountPartition, Table, TableError};

use super::NightlyAudit;
use super::limits::NightlyLimits;
use crate::{
    AuditRecorder, BrokenInvariant, Invariant, MAX_ORDER_DELAY, OrderChecker, OrderDifference, OrderSummary,
    check_stored_numbers, numbers_not_compared,
};

/// The time that a part of the audit must have left to compare the stored numbers. If less time is left, the next part
/// begins with this comparison, so that it can use its whole time for the comparison.
const NUMBERS_TIME: TimeDelta = TimeDelta::minutes(5);

/// The prefix of the stored text of [`OrdersPosition::Orders`]. The stored text of [`OrdersPosition::Accounts`] never begins with
/// this prefix.
const ORDERS_PREFIX: &str = "orders";

/// The stored text of [`OrdersPosition::Numbers`].
const NUMBERS_POSITION: &str = "numbers";

/// The position at which the next part continues an audit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum OrdersPosition {
    /// The audit continues after this account; with `None`, at the first account.
    Accounts(Option<String>),
    /// All accounts are checked. The audit continues after this order; with `None`, at the first order.
    Orders(Option<String>),
    /// All accounts and orders are checked. The audit continues with the comparison of the stored numbers (the stock
    /// and the quarter totals).
    Numbers,
}

impl OrdersPosition {
    /// Reads the position of an audit.
    pub fn of_audit(audit: &AuditRecord) -> Self {
        match audit.position.as_deref() {
            Some(NUMBERS_POSITION) => Self::Numbers,
            Some(text) if text.starts_with(ORDERS_PREFIX) => {
                let after = text.trim_start_matches(ORDERS_PREFIX).trim_start();
                Self::Orders((!after.is_empty()).then(|| after.to_owned()))
            }
            account => Self::Accounts(account.map(str::to_owned)),
        }
    }
}

/// Returns the stored text of the position after the order `after`.
fn position_in_orders(after: Option<String>) -> String {
    after.map_or_else(|| ORDERS_PREFIX.to_owned(), |after| format!("{ORDERS_PREFIX} {after}"))
}

/// Returns the time from which each payment must have an order. Returns `now` if there is no order.
async fn orders_required_from(orders: &OrdersTable, now: DateTime<Utc>) -> Result<DateTime<Utc>, TableError> {
    // Payments before the first order need no order: the merchant may not have used the order desk yet.
    let first = orders.first_paid_at().await?.unwrap_or(now);
    Ok(orders.ordered_from().await?.map_or(first, |from| from.max(first)))
}

/// The comparison of the receipts of accounts with their orders.
pub(super) struct ReceiptCheck<'a> {
    checker: OrderChecker<'a>,
    /// Each payment that was made in this time range must have an order.
    ordered: Range<DateTime<Utc>>,
    now: DateTime<Utc>,
}

impl<'a> ReceiptCheck<'a> {
    /// Creates the check of receipts, and reads the time from which each payment must have an order. `now` is the time
    /// of the audit.
    pub async fn new(payments: &'a Table, orders: &'a OrdersTable, now: DateTime<Utc>) -> Result<Self, TableError> {
        let from = match orders_required_from(orders, now).await {
            // The settings cannot be read, which is a violation of its own. Then no payment is required to have an order.
            Err(TableError::Unreadable { .. }) => now,
            from => from?,
        };
        Ok(Self { checker: OrderChecker::new(payments, orders), ordered: from..now - MAX_ORDER_DELAY, now })
    }

    /// Compares the receipts of `partition` with their orders, and records the times of the receipts, because the audit
    /// stores the time of the earliest receipt.
    pub async fn check_receipts(
        &mut self,
        partition: &AccountPartition,
        recorder: &mut AuditRecorder<'_>,
    ) -> Result<Vec<BrokenInvariant>, TableError> {
        let receipts: Vec<Receipt> = partition.unexpired_receipts(self.now).cloned().collect();
        receipts.iter().for_each(|receipt| recorder.add_receipt(receipt.processed_at));
        let differences = self.checker.check_receipts(&receipts, &self.ordered).await?;
        // Leave out the unreadable items: the check of the account, and the check of all items of the orders table, report
        // them.
        let is_new = |difference: &OrderDifference| difference.check != Invariant::Readable;
        Ok(differences.into_iter().filter(is_new).map(BrokenInvariant::from).collect())
    }
}

/// Returns the time from which the receipts of all payments are stored at `now`. The merchant may have configured a
/// shorter retention before, so the returned time is not earlier than the earliest receipt that `audit` has read.
/// Receipts expire while the audit continues, so the time since the start of the audit is added to that receipt's time.
fn receipts_stored_from(audit: &AuditRecord, retention: TimeDelta, now: DateTime<Utc>) -> DateTime<Utc> {
    let kept = OrderSummary::new(now, retention).receipts_kept_from();
    audit.first_receipt_at.map_or(kept, |first| kept.max(first + (now - audit.started_at)))
}

impl NightlyAudit {
    /// Checks the orders from the position of the audit on, and then the stored numbers. Returns whether the checks are
    /// complete; if they are not, the next part continues. Sends no request if there is no order desk.
    pub(super) async fn audit_orders(
        &self,
        recorder: &mut AuditRecorder<'_>,
        limits: &NightlyLimits,
    ) -> Result<bool, TableError> {
        let Some(table) = &self.orders else { return Ok(true) };
        let begins_with_numbers = OrdersPosition::of_audit(recorder.audit()) == OrdersPosition::Numbers;
        if !begins_with_numbers {
            if !self.compare_orders(table, recorder, limits).await? {
                return Ok(false);
            }
            recorder.add_orders(0, Vec::new(), NUMBERS_POSITION.to_owned()).await?;
        }
        let deadline = limits.deadline();
        if !begins_with_numbers && self.clock.now() + NUMBERS_TIME > deadline {
            return Ok(false);
        }
        let broken = match check_stored_numbers(table, self.clock.as_ref(), deadline).await? {
            Some(broken) => broken,
            None if begins_with_numbers => vec![numbers_not_compared()],
            // The next part begins with the comparison of the stored numbers, so it has more time for this
            // comparison.
            None => return Ok(false),
        };
        recorder.add_at_end(broken);
        Ok(true)
    }

    /// Compares the orders from the position of the audit on with the receipts of their payments. Returns whether all
    /// orders are compared.
    async fn compare_orders(
        &self,
        table: &OrdersTable,
        recorder: &mut AuditRecorder<'_>,
        limits: &NightlyLimits,
    ) -> Result<bool, TableError> {
        let after = match OrdersPosition::of_audit(recorder.audit()) {
            OrdersPosition::Orders(after) => after,
            _ => None,
        };
        let now = self.clock.now();
        let checker = OrderChecker::new(&self.table, table);
        let mut scan = table.scan_orders_after(after.as_deref(), now);
        recorder.add_orders(0, Vec::new(), position_in_orders(after)).await?;
        loop {
            if limits.are_reached(recorder.audit(), self.clock.now()) {
                return Ok(false);
            }
            let Some(OrdersPage { orders, faulty }) = scan.next_page().await? else { return Ok(true) };
            let mut broken: Vec<BrokenInvariant> = faulty.iter().map(BrokenInvariant::from).collect();
            let from = receipts_stored_from(recorder.audit(), self.table.receipt_retention(), now);
            let count = u64::try_from(orders.len()).unwrap_or(u64::MAX);
            let is_checked = |order: &Order| order.follow_up.is_some() || order.placed_at >= from;
            let recent: Vec<Order> = orders.into_iter().filter(is_checked).collect();
            let differences = checker.check_orders(&recent, now).await?;
            broken.extend(differences.into_iter().map(BrokenInvariant::from));
            if scan.is_at_end() {
                recorder.add_orders(count, broken, NUMBERS_POSITION.to_owned()).await?;
                return Ok(true);
            }
            recorder.add_orders(count, broken, position_in_orders(scan.position())).await?;
        }
    }
}
