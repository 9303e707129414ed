//! Tests of a hand-over: a customer and the customer's orders get another representative, while an order is picked or
//! filled. The indexes are up to date, or lag behind the table.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use emulator::{Call, EngineConnection, Fault, Injector, Operation};
use orders::{Buckets, OrderDesk, OrderStatus, OrdersTable, PaidPeriod};
use simulator::{Company, CompanySize};
use ulid::Ulid;

use crate::order_desk::races::YieldBeforeEachCall;
use crate::order_desk::stale_indexes::StaleIndexes;
use crate::order_desk::suspended_operation::poll_steps;
use crate::order_desk::world::{BUCKETS, World, all_days, fill_all, new_clock};

/// The size of the sample company in these tests.
const COMPANY_SIZE: CompanySize = CompanySize { customers: 1, employees: 11, products: 1, warehouses: 1, months: 1 };

/// The change of the order that is made during the hand-over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rival {
    Pick,
    Fill,
}

/// Whether the indexes contain the change of the order that is made during the hand-over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum IndexState {
    UpToDate,
    Lagging,
}

/// Returns a company whose only customer has an address, and has paid for one piece of the only product.
fn company() -> Company {
    let mut company = Company::new(COMPANY_SIZE, 9);
    let (sku, region) = (company.skus[0].0.clone(), company.warehouses[0].region.clone());
    company.skus[0].1[0].quantity = 1;
    let address =
        Company::new(CompanySize { customers: 9, ..COMPANY_SIZE }, 9).customers.into_iter().find_map(|(_, of)| of);
    company.customers[0].1 = address.map(|address| orders::ShippingAddress { region, ..address });
    company.paid.truncate(1);
    company.paid[0].sku = sku;
    company
}

/// Returns an order desk that lets other tasks run before each request. `indexes` responds to its queries of indexes.
fn desk_with_indexes(world: &World, indexes: Arc<StaleIndexes>) -> OrderDesk {
    let injector = Arc::new(Injector::new(Arc::new(YieldBeforeEachCall)));
    let connection =
        Arc::new(EngineConnection::with_injector(injector).without_transaction_tokens().and_observer(indexes));
    let table = OrdersTable::new(world.engine.client_with_connection(connection), "dueday-orders");
    OrderDesk::new(table, Buckets::new(BUCKETS), new_clock())
}

/// Makes the change `rival`: picks the order of the payment `paid`, or receives a piece in stock and fills the order.
async fn make_change(rival: Rival, world: &mut World, desk: &OrderDesk, paid: &PaidPeriod) {
    match rival {
        Rival::Pick => drop(desk.advance(paid.order, OrderStatus::Picked).await.unwrap()),
        Rival::Fill => {
            let (product, warehouse) = (world.company.products[0].id.clone(), world.company.warehouses[0].id.clone());
            desk.receive_stock(&product, &warehouse, 1, Ulid::generate()).await.unwrap();
            *world.received.entry(format!("PRODUCT#{product}")).or_default() += 1;
            assert_eq!(fill_all(desk).await, 1);
        }
    }
}

