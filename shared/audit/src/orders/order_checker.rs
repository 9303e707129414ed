//! Checks whether a receipt has its order, and whether an order has its receipt, with the same amount.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use billing::{AccountId, Money, Period, Receipt, Sku};
use chrono::{DateTime, TimeDelta, Utc};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use orders::{Order, OrderId};
use orders_table::OrdersTable;
use store::{Table, TableError};

use super::OrderDifference;
use crate::Invariant;

/// The longest time from a payment until another process places its order, such as the orders function on AWS. A
/// payment without an order is a difference only after this time.
pub const MAX_ORDER_DELAY: TimeDelta = TimeDelta::hours(12);

/// The number of concurrent requests that read receipts.
const PARALLEL_CHECKS: usize = 16;

/// Compares receipts in the payments table with orders in the orders table.
#[derive(Debug)]
pub struct OrderChecker<'a> {
    payments: &'a Table,
    orders: &'a OrdersTable,
    /// For each SKU, whether each payment for the SKU must have an order.
    skus: BTreeMap<Sku, bool>,
    /// The differences about unreadable items that were already returned, so that no difference is returned twice.
    unreadable: BTreeSet<OrderDifference>,
}

/// Returns the id of the order for the month that `receipt` shows as paid.
pub fn order_id_of_receipt(receipt: &Receipt) -> OrderId {
    OrderId::of_month(receipt.due_on, receipt.subscription)
}

/// Returns whether `account` was erased, or its erasure was requested.
pub async fn is_account_erased(payments: &Table, account: &AccountId) -> Result<bool, TableError> {
    let account = payments.get_account(account).await?;
    Ok(account.is_none_or(|account| account.erasure_requested_at.is_some()))
}

/// Returns the difference that reports that the amounts of `receipt` and of its order differ. `total` is the amount of
/// the order.
fn amount_difference(receipt: &Receipt, total: Money) -> OrderDifference {
    OrderDifference {
        check: Invariant::Paid,
        item: order_id_of_receipt(receipt).to_string(),
        expected: format!("a receipt of {total} for {}", receipt.account),
        found: format!("a receipt of {} for the due date {}", receipt.amount, receipt.due_on),
    }
}

impl<'a> OrderChecker<'a> {
    /// Creates the checker of the payments table `payments` and the orders table `orders`.
    pub fn new(payments: &'a Table, orders: &'a OrdersTable) -> Self {
        Self { payments, orders, skus: BTreeMap::new(), unreadable: BTreeSet::new() }
    }

    /// Returns the stored amount of the order of each of `receipts`; `None` for a receipt without an order, and an
    /// error for an order that cannot be read. Sends one BatchGetItem request for each 100 receipts.
    pub(super) async fn totals_of_orders(
        &self,
        receipts: &[Receipt],
    ) -> Result<Vec<Option<Result<Money, TableError>>>, TableError> {
        let ids: Vec<(OrderId, AccountId)> =
            receipts.iter().map(|receipt| (order_id_of_receipt(receipt), receipt.account.clone())).collect();
        let orders = self.orders.get_orders(&ids).await?;
        Ok(orders.into_iter().map(|order| order.map(|order| order.map(|order| order.total))).collect())
    }

    /// Returns whether each payment for `sku` must have an order: the SKU has products, and no payment was made while
    /// it had none.
    pub(super) async fn requires_order(&mut self, sku: &Sku) -> Result<bool, TableError> {
        if let Some(is_ordered) = self.skus.get(sku) {
            return Ok(*is_ordered);
        }
        let has_products = !self.orders.lines_of_sku(sku).await?.is_empty();
        // A payment that was made while the SKU had no products never gets an order, so then do not require orders for
        // this SKU.
        let is_ordered = has_products && !self.orders.is_without_products_reported(sku).await?;
        self.skus.insert(sku.clone(), is_ordered);
        Ok(is_ordered)
    }

    /// Compares `receipts` with their orders. Each payment that was made in the time range `ordered` must have an
    /// order. Sends one BatchGetItem request for each 100 receipts, and further requests for each missing order.
    pub async fn check_receipts(
        &mut self,
        receipts: &[Receipt],
        ordered: &Range<DateTime<Utc>>,
    ) -> Result<Vec<OrderDifference>, TableError> {
        let mut differences = Vec::new();
        for (receipt, total) in receipts.iter().zip(self.totals_of_orders(receipts).await?) {
            let must_exist = ordered.contains(&receipt.processed_at);
            differences.extend(self.check_receipt(receipt, total, must_exist).await?);
        }
        Ok(differences)
    }

