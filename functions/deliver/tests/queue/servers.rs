//! Stand-ins for SQS and for a program of the merchant's. Each request passes an injector, as the function's requests to the
//! table do.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use emulator::{Injector, Operation};
use serde_json::{Value, json};

/// What a server was asked, by what it was asked to do.
pub type Asked = Arc<Mutex<Vec<(String, Value)>>>;

type Server = State<(Asked, Arc<Injector>)>;

async fn listen(routes: Router) -> String {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    url
}

fn no_faults() -> Arc<Injector> {
    Arc::new(Injector::new(Arc::new(|_: &emulator::Call<'_>| None)))
}

/// An SQS that takes what it is sent.
pub async fn sqs() -> (String, Asked) {
    sqs_through(no_faults()).await
}

/// A program that answers with the status in its path.
pub async fn program() -> (String, Asked) {
    program_through(no_faults()).await
}

/// As [`sqs`] ("SendMessageBatch", "ChangeMessageVisibility" in its API reference).
pub async fn sqs_through(injector: Arc<Injector>) -> (String, Asked) {
    async fn answer(State((asked, injector)): Server, headers: HeaderMap, body: Bytes) -> String {
        let request: Value = serde_json::from_slice(&body).unwrap();
        let action = headers["x-amz-target"].to_str().unwrap().trim_start_matches("AmazonSQS.").to_owned();
        let entries = request["Entries"].as_array().cloned().unwrap_or_default();
        assert!(entries.len() <= 10, "too many entries");
        let sent = entries.iter().map(|entry| {
            let digest = "d41d8cd98f00b204e9800998ecf8427e";
            json!({ "Id": entry["Id"], "MessageId": "1", "MD5OfMessageBody": digest })
        });
        let answer = json!({ "Successful": sent.collect::<Vec<_>>(), "Failed": [] }).to_string();
        let operation = action.clone();
        let taken = async {
            asked.lock().unwrap().push((action, request));
            answer
        };
        injector.call(Operation::Http(&operation), |fault| panic!("{fault:?}"), taken).await
    }
    let asked = Asked::default();
    (listen(Router::new().fallback(answer).with_state((asked.clone(), injector))).await, asked)
}

/// As [`program`]; at `/refuses-e1` one that takes all but the event `e1`, at `/refuses-first` all but what comes first.
pub async fn program_through(injector: Arc<Injector>) -> (String, Asked) {
    async fn answer(State((got, injector)): Server, uri: Uri, headers: HeaderMap, body: Bytes) -> StatusCode {
        let signed = headers["webhook-signature"].to_str().unwrap().to_owned();
        let event: Value = serde_json::from_slice(&body).unwrap();
        let taken = async {
            let mut got = got.lock().unwrap();
            let status = match uri.path().trim_start_matches('/') {
                "refuses-e1" => {
                    if event["id"] == "e1" {
                        500
                    } else {
                        200
                    }
                }
                "refuses-first" => {
                    if got.is_empty() {
                        503
                    } else {
                        200
                    }
                }
                status => status.parse().unwrap(),
            };
            got.push((signed, event));
            StatusCode::from_u16(status).unwrap()
        };
        injector.call(Operation::Http("webhook"), |fault| panic!("{fault:?}"), taken).await
    }
    let got = Asked::default();
    (listen(Router::new().fallback(answer).with_state((got.clone(), injector))).await, got)
}
