//! The requests that read and write orders. The transaction that writes an order also writes the stock of its products,
//! the quarter total of its representative, and its relations: the items that relate the order to its products, its
//! representative and its warehouse.

use crate::buckets::BucketCount;
use crate::items;
use crate::items::{OrderLineQuantityItem, RepresentativeRelationItem};
use crate::partition_queries::ItemSelection;
use crate::write_transaction::{WriteOutcome, WriteTransaction};
use crate::{OrdersTable, keys};
use billing::{AccountId, ActionKind, ItemChange, Money};
use chrono::{DateTime, Utc};
use dynamo::{
    Entity as _, IdempotencyKeyReuse, IdempotentRequest, Item, Page, Paging, TableError, from_item, key_of_item,
};
use orders::{
    BackOrderReason, Customer, DateRange, EmployeeId, FillTarget, Order, OrderId, OrderLine, OrderMovement,
    OrderRefunds, OrderStatus, StockEffect,
};
use ulid::Ulid;

/// The part of an order that is stored in the item that relates the order to its representative.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreditedOrder {
    pub order: OrderId,
    pub customer: AccountId,
    pub status: OrderStatus,
    pub placed_at: DateTime<Utc>,
    pub total: Money,
    /// The part of the payment that was refunded.
    pub refunded: Money,
}

/// The part of an order that is stored in the item that relates the order to one of its products.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ProductOrder {
    pub order: OrderId,
    pub status: OrderStatus,
    pub placed_at: DateTime<Utc>,
    /// How many pieces of the product the order contains.
    pub quantity: u32,
}

/// The other items that a transaction writes or checks when it changes an order.
#[derive(Clone, Copy, Debug, Default)]
pub struct OrderChangeRecords<'a> {
    /// The request whose response is saved.
    pub request: Option<&'a IdempotentRequest>,
    /// The recorded refunds of the payment, before and after the change. `None` as the value before means that no
    /// refunds were recorded.
    pub refunds: Option<(Option<&'a OrderRefunds>, &'a OrderRefunds)>,
    /// The customer, if the order had no address before the change, so that the change depends on the customer's address.
    /// The transaction is refused if the customer changed since it was read.
    pub customer: Option<&'a Customer>,
}

/// Reads the status of an order and the time of the payment from the attribute `Data` of an item of the order.
pub(crate) fn read_status_and_instant(item: &Item) -> Result<(OrderStatus, DateTime<Utc>), TableError> {
    let parsed =
        keys::parse_status_data(items::data_attribute(item)?).and_then(|(status, at)| Some((status, at.parse().ok()?)));
    parsed
        .ok_or_else(|| TableError::unreadable(key_of_item(item), "the attribute Data has no order status and instant"))
}

/// Reads an order from the item that relates the order to one of its products.
pub(crate) fn read_product_order(item: &Item) -> Result<ProductOrder, TableError> {
    let ((status, placed_at), OrderLineQuantityItem { quantity }) = (read_status_and_instant(item)?, from_item(item)?);
    Ok(ProductOrder { order: items::order_id_in(item)?, status, placed_at, quantity })
}

/// Returns the relations of `order`, which has the lines `lines`: the items by which GSI-1 finds the order by its
/// representative, its products, and the warehouse that ships it.
pub(crate) fn relations_of_order(order: &Order, lines: &[OrderLine]) -> Vec<Item> {
    let to_products = lines.iter().map(|line| items::product_relation(order, line));
    let all = [items::representative_relation(order)].into_iter().chain(to_products);
    all.chain(items::warehouse_relation(order, lines)).collect()
}

impl OrdersTable {
    /// Returns an order and its lines, or `None` if the order does not exist. The lines are read from the order's own
    /// item, not from the items that relate the order to its products: a query can return some items from before a
    /// concurrent transaction and others from after it. If an earlier version of Dueday placed the order, its own item
    /// can have no lines. Then the lines are read from the other items, because they have never changed. Sends one
    /// strongly consistent query with `PK = order`.
    pub async fn get_order(&self, id: OrderId) -> Result<Option<(Order, Vec<OrderLine>)>, TableError> {
        let (mut order, mut lines) = (None::<Order>, Vec::new());
        for item in self.query_partition(keys::key_of_order(id), ItemSelection::all_items()).await? {
            match key_of_item(&item).sk {
                sk if sk.starts_with(keys::CUSTOMER_PREFIX) => order = Some(Order::from_item(&item)?),
                sk if sk.starts_with(keys::PRODUCT_PREFIX) => lines.push(items::read_order_line(&item)?),
                _ => {}
            }
        }
        let Some(order) = order else { return Ok(None) };
        if !order.lines.is_empty() {
            lines.clone_from(&order.lines);
        }
        Ok(Some((order, lines)))
    }

