//! The order desk: a paid month becomes one order, and what waits is filled.

mod customers;
mod filling;
mod goods;
mod people;

use std::sync::Arc;

use chrono::{NaiveDate, TimeDelta};
use ulid::Ulid;

use billing::{AccountId, Sku};
use clock::Clock;
use dynamo::{IdempotentRequest, KeptAnswer, Paging, Replayed, TableError};

use super::table::Written;
use super::{
    Buckets, Customer, EmployeeId, LinesError, Order, OrderId, OrderLine, OrderStatus, OrdersTable, PaidPeriod,
    PlaceId, ProductId, TransitionError, WaitsFor, WarehouseId, lacking, representative_for, warehouse_for,
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
    #[error(transparent)]
    Lines(#[from] LinesError),
    #[error("there is no warehouse {0}")]
    NoWarehouse(WarehouseId),
    #[error("there is no warehouse in the region {region}: there are some in {regions}")]
    NoWarehouseIn { region: PlaceId, regions: String },
    #[error("{0} names a delivery of another quantity, or to another warehouse")]
    OtherDelivery(Ulid),
    #[error("there is no employee {0}")]
    NoEmployee(EmployeeId),
    #[error("{employee} began what they do on {began}: it cannot end before")]
    BeforeJob { employee: EmployeeId, began: NaiveDate },
    #[error("{employee} looks after {customers} customers, such as {one}: hand them over first")]
    StillRepresents { employee: EmployeeId, customers: usize, one: AccountId },
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
            | Self::Lines(_)
            | Self::NoWarehouse(_)
            | Self::NoWarehouseIn { .. }
            | Self::NoEmployee(_)
            | Self::OtherDelivery(_)
            | Self::BeforeJob { .. }
            | Self::StillRepresents { .. }
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

/// What became of a request to move an order on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Advanced {
    /// It is that now, with these lines.
    Done(Order, Vec<OrderLine>),
    /// What was answered before.
    Replayed(Replayed),
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
    patience: Option<TimeDelta>,
}

impl OrderDesk {
    /// One that keeps its orders in `table`, spread over `buckets`.
    pub fn new(table: OrdersTable, buckets: Buckets, clock: Arc<dyn Clock>) -> Self {
        Self { table, clock, buckets, patience: None }
    }

    /// One that leaves to the hourly look what it cannot fill within `patience` of the request that lets it be filled.
    pub fn with_patience(self, patience: TimeDelta) -> Self {
        Self { patience: Some(patience), ..self }
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
        let representatives = self.table.representatives(&Paging::all()).await?.into_items()?;
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
        match self.advance_once(id, next, None, |_, _| String::new(), |_| Ok::<_, DeskError>(())).await? {
            Advanced::Done(order, _) => Ok(order),
            Advanced::Replayed(_) => Err(DeskError::Contended { what: format!("the order {id}") }),
        }
    }

    /// As [`OrderDesk::advance`], once for each `request`, whose answer is the order as `shown`; only of an order that is as
    /// `wanted`.
    ///
    /// # Errors
    /// [`DeskError`], or why the order is not as wanted.
    pub async fn advance_once<E: From<DeskError>>(
        &self,
        id: OrderId,
        next: OrderStatus,
        request: Option<&IdempotentRequest>,
        shown: impl Fn(&Order, &[OrderLine]) -> String,
        wanted: impl Fn(&Order) -> Result<(), E>,
    ) -> Result<Advanced, E> {
        let answered = |order: &Order, lines: &[OrderLine]| {
            let answer = || KeptAnswer { json: shown(order, lines), version: order.version };
            request.map(|request| IdempotentRequest { answer: answer(), ..request.clone() })
        };
        for _ in 0..MAX_RETRIES {
            if let Some(request) = request
                && let Some(replayed) = self.table.get_answer(request).await.map_err(DeskError::from)?
            {
                return Ok(Advanced::Replayed(replayed));
            }
            let stored = self.table.order(id).await.map_err(DeskError::from)?;
            let (before, lines) = stored.ok_or(DeskError::NoOrder(id))?;
            wanted(&before)?;
            if before.status == next {
                let kept = match answered(&before, &lines) {
                    Some(request) => self.table.keep_answer(&before, &request).await.map_err(DeskError::from)?,
                    None => Written::Done,
                };
                match kept {
                    Written::Done => return Ok(Advanced::Done(before, lines)),
                    Written::Refused(_) => continue,
                }
            }
            let moved = before.moved(next).map_err(DeskError::from)?;
            let after = Order { version: before.version.saturating_add(1), ..moved };
            let request = answered(&after, &lines);
            let written = self.table.change_order(&before, &after, &lines, request.as_ref()).await;
            if written.map_err(DeskError::from)? == Written::Done {
                if before.effects(&after).stock == super::StockEffect::GivenBack {
                    for line in &lines {
                        self.fill_product(&line.product).await;
                    }
                }
                return Ok(Advanced::Done(after, lines));
            }
        }
        Err(DeskError::Contended { what: format!("the order {id}") }.into())
    }
}
