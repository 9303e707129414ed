//! Orders.

use super::super::{Buckets, Customer, EmployeeId, Order, OrderId, OrderLine, OrderStatus, ProductId, StockEffect};
use super::index::Wanted;
use super::items::{self, CreditItem, QuantityItem, STOCK, TOTAL_STOCK};
use super::writes::{Writes, Written};
use super::{OrdersTable, keys};
use billing::{AccountId, Money};
use chrono::{DateTime, NaiveDate, Utc};
use dynamo::{Entity as _, IdempotentRequest, Item, Page, Paging, Replayed, TableError, from_item, key_of};

/// An order, as its edge to whoever is credited with it shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreditedOrder {
    pub order: OrderId,
    pub customer: AccountId,
    pub status: OrderStatus,
    pub placed_at: DateTime<Utc>,
    pub total: Money,
}

/// An order of a product, as its edge shows it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ProductOrder {
    pub order: OrderId,
    pub status: OrderStatus,
    pub placed_at: DateTime<Utc>,
    pub quantity: u32,
}

/// The days from the first to the second, both included.
pub type Days = (NaiveDate, NaiveDate);

fn status_of(item: &Item) -> Result<(OrderStatus, DateTime<Utc>), TableError> {
    let found = keys::status_of(items::data(item)?).and_then(|(status, at)| Some((status, at.parse().ok()?)));
    found.ok_or_else(|| TableError::unreadable(key_of(item), "its attribute Data is no order's"))
}

pub(super) fn product_order(item: &Item) -> Result<ProductOrder, TableError> {
    let ((status, placed_at), QuantityItem { quantity }) = (status_of(item)?, from_item(item)?);
    Ok(ProductOrder { order: items::order_of(item)?, status, placed_at, quantity })
}

