//! A test that repeatedly kills the process of the order desk while the process places the orders of payments and while
//! stock arrives. The queue delivers the payment events in random sequence, and delivers some of them again. At the
//! end, each payment for products has exactly one order, and published events with the same id have the same content.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use billing::ReceivedEvent;
use emulator::{EngineConnection, ExternalCall, Fault, FaultDecider, FaultInjector};
use orders::PaidPeriod;
use orders_desk::{OrderDesk, process_event};
use orders_table::{BucketCount, OrdersTable};
use rand::seq::SliceRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::json;
use simulator::{Company, CompanySize};
use testkit::short_or_long;
use ulid::Ulid;

use crate::order_desk::events::{differences_from_table, publish_all_events};
use crate::order_desk::races::YieldBeforeEachCall;
use crate::order_desk::world::{BUCKETS, World, fill_all, new_clock};

/// The size of the sample company in this test.
const COMPANY_SIZE: CompanySize = CompanySize { customers: 60, employees: 20, products: 4, warehouses: 3, months: 4 };

/// The maximum number of events that the queue delivers to the process together.
const MAX_BATCH_SIZE: usize = 5;

/// The maximum number of requests to the table that a process sends before it is killed. Processing a whole
/// batch of events needs more requests, so the kill interrupts the batch.
const MAX_REQUESTS: u64 = 30;

/// Kills the process at the call to the table with a chosen number. Lets other tasks run before each call takes effect.
#[derive(Default)]
struct KillAtCall {
    /// The number of the call at which the process is killed; 0 if it is not killed.
    number: AtomicU64,
    /// Whether this call takes effect in the table before the process is killed.
    takes_effect: AtomicBool,
}

impl FaultDecider for KillAtCall {
    fn fault_of_call(&self, call: &ExternalCall<'_>) -> Option<Fault> {
        let fault = if self.takes_effect.load(Ordering::SeqCst) { Fault::CrashAfter } else { Fault::CrashBefore };
        (call.number == self.number.load(Ordering::SeqCst)).then_some(fault)
    }

    fn yields_per_call(&self) -> u32 {
        1
    }
}

/// Returns the `payment.succeeded` event of the payment `paid`, as the queue delivers it.
fn event_of(paid: &PaidPeriod) -> ReceivedEvent {
    let (subscription, due_on) = (paid.order.subscription, paid.order.due_on);
    let event = json!({
        "specversion": "1.0",
        "id": format!("{subscription}.{due_on}.payment.succeeded"),
        "source": "dueday",
        "type": "payment.succeeded",
        "subject": paid.account,
        "time": paid.paid_at,
        "datacontenttype": "application/json",
        "dataschema": "urn:dueday:event:payment.succeeded:1",
        "data": {
            "account": paid.account,
            "subscription": subscription,
            "receipt": format!("{due_on}.{subscription}.{}", paid.sku),
            "sku": paid.sku,
            "product_name": "Coffee",
            "due_on": due_on,
            "amount": paid.amount.minor(),
            "currency": paid.amount.currency(),
            "payment": "pi_1",
            "processed_at": paid.paid_at,
        },
    });
    ReceivedEvent::read(&event.to_string()).unwrap()
}

/// Processes a batch of events from the queue, and the fill tasks. Returns the events that the queue must deliver
/// again, because the order desk could not process them.
async fn process_batch(desk: &OrderDesk, batch: &[ReceivedEvent]) -> Vec<ReceivedEvent> {
    let mut failed = Vec::new();
    for event in batch {
        match process_event(desk, event).await {
            Ok(()) => {}
            Err(error) => {
                assert!(error.is_transient(), "{error}");
                failed.push(event.clone());
            }
        }
    }
    desk.fill_waiting_orders(desk.clock().now() + chrono::TimeDelta::minutes(1)).await;
    failed
}

/// Receives `quantity` pieces of a product in a warehouse. `place` chooses the product and the warehouse, and is the id
/// of the delivery. Repeats the request until it succeeds; the requests with the same id increase the stock only once.
async fn receive_stock(world: &World, desk: &OrderDesk, place: usize, quantity: u64) {
    let product = &world.company.products[place % world.company.products.len()].id;
    let warehouse = &world.company.warehouses[place % world.company.warehouses.len()].id;
    let delivery = Ulid::from_parts(5, u128::try_from(place).unwrap());
    while let Err(error) = desk.receive_stock(product, warehouse, quantity, delivery).await {
        assert!(error.is_transient(), "{error}");
    }
}

