//! A stand-in for a Lambda function URL: passes HTTP requests as events to several processes of the function, which
//! share one table. Each process handles one event at a time, as in Lambda.

use std::sync::Arc;

use axum::Router;
use axum::body::{Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clock::{Clock as _, SystemClock};
use emulator::{Engine, ServerLimits, serve_http};
use sandbox_function::SandboxTable;
use serde_json::{Map, Value, json};
use testkit::{InvocationResult, LambdaFunction};
use tokio::sync::{Mutex, mpsc};

/// The number of processes of the function, which is also the largest number of events that are handled at the same
/// time.
const FUNCTION_PROCESSES: usize = 4;

/// The requirement for requests to the stand-in, like the `AuthType` of a function URL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FunctionUrlAccess {
    /// The request must have a signature for AWS IAM. The stand-in does not verify it.
    Iam,
    Everyone,
}

/// The state of the stand-in: the processes of the function that handle no event at the moment, and the access rule.
struct FunctionUrlState {
    /// The queue of the idle processes.
    functions: Mutex<mpsc::Receiver<LambdaFunction>>,
    /// Puts a process into the queue after it has handled an event.
    put_back: mpsc::Sender<LambdaFunction>,
    access: FunctionUrlAccess,
}

/// Starts the function with the environment `variables`, and returns the URL of the stand-in.
pub async fn start(access: FunctionUrlAccess, variables: &[(&str, &str)]) -> String {
    let engine = Engine::in_memory();
    SandboxTable::new(engine.client(), "dueday-sandbox", Arc::new(SystemClock)).create_if_absent().await.unwrap();
    let (put_back, functions) = mpsc::channel(FUNCTION_PROCESSES);
    for _ in 0..FUNCTION_PROCESSES {
        let started =
            LambdaFunction::start_on_engine(&engine, env!("CARGO_BIN_EXE_sandbox"), "sandbox", variables).await;
        put_back.send(started).await.unwrap();
    }
    let idle = Arc::new(FunctionUrlState { functions: Mutex::new(functions), put_back, access });
    let listener = tokio::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(serve_http(
        listener,
        Router::new().fallback(forward_to_idle_process).with_state(idle),
        ServerLimits::default(),
    ));
    url
}

/// Passes `request` as an event to an idle process of the function, and returns the response of the process.
async fn forward_to_idle_process(State(idle): State<Arc<FunctionUrlState>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let authorization = parts.headers.get("authorization").and_then(|value| value.to_str().ok());
    if idle.access == FunctionUrlAccess::Iam
        && !authorization.is_some_and(|value| value.starts_with("AWS4-HMAC-SHA256 "))
    {
        return (StatusCode::FORBIDDEN, r#"{"Message":"Forbidden"}"#).into_response();
    }
    let body = to_bytes(body, 1_000_000).await.unwrap();
    let event = event(&parts.method, &parts.uri, &parts.headers, &body);
    let mut function = idle.functions.lock().await.recv().await.unwrap();
    let deadline_ms = SystemClock.now().timestamp_millis() + 29_000;
    let result = function.invoke(&event.to_string(), deadline_ms).await;
    idle.put_back.send(function).await.unwrap();
    match result {
        InvocationResult::Response(response) => http_response(&response),
        InvocationResult::Error(error) => panic!("the function failed: {error}"),
    }
}

/// Returns the event of a request ("Request payload format" of function URLs in the Lambda developer guide).
fn event(method: &Method, uri: &Uri, headers: &HeaderMap, body: &Bytes) -> Value {
    let (method, path, query) = (method.as_str(), uri.path(), uri.query().unwrap_or_default());
    let headers: Map<String, Value> =
        headers.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().into())).collect();
    json!({
        "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": query, "headers": headers,
        "requestContext": {
            "accountId": "123456789012", "apiId": "abc", "domainName": "abc.lambda-url.eu-west-1.on.aws",
            "domainPrefix": "abc", "requestId": "id", "routeKey": "$default", "stage": "$default",
            "time": "12/Mar/2026:19:03:58 +0000", "timeEpoch": 1_773_342_238_000_i64,
            "http": {
                "method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "203.0.113.7", "userAgent": "agent",
            },
        },
        "body": STANDARD.encode(body), "isBase64Encoded": true,
    })
}

/// Returns the HTTP response that the function's `response` describes.
fn http_response(response: &Value) -> Response {
    let status = u16::try_from(response["statusCode"].as_u64().unwrap()).unwrap();
    let body = response["body"].as_str().unwrap_or_default();
    let body = if response["isBase64Encoded"] == true { STANDARD.decode(body).unwrap() } else { body.into() };
    let mut built = (StatusCode::from_u16(status).unwrap(), body).into_response();
    built.headers_mut().clear();
    for (name, value) in response["headers"].as_object().unwrap() {
        built
            .headers_mut()
            .insert(axum::http::HeaderName::try_from(name.as_str()).unwrap(), value.as_str().unwrap().parse().unwrap());
    }
    built
}
