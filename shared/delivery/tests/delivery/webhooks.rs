//! One delivery: to programs that take it, take their time, refuse it, redirect it or hang, and to addresses that may not be reached.

use delivery::sign;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use billing::{Answer, EndpointUrl, Secret};
use delivery::{Reach, Sender};
use tokio::sync::Notify;

const BODY: &str = r#"{"id":"1","type":"account.created"}"#;

type Got = Arc<Mutex<Vec<(String, HeaderMap, String)>>>;

/// A program of a merchant's, and what it was sent.
async fn program() -> (String, Got) {
    let got = Got::default();
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let routes = Router::new().fallback(answer).with_state(got.clone());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    (url, got)
}

async fn answer(State(got): State<Got>, uri: Uri, headers: HeaderMap, body: String) -> Response {
    got.lock().unwrap().push((uri.path().to_owned(), headers, body));
    match uri.path() {
        "/taken" => StatusCode::NO_CONTENT.into_response(),
        "/broken" => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        "/moved" => (StatusCode::TEMPORARY_REDIRECT, [("location", "/taken")]).into_response(),
        _ => std::future::pending().await,
    }
}

fn url(text: &str) -> EndpointUrl {
    text.parse().unwrap()
}

async fn deliver(sender: &Sender, to: &str) -> Answer {
    sender.deliver(&url(to), &[Secret::new([1; 32])], "event-1", 1_700_000_000, BODY).await
}

#[tokio::test]
async fn delivery_is_judged_by_its_status_and_follows_no_redirect() {
    let (program, got) = program().await;
    let sender = Sender::new(Reach::Anywhere, Duration::from_millis(300)).unwrap();
    for (path, answered) in [
        ("/taken", Answer::Taken(204)),
        ("/broken", Answer::Refused(500)),
        ("/moved", Answer::Refused(307)),
        ("/hangs", Answer::None("it did not answer in time".to_owned())),
    ] {
        assert_eq!(deliver(&sender, &(program.clone() + path)).await, answered, "{path}");
    }
    let paths: Vec<_> = got.lock().unwrap().iter().map(|(path, _, _)| path.clone()).collect();
    assert_eq!(paths, ["/taken", "/broken", "/moved", "/hangs"]);

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    assert_eq!(deliver(&sender, &nobody).await, Answer::None("it cannot be connected to".to_owned()));
}

#[tokio::test]
async fn slow_program_is_waited_for_and_keeps_no_other_delivery_waiting() {
    let (arrived, released) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let both = (arrived.clone(), released.clone());
    let slow = move || {
        let (arrived, released) = both.clone();
        async move {
            arrived.notify_one();
            released.notified().await;
            StatusCode::ACCEPTED
        }
    };
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let program = format!("http://{}", listener.local_addr().unwrap());
    let routes = Router::new().route("/slow", post(slow)).route("/quick", post(async || StatusCode::NO_CONTENT));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    let sender = Sender::new(Reach::Anywhere, Duration::from_secs(5)).unwrap();
    let (slow, quick) = (program.clone() + "/slow", program + "/quick");
    let meanwhile = async {
        arrived.notified().await;
        assert_eq!(deliver(&sender, &quick).await, Answer::Taken(204));
        released.notify_one();
    };
    let (slow, ()) = tokio::join!(deliver(&sender, &slow), meanwhile);
    assert_eq!(slow, Answer::Taken(202));
}

#[tokio::test]
async fn delivery_is_signed_with_every_valid_secret() {
    let (program, got) = program().await;
    let sender = Sender::new(Reach::Anywhere, Duration::from_secs(5)).unwrap();
    let secrets = [Secret::new([1; 32]), Secret::new([2; 32])];
    let to = url(&(program + "/taken"));
    assert_eq!(sender.deliver(&to, &secrets, "event-1", 1_700_000_000, BODY).await, Answer::Taken(204));
    let got = got.lock().unwrap();
    let (_, headers, body) = &got[0];
    assert_eq!(body, BODY);
    for (name, value) in
        [("content-type", "application/json"), ("webhook-id", "event-1"), ("webhook-timestamp", "1700000000")]
    {
        assert_eq!(headers[name], value);
    }
    let signed = secrets.each_ref().map(|secret| sign(secret, "event-1", 1_700_000_000, BODY));
    assert_eq!(headers["webhook-signature"], signed.join(" "));
    assert_ne!(signed[0], signed[1]);
}

#[tokio::test]
async fn nothing_is_sent_to_an_address_inside() {
    let (program, got) = program().await;
    let sender = Sender::new(Reach::Public, Duration::from_secs(5)).unwrap();
    let port = program.rsplit(':').next().unwrap();
    assert_eq!(deliver(&sender, &program).await, Answer::None("it is not reached by HTTPS".to_owned()));
    for host in
        ["127.0.0.1", "[::1]", "2130706433", "0x7f.1", "localhost", "10.0.0.1", "169.254.169.254", "[::ffff:127.0.0.1]"]
    {
        let answer = deliver(&sender, &format!("https://{host}:{port}/taken")).await;
        assert_eq!(answer, Answer::None("its address is not public".to_owned()), "{host}");
    }
    assert!(got.lock().unwrap().is_empty());
}

#[test]
fn endpoint_url_is_plain() {
    for wrong in [
        "",
        "example.com",
        "ftp://example.com",
        "https://me:secret@example.com",
        "https://example.com/#there",
        "https://",
    ] {
        assert!(wrong.parse::<EndpointUrl>().is_err(), "{wrong}");
    }
    let with_secret = url("https://example.com/hook?token=abc");
    assert_eq!(
        (with_secret.as_str(), format!("{with_secret:?}")),
        ("https://example.com/hook?token=abc", "EndpointUrl(example.com)".to_owned())
    );
}
