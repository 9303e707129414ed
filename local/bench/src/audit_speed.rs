//! `bench audit`: measures the audit of a large table beside a plain scan of the same table.

use std::time::{Duration, Instant};

use audit::InvariantChecker;
use aws_sdk_dynamodb::types::{AttributeValue, PutRequest, WriteRequest};
use billing::{LeadDays, Subscription};
use chrono::{Days, NaiveDate, Utc};
use clap::Args;
use dynamo::Entity as _;
use emulator::{Engine, EngineConnection};
use futures::StreamExt as _;
use store::{Settings, Table};

use crate::Failure;
use crate::engine::{SHARDS, TABLE, create_due_subscription, create_numbered_ulid};

/// The number of accounts that are written with one BatchWriteItem request, each with its subscription.
const ACCOUNTS_PER_REQUEST: u32 = 12;

/// The number of write requests that are in progress at the same time while the table is filled.
const REQUESTS_AT_ONCE: usize = 4;

/// While the table is filled, the progress is printed each time this number of further accounts is written.
const REPORT_EVERY: u32 = 100_000;

/// The arguments of `bench audit`.
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// Number of subscriptions; each subscription has its own account
    #[arg(long, default_value_t = 1_000_000)]
    pub subscriptions: u32,
    /// Number of measurements; the result is the ratio of the medians
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
}

/// Creates the table in memory. In each round, measures a scan and then an audit. Prints the ratio of the median times.
pub async fn measure_audit_speed(args: &AuditArgs) -> Result<(), Failure> {
    let client = Engine::in_memory().client_with_connection(std::sync::Arc::new(EngineConnection::without_tokens()));
    let table = Table::new(client, TABLE);
    create_items(&table, args.subscriptions).await?;
    let (mut scans, mut audits) = (Vec::new(), Vec::new());
    for round in 1..=args.rounds.max(1) {
        scans.push(measure_scan(&table, args.subscriptions).await?);
        audits.push(measure_audit(&table, args.subscriptions).await?);
        println!("round {round}: {:.1?} scan, {:.1?} audit", scans[round - 1], audits[round - 1]);
    }
    let (scan, audit) = (median_duration(&mut scans), median_duration(&mut audits));
    println!("{} subscriptions: {scan:.1?} scan, {audit:.1?} audit", args.subscriptions);
    println!("ratio: {:.2}", audit.as_secs_f64() / scan.as_secs_f64());
    Ok(())
}

/// Writes `count` accounts, each with one subscription. The first payment of each subscription is due tomorrow, and its
/// reminder was already sent.
async fn create_items(table: &Table, count: u32) -> Result<(), Failure> {
    table.create_if_absent().await?;
    let settings = Settings::new(SHARDS, create_numbered_ulid(0));
    table.init_settings(&settings).await?;
    let tomorrow = Utc::now().date_naive() + Days::new(1);
    let starts = futures::stream::iter((0..count).step_by(ACCOUNTS_PER_REQUEST as usize));
    let mut written =
        starts.map(|start| write_accounts(table, start, count, tomorrow, &settings)).buffer_unordered(REQUESTS_AT_ONCE);
    let (mut done, mut next_report) = (0, REPORT_EVERY);
    while let Some(accounts) = written.next().await {
        done += accounts?;
        if done >= next_report {
            eprintln!("{done} of {count} accounts are written");
            next_report += REPORT_EVERY;
        }
    }
    Ok(())
}

/// Writes accounts with one request, at most `ACCOUNTS_PER_REQUEST`. The accounts have the numbers from `start` up to
/// but not including `end`. Returns the number of written accounts.
async fn write_accounts(
    table: &Table,
    start: u32,
    end: u32,
    due_on: NaiveDate,
    settings: &Settings,
) -> Result<u32, Failure> {
    let numbers = start..end.min(start + ACCOUNTS_PER_REQUEST);
    let mut writes = Vec::new();
    for n in numbers.clone() {
        let (account, subscription) = create_due_subscription(n, due_on, settings);
        let reminded_for = Some(subscription.due_on);
        let subscription = Subscription { reminded_for, ..subscription };
        for item in [account.to_item(), subscription.to_item()] {
            let put = PutRequest::builder().set_item(Some(item)).build()?;
            writes.push(WriteRequest::builder().put_request(put).build());
        }
    }
    table.client().batch_write_item().request_items(table.name(), writes).send().await?;
    Ok(numbers.end - numbers.start)
}

/// Reads all items page by page, and counts the subscriptions by their sort keys. Returns the duration. Fails if the
/// number of subscriptions is not `expected`.
async fn measure_scan(table: &Table, expected: u32) -> Result<Duration, Failure> {
    let started = Instant::now();
    let mut pages = table.client().scan().table_name(table.name()).consistent_read(true).into_paginator().send();
    let mut found = 0;
    while let Some(page) = pages.next().await {
        let is_subscription = |value: &AttributeValue| value.as_s().is_ok_and(|sk| sk.starts_with("SUB#"));
        found += page?.items().iter().filter(|item| item.get("SK").is_some_and(is_subscription)).count();
    }
    check_subscription_count(found, expected)?;
    Ok(started.elapsed())
}

/// Checks all accounts as `dueday audit` does, and returns the duration. There is one difference: `dueday audit` stores
/// its position after every 1,000 accounts, and this function does not.
async fn measure_audit(table: &Table, expected: u32) -> Result<Duration, Failure> {
    let started = Instant::now();
    let now = Utc::now();
    let checker = InvariantChecker {
        shards: SHARDS,
        today: now.date_naive(),
        now,
        records_kept: table.receipt_retention(),
        longest_gap: 2,
        lead: LeadDays::default(),
    };
    let (mut partitions, mut found) = (table.account_partitions(), 0);
    while let Some(partition) = partitions.next().await? {
        found += partition.subscriptions.len();
        if let Some(violation) = checker.check_account(&partition).first() {
            return Err(format!("the audit reports a valid item: {violation:?}").into());
        }
    }
    check_subscription_count(found, expected)?;
    Ok(started.elapsed())
}

/// Checks that the number of found subscriptions is `expected`.
fn check_subscription_count(found: usize, expected: u32) -> Result<(), Failure> {
    if found == usize::try_from(expected)? {
        return Ok(());
    }
    Err(format!("found {found} subscriptions instead of {expected}").into())
}

fn median_duration(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}
