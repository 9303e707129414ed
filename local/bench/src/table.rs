//! A table that knows its answers: those that the engine gave to the recorded requests. It takes next to no time for one, so
//! that the latency is the one that it is told to have, however much is in flight: an engine behind a lock has a queue of
//! its own.

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
use crate::recorder::{Request, operation, subscription_of};

#[derive(Debug, Args)]
pub struct TableArgs {
    /// What was recorded, as JSON
    #[arg(long)]
    pub recorded: PathBuf,
    /// Milliseconds by which each answer is held back
    #[arg(long, default_value_t = 0)]
    pub delay_ms: u64,
}

#[derive(Clone)]
struct Table {
    /// In their order: the index shows less when it is asked again.
    answers: Arc<Mutex<HashMap<String, VecDeque<String>>>>,
    /// The subscriptions that were settled.
    settled: Arc<Mutex<HashSet<String>>>,
    delay: Duration,
}

impl Table {
    /// The next answer to what is `asked`; the last one stays.
    fn next(&self, asked: &str) -> Option<String> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let answers = answers.get_mut(asked)?;
        if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() }
    }
}

pub async fn serve(args: &TableArgs) -> Result<(), Failure> {
    let recorded: Vec<Vec<Request>> = serde_json::from_slice(&std::fs::read(&args.recorded)?)?;
    let mut answers = HashMap::<String, VecDeque<String>>::new();
    for request in recorded.into_iter().flatten().filter(|request| !request.is_charge) {
        let body = serde_json::from_str(&request.body)?;
        answers.entry(asked(request.operation(), &body)).or_default().push_back(request.answer);
    }
    let (answers, settled) = (Arc::new(Mutex::new(answers)), Arc::default());
    let table = Table { answers, settled, delay: Duration::from_millis(args.delay_ms) };
    let settled = async |State(table): State<Table>| {
        let settled = table.settled.lock().unwrap_or_else(PoisonError::into_inner).len();
        settled.to_string()
    };
    let routes = Router::new().route("/", post(answer)).route("/settled", get(settled)).with_state(table);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    println!("http://{}", listener.local_addr()?);
    Ok(axum::serve(axum::serve::ListenerExt::tap_io(listener, |socket| drop(socket.set_nodelay(true))), routes).await?)
}

/// What is asked, whoever asks and in whichever words: the operation, the key, and for a page where it begins.
fn asked(operation: &str, body: &Value) -> String {
    let key = [&body["Key"]["PK"], &body["Key"]["SK"], &body["ExclusiveStartKey"]["SK"]];
    let key = key.map(|part| part["S"].as_str().unwrap_or_default());
    // A day on which nothing is due has no rows.
    let day = if operation == "Query" { days(body).max().unwrap_or_default() } else { "" };
    format!("{operation} {} {day}", key.join(" "))
}

/// The dates among the values of an expression.
fn days(body: &Value) -> impl Iterator<Item = &str> {
    let values = body["ExpressionAttributeValues"].as_object().into_iter().flat_map(|values| values.values());
    values.filter_map(|value| value["S"].as_str()).filter(|text| text.len() == "2026-01-31".len())
}

async fn answer(State(table): State<Table>, headers: HeaderMap, body: Bytes) -> impl IntoResponse {
    let operation = operation(&headers);
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    if operation == "TransactWriteItems"
        && let Some(id) = subscription_of(&body)
    {
        table.settled.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
    }
    let answer = table.next(&asked(operation, &body)).unwrap_or_else(|| "{}".to_owned());
    tokio::time::sleep(table.delay).await;
    ([(CONTENT_TYPE, "application/x-amz-json-1.0")], answer)
}
