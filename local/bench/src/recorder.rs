//! Records the requests of the payment function, so that other contestants can replay the requests. A proxy in front of
//! the engine and a proxy in front of the gateway record all requests.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::net::TcpListener;

use crate::Failure;

/// The header that contains the DynamoDB operation.
const TARGET_HEADER: &str = "x-amz-target";

/// One recorded request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecordedRequest {
    /// Whether the request went to the gateway, and not to the engine.
    pub is_charge: bool,
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
    /// The body of the response.
    pub response: String,
}

impl RecordedRequest {
    /// Returns the DynamoDB operation of the request.
    pub fn operation(&self) -> &str {
        let target = self.headers.iter().find(|(name, _)| name == TARGET_HEADER).map(|(_, value)| value.as_str());
        operation_name(target.unwrap_or_default())
    }
}

/// Returns the DynamoDB operation of a request with these headers.
pub fn dynamodb_operation(headers: &HeaderMap) -> &str {
    operation_name(headers.get(TARGET_HEADER).and_then(|target| target.to_str().ok()).unwrap_or_default())
}

/// Returns the operation from the value of the header `x-amz-target`, such as `DynamoDB_20120810.GetItem`.
fn operation_name(target: &str) -> &str {
    target.rsplit('.').next().unwrap_or_default()
}

/// The recorded requests, in order.
#[derive(Clone, Default)]
pub struct RequestRecorder(Arc<Mutex<Vec<RecordedRequest>>>);

/// A proxy that records the requests to one server.
#[derive(Clone)]
struct RecordingProxy {
    recorder: RequestRecorder,
    /// Whether the server is the gateway.
    is_charge: bool,
    /// The URL of the server.
    target: String,
    http: reqwest::Client,
}

impl RequestRecorder {
    /// Starts a proxy that records all requests and forwards them to `target`. Returns the URL of the proxy.
    pub async fn start_proxy(&self, target: &str, is_charge: bool) -> Result<String, Failure> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let http = reqwest::Client::builder().no_proxy().build()?;
        let proxy = RecordingProxy { recorder: self.clone(), is_charge, target: target.to_owned(), http };
        let routes = Router::new().fallback(record_and_forward).with_state(proxy);
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Ok(url)
    }

    /// Returns the requests that were recorded since the last call of this method, in order.
    pub fn take_requests(&self) -> Vec<RecordedRequest> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the requests of each subscription, in order. The first element contains all requests that belong to no
    /// subscription, such as the requests for due rows and for run records.
    pub fn requests_by_subscription(&self) -> Vec<Vec<RecordedRequest>> {
        let requests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut chains: BTreeMap<Option<String>, Vec<RecordedRequest>> = BTreeMap::new();
        for request in requests.iter() {
            let body = serde_json::from_str(&request.body).unwrap_or_default();
            chains.entry(subscription_of(&body)).or_default().push(request.clone());
        }
        chains.into_values().collect()
    }
}

/// Returns the id of the subscription that a request with this body writes or charges; `None` if the request concerns
/// no subscription.
pub fn subscription_of(body: &Value) -> Option<String> {
    if let Some(id) = body["subscription"].as_str() {
        return Some(id.to_owned());
    }
    let of_key = |key: &Value| key["SK"]["S"].as_str()?.strip_prefix("SUB#")?.split('#').next().map(str::to_owned);
    let in_transaction = || body["TransactItems"].as_array()?.iter().find_map(|write| of_key(&write["Update"]["Key"]));
    of_key(&body["Key"]).or_else(in_transaction)
}

/// Sends a request to the proxy's server, records the request and the response, and returns the response.
async fn record_and_forward(
    State(proxy): State<RecordingProxy>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let path = uri.path_and_query().map(ToString::to_string).unwrap_or_default();
    let forwarded = headers.iter().filter(|(name, _)| !["host", "content-length"].contains(&name.as_str()));
    let headers: Vec<(String, String)> =
        forwarded.map(|(name, value)| (name.to_string(), value.to_str().unwrap_or_default().to_owned())).collect();
    let mut request = RecordedRequest {
        is_charge: proxy.is_charge,
        method: method.to_string(),
        path: path.clone(),
        headers: headers.clone(),
        body: String::from_utf8_lossy(&body).into_owned(),
        response: String::new(),
    };
    let mut outgoing = proxy.http.request(method, format!("{}{path}", proxy.target)).body(body);
    for (name, value) in &headers {
        outgoing = outgoing.header(name, value);
    }
    match outgoing.send().await {
        Ok(incoming) => {
            let status = incoming.status();
            let content_type = incoming.headers().get("content-type").cloned();
            let body = incoming.bytes().await.unwrap_or_default();
            request.response = String::from_utf8_lossy(&body).into_owned();
            proxy.recorder.0.lock().unwrap_or_else(PoisonError::into_inner).push(request);
            let mut response = (status, body).into_response();
            if let Some(content_type) = content_type {
                response.headers_mut().insert("content-type", content_type);
            }
            response
        }
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}
