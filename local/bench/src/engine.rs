//! The engine's process: a table with payments that are due today, served on a free port.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use billing::{Account, LeadDays, NewSubscription, Subscription, SubscriptionId};
use chrono::{Datelike as _, NaiveDate, TimeDelta, Utc};
use clap::Args;
use emulator::{Engine, Wire};
use store::{Settings, Table};
use testkit::sample;
use tokio::net::TcpListener;
use ulid::Ulid;

use crate::Failure;
use crate::recorder::operation;

/// The table's name, and its partitions.
pub const TABLE: &str = "dueday";
pub const SHARDS: u32 = 4;

#[derive(Debug, Args)]
pub struct EngineArgs {
    #[arg(long)]
    pub rows: u32,
    #[arg(long, default_value_t = SHARDS)]
    pub shards: u32,
    /// Commit to a disk
    #[arg(long)]
    pub on_disk: bool,
    /// Milliseconds by which each answer is held back
    #[arg(long, default_value_t = 0)]
    pub delay_ms: u64,
}

/// The `n`th subscription, due `today` for the first time, and reminded of it.
fn subscription(n: u32, today: NaiveDate, settings: &Settings) -> (Account, Subscription) {
    let account = Account { id: format!("account-{n:06}").parse().expect("an account's id"), ..sample::account() };
    let old = sample::subscription(1, today);
    let new = NewSubscription {
        account: account.id.clone(),
        id: SubscriptionId::new(ulid(n)),
        sku: old.sku,
        product_name: old.product_name,
        email: None,
        payment_day: i64::from(today.day()).try_into().expect("a day of the month"),
        price: old.price,
        payment_method: old.payment_method,
        first_payment_on: Some(today),
    };
    let begun = new.begin(settings.shard_of(&account.id), LeadDays::default(), today, Utc::now());
    let subscription = begun.expect("a first payment today");
    (account, Subscription { next_reminder_on: None, ..subscription })
}

fn ulid(n: u32) -> Ulid {
    Ulid::from_parts(1_000_000 + u64::from(n), n.into())
}

pub async fn serve(args: &EngineArgs) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let engine = if args.on_disk { Engine::open(&folder.path().join("table.db"))? } else { Engine::memory() };
    let client = engine.client_over(std::sync::Arc::new(Wire::without_tokens()));
    let table = Table::new(client, TABLE, TimeDelta::days(190));
    table.create_if_absent().await?;
    let settings =
        Settings { shards: args.shards, charging: true, table_id: ulid(0), gateway: None, latest_run_at: None };
    table.init_settings(&settings).await?;
    let today = Utc::now().date_naive();
    for n in 0..args.rows {
        let (account, subscription) = subscription(n, today, &settings);
        table.put_account(&account).await?;
        table.create_subscription(&subscription, None).await?;
    }
    if args.delay_ms > 0 {
        println!("http://{}", held_back(engine, Duration::from_millis(args.delay_ms)).await?);
        return std::future::pending().await;
    }
    let served = engine.serve(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    println!("{}", served.url());
    std::future::pending().await
}

/// Serves `engine` on a free port, each answer held back by `delay`.
pub async fn held_back(engine: Engine, delay: Duration) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let answer = async move |headers: HeaderMap, body: Bytes| {
        // Its search among the tokens of ten minutes would be slower than all else that it does.
        let (status, body) = match engine.answer(operation(&headers), &body) {
            Ok(answer) => (StatusCode::OK, answer),
            Err(error) => (StatusCode::BAD_REQUEST, error),
        };
        tokio::time::sleep(delay).await;
        (status, [(CONTENT_TYPE, "application/x-amz-json-1.0")], body)
    };
    let routes = Router::new().route("/", post(answer));
    let listener = axum::serve::ListenerExt::tap_io(listener, |socket| drop(socket.set_nodelay(true)));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    Ok(address)
}
