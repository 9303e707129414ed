//! Sends every example request of the order desk's OpenAPI document, in the order of `examples.json`, and compares the
//! responses with the examples. `UPDATE_EXAMPLES=1 cargo test --test orders_routes` writes the current responses to
//! `examples.json`.

use std::path::Path;
use std::sync::Arc;

use axum::Extension;
use billing::Money;
use clock::SimulatedClock;
use emulator::Engine;
use orders::{
    Assignment, ConfidentialData, Country, Department, Employee, Job, Location, PaidPeriod, Region, Warehouse,
};
use orders_api::OrdersApi;
use orders_desk::{OrderDesk, PlaceOutcome};
use orders_table::{BucketCount, OrdersTable, WriteOutcome};
use rest::{Caller, Role};
use testkit::{check_generated_file, check_openapi_examples};

use crate::router::test_desk::payments_table;

/// The file with the example requests and responses of the OpenAPI document.
const EXAMPLES_PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples.json");

/// Returns the paid month whose order the examples show.
fn paid_month() -> PaidPeriod {
    PaidPeriod {
        order: "2027-01-31.01MCCKG2G0000G000000000002".parse().unwrap(),
        account: "acme".parse().unwrap(),
        sku: "coffee".parse().unwrap(),
        amount: Money::new(1_299, "EUR".parse().unwrap()),
        paid_at: "2027-01-31T06:00:02Z".parse().unwrap(),
    }
}

/// Hires a second representative, to whom customers can be handed over.
async fn hire_second_representative(desk: &OrderDesk) {
    let id: orders::EmployeeId = "e-11".parse().unwrap();
    let confidential = ConfidentialData {
        employee: id.clone(),
        hired_on: "2027-01-01".parse().unwrap(),
        salary: Money::new(5_100_000, "EUR".parse().unwrap()),
    };
    let assignment = Assignment {
        job: "sales".parse().unwrap(),
        job_title: "Account Manager".parse().unwrap(),
        represents_customers: true,
        department: "sales-eu".parse().unwrap(),
        warehouse: None,
    };
    let created_at = "2027-01-01T09:00:00Z".parse().unwrap();
    let name = "Grace Hopper".parse().unwrap();
    let new = Employee { id, name, assignment: None, left_on: None, created_at, version: 1 };
    assert_eq!(desk.table.hire_employee(&new, &assignment, &confidential).await.unwrap(), WriteOutcome::Done);
}

/// Stores the region, the country, the location, the jobs and the departments to which the examples refer.
async fn import_company(desk: &OrderDesk) {
    let region = Region { id: "eu".parse().unwrap(), name: "Europe".parse().unwrap() };
    desk.put_entity(&region).await.unwrap();
    let (id, name) = ("gb".parse().unwrap(), "United Kingdom".parse().unwrap());
    desk.put_entity(&Country { id, name, region: region.id }).await.unwrap();
    let (id, address) = ("leeds-office".parse().unwrap(), "1 Wharf Street".parse().unwrap());
    desk.put_entity(&Location { id, address, country_name: "United Kingdom".parse().unwrap() }).await.unwrap();
    for (id, title, represents_customers) in [("sales", "Account Manager", true), ("buying", "Buyer", false)] {
        let job = Job { id: id.parse().unwrap(), title: title.parse().unwrap(), represents_customers };
        desk.put_entity(&job).await.unwrap();
    }
    for (id, name) in [("sales-eu", "Sales"), ("buying-eu", "Buying")] {
        let (id, name, location) = (id.parse().unwrap(), name.parse().unwrap(), "leeds-office".parse().unwrap());
        desk.put_entity(&Department { id, name, location }).await.unwrap();
    }
}

/// Creates a second warehouse, to which stock can be transferred.
async fn create_second_warehouse(desk: &OrderDesk) {
    let warehouse = Warehouse {
        id: "ber".parse().unwrap(),
        name: "Berlin".parse().unwrap(),
        region: "eu".parse().unwrap(),
        version: 1,
    };
    assert_eq!(desk.table.create_warehouse(&warehouse).await.unwrap(), WriteOutcome::Done);
}

#[tokio::test]
async fn responses_match_the_examples() {
    let clock = Arc::new(SimulatedClock::new("2027-01-31T12:00:00Z".parse().unwrap(), 1));
    let client = Engine::in_memory().client();
    let table = OrdersTable::new(client.clone(), "dueday-orders");
    table.create_if_absent().await.unwrap();
    let desk =
        OrderDesk::new(table.clone(), table.get_or_store_buckets(BucketCount::new(4)).await.unwrap(), clock.clone());
    let payments = payments_table(client).await;
    let router = OrdersApi::new(desk.clone(), payments, "Example Shop", clock).router();
    let router = router.layer(Extension(Caller::Operator(Role::Admin)));
    // Some examples need data that no example request creates: the company, which comes from a file, an order, which only
    // a payment event can place, a second representative, or a second warehouse.
    let prepare = async |operation: &str| match operation {
        "list_company" => import_company(&desk).await,
        "get_customer" => assert!(matches!(desk.place_order(&paid_month()).await.unwrap(), PlaceOutcome::Placed(_))),
        "hand_over_customer" => hire_second_representative(&desk).await,
        "transfer_stock" => create_second_warehouse(&desk).await,
        _ => {}
    };
    check_openapi_examples(&orders_api::openapi_document(), EXAMPLES_PATH, router, prepare).await;
}

#[test]
fn published_document_describes_the_routes() {
    let document = orders_api::openapi_document();
    assert_eq!(document["openapi"], "3.1.0");
    let text = serde_json::to_string_pretty(&document).unwrap() + "\n";
    check_generated_file(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi-orders.json")), &text);
}
