//! The order desk: places one order for each paid month, fills backordered orders, and advances orders until they are
//! delivered, returned or cancelled.

mod customers;
mod employees;
mod error;
mod filling;
mod follow_ups;
mod order_lines;
mod payment_records;
mod references;
mod refunds;
mod sku_products;
mod stock;

use std::sync::Arc;

use chrono::TimeDelta;

pub use error::DeskError;
pub use follow_ups::{CreatedFollowUp, FollowUpOutcome, ReplacementRequest};
pub use payment_records::PaymentRecords;

use billing::{AccountId, Money, Sku};
use clock::Clock;
use dynamo::{IdempotentRequest, Paging, Replayed, StoredResponse, TableError};

use super::table::{ChangeRecords, RefusedWrite, WriteOutcome};
use super::{
    BackOrderReason, Buckets, Customer, FillTarget, Order, OrderId, OrderLine, OrderStatus, OrdersTable, PaidPeriod,
    Parcel, Requester, ShippingAddress, Step, Stock, WarehouseId, choose_representative, choose_warehouse,
    missing_lines,
};

/// The maximum number of times that the order desk reads the items of a change and then tries to write the change. The
/// conditional write fails if other requests change the same items between the read and the write.
const MAX_ATTEMPTS: usize = 8;

/// The outcome of placing the order of a paid month.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PlaceOutcome {
    /// The order was placed with this status: `OPEN`, `BACKORDERED`, or `CANCELLED` if its payment was refunded before.
    Placed(OrderStatus),
    /// The order for this month exists already.
    AlreadyPlaced,
    /// The SKU has no products, so nothing is shipped and no order is placed. `needs_report` is true until the SKU was
    /// reported to the operator, and [`OrdersTable::mark_without_products_reported`] was called.
    NoProducts { sku: Sku, needs_report: bool },
    /// The payments table has no receipt of this payment, so no order is placed.
    NoReceipt,
}

/// The outcome of a request to advance an order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AdvanceOutcome {
    /// The order has the requested status now. Contains the order and its lines.
    Done(Box<Order>, Vec<OrderLine>),
    /// The saved response to an earlier request with the same idempotency key.
    Replayed(Replayed),
}

/// The result of working on the fill tasks: the stored requests to try again to fill backordered orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FillCounts {
    /// The number of orders for which the stock was reserved. Their status is `OPEN` now.
    pub filled: u32,
    /// The number of fill tasks that have orders which were not tried before the deadline. A later call continues with
    /// these tasks.
    pub unfinished_tasks: u32,
    /// The number of orders and fill tasks that failed with an error. Each error is logged, and a later call tries the
    /// order or the task again. If the tasks cannot even be listed, this number is 1.
    pub failed: u32,
}

/// The result of the search for a warehouse that can ship all products of an order.
enum StockSource {
    /// This warehouse has enough stock of all products.
    Warehouse(WarehouseId),
    /// Neither the order nor its customer has a shipping address.
    NoAddress,
    /// No single warehouse has enough stock of all products. Contains the products of which no warehouse has enough, with
    /// the missing quantity. The list is empty if each product is available, but in different warehouses.
    OutOfStock(Vec<OrderLine>),
}

/// Places, fills and advances orders.
#[derive(Clone, Debug)]
pub struct OrderDesk {
    pub table: OrdersTable,
    clock: Arc<dyn Clock>,
    buckets: Buckets,
    index_delay: TimeDelta,
    /// Whether the merchant perhaps sells no goods (see [`OrderDesk::with_optional_goods`]).
    goods_are_optional: bool,
    /// The records of payments (see [`OrderDesk::with_payment_records`]).
    payment_records: Option<Arc<dyn PaymentRecords>>,
}

impl OrderDesk {
    /// Creates an order desk that stores its data in `table`. `buckets` is the number of partitions over which new
    /// orders are spread in GSI-2, the index over all orders.
    pub fn new(table: OrdersTable, buckets: Buckets, clock: Arc<dyn Clock>) -> Self {
        Self { table, clock, buckets, index_delay: TimeDelta::zero(), goods_are_optional: false, payment_records: None }
    }

    /// Sets the longest time that the indexes lag behind the table. A fill task is deleted only after a pass over its
    /// orders that started at least this long after the latest change: an earlier pass may have missed an order that
    /// was not in the index yet.
    pub fn with_index_delay(self, index_delay: TimeDelta) -> Self {
        Self { index_delay, ..self }
    }

