//! The order desk: places one order for each paid month, fills backordered orders, and advances orders until they are
//! delivered, returned or cancelled.

mod customers;
mod filling;
mod goods;
mod people;
mod references;

use std::sync::Arc;

use chrono::{NaiveDate, TimeDelta};
use ulid::Ulid;

use billing::{AccountId, Sku};
use clock::Clock;
use dynamo::{IdempotentRequest, Paging, Replayed, StoredResponse, TableError};

use super::table::WriteOutcome;
use super::{
    BackOrderReason, Buckets, Customer, EmployeeId, LinesError, Order, OrderId, OrderLine, OrderStatus, OrdersTable,
    PaidPeriod, PlaceId, ProductId, ReferenceKind, TransitionError, WarehouseId, choose_representative,
    choose_warehouse, products_out_of_stock,
};

/// The maximum number of times that the order desk reads the items and tries its conditional write. The write fails if
/// other requests change the same items between the read and the write.
const MAX_RETRIES: usize = 8;

/// The reason why the order desk did not carry out a request.
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
    #[error("there is no warehouse in the region {region}; the regions with a warehouse are: {regions}")]
    NoWarehouseInRegion { region: PlaceId, regions: String },
    #[error("there is no {} {id}; the existing ids are: {existing}", .kind.name())]
    UnknownReference { kind: ReferenceKind, id: String, existing: String },
    #[error("the delivery {0} was already received with another quantity or in another warehouse")]
    DeliveryMismatch(Ulid),
    #[error("there is no employee {0}")]
    NoEmployee(EmployeeId),
    #[error("must be from {earliest} to {latest}")]
    DateOutOfRange { field: &'static str, earliest: NaiveDate, latest: NaiveDate },
    // The message does not contain the first day of the current job: it can be the hire date, which is confidential.
    #[error("the current job of {0} cannot end before its first day")]
    BeforeCurrentJob(EmployeeId),
    #[error("{employee} still represents customers ({customers} in all, such as {example}); hand them over first")]
    StillHasCustomers { employee: EmployeeId, customers: usize, example: AccountId },
    #[error("{0} is not a customer representative")]
    NotRepresentative(EmployeeId),
    #[error(
        "a concurrent request handed {account} over to another representative than {representative}; some orders may \
         have been handed over to {representative} before, and the other request hands them over again"
    )]
    HandedOverToAnother { account: AccountId, representative: EmployeeId },
    #[error("other requests changed {item} at the same time; try again")]
    WriteConflict { item: String },
}

impl DeskError {
    /// Returns whether the same request can succeed later without a change of the data.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Table(error) => error.is_transient(),
            Self::WriteConflict { .. } => true,
            Self::Transition(_)
            | Self::NoOrder(_)
            | Self::NoProduct(_)
            | Self::Lines(_)
            | Self::NoWarehouse(_)
            | Self::NoWarehouseInRegion { .. }
            | Self::UnknownReference { .. }
            | Self::NoEmployee(_)
            | Self::DeliveryMismatch(_)
            | Self::DateOutOfRange { .. }
            | Self::BeforeCurrentJob(_)
            | Self::StillHasCustomers { .. }
            | Self::HandedOverToAnother { .. }
            | Self::NotRepresentative(_) => false,
        }
    }
}

/// The outcome of placing the order of a paid month.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PlaceOutcome {
    /// The order was placed with this status: `OPEN` or `BACKORDERED`.
    Placed(OrderStatus),
    /// The order for this month exists already.
    AlreadyPlaced,
    /// The SKU stands for no products, so there is nothing to ship and no order. `needs_report` is true until the
    /// caller has reported this to the operator and called [`OrdersTable::mark_without_products_reported`].
    NoProducts { sku: Sku, needs_report: bool },
}

/// The outcome of a request to advance an order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AdvanceOutcome {
    /// The order has the requested status now. Contains the order and its lines.
    Done(Order, Vec<OrderLine>),
    /// The saved response to an earlier request with the same idempotency key.
    Replayed(Replayed),
}

/// How many backordered orders were filled and how many were not, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FillCounts {
    /// The number of orders for which the stock was reserved. Their status is `OPEN` now.
    pub filled: u32,
    /// The number of orders that still wait for stock or for a shipping address.
    pub still_waiting: u32,
    /// The number of orders that were not tried, because the deadline had passed.
    pub not_attempted: u32,
    /// The number of orders that failed with an error, which is logged. The hourly schedule tries them again. If the
    /// backordered orders cannot even be listed, this number is 1.
    pub failed: u32,
}

