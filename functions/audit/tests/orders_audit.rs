//! Tests of the function's audit of the order desk: in one invocation, and in many invocations that have little time.
//! Both find the same damage.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use audit::check_stored_numbers;
use audit_function::{Checks, Response, TableResponse};
use aws_sdk_dynamodb::types::AttributeValue;
use billing::{Account, Subscription, SubscriptionId};
use chrono::{DateTime, TimeDelta, Utc};
use clock::{Clock, SimulatedClock};
use emulator::{Call, Deployment, Fault, Wire};
use orders::{
    Buckets, Country, OrderDesk, OrderId, OrderLine, OrdersTable, PaidPeriod, Product, Region, ShippingAddress,
    Warehouse,
};
use store::Paging;
use sweep::BatchRequest;
use testkit::{InMemoryDeployment, RecordedMails, config, sample};
use ulid::Ulid;

/// The number of accounts in the test. Each account has paid for one month.
const ACCOUNTS: u128 = 12;

/// The name of the table of the order desk.
const ORDERS: &str = "dueday-orders";

/// A clock that advances by `step` each time the code reads it.
#[derive(Debug)]
struct AdvancingClock {
    start: DateTime<Utc>,
    step: TimeDelta,
    looks: AtomicI64,
    ids: SimulatedClock,
}

impl Clock for AdvancingClock {
    fn now(&self) -> DateTime<Utc> {
        self.start + self.step * i32::try_from(self.looks.fetch_add(1, Ordering::Relaxed)).unwrap()
    }

    fn ulid(&self) -> Ulid {
        self.ids.ulid()
    }

    fn random_secret(&self) -> [u8; 32] {
        self.ids.random_secret()
    }
}

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

/// Accounts that have paid, and their orders.
struct World {
    system: InMemoryDeployment,
    desk: OrderDesk,
    /// The orders, in the sequence of the accounts.
    orders: Vec<OrderId>,
}

impl World {
    async fn new() -> Self {
        let clock = SimulatedClock::new(at("2027-01-01T06:00:00Z"), 7);
        let settings = [("DUEDAY_SHARDS", "1"), ("DUEDAY_MERCHANT", "Shop")];
        let mails = Arc::new(RecordedMails::default());
        let system = InMemoryDeployment::new(config(&settings).unwrap(), clock, mails).await.unwrap();
        let deployment = system.deployment.clone();
        for number in 0..ACCOUNTS {
            let account: billing::AccountId = format!("account-{number:02}").parse().unwrap();
            let id = SubscriptionId::new(Ulid::from_parts(2, number));
            deployment.table.put_account(&Account { id: account.clone(), ..sample::account() }).await.unwrap();
            // The first account pays earlier than the other accounts.
            let (payment_day, created_on) = (if number == 0 { 8 } else { 10 }, "2026-12-11".parse().unwrap());
            let subscription = Subscription { account, id, ..sample::subscription(payment_day, created_on) };
            deployment.table.create_subscription(&subscription, None).await.unwrap();
        }
        let orders = OrdersTable::new(deployment.table.client().clone(), ORDERS);
        orders.create_if_absent().await.unwrap();
        let buckets = orders.get_or_store_buckets(Buckets::default()).await.unwrap();
        let desk = OrderDesk::new(orders, buckets, system.clock.clone());
        let mut world = Self { system, desk, orders: Vec::new() };
        world.prepare_goods().await;
        let payments = deployment.payments().await.unwrap();
        for due_on in ["2027-01-08", "2027-01-10"] {
            let now = at(&format!("{due_on}T06:00:00Z"));
            world.system.clock.set(now);
            let request = BatchRequest::for_date(due_on.parse().unwrap());
            payments.run(&request, now + TimeDelta::hours(1)).await.unwrap();
        }
        let mut partitions = deployment.table.partitions();
        while let Some(partition) = partitions.next().await.unwrap() {
            for receipt in &partition.receipts {
                let order = OrderId::of_month(receipt.due_on, receipt.subscription);
                let (account, sku) = (receipt.account.clone(), receipt.sku.clone());
                let (amount, paid_at) = (receipt.amount, receipt.processed_at);
                world.desk.place(&PaidPeriod { order, account, sku, amount, paid_at }).await.unwrap();
                world.orders.push(order);
            }
        }
        assert_eq!(world.orders.len(), 12);
        world.orders.sort();
        world
    }

