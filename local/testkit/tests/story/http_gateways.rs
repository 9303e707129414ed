//! Tests with gateways over HTTP whose responses are errors or cannot be read.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use emulator::EngineConnection;
use gateways::{HttpGateway, PaymentGateway as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::world::{World, billing_time, new_subscription, nonzero_counts};

/// The due date of the subscriptions in the tests of unusable responses.
const DAY: &str = "2026-03-10";

/// Starts an HTTP gateway that responds to all requests with `status` and `body`, except to requests for its account.
/// Returns its URL.
async fn start_http_gateway(status: &'static str, body: &'static str) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut request = [0; 4_096];
            let read = socket.read(&mut request).await.unwrap_or(0);
            // Requests for the gateway's account succeed, because a run does not start without it.
            let is_account = request[..read].starts_with(b"GET /v1/account");
            let account = r#"{"Kind":"sandbox","Account":"sandbox_in_memory","Live":false}"#;
            let (status, body) = if is_account { ("200 OK", account) } else { (status, body) };
            let length = body.len();
            let response = format!(
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nretry-after: 0\r\nconnection: close\r\n\r\n{body}"
            );
            let _ = socket.write_all(response.as_bytes()).await;
        }
    });
    url
}

/// A payment of another program names no subscription. If a subscription cannot be read, the payment may be ours.
#[tokio::test]
async fn look_up_fails_for_a_payment_with_an_unreadable_subscription_and_ignores_other_programs() {
    let foreign = r#"[{"id": "pay_1", "amount": 5}, {"id": "pay_2", "subscription": null}]"#;
    let unreadable = r#"[{"id": "pay_1", "subscription": "01kk8qw0g0000000000000000a"}]"#;
    for (body, is_read) in [(foreign, true), (unreadable, false), (r#"[{"subscription": 7}]"#, false)] {
        let url = start_http_gateway("200 OK", body).await;
        let gateway = HttpGateway::new(&url, Duration::from_secs(5));
        let listed = gateway.payments_of_customer(&"cus_1".parse().unwrap(), billing_time(DAY)).await;
        assert_eq!(listed.as_ref().map(Vec::len).ok(), is_read.then_some(0), "{body}: {listed:?}");
    }
}

#[tokio::test]
async fn run_stops_at_consecutive_failures_of_new_charges_but_not_of_look_ups() {
    let world = World::with_settings(&[("DUEDAY_CONCURRENCY", "3")]).await;
    world.set_payment_limits(&[("gateway-failures", "10")]).await;
    for day in 1..=25 {
        world.store(&new_subscription(day, "2026-02-28")).await;
    }
    let url = start_http_gateway("503 Service Unavailable", "").await;
    let unavailable = Arc::new(HttpGateway::new(&url, Duration::from_secs(5)));
    let payments = world.separate_payment_batch(EngineConnection::default(), unavailable).await;
    for hours in [0, 2] {
        let now = billing_time("2026-03-25") + TimeDelta::hours(hours);
        let report = world.run_payment_batch(&payments, "2026-03-25", now).await;
        let stopped = report.stopped.as_deref().unwrap_or_default();
        assert!(stopped.contains("times in a row"), "after {hours} hours: {stopped:?}");
        // Up to two concurrent charges of other accounts had already started; their outcomes are unknown, too.
        assert!((10..13).contains(&report.counts.in_doubt), "after {hours} hours: {report:?}");
    }
    let report =
        world.run_payment_batch(&payments, "2026-03-25", billing_time("2026-03-25") + TimeDelta::hours(4)).await;
    assert_eq!(
        (report.stopped, report.complete),
        (None, true),
        "fewer than ten new charges fail, and failed look-ups do not stop a run"
    );
}

/// The response body of a successful charge whose payment has the status processing, which is a contradiction.
const SUCCEEDED_AND_PROCESSING: &str = r#"{"succeeded":{"id":"pay_1","account":"acme","subscription":"0000000001000000000000000A","due_on":"2026-03-10","attempt_no":1,"amount":1299,"currency":"EUR","status":"processing","created_at":"2026-03-10T06:00:00Z"}}"#;

#[tokio::test]
async fn charge_stays_in_doubt_after_an_unusable_http_response() {
    // Each case contains the status and the body of the response, and whether the response stops the run.
    for (status, body, stops) in [
        ("409 Conflict", "{}", false),
        ("429 Too Many Requests", "{}", false),
        ("500 Internal Server Error", "{}", false),
        ("502 Bad Gateway", "<html>", false),
        ("200 OK", "<html>", false),
        ("200 OK", "{\"won\":1}", false),
        // The next three bodies contradict themselves.
        ("200 OK", r#"{"declined":{"code":"lost_card","hard":true,"status":"succeeded"}}"#, false),
        ("200 OK", r#"{"rejected":{"code":"no_such_card","status":"processing"}}"#, false),
        ("200 OK", SUCCEEDED_AND_PROCESSING, false),
        ("401 Unauthorized", "{}", true),
        ("403 Forbidden", "{}", true),
    ] {
        let (world, subscription) = (World::new().await, new_subscription(10, "2026-03-01"));
        world.store(&subscription).await;
        let url = start_http_gateway(status, body).await;
        let client = Arc::new(HttpGateway::new(&url, Duration::from_secs(5)));
        let payments = world.separate_payment_batch(EngineConnection::default(), client).await;
        let report = world.run_payment_batch(&payments, DAY, billing_time(DAY)).await;
        assert_eq!(
            (nonzero_counts(&report), report.stopped.is_some()),
            (vec![("in_doubt", 1)], stops),
            "{status} {body}"
        );
        assert!(world.load(&subscription).await.attempt.is_some(), "{status} {body}: the attempt stays open");
        assert_eq!(nonzero_counts(&world.run_payments("2026-03-11").await), [("paid", 1)], "{status} {body}");
    }
}
