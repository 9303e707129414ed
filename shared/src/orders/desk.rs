//! The order desk: a paid month becomes one order, and what waits is filled.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use ulid::Ulid;

use crate::billing::{AccountId, Sku};
use crate::clock::Clock;
use crate::table::TableError;

use super::table::Written;
use super::{
    Buckets, Customer, EmployeeId, Order, OrderId, OrderLine, OrderStatus, OrdersTable, PaidPeriod, ProductId,
    TransitionError, WaitsFor, WarehouseId, lacking, representative_for, warehouse_for,
};

/// What was read is no longer so by the time that it is written: it is worked out again so many times.
const MAX_RETRIES: usize = 8;

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum DeskError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Transition(#[from] TransitionError),
    #[error("there is no order {0}")]
    NoOrder(OrderId),
    #[error("there is no product {0}")]
    NoProduct(ProductId),
    #[error("there is no warehouse {0}")]
    NoWarehouse(WarehouseId),
    #[error("{0} looks after no customers")]
    NoRepresentative(EmployeeId),
    #[error("{what} was written by others again and again")]
    Contended { what: String },
}

impl DeskError {
    /// Whether the same may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Table(error) => error.is_transient(),
            Self::Contended { .. } => true,
            Self::Transition(_)
            | Self::NoOrder(_)
            | Self::NoProduct(_)
            | Self::NoWarehouse(_)
            | Self::NoRepresentative(_) => false,
        }
    }
}

/// What became of a paid month.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PlaceOutcome {
    /// Its order was placed.
    Placed(OrderStatus),
    /// It has its order already.
    AlreadyPlaced,
    /// Its SKU has no products; `is_news` until somebody has told it, and noted that.
    NoProducts { sku: Sku, is_news: bool },
}

/// What became of orders that waited.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Filled {
    pub filled: u32,
    pub still_waiting: u32,
    /// There was no time left for them.
    pub not_looked_at: u32,
    /// The log says why. They are looked at again each hour.
    pub failed: u32,
}

/// Where an order's stock comes from.
enum Supply {
    From(WarehouseId),
    NoAddress,
    /// No warehouse has it all: the products of which none has enough, if it is that.
    Lacking(Vec<ProductId>),
}

/// Places orders, fills them, and moves them on.
#[derive(Clone, Debug)]
pub struct OrderDesk {
    pub table: OrdersTable,
    clock: Arc<dyn Clock>,
    buckets: Buckets,
}

impl OrderDesk {
    /// One that keeps its orders in `table`, spread over `buckets`.
    pub fn new(table: OrdersTable, buckets: Buckets, clock: Arc<dyn Clock>) -> Self {
        Self { table, clock, buckets }
    }

    /// How many buckets there are.
    pub fn buckets(&self) -> Buckets {
        self.buckets
    }

    /// Places the order of a month that was paid, unless it has one. Told again, late or in another order, of the same payment
    /// it places none.
    ///
    /// # Errors
    /// [`DeskError`]: nothing was placed, or it was and that is not known; told again it is found.
    pub async fn place(&self, paid: &PaidPeriod) -> Result<PlaceOutcome, DeskError> {
        let lines = self.table.lines_of(&paid.sku).await?;
        if lines.is_empty() {
            let is_news = !self.table.is_told_without_products(&paid.sku).await?;
            return Ok(PlaceOutcome::NoProducts { sku: paid.sku.clone(), is_news });
        }
        for _ in 0..MAX_RETRIES {
            let customer = self.customer(&paid.account).await?;
            let order = Order {
                id: paid.order,
                customer: paid.account.clone(),
                representative: customer.representative.clone(),
                status: OrderStatus::BackOrdered,
                waits_for: None,
                warehouse: None,
                total: paid.amount,
                placed_at: paid.paid_at,
                bucket: self.buckets.of(paid.order),
                version: 1,
            };
            let order = match self.supply(&customer, &lines).await? {
                Supply::From(warehouse) => order.filled(warehouse)?,
                Supply::NoAddress => Order { waits_for: Some(WaitsFor::Address), ..order },
                Supply::Lacking(_) => Order { waits_for: Some(WaitsFor::Stock), ..order },
            };
            match self.table.create_order(&order, &lines, &customer).await? {
                Written::Done => return Ok(PlaceOutcome::Placed(order.status)),
                Written::Refused(0) => return Ok(PlaceOutcome::AlreadyPlaced),
                // The last item was taken, the total has grown, or the customer was changed, in between.
                Written::Refused(_) => {}
            }
        }
        Err(DeskError::Contended { what: format!("what the order {} needs", paid.order) })
    }

