//! The placing of the order of a paid month, and the search for a warehouse that can ship it.

use billing::{Money, Sku};
use orders::{
    BackOrderReason, Customer, FillTarget, Order, OrderLine, OrderStatus, PaidPeriod, ShippingAddress, Stock,
    WarehouseId, choose_warehouse, missing_lines,
};
use orders_table::{RefusedWrite, WriteOutcome};

use crate::error::DeskError;
use crate::{MAX_ATTEMPTS, OrderDesk};

/// The outcome of placing the order of a paid month.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PlaceOutcome {
    /// The order was placed with this status: `OPEN`, `BACKORDERED`, or `CANCELLED` if its payment was refunded before.
    Placed(OrderStatus),
    /// The order for this month exists already.
    AlreadyPlaced,
    /// The SKU has no products, so nothing is shipped and no order is placed. `needs_report` is true until the SKU was
    /// reported to the operator, and [`mark_without_products_reported`] was called.
    ///
    /// [`mark_without_products_reported`]: orders_table::OrdersTable::mark_without_products_reported
    NoProducts { sku: Sku, needs_report: bool },
    /// The payments table has no receipt of this payment, so no order is placed.
    NoReceipt,
}

/// The result of the search for a warehouse that can ship all products of an order.
pub enum StockSource {
    /// This warehouse has enough stock of all products.
    Warehouse(WarehouseId),
    /// Neither the order nor its customer has a shipping address.
    NoAddress,
    /// No single warehouse has enough stock of all products. Contains the products of which no warehouse has enough, with
    /// the missing quantity. The list is empty if each product is available, but in different warehouses.
    OutOfStock(Vec<OrderLine>),
}

impl OrderDesk {
    /// Places the order for a paid month, unless the records of payments (see [`OrderDesk::with_payment_records`]) contain no
    /// receipt of it. If the order exists already, nothing changes, so the same payment event can be processed again. Stock can arrive while the order is placed as backordered, and the pass of a fill task may
    /// then miss the new order. So if a warehouse has enough stock afterwards, a fill task of a product of the order is
    /// written again.
    ///
    /// # Errors
    /// Other requests changed the same items at the same time, or the table cannot be used. After a time-out the order
    /// may have been placed; it is safe to repeat the call.
    pub async fn place_order(&self, paid: &PaidPeriod) -> Result<PlaceOutcome, DeskError> {
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
            let order = self.new_order(paid, &lines, &customer);
            let order = refunds.as_ref().map_or(order.clone(), |refunds| order.refunded_by(refunds));
            let order = match order.status {
                OrderStatus::Cancelled => order,
                _ => self.fill_new_order(&order, &customer).await?,
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

    /// Returns the backordered order of `customer` for a paid month, with the products of `lines`.
    fn new_order(&self, paid: &PaidPeriod, lines: &[OrderLine], customer: &Customer) -> Order {
        Order {
            id: paid.order,
            follow_up: None,
            follow_ups: 0,
            customer: paid.account.clone(),
            representative: customer.representative.clone(),
            status: OrderStatus::BackOrdered,
            waits_for: None,
            missing: Vec::new(),
            lines: lines.to_vec(),
            warehouse: None,
            address: None,
            shipment: None,
            is_written_off: false,
            total: paid.amount,
            refunded: Money::new(0, paid.amount.currency()),
            placed_at: paid.paid_at,
            bucket: self.buckets.bucket_of(paid.order),
            version: 1,
        }
    }

    /// Returns the new `order` with the address of `customer`: open, with a warehouse that can ship it, or backordered,
    /// with the reason why it waits.
    async fn fill_new_order(&self, order: &Order, customer: &Customer) -> Result<Order, DeskError> {
        let order = order.with_address_of(customer);
        Ok(match self.find_warehouse_with_stock(order.address.as_ref(), &order.lines).await? {
            StockSource::Warehouse(warehouse) => order.filled_from(warehouse)?,
            StockSource::NoAddress => order.waiting_for(BackOrderReason::Address, Vec::new()),
            StockSource::OutOfStock(missing) => order.waiting_for(BackOrderReason::Stock, missing),
        })
    }

    /// If one warehouse has enough stock of all lines of `order`, writes the fill task of its first product. The task
    /// tries to fill all backordered orders that contain this product.
    pub(crate) async fn request_fill_if_in_stock(&self, order: &Order) -> Result<(), DeskError> {
        if let (StockSource::Warehouse(_), Some(line)) =
            (self.find_warehouse_with_stock(order.address.as_ref(), &order.lines).await?, order.lines.first())
        {
            self.table.request_fill(&FillTarget::Product(line.product.clone()), self.clock.ulid()).await?;
        }
        Ok(())
    }

    /// Looks for a warehouse that has enough stock of all `lines`, preferably in the region of `address`.
    pub(crate) async fn find_warehouse_with_stock(
        &self,
        address: Option<&ShippingAddress>,
        lines: &[OrderLine],
    ) -> Result<StockSource, DeskError> {
        let Some(address) = address else { return Ok(StockSource::NoAddress) };
        let (stock, warehouses) = (self.stock_of_lines(lines).await?, self.table.get_warehouses().await?);
        Ok(match choose_warehouse(&address.region, lines, &stock, &warehouses) {
            Some(warehouse) => StockSource::Warehouse(warehouse.id.clone()),
            None => StockSource::OutOfStock(missing_lines(lines, &stock)),
        })
    }

    /// Returns the stock of the products of `lines` in each warehouse.
    pub(crate) async fn stock_of_lines(&self, lines: &[OrderLine]) -> Result<Vec<Stock>, DeskError> {
        let queries = lines.iter().map(|line| self.table.get_stock(&line.product, None));
        Ok(futures::future::try_join_all(queries).await?.concat())
    }
}
