//! The data of the events of an order. This crate contains only the types of this data: the order desk computes the
//! events from the changes of its own table.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};

use crate::values::contact_data::Label;
use crate::values::ids::{AccountId, SubscriptionId};
use crate::values::money::Money;

/// The data of the events of an order: the state of the order after the change, without the customer's name and
/// address.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = OrderData))]
pub struct OrderEventData {
    /// The account of the customer.
    pub account: AccountId,
    /// The id of the order.
    pub order: String,
    pub subscription: SubscriptionId,
    /// The due date of the payment for which the order was placed.
    pub due_on: NaiveDate,
    /// The id of the order that a follow-up order was split from or replaces; `None` for the main order of a paid
    /// month.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub follows: Option<String>,
    /// Why a follow-up order exists: `remainder` or `replacement`; `None` for the main order of a paid month.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub reason: Option<String>,
    /// The version of the order after the change. Of two events of an order, the event with the higher version is the
    /// later one. Changes without an event have versions too, so versions have gaps.
    pub version: u64,
    /// The status of the order, such as `OPEN`.
    pub status: String,
    /// The amount of the payment; 0 for a follow-up order.
    #[serde(flatten)]
    pub amount: Money,
    /// The refunded part of the amount, in minor units of the currency.
    pub refunded_amount: i64,
    /// When the payment was made, which counts as the time at which the order was placed.
    pub placed_at: DateTime<Utc>,
    /// The products and their quantities.
    pub lines: Vec<OrderLineEventData>,
    /// Why the order is backordered: `address` or `stock`; `None` in any other status.
    pub waits_for: Option<String>,
    /// The missing products of an order that waits for stock: each product of which no warehouse had enough when the
    /// order began to wait. The quantity is the number of pieces that the warehouse with the largest stock lacked.
    /// Empty if the order does not wait for stock, or if each product is in stock, but not all of them in the same
    /// warehouse.
    pub missing: Vec<OrderLineEventData>,
    /// The warehouse that ships the order; `None` until the products are deducted from the stock of a warehouse.
    pub warehouse: Option<String>,
    /// When the order was shipped; `None` if the order was not shipped yet.
    pub shipped_at: Option<DateTime<Utc>>,
    /// Whether the order was returned with products that are not sellable, so that the stock was not restored.
    pub written_off: bool,
    /// The name of the company that carries the parcel. Only the event `order.shipped` contains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub carrier: Option<Label>,
    /// The number by which the carrier finds the parcel. Only the event `order.shipped` contains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub tracking_number: Option<Label>,
}

/// A product and a number of pieces.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = OrderLineData))]
pub struct OrderLineEventData {
    /// The id of the product.
    pub product: String,
    pub quantity: u32,
}