    /// Returns this order desk for a merchant who perhaps sells no goods. A SKU without products is then reported only
    /// if the table contains a product or a warehouse.
    pub fn with_optional_goods(self) -> Self {
        Self { goods_are_optional: true, ..self }
    }

    /// Returns the clock of the order desk.
    pub fn clock(&self) -> &dyn Clock {
        self.clock.as_ref()
    }

    /// Returns an order desk on the same table, with `requester` as the person or program that requests its changes. Each
    /// change of this order desk writes an entry of the action log in the same transaction. It uses the date
    /// of `requester` as today, so it is for one request only.
    pub fn requested_by(&self, requester: Requester) -> Self {
        Self { table: self.table.requested_by(requester), ..self.clone() }
    }

    /// Returns the number of buckets (partitions of GSI-2) that new orders are spread over.
    pub fn buckets(&self) -> Buckets {
        self.buckets
    }

    /// Returns whether the merchant sells goods.
    pub(crate) async fn sells_goods(&self) -> Result<bool, TableError> {
        if !self.goods_are_optional || !self.table.get_warehouses().await?.is_empty() {
            return Ok(true);
        }
        let products = self.table.get_products(&Paging { after: None, limit: Some(1) }).await?;
        Ok(!products.items.is_empty() || !products.unreadable.is_empty())
    }

