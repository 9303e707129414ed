//! Tests of single deliveries: endpoints that accept, reject, redirect, respond slowly or hang, and addresses that are
//! not allowed.

use outbound::sign_webhook;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use billing::{DeliveryResponse, EndpointUrl, SigningSecret};
use chrono::TimeDelta;
use outbound::{AllowedAddresses, WebhookSender};
use tokio::sync::Notify;

/// The JSON of the delivered event.
const BODY: &str = r#"{"id":"1","type":"account.created"}"#;

/// The path, headers and body of each request that the merchant's server received.
type ReceivedRequests = Arc<Mutex<Vec<(String, HeaderMap, String)>>>;

/// Starts a merchant's server. Returns its URL and the requests that it receives.
async fn start_merchant_server() -> (String, ReceivedRequests) {
    let received = ReceivedRequests::default();
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let routes = Router::new().fallback(respond).with_state(received.clone());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    (url, received)
}

/// Responds to the paths `/accepts`, `/fails`, `/busy` and `/redirects` as their names say. A request to any other path gets no
/// response.
async fn respond(State(received): State<ReceivedRequests>, uri: Uri, headers: HeaderMap, body: String) -> Response {
    received.lock().unwrap().push((uri.path().to_owned(), headers, body));
    match uri.path() {
        "/accepts" => StatusCode::NO_CONTENT.into_response(),
        "/fails" => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        "/busy" => (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "90")]).into_response(),
        "/redirects" => (StatusCode::TEMPORARY_REDIRECT, [("location", "/accepts")]).into_response(),
        _ => std::future::pending().await,
    }
}

/// Parses the URL `text` of a webhook endpoint.
fn url(text: &str) -> EndpointUrl {
    text.parse().unwrap()
}

/// Sends one delivery to the URL `to`.
async fn deliver(sender: &WebhookSender, to: &str) -> DeliveryResponse {
    sender.deliver_event(&url(to), &[SigningSecret::new([1; 32])], "event-1", 1_700_000_000, BODY).await
}

#[tokio::test]
async fn response_status_decides_the_outcome_and_redirects_are_not_followed() {
    let (server, received) = start_merchant_server().await;
    let sender = WebhookSender::new(AllowedAddresses::Any, Duration::from_millis(300)).unwrap();
    for (path, expected) in [
        ("/accepts", DeliveryResponse::Accepted(204)),
        ("/fails", DeliveryResponse::Rejected { status: 500, retry_after: None }),
        ("/redirects", DeliveryResponse::Rejected { status: 307, retry_after: None }),
        ("/busy", DeliveryResponse::Rejected { status: 429, retry_after: Some(TimeDelta::seconds(90)) }),
        ("/hangs", DeliveryResponse::NoResponse("no response in time".to_owned())),
    ] {
        assert_eq!(deliver(&sender, &(server.clone() + path)).await, expected, "{path}");
    }
    let paths: Vec<_> = received.lock().unwrap().iter().map(|(path, _, _)| path.clone()).collect();
    assert_eq!(paths, ["/accepts", "/fails", "/redirects", "/busy", "/hangs"]);

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let closed_port = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    assert_eq!(deliver(&sender, &closed_port).await, DeliveryResponse::NoResponse("the connection failed".to_owned()));
}

#[tokio::test]
async fn slow_endpoint_does_not_delay_other_deliveries() {
    let (arrived, released) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let signals = (arrived.clone(), released.clone());
    let slow = move || {
        let (arrived, released) = signals.clone();
        async move {
            arrived.notify_one();
            released.notified().await;
            StatusCode::ACCEPTED
        }
    };
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let routes = Router::new().route("/slow", post(slow)).route("/quick", post(async || StatusCode::NO_CONTENT));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    let sender = WebhookSender::new(AllowedAddresses::Any, Duration::from_secs(5)).unwrap();
    let (slow, quick) = (server.clone() + "/slow", server + "/quick");
    let deliver_to_quick = async {
        arrived.notified().await;
        assert_eq!(deliver(&sender, &quick).await, DeliveryResponse::Accepted(204));
        released.notify_one();
    };
    let (slow_response, ()) = tokio::join!(deliver(&sender, &slow), deliver_to_quick);
    assert_eq!(slow_response, DeliveryResponse::Accepted(202));
}

#[tokio::test]
async fn delivery_is_signed_with_every_valid_secret() {
    let (server, received) = start_merchant_server().await;
    let sender = WebhookSender::new(AllowedAddresses::Any, Duration::from_secs(5)).unwrap();
    let secrets = [SigningSecret::new([1; 32]), SigningSecret::new([2; 32])];
    let endpoint = url(&(server + "/accepts"));
    assert_eq!(
        sender.deliver_event(&endpoint, &secrets, "event-1", 1_700_000_000, BODY).await,
        DeliveryResponse::Accepted(204)
    );
    let received = received.lock().unwrap();
    let (_, headers, body) = &received[0];
    assert_eq!(body, BODY);
    for (name, value) in
        [("content-type", "application/json"), ("webhook-id", "event-1"), ("webhook-timestamp", "1700000000")]
    {
        assert_eq!(headers[name], value);
    }
    let signatures = secrets.each_ref().map(|secret| sign_webhook(secret, "event-1", 1_700_000_000, BODY));
    assert_eq!(headers["webhook-signature"], signatures.join(" "));
    assert_ne!(signatures[0], signatures[1]);
}

#[tokio::test]
async fn sender_sends_nothing_to_a_private_address() {
    let (server, received) = start_merchant_server().await;
    let sender = WebhookSender::new(AllowedAddresses::PublicOnly, Duration::from_secs(5)).unwrap();
    let port = server.rsplit(':').next().unwrap();
    assert_eq!(deliver(&sender, &server).await, DeliveryResponse::NoResponse("the URL is not an HTTPS URL".to_owned()));
    for host in
        ["127.0.0.1", "[::1]", "2130706433", "0x7f.1", "localhost", "10.0.0.1", "169.254.169.254", "[::ffff:127.0.0.1]"]
    {
        let response = deliver(&sender, &format!("https://{host}:{port}/accepts")).await;
        assert_eq!(response, DeliveryResponse::NoResponse("the address is not public".to_owned()), "{host}");
    }
    assert!(received.lock().unwrap().is_empty());
}

#[test]
fn endpoint_url_is_an_http_url_without_user_or_fragment() {
    for invalid in [
        "",
        "example.com",
        "ftp://example.com",
        "https://me:secret@example.com",
        "https://example.com/#there",
        "https://",
    ] {
        assert!(invalid.parse::<EndpointUrl>().is_err(), "{invalid}");
    }
    let with_secret = url("https://example.com/hook?token=abc");
    assert_eq!(
        (with_secret.as_str(), format!("{with_secret:?}")),
        ("https://example.com/hook?token=abc", "EndpointUrl(example.com)".to_owned())
    );
}
