//! Tests of the local servers over real sockets: they refuse requests of foreign web pages, and end incomplete requests
//! and long connections.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use emulator::{Engine, ServerLimits, serve_http};
use tokio::net::TcpListener;

/// An `Authorization` header with invented credentials.
const CREDENTIALS: &str =
    "AWS4-HMAC-SHA256 Credential=any/20260101/local/dynamodb/aws4_request, SignedHeaders=host, Signature=0";

/// Sends `request` on a new connection, and returns the response.
fn send_request(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

/// Returns the text of an HTTP request for the path `/`.
fn http_request(method: &str, host: &str, headers: &[(&str, &str)], body: &str) -> String {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    format!(
        "{method} / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    )
}

/// Returns the HTTP status in the text of a response.
fn response_status(response: &str) -> u16 {
    response.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{response:?}"))
}

#[test]
fn dynamodb_port_accepts_local_programs_and_refuses_web_pages() {
    let engine = Engine::in_memory();
    let served = engine.serve("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = served.address;
    let own_host = address.to_string();
    let rebound = format!("evil.example:{}", address.port());
    let list = |host: &str, extra_headers: &[(&str, &str)]| {
        let all =
            [("X-Amz-Target", "DynamoDB_20120810.ListTables"), ("Authorization", CREDENTIALS), ("X-Amz-Date", "x")];
        http_request("POST", host, &[&all, extra_headers].concat(), "{}")
    };
    let response = send_request(address, &list(&own_host, &[]));
    assert!(
        response_status(&response) == 200 && response.ends_with(r#"{"TableNames":[]}"#),
        "any credentials are accepted: {response}"
    );

    let preflight = [("Origin", "http://evil.example"), ("Access-Control-Request-Method", "POST")];
    for refused in [
        list(&rebound, &[]),
        list(&own_host, &[("Origin", "http://evil.example")]),
        list(&own_host, &[("Origin", "null")]),
        list(&rebound, &[("Origin", &format!("http://{rebound}"))]),
        http_request("OPTIONS", &own_host, &preflight, ""),
    ] {
        let response = send_request(address, &refused);
        assert_eq!(response_status(&response), 403, "{refused}");
        assert!(!response.to_lowercase().contains("access-control"), "{response}");
        assert!(response.contains("AccessDeniedException"), "an SDK gets the error type that it expects: {response}");
    }
    // Each request lacks the operation or the credentials. A form on a foreign web page can send neither the operation
    // nor credentials.
    for incomplete in [
        http_request("POST", &own_host, &[("Content-Type", "text/plain")], "{}"),
        http_request("POST", &own_host, &[("X-Amz-Target", "DynamoDB_20120810.ListTables")], "{}"),
        http_request("POST", &own_host, &[("Authorization", CREDENTIALS), ("X-Amz-Date", "x")], "{}"),
    ] {
        let response = send_request(address, &incomplete);
        assert!(response_status(&response) == 400 && !response.contains("TableNames"), "{response}");
    }
    let response = send_request(address, &http_request("GET", &own_host, &[], ""));
    assert!(
        response_status(&response) == 200 && response.contains("speaks DynamoDB"),
        "a browser gets a hint: {response}"
    );
}

/// Starts a server whose path `/` responds, whose path `/unread` responds without reading the body, whose path `/limited`
/// reads at most four bytes, and whose path `/never` never responds. Returns its address.
async fn start_server(limits: ServerLimits) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let routes = Router::new()
        .route("/", get(|| async { "here" }).post(|_: Bytes| async { "read" }))
        .route("/unread", post(|| async { "unread" }))
        .route("/limited", post(|_: Bytes| async { "read" }).layer(DefaultBodyLimit::max(4)))
        .route("/never", post(std::future::pending::<()>));
    tokio::spawn(serve_http(listener, routes, limits));
    address
}

/// Runs `client` on a thread that may block.
async fn run_blocking_client<T: Send + 'static>(client: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(client).await.unwrap()
}

/// Returns limits with the time limit `request_timeout` for a request.
fn limits(request_timeout: Duration) -> ServerLimits {
    ServerLimits { max_connections: 4, request_timeout, max_connection_age: Duration::from_secs(3_600) }
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_ends_incomplete_requests_and_slow_handlers() {
    let address = start_server(limits(Duration::from_millis(50))).await;
    run_blocking_client(move || {
        let own_host = address.to_string();
        for incomplete in ["", "GET / HTTP/1.1\r\nHo", "GET / HTTP/1.1\r\nHost: x\r\n"] {
            assert_eq!(
                send_request(address, incomplete),
                "",
                "an incomplete head gets no response, and its connection is closed"
            );
        }
        let body = format!("POST / HTTP/1.1\r\nHost: {own_host}\r\nContent-Length: 100\r\n\r\nhalf");
        assert_eq!(response_status(&send_request(address, &body)), 408, "an incomplete body");
        let keep_alive = format!("GET / HTTP/1.1\r\nHost: {own_host}\r\n\r\n");
        assert!(send_request(address, &keep_alive).ends_with("here"), "an idle connection is closed too");
        let never = format!("POST /never HTTP/1.1\r\nHost: {own_host}\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(response_status(&send_request(address, &never)), 408, "a handler that never responds");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_responds_at_once_when_silent_clients_and_incomplete_requests_use_every_connection() {
    // The long time limit closes no connection in this test. The server must close connections without a complete
    // request to accept the further connection.
    let address = start_server(ServerLimits { max_connections: 32, ..limits(Duration::from_secs(3_600)) }).await;
    run_blocking_client(move || {
        for sent in ["", "GET / HTTP/1.1\r\nHost: "] {
            let open: Vec<TcpStream> = (0..300)
                .map(|_| {
                    let mut stream = TcpStream::connect(address).unwrap();
                    stream.write_all(sent.as_bytes()).unwrap();
                    stream
                })
                .collect();
            let response = send_request(address, &http_request("GET", &address.to_string(), &[], ""));
            assert!(response.ends_with("here"), "{response}");
            drop(open);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn full_server_closes_an_idle_connection_but_no_connection_with_a_request_in_progress() {
    let address = start_server(ServerLimits { max_connections: 1, ..limits(Duration::from_secs(60)) }).await;
    run_blocking_client(move || {
        let get = |stream: &mut TcpStream| {
            stream.write_all(http_request("GET", &address.to_string(), &[], "").as_bytes()).unwrap();
        };
        let mut buffer = [0; 256];
        let mut busy = TcpStream::connect(address).unwrap();
        let head = format!("POST / HTTP/1.1\r\nHost: {address}\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
        busy.write_all(head.as_bytes()).unwrap();
        // The status 100 shows that the handler has begun to read the body, so a request is in progress.
        assert!(busy.read(&mut buffer).unwrap() > 0 && buffer.starts_with(b"HTTP/1.1 100"));
        let mut waiting = TcpStream::connect(address).unwrap();
        get(&mut waiting);
        waiting.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        assert!(waiting.read(&mut buffer).is_err(), "it waits for the connection with a request in progress");
        busy.write_all(b"body").unwrap();
        let length = busy.read(&mut buffer).unwrap();
        assert!(buffer[..length].ends_with(b"read"), "it gets its response");
        let mut response = String::new();
        waiting.set_read_timeout(None).unwrap();
        waiting.read_to_string(&mut response).unwrap();
        assert!(response.ends_with("here"), "{response}");

        let mut idle = TcpStream::connect(address).unwrap();
        idle.write_all(format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes()).unwrap();
        assert!(idle.read(&mut buffer).unwrap() > 0, "it gets a response and stays open");
        let response = send_request(address, &http_request("GET", &address.to_string(), &[], ""));
        assert!(response.ends_with("here"), "{response}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_closes_a_connection_after_its_maximum_duration() {
    let wait = Duration::from_secs(60);
    let address = start_server(ServerLimits { max_connection_age: Duration::from_millis(50), ..limits(wait) }).await;
    run_blocking_client(move || {
        let keep_alive = format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n");
        assert!(send_request(address, &keep_alive).ends_with("here"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn response_ends_the_connection_unless_the_body_of_the_request_was_read() {
    let address = start_server(limits(Duration::from_secs(60))).await;
    run_blocking_client(move || {
        // The start of a second request, as the body of the first one.
        let hidden = format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n");
        let head = |method: &str, path: &str, host: &str, length: usize| {
            format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n")
        };
        let own = address.to_string();
        for (request, status) in [
            (head("POST", "/unread", &own, hidden.len()), 200),
            (head("POST", "/limited", &own, hidden.len()), 413),
            (head("POST", "/nowhere", &own, hidden.len()), 404),
            (head("DELETE", "/", &own, hidden.len()), 405),
            (head("POST", "/", "evil.example", hidden.len()), 403),
            (head("POST", "/", &own, hidden.len()) + "Origin: http://evil.example\r\n", 403),
        ] {
            // The client waits until the server closes the connection.
            let response = send_request(address, &format!("{request}\r\n{hidden}"));
            assert_eq!(response_status(&response), status, "{request}: {response}");
            assert!(response.to_lowercase().contains("\r\nconnection: close\r\n"), "{request}: {response}");
            assert_eq!(response.matches("HTTP/1.1 ").count(), 1, "{request}: {response}");
        }
        let mut stream = TcpStream::connect(address).unwrap();
        let mut buffer = [0; 1_024];
        for _ in 0..2 {
            let request = format!("{}\r\nbody", head("POST", "/", &own, 4));
            stream.write_all(request.as_bytes()).unwrap();
            let length = stream.read(&mut buffer).unwrap();
            let response = String::from_utf8_lossy(&buffer[..length]).to_lowercase();
            assert!(response.ends_with("read") && !response.contains("connection: close"), "{response}");
        }
    })
    .await;
}
