//! Follow-up orders: splits an order whose products cannot be shipped together, and replaces shipped products.

use crate::error::DeskError;
use crate::fulfilment::placing::StockSource;
use crate::{MAX_ATTEMPTS, OrderDesk};
use billing::Label;
use dynamo::{IdempotencyKeyReuse, IdempotentRequest, StoredResponse};
use orders::{
    BackOrderReason, Customer, FollowUpError, FollowUpReason, Order, OrderId, OrderLine, OrderStatus, Stock,
    check_order_lines, check_part_of_lines, choose_warehouse, lines_in_stock, lines_without_part, missing_lines,
};
use orders_table::{NewFollowUp, WriteOutcome};

/// A follow-up order, and the order that it follows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreatedFollowUp {
    /// The order that was split, or whose products are replaced, after the change.
    pub order: Order,
    pub follow_up: Order,
}

/// The outcome of a request for a follow-up order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FollowUpOutcome {
    /// The follow-up order was created.
    Created(Box<CreatedFollowUp>),
    /// The saved response to an earlier request with the same idempotency key.
    Replayed(IdempotencyKeyReuse),
}

/// A request to send products of a shipped order again, and the reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplacementRequest {
    /// The products to send again; `None` for all products of the order.
    pub lines: Option<Vec<OrderLine>>,
    /// Why products are replaced. The action log contains this reason.
    pub reason: Label,
}

/// The stored orders and the customer from which a new follow-up order is computed.
struct StoredOrders {
    order: Order,
    /// The main order of the month. It is `order` itself, unless `order` is a follow-up order.
    main: Order,
    customer: Customer,
}

impl StoredOrders {
    /// Returns the input of the transaction that writes the orders in `created`. `main` is the main order of the month
    /// after the change. `reason` is why products are replaced; `None` for a split.
    fn new_follow_up<'a>(
        &'a self,
        main: &'a Order,
        created: &'a CreatedFollowUp,
        request: Option<&'a IdempotentRequest>,
        reason: Option<&'a Label>,
    ) -> NewFollowUp<'a> {
        NewFollowUp {
            main: (&self.main, main),
            order: (&self.order, &created.order),
            follow_up: &created.follow_up,
            customer: &self.customer,
            request,
            reason,
        }
    }
}

/// Returns `request` together with the response to save: the JSON of the orders in `created`, without personal data.
fn request_with_response(
    request: &IdempotentRequest,
    to_json: impl Fn(&CreatedFollowUp) -> String,
    created: &CreatedFollowUp,
) -> IdempotentRequest {
    let CreatedFollowUp { order, follow_up } = created;
    // The saved response outlives an erasure of the account, so it contains no address and no tracking number.
    let created =
        CreatedFollowUp { order: order.without_personal_data(), follow_up: follow_up.without_personal_data() };
    let response = StoredResponse { json: to_json(&created), version: created.order.version };
    IdempotentRequest { response, ..request.clone() }
}

impl OrderDesk {
    /// Splits an order that is `BACKORDERED` or `OPEN`, if `precondition` returns `Ok` for the stored order. The order
    /// keeps the products `keep`; if `keep` is `None`, the order keeps the products that one warehouse has in stock. A
    /// new follow-up order gets the other products. If the order is open, the follow-up order is open, too: the stock
    /// stays reserved. If the order is backordered, and one warehouse has all the products that it keeps, the order is
    /// filled in the same transaction, and a fill task tries to fill the follow-up order later. If `request` is set,
    /// the response is saved under the idempotency key of `request`, and a repeated request gets the saved response.
    ///
    /// # Errors
    /// - The order does not exist, or is neither backordered nor open.
    /// - [`check_order_lines`] rejects `keep`, or `keep` is not a part of the products of the order.
    /// - `keep` is `None`, and the order is open, or neither the order nor its customer has an address.
    /// - `keep` is `None`, and no warehouse has any of the products in stock, or one warehouse has all of them.
    /// - The payment was refunded in full, or the paid month has the largest number of follow-up orders.
    /// - Other requests changed the same items at the same time.
    /// - The table cannot be used.
    /// - `precondition` returned an error for the stored order.
    pub async fn split_order<E: From<DeskError>>(
        &self,
        id: OrderId,
        keep: Option<&[OrderLine]>,
        request: Option<&IdempotentRequest>,
        to_json: impl Fn(&CreatedFollowUp) -> String,
        precondition: impl Fn(&Order) -> Result<(), E>,
    ) -> Result<FollowUpOutcome, E> {
        check_order_lines(keep.unwrap_or_default()).map_err(DeskError::from)?;
        for _ in 0..MAX_ATTEMPTS {
            if let Some(replayed) = self.saved_follow_up(request).await? {
                return Ok(FollowUpOutcome::Replayed(replayed));
            }
            let check = |order: &Order| {
                precondition(order)?;
                Ok::<_, E>(order.check_splittable().map_err(DeskError::from)?)
            };
            let stored = self.stored_orders(id, check).await?;
            let (created, main) = self.split_stored_order(&stored, keep).await?;
            let request = request.map(|request| request_with_response(request, &to_json, &created));
            let new = stored.new_follow_up(&main, &created, request.as_ref(), None);
            let written = self.table.create_follow_up(&new, self.clock.ulid()).await.map_err(DeskError::from)?;
            if written == WriteOutcome::Done {
                return Ok(FollowUpOutcome::Created(Box::new(created)));
            }
        }
        Err(DeskError::WriteConflict { item: format!("the order {id}") }.into())
    }

