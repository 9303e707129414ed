//! The events of an order, such as `order.shipped`. They are computed from the item of the order before and after a
//! change, which the stream of the table contains. So if the events of a change are computed again, they are the same
//! events with the same ids.

use billing::{Event, EventData, OrderEventData, OrderLineEventData};
use chrono::{DateTime, Utc};

use crate::fulfilment::order::{Order, OrderLine, Parcel, Shipment};
use crate::fulfilment::order_status::OrderStatus;

/// The constructor of an [`EventData`] variant with the data of an order, such as [`EventData::OrderShipped`].
type OrderEventConstructor = fn(OrderEventData) -> EventData;

/// Returns the events of the change of an order from `old` to `new` at the time `at`. `old` is `None` for a new order:
/// then the events are `order.placed` and the event of its status. A new status has one event, except that `PICKED` has
/// none. If the products change, or the reason why a backordered order waits, the event of the current status is
/// returned again. Other changes, such as a corrected address, have no event.
pub fn order_events(old: Option<&Order>, new: &Order, at: DateTime<Utc>) -> Vec<Event> {
    let has_new_status = old.is_none_or(|old| {
        // The item of an order that an earlier version of Dueday placed can have no lines.
        let has_other_lines = !old.lines.is_empty() && old.lines != new.lines;
        (old.status, old.waits_for) != (new.status, new.waits_for) || has_other_lines
    });
    let placed = old.is_none().then_some(EventData::OrderPlaced as OrderEventConstructor);
    let of_status = if has_new_status { event_constructor_of_status(new.status) } else { None };
    placed.into_iter().chain(of_status).map(|constructor| new_order_event(constructor, new, at)).collect()
}

/// Returns the constructor of the event of an order that gets the status `status`; `None` if there is no such event.
fn event_constructor_of_status(status: OrderStatus) -> Option<OrderEventConstructor> {
    match status {
        OrderStatus::BackOrdered => Some(EventData::OrderBackordered),
        OrderStatus::Open => Some(EventData::OrderFilled),
        OrderStatus::Picked => None,
        OrderStatus::Shipped => Some(EventData::OrderShipped),
        OrderStatus::Delivered => Some(EventData::OrderDelivered),
        OrderStatus::Cancelled => Some(EventData::OrderCancelled),
        OrderStatus::Returned => Some(EventData::OrderReturned),
    }
}

/// Creates an event of an order. The id of the event contains the version of the order, because an order can have the event
/// `order.backordered` more than once.
fn new_order_event(constructor: OrderEventConstructor, order: &Order, at: DateTime<Utc>) -> Event {
    let mut data = order_event_data(order);
    // The carrier shows the recipient of a parcel to everyone who knows the tracking number, so only the event
    // `order.shipped` contains this number.
    if order.status == OrderStatus::Shipped
        && let Some(Shipment { parcel: Parcel { carrier, tracking_number }, .. }) = &order.shipment
    {
        (data.carrier, data.tracking_number) = (carrier.clone(), tracking_number.clone());
    }
    let data = constructor(data);
    let id = format!("{}.{}.{}", order.id, order.version, data.event_type());
    let at = match (&order.shipment, order.status) {
        (Some(shipment), OrderStatus::Shipped) => shipment.shipped_at,
        _ => at,
    };
    Event { id, subject: order.customer.to_string(), at, data }
}

/// Returns the data of the events of `order`, without the carrier and the tracking number of the parcel.
fn order_event_data(order: &Order) -> OrderEventData {
    let lines = |lines: &[OrderLine]| {
        let line = |line: &OrderLine| OrderLineEventData { product: line.product.to_string(), quantity: line.quantity };
        lines.iter().map(line).collect()
    };
    OrderEventData {
        account: order.customer.clone(),
        order: order.id.to_string(),
        subscription: order.id.subscription,
        due_on: order.id.due_on,
        follows: order.follow_up.map(|follow_up| follow_up.follows.to_string()),
        reason: order.follow_up.map(|follow_up| follow_up.reason.to_string()),
        version: order.version,
        status: order.status.to_string(),
        amount: order.total,
        refunded_amount: order.refunded.minor(),
        placed_at: order.placed_at,
        lines: lines(&order.lines),
        waits_for: order.waits_for.map(|reason| reason.to_string()),
        missing: lines(&order.missing),
        warehouse: order.warehouse.as_ref().map(ToString::to_string),
        shipped_at: order.shipment.as_ref().map(|shipment| shipment.shipped_at),
        written_off: order.is_written_off,
        carrier: None,
        tracking_number: None,
    }
}
