//! Tests of fill tasks, which fill the orders that wait for stock or an address: which orders a task fills, how many
//! requests it sends, and when it is deleted.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, TimeDelta, Utc};
use clock::Clock;
use orders::{FillTarget, OrderLine, OrderStatus, PaidPeriod, Product, ProductId};
use orders_desk::{FillCounts, OrderDesk};
use orders_table::{BucketCount, OrdersTable};
use simulator::{Company, CompanySize};
use ulid::Ulid;

use crate::order_desk::world::{BUCKETS, World, fill_all, test_time};

/// The size of the sample company in these tests.
const COMPANY_SIZE: CompanySize = CompanySize { customers: 50, employees: 20, products: 20, warehouses: 1, months: 3 };

/// Returns a company whose customers all have the same address and pay for the same SKU. The SKU contains the first
/// `lines` products, one piece of each product.
pub fn company_with_one_sku(lines: usize) -> Company {
    let mut company = Company::new(COMPANY_SIZE, 9);
    let sku = company.skus[0].0.clone();
    let line = |product: &Product| OrderLine { product: product.id.clone(), quantity: 1 };
    company.skus[0].1 = company.products[..lines].iter().map(line).collect();
    let address = company.customers.iter().find_map(|(_, address)| address.clone());
    company.customers.iter_mut().for_each(|(_, of)| of.clone_from(&address));
    company.paid.iter_mut().for_each(|paid| paid.sku = sku.clone());
    company
}

/// Receives a delivery of `quantity` pieces of `product` in the first warehouse.
pub async fn receive_stock(world: &mut World, desk: &OrderDesk, product: &ProductId, quantity: u32) {
    let warehouse = world.company.warehouses[0].id.clone();
    desk.receive_stock(product, &warehouse, quantity.into(), Ulid::generate()).await.unwrap();
    *world.received.entry(format!("PRODUCT#{product}")).or_default() += i64::from(quantity);
}

/// Counts the orders with the status `status` among the orders of the payments `paid`.
pub async fn count_orders(world: &World, paid: &[PaidPeriod], status: &str) -> usize {
    let contents = world.contents().await;
    paid.iter().filter(|paid| contents.orders[&format!("ORDER#{}", paid.order)].status == status).count()
}

/// Checks that no order waits although there is stock for it. For this purpose, processes the existing fill tasks and
/// checks that none is left, then creates new fill tasks for all products and checks that these tasks fill no order.
pub async fn assert_nothing_to_fill(world: &World, when: &str) {
    let desk = world.desk_without_faults();
    fill_all(&desk).await;
    assert_eq!(desk.table.fill_tasks().await.unwrap().items, [], "{when}");
    for product in &world.company.products {
        desk.table.request_fill(&FillTarget::Product(product.id.clone()), desk.clock().ulid()).await.unwrap();
    }
    assert_eq!(fill_all(&desk).await, 0, "{when}: an order waits although there is stock");
}

/// A clock that advances by one second whenever it is read, so that a deadline passes in the middle of a fill task.
#[derive(Debug)]
struct SteppingClock(AtomicI64);

impl Clock for SteppingClock {
    fn now(&self) -> DateTime<Utc> {
        test_time() + TimeDelta::seconds(self.0.fetch_add(1, Ordering::Relaxed))
    }

    fn ulid(&self) -> Ulid {
        Ulid::generate()
    }

    fn random_secret(&self) -> [u8; 32] {
        [0; 32]
    }
}

/// Returns an order desk without faults that uses `clock`.
fn desk_with_clock(world: &World, clock: Arc<dyn Clock>) -> OrderDesk {
    OrderDesk::new(OrdersTable::new(world.engine.client(), "dueday-orders"), BucketCount::new(BUCKETS), clock)
}