    /// The customer, created if it is new, with somebody to look after it.
    async fn customer(&self, account: &AccountId) -> Result<Customer, DeskError> {
        if let Some(customer) = self.table.customer(account).await? {
            return Ok(customer);
        }
        let representatives = self.table.representatives().await?;
        let representative = representative_for(account, &representatives).cloned();
        let new = Customer::new(account.clone(), representative, self.clock.now());
        match self.table.create_customer(&new).await? {
            Written::Done => Ok(new),
            Written::Refused(_) => {
                let theirs = self.table.customer(account).await?;
                theirs.ok_or_else(|| DeskError::Contended { what: format!("the customer {account}") })
            }
        }
    }

    /// From where `lines` are taken for `customer`, or what must be waited for.
    async fn supply(&self, customer: &Customer, lines: &[OrderLine]) -> Result<Supply, DeskError> {
        let Some(address) = &customer.address else { return Ok(Supply::NoAddress) };
        let each = lines.iter().map(|line| self.table.stock(&line.product, None));
        let stock = futures::future::try_join_all(each).await?.concat();
        let warehouses = self.table.warehouses().await?;
        Ok(match warehouse_for(&address.region, lines, &stock, &warehouses) {
            Some(warehouse) => Supply::From(warehouse.id.clone()),
            None => Supply::Lacking(lacking(lines, &stock)),
        })
    }

    /// Moves an order on: picked, shipped, delivered, returned or cancelled. One that has become that already stays.
    ///
    /// # Errors
    /// [`DeskError`].
    pub async fn advance(&self, id: OrderId, next: OrderStatus) -> Result<Order, DeskError> {
        for _ in 0..MAX_RETRIES {
            let (before, lines) = self.table.order(id).await?.ok_or(DeskError::NoOrder(id))?;
            if before.status == next {
                return Ok(before);
            }
            let after = before.moved(next)?;
            if self.table.change_order(&before, &after, &lines).await? == Written::Done {
                let freed = before.effects(&after).stock == super::StockEffect::GivenBack;
                if freed {
                    for line in &lines {
                        self.fill_product(&line.product).await;
                    }
                }
                return Ok(Order { version: before.version + 1, ..after });
            }
        }
        Err(DeskError::Contended { what: format!("the order {id}") })
    }

    /// `quantity` of a product have arrived in a warehouse, by the `delivery` of that name, which counts once; fills what has
    /// waited for it. That some could not be filled is answered, and no error: the goods are counted.
    ///
    /// # Errors
    /// [`DeskError`]: after a time-out they may be counted. Told again with the same `delivery` they are, once.
    pub async fn receive(
        &self,
        product: &ProductId,
        warehouse: &WarehouseId,
        quantity: u64,
        delivery: Ulid,
    ) -> Result<Filled, DeskError> {
        if self.table.product(product).await?.is_none() {
            return Err(DeskError::NoProduct(product.clone()));
        }
        if self.table.warehouse(warehouse).await?.is_none() {
            return Err(DeskError::NoWarehouse(warehouse.clone()));
        }
        for _ in 0..MAX_RETRIES {
            match self.table.add_stock(product, warehouse, quantity, delivery).await? {
                Written::Done | Written::Refused(0) => return Ok(self.fill_product(product).await),
                Written::Refused(_) => {}
            }
        }
        Err(DeskError::Contended { what: format!("the stock of {product}") })
    }

