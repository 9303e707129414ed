//! A world with at least one item of each kind of the orders table.

use std::sync::Arc;

use audit::{Invariant, NightlyAudit, OrderDifference, OrderSummary, compare_orders_with_receipts};
use aws_sdk_dynamodb::types::AttributeValue;
use billing::{AccountId, Money, Receipt, Subscription};
use chrono::{DateTime, TimeDelta, Utc};
use clock::Clock as _;
use orders::{
    Assignment, ConfidentialData, Country, Department, Employee, FillPass, FillTarget, Job, Location, MovementRequest,
    Order, OrderId, OrderLine, OrderStatus, OrderStep, PaidPeriod, Parcel, Product, ProductId, RefundEvent, Region,
    ShippingAddress, WaitingOrder, Warehouse, WarehouseId, range_of_all_days,
};
use orders_desk::{DeskError, OrderDesk};
use orders_table::{BucketCount, OrdersAudit, OrdersTable};
use store::{IdempotentRequest, Item, Paging, StoredResponse, key_of_item};
use strum::IntoEnumIterator as _;
use ulid::Ulid;

use crate::world::{World, billing_time, date, subscription_of_acme};

/// The name of the orders table.
pub const ORDERS: &str = "dueday-orders";

/// A payments table with an account that has paid four months, and the order desk with the orders of these months.
pub struct DeskWorld {
    pub world: World,
    pub desk: OrderDesk,
}

/// Returns the time of the audits.
pub fn audit_time() -> DateTime<Utc> {
    billing_time("2026-05-11")
}

/// Returns `text` as an id, a label or another type.
fn parse<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    text.parse().unwrap()
}

/// Returns a line with `quantity` pieces of `product`.
fn line(product: &str, quantity: u32) -> OrderLine {
    OrderLine { product: parse(product), quantity }
}

impl DeskWorld {
    /// Creates the world, with the company, the goods and the orders.
    pub async fn new() -> Self {
        let world = World::with_one_shard().await;
        let subscription = Subscription { shard: 0, ..subscription_of_acme(10, "2026-01-11") };
        world.store(&subscription).await;
        for day in ["2026-02-10", "2026-03-10", "2026-04-10", "2026-05-10"] {
            world.run_payments(day).await;
        }
        world.clock.set(audit_time());
        let table = OrdersTable::new(world.table.client().clone(), ORDERS);
        table.create_if_absent().await.unwrap();
        let buckets = table.get_or_store_buckets(BucketCount::default()).await.unwrap();
        let desk = OrderDesk::new(table, buckets, world.clock.clone() as Arc<_>);
        let new = Self { world, desk };
        new.store_company().await;
        new.store_goods().await;
        new.store_orders(&subscription.account).await;
        new
    }

    /// Stores the company and its employees: one with another assignment, and one who left.
    async fn store_company(&self) {
        let table = &self.desk.table;
        table.set_ordered_from(billing_time("2026-01-01")).await.unwrap();
        table.put_entity(&Region { id: parse("eu"), name: parse("Europe") }).await.unwrap();
        table.put_entity(&Country { id: parse("gb"), name: parse("Britain"), region: parse("eu") }).await.unwrap();
        let location = Location { id: parse("hq"), address: parse("1 High Street"), country_name: parse("Britain") };
        table.put_entity(&location).await.unwrap();
        table
            .put_entity(&Job { id: parse("am"), title: parse("Account Manager"), represents_customers: true })
            .await
            .unwrap();
        let department = Department { id: parse("sales"), name: parse("Sales"), location: parse("hq") };
        table.put_entity(&department).await.unwrap();
        for (id, name) in [("ams", "Amsterdam"), ("cork", "Cork")] {
            let warehouse = Warehouse { id: parse(id), name: parse(name), region: parse("eu"), version: 1 };
            table.create_warehouse(&warehouse).await.unwrap();
        }
        let assignment = Assignment {
            job: parse("am"),
            job_title: parse("Account Manager"),
            represents_customers: true,
            department: parse("sales"),
            warehouse: Some(parse("ams")),
        };
        let currency = parse("EUR");
        for id in ["ada", "bob"] {
            let employee = Employee {
                id: parse(id),
                name: parse("Ada Example"),
                assignment: None,
                left_on: None,
                created_at: audit_time(),
                version: 1,
            };
            let (hired_on, salary) = (date("2026-01-05"), Money::new(5_000_000, currency));
            let confidential = ConfidentialData { employee: employee.id.clone(), hired_on, salary };
            self.desk.hire_employee(&employee, &assignment, &confidential).await.unwrap();
        }
        let later = Assignment { warehouse: Some(parse("cork")), ..assignment };
        self.desk.assign_employee::<DeskError>(&parse("ada"), &later, |_| Ok(())).await.unwrap();
        self.desk.end_employment::<DeskError>(&parse("bob"), date("2026-05-01"), |_| Ok(())).await.unwrap();
    }