    /// Compares `receipt` with its order. `total` is the amount of the order, as [`OrderChecker::totals_of_orders`]
    /// returns it. `must_exist` is whether a payment that was made at this time must have an order.
    pub(super) async fn check_receipt(
        &mut self,
        receipt: &Receipt,
        total: Option<Result<Money, TableError>>,
        must_exist: bool,
    ) -> Result<Option<OrderDifference>, TableError> {
        match total {
            Some(Ok(total)) if total != receipt.amount => Ok(Some(amount_difference(receipt, total))),
            None if must_exist => match self.missing_order(receipt).await {
                Err(error) => self.report_unreadable_once(error),
                difference => difference,
            },
            // The amounts agree, or no order is required, or the order cannot be read. The scan of the orders reports
            // an order that cannot be read.
            Some(_) | None => Ok(None),
        }
    }

    /// Converts an error about an item that cannot be read into a difference; returns `None` if that difference was
    /// returned before. Returns any other `error` as an error.
    pub(super) fn report_unreadable_once(&mut self, error: TableError) -> Result<Option<OrderDifference>, TableError> {
        let TableError::Unreadable { .. } = error else { return Err(error) };
        let difference = OrderDifference::unreadable(&error);
        Ok(self.unreadable.insert(difference.clone()).then_some(difference))
    }

    /// Returns the difference that reports that the order of `receipt` is missing; `None` if the order exists or is not
    /// required.
    async fn missing_order(&mut self, receipt: &Receipt) -> Result<Option<OrderDifference>, TableError> {
        let order = order_id_of_receipt(receipt);
        // A payment needs no order if it was refunded in full or reversed, or if its account was erased.
        let needs_order = receipt.net_amount().minor() > 0 && self.requires_order(&receipt.sku).await?;
        if !needs_order
            || self.orders.get_order(order).await?.is_some()
            || is_account_erased(self.payments, &receipt.account).await?
        {
            return Ok(None);
        }
        let expected = format!("an order of {} for {}", receipt.account, receipt.sku);
        let found = "none".to_owned();
        Ok(Some(OrderDifference { check: Invariant::Ordered, item: order.to_string(), expected, found }))
    }

    /// Compares the main orders in `orders` with the receipts of their payments, which must not have expired at `now`.
    /// Checks that the main order of each follow-up order in `orders` exists. Sends one Query request for each main
    /// order, and one BatchGetItem request for each 100 follow-up orders.
    pub async fn check_orders(&self, orders: &[Order], now: DateTime<Utc>) -> Result<Vec<OrderDifference>, TableError> {
        let (main, follow_ups): (Vec<&Order>, Vec<&Order>) = orders.iter().partition(|order| order.follow_up.is_none());
        let compared = stream::iter(main).map(|order| self.check_order(order, now)).buffered(PARALLEL_CHECKS);
        let found: Vec<Option<OrderDifference>> = compared.try_collect().await?;
        Ok(found.into_iter().flatten().chain(self.check_follow_ups(&follow_ups).await?).collect())
    }

    /// Returns a difference for each of the follow-up orders `orders` whose main order does not exist, or does not count
    /// it. A follow-up order has no receipt of its own.
    async fn check_follow_ups(&self, orders: &[&Order]) -> Result<Vec<OrderDifference>, TableError> {
        let main: Vec<(OrderId, AccountId)> =
            orders.iter().map(|order| (order.id.main_order(), order.customer.clone())).collect();
        let main = self.orders.get_orders(&main).await?;
        let difference = |(order, main): (&&Order, Option<Result<Order, TableError>>)| {
            let (check, expected, found) = match main {
                None => {
                    let expected = format!("a main order {} of {}", order.id.main_order(), order.customer);
                    (Invariant::Paid, expected, "none".to_owned())
                }
                Some(Ok(main)) if main.follow_ups.saturating_add(1) < order.id.part_number() => {
                    let expected =
                        format!("a main order with FollowUps of at least {}", order.id.part_number().saturating_sub(1));
                    (Invariant::Consistent, expected, main.follow_ups.to_string())
                }
                // The check of all items reports an order that cannot be read.
                Some(_) => return None,
            };
            Some(OrderDifference { check, item: order.id.to_string(), expected, found })
        };
        Ok(orders.iter().zip(main).filter_map(difference).collect())
    }

    /// Compares the main order `order` with the receipt of its payment, which must not have expired at `now`. Sends one
    /// Query request.
    async fn check_order(&self, order: &Order, now: DateTime<Utc>) -> Result<Option<OrderDifference>, TableError> {
        let OrderId { due_on, subscription, .. } = order.id;
        let period = Period::from_day(due_on);
        let receipt = match self.payments.get_receipt_of_month(&order.customer, subscription, period, now).await {
            Err(error @ TableError::Unreadable { .. }) => return Ok(Some(OrderDifference::unreadable(&error))),
            receipt => receipt?,
        };
        let difference = |found| OrderDifference {
            check: Invariant::Paid,
            item: order.id.to_string(),
            expected: format!("a receipt of {} for {}", order.total, order.customer),
            found,
        };
        Ok(match receipt {
            None => Some(difference("none".to_owned())),
            Some(receipt) if receipt.due_on != due_on || receipt.amount != order.total => {
                Some(difference(format!("a receipt of {} for the due date {}", receipt.amount, receipt.due_on)))
            }
            Some(_) => None,
        })
    }
}
