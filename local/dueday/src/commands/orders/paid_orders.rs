//! The comparison of the orders with the receipts of their payments, in both directions.
//!
//! The scan of the receipts finds the receipts without an order, and counts those with an order. If this number is the number
//! of the recent orders, each recent order has a receipt, because no two receipts have the same order. Only if the numbers differ, the
//! receipt of each order is read.

use std::collections::BTreeMap;
use std::ops::Range;
use std::pin::pin;

use billing::{AccountId, Money, Period, Receipt, Sku};
use chrono::{DateTime, TimeDelta, Utc};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use orders::{Order, OrderId, OrdersAudit, OrdersTable};
use store::{Table, TableError};

use super::audit::{Check, Difference};

/// The number of orders in one batch read.
const BATCH: usize = 100;
/// The number of receipts that are read at the same time.
const AT_ONCE: usize = 16;

/// The orders of the first scan, as far as the comparison needs them.
#[derive(Clone, Debug)]
pub struct OrderCount {
    /// Receipts of earlier payments may have expired.
    receipts_kept_from: DateTime<Utc>,
    /// The number of all orders.
    orders: u64,
    /// The number of orders whose receipts have not expired.
    recent: u64,
    /// The follow-up orders and their customers. They have no receipt of their own, but a main order.
    follow_ups: Vec<(OrderId, AccountId)>,
    /// The time of the earliest payment with an order.
    first_paid_at: Option<DateTime<Utc>>,
}

/// The result of the comparison.
#[derive(Debug, Default)]
pub struct Comparison {
    /// The number of receipts for SKUs with products.
    pub receipts: u64,
    pub differences: Vec<Difference>,
}

impl OrderCount {
    /// Creates the count before the first order. `receipt_retention` is the time until a receipt expires.
    pub fn new(now: DateTime<Utc>, receipt_retention: TimeDelta) -> Self {
        let receipts_kept_from = now - receipt_retention + TimeDelta::days(1);
        Self { receipts_kept_from, orders: 0, recent: 0, follow_ups: Vec::new(), first_paid_at: None }
    }

    /// Counts `order`.
    pub fn add(&mut self, order: &Order) {
        self.orders = self.orders.saturating_add(1);
        if order.follow_up.is_some() {
            self.follow_ups.push((order.id, order.customer.clone()));
            return;
        }
        self.recent = self.recent.saturating_add((order.placed_at >= self.receipts_kept_from).into());
        self.first_paid_at = Some(self.first_paid_at.map_or(order.placed_at, |first| first.min(order.placed_at)));
    }

    /// Returns the time of the earliest payment with an order; `None` if there are no orders.
    pub fn first_paid_at(&self) -> Option<DateTime<Utc>> {
        self.first_paid_at
    }

    /// Returns the number of all orders.
    pub fn orders(&self) -> u64 {
        self.orders
    }
}

/// Finds the receipts for which an order must exist.
struct ExpectedOrders<'a> {
    payments: &'a Table,
    orders: &'a OrdersTable,
    /// Whether each payment for the SKU has an order, by SKU.
    skus: BTreeMap<Sku, bool>,
}

impl ExpectedOrders<'_> {
    /// Returns whether each payment for `sku` has an order: the SKU has products, and it had products at each payment.
    async fn is_ordered(&mut self, sku: &Sku) -> Result<bool, TableError> {
        if let Some(is_ordered) = self.skus.get(sku) {
            return Ok(*is_ordered);
        }
        let has_products = !self.orders.lines_of_sku(sku).await?.is_empty();
        // A month that was paid while the SKU had no products stays without an order.
        let is_ordered = has_products && !self.orders.is_without_products_reported(sku).await?;
        self.skus.insert(sku.clone(), is_ordered);
        Ok(is_ordered)
    }

    /// Returns the difference if the order of `receipt` does not exist although it must.
    async fn missing_order(&mut self, receipt: &Receipt) -> Result<Option<Difference>, TableError> {
        let order = order_of(receipt);
        // A payment that was refunded in full or reversed, and the account of an erased customer, need no order.
        let needs_order = receipt.net().minor() > 0 && self.is_ordered(&receipt.sku).await?;
        if !needs_order
            || self.orders.get_order(order).await?.is_some()
            || is_erased(self.payments, &receipt.account).await?
        {
            return Ok(None);
        }
        let expected = format!("an order of {} for {}", receipt.account, receipt.sku);
        Ok(Some(Difference { check: Check::Ordered, item: order.to_string(), expected, found: "none".to_owned() }))
    }
}

/// Returns whether `account` was erased, or its erasure was requested.
pub async fn is_erased(payments: &Table, account: &AccountId) -> Result<bool, TableError> {
    let account = payments.get_account(account).await?;
    Ok(account.is_none_or(|account| account.erasure_requested_at.is_some()))
}

pub fn order_of(receipt: &Receipt) -> OrderId {
    OrderId::of_month(receipt.due_on, receipt.subscription)
}

