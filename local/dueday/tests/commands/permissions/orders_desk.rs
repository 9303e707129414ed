//! Tests of the IAM policies of the order desk's two Lambda functions.

use std::sync::Arc;

use audit_function::{AuditResponse, TableChecks};
use axum::Extension;
use axum::body::Body;
use axum::http::Request;
use billing::{Account, ReceivedEvent};
use chrono::{DateTime, TimeDelta, Utc};
use clock::Clock as _;
use orders::{Country, Customer, Department, Job, Location, OrderId, OrderLine, OrderStatus, PaidPeriod, Region};
use orders_api::OrdersApi;
use orders_desk::{OrderDesk, PlaceOutcome, process_event};
use orders_function::PaymentsReader;
use orders_table::{BucketCount, OrdersTable};
use rest::{Caller, ConfidentialAccess, Role};
use serde_json::Value;
use simulator::{Company, CompanySize};
use testkit::sample_account;
use tower::ServiceExt as _;

use crate::permissions::{World, assert_policy, send, six_oclock};

#[tokio::test]
async fn policy_of_orders_function_matches_its_requests_from_payments_to_filled_backorders() {
    let world = World::new(&[]).await;
    let table = OrdersTable::new(world.recorded.table.client().clone(), "dueday-orders");
    let unrecorded = OrdersTable::new(world.system.deployment.table.client().clone(), "dueday-orders");
    unrecorded.create_if_absent().await.unwrap();
    let company = Company::new(CompanySize { customers: 6, employees: 10, products: 2, warehouses: 1, months: 2 }, 1);
    for product in &company.products {
        unrecorded.create_product(product).await.unwrap();
    }
    let (employee, assignment, confidential) = &company.employees[0];
    unrecorded.hire_employee(employee, assignment, confidential).await.unwrap();
    unrecorded.create_warehouse(&company.warehouses[0]).await.unwrap();
    for (sku, lines) in company.skus.iter().filter(|(_, lines)| !lines.is_empty()) {
        unrecorded.set_lines_of_sku(sku, lines).await.unwrap();
    }
    // When the Lambda function starts, it refuses a table with planned changes, and reads or stores the number of buckets.
    // Its policy must allow these requests.
    let clock = world.system.clock.clone();
    table.refuse_planned_changes().await.unwrap();
    let buckets = table.get_or_store_buckets(BucketCount::default()).await.unwrap();
    let desk = OrderDesk::new(table.clone(), buckets, clock.clone());
    let unrecorded_desk = OrderDesk::new(unrecorded.clone(), buckets, clock.clone());
    let mut paid = company.paid.clone();
    paid[0].sku = "membership".parse().unwrap();
    let mut ordered = None;
    for paid in &paid {
        if let PlaceOutcome::Placed(_) = desk.place_order(paid).await.unwrap() {
            ordered = Some(paid);
        }
    }
    table.mark_without_products_reported(&paid[0].sku).await.unwrap();
    for product in &company.products {
        unrecorded_desk.receive_stock(&product.id, &company.warehouses[0].id, 9, clock.ulid()).await.unwrap();
    }
    for (account, address) in &company.customers {
        let Some(customer) = unrecorded.get_customer(account).await.unwrap() else { continue };
        let after = Customer { address: address.clone(), ..customer.clone() };
        unrecorded.change_customer(&customer, &after, None, clock.ulid()).await.unwrap();
    }
    let filled = desk.fill_waiting_orders(DateTime::<Utc>::MAX_UTC).await;
    assert!(filled.filled > 0, "{filled:?}");
    assert_eq!(table.fill_tasks().await.unwrap().items, []);
    // The function reads the receipt of each payment and the refunds of each receipt. There are none, so the first event
    // changes nothing, because its order is placed already, and the second event is refused.
    let records = PaymentsReader::new(world.recorded.table.clone(), clock.clone());
    let checking = desk.with_payment_records(Arc::new(records));
    assert_eq!(checking.place_order(ordered.unwrap()).await.unwrap(), PlaceOutcome::AlreadyPlaced);
    let queue: Value = serde_json::from_str(include_str!("../../../../../events/sqs-paid.json")).unwrap();
    let mut refunded: Value = serde_json::from_str(queue["Records"][0]["body"].as_str().unwrap()).unwrap();
    (refunded["type"], refunded["data"]["refund"]) = ("payment.refunded".into(), clock.ulid().to_string().into());
    let refunded = ReceivedEvent::read(&refunded.to_string()).unwrap();
    let refused = process_event(&checking, &refunded).await.unwrap_err();
    assert!(refused.to_string().starts_with(orders_desk::UNRECORDED_PAYMENT_MESSAGE), "{refused}");
    assert_policy("OrdersFunction", &world.connection.recorded_permissions());
}

