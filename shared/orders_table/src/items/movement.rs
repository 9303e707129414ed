//! The stored items of stock movements: the records of the changes of the stock.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use ulid::Ulid;

use crate::items::{id_in_partition_key, id_in_sort_key};
use crate::{OrdersTable, keys};
use billing::Label;
use dynamo::{Entity, Instant, Key, TableError};
use orders::{Movement, MovementKind, OrderMovement, OrderMovementLine, ProductId, StockEffect, WarehouseId};

/// The attributes of the item of a movement that a person or a program requested.
#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct MovementItem {
    kind: MovementKind,
    moved_date: Instant,
    warehouse: WarehouseId,
    to_warehouse: Option<WarehouseId>,
    quantity: u64,
    stock_change: i64,
    reason: Option<Label>,
}

impl Entity<OrdersTable> for Movement {
    type Attributes = MovementItem;

    fn key(&self) -> Key {
        keys::key_of_movement(&self.product, self.id)
    }

    fn attributes(&self) -> MovementItem {
        let Self { kind, at, warehouse, to, quantity, stock_change, reason, .. } = self.clone();
        let moved_date = Instant(at);
        MovementItem { kind, moved_date, warehouse, to_warehouse: to, quantity, stock_change, reason }
    }

    fn read(key: Key, read: MovementItem) -> Result<Self, TableError> {
        let MovementItem { kind, moved_date, warehouse, to_warehouse, quantity, stock_change, reason } = read;
        let (id, product) =
            (id_in_sort_key::<Ulid>(&key, keys::MOVEMENT_PREFIX)?, id_in_partition_key(&key, keys::PRODUCT_PREFIX)?);
        Ok(Self { id, product, kind, at: moved_date.0, warehouse, to: to_warehouse, quantity, stock_change, reason })
    }
}

/// The attributes of the item of a movement that an order caused.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct OrderMovementItem {
    effect: StockEffect,
    moved_date: Instant,
    warehouse: WarehouseId,
    lines: Vec<MovementLineItem>,
}

/// The movement of one product of an order, as an element of a list in the item.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct MovementLineItem {
    product: ProductId,
    quantity: u32,
    stock_change: i64,
}

impl Entity<OrdersTable> for OrderMovement {
    type Attributes = OrderMovementItem;

    fn key(&self) -> Key {
        keys::key_of_order_movement(self.order, self.version)
    }

    fn attributes(&self) -> OrderMovementItem {
        let Self { effect, at, warehouse, lines, .. } = self.clone();
        let line = |OrderMovementLine { product, quantity, stock_change }| MovementLineItem {
            product,
            quantity,
            stock_change,
        };
        OrderMovementItem { effect, moved_date: Instant(at), warehouse, lines: lines.into_iter().map(line).collect() }
    }

    fn read(key: Key, read: OrderMovementItem) -> Result<Self, TableError> {
        let OrderMovementItem { effect, moved_date, warehouse, lines } = read;
        let line = |MovementLineItem { product, quantity, stock_change }: MovementLineItem| OrderMovementLine {
            product,
            quantity,
            stock_change,
        };
        let (order, version) =
            (id_in_partition_key(&key, keys::ORDER_PREFIX)?, id_in_sort_key(&key, keys::MOVEMENT_PREFIX)?);
        let lines = lines.into_iter().map(line).collect();
        Ok(Self { order, version, effect, at: moved_date.0, warehouse, lines })
    }
}
