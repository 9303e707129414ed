//! Tests of stock movements (counts of the stock, write-offs and transfers between warehouses) and of changes of the
//! products of an order. They run at the same time as other changes of orders, or crash at each request.

use std::sync::Arc;

use emulator::{ExternalCall, FaultInjector};
use futures::future::join_all;
use orders::{MovementRequest, OrderLine, OrderStatus, OrderStep, PaidPeriod, ProductId};
use orders_desk::{DeskError, OrderDesk};
use simulator::{Company, CompanySize};
use testkit::FAULTS_AFTER_EACH_CALL;
use ulid::Ulid;

use crate::order_desk::races::YieldBeforeEachCall;
use crate::order_desk::world::{World, fill_all};

/// The size of the sample company in these tests.
const COMPANY_SIZE: CompanySize = CompanySize { customers: 5, employees: 20, products: 2, warehouses: 2, months: 1 };

/// Returns a company whose customers all have the same address and pay for the same SKU.
fn company() -> Company {
    let mut company = Company::new(COMPANY_SIZE, 9);
    let sku = company.skus[0].0.clone();
    let address = company.customers.iter().find_map(|(_, address)| address.clone());
    company.customers.iter_mut().for_each(|(_, of)| of.clone_from(&address));
    company.paid.iter_mut().for_each(|paid| paid.sku = sku.clone());
    company
}

/// Returns four requests for stock movements in the first two warehouses: a count in the first, a write-off in the
/// second, and a transfer in each direction.
fn movement_requests(world: &World) -> Vec<MovementRequest> {
    let [here, there] = [0, 1].map(|number: usize| world.company.warehouses[number].id.clone());
    let reason: billing::Label = "test".parse().unwrap();
    let transfer = |from: &orders::WarehouseId, to: &orders::WarehouseId| MovementRequest::Transfer {
        from: from.clone(),
        to: to.clone(),
        quantity: 2,
        reason: None,
    };
    vec![
        MovementRequest::Count { warehouse: here.clone(), found: 9, reason: reason.clone() },
        transfer(&here, &there),
        MovementRequest::WriteOff { warehouse: there.clone(), quantity: 1, reason },
        transfer(&there, &here),
    ]
}

/// Replaces the products of the order of `paid` by three pieces of the last product. Repeats the request after each
/// write conflict with another request.
async fn exchange_products(world: &World, desk: &OrderDesk, paid: &PaidPeriod) {
    let product = world.company.products.last().unwrap().id.clone();
    let lines = [OrderLine { product, quantity: 3 }];
    while let Err(error) = desk.change_lines(paid.order, &lines, |_| Ok::<_, DeskError>(())).await {
        assert!(error.is_transient(), "{error}");
    }
}

/// Makes the stock movement `request` of `product`, with the id `id`. Repeats the request after each write conflict
/// with another request.
async fn move_stock_until_done(desk: &OrderDesk, product: &ProductId, id: Ulid, request: &MovementRequest) {
    while let Err(error) = desk.move_stock(product, id, request).await {
        assert!(error.is_transient(), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_and_transfers_during_fills_and_cancellations_lose_no_piece() {
    for seed in 0..4 {
        let injector = Arc::new(FaultInjector::new(Arc::new(YieldBeforeEachCall)));
        let world = World::with_injector(company(), 30, injector).await;
        let (shared, desk, product) = (&world, &world.desk, &world.company.skus[0].1[0].product);
        let all = movement_requests(&world);
        let moving = join_all(all.iter().map(|request| async move {
            for _ in 0..seed * 7 {
                tokio::task::yield_now().await;
            }
            move_stock_until_done(desk, product, Ulid::generate(), request).await;
        }));
        let ordering = join_all(world.company.paid.iter().zip(0..).map(|(paid, number)| async move {
            while let Err(error) = desk.place_order(paid).await {
                assert!(error.is_transient(), "{error}");
            }
            if number % 2 == 0 {
                while let Err(error) = desk.advance_order(paid.order, OrderStatus::Cancelled).await {
                    assert!(error.is_transient(), "{error}");
                }
            } else {
                exchange_products(shared, desk, paid).await;
            }
        }));
        futures::join!(moving, ordering);
        fill_all(&world.desk_without_faults()).await;
        world.assert_consistent(&world.company.paid, &format!("seed {seed}")).await;
        let kinds =
            desk.table.movements_of_product(product, &store::Paging::all()).await.unwrap().into_items().unwrap();
        assert_eq!(kinds.len(), 2 + all.len(), "two deliveries, and each request once");
    }
}

/// Places an order, makes all stock movements, and exchanges the products of the order. Then the order is shipped, and
/// returned with products that cannot be sold again. After a crash, the test calls this function again, so each step
/// must be safe to repeat.
async fn move_stock_and_return_order(world: &World, ids: &[Ulid]) {
    let (desk, product) = (&world.desk, &world.company.skus[0].1[0].product);
    let paid = &world.company.paid[0];
    desk.place_order(paid).await.unwrap();
    for (id, request) in ids.iter().zip(movement_requests(world)) {
        desk.move_stock(product, *id, &request).await.unwrap();
    }
    let unsellable = OrderStep { is_unsellable: true, ..OrderStatus::Returned.into() };
    let (order, _) = desk.table.get_order(paid.order).await.unwrap().unwrap();
    if order.status == OrderStatus::Open {
        exchange_products(world, desk, paid).await;
    }
    for step in [OrderStatus::Picked.into(), OrderStatus::Shipped.into(), unsellable] {
        if order.status != OrderStatus::Returned {
            // The result is ignored: if the order reached this status before the crash, the order desk now refuses the
            // step.
            let _: Result<_, orders_desk::DeskError> = desk.advance_order(paid.order, step).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn movements_that_stop_at_any_request_are_made_once_when_they_are_repeated() {
    let ids: Vec<Ulid> = (0..4).map(|_| Ulid::generate()).collect();
    let mut calls = u64::MAX;
    for number in 0.. {
        if number > calls {
            break;
        }
        for fault in FAULTS_AFTER_EACH_CALL {
            let faults = move |call: &ExternalCall<'_>| (call.number == number).then_some(fault);
            let injector = Arc::new(FaultInjector::active_during_runs(Arc::new(faults)));
            let world = World::with_injector(company(), 30, injector.clone()).await;
            if injector.run(move_stock_and_return_order(&world, &ids)).await.is_none() {
                injector.run(move_stock_and_return_order(&world, &ids)).await.unwrap();
            }
            let paid = &world.company.paid[..1];
            world.assert_consistent(paid, &format!("{fault:?} at {number}")).await;
            let contents = world.contents().await;
            let order = &contents.orders[&format!("ORDER#{}", paid[0].order)];
            assert_eq!((order.status.as_str(), order.is_written_off), ("RETURNED", true), "{fault:?} at {number}");
            calls = injector.call_count();
        }
    }
    assert!(calls > 20, "{calls}");
}
