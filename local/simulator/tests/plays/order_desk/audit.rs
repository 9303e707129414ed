//! Tests of the audit of the orders table. The audit compares each stored number (a stock or a total) with the records
//! from which it can be computed. It must find each wrong number. While orders change, it must report no difference.

use std::collections::HashMap;
use std::sync::Arc;

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::TimeDelta;
use emulator::FaultInjector;
use futures::future::join_all;
use orders::OrderStatus;
use orders_table::{OrdersAudit, write_opening_movements};
use simulator::{Company, CompanySize};

use crate::order_desk::races::YieldBeforeEachCall;
use crate::order_desk::world::{World, fill_all, test_time};

/// The size of the sample company in these tests.
const COMPANY_SIZE: CompanySize = CompanySize { customers: 6, employees: 20, products: 3, warehouses: 3, months: 2 };

type Item = HashMap<String, AttributeValue>;

/// Returns a world with orders, among them open orders, one picked order and two cancelled orders.
async fn world_with_orders(seed: u64) -> World {
    let world = World::new(Company::new(COMPANY_SIZE, seed), 20).await;
    let desk = world.desk_without_faults();
    for paid in &world.company.paid {
        desk.place_order(paid).await.unwrap();
    }
    let contents = world.contents().await;
    let open = contents.orders.iter().filter(|(_, order)| order.status == "OPEN").map(|(id, _)| id);
    let open: Vec<orders::OrderId> = open.map(|id| id.strip_prefix("ORDER#").unwrap().parse().unwrap()).collect();
    for (id, next) in open.iter().zip([OrderStatus::Cancelled, OrderStatus::Picked, OrderStatus::Cancelled]) {
        desk.advance_order(*id, next).await.unwrap();
    }
    assert!(open.len() > 3, "{open:?}");
    fill_all(&desk).await;
    world
}

impl World {
    /// Returns all items of the table.
    async fn all_items(&self) -> Vec<Item> {
        let scan = self.engine.client().scan().table_name("dueday-orders").consistent_read(true);
        let items: Result<Vec<_>, _> = scan.into_paginator().items().send().collect().await;
        items.unwrap()
    }

    /// Returns the item whose `PK` begins with `pk` and whose `SK` begins with `sk`; the first in key order if there
    /// are several. Orders that are not open are left out.
    async fn first_item(&self, pk: &str, sk: &str) -> Item {
        let mut items = self.all_items().await;
        items.sort_by_key(|item| (item["PK"].as_s().unwrap().clone(), item["SK"].as_s().unwrap().clone()));
        let begins = |item: &Item, name: &str, prefix: &str| item[name].as_s().unwrap().starts_with(prefix);
        let is_open = |item: &Item| item.get("Status").is_none_or(|status| status.as_s().unwrap() == "OPEN");
        items.into_iter().find(|item| begins(item, "PK", pk) && begins(item, "SK", sk) && is_open(item)).unwrap()
    }

    /// Stores `item` without a condition, also if the item is wrong.
    async fn put_item(&self, item: Item) {
        self.engine.client().put_item().table_name("dueday-orders").set_item(Some(item)).send().await.unwrap();
    }

    /// Deletes the item that has the key of `item`.
    async fn delete_item(&self, item: &Item) {
        let key = ["PK", "SK"].map(|name| (name.to_owned(), item[name].clone()));
        let delete = self.engine.client().delete_item().table_name("dueday-orders").set_key(Some(key.into()));
        delete.send().await.unwrap();
    }

    /// Adds large items, which the audit does not compare: idempotency records with large responses. They make a scan
    /// of the table so long that the orders and the products are on different list pages.
    async fn add_large_items(&self) {
        let expires = (test_time() + TimeDelta::days(1)).timestamp();
        for number in 0..8 {
            let key = AttributeValue::S(format!("IDEM#{number}"));
            let record = [
                ("PK", key.clone()),
                ("SK", key),
                ("RequestHash", AttributeValue::S("hash".to_owned())),
                ("Answer", AttributeValue::S("x".repeat(300_000))),
                ("AnswerVersion", AttributeValue::N("1".to_owned())),
                ("TTL", AttributeValue::N(expires.to_string())),
            ];
            self.put_item(record.map(|(name, value)| (name.to_owned(), value)).into()).await;
        }
    }

