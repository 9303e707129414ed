//! Tests of concurrent changes of orders that wait for stock or an address: the orders are filled and cancelled, stock
//! arrives, and customers change their address, all at the same time.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use emulator::{ExternalCall, Fault, FaultDecider, FaultInjector};
use futures::future::join_all;
use orders::{OrderStatus, ProductId};
use orders_desk::OrderDesk;

use crate::order_desk::filling::{assert_nothing_to_fill, company_with_one_sku, count_orders, receive_stock};
use crate::order_desk::suspended_operation::poll_steps;
use crate::order_desk::world::{World, fill_all};

/// Injects no fault, but lets other tasks run before each call to the table takes effect. The field is the number of
/// times that each call yields to other tasks.
struct YieldBeforeEachCall(u32);

impl FaultDecider for YieldBeforeEachCall {
    fn fault_of_call(&self, _: &ExternalCall<'_>) -> Option<Fault> {
        None
    }

    fn yields_per_call(&self) -> u32 {
        self.0
    }
}

/// Creates a world with orders of `lines` products and with `stock` pieces of each product. The order desk yields to
/// other tasks `yields` times before each call to the table.
async fn yielding_world(lines: usize, stock: u64, yields: u32) -> World {
    let injector = FaultInjector::new(Arc::new(YieldBeforeEachCall(yields)));
    World::with_injector(company_with_one_sku(lines), stock, Arc::new(injector)).await
}

