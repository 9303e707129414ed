//! Changes of the stock that people request, and the movements, which are the records of these changes. A change of the
//! stock and its movement are written in one transaction. (The movements of orders are written with the orders.)

use ulid::Ulid;

use crate::items::{EarlierDeliveryItem, StockItem, new_item};
use crate::write_transaction::{WriteOutcome, WriteTransaction};
use crate::{OrdersTable, keys};
use billing::{ActionKind, ItemChange};
use dynamo::{Cursor, Entity as _, Key, Page, Paging, PrefixQuery, TableError, from_item};
use orders::{FillTarget, Movement, MovementKind, OrderId, OrderMovement, ProductId, StockChange, WarehouseId};

/// The stored stock from which a movement was computed, in pieces. `None` if the product was never in the warehouse.
/// The transaction of the movement checks that the stock is unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StockBefore {
    /// The stock in the warehouse of the movement.
    pub in_warehouse: Option<u64>,
    /// The stock in the warehouse that gets the pieces of a transfer.
    pub in_target_warehouse: Option<u64>,
}

/// The keys of the items with the stock of a product.
pub(crate) struct StockKeys {
    /// The key of the item with the total stock.
    pub total: Key,
    /// The key of the item with the stock in one warehouse.
    pub in_warehouse: Key,
}

/// The character in the cursor of a list of movements that separates the id of the product or order from the sort key.
const CURSOR_SEPARATOR: char = ' ';

/// Converts the cursor of a query into the cursor of the list of the movements of `owner`, a product or an order. The
/// cursor of the list also contains the id of `owner`, so that other lists reject it.
fn movement_list_cursor(owner: impl std::fmt::Display, of_query: &Cursor) -> Cursor {
    Cursor::after(format!("{owner}{CURSOR_SEPARATOR}{}", of_query.as_str()))
}

/// Converts the cursor of a list of movements into the cursor of the query that reads the list: only the sort key.
fn movement_query_cursor(cursor: &Cursor) -> Cursor {
    let (_, sk) = cursor.as_str().split_once(CURSOR_SEPARATOR).unwrap_or_default();
    Cursor::after(sk.to_owned())
}

/// Returns the number of pieces after a change by `pieces`. `before` is `None` for a stock that does not exist yet.
fn stock_after_movement(before: Option<u64>, pieces: i64) -> u64 {
    before.unwrap_or_default().saturating_add_signed(pieces)
}

/// Returns the kind of the entry of the action log for a movement.
fn action_kind_of_movement(kind: MovementKind) -> ActionKind {
    match kind {
        MovementKind::Delivery | MovementKind::InitialStock => ActionKind::ReceiveStock,
        MovementKind::Count | MovementKind::Opening => ActionKind::CountStock,
        MovementKind::WriteOff => ActionKind::WriteOffStock,
        MovementKind::Transfer => ActionKind::TransferStock,
    }
}

/// Returns the entry of the action log for a movement. `before` is the stock before the movement.
fn movement_action_entry(movement: &Movement, before: StockBefore) -> ItemChange {
    let entry = ItemChange::new(movement.id, 1)
        .field("product", None, Some(&movement.product))
        .field("warehouse", None, Some(&movement.warehouse))
        .field("to_warehouse", None, movement.to.as_ref());
    let stock =
        |before: Option<u64>, pieces| (Some(before.unwrap_or_default()), Some(stock_after_movement(before, pieces)));
    let (stock_before, after) = stock(before.in_warehouse, movement.stock_change);
    let entry = entry.field("stock", stock_before, after);
    let Some(_) = movement.to else { return entry };
    let (there_before, there_after) = stock(before.in_target_warehouse, movement.stock_change.saturating_neg());
    entry.field("to_stock", there_before, there_after)
}

