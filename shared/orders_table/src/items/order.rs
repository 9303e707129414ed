//! The stored items of orders, of the refunds of orders, of customers, and of the relations from orders to
//! representatives, products and warehouses. A relation is an item that relates two entities.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::items::{DATA, id_in_partition_key, id_in_sort_key, new_item};
use crate::{OrdersTable, keys};
use billing::{AccountId, Currency, Label, Money};
use dynamo::{Entity, Instant, Item, Key, TableError, from_item, key_of_item};
use orders::{
    BackOrderReason, Customer, EmployeeId, FollowUp, FollowUpReason, Order, OrderId, OrderLine, OrderRefunds,
    OrderStatus, Parcel, PhoneNumber, PlaceId, ProductId, RecordedRefund, Shipment, ShippingAddress, WarehouseId,
};

/// The attributes of the own item of an order.
#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct OrderItem {
    status: OrderStatus,
    waits_for: Option<BackOrderReason>,
    missing: Option<Vec<OrderLineItem>>,
    lines: Option<Vec<OrderLineItem>>,
    representative: Option<EmployeeId>,
    warehouse: Option<WarehouseId>,
    shipping_address: Option<ShippingAddressItem>,
    shipped_date: Option<Instant>,
    carrier: Option<Label>,
    tracking_number: Option<Label>,
    written_off: Option<bool>,
    follows: Option<OrderId>,
    reason: Option<FollowUpReason>,
    follow_ups: Option<u8>,
    payment_amount: i64,
    refunded_amount: Option<i64>,
    currency: Currency,
    placed_date: Instant,
    bucket: u32,
    version: u64,
}

dynamo::attributes!(OrderItem { BUCKET = bucket, });

impl Entity<OrdersTable> for Order {
    type Attributes = OrderItem;

    fn key(&self) -> Key {
        keys::key_of_relation(keys::key_of_order(self.id), keys::key_of_customer(&self.customer))
    }

    fn attributes(&self) -> OrderItem {
        OrderItem {
            status: self.status,
            waits_for: self.waits_for,
            missing: order_line_items_if_any(&self.missing),
            lines: order_line_items_if_any(&self.lines),
            representative: self.representative.clone(),
            warehouse: self.warehouse.clone(),
            shipping_address: self.address.clone().map(ShippingAddressItem::from),
            shipped_date: self.shipment.as_ref().map(|shipment| Instant(shipment.shipped_at)),
            carrier: self.shipment.as_ref().and_then(|shipment| shipment.parcel.carrier.clone()),
            tracking_number: self.shipment.as_ref().and_then(|shipment| shipment.parcel.tracking_number.clone()),
            written_off: self.is_written_off.then_some(true),
            follows: self.follow_up.map(|follow_up| follow_up.follows),
            reason: self.follow_up.map(|follow_up| follow_up.reason),
            follow_ups: Some(self.follow_ups).filter(|count| *count != 0),
            payment_amount: self.total.minor(),
            refunded_amount: Some(self.refunded.minor()).filter(|minor| *minor != 0),
            currency: self.total.currency(),
            placed_date: Instant(self.placed_at),
            bucket: self.bucket,
            version: self.version,
        }
    }

    fn read(key: Key, read: OrderItem) -> Result<Self, TableError> {
        let parcel = Parcel { carrier: read.carrier, tracking_number: read.tracking_number };
        Ok(Self {
            id: id_in_partition_key(&key, keys::ORDER_PREFIX)?,
            follow_up: read.follows.zip(read.reason).map(|(follows, reason)| FollowUp { follows, reason }),
            follow_ups: read.follow_ups.unwrap_or_default(),
            customer: id_in_sort_key(&key, keys::CUSTOMER_PREFIX)?,
            representative: read.representative,
            status: read.status,
            waits_for: read.waits_for,
            missing: order_lines_from_items(read.missing.unwrap_or_default()),
            lines: order_lines_from_items(read.lines.unwrap_or_default()),
            warehouse: read.warehouse,
            address: read.shipping_address.map(ShippingAddress::from),
            shipment: read.shipped_date.map(|Instant(shipped_at)| Shipment { shipped_at, parcel }),
            is_written_off: read.written_off.unwrap_or_default(),
            total: Money::new(read.payment_amount, read.currency),
            refunded: Money::new(read.refunded_amount.unwrap_or_default(), read.currency),
            placed_at: read.placed_date.0,
            bucket: read.bucket,
            version: read.version,
        })
    }