/// The result of the search for a warehouse that can ship all products of an order.
enum StockSource {
    /// This warehouse has enough stock of all products.
    Warehouse(WarehouseId),
    /// The customer has no shipping address.
    NoAddress,
    /// No single warehouse has enough stock of all products. Contains the products of which no warehouse has enough.
    /// The list is empty if each product is available, but in different warehouses.
    OutOfStock(Vec<ProductId>),
}

/// Places, fills and advances orders.
#[derive(Clone, Debug)]
pub struct OrderDesk {
    pub table: OrdersTable,
    clock: Arc<dyn Clock>,
    buckets: Buckets,
    fill_time_limit: Option<TimeDelta>,
}

impl OrderDesk {
    /// Creates an order desk on `table`. `buckets` is the number of partitions over which new orders are spread in
    /// GSI-2, the index over all orders.
    pub fn new(table: OrdersTable, buckets: Buckets, clock: Arc<dyn Clock>) -> Self {
        Self { table, clock, buckets, fill_time_limit: None }
    }

    /// Limits the time that one request spends on filling backordered orders. The hourly schedule fills the remaining
    /// orders.
    pub fn with_fill_time_limit(self, limit: TimeDelta) -> Self {
        Self { fill_time_limit: Some(limit), ..self }
    }

    /// Returns the number of buckets (partitions of GSI-2) that new orders are spread over.
    pub fn buckets(&self) -> Buckets {
        self.buckets
    }

    /// Places the order for a paid month. If the order exists already, nothing changes, so the same payment event can
    /// be processed again.
    ///
    /// # Errors
    /// Other requests changed the same items at the same time, or the table cannot be used. After a time-out the order
    /// may have been placed; it is safe to repeat the call.
    pub async fn place(&self, paid: &PaidPeriod) -> Result<PlaceOutcome, DeskError> {
        let lines = self.table.lines_of_sku(&paid.sku).await?;
        if lines.is_empty() {
            let needs_report = !self.table.is_without_products_reported(&paid.sku).await?;
            return Ok(PlaceOutcome::NoProducts { sku: paid.sku.clone(), needs_report });
        }
        for _ in 0..MAX_RETRIES {
            let customer = self.find_or_create_customer(&paid.account).await?;
            let order = Order {
                id: paid.order,
                customer: paid.account.clone(),
                representative: customer.representative.clone(),
                status: OrderStatus::BackOrdered,
                waits_for: None,
                warehouse: None,
                total: paid.amount,
                placed_at: paid.paid_at,
                bucket: self.buckets.bucket_of(paid.order),
                version: 1,
            };
            let order = match self.find_warehouse_with_stock(&customer, &lines).await? {
                StockSource::Warehouse(warehouse) => order.filled_from(warehouse)?,
                StockSource::NoAddress => Order { waits_for: Some(BackOrderReason::Address), ..order },
                StockSource::OutOfStock(_) => Order { waits_for: Some(BackOrderReason::Stock), ..order },
            };
            match self.table.create_order(&order, &lines, &customer).await? {
                WriteOutcome::Done => return Ok(PlaceOutcome::Placed(order.status)),
                WriteOutcome::Refused(0) => return Ok(PlaceOutcome::AlreadyPlaced),
                // Try again: another request changed the stock, the customer or the representative's quarter total.
                WriteOutcome::Refused(_) => {}
            }
        }
        Err(DeskError::WriteConflict { item: format!("the items of the order {}", paid.order) })
    }

    /// Returns the customer of `account`. If the customer does not exist, creates it and chooses its representative.
    async fn find_or_create_customer(&self, account: &AccountId) -> Result<Customer, DeskError> {
        if let Some(customer) = self.table.get_customer(account).await? {
            return Ok(customer);
        }
        let representatives = self.table.get_representatives(&Paging::all()).await?.into_items()?;
        let representative = choose_representative(account, &representatives).cloned();
        let new = Customer::new(account.clone(), representative, self.clock.now());
        match self.table.create_customer(&new).await? {
            WriteOutcome::Done => Ok(new),
            WriteOutcome::Refused(_) => {
                let created = self.table.get_customer(account).await?;
                created.ok_or_else(|| DeskError::WriteConflict { item: format!("the customer {account}") })
            }
        }
    }

