//! The JSON form of orders and of quarter totals in responses.

use billing::{AccountId, Currency, Label};
use chrono::{DateTime, Utc};
use orders::{
    BackOrderReason, EmployeeId, FollowUpReason, Order, OrderId, OrderLine, OrderStatus, Parcel, Quarter, QuarterTotal,
    Shipment, WarehouseId,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::address::AddressView;
use crate::fulfilment::lines::LineView;

/// An order of the products for one paid month of a subscription.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Order)]
pub struct OrderView {
    /// The identifier of the order: the due date of the payment, and the identifier of the subscription; for a follow-up
    /// order also its part number.
    id: OrderId,
    /// The order that this follow-up order was split from or replaces; null for the main order of a paid month.
    follows: Option<OrderId>,
    /// Why this follow-up order exists; null for the main order of a paid month.
    reason: Option<FollowUpReason>,
    /// The number of follow-up orders that were created for the paid month. Only the main order counts them: a follow-up order
    /// has 0.
    #[schema(maximum = 98)]
    follow_ups: u8,
    /// The account that paid.
    customer: AccountId,
    /// The employee to whom the order is credited; null if the customer had no representative.
    representative: Option<EmployeeId>,
    /// The status of the order.
    status: OrderStatus,
    /// The reason why the order is backordered; null in any other status.
    waits_for: Option<BackOrderReason>,
    /// The warehouse from whose stock the products were deducted; null if none were deducted yet.
    warehouse: Option<WarehouseId>,
    /// The address that the order is shipped to: the customer's address when the order was placed, or a later correction.
    /// If the customer had no address then, null until the products are deducted from the stock.
    address: Option<AddressView>,
    /// When the order was shipped; null until then.
    shipped_at: Option<DateTime<Utc>>,
    /// The company that carries the parcel; null if it is not known.
    carrier: Option<Label>,
    /// The number by which the carrier finds the parcel; null if it is not known.
    tracking_number: Option<Label>,
    /// Whether the returned products were not sellable, so that they were not added to the stock again.
    written_off: bool,
    /// The amount of the payment, in minor units of the currency; 0 for a follow-up order.
    #[schema(minimum = 0, maximum = 999_999_999_999_i64)]
    amount: i64,
    /// The part of the payment that was refunded, in minor units. An order whose payment is refunded in full before it is
    /// shipped is cancelled.
    #[schema(minimum = 0)]
    refunded_amount: i64,
    /// The currency of the amounts.
    currency: Currency,
    /// When the payment was made.
    placed_at: DateTime<Utc>,
    /// The version of the order; each change increases it by 1.
    version: u64,
}

/// An order with its lines: the ordered products and their quantities.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OrderWithLines)]
pub struct OrderWithLines {
    #[serde(flatten)]
    #[schema(inline)]
    order: OrderView,
    /// The products of the order and their quantities.
    lines: Vec<LineView>,
}

/// The total amount of the orders that are credited to a representative in a quarter, in one currency.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = QuarterTotal)]
pub struct QuarterTotalView {
    /// The employee to whom the orders are credited.
    representative: EmployeeId,
    /// The quarter, in UTC.
    quarter: Quarter,
    /// The sum of all orders that are neither cancelled nor returned, without refunds, in minor units of the currency.
    #[schema(minimum = 0)]
    amount: i64,
    /// The currency of the amount.
    currency: Currency,
}

impl OrderWithLines {
    /// Creates the view of an order with its lines.
    pub fn new(order: Order, lines: Vec<OrderLine>) -> Self {
        Self { order: order.into(), lines: lines.into_iter().map(LineView::from).collect() }
    }
}

impl From<Order> for OrderView {
    fn from(order: Order) -> Self {
        let (shipped_at, parcel) = match order.shipment {
            Some(Shipment { shipped_at, parcel }) => (Some(shipped_at), parcel),
            None => (None, Parcel::default()),
        };
        Self {
            id: order.id,
            follows: order.follow_up.map(|follow_up| follow_up.follows),
            reason: order.follow_up.map(|follow_up| follow_up.reason),
            follow_ups: order.follow_ups,
            customer: order.customer,
            representative: order.representative,
            status: order.status,
            waits_for: order.waits_for,
            warehouse: order.warehouse,
            address: order.address.map(AddressView::from),
            shipped_at,
            carrier: parcel.carrier,
            tracking_number: parcel.tracking_number,
            written_off: order.is_written_off,
            amount: order.total.minor(),
            refunded_amount: order.refunded.minor(),
            currency: order.total.currency(),
            placed_at: order.placed_at,
            version: order.version,
        }
    }
}

impl From<QuarterTotal> for QuarterTotalView {
    fn from(total: QuarterTotal) -> Self {
        let (amount, currency) = (total.total.minor(), total.total.currency());
        Self { representative: total.representative, quarter: total.quarter, amount, currency }
    }
}