    /// Stores two products, their stock and its movements, the products of a SKU, and the report of another SKU.
    async fn store_goods(&self) {
        let (table, clock) = (&self.desk.table, &self.world.clock);
        let (ams, cork): (WarehouseId, WarehouseId) = (parse("ams"), parse("cork"));
        for id in ["beans", "cups"] {
            let (id, name): (ProductId, _) = (parse(id), parse(id));
            let product = Product { id: id.clone(), name, total_stock: 0, created_at: clock.now(), version: 1 };
            table.create_product(&product).await.unwrap();
            self.desk.receive_stock(&id, &ams, 100, clock.ulid()).await.unwrap();
            let reason = parse("yearly count");
            for request in [
                MovementRequest::Count { warehouse: ams.clone(), found: 98, reason },
                MovementRequest::WriteOff { warehouse: ams.clone(), quantity: 1, reason: parse("wet") },
                MovementRequest::Transfer { from: ams.clone(), to: cork.clone(), quantity: 10, reason: None },
            ] {
                self.desk.move_stock(&id, clock.ulid(), &request).await.unwrap();
            }
        }
        let earlier = [("PK", "PRODUCT#beans"), ("SK", "ARRIVAL#01JZXCVBNM0123456789ABCDEF"), ("Warehouse", "ams")];
        let mut record: Item = earlier.map(|(name, text)| (name.to_owned(), AttributeValue::S(text.to_owned()))).into();
        record.insert("Stock".to_owned(), AttributeValue::N("3".to_owned()));
        self.put(record).await;
        table.set_lines_of_sku(&parse("gold"), &[line("beans", 2), line("cups", 1)]).await.unwrap();
        table.mark_without_products_reported(&parse("silver")).await.unwrap();
    }

    /// Places the orders of the paid months: one is shipped and partly refunded, one is split, one was returned, and one
    /// waits for stock.
    async fn store_orders(&self, account: &AccountId) {
        let table = &self.desk.table;
        let (country, region) = (parse("gb"), parse("eu"));
        let (name, street, postal_code, city) = (parse("Acme"), parse("1 High Street"), parse("LS1"), parse("Leeds"));
        let (line2, state, phone) = (Some(parse("Flat 2")), Some(parse("Yorkshire")), Some(parse("+44 113 496 0000")));
        let address = ShippingAddress { name, street, line2, postal_code, city, state, country, region, phone };
        self.desk.set_shipping_address(account, address).await.unwrap();
        let now = audit_time();
        let receipts = self.world.table.get_receipts_by_account(account, &Paging::all(), now).await.unwrap().items;
        let mut receipts: Vec<Receipt> = receipts;
        receipts.sort_by_key(|receipt| receipt.due_on);
        let [shipped, split, returned, waiting] = &receipts[..] else { panic!("{receipts:?}") };
        for receipt in [shipped, split, returned] {
            self.place(receipt).await;
        }
        for status in [OrderStatus::Picked, OrderStatus::Shipped, OrderStatus::Returned] {
            let parcel = Parcel { carrier: Some(parse("Post")), tracking_number: Some(parse("T1")) };
            let step = OrderStep { next: status, parcel, is_unsellable: true };
            for receipt in [shipped, returned] {
                if status != OrderStatus::Returned || receipt.due_on == returned.due_on {
                    self.desk.advance_order(order_id(receipt), step.clone()).await.unwrap();
                }
            }
        }
        let amount = Money::new(300, shipped.amount.currency());
        let (order, refund) = (order_id(shipped), "refund-1".to_owned());
        let refund = RefundEvent { order, account: account.clone(), refund, amount, has_failed: false };
        self.desk.record_refund(&refund).await.unwrap();
        let keep = [line("beans", 1)];
        let to_json = |_: &orders_desk::CreatedFollowUp| String::new();
        self.desk.split_order::<DeskError>(order_id(split), Some(&keep), None, to_json, |_| Ok(())).await.unwrap();
        table.set_lines_of_sku(&parse("gold"), &[line("beans", 500), line("cups", 1)]).await.unwrap();
        let waiting = self.place(waiting).await;
        self.store_fill_pass(&waiting).await;
        let request = IdempotentRequest {
            made_at: now,
            key_hash: "hash-1".to_owned(),
            request_hash: "hash-2".to_owned(),
            response: StoredResponse { json: "{}".to_owned(), version: 1 },
            expires_at: now + TimeDelta::days(2),
        };
        table.save_response(&waiting, &request).await.unwrap();
    }

    /// Places the order of the payment with `receipt`, and returns it.
    async fn place(&self, receipt: &Receipt) -> Order {
        let paid = PaidPeriod {
            order: order_id(receipt),
            account: receipt.account.clone(),
            sku: receipt.sku.clone(),
            amount: receipt.amount,
            paid_at: receipt.processed_at,
        };
        self.desk.place_order(&paid).await.unwrap();
        self.desk.table.get_order(paid.order).await.unwrap().unwrap().0
    }

