//! Tests that the `Resources` of the published entries show whether there is a webhook endpoint.

use std::collections::BTreeMap;
use std::sync::Arc;

use billing::{ActionKind, SigningSecret, WebhookEndpoint};
use clock::{Clock as _, SimulatedClock};
use emulator::{Engine, EngineConnection, Fault};
use events_function::{NO_WEBHOOK_ENDPOINT, WEBHOOK_ENDPOINTS};
use outbound::EndpointSecrets;
use serde_json::json;
use store::Table;
use testkit::{encryption_keys, sample_action};

use crate::event_bridge::{FakeBusBehavior, FakeEventBridge};
use crate::world::{TABLE, batch_of_three_months, publisher_with_table};

/// Returns a clock that is set to the time of the tests.
fn clock() -> Arc<SimulatedClock> {
    Arc::new(SimulatedClock::new("2026-04-01T06:00:00Z".parse().unwrap(), 7))
}

/// Returns an endpoint that receives all events.
fn endpoint() -> WebhookEndpoint {
    let clock = clock();
    let id = clock.ulid();
    let secret =
        EndpointSecrets::new(encryption_keys(), clock.clone()).encrypt(id, &SigningSecret::new(clock.random_secret()));
    WebhookEndpoint::new(id, "https://shop.example.com/webhooks".parse().unwrap(), secret, clock.now())
}

/// Publishes three months of changes. `table` contains the webhook endpoints. Returns the field `Resources` of the
/// published entries; equal values that follow one another are returned once.
async fn published_resources(table: Table) -> Vec<String> {
    let bus = FakeEventBridge::start(|_| FakeBusBehavior::Accepts).await;
    let published = publisher_with_table(&bus, table).await.publish(&batch_of_three_months().await).await.unwrap();
    assert_eq!(published.first_unpublished, None);
    let entries = bus.accepted_entries();
    assert!(entries.len() > 10, "the batch needs several requests to the bus");
    let mut resources: Vec<String> =
        entries.iter().map(|entry| entry["Resources"].as_array().unwrap()[0].as_str().unwrap().to_owned()).collect();
    resources.dedup();
    resources
}

#[tokio::test(flavor = "multi_thread")]
async fn event_bridge_entries_show_whether_a_webhook_endpoint_exists() {
    let engine = Engine::in_memory();
    let table = Table::new(engine.client(), TABLE);
    table.create_if_absent().await.unwrap();
    assert_eq!(published_resources(table.clone()).await, [NO_WEBHOOK_ENDPOINT]);

    let created = endpoint();
    table.create_webhook_endpoint(&created, None).await.unwrap();
    assert_eq!(published_resources(table.clone()).await, [WEBHOOK_ENDPOINTS]);
    let disabled = |stored: &WebhookEndpoint| Some(stored.disabled("it refuses events"));
    table.change_webhook_endpoint(created.clone(), disabled).await.unwrap();
    assert_eq!(
        published_resources(table.clone()).await,
        [WEBHOOK_ENDPOINTS],
        "it is disabled, and may be enabled again"
    );
    table.delete_webhook_endpoint(created.id, &sample_action(ActionKind::RemoveEndpoint)).await.unwrap();
    assert_eq!(published_resources(table.clone()).await, [NO_WEBHOOK_ENDPOINT]);

    let unreadable = json!({ "PK": { "S": "WEBHOOKS" }, "SK": { "S": "ENDPOINT#1" } });
    engine.execute("PutItem", &json!({ "TableName": TABLE, "Item": unreadable })).unwrap();
    assert_eq!(published_resources(table).await, [WEBHOOK_ENDPOINTS], "an endpoint that cannot be read still exists");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_sent_to_the_deliveries_if_the_endpoints_cannot_be_read() {
    let engine = Engine::in_memory();
    Table::new(engine.client(), TABLE).create_if_absent().await.unwrap();
    let connection = EngineConnection::with_faults(|_| Some(Fault::Refused("AccessDeniedException"))).without_retries();
    let table = Table::new(engine.client_with_connection(Arc::new(connection)), TABLE);
    assert_eq!(published_resources(table).await, [WEBHOOK_ENDPOINTS]);
}

#[tokio::test(flavor = "multi_thread")]
async fn stream_batch_needs_one_query_for_the_webhook_endpoints() {
    let engine = Engine::in_memory();
    let connection = Arc::new(EngineConnection::default());
    let table = Table::new(engine.client_with_connection(connection.clone()), TABLE);
    Table::new(engine.client(), TABLE).create_if_absent().await.unwrap();
    published_resources(table).await;
    assert_eq!(connection.request_counts(), BTreeMap::from([("Query".to_owned(), 1)]));
}