    /// Makes the table like one from an earlier version of Dueday that recorded no stock movements: deletes the
    /// movements, and the attributes `IsOpened` and `Movements` of each stock.
    async fn remove_movements(&self) {
        for mut item in self.all_items().await {
            if item["SK"].as_s().unwrap().starts_with("MOVEMENT#") {
                self.delete_item(&item).await;
            } else if item.remove("IsOpened").is_some() {
                item.remove("Movements");
                self.put_item(item).await;
            }
        }
    }
}

/// Returns the number attribute `name` of `item`.
fn number_attribute(item: &Item, name: &str) -> i64 {
    item[name].as_n().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_damaged_number_and_each_lost_movement_is_found() {
    let world = world_with_orders(5).await;
    assert_eq!(world.audit().await, Vec::<String>::new());
    // The columns are: the start of the partition key and of the sort key of the damaged item; the damaged attribute.
    for (pk, sk, name) in [
        ("PRODUCT#", "WAREHOUSE#", "Stock"),
        ("PRODUCT#", "PRODUCT#", "TotalStock"),
        ("EMP#", "20", "Total"),
        ("PRODUCT#", "MOVEMENT#", "StockChange"),
    ] {
        let item = world.first_item(pk, sk).await;
        let mut damaged = item.clone();
        damaged.insert(name.to_owned(), AttributeValue::N((number_attribute(&item, name) + 1).to_string()));
        world.put_item(damaged).await;
        let found = world.audit().await;
        assert!(found.iter().any(|line| line.contains("expected")), "{pk} {sk}: {found:?}");
        world.put_item(item).await;
        assert_eq!(world.audit().await, Vec::<String>::new(), "{pk} {sk} repaired");
    }
    for (pk, sk) in [("PRODUCT#", "MOVEMENT#"), ("ORDER#", "MOVEMENT#"), ("ORDER#", "CUSTOMER#"), ("EMP#", "20")] {
        let item = world.first_item(pk, sk).await;
        world.delete_item(&item).await;
        let found = world.audit().await;
        assert!(found.iter().any(|line| line.contains("expected")), "{pk} {sk}: {found:?}");
        world.put_item(item).await;
    }
    // An item without a required attribute cannot be read. The audit must report this item.
    for (pk, sk, name) in [
        ("PRODUCT#", "WAREHOUSE#", "Stock"),
        ("PRODUCT#", "PRODUCT#", "TotalStock"),
        ("EMP#", "20", "Total"),
        ("PRODUCT#", "MOVEMENT#", "Warehouse"),
    ] {
        let item = world.first_item(pk, sk).await;
        let mut unreadable = item.clone();
        unreadable.remove(name);
        world.put_item(unreadable).await;
        let found = world.audit().await;
        assert!(found.iter().any(|line| line.contains("cannot be read")), "{pk} {sk}: {found:?}");
        world.put_item(item).await;
    }
    assert_eq!(world.audit().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_opening_movement_is_written_while_an_item_cannot_be_read() {
    let world = world_with_orders(5).await;
    world.remove_movements().await;
    let desk = world.desk_without_faults();
    let order = world.first_item("ORDER#", "CUSTOMER#").await;
    let mut unreadable = order.clone();
    unreadable.remove("Status");
    for (item, expected) in [(unreadable, 0), (order, 9)] {
        world.put_item(item).await;
        let mut audit = OrdersAudit::begin(&desk.table);
        while audit.next_orders().await.unwrap().is_some() {}
        let report = audit.finish(|| ()).await.unwrap();
        assert_eq!(
            write_opening_movements(&desk.table, desk.clock(), &report.unopened, || ()).await.unwrap(),
            expected
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn verification_of_a_difference_ends_as_soon_as_there_is_no_time() {
    let world = world_with_orders(5).await;
    let mut stock = world.first_item("PRODUCT#", "WAREHOUSE#").await;
    let less = (number_attribute(&stock, "Stock") - 1).to_string();
    stock.insert("Stock".to_owned(), AttributeValue::N(less));
    world.put_item(stock).await;
    world.add_large_items().await;
    let table = world.desk_without_faults().table;
    let (mut scan, mut pages) = (table.scan_for_audit(), 0);
    while scan.next_page().await.unwrap().is_some() {
        pages += 1;
    }
    assert!(pages > 1, "{pages}");
    for (time, is_finished) in [(0, false), (pages - 1, false), (pages, true)] {
        let mut audit = OrdersAudit::begin(&table);
        while audit.next_orders().await.unwrap().is_some() {}
        let mut read = 0;
        let is_in_time = || {
            read += 1;
            read <= time
        };
        let report = audit.finish_in_time(is_in_time).await.unwrap();
        assert_eq!(report.is_some(), is_finished, "time for {time} pages");
        assert_eq!(report.map_or(2, |report| report.differences.len()), 2, "the stock, and the total stock");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stock_of_an_earlier_version_gets_its_opening_movements_once() {
    let world = world_with_orders(5).await;
    world.remove_movements().await;
    let is_unopened = |lines: &[String]| lines.iter().all(|line| line.ends_with("no opening movement"));
    let unopened = world.audit().await;
    assert!(unopened.len() == 9 && is_unopened(&unopened), "no false difference: {unopened:?}");

    // Cancels an order, which changes the stock, before the opening movements are written. (An opening movement records
    // the pieces in stock that no other movement explains.)
    let desk = world.desk_without_faults();
    let contents = world.contents().await;
    let open = contents.orders.iter().find(|(_, order)| order.status == "OPEN").unwrap().0;
    desk.advance_order(open.strip_prefix("ORDER#").unwrap().parse().unwrap(), OrderStatus::Cancelled).await.unwrap();
    assert!(is_unopened(&world.audit().await));
    for opened in [9, 0] {
        let mut audit = OrdersAudit::begin(&desk.table);
        while audit.next_orders().await.unwrap().is_some() {}
        let report = audit.finish(|| ()).await.unwrap();
        assert_eq!(write_opening_movements(&desk.table, desk.clock(), &report.unopened, || ()).await.unwrap(), opened);
        assert_eq!(world.audit().await, Vec::<String>::new());
    }
    // The opening movements are written, so the audit now finds a wrong stock.
    let mut stock = world.first_item("PRODUCT#", "WAREHOUSE#").await;
    let less = (number_attribute(&stock, "Stock") - 1).to_string();
    stock.insert("Stock".to_owned(), AttributeValue::N(less));
    world.put_item(stock).await;
    assert_eq!(world.audit().await.len(), 2, "the stock, and the total stock");
}

#[tokio::test(flavor = "multi_thread")]
async fn audit_while_orders_change_reports_no_difference() {
    for seed in 1..=3 {
        let injector = Arc::new(FaultInjector::new(Arc::new(YieldBeforeEachCall)));
        let world = World::with_injector(Company::new(COMPANY_SIZE, seed), 30, injector).await;
        world.add_large_items().await;
        let desk = &world.desk;
        let placing = join_all(world.company.paid.iter().map(|paid| async move {
            while let Err(error) = desk.place_order(paid).await {
                assert!(error.is_transient(), "{error}");
            }
            let Some((order, _)) = desk.table.get_order(paid.order).await.unwrap() else { return };
            if order.status == OrderStatus::Open {
                desk.advance_order(order.id, OrderStatus::Cancelled).await.unwrap();
            }
        }));
        let auditing = async {
            for _ in 0..10 {
                let mut audit = OrdersAudit::begin(&desk.table).with_items_checked(test_time());
                while audit.next_orders().await.unwrap().is_some() {}
                let report = audit.finish(|| ()).await.unwrap();
                assert_eq!((report.differences, report.unopened), (vec![], vec![]), "seed {seed}");
                assert_eq!(report.faulty, [], "seed {seed}");
            }
        };
        futures::join!(placing, auditing);
        assert_eq!(world.audit().await, Vec::<String>::new(), "seed {seed}");
    }
}
