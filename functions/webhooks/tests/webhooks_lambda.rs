//! Sends the sample events in `events/` to the functions of the inbound webhooks, through the real Lambda runtime loop.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use billing::{MailStatus, Subscription};
use clock::{Clock as _, SystemClock};
use emulator::{STRIPE_KEY, ServerLimits, StripeServer, serve_http};
use gateways::{ChargeRequest, PaymentGateway as _, SigningSecrets, Stripe};
use serde_json::Value;
use testkit::{InvocationResult, LambdaFunction, sample_account, sample_subscription, start_secrets_manager};

/// The signing secret of the inbound webhook.
const SECRET: &str = "whsec_0123456789abcdef";

/// Reads the sample event `name` from the folder `events/`.
fn sample_event(name: &str) -> Value {
    let path = format!("{}/../../events/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Returns the deadline of an invocation that starts now, as Unix time in milliseconds.
fn deadline_ms() -> i64 {
    SystemClock.now().timestamp_millis() + 60_000
}

/// Serves `routes` and returns their base URL.
async fn serve_routes(routes: axum::Router) -> String {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(serve_http(listener, routes, ServerLimits::default()));
    url
}

/// Returns the request with which the payment batch would charge `subscription`.
fn charge_request(subscription: &Subscription) -> ChargeRequest {
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
async fn webhooks_accept_signed_sample_event_and_log_no_secrets() {
    let stripe = StripeServer::new(Arc::new(SystemClock));
    let base = serve_routes(stripe.clone().router()).await;
    let secrets = start_secrets_manager(&[("stripe-key", STRIPE_KEY), ("stripe-webhook", SECRET)]).await;
    let variables = [
        ("DUEDAY_GATEWAY", "stripe"),
        // These are the former names of two variables. They must still work.
        ("DUEDAY_STRIPE_SECRET", "stripe-key"),
        ("DUEDAY_STRIPE_WEBHOOK_SECRET", "stripe-webhook"),
        ("STRIPE_API_BASE", base.as_str()),
        ("AWS_ENDPOINT_URL_SECRETS_MANAGER", secrets.as_str()),
    ];
    let folder = tempfile::tempdir().unwrap();
    let log = std::fs::File::create(folder.path().join("log")).unwrap();
    let path = env!("CARGO_BIN_EXE_webhooks");
    let mut function = LambdaFunction::start_with_log(path, "webhooks", &variables, log).await;
    let gold = sample_subscription(10, "2026-03-01".parse().unwrap());
    function.table.put_account(&sample_account()).await.unwrap();
    function.table.create_subscription(&gold, None).await.unwrap();
    Stripe::new(STRIPE_KEY, &base, Duration::from_secs(5)).charge(&charge_request(&gold)).await;
    stripe.set_dispute_status("pi_000001", "needs_response");

    let mut request = sample_event("apigateway-stripe");
    let InvocationResult::Response(refused) = function.invoke(&request.to_string(), deadline_ms()).await else {
        panic!()
    };
    assert_eq!(refused["statusCode"], 400, "the signature of the sample is not valid: {refused}");
    let body = STANDARD.decode(request["body"].as_str().unwrap()).unwrap();
    let header = SigningSecrets::parse(SECRET).unwrap().sign(&body, SystemClock.now());
    request["headers"]["stripe-signature"] = header.clone().into();
    for _ in 0..2 {
        let InvocationResult::Response(accepted) = function.invoke(&request.to_string(), deadline_ms()).await else {
            panic!()
        };
        assert_eq!(accepted["statusCode"], 200, "{accepted}");
    }
    let stored = function.table.get_subscription(&gold.account, gold.id).await.unwrap().unwrap();
    assert!(stored.disputed_at.is_some());
    request["rawQueryString"] = "a b=\"<>".into();
    request["body"] = STANDARD.encode("x".repeat(1024 * 1024 + 1)).into();
    let InvocationResult::Response(refused) = function.invoke(&request.to_string(), deadline_ms()).await else {
        panic!()
    };
    assert_eq!(refused["statusCode"], 413, "{refused}");
    assert!(refused["body"].as_str().unwrap().contains("urn:dueday:problem:too-large"), "{refused}");

    let logged = std::fs::read_to_string(folder.path().join("log")).unwrap();
    assert!(logged.contains("a payment is disputed"), "{logged}");
    let address = sample_account().email;
    let signature = header.split("v1=").nth(1).unwrap();
    for secret in [STRIPE_KEY, SECRET, address.as_str(), "api_version", signature] {
        let line = logged.lines().find(|line| line.contains(secret));
        assert!(line.is_none(), "{secret} is logged: {line:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_feedback_marks_address_of_sample_event_and_fails_on_invalid_message() {
    let folder = tempfile::tempdir().unwrap();
    let log = std::fs::File::create(folder.path().join("log")).unwrap();
    let path = env!("CARGO_BIN_EXE_mail-feedback");
    let mut function = LambdaFunction::start_with_log(path, "mail-feedback", &[], log).await;
    function.table.put_account(&sample_account()).await.unwrap();
    let mut bounce = sample_event("sns-bounce");
    let InvocationResult::Response(_) = function.invoke(&bounce.to_string(), deadline_ms()).await else { panic!() };
    let account = function.table.get_account(&sample_account().id).await.unwrap().unwrap();
    assert_eq!(account.mail_status, MailStatus::Bounced);
    // SES sends this message when the stack is created.
    bounce["Records"][0]["Sns"]["Message"] = "Successfully validated SNS topic for Amazon SES event publishing.".into();
    let InvocationResult::Response(_) = function.invoke(&bounce.to_string(), deadline_ms()).await else { panic!() };
    bounce["Records"][0]["Sns"]["Message"] = "nonsense".into();
    let InvocationResult::Error(error) = function.invoke(&bounce.to_string(), deadline_ms()).await else { panic!() };
    assert!(error.to_string().contains("not an event of Amazon SES"), "{error}");
    let logged = std::fs::read_to_string(folder.path().join("log")).unwrap();
    let address = sample_account().email;
    let line = logged.lines().find(|line| line.contains(address.as_str()));
    assert!(line.is_none() && logged.contains("an email address is marked"), "{line:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn documented_commands_of_mail_feedback_function_succeed() {
    for report in &testkit::run_sam_local_commands("MailFeedbackFunction", env!("CARGO_BIN_EXE_mail-feedback")).await {
        assert_eq!(*report, Value::Null);
    }
}
