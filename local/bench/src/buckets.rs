//! `bench buckets`: measures the time to read the open orders of all customers. The orders are read from the
//! write-sharded index with 1, 4 and 15 buckets (the parts over which the index entries of the orders are distributed),
//! and with a filtered scan. Each request has the latency of a real network.

use std::time::{Duration, Instant};

use aws_config::{BehaviorVersion, Region};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::Credentials;
use aws_sdk_dynamodb::types::AttributeValue;
use billing::SubscriptionId;
use chrono::{Days, NaiveDate};
use clap::Args;
use emulator::Engine;
use orders::{OrderId, OrderStatus, range_of_all_days};
use orders_table::{BucketCount, OrdersTable};
use serde_json::{Value, json};
use store::Paging;
use ulid::Ulid;

use crate::Failure;
use crate::engine::serve_engine_with_delay;

/// The name of the table that contains the orders.
const TABLE: &str = "dueday-orders";
/// The largest number of writes in one BatchWriteItem request.
const WRITES_PER_REQUEST: u32 = 25;

#[derive(Debug, Args)]
pub struct BucketsArgs {
    /// Number of orders in the table
    #[arg(long, default_value_t = 300_000)]
    pub orders: u32,
    /// Percentage of orders that are open
    #[arg(long, default_value_t = 20)]
    pub percent: u32,
    /// Numbers of buckets to measure
    #[arg(long, value_delimiter = ',', default_value = "1,4,15")]
    pub buckets: Vec<u32>,
    /// Latency of each request in milliseconds
    #[arg(long, default_value_t = 5)]
    pub engine_ms: u64,
    /// Number of measurements; the results are medians
    #[arg(long, default_value_t = 5)]
    pub rounds: u32,
}

/// Measures the index with each number of buckets, and then a scan of the last table. Prints a row for each
/// measurement.
pub async fn measure_reads_of_open_orders(args: &BucketsArgs) -> Result<(), Failure> {
    println!("{:>9}  {:>9}  {:>12}  {:>12}", "", "orders", "seconds", "range");
    for &count in &args.buckets {
        let buckets = BucketCount::new(count);
        let client = create_orders(args, buckets).await?;
        let table = OrdersTable::new(client.clone(), TABLE);
        let mut seconds = Vec::new();
        for _ in 0..args.rounds {
            let started = Instant::now();
            let found = table
                .orders_of_all_customers(&[OrderStatus::Open], range_of_all_days(), buckets, &Paging::all())
                .await?
                .items
                .len();
            seconds.push(started.elapsed().as_secs_f64());
            check_order_count(args, found)?;
        }
        print_row(args, &format!("{count} bucket{}", if count == 1 { "" } else { "s" }), &mut seconds);
        if Some(&count) == args.buckets.last() {
            let mut seconds = Vec::new();
            for _ in 0..args.rounds {
                let started = Instant::now();
                check_order_count(args, scan_open_orders(&client).await?)?;
                seconds.push(started.elapsed().as_secs_f64());
            }
            print_row(args, "scan", &mut seconds);
        }
    }
    Ok(())
}

/// Checks that `found` equals the number of all open orders in the table.
fn check_order_count(args: &BucketsArgs, found: usize) -> Result<(), Failure> {
    let open = usize::try_from(args.orders / 100 * args.percent)?;
    if found == open { Ok(()) } else { Err(format!("found {found} open orders instead of {open}").into()) }
}

/// Prints the median, the least and the largest of the measured times `seconds`.
fn print_row(args: &BucketsArgs, name: &str, seconds: &mut [f64]) {
    seconds.sort_by(f64::total_cmp);
    let (median, least, most) = (seconds[seconds.len() / 2], seconds[0], seconds[seconds.len() - 1]);
    println!("{name:>9}  {:>9}  {median:>12.2}  {:>12}", args.orders, format!("{least:.2}-{most:.2}"));
}

/// Counts the open orders with a filtered scan.
async fn scan_open_orders(client: &Client) -> Result<usize, Failure> {
    let scan = client
        .scan()
        .table_name(TABLE)
        .filter_expression("#Status = :open")
        .expression_attribute_names("#Status", "Status")
        .expression_attribute_values(":open", AttributeValue::S("OPEN".to_owned()));
    Ok(scan.into_paginator().items().send().collect::<Result<Vec<_>, _>>().await?.len())
}

/// Creates a table whose orders are distributed over `buckets`. Returns a client for this table. Each request of the
/// client has the configured latency.
async fn create_orders(args: &BucketsArgs, buckets: BucketCount) -> Result<Client, Failure> {
    let engine = Engine::in_memory();
    OrdersTable::new(engine.client(), TABLE).create_if_absent().await?;
    let first: NaiveDate = "2025-01-01".parse()?;
    for start in (0..args.orders).step_by(WRITES_PER_REQUEST as usize) {
        let orders = (start..args.orders.min(start + WRITES_PER_REQUEST)).map(|n| {
            let due_on = first + Days::new(u64::from(n % 700));
            let order = OrderId::of_month(due_on, SubscriptionId::new(Ulid::from_parts(1, n.into())));
            let status = if n % 100 < args.percent { "OPEN" } else { "DELIVERED" };
            order_item(order, status, n, buckets.bucket_of(order))
        });
        let puts: Vec<Value> = orders.map(|item| json!({ "PutRequest": { "Item": item } })).collect();
        engine.execute("BatchWriteItem", &json!({ "RequestItems": { TABLE: puts } }))?;
    }
    let address = serve_engine_with_delay(engine, Duration::from_millis(args.engine_ms)).await?;
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::from_static("local"))
        .credentials_provider(Credentials::new("local", "local", None, None, "local"))
        .endpoint_url(format!("http://{address}"))
        .build();
    Ok(Client::from_conf(config))
}

/// Returns the stored item of `order`. The number `n` determines its customer and its representative.
fn order_item(order: OrderId, status: &str, n: u32, bucket: u32) -> Value {
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
