//! What the servers of this machine refuse and whom they let go: over real sockets, as a browser or a lost client
//! would come.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::routing::{get, post};
use emulator::{Engine, Limits, serve};
use tokio::net::TcpListener;

const CREDENTIALS: &str =
    "AWS4-HMAC-SHA256 Credential=any/20260101/local/dynamodb/aws4_request, SignedHeaders=host, Signature=0";

/// What is answered to `request` on a connection of its own.
fn answer(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn request(method: &str, host: &str, headers: &[(&str, &str)], body: &str) -> String {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    format!(
        "{method} / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    )
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{answer:?}"))
}

#[test]
fn dynamodb_port_answers_own_programs_and_no_page() {
    let engine = Engine::memory();
    let served = engine.serve("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = served.address;
    let own = address.to_string();
    let rebound = format!("evil.example:{}", address.port());
    let list = |host: &str, more: &[(&str, &str)]| {
        let all =
            [("X-Amz-Target", "DynamoDB_20120810.ListTables"), ("Authorization", CREDENTIALS), ("X-Amz-Date", "x")];
        request("POST", host, &[&all, more].concat(), "{}")
    };
    let told = answer(address, &list(&own, &[]));
    assert!(status(&told) == 200 && told.ends_with(r#"{"TableNames":[]}"#), "any credentials: {told}");

    let preflight = [("Origin", "http://evil.example"), ("Access-Control-Request-Method", "POST")];
    for refused in [
        list(&rebound, &[]),
        list(&own, &[("Origin", "http://evil.example")]),
        list(&own, &[("Origin", "null")]),
        list(&rebound, &[("Origin", &format!("http://{rebound}"))]),
        request("OPTIONS", &own, &preflight, ""),
    ] {
        let told = answer(address, &refused);
        assert_eq!(status(&told), 403, "{refused}");
        assert!(!told.to_lowercase().contains("access-control"), "{told}");
        assert!(told.contains("AccessDeniedException"), "an SDK finds what it looks for: {told}");
    }
    // What a form of another page could send, were there no Origin.
    for incomplete in [
        request("POST", &own, &[("Content-Type", "text/plain")], "{}"),
        request("POST", &own, &[("X-Amz-Target", "DynamoDB_20120810.ListTables")], "{}"),
        request("POST", &own, &[("Authorization", CREDENTIALS), ("X-Amz-Date", "x")], "{}"),
    ] {
        let told = answer(address, &incomplete);
        assert!(status(&told) == 400 && !told.contains("TableNames"), "{told}");
    }
    let told = answer(address, &request("GET", &own, &[], ""));
    assert!(status(&told) == 200 && told.contains("speaks DynamoDB"), "a person with a browser is told: {told}");
}

async fn serving(limits: Limits) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let routes = Router::new()
        .route("/", get(|| async { "here" }).post(|_: Bytes| async { "read" }))
        .route("/never", post(std::future::pending::<()>));
    tokio::spawn(serve(listener, routes, limits));
    address
}

/// Runs `client` where it may block.
async fn blocking<T: Send + 'static>(client: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(client).await.unwrap()
}

fn limits(wait: Duration) -> Limits {
    Limits { connections: 4, wait, lifetime: Duration::from_secs(3_600) }
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_ends_requests_that_are_never_complete() {
    let address = serving(limits(Duration::from_millis(50))).await;
    blocking(move || {
        let own = address.to_string();
        for half in ["", "GET / HTTP/1.1\r\nHo", "GET / HTTP/1.1\r\nHost: x\r\n"] {
            assert_eq!(answer(address, half), "", "an incomplete head is not answered, and its connection is closed");
        }
        let body = format!("POST / HTTP/1.1\r\nHost: {own}\r\nContent-Length: 100\r\n\r\nhalf");
        assert_eq!(status(&answer(address, &body)), 408, "an incomplete body");
        let kept = format!("GET / HTTP/1.1\r\nHost: {own}\r\n\r\n");
        assert!(answer(address, &kept).ends_with("here"), "an idle connection is closed too");
        let never = format!("POST /never HTTP/1.1\r\nHost: {own}\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(status(&answer(address, &never)), 408, "a handler that does not answer");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_answers_though_half_open_requests_take_every_connection() {
    let address = serving(Limits { connections: 32, ..limits(Duration::from_millis(200)) }).await;
    blocking(move || {
        let half_open: Vec<TcpStream> = (0..96)
            .map(|_| {
                let mut stream = TcpStream::connect(address).unwrap();
                stream.write_all(b"GET / HTTP/1.1\r\nHost: ").unwrap();
                stream
            })
            .collect();
        let told = answer(address, &request("GET", &address.to_string(), &[], ""));
        assert!(told.ends_with("here"), "{told}");
        drop(half_open);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_takes_no_more_connections_than_its_limit() {
    let address = serving(Limits { connections: 1, ..limits(Duration::from_secs(60)) }).await;
    blocking(move || {
        let mut first = TcpStream::connect(address).unwrap();
        first.write_all(format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes()).unwrap();
        let mut some = [0; 16];
        assert!(first.read(&mut some).unwrap() > 0, "the first is answered, and stays open");
        let mut second = TcpStream::connect(address).unwrap();
        second.write_all(request("GET", &address.to_string(), &[], "").as_bytes()).unwrap();
        second.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        assert!(second.read(&mut some).is_err(), "the second waits");
        drop(first);
        second.set_read_timeout(None).unwrap();
        let mut told = String::new();
        second.read_to_string(&mut told).unwrap();
        assert!(told.ends_with("here"), "until there is room: {told}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_ends_a_connection_that_has_lived_long_enough() {
    let wait = Duration::from_secs(60);
    let address = serving(Limits { lifetime: Duration::from_millis(50), ..limits(wait) }).await;
    blocking(move || {
        let kept = format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n");
        assert!(answer(address, &kept).ends_with("here"));
    })
    .await;
}