impl OrdersTable {
    /// An order with its lines. Query `PK = order`, strongly consistent.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn order(&self, id: OrderId) -> Result<Option<(Order, Vec<OrderLine>)>, TableError> {
        let (mut order, mut lines) = (None, Vec::new());
        for item in self.in_partition(keys::order(id), Wanted::all()).await? {
            match key_of(&item).sk {
                sk if sk.starts_with(keys::CUSTOMERS) => order = Some(Order::from_item(&item)?),
                sk if sk.starts_with(keys::PRODUCTS) => lines.push(items::read_line(&item)?),
                _ => {}
            }
        }
        Ok(order.map(|order| (order, lines)))
    }

    /// Pattern 4: the orders of a customer in `statuses`, placed in `days`, the oldest first. GSI-1, `SK = customer`, `Data`
    /// between status and days: one query for each status, in parallel.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn orders_of_customer(
        &self,
        customer: &AccountId,
        statuses: &[OrderStatus],
        days: Days,
        paging: &Paging,
    ) -> Result<Page<Order>, TableError> {
        let page = self.page_of_orders(&keys::customer(customer), statuses, days, paging).await?;
        Ok(page.read(|item| Order::from_item(&item)))
    }

    /// Pattern 5: all orders in `statuses`, placed in `days`, of all customers, the oldest first. GSI-2, every bucket, `Data`
    /// between status and days: one query for each bucket and status, in parallel.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn orders_in(
        &self,
        statuses: &[OrderStatus],
        days: Days,
        buckets: Buckets,
        paging: &Paging,
    ) -> Result<Page<Order>, TableError> {
        let page = self.page_of_buckets(statuses, days, buckets, paging).await?;
        Ok(page.read(|item| Order::from_item(&item)))
    }

    /// Pattern 10: the orders with which a representative is credited, in `statuses`, placed in `days`, the oldest first.
    /// GSI-1, `SK = representative`, `Data` between status and days: one query for each status, in parallel.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn orders_of_representative(
        &self,
        representative: &EmployeeId,
        statuses: &[OrderStatus],
        days: Days,
        paging: &Paging,
    ) -> Result<Page<CreditedOrder>, TableError> {
        let page = self.page_of_orders(&keys::employee(representative), statuses, days, paging).await?;
        let read = |item: Item| {
            let ((status, placed_at), credit) = (status_of(&item)?, from_item::<CreditItem>(&item)?);
            let total = Money::new(credit.payment_amount, credit.currency);
            Ok(CreditedOrder { order: items::order_of(&item)?, customer: credit.customer, status, placed_at, total })
        };
        Ok(page.read(read))
    }

    /// The orders of a product that wait, the oldest first. GSI-1, `SK = product`, `Data` begins with the status.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn waiting_for_product(&self, product: &ProductId) -> Result<Vec<ProductOrder>, TableError> {
        let wanted = Wanted::beginning_with(keys::status_prefix(OrderStatus::BackOrdered));
        let items = self.leading_to(keys::product(product), wanted).await?;
        items.iter().map(product_order).collect()
    }

    /// The orders of a customer that wait, the oldest first. GSI-1, `SK = customer`, `Data` begins with the status.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn waiting_of_customer(&self, customer: &AccountId) -> Result<Vec<Order>, TableError> {
        let wanted = Wanted::beginning_with(keys::status_prefix(OrderStatus::BackOrdered));
        let items = self.leading_to(keys::customer(customer), wanted).await?;
        items.iter().map(Order::from_item).collect()
    }

    /// Writes a new order with its edges, takes its stock if it is open, and credits its representative, if `customer` is as it
    /// was read. One transaction; it is refused at its first place if the order is there.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn create_order(
        &self,
        order: &Order,
        lines: &[OrderLine],
        customer: &Customer,
    ) -> Result<Written, TableError> {
        let mut writes = self.writes().create(order.to_item()).create(items::credit(order));
        for line in lines {
            writes = writes.create(items::line(order, line));
        }
        if order.status.holds_stock() {
            writes = stock(writes, order, lines, StockEffect::Taken);
        }
        let writes = self.credit(writes, order.representative.as_ref(), order.quarter(), order.total).await?;
        writes.unchanged(customer).commit().await
    }

    /// Writes `after` on top of `before`, an order with `lines`: its three kinds of edges, its stock and its credit with it, and the
    /// answer of the `request` that asked for it. One transaction.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn change_order(
        &self,
        before: &Order,
        after: &Order,
        lines: &[OrderLine],
        request: Option<&IdempotentRequest>,
    ) -> Result<Written, TableError> {
        let (effects, data) = (before.effects(after), keys::status_data(after));
        let mut writes = self.writes().change(before, after);
        let representative = keys::representative(before.representative.as_ref());
        writes = writes.move_edge(keys::edge(keys::order(before.id), representative), &data);
        for line in lines {
            writes = writes.move_edge(keys::edge(keys::order(before.id), keys::product(&line.product)), &data);
        }
        // What was taken is given back to where it was taken from.
        let holder = if effects.stock == StockEffect::Taken { after } else { before };
        writes = stock(writes, holder, lines, effects.stock);
        if effects.loses_credit {
            let less = Money::new(-before.total.minor(), before.total.currency());
            writes = self.credit(writes, before.representative.as_ref(), before.quarter(), less).await?;
        }
        writes.keep(request).commit().await
    }

    /// Keeps the answer of a `request` that asked for what `order` is already. One transaction, refused if it is that no more.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn keep_answer(&self, order: &Order, request: &IdempotentRequest) -> Result<Written, TableError> {
        self.writes().unchanged(order).keep(Some(request)).commit().await
    }

    /// What was answered to `request` before. GetItem, strongly consistent.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn get_answer(&self, request: &IdempotentRequest) -> Result<Option<Replayed>, TableError> {
        self.0.get_answer(request).await
    }

    /// Hands `order` over to `representative`, and what it counts with it. One transaction.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn hand_over_order(&self, order: &Order, representative: &EmployeeId) -> Result<Written, TableError> {
        let after = Order { representative: Some(representative.clone()), ..order.clone() };
        let old = keys::edge(keys::order(order.id), keys::representative(order.representative.as_ref()));
        let mut writes = self.writes().change(order, &after).delete(old).create(items::credit(&after));
        let (quarter, total) = (order.quarter(), order.total);
        let less = Money::new(-total.minor(), total.currency());
        writes = self.credit(writes, order.representative.as_ref(), quarter, less).await?;
        self.credit(writes, Some(representative), quarter, total).await?.commit().await
    }
}

/// The writes by which the stock of `order` moves: of each product in its warehouse, and in all.
fn stock<'a>(mut writes: Writes<'a>, order: &Order, lines: &[OrderLine], effect: StockEffect) -> Writes<'a> {
    let Some(warehouse) = &order.warehouse else { return writes };
    for line in lines {
        let product = keys::product(&line.product);
        let (here, all) = (keys::edge(product.clone(), keys::warehouse(warehouse)), keys::own(product));
        let quantity = u64::from(line.quantity);
        writes = match effect {
            StockEffect::None => writes,
            StockEffect::Taken => writes.take(here, STOCK, quantity).take(all, TOTAL_STOCK, quantity),
            StockEffect::GivenBack => writes.give(here, STOCK, quantity).give(all, TOTAL_STOCK, quantity),
        };
    }
    writes
}
