//! The comparison of all orders with the receipts of their payments, in both directions.
//!
//! An earlier scan of the orders has computed a digest of all recent orders. The scan of the receipts in this module
//! finds each receipt without an order, and computes a digest of the orders that have a receipt. If the two digests
//! differ for a due date, the receipts of all orders with this due date are read one by one. An order that is placed
//! between the two scans only adds a due date to this check. Because digests and not counts are compared, this order
//! cannot hide another order without a receipt. A follow-up order has no receipt; its main order must exist.

use std::collections::BTreeSet;
use std::ops::Range;
use std::pin::pin;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use futures::StreamExt as _;
use orders::{Order, OrderDigest};
use orders_table::{OrdersAudit, OrdersTable};
use store::{Table, TableError};

use super::{OrderChecker, OrderDifference, order_id_of_receipt};

/// The number of receipts whose orders are read together, with one BatchGetItem request.
const RECEIPTS_PER_REQUEST: usize = 100;

/// A summary of the orders that a scan has read, with the values that the comparison with the receipts needs.
#[derive(Clone, Debug)]
pub struct OrderSummary {
    /// The time from which all receipts are stored. The receipts of payments before this time may have expired.
    receipts_kept_from: DateTime<Utc>,
    /// The number of all orders.
    orders: u64,
    /// The digest of the orders whose receipts have not expired.
    digest: OrderDigest,
    /// True if the scan has found a follow-up order. Follow-up orders have no receipt of their own.
    has_follow_ups: bool,
    /// The payment time of the earliest-paid order that the scan has found, without follow-up orders; `None` if it has
    /// found none.
    first_paid_at: Option<DateTime<Utc>>,
}

/// The result of the comparison of all orders with the receipts of their payments.
#[derive(Debug, Default)]
pub struct OrdersComparison {
    /// The number of receipts for SKUs whose payments need an order: the SKU has products, and no payment was made while
    /// it had none.
    pub receipts: u64,
    pub differences: Vec<OrderDifference>,
}

impl OrderSummary {
    /// Creates an empty summary, to which [`OrderSummary::add`] adds orders. `receipt_retention` is the time until a
    /// receipt expires.
    pub fn new(now: DateTime<Utc>, receipt_retention: TimeDelta) -> Self {
        let receipts_kept_from = now - receipt_retention + TimeDelta::days(1);
        Self {
            receipts_kept_from,
            orders: 0,
            digest: OrderDigest::default(),
            has_follow_ups: false,
            first_paid_at: None,
        }
    }

    /// Returns the time from which the receipts of all payments are kept.
    pub fn receipts_kept_from(&self) -> DateTime<Utc> {
        self.receipts_kept_from
    }

    /// Returns whether the receipt of a payment that was made at `paid_at` cannot have expired.
    fn is_receipt_kept(&self, paid_at: DateTime<Utc>) -> bool {
        paid_at >= self.receipts_kept_from
    }

    /// Adds `order` to the summary.
    pub fn add(&mut self, order: &Order) {
        self.orders = self.orders.saturating_add(1);
        if order.follow_up.is_some() {
            self.has_follow_ups = true;
            return;
        }
        if self.is_receipt_kept(order.placed_at) {
            self.digest.add(order.id);
        }
        self.first_paid_at = Some(self.first_paid_at.map_or(order.placed_at, |first| first.min(order.placed_at)));
    }

    /// Returns the payment time of the earliest-paid order that the scan has found, without follow-up orders; `None` if
    /// the scan has found none.
    pub fn first_paid_at(&self) -> Option<DateTime<Utc>> {
        self.first_paid_at
    }

    /// Returns the number of all orders.
    pub fn orders(&self) -> u64 {
        self.orders
    }
}

/// Compares the orders in `orders` with the receipts in `table`. `recent` is the summary of an earlier scan of the
/// orders. Each payment that was made in the time range `ordered` must have an order. Calls `on_receipts` with the
/// number of receipts that were read.
pub async fn compare_orders_with_receipts(
    table: &Table,
    orders: &OrdersTable,
    recent: &OrderSummary,
    now: DateTime<Utc>,
    ordered: Range<DateTime<Utc>>,
    on_receipts: impl Fn(u64),
) -> Result<OrdersComparison, TableError> {
    let (mut comparison, mut checker) = (OrdersComparison::default(), OrderChecker::new(table, orders));
    let (mut with_receipt, mut read) = (OrderDigest::default(), 0_u64);
    let mut first_receipt_at: Option<DateTime<Utc>> = None;
    let mut batches = pin!(table.all_receipts(now).chunks(RECEIPTS_PER_REQUEST));
    while let Some(batch) = batches.next().await {
        let mut receipts = Vec::new();
        for receipt in batch {
            match receipt {
                Ok(receipt) => receipts.push(receipt),
                Err(error @ TableError::Unreadable { .. }) => {
                    comparison.differences.push(OrderDifference::unreadable(&error));
                }
                Err(error) => return Err(error),
            }
        }
        for (receipt, total) in receipts.iter().zip(checker.totals_of_orders(&receipts).await?) {
            let paid_at = receipt.processed_at;
            first_receipt_at = Some(first_receipt_at.map_or(paid_at, |at| at.min(paid_at)));
            if recent.is_receipt_kept(paid_at) && total.is_some() {
                with_receipt.add(order_id_of_receipt(receipt));
            }
            match checker.requires_order(&receipt.sku).await {
                Ok(is_ordered) => comparison.receipts = comparison.receipts.saturating_add(is_ordered.into()),
                Err(error) => comparison.differences.extend(checker.report_unreadable_once(error)?),
            }
            comparison.differences.extend(checker.check_receipt(receipt, total, ordered.contains(&paid_at)).await?);
        }
        read = read.saturating_add(u64::try_from(receipts.len()).unwrap_or(u64::MAX));
        on_receipts(read);
    }
    let due_dates = recent.digest.different_due_dates(&with_receipt);
    if !due_dates.is_empty() || recent.has_follow_ups {
        // Only check orders that were paid at this time or later: the receipts of older orders may have expired.
        let from = first_receipt_at.map_or(recent.receipts_kept_from, |first| first.max(recent.receipts_kept_from));
        comparison.differences.extend(check_orders_of_due_dates(&checker, orders, &due_dates, from, now).await?);
    }
    Ok(comparison)
}

/// Checks the follow-up orders, and the main orders with these `due_dates` that were paid at `from` or later.
async fn check_orders_of_due_dates(
    checker: &OrderChecker<'_>,
    orders: &OrdersTable,
    due_dates: &BTreeSet<NaiveDate>,
    from: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<Vec<OrderDifference>, TableError> {
    let (mut scan, mut differences) = (OrdersAudit::begin(orders), Vec::new());
    while let Some(page) = scan.next_orders().await? {
        let is_checked = |order: &Order| {
            order.follow_up.is_some() || (order.placed_at >= from && due_dates.contains(&order.id.due_on))
        };
        let checked: Vec<Order> = page.into_iter().filter(is_checked).collect();
        differences.extend(checker.check_orders(&checked, now).await?);
    }
    Ok(differences)
}
