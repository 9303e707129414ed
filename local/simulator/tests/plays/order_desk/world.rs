//! The environment of the order desk's tests: a table with the data of a sample company, and an order desk that uses
//! this table.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use chrono::{DateTime, NaiveDate, Utc};
use clock::SimulatedClock;
use emulator::{Engine, EngineConnection, FaultInjector};
use orders::{DateRange, NumberDifference, PaidPeriod};
use orders_desk::OrderDesk;
use orders_table::{BucketCount, OrdersAudit, OrdersAuditReport, OrdersTable, WriteOutcome};
use simulator::{Company, OrdersTableContents};
use store::FaultyItem;
use ulid::Ulid;

/// The number of buckets (partitions of an index) over which the table distributes the orders of one status.
pub const BUCKETS: u32 = 4;

/// The environment of a test of the order desk.
pub struct World {
    pub company: Company,
    pub engine: Engine,
    /// The order desk under test. Its calls to the table may have faults.
    pub desk: OrderDesk,
    /// The connection of `desk` to the table, which counts the requests.
    pub connection: Arc<EngineConnection>,
    /// The quantity of each product that the warehouses received, by the product's key.
    pub received: BTreeMap<String, i64>,
}

/// Returns the current time in the tests.
pub fn test_time() -> DateTime<Utc> {
    "2027-02-15T12:00:00Z".parse().unwrap()
}

/// Returns a date range that contains all dates in the tests.
pub fn range_of_all_days() -> DateRange {
    (NaiveDate::from_ymd_opt(2000, 1, 1).unwrap(), NaiveDate::from_ymd_opt(2100, 1, 1).unwrap())
}

/// Returns a new clock that shows [`test_time`]. Each clock has another seed, so the clocks create different
/// identifiers.
pub fn new_clock() -> Arc<SimulatedClock> {
    static CLOCKS: AtomicU64 = AtomicU64::new(1);
    Arc::new(SimulatedClock::new(test_time(), CLOCKS.fetch_add(1, Ordering::Relaxed)))
}

/// Processes all fill tasks, which are requests to fill the orders that wait for stock or an address. Checks that no
/// order failed and that no task is unfinished. Returns the number of filled orders.
pub async fn fill_all(desk: &OrderDesk) -> u32 {
    let done = desk.fill_waiting_orders(DateTime::<Utc>::MAX_UTC).await;
    assert_eq!((done.failed, done.unfinished_tasks), (0, 0));
    done.filled
}

fn assert_done(written: WriteOutcome) {
    assert_eq!(written, WriteOutcome::Done);
}

/// A table with the data of a company, without orders.
#[derive(Clone)]
struct PreparedTable {
    engine: Engine,
    /// The quantity of each product that the warehouses received, by the product's key.
    received: BTreeMap<String, i64>,
}

/// Creates a table with the data of `company` and with `stock` pieces of each product in each warehouse.
async fn create_table(company: &Company, stock: u64) -> PreparedTable {
    let engine = Engine::in_memory();
    let table =
        OrdersTable::new(engine.client_with_connection(Arc::new(EngineConnection::without_tokens())), "dueday-orders");
    table.create_if_absent().await.unwrap();
    for region in &company.regions {
        assert_done(table.put_entity(region).await.unwrap());
    }
    for country in &company.countries {
        assert_done(table.put_entity(country).await.unwrap());
    }
    for location in &company.locations {
        assert_done(table.put_entity(location).await.unwrap());
    }
    for job in &company.jobs {
        assert_done(table.put_entity(job).await.unwrap());
    }
    for department in &company.departments {
        assert_done(table.put_entity(department).await.unwrap());
    }
    for warehouse in &company.warehouses {
        assert_done(table.create_warehouse(warehouse).await.unwrap());
    }
    for (employee, assignment, confidential) in &company.employees {
        assert_done(table.hire_employee(employee, assignment, confidential).await.unwrap());
    }
    let buckets = table.get_or_store_buckets(BucketCount::new(BUCKETS)).await.unwrap();
    let desk = OrderDesk::new(table.clone(), buckets, new_clock());
    let mut received = BTreeMap::new();
    for product in &company.products {
        assert_done(table.create_product(product).await.unwrap());
        for warehouse in company.warehouses.iter().filter(|_| stock > 0) {
            desk.receive_stock(&product.id, &warehouse.id, stock, Ulid::generate()).await.unwrap();
            *received.entry(format!("PRODUCT#{}", product.id)).or_insert(0) += i64::try_from(stock).unwrap();
        }
    }
    for (sku, lines) in company.skus.iter().filter(|(_, lines)| !lines.is_empty()) {
        assert_done(table.set_lines_of_sku(sku, lines).await.unwrap());
    }
    for (account, address) in &company.customers {
        if let Some(address) = address {
            desk.set_shipping_address(account, address.clone()).await.unwrap();
        }
    }
    // No order exists yet, so this call fills no order. It deletes the fill tasks that the stock and the addresses
    // created.
    assert_eq!(fill_all(&desk).await, 0);
    PreparedTable { engine, received }
}