#[tokio::test]
async fn policy_of_audit_function_for_the_order_desk_matches_its_requests() {
    let world = World::new(&[]).await;
    let deployment = &world.system.deployment;
    let unrecorded = OrdersTable::new(deployment.table.client().clone(), "dueday-orders");
    unrecorded.create_if_absent().await.unwrap();
    world.run_days(&deployment.payment_batch().await.unwrap(), "2027-01-01", "2027-01-10").await;
    // Only the first payment gets an order. The audit finds that the other payments have no order.
    let mut partitions = deployment.table.account_partitions();
    let mut receipts = Vec::new();
    while let Some(partition) = partitions.next().await.unwrap() {
        receipts.extend(partition.receipts);
    }
    receipts.sort_by_key(|receipt| receipt.processed_at);
    let company = Company::new(CompanySize { customers: 1, employees: 1, products: 1, warehouses: 1, months: 1 }, 1);
    let product = &company.products[0];
    unrecorded.create_product(product).await.unwrap();
    let line = OrderLine { product: product.id.clone(), quantity: 1 };
    for receipt in &receipts {
        unrecorded.set_lines_of_sku(&receipt.sku, std::slice::from_ref(&line)).await.unwrap();
    }
    let buckets = unrecorded.get_or_store_buckets(BucketCount::default()).await.unwrap();
    let desk = OrderDesk::new(unrecorded, buckets, world.system.clock.clone());
    let first = &receipts[0];
    let order = OrderId::of_month(first.due_on, first.subscription);
    let (account, sku, amount, paid_at) = (first.account.clone(), first.sku.clone(), first.amount, first.processed_at);
    desk.place_order(&PaidPeriod { order, account, sku, amount, paid_at }).await.unwrap();

    let table = OrdersTable::new(world.recorded.table.client().clone(), "dueday-orders");
    let checks = TableChecks::new(deployment.table.clone(), world.system.clock.clone()).with_orders(table);
    world.system.clock.set(six_oclock("2027-01-12"));
    let deadline = six_oclock("2027-01-12") + TimeDelta::minutes(15);
    let response = checks.run_requested_check(serde_json::json!({ "check": "table" }), deadline).await.unwrap();
    let AuditResponse::Table(response) = response else { panic!("{response:?}") };
    assert!(response.complete && response.orders == 1 && response.violations > 0, "{response:?}");
    assert_policy("OrdersAuditPolicy", &world.connection.recorded_permissions());
}

/// Stores the regions, the country, the location, the job and the department to which the requests refer.
async fn store_company(table: &OrdersTable) {
    for (id, name) in [("eu", "Europe"), ("na", "North America")] {
        table.put_entity(&Region { id: id.parse().unwrap(), name: name.parse().unwrap() }).await.unwrap();
    }
    let (id, name, region) = ("gb".parse().unwrap(), "Britain".parse().unwrap(), "eu".parse().unwrap());
    table.put_entity(&Country { id, name, region }).await.unwrap();
    let (id, address) = ("leeds".parse().unwrap(), "1 High Street".parse().unwrap());
    table.put_entity(&Location { id, address, country_name: "Britain".parse().unwrap() }).await.unwrap();
    let (id, title) = ("sales".parse().unwrap(), "Sales".parse().unwrap());
    table.put_entity(&Job { id, title, represents_customers: true }).await.unwrap();
    let (id, name, location) = ("d-1".parse().unwrap(), "Sales".parse().unwrap(), "leeds".parse().unwrap());
    table.put_entity(&Department { id, name, location }).await.unwrap();
}