    /// Places the order for a paid month, unless the records of payments (see [`OrderDesk::with_payment_records`]) contain no
    /// receipt of it. If the order exists already, nothing changes, so the same payment event can be processed again. Stock can arrive while the order is placed as backordered, and the pass of a fill task may
    /// then miss the new order. So if a warehouse has enough stock afterwards, a fill task of a product of the order is
    /// written again.
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
        if !self.has_receipt(paid).await? {
            // The receipt of an order that was placed long ago has expired.
            return Ok(match self.table.get_order(paid.order).await? {
                Some((order, _)) if order.customer == paid.account => PlaceOutcome::AlreadyPlaced,
                _ => PlaceOutcome::NoReceipt,
            });
        }
        for attempt in 0..MAX_ATTEMPTS {
            let customer = self.find_or_create_customer(&paid.account).await?;
            // A payment is rarely refunded before its order is placed. So the refunds are read only if the first
            // transaction was refused.
            let refunds = if attempt == 0 { None } else { self.table.get_refunds(paid.order).await? };
            let order = Order {
                id: paid.order,
                follow_up: None,
                follow_ups: 0,
                customer: paid.account.clone(),
                representative: customer.representative.clone(),
                status: OrderStatus::BackOrdered,
                waits_for: None,
                missing: Vec::new(),
                lines: lines.clone(),
                warehouse: None,
                address: None,
                shipment: None,
                is_written_off: false,
                total: paid.amount,
                refunded: Money::new(0, paid.amount.currency()),
                placed_at: paid.paid_at,
                bucket: self.buckets.bucket_of(paid.order),
                version: 1,
            };
            let order = refunds.as_ref().map_or(order.clone(), |refunds| order.refunded_by(refunds));
            let order = match order.status {
                OrderStatus::Cancelled => order,
                _ => {
                    let order = order.with_address_of(&customer);
                    match self.find_warehouse_with_stock(order.address.as_ref(), &lines).await? {
                        StockSource::Warehouse(warehouse) => order.filled_from(warehouse)?,
                        StockSource::NoAddress => order.waiting_for(BackOrderReason::Address, Vec::new()),
                        StockSource::OutOfStock(missing) => order.waiting_for(BackOrderReason::Stock, missing),
                    }
                }
            };
            match self.table.create_order(&order, &lines, &customer, refunds.as_ref(), self.clock.now()).await? {
                WriteOutcome::Done => {
                    if order.waits_for == Some(BackOrderReason::Stock) {
                        self.request_fill_if_in_stock(&order).await?;
                    }
                    return Ok(PlaceOutcome::Placed(order.status));
                }
                WriteOutcome::Refused(RefusedWrite::Creation) => {
                    // An earlier process may have placed the order as backordered, and stopped before it wrote the fill
                    // task.
                    if order.status == OrderStatus::Open {
                        self.request_fill_if_in_stock(&order).await?;
                    }
                    return Ok(PlaceOutcome::AlreadyPlaced);
                }
                // Try again: another request changed the stock, the customer or the representative's quarter total.
                WriteOutcome::NoAccount | WriteOutcome::Refused(RefusedWrite::Other) => {}
            }
        }
        Err(DeskError::WriteConflict { item: format!("the items of the order {}", paid.order) })
    }

    /// If one warehouse has enough stock of all lines of `order`, writes the fill task of its first product. The task
    /// tries to fill all backordered orders that contain this product.
    async fn request_fill_if_in_stock(&self, order: &Order) -> Result<(), DeskError> {
        if let (StockSource::Warehouse(_), Some(line)) =
            (self.find_warehouse_with_stock(order.address.as_ref(), &order.lines).await?, order.lines.first())
        {
            self.table.request_fill(&FillTarget::Product(line.product.clone()), self.clock.ulid()).await?;
        }
        Ok(())
    }

    /// Returns the customer of `account`. If the customer does not exist, creates the customer and chooses a
    /// representative.
    async fn find_or_create_customer(&self, account: &AccountId) -> Result<Customer, DeskError> {
        if let Some(customer) = self.table.get_customer(account).await? {
            return Ok(customer);
        }
        let new = self.new_customer(account).await?;
        match self.table.create_customer(&new).await? {
            WriteOutcome::Done => Ok(new),
            WriteOutcome::NoAccount => Err(DeskError::NoAccount(account.clone())),
            WriteOutcome::Refused(_) => {
                let created = self.table.get_customer(account).await?;
                created.ok_or_else(|| DeskError::WriteConflict { item: format!("the customer {account}") })
            }
        }
    }

    /// Returns a new customer for `account`, with a representative, and without an address. Stores nothing.
    async fn new_customer(&self, account: &AccountId) -> Result<Customer, DeskError> {
        let representatives = self.table.get_representatives(&Paging::all()).await?.into_items()?;
        let representative = choose_representative(account, &representatives).cloned();
        Ok(Customer::new(account.clone(), representative, self.clock.now()))
    }

    /// Looks for a warehouse that has enough stock of all `lines`, preferably in the region of `address`.
    async fn find_warehouse_with_stock(
        &self,
        address: Option<&ShippingAddress>,
        lines: &[OrderLine],
    ) -> Result<StockSource, DeskError> {
        let Some(address) = address else { return Ok(StockSource::NoAddress) };
        let (stock, warehouses) = (self.stock_of(lines).await?, self.table.get_warehouses().await?);
        Ok(match choose_warehouse(&address.region, lines, &stock, &warehouses) {
            Some(warehouse) => StockSource::Warehouse(warehouse.id.clone()),
            None => StockSource::OutOfStock(missing_lines(lines, &stock)),
        })
    }

    /// Returns the stock of the products of `lines` in each warehouse.
    async fn stock_of(&self, lines: &[OrderLine]) -> Result<Vec<Stock>, DeskError> {
        let queries = lines.iter().map(|line| self.table.get_stock(&line.product, None));
        Ok(futures::future::try_join_all(queries).await?.concat())
    }

    /// Changes the status of an order as `step` requests. If the order already has the requested status, returns the
    /// order without a change.
    ///
    /// # Errors
    /// - The order does not exist, or cannot change to this status.
    /// - The order already has this status, but was shipped with another parcel, or was returned with sellable
    ///   products.
    /// - Other requests changed the same items at the same time.
    /// - The table cannot be used.
    pub async fn advance(&self, id: OrderId, step: impl Into<Step>) -> Result<Order, DeskError> {
        match self.advance_idempotent(id, &step.into(), None, |_, _| String::new(), |_| Ok::<_, DeskError>(())).await? {
            AdvanceOutcome::Done(order, _) => Ok(*order),
            AdvanceOutcome::Replayed(_) => Err(DeskError::WriteConflict { item: format!("the order {id}") }),
        }
    }

    /// Like [`OrderDesk::advance`], but changes the order only if `precondition` returns `Ok` for the stored order. If
    /// `request` is set, the response (`to_json` of the order and its lines, without personal data) is saved under the
    /// idempotency key of `request`, and a repeated request gets the saved response.
    ///
    /// # Errors
    /// The errors of [`OrderDesk::advance`], and the error of `precondition`.
    pub async fn advance_idempotent<E: From<DeskError>>(
        &self,
        id: OrderId,
        step: &Step,
        request: Option<&IdempotentRequest>,
        to_json: impl Fn(&Order, &[OrderLine]) -> String,
        precondition: impl Fn(&Order) -> Result<(), E>,
    ) -> Result<AdvanceOutcome, E> {
        let with_response = |order: &Order, lines: &[OrderLine]| {
            // The saved response outlives an erasure of the account, so it contains no address and no tracking number.
            let json = || to_json(&order.without_personal_data(), lines);
            let response = || StoredResponse { json: json(), version: order.version };
            request.map(|request| IdempotentRequest { response: response(), ..request.clone() })
        };
        for _ in 0..MAX_ATTEMPTS {
            if let Some(request) = request
                && let Some(replayed) = self.table.saved_response(request).await.map_err(DeskError::from)?
            {
                return Ok(AdvanceOutcome::Replayed(replayed));
            }
            let stored = self.table.get_order(id).await.map_err(DeskError::from)?;
            let (before, lines) = stored.ok_or(DeskError::NoOrder(id))?;
            precondition(&before)?;
            if before.status == step.next {
                let parcel = before.shipment.as_ref().map(|shipment| &shipment.parcel);
                if step.parcel != Parcel::default() && parcel.is_some_and(|parcel| *parcel != step.parcel) {
                    return Err(DeskError::OtherParcel(id).into());
                }
                if step.is_unsellable && !before.is_written_off {
                    return Err(DeskError::AlreadyRestored(id).into());
                }
                let saved = match with_response(&before, &lines) {
                    Some(request) => self.table.save_response(&before, &request).await.map_err(DeskError::from)?,
                    None => WriteOutcome::Done,
                };
                match saved {
                    WriteOutcome::Done => return Ok(AdvanceOutcome::Done(Box::new(before), lines)),
                    WriteOutcome::NoAccount | WriteOutcome::Refused(_) => continue,
                }
            }
            let advanced = before.advanced_by(step, self.clock.now()).map_err(DeskError::from)?;
            let after = Order { version: before.version.saturating_add(1), ..advanced };
            let request = with_response(&after, &lines);
            let records = ChangeRecords { request: request.as_ref(), ..ChangeRecords::default() };
            let change = self.clock.ulid();
            let written = self.table.change_order(&before, &after, &lines, records, change).await;
            if written.map_err(DeskError::from)? == WriteOutcome::Done {
                return Ok(AdvanceOutcome::Done(Box::new(after), lines));
            }
        }
        Err(DeskError::WriteConflict { item: format!("the order {id}") }.into())
    }

    /// Corrects the address that an order is shipped to, if `precondition` returns `Ok` for the stored order. If the
    /// order waits for an address, also writes the fill task of its customer. Returns the changed order and its lines.
    ///
    /// # Errors
    /// - The order does not exist, or was shipped, returned or cancelled.
    /// - The region, the country or the account does not exist.
    /// - Other requests changed the order at the same time.
    /// - The table cannot be used.
    /// - `precondition` returned an error for the stored order.
    pub async fn correct_address<E: From<DeskError>>(
        &self,
        id: OrderId,
        address: ShippingAddress,
        precondition: impl Fn(&Order) -> Result<(), E>,
    ) -> Result<(Order, Vec<OrderLine>), E> {
        let mut is_checked = false;
        for _ in 0..MAX_ATTEMPTS {
            let stored = self.table.get_order(id).await.map_err(DeskError::from)?;
            let (before, lines) = stored.ok_or(DeskError::NoOrder(id))?;
            precondition(&before)?;
            if !is_checked {
                self.check_address(&address).await?;
                is_checked = true;
            }
            let after = before.with_corrected_address(address.clone()).map_err(DeskError::from)?;
            if after == before {
                return Ok((before, lines));
            }
            let after = Order { version: before.version.saturating_add(1), ..after };
            match self.table.correct_address(&before, &after, self.clock.ulid()).await.map_err(DeskError::from)? {
                WriteOutcome::Done => return Ok((after, lines)),
                WriteOutcome::NoAccount => return Err(DeskError::NoAccount(after.customer).into()),
                WriteOutcome::Refused(_) => {}
            }
        }
        Err(DeskError::WriteConflict { item: format!("the order {id}") }.into())
    }
}
