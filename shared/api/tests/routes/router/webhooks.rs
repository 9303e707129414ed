//! Tests of webhook endpoints and their deliveries: repeated requests, refused addresses, and stored deliveries that
//! cannot be read.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::AttributeValue;
use billing::{Delivery, DeliveryKey, DeliveryStatus, SigningSecret};
use chrono::{DateTime, TimeDelta, Utc};
use clock::{Clock as _, SystemClock};
use encryption::{EncryptionKeys, generate_key};
use store::{Item, Paging, Table};
use testkit::{ENCRYPTION_KEY, encryption_keys, items_with_plain_secret};

use super::world::{TestResponse, World};

/// The request that creates an endpoint.
const CREATE_ENDPOINT: &str = "POST /webhook-endpoints";
/// The event that the deliveries in the tests contain.
const SAMPLE_EVENT: &str = r#"{"specversion":"1.0","id":"e1","type":"account.created"}"#;

#[tokio::test]
async fn repeated_creation_with_an_idempotency_key_creates_one_endpoint_and_returns_its_secret_again() {
    let world = World::new().await;
    let body = r#"{"url": "https://shop.example.com/"}"#;
    let first = world.request_with_key(CREATE_ENDPOINT, "k1", body).await;
    let second = world.request_with_key(CREATE_ENDPOINT, "k1", body).await;
    assert_eq!((first.status, second.status), (201, 201));
    assert_eq!(first.json(), second.json());
    assert_eq!(world.table.get_webhook_endpoints(&Paging::all()).await.unwrap().items.len(), 1);
    let other = world.request_with_key(CREATE_ENDPOINT, "k1", r#"{"url": "https://other.example.com/"}"#).await;
    assert!(other.problem().contains("this Idempotency-Key was used"), "{}", other.problem());
    assert_eq!(world.request(CREATE_ENDPOINT, body).await.status, 201);
    assert_eq!(world.table.get_webhook_endpoints(&Paging::all()).await.unwrap().items.len(), 2, "without a key");
}

/// Returns the secret in the response of the API.
fn secret_in(response: &TestResponse) -> SigningSecret {
    response.json()["secret"].as_str().unwrap().parse().unwrap()
}

/// Returns the item of the only idempotency record in `table`.
async fn idempotency_record(table: &Table) -> Item {
    let scanned = table.client().scan().table_name(table.name()).send().await.unwrap().items.unwrap();
    let is_record = |item: &Item| matches!(&item["PK"], AttributeValue::S(pk) if pk.starts_with("IDEM#"));
    let records: Vec<Item> = scanned.into_iter().filter(is_record).collect();
    let [record] = &records[..] else { panic!("{records:?}") };
    record.clone()
}

#[tokio::test]
async fn no_item_contains_a_secret_in_plain_and_a_repetition_returns_the_same_bytes() {
    let world = World::new().await;
    let body = r#"{"url": "https://shop.example.com/"}"#;
    let created = world.request_with_key(CREATE_ENDPOINT, "k1", body).await;
    let rotate = format!("POST /webhook-endpoints/{}/rotate-secret", created.json()["id"].as_str().unwrap());
    let rotated = world.request(&rotate, "{}").await;
    let without_key = world.request(CREATE_ENDPOINT, body).await;
    let repeated = world.request_with_key(CREATE_ENDPOINT, "k1", body).await;
    assert_eq!((repeated.status, &repeated.text), (201, &created.text), "the response before the rotation");
    assert_eq!((repeated.header("etag"), repeated.header("idempotent-replayed")), (created.header("etag"), "true"));
    for response in [&created, &rotated, &without_key] {
        let found = items_with_plain_secret(&world.table, &secret_in(response)).await;
        assert!(found.is_empty(), "{found:?}");
    }
    let record = idempotency_record(&world.table).await;
    assert!(matches!(&record["Answer"], AttributeValue::S(stored) if stored.starts_with("v1.")), "{record:?}");
}

#[tokio::test]
async fn plain_response_that_an_earlier_version_has_stored_is_returned() {
    let world = World::new().await;
    let body = r#"{"url": "https://shop.example.com/"}"#;
    let created = world.request_with_key(CREATE_ENDPOINT, "k1", body).await;
    let mut record = idempotency_record(&world.table).await;
    record.insert("Answer".to_owned(), AttributeValue::S(created.text.clone()));
    world.table.put(record).await.unwrap();
    assert_eq!(items_with_plain_secret(&world.table, &secret_in(&created)).await.len(), 1, "the search finds it");
    assert_eq!(world.request_with_key(CREATE_ENDPOINT, "k1", body).await.text, created.text);
}

#[tokio::test]
async fn repetition_after_the_loss_of_the_key_is_refused_and_the_rotated_secret_works() {
    let world = World::new().await;
    let body = r#"{"url": "https://shop.example.com/"}"#;
    let created = world.request_with_key(CREATE_ENDPOINT, "k1", body).await;
    let new_key = generate_key(&SystemClock);
    let world = world.with_encryption(Some(EncryptionKeys::parse(&new_key).unwrap())).await;
    let problem = world.request_with_key(CREATE_ENDPOINT, "k1", body).await.problem();
    assert!(problem.starts_with("409") && problem.contains("rotate its secret"), "{problem}");
    assert_eq!(world.table.get_webhook_endpoints(&Paging::all()).await.unwrap().items.len(), 1);

    let rotate = format!("POST /webhook-endpoints/{}/rotate-secret", created.json()["id"].as_str().unwrap());
    let rotated = world.request(&rotate, "{}").await;
    assert_eq!((rotated.status, &rotated.json()["previous_secret_valid_until"]), (200, &().into()), "{}", rotated.text);
    assert_ne!(secret_in(&rotated), secret_in(&created));
    assert_eq!(world.request(&rotate, "{}").await.status, 200, "the lost secret counts as replaced");

    let both = EncryptionKeys::parse(&format!("{new_key} {ENCRYPTION_KEY}")).unwrap();
    let world = world.with_encryption(Some(both)).await;
    assert_eq!(world.request_with_key(CREATE_ENDPOINT, "k1", body).await.text, created.text, "the key was found again");
}

#[tokio::test]
async fn without_encryption_keys_no_secret_is_created_and_all_other_routes_work() {
    let world = World::new().await;
    let body = r#"{"url": "https://shop.example.com/"}"#;
    let created = world.request_with_key(CREATE_ENDPOINT, "k1", body).await;
    let path = format!("/webhook-endpoints/{}", created.json()["id"].as_str().unwrap());
    let world = world.with_encryption(None).await;
    for (request, key) in
        [(CREATE_ENDPOINT, "k1"), (CREATE_ENDPOINT, "k2"), (&format!("POST {path}/rotate-secret"), "k3")]
    {
        let body = if request == CREATE_ENDPOINT { body } else { "{}" };
        assert_eq!(world.request_with_key(request, key, body).await.status, 503, "{request} {key}");
    }
    assert_eq!(world.request(&format!("PATCH {path}"), r#"{"enabled": false}"#).await.status, 200);
    assert_eq!(world.request(&format!("GET {path}"), "").await.json()["enabled"], false);
    let world = world.with_encryption(Some(encryption_keys())).await;
    assert_eq!(world.request_with_key(CREATE_ENDPOINT, "k1", body).await.text, created.text);
}

#[tokio::test]
async fn endpoint_with_an_address_that_is_not_public_is_refused_at_creation_and_at_a_change() {
    let world = World::new().await;
    let created = world.request(CREATE_ENDPOINT, r#"{"url": "https://shop.example.com/"}"#).await.json();
    let change = format!("PATCH /webhook-endpoints/{}", created["id"].as_str().unwrap());
    for host in ["127.0.0.1", "[::1]", "169.254.169.254", "10.1.2.3", "localhost", "internal.example.com"] {
        let body = format!(r#"{{"url": "https://{host}/"}}"#);
        for request in [CREATE_ENDPOINT, &change] {
            let problem = world.request(request, &body).await.problem();
            assert!(
                problem.starts_with("422 refused-field url: must have a public address"),
                "{request} {host}: {problem}"
            );
        }
    }
}

/// Returns all stored items of the delivery `key`. There are two items if an earlier version of Dueday has stored the
/// delivery in another partition.
async fn stored_deliveries(world: &World, key: &DeliveryKey) -> Vec<Item> {
    let partition = format!("WEBHOOK#{}", key.endpoint);
    let is_of_event = |item: &Item| {
        let part = |name: &str| item[name].as_s().unwrap().as_str();
        part("PK").starts_with(&partition) && part("SK") == format!("EVENT#{}", key.event)
    };
    world.table.scan().await.unwrap().into_iter().filter(is_of_event).collect()
}

/// Creates an endpoint, and its deliveries of the events `e1` and `e2`, both with `body`. Removes the status from the
/// item of the delivery of `e1`, so that the item cannot be read. Returns the path of the endpoint's deliveries, and
/// the key of the unreadable delivery.
async fn create_corrupt_delivery(world: &World, body: &str) -> (String, DeliveryKey) {
    let created = world.request(CREATE_ENDPOINT, r#"{"url": "https://shop.example.com/"}"#).await.json();
    let endpoint = created["id"].as_str().unwrap();
    let key = DeliveryKey { endpoint: endpoint.parse().unwrap(), event: "e1".to_owned() };
    let now = world.clock.now();
    for event in ["e1", "e2"] {
        let key = DeliveryKey { event: event.to_owned(), ..key.clone() };
        let new = Delivery::new(key, "account.created".to_owned(), body.to_owned(), now);
        assert!(world.table.create_delivery(&new).await.unwrap());
    }
    let mut item = stored_deliveries(world, &key).await.remove(0);
    item.remove("Status");
    world.table.put(item).await.unwrap();
    (format!("/webhook-endpoints/{endpoint}/deliveries"), key)
}

#[tokio::test]
async fn unreadable_delivery_is_listed_beside_the_others_and_redelivered_with_its_stored_event() {
    let world = World::new().await;
    let (deliveries, key) = create_corrupt_delivery(&world, SAMPLE_EVENT).await;
    let listed = world.request(&format!("GET {deliveries}"), "").await.json();
    assert_eq!((listed["data"].as_array().unwrap().len(), &listed["data"][0]["event"]), (1, &"e2".into()));
    assert!(listed["unreadable"][0]["reason"].as_str().unwrap().contains("Status"), "{listed}");

    let restarted = world.request(&format!("POST {deliveries}/e1/redeliver"), "{}").await;
    assert_eq!((restarted.status, &restarted.json()["type"]), (202, &"account.created".into()), "{}", restarted.text);
    let stored = world.table.get_delivery(&key).await.unwrap().unwrap();
    assert_eq!((stored.status, stored.body.as_str()), (DeliveryStatus::Pending, SAMPLE_EVENT));
}

#[tokio::test]
async fn unreadable_delivery_without_its_event_is_not_redelivered_and_the_problem_says_so() {
    let other_event = SAMPLE_EVENT.replace("e1", "e9");
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
    let new = Delivery::new(key.clone(), "account.created".to_owned(), SAMPLE_EVENT.to_owned(), now);
    assert!(world.table.create_delivery(&new).await.unwrap());
    let restart = now + TimeDelta::days(29);
    let restarted = world.table.restart_delivery(&key, None, restart).await.unwrap().unwrap();
    let tried = |stored: &Delivery| {
        Some(stored.after_attempt(
            &billing::DeliveryResponse::Rejected { status: 500, retry_after: None },
            restart + TimeDelta::seconds(1),
        ))
    };
    world.table.change_delivery(restarted, tried).await.unwrap().unwrap();
    let item = stored_deliveries(&world, &key).await.remove(0);
    let Some(AttributeValue::N(expiry)) = item.get("TTL") else { panic!("no TTL: {item:?}") };
    let expiry: DateTime<Utc> = DateTime::from_timestamp(expiry.parse().unwrap(), 0).unwrap();
    assert!(expiry >= restart + TimeDelta::days(30), "{expiry}");
}

#[tokio::test]
async fn deliveries_of_an_endpoint_are_in_several_partitions_and_listed_once_with_pages_of_any_size() {
    let world = World::new().await;
    let (deliveries, key) = create_corrupt_delivery(&world, SAMPLE_EVENT).await;
    let mut expected: BTreeSet<String> = ["e2".to_owned()].into();
    for n in 3..40 {
        let key = DeliveryKey { event: format!("e{n}"), ..key.clone() };
        expected.insert(key.event.clone());
        let new = Delivery::new(key, "account.created".to_owned(), SAMPLE_EVENT.to_owned(), world.clock.now());
        assert!(world.table.create_delivery(&new).await.unwrap());
    }
    let mut partitions = BTreeSet::new();
    for event in &expected {
        let item = stored_deliveries(&world, &DeliveryKey { event: event.clone(), ..key.clone() }).await.remove(0);
        partitions.insert(item["PK"].as_s().unwrap().clone());
    }
    assert_eq!(partitions.len(), 8, "{partitions:?}");
    for limit in [1, 2, 7, 38, 39, 100] {
        let (mut listed, mut unreadable, mut cursor) = (Vec::new(), 0, String::new());
        loop {
            let page = world.request(&format!("GET {deliveries}?limit={limit}{cursor}"), "").await.json();
            let events = page["data"].as_array().unwrap().iter().map(|one| one["event"].as_str().unwrap().to_owned());
            listed.extend(events);
            unreadable += page["unreadable"].as_array().map_or(0, Vec::len);
            let Some(next) = page["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={}", next.replace('#', "%23"));
        }
        assert_eq!((listed.len(), unreadable), (38, 1), "pages of {limit}");
        assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), expected, "pages of {limit}");
    }
}

#[tokio::test]
async fn delivery_that_an_earlier_version_has_stored_is_found_and_copied_to_its_partition() {
    let world = World::new().await;
    let (_, key) = create_corrupt_delivery(&world, SAMPLE_EVENT).await;
    let key = DeliveryKey { event: "e2".to_owned(), ..key };
    let mut item = stored_deliveries(&world, &key).await.remove(0);
    item.insert("PK".to_owned(), AttributeValue::S(format!("WEBHOOK#{}", key.endpoint)));
    item.insert("SK".to_owned(), AttributeValue::S("EVENT#e9".to_owned()));
    item.insert("EventId".to_owned(), AttributeValue::S("e9".to_owned()));
    world.table.put(item).await.unwrap();
    let key = DeliveryKey { event: "e9".to_owned(), ..key };
    let found = world.table.get_delivery(&key).await.unwrap().unwrap();
    assert_eq!((found.key.clone(), found.status), (key.clone(), DeliveryStatus::Pending));
    assert_eq!(world.table.restart_delivery(&key, None, world.clock.now()).await.unwrap().unwrap().key, key);
    let stored = stored_deliveries(&world, &key).await;
    assert_eq!(stored.len(), 2, "the earlier item expires, and its copy is used");
}