    /// Stores a product with stock, and a shipping address for each customer.
    async fn prepare_goods(&self) {
        let table = &self.desk.table;
        let product = Product {
            id: "beans".parse().unwrap(),
            name: "Beans".parse().unwrap(),
            total_stock: 0,
            created_at: self.system.clock.now(),
            version: 1,
        };
        table.create_product(&product).await.unwrap();
        let (id, name, region) = ("ams".parse().unwrap(), "Amsterdam".parse().unwrap(), "eu".parse().unwrap());
        let warehouse = Warehouse { id, name, region, version: 1 };
        table.create_warehouse(&warehouse).await.unwrap();
        let line = OrderLine { product: product.id.clone(), quantity: 2 };
        table.set_lines_of_sku(&"gold".parse().unwrap(), &[line]).await.unwrap();
        self.desk.receive(&product.id, &warehouse.id, 100, self.system.clock.ulid()).await.unwrap();
        let label = |text: &str| text.parse().unwrap();
        table.put_entity(&Region { id: warehouse.region.clone(), name: label("Europe") }).await.unwrap();
        let (id, region) = ("gb".parse().unwrap(), warehouse.region.clone());
        table.put_entity(&Country { id, name: label("Britain"), region }).await.unwrap();
        let address = ShippingAddress {
            name: "Acme".parse().unwrap(),
            street: "1 High Street".parse().unwrap(),
            postal_code: "LS1".parse().unwrap(),
            city: "Leeds".parse().unwrap(),
            country: "gb".parse().unwrap(),
            region: "eu".parse().unwrap(),
        };
        for number in 0..ACCOUNTS {
            let account = format!("account-{number:02}").parse().unwrap();
            self.desk.set_shipping_address(&account, address.clone()).await.unwrap();
        }
    }

    /// Adds large items to the table, between the orders, so that a scan reads the orders in several list pages. The
    /// audit does not compare these items.
    async fn add_large_items(&self) {
        for order in &self.orders {
            let [key, filler] = [format!("ORDER#{order}-"), "x".repeat(300_000)].map(AttributeValue::S);
            let put = self.desk.table.client().put_item().table_name(ORDERS);
            put.item("PK", key.clone()).item("SK", key).item("Filler", filler).send().await.unwrap();
        }
    }

    /// Deletes the item of `table` with the partition key `pk` whose sort key begins with `sk`.
    async fn delete(&self, table: &str, pk: &str, sk: &str) {
        let client = self.desk.table.client();
        let query = client.query().table_name(table).key_condition_expression("PK = :pk AND begins_with(SK, :sk)");
        let query = query.expression_attribute_values(":pk", AttributeValue::S(pk.to_owned()));
        let items = query.expression_attribute_values(":sk", AttributeValue::S(sk.to_owned())).send().await.unwrap();
        let item = &items.items()[0];
        let key: HashMap<_, _> = ["PK", "SK"].map(|name| (name.to_owned(), item[name].clone())).into();
        client.delete_item().table_name(table).set_key(Some(key)).send().await.unwrap();
    }

    /// Removes all attributes except the key from this item of the order desk, so that the item cannot be read.
    async fn make_unreadable(&self, pk: &str, sk: &str) {
        let [pk, sk] = [pk, sk].map(|key| AttributeValue::S(key.to_owned()));
        let put = self.desk.table.client().put_item().table_name(ORDERS);
        put.item("PK", pk).item("SK", sk).send().await.unwrap();
    }

    /// Removes the amount from the first order. Returns the key of its item.
    async fn make_first_order_unreadable(&self) -> String {
        let (pk, sk) = (format!("ORDER#{}", self.orders[0]), "CUSTOMER#account-00");
        let update = self.desk.table.client().update_item().table_name(ORDERS).key("PK", AttributeValue::S(pk.clone()));
        let update = update.key("SK", AttributeValue::S(sk.to_owned())).update_expression("REMOVE PaymentAmount");
        update.send().await.unwrap();
        format!("{pk} {sk}")
    }

    /// Damages the stored data: deletes an order, the receipt of a second order, and a stock movement of a third order.
    async fn damage(&self) {
        self.delete(ORDERS, &format!("ORDER#{}", self.orders[1]), "CUSTOMER#").await;
        self.delete(ORDERS, &format!("ORDER#{}", self.orders[5]), "MOVEMENT#").await;
        let payments = self.system.deployment.table.name().to_owned();
        self.delete(&payments, "ACC#account-03", "REC#").await;
    }

