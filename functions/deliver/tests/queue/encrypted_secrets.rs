//! Tests of the encrypted signing secrets of endpoints: replaced and lost encryption keys, secrets that were copied
//! from another endpoint, and secrets in plain text.

use std::sync::Arc;

use billing::{DeliveryKey, DeliveryStatus, StoredSecret, WebhookEndpoint};
use chrono::{DateTime, TimeDelta, Utc};
use clock::{Clock as _, SystemClock};
use encryption::{EncryptionKeys, generate_key};
use outbound::{AllowedAddresses, EndpointChange, EndpointSecrets, EndpointUrlCheck, WebhookEndpoints, sign_webhook};
use testkit::{ENCRYPTION_KEY, encryption_keys, items_with_plain_secret};

use crate::servers::{ReceivedRequests, start_merchant_server};
use crate::world::{World, event, secret};

/// Stores `changed` in place of the stored endpoint `endpoint`.
async fn replace_endpoint(world: &World, endpoint: &WebhookEndpoint, changed: WebhookEndpoint) {
    world.table.change_webhook_endpoint(endpoint.clone(), |_| Some(changed.clone())).await.unwrap().unwrap();
}

/// Returns the service with which the API changes webhook endpoints for an operator.
fn endpoint_service(world: &World) -> WebhookEndpoints {
    let addresses = EndpointUrlCheck::new(AllowedAddresses::Any);
    WebhookEndpoints::new(world.table.clone(), Some(encryption_keys()), addresses, world.clock.clone())
}

/// Sends the event `id` to all endpoints. Returns the times of the next tries of the deliveries that wait.
async fn publish(world: &World, id: &str) -> Vec<DateTime<Utc>> {
    assert_eq!(world.handle(&[event(id, "account.created")]).await, Vec::<usize>::new());
    let sent = world.take_sent();
    assert_eq!(world.handle(&sent).await, Vec::<usize>::new(), "no message fails");
    world.next_tries()
}