    fn index_key(&self) -> Option<(&'static str, String)> {
        Some((DATA, keys::status_data(self)))
    }
}

/// The attributes of the item with the recorded refunds of an order's payment.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct OrderRefundsItem {
    refunds: Vec<RecordedRefundItem>,
    version: u64,
}

/// A recorded refund, as an element of a list in the item.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RecordedRefundItem {
    id: String,
    amount: i64,
    has_failed: bool,
}

impl Entity<OrdersTable> for OrderRefunds {
    type Attributes = OrderRefundsItem;

    fn key(&self) -> Key {
        keys::key_of_refunds(self.order)
    }

    fn attributes(&self) -> OrderRefundsItem {
        let item = |RecordedRefund { id, minor, has_failed }| RecordedRefundItem { id, amount: minor, has_failed };
        OrderRefundsItem { refunds: self.refunds.iter().cloned().map(item).collect(), version: self.version }
    }

    fn read(key: Key, read: OrderRefundsItem) -> Result<Self, TableError> {
        let refund = |RecordedRefundItem { id, amount, has_failed }| RecordedRefund { id, minor: amount, has_failed };
        let refunds = read.refunds.into_iter().map(refund).collect();
        Ok(Self { order: id_in_partition_key(&key, keys::ORDER_PREFIX)?, refunds, version: read.version })
    }
}

/// The attributes of the relation (the item that relates an order to its representative).
#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct RepresentativeRelationItem {
    pub customer: AccountId,
    pub payment_amount: i64,
    /// The part of the payment that was refunded, in minor units; absent if nothing was refunded.
    pub refunded_amount: Option<i64>,
    pub currency: Currency,
}

/// Returns the relation from an order to its representative: the item by which GSI-1 finds the orders of the
/// representative.
pub(crate) fn representative_relation(order: &Order) -> Item {
    let key =
        keys::key_of_relation(keys::key_of_order(order.id), keys::key_of_representative(order.representative.as_ref()));
    let Order { customer, total, refunded, .. } = order.clone();
    let item = RepresentativeRelationItem {
        customer,
        payment_amount: total.minor(),
        refunded_amount: Some(refunded.minor()).filter(|minor| *minor != 0),
        currency: total.currency(),
    };
    new_item(key, Some(keys::status_data(order)), &item)
}

/// The attributes of the relation from an order or a SKU to one of its products: the number of pieces.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct OrderLineQuantityItem {
    pub quantity: u32,
}

/// Returns the relation from an order to one of its products: the item by which GSI-1 finds the orders of the product.
pub(crate) fn product_relation(order: &Order, line: &OrderLine) -> Item {
    let key = keys::key_of_relation(keys::key_of_order(order.id), keys::key_of_product(&line.product));
    new_item(key, Some(keys::status_data(order)), &OrderLineQuantityItem { quantity: line.quantity })
}

/// Reads an order line (product and quantity) from a relation: the item that relates an order or a SKU to a product.
pub(crate) fn read_order_line(item: &Item) -> Result<OrderLine, TableError> {
    let OrderLineQuantityItem { quantity } = from_item(item)?;
    Ok(OrderLine { product: id_in_sort_key(&key_of_item(item), keys::PRODUCT_PREFIX)?, quantity })
}

/// The attributes of the relation from an order to the warehouse that ships it: the item by which GSI-1 finds the
/// orders of the warehouse. The relation contains the lines of the order, so that the list of the orders of a warehouse
/// needs no query for each order.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct WarehouseRelationItem {
    customer: AccountId,
    lines: Vec<OrderLineItem>,
}

/// An order line, as an element of a list in an item.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct OrderLineItem {
    product: ProductId,
    quantity: u32,
}

/// Returns the stored form of the order lines `lines`.
fn order_line_items(lines: &[OrderLine]) -> Vec<OrderLineItem> {
    let item = |line: &OrderLine| OrderLineItem { product: line.product.clone(), quantity: line.quantity };
    lines.iter().map(item).collect()
}

