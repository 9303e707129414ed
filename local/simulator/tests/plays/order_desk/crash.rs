//! Tests that let the order desk crash at each call to the table. After the crash, the order desk processes all
//! payments and changes again.

use std::sync::Arc;

use emulator::{ExternalCall, Fault, FaultInjector};
use orders::{FillTarget, OrderStatus, PaidPeriod};
use simulator::{Company, CompanySize};
use testkit::FAULTS_AFTER_EACH_CALL;

use crate::order_desk::world::{World, fill_all};

/// The size of the sample company in these tests.
const COMPANY_SIZE: CompanySize = CompanySize { customers: 2, employees: 20, products: 3, warehouses: 2, months: 2 };

/// Places an order for each payment, and then changes the orders. After a crash, the test calls this function again, so
/// each step must be safe to repeat.
async fn process_everything(world: &World, paid: &[PaidPeriod]) {
    let desk = &world.desk;
    for paid in paid {
        desk.place_order(paid).await.unwrap();
    }
    for (account, _) in &world.company.customers {
        let address = world.company.customers[0].1.clone().unwrap();
        desk.set_shipping_address(account, address).await.unwrap();
    }
    let orders: Vec<_> = paid.iter().map(|paid| paid.order).collect();
    for (id, next) in orders.iter().zip([OrderStatus::Picked, OrderStatus::Cancelled]) {
        desk.advance_order(*id, next).await.unwrap();
    }
    for (account, _) in &world.company.customers {
        desk.hand_over_customer(account, &"e-10".parse().unwrap()).await.unwrap();
    }
    fill_all(desk).await;
}

/// Processes all orders, with `fault` at the call to the table with this `number`. After a crash, processes all orders
/// again. Then checks the table. Returns the number of calls.
async fn run_with_fault_at(number: u64, fault: Fault) -> u64 {
    let mut company = Company::new(COMPANY_SIZE, 3);
    for (_, address) in &mut company.customers {
        *address =
            address.take().or_else(|| Company::new(COMPANY_SIZE, 3).customers.iter().find_map(|(_, a)| a.clone()));
    }
    // All customers pay for the same SKU, so their orders compete for the same products.
    let sku = company.skus[0].0.clone();
    company.paid.iter_mut().for_each(|paid| paid.sku = sku.clone());
    let faults = move |call: &ExternalCall<'_>| (call.number == number).then_some(fault);
    let injector = Arc::new(FaultInjector::active_during_runs(Arc::new(faults)));
    let world = World::with_injector(company, 4, injector.clone()).await;
    let paid = world.company.paid.clone();
    let has_crashed = injector.run(process_everything(&world, &paid)).await.is_none();
    assert_eq!(has_crashed, number <= injector.call_count() && fault.is_crash());
    if has_crashed {
        injector.run(process_everything(&world, &paid)).await.unwrap();
    }
    world.assert_consistent(&paid, &format!("{fault:?} at {number}")).await;
    let contents = world.contents().await;
    let statuses: Vec<&str> =
        paid[..2].iter().map(|p| contents.orders[&format!("ORDER#{}", p.order)].status.as_str()).collect();
    assert_eq!(statuses, ["PICKED", "CANCELLED"], "{fault:?} at {number}");
    // Creates fill tasks for all products, although no stock arrived. The tasks must fill no order.
    let desk = world.desk_without_faults();
    for product in &world.company.products {
        desk.table.request_fill(&FillTarget::Product(product.id.clone()), desk.clock().ulid()).await.unwrap();
    }
    let filled = fill_all(&desk).await;
    assert_eq!(filled, 0, "{fault:?} at {number}: a back order was not filled although there was stock");
    for (account, _) in &world.company.customers {
        let customer = desk.table.get_customer(account).await.unwrap().unwrap();
        assert_eq!(customer.representative, Some("e-10".parse().unwrap()), "{fault:?} at {number}");
    }
    injector.call_count()
}

#[tokio::test(flavor = "multi_thread")]
async fn desk_that_crashes_at_any_call_places_each_order_once_and_keeps_totals_correct() {
    let calls = run_with_fault_at(u64::MAX, Fault::CrashBefore).await;
    assert!(calls > 40, "{calls}");
    for number in 1..=calls {
        for fault in FAULTS_AFTER_EACH_CALL {
            run_with_fault_at(number, fault).await;
        }
    }
}
