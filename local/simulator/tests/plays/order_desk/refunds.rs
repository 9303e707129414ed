//! Checks that the order desk records each refund on its order once: refunds before the order is placed, before and
//! after the shipment, of a part of the payment, in several parts, and with a fault at each call to the table.

use std::sync::Arc;

use billing::Money;
use emulator::{ExternalCall, Fault, FaultInjector};
use orders::{OrderStatus, PaidPeriod, RefundEvent, ShippingAddress};
use orders_desk::DeskError;
use simulator::{Company, CompanySize};
use testkit::FAULTS_AFTER_EACH_CALL;

use crate::order_desk::world::{World, fill_all};

/// The size of the sample company in these tests.
const COMPANY_SIZE: CompanySize = CompanySize { customers: 4, employees: 20, products: 3, warehouses: 1, months: 2 };

/// Returns the data of the refund `id` of `minor` minor units of the payment `paid`, as an event states them.
/// `has_failed` states whether the refund failed.
fn refund_event(paid: &PaidPeriod, id: &str, minor: i64, has_failed: bool) -> RefundEvent {
    let amount = Money::new(minor, paid.amount.currency());
    RefundEvent { order: paid.order, account: paid.account.clone(), refund: id.to_owned(), amount, has_failed }
}

/// Processes the payments and their refunds. After a crash, the test calls this function again, so each step must be
/// safe to repeat.
async fn process_everything(world: &World, paid: &[PaidPeriod]) {
    let desk = &world.desk;
    let in_full = |n: usize| refund_event(&paid[n], "full", paid[n].amount.minor(), false);
    // The event of a refund can be delivered before the event of its payment.
    desk.record_refund(&in_full(0)).await.unwrap();
    desk.record_refund(&refund_event(&paid[1], "part", 100, false)).await.unwrap();
    for paid in paid {
        desk.place_order(paid).await.unwrap();
    }
    for next in [OrderStatus::Picked, OrderStatus::Shipped] {
        // The order desk may refuse the step, because the order was shipped before the crash.
        match desk.advance_order(paid[3].order, next).await {
            Ok(_) | Err(DeskError::Transition(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    desk.record_refund(&in_full(2)).await.unwrap();
    desk.record_refund(&in_full(3)).await.unwrap();
    desk.record_refund(&refund_event(&paid[4], "failed", 200, true)).await.unwrap();
    desk.record_refund(&refund_event(&paid[4], "failed", 200, false)).await.unwrap();
    desk.record_refund(&refund_event(&paid[5], "a", 100, false)).await.unwrap();
    desk.record_refund(&refund_event(&paid[5], "b", 50, false)).await.unwrap();
    desk.record_refund(&refund_event(&paid[5], "a", 100, true)).await.unwrap();
    fill_all(desk).await;
}

/// Processes all payments, with `fault` at the call to the table with this `number`. After a crash, processes all
/// payments again. Then checks the orders. Returns the number of calls.
async fn run_with_fault_at(number: u64, fault: Fault) -> u64 {
    let mut company = Company::new(COMPANY_SIZE, 5);
    let region = &company.warehouses[0].region;
    let address = Company::new(COMPANY_SIZE, 5).customers.into_iter().find_map(|(_, address)| address);
    let address = address.map(|address| ShippingAddress { region: region.clone(), ..address });
    company.customers.iter_mut().for_each(|(_, of)| of.clone_from(&address));
    let sku = company.skus[0].0.clone();
    company.paid.iter_mut().for_each(|paid| paid.sku = sku.clone());
    let faults = move |call: &ExternalCall<'_>| (call.number == number).then_some(fault);
    let injector = Arc::new(FaultInjector::active_during_runs(Arc::new(faults)));
    let world = World::with_injector(company, 1_000, injector.clone()).await;
    let paid = world.company.paid.clone();
    if injector.run(process_everything(&world, &paid)).await.is_none() {
        injector.run(process_everything(&world, &paid)).await.unwrap();
    }
    let when = format!("{fault:?} at {number}");
    world.assert_consistent(&paid, &when).await;
    let contents = world.contents().await;
    let of = |n: usize| &contents.orders[&format!("ORDER#{}", paid[n].order)];
    let statuses: Vec<&str> = (0..6).map(|n| of(n).status.as_str()).collect();
    assert_eq!(statuses, ["CANCELLED", "OPEN", "CANCELLED", "SHIPPED", "OPEN", "OPEN"], "{when}");
    let refunded: Vec<i64> = (0..6).map(|n| of(n).refunded).collect();
    let full = |n: usize| paid[n].amount.minor();
    assert_eq!(refunded, [full(0), 100, full(2), full(3), 0, 50], "{when}");
    injector.call_count()
}

#[tokio::test(flavor = "multi_thread")]
async fn refunds_change_their_orders_once_even_if_each_call_is_interrupted() {
    let calls = run_with_fault_at(u64::MAX, Fault::CrashBefore).await;
    assert!(calls > 50, "{calls}");
    for number in 1..=calls {
        for fault in FAULTS_AFTER_EACH_CALL {
            run_with_fault_at(number, fault).await;
        }
    }
}
