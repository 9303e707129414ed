//! A stand-in for EventBridge: PutEvents with its limits ("PutEvents" in the EventBridge API reference), and the moods that
//! a test gives it.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// What becomes of a request, or of some of its entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mood {
    /// All are taken.
    Takes,
    /// The entry at this place is refused, as for too high a rate.
    Refuses(usize),
    /// An error instead of an answer; nothing was taken.
    Fails,
    /// It never answers, and has taken nothing.
    HangsBefore,
    /// It never answers, and has taken all.
    HangsAfter,
}

type Moods = dyn Fn(usize) -> Mood + Send + Sync;

/// What it holds.
#[derive(Default)]
struct Held {
    requests: usize,
    taken: Vec<Value>,
}

/// A running stand-in.
pub struct EventBridge {
    pub url: String,
    state: Arc<Stand>,
}

struct Stand {
    mood: Box<Moods>,
    held: Mutex<Held>,
    hangs: Notify,
}

impl EventBridge {
    /// Starts one whose mood goes by the number of the request, from 0.
    pub async fn start(mood: impl Fn(usize) -> Mood + Send + Sync + 'static) -> Self {
        let state = Arc::new(Stand { mood: Box::new(mood), held: Mutex::default(), hangs: Notify::new() });
        let listener = tokio::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let routes = Router::new().fallback(put_events).with_state(state.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self { url, state }
    }

    /// The details of all entries that were taken, in their order.
    pub fn taken(&self) -> Vec<Value> {
        self.state.held.lock().unwrap().taken.clone()
    }

    /// How many requests came.
    pub fn requests(&self) -> usize {
        self.state.held.lock().unwrap().requests
    }

    /// Returns once a request hangs.
    pub async fn hangs(&self) {
        self.state.hangs.notified().await;
    }
}

async fn put_events(State(stand): State<Arc<Stand>>, headers: HeaderMap, body: String) -> Response {
    let request: Value = serde_json::from_str(&body).unwrap();
    let entries = request["Entries"].as_array().unwrap();
    let number = {
        let mut held = stand.held.lock().unwrap();
        held.requests += 1;
        held.requests - 1
    };
    let is_allowed = headers["x-amz-target"] == "AWSEvents.PutEvents"
        && (1..=10).contains(&entries.len())
        && entries.iter().map(size).sum::<usize>() < 262_144
        && entries.iter().all(|entry| entry["EventBusName"] == "dueday-events" && entry["Source"] == "dueday");
    if !is_allowed {
        return refused(StatusCode::BAD_REQUEST, "ValidationException");
    }
    let mood = (stand.mood)(number);
    let is_refused = |place: usize| mood == Mood::Refuses(place);
    if !matches!(mood, Mood::Fails | Mood::HangsBefore) {
        let taken = entries.iter().enumerate().filter(|(place, _)| !is_refused(*place));
        let details = taken.map(|(_, entry)| serde_json::from_str(entry["Detail"].as_str().unwrap()).unwrap());
        stand.held.lock().unwrap().taken.extend(details);
    }
    match mood {
        Mood::Fails => return refused(StatusCode::INTERNAL_SERVER_ERROR, "InternalException"),
        Mood::HangsBefore | Mood::HangsAfter => {
            stand.hangs.notify_one();
            std::future::pending::<()>().await;
        }
        Mood::Takes | Mood::Refuses(_) => {}
    }
    let results = (0..entries.len()).map(|place| match is_refused(place) {
        true => json!({ "ErrorCode": "ThrottlingException", "ErrorMessage": "Rate exceeded" }),
        false => json!({ "EventId": format!("{number}-{place}") }),
    });
    let results: Vec<_> = results.collect();
    let failed = usize::from(matches!(mood, Mood::Refuses(place) if place < entries.len()));
    let answer = json!({ "FailedEntryCount": failed, "Entries": results });
    ([("content-type", "application/x-amz-json-1.1")], answer.to_string()).into_response()
}

fn refused(status: StatusCode, kind: &str) -> Response {
    let body = json!({ "__type": kind, "message": "injected" }).to_string();
    (status, [("content-type", "application/x-amz-json-1.1")], body).into_response()
}

/// As EventBridge counts it: 14 bytes for a time, and the bytes of the texts.
fn size(entry: &Value) -> usize {
    let texts = ["Source", "DetailType", "Detail"].map(|name| entry[name].as_str().unwrap_or_default().len());
    texts.iter().sum::<usize>() + 14
}