#[tokio::test]
async fn order_that_is_picked_or_filled_during_a_hand_over_is_handed_over() {
    for (rival, index) in [
        (Rival::Pick, IndexState::UpToDate),
        (Rival::Pick, IndexState::Lagging),
        (Rival::Fill, IndexState::UpToDate),
        (Rival::Fill, IndexState::Lagging),
    ] {
        // The hand-over is suspended after `step` steps. Then the change `rival` is made completely, and the hand-over
        // continues. Each request to the table takes two steps.
        let mut finished_later = 0;
        for step in (0..).step_by(2) {
            let mut world = World::new(company(), if rival == Rival::Pick { 1 } else { 0 }).await;
            let (other_desk, paid) = (world.desk_without_faults(), world.company.paid[0].clone());
            other_desk.place(&paid).await.unwrap();
            let to = "e-10".parse().unwrap();
            other_desk.hand_over(&paid.account, &"e-0".parse().unwrap(), all_days()).await.unwrap();
            let indexes = StaleIndexes::new(&world.engine).await;
            let desk = desk_with_indexes(&world, indexes.clone());
            let mut handing_over = Box::pin(desk.hand_over(&paid.account, &to, all_days()));
            let result = poll_steps(&mut handing_over, step).await;
            let is_finished_first = result.is_some();
            make_change(rival, &mut world, &other_desk, &paid).await;
            if index == IndexState::UpToDate {
                indexes.update().await;
            }
            let handed_over = match result {
                Some(result) => result,
                None => {
                    finished_later += 1;
                    handing_over.await
                }
            };
            let when = format!("{rival:?} at step {step}, {index:?}");
            assert_eq!(handed_over.unwrap(), 1, "{when}");
            let (order, _) = other_desk.table.get_order(paid.order).await.unwrap().unwrap();
            let expected = if rival == Rival::Pick { OrderStatus::Picked } else { OrderStatus::Open };
            assert_eq!((order.status, order.representative), (expected, Some(to.clone())), "{when}");
            world.assert_consistent(std::slice::from_ref(&paid), &when).await;
            if is_finished_first {
                break;
            }
        }
        assert!(finished_later > 5, "{rival:?}, {index:?}: {finished_later}");
    }
}

#[tokio::test]
async fn hand_over_whose_transactions_always_conflict_ends_with_an_error() {
    // The columns are: the number of transactions that succeed; the item that the error names. The first transaction of
    // a hand-over changes the customer, and the second transaction changes the order.
    for (succeeding, item) in [(0, "the customer "), (1, "the order ")] {
        let transactions = AtomicU32::new(0);
        let conflict = move |call: &Call<'_>| {
            let is_transaction = call.operation == Operation::DynamoDb("TransactWriteItems");
            let is_refused = is_transaction && transactions.fetch_add(1, Ordering::Relaxed) >= succeeding;
            is_refused.then_some(Fault::Cancelled("ConditionalCheckFailed"))
        };
        let world = World::with_injector(company(), 1, Arc::new(Injector::new(Arc::new(conflict)))).await;
        let (other_desk, paid) = (world.desk_without_faults(), world.company.paid[0].clone());
        other_desk.place(&paid).await.unwrap();
        other_desk.hand_over(&paid.account, &"e-0".parse().unwrap(), all_days()).await.unwrap();
        let failed = world.desk.hand_over(&paid.account, &"e-10".parse().unwrap(), all_days()).await.unwrap_err();
        assert!(failed.is_transient() && failed.to_string().contains(item), "{failed}");
        assert_eq!(other_desk.hand_over(&paid.account, &"e-10".parse().unwrap(), all_days()).await.unwrap(), 1);
        world.assert_consistent(std::slice::from_ref(&paid), item).await;
    }
}

#[tokio::test]
async fn order_that_no_index_contains_yet_is_handed_over_by_a_repeated_request() {
    let world = World::new(company(), 1).await;
    let (other_desk, paid) = (world.desk_without_faults(), &world.company.paid[0]);
    other_desk.hand_over(&paid.account, &"e-0".parse().unwrap(), all_days()).await.unwrap();
    let indexes = StaleIndexes::new(&world.engine).await;
    let (desk, to) = (desk_with_indexes(&world, indexes.clone()), "e-10".parse().unwrap());
    other_desk.place(paid).await.unwrap();
    let representative = async || other_desk.table.get_order(paid.order).await.unwrap().unwrap().0.representative;
    for (expected, handed_over) in [("e-0", 0), ("e-10", 1)] {
        assert_eq!(desk.hand_over(&paid.account, &to, all_days()).await.unwrap(), handed_over);
        assert_eq!(representative().await, Some(expected.parse().unwrap()));
        indexes.update().await;
    }
    world.assert_consistent(std::slice::from_ref(paid), "after both requests").await;
}
