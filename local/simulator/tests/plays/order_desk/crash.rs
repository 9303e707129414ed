//! The desk killed at each of its calls, and told everything again.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use emulator::{Call, Fault, Injector};
use orders::{OrderStatus, PaidPeriod};
use simulator::{Company, CompanySize};

use crate::order_desk::world::{World, always};

const SMALL: CompanySize = CompanySize { customers: 2, employees: 20, products: 3, warehouses: 2, months: 2 };

/// What is done to each of these months, one step after the other; each may be asked for again.
async fn work(world: &World, paid: &[PaidPeriod]) {
    let desk = &world.desk;
    for paid in paid {
        desk.place(paid).await.unwrap();
    }
    for (account, _) in &world.company.customers {
        let address = world.company.customers[0].1.clone().unwrap();
        desk.ship_to(account, address).await.unwrap();
    }
    let ids: Vec<_> = paid.iter().map(|paid| paid.order).collect();
    for (id, next) in ids.iter().zip([OrderStatus::Picked, OrderStatus::Cancelled]) {
        desk.advance(*id, next).await.unwrap();
    }
    for (account, _) in &world.company.customers {
        desk.hand_over(account, &"e-10".parse().unwrap(), always()).await.unwrap();
    }
    let filled = desk.fill_waiting(always(), DateTime::<Utc>::MAX_UTC).await;
    assert_eq!((filled.failed, filled.not_looked_at), (0, 0));
}

/// Works with `fault` at the call `number`, then works again. Answers the number of calls there were.
async fn killed_at(number: u64, fault: Fault) -> u64 {
    let mut company = Company::new(SMALL, 3);
    for (_, address) in &mut company.customers {
        *address = address.take().or_else(|| Company::new(SMALL, 3).customers.iter().find_map(|(_, a)| a.clone()));
    }
    // One SKU, so that all want the same products.
    let sku = company.skus[0].0.clone();
    company.paid.iter_mut().for_each(|paid| paid.sku = sku.clone());
    let faults = move |call: &Call<'_>| (call.number == number).then_some(fault);
    let injector = Arc::new(Injector::for_runs(Arc::new(faults)));
    let world = World::through(company, 4, injector.clone()).await;
    let paid = world.company.paid.clone();
    let is_killed = injector.run(work(&world, &paid)).await.is_none();
    assert_eq!(is_killed, number <= injector.calls() && fault.is_crash());
    if is_killed {
        injector.run(work(&world, &paid)).await.unwrap();
    }
    world.check(&paid, &format!("{fault:?} at {number}")).await;
    let books = world.books().await;
    let moved: Vec<&str> =
        paid[..2].iter().map(|p| books.orders[&format!("ORDER#{}", p.order)].status.as_str()).collect();
    assert_eq!(moved, ["PICKED", "CANCELLED"], "{fault:?} at {number}");
    let again = world.calm_desk().fill_waiting(always(), DateTime::<Utc>::MAX_UTC).await;
    assert_eq!(again.filled, 0, "{fault:?} at {number}: something waited that could be filled");
    let open = books.orders.values().filter(|order| order.status != "CANCELLED");
    assert!(open.clone().all(|order| order.representative == "EMP#e-10"), "{fault:?} at {number}");
    injector.calls()
}

#[tokio::test(flavor = "multi_thread")]
async fn desk_that_is_killed_at_any_call_places_each_order_once_and_counts_right() {
    let calls = killed_at(u64::MAX, Fault::CrashBefore).await;
    assert!(calls > 40, "{calls}");
    for number in 1..=calls {
        for fault in [Fault::CrashBefore, Fault::CrashAfter, Fault::LostAfter] {
            killed_at(number, fault).await;
        }
    }
}
