//! Records what the function sends, for the floor to send again: a proxy before the engine and one before the gateway.

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

const TARGET: &str = "x-amz-target";

/// One request, as it was sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    pub is_charge: bool,
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
    /// What was answered.
    pub answer: String,
}

impl Request {
    /// The operation of DynamoDB that it asks for.
    pub fn operation(&self) -> &str {
        let target = self.headers.iter().find(|(name, _)| name == TARGET).map(|(_, value)| value.as_str());
        named(target.unwrap_or_default())
    }
}

/// The operation of DynamoDB that a request with these headers asks for.
pub fn operation(headers: &HeaderMap) -> &str {
    named(headers.get(TARGET).and_then(|target| target.to_str().ok()).unwrap_or_default())
}

fn named(target: &str) -> &str {
    target.rsplit('.').next().unwrap_or_default()
}

/// What was sent, in order.
#[derive(Clone, Default)]
pub struct Recorder(Arc<Mutex<Vec<Request>>>);

#[derive(Clone)]
struct Proxy {
    recorder: Recorder,
    is_charge: bool,
    to: String,
    http: reqwest::Client,
}

impl Recorder {
    /// An address that leads to `to`, and records what passes.
    pub async fn before(&self, to: &str, is_charge: bool) -> Result<String, Failure> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let http = reqwest::Client::builder().no_proxy().build()?;
        let proxy = Proxy { recorder: self.clone(), is_charge, to: to.to_owned(), http };
        let routes = Router::new().fallback(pass).with_state(proxy);
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Ok(url)
    }

    /// What was sent about each subscription, in order; what is about none (pages, records of runs) comes first, as one.
    pub fn chains(&self) -> Vec<Vec<Request>> {
        let requests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut chains: BTreeMap<Option<String>, Vec<Request>> = BTreeMap::new();
        for request in requests.iter() {
            let body = serde_json::from_str(&request.body).unwrap_or_default();
            chains.entry(subscription_of(&body)).or_default().push(request.clone());
        }
        chains.into_values().collect()
    }
}

/// The subscription that a request with this body writes or charges.
pub fn subscription_of(body: &Value) -> Option<String> {
    if let Some(id) = body["subscription"].as_str() {
        return Some(id.to_owned());
    }
    let of_key = |key: &Value| key["SK"]["S"].as_str()?.strip_prefix("SUB#")?.split('#').next().map(str::to_owned);
    let in_transaction = || body["TransactItems"].as_array()?.iter().find_map(|write| of_key(&write["Update"]["Key"]));
    of_key(&body["Key"]).or_else(in_transaction)
}

async fn pass(State(proxy): State<Proxy>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let path = uri.path_and_query().map(ToString::to_string).unwrap_or_default();
    let named = headers.iter().filter(|(name, _)| !["host", "content-length"].contains(&name.as_str()));
    let headers: Vec<(String, String)> =
        named.map(|(name, value)| (name.to_string(), value.to_str().unwrap_or_default().to_owned())).collect();
    let mut request = Request {
        is_charge: proxy.is_charge,
        method: method.to_string(),
        path: path.clone(),
        headers: headers.clone(),
        body: String::from_utf8_lossy(&body).into_owned(),
        answer: String::new(),
    };
    let mut passed = proxy.http.request(method, format!("{}{path}", proxy.to)).body(body);
    for (name, value) in &headers {
        passed = passed.header(name, value);
    }
    match passed.send().await {
        Ok(answer) => {
            let status = answer.status();
            let kind = answer.headers().get("content-type").cloned();
            let body = answer.bytes().await.unwrap_or_default();
            request.answer = String::from_utf8_lossy(&body).into_owned();
            proxy.recorder.0.lock().unwrap_or_else(PoisonError::into_inner).push(request);
            let mut response = (status, body).into_response();
            if let Some(kind) = kind {
                response.headers_mut().insert("content-type", kind);
            }
            response
        }
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}
