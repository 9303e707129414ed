//! A stand-in on loopback for the Lambda Runtime API: passes events to the process of a function and receives the
//! function's results ("Using the Lambda runtime API" in the Lambda developer guide).

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use serde_json::Value;
use tokio::sync::{Mutex, mpsc};

/// The JSON result of one invocation of a function.
#[derive(Clone, PartialEq, Debug)]
pub enum InvocationResult {
    /// The function succeeded with this response.
    Response(Value),
    /// The function, or its start, failed with this error.
    Error(Value),
}

/// The stand-in for the Lambda Runtime API of one function. Dropping this value stops the server.
#[derive(Debug)]
pub struct RuntimeApi {
    pub address: SocketAddr,
    /// Events for the function, each with its deadline (Unix time in milliseconds).
    events: mpsc::Sender<(String, i64)>,
    results: mpsc::Receiver<InvocationResult>,
    server: tokio::task::JoinHandle<()>,
}

/// The server's ends of the channels to and from [`RuntimeApi`].
#[derive(Clone)]
struct ServerChannels {
    /// Events for the function, each with its deadline (Unix time in milliseconds).
    events: Arc<Mutex<mpsc::Receiver<(String, i64)>>>,
    results: mpsc::Sender<InvocationResult>,
}

impl RuntimeApi {
    /// Starts the server on a free port of the loopback interface.
    ///
    /// # Errors
    /// Returns an error if no port is free.
    pub async fn start() -> std::io::Result<Self> {
        let listener = tokio::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (events, for_function) = mpsc::channel(1);
        let (from_function, results) = mpsc::channel(1);
        let state = ServerChannels { events: Arc::new(Mutex::new(for_function)), results: from_function };
        let routes = Router::new()
            .route("/2018-06-01/runtime/invocation/next", get(send_next_event))
            .route("/2018-06-01/runtime/invocation/{id}/response", post(receive_response))
            .route("/2018-06-01/runtime/invocation/{id}/error", post(receive_error))
            .route("/2018-06-01/runtime/init/error", post(receive_init_error))
            .with_state(state);
        let server = tokio::spawn(async move {
            let _ = axum::serve(listener, routes).await;
        });
        Ok(Self { address, events, results, server })
    }

    /// Returns the environment variables with which the process of `function` connects to this Runtime API.
    pub fn environment_variables(&self, function: &str) -> [(&'static str, String); 5] {
        [
            ("AWS_LAMBDA_RUNTIME_API", self.address.to_string()),
            ("AWS_LAMBDA_FUNCTION_NAME", function.to_owned()),
            ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST".to_owned()),
            ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256".to_owned()),
            ("AWS_LAMBDA_LOG_FORMAT", "JSON".to_owned()),
        ]
    }

    /// Passes `event` with the deadline `deadline_ms` (Unix time in milliseconds) to the function, and waits for its
    /// result. Returns `None` if the server has stopped.
    pub async fn invoke(&mut self, event: &str, deadline_ms: i64) -> Option<InvocationResult> {
        self.events.send((event.to_owned(), deadline_ms)).await.ok()?;
        self.results.recv().await
    }
}

impl Drop for RuntimeApi {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Responds to the function's request for its next event.
async fn send_next_event(State(state): State<ServerChannels>) -> impl IntoResponse {
    let received = state.events.lock().await.recv().await;
    let Some((event, deadline_ms)) = received else {
        // There are no more events. As in Lambda, the function waits until its process is ended.
        return std::future::pending().await;
    };
    let mut headers = HeaderMap::new();
    headers.insert("lambda-runtime-aws-request-id", HeaderValue::from_static("8476a536-e9f4-11e8-9739-2dfe598c3fcd"));
    headers.insert("lambda-runtime-deadline-ms", HeaderValue::from(deadline_ms));
    headers.insert(
        "lambda-runtime-invoked-function-arn",
        HeaderValue::from_static("arn:aws:lambda:eu-west-1:123456789012:function:dueday"),
    );
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    (StatusCode::OK, headers, event)
}

/// Receives the response of a successful invocation from the function.
async fn receive_response(State(state): State<ServerChannels>, Path(_): Path<String>, body: Bytes) -> StatusCode {
    send_result(&state, InvocationResult::Response, &body).await
}

/// Receives the error of a failed invocation from the function.
async fn receive_error(State(state): State<ServerChannels>, Path(_): Path<String>, body: Bytes) -> StatusCode {
    send_result(&state, InvocationResult::Error, &body).await
}

/// Receives the error of a failed start from the function.
async fn receive_init_error(State(state): State<ServerChannels>, body: Bytes) -> StatusCode {
    send_result(&state, InvocationResult::Error, &body).await
}

/// Passes the result in `body` to [`RuntimeApi::invoke`].
async fn send_result(state: &ServerChannels, kind: fn(Value) -> InvocationResult, body: &[u8]) -> StatusCode {
    // A body that is not JSON becomes a JSON string.
    let value =
        serde_json::from_slice(body).unwrap_or_else(|_| Value::String(String::from_utf8_lossy(body).into_owned()));
    let _ = state.results.send(kind(value)).await;
    StatusCode::ACCEPTED
}
