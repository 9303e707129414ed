//! Counts the requests and the read capacity units of each access pattern of the orders table, and compares the counts
//! with a list in `docs/orders.md`.

use std::path::Path;
use std::sync::Arc;

use chrono::NaiveDate;
use emulator::EngineConnection;
use orders::OrderStatus;
use orders_table::{EmployeeList, OrdersTable};
use simulator::{Company, CompanySize, euro_currency};
use store::Paging;
use strum::IntoEnumIterator as _;

use crate::order_desk::naive_reader::NaiveReader;
use crate::order_desk::world::{World, range_of_all_days, test_time};

/// The comment in `docs/orders.md` before the list of costs.
const COSTS_BEGIN: &str =
    "<!-- The costs of the access patterns, counted by `UPDATE_EXAMPLES=1 cargo test --test plays pattern_costs` -->";
/// The comment in `docs/orders.md` after the list of costs.
const COSTS_END: &str = "<!-- End of the costs of the access patterns -->";

/// The list of the costs of all access patterns.
struct Costs {
    /// The connection that counts the requests and the capacity units.
    connection: Arc<EngineConnection>,
    /// The number of requests that are already contained in the list.
    requests: u64,
    /// The list as a table in Markdown. Each row states an access pattern, its requests and its read units.
    text: String,
}

impl Costs {
    /// Adds a row for the access pattern with this `number` and description `question`. The row states the costs of all
    /// requests since the previous row. `found` is the number of entities that the access pattern returned.
    fn add(&mut self, number: &str, question: &str, found: usize) {
        let total: u64 = self.connection.request_counts().values().sum();
        let requests = total - std::mem::replace(&mut self.requests, total);
        let units: f64 = self.connection.take_capacity_units().values().sum();
        self.text += &format!("| {number} | {question} | {found} | {requests} | {units} |\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_document_shows_the_requests_and_read_units_of_each_access_pattern() {
    let size = CompanySize { customers: 400, months: 36, ..CompanySize::default_size() };
    let world = World::new(Company::new(size, 7), 2_000).await;
    let desk = world.desk_without_faults();
    for paid in &world.company.paid {
        desk.place_order(paid).await.unwrap();
    }
    let connection = Arc::new(EngineConnection::counting_capacity_units());
    let table = OrdersTable::new(world.engine.client_with_connection(connection.clone()), "dueday-orders");
    let head = "| # | access pattern | rows | requests | read units |\n|---|---|---:|---:|---:|\n".to_owned();
    let mut costs = Costs { connection: connection.clone(), requests: 0, text: head };
    let (all, every) = (Paging::all(), OrderStatus::iter().collect::<Vec<_>>());
    let page = Paging { limit: Some(50), ..Paging::all() };
    let (employee, customer) = ("e-10".parse().unwrap(), world.company.customers[0].0.clone());
    let (product, warehouse) = ("p-3".parse().unwrap(), "wh-3".parse().unwrap());
    let day = |text: &str| text.parse::<NaiveDate>().unwrap();
    let year = (day("2026-01-01"), day("2026-12-31"));

    let details = table.employee_details(&employee).await.unwrap().unwrap();
    costs.add(
        "1",
        "details of a representative: job history and quarter totals",
        details.jobs.len() + details.totals.len(),
    );
    let found = table.list_employees(EmployeeList::WithName("Ada Archer"), &all).await.unwrap();
    costs.add("2", "employees of a name", found.items.len());
    let job = table.current_job(&employee, test_time().date_naive()).await.unwrap();
    costs.add("3", "current job of an employee", job.iter().count());
    let found = table.orders_of_customer(&customer, &every, year, &all).await.unwrap();
    costs.add("4", "orders of a customer in a year, in any status", found.items.len());
    let buckets = desk.buckets();
    let found = table.orders_of_all_customers(&[OrderStatus::Open], year, buckets, &page).await.unwrap();
    costs.add("5", "the first 50 open orders of a year", found.items.len());
    let found = table.orders_of_all_customers(&[OrderStatus::Open], range_of_all_days(), buckets, &all).await.unwrap();
    costs.add("5", "all open orders", found.items.len());
    let found = table.orders_of_all_customers(&every, range_of_all_days(), buckets, &page).await.unwrap();
    costs.add("5", "the first 50 orders in any status (`GET /orders` without a status)", found.items.len());
    let found = table
        .list_employees(EmployeeList::Hired { after: day("2023-06-30"), today: test_time().date_naive() }, &all)
        .await
        .unwrap();
    costs.add("6", "employees hired since July 2023", found.items.len());
    let found = table.list_employees(EmployeeList::OfWarehouse(&warehouse), &all).await.unwrap();
    costs.add("7", "employees of a warehouse", found.items.len());
    let (found, stock) = table.orders_and_stock_of_product(&product).await.unwrap();
    costs.add("8", "all orders of a product, and its stock", found.len() + stock.len());
    let found = table.customers_of_representative(&employee, &all).await.unwrap();
    costs.add("9", "customers of a representative", found.items.len());
    let found = table.orders_of_representative(&employee, &[OrderStatus::Open], year, &all).await.unwrap();
    costs.add("10", "open orders of a representative in a year", found.items.len());
    let found = table.list_employees(EmployeeList::WithTitle("Account Manager"), &all).await.unwrap();
    costs.add("11", "employees of a job title", found.items.len());
    let found = table.get_stock(&product, None).await.unwrap();
    costs.add("12", "stock of a product in each warehouse", found.len());
    let found = table.get_product(&product).await.unwrap();
    costs.add("13", "total stock of a product", found.iter().count());
    let found = table.get_ranking("2026-Q1".parse().unwrap(), euro_currency()).await.unwrap();
    costs.add("14", "ranking of a quarter", found.len());
    let found = table.orders_of_warehouse(&warehouse, OrderStatus::Open, false, &page).await.unwrap();
    costs.add("", "the first 50 orders to pick in a warehouse", found.items.len());
    let page = Paging { limit: Some(100), ..Paging::all() };
    let found = table.orders_of_warehouse(&warehouse, OrderStatus::Open, false, &page).await.unwrap();
    costs.add("", "the first 100 orders to pick in a warehouse", found.items.len());

    let scan = world
        .engine
        .client_with_connection(connection)
        .scan()
        .table_name("dueday-orders")
        .into_paginator()
        .items()
        .send();
    let items = scan.collect::<Result<Vec<_>, _>>().await.unwrap().len();
    assert_eq!(items, NaiveReader::read(&world.engine).await.1);
    costs.add("", "a scan of the table", items);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/orders.md");
    testkit::check_generated_section(&path, COSTS_BEGIN, COSTS_END, &costs.text);
}