#[tokio::test]
async fn policy_of_orders_api_function_matches_the_requests_of_its_routes() {
    let world = World::new(&[]).await;
    let table = OrdersTable::new(world.recorded.table.client().clone(), "dueday-orders");
    let unrecorded = OrdersTable::new(world.system.deployment.table.client().clone(), "dueday-orders");
    unrecorded.create_if_absent().await.unwrap();
    store_company(&unrecorded).await;
    let clock = world.system.clock.clone();
    table.refuse_planned_changes().await.unwrap();
    let desk =
        OrderDesk::new(table.clone(), table.get_or_store_buckets(BucketCount::default()).await.unwrap(), clock.clone());
    for account in ["acme", "new"] {
        let account = Account { id: account.parse().unwrap(), ..sample_account() };
        assert!(world.system.deployment.table.create_account(&account).await.unwrap());
    }
    // The function reads the policy before a request, if its copy is too old.
    world.recorded.table.refresh_policy(clock.now()).await.unwrap();
    let payments = world.recorded.table.clone();
    let router =
        OrdersApi::new(desk, payments, "Example Shop", clock.clone()).router().layer(Extension(ConfidentialAccess));
    let employee = |name: &str| {
        format!(
            r#"{{"name": "{name}", "assignment": {{"job": "sales", "job_title": "Sales", "represents_customers": true,
            "department": "d-1", "warehouse": "ams"}}, "hired_on": "2026-12-01", "salary": 100, "currency": "EUR"}}"#
        )
    };
    for (request, body, status) in [
        ("PUT /warehouses/ams", r#"{"name": "Ams", "region": "eu"}"#.to_owned(), 201),
        ("PUT /warehouses/ams", r#"{"name": "Ams", "region": "na"}"#.to_owned(), 200),
        ("PUT /warehouses/ams", r#"{"name": "Ams", "region": "eu"}"#.to_owned(), 200),
        ("PUT /products/beans", r#"{"name": "Beans"}"#.to_owned(), 201),
        ("PUT /products/beans", r#"{"name": "House Blend"}"#.to_owned(), 200),
        ("PUT /skus/s", r#"{"lines": [{"product": "beans", "quantity": 1}]}"#.to_owned(), 200),
        ("PUT /skus/other", r#"{"lines": [{"product": "beans", "quantity": 1}]}"#.to_owned(), 200),
        ("PUT /skus/other", r#"{"lines": []}"#.to_owned(), 200),
        ("PUT /employees/e-1", employee("Ada"), 201),
        ("PUT /employees/e-2", employee("Grace"), 201),
        ("PUT /employees/e-1", employee("Ada"), 200),
    ] {
        assert_eq!(send(&router, request, &body).await, status, "{request}");
    }
    let paid = PaidPeriod {
        order: "2027-01-31.01JZXCVBNM0123456789ABCDEF".parse().unwrap(),
        account: "acme".parse().unwrap(),
        sku: "s".parse().unwrap(),
        amount: billing::Money::new(599, "EUR".parse().unwrap()),
        paid_at: six_oclock("2027-01-02"),
    };
    let unrecorded_desk = OrderDesk::new(unrecorded, BucketCount::default(), clock);
    unrecorded_desk.place_order(&paid).await.unwrap();
    let address = r#"{"name": "A", "street": "S", "postal_code": "1", "city": "C", "country": "gb", "region": "eu"}"#;
    let order = format!("/orders/{}", paid.order);
    for (request, body) in [
        (
            "PUT /products/beans/deliveries/01JZXCVBNM0123456789ABCDEF".to_owned(),
            r#"{"warehouse": "ams", "quantity": 9}"#,
        ),
        (
            "PUT /products/beans/counts/01JZXCVBNM0123456789ABCDEG".to_owned(),
            r#"{"warehouse": "ams", "found": 10, "reason": "found one more"}"#,
        ),
        ("GET /products/beans/movements".to_owned(), ""),
        ("PUT /customers/acme".to_owned(), address),
        ("PUT /customers/new".to_owned(), address),
        ("PUT /customers/acme/representative".to_owned(), r#"{"representative": "e-2"}"#),
        ("PUT /customers/new/representative".to_owned(), r#"{"representative": "e-2"}"#),
        (format!("POST {order}/pick"), "{}"),
        (format!("GET {order}/movements"), ""),
        (
            "PUT /employees/e-1/assignment".to_owned(),
            r#"{"assignment": {"job": "sales", "job_title": "T", "department": "d-1"}}"#,
        ),
        ("POST /employees/e-1/leave".to_owned(), "{}"),
        (format!("GET {order}"), ""),
        ("GET /orders".to_owned(), ""),
        ("GET /orders/ranking?quarter=2027-Q1&currency=EUR".to_owned(), ""),
        ("GET /products".to_owned(), ""),
        ("GET /products/beans".to_owned(), ""),
        ("GET /products/beans/orders".to_owned(), ""),
        ("GET /skus/s".to_owned(), ""),
        ("GET /warehouses".to_owned(), ""),
        ("GET /warehouses/ams".to_owned(), ""),
        ("GET /company/locations".to_owned(), ""),
        ("GET /warehouses/ams/employees".to_owned(), ""),
        ("GET /warehouses/ams/orders?status=PICKED".to_owned(), ""),
        ("GET /employees?title=Sales".to_owned(), ""),
        ("GET /employees?hired_after=2026-01-01".to_owned(), ""),
        ("GET /employees/e-2".to_owned(), ""),
        ("GET /employees/e-2/confidential".to_owned(), ""),
        ("GET /employees/e-2/customers".to_owned(), ""),
        ("GET /employees/e-2/orders".to_owned(), ""),
        ("GET /customers/acme".to_owned(), ""),
        ("GET /customers/acme/orders".to_owned(), ""),
    ] {
        if request.ends_with("/pick") {
            // The delivery and the address have created fill tasks. The Lambda function `orders`, which is not tested
            // here, processes these tasks.
            assert_eq!(unrecorded_desk.fill_waiting_orders(DateTime::<Utc>::MAX_UTC).await.filled, 1);
        }
        assert_eq!(send(&router, &request, body).await, 200, "{request}");
    }
    let line = OrderLine { product: "beans".parse().unwrap(), quantity: 2 };
    unrecorded_desk.table.set_lines_of_sku(&paid.sku, &[line]).await.unwrap();
    let other = PaidPeriod { order: "2027-01-31.01JZXCVBNM0123456789ABCDEG".parse().unwrap(), ..paid.clone() };
    unrecorded_desk.place_order(&other).await.unwrap();
    let split = r#"{"lines": [{"product": "beans", "quantity": 1}]}"#;
    assert_eq!(send(&router, &format!("POST /orders/{}/split", other.order), split).await, 201);
    for step in [OrderStatus::Picked, OrderStatus::Shipped] {
        unrecorded_desk.advance_order(other.order, step).await.unwrap();
    }
    let replace = format!("POST /orders/{}/replacements", other.order);
    assert_eq!(send(&router, &replace, r#"{"reason": "lost"}"#).await, 201);
    // A browser gets packing slips. For these, the function reads the languages of the customers.
    let slips = Request::builder().uri("/warehouses/ams/orders?status=PICKED").header("accept", "text/html");
    let slips = slips.extension(Caller::Operator(Role::Admin)).body(Body::empty()).unwrap();
    assert_eq!(router.clone().oneshot(slips).await.unwrap().status(), 200);
    // The cancellation of a cancelled order succeeds, and the response is stored under the idempotency key.
    unrecorded_desk.advance_order(paid.order, OrderStatus::Cancelled).await.unwrap();
    assert_eq!(send(&router, &format!("POST {order}/cancel"), "{}").await, 200);
    assert_policy("OrdersApiFunction", &world.connection.recorded_permissions());
}