    /// Fills the orders of a product that wait, the oldest first: none goes before an older one that lacks the same.
    pub async fn fill_product(&self, product: &ProductId) -> Filled {
        let waiting = self.table.waiting_for_product(product).await;
        self.fill_all(waiting.map(|waiting| waiting.into_iter().map(|order| order.order).collect()), None).await
    }

    /// Fills the orders of a customer that wait, as when it has an address.
    pub async fn fill_customer(&self, account: &AccountId) -> Filled {
        let waiting = self.table.waiting_of_customer(account).await;
        self.fill_all(waiting.map(|waiting| waiting.into_iter().map(|order| order.id).collect()), None).await
    }

    /// Fills, the oldest first, all orders that wait and were placed in `days`: whatever a crash has left behind. After
    /// `deadline` none is begun.
    pub async fn fill_waiting(&self, days: super::Days, deadline: DateTime<Utc>) -> Filled {
        let waiting = async {
            // Their number may have been raised since this desk began.
            let buckets = self.table.buckets(self.buckets).await?;
            let waiting = self.table.orders_in(OrderStatus::BackOrdered, days, buckets).await?;
            let (mut has_address, mut orders, mut without) = (HashMap::new(), Vec::new(), 0);
            for order in waiting {
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
            if self.table.change_order(&before, &after, &lines).await? == Written::Done {
                return Ok(Some(after.status));
            }
        }
        Err(DeskError::Contended { what: format!("the order {id}") })
    }

    /// Where a customer's orders go from now on; fills those that have waited for it.
    ///
    /// # Errors
    /// [`DeskError`].
    pub async fn ship_to(
        &self,
        account: &AccountId,
        address: super::ShippingAddress,
    ) -> Result<(Customer, Filled), DeskError> {
        let change = |customer| Customer { address: Some(address.clone()), ..customer };
        let customer = self.change_customer(account, change).await?;
        Ok((customer, self.fill_customer(account).await))
    }

    async fn change_customer(
        &self,
        account: &AccountId,
        change: impl Fn(Customer) -> Customer,
    ) -> Result<Customer, DeskError> {
        for _ in 0..MAX_RETRIES {
            let before = self.customer(account).await?;
            let after = change(before.clone());
            if after == before || self.table.change_customer(&before, &after).await? == Written::Done {
                return Ok(after);
            }
        }
        Err(DeskError::Contended { what: format!("the customer {account}") })
    }

    /// Hands a customer over to another representative, and its orders that are still to be worked on. Killed half-way and asked
    /// again, it goes on.
    ///
    /// # Errors
    /// [`DeskError`].
    pub async fn hand_over(&self, account: &AccountId, to: &EmployeeId, days: super::Days) -> Result<u32, DeskError> {
        let employee = self.table.employee(to).await?;
        if !employee.is_some_and(|employee| employee.represents_customers()) {
            return Err(DeskError::NoRepresentative(to.clone()));
        }
        self.change_customer(account, |customer| Customer { representative: Some(to.clone()), ..customer }).await?;
        const OPEN: [OrderStatus; 3] = [OrderStatus::BackOrdered, OrderStatus::Open, OrderStatus::Picked];
        let mut handed_over = 0;
        for order in self.table.orders_of_customer(account, &OPEN, days).await? {
            handed_over += u32::from(self.hand_over_order(order.id, to).await?);
        }
        Ok(handed_over)
    }

    async fn hand_over_order(&self, id: OrderId, to: &EmployeeId) -> Result<bool, DeskError> {
        for _ in 0..MAX_RETRIES {
            let (order, _) = self.table.order(id).await?.ok_or(DeskError::NoOrder(id))?;
            if !order.status.is_open() || order.representative.as_ref() == Some(to) {
                return Ok(false);
            }
            if self.table.hand_over_order(&order, to).await? == Written::Done {
                return Ok(true);
            }
        }
        Err(DeskError::Contended { what: format!("the order {id}") })
    }
}
