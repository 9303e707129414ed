//! Stored items of orders, of the edges from orders to representatives and products, and of customers.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::super::{OrdersTable, keys};
use super::{DATA, id_in_pk, id_in_sk, item_with};
use crate::{
    BackOrderReason, Customer, EmployeeId, Order, OrderId, OrderLine, OrderStatus, PlaceId, ShippingAddress,
    WarehouseId,
};
use billing::{AccountId, Currency, Label, Money};
use dynamo::{Entity, Instant, Item, Key, TableError, from_item, key_of};

#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct OrderItem {
    status: OrderStatus,
    waits_for: Option<BackOrderReason>,
    representative: Option<EmployeeId>,
    warehouse: Option<WarehouseId>,
    payment_amount: i64,
    currency: Currency,
    placed_date: Instant,
    bucket: u32,
    version: u64,
}

dynamo::attributes!(OrderItem { BUCKET = bucket, });

impl Entity<OrdersTable> for Order {
    type Attributes = OrderItem;

    fn key(&self) -> Key {
        keys::key_of_edge(keys::key_of_order(self.id), keys::key_of_customer(&self.customer))
    }

    fn attributes(&self) -> OrderItem {
        OrderItem {
            status: self.status,
            waits_for: self.waits_for,
            representative: self.representative.clone(),
            warehouse: self.warehouse.clone(),
            payment_amount: self.total.minor(),
            currency: self.total.currency(),
            placed_date: Instant(self.placed_at),
            bucket: self.bucket,
            version: self.version,
        }
    }

    fn read(key: Key, read: OrderItem) -> Result<Self, TableError> {
        Ok(Self {
            id: id_in_pk(&key, keys::ORDERS)?,
            customer: id_in_sk(&key, keys::CUSTOMERS)?,
            representative: read.representative,
            status: read.status,
            waits_for: read.waits_for,
            warehouse: read.warehouse,
            total: Money::new(read.payment_amount, read.currency),
            placed_at: read.placed_date.0,
            bucket: read.bucket,
            version: read.version,
        })
    }

    fn index_key(&self) -> Option<(&'static str, String)> {
        Some((DATA, keys::status_data(self)))
    }
}

/// The attributes of the edge from an order to its representative.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(in crate::table) struct RepresentativeEdgeItem {
    pub customer: AccountId,
    pub payment_amount: i64,
    pub currency: Currency,
}

/// Returns the edge from an order to its representative.
pub(in crate::table) fn representative_edge(order: &Order) -> Item {
    let key =
        keys::key_of_edge(keys::key_of_order(order.id), keys::key_of_representative(order.representative.as_ref()));
    let Order { customer, total, .. } = order.clone();
    let item = RepresentativeEdgeItem { customer, payment_amount: total.minor(), currency: total.currency() };
    item_with(key, Some(keys::status_data(order)), &item)
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(in crate::table) struct QuantityItem {
    pub quantity: u32,
}

/// Returns the edge from an order to one of its products.
pub(in crate::table) fn product_edge(order: &Order, line: &OrderLine) -> Item {
    let key = keys::key_of_edge(keys::key_of_order(order.id), keys::key_of_product(&line.product));
    item_with(key, Some(keys::status_data(order)), &QuantityItem { quantity: line.quantity })
}

/// Reads a line from the edge of an order or a SKU to a product.
pub(in crate::table) fn read_line(item: &Item) -> Result<OrderLine, TableError> {
    let QuantityItem { quantity } = from_item(item)?;
    Ok(OrderLine { product: id_in_sk(&key_of(item), keys::PRODUCTS)?, quantity })
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AddressItem {
    name: Label,
    street: Label,
    postal_code: Label,
    city: Label,
    country: PlaceId,
    region: PlaceId,
}

#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct CustomerItem {
    representative: Option<EmployeeId>,
    shipping_address: Option<AddressItem>,
    created_date: Instant,
    version: u64,
}

impl Entity<OrdersTable> for Customer {
    type Attributes = CustomerItem;

    fn key(&self) -> Key {
        keys::key_of_own_item(keys::key_of_customer(&self.account))
    }

    fn attributes(&self) -> CustomerItem {
        let address = self.address.clone().map(|address| {
            let ShippingAddress { name, street, postal_code, city, country, region } = address;
            AddressItem { name, street, postal_code, city, country, region }
        });
        CustomerItem {
            representative: self.representative.clone(),
            shipping_address: address,
            created_date: Instant(self.created_at),
            version: self.version,
        }
    }

    fn read(key: Key, read: CustomerItem) -> Result<Self, TableError> {
        let address = read.shipping_address.map(|address| {
            let AddressItem { name, street, postal_code, city, country, region } = address;
            ShippingAddress { name, street, postal_code, city, country, region }
        });
        Ok(Self {
            account: id_in_pk(&key, keys::CUSTOMERS)?,
            representative: read.representative,
            address,
            created_at: read.created_date.0,
            version: read.version,
        })
    }
}

/// Returns the account of the customer in the partition key of an edge.
pub(in crate::table) fn customer_id_in(item: &Item) -> Result<AccountId, TableError> {
    id_in_pk(&key_of(item), keys::CUSTOMERS)
}

/// Returns the id of the order in the partition key of an edge.
pub(in crate::table) fn order_id_in(item: &Item) -> Result<OrderId, TableError> {
    id_in_pk(&key_of(item), keys::ORDERS)
}