    /// Returns the orders of a customer that have one of `statuses` and were placed in `days`, oldest first (access
    /// pattern 4). Queries the customer's partition of GSI-1 with a range of `Data` (status and time of the payment).
    /// Sends one query for each status, in parallel.
    pub async fn orders_of_customer(
        &self,
        customer: &AccountId,
        statuses: &[OrderStatus],
        days: DateRange,
        paging: &Paging,
    ) -> Result<Page<Order>, TableError> {
        let page = self.page_of_orders_related_to(&keys::key_of_customer(customer), statuses, days, paging).await?;
        Ok(page.read(|item| Order::from_item(&item)))
    }

    /// Returns the orders of all customers that have one of `statuses` and were placed in `days`, oldest first (access
    /// pattern 5). Queries GSI-2 with a range of `Data` (status and time of the payment). Sends one query for each
    /// bucket and status, in parallel.
    pub async fn orders_of_all_customers(
        &self,
        statuses: &[OrderStatus],
        days: DateRange,
        buckets: BucketCount,
        paging: &Paging,
    ) -> Result<Page<Order>, TableError> {
        let page = self.page_of_all_orders(statuses, days, buckets, paging).await?;
        Ok(page.read(|item| Order::from_item(&item)))
    }

    /// Returns the orders that are credited to a representative, have one of `statuses` and were placed in `days`,
    /// oldest first (access pattern 10). Queries the representative's partition of GSI-1 with a range of `Data` (status
    /// and time of the payment). Sends one query for each status, in parallel.
    pub async fn orders_of_representative(
        &self,
        representative: &EmployeeId,
        statuses: &[OrderStatus],
        days: DateRange,
        paging: &Paging,
    ) -> Result<Page<CreditedOrder>, TableError> {
        let page =
            self.page_of_orders_related_to(&keys::key_of_employee(representative), statuses, days, paging).await?;
        let read = |item: Item| {
            let ((status, placed_at), credit) =
                (read_status_and_instant(&item)?, from_item::<RepresentativeRelationItem>(&item)?);
            let total = Money::new(credit.payment_amount, credit.currency);
            let refunded = Money::new(credit.refunded_amount.unwrap_or_default(), credit.currency);
            let (order, customer) = (items::order_id_in(&item)?, credit.customer);
            Ok(CreditedOrder { order, customer, status, placed_at, total, refunded })
        };
        Ok(page.read(read))
    }

    /// Creates an order with its relations (items that relate it to other entities) in one transaction. If the order is
    /// `OPEN`, the transaction also deducts its products from the stock. It also adds the amount of the order to the
    /// representative's quarter total. `at` is the current time, which the movement of the stock records. `refunds` are
    /// the refunds that were recorded before the order is placed. Returns `RefusedWrite::Creation` if the order
    /// exists. Returns `RefusedWrite::Other` if the stock does not suffice, or if `customer`, `refunds` or the quarter
    /// total changed since it was read.
    pub async fn create_order(
        &self,
        order: &Order,
        lines: &[OrderLine],
        customer: &Customer,
        refunds: Option<&OrderRefunds>,
        at: DateTime<Utc>,
    ) -> Result<WriteOutcome, TableError> {
        let writes = self.transaction().create_entity(order.to_item());
        let mut writes = relations_of_order(order, lines).into_iter().fold(writes, WriteTransaction::create);
        if order.status.has_stock_deducted() {
            writes = move_products_of_order(writes, order, lines, StockEffect::Deducted, order.version, at);
        }
        let amount = order.amount_in_quarter_total();
        let writes = self.add_to_total(writes, order.representative.as_ref(), order.quarter(), amount).await?;
        writes.check_unchanged(customer).check_refunds(order.id, refunds).commit().await
    }

