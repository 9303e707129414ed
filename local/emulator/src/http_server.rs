//! The HTTP server that all servers of this machine share: it accepts only requests to its own host and from its own
//! origin, and limits the number and the duration of connections.

use std::io::ErrorKind;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use futures::StreamExt as _;
use futures::stream::poll_fn;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use crate::guard::HostGuard;

/// The pause after an error that would also affect the next connection, such as too many open files.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(100);

/// The limits for the clients of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServerLimits {
    /// The maximum number of open connections. A further connection replaces the open connection that has been idle for
    /// the longest time. If no open connection is idle, the further connection waits.
    pub max_connections: usize,
    /// The time limit for receiving the head of a request, counted from the moment at which the connection becomes
    /// idle. A second time limit of the same length applies to receiving the body and responding.
    pub request_timeout: Duration,
    /// The maximum duration of a connection. A request that has begun still gets its response.
    pub max_connection_age: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            max_connections: 128,
            request_timeout: Duration::from_secs(30),
            max_connection_age: Duration::from_secs(300),
        }
    }
}

/// Serves `routes` on `listener` until the future is dropped.
///
/// # Errors
/// If the listener has no address.
pub async fn serve_http(listener: TcpListener, routes: Router, limits: ServerLimits) -> std::io::Result<()> {
    let guard = HostGuard::new(listener.local_addr()?);
    let routes = routes
        .layer(from_fn(move |request, next| with_time_limit(limits.request_timeout, request, next)))
        .layer(from_fn_with_state(guard, HostGuard::admit))
        .layer(from_fn(close_if_body_is_unread));
    let mut connections = JoinSet::new();
    let mut opened: Vec<OpenConnection> = Vec::new();
    let idle = Arc::new(IdleEvents::default());
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    close_idle_connection_if_full(&mut connections, &mut opened, limits.max_connections, &idle).await;
                    let activity = Arc::new(ConnectionActivity::new(idle.clone()));
                    let task = connections.spawn(serve_connection(stream, routes.clone(), limits, activity.clone()));
                    opened.push(OpenConnection { task, activity });
                }
                Err(error) if is_client_error(error.kind()) => {}
                Err(_) => tokio::time::sleep(PAUSE_AFTER_ERROR).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// An open connection.
struct OpenConnection {
    task: AbortHandle,
    activity: Arc<ConnectionActivity>,
}

/// Records whether a connection is idle, and since when. The time is the number of an idle event (see [`IdleEvents`]).
struct ConnectionActivity {
    /// The number of requests in progress: 0 or 1. The head of a request that is still incomplete does not count.
    requests: AtomicUsize,
    /// The number of the idle event at which the connection last became idle.
    idle_since: AtomicU64,
    events: Arc<IdleEvents>,
}

/// The idle events of all connections. An idle event happens when a connection becomes idle. The events are numbered in
/// their order.
#[derive(Default)]
struct IdleEvents {
    count: AtomicU64,
    /// Wakes a new connection that waits until an open connection becomes idle.
    happened: Notify,
}

impl ConnectionActivity {
    /// Creates the record of a new connection, which is idle.
    fn new(events: Arc<IdleEvents>) -> Self {
        let idle_since = events.count.fetch_add(1, Ordering::SeqCst).into();
        Self { requests: AtomicUsize::new(0), idle_since, events }
    }

    fn begin_request(&self) {
        self.requests.fetch_add(1, Ordering::SeqCst);
    }

    fn end_request(&self) {
        self.idle_since.store(self.events.count.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
        self.requests.fetch_sub(1, Ordering::SeqCst);
        self.events.happened.notify_one();
    }

    /// Returns the number of the idle event at which the connection became idle; `None` if a request is in progress.
    fn idle_since(&self) -> Option<u64> {
        (self.requests.load(Ordering::SeqCst) == 0).then(|| self.idle_since.load(Ordering::SeqCst))
    }
}

/// Makes sure that fewer than `limit` connections are open: closes the connection that has been idle for the longest
/// time, or waits until a connection becomes idle or is closed. Otherwise clients that send nothing could use all
/// connections.
async fn close_idle_connection_if_full(
    connections: &mut JoinSet<()>,
    opened: &mut Vec<OpenConnection>,
    limit: usize,
    events: &IdleEvents,
) {
    opened.retain(|connection| !connection.task.is_finished());
    while opened.len() >= limit {
        let idle = opened.iter().enumerate().filter_map(|(n, one)| Some((one.activity.idle_since()?, n))).min();
        if let Some((_, n)) = idle {
            opened.swap_remove(n).task.abort();
        } else {
            tokio::select! {
                () = events.happened.notified() => {}
                _ = connections.join_next() => {}
            }
            opened.retain(|connection| !connection.task.is_finished());
        }
    }
}

/// Serves the requests of one client until the connection is closed or reaches its maximum duration.
/// Records in `activity` whether a request is in progress.
async fn serve_connection(stream: TcpStream, routes: Router, limits: ServerLimits, activity: Arc<ConnectionActivity>) {
    let routes = routes.layer(from_fn(move |request: Request, next: Next| {
        let activity = activity.clone();
        async move {
            activity.begin_request();
            let response = next.run(request).await;
            activity.end_request();
            response
        }
    }));
    let mut http = http1::Builder::new();
    // The time limit for the head of a request also applies while an open connection waits for its next request.
    http.timer(TokioTimer::new()).header_read_timeout(limits.request_timeout);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes)));
    // An error of a connection affects only the client of this connection, so errors are ignored.
    if timeout(limits.max_connection_age, connection.as_mut()).await.is_err() {
        connection.as_mut().graceful_shutdown();
        let _ = timeout(limits.request_timeout, connection).await;
    }
}

/// Responds with 408 if reading the request body and creating the response together take longer than `limit`.
async fn with_time_limit(limit: Duration, request: Request, next: Next) -> Response {
    timeout(limit, next.run(request)).await.unwrap_or_else(|_| {
        let body = format!("the request was incomplete or got no response within {} s\n", limit.as_secs());
        // The request may still be in progress, so the connection gets no further request.
        (StatusCode::REQUEST_TIMEOUT, [(CONNECTION, "close")], body).into_response()
    })
}

/// Adds the header `Connection: close` to a response before which the body of the request was not completely read.
/// Otherwise, the client could send its next request on the same connection, and a proxy could take the rest of the body
/// for the start of that request (request smuggling).
async fn close_if_body_is_unread(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    if body.is_end_stream() {
        return next.run(Request::from_parts(parts, body)).await;
    }
    let is_read = Arc::new(AtomicBool::new(false));
    let mark_as_read = {
        let is_read = is_read.clone();
        poll_fn(move |_| {
            is_read.store(true, Ordering::SeqCst);
            Poll::Ready(None)
        })
    };
    let body = Body::from_stream(body.into_data_stream().chain(mark_as_read));
    let mut response = next.run(Request::from_parts(parts, body)).await;
    if !is_read.load(Ordering::SeqCst) {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Returns whether accepting a connection failed because of its client, so that the next connection can be accepted.
fn is_client_error(error: ErrorKind) -> bool {
    matches!(error, ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::ConnectionRefused)
}