/// Compares the orders in `orders` with the receipts in `table`. `count` are the orders of an earlier scan. Each
/// payment of the period `ordered` must have an order. Calls `on_receipts` with the number of
/// receipts that were read.
pub async fn compare(
    table: &Table,
    orders: &OrdersTable,
    count: &OrderCount,
    now: DateTime<Utc>,
    ordered: Range<DateTime<Utc>>,
    on_receipts: impl Fn(u64),
) -> Result<Comparison, TableError> {
    let (mut comparison, mut expected) =
        (Comparison::default(), ExpectedOrders { payments: table, orders, skus: BTreeMap::new() });
    let (mut with_order, mut read) = (0_u64, 0_u64);
    let mut first_receipt_at: Option<DateTime<Utc>> = None;
    let mut batches = pin!(table.all_receipts(now).chunks(BATCH));
    while let Some(batch) = batches.next().await {
        let mut receipts = Vec::new();
        for receipt in batch {
            match receipt {
                Ok(receipt) => receipts.push(receipt),
                Err(error @ TableError::Unreadable { .. }) => {
                    comparison.differences.push(Difference::unreadable(&error));
                }
                Err(error) => return Err(error),
            }
        }
        let ids: Vec<(OrderId, AccountId)> =
            receipts.iter().map(|receipt| (order_of(receipt), receipt.account.clone())).collect();
        for (receipt, total) in receipts.iter().zip(orders.totals_of_orders(&ids).await?) {
            let has_order = total.is_some();
            if let Some(Ok(total)) = total
                && total != receipt.amount
            {
                comparison.differences.push(other_amount(receipt, total));
            }
            first_receipt_at = Some(first_receipt_at.map_or(receipt.processed_at, |at| at.min(receipt.processed_at)));
            let is_recent = receipt.processed_at >= count.receipts_kept_from;
            with_order = with_order.saturating_add((is_recent && has_order).into());
            comparison.receipts = comparison.receipts.saturating_add(expected.is_ordered(&receipt.sku).await?.into());
            if !has_order && ordered.contains(&receipt.processed_at) {
                comparison.differences.extend(expected.missing_order(receipt).await?);
            }
        }
        read = read.saturating_add(u64::try_from(receipts.len()).unwrap_or(u64::MAX));
        on_receipts(read);
    }
    if with_order != count.recent {
        // Receipts expire, so older orders have none.
        let from = first_receipt_at.map_or(count.receipts_kept_from, |first| first.max(count.receipts_kept_from));
        comparison.differences.extend(orders_without_receipt(table, orders, from, now).await?);
    }
    comparison.differences.extend(follow_ups_without_main_order(orders, &count.follow_ups).await?);
    Ok(comparison)
}

/// Returns the follow-up orders whose main orders do not exist.
async fn follow_ups_without_main_order(
    orders: &OrdersTable,
    follow_ups: &[(OrderId, AccountId)],
) -> Result<Vec<Difference>, TableError> {
    let mut differences = Vec::new();
    for batch in follow_ups.chunks(BATCH) {
        let mains: Vec<(OrderId, AccountId)> =
            batch.iter().map(|(id, customer)| (id.main(), customer.clone())).collect();
        let totals = orders.totals_of_orders(&mains).await?;
        let without = batch.iter().zip(totals).filter(|(_, total)| total.is_none());
        differences.extend(without.map(|((id, customer), _)| Difference {
            check: Check::Paid,
            item: id.to_string(),
            expected: format!("a main order {} of {customer}", id.main()),
            found: "none".to_owned(),
        }));
    }
    Ok(differences)
}

/// Returns the difference of an order with the amount `total` and its `receipt`.
fn other_amount(receipt: &Receipt, total: Money) -> Difference {
    Difference {
        check: Check::Paid,
        item: order_of(receipt).to_string(),
        expected: format!("a receipt of {total} for {}", receipt.account),
        found: format!("a receipt of {} for the due date {}", receipt.amount, receipt.due_on),
    }
}

/// Returns the orders that were paid at `from` or later and have no receipt.
async fn orders_without_receipt(
    table: &Table,
    orders: &OrdersTable,
    from: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<Vec<Difference>, TableError> {
    let (mut scan, mut differences) = (OrdersAudit::begin(orders), Vec::new());
    while let Some(page) = scan.next_orders().await? {
        let recent = page.into_iter().filter(|order| order.follow_up.is_none() && order.placed_at >= from);
        let compared = stream::iter(recent).map(|order| async move {
            let OrderId { due_on, subscription, .. } = order.id;
            let period = Period::from_day(due_on);
            let receipt = match table.get_receipt_of_month(&order.customer, subscription, period, now).await {
                Err(error @ TableError::Unreadable { .. }) => return Ok(Some(Difference::unreadable(&error))),
                receipt => receipt?,
            };
            let difference = |found| Difference {
                check: Check::Paid,
                item: order.id.to_string(),
                expected: format!("a receipt of {} for {}", order.total, order.customer),
                found,
            };
            Ok::<_, TableError>(match receipt {
                None => Some(difference("none".to_owned())),
                Some(receipt) if receipt.due_on != due_on || receipt.amount != order.total => {
                    Some(difference(format!("a receipt of {} for the due date {}", receipt.amount, receipt.due_on)))
                }
                Some(_) => None,
            })
        });
        let found: Vec<Option<Difference>> = compared.buffered(AT_ONCE).try_collect().await?;
        differences.extend(found.into_iter().flatten());
    }
    Ok(differences)
}