    /// Changes an order from `before` to `after`, together with its relations (items that relate it to other entities),
    /// the stock of its products and the representative's quarter total, in one transaction. The transaction also
    /// writes or checks `records`. If the change restores stock or cancels a backordered order, other orders may be
    /// filled afterwards. So the transaction then also writes the fill task of each product, with `change` as the
    /// identifier of the change. Returns `Refused` if the stored order, the total, or an item of `records` changed
    /// since it was read, or if the stock does not suffice.
    pub async fn change_order(
        &self,
        before: &Order,
        after: &Order,
        lines: &[OrderLine],
        records: OrderChangeRecords<'_>,
        change: Ulid,
    ) -> Result<WriteOutcome, TableError> {
        let (effects, data) = (before.transition_effects(after), keys::status_data(after));
        // The event of this change is computed from the own item of the order, so this item must contain the lines. If
        // an earlier version of Dueday placed the order, the item does not contain them yet.
        let after = &Order { lines: lines.to_vec(), ..after.clone() };
        let mut writes = self.transaction().change(before, after);
        let relation = items::representative_relation(after);
        writes = match before.refunded == after.refunded {
            true => writes.update_relation_data(key_of_item(&relation), &data),
            // The item that relates the order to its representative also contains the refunded amount.
            false => writes.put(relation),
        };
        for line in lines {
            writes = writes.update_relation_data(
                keys::key_of_relation(keys::key_of_order(before.id), keys::key_of_product(&line.product)),
                &data,
            );
        }
        // Put the item that relates the order to its warehouse, instead of updating it: if an earlier version of Dueday
        // filled the order, this item does not exist.
        if let Some(relation) = items::warehouse_relation(after, lines) {
            writes = writes.put(relation);
        }
        // Stock is deducted from the warehouse of `after`, and is restored to the warehouse of `before`.
        let order_with_warehouse = if effects.stock == StockEffect::Deducted { after } else { before };
        let version = before.version.saturating_add(1);
        let at = DateTime::from(change.datetime());
        writes = move_products_of_order(writes, order_with_warehouse, lines, effects.stock, version, at);
        let (representative, quarter) = (before.representative.as_ref(), before.quarter());
        writes = self.add_to_total(writes, representative, quarter, effects.added_to_total).await?;
        if let Some((stored, refunds)) = records.refunds {
            writes = writes.write_refunds(stored, refunds);
        }
        if let Some(customer) = records.customer {
            writes = writes.check_unchanged(customer);
        }
        if before.unblocks_other_orders(after) {
            let targets = lines.iter().map(|line| FillTarget::Product(line.product.clone()));
            writes = targets.fold(writes, |writes, target| writes.request_fill(&target, change));
        }
        let entry = || {
            let entry = ItemChange::new(before.id, before.version.saturating_add(1)).of_account(&before.customer);
            entry.field("status", Some(before.status), Some(after.status))
        };
        writes.save_response(records.request).add_action_entry(ActionKind::ChangeOrder, entry).commit().await
    }

    /// Changes the address of an order from the address of `before` to the address of `after`, in one transaction. If
    /// the order waits for an address, the transaction also writes the fill task of its customer, with `change` as the
    /// identifier of the change. Returns `Refused` if the stored order changed since it was read. Returns `NoAccount`
    /// if the table has a requester and the account does not exist or is being erased.
    pub async fn correct_address(
        &self,
        before: &Order,
        after: &Order,
        change: Ulid,
    ) -> Result<WriteOutcome, TableError> {
        let entry = || ItemChange::new(after.id, after.version).of_account(&after.customer).hidden_field("address");
        let mut writes = self.transaction().change(before, after).check_account(&after.customer);
        if before.waits_for == Some(BackOrderReason::Address) {
            writes = writes.request_fill(&FillTarget::Customer(after.customer.clone()), change);
        }
        writes.add_action_entry(ActionKind::ChangeOrder, entry).commit().await
    }

    /// Saves the response to `request`, which requested the status that `order` already has. Returns `Refused` if the
    /// stored order changed since it was read, or if a response is already saved. Sends one TransactWriteItems request.
    pub async fn save_response(&self, order: &Order, request: &IdempotentRequest) -> Result<WriteOutcome, TableError> {
        self.transaction().check_unchanged(order).save_response(Some(request)).commit().await
    }

    /// Returns the response that is saved under the idempotency key of `request`; `None` if there is none. Sends one
    /// strongly consistent GetItem request.
    pub async fn saved_response(&self, request: &IdempotentRequest) -> Result<Option<IdempotencyKeyReuse>, TableError> {
        self.dynamo.get_stored_response(request).await
    }
}

/// Adds to `writes` the movement of the products of `order`, and the changes of the stock: for each product, the stock
/// in the warehouse of the order, and the total stock. `version` is the version of the order after the change, and `at`
/// is the current time. Adds nothing if `effect` is [`StockEffect::None`], or if the order has no warehouse.
pub(crate) fn move_products_of_order<'a>(
    writes: WriteTransaction<'a>,
    order: &Order,
    lines: &[OrderLine],
    effect: StockEffect,
    version: u64,
    at: DateTime<Utc>,
) -> WriteTransaction<'a> {
    match OrderMovement::of_order_change(order, lines, effect, version, at) {
        Some(movement) => write_movement(writes, &movement),
        None => writes,
    }
}

/// Adds to `writes` a stock movement that an order caused, and the changes of the stock of its products.
pub(crate) fn write_movement<'a>(mut writes: WriteTransaction<'a>, movement: &OrderMovement) -> WriteTransaction<'a> {
    for change in movement.stock_changes().into_iter().filter(|change| change.pieces != 0) {
        let product = keys::key_of_product(&change.product);
        let here = keys::key_of_relation(product.clone(), keys::key_of_warehouse(&change.warehouse));
        let quantity = change.pieces.unsigned_abs();
        writes = match change.pieces < 0 {
            true => writes.subtract_stock(here, quantity),
            false => writes.add_stock(here, quantity),
        };
        writes = writes.change_total_stock(keys::key_of_own_item(product), change.pieces);
    }
    writes.create(movement.to_item())
}
