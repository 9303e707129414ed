//! The data of these tests: accounts that have paid, and their orders.

use std::collections::HashMap;
use std::sync::Arc;

use audit_function::{AuditResponse, TableAuditResponse, TableChecks};
use aws_sdk_dynamodb::types::AttributeValue;
use billing::{Account, Subscription, SubscriptionId};
use chrono::{DateTime, TimeDelta, Utc};
use clock::{Clock, SimulatedClock};
use deployment::{Deployment, InMemoryDeployment};
use orders::{Country, OrderId, OrderLine, PaidPeriod, Product, Region, ShippingAddress, Warehouse};
use orders_desk::OrderDesk;
use orders_table::{BucketCount, OrdersTable};
use store::Paging;
use sweep::BatchRequest;
use testkit::{RecordedMails, read_test_config, sample_account, sample_subscription};
use ulid::Ulid;

/// The number of accounts in the test. Each account has paid for one month.
const ACCOUNTS: u128 = 12;

/// The name of the table of the order desk.
pub const ORDERS: &str = "dueday-orders";

/// Returns the instant that `text` describes.
pub fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

/// Accounts that have paid, and their orders.
pub struct World {
    pub system: InMemoryDeployment,
    pub desk: OrderDesk,
    /// The orders, in the sequence of the accounts.
    pub orders: Vec<OrderId>,
}

