//! Tests of the comparison of the orders with the receipts of the payments. The comparison finds each missing order and
//! each missing receipt, even if an order is placed between the scan of the orders table and the scan of the payments
//! table.

use std::sync::Arc;

use audit::{OrderSummary, compare_orders_with_receipts};
use aws_sdk_dynamodb::types::AttributeValue;
use billing::{Account, Money, Receipt};
use chrono::{DateTime, Utc};
use dynamo::{Entity as _, TIME_TO_LIVE, expiry_timestamp};
use emulator::EngineConnection;
use orders::{OrderStatus, PaidPeriod};
use orders_desk::ReplacementRequest;
use orders_table::OrdersAudit;
use simulator::{Company, CompanySize};
use store::Table;
use testkit::sample_account;

use crate::order_desk::world::World;

/// The size of the sample company in these tests.
const COMPANY_SIZE: CompanySize = CompanySize { customers: 8, employees: 20, products: 3, warehouses: 3, months: 2 };

/// The name of the payments table.
const PAYMENTS_TABLE: &str = "dueday";

/// Returns the time at which the tests compare orders and receipts: some weeks after the latest payment.
pub fn audit_time() -> DateTime<Utc> {
    "2025-03-15T12:00:00Z".parse().unwrap()
}

/// An orders table, and a payments table with the receipts of all payments for SKUs with products.
pub struct PaidWorld {
    pub world: World,
    /// The payments table.
    pub payments: Table,
    /// The payments for SKUs with products. An order is expected for each of them.
    pub paid: Vec<PaidPeriod>,
}

/// Returns the receipt of the payment `paid`.
fn receipt_of(paid: &PaidPeriod) -> Receipt {
    Receipt {
        account: paid.account.clone(),
        subscription: paid.order.subscription,
        sku: paid.sku.clone(),
        product_name: "Coffee".parse().unwrap(),
        email: None,
        due_on: paid.order.due_on,
        amount: paid.amount,
        payment: format!("pay_{}", paid.order.subscription).parse().unwrap(),
        customer: None,
        card: None,
        processed_at: paid.paid_at,
        refunded: Money::new(0, paid.amount.currency()),
        refunded_at: None,
        reversal: None,
    }
}

impl PaidWorld {
    /// Creates both tables with the receipts of all payments, but without orders.
    pub async fn new() -> Self {
        let mut company = Company::new(COMPANY_SIZE, 5);
        company.paid.retain(|paid| company.skus.iter().any(|(sku, lines)| *sku == paid.sku && !lines.is_empty()));
        let paid = company.paid.clone();
        let world = World::new(company, 50).await;
        let client = world.engine.client_with_connection(Arc::new(EngineConnection::without_tokens()));
        let payments = Table::new(client, PAYMENTS_TABLE);
        payments.create_if_absent().await.unwrap();
        let world = Self { world, payments, paid };
        for paid in &world.paid {
            world.payments.put_account(&Account { id: paid.account.clone(), ..sample_account() }).await.unwrap();
            world.put_receipt(paid).await;
        }
        assert!(world.paid.len() > 5, "{}", world.paid.len());
        world
    }

    /// Stores the receipt of the payment `paid`.
    pub async fn put_receipt(&self, paid: &PaidPeriod) {
        let mut item = receipt_of(paid).to_item();
        let expires = expiry_timestamp(paid.paid_at, self.payments.receipt_retention());
        item.insert(TIME_TO_LIVE.to_owned(), AttributeValue::N(expires.to_string()));
        self.payments.client().put_item().table_name(PAYMENTS_TABLE).set_item(Some(item)).send().await.unwrap();
    }

    /// Deletes the receipt of the payment `paid`.
    pub async fn delete_receipt(&self, paid: &PaidPeriod) {
        let key = receipt_of(paid).key().attributes();
        self.payments.client().delete_item().table_name(PAYMENTS_TABLE).set_key(Some(key)).send().await.unwrap();
    }

    /// Places the orders of the payments `paid`.
    pub async fn place(&self, paid: &[PaidPeriod]) {
        let desk = self.world.desk_without_faults();
        for paid in paid {
            desk.place_order(paid).await.unwrap();
        }
    }

