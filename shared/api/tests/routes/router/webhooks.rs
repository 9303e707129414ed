//! Tests of webhook endpoints and their deliveries: repeated requests, refused addresses, and stored deliveries that
//! cannot be read.

use aws_sdk_dynamodb::types::AttributeValue;
use billing::{Delivery, DeliveryKey, DeliveryStatus};
use chrono::{DateTime, TimeDelta, Utc};
use clock::Clock as _;
use store::{Key, Paging};

use super::world::World;

/// The request that creates an endpoint.
const CREATE: &str = "POST /webhook-endpoints";
/// The event of the delivery in the tests.
const EVENT: &str = r#"{"specversion":"1.0","id":"e1","type":"account.created"}"#;

#[tokio::test]
async fn repeated_creation_with_an_idempotency_key_creates_one_endpoint_and_returns_its_secret_again() {
    let world = World::new().await;
    let body = r#"{"url": "https://shop.example.com/"}"#;
    let first = world.request_with_key(CREATE, "k1", body).await;
    let second = world.request_with_key(CREATE, "k1", body).await;
    assert_eq!((first.status, second.status), (201, 201));
    assert_eq!(first.json(), second.json());
    assert_eq!(world.table.get_webhook_endpoints(&Paging::all()).await.unwrap().items.len(), 1);
    let other = world.request_with_key(CREATE, "k1", r#"{"url": "https://other.example.com/"}"#).await;
    assert!(other.problem().contains("this Idempotency-Key was used"), "{}", other.problem());
    assert_eq!(world.request(CREATE, body).await.status, 201);
    assert_eq!(world.table.get_webhook_endpoints(&Paging::all()).await.unwrap().items.len(), 2, "without a key");
}

#[tokio::test]
async fn endpoint_with_an_address_that_is_not_public_is_refused_at_creation_and_at_a_change() {
    let world = World::new().await;
    let created = world.request(CREATE, r#"{"url": "https://shop.example.com/"}"#).await.json();
    let change = format!("PATCH /webhook-endpoints/{}", created["id"].as_str().unwrap());
    for host in ["127.0.0.1", "[::1]", "169.254.169.254", "10.1.2.3", "localhost", "internal.example.com"] {
        let body = format!(r#"{{"url": "https://{host}/"}}"#);
        for request in [CREATE, &change] {
            let problem = world.request(request, &body).await.problem();
            assert!(
                problem.starts_with("422 refused-field url: must have a public address"),
                "{request} {host}: {problem}"
            );
        }
    }
}

/// Creates an endpoint and the delivery of the event `e1` with `body` to it. Removes the status from the item of the
/// delivery, so that the item cannot be read. Returns the path of the endpoint's deliveries, and the key of the delivery.
async fn create_corrupt_delivery(world: &World, body: &str) -> (String, DeliveryKey) {
    let created = world.request(CREATE, r#"{"url": "https://shop.example.com/"}"#).await.json();
    let endpoint = created["id"].as_str().unwrap();
    let key = DeliveryKey { endpoint: endpoint.parse().unwrap(), event: "e1".to_owned() };
    let now = world.clock.now();
    for event in ["e1", "e2"] {
        let key = DeliveryKey { event: event.to_owned(), ..key.clone() };
        let new = Delivery::new(key, "account.created".to_owned(), body.to_owned(), now);
        assert!(world.table.create_delivery(&new).await.unwrap());
    }
    let stored = Key { pk: format!("WEBHOOK#{endpoint}"), sk: "EVENT#e1".to_owned() };
    let mut item = world.table.get(stored).await.unwrap().unwrap();
    item.remove("Status");
    world.table.put(item).await.unwrap();
    (format!("/webhook-endpoints/{endpoint}/deliveries"), key)
}

#[tokio::test]
async fn unreadable_delivery_is_listed_beside_the_others_and_redelivered_with_its_stored_event() {
    let world = World::new().await;
    let (deliveries, key) = create_corrupt_delivery(&world, EVENT).await;
    let listed = world.request(&format!("GET {deliveries}"), "").await.json();
    assert_eq!((listed["data"].as_array().unwrap().len(), &listed["data"][0]["event"]), (1, &"e2".into()));
    assert!(listed["unreadable"][0]["reason"].as_str().unwrap().contains("Status"), "{listed}");

    let restarted = world.request(&format!("POST {deliveries}/e1/redeliver"), "{}").await;
    assert_eq!((restarted.status, &restarted.json()["type"]), (202, &"account.created".into()), "{}", restarted.text);
    let stored = world.table.get_delivery(&key).await.unwrap().unwrap();
    assert_eq!((stored.status, stored.body.as_str()), (DeliveryStatus::Pending, EVENT));
}

#[tokio::test]
async fn unreadable_delivery_without_its_event_is_not_redelivered_and_the_problem_says_so() {
    let other_event = EVENT.replace("e1", "e9");
    for body in ["{}", &other_event] {
        let world = World::new().await;
        let (deliveries, _) = create_corrupt_delivery(&world, body).await;
        let problem = world.request(&format!("POST {deliveries}/e1/redeliver"), "{}").await.problem();
        assert!(problem.starts_with("409") && problem.contains("its event cannot be recovered"), "{problem}");
    }
}

#[tokio::test]
async fn delivery_that_is_restarted_on_its_29th_day_is_stored_for_another_30_days() {
    let world = World::new().await;
    let now = world.clock.now();
    let key = DeliveryKey { endpoint: "01JZXCVBNM0123456789ABCDEF".parse().unwrap(), event: "e1".to_owned() };
    let new = Delivery::new(key.clone(), "account.created".to_owned(), EVENT.to_owned(), now);
    assert!(world.table.create_delivery(&new).await.unwrap());
    let restart = now + TimeDelta::days(29);
    let restarted = world.table.restart_delivery(&key, restart).await.unwrap().unwrap();
    let tried = |stored: &Delivery| {
        Some(stored.after_attempt(&billing::DeliveryResponse::Rejected(500), restart + TimeDelta::seconds(1)))
    };
    world.table.change_delivery(restarted, tried).await.unwrap().unwrap();
    let stored = Key { pk: format!("WEBHOOK#{}", key.endpoint), sk: "EVENT#e1".to_owned() };
    let item = world.table.get(stored).await.unwrap().unwrap();
    let Some(AttributeValue::N(expiry)) = item.get("TTL") else { panic!("no TTL: {item:?}") };
    let expiry: DateTime<Utc> = DateTime::from_timestamp(expiry.parse().unwrap(), 0).unwrap();
    assert!(expiry >= restart + TimeDelta::days(30), "{expiry}");
}