    /// Returns the violations that the audit finds after [`World::damage`].
    fn damages(&self) -> Vec<(String, String)> {
        let (missing, unpaid) = (self.orders[1].to_string(), self.orders[3].to_string());
        violations(&[("ordered", &missing), ("paid", &unpaid), ("stock", "beans in ams")])
    }

    fn checks(&self, clock: Arc<dyn Clock>) -> Checks {
        let Deployment { table, config, .. } = self.system.deployment.clone();
        Checks::new(table, config.billing, config.charging, clock).with_orders(self.desk.table.clone())
    }

    /// Returns the violations of the audit `id`, sorted: the names of the invariants and the keys of the items.
    async fn violations(&self, id: &str) -> Vec<(String, String)> {
        let (table, now) = (&self.system.deployment.table, self.system.clock.now());
        let audit = table.get_audit(id.parse().unwrap(), now).await.unwrap().unwrap();
        let stored = table.get_audit_violations(&audit, &Paging::all()).await.unwrap().items;
        assert_eq!(u64::try_from(stored.len()).unwrap(), audit.violation_count());
        // The deleted receipt is also a violation in the payments table. The test compares only the violations of the
        // order desk.
        let of_orders = stored.into_iter().filter(|violation| !violation.key.starts_with("ACC#"));
        let mut violations: Vec<_> = of_orders.map(|violation| (violation.invariant, violation.key)).collect();
        violations.sort();
        violations
    }
}

fn violations(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(invariant, key)| ((*invariant).to_owned(), (*key).to_owned())).collect()
}

async fn audit(checks: &Checks, deadline: DateTime<Utc>) -> TableResponse {
    let response = checks.handle(serde_json::json!({ "check": "table" }), deadline).await.unwrap();
    let Response::Table(response) = response else { panic!("{response:?}") };
    response
}

#[tokio::test]
async fn audit_compares_the_orders_with_the_receipts_and_the_stock_with_its_movements() {
    let world = World::new().await;
    world.system.clock.set(at("2027-01-12T01:40:00Z"));
    let (checks, deadline) = (world.checks(world.system.clock.clone()), at("2027-01-12T01:55:00Z"));
    let clean = audit(&checks, deadline).await;
    assert_eq!((clean.complete, clean.accounts, clean.orders, clean.violations), (true, 12, 12, 0), "{clean:?}");

    world.damage().await;
    let damaged = audit(&checks, deadline).await;
    assert!(damaged.complete && damaged.orders == 11, "{damaged:?}");
    assert_eq!(world.violations(&damaged.audit).await, world.damages());
}

#[tokio::test]
async fn audit_requires_no_order_before_the_order_desk_was_used_or_while_the_queue_may_deliver_the_payment() {
    let world = World::new().await;
    world.delete(ORDERS, &format!("ORDER#{}", world.orders[1]), "CUSTOMER#").await;
    // The columns are: the time of the audit, the time from which each payment must have an order, and the expected
    // number of violations.
    for (now, ordered_from, expected) in [
        ("2027-01-10T17:00:00Z", None, 0),
        ("2027-01-10T19:00:00Z", None, 1),
        ("2027-01-10T19:00:00Z", Some("2027-01-10T06:00:01Z"), 0),
    ] {
        world.system.clock.set(at(now));
        if let Some(from) = ordered_from {
            world.desk.table.set_ordered_from(at(from)).await.unwrap();
        }
        let checks = world.checks(world.system.clock.clone());
        let response = audit(&checks, at(now) + TimeDelta::minutes(15)).await;
        assert_eq!((response.complete, response.violations), (true, expected), "{now} {ordered_from:?}");
    }
}

