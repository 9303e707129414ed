//! What waits is filled, the oldest first.

use std::collections::{BTreeSet, HashMap};

use chrono::{DateTime, Utc};

use super::super::table::Written;
use super::super::{Days, Order, OrderId, OrderStatus, ProductId, WaitsFor};
use super::{DeskError, Filled, MAX_RETRIES, OrderDesk, Supply};
use billing::AccountId;
use dynamo::{Paging, TableError};

impl OrderDesk {
    /// Fills the orders of a product that wait, the oldest first: none goes before an older one that lacks the same.
    pub async fn fill_product(&self, product: &ProductId) -> Filled {
        let waiting = self.table.waiting_for_product(product).await;
        self.fill_all(waiting.map(|waiting| waiting.into_iter().map(|order| order.order).collect()), self.deadline())
            .await
    }

    /// Fills the orders of a customer that wait, as when it has an address.
    pub async fn fill_customer(&self, account: &AccountId) -> Filled {
        let waiting = self.table.waiting_of_customer(account).await;
        self.fill_all(waiting.map(|waiting| waiting.into_iter().map(|order| order.id).collect()), self.deadline()).await
    }

    fn deadline(&self) -> Option<DateTime<Utc>> {
        self.patience.map(|patience| self.clock.now() + patience)
    }

    /// Fills, the oldest first, all orders that wait and were placed in `days`: whatever a crash has left behind. After
    /// `deadline` none is begun.
    pub async fn fill_waiting(&self, days: Days, deadline: DateTime<Utc>) -> Filled {
        let waiting = async {
            // Their number may have been raised since this desk began.
            let buckets = self.table.buckets(self.buckets).await?;
            let waiting = self.table.orders_in(&[OrderStatus::BackOrdered], days, buckets, &Paging::all()).await?;
            let (mut has_address, mut orders, mut without) = (HashMap::new(), Vec::new(), 0);
            for order in waiting.into_items()? {
                // Who has no address has it for none of its orders.
                if order.waits_for == Some(WaitsFor::Address) && !has_address.contains_key(&order.customer) {
                    let customer = self.table.customer(&order.customer).await?;
                    let is_there = customer.is_some_and(|customer| customer.address.is_some());
                    has_address.insert(order.customer.clone(), is_there);
                }
                if order.waits_for != Some(WaitsFor::Address) || has_address.get(&order.customer) == Some(&true) {
                    orders.push(order.id);
                } else {
                    without += 1;
                }
            }
            Ok((orders, without))
        };
        let (orders, without) = match waiting.await {
            Ok((orders, without)) => (Ok(orders), without),
            Err(error) => (Err(error), 0),
        };
        let done = self.fill_all(orders, Some(deadline)).await;
        Filled { still_waiting: done.still_waiting + without, ..done }
    }

    /// Fills `orders`, the oldest first. What goes wrong with one is logged and counted, and stops no other.
    async fn fill_all(&self, orders: Result<Vec<OrderId>, TableError>, deadline: Option<DateTime<Utc>>) -> Filled {
        let (mut done, mut lacked) = (Filled::default(), BTreeSet::new());
        let orders = orders.unwrap_or_else(|error| {
            tracing::error!(%error, "orders that wait cannot be listed");
            done.failed += 1;
            Vec::new()
        });
        for order in orders {
            if deadline.is_some_and(|deadline| self.clock.now() >= deadline) {
                done.not_looked_at += 1;
                continue;
            }
            match self.fill(order, &mut lacked).await {
                // It was filled or cancelled meanwhile.
                Ok(None) => {}
                Ok(Some(OrderStatus::Open)) => done.filled += 1,
                Ok(Some(_)) => done.still_waiting += 1,
                Err(error) => {
                    tracing::error!(%order, %error, "an order that waits cannot be filled");
                    done.failed += 1;
                }
            }
        }
        done
    }

    /// Fills an order if it waits and can be filled; answers how it stands, `None` if it did not wait. Products that older ones
    /// `lacked` it leaves to them, and adds those that it lacks itself.
    async fn fill(&self, id: OrderId, lacked: &mut BTreeSet<ProductId>) -> Result<Option<OrderStatus>, DeskError> {
        for _ in 0..MAX_RETRIES {
            let (before, lines) = self.table.order(id).await?.ok_or(DeskError::NoOrder(id))?;
            if before.status != OrderStatus::BackOrdered {
                return Ok(None);
            }
            if lines.iter().any(|line| lacked.contains(&line.product)) {
                return Ok(Some(before.status));
            }
            let customer = self.customer(&before.customer).await?;
            let after = match self.supply(&customer, &lines).await? {
                Supply::From(warehouse) => before.filled(warehouse)?,
                Supply::NoAddress => Order { waits_for: Some(WaitsFor::Address), ..before.clone() },
                Supply::Lacking(products) => {
                    lacked.extend(products);
                    Order { waits_for: Some(WaitsFor::Stock), ..before.clone() }
                }
            };
            if after == before {
                return Ok(Some(before.status));
            }
            if self.table.change_order(&before, &after, &lines, None).await? == Written::Done {
                return Ok(Some(after.status));
            }
        }
        Err(DeskError::Contended { what: format!("the order {id}") })
    }
}
