//! Filling backordered orders, oldest first: the desk deducts the products of an order from the stock of a warehouse,
//! and the order becomes `OPEN`.
//!
//! A change after which backordered orders may be filled, such as a delivery, only writes a fill task in its own
//! transaction. The orders function works on the tasks page by page, until shortly before its deadline, and saves its
//! position after each page.

use std::collections::VecDeque;

use chrono::{DateTime, Utc};

use crate::error::DeskError;
use crate::fulfilment::placing::StockSource;
use crate::{MAX_ATTEMPTS, OrderDesk};
use dynamo::{Page, TableError};
use orders::{BackOrderReason, FillTarget, FillTask, OrderId, OrderStatus, ProductId};
use orders_table::{OrderChangeRecords, WriteOutcome};

/// The number of backordered orders of a fill task that one query reads. The position in the list of orders is saved
/// after each query.
const FILL_PAGE_SIZE: usize = 25;

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

impl OrderDesk {
    /// Works on all fill tasks until the tasks are done or until `deadline`. Tries one page of orders of each task in
    /// turn. If an order fails, the error is logged and counted, the other orders are still tried, and the task is kept
    /// for another pass over its orders. A later call continues with the unfinished tasks where this call stopped. It
    /// is safe to run several calls at the same time.
    pub async fn fill_waiting_orders(&self, deadline: DateTime<Utc>) -> FillCounts {
        let mut counts = FillCounts::default();
        let mut tasks = match self.separate_fill_tasks().await {
            Ok(tasks) => {
                for error in tasks.unreadable {
                    tracing::error!(%error, error_type = "Table", "failed to read a fill task (a request to fill backordered orders)");
                    counts.failed += 1;
                }
                tasks.items
            }
            Err(error) => {
                tracing::error!(%error, error_type = "Table", "failed to list the fill tasks (requests to fill backordered orders)");
                return FillCounts { failed: 1, ..counts };
            }
        };
        tasks.sort_by_key(|task| task.change);
        // Without a requester, no entries of the action log are written: the orders are filled by a job, not by a person.
        let desk = Self { table: self.table.without_requester(), ..self.clone() };
        let mut tasks = VecDeque::from(tasks);
        while self.clock.now() < deadline
            && let Some(task) = tasks.pop_front()
        {
            match desk.fill_page_of_orders(&task, deadline, &mut counts).await {
                Ok(unfinished) => tasks.extend(unfinished),
                Err(error) => {
                    tracing::error!(target = %task.target, %error, error_type = "Table", "failed to fill the backordered orders of a product or customer");
                    counts.failed += 1;
                }
            }
        }
        FillCounts { unfinished_tasks: u32::try_from(tasks.len()).unwrap_or(u32::MAX), ..counts }
    }

    /// Writes a separate fill task for each further product of a task, and then returns all fill tasks.
    async fn separate_fill_tasks(&self) -> Result<Page<FillTask>, TableError> {
        let tasks = self.table.fill_tasks().await?;
        if tasks.items.iter().all(|task| task.further.is_empty()) {
            return Ok(tasks);
        }
        for task in tasks.items.iter().filter(|task| !task.further.is_empty()) {
            // If the separation of a task fails, the task keeps its further products, and the next call tries it again.
            if let Err(error) = self.separate_fill_task(task).await {
                tracing::error!(target = %task.target, %error, error_type = "Table", "failed to separate the products of a fill task");
            }
        }
        self.table.fill_tasks().await
    }

    /// Writes a fill task for each further product of `task`, and removes these products from `task`.
    async fn separate_fill_task(&self, task: &FillTask) -> Result<(), TableError> {
        for product in &task.further {
            self.table.request_fill(&FillTarget::Product(product.clone()), self.clock.ulid()).await?;
        }
        self.table.remove_further_products(task).await
    }

