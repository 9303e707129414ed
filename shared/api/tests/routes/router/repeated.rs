//! Tests of repeated requests, of concurrent requests, and of requests for an outdated version of a subscription.

use emulator::{EngineConnection, ExternalOperation, Fault};
use rest::{Caller, Role};
use serde_json::Value;
use store::Paging;
use testkit::{fault_in_first_calls, sample_account};

use crate::router::world::{NEW_SUBSCRIPTION, World, acme, at};

#[tokio::test]
async fn create_subscription_repeated_after_midnight_gets_the_stored_response() {
    let world = World::new().await;
    world.clock.set(at("2026-03-10T23:59:00Z"));
    let first = world.request_with_key("POST /accounts/acme/subscriptions", "order-1", NEW_SUBSCRIPTION).await;
    assert_eq!((first.status, first.header("etag"), first.header("idempotent-replayed")), (201, "\"1\"", ""));
    world.clock.set(at("2026-03-11T00:01:00Z"));
    let again = world.request_with_key("POST /accounts/acme/subscriptions", "order-1", NEW_SUBSCRIPTION).await;
    assert_eq!((again.status, &again.text, again.header("etag")), (201, &first.text, "\"1\""), "the stored response");
    assert_eq!(again.header("idempotent-replayed"), "true");
    let refused = world.request_with_key("POST /accounts/acme/subscriptions", "order-2", NEW_SUBSCRIPTION).await;
    assert!(refused.problem().starts_with("422 refused-field first_payment_date: must not be before 2026-03-11"));
    let all = world.table.get_subscriptions_by_account(&sample_account().id, &Paging::all()).await.unwrap();
    assert_eq!(all.items.len(), 2);
}