/// Kills the process `all_kills` times while it processes the events of all payments. Then checks the orders and their
/// events.
async fn run_with_kills(seed: u64, all_kills: usize) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let kill = Arc::new(KillAtCall::default());
    let injector = Arc::new(FaultInjector::active_during_runs(kill.clone()));
    let mut world = World::with_injector(Company::new(COMPANY_SIZE, seed), 2, injector.clone()).await;
    let stream = world.engine.stream("dueday-orders").unwrap();
    let stock_connection = EngineConnection::with_injector(Arc::new(FaultInjector::new(Arc::new(YieldBeforeEachCall))));
    let stock_table =
        OrdersTable::new(world.engine.client_with_connection(Arc::new(stock_connection)), "dueday-orders");
    let stock_desk = OrderDesk::new(stock_table, BucketCount::new(BUCKETS), new_clock());
    let all: Vec<ReceivedEvent> = world.company.paid.iter().map(event_of).collect();
    let (mut queue, mut kills, mut deliveries) = (all.clone(), 0, 0);
    while kills < all_kills || !queue.is_empty() {
        // The queue also delivers random events that may have been processed before.
        let repeated =
            if queue.len() < MAX_BATCH_SIZE && kills < all_kills { MAX_BATCH_SIZE } else { rng.random_range(0..2) };
        queue.extend((0..repeated).map(|_| all[rng.random_range(0..all.len())].clone()));
        queue.shuffle(&mut rng);
        let batch = queue.split_off(queue.len().saturating_sub(MAX_BATCH_SIZE));
        let number = if kills < all_kills { injector.call_count() + rng.random_range(1..=MAX_REQUESTS) } else { 0 };
        kill.number.store(number, Ordering::SeqCst);
        kill.takes_effect.store(rng.random_bool(0.5), Ordering::SeqCst);
        // A new process starts, without the state in memory of the previous process.
        let desk = world.desk_after_restart();
        let quantity = rng.random_range(1..6);
        let (processed, ()) = futures::join!(
            injector.run(process_batch(&desk, &batch)),
            receive_stock(&world, &stock_desk, deliveries, quantity),
        );
        let product = world.company.products[deliveries % world.company.products.len()].id.clone();
        *world.received.entry(format!("PRODUCT#{product}")).or_insert(0) += i64::try_from(quantity).unwrap();
        deliveries += 1;
        match processed {
            Some(failed) => queue.extend(failed),
            // The queue got no response, so it delivers the whole batch again.
            None => {
                kills += 1;
                queue.extend(batch);
                // Each transaction leaves the table consistent, so the table is also consistent after a kill. Some
                // payments have no order yet, so only the orders that exist are expected.
                let contents = world.contents().await;
                let main = contents.orders.iter().filter(|(_, order)| order.follows.is_none());
                let placed = main.map(|(id, _)| id.clone()).collect();
                let found = contents.inconsistencies(&world.received, &placed);
                assert_eq!(found, Vec::<String>::new(), "seed {seed}: after {kills} kills");
            }
        }
        assert!(deliveries < 4 * all_kills, "seed {seed}: the queue does not become empty");
    }
    assert_eq!(kills, all_kills, "seed {seed}");
    fill_all(&world.desk_without_faults()).await;
    world.assert_consistent(&world.company.paid, &format!("seed {seed}")).await;

    let (events, contents) = (publish_all_events(&stream).await, world.contents().await);
    assert_eq!(differences_from_table(&events, &contents), Vec::<String>::new(), "seed {seed}");
    let mut by_id = BTreeMap::new();
    for (id, event_type, data) in &events {
        let first = by_id.entry(id).or_insert((event_type, data));
        assert_eq!(*first, (event_type, data), "seed {seed}: two contents of {id}");
    }
    let placed = events.iter().filter(|(_, event_type, _)| event_type == "order.placed").count();
    assert_eq!(placed, contents.orders.len(), "seed {seed}: each order is placed once");
    assert!(placed > 40, "seed {seed}: {placed} orders");
    let was_filled_later = events.iter().any(|(_, event_type, _)| event_type == "order.backordered");
    assert!(was_filled_later, "seed {seed}: the stock was never too small");
}

#[tokio::test(flavor = "multi_thread")]
async fn months_have_one_order_each_after_the_process_was_killed_repeatedly() {
    let (seeds, all_kills) = short_or_long((1, 40), (3, 100));
    for seed in 1..=seeds {
        run_with_kills(seed, all_kills).await;
    }
}
