//! The HTTP server that all servers of this machine share: it accepts only requests to its own host and from its own
//! origin, and limits the number and the duration of connections.

use std::io::ErrorKind;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::CONNECTION;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::guard::Guard;

/// The pause after an error, such as too many open files, that would also affect the next connection.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(100);

/// The limits for clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The maximum number of open connections. Further connections wait in the operating system's queue.
    pub connections: usize,
    /// The time limit for receiving the head of a request, counted from the moment at which the connection becomes
    /// idle. A second time limit of the same length applies to receiving the body and responding.
    pub wait: Duration,
    /// The maximum duration of a connection. A request that has begun still gets its response.
    pub lifetime: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 128, wait: Duration::from_secs(30), lifetime: Duration::from_secs(300) }
    }
}

/// Serves `routes` on `listener` until the future is dropped.
///
/// # Errors
/// If the listener has no address.
pub async fn serve(listener: TcpListener, routes: Router, limits: Limits) -> std::io::Result<()> {
    let guard = Guard::new(listener.local_addr()?);
    let routes = routes
        .layer(from_fn(move |request, next| with_time_limit(limits.wait, request, next)))
        .layer(from_fn_with_state(guard, Guard::admit));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < limits.connections => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve_connection(stream, routes.clone(), limits));
                }
                Err(error) if is_client_error(error.kind()) => {}
                Err(_) => tokio::time::sleep(PAUSE_AFTER_ERROR).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Serves the requests of one client until the connection is closed or reaches its maximum duration.
async fn serve_connection(stream: TcpStream, routes: Router, limits: Limits) {
    let mut http = http1::Builder::new();
    // The time-out also applies while an open connection waits for its next request.
    http.timer(TokioTimer::new()).header_read_timeout(limits.wait);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes)));
    // Errors of a connection are ignored; only its client is affected.
    if timeout(limits.lifetime, connection.as_mut()).await.is_err() {
        connection.as_mut().graceful_shutdown();
        let _ = timeout(limits.wait, connection).await;
    }
}

/// Responds with 408 if the request body or the response takes longer than `limit`.
async fn with_time_limit(limit: Duration, request: Request, next: Next) -> Response {
    timeout(limit, next.run(request)).await.unwrap_or_else(|_| {
        let body = format!("the request was incomplete or got no response within {} s\n", limit.as_secs());
        // Close the connection instead of reading the rest of the body.
        (StatusCode::REQUEST_TIMEOUT, [(CONNECTION, "close")], body).into_response()
    })
}

/// Returns whether accepting a connection failed because of its client, so that the next connection can be accepted.
fn is_client_error(error: ErrorKind) -> bool {
    matches!(error, ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::ConnectionRefused)
}