#[tokio::test]
async fn audit_that_stops_again_and_again_finds_the_same_damages() {
    let world = World::new().await;
    world.add_large_items().await;
    world.damage().await;
    world.system.clock.set(at("2027-01-12T01:40:00Z"));
    let ids = SimulatedClock::new(at("2027-01-12T01:40:00Z"), 9);
    let (start, step) = (at("2027-01-12T01:40:00Z"), TimeDelta::seconds(1));
    let clock = Arc::new(AdvancingClock { start, step, looks: AtomicI64::new(0), ids });
    let checks = world.checks(clock.clone());
    let mut responses: Vec<TableResponse> = Vec::new();
    while !responses.last().is_some_and(|response| response.complete) {
        // Each invocation has time for a few accounts, or for a few list pages of orders. Only the invocation after all
        // orders were read has more time.
        let has_read_orders = responses.last().is_some_and(|response| response.orders == 11);
        let time = TimeDelta::seconds(if has_read_orders { 900 } else { 36 });
        responses.push(audit(&checks, clock.now() + time).await);
        assert!(responses.len() < 20, "{responses:?}");
    }
    let last = responses.last().unwrap();
    assert!(responses.len() > 3 && responses.iter().all(|response| response.audit == last.audit), "{responses:?}");
    assert_eq!((last.accounts, last.orders), (12, 11), "{responses:?}");
    assert!(
        responses.iter().any(|response| (1..11).contains(&response.orders)),
        "stopped between orders: {responses:?}"
    );
    assert_eq!(world.violations(&last.audit).await, world.damages());
}

#[tokio::test]
async fn numbers_that_cannot_be_compared_in_time_are_a_violation_and_the_audit_ends() {
    let world = World::new().await;
    let unreadable = world.make_first_order_unreadable().await;
    world.add_large_items().await;
    world.system.clock.set(at("2027-01-12T01:40:00Z"));
    let ids = SimulatedClock::new(at("2027-01-12T01:40:00Z"), 9);
    let (start, step) = (at("2027-01-12T01:40:00Z"), TimeDelta::minutes(1));
    let clock = Arc::new(AdvancingClock { start, step, looks: AtomicI64::new(0), ids });
    let checks = world.checks(clock.clone());
    let mut last = audit(&checks, clock.now() + TimeDelta::minutes(5)).await;
    while !last.complete {
        last = audit(&checks, clock.now() + TimeDelta::minutes(5)).await;
    }
    assert_eq!((last.accounts, last.orders), (12, 11), "{last:?}");
    let expected = [("compared", "orders table"), ("readable", unreadable.as_str())];
    assert_eq!(world.violations(&last.audit).await, violations(&expected));
}

#[tokio::test]
async fn item_that_cannot_be_read_is_a_violation_and_does_not_stop_the_audit() {
    let world = World::new().await;
    world.system.clock.set(at("2027-01-12T01:40:00Z"));
    let (checks, deadline) = (world.checks(world.system.clock.clone()), at("2027-01-12T01:55:00Z"));
    // Two payments have no order, because the products of their SKU cannot be read.
    for order in [1, 2] {
        world.delete(ORDERS, &format!("ORDER#{}", world.orders[order]), "CUSTOMER#").await;
    }
    world.make_unreadable("SKU#gold", "PRODUCT#beans").await;
    let response = audit(&checks, deadline).await;
    assert_eq!((response.complete, response.accounts, response.orders), (true, 12, 10), "{response:?}");
    assert_eq!(world.violations(&response.audit).await, violations(&[("readable", "SKU#gold PRODUCT#beans")]));
}

#[tokio::test]
async fn numbers_for_which_only_a_part_of_the_time_was_left_are_compared_by_the_next_invocation() {
    let world = World::new().await;
    world.add_large_items().await;
    world.system.clock.set(at("2027-01-12T01:40:00Z"));
    let ids = SimulatedClock::new(at("2027-01-12T01:40:00Z"), 9);
    let (start, step) = (at("2027-01-12T01:40:00Z"), TimeDelta::minutes(2));
    let clock = Arc::new(AdvancingClock { start, step, looks: AtomicI64::new(0), ids });
    let checks = world.checks(clock.clone());
    // Some of these invocations end during the scan that compares the stored numbers.
    let mut begun = 0;
    for minutes in (30..90).step_by(2) {
        let mut last = audit(&checks, clock.now() + TimeDelta::minutes(minutes)).await;
        begun += i32::from(!last.complete && last.orders == 12);
        while !last.complete {
            last = audit(&checks, clock.now() + TimeDelta::hours(2)).await;
        }
        assert_eq!((last.orders, last.violations), (12, 0), "{minutes} minutes: {last:?}");
    }
    assert!(begun > 5, "only {begun} audits had read all orders and not all numbers");
}

