//! A stand-in for EventBridge: PutEvents with its limits ("PutEvents" in the EventBridge API reference) and with faults
//! that the test chooses.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// How the stand-in handles a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FakeBusBehavior {
    /// Accepts all entries.
    Accepts,
    /// Rejects the entry at this index, as if throttled, and accepts the others.
    RejectsEntry(usize),
    /// Responds with an error, and accepts no entry.
    Fails,
    /// Never responds, and accepts no entry.
    HangsBefore,
    /// Accepts all entries, but never responds.
    HangsAfter,
}

/// Returns how the stand-in handles the request with this number. The first request has the number 0.
type BehaviorOfRequest = dyn Fn(usize) -> FakeBusBehavior + Send + Sync;

/// The number of received requests, and the accepted entries.
#[derive(Default)]
struct RecordedRequests {
    requests: usize,
    accepted: Vec<Value>,
}

/// A stand-in for EventBridge that runs on a port of this machine.
pub struct FakeEventBridge {
    pub url: String,
    state: Arc<ServerState>,
}

/// The state of the stand-in, which its handler shares with the test.
struct ServerState {
    behavior: Box<BehaviorOfRequest>,
    recorded: Mutex<RecordedRequests>,
    /// Notifies the test when a request hangs.
    hangs: Notify,
}

impl FakeEventBridge {
    /// Starts a stand-in. `behavior` gets the number of each request, from 0.
    pub async fn start(behavior: impl Fn(usize) -> FakeBusBehavior + Send + Sync + 'static) -> Self {
        let state =
            Arc::new(ServerState { behavior: Box::new(behavior), recorded: Mutex::default(), hangs: Notify::new() });
        let listener = tokio::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let routes = Router::new().fallback(put_events).with_state(state.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self { url, state }
    }

    /// Returns all accepted entries, in their order.
    pub fn accepted_entries(&self) -> Vec<Value> {
        self.state.recorded.lock().unwrap().accepted.clone()
    }

    /// Returns the events (the field `Detail`) of all accepted entries, in their order.
    pub fn accepted(&self) -> Vec<Value> {
        let entries = self.accepted_entries().into_iter();
        entries.map(|entry| serde_json::from_str(entry["Detail"].as_str().unwrap()).unwrap()).collect()
    }

    /// Returns the number of requests that the stand-in has received.
    pub fn requests(&self) -> usize {
        self.state.recorded.lock().unwrap().requests
    }

    /// Waits until the stand-in has received a request to which it never responds.
    pub async fn wait_until_request_hangs(&self) {
        self.state.hangs.notified().await;
    }
}

/// Handles one request as the test has chosen. Rejects a request that EventBridge would not accept.
async fn put_events(State(state): State<Arc<ServerState>>, headers: HeaderMap, body: String) -> Response {
    let request: Value = serde_json::from_str(&body).unwrap();
    let entries = request["Entries"].as_array().unwrap();
    let number = {
        let mut recorded = state.recorded.lock().unwrap();
        recorded.requests += 1;
        recorded.requests - 1
    };
    let is_allowed = headers["x-amz-target"] == "AWSEvents.PutEvents"
        && (1..=10).contains(&entries.len())
        && entries.iter().map(entry_size).sum::<usize>() < 262_144
        && entries.iter().all(|entry| entry["EventBusName"] == "dueday-events");
    if !is_allowed {
        return error_response(StatusCode::BAD_REQUEST, "ValidationException");
    }
    let behavior = (state.behavior)(number);
    let is_rejected = |index: usize| behavior == FakeBusBehavior::RejectsEntry(index);
    if !matches!(behavior, FakeBusBehavior::Fails | FakeBusBehavior::HangsBefore) {
        let accepted = entries.iter().enumerate().filter(|(index, _)| !is_rejected(*index));
        state.recorded.lock().unwrap().accepted.extend(accepted.map(|(_, entry)| entry.clone()));
    }
    match behavior {
        FakeBusBehavior::Fails => return error_response(StatusCode::INTERNAL_SERVER_ERROR, "InternalException"),
        FakeBusBehavior::HangsBefore | FakeBusBehavior::HangsAfter => {
            state.hangs.notify_one();
            std::future::pending::<()>().await;
        }
        FakeBusBehavior::Accepts | FakeBusBehavior::RejectsEntry(_) => {}
    }
    let results = (0..entries.len()).map(|index| match is_rejected(index) {
        true => json!({ "ErrorCode": "ThrottlingException", "ErrorMessage": "Rate exceeded" }),
        false => json!({ "EventId": format!("{number}-{index}") }),
    });
    let results: Vec<_> = results.collect();
    let failed = usize::from(matches!(behavior, FakeBusBehavior::RejectsEntry(index) if index < entries.len()));
    let response = json!({ "FailedEntryCount": failed, "Entries": results });
    ([("content-type", "application/x-amz-json-1.1")], response.to_string()).into_response()
}

/// Returns the response with the error `kind`, in the format of EventBridge.
fn error_response(status: StatusCode, kind: &str) -> Response {
    let body = json!({ "__type": kind, "message": "injected" }).to_string();
    (status, [("content-type", "application/x-amz-json-1.1")], body).into_response()
}

/// Returns the size of an entry in bytes, as EventBridge counts it: 14 bytes for the time, and the bytes of the
/// texts.
fn entry_size(entry: &Value) -> usize {
    let texts = ["Source", "DetailType", "Detail"].map(|name| entry[name].as_str().unwrap_or_default().len());
    let resources = entry["Resources"].as_array().into_iter().flatten();
    let resources: usize = resources.map(|resource| resource.as_str().unwrap_or_default().len()).sum();
    texts.iter().sum::<usize>() + resources + 14
}