impl World {
    /// Creates the accounts, charges each account for one month, and places the orders of these payments.
    pub async fn new() -> Self {
        let clock = SimulatedClock::new(at("2027-01-01T06:00:00Z"), 7);
        let settings = [("DUEDAY_SHARDS", "1"), ("DUEDAY_MERCHANT", "Shop")];
        let mails = Arc::new(RecordedMails::default());
        let system = InMemoryDeployment::new(read_test_config(&settings).unwrap(), clock, mails).await.unwrap();
        let deployment = system.deployment.clone();
        for number in 0..ACCOUNTS {
            let account: billing::AccountId = format!("account-{number:02}").parse().unwrap();
            let id = SubscriptionId::new(Ulid::from_parts(2, number));
            deployment.table.put_account(&Account { id: account.clone(), ..sample_account() }).await.unwrap();
            // The first account pays earlier than the other accounts.
            let (payment_day, created_on) = (if number == 0 { 8 } else { 10 }, "2026-12-11".parse().unwrap());
            let subscription = Subscription { account, id, ..sample_subscription(payment_day, created_on) };
            deployment.table.create_subscription(&subscription, None).await.unwrap();
        }
        let orders = OrdersTable::new(deployment.table.client().clone(), ORDERS);
        orders.create_if_absent().await.unwrap();
        let buckets = orders.get_or_store_buckets(BucketCount::default()).await.unwrap();
        let desk = OrderDesk::new(orders, buckets, system.clock.clone());
        let mut world = Self { system, desk, orders: Vec::new() };
        world.prepare_goods().await;
        let payments = deployment.payment_batch().await.unwrap();
        for due_on in ["2027-01-08", "2027-01-10"] {
            let now = at(&format!("{due_on}T06:00:00Z"));
            world.system.clock.set(now);
            let request = BatchRequest::for_date(due_on.parse().unwrap());
            payments.run(&request, now + TimeDelta::hours(1)).await.unwrap();
        }
        let mut partitions = deployment.table.account_partitions();
        while let Some(partition) = partitions.next().await.unwrap() {
            for receipt in &partition.receipts {
                let order = OrderId::of_month(receipt.due_on, receipt.subscription);
                let (account, sku) = (receipt.account.clone(), receipt.sku.clone());
                let (amount, paid_at) = (receipt.amount, receipt.processed_at);
                world.desk.place_order(&PaidPeriod { order, account, sku, amount, paid_at }).await.unwrap();
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
        self.desk.receive_stock(&product.id, &warehouse.id, 100, self.system.clock.ulid()).await.unwrap();
        let label = |text: &str| text.parse().unwrap();
        table.put_entity(&Region { id: warehouse.region.clone(), name: label("Europe") }).await.unwrap();
        let (id, region) = ("gb".parse().unwrap(), warehouse.region.clone());
        table.put_entity(&Country { id, name: label("Britain"), region }).await.unwrap();
        let address = ShippingAddress {
            name: "Acme".parse().unwrap(),
            street: "1 High Street".parse().unwrap(),
            line2: None,
            postal_code: "LS1".parse().unwrap(),
            city: "Leeds".parse().unwrap(),
            state: None,
            country: "gb".parse().unwrap(),
            region: "eu".parse().unwrap(),
            phone: None,
        };
        for number in 0..ACCOUNTS {
            let account = format!("account-{number:02}").parse().unwrap();
            self.desk.set_shipping_address(&account, address.clone()).await.unwrap();
        }
    }

    /// Adds a large item to each order, so that a scan reads the orders in several list pages: a failed refund with a
    /// long id.
    pub async fn add_large_items(&self) {
        for order in &self.orders {
            let number = |number: u8| AttributeValue::N(number.to_string());
            let id = AttributeValue::S("x".repeat(300_000));
            let refund = [("Id", id), ("Amount", number(1)), ("HasFailed", AttributeValue::Bool(true))];
            let refund = AttributeValue::M(refund.map(|(name, value)| (name.to_owned(), value)).into());
            let put = self.desk.table.client().put_item().table_name(ORDERS);
            let put = put.item("PK", AttributeValue::S(format!("ORDER#{order}")));
            let put = put.item("SK", AttributeValue::S("REFUNDS".to_owned())).item("Version", number(1));
            put.item("Refunds", AttributeValue::L(vec![refund])).send().await.unwrap();
        }
    }

    /// Deletes `order` and its relations, but not its stock movement. Returns the key of the movement, which is a violation
    /// of `related`, because its order does not exist.
    pub async fn delete_order(&self, order: OrderId) -> String {
        for sk in ["CUSTOMER#", "EMP#", "PRODUCT#", "WAREHOUSE#"] {
            self.delete(ORDERS, &format!("ORDER#{order}"), sk).await;
        }
        format!("ORDER#{order} MOVEMENT#000001")
    }

    /// Deletes the item of `table` with the partition key `pk` whose sort key begins with `sk`.
    pub async fn delete(&self, table: &str, pk: &str, sk: &str) {
        let client = self.desk.table.client();
        let query = client.query().table_name(table).key_condition_expression("PK = :pk AND begins_with(SK, :sk)");
        let query = query.expression_attribute_values(":pk", AttributeValue::S(pk.to_owned()));
        let items = query.expression_attribute_values(":sk", AttributeValue::S(sk.to_owned())).send().await.unwrap();
        let item = &items.items()[0];
        let key: HashMap<_, _> = ["PK", "SK"].map(|name| (name.to_owned(), item[name].clone())).into();
        client.delete_item().table_name(table).set_key(Some(key)).send().await.unwrap();
    }

    /// Removes all attributes except the key from this item of the order desk, so that the item cannot be read.
    pub async fn make_unreadable(&self, pk: &str, sk: &str) {
        let [pk, sk] = [pk, sk].map(|key| AttributeValue::S(key.to_owned()));
        let put = self.desk.table.client().put_item().table_name(ORDERS);
        put.item("PK", pk).item("SK", sk).send().await.unwrap();
    }

    /// Removes the amount from the first order. Returns the key of its item.
    pub async fn make_first_order_unreadable(&self) -> String {
        let (pk, sk) = (format!("ORDER#{}", self.orders[0]), "CUSTOMER#account-00");
        let update = self.desk.table.client().update_item().table_name(ORDERS).key("PK", AttributeValue::S(pk.clone()));
        let update = update.key("SK", AttributeValue::S(sk.to_owned())).update_expression("REMOVE PaymentAmount");
        update.send().await.unwrap();
        format!("{pk} {sk}")
    }

    /// Damages the stored data: deletes an order, the receipt of a second order, and a stock movement of a third order.
    pub async fn damage(&self) {
        self.delete_order(self.orders[1]).await;
        self.delete(ORDERS, &format!("ORDER#{}", self.orders[5]), "MOVEMENT#").await;
        let payments = self.system.deployment.table.name().to_owned();
        self.delete(&payments, "ACC#account-03", "REC#").await;
    }

    /// Returns the violations that the audit finds after [`World::damage`].
    pub fn damages(&self) -> Vec<(String, String)> {
        let (missing, unpaid) = (self.orders[1].to_string(), self.orders[3].to_string());
        let movement = format!("ORDER#{missing} MOVEMENT#000001");
        violations(&[("ordered", &missing), ("paid", &unpaid), ("related", &movement), ("stock", "beans in ams")])
    }

    /// Returns the checks of the audit function for both tables, with the time of `clock`.
    pub fn checks(&self, clock: Arc<dyn Clock>) -> TableChecks {
        let Deployment { table, .. } = self.system.deployment.clone();
        TableChecks::new(table, clock).with_orders(self.desk.table.clone())
    }

    /// Returns the violations of the audit `id`, sorted: the names of the invariants and the keys of the items.
    pub async fn violations(&self, id: &str) -> Vec<(String, String)> {
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

/// Returns `expected`, pairs of an invariant and the key of an item, in the form of [`World::violations`].
pub fn violations(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(invariant, key)| ((*invariant).to_owned(), (*key).to_owned())).collect()
}

/// Invokes the audit of the table until `deadline`, and returns the response.
pub async fn audit(checks: &TableChecks, deadline: DateTime<Utc>) -> TableAuditResponse {
    let response = checks.run_requested_check(serde_json::json!({ "check": "table" }), deadline).await.unwrap();
    let AuditResponse::Table(response) = response else { panic!("{response:?}") };
    response
}