impl OrdersTable {
    /// Adds the delivery `delivery` to the stock of its warehouse, and records it as a movement, in one transaction.
    /// `is_in_stock` is whether a stock of the product in the warehouse is already stored. The transaction also writes a
    /// fill task: a request to try again to fill the backordered orders of the product. `change` is the new identifier of
    /// this request. Returns `RefusedWrite::Creation` if the identifier of the delivery was used before. Returns
    /// `RefusedWrite::Other` if the product does not exist, or if `is_in_stock` is wrong by now.
    pub async fn add_stock(
        &self,
        delivery: &Movement,
        is_in_stock: bool,
        change: Ulid,
    ) -> Result<WriteOutcome, TableError> {
        let Movement { product, warehouse, quantity, .. } = delivery;
        let keys_of_stock = self.stock_keys(product, warehouse);
        let writes = self
            .transaction()
            .create_entity(delivery.to_item())
            .check_entity_absent(keys::key_of_delivery_record(product, delivery.id))
            .change_total_stock(keys_of_stock.total, delivery.stock_change);
        let writes = match is_in_stock {
            true => writes.add_stock(keys_of_stock.in_warehouse, *quantity),
            false => writes.set_stock(keys_of_stock.in_warehouse, None, *quantity),
        };
        let entry = || {
            let entry = ItemChange::new(delivery.id, 1).field("product", None, Some(product));
            entry.field("warehouse", None, Some(warehouse)).field("quantity", None, Some(quantity))
        };
        writes
            .request_fill(&FillTarget::Product(product.clone()), change)
            .add_action_entry(ActionKind::ReceiveStock, entry)
            .commit()
            .await
    }

    /// Returns whether an earlier version of Dueday has recorded the delivery with this quantity and warehouse. Sends one
    /// GetItem request.
    pub async fn is_recorded_by_earlier_version(&self, delivery: &Movement) -> Result<bool, TableError> {
        let item = self.dynamo.get(keys::key_of_delivery_record(&delivery.product, delivery.id)).await?;
        let counted = item.map(|item| from_item::<EarlierDeliveryItem>(&item)).transpose()?;
        let is_same_warehouse = |counted: &EarlierDeliveryItem| {
            counted.warehouse.as_ref().is_none_or(|counted| *counted == delivery.warehouse)
        };
        Ok(counted.is_some_and(|counted| counted.stock == delivery.quantity && is_same_warehouse(&counted)))
    }

    /// Sets the initial stock of a product in a warehouse, records it as the movement `initial`, and writes the fill
    /// task of the product, in one transaction. `change` is the identifier of the change in the fill task. Returns
    /// `Refused` if a stock of the product in this warehouse is stored already, or if the product does not exist.
    pub async fn set_initial_stock(&self, initial: &Movement, change: Ulid) -> Result<WriteOutcome, TableError> {
        let StockKeys { total, in_warehouse } = self.stock_keys(&initial.product, &initial.warehouse);
        self.transaction()
            .change_total_stock(total, initial.stock_change)
            .create(new_item(in_warehouse, None, &StockItem::new(initial.quantity)))
            .create(initial.to_item())
            .request_fill(&FillTarget::Product(initial.product.clone()), change)
            .commit()
            .await
    }

    /// Changes the stock by `movement`, which was computed from the stock `before`, and records the movement, in one
    /// transaction. If the stock of a warehouse grows, the transaction also writes a fill task: a request to try again to
    /// fill the backordered orders of the product. `change` is the new identifier of this request. Returns `Refused` if a movement with this id is recorded, if the
    /// product does not exist, or if the stock is no longer `before`.
    pub async fn move_stock(
        &self,
        movement: &Movement,
        before: StockBefore,
        change: Ulid,
    ) -> Result<WriteOutcome, TableError> {
        let changes = movement.stock_changes();
        let mut writes = self.transaction().create(movement.to_item());
        for (StockChange { product, warehouse, pieces }, before) in
            changes.iter().zip([before.in_warehouse, before.in_target_warehouse])
        {
            let key = self.stock_keys(product, warehouse).in_warehouse;
            writes = writes.set_stock(key, before, stock_after_movement(before, *pieces));
        }
        if movement.to.is_none() {
            let key = self.stock_keys(&movement.product, &movement.warehouse).total;
            writes = writes.change_total_stock(key, movement.stock_change);
        }
        if changes.iter().any(|change| change.pieces > 0) {
            writes = writes.request_fill(&FillTarget::Product(movement.product.clone()), change);
        }
        self.commit_with_action_entry(writes, movement, before).await
    }

