//! Every example of the OpenAPI document, sent in order and compared. `UPDATE_EXAMPLES=1 cargo test --test examples`
//! writes down what is answered now.

use std::sync::Arc;

use api::{Api, Caller};
use axum::body::{Body, to_bytes};
use axum::http::Request;
use axum::{Extension, Router};
use chrono::TimeDelta;
use emulator::{Engine, UnreadQueue};
use serde_json::{Map, Value, json};
use shared::clock::SimulatedClock;
use shared::config::{Config, Env};
use shared::gateway::{Ledger, Sandbox};
use shared::payments::ChargeDue;
use shared::sweep::{BatchRequest, Sweep};
use shared::table::Table;
use shared::webhooks::Reach;
use tower::ServiceExt;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples.json");

/// A system on 15 January 2027, and the payment batch that its examples need.
struct World {
    router: Router,
    clock: Arc<SimulatedClock>,
    payments: Sweep<ChargeDue>,
}

async fn world() -> World {
    let clock = Arc::new(SimulatedClock::new("2027-01-15T12:00:00Z".parse().unwrap(), 1));
    let config = Config::read(Env(&|name| (name == "DUEDAY_SHARDS").then(|| "1".to_owned()))).unwrap();
    let table = Table::new(Engine::memory().client(), &config.table, config.receipts_kept);
    table.create_if_absent().await.unwrap();
    let api = Api::new(table.clone(), &config, clock.clone()).await.unwrap();
    let sandbox = Arc::new(Sandbox::new(Ledger::memory(), clock.clone()));
    let charge_due = ChargeDue::new(table.clone(), sandbox, &config, clock.clone());
    let payments = Sweep::new(table, charge_due, &config, clock.clone()).await.unwrap();
    let api = api.with_deliveries(Arc::new(UnreadQueue), Reach::Public);
    World { router: api.router().layer(Extension(Caller::Operator)), clock, payments }
}

/// The operation's method and path template.
fn route<'a>(document: &'a Value, operation: &str) -> (&'a str, &'a str, &'a Value) {
    let paths = document["paths"].as_object().unwrap().iter();
    let mut all = paths.flat_map(|(path, methods)| methods.as_object().unwrap().iter().map(move |m| (path, m)));
    let (path, (method, described)) = all
        .find(|(_, (_, described))| described["operationId"] == operation)
        .unwrap_or_else(|| panic!("there is no operation {operation}"));
    (method, path, described)
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn request(document: &Value, example: &Value) -> Request<Body> {
    let (method, path, described) = route(document, example["operation"].as_str().unwrap());
    let (mut uri, mut query) = (path.to_owned(), Vec::new());
    let mut request = Request::builder().method(method.to_uppercase().as_str());
    for (name, value) in example["parameters"].as_object().unwrap_or(&Map::new()) {
        let known = described["parameters"].as_array().unwrap().iter().find(|p| p["name"] == *name);
        match known.unwrap_or_else(|| panic!("{path} has no parameter {name}"))["in"].as_str().unwrap() {
            "path" => uri = uri.replace(&format!("{{{name}}}"), &text(value)),
            "query" => query.push(format!("{name}={}", text(value))),
            _ => request = request.header(name, text(value)),
        }
    }
    if !query.is_empty() {
        uri = format!("{uri}?{}", query.join("&"));
    }
    if method != "get" {
        request = request.header("content-type", "application/json");
    }
    let body = match &example["body"] {
        Value::Null => Body::empty(),
        body => Body::from(body.to_string()),
    };
    request.uri(uri).body(body).unwrap()
}

#[tokio::test]
async fn examples_are_answered_as_documented() {
    let document = api::document();
    let mut examples: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(PATH).unwrap()).unwrap();
    let World { router, clock, payments } = world().await;
    for example in &mut examples {
        if example["operation"] == "list_receipts" {
            // A day on which something is paid.
            let due = "2027-01-31T06:00:00Z".parse().unwrap();
            clock.set(due);
            let report = payments.run(&BatchRequest::on(due.date_naive()), due + TimeDelta::hours(1)).await.unwrap();
            assert_eq!(report.counts.paid, 1, "{report:?}");
        }
        let response = router.clone().oneshot(request(&document, example)).await.unwrap();
        let status = response.status().as_u16();
        let bytes = to_bytes(response.into_body(), 1_000_000).await.unwrap();
        let answer: Value = if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).unwrap() };
        if std::env::var_os("UPDATE_EXAMPLES").is_some() {
            (example["status"], example["answer"]) = (json!(status), answer);
        } else {
            assert_eq!(
                (status, &answer),
                (u16::try_from(example["status"].as_u64().unwrap()).unwrap(), &example["answer"]),
                "{example}"
            );
        }
    }
    if std::env::var_os("UPDATE_EXAMPLES").is_some() {
        std::fs::write(PATH, serde_json::to_string_pretty(&examples).unwrap() + "\n").unwrap();
    }
    let operations =
        document["paths"].as_object().unwrap().values().flat_map(|path| path.as_object().unwrap().values());
    for operation in operations {
        let id = &operation["operationId"];
        assert!(examples.iter().any(|example| example["operation"] == *id), "{id} has no example");
    }
}

#[test]
fn document_is_as_it_was() {
    let document = api::document();
    assert_eq!(document["openapi"], "3.1.0");
    insta::assert_snapshot!("openapi", serde_json::to_string_pretty(&document).unwrap());
}