    /// Creates a follow-up order that replaces products of an order that is `SHIPPED`, `DELIVERED` or `RETURNED`. The
    /// replacement is filled or backordered like a new order. If `request` is set, the response is saved under the
    /// idempotency key of `request`, and a repeated request gets the saved response.
    ///
    /// # Errors
    /// - The order does not exist, or was not shipped.
    /// - [`check_order_lines`] rejects the lines, or the lines are not a part of the products of the order.
    /// - The payment was refunded in full, or the paid month has the largest number of follow-up orders.
    /// - The account does not exist or is being erased.
    /// - Other requests changed the same items at the same time.
    /// - The table cannot be used.
    pub async fn create_replacement(
        &self,
        id: OrderId,
        replacement: &ReplacementRequest,
        request: Option<&IdempotentRequest>,
        to_json: impl Fn(&CreatedFollowUp) -> String,
    ) -> Result<FollowUpOutcome, DeskError> {
        check_order_lines(replacement.lines.as_deref().unwrap_or_default())?;
        for _ in 0..MAX_ATTEMPTS {
            if let Some(replayed) = self.saved_follow_up(request).await? {
                return Ok(FollowUpOutcome::Replayed(replayed));
            }
            let stored = self.stored_orders(id, |order| Ok::<_, DeskError>(order.check_replaceable()?)).await?;
            let (created, main) = self.new_replacement(&stored, replacement).await?;
            let request = request.map(|request| request_with_response(request, &to_json, &created));
            let new = stored.new_follow_up(&main, &created, request.as_ref(), Some(&replacement.reason));
            match self.table.create_follow_up(&new, self.clock.ulid()).await? {
                WriteOutcome::Done => return Ok(FollowUpOutcome::Created(Box::new(created))),
                WriteOutcome::NoAccount => return Err(DeskError::NoAccount(created.order.customer)),
                WriteOutcome::Refused(_) => {}
            }
        }
        Err(DeskError::WriteConflict { item: format!("the order {id}") })
    }

    /// Returns the response that is saved for `request`; `None` if `request` is `None` or no response is saved.
    async fn saved_follow_up(
        &self,
        request: Option<&IdempotentRequest>,
    ) -> Result<Option<IdempotencyKeyReuse>, DeskError> {
        match request {
            Some(request) => Ok(self.table.saved_response(request).await?),
            None => Ok(None),
        }
    }

    /// Reads the order `id` with its lines, its main order and its customer, if `check` returns `Ok` for the stored order.
    async fn stored_orders<E: From<DeskError>>(
        &self,
        id: OrderId,
        check: impl Fn(&Order) -> Result<(), E>,
    ) -> Result<StoredOrders, E> {
        let mut order = self.order_with_lines(id, check).await?;
        order.lines.sort();
        let main = match id.is_main_order() {
            true => order.clone(),
            false => self.order_with_lines(id.main_order(), |_| Ok::<_, E>(())).await?,
        };
        let customer = self.find_or_create_customer(&order.customer).await?;
        Ok(StoredOrders { order, main, customer })
    }

    /// Returns the two orders into which the order is split, and the main order of the month after the change.
    async fn split_stored_order(
        &self,
        stored: &StoredOrders,
        keep: Option<&[OrderLine]>,
    ) -> Result<(CreatedFollowUp, Order), DeskError> {
        let StoredOrders { order: before, main, customer } = stored;
        let (main, id) = main.with_follow_up()?;
        let mut kept = match keep {
            Some(keep) => keep.to_vec(),
            None => self.lines_to_keep(before, customer).await?,
        };
        // The lines of an order are always stored sorted by product.
        kept.sort();
        let rest = lines_without_part(&before.lines, &kept)?;
        let (representative, bucket) = (customer.representative.clone(), self.buckets.bucket_of(id));
        let follow_up = before.new_follow_up_order(id, FollowUpReason::Remainder, rest, representative, bucket);
        let follow_up = Order { address: before.address.clone(), ..follow_up };
        let version = before.version.saturating_add(1);
        let follow_ups = if before.id == main.id { main.follow_ups } else { before.follow_ups };
        let order = Order { version, follow_ups, ..before.with_lines(kept)? };
        let (order, follow_up) = if order.status == OrderStatus::Open {
            // The stock of the other products is handed over to the follow-up order.
            let warehouse = before.warehouse.clone().ok_or(FollowUpError::NothingInStock)?;
            (order, follow_up.filled_from(warehouse)?)
        } else {
            let order = self.filled_or_waiting(order, customer).await?;
            // If the kept part has just got the address of the customer, both parts are shipped to this address.
            let follow_up = Order { address: order.address.clone(), ..follow_up };
            let follow_up = self.waiting_follow_up(follow_up, customer, &order).await?;
            (order, follow_up)
        };
        Ok((CreatedFollowUp { order, follow_up }, main))
    }

