//! The sample events, through the real Lambda runtime loop.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use billing::{MailStatus, Subscription};
use clock::{Clock as _, SystemClock};
use emulator::{Limits, STRIPE_KEY, StripeServer, serve};
use gateways::{ChargeRequest, PaymentGateway as _, SigningSecrets, Stripe};
use serde_json::{Value, json};
use testkit::{Answer, Function, sample};

const SECRET: &str = "whsec_0123456789abcdef";

fn event(name: &str) -> Value {
    let path = format!("{}/../../events/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn deadline_ms() -> i64 {
    SystemClock.now().timestamp_millis() + 60_000
}

/// Where `routes` answer.
async fn served(routes: axum::Router) -> String {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(serve(listener, routes, Limits::default()));
    url
}

/// What Secrets Manager answers to `GetSecretValue`, of two secrets.
async fn secret_value(asked: String) -> (StatusCode, Json<Value>) {
    let asked: Value = serde_json::from_str(&asked).unwrap();
    let secret = match asked["SecretId"].as_str() {
        Some("stripe-key") => STRIPE_KEY,
        Some("stripe-webhook") => SECRET,
        _ => return (StatusCode::BAD_REQUEST, Json(json!({"__type": "ResourceNotFoundException"}))),
    };
    (StatusCode::OK, Json(json!({"Name": "a secret", "SecretString": secret})))
}

/// A payment of `subscription`, as the batch would have made it.
fn charge(subscription: &Subscription) -> ChargeRequest {
    ChargeRequest {
        idempotency_key: "key-1".to_owned(),
        table: None,
        account: subscription.account.clone(),
        subscription: subscription.id,
        sku: subscription.sku.clone(),
        due_on: subscription.due_on,
        attempt_no: 1,
        amount: subscription.price,
        payment_method: subscription.payment_method.clone(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_take_the_sample_event_once_it_is_signed_and_log_nothing_secret() {
    let stripe = StripeServer::new(Arc::new(SystemClock));
    let base = served(stripe.clone().router()).await;
    let secrets = served(axum::Router::new().fallback(secret_value)).await;
    let variables = [
        ("DUEDAY_GATEWAY", "stripe"),
        ("DUEDAY_STRIPE_SECRET", "stripe-key"),
        ("DUEDAY_STRIPE_WEBHOOK_SECRET", "stripe-webhook"),
        ("STRIPE_API_BASE", base.as_str()),
        ("AWS_ENDPOINT_URL_SECRETS_MANAGER", secrets.as_str()),
    ];
    let folder = tempfile::tempdir().unwrap();
    let log = std::fs::File::create(folder.path().join("log")).unwrap();
    let path = env!("CARGO_BIN_EXE_webhooks");
    let mut function = Function::logging(path, "webhooks", &variables, log).await;
    let gold = sample::subscription(10, "2026-03-01".parse().unwrap());
    function.table.put_account(&sample::account()).await.unwrap();
    function.table.create_subscription(&gold, None).await.unwrap();
    Stripe::new(STRIPE_KEY, &base, Duration::from_secs(5)).charge(&charge(&gold)).await;
    stripe.dispute("pi_000001", "needs_response");

    let mut request = event("apigateway-stripe");
    let Answer::Response(refused) = function.invoke(&request.to_string(), deadline_ms()).await else { panic!() };
    assert_eq!(refused["statusCode"], 400, "the sample's signature is none: {refused}");
    let body = STANDARD.decode(request["body"].as_str().unwrap()).unwrap();
    let header = SigningSecrets::parse(SECRET).unwrap().sign(&body, SystemClock.now());
    request["headers"]["stripe-signature"] = header.clone().into();
    for _ in 0..2 {
        let Answer::Response(taken) = function.invoke(&request.to_string(), deadline_ms()).await else { panic!() };
        assert_eq!(taken["statusCode"], 200, "{taken}");
    }
    let stored = function.table.get_subscription(&gold.account, gold.id).await.unwrap().unwrap();
    assert!(stored.disputed_at.is_some());

    let logged = std::fs::read_to_string(folder.path().join("log")).unwrap();
    assert!(logged.contains("a payment is disputed"), "{logged}");
    let address = sample::account().email;
    let signature = header.split("v1=").nth(1).unwrap();
    for secret in [STRIPE_KEY, SECRET, address.as_str(), "api_version", signature] {
        let line = logged.lines().find(|line| line.contains(secret));
        assert!(line.is_none(), "{secret} is logged: {line:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_feedback_marks_the_address_of_the_sample_event_and_fails_on_what_it_cannot_read() {
    let folder = tempfile::tempdir().unwrap();
    let log = std::fs::File::create(folder.path().join("log")).unwrap();
    let path = env!("CARGO_BIN_EXE_mail-feedback");
    let mut function = Function::logging(path, "mail-feedback", &[], log).await;
    function.table.put_account(&sample::account()).await.unwrap();
    let mut bounce = event("sns-bounce");
    let Answer::Response(_) = function.invoke(&bounce.to_string(), deadline_ms()).await else { panic!() };
    let account = function.table.get_account(&sample::account().id).await.unwrap().unwrap();
    assert_eq!(account.mail_status, MailStatus::Bounced);
    bounce["Records"][0]["Sns"]["Message"] = "nonsense".into();
    let Answer::Error(error) = function.invoke(&bounce.to_string(), deadline_ms()).await else { panic!() };
    assert!(error.to_string().contains("no event of Amazon SES's"), "{error}");
    let logged = std::fs::read_to_string(folder.path().join("log")).unwrap();
    let address = sample::account().email;
    let line = logged.lines().find(|line| line.contains(address.as_str()));
    assert!(line.is_none() && logged.contains("an address takes no mail"), "{line:?}");
}
