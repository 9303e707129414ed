//! All open orders of all customers: the write-sharded index over 1, 4 and 15 buckets, and a scan that filters, with the latency
//! of the real world on each request.

use std::time::{Duration, Instant};

use aws_config::{BehaviorVersion, Region};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::Credentials;
use aws_sdk_dynamodb::types::AttributeValue;
use billing::SubscriptionId;
use chrono::{Days, NaiveDate};
use clap::Args;
use emulator::Engine;
use orders::{Buckets, OrderId, OrderStatus, OrdersTable, all_days};
use serde_json::{Value, json};
use store::Paging;
use ulid::Ulid;

use crate::Failure;
use crate::engine::held_back;

const TABLE: &str = "dueday-orders";
/// As many writes as a request may have.
const BATCH: u32 = 25;

#[derive(Debug, Args)]
pub struct BucketsArgs {
    #[arg(long, default_value_t = 300_000)]
    pub orders: u32,
    /// Of a hundred orders, so many are open
    #[arg(long, default_value_t = 20)]
    pub percent: u32,
    #[arg(long, value_delimiter = ',', default_value = "1,4,15")]
    pub buckets: Vec<u32>,
    /// Milliseconds of each request
    #[arg(long, default_value_t = 5)]
    pub engine_ms: u64,
    #[arg(long, default_value_t = 5)]
    pub rounds: u32,
}

pub async fn run(args: &BucketsArgs) -> Result<(), Failure> {
    println!("{:>9}  {:>9}  {:>12}  {:>12}", "", "orders", "seconds", "range");
    for &count in &args.buckets {
        let buckets = Buckets::new(count);
        let client = filled(args, buckets).await?;
        let table = OrdersTable::new(client.clone(), TABLE);
        let mut seconds = Vec::new();
        for _ in 0..args.rounds {
            let began = Instant::now();
            let found = table.orders_in(&[OrderStatus::Open], all_days(), buckets, &Paging::all()).await?.items.len();
            seconds.push(began.elapsed().as_secs_f64());
            expect(args, found)?;
        }
        tell(args, &format!("{count} bucket{}", if count == 1 { "" } else { "s" }), &mut seconds);
        if Some(&count) == args.buckets.last() {
            let mut seconds = Vec::new();
            for _ in 0..args.rounds {
                let began = Instant::now();
                expect(args, scanned(&client).await?)?;
                seconds.push(began.elapsed().as_secs_f64());
            }
            tell(args, "scan", &mut seconds);
        }
    }
    Ok(())
}

fn expect(args: &BucketsArgs, found: usize) -> Result<(), Failure> {
    let open = usize::try_from(args.orders / 100 * args.percent)?;
    if found == open { Ok(()) } else { Err(format!("{found} open orders were found, not {open}").into()) }
}

fn tell(args: &BucketsArgs, name: &str, seconds: &mut [f64]) {
    seconds.sort_by(f64::total_cmp);
    let (median, least, most) = (seconds[seconds.len() / 2], seconds[0], seconds[seconds.len() - 1]);
    println!("{name:>9}  {:>9}  {median:>12.2}  {:>12}", args.orders, format!("{least:.2}-{most:.2}"));
}

/// The open orders that a scan finds.
async fn scanned(client: &Client) -> Result<usize, Failure> {
    let scan = client
        .scan()
        .table_name(TABLE)
        .filter_expression("#Status = :open")
        .expression_attribute_names("#Status", "Status")
        .expression_attribute_values(":open", AttributeValue::S("OPEN".to_owned()));
    Ok(scan.into_paginator().items().send().collect::<Result<Vec<_>, _>>().await?.len())
}

/// A table of orders with their edges to a product, over `buckets`, and a client that reaches it slowly.
async fn filled(args: &BucketsArgs, buckets: Buckets) -> Result<Client, Failure> {
    let engine = Engine::memory();
    OrdersTable::new(engine.client(), TABLE).create_if_absent().await?;
    let first: NaiveDate = "2025-01-01".parse()?;
    for start in (0..args.orders).step_by(BATCH as usize) {
        let orders = (start..args.orders.min(start + BATCH)).map(|n| {
            let due_on = first + Days::new(u64::from(n % 700));
            let order = OrderId { due_on, subscription: SubscriptionId::new(Ulid::from_parts(1, n.into())) };
            let status = if n % 100 < args.percent { "OPEN" } else { "DELIVERED" };
            item(order, status, n, buckets.of(order))
        });
        let puts: Vec<Value> = orders.map(|item| json!({ "PutRequest": { "Item": item } })).collect();
        engine.ask("BatchWriteItem", &json!({ "RequestItems": { TABLE: puts } }))?;
    }
    let address = held_back(engine, Duration::from_millis(args.engine_ms)).await?;
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::from_static("local"))
        .credentials_provider(Credentials::new("local", "local", None, None, "local"))
        .endpoint_url(format!("http://{address}"))
        .build();
    Ok(Client::from_conf(config))
}

fn item(order: OrderId, status: &str, n: u32, bucket: u32) -> Value {
    let placed = format!("{}T06:00:00.000Z", order.due_on);
    json!({
        "PK": { "S": format!("ORDER#{order}") },
        "SK": { "S": format!("CUSTOMER#customer-{n}") },
        "Data": { "S": format!("{status}-{placed}") },
        "Bucket": { "N": bucket.to_string() },
        "Status": { "S": status },
        "Representative": { "S": format!("e-{}", n % 200) },
        "Warehouse": { "S": "wh-1" },
        "PaymentAmount": { "N": "1299" },
        "Currency": { "S": "EUR" },
        "PlacedDate": { "S": placed },
        "Version": { "N": "1" },
    })
}
