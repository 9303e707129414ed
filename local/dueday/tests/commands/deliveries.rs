//! Tests of outbound webhooks in a local installation: events are delivered with a signature, also after a kill of the
//! server, and delivered again on request.

use crate::server::{ApiClient, Server};
use crate::terminal;

use outbound::sign_webhook;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use billing::SigningSecret;
use serde_json::{Value, json};
use terminal::{dueday, output};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The merchant's HTTP server, which responds with a status that the test sets.
struct MerchantServer {
    url: String,
    /// The status code of every response, which the test can change.
    status: Arc<AtomicU16>,
    /// The headers and the body of each received delivery.
    received: UnboundedReceiver<(HeaderMap, String)>,
}

/// The status code of the responses, and the channel through which the test gets the headers and bodies of the
/// deliveries.
type ResponderState = (Arc<AtomicU16>, Arc<Mutex<UnboundedSender<(HeaderMap, String)>>>);

/// Passes a delivery to the test, and responds with the status that the test has set.
async fn respond(State((status, sender)): State<ResponderState>, headers: HeaderMap, body: String) -> StatusCode {
    sender.lock().unwrap().send((headers, body)).unwrap();
    StatusCode::from_u16(status.load(Ordering::SeqCst)).unwrap()
}

impl MerchantServer {
    async fn start(status: u16) -> Self {
        let ((sender, received), status) = (unbounded_channel(), Arc::new(AtomicU16::new(status)));
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let shared: ResponderState = (status.clone(), Arc::new(Mutex::new(sender)));
        let routes = Router::new().fallback(respond).with_state(shared);
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self { url, status, received }
    }

    /// Returns the headers, the event and the body of the next delivery of an event of this type.
    async fn next_delivery(&mut self, event_type: &str) -> (HeaderMap, Value, String) {
        loop {
            let (headers, body) = self.received.recv().await.unwrap();
            let event: Value = serde_json::from_str(&body).unwrap();
            if event["type"] == event_type {
                return (headers, event, body);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_delivered_after_a_kill_and_redelivered_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut merchant = MerchantServer::start(503).await;
    let mut first = Server::start(&data, &[]);
    let mut api = ApiClient { url: first.api_url.clone(), http: reqwest::Client::new() };
    let (status, created) =
        api.send("POST /webhook-endpoints", json!({ "url": merchant.url, "types": ["account.created"] })).await;
    assert_eq!(status, 201, "{created}");
    let endpoint = format!("/webhook-endpoints/{}", created["id"].as_str().unwrap());
    let secret: SigningSecret = created["secret"].as_str().unwrap().parse().unwrap();
    assert_eq!(
        api.send(&format!("GET {endpoint}"), Value::Null).await.1.get("secret"),
        None,
        "the secret is shown only once"
    );

    api.send("PUT /accounts/acme", json!({ "email": "a@example.com", "name": "Acme" })).await;
    let (_, event, _) = merchant.next_delivery("account.created").await;
    assert_eq!(event["subject"], "acme");
    let (_, shown) = api.send("GET /status", Value::Null).await;
    let deliveries = json!({"name": "Deliveries", "waiting": 1, "in_progress": 0, "keeps_failed_messages": false, "late_since": null});
    assert_eq!(shown["queues"][0], deliveries, "{shown}");
    assert!(!first.process.has_ended() && first.process.kill());

    // Without a server, `dueday status` reads the same queues. If an order could not be placed, a person must act, so
    // the command reports a problem.
    std::fs::write(data.join("not-ordered.jsonl"), "{}\n").unwrap();
    let (code, shown, stderr) = output(dueday(&data).args(["status", "--json"]));
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((code, &shown["queues"][0]), (1, &deliveries), "{shown}{stderr}");
    assert_eq!(shown["queues"].as_array().unwrap().iter().filter(|queue| queue["waiting"] == 1).count(), 2, "{shown}");
    let problem = json!("messages in the queue PaidNotOrdered that could not be processed: 1");
    assert!(shown["problems"].as_array().unwrap().contains(&problem), "{shown}");
    std::fs::remove_file(data.join("not-ordered.jsonl")).unwrap();

    // The delivery waits for its next attempt. The second server loads the delivery from the table.
    merchant.status.store(204, Ordering::SeqCst);
    let second = Server::start(&data, &[]);
    api.url = second.api_url.clone();
    let (headers, again, body) = merchant.next_delivery("account.created").await;
    assert_eq!(again, event, "the same event");
    let timestamp: i64 = headers["webhook-timestamp"].to_str().unwrap().parse().unwrap();
    let id = event["id"].as_str().unwrap();
    assert_eq!(headers["webhook-signature"], sign_webhook(&secret, id, timestamp, &body));

    let (status, rotated) = api.send(&format!("POST {endpoint}/rotate-secret"), json!({})).await;
    assert_eq!(status, 200, "{rotated}");
    let (status, sent) = api.send(&format!("POST {endpoint}/deliveries/{id}/redeliver"), json!({})).await;
    assert_eq!((status, &sent["status"]), (202, &"pending".into()), "{sent}");
    let (headers, _, body) = merchant.next_delivery("account.created").await;
    let timestamp: i64 = headers["webhook-timestamp"].to_str().unwrap().parse().unwrap();
    let new: SigningSecret = rotated["secret"].as_str().unwrap().parse().unwrap();
    let both = [&new, &secret].map(|secret| sign_webhook(secret, id, timestamp, &body)).join(" ");
    assert_eq!(headers["webhook-signature"], both, "after a rotation, both signing secrets are valid for a while");

    let name = created["id"].as_str().unwrap();
    let (code, sent, stderr) = output(dueday(&data).args(["webhooks", "redeliver", name, id]));
    assert_eq!((code, sent.as_str()), (0, "1 event will be sent again\n"), "{stderr}");
    let (_, again, _) = merchant.next_delivery("account.created").await;
    assert_eq!(again["id"], id);
    let (code, _, stderr) = output(dueday(&data).args(["webhooks", "redeliver", name, "unknown"]));
    assert!(code == 2 && stderr.contains("there is no such delivery"), "{code} {stderr}");

    let (_, listed) = api.send(&format!("GET {endpoint}/deliveries"), Value::Null).await;
    assert_eq!(listed["data"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(listed["data"][0]["event"], id);
    let (code, kept, stderr) = output(dueday(&data).args(["events", "--type", "account.created"]));
    assert!(code == 0 && kept.lines().count() == 1, "stored once: {kept}{stderr}");
    assert_eq!(api.send(&format!("DELETE {endpoint}"), Value::Null).await.0, 204);
    assert_eq!(api.send(&format!("GET {endpoint}"), Value::Null).await.0, 404);
}
