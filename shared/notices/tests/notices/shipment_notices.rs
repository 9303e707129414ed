//! Tests of the mail to the customer about a shipped order: it is sent once for each order, unless the merchant has
//! switched it off.

use std::sync::Arc;

use billing::{CloudEvent, Event, EventData, Money, OrderEventData, ReceivedEvent};
use emulator::EngineConnection;
use mail::MailKind;
use notices::NoticeOutcome;

use crate::notices::World;

/// The card of the subscription.
const CARD: &str = "pm_card_visa";

/// Returns the data that an event contains about the order of the first payment in `world`. The order has the version
/// `version`.
fn order_data(world: &World, version: u64) -> OrderEventData {
    let gold = &world.gold;
    OrderEventData {
        account: gold.account.clone(),
        order: format!("{}.{}", gold.due_on, gold.id),
        subscription: gold.id,
        follows: None,
        reason: None,
        due_on: gold.due_on,
        version,
        status: "SHIPPED".to_owned(),
        amount: Money::new(1_299, "EUR".parse().unwrap()),
        refunded_amount: 0,
        placed_at: "2026-03-10T10:00:00Z".parse().unwrap(),
        lines: Vec::new(),
        waits_for: None,
        missing: Vec::new(),
        warehouse: Some("cork".to_owned()),
        written_off: false,
        // In New York, the billing time zone of the test, this is still March 11.
        shipped_at: Some("2026-03-12T01:00:00Z".parse().unwrap()),
        carrier: Some("An Post".parse().unwrap()),
        tracking_number: Some("RR123456785IE".parse().unwrap()),
    }
}

/// Returns the JSON text of the published event with `data`.
fn message(data: EventData) -> String {
    let order = data.order_data().unwrap();
    let id = format!("{}.{}.{}", order.order, order.version, data.event_type());
    let at = "2026-03-12T01:00:00Z".parse().unwrap();
    let event = Event { id, subject: order.account.to_string(), at, data };
    serde_json::to_string(&CloudEvent::new(event, "urn:example:orders")).unwrap()
}

#[tokio::test]
async fn each_shipped_order_has_one_mail_with_its_number_and_its_parcel() {
    let world = World::new(CARD).await;
    let shipped = |version| message(EventData::OrderShipped(order_data(&world, version)));
    assert_eq!(world.notify(&[shipped(4)]).await, [NoticeOutcome::Sent]);
    // Neither of these two messages causes a second mail. The first contains the same event again. The second contains
    // an event about the same order with another id, which can occur after the table was restored from a backup.
    assert_eq!(world.notify(&[shipped(4), shipped(9)]).await, [NoticeOutcome::AlreadySent, NoticeOutcome::AlreadySent]);
    let mails = world.mails();
    let [(kind, text)] = mails.as_slice() else { panic!("one mail, not {mails:?}") };
    assert_eq!(kind, "shipped");
    let order = order_data(&world, 4).order;
    for part in [
        "Your order is on its way",
        "With the tracking number, you can follow your parcel on the carrier’s website.",
        &format!("Order number: {order}"),
        "Shipped on: Wednesday, March 11, 2026",
        "Carrier: An Post",
        "Tracking number: RR123456785IE",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
}

#[tokio::test]
async fn other_events_of_orders_and_orders_of_unknown_accounts_have_no_mail() {
    let world = World::new(CARD).await;
    let data = || order_data(&world, 2);
    let unknown = OrderEventData { account: "erased".parse().unwrap(), ..data() };
    let messages = [
        EventData::OrderPlaced(data()),
        EventData::OrderBackordered(data()),
        EventData::OrderFilled(data()),
        EventData::OrderDelivered(data()),
        EventData::OrderCancelled(data()),
        EventData::OrderReturned(data()),
        EventData::OrderShipped(unknown),
    ]
    .map(message);
    assert_eq!(world.notify(&messages).await, []);
    assert_eq!(world.mails(), []);
}

#[tokio::test]
async fn shipment_mail_that_is_switched_off_needs_no_request() {
    let world = World::new(CARD).await;
    let connection = Arc::new(EngineConnection::default());
    let mut deployment = world.system.with_connection(connection.clone());
    deployment.config.merchant.unsent_mails = [MailKind::Shipped].into();
    let notices = World::notices(&world.system, &deployment);
    let event = ReceivedEvent::read(&message(EventData::OrderShipped(order_data(&world, 4)))).unwrap();
    assert_eq!(notices.notify(&event).await.unwrap(), NoticeOutcome::NotNeeded);
    assert_eq!((connection.request_counts().len(), world.mails().len()), (0, 0), "{:?}", connection.request_counts());
}
