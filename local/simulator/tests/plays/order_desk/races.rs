//! Tests of concurrent changes of the orders table: two order desks get each payment twice and in any sequence, orders
//! compete for the last pieces in stock, and customers get another representative while orders are placed.

use std::sync::Arc;

use emulator::{Call, Fault, Faults, Injector};
use futures::future::join_all;
use orders::{DeskError, OrderStatus, PaidPeriod, PlaceOutcome};
use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;
use simulator::{Company, CompanySize};
use store::Paging;
use ulid::Ulid;

use crate::order_desk::suspended_operation::poll_steps;
use crate::order_desk::world::{World, all_days, fill_all};

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
                    while let Err(error) = desk.place(&paid).await {
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
                match desk.place(paid).await {
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
        .orders_in(&[OrderStatus::BackOrdered], all_days(), desk.buckets(), &Paging::all())
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
        .orders_in(&[OrderStatus::BackOrdered], all_days(), desk.buckets(), &Paging::all())
        .await
        .unwrap()
        .into_items()
        .unwrap();
    assert_eq!(left, waiting[2..], "the two oldest back orders are filled");
    world.assert_consistent(&paid, "after the delivery").await;
}

/// Injects no fault, but lets other tasks run before each call to the table takes effect.
pub struct YieldBeforeEachCall;

impl Faults for YieldBeforeEachCall {
    fn next(&self, _: &Call<'_>) -> Option<Fault> {
        None
    }

    fn yields_per_call(&self) -> u32 {
        1
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_placed_during_a_reassignment_get_the_new_representative() {
    let mut reassigned_orders = 0;
    for seed in 3..=5 {
        let injector = Arc::new(Injector::new(Arc::new(YieldBeforeEachCall)));
        let world = World::with_injector(Company::new(COMPANY_SIZE, seed), 50, injector.clone()).await;
        let calls_before = injector.calls();
        let (desk, to) = (&world.desk, &"e-10".parse().unwrap());
        let placing = join_all(world.company.paid.iter().map(|paid| async move {
            while let Err(error) = desk.place(paid).await {
                assert!(error.is_transient(), "{error}");
            }
        }));
        let reassigning = join_all((0..).zip(&world.company.customers).map(|(place, (account, _))| async move {
            // Some customers get the new representative before their orders are placed. Other customers get it while
            // their orders are placed, or afterwards.
            for _ in 0..place % 32 {
                tokio::task::yield_now().await;
            }
            loop {
                match desk.hand_over(account, to, all_days()).await {
                    Ok(reassigned) => return reassigned,
                    Err(error) => assert!(error.is_transient(), "{error}"),
                }
            }
        }));
        // For each seed, the hand-overs start at a different moment while orders are placed.
        let reassigning_later = async {
            while injector.calls() < calls_before + seed * 40 {
                tokio::task::yield_now().await;
            }
            reassigning.await
        };
        let (_, reassigned) = futures::join!(placing, reassigning_later);
        reassigned_orders += reassigned.iter().sum::<u32>();
        world.assert_consistent(&world.company.paid, &format!("seed {seed}")).await;
        let contents = world.contents().await;
        let left = contents.orders.values().filter(|order| order.representative != "EMP#e-10").count();
        assert_eq!(left, 0, "seed {seed}: orders still have the old representative");
    }
    assert!(reassigned_orders > 0, "no order was placed before its customer was reassigned");
}

#[tokio::test]
async fn a_customer_and_its_orders_have_one_representative_after_two_concurrent_hand_overs() {
    // The first hand-over is suspended after `step` steps. Then the second hand-over is made completely, and the first
    // hand-over continues. A step ends when the operation yields to other tasks, twice in each request to the table.
    let (mut stopped, mut completed) = (0, 0);
    for step in 0.. {
        let injector = Arc::new(Injector::new(Arc::new(YieldBeforeEachCall)));
        let world = World::with_injector(Company::new(COMPANY_SIZE, 3), 50, injector).await;
        let other_desk = world.desk_without_faults();
        let account = &world.company.paid[0].account;
        let mut paid = world.company.paid.clone();
        paid.iter_mut().take(3).for_each(|paid| paid.account = account.clone());
        let paid = &paid[..3];
        for earlier in &paid[..2] {
            other_desk.place(earlier).await.unwrap();
        }
        let (e_10, e_0) = ("e-10".parse().unwrap(), "e-0".parse().unwrap());
        let mut first = Box::pin(world.desk.hand_over(account, &e_10, all_days()));
        let first_result = poll_steps(&mut first, step).await;
        let is_finished_first = first_result.is_some();
        other_desk.hand_over(account, &e_0, all_days()).await.unwrap();
        other_desk.place(&paid[2]).await.unwrap();
        match first_result {
            Some(result) => assert!(result.is_ok(), "step {step}: {result:?}"),
            None => match first.await {
                Ok(_) => completed += 1,
                Err(DeskError::HandedOverToAnother { representative, .. }) => {
                    assert_eq!(representative, e_10);
                    stopped += 1;
                }
                Err(error) => panic!("step {step}: {error}"),
            },
        }
        let customer = other_desk.table.get_customer(account).await.unwrap().unwrap();
        for paid in paid {
            let (order, _) = other_desk.table.get_order(paid.order).await.unwrap().unwrap();
            assert_eq!(order.representative, customer.representative, "step {step}: {}", order.id);
        }
        world.assert_consistent(paid, &format!("step {step}")).await;
        if is_finished_first {
            break;
        }
    }
    assert!(stopped > 3 && completed > 3, "{stopped} {completed}");
}