/// Removes and returns the signatures of the received deliveries.
fn take_signatures(received: &ReceivedRequests) -> Vec<String> {
    std::mem::take(&mut *received.lock().unwrap()).into_iter().map(|(signature, _)| signature).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn secret_encrypted_with_a_lost_key_stops_only_its_endpoint_until_it_is_rotated() {
    let (world, (merchant, received)) = (World::new().await, start_merchant_server().await);
    world.create_endpoint(1, &format!("{merchant}/200"), &[]).await;
    let lost = world.create_endpoint(2, &format!("{merchant}/204"), &[]).await;
    let other_keys = EncryptionKeys::parse(&generate_key(&SystemClock)).unwrap();
    let encrypted = EndpointSecrets::new(other_keys, world.clock.clone()).encrypt(lost.id, &secret(2));
    replace_endpoint(&world, &lost, WebhookEndpoint { secret: encrypted, ..lost.clone() }).await;

    let waiting = publish(&world, "e1").await;
    let now = world.clock.now().timestamp();
    let body = event("e1", "account.created");
    assert_eq!((take_signatures(&received), waiting.len()), (vec![sign_webhook(&secret(1), "e1", now, &body)], 1));
    let key = DeliveryKey { endpoint: lost.id, event: "e1".to_owned() };
    let delivery = world.table.get_delivery(&key).await.unwrap().unwrap();
    assert_eq!((delivery.status, delivery.attempts), (DeliveryStatus::Pending, 0), "the wait is not a try");

    let (rotated, new) = endpoint_service(&world)
        .rotate_secret(lost.id, &testkit::sample_action(billing::ActionKind::RotateEndpointSecret))
        .await
        .unwrap();
    assert_eq!(rotated.previous_secret, None, "no event can be signed with the lost secret");
    world.clock.set(world.clock.now() + TimeDelta::hours(1));
    assert_eq!(world.handle(&world.send_due_and_take().await).await, Vec::<usize>::new());
    let now = world.clock.now().timestamp();
    assert_eq!(take_signatures(&received), [sign_webhook(&new, "e1", now, &body)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn secret_that_was_copied_from_another_endpoint_is_refused() {
    let (world, (merchant, received)) = (World::new().await, start_merchant_server().await);
    let own = world.create_endpoint(1, &format!("{merchant}/200"), &[]).await;
    let copy = world.create_endpoint(2, &format!("{merchant}/204"), &[]).await;
    replace_endpoint(&world, &copy, WebhookEndpoint { secret: own.secret.clone(), ..copy.clone() }).await;
    assert_eq!(publish(&world, "e1").await.len(), 1, "the delivery to the endpoint with the copy waits");
    let now = world.clock.now().timestamp();
    assert_eq!(take_signatures(&received), [sign_webhook(&secret(1), "e1", now, &event("e1", "account.created"))]);
    let read = EndpointSecrets::new(encryption_keys(), world.clock.clone()).decrypt(copy.id, &own.secret);
    let message = read.unwrap_err().to_string();
    assert!(message.contains("copied from another item") && message.contains("rotate-secret"), "{message}");
    assert!(message.contains(&copy.id.to_string()), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn replaced_key_decrypts_until_the_next_success_encrypts_the_secret_with_the_first_key() {
    let new_key = generate_key(&SystemClock);
    let rotated = EncryptionKeys::parse(&format!("{new_key}\n{ENCRYPTION_KEY}")).unwrap();
    let (world, (merchant, received)) = (World::with_keys(rotated).await, start_merchant_server().await);
    let endpoint = world.create_endpoint(1, &format!("{merchant}/200"), &[]).await;
    for (id, version) in [("e1", 2), ("e2", 2)] {
        assert!(publish(&world, id).await.is_empty());
        let now = world.clock.now().timestamp();
        assert_eq!(take_signatures(&received), [sign_webhook(&secret(1), id, now, &event(id, "account.created"))]);
        let stored = world.table.get_webhook_endpoint(endpoint.id).await.unwrap().unwrap();
        assert_eq!(stored.version, version, "one write for the first success");
        let only_new = EndpointSecrets::new(EncryptionKeys::parse(&new_key).unwrap(), Arc::new(SystemClock));
        assert_eq!(only_new.decrypt(endpoint.id, &stored.secret).unwrap(), secret(1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_secrets_of_an_earlier_version_sign_and_are_encrypted_by_the_next_success() {
    let (world, (merchant, received)) = (World::new().await, start_merchant_server().await);
    let endpoint = world.create_endpoint(1, &format!("{merchant}/200"), &[]).await;
    let now = world.clock.now();
    let plain = WebhookEndpoint {
        secret: StoredSecret::Plain(secret(1)),
        previous_secret: Some((StoredSecret::Plain(secret(7)), now + TimeDelta::hours(1))),
        // The stored success is recent, so the next success alone would cause no write of the endpoint. The endpoint is
        // written anyway, because the next success also encrypts its secrets.
        last_success_at: Some(now),
        ..endpoint.clone()
    };
    replace_endpoint(&world, &endpoint, plain).await;
    for plain in [1, 7] {
        assert_eq!(items_with_plain_secret(&world.table, &secret(plain)).await.len(), 1, "the search finds it");
    }
    let body = event("e1", "account.created");
    assert!(publish(&world, "e1").await.is_empty());
    let both = [1, 7].map(|n| sign_webhook(&secret(n), "e1", now.timestamp(), &body)).join(" ");
    assert_eq!(take_signatures(&received), [both]);
    for plain in [1, 7] {
        let found = items_with_plain_secret(&world.table, &secret(plain)).await;
        assert!(found.is_empty(), "{found:?}");
    }
    let stored = world.table.get_webhook_endpoint(endpoint.id).await.unwrap().unwrap();
    let secrets = EndpointSecrets::new(encryption_keys(), world.clock.clone());
    assert_eq!(secrets.signing_secrets(&stored, now).unwrap(), [secret(1), secret(7)], "the same secrets");
}

#[tokio::test(flavor = "multi_thread")]
async fn rotation_and_change_by_an_operator_encrypt_the_plain_secret_of_an_earlier_version() {
    let world = World::new().await;
    let (now, secrets) = (world.clock.now(), EndpointSecrets::new(encryption_keys(), world.clock.clone()));
    let (rotated, changed) = (1, 2);
    for n in [rotated, changed] {
        let endpoint = world.create_endpoint(n, "http://127.0.0.1/", &[]).await;
        replace_endpoint(
            &world,
            &endpoint,
            WebhookEndpoint { secret: StoredSecret::Plain(secret(n)), ..endpoint.clone() },
        )
        .await;
        let stored = if n == rotated {
            let (stored, new) = endpoint_service(&world)
                .rotate_secret(endpoint.id, &testkit::sample_action(billing::ActionKind::RotateEndpointSecret))
                .await
                .unwrap();
            assert_eq!(secrets.signing_secrets(&stored, now).unwrap(), [new, secret(n)]);
            stored
        } else {
            let disable = EndpointChange { enabled: Some(false), ..EndpointChange::default() };
            let stored = endpoint_service(&world)
                .change(endpoint.id, disable, &testkit::sample_action(billing::ActionKind::ChangeEndpoint))
                .await
                .unwrap();
            assert_eq!(secrets.signing_secrets(&stored, now).unwrap(), [secret(n)]);
            stored
        };
        assert_eq!(stored.version, 3, "the operator's change was one write");
        assert_eq!(items_with_plain_secret(&world.table, &secret(n)).await, []);
    }
}
