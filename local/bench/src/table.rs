//! A server that imitates a DynamoDB table: it returns the recorded responses of the engine. It responds without
//! computation, after a configured delay, so its latency does not depend on the number of parallel requests. The engine
//! itself has a lock, so parallel requests would wait for each other.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use clap::Args;
use serde_json::Value;
use tokio::net::TcpListener;

use crate::Failure;
use crate::recorder::{RecordedRequest, dynamodb_operation, subscription_of};

#[derive(Debug, Args)]
pub struct TableArgs {
    /// JSON file with the recorded requests
    #[arg(long)]
    pub recorded: PathBuf,
    /// Delay of each response in milliseconds
    #[arg(long, default_value_t = 0)]
    pub delay_ms: u64,
}

/// The state of the table's server.
#[derive(Clone)]
struct RecordedTable {
    /// The recorded responses by request, in order. The order matters, because a repeated query of the index returns
    /// fewer rows.
    responses: Arc<Mutex<HashMap<String, VecDeque<String>>>>,
    /// The ids of the subscriptions that were settled.
    settled: Arc<Mutex<HashSet<String>>>,
    delay: Duration,
}

impl RecordedTable {
    /// Returns the next recorded response to the request `request_key`. After the last recorded response, repeats this
    /// response. Returns `None` if no such request was recorded.
    fn next_response(&self, request_key: &str) -> Option<String> {
        let mut responses = self.responses.lock().unwrap_or_else(PoisonError::into_inner);
        let responses = responses.get_mut(request_key)?;
        if responses.len() > 1 { responses.pop_front() } else { responses.front().cloned() }
    }
}

/// Prints the URL of the table, and serves the table until the process is killed.
pub async fn serve_recorded_table(args: &TableArgs) -> Result<(), Failure> {
    let recorded: Vec<Vec<RecordedRequest>> = serde_json::from_slice(&std::fs::read(&args.recorded)?)?;
    let mut responses = HashMap::<String, VecDeque<String>>::new();
    for request in recorded.into_iter().flatten().filter(|request| !request.is_charge) {
        let body = serde_json::from_str(&request.body)?;
        responses.entry(identify_request(request.operation(), &body)).or_default().push_back(request.response);
    }
    let (responses, settled) = (Arc::new(Mutex::new(responses)), Arc::default());
    let table = RecordedTable { responses, settled, delay: Duration::from_millis(args.delay_ms) };
    let settled = async |State(table): State<RecordedTable>| {
        let settled = table.settled.lock().unwrap_or_else(PoisonError::into_inner).len();
        settled.to_string()
    };
    let routes = Router::new()
        .route("/", post(respond_with_recorded_response))
        .route("/settled", get(settled))
        .with_state(table);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    println!("http://{}", listener.local_addr()?);
    Ok(axum::serve(axum::serve::ListenerExt::tap_io(listener, |socket| drop(socket.set_nodelay(true))), routes).await?)
}

/// Returns a text that identifies a request: the operation, the item's key, the start of the list page, and the date.
/// Equal requests of different programs get the same text.
fn identify_request(operation: &str, body: &Value) -> String {
    let key = [&body["Key"]["PK"], &body["Key"]["SK"], &body["ExclusiveStartKey"]["SK"]];
    let key = key.map(|part| part["S"].as_str().unwrap_or_default());
    // Each program first queries a day on which nothing is due. The date in the text distinguishes this query from the
    // later queries.
    let day = if operation == "Query" { dates_in_request(body).max().unwrap_or_default() } else { "" };
    format!("{operation} {} {day}", key.join(" "))
}

/// Returns the dates among the expression attribute values of a request.
fn dates_in_request(body: &Value) -> impl Iterator<Item = &str> {
    let values = body["ExpressionAttributeValues"].as_object().into_iter().flat_map(|values| values.values());
    values.filter_map(|value| value["S"].as_str()).filter(|text| text.len() == "2026-01-31".len())
}

/// Responds to a request with the next recorded response, and remembers which subscriptions were settled.
async fn respond_with_recorded_response(
    State(table): State<RecordedTable>,
    headers: HeaderMap,
    body: Bytes,
) -> impl IntoResponse {
    let operation = dynamodb_operation(&headers);
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    if operation == "TransactWriteItems"
        && let Some(id) = subscription_of(&body)
    {
        table.settled.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
    }
    let response = table.next_response(&identify_request(operation, &body)).unwrap_or_else(|| "{}".to_owned());
    tokio::time::sleep(table.delay).await;
    ([(CONTENT_TYPE, "application/x-amz-json-1.0")], response)
}
