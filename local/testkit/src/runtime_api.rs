//! A Lambda Runtime API on loopback: hands events to a real function process and takes its answers
//! ("Using the Lambda runtime API" in the Lambda developer guide).

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

/// What a function answered to one event.
#[derive(Clone, PartialEq, Debug)]
pub enum Answer {
    Response(Value),
    Error(Value),
}

/// A Runtime API for one function.
#[derive(Debug)]
pub struct RuntimeApi {
    pub address: SocketAddr,
    events: mpsc::Sender<(String, i64)>,
    answers: mpsc::Receiver<Answer>,
    server: tokio::task::JoinHandle<()>,
}

#[derive(Clone)]
struct Shared {
    events: Arc<Mutex<mpsc::Receiver<(String, i64)>>>,
    answers: mpsc::Sender<Answer>,
}

impl RuntimeApi {
    /// Listens on a free port of loopback.
    ///
    /// # Errors
    /// If there is none.
    pub async fn start() -> std::io::Result<Self> {
        let listener = tokio::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (events, for_function) = mpsc::channel(1);
        let (from_function, answers) = mpsc::channel(1);
        let shared = Shared { events: Arc::new(Mutex::new(for_function)), answers: from_function };
        let routes = Router::new()
            .route("/2018-06-01/runtime/invocation/next", get(next))
            .route("/2018-06-01/runtime/invocation/{id}/response", post(response))
            .route("/2018-06-01/runtime/invocation/{id}/error", post(error))
            .route("/2018-06-01/runtime/init/error", post(init_error))
            .with_state(shared);
        let server = tokio::spawn(async move {
            let _ = axum::serve(listener, routes).await;
        });
        Ok(Self { address, events, answers, server })
    }

    /// What a function's process needs in its environment to find this.
    pub fn environment(&self, function: &str) -> [(&'static str, String); 5] {
        [
            ("AWS_LAMBDA_RUNTIME_API", self.address.to_string()),
            ("AWS_LAMBDA_FUNCTION_NAME", function.to_owned()),
            ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST".to_owned()),
            ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256".to_owned()),
            ("AWS_LAMBDA_LOG_FORMAT", "JSON".to_owned()),
        ]
    }

    /// Hands `event` to the function, which has until `deadline_ms` (milliseconds since 1970), and waits for its
    /// answer. `None` once the function's connection is gone for good.
    pub async fn invoke(&mut self, event: &str, deadline_ms: i64) -> Option<Answer> {
        self.events.send((event.to_owned(), deadline_ms)).await.ok()?;
        self.answers.recv().await
    }
}

impl Drop for RuntimeApi {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn next(State(shared): State<Shared>) -> impl IntoResponse {
    let received = shared.events.lock().await.recv().await;
    let Some((event, deadline_ms)) = received else {
        // No more events: the function waits, as it does in Lambda, until its process is ended.
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

async fn response(State(shared): State<Shared>, Path(_): Path<String>, body: Bytes) -> StatusCode {
    answer(&shared, Answer::Response, &body).await
}

async fn error(State(shared): State<Shared>, Path(_): Path<String>, body: Bytes) -> StatusCode {
    answer(&shared, Answer::Error, &body).await
}

async fn init_error(State(shared): State<Shared>, body: Bytes) -> StatusCode {
    answer(&shared, Answer::Error, &body).await
}

async fn answer(shared: &Shared, kind: fn(Value) -> Answer, body: &[u8]) -> StatusCode {
    let value =
        serde_json::from_slice(body).unwrap_or_else(|_| Value::String(String::from_utf8_lossy(body).into_owned()));
    let _ = shared.answers.send(kind(value)).await;
    StatusCode::ACCEPTED
}
