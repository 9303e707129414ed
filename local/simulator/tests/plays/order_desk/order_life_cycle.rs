//! Tests of the life cycle of orders: from the payment to the shipment and the return.

use chrono::NaiveDate;
use orders::{BackOrderReason, OrderStatus, PaidPeriod, StockEffect};
use orders_desk::PlaceOutcome;
use orders_table::EmployeeList;
use simulator::{Company, CompanySize};
use store::Paging;
use ulid::Ulid;

use crate::order_desk::world::{World, fill_all};

/// The size of the sample company in these tests.
const COMPANY_SIZE: CompanySize = CompanySize { customers: 1, employees: 20, products: 2, warehouses: 2, months: 1 };

/// Creates a world with one customer, who has paid for a SKU with products. Each warehouse has `stock` pieces of each
/// product. The order is not placed yet.
async fn world_with_one_payment(stock: u64) -> World {
    let mut company = Company::new(COMPANY_SIZE, 5);
    company.paid[0].sku = company.skus[0].0.clone();
    World::new(company, stock).await
}

#[tokio::test(flavor = "multi_thread")]
async fn order_waits_for_an_address_then_is_shipped_and_returned() {
    let mut company = Company::new(COMPANY_SIZE, 5);
    company.paid[0].sku = company.skus[0].0.clone();
    let (account, address) = company.customers[0].clone();
    company.customers[0].1 = None;
    let world = World::new(company, 5).await;
    let (desk, paid) = (&world.desk, &world.company.paid[0]);
    assert_eq!(desk.place_order(paid).await.unwrap(), PlaceOutcome::Placed(OrderStatus::BackOrdered));
    assert_eq!(desk.place_order(paid).await.unwrap(), PlaceOutcome::AlreadyPlaced);
    let (order, lines) = desk.table.get_order(paid.order).await.unwrap().unwrap();
    assert_eq!((order.waits_for, order.warehouse), (Some(BackOrderReason::Address), None));

    desk.set_shipping_address(&account, address.unwrap()).await.unwrap();
    assert_eq!(fill_all(desk).await, 1);
    let (order, _) = desk.table.get_order(paid.order).await.unwrap().unwrap();
    let warehouse = order.warehouse.clone().unwrap();
    let left = desk.table.get_stock(&lines[0].product, Some(&warehouse)).await.unwrap()[0].quantity;
    assert_eq!(left, 5 - u64::from(lines[0].quantity));
    for next in [OrderStatus::Picked, OrderStatus::Shipped, OrderStatus::Delivered] {
        assert_eq!(desk.advance_order(paid.order, next).await.unwrap().status, next);
        world.assert_consistent(std::slice::from_ref(paid), &next.to_string()).await;
    }
    let refused = desk.advance_order(paid.order, OrderStatus::Cancelled).await.unwrap_err();
    assert_eq!(refused.to_string(), "an order that is DELIVERED cannot become CANCELLED");

    desk.advance_order(paid.order, OrderStatus::Returned).await.unwrap();
    let left = desk.table.get_stock(&lines[0].product, Some(&warehouse)).await.unwrap()[0].quantity;
    assert_eq!(left, 5, "the stock is restored in the warehouse of the order");
    world.assert_consistent(std::slice::from_ref(paid), "returned").await;
    let after = desk.advance_order(paid.order, OrderStatus::Returned).await.unwrap();
    assert_eq!(order.transition_effects(&after).stock, StockEffect::Restored);
    world.assert_consistent(std::slice::from_ref(paid), "returned again").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn order_without_an_address_does_not_block_others_and_a_repeated_delivery_counts_once() {
    let mut company = Company::new(CompanySize { customers: 3, ..COMPANY_SIZE }, 5);
    let (sku, lines) = company.skus[0].clone();
    let address = company.customers.iter().find_map(|(_, address)| address.clone());
    company.customers.iter_mut().for_each(|(_, of)| of.clone_from(&address));
    company.paid.iter_mut().for_each(|paid| paid.sku = sku.clone());
    company.paid.truncate(3);
    let oldest = company.paid[0].account.clone();
    company.customers.iter_mut().find(|(account, _)| *account == oldest).unwrap().1 = None;
    let mut world = World::new(company, 0).await;
    let (desk, paid) = (world.desk_without_faults(), world.company.paid.clone());
    for paid in &paid {
        assert_eq!(desk.place_order(paid).await.unwrap(), PlaceOutcome::Placed(OrderStatus::BackOrdered));
    }
    let (warehouse, delivery) = (world.company.warehouses[0].id.clone(), Ulid::generate());
    for line in &lines {
        let needed = u64::from(line.quantity);
        for _ in 0..3 {
            desk.receive_stock(&line.product, &warehouse, needed, delivery).await.unwrap();
        }
        world.received.insert(format!("PRODUCT#{}", line.product), i64::from(line.quantity));
    }
    assert_eq!(fill_all(&desk).await, 1);
    let contents = world.contents().await;
    let statuses: Vec<&str> =
        paid.iter().map(|paid| contents.orders[&format!("ORDER#{}", paid.order)].status.as_str()).collect();
    assert_eq!(statuses, ["BACKORDERED", "OPEN", "BACKORDERED"], "the first order has no address, the third no stock");
    world.assert_consistent(&paid, "after one delivery, reported three times").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sku_without_products_gives_no_order_and_is_reported_once() {
    let mut company = Company::new(COMPANY_SIZE, 5);
    company.paid[0].sku = "membership".parse().unwrap();
    let world = World::new(company, 5).await;
    let (desk, sku): (_, billing::Sku) = (&world.desk, "membership".parse().unwrap());
    let placed = async || desk.place_order(&world.company.paid[0]).await.unwrap();
    for _ in 0..2 {
        assert_eq!(
            placed().await,
            PlaceOutcome::NoProducts { sku: sku.clone(), needs_report: true },
            "not reported yet"
        );
    }
    desk.table.mark_without_products_reported(&sku).await.unwrap();
    assert_eq!(placed().await, PlaceOutcome::NoProducts { sku, needs_report: false });
    world.assert_consistent(&world.company.paid, "no order").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn handed_over_customer_keeps_the_old_representative_on_the_orders_that_are_placed() {
    let world = world_with_one_payment(5).await;
    let (desk, paid) = (&world.desk, &world.company.paid[0]);
    desk.place_order(paid).await.unwrap();
    let customer = desk.table.get_customer(&paid.account).await.unwrap().unwrap();
    let to: orders::EmployeeId =
        if customer.representative == Some("e-10".parse().unwrap()) { "e-0" } else { "e-10" }.parse().unwrap();
    let refused = desk.hand_over_customer(&paid.account, &"e-1".parse().unwrap()).await.unwrap_err();
    assert_eq!(refused.to_string(), "e-1 is not a customer representative");
    assert_eq!(desk.hand_over_customer(&paid.account, &to).await.unwrap().representative, Some(to.clone()));
    assert_eq!(
        desk.table.customers_of_representative(&to, &Paging::all()).await.unwrap().into_items().unwrap(),
        std::slice::from_ref(&paid.account)
    );
    assert_eq!(
        desk.table
            .customers_of_representative(customer.representative.as_ref().unwrap(), &Paging::all())
            .await
            .unwrap()
            .into_items()
            .unwrap(),
        []
    );
    let id = paid.order.to_string();
    let (_, subscription) = id.split_once('.').unwrap();
    let later = PaidPeriod { order: format!("2027-12-31.{subscription}").parse().unwrap(), ..paid.clone() };
    desk.place_order(&later).await.unwrap();
    for (paid, representative) in [(paid, customer.representative), (&later, Some(to))] {
        let (order, _) = desk.table.get_order(paid.order).await.unwrap().unwrap();
        assert_eq!(order.representative, representative, "{}", paid.order);
    }
    world.assert_consistent(&[paid.clone(), later], "handed over").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn employee_is_listed_at_the_current_warehouse_until_leaving() {
    let world = world_with_one_payment(0).await;
    let table = &world.desk.table;
    let day = |text: &str| text.parse::<NaiveDate>().unwrap();
    let (employee, assignment, _) = world.company.employees[1].clone();
    let stored = table.get_employee(&employee.id).await.unwrap().unwrap();
    assert_eq!(stored.assignment.as_ref(), Some(&assignment));
    let old = assignment.warehouse.clone().unwrap();
    let new = orders::Assignment { warehouse: Some("wh-0".parse().unwrap()), ..assignment };
    assert_ne!(new.warehouse.as_ref(), Some(&old));
    table.reassign_employee(&stored, Some(&new), day("2026-05-01")).await.unwrap();
    assert!(
        table
            .list_employees(EmployeeList::OfWarehouse(&"wh-0".parse().unwrap()), &Paging::all())
            .await
            .unwrap()
            .into_items()
            .unwrap()
            .iter()
            .any(|listed| listed.id == employee.id)
    );
    assert!(
        !table
            .list_employees(EmployeeList::OfWarehouse(&old), &Paging::all())
            .await
            .unwrap()
            .into_items()
            .unwrap()
            .iter()
            .any(|listed| listed.id == employee.id)
    );
    // Every list that contains the employee shows the new job.
    let changed = table.get_employee(&employee.id).await.unwrap().unwrap();
    let assignment = changed.assignment.as_ref().unwrap();
    let (title, warehouse) = (assignment.job_title.as_str(), assignment.warehouse.as_ref().unwrap());
    let all = Paging::all();
    for page in [
        table.list_employees(EmployeeList::WithName(changed.name.as_str()), &all).await,
        table.list_employees(EmployeeList::WithTitle(title), &all).await,
        table.list_employees(EmployeeList::OfDepartment(&assignment.department), &all).await,
        table.list_employees(EmployeeList::OfWarehouse(warehouse), &all).await,
        table.list_employees(EmployeeList::Hired { after: day("2000-01-01"), today: day("2027-02-15") }, &all).await,
    ] {
        assert!(page.unwrap().into_items().unwrap().contains(&changed));
    }
    // `stored` was read before the first reassignment, so it is outdated. A reassignment that is computed from it is
    // refused, and changes nothing.
    let written = table.reassign_employee(&stored, None, day("2026-06-01")).await.unwrap();
    assert_ne!(written, orders_table::WriteOutcome::Done);
    let stored = table.get_employee(&employee.id).await.unwrap().unwrap();
    table.reassign_employee(&stored, None, day("2026-06-01")).await.unwrap();
    let details = table.employee_details(&employee.id).await.unwrap().unwrap();
    assert_eq!((details.employee.left_on, details.jobs.len()), (Some(day("2026-06-01")), 2));
    assert!(
        !table
            .list_employees(EmployeeList::OfWarehouse(&"wh-0".parse().unwrap()), &Paging::all())
            .await
            .unwrap()
            .into_items()
            .unwrap()
            .iter()
            .any(|listed| listed.id == employee.id)
    );
    assert!(
        table
            .list_employees(EmployeeList::WithName(employee.name.as_str()), &Paging::all())
            .await
            .unwrap()
            .into_items()
            .unwrap()
            .iter()
            .any(|listed| listed.id == employee.id)
    );
}
