//! Stand-ins for SQS and for a server of the merchant. Each request passes a fault injector, as do the function's
//! requests to the table.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use emulator::{ExternalOperation, FaultInjector};
use serde_json::{Value, json};

/// The requests that a stand-in received. The stand-in for SQS records the action and the body of each request. The
/// merchant's server records the signature and the event of each request.
pub type ReceivedRequests = Arc<Mutex<Vec<(String, Value)>>>;

/// The state of a stand-in: the requests that it received, and its fault injector.
type StandInState = State<(ReceivedRequests, Arc<FaultInjector>)>;

/// Serves `routes` on a port of this machine, and returns the URL.
async fn serve_routes(routes: Router) -> String {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    url
}

/// Returns a fault injector that injects no fault.
fn no_faults() -> Arc<FaultInjector> {
    Arc::new(FaultInjector::new(Arc::new(|_: &emulator::ExternalCall<'_>| None)))
}

/// Starts a stand-in for SQS that accepts every request. Returns its URL and the requests that it receives.
pub async fn start_sqs() -> (String, ReceivedRequests) {
    start_sqs_with(no_faults()).await
}

/// Starts a merchant's server that responds with the status code in the path of the URL. Returns its URL and the
/// requests that it receives. A request to the path `/hangs` gets no response.
pub async fn start_merchant_server() -> (String, ReceivedRequests) {
    start_merchant_server_with(no_faults()).await
}

/// Starts a stand-in for SQS, like [`start_sqs`]. Each request passes `injector`. The stand-in responds to
/// `SendMessageBatch` requests (see the SQS API reference).
pub async fn start_sqs_with(injector: Arc<FaultInjector>) -> (String, ReceivedRequests) {
    async fn respond(State((received, injector)): StandInState, headers: HeaderMap, body: Bytes) -> String {
        let request: Value = serde_json::from_slice(&body).unwrap();
        let action = headers["x-amz-target"].to_str().unwrap().trim_start_matches("AmazonSQS.").to_owned();
        let entries = request["Entries"].as_array().cloned().unwrap_or_default();
        assert!(entries.len() <= 10, "too many entries");
        let sent = entries.iter().map(|entry| {
            let digest = "d41d8cd98f00b204e9800998ecf8427e";
            json!({ "Id": entry["Id"], "MessageId": "1", "MD5OfMessageBody": digest })
        });
        let response = json!({ "Successful": sent.collect::<Vec<_>>(), "Failed": [] }).to_string();
        let operation = action.clone();
        let record = async {
            received.lock().unwrap().push((action, request));
            response
        };
        injector.call_with_faults(ExternalOperation::Http(&operation), |fault| panic!("{fault:?}"), record).await
    }
    let received = ReceivedRequests::default();
    (serve_routes(Router::new().fallback(respond).with_state((received.clone(), injector))).await, received)
}

/// Starts a merchant's server, like [`start_merchant_server`]. Each request passes `injector`, except requests to the
/// path `/hangs`. A response with the status 429 requests a pause of 20 minutes. The path `/rejects-e1` accepts all events except `e1`. The path `/rejects-first` rejects only the
/// first request, and the path `/rejects-the-first-four` rejects only the first four requests.
pub async fn start_merchant_server_with(injector: Arc<FaultInjector>) -> (String, ReceivedRequests) {
    async fn respond(State((received, injector)): StandInState, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
        let signature = headers["webhook-signature"].to_str().unwrap().to_owned();
        let event: Value = serde_json::from_slice(&body).unwrap();
        if uri.path() == "/hangs" {
            received.lock().unwrap().push((signature, event));
            return std::future::pending().await;
        }
        let record = async {
            let mut received = received.lock().unwrap();
            let status = match uri.path().trim_start_matches('/') {
                "rejects-e1" => {
                    if event["id"] == "e1" {
                        500
                    } else {
                        200
                    }
                }
                "rejects-first" => {
                    if received.is_empty() {
                        503
                    } else {
                        200
                    }
                }
                "rejects-the-first-four" => {
                    if received.len() < 4 {
                        503
                    } else {
                        200
                    }
                }
                status => status.parse().unwrap(),
            };
            received.push((signature, event));
            let mut response = StatusCode::from_u16(status).unwrap().into_response();
            if status == 429 {
                response.headers_mut().insert("retry-after", HeaderValue::from_static("1200"));
            }
            response
        };
        injector.call_with_faults(ExternalOperation::Http("webhook"), |fault| panic!("{fault:?}"), record).await
    }
    let received = ReceivedRequests::default();
    (serve_routes(Router::new().fallback(respond).with_state((received.clone(), injector))).await, received)
}