/// Returns the stored form of `lines`; `None` if there are no lines, so that the item has no attribute for them.
fn order_line_items_if_any(lines: &[OrderLine]) -> Option<Vec<OrderLineItem>> {
    (!lines.is_empty()).then(|| order_line_items(lines))
}

/// Returns the order lines from their stored form.
fn order_lines_from_items(items: Vec<OrderLineItem>) -> Vec<OrderLine> {
    items.into_iter().map(|OrderLineItem { product, quantity }| OrderLine { product, quantity }).collect()
}

/// Returns the relation (item) from an order to the warehouse that ships it; `None` if no warehouse ships the order
/// yet.
pub(crate) fn warehouse_relation(order: &Order, lines: &[OrderLine]) -> Option<Item> {
    let key = keys::key_of_relation(keys::key_of_order(order.id), keys::key_of_warehouse(order.warehouse.as_ref()?));
    let relation = WarehouseRelationItem { customer: order.customer.clone(), lines: order_line_items(lines) };
    Some(new_item(key, Some(keys::status_data(order)), &relation))
}

/// Reads a relation: the item that relates an order to its warehouse. Returns the key of the order's own item, and the
/// lines of the order.
pub(crate) fn read_warehouse_relation(item: &Item) -> Result<(Key, Vec<OrderLine>), TableError> {
    let relation: WarehouseRelationItem = from_item(item)?;
    let order = keys::key_of_order(order_id_in(item)?);
    Ok((
        keys::key_of_relation(order, keys::key_of_customer(&relation.customer)),
        order_lines_from_items(relation.lines),
    ))
}

/// A shipping address, as a map in the item of an order or of a customer. Items of earlier versions lack the optional
/// attributes.
#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ShippingAddressItem {
    name: Label,
    street: Label,
    line2: Option<Label>,
    postal_code: Label,
    city: Label,
    state: Option<Label>,
    country: PlaceId,
    region: PlaceId,
    phone: Option<PhoneNumber>,
}

impl From<ShippingAddress> for ShippingAddressItem {
    fn from(address: ShippingAddress) -> Self {
        let ShippingAddress { name, street, line2, postal_code, city, state, country, region, phone } = address;
        Self { name, street, line2, postal_code, city, state, country, region, phone }
    }
}

impl From<ShippingAddressItem> for ShippingAddress {
    fn from(address: ShippingAddressItem) -> Self {
        let ShippingAddressItem { name, street, line2, postal_code, city, state, country, region, phone } = address;
        Self { name, street, line2, postal_code, city, state, country, region, phone }
    }
}

/// The attributes of the item of a customer.
#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct CustomerItem {
    representative: Option<EmployeeId>,
    shipping_address: Option<ShippingAddressItem>,
    created_date: Instant,
    version: u64,
}

impl Entity<OrdersTable> for Customer {
    type Attributes = CustomerItem;

    fn key(&self) -> Key {
        keys::key_of_own_item(keys::key_of_customer(&self.account))
    }

    fn attributes(&self) -> CustomerItem {
        CustomerItem {
            representative: self.representative.clone(),
            shipping_address: self.address.clone().map(ShippingAddressItem::from),
            created_date: Instant(self.created_at),
            version: self.version,
        }
    }

    fn read(key: Key, read: CustomerItem) -> Result<Self, TableError> {
        Ok(Self {
            account: id_in_partition_key(&key, keys::CUSTOMER_PREFIX)?,
            representative: read.representative,
            address: read.shipping_address.map(ShippingAddress::from),
            created_at: read.created_date.0,
            version: read.version,
        })
    }
}

/// Returns the account of the customer from the partition key of `item`, which relates the customer to another entity.
pub(crate) fn customer_id_in(item: &Item) -> Result<AccountId, TableError> {
    id_in_partition_key(&key_of_item(item), keys::CUSTOMER_PREFIX)
}

/// Returns the id of the order from the partition key of `item`, which relates the order to another entity.
pub(crate) fn order_id_in(item: &Item) -> Result<OrderId, TableError> {
    id_in_partition_key(&key_of_item(item), keys::ORDER_PREFIX)
}
