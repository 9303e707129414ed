//! Tests of the events of orders. The publisher creates exactly the expected events from the change stream of the
//! table, even if it gets the records of the stream twice. The latest event of each order agrees with the table, even
//! if the order desk crashes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use billing::OrderEventData;
use emulator::{ExternalCall, Fault, FaultInjector, TableStream};
use orders::{OrderStatus, OrderStep, Parcel};
use orders_desk::DeskError;
use publishing::{BusEntry, EventBus, FailedEntry, Publisher, StreamEvent};
use serde_json::{Value, json};
use simulator::{Company, CompanySize, OrdersTableContents};
use testkit::FAULTS_AFTER_EACH_CALL;

use crate::order_desk::world::{World, fill_all};

/// The size of the sample company in these tests.
const COMPANY_SIZE: CompanySize = CompanySize { customers: 2, employees: 20, products: 2, warehouses: 2, months: 1 };

/// An event bus in memory that stores all published events.
#[derive(Clone, Default)]
struct KeepingBus(Arc<Mutex<Vec<BusEntry>>>);

#[async_trait]
impl EventBus for KeepingBus {
    async fn publish_entries(&self, entries: &[BusEntry]) -> Vec<FailedEntry> {
        self.0.lock().unwrap().extend_from_slice(entries);
        Vec::new()
    }
}

/// Publishes the events of all changes in `stream`, from the first record on. Returns the id, the type and the data of
/// each event.
pub async fn publish_all_events(stream: &TableStream) -> Vec<(String, String, OrderEventData)> {
    let (bus, mut position) = (KeepingBus::default(), None);
    let publisher = Publisher::new(bus.clone());
    loop {
        let batch = stream.records_after(position.as_deref(), 100).unwrap();
        let Some(last) = batch["Records"].as_array().unwrap().last() else { break };
        position = last["dynamodb"]["SequenceNumber"].as_str().map(str::to_owned);
        assert_eq!(publisher.publish(&batch).await.unwrap().unreadable, 0);
    }
    let entries = bus.0.lock().unwrap();
    let events = entries.iter().map(|entry| match &entry.event {
        StreamEvent::Event(event) => {
            let data = event.body.order_data().expect("the table causes only events of orders").clone();
            (event.id.clone(), event.body.event_type().to_string(), data)
        }
        StreamEvent::Operator(event) => panic!("{event:?}"),
    });
    events.collect()
}

/// Returns the type of each event.
fn event_types(events: &[(String, String, OrderEventData)]) -> Vec<&str> {
    events.iter().map(|(_, event_type, _)| event_type.as_str()).collect()
}

/// Compares the event with the highest version of each order with the stored order. Returns a text for each difference,
/// and also if the table contains other orders than the events. A picked order counts as open, because no event is
/// published when an order is picked.
pub fn differences_from_table(events: &[(String, String, OrderEventData)], table: &OrdersTableContents) -> Vec<String> {
    let mut newest = BTreeMap::<&str, &OrderEventData>::new();
    for (_, _, data) in events {
        let known = newest.entry(&data.order).or_insert(data);
        if data.version >= known.version {
            *known = data;
        }
    }
    let mut violations = Vec::new();
    let ids: BTreeSet<String> = newest.keys().map(|order| format!("ORDER#{order}")).collect();
    if ids != table.orders.keys().cloned().collect() {
        violations.push(format!("the orders of the events are {ids:?}"));
    }
    for data in newest.values() {
        let stored = table.orders.get(&format!("ORDER#{}", data.order)).cloned().unwrap_or_default();
        let status = if stored.status == "PICKED" { "OPEN" } else { &stored.status };
        let lines: BTreeMap<String, i64> =
            data.lines.iter().map(|line| (format!("PRODUCT#{}", line.product), line.quantity.into())).collect();
        if (data.status.as_str(), &data.warehouse, &lines) != (status, &stored.warehouse, &stored.lines) {
            violations.push(format!("{data:?} is not {stored:?}"));
        }
    }
    violations
}