#[tokio::test(flavor = "multi_thread")]
async fn cancel_or_return_needs_three_requests_whether_orders_wait_or_not() {
    // The columns are: the number of products of each order (20 is the maximum); the number of waiting orders; whether
    // the first order is shipped and returned (true) or cancelled (false).
    for (lines, waiting, is_returned) in [(6, 0, false), (6, 40, false), (20, 1, false), (6, 40, true), (20, 1, true)] {
        let world = World::new(company_with_one_sku(lines), 1).await;
        let (desk, paid) = (world.desk_without_faults(), &world.company.paid[..=waiting]);
        for paid in paid {
            desk.place_order(paid).await.unwrap();
        }
        assert_eq!(count_orders(&world, paid, "BACKORDERED").await, waiting);
        let next = if is_returned { OrderStatus::Returned } else { OrderStatus::Cancelled };
        for step in [OrderStatus::Picked, OrderStatus::Shipped].into_iter().filter(|_| is_returned) {
            desk.advance_order(paid[0].order, step).await.unwrap();
        }
        let before = world.connection.request_counts();
        world.desk.advance_order(paid[0].order, next).await.unwrap();
        let mut requests = world.connection.request_counts();
        requests.iter_mut().for_each(|(operation, count)| *count -= before.get(operation).copied().unwrap_or_default());
        requests.retain(|_, count| *count > 0);
        // The order desk reads the order with GetItem, reads the quarter total of the representative with Query, and
        // then writes one transaction.
        let expected = [("GetItem", 1), ("Query", 1), ("TransactWriteItems", 1)];
        assert_eq!(
            requests,
            expected.map(|(operation, count)| (operation.to_owned(), count)).into(),
            "{next}, {waiting}"
        );
        // The stock of the cancelled or returned order fills the oldest waiting order.
        assert_eq!(fill_all(&desk).await, u32::from(waiting > 0));
        world.assert_consistent(paid, "after the cancellation or the return").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fill_stops_at_the_first_order_without_stock_and_continues_after_its_deadline() {
    let mut world = World::new(company_with_one_sku(1), 0).await;
    let (desk, paid) = (world.desk_without_faults(), world.company.paid[..70].to_vec());
    for paid in &paid {
        desk.place_order(paid).await.unwrap();
    }
    let product = world.company.products[0].id.clone();

    // If there is no stock, the fill task tries only the oldest order.
    desk.table.request_fill(&FillTarget::Product(product.clone()), desk.clock().ulid()).await.unwrap();
    let before: u64 = world.connection.request_counts().values().sum();
    assert_eq!(fill_all(&world.desk).await, 0);
    let requests = world.connection.request_counts().values().sum::<u64>() - before;
    assert!(requests <= 7, "{requests} requests for one order");

    // The deadline ends the first call in the middle of a list page of orders. The second call continues after the last
    // order that the first call filled.
    receive_stock(&mut world, &desk, &product, 60).await;
    let stepping = desk_with_clock(&world, Arc::new(SteppingClock(AtomicI64::new(0))));
    let first = stepping.fill_waiting_orders(test_time() + TimeDelta::seconds(40)).await;
    assert!((30..40).contains(&first.filled), "{first:?}");
    assert_eq!((first.unfinished_tasks, first.failed), (1, 0));
    let tasks = desk.table.fill_tasks().await.unwrap().items;
    let position = tasks[0].pass.as_ref().unwrap().after.unwrap();
    assert_eq!(position.order, paid[first.filled as usize - 1].order);
    assert_eq!(first.filled + fill_all(&world.desk).await, 60);
    let contents = world.contents().await;
    let is_open = |paid: &PaidPeriod| contents.orders[&format!("ORDER#{}", paid.order)].status == "OPEN";
    assert!(paid[..60].iter().all(is_open) && !paid[60..].iter().any(is_open), "the oldest orders come first");
    assert_nothing_to_fill(&world, "after the second call").await;
    world.assert_consistent(&paid, "after the second call").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn short_calls_reach_the_newest_order_although_many_older_orders_have_no_address() {
    let mut company = company_with_one_sku(1);
    let paid = company.paid[..70].to_vec();
    let newest = paid[69].account.clone();
    company.customers.iter_mut().filter(|(account, _)| *account != newest).for_each(|(_, address)| *address = None);
    let mut world = World::new(company, 0).await;
    let desk = world.desk_without_faults();
    for paid in &paid {
        desk.place_order(paid).await.unwrap();
    }
    let product = world.company.products[0].id.clone();
    let orders_of_newest = paid.iter().filter(|paid| paid.account == newest).count();
    receive_stock(&mut world, &desk, &product, 70).await;
    let (mut filled, mut calls) = (0, 0);
    loop {
        // Each call has time for eight orders. More stock arrives between two calls. The next call must still continue
        // after the last tried order, and must not begin again with the oldest order.
        let stepping = desk_with_clock(&world, Arc::new(SteppingClock(AtomicI64::new(0))));
        let done = stepping.fill_waiting_orders(test_time() + TimeDelta::seconds(10)).await;
        (filled, calls) = (filled + done.filled, calls + 1);
        if done.unfinished_tasks == 0 || calls == 20 {
            break;
        }
        receive_stock(&mut world, &desk, &product, 1).await;
    }
    assert_eq!((filled as usize, calls), (orders_of_newest, 9));
    assert_eq!(count_orders(&world, &paid, "OPEN").await, orders_of_newest);
}

#[tokio::test(flavor = "multi_thread")]
async fn stock_that_arrives_during_a_pass_leads_to_another_pass() {
    let mut world = World::new(company_with_one_sku(1), 0).await;
    let (desk, paid) = (world.desk_without_faults(), world.company.paid[..50].to_vec());
    for paid in &paid {
        desk.place_order(paid).await.unwrap();
    }
    let product = world.company.products[0].id.clone();
    receive_stock(&mut world, &desk, &product, 40).await;
    let stepping = desk_with_clock(&world, Arc::new(SteppingClock(AtomicI64::new(0))));
    let first = stepping.fill_waiting_orders(test_time() + TimeDelta::seconds(35)).await;
    assert_eq!(first.unfinished_tasks, 1, "{first:?}");
    let target = FillTarget::Product(product.clone());
    let pass = desk.table.fill_tasks().await.unwrap().items[0].pass.clone().unwrap();

    receive_stock(&mut world, &desk, &product, 3).await;
    let changed = desk.table.fill_tasks().await.unwrap().items.remove(0);
    assert_eq!(changed.pass.as_ref(), Some(&pass), "the position stays");
    assert_ne!(changed.change, pass.change);
    assert!(!desk.table.delete_fill_task(&target, &pass).await.unwrap(), "a pass before the change ends no task");
    let second = fill_all(&desk).await;
    assert_eq!(first.filled + second, 43);
    let left = desk.table.fill_tasks().await.unwrap().items;
    assert_eq!((left.len(), left[0].pass.as_ref()), (1, None), "the next pass starts with the oldest order");
    // A pass tries the waiting orders of the product from the oldest to the newest. A worker with an outdated pass
    // cannot store it, neither while the task has a newer pass nor after the task was deleted.
    let new_pass = left[0].current_or_new_pass(test_time());
    assert!(desk.table.save_fill_pass(&target, &new_pass).await.unwrap());
    assert!(!desk.table.save_fill_pass(&target, &pass).await.unwrap());
    assert_eq!(fill_all(&desk).await, 0);
    assert!(!desk.table.save_fill_pass(&target, &new_pass).await.unwrap());
    assert_nothing_to_fill(&world, "after the second pass").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn task_stays_until_the_indexes_must_contain_the_orders_that_were_placed_before_the_change() {
    let world = World::new(company_with_one_sku(1), 0).await;
    let clock = Arc::new(clock::SimulatedClock::new(test_time(), 77));
    let desk = desk_with_clock(&world, clock.clone()).with_index_delay(TimeDelta::seconds(30));
    let target = FillTarget::Product(world.company.products[0].id.clone());
    desk.table.request_fill(&target, clock.ulid()).await.unwrap();
    for (seconds, tasks) in [(0, 1), (29, 1), (30, 0)] {
        clock.set(test_time() + TimeDelta::seconds(seconds));
        assert_eq!(desk.fill_waiting_orders(DateTime::<Utc>::MAX_UTC).await, FillCounts::default());
        assert_eq!(desk.table.fill_tasks().await.unwrap().items.len(), tasks, "after {seconds} seconds");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_task_is_counted_and_does_not_stop_the_other_tasks() {
    let mut world = World::new(company_with_one_sku(1), 0).await;
    let (desk, paid) = (world.desk_without_faults(), world.company.paid[0].clone());
    desk.place_order(&paid).await.unwrap();
    let item = serde_json::json!({ "PK": { "S": "FILLS" }, "SK": { "S": "CUSTOMER#a" }, "Change": { "S": "unknown" } });
    world.engine.execute("PutItem", &serde_json::json!({ "TableName": "dueday-orders", "Item": item })).unwrap();
    let product = world.company.products[0].id.clone();
    receive_stock(&mut world, &desk, &product, 1).await;
    let done = desk.fill_waiting_orders(DateTime::<Utc>::MAX_UTC).await;
    assert_eq!(done, FillCounts { filled: 1, failed: 1, unfinished_tasks: 0 });
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_waiting_order_lets_the_newer_orders_be_filled() {
    let mut company = company_with_one_sku(1);
    let (product, large) = (company.products[0].id.clone(), company.skus[1].0.clone());
    company.skus[1].1 = vec![OrderLine { product: product.clone(), quantity: 9 }];
    company.paid[0].sku = large;
    let mut world = World::new(company, 0).await;
    let (desk, paid) = (world.desk_without_faults(), world.company.paid[..3].to_vec());
    for paid in &paid {
        desk.place_order(paid).await.unwrap();
    }
    receive_stock(&mut world, &desk, &product, 5).await;
    assert_eq!(fill_all(&desk).await, 0, "the oldest order needs nine pieces");
    desk.advance_order(paid[0].order, OrderStatus::Cancelled).await.unwrap();
    assert_eq!(fill_all(&desk).await, 2);
    world.assert_consistent(&paid, "after the cancellation").await;
}
