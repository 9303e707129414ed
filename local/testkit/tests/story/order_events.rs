//! Tests of the events of orders: which changes of an order cause which events, and that each event matches its JSON
//! schema.

use std::collections::BTreeSet;

use billing::{CloudEvent, EventType, Money};
use orders::{
    BackOrderReason, FollowUpReason, Order, OrderLine, OrderStatus, OrderStep, Parcel, ShippingAddress, order_events,
};
use serde_json::{Value, json};
use strum::IntoEnumIterator as _;
use testkit::event_schema_errors;

use crate::event_images::event_time;

/// The types of the expected events, such as `order.placed`.
type EventTypes = &'static [&'static str];
/// The name of a change, the order before (`None`: no order) and after the change, and the types of the expected
/// events.
type Change = (&'static str, Option<Order>, Order, EventTypes);

/// Returns order lines. Each pair contains a product and its quantity.
fn lines(lines: &[(&str, u32)]) -> Vec<OrderLine> {
    let line = |(product, quantity): &(&str, u32)| OrderLine { product: product.parse().unwrap(), quantity: *quantity };
    lines.iter().map(line).collect()
}

/// Returns a shipping address, which no event may contain.
fn address() -> ShippingAddress {
    ShippingAddress {
        name: "Ada Example".parse().unwrap(),
        street: "1 Secret Street".parse().unwrap(),
        line2: Some("Secret Back Yard".parse().unwrap()),
        postal_code: "99999".parse().unwrap(),
        city: "Hiddenville".parse().unwrap(),
        state: Some("Hidden State".parse().unwrap()),
        country: "nl".parse().unwrap(),
        region: "eu".parse().unwrap(),
        phone: Some("+31 20 555 0199".parse().unwrap()),
    }
}

/// Returns a new order that waits for stock.
fn backordered() -> Order {
    let currency = "EUR".parse().unwrap();
    let order = Order {
        id: "2027-01-31.01JZXCVBNM0123456789ABCDEF".parse().unwrap(),
        follow_up: None,
        follow_ups: 0,
        customer: "acme".parse().unwrap(),
        representative: Some("e-1".parse().unwrap()),
        status: OrderStatus::BackOrdered,
        waits_for: None,
        missing: Vec::new(),
        lines: lines(&[("beans", 2), ("filters", 1)]),
        warehouse: None,
        address: None,
        shipment: None,
        is_written_off: false,
        total: Money::new(1_299, currency),
        refunded: Money::new(0, currency),
        placed_at: "2027-01-31T06:00:02Z".parse().unwrap(),
        bucket: 0,
        version: 1,
    };
    order.waiting_for(BackOrderReason::Stock, lines(&[("beans", 1)]))
}

/// Returns the order with the version `version`.
fn with_version(order: Order, version: u64) -> Order {
    Order { version, ..order }
}

/// Returns the order of [`backordered`] after it was filled from the warehouse `cork`.
fn filled() -> Order {
    with_version(Order { address: Some(address()), ..backordered().filled_from("cork".parse().unwrap()).unwrap() }, 2)
}

/// Returns a new replacement order for [`filled`]. The replacement waits for stock.
fn replacement() -> Order {
    let (_, id) = filled().with_follow_up().unwrap();
    let new = filled().new_follow_up_order(id, FollowUpReason::Replacement, lines(&[("beans", 1)]), None, 0);
    new.waiting_for(BackOrderReason::Stock, lines(&[("beans", 1)]))
}

/// Returns the order after it was advanced to each status of `steps`, in this sequence.
fn advanced(order: Order, steps: &[OrderStatus]) -> Order {
    let parcel =
        Parcel { carrier: Some("An Post".parse().unwrap()), tracking_number: Some("RR123456785IE".parse().unwrap()) };
    steps.iter().fold(order, |order, next| {
        let parcel = if *next == OrderStatus::Shipped { parcel.clone() } else { Parcel::default() };
        let version = order.version + 1;
        with_version(order.advanced_by(&OrderStep { parcel, ..OrderStep::from(*next) }, event_time()).unwrap(), version)
    })
}

/// Returns the changes of orders with the events that they must cause.
fn changes() -> Vec<Change> {
    use OrderStatus::{Cancelled, Delivered, Picked, Returned, Shipped};
    let waits_for_address = Order { waits_for: Some(BackOrderReason::Address), missing: Vec::new(), ..backordered() };
    let refunded = Order { refunded: Money::new(1_299, backordered().total.currency()), ..backordered() };
    let step = |name, before: &[OrderStatus], next: OrderStatus, types: EventTypes| {
        let old = advanced(filled(), before);
        (name, Some(old.clone()), advanced(old, &[next]), types)
    };
    let unchanged = |name, new: Order| (name, Some(filled()), with_version(new, 3), &[][..]);
    vec![
        ("placed, and filled at once", None, filled(), &["order.placed", "order.filled"]),
        ("placed without stock", None, backordered(), &["order.placed", "order.backordered"]),
        ("placed without an address", None, waits_for_address.clone(), &["order.placed", "order.backordered"]),
        ("refunded, then placed", None, advanced(refunded, &[Cancelled]), &["order.placed", "order.cancelled"]),
        (
            "an address arrives, but no stock",
            Some(waits_for_address.clone()),
            with_version(waits_for_address.waiting_for(BackOrderReason::Stock, lines(&[("beans", 2)])), 2),
            &["order.backordered"],
        ),
        ("filled later", Some(backordered()), filled(), &["order.filled"]),
        ("cancelled while it waits", Some(backordered()), advanced(backordered(), &[Cancelled]), &["order.cancelled"]),
        step("picked", &[], Picked, &[]),
        step("cancelled", &[], Cancelled, &["order.cancelled"]),
        step("cancelled after it was picked", &[Picked], Cancelled, &["order.cancelled"]),
        step("shipped", &[Picked], Shipped, &["order.shipped"]),
        step("delivered", &[Picked, Shipped], Delivered, &["order.delivered"]),
        step("returned by the carrier", &[Picked, Shipped], Returned, &["order.returned"]),
        step("returned by the customer", &[Picked, Shipped, Delivered], Returned, &["order.returned"]),
        (
            "other products",
            Some(filled()),
            with_version(filled().with_lines(lines(&[("beans", 1)])).unwrap(), 3),
            &["order.filled"],
        ),
        (
            "the products of an order that an earlier version placed are stored",
            Some(Order { lines: Vec::new(), ..filled() }),
            with_version(filled(), 3),
            &[],
        ),
        ("a replacement is created", None, replacement(), &["order.placed", "order.backordered"]),
        unchanged("only the version", filled()),
        unchanged("one more follow-up order", Order { follow_ups: 1, ..filled() }),
        unchanged("another address", Order { address: None, ..filled() }),
        unchanged("another representative", Order { representative: None, ..filled() }),
        unchanged("a refund in part", Order { refunded: Money::new(1, filled().total.currency()), ..filled() }),
    ]
}

/// Returns the events of a change of an order.
fn events_of_change((_, old, new, _): &Change) -> Vec<CloudEvent> {
    let events = order_events(old.as_ref(), new, event_time()).into_iter();
    events.map(|event| CloudEvent::new(event, "urn:example:orders")).collect()
}

/// Returns the JSON of an event.
fn json_of(event: &CloudEvent) -> Value {
    serde_json::to_value(event).unwrap()
}

#[test]
fn each_change_of_an_order_causes_the_expected_events() {
    for change in changes() {
        let events = events_of_change(&change);
        let types: Vec<String> = events.iter().map(|event| event.body.event_type().to_string()).collect();
        assert_eq!(types, change.3, "{}", change.0);
        // If the events of a change are computed again, they are equal. The subject of each event is the customer.
        assert_eq!(events, events_of_change(&change));
        assert!(events.iter().all(|event| event.subject == "acme"));
        let read: Vec<CloudEvent> =
            events.iter().map(|event| serde_json::from_value(json_of(event)).unwrap()).collect();
        assert_eq!(read, events);
    }
}

#[test]
fn the_events_of_the_life_of_an_order_have_different_ids() {
    use OrderStatus::{Delivered, Picked, Returned, Shipped};
    let mut images = vec![None, Some(backordered()), Some(filled())];
    let steps = [Picked, Shipped, Delivered, Returned];
    images.extend((1..=steps.len()).map(|count| Some(advanced(filled(), &steps[..count]))));
    let pairs = images.windows(2);
    let events = pairs.flat_map(|pair| order_events(pair[0].as_ref(), pair[1].as_ref().unwrap(), event_time()));
    let ids: Vec<String> = events.map(|event| event.id).collect();
    let id = "2027-01-31.01JZXCVBNM0123456789ABCDEF";
    assert_eq!(
        ids,
        [
            format!("{id}.1.order.placed"),
            format!("{id}.1.order.backordered"),
            format!("{id}.2.order.filled"),
            format!("{id}.4.order.shipped"),
            format!("{id}.5.order.delivered"),
            format!("{id}.6.order.returned"),
        ]
    );
}

#[test]
fn events_of_orders_match_their_schemas_and_contain_no_address() {
    let mut checked = BTreeSet::new();
    for event in changes().iter().flat_map(events_of_change) {
        let name = event.body.event_type().to_string();
        let errors = event_schema_errors(&json_of(&event));
        assert!(errors.is_empty(), "{name}: {errors:?}\n{:#}", json_of(&event));
        checked.insert(name);
        let text = json_of(&event).to_string();
        let Value::Object(address) = serde_json::to_value(address()).unwrap() else { panic!("an object") };
        for (field, personal) in address.iter().filter(|(field, _)| !["country", "region"].contains(&field.as_str())) {
            assert!(!text.contains(personal.as_str().unwrap()), "{field}: {text}");
        }
    }
    let all = EventType::iter().map(|event_type| event_type.to_string());
    assert_eq!(checked, all.filter(|name| name.starts_with("order.")).collect());
}

#[test]
fn events_of_a_follow_up_order_name_the_order_that_it_follows() {
    let parts = |change: &Change| {
        let event = json_of(&events_of_change(change)[0]);
        ["order", "follows", "reason", "amount"].map(|name| event["data"][name].clone())
    };
    let id = "2027-01-31.01JZXCVBNM0123456789ABCDEF";
    for (name, expected) in [
        ("a replacement is created", [json!(format!("{id}.2")), json!(id), json!("replacement"), json!(0)]),
        ("placed without stock", [json!(id), Value::Null, Value::Null, json!(1_299)]),
    ] {
        let change = changes().into_iter().find(|change| change.0 == name).unwrap();
        assert_eq!(parts(&change), expected, "{name}");
    }
}

#[test]
fn only_the_event_of_the_shipment_contains_the_parcel() {
    let with_parcel = |change: &Change| {
        let events = events_of_change(change);
        events.iter().filter(|event| json_of(event).to_string().contains("RR123456785IE")).count()
    };
    for change in changes() {
        assert_eq!(with_parcel(&change), usize::from(change.0 == "shipped"), "{}", change.0);
    }
    let shipped = changes().into_iter().find(|change| change.0 == "shipped").unwrap();
    insta::assert_snapshot!(format!("{:#}", json_of(&events_of_change(&shipped)[0])));
    let backordered = changes().into_iter().find(|change| change.0 == "placed without stock").unwrap();
    let data = &json_of(&events_of_change(&backordered)[1])["data"];
    assert_eq!(data["missing"], json!([{ "product": "beans", "quantity": 1 }]));
    assert_eq!((&data["waits_for"], &data["lines"].as_array().unwrap().len()), (&json!("stock"), &2));
}
