//! Tests of follow-up orders: an order is split into two orders, or a shipped order is replaced by another order. The
//! splits and replacements have a fault at each request, or run at the same time as another change of the same order.

use std::sync::Arc;

use billing::Money;
use chrono::TimeDelta;
use dynamo::{IdempotentRequest, StoredResponse};
use emulator::{ExternalCall, Fault, FaultInjector};
use futures::future::join_all;
use orders::{OrderId, OrderLine, OrderStatus, PaidPeriod, RefundEvent};
use orders_desk::{DeskError, FollowUpOutcome, OrderDesk, ReplacementRequest};
use simulator::{Company, CompanySize};
use testkit::FAULTS_AFTER_EACH_CALL;
use ulid::Ulid;

use crate::order_desk::races::YieldBeforeEachCall;
use crate::order_desk::suspended_operation::poll_steps;
use crate::order_desk::world::{World, fill_all, test_time};

/// The size of the sample company in these tests.
const COMPANY_SIZE: CompanySize = CompanySize { customers: 3, employees: 20, products: 2, warehouses: 2, months: 1 };

/// Returns a company with three customers, who have the same address. They pay for the same SKU, which contains three
/// pieces of each of the two products.
fn company() -> Company {
    let mut company = Company::new(COMPANY_SIZE, 9);
    let sku = company.skus[0].0.clone();
    let line = |product: &orders::Product| OrderLine { product: product.id.clone(), quantity: 3 };
    company.skus[0].1 = company.products.iter().map(line).collect();
    let address = company.customers.iter().find_map(|(_, address)| address.clone());
    company.customers.iter_mut().for_each(|(_, of)| of.clone_from(&address));
    company.paid.iter_mut().for_each(|paid| paid.sku = sku.clone());
    company
}

/// Returns a request for a follow-up order with the idempotency key `key`.
fn idempotent_request(key: &str) -> IdempotentRequest {
    IdempotentRequest {
        made_at: test_time(),
        key_hash: key.to_owned(),
        request_hash: "body".to_owned(),
        response: StoredResponse::default(),
        expires_at: test_time() + TimeDelta::hours(48),
    }
}

/// Returns an order line with `quantity` pieces of the first product.
fn line_of_first_product(world: &World, quantity: u32) -> Vec<OrderLine> {
    vec![OrderLine { product: world.company.products[0].id.clone(), quantity }]
}

/// Splits the order `id`. The order keeps the products `keep` (`None`: the pieces in stock), and a new follow-up order
/// gets the other products. `key` is the idempotency key of the request.
async fn split(
    desk: &OrderDesk,
    id: OrderId,
    keep: Option<&[OrderLine]>,
    key: Option<&str>,
) -> Result<FollowUpOutcome, DeskError> {
    let request = key.map(idempotent_request);
    desk.split_order(id, keep, request.as_ref(), |_| String::new(), |_| Ok::<_, DeskError>(())).await
}

/// Replaces all products of the shipped order `id`, with the idempotency key `key`.
async fn replace(desk: &OrderDesk, id: OrderId, key: Option<&str>) -> Result<FollowUpOutcome, DeskError> {
    let replacement = ReplacementRequest { lines: None, reason: "parcel lost".parse().unwrap() };
    let request = key.map(idempotent_request);
    desk.create_replacement(id, &replacement, request.as_ref(), |_| String::new()).await
}

/// Returns the data of an event that the payment `paid` was refunded in full.
fn full_refund(paid: &PaidPeriod) -> RefundEvent {
    let amount = Money::new(paid.amount.minor(), paid.amount.currency());
    RefundEvent { order: paid.order, account: paid.account.clone(), refund: "r".to_owned(), amount, has_failed: false }
}

/// Returns the statuses of the orders of the payment `paid`: of the main order first, then of the follow-up orders.
async fn statuses_of_orders(world: &World, paid: &PaidPeriod) -> Vec<String> {
    let contents = world.contents().await;
    let main = format!("ORDER#{}", paid.order);
    let of_month = contents.orders.iter().filter(|(id, _)| **id == main || id.starts_with(&format!("{main}.")));
    of_month.map(|(_, order)| order.status.clone()).collect()
}

