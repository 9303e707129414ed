//! `bench deliveries`: measures how much two broken webhook endpoints delay the deliveries to all other endpoints. One
//! broken endpoint never responds, and the other broken endpoint always responds with an error.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use billing::{ReceivedEvent, SigningSecret, WebhookEndpoint};
use chrono::DateTime;
use clap::Args;
use clock::SystemClock;
use emulator::Engine;
use encryption::{EncryptionKeys, generate_key};
use outbound::{
    AllowedAddresses, DELIVERY_TIMEOUT, Deliverer, DeliveryQueue as _, DeliveryWorker, EndpointSecrets, WebhookSender,
};
use store::Table;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use ulid::Ulid;

use crate::Failure;

/// The number of endpoints that accept every event.
const HEALTHY_ENDPOINTS: u128 = 18;
/// The number of events for which the deliveries to all endpoints are created and queued together.
const EVENTS_PER_BATCH: u64 = 100;

/// The arguments of `bench deliveries`.
#[derive(Debug, Args)]
pub struct DeliveriesArgs {
    /// Number of events, each of which is delivered to every endpoint
    #[arg(long, default_value_t = 50_000)]
    pub events: u64,
    /// Number of measurements of each kind; the result is the ratio of the medians
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
}

/// The state of the merchant's server, which receives the deliveries of all endpoints and counts the accepted
/// deliveries.
#[derive(Clone)]
struct MerchantServer {
    accepted: Arc<AtomicU64>,
    /// The number of accepted deliveries after which the measurement ends.
    expected: u64,
    /// Notified when the server has accepted the expected number of deliveries.
    has_all: Arc<Notify>,
}

/// In each round, measures the healthy endpoints alone, and then together with the two broken endpoints. Prints the
/// ratio of the median times.
pub async fn measure_delivery_delays(args: &DeliveriesArgs) -> Result<(), Failure> {
    let (mut alone, mut together) = (Vec::new(), Vec::new());
    for round in 1..=args.rounds.max(1) {
        alone.push(measure_deliveries(args.events, &[]).await?);
        together.push(measure_deliveries(args.events, &["hangs", "fails"]).await?);
        println!("round {round}: {:.2?} alone, {:.2?} together", alone[round - 1], together[round - 1]);
    }
    let (alone, together) = (median_duration(&mut alone), median_duration(&mut together));
    println!("{HEALTHY_ENDPOINTS} healthy endpoints alone:             {alone:.2?}");
    println!("with one that hangs and one that fails: {together:.2?}");
    println!("ratio: {:.3} (goal: at most 1.10)", together.as_secs_f64() / alone.as_secs_f64());
    Ok(())
}

/// Returns the median of `times`.
fn median_duration(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Returns the time until all healthy endpoints have accepted all `events`. `broken` contains the URL paths of the
/// broken endpoints, which are created in addition.
async fn measure_deliveries(events: u64, broken: &[&str]) -> Result<Duration, Failure> {
    let table = Table::new(Engine::in_memory().client(), "dueday");
    table.create_if_absent().await?;
    let expected = events * u64::try_from(HEALTHY_ENDPOINTS)?;
    let merchant = MerchantServer { accepted: Arc::default(), expected, has_all: Arc::default() };
    let server = serve_merchant(merchant.clone()).await?;
    let keys = EncryptionKeys::parse(&generate_key(&SystemClock))?;
    let secrets = EndpointSecrets::new(keys.clone(), Arc::new(SystemClock));
    // The broken endpoints are created before the healthy endpoints, so they are first in the list of endpoints.
    let paths = broken.iter().copied().chain((0..HEALTHY_ENDPOINTS).map(|_| "accepts"));
    for (number, path) in (1..).zip(paths) {
        let (id, url) = (Ulid(number), format!("{server}/{path}").parse()?);
        let secret = secrets.encrypt(id, &SigningSecret::new([1; 32]));
        let endpoint = WebhookEndpoint::new(id, url, secret, DateTime::UNIX_EPOCH);
        table.create_webhook_endpoint(&endpoint, None).await?;
    }
    let sender = WebhookSender::new(AllowedAddresses::Any, DELIVERY_TIMEOUT)?;
    let deliverer = Deliverer::new(table, sender, keys, Arc::new(SystemClock));
    let (worker, queue) = DeliveryWorker::new(deliverer.clone());
    let begun = Instant::now();
    let produce = async {
        for first in (0..events).step_by(usize::try_from(EVENTS_PER_BATCH)?) {
            let ids = first..events.min(first + EVENTS_PER_BATCH);
            let batch: Result<Vec<_>, _> = ids.map(|id| ReceivedEvent::read(&create_event(id))).collect();
            queue.send(&deliverer.fan_out(&batch?).await?).await?;
        }
        merchant.has_all.notified().await;
        Ok::<_, Failure>(())
    };
    tokio::select! {
        produced = produce => produced?,
        () = worker.run(&SystemClock, |error| eprintln!("{error}")) => {}
    }
    Ok(begun.elapsed())
}

/// Returns the JSON of the event number `id`.
fn create_event(id: u64) -> String {
    format!(r#"{{"specversion":"1.0","id":"e{id}","type":"account.created","subject":"acme","data":{{}}}}"#)
}

/// Starts the merchant's server on loopback, and returns its URL. The path `/accepts` accepts every delivery, `/hangs`
/// sends no response, and `/fails` responds with 500.
async fn serve_merchant(merchant: MerchantServer) -> Result<String, Failure> {
    let accept = |State(merchant): State<MerchantServer>| async move {
        if merchant.accepted.fetch_add(1, Ordering::Relaxed) + 1 == merchant.expected {
            merchant.has_all.notify_one();
        }
        StatusCode::NO_CONTENT
    };
    let routes = Router::new()
        .route("/accepts", post(accept))
        .route("/fails", post(async || StatusCode::INTERNAL_SERVER_ERROR))
        .route("/hangs", post(std::future::pending::<StatusCode>))
        .with_state(merchant);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let url = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, routes).await });
    Ok(url)
}