#[tokio::test]
async fn first_order_that_cannot_be_read_hides_no_missing_order() {
    let world = World::new().await;
    world.system.clock.set(at("2027-01-12T01:40:00Z"));
    let (unreadable, missing) = (world.make_first_order_unreadable().await, world.orders[1].to_string());
    world.delete(ORDERS, &format!("ORDER#{missing}"), "CUSTOMER#").await;
    let response = audit(&world.checks(world.system.clock.clone()), at("2027-01-12T01:55:00Z")).await;
    assert_eq!((response.complete, response.orders), (true, 10), "{response:?}");
    assert_eq!(
        world.violations(&response.audit).await,
        violations(&[("ordered", &missing), ("readable", &unreadable)])
    );
}

/// A clock whose time passes by a day after a number of looks at it.
#[derive(Debug)]
struct EndingClock {
    start: DateTime<Utc>,
    looks_left: AtomicI64,
    ids: SimulatedClock,
}

impl Clock for EndingClock {
    fn now(&self) -> DateTime<Utc> {
        let is_over = self.looks_left.fetch_sub(1, Ordering::Relaxed) <= 0;
        self.start + TimeDelta::days(i64::from(is_over))
    }

    fn ulid(&self) -> Ulid {
        self.ids.ulid()
    }

    fn random_secret(&self) -> [u8; 32] {
        self.ids.random_secret()
    }
}

#[tokio::test]
async fn numbers_are_not_compared_if_the_time_ends_during_any_of_their_scans() {
    let world = World::new().await;
    world.add_large_items().await;
    world.damage().await;
    let (table, start) = (&world.desk.table, at("2027-01-12T01:40:00Z"));
    let (mut scan, mut pages) = (table.scan_for_audit(), 0);
    while scan.next_page().await.unwrap().is_some() {
        pages += 1;
    }
    assert!(pages > 2, "{pages}");
    let mut unfinished = 0;
    let found = loop {
        let ids = SimulatedClock::new(start, 9);
        let clock = EndingClock { start, looks_left: AtomicI64::new(unfinished), ids };
        match check_stored_numbers(table, &clock, start + TimeDelta::hours(1)).await.unwrap() {
            Some(found) => break found,
            None => unfinished += 1,
        }
    };
    // The check looks at the clock after each page of both scans, and three more times between them.
    assert_eq!(unfinished, 2 * pages + 3);
    assert_eq!(found.iter().map(|broken| broken.key.as_str()).collect::<Vec<_>>(), ["beans in ams"]);
}

#[tokio::test]
async fn violations_of_numbers_are_recorded_once_if_the_end_of_the_audit_fails() {
    let world = World::new().await;
    let (table, clock) = (&world.desk.table, &world.system.clock);
    let wrong: Vec<String> = (0..40).map(|n| format!("product-{n}")).collect();
    for id in &wrong {
        let (id, name) = (id.parse().unwrap(), id.parse().unwrap());
        let product = Product { id, name, total_stock: 0, created_at: clock.now(), version: 1 };
        table.create_product(&product).await.unwrap();
        world.desk.receive(&product.id, &"ams".parse().unwrap(), 5, clock.ulid()).await.unwrap();
        world.delete(ORDERS, &format!("PRODUCT#{}", product.id), "MOVEMENT#").await;
    }
    clock.set(at("2027-01-12T01:40:00Z"));
    let deadline = at("2027-01-12T01:55:00Z");
    // Each request to the payments table fails after a number of them, until the audit ends.
    let mut failures: u64 = 0;
    let last = loop {
        let left = AtomicI64::new(i64::try_from(failures).unwrap());
        let faults = move |_: &Call<'_>| (left.fetch_sub(1, Ordering::Relaxed) <= 0).then_some(Fault::LostBefore);
        let deployment = world.system.with_wire(Arc::new(Wire::with_faults(faults).without_retries()));
        let (config, payments) = (deployment.config, deployment.table);
        let checks = Checks::new(payments, config.billing, config.charging, clock.clone()).with_orders(table.clone());
        match checks.handle(serde_json::json!({ "check": "table" }), deadline).await {
            Ok(Response::Table(response)) => break response,
            Ok(other) => panic!("{other:?}"),
            Err(_) => failures += 1,
        }
    };
    assert!(last.complete && failures > 40, "{failures}: {last:?}");
    let found: BTreeSet<String> = world.violations(&last.audit).await.into_iter().map(|(_, key)| key).collect();
    assert_eq!((last.violations, found.len()), (40, 40), "each violation is recorded once");
}
