//! The process of the embedded engine (the local replacement of DynamoDB). The process serves a table on a free port.
//! The table contains payments that are due today.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use aws_config::{BehaviorVersion, Region};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::Credentials;
use axum::Router;
use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use billing::{Account, AccountRecords, LeadDays, NewSubscription, Subscription, SubscriptionId};
use chrono::{Datelike as _, NaiveDate, Utc};
use clap::Args;
use emulator::{Engine, EngineConnection};
use store::{Settings, Table};
use testkit::{sample_account, sample_subscription};
use tokio::net::TcpListener;
use ulid::Ulid;

use crate::Failure;
use crate::recorder::dynamodb_operation;

/// The name of the table with the due payments.
pub const TABLE: &str = "dueday";
/// The number of shards of the table if no argument sets another number.
pub const SHARDS: u32 = 4;

#[derive(Debug, Args)]
pub struct EngineArgs {
    /// Number of due payments
    #[arg(long)]
    pub rows: u32,
    /// Number of shards of the table
    #[arg(long, default_value_t = SHARDS)]
    pub shards: u32,
    /// Commit the table to a disk
    #[arg(long)]
    pub on_disk: bool,
    /// Delay of each response in milliseconds
    #[arg(long, default_value_t = 0)]
    pub delay_ms: u64,
    /// Ignore the idempotency tokens of transactions; with a delay, the tokens are always ignored
    #[arg(long)]
    pub without_tokens: bool,
}

/// Returns a DynamoDB client that sends its requests to the engine at `url`.
pub fn create_client_of_engine(url: &str) -> Client {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::from_static("local"))
        .credentials_provider(Credentials::new("local", "local", None, None, "local"))
        .endpoint_url(url)
        .build();
    Client::from_conf(config)
}

/// Returns the `n`th account and its subscription. The first payment of the subscription is due `today`, and no
/// reminder is to be sent.
pub fn create_due_subscription(n: u32, today: NaiveDate, settings: &Settings) -> (Account, Subscription) {
    let account = Account { id: format!("account-{n:06}").parse().expect("a valid account id"), ..sample_account() };
    let sample = sample_subscription(1, today);
    let new = NewSubscription {
        account: account.id.clone(),
        id: SubscriptionId::new(create_numbered_ulid(n)),
        external_id: None,
        sku: sample.sku,
        product_name: sample.product_name,
        email: None,
        payment_day: i64::from(today.day()).try_into().expect("a valid day of the month"),
        price: sample.price,
        payment_method: sample.payment_method,
        first_payment_on: Some(today),
        allow_second: false,
    };
    let begun = new.into_subscription(
        &AccountRecords::default(),
        settings.shard_of(&account.id),
        LeadDays::default(),
        today,
        Utc::now(),
    );
    let subscription = begun.expect("a first payment that is due today");
    (account, Subscription { next_reminder_on: None, ..subscription })
}

/// Returns a fixed id for the number `n`. Different numbers have different ids.
pub fn create_numbered_ulid(n: u32) -> Ulid {
    Ulid::from_parts(1_000_000 + u64::from(n), n.into())
}

/// Creates the table with its due payments, prints the URL of the engine, and serves the engine until the process is
/// killed.
pub async fn serve_engine(args: &EngineArgs) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let engine = if args.on_disk { Engine::open(&folder.path().join("table.db"))? } else { Engine::in_memory() };
    let client = engine.client_with_connection(std::sync::Arc::new(EngineConnection::without_tokens()));
    let table = Table::new(client, TABLE);
    table.create_if_absent().await?;
    let settings = Settings::new(args.shards, create_numbered_ulid(0));
    table.init_settings(&settings).await?;
    let today = Utc::now().date_naive();
    for n in 0..args.rows {
        let (account, subscription) = create_due_subscription(n, today, &settings);
        table.put_account(&account).await?;
        table.create_subscription(&subscription, None).await?;
    }
    if args.delay_ms > 0 || args.without_tokens {
        println!("http://{}", serve_engine_with_delay(engine, Duration::from_millis(args.delay_ms)).await?);
        return std::future::pending().await;
    }
    let served = engine.serve(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    println!("{}", served.url());
    std::future::pending().await
}

/// Serves `engine` on a free port, and delays each response by `delay`.
pub async fn serve_engine_with_delay(engine: Engine, delay: Duration) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let respond = async move |headers: HeaderMap, body: Bytes| {
        // `execute_without_token` ignores the idempotency tokens of transactions. Otherwise the engine would search all
        // tokens of the last ten minutes for each transaction, which would take most of the time.
        let (status, body) = match engine.execute_without_token(dynamodb_operation(&headers), &body) {
            Ok(response) => (StatusCode::OK, response),
            Err(error) => (StatusCode::BAD_REQUEST, error),
        };
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        (status, [(CONTENT_TYPE, "application/x-amz-json-1.0")], body)
    };
    let routes = Router::new().route("/", post(respond));
    let listener = axum::serve::ListenerExt::tap_io(listener, |socket| drop(socket.set_nodelay(true)));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    Ok(address)
}