impl World {
    /// Creates a table with the data of `company` and with `stock` pieces of each product in each warehouse, and an
    /// order desk whose calls never fail.
    pub async fn new(company: Company, stock: u64) -> Self {
        Self::with_connection(company, stock, EngineConnection::without_tokens()).await
    }

    /// Creates the same as [`World::new`], but `injector` decides which calls of the order desk to the table fail.
    pub async fn with_injector(company: Company, stock: u64, injector: Arc<FaultInjector>) -> Self {
        Self::with_connection(company, stock, EngineConnection::with_injector(injector)).await
    }

    /// Creates the same as [`World::new`], but the order desk uses `connection`. The table is created only once for each
    /// `company` and `stock`, and then copied, because many tests repeat the same story with different faults.
    async fn with_connection(company: Company, stock: u64, connection: EngineConnection) -> Self {
        static TABLES: Mutex<BTreeMap<String, PreparedTable>> = Mutex::new(BTreeMap::new());
        let key = format!("{stock} {company:?}");
        let known = TABLES.lock().unwrap().get(&key).cloned();
        let PreparedTable { engine, received } = match known {
            Some(known) => known,
            None => {
                let created = create_table(&company, stock).await;
                TABLES.lock().unwrap().insert(key, created.clone());
                created
            }
        };
        let (engine, connection) = (engine.copy(), Arc::new(connection));
        let table = OrdersTable::new(engine.client_with_connection(connection.clone()), "dueday-orders");
        let desk = OrderDesk::new(table, BucketCount::new(BUCKETS), new_clock());
        Self { company, engine, desk, connection, received }
    }

    /// Returns another order desk on the same table, whose calls never fail.
    pub fn desk_without_faults(&self) -> OrderDesk {
        let client = self.engine.client_with_connection(Arc::new(EngineConnection::without_tokens()));
        let table = OrdersTable::new(client, "dueday-orders");
        OrderDesk::new(table, BucketCount::new(BUCKETS), new_clock())
    }

    /// Returns the order desk of a new process, as after a crash. It uses the connection of `desk`, so its calls can
    /// fail like those of `desk`.
    pub fn desk_after_restart(&self) -> OrderDesk {
        let table = OrdersTable::new(self.engine.client_with_connection(self.connection.clone()), "dueday-orders");
        OrderDesk::new(table, BucketCount::new(BUCKETS), new_clock())
    }

    /// Reads the orders, stocks and totals from all items of the table.
    pub async fn contents(&self) -> OrdersTableContents {
        let scan = self.engine.client().scan().table_name("dueday-orders").consistent_read(true);
        let items: Result<Vec<_>, _> = scan.into_paginator().items().send().collect().await;
        OrdersTableContents::from_items(&items.unwrap())
    }

    /// Returns the keys of the orders that must exist after the payments `paid`: one for each payment whose SKU has
    /// products.
    pub fn expected_orders(&self, paid: &[PaidPeriod]) -> BTreeSet<String> {
        let has_products =
            |paid: &&PaidPeriod| self.company.skus.iter().any(|(sku, lines)| *sku == paid.sku && !lines.is_empty());
        paid.iter().filter(has_products).map(|paid| format!("ORDER#{}", paid.order)).collect()
    }

    /// Checks that the table is consistent after the payments `paid`. `when` describes the moment in the test.
    pub async fn assert_consistent(&self, paid: &[PaidPeriod], when: &str) {
        let inconsistencies = self.contents().await.inconsistencies(&self.received, &self.expected_orders(paid));
        assert!(inconsistencies.is_empty(), "{when}: {inconsistencies:#?}");
        assert_eq!(self.audit().await, Vec::<String>::new(), "{when}");
    }

    /// Audits the table. Returns a line for each number that differs from the records, and a line for each number or
    /// item that the audit could not compare.
    pub async fn audit(&self) -> Vec<String> {
        let desk = self.desk_without_faults();
        let mut audit = OrdersAudit::begin(&desk.table).with_items_checked(desk.clock().now());
        while audit.next_orders().await.unwrap().is_some() {}
        let OrdersAuditReport { differences, unverified, unopened, faulty, .. } = audit.finish(|| ()).await.unwrap();
        let differences = differences.iter().map(|difference| {
            let NumberDifference { number, expected, found } = difference;
            let found = found.map_or("none".to_owned(), |found| number.format_value(found));
            format!("{number}: {} expected, {found} found", number.format_value(*expected))
        });
        differences
            .chain(unverified.iter().map(|number| format!("{number}: changed")))
            .chain(unopened.iter().map(|number| format!("{number}: no opening movement")))
            .chain(faulty.iter().map(|FaultyItem { key, what, .. }| format!("{key}: {what}")))
            .collect()
    }
}
