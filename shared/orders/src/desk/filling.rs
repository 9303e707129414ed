//! Filling backordered orders, oldest first: the desk deducts the products of an order from the stock of a warehouse,
//! and the order becomes `OPEN`.

use std::collections::{BTreeSet, HashMap};

use chrono::{DateTime, Utc};

use super::super::table::WriteOutcome;
use super::super::{BackOrderReason, DateRange, Order, OrderId, OrderStatus, ProductId};
use super::{DeskError, FillCounts, MAX_RETRIES, OrderDesk, StockSource};
use billing::AccountId;
use dynamo::{Paging, TableError};

impl OrderDesk {
    /// Tries to fill the backordered orders that contain a product, oldest first. If no warehouse has enough of a
    /// product for an order, newer orders that contain this product must wait, too.
    pub async fn fill_backorders_of_product(&self, product: &ProductId) -> FillCounts {
        let orders = self.table.backorders_for_product(product).await;
        self.fill_orders(
            orders.map(|orders| orders.into_iter().map(|order| order.order).collect()),
            self.fill_deadline(),
        )
        .await
    }

    /// Tries to fill the backordered orders of a customer, oldest first.
    pub async fn fill_backorders_of_customer(&self, account: &AccountId) -> FillCounts {
        let orders = self.table.backorders_of_customer(account).await;
        self.fill_orders(orders.map(|orders| orders.into_iter().map(|order| order.id).collect()), self.fill_deadline())
            .await
    }

    /// Returns the time after which this request must not start to fill another order; `None` if there is no limit.
    fn fill_deadline(&self) -> Option<DateTime<Utc>> {
        self.fill_time_limit.map(|limit| self.clock.now() + limit)
    }

    /// Tries to fill all backordered orders that were placed in `days`, oldest first. Orders that are not tried before
    /// `deadline` are only counted. Run this regularly, because an interrupted request leaves orders backordered
    /// although there is stock for them.
    pub async fn fill_backorders(&self, days: DateRange, deadline: DateTime<Utc>) -> FillCounts {
        let backorders = async {
            // Read the current number of buckets: it may have been raised after this desk was created.
            let buckets = self.table.get_or_store_buckets(self.buckets).await?;
            let all = self.table.orders_in(&[OrderStatus::BackOrdered], days, buckets, &Paging::all()).await?;
            let (mut has_address, mut orders, mut without_address) = (HashMap::new(), Vec::new(), 0);
            for order in all.into_items()? {
                // Read each customer only once: all orders of a customer are shipped to the same address.
                if order.waits_for == Some(BackOrderReason::Address) && !has_address.contains_key(&order.customer) {
                    let customer = self.table.get_customer(&order.customer).await?;
                    let customer_has_address = customer.is_some_and(|customer| customer.address.is_some());
                    has_address.insert(order.customer.clone(), customer_has_address);
                }
                if order.waits_for != Some(BackOrderReason::Address) || has_address.get(&order.customer) == Some(&true)
                {
                    orders.push(order.id);
                } else {
                    without_address += 1;
                }
            }
            Ok((orders, without_address))
        };
        let (orders, without_address) = match backorders.await {
            Ok((orders, without_address)) => (Ok(orders), without_address),
            Err(error) => (Err(error), 0),
        };
        let counts = self.fill_orders(orders, Some(deadline)).await;
        FillCounts { still_waiting: counts.still_waiting + without_address, ..counts }
    }

    /// Tries to fill each of `orders`, from the first to the last. If one order fails, the error is logged and counted,
    /// and the other orders are still tried. Orders that are not tried before `deadline` are only counted.
    async fn fill_orders(
        &self,
        orders: Result<Vec<OrderId>, TableError>,
        deadline: Option<DateTime<Utc>>,
    ) -> FillCounts {
        let (mut counts, mut out_of_stock) = (FillCounts::default(), BTreeSet::new());
        let orders = orders.unwrap_or_else(|error| {
            tracing::error!(%error, "failed to list the backordered orders");
            counts.failed += 1;
            Vec::new()
        });
        // A job fills the orders, not the person whose change made it possible.
        let desk = Self { table: self.table.without_requester(), ..self.clone() };
        for order in orders {
            if deadline.is_some_and(|deadline| self.clock.now() >= deadline) {
                counts.not_attempted += 1;
                continue;
            }
            match desk.fill_order(order, &mut out_of_stock).await {
                // Another request filled or cancelled the order after it was listed.
                Ok(None) => {}
                Ok(Some(OrderStatus::Open)) => counts.filled += 1,
                Ok(Some(_)) => counts.still_waiting += 1,
                Err(error) => {
                    tracing::error!(%order, %error, "failed to fill a backordered order");
                    counts.failed += 1;
                }
            }
        }
        counts
    }

    /// Tries to fill one order, and returns its new status (`OPEN` or `BACKORDERED`). Returns `None` if another request
    /// has already filled or cancelled the order.
    ///
    /// `out_of_stock` contains the products of which no warehouse had enough for an older order. An order that contains
    /// such a product is skipped, so that the older order is filled first. If no warehouse has enough of a product for
    /// this order, this method adds the product to `out_of_stock`.
    async fn fill_order(
        &self,
        id: OrderId,
        out_of_stock: &mut BTreeSet<ProductId>,
    ) -> Result<Option<OrderStatus>, DeskError> {
        for _ in 0..MAX_RETRIES {
            let (before, lines) = self.table.get_order(id).await?.ok_or(DeskError::NoOrder(id))?;
            if before.status != OrderStatus::BackOrdered {
                return Ok(None);
            }
            if lines.iter().any(|line| out_of_stock.contains(&line.product)) {
                return Ok(Some(before.status));
            }
            let customer = self.find_or_create_customer(&before.customer).await?;
            let after = match self.find_warehouse_with_stock(&customer, &lines).await? {
                StockSource::Warehouse(warehouse) => before.filled_from(warehouse, customer.address.clone())?,
                StockSource::NoAddress => Order { waits_for: Some(BackOrderReason::Address), ..before.clone() },
                StockSource::OutOfStock(products) => {
                    out_of_stock.extend(products);
                    Order { waits_for: Some(BackOrderReason::Stock), ..before.clone() }
                }
            };
            if after == before {
                return Ok(Some(before.status));
            }
            if self.table.change_order(&before, &after, &lines, None).await? == WriteOutcome::Done {
                return Ok(Some(after.status));
            }
        }
        Err(DeskError::WriteConflict { item: format!("the order {id}") })
    }
}