    /// Looks for a warehouse that has enough stock of all `lines`, preferably in the region of the customer.
    async fn find_warehouse_with_stock(
        &self,
        customer: &Customer,
        lines: &[OrderLine],
    ) -> Result<StockSource, DeskError> {
        let Some(address) = &customer.address else { return Ok(StockSource::NoAddress) };
        let queries = lines.iter().map(|line| self.table.get_stock(&line.product, None));
        let stock = futures::future::try_join_all(queries).await?.concat();
        let warehouses = self.table.get_warehouses().await?;
        Ok(match choose_warehouse(&address.region, lines, &stock, &warehouses) {
            Some(warehouse) => StockSource::Warehouse(warehouse.id.clone()),
            None => StockSource::OutOfStock(products_out_of_stock(lines, &stock)),
        })
    }

    /// Advances an order to the status `next`: `PICKED`, `SHIPPED`, `DELIVERED`, `RETURNED` or `CANCELLED`. An order
    /// that has this status already is returned without a change.
    ///
    /// # Errors
    /// The order does not exist or cannot change to `next`, other requests changed the same items at the same time, or
    /// the table cannot be used.
    pub async fn advance(&self, id: OrderId, next: OrderStatus) -> Result<Order, DeskError> {
        match self.advance_idempotent(id, next, None, |_, _| String::new(), |_| Ok::<_, DeskError>(())).await? {
            AdvanceOutcome::Done(order, _) => Ok(order),
            AdvanceOutcome::Replayed(_) => Err(DeskError::WriteConflict { item: format!("the order {id}") }),
        }
    }

    /// Does the same as [`OrderDesk::advance`] if `precondition` returns `Ok` for the stored order. If `request` is
    /// set, the response (`to_json` of the order and its lines) is saved under the idempotency key of `request`, and a
    /// repeated request gets the saved response.
    ///
    /// # Errors
    /// The errors of [`OrderDesk::advance`], and the error of `precondition`.
    pub async fn advance_idempotent<E: From<DeskError>>(
        &self,
        id: OrderId,
        next: OrderStatus,
        request: Option<&IdempotentRequest>,
        to_json: impl Fn(&Order, &[OrderLine]) -> String,
        precondition: impl Fn(&Order) -> Result<(), E>,
    ) -> Result<AdvanceOutcome, E> {
        let with_response = |order: &Order, lines: &[OrderLine]| {
            let response = || StoredResponse { json: to_json(order, lines), version: order.version };
            request.map(|request| IdempotentRequest { response: response(), ..request.clone() })
        };
        for _ in 0..MAX_RETRIES {
            if let Some(request) = request
                && let Some(replayed) = self.table.saved_response(request).await.map_err(DeskError::from)?
            {
                return Ok(AdvanceOutcome::Replayed(replayed));
            }
            let stored = self.table.get_order(id).await.map_err(DeskError::from)?;
            let (before, lines) = stored.ok_or(DeskError::NoOrder(id))?;
            precondition(&before)?;
            if before.status == next {
                let saved = match with_response(&before, &lines) {
                    Some(request) => self.table.save_response(&before, &request).await.map_err(DeskError::from)?,
                    None => WriteOutcome::Done,
                };
                match saved {
                    WriteOutcome::Done => return Ok(AdvanceOutcome::Done(before, lines)),
                    WriteOutcome::Refused(_) => continue,
                }
            }
            let advanced = before.advanced_to(next).map_err(DeskError::from)?;
            let after = Order { version: before.version.saturating_add(1), ..advanced };
            let request = with_response(&after, &lines);
            let written = self.table.change_order(&before, &after, &lines, request.as_ref()).await;
            if written.map_err(DeskError::from)? == WriteOutcome::Done {
                if before.transition_effects(&after).stock == super::StockEffect::Restored {
                    for line in &lines {
                        self.fill_backorders_of_product(&line.product).await;
                    }
                }
                return Ok(AdvanceOutcome::Done(after, lines));
            }
        }
        Err(DeskError::WriteConflict { item: format!("the order {id}") }.into())
    }
}
