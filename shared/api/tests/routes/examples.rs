//! Sends the requests of all examples in `examples.json` in order, and compares the responses. With
//! `UPDATE_EXAMPLES=1` in the environment, the test writes the current responses to that file instead.

use std::path::Path;
use std::sync::Arc;

use api::Api;
use axum::body::Body;
use axum::http::Request;
use axum::{Extension, Router};
use billing::AuditRecord;
use chrono::{DateTime, TimeDelta, Utc};
use clock::{Clock as _, SimulatedClock};
use config::Env;
use deployment::DeploymentConfig;
use emulator::Engine;
use outbound::EndpointUrlCheck;
use payments::PaymentBatch;
use rest::{Caller, PublicUrl, Role};
use sandbox::{Ledger, Sandbox};
use store::{CardLink, Table};
use sweep::{BatchRequest, Sweep};
use testkit::{FixedResolver, UnreadQueue, check_generated_file, check_openapi_examples, encryption_keys};
use tower::ServiceExt as _;

/// The path of the file with the examples.
const EXAMPLES_PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples.json");

/// The environment of the test: the API on 15 January 2027, and the payment batch that some examples need.
struct World {
    router: Router,
    clock: Arc<SimulatedClock>,
    payments: Sweep<PaymentBatch>,
    table: Table,
}

/// Creates the environment of the test, with an empty table.
async fn world() -> World {
    let clock = Arc::new(SimulatedClock::new("2027-01-15T12:00:00Z".parse().unwrap(), 1));
    let config = DeploymentConfig::read(Env(&|name| (name == "DUEDAY_SHARDS").then(|| "1".to_owned()))).unwrap();
    let table = config.table.connect_with(Engine::in_memory().client());
    table.create_if_absent().await.unwrap();
    let api = Api::new(table.clone(), &config.table, config.merchant.clone(), clock.clone()).await.unwrap();
    let sandbox = Arc::new(Sandbox::new(Ledger::in_memory(), clock.clone()));
    sandbox.set_url("http://127.0.0.1:7879");
    let charge_due = PaymentBatch::new(table.clone(), sandbox.clone(), &config.charging, clock.clone());
    let payments = Sweep::new(table.clone(), charge_due, &config.table, config.limits, clock.clone()).await.unwrap();
    let api = api
        .with_gateway(sandbox, &config.charging)
        .with_encryption(encryption_keys())
        .with_deliveries(Arc::new(UnreadQueue), EndpointUrlCheck::public_only_with(Arc::new(FixedResolver)));
    let public_url = PublicUrl::parse("https://api.example.com").unwrap();
    let router = api.router().layer(Extension(Caller::Operator(Role::Admin))).layer(Extension(public_url));
    World { router, clock, payments, table }
}

#[tokio::test]
async fn requests_of_the_api_examples_get_the_documented_responses() {
    let World { router, clock, payments, table } = world().await;
    let run = async |day: &str| {
        let due: DateTime<Utc> = format!("{day}T06:00:00Z").parse().unwrap();
        clock.set(due);
        payments.run(&BatchRequest::for_date(due.date_naive()), due + TimeDelta::hours(1)).await.unwrap().counts
    };
    let router_of_preparations = router.clone();
    let prepare = async |operation: &str| match operation {
        // Charge a payment, so that there is a receipt to list.
        "list_receipts" => assert_eq!(run("2027-01-31").await.paid, 1),
        // Let a payment be declined, so that there is an owed payment to retry.
        "retry_subscription" => {
            let path = "/accounts/acme/subscriptions/01MCCKG2G0000G000000000002";
            let card = r#"{"payment_method": {"customer": "cus_acme", "payment_method": "pm_card_chargeDeclinedInsufficientFunds"}}"#;
            let request =
                Request::patch(path).header("content-type", "application/json").body(Body::from(card)).unwrap();
            assert_eq!(router_of_preparations.clone().oneshot(request).await.unwrap().status(), 200);
            assert_eq!(run("2027-02-28").await.declined, 1);
        }
        // Store a card link: a link with which the customer enters a card for the payment of 28 February.
        "show_card_link" => {
            let acme = "acme".parse().unwrap();
            let subscription = "01MCCKG2G0000G000000000002".parse().unwrap();
            let link = CardLink { account: acme, subscription, due_on: "2027-02-28".parse().unwrap() };
            let id = "01MCCKG2G0000G0000000000ZZ".parse().unwrap();
            table.put_card_link(id, &link, clock.now()).await.unwrap();
        }
        // Store an audit that found a violation.
        "list_audits" => {
            let audit = AuditRecord::new("01MCCKG2G0000G0000000000AA".parse().unwrap(), false, clock.now());
            table.create_audit(&audit).await.unwrap();
            let mut ended = AuditRecord { accounts: 1, subscriptions: 1, ended_at: Some(clock.now()), ..audit.clone() };
            let key = "ACC#acme SUB#01MCCKG2G0000G000000000002#SKU#gold";
            let problem = "the subscription is active, but the payment index does not contain it";
            let violation = ended.add_violation("indexed", key, problem).unwrap();
            table.update_audit(&audit, ended, vec![violation]).await.unwrap();
        }
        // Create an account without subscriptions.
        "erase_account" => {
            let larch = billing::Account { id: "larch".parse().unwrap(), ..testkit::sample_account() };
            table.put_account(&larch).await.unwrap();
        }
        _ => {}
    };
    check_openapi_examples(&api::openapi_document(), EXAMPLES_PATH, router, prepare).await;
}

#[test]
fn published_document_describes_the_routes() {
    let document = api::openapi_document();
    assert_eq!(document["openapi"], "3.1.0");
    let text = serde_json::to_string_pretty(&document).unwrap() + "\n";
    check_generated_file(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json")), &text);
}
