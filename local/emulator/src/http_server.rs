//! How every server on this machine serves: to its own hosts and origins, so many connections at a time, and none for
//! longer than it needs.

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

/// After an error that the next connection would meet too, such as too many open files, this long nothing is accepted.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(100);

/// What clients may take up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Connections at a time. More wait in the operating system's queue.
    pub connections: usize,
    /// For a request's head to arrive, counted from when the connection is idle; and again for its body and its answer.
    pub wait: Duration,
    /// For a connection. A request that has begun is answered.
    pub lifetime: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 128, wait: Duration::from_secs(30), lifetime: Duration::from_secs(300) }
    }
}

/// Serves `routes` on `listener`, for as long as the future is not dropped.
///
/// # Errors
/// If the listener has no address.
pub async fn serve(listener: TcpListener, routes: Router, limits: Limits) -> std::io::Result<()> {
    let guard = Guard::new(listener.local_addr()?);
    let routes = routes
        .layer(from_fn(move |request, next| in_time(limits.wait, request, next)))
        .layer(from_fn_with_state(guard, Guard::admit));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < limits.connections => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, routes.clone(), limits));
                }
                Err(error) if is_of_one_client(error.kind()) => {}
                Err(_) => tokio::time::sleep(PAUSE_AFTER_ERROR).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(stream: TcpStream, routes: Router, limits: Limits) {
    let mut http = http1::Builder::new();
    // Waiting for the next request on an open connection counts as well.
    http.timer(TokioTimer::new()).header_read_timeout(limits.wait);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes)));
    // What ends a connection with an error is the client's to notice.
    if timeout(limits.lifetime, connection.as_mut()).await.is_err() {
        connection.as_mut().graceful_shutdown();
        let _ = timeout(limits.wait, connection).await;
    }
}

async fn in_time(limit: Duration, request: Request, next: Next) -> Response {
    timeout(limit, next.run(request)).await.unwrap_or_else(|_| {
        let why = format!("the request was not complete, or not answered, within {} s\n", limit.as_secs());
        // The rest of its body is not waited for.
        (StatusCode::REQUEST_TIMEOUT, [(CONNECTION, "close")], why).into_response()
    })
}

fn is_of_one_client(error: ErrorKind) -> bool {
    matches!(error, ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::ConnectionRefused)
}