/// Creates a company whose customers pay for the same SKU. The customer of the first payment has no address. All other
/// customers have the same address.
fn company() -> Company {
    let mut company = Company::new(COMPANY_SIZE, 5);
    let sku = company.skus[0].0.clone();
    let address = company.customers.iter().find_map(|(_, address)| address.clone());
    company.paid.iter_mut().for_each(|paid| paid.sku = sku.clone());
    let first = company.paid[0].account.clone();
    for (account, of) in &mut company.customers {
        *of = address.clone().filter(|_| *account != first);
    }
    company
}

#[tokio::test(flavor = "multi_thread")]
async fn the_life_of_an_order_has_one_event_for_each_change_of_its_status() {
    let world = World::new(company(), 0).await;
    let stream = world.engine.stream("dueday-orders").unwrap();
    let (desk, paid) = (&world.desk, &world.company.paid[0]);
    let address = world.company.customers.iter().find_map(|(_, address)| address.clone()).unwrap();
    desk.place_order(paid).await.unwrap();
    desk.place_order(paid).await.unwrap();
    desk.set_shipping_address(&paid.account, address.clone()).await.unwrap();
    assert_eq!(fill_all(desk).await, 0, "no stock has arrived");

    let lines = world.company.skus[0].1.clone();
    let warehouse = &world.company.warehouses[0].id;
    for line in &lines {
        desk.receive_stock(&line.product, warehouse, line.quantity.into(), ulid::Ulid::generate()).await.unwrap();
    }
    assert_eq!(fill_all(desk).await, 1);
    let corrected = orders::ShippingAddress { city: "Elsewhere".parse().unwrap(), ..address };
    desk.correct_address::<DeskError>(paid.order, corrected, |_| Ok(())).await.unwrap();
    let customer = desk.table.get_customer(&paid.account).await.unwrap().unwrap();
    let representatives = world.company.employees.iter().map(|(employee, ..)| &employee.id);
    for other in representatives.filter(|id| customer.representative.as_ref() != Some(*id)) {
        if desk.hand_over_customer(&paid.account, other).await.is_ok() {
            break;
        }
    }
    let (order, _) = desk.table.get_order(paid.order).await.unwrap().unwrap();
    assert_eq!(order.representative, customer.representative, "an order that was placed keeps its representative");
    desk.advance_order(paid.order, OrderStatus::Picked).await.unwrap();
    let parcel = Parcel { carrier: Some("An Post".parse().unwrap()), tracking_number: Some("RR1".parse().unwrap()) };
    for _ in 0..2 {
        desk.advance_order(paid.order, OrderStep { parcel: parcel.clone(), ..OrderStep::from(OrderStatus::Shipped) })
            .await
            .unwrap();
    }
    desk.advance_order(paid.order, OrderStatus::Delivered).await.unwrap();
    desk.advance_order(paid.order, OrderStatus::Returned).await.unwrap();

    let events = publish_all_events(&stream).await;
    assert_eq!(
        event_types(&events),
        [
            "order.placed",
            "order.backordered",
            "order.backordered",
            "order.filled",
            "order.shipped",
            "order.delivered",
            "order.returned"
        ]
    );
    let data = |n: usize| &events[n].2;
    let reasons: Vec<Option<&str>> = (0..4).map(|n| data(n).waits_for.as_deref()).collect();
    assert_eq!(reasons, [Some("address"), Some("address"), Some("stock"), None]);
    let missing: Vec<u32> = data(2).missing.iter().map(|line| line.quantity).collect();
    assert_eq!(missing, lines.iter().map(|line| line.quantity).collect::<Vec<_>>(), "no warehouse has any stock");
    assert!(data(1).missing.is_empty() && data(3).missing.is_empty());
    assert_eq!(data(3).warehouse.as_deref(), Some(warehouse.as_str()));
    let parcels: Vec<bool> = events.iter().map(|(_, _, data)| data.tracking_number.is_some()).collect();
    assert_eq!(parcels, [false, false, false, false, true, false, false]);
    assert_eq!(differences_from_table(&events, &world.contents().await), Vec::<String>::new());
    assert_eq!(publish_all_events(&stream).await, events, "a record that is delivered again gives the same events");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_of_an_earlier_version_gets_its_lines_with_the_next_change() {
    let mut company = company();
    let address = company.customers.iter().find_map(|(_, address)| address.clone());
    company.customers.iter_mut().for_each(|(_, of)| of.clone_from(&address));
    let world = World::new(company, 1_000).await;
    let (desk, paid) = (&world.desk, &world.company.paid[0]);
    desk.place_order(paid).await.unwrap();
    let key =
        json!({ "PK": { "S": format!("ORDER#{}", paid.order) }, "SK": { "S": format!("CUSTOMER#{}", paid.account) } });
    let request: Value = json!({ "TableName": "dueday-orders", "Key": key, "UpdateExpression": "REMOVE #l",
        "ExpressionAttributeNames": { "#l": "Lines" } });
    world.engine.execute("UpdateItem", &request).unwrap();
    let stream = world.engine.stream("dueday-orders").unwrap();
    desk.advance_order(paid.order, OrderStatus::Cancelled).await.unwrap();
    let events = publish_all_events(&stream).await;
    assert_eq!(event_types(&events), ["order.cancelled"]);
    assert_eq!(differences_from_table(&events, &world.contents().await), Vec::<String>::new());
}

/// Places and fills the orders, and advances them to later statuses. After a crash, the test calls this function again,
/// so each step must be safe to repeat.
async fn process_everything(world: &World) {
    let (desk, paid) = (&world.desk, &world.company.paid);
    for paid in paid {
        desk.place_order(paid).await.unwrap();
    }
    let address = world.company.customers.iter().find_map(|(_, address)| address.clone()).unwrap();
    desk.set_shipping_address(&paid[0].account, address).await.unwrap();
    fill_all(desk).await;
    for next in [OrderStatus::Picked, OrderStatus::Shipped, OrderStatus::Delivered] {
        match desk.advance_order(paid[0].order, next).await {
            Ok(_) | Err(DeskError::Transition(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    desk.advance_order(paid[1].order, OrderStatus::Cancelled).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn events_agree_with_the_table_even_if_each_call_is_interrupted() {
    let run = async |number: u64, fault: Fault| {
        let faults = move |call: &ExternalCall<'_>| (call.number == number).then_some(fault);
        let injector = Arc::new(FaultInjector::active_during_runs(Arc::new(faults)));
        let world = World::with_injector(company(), 1_000, injector.clone()).await;
        let stream = world.engine.stream("dueday-orders").unwrap();
        if injector.run(process_everything(&world)).await.is_none() {
            injector.run(process_everything(&world)).await.unwrap();
        }
        let events = publish_all_events(&stream).await;
        let when = format!("{fault:?} at {number}");
        assert_eq!(differences_from_table(&events, &world.contents().await), Vec::<String>::new(), "{when}");
        let ids: BTreeSet<&String> = events.iter().map(|(id, ..)| id).collect();
        assert_eq!(ids.len(), events.len(), "{when}: each change has events with other ids");
        let of_first = events.iter().filter(|(_, _, data)| data.order == world.company.paid[0].order.to_string());
        let of_first: Vec<&str> = of_first.map(|(_, event_type, _)| event_type.as_str()).collect();
        assert_eq!(
            of_first,
            ["order.placed", "order.backordered", "order.filled", "order.shipped", "order.delivered"],
            "{when}"
        );
        injector.call_count()
    };
    let calls = run(u64::MAX, Fault::CrashBefore).await;
    for number in 1..=calls {
        for fault in FAULTS_AFTER_EACH_CALL {
            run(number, fault).await;
        }
    }
}