/// Picks and ships the order `id`, unless this was done before.
async fn pick_and_ship(desk: &OrderDesk, id: OrderId) {
    for next in [OrderStatus::Picked, OrderStatus::Shipped] {
        // The order desk may refuse the step, because the order was shipped before the crash.
        match desk.advance_order(id, next).await {
            Ok(_) | Err(DeskError::Transition(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Places three orders, for two of which there is enough stock, and creates follow-up orders. After a crash, the test
/// calls this function again, so each step must be safe to repeat.
async fn process_everything(world: &World, paid: &[PaidPeriod]) {
    let desk = &world.desk;
    for paid in paid {
        desk.place_order(paid).await.unwrap();
    }
    split(desk, paid[0].order, Some(&line_of_first_product(world, 2)), Some("open")).await.unwrap();
    split(desk, paid[2].order, None, Some("backordered")).await.unwrap();
    pick_and_ship(desk, paid[1].order).await;
    replace(desk, paid[1].order, Some("replaced")).await.unwrap();
    desk.record_refund(&full_refund(&paid[0])).await.unwrap();
    desk.record_refund(&full_refund(&paid[1])).await.unwrap();
    fill_all(desk).await;
}

/// Processes all orders, with `fault` at the call to the table with this `number`. After a crash, processes all orders
/// again. Then checks the orders. Returns the number of calls.
async fn run_with_fault_at(number: u64, fault: Fault) -> u64 {
    let faults = move |call: &ExternalCall<'_>| (call.number == number).then_some(fault);
    let injector = Arc::new(FaultInjector::active_during_runs(Arc::new(faults)));
    let mut company = company();
    company.warehouses.truncate(1);
    let region = &company.warehouses[0].region;
    for (_, address) in &mut company.customers {
        *address = address.take().map(|address| orders::ShippingAddress { region: region.clone(), ..address });
    }
    // The stock contains seven pieces of each product, and an order needs three pieces of each. So two orders are
    // filled, and one piece of each product is left for the third order.
    let world = World::with_injector(company, 7, injector.clone()).await;
    let paid = world.company.paid.clone();
    if injector.run(process_everything(&world, &paid)).await.is_none() {
        injector.run(process_everything(&world, &paid)).await.unwrap();
    }
    let when = format!("{fault:?} at {number}");
    world.assert_consistent(&paid, &when).await;
    let mut found = Vec::new();
    for paid in &paid {
        found.push(statuses_of_orders(&world, paid).await.join(" "));
    }
    // The pieces of the cancelled orders return to the stock. They fill the follow-up order that contains the remaining
    // pieces of the third order.
    assert_eq!(found, ["CANCELLED CANCELLED", "SHIPPED CANCELLED", "OPEN OPEN"], "{when}");
    let contents = world.contents().await;
    let quantities =
        |part: &str| contents.orders[&format!("ORDER#{}{part}", paid[2].order)].lines.values().sum::<i64>();
    assert_eq!((quantities(""), quantities(".2")), (2, 4), "{when}");
    injector.call_count()
}

#[tokio::test(flavor = "multi_thread")]
async fn follow_ups_are_created_once_even_if_each_call_is_interrupted() {
    let calls = run_with_fault_at(u64::MAX, Fault::CrashBefore).await;
    assert!(calls > 60, "{calls}");
    for number in 1..=calls {
        for fault in FAULTS_AFTER_EACH_CALL {
            run_with_fault_at(number, fault).await;
        }
    }
}

/// A change that runs at the same time as a split of the same order.
#[derive(Clone, Copy, Debug)]
enum Rival {
    Cancel,
    Pick,
    Refund,
    Delivery,
    Split,
    HandOver,
}

/// Makes the change `rival` of the order of the payment `paid`, with an order desk whose calls never fail.
async fn make_change(rival: Rival, world: &mut World, desk: &OrderDesk, paid: &PaidPeriod) {
    let keep = line_of_first_product(world, 1);
    match rival {
        Rival::Cancel => drop(desk.advance_order(paid.order, OrderStatus::Cancelled).await.unwrap()),
        Rival::Pick => {
            let picked = desk.advance_order(paid.order, OrderStatus::Picked).await;
            assert!(picked.is_ok() || matches!(picked, Err(DeskError::Transition(_))), "{picked:?}");
        }
        Rival::Refund => desk.record_refund(&full_refund(paid)).await.unwrap(),
        Rival::Delivery => {
            for product in world.company.products.clone() {
                let warehouse = &world.company.warehouses[0].id;
                desk.receive_stock(&product.id, warehouse, 3, Ulid::generate()).await.unwrap();
                *world.received.entry(format!("PRODUCT#{}", product.id)).or_default() += 3;
            }
            fill_all(desk).await;
        }
        Rival::Split => {
            let second = split(desk, paid.order, Some(&keep), None).await;
            assert!(second.is_ok() || matches!(second, Err(DeskError::FollowUp(_))), "{second:?}");
        }
        Rival::HandOver => {
            desk.hand_over_customer(&paid.account, &"e-10".parse().unwrap()).await.unwrap();
        }
    }
}

#[tokio::test]
async fn split_that_competes_with_another_change_of_the_order_loses_no_piece() {
    use Rival::{Cancel, Delivery, HandOver, Pick, Refund, Split};
    // `stock` is the number of pieces of each product in each warehouse. With 2 pieces, the order waits for stock. With
    // 9 pieces, the order is open.
    for (stock, rival) in [
        (2, Cancel),
        (2, Refund),
        (2, Delivery),
        (2, Split),
        (2, HandOver),
        (9, Cancel),
        (9, Pick),
        (9, Refund),
        (9, Split),
        (9, HandOver),
    ] {
        // The split is suspended after `step` steps. Then the change `rival` is made completely, and the split
        // continues. Each request to the table takes two steps.
        let (mut created, mut refused) = (0, 0);
        for step in (0..).step_by(2) {
            let injector = Arc::new(FaultInjector::new(Arc::new(YieldBeforeEachCall)));
            let mut world = World::with_injector(company(), stock, injector).await;
            let (desk, splitting, paid) =
                (world.desk_without_faults(), world.desk.clone(), world.company.paid[0].clone());
            desk.place_order(&paid).await.unwrap();
            let keep = line_of_first_product(&world, 2);
            let mut first = Box::pin(split(&splitting, paid.order, Some(&keep), None));
            let result = poll_steps(&mut first, step).await;
            let is_finished_first = result.is_some();
            make_change(rival, &mut world, &desk, &paid).await;
            let result = match result {
                Some(result) => result,
                None => first.await,
            };
            match result {
                Ok(_) => created += 1,
                Err(DeskError::FollowUp(_)) => refused += 1,
                Err(error) => panic!("{rival:?} at step {step}: {error}"),
            }
            let when = format!("{rival:?} at step {step} with stock {stock}");
            fill_all(&desk).await;
            world.assert_consistent(std::slice::from_ref(&paid), &when).await;
            let statuses = statuses_of_orders(&world, &paid).await;
            if matches!(rival, Refund) {
                assert!(statuses.iter().all(|status| status == "CANCELLED"), "{when}: {statuses:?}");
            }
            if is_finished_first {
                break;
            }
        }
        assert!(created > 0, "{rival:?} with stock {stock}");
        assert_eq!(refused > 0, !matches!(rival, Delivery | HandOver), "{rival:?} with stock {stock}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn simultaneous_replacements_get_different_numbers_and_the_last_pieces_once() {
    let injector = Arc::new(FaultInjector::new(Arc::new(YieldBeforeEachCall)));
    let world = World::with_injector(company(), 7, injector).await;
    let (desk, paid) = (&world.desk, &world.company.paid[0]);
    desk.place_order(paid).await.unwrap();
    pick_and_ship(desk, paid.order).await;
    // Creates twelve replacements of the order at the same time. Each warehouse has enough stock for at most two of
    // them.
    let replacing = (0..12).map(|_| async {
        loop {
            match replace(desk, paid.order, None).await {
                Ok(FollowUpOutcome::Created(created)) => return created.follow_up.id.part_number(),
                Err(error) if error.is_transient() => {}
                other => panic!("{other:?}"),
            }
        }
    });
    let mut parts = join_all(replacing).await;
    parts.sort_unstable();
    assert_eq!(parts, (2..=13).collect::<Vec<u8>>());
    let statuses = statuses_of_orders(&world, paid).await;
    assert_eq!(statuses.iter().filter(|status| *status == "OPEN").count(), 3, "{statuses:?}");
    world.assert_consistent(std::slice::from_ref(paid), "after the race").await;
}

#[tokio::test]
async fn month_has_at_most_98_follow_ups_and_an_order_of_20_products_can_be_split() {
    let size = CompanySize { customers: 1, products: 20, warehouses: 1, ..COMPANY_SIZE };
    let mut company = Company::new(size, 9);
    let sku = company.skus[0].0.clone();
    let line = |product: &orders::Product| OrderLine { product: product.id.clone(), quantity: 2 };
    company.skus[0].1 = company.products.iter().map(line).collect();
    let address = Company::new(COMPANY_SIZE, 9).customers.into_iter().find_map(|(_, address)| address);
    let region = company.warehouses[0].region.clone();
    company.customers[0].1 = address.map(|address| orders::ShippingAddress { region, ..address });
    company.paid.iter_mut().for_each(|paid| paid.sku = sku.clone());
    // The columns are: the stock of each product; the number of pieces of each product that the order keeps in the
    // split (`None`: the pieces in stock). The order needs two pieces of each product. So it waits for stock in the
    // first row, and is open in the second row.
    for (stock, keep) in [(1, None), (2, Some(1))] {
        let world = World::new(company.clone(), stock).await;
        let (desk, paid) = (&world.desk, &world.company.paid[0]);
        desk.place_order(paid).await.unwrap();
        let kept =
            |quantity| company.products.iter().map(|of| OrderLine { product: of.id.clone(), quantity }).collect();
        let keep: Option<Vec<OrderLine>> = keep.map(kept);
        let FollowUpOutcome::Created(created) = split(desk, paid.order, keep.as_deref(), Some("k")).await.unwrap()
        else {
            panic!("the order is split");
        };
        assert_eq!((created.order.status, created.order.lines.len()), (OrderStatus::Open, 20));
        assert_eq!(created.follow_up.lines.len(), 20);
        world.assert_consistent(std::slice::from_ref(paid), "after the split").await;
        pick_and_ship(desk, paid.order).await;
        for part in 3..=99 {
            let Ok(FollowUpOutcome::Created(created)) = replace(desk, paid.order, None).await else {
                panic!("{part}");
            };
            assert_eq!(created.follow_up.id.part_number(), part);
        }
        let refused = replace(desk, paid.order, None).await.unwrap_err().to_string();
        assert_eq!(refused, "a paid month can have at most 98 follow-up orders");
        world.assert_consistent(std::slice::from_ref(paid), "with all follow-up orders").await;
    }
}

#[tokio::test]
async fn replacement_during_a_hand_over_is_credited_to_the_representative_of_its_customer() {
    // The replacement is suspended after `step` steps. Then the customer is handed over to another representative, and
    // the replacement continues.
    for step in (0..).step_by(2) {
        let injector = Arc::new(FaultInjector::new(Arc::new(YieldBeforeEachCall)));
        let world = World::with_injector(company(), 9, injector).await;
        let (desk, paid) = (world.desk_without_faults(), &world.company.paid[0]);
        desk.place_order(paid).await.unwrap();
        pick_and_ship(&desk, paid.order).await;
        let mut first = Box::pin(replace(&world.desk, paid.order, None));
        let result = poll_steps(&mut first, step).await;
        let is_finished_first = result.is_some();
        let before = world.contents().await;
        desk.hand_over_customer(&paid.account, &"e-10".parse().unwrap()).await.unwrap();
        let result = match result {
            Some(result) => result,
            None => first.await,
        };
        assert!(matches!(result, Ok(FollowUpOutcome::Created(_))), "step {step}: {result:?}");
        let contents = world.contents().await;
        let replacement = &contents.orders[&format!("ORDER#{}.2", paid.order)];
        let earlier = before.orders.get(&format!("ORDER#{}.2", paid.order));
        let expected = earlier.map_or("EMP#e-10", |earlier| earlier.representative.as_str());
        assert_eq!(replacement.representative, expected, "step {step}");
        world.assert_consistent(std::slice::from_ref(paid), &format!("step {step}")).await;
        if is_finished_first {
            break;
        }
    }
}