    /// Tries to fill the next page of the orders of `task`, and saves the position. Adds the numbers of filled and
    /// failed orders to `counts`. Returns the task if its pass over the orders is not finished.
    async fn fill_page_of_orders(
        &self,
        task: &FillTask,
        deadline: DateTime<Utc>,
        counts: &mut FillCounts,
    ) -> Result<Option<FillTask>, TableError> {
        let mut pass = task.current_or_new_pass(self.clock.now());
        let page = self.table.waiting_orders(&task.target, pass.after.as_ref(), FILL_PAGE_SIZE).await?;
        let mut is_finished = page.is_last;
        for waiting in page.orders {
            if self.clock.now() >= deadline {
                is_finished = false;
                break;
            }
            match self.fill_order(waiting.order, &mut pass.out_of_stock).await {
                // The order is no longer backordered, because another request filled or cancelled it, or it still
                // waits.
                Ok(None | Some(OrderStatus::BackOrdered)) => {}
                Ok(Some(_)) => counts.filled += 1,
                Err(error) => {
                    tracing::error!(order = %waiting.order, %error, error_type = error.error_type(), "failed to fill a backordered order");
                    counts.failed += 1;
                    // Request another pass over the orders of the target, which tries this order again.
                    self.table.request_fill(&task.target, self.clock.ulid()).await?;
                }
            }
            pass.after = Some(waiting);
            if matches!(&task.target, FillTarget::Product(product) if pass.out_of_stock.contains(product)) {
                // No warehouse has enough of the product for this order. The newer orders that contain the product
                // must wait until this order is filled, so the pass ends here.
                is_finished = true;
                break;
            }
        }
        if !is_finished {
            let is_saved = self.table.save_fill_pass(&task.target, &pass).await?;
            return Ok(is_saved.then(|| FillTask { pass: Some(pass), ..task.clone() }));
        }
        // The index lags behind the table, so a pass that started soon after the latest change may have missed an
        // order. In this case, keep the task and start another pass.
        let is_settled = pass.started_at >= DateTime::<Utc>::from(pass.change.datetime()) + self.index_delay;
        if !(is_settled && self.table.delete_fill_task(&task.target, &pass).await?) {
            self.table.restart_fill_task(&task.target).await?;
        }
        Ok(None)
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
        out_of_stock: &mut Vec<ProductId>,
    ) -> Result<Option<OrderStatus>, DeskError> {
        for _ in 0..MAX_ATTEMPTS {
            let (before, lines) = self.table.get_order(id).await?.ok_or(DeskError::NoOrder(id))?;
            if before.status != OrderStatus::BackOrdered {
                return Ok(None);
            }
            if lines.iter().any(|line| out_of_stock.contains(&line.product)) {
                return Ok(Some(before.status));
            }
            // An order without an address gets the address of its customer.
            let customer = match &before.address {
                Some(_) => None,
                None => Some(self.find_or_create_customer(&before.customer).await?),
            };
            let addressed =
                customer.as_ref().map_or_else(|| before.clone(), |customer| before.with_address_of(customer));
            let after = match self.find_warehouse_with_stock(addressed.address.as_ref(), &lines).await? {
                StockSource::Warehouse(warehouse) => addressed.filled_from(warehouse)?,
                StockSource::NoAddress => before.waiting_for(BackOrderReason::Address, Vec::new()),
                StockSource::OutOfStock(missing) => {
                    out_of_stock.extend(missing.iter().map(|line| line.product.clone()));
                    before.waiting_for(BackOrderReason::Stock, missing)
                }
            };
            if after == before {
                return Ok(Some(before.status));
            }
            let records = OrderChangeRecords { customer: customer.as_ref(), ..OrderChangeRecords::default() };
            if self.table.change_order(&before, &after, &lines, records, self.clock.ulid()).await? == WriteOutcome::Done
            {
                return Ok(Some(after.status));
            }
        }
        Err(DeskError::WriteConflict { item: format!("the order {id}") })
    }
}