#[tokio::test]
async fn pause_and_cancel_repeated_under_the_same_key_have_no_further_effect() {
    let world = World::new().await;
    let paused = world.request_with_key("POST {gold}/pause", "k1", "").await;
    assert_eq!((paused.status, &paused.json()["status"], paused.header("etag")), (200, &"paused".into(), "\"2\""));
    assert_eq!(
        world.request_with_key("POST {gold}/resume", "k1", "").await.json()["status"],
        "active",
        "a key is valid for one route only"
    );
    let again = world.request_with_key("POST {gold}/pause", "k1", "{}").await;
    assert_eq!((&again.text, again.header("idempotent-replayed")), (&paused.text, "true"));
    assert_eq!(world.stored_gold().await.status.to_string(), "active", "the repeated request did not pause it again");

    let ending = world.request_with_key("POST {gold}/cancel", "k2", r#"{"at_period_end": true}"#).await;
    assert_eq!((&ending.json()["status"], &ending.json()["cancel_date"]), (&"active".into(), &"2026-03-10".into()));
    let other = world.request_with_key("POST {gold}/cancel", "k2", "").await;
    assert_eq!(other.problem().split(' ').take(2).collect::<Vec<_>>(), ["422", "idempotency-key-reused"]);
    assert_eq!(world.stored_gold().await.status.to_string(), "active", "the request with the other body was refused");
    let own = world.request_as(&acme(), "POST {gold}/uncancel", &[("idempotency-key", "k2")], "").await;
    assert_eq!((own.status, &own.json()["cancel_date"]), (200, &Value::Null), "a key is valid for one caller only");

    // The response to a refused request is not stored. So the request can be repeated under the same idempotency key,
    // and succeeds when the cause of the refusal is gone.
    world.request_with_key("POST {gold}/cancel", "k3", r#"{"at_period_end": true}"#).await;
    assert_eq!(world.request_with_key("POST {gold}/pause", "k4", "").await.status, 409);
    world.request_with_key("POST {gold}/uncancel", "k5", "").await;
    assert_eq!(world.request_with_key("POST {gold}/pause", "k4", "").await.status, 200);
}

#[tokio::test]
async fn write_conflicts_are_retried_and_returned_as_409_if_they_persist() {
    // Returns a connection on which the first `times` transactions fail with the error that DynamoDB returns for
    // concurrent transactions on the same item.
    let conflicts = |times| {
        EngineConnection::with_faults(fault_in_first_calls(
            times,
            ExternalOperation::DynamoDb("TransactWriteItems"),
            Fault::Cancelled("TransactionConflict"),
        ))
    };
    let world = World::with_connection(conflicts(u64::MAX)).await;
    for (request, body) in [("POST /accounts/acme/subscriptions", NEW_SUBSCRIPTION), ("POST {gold}/pause", "")] {
        let conflict = world.request_with_key(request, "k", body).await;
        let problem = conflict.problem();
        assert!(problem.starts_with("409 in-progress -: another request is changing"), "{problem}");
    }
    assert_eq!(world.stored_gold().await, world.gold);
    let world = World::with_connection(conflicts(3)).await;
    assert_eq!(
        world.request_with_key("POST /accounts/acme/subscriptions", "k", NEW_SUBSCRIPTION).await.status,
        201,
        "the table retries three conflicts"
    );
}

#[tokio::test]
async fn create_and_pause_are_repeated_under_the_same_key_after_a_lost_response() {
    for has_retries in [true, false] {
        for (request, body) in [("POST /accounts/acme/subscriptions", NEW_SUBSCRIPTION), ("POST {gold}/pause", "")] {
            let lost = fault_in_first_calls(1, ExternalOperation::DynamoDb("TransactWriteItems"), Fault::LostAfter);
            let connection = EngineConnection::with_faults(lost);
            let world =
                World::with_connection(if has_retries { connection } else { connection.without_retries() }).await;
            let first = world.request_with_key(request, "k", body).await;
            // After this error, the crate `store` retries a change of a subscription, but only the AWS SDK retries the
            // creation of a subscription. Without the SDK's retries, the caller of a creation gets 503 and must repeat
            // the request under the same key.
            let succeeds = has_retries || request.ends_with("pause");
            assert_eq!(first.status == 503, !succeeds, "{}", first.text);
            let again = world.request_with_key(request, "k", body).await;
            assert!(matches!(again.status, 200 | 201), "{request}: {}", again.text);
            let all = world.table.get_subscriptions_by_account(&world.gold.account, &Paging::all()).await.unwrap();
            let expected = if request.ends_with("pause") { 1 } else { 2 };
            assert_eq!((all.items.len(), all.items[0].version <= 2), (expected, true), "{request}");
        }
    }
}

#[tokio::test]
async fn change_subscription_requires_the_version_in_if_match() {
    let world = World::new().await;
    let read = world.request("GET {gold}", "").await;
    assert_eq!(read.header("etag"), "\"1\"");
    let changed = async |tag: &str, body: &str| {
        world.request_as(&Caller::Operator(Role::Admin), "PATCH {gold}", &[("if-match", tag)], body).await
    };
    let first = changed("\"1\"", r#"{"amount": 1499}"#).await;
    assert_eq!((first.status, first.header("etag"), &first.json()["amount"]), (200, "\"2\"", &1499.into()));
    let stale = changed("\"1\"", r#"{"amount": 1}"#).await;
    assert!(stale.problem().starts_with("412 stale"), "{}", stale.problem());
    assert_eq!(changed("\"7\", \"2\"", "{}").await.status, 200, "one of the tags in If-Match is the stored version");
    assert_eq!(changed("*", r#"{"email": "gold@acme.example.com"}"#).await.json()["email"], "gold@acme.example.com");
    assert_eq!(world.request("PATCH {gold}", r#"{"email": null}"#).await.json()["email"], Value::Null);
    assert!(changed("2", "{}").await.problem().starts_with("400 invalid-field If-Match"));
    for (body, expected) in [
        ("[1599]", "400 malformed-body -: the body must be an object, not a list"),
        (
            r#"{"payment_method": ["cus_1", "pm_card_visa"]}"#,
            "400 invalid-field payment_method: must be an object, not a list",
        ),
        (r#"{"amount": null}"#, "400 invalid-field amount: must be a whole number, not null"),
        (r#"{"amount": 0}"#, "400 invalid-field amount: must be from 1 to"),
        (r#"{"sku": "x"}"#, "400 invalid-field sku: is unknown; allowed names: amount, payment_day,"),
        (r#"{"currency": "USD"}"#, "400 invalid-field currency: is unknown"),
        (
            r#"{"payment_method": {"customer": "cus_1"}}"#,
            "400 invalid-field payment_method.payment_method: is required",
        ),
    ] {
        let problem = world.request("PATCH {gold}", body).await.problem();
        assert!(problem.starts_with(expected), "{body}: {problem}");
    }
    assert_eq!(world.stored_gold().await.price.minor(), 1499);
}
