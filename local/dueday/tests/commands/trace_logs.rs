//! Tests of the log lines of the command and of the local server at the level `trace`: they contain no personal data and no
//! secrets.

use std::fs::File;
use std::path::Path;

use axum::Router;
use axum::http::StatusCode;
use chrono::{Datelike as _, Utc};
use serde_json::json;
use tokio::sync::mpsc::unbounded_channel;

use crate::server::{ApiClient, Server};
use crate::terminal::{dueday, output};

const NAME: &str = "Zyxwvu Personal";
const EMAIL: &str = "zyxwvu.personal@example.com";

/// Values of `RUST_LOG` that ask for all log lines of libraries.
const LOG_LEVELS: [&str; 2] =
    ["trace", "warn,hyper=trace,aws_smithy_runtime=trace,dynoxide=trace,reqwest=trace,sweep=trace"];

/// Runs `dueday` with `arguments` and the log levels `levels`. Returns its standard output and its log lines.
fn run_logged(data: &Path, levels: &str, arguments: &[&str]) -> (String, String) {
    let (code, stdout, stderr) = output(dueday(data).env("RUST_LOG", levels).args(arguments));
    assert!((0..=1).contains(&code), "{arguments:?}: {stdout}{stderr}");
    (stdout, stderr)
}

/// Asserts that the log lines `logged` contain neither the customer's data nor one of `secrets`.
fn assert_private(logged: &str, secrets: &[&str]) {
    let (user, _) = EMAIL.split_once('@').unwrap();
    for private in [NAME, EMAIL, user].iter().chain(secrets) {
        let bare = private.strip_prefix("whsec_").unwrap_or(private);
        let line = logged.lines().find(|line| line.contains(bare));
        assert_eq!(line, None, "a log line contains {private}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn log_lines_at_the_level_trace_contain_no_names_addresses_or_secrets() {
    for levels in LOG_LEVELS {
        let folder = tempfile::tempdir().unwrap();
        let (data, log) = (folder.path().join("data"), folder.path().join("log"));
        let server = Server::start_command(dueday(&data).env("RUST_LOG", levels).stderr(File::create(&log).unwrap()));
        let api = ApiClient { url: server.api_url.clone(), http: reqwest::Client::new() };
        // A webhook endpoint that accepts no event, so that the server logs a failed delivery.
        let (sender, mut delivered) = unbounded_channel();
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let hook = format!("http://{}/hook", listener.local_addr().unwrap());
        let refuse = move || {
            let _ = sender.send(());
            async { StatusCode::INTERNAL_SERVER_ERROR }
        };
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(refuse)).await });
        let (status, created) = api.send("POST /webhook-endpoints", json!({"url": hook})).await;
        assert_eq!(status, 201, "{created}");
        let secret = created["secret"].as_str().unwrap();

        assert_eq!(api.send("PUT /accounts/acme", json!({"email": EMAIL, "name": NAME})).await.0, 201);
        let today = Utc::now().date_naive();
        for (sku, card) in [("gold", "pm_card_chargeDeclinedInsufficientFunds"), ("silver", "pm_card_visa")] {
            let subscription = json!({
                "sku": sku, "product_name": "A plan", "payment_day": today.day(), "amount": 1299, "currency": "EUR",
                "payment_method": {"customer": "cus_acme", "payment_method": card}, "first_payment_date": today,
            });
            assert_eq!(api.send("POST /accounts/acme/subscriptions", subscription).await.0, 201);
        }
        delivered.recv().await.unwrap();
        let (_, of_run) = run_logged(&data, levels, &["run", "payments"]);
        assert_private(&of_run, &[secret]);
        let (shown, logged) = run_logged(&data, levels, &["webhooks", "create", &hook, "--json"]);
        let created: serde_json::Value = serde_json::from_str(&shown).unwrap();
        let other = created["secret"].as_str().unwrap();
        assert_private(&logged, &[secret, other]);
        drop(server);
        let of_server = std::fs::read_to_string(&log).unwrap();
        assert_private(&of_server, &[secret, other]);
        // The daily run of the server may have processed the rows before the command.
        let all = of_run + &of_server;
        assert!(
            all.contains("DEBUG a row was processed"),
            "the crates of the workspace log at the requested level: {all}"
        );

        // Without a server, the commands use the database engine in their own process.
        for arguments in
            [&["accounts"][..], &["account", "export", "acme"], &["subscriptions"], &["webhooks"], &["status"]]
        {
            let (_, logged) = run_logged(&data, levels, arguments);
            assert_private(&logged, &[secret, other]);
        }
        let (_, logged) = run_logged(&data, levels, &["export", "accounts"]);
        assert_private(&logged, &[secret, other]);
    }
}
