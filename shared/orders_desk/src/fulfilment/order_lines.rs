//! Changes of the products of an order before it is picked.

use crate::error::DeskError;
use crate::fulfilment::placing::StockSource;
use crate::{MAX_ATTEMPTS, OrderDesk};
use orders::{
    BackOrderReason, MAX_LINES, MovementError, Order, OrderId, OrderLine, OrderMovement, OrderStatus, check_order_lines,
};
use orders_table::{OrderChangeRecords, WriteOutcome};

impl OrderDesk {
    /// Replaces the products of an order that is `BACKORDERED` or `OPEN`, if `precondition` returns `Ok` for the stored
    /// order. If the order is open, the new products are deducted from the stock of its warehouse, and the replaced
    /// products are added to this stock again. The amount of the order does not change. Returns the changed order.
    ///
    /// # Errors
    /// - The order does not exist, or is neither backordered nor open.
    /// - There are no lines, or [`check_order_lines`] rejects the lines.
    /// - More than [`MAX_LINES`] products change.
    /// - A product does not exist, or the warehouse of the order does not have enough of a product.
    /// - Other requests changed the same items at the same time.
    /// - The table cannot be used.
    /// - `precondition` returned an error for the stored order.
    pub async fn change_lines<E: From<DeskError>>(
        &self,
        id: OrderId,
        lines: &[OrderLine],
        precondition: impl Fn(&Order) -> Result<(), E>,
    ) -> Result<Order, E> {
        if lines.is_empty() {
            return Err(DeskError::NoLines.into());
        }
        check_order_lines(lines).map_err(DeskError::from)?;
        for _ in 0..MAX_ATTEMPTS {
            let before = self.order_with_lines(id, &precondition).await?;
            let mut old = before.lines.clone();
            let mut new = lines.to_vec();
            // The lines of an order are always stored sorted by product.
            new.sort();
            old.sort();
            let after = before.with_lines(new).map_err(DeskError::from)?;
            if after.lines == old {
                return Ok(Order { lines: old, ..before });
            }
            let after = self.check_exchange(&before, &old, after).await?;
            let change = self.clock.ulid();
            let written = self.table.change_lines(&before, &old, &after, change).await.map_err(DeskError::from)?;
            if written == WriteOutcome::Done {
                return Ok(after);
            }
        }
        Err(DeskError::WriteConflict { item: format!("the order {id}") }.into())
    }

    /// Reads an order with its lines, if `check` returns `Ok` for the stored order. If an earlier version of Dueday
    /// placed the order, its own item may not contain the lines. Then this method first stores the lines in this item,
    /// because the events of the order are computed from the item. This increases the version of the order.
    pub(crate) async fn order_with_lines<E: From<DeskError>>(
        &self,
        id: OrderId,
        check: impl Fn(&Order) -> Result<(), E>,
    ) -> Result<Order, E> {
        let mut is_checked = false;
        for _ in 0..MAX_ATTEMPTS {
            let stored = self.table.get_order(id).await.map_err(DeskError::from)?;
            let (order, lines) = stored.ok_or(DeskError::NoOrder(id))?;
            // `check` accepted the order before its lines were stored. Storing them changed only the version of the order.
            if !is_checked {
                check(&order)?;
            }
            if !order.lines.is_empty() {
                return Ok(order);
            }
            is_checked = self.store_lines(&order, &lines).await? == WriteOutcome::Done;
        }
        Err(DeskError::WriteConflict { item: format!("the order {id}") }.into())
    }

    /// Stores the lines of an order in the order's own item. An earlier version of Dueday stored the lines only in the
    /// items that relate the order to its products. Returns `Refused` if another request changed the order at the same
    /// time.
    async fn store_lines(&self, order: &Order, lines: &[OrderLine]) -> Result<WriteOutcome, DeskError> {
        let with_lines = Order { version: order.version.saturating_add(1), ..order.clone() };
        let (table, records) = (self.table.without_requester(), OrderChangeRecords::default());
        Ok(table.change_order(order, &with_lines, lines, records, self.clock.ulid()).await?)
    }

    /// Checks that the changed products of `after` exist, and that the warehouse of the order has enough of them. `old`
    /// are the products before the change. Returns `after` with its next version and, if the order is backordered, with
    /// the reason why it waits.
    async fn check_exchange(&self, before: &Order, old: &[OrderLine], after: Order) -> Result<Order, DeskError> {
        let changed = after.lines.iter().filter(|line| !old.contains(line));
        let removed = old.iter().filter(|line| after.lines.iter().all(|new| new.product != line.product));
        let count = changed.clone().count().saturating_add(removed.count());
        if count > MAX_LINES {
            return Err(DeskError::TooManyChanges(count));
        }
        for line in changed {
            if self.table.get_product(&line.product).await?.is_none() {
                return Err(DeskError::NoProduct(line.product.clone()));
            }
        }
        let version = before.version.saturating_add(1);
        let exchange = OrderMovement::of_exchanged_lines(before, old, &after.lines, version, self.clock.now());
        for change in exchange.iter().flat_map(OrderMovement::stock_changes).filter(|change| change.pieces < 0) {
            let stock = self.table.get_stock(&change.product, Some(&change.warehouse)).await?;
            let (stock, quantity) = (stock.first().map_or(0, |stock| stock.quantity), change.pieces.unsigned_abs());
            if stock < quantity {
                let (product, warehouse) = (change.product, change.warehouse);
                return Err(MovementError::MoreThanStock { product, warehouse, stock, quantity }.into());
            }
        }
        let after = Order { version, ..after };
        if after.status != OrderStatus::BackOrdered {
            return Ok(after);
        }
        let address = match &before.address {
            Some(address) => Some(address.clone()),
            None => self.table.get_customer(&before.customer).await?.and_then(|customer| customer.address),
        };
        // The transaction of this change also writes a fill task, which later tries to fill the order. Until then, the
        // order waits for stock.
        Ok(match self.find_warehouse_with_stock(address.as_ref(), &after.lines).await? {
            StockSource::NoAddress => after,
            StockSource::Warehouse(_) => Order { missing: Vec::new(), ..after },
            StockSource::OutOfStock(missing) => Order { waits_for: Some(BackOrderReason::Stock), missing, ..after },
        })
    }
}
