//! Every example of the OpenAPI document, sent in order and compared. `UPDATE_EXAMPLES=1 cargo test --test examples`
//! writes down what is answered now.

use std::sync::Arc;

use api::Api;
use axum::body::Body;
use axum::http::Request;
use axum::{Extension, Router};
use chrono::{DateTime, TimeDelta, Utc};
use clock::SimulatedClock;
use config::Env;
use delivery::Reach;
use emulator::{Config, Engine};
use gateways::{Ledger, Sandbox};
use payments::ChargeDue;
use rest::Caller;
use sweep::{BatchRequest, Sweep};
use testkit::{UnreadQueue, answer_examples};
use tower::ServiceExt as _;

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
    let table = config.table.with(Engine::memory().client());
    table.create_if_absent().await.unwrap();
    let api = Api::new(table.clone(), config.of_api(), clock.clone()).await.unwrap();
    let sandbox = Arc::new(Sandbox::new(Ledger::memory(), clock.clone()));
    sandbox.served_at("http://127.0.0.1:7879");
    let charge_due = ChargeDue::new(table.clone(), sandbox.clone(), (&config.billing, &config.charging), clock.clone());
    let payments = Sweep::new(table, charge_due, (&config.table, config.limits), clock.clone()).await.unwrap();
    let api = api.with_gateway(sandbox, &config.charging).with_deliveries(Arc::new(UnreadQueue), Reach::Public);
    World { router: api.router().layer(Extension(Caller::Operator)), clock, payments }
}

#[tokio::test]
async fn examples_are_answered_as_documented() {
    let World { router, clock, payments } = world().await;
    let run = async |day: &str| {
        let due: DateTime<Utc> = format!("{day}T06:00:00Z").parse().unwrap();
        clock.set(due);
        payments.run(&BatchRequest::on(due.date_naive()), due + TimeDelta::hours(1)).await.unwrap().counts
    };
    let asked = router.clone();
    let before = async |operation: &str| match operation {
        // A day on which something is paid.
        "list_receipts" => assert_eq!(run("2027-01-31").await.paid, 1),
        // And one on which nothing can be.
        "retry_subscription" => {
            let path = "/accounts/acme/subscriptions/01MCCKG2G0000G000000000002";
            let card = r#"{"payment_method": {"customer": "cus_acme", "payment_method": "pm_card_chargeDeclinedInsufficientFunds"}}"#;
            let request =
                Request::patch(path).header("content-type", "application/json").body(Body::from(card)).unwrap();
            assert_eq!(asked.clone().oneshot(request).await.unwrap().status(), 200);
            assert_eq!(run("2027-02-28").await.declined, 1);
        }
        _ => {}
    };
    answer_examples(&api::document(), PATH, router, before).await;
}

#[test]
fn document_is_as_it_was() {
    let document = api::document();
    assert_eq!(document["openapi"], "3.1.0");
    insta::assert_snapshot!("openapi", serde_json::to_string_pretty(&document).unwrap());
}
