//! Two desks at once, payments told twice and in any order, and orders that race for the last item.

use std::sync::Arc;

use emulator::{Call, Fault, Faults, Injector};
use futures::future::join_all;
use orders::{OrderStatus, PaidPeriod, PlaceOutcome};
use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;
use simulator::{Company, CompanySize};
use store::Paging;
use ulid::Ulid;

use crate::order_desk::world::{World, always};

const SMALL: CompanySize = CompanySize { customers: 30, employees: 20, products: 5, warehouses: 3, months: 2 };

#[tokio::test(flavor = "multi_thread")]
async fn two_desks_that_are_told_everything_twice_in_any_order_place_each_order_once() {
    for seed in 1..=4 {
        let world = World::new(Company::new(SMALL, seed), 6).await;
        let (mut dice, desks) = (ChaCha8Rng::seed_from_u64(seed), [world.calm_desk(), world.calm_desk()]);
        let mut told: Vec<(usize, PaidPeriod)> =
            world.company.paid.iter().flat_map(|paid| [(0, paid.clone()), (1, paid.clone())]).collect();
        told.shuffle(&mut dice);
        for batch in told.chunks(8) {
            let placing = batch.iter().map(|(desk, paid)| {
                let (desk, paid) = (desks[*desk].clone(), paid.clone());
                async move {
                    // The queue brings again what could not be done.
                    while let Err(error) = desk.place(&paid).await {
                        assert!(error.is_transient(), "{error}");
                    }
                }
            });
            join_all(placing).await;
        }
        world.check(&world.company.paid, &format!("seed {seed}")).await;
        let books = world.books().await;
        let open = books.orders.values().filter(|order| order.status == "OPEN").count();
        let waiting = books.orders.values().filter(|order| order.status == "BACKORDERED").count();
        assert!(open > 5 && waiting > 5, "seed {seed}: {open} {waiting}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_orders_that_race_for_the_last_item_one_gets_it() {
    let mut company = Company::new(SMALL, 9);
    let (sku, lines) = company.skus[0].clone();
    let address = company.customers.iter().find_map(|(_, address)| address.clone());
    company.customers.iter_mut().for_each(|(_, of)| of.clone_from(&address));
    company.paid.iter_mut().for_each(|paid| paid.sku = sku.clone());
    company.paid.truncate(10);
    let mut world = World::new(company, 0).await;
    let desk = world.calm_desk();
    let warehouse = world.company.warehouses[0].id.clone();
    for line in &lines {
        desk.receive(&line.product, &warehouse, u64::from(line.quantity), Ulid::generate()).await.unwrap();
        world.arrived.insert(format!("PRODUCT#{}", line.product), i64::from(line.quantity));
    }
    let paid = world.company.paid.clone();
    let placing = paid.iter().map(|paid| {
        let desk = world.calm_desk();
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
    world.check(&paid, "after the race").await;

    // What arrives goes to the oldest that wait, and no further than it lasts.
    let waiting = desk
        .table
        .orders_in(&[OrderStatus::BackOrdered], always(), desk.buckets(), &Paging::all())
        .await
        .unwrap()
        .into_items()
        .unwrap();
    assert_eq!(waiting.len(), 9);
    for line in &lines {
        desk.receive(&line.product, &warehouse, 2 * u64::from(line.quantity), Ulid::generate()).await.unwrap();
        *world.arrived.get_mut(&format!("PRODUCT#{}", line.product)).unwrap() += 2 * i64::from(line.quantity);
    }
    let left = desk
        .table
        .orders_in(&[OrderStatus::BackOrdered], always(), desk.buckets(), &Paging::all())
        .await
        .unwrap()
        .into_items()
        .unwrap();
    assert_eq!(left, waiting[2..], "the two oldest are filled");
    world.check(&paid, "after the arrival").await;
}

/// Others go first before each call.
struct TakingTurns;

impl Faults for TakingTurns {
    fn next(&self, _: &Call<'_>) -> Option<Fault> {
        None
    }

    fn turns(&self) -> u32 {
        1
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_that_are_placed_while_their_customer_is_handed_over_go_with_it() {
    let mut moved_in_all = 0;
    for seed in 1..=5 {
        let injector = Arc::new(Injector::new(Arc::new(TakingTurns)));
        let world = World::through(Company::new(SMALL, seed), 50, injector.clone()).await;
        let begun = injector.calls();
        let (desk, to) = (&world.desk, &"e-10".parse().unwrap());
        let placing = join_all(world.company.paid.iter().map(|paid| async move {
            while let Err(error) = desk.place(paid).await {
                assert!(error.is_transient(), "{error}");
            }
        }));
        let handing = join_all((0..).zip(&world.company.customers).map(|(place, (account, _))| async move {
            // Some customers are handed over before their orders are placed, others meanwhile or afterwards.
            for _ in 0..place % 32 {
                tokio::task::yield_now().await;
            }
            loop {
                match desk.hand_over(account, to, always()).await {
                    Ok(moved) => return moved,
                    Err(error) => assert!(error.is_transient(), "{error}"),
                }
            }
        }));
        // At other moments of the placing each time.
        let later = async {
            while injector.calls() < begun + seed * 40 {
                tokio::task::yield_now().await;
            }
            handing.await
        };
        let (_, moved) = futures::join!(placing, later);
        moved_in_all += moved.iter().sum::<u32>();
        world.check(&world.company.paid, &format!("seed {seed}")).await;
        let books = world.books().await;
        let left = books.orders.values().filter(|order| order.representative != "EMP#e-10").count();
        assert_eq!(left, 0, "seed {seed}: orders that stayed with the old representative");
    }
    assert!(moved_in_all > 0, "no order was placed before its customer was handed over");
}
