//! Webhook endpoints of one machine: events are delivered, signed, over a kill of the server, and again when asked for.

use crate::process;
use crate::terminal;

use delivery::sign;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use billing::Secret;
use process::Process;
use serde_json::{Value, json};
use terminal::{dueday, output};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// A program of the merchant's, which answers with a status that is set.
struct Program {
    url: String,
    status: Arc<AtomicU16>,
    got: UnboundedReceiver<(HeaderMap, String)>,
}

type Shared = (Arc<AtomicU16>, Arc<Mutex<UnboundedSender<(HeaderMap, String)>>>);

async fn answer(State((status, got)): State<Shared>, headers: HeaderMap, body: String) -> StatusCode {
    got.lock().unwrap().send((headers, body)).unwrap();
    StatusCode::from_u16(status.load(Ordering::SeqCst)).unwrap()
}

impl Program {
    async fn start(status: u16) -> Self {
        let ((sender, got), status) = (unbounded_channel(), Arc::new(AtomicU16::new(status)));
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let shared: Shared = (status.clone(), Arc::new(Mutex::new(sender)));
        let routes = Router::new().fallback(answer).with_state(shared);
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self { url, status, got }
    }

    /// The next delivery of an event of this type.
    async fn next(&mut self, event_type: &str) -> (HeaderMap, Value, String) {
        loop {
            let (headers, body) = self.got.recv().await.unwrap();
            let event: Value = serde_json::from_str(&body).unwrap();
            if event["type"] == event_type {
                return (headers, event, body);
            }
        }
    }
}

/// A server, and where its API is.
fn server(data: &Path) -> (Process, String) {
    let mut command = dueday(data);
    command.args(["--api-port", "0", "--dynamodb-port", "0", "--gateway-port", "0", "--billing-time", "21:00"]);
    let mut server = Process::start(command.stdout(Stdio::piped()).stderr(Stdio::null()));
    let mut said = BufReader::new(server.0.stdout.take().unwrap()).lines();
    let api = said.find_map(|line| {
        let line = line.unwrap();
        line.contains("  API  ").then(|| line.split_whitespace().nth(1).unwrap().to_owned())
    });
    std::thread::spawn(move || said.for_each(drop));
    (server, api.unwrap())
}

struct Api {
    url: String,
    http: reqwest::Client,
}

impl Api {
    async fn send(&self, request: &str, body: Value) -> (u16, Value) {
        let (method, path) = request.split_once(' ').unwrap();
        let request = self.http.request(method.parse().unwrap(), format!("{}{path}", self.url));
        let answer = request.header("content-type", "application/json").body(body.to_string()).send().await.unwrap();
        (answer.status().as_u16(), serde_json::from_str(&answer.text().await.unwrap()).unwrap_or_default())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_delivered_over_a_kill_and_again_when_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut program = Program::start(503).await;
    let (mut first, url) = server(&data);
    let mut api = Api { url, http: reqwest::Client::new() };
    let (status, created) =
        api.send("POST /webhook-endpoints", json!({ "url": program.url, "types": ["account.created"] })).await;
    assert_eq!(status, 201, "{created}");
    let endpoint = format!("/webhook-endpoints/{}", created["id"].as_str().unwrap());
    let secret: Secret = created["secret"].as_str().unwrap().parse().unwrap();
    assert_eq!(api.send(&format!("GET {endpoint}"), Value::Null).await.1.get("secret"), None, "it is shown once");

    api.send("PUT /accounts/acme", json!({ "email": "a@example.com", "name": "Acme" })).await;
    let (_, event, _) = program.next("account.created").await;
    assert_eq!(event["subject"], "acme");
    assert!(!first.has_ended() && first.kill());

    // It waits for its next try; the server that comes next finds it in the table.
    program.status.store(204, Ordering::SeqCst);
    let (_second, url) = server(&data);
    api.url = url;
    let (headers, again, body) = program.next("account.created").await;
    assert_eq!(again, event, "the same event");
    let timestamp: i64 = headers["webhook-timestamp"].to_str().unwrap().parse().unwrap();
    let id = event["id"].as_str().unwrap();
    assert_eq!(headers["webhook-signature"], sign(&secret, id, timestamp, &body));

    let (status, rotated) = api.send(&format!("POST {endpoint}/rotate-secret"), json!({})).await;
    assert_eq!(status, 200, "{rotated}");
    let (status, sent) = api.send(&format!("POST {endpoint}/deliveries/{id}/redeliver"), json!({})).await;
    assert_eq!((status, &sent["status"]), (202, &"pending".into()), "{sent}");
    let (headers, _, body) = program.next("account.created").await;
    let timestamp: i64 = headers["webhook-timestamp"].to_str().unwrap().parse().unwrap();
    let new: Secret = rotated["secret"].as_str().unwrap().parse().unwrap();
    let both = [&new, &secret].map(|secret| sign(secret, id, timestamp, &body)).join(" ");
    assert_eq!(headers["webhook-signature"], both, "both secrets are valid meanwhile");

    let (_, listed) = api.send(&format!("GET {endpoint}/deliveries"), Value::Null).await;
    assert_eq!(listed["data"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(listed["data"][0]["event"], id);
    let (code, kept, stderr) = output(dueday(&data).args(["events", "--type", "account.created"]));
    assert!(code == 0 && kept.lines().count() == 1, "kept once: {kept}{stderr}");
    assert_eq!(api.send(&format!("DELETE {endpoint}"), Value::Null).await.0, 204);
    assert_eq!(api.send(&format!("GET {endpoint}"), Value::Null).await.0, 404);
}