    /// Stores a fill task with further products, and with a pass that has tried `order`.
    async fn store_fill_pass(&self, order: &Order) {
        let (table, target) = (&self.desk.table, FillTarget::Product(parse("beans")));
        let change = Ulid::from_parts(1, 1);
        table.request_fill(&target, change).await.unwrap();
        table.request_fill(&FillTarget::Customer(order.customer.clone()), change).await.unwrap();
        let after = Some(WaitingOrder { order: order.id, placed_at: order.placed_at });
        let pass = FillPass { change, started_at: audit_time(), after, out_of_stock: vec![parse("beans")] };
        assert!(table.save_fill_pass(&target, &pass).await.unwrap());
        let is_task = |item: &Item| key_of_item(item).to_string() == "FILLS PRODUCT#beans";
        let mut task = self.items().await.into_iter().find(is_task).unwrap();
        task.insert("Further".to_owned(), AttributeValue::L(vec![AttributeValue::S("cups".to_owned())]));
        self.put(task).await;
    }

    /// Returns all items of the orders table.
    pub async fn items(&self) -> Vec<Item> {
        self.desk.table.client().scan().table_name(ORDERS).send().await.unwrap().items.unwrap_or_default()
    }

    /// Returns all orders.
    pub async fn orders(&self) -> Vec<Order> {
        let statuses: Vec<OrderStatus> = OrderStatus::iter().collect();
        let buckets = self.desk.buckets();
        self.desk
            .table
            .orders_of_all_customers(&statuses, range_of_all_days(), buckets, &Paging::all())
            .await
            .unwrap()
            .into_items()
            .unwrap()
    }

    /// Stores `item` in the orders table.
    pub async fn put(&self, item: Item) {
        assert!(self.put_if_accepted(item).await);
    }

    /// Stores `item` in the orders table. Returns false if the table refuses it, because the key of an index has another
    /// type.
    pub async fn put_if_accepted(&self, item: Item) -> bool {
        let put = self.desk.table.client().put_item().table_name(ORDERS).set_item(Some(item)).send().await;
        put.map_err(|error| assert!(format!("{error:?}").contains("Type mismatch for Index Key"), "{error:?}")).is_ok()
    }

    /// Deletes `item` from the orders table.
    pub async fn delete(&self, item: &Item) {
        let key = ["PK", "SK"].map(|name| (name.to_owned(), item[name].clone()));
        let delete = self.desk.table.client().delete_item().table_name(ORDERS);
        delete.set_key(Some(key.into())).send().await.unwrap();
    }

    /// Audits both tables as the nightly audit does. Returns the violations of the orders table: the names of the
    /// invariants and the keys of the items.
    pub async fn audit_at_night(&self) -> Vec<(String, String)> {
        let (table, clock) = (self.world.table.clone(), self.world.clock.clone());
        let nightly = NightlyAudit { table, orders: Some(self.desk.table.clone()), clock };
        let settings = self.world.table.get_settings().await.unwrap().unwrap();
        let deadline = audit_time() + TimeDelta::minutes(15);
        let audit = nightly.audit_next_part(&settings, deadline).await.unwrap();
        assert!(audit.ended_at.is_some(), "{audit:?}");
        let violations = self.world.table.get_audit_violations(&audit, &Paging::all()).await.unwrap().items;
        violations.into_iter().map(|violation| (violation.invariant, violation.key)).collect()
    }

    /// Audits the orders table as the command `dueday orders audit` does. Returns the differences.
    pub async fn audit(&self) -> Vec<OrderDifference> {
        let (now, table) = (audit_time(), &self.desk.table);
        let mut recent = OrderSummary::new(now, self.world.table.receipt_retention());
        let mut audit = OrdersAudit::begin(table).with_items_checked(now);
        while let Some(orders) = audit.next_orders().await.unwrap() {
            orders.iter().for_each(|order| recent.add(order));
        }
        let report = audit.finish(|| ()).await.unwrap();
        let mut found: Vec<OrderDifference> = report.faulty.iter().map(OrderDifference::from).collect();
        found.extend(report.differences.iter().map(OrderDifference::from));
        found.extend(report.unopened.iter().map(|number| OrderDifference {
            check: Invariant::Compared,
            item: number.to_string(),
            expected: "an opening movement".to_owned(),
            found: "none".to_owned(),
        }));
        let ordered = DateTime::<Utc>::MIN_UTC..now;
        let payments = &self.world.table;
        let paid = compare_orders_with_receipts(payments, table, &recent, now, ordered, |_| ()).await.unwrap();
        found.extend(paid.differences);
        assert!(report.unverified.is_empty(), "{report:?}");
        found.sort();
        found.dedup();
        found
    }
}

/// Returns the id of the order of the payment with `receipt`.
fn order_id(receipt: &Receipt) -> OrderId {
    OrderId::of_month(receipt.due_on, receipt.subscription)
}