    /// Returns the new replacement order with the order whose products it replaces, and the main order of the month
    /// after the change.
    async fn new_replacement(
        &self,
        stored: &StoredOrders,
        replacement: &ReplacementRequest,
    ) -> Result<(CreatedFollowUp, Order), DeskError> {
        let StoredOrders { order: before, main, customer } = stored;
        let (main, id) = main.with_follow_up()?;
        let mut lines = replacement.lines.clone().unwrap_or_else(|| before.lines.clone());
        lines.sort();
        check_part_of_lines(&before.lines, &lines)?;
        let (representative, bucket) = (customer.representative.clone(), self.buckets.bucket_of(id));
        let follow_up = before.new_follow_up_order(id, FollowUpReason::Replacement, lines, representative, bucket);
        let follow_up = self.filled_or_waiting(follow_up.with_address_of(customer), customer).await?;
        let order = match before.id == main.id {
            true => Order { version: main.version.saturating_add(1), ..main.clone() },
            false => before.clone(),
        };
        Ok((CreatedFollowUp { order, follow_up }, main))
    }

    /// Returns the part of the products of a backordered order that one warehouse has in stock.
    async fn lines_to_keep(&self, order: &Order, customer: &Customer) -> Result<Vec<OrderLine>, DeskError> {
        if order.status != OrderStatus::BackOrdered {
            return Err(FollowUpError::KeepNothingListed.into());
        }
        let address = order.with_address_of(customer).address.ok_or(FollowUpError::NoAddress)?;
        let (stock, warehouses) = (self.stock_of_lines(&order.lines).await?, self.table.get_warehouses().await?);
        if choose_warehouse(&address.region, &order.lines, &stock, &warehouses).is_some() {
            return Err(FollowUpError::AllInStock.into());
        }
        let part = lines_in_stock(&address.region, &order.lines, &stock, &warehouses);
        if part.is_empty() { Err(FollowUpError::NothingInStock.into()) } else { Ok(part) }
    }

    /// Returns the backordered `order` after it is filled from a warehouse that has all its products. If there is no
    /// such warehouse, returns the order with the reason why it waits.
    async fn filled_or_waiting(&self, order: Order, customer: &Customer) -> Result<Order, DeskError> {
        let addressed = order.with_address_of(customer);
        Ok(match self.find_warehouse_with_stock(addressed.address.as_ref(), &order.lines).await? {
            StockSource::Warehouse(warehouse) => addressed.filled_from(warehouse)?,
            StockSource::NoAddress => Order { waits_for: Some(BackOrderReason::Address), missing: Vec::new(), ..order },
            StockSource::OutOfStock(missing) => Order { waits_for: Some(BackOrderReason::Stock), missing, ..order },
        })
    }

    /// Returns the backordered `follow_up` with the reason why it waits. `kept` is the order that was split. If `kept`
    /// is open, the transaction of the split takes the products of `kept` from the stock, so these pieces do not count
    /// as available.
    async fn waiting_follow_up(&self, follow_up: Order, customer: &Customer, kept: &Order) -> Result<Order, DeskError> {
        if follow_up.with_address_of(customer).address.is_none() {
            return Ok(follow_up.waiting_for(BackOrderReason::Address, Vec::new()));
        }
        let mut stock = self.stock_of_lines(&follow_up.lines).await?;
        let deducted = kept.lines.iter().filter(|_| kept.status == OrderStatus::Open);
        for OrderLine { product, quantity } in deducted {
            let here =
                |stock: &&mut Stock| stock.product == *product && Some(&stock.warehouse) == kept.warehouse.as_ref();
            if let Some(stock) = stock.iter_mut().find(here) {
                stock.quantity = stock.quantity.saturating_sub((*quantity).into());
            }
        }
        let missing = missing_lines(&follow_up.lines, &stock);
        Ok(follow_up.waiting_for(BackOrderReason::Stock, missing))
    }
}
