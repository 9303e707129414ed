//! Tests of concurrent changes of the orders table: two order desks get each payment twice and in any sequence, orders
//! compete for the last pieces in stock, and a customer gets another representative while an order is placed.

use std::collections::BTreeSet;
use std::sync::Arc;

use emulator::{ExternalCall, Fault, FaultDecider, FaultInjector};
use futures::future::join_all;
use orders::{OrderStatus, PaidPeriod};
use orders_desk::PlaceOutcome;
use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;
use simulator::{Company, CompanySize};
use store::Paging;
use ulid::Ulid;

use crate::order_desk::suspended_operation::poll_steps;
use crate::order_desk::world::{World, fill_all, range_of_all_days};

/// The size of the sample company in these tests.
const COMPANY_SIZE: CompanySize = CompanySize { customers: 30, employees: 20, products: 5, warehouses: 3, months: 2 };

#[tokio::test(flavor = "multi_thread")]
async fn two_desks_that_get_each_payment_twice_in_any_order_place_each_order_once() {
    for seed in 1..=2 {
        let world = World::new(Company::new(COMPANY_SIZE, seed), 6).await;
        let (mut rng, desks) =
            (ChaCha8Rng::seed_from_u64(seed), [world.desk_without_faults(), world.desk_without_faults()]);
        let mut deliveries: Vec<(usize, PaidPeriod)> =
            world.company.paid.iter().flat_map(|paid| [(0, paid.clone()), (1, paid.clone())]).collect();
        deliveries.shuffle(&mut rng);
        for batch in deliveries.chunks(8) {
            let placing = batch.iter().map(|(desk, paid)| {
                let (desk, paid) = (desks[*desk].clone(), paid.clone());
                async move {
                    // If the order desk could not process the payment, deliver the payment again, as the SQS queue
                    // does.
                    while let Err(error) = desk.place_order(&paid).await {
                        assert!(error.is_transient(), "{error}");
                    }
                }
            });
            join_all(placing).await;
        }
        world.assert_consistent(&world.company.paid, &format!("seed {seed}")).await;
        let contents = world.contents().await;
        let open = contents.orders.values().filter(|order| order.status == "OPEN").count();
        let waiting = contents.orders.values().filter(|order| order.status == "BACKORDERED").count();
        assert!(open > 5 && waiting > 5, "seed {seed}: {open} {waiting}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn exactly_one_of_the_orders_that_compete_for_the_last_item_gets_it() {
    let mut company = Company::new(COMPANY_SIZE, 9);
    let (sku, lines) = company.skus[0].clone();
    let address = company.customers.iter().find_map(|(_, address)| address.clone());
    company.customers.iter_mut().for_each(|(_, of)| of.clone_from(&address));
    company.paid.iter_mut().for_each(|paid| paid.sku = sku.clone());
    company.paid.truncate(10);
    let mut world = World::new(company, 0).await;
    let desk = world.desk_without_faults();
    let warehouse = world.company.warehouses[0].id.clone();
    for line in &lines {
        desk.receive_stock(&line.product, &warehouse, u64::from(line.quantity), Ulid::generate()).await.unwrap();
        world.received.insert(format!("PRODUCT#{}", line.product), i64::from(line.quantity));
    }
    let paid = world.company.paid.clone();
    let placing = paid.iter().map(|paid| {
        let desk = world.desk_without_faults();
        async move {
            loop {
                match desk.place_order(paid).await {
                    Ok(outcome) => return outcome,
                    Err(error) => assert!(error.is_transient(), "{error}"),
                }
            }
        }
    });
    let outcomes = join_all(placing).await;
    assert_eq!(outcomes.iter().filter(|o| **o == PlaceOutcome::Placed(OrderStatus::Open)).count(), 1, "{outcomes:?}");
    world.assert_consistent(&paid, "after the race").await;

    // Received stock fills the oldest orders that wait for stock, until no stock is left.
    let waiting = desk
        .table
        .orders_of_all_customers(&[OrderStatus::BackOrdered], range_of_all_days(), desk.buckets(), &Paging::all())
        .await
        .unwrap()
        .into_items()
        .unwrap();
    assert_eq!(waiting.len(), 9);
    for line in &lines {
        desk.receive_stock(&line.product, &warehouse, 2 * u64::from(line.quantity), Ulid::generate()).await.unwrap();
        *world.received.get_mut(&format!("PRODUCT#{}", line.product)).unwrap() += 2 * i64::from(line.quantity);
    }
    assert_eq!(fill_all(&desk).await, 2);
    let left = desk
        .table
        .orders_of_all_customers(&[OrderStatus::BackOrdered], range_of_all_days(), desk.buckets(), &Paging::all())
        .await
        .unwrap()
        .into_items()
        .unwrap();
    assert_eq!(left, waiting[2..], "the two oldest back orders are filled");
    world.assert_consistent(&paid, "after the delivery").await;
}

/// Injects no fault, but lets other tasks run before each call to the table takes effect.
pub struct YieldBeforeEachCall;

impl FaultDecider for YieldBeforeEachCall {
    fn fault_of_call(&self, _: &ExternalCall<'_>) -> Option<Fault> {
        None
    }

    fn yields_per_call(&self) -> u32 {
        1
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn order_placed_during_a_hand_over_gets_the_representative_of_its_customer() {
    // The placing is suspended after `step` steps. Then the customer is handed over, and the placing continues. A step ends
    // when the operation yields to other tasks, twice in each request to the table.
    let mut representatives = BTreeSet::new();
    for step in 0.. {
        let injector = Arc::new(FaultInjector::new(Arc::new(YieldBeforeEachCall)));
        let world = World::with_injector(Company::new(COMPANY_SIZE, 3), 50, injector).await;
        let (other_desk, paid) = (world.desk_without_faults(), &world.company.paid[0]);
        other_desk.hand_over_customer(&paid.account, &"e-0".parse().unwrap()).await.unwrap();
        let mut placing = Box::pin(world.desk.place_order(paid));
        let placed = poll_steps(&mut placing, step).await;
        let is_placed_first = placed.is_some();
        let stored = other_desk.table.get_order(paid.order).await.unwrap();
        other_desk.hand_over_customer(&paid.account, &"e-10".parse().unwrap()).await.unwrap();
        match placed {
            Some(placed) => drop(placed.unwrap()),
            None => drop(placing.await.unwrap()),
        }
        let (order, _) = other_desk.table.get_order(paid.order).await.unwrap().unwrap();
        let expected = if stored.is_some() { "e-0" } else { "e-10" };
        assert_eq!(order.representative, Some(expected.parse().unwrap()), "step {step}");
        representatives.insert(expected);
        world.assert_consistent(std::slice::from_ref(paid), &format!("step {step}")).await;
        if is_placed_first {
            break;
        }
    }
    assert_eq!(representatives, BTreeSet::from(["e-0", "e-10"]));
}