/// Fills waiting orders while other requests change them. An order can fail because of a write conflict. A later call
/// then tries this order again.
async fn fill_with_conflicts(desk: &OrderDesk) {
    let done = desk.fill_waiting_orders(DateTime::<Utc>::MAX_UTC).await;
    assert_eq!(done.unfinished_tasks, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_fills_and_cancellations_fill_each_order_at_most_once() {
    let mut world = yielding_world(2, 10, 1).await;
    let (desk, paid) = (world.desk.clone(), world.company.paid[..40].to_vec());
    for paid in &paid {
        desk.place_order(paid).await.unwrap();
    }
    assert_eq!(count_orders(&world, &paid, "BACKORDERED").await, 30);
    let products: Vec<ProductId> = world.company.products[..2].iter().map(|product| product.id.clone()).collect();
    for round in 0..4 {
        for product in &products {
            receive_stock(&mut world, &desk, product, 3).await;
        }
        // Cancels three orders: open orders, whose pieces return to the stock, and waiting orders, which `fills` may
        // fill at the same time.
        let cancelled = [round, 12 + 3 * round, 39 - round].map(|n| paid[n].order);
        let cancelling = join_all(cancelled.map(|order| {
            let desk = &desk;
            async move {
                while let Err(error) = desk.advance_order(order, OrderStatus::Cancelled).await {
                    assert!(error.is_transient(), "{error}");
                }
            }
        }));
        let fills = join_all((0..3).map(|_| fill_with_conflicts(&desk)));
        futures::join!(fills, cancelling);
        world.assert_consistent(&paid, &format!("round {round}")).await;
        assert_nothing_to_fill(&world, &format!("round {round}")).await;
    }
    let cancelled = count_orders(&world, &paid, "CANCELLED").await;
    assert_eq!((cancelled, count_orders(&world, &paid, "OPEN").await), (12, 10 + 4 * 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn order_is_either_shipped_or_cancelled_if_both_are_requested_at_the_same_time() {
    let world = yielding_world(2, 20, 1).await;
    let (desk, paid) = (world.desk.clone(), world.company.paid[..20].to_vec());
    for paid in &paid {
        desk.place_order(paid).await.unwrap();
        desk.advance_order(paid.order, OrderStatus::Picked).await.unwrap();
    }
    let both =
        join_all(
            paid.iter().enumerate().map(|(n, paid)| {
                let desk = &desk;
                let advance = async move |next: OrderStatus, delay: usize| {
                    for _ in 0..delay {
                        tokio::task::yield_now().await;
                    }
                    loop {
                        match desk.advance_order(paid.order, next).await {
                            Err(error) if error.is_transient() => {}
                            result => return result.is_ok(),
                        }
                    }
                };
                // Sends both requests. One of them starts up to five scheduler turns before the other one, depending on
                // the order's number `n`.
                async move {
                    futures::join!(advance(OrderStatus::Shipped, n % 6), advance(OrderStatus::Cancelled, 5 - n % 6))
                }
            }),
        );
    let results = both.await;
    let shipped = results.iter().filter(|(is_shipped, _)| *is_shipped).count();
    let cancelled = results.iter().filter(|(_, is_cancelled)| *is_cancelled).count();
    assert_eq!(shipped + cancelled, 20, "{results:?}");
    assert!(shipped > 0 && cancelled > 0, "{results:?}");
    assert_eq!(
        (count_orders(&world, &paid, "SHIPPED").await, count_orders(&world, &paid, "CANCELLED").await),
        (shipped, cancelled)
    );
    world.assert_consistent(&paid, "after the race").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn order_does_not_wait_for_stock_that_arrives_while_it_is_placed() {
    let mut placed_as_waiting = 0;
    // In each round, stock arrives and its fill task is completed while the order is being placed. `delay` decides at
    // which moment this happens.
    for delay in 0..24 {
        let mut world = yielding_world(1, 0, 3).await;
        let (placing, paid) = (world.desk.clone(), world.company.paid[0].clone());
        let desk = world.desk_without_faults();
        let product = world.company.products[0].id.clone();
        let receiving = async {
            for _ in 0..delay {
                tokio::task::yield_now().await;
            }
            receive_stock(&mut world, &desk, &product, 1).await;
            fill_all(&desk).await;
        };
        let (placed, ()) = futures::join!(placing.place_order(&paid), receiving);
        placed_as_waiting += u32::from(placed.unwrap() == orders_desk::PlaceOutcome::Placed(OrderStatus::BackOrdered));
        fill_all(&desk).await;
        assert_eq!(count_orders(&world, std::slice::from_ref(&paid), "OPEN").await, 1, "delay {delay}");
    }
    assert!(placed_as_waiting > 0);
}

#[tokio::test]
async fn order_that_is_filled_while_its_customer_moves_keeps_its_address_or_takes_the_new_one() {
    fill_while_customer_moves(true).await;
    fill_while_customer_moves(false).await;
}

/// Fills an order while its customer changes the address. If the customer had an address when the order was placed
/// (`has_address`), the order must keep this address. Otherwise the order must get the address that the customer has
/// when the order is filled.
async fn fill_while_customer_moves(has_address: bool) {
    // The filling is suspended after `step` steps, the customer changes the address, and then the filling continues.
    let mut moved_before_the_order_was_filled = 0;
    for step in 0.. {
        let injector = Arc::new(FaultInjector::new(Arc::new(YieldBeforeEachCall(1))));
        let mut company = company_with_one_sku(1);
        let account = company.paid[0].account.clone();
        let (_, address) = company.customers.iter_mut().find(|(customer, _)| *customer == account).unwrap();
        let old = address.clone().unwrap();
        if !has_address {
            *address = None;
        }
        let mut world = World::with_injector(company, 0, injector).await;
        let (desk, paid) = (world.desk_without_faults(), world.company.paid[0].clone());
        desk.place_order(&paid).await.unwrap();
        desk.set_shipping_address(&paid.account, old.clone()).await.unwrap();
        let product = world.company.products[0].id.clone();
        receive_stock(&mut world, &desk, &product, 5).await;
        let mut filling = Box::pin(world.desk.fill_waiting_orders(DateTime::<Utc>::MAX_UTC));
        let is_finished = poll_steps(&mut filling, step).await.is_some();
        let waits = async || {
            let (order, _) = desk.table.get_order(paid.order).await.unwrap().unwrap();
            order.status == OrderStatus::BackOrdered
        };
        let is_waiting = waits().await;
        let new = orders::ShippingAddress { city: "Elsewhere".parse().unwrap(), ..old.clone() };
        desk.set_shipping_address(&paid.account, new.clone()).await.unwrap();
        if !is_finished {
            filling.await;
        }
        fill_all(&desk).await;
        assert!(!waits().await, "step {step}");
        let (order, _) = desk.table.get_order(paid.order).await.unwrap().unwrap();
        if is_waiting {
            moved_before_the_order_was_filled += 1;
            let expected = if has_address { old } else { new };
            assert_eq!(order.address, Some(expected), "step {step}: the order waited when the customer moved");
        }
        if is_finished {
            break;
        }
    }
    assert!(moved_before_the_order_was_filled > 3);
}