    /// Scans the orders table as the command `dueday orders audit` does. Returns the summary of the orders.
    async fn scan_orders(&self) -> OrderSummary {
        let mut audit = OrdersAudit::begin(&self.world.desk_without_faults().table);
        let mut recent = OrderSummary::new(audit_time(), self.payments.receipt_retention());
        while let Some(orders) = audit.next_orders().await.unwrap() {
            orders.iter().for_each(|order| recent.add(order));
        }
        recent
    }

    /// Compares the orders with the receipts. `recent` is the summary of an earlier scan of the orders. Returns each
    /// difference: the name of the check, and the id of the order.
    async fn compare(&self, recent: &OrderSummary) -> Vec<(String, String)> {
        let orders = self.world.desk_without_faults().table;
        let all = DateTime::<Utc>::MIN_UTC..audit_time();
        let compared = compare_orders_with_receipts(&self.payments, &orders, recent, audit_time(), all, |_| ()).await;
        let mut differences = compared.unwrap().differences;
        differences.sort();
        differences.into_iter().map(|difference| (difference.check.to_string(), difference.item)).collect()
    }
}

/// Returns a difference that the check `check` reports about the order of the payment `paid`.
fn expected_difference(check: &str, paid: &PaidPeriod) -> (String, String) {
    (check.to_owned(), paid.order.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn order_that_is_placed_between_the_scans_hides_no_order_without_a_receipt() {
    let world = PaidWorld::new().await;
    let (last, earlier) = world.paid.split_last().unwrap();
    world.place(earlier).await;
    // Deletes the third receipt. The deletion of the first receipt would not be found: orders before the oldest receipt
    // are not compared, because their receipts may have expired.
    let without_receipt = &earlier[2];
    world.delete_receipt(without_receipt).await;

    let recent = world.scan_orders().await;
    // A comparison of only the counts would find nothing: the scan of the orders has read the order without a receipt
    // but not the new order, and the scan of the receipts will read the receipt of the new order, so both counts are
    // equal.
    world.place(std::slice::from_ref(last)).await;
    assert_eq!(world.compare(&recent).await, [expected_difference("paid", without_receipt)]);

    world.put_receipt(without_receipt).await;
    assert_eq!(world.compare(&recent).await, [], "the new order alone is no difference");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_missing_order_and_each_missing_receipt_is_found() {
    let world = PaidWorld::new().await;
    let (missing, placed) = world.paid.split_last().unwrap();
    world.place(placed).await;
    assert_eq!(world.compare(&world.scan_orders().await).await, [expected_difference("ordered", missing)]);
    world.delete_receipt(&placed[1]).await;
    world.delete_receipt(&placed[3]).await;
    let mut expected = [
        expected_difference("paid", &placed[1]),
        expected_difference("paid", &placed[3]),
        expected_difference("ordered", missing),
    ];
    expected[..2].sort();
    assert_eq!(world.compare(&world.scan_orders().await).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn follow_up_order_needs_no_receipt_but_a_main_order() {
    let world = PaidWorld::new().await;
    world.place(&world.paid).await;
    let (desk, month) = (world.world.desk_without_faults(), &world.paid[2]);
    for next in [OrderStatus::Picked, OrderStatus::Shipped] {
        desk.advance_order(month.order, next).await.unwrap();
    }
    let replacement = ReplacementRequest { lines: None, reason: "lost".parse().unwrap() };
    desk.create_replacement(month.order, &replacement, None, |_| String::new()).await.unwrap();
    assert_eq!(world.compare(&world.scan_orders().await).await, []);

    let key = |name: &str| AttributeValue::S(name.to_owned());
    let (order, customer) = (format!("ORDER#{}", month.order), format!("CUSTOMER#{}", month.account));
    let delete = desk.table.client().delete_item().table_name("dueday-orders");
    delete.key("PK", key(&order)).key("SK", key(&customer)).send().await.unwrap();
    let follow_up = ("paid".to_owned(), format!("{}.2", month.order));
    assert!(world.compare(&world.scan_orders().await).await.contains(&follow_up));
}