    /// Adds the entry of the action log for `movement` to `writes`, and commits the transaction. `before` is the stock
    /// before the movement.
    async fn commit_with_action_entry(
        &self,
        writes: WriteTransaction<'_>,
        movement: &Movement,
        before: StockBefore,
    ) -> Result<WriteOutcome, TableError> {
        let kind = action_kind_of_movement(movement.kind);
        writes
            .add_action_entry_with_reason(kind, movement.reason.as_ref(), || movement_action_entry(movement, before))
            .commit()
            .await
    }

    /// Returns the movement `id` of a product, or `None` if it does not exist. Sends one strongly consistent GetItem
    /// request.
    pub async fn get_movement(&self, product: &ProductId, id: Ulid) -> Result<Option<Movement>, TableError> {
        let item = self.dynamo.get(keys::key_of_movement(product, id)).await?;
        item.map(|item| Movement::from_item(&item)).transpose()
    }

    /// Returns the movements of a product that people and programs requested, newest first. The movements of orders are not
    /// in the list: they are stored with the orders. Queries the table with `PK = product`, in descending order.
    pub async fn movements_of_product(
        &self,
        product: &ProductId,
        paging: &Paging,
    ) -> Result<Page<Movement>, TableError> {
        let list = PrefixQuery::new(keys::key_of_product(product), keys::MOVEMENT_PREFIX).descending();
        let paging = Paging { after: paging.after.as_ref().map(movement_query_cursor), limit: paging.limit };
        let mut page = self.dynamo.list_items(&list, &paging).await?.read(|item| Movement::from_item(&item));
        page.next = page.next.map(|cursor| movement_list_cursor(product, &cursor));
        Ok(page)
    }

    /// Parses a cursor of the list of the movements of `product`. Returns `None` if `text` is not a cursor of this list.
    pub fn cursor_of_movements(product: &ProductId, text: String) -> Option<Cursor> {
        let (of, sk) = text.split_once(CURSOR_SEPARATOR)?;
        let is_movement = sk.strip_prefix(keys::MOVEMENT_PREFIX).is_some_and(|id| id.parse::<Ulid>().is_ok());
        (of == product.as_str() && is_movement).then(|| Cursor::after(text))
    }

    /// Returns the movements of the products of an order, newest first. Queries the table with `PK = order`, in descending
    /// order.
    pub async fn movements_of_order(&self, order: OrderId, paging: &Paging) -> Result<Page<OrderMovement>, TableError> {
        let list = PrefixQuery::new(keys::key_of_order(order), keys::MOVEMENT_PREFIX).descending();
        let paging = Paging { after: paging.after.as_ref().map(movement_query_cursor), limit: paging.limit };
        let mut page = self.dynamo.list_items(&list, &paging).await?.read(|item| OrderMovement::from_item(&item));
        page.next = page.next.map(|cursor| movement_list_cursor(order, &cursor));
        Ok(page)
    }

    /// Parses a cursor of the list of the movements of `order`. Returns `None` if `text` is not a cursor of this list.
    pub fn cursor_of_order_movements(order: OrderId, text: String) -> Option<Cursor> {
        let (of, sk) = text.split_once(CURSOR_SEPARATOR)?;
        let is_movement = sk.strip_prefix(keys::MOVEMENT_PREFIX).is_some_and(|version| version.parse::<u64>().is_ok());
        (of == order.to_string() && is_movement).then(|| Cursor::after(text))
    }

    /// Returns the keys of the items with the total stock of a product, and with its stock in a warehouse.
    pub(crate) fn stock_keys(&self, product: &ProductId, warehouse: &WarehouseId) -> StockKeys {
        let partition = keys::key_of_product(product);
        StockKeys {
            total: keys::key_of_own_item(partition.clone()),
            in_warehouse: keys::key_of_relation(partition, keys::key_of_warehouse(warehouse)),
        }
    }
}
