//! Requests that come again, meet one another, or come too late.

use emulator::{Fault, Operation, Wire};
use rest::Caller;
use serde_json::Value;
use store::Paging;
use testkit::{first, sample};

use crate::router::world::{NEW, World, acme, at};

#[tokio::test]
async fn create_subscription_repeated_after_midnight_is_answered_as_before() {
    let world = World::new().await;
    world.clock.set(at("2026-03-10T23:59:00Z"));
    let first = world.keyed("POST /accounts/acme/subscriptions", "order-1", NEW).await;
    assert_eq!((first.status, first.header("etag"), first.header("idempotent-replayed")), (201, "\"1\"", ""));
    world.clock.set(at("2026-03-11T00:01:00Z"));
    let again = world.keyed("POST /accounts/acme/subscriptions", "order-1", NEW).await;
    assert_eq!((again.status, &again.text, again.header("etag")), (201, &first.text, "\"1\""), "the same answer");
    assert_eq!(again.header("idempotent-replayed"), "true");
    let refused = world.keyed("POST /accounts/acme/subscriptions", "order-2", NEW).await;
    assert!(refused.problem().starts_with("422 refused-field first_payment_date: must not lie before 2026-03-11"));
    let all = world.table.get_subscriptions_by_account(&sample::account().id, &Paging::all()).await.unwrap();
    assert_eq!(all.items.len(), 2);
}

#[tokio::test]
async fn pause_and_cancel_under_a_used_key_are_answered_again_and_not_done_again() {
    let world = World::new().await;
    let paused = world.keyed("POST {gold}/pause", "k1", "").await;
    assert_eq!((paused.status, &paused.json()["status"], paused.header("etag")), (200, &"paused".into(), "\"2\""));
    assert_eq!(
        world.keyed("POST {gold}/resume", "k1", "").await.json()["status"],
        "active",
        "a key counts for its route"
    );
    let again = world.keyed("POST {gold}/pause", "k1", "{}").await;
    assert_eq!((&again.text, again.header("idempotent-replayed")), (&paused.text, "true"));
    assert_eq!(world.stored().await.status.to_string(), "active", "it is not paused again");

    let ending = world.keyed("POST {gold}/cancel", "k2", r#"{"at_period_end": true}"#).await;
    assert_eq!((&ending.json()["status"], &ending.json()["cancel_date"]), (&"active".into(), &"2026-03-10".into()));
    let other = world.keyed("POST {gold}/cancel", "k2", "").await;
    assert_eq!(other.problem().split(' ').take(2).collect::<Vec<_>>(), ["422", "idempotency-key-reused"]);
    assert_eq!(world.stored().await.status.to_string(), "active", "the other body was not carried out");
    let own = world.send(&acme(), "POST {gold}/uncancel", &[("idempotency-key", "k2")], "").await;
    assert_eq!((own.status, &own.json()["cancel_date"]), (200, &Value::Null), "a key counts for its caller");

    // What was refused is not kept: the same key may be used once it can be done.
    world.keyed("POST {gold}/cancel", "k3", r#"{"at_period_end": true}"#).await;
    assert_eq!(world.keyed("POST {gold}/pause", "k4", "").await.status, 409);
    world.keyed("POST {gold}/uncancel", "k5", "").await;
    assert_eq!(world.keyed("POST {gold}/pause", "k4", "").await.status, 200);
}

#[tokio::test]
async fn create_and_pause_at_once_under_one_key_are_carried_out_once() {
    // Each loses once against the other, as DynamoDB says of transactions that meet.
    let conflicts = |times| {
        Wire::with_faults(first(
            times,
            Operation::DynamoDb("TransactWriteItems"),
            Fault::Cancelled("TransactionConflict"),
        ))
    };
    let world = World::over(conflicts(u64::MAX)).await;
    for (request, body) in [("POST /accounts/acme/subscriptions", NEW), ("POST {gold}/pause", "")] {
        let met = world.keyed(request, "k", body).await;
        assert!(met.problem().starts_with("409 in-progress -: another request is changing"), "{}", met.problem());
    }
    assert_eq!(world.stored().await, world.gold);
    let world = World::over(conflicts(3)).await;
    assert_eq!(world.keyed("POST /accounts/acme/subscriptions", "k", NEW).await.status, 201, "tried again");
}

#[tokio::test]
async fn create_and_pause_whose_answer_got_lost_are_answered_when_they_come_again() {
    for has_retries in [true, false] {
        for (request, body) in [("POST /accounts/acme/subscriptions", NEW), ("POST {gold}/pause", "")] {
            let lost = first(1, Operation::DynamoDb("TransactWriteItems"), Fault::LostAfter);
            let wire = Wire::with_faults(lost);
            let world = World::over(if has_retries { wire } else { wire.and_no_retries() }).await;
            let first = world.keyed(request, "k", body).await;
            // The table tries a change again by itself. A creation is tried again by the SDK alone: without that the caller
            // learns nothing, and asks again under the same key.
            let is_told = has_retries || request.ends_with("pause");
            assert_eq!(first.status == 503, !is_told, "{}", first.text);
            let again = world.keyed(request, "k", body).await;
            assert!(matches!(again.status, 200 | 201), "{request}: {}", again.text);
            let all = world.table.get_subscriptions_by_account(&world.gold.account, &Paging::all()).await.unwrap();
            let expected = if request.ends_with("pause") { 1 } else { 2 };
            assert_eq!((all.items.len(), all.items[0].version <= 2), (expected, true), "{request}");
        }
    }
}

#[tokio::test]
async fn change_subscription_is_made_only_on_what_the_caller_has_seen() {
    let world = World::new().await;
    let read = world.ask("GET {gold}", "").await;
    assert_eq!(read.header("etag"), "\"1\"");
    let changed =
        async |tag: &str, body: &str| world.send(&Caller::Operator, "PATCH {gold}", &[("if-match", tag)], body).await;
    let first = changed("\"1\"", r#"{"amount": 1499}"#).await;
    assert_eq!((first.status, first.header("etag"), &first.json()["amount"]), (200, "\"2\"", &1499.into()));
    let stale = changed("\"1\"", r#"{"amount": 1}"#).await;
    assert!(stale.problem().starts_with("412 stale"), "{}", stale.problem());
    assert_eq!(changed("\"7\", \"2\"", "{}").await.status, 200, "one of several");
    assert_eq!(changed("*", r#"{"email": "gold@acme.example.com"}"#).await.json()["email"], "gold@acme.example.com");
    assert_eq!(world.ask("PATCH {gold}", r#"{"email": null}"#).await.json()["email"], Value::Null);
    assert!(changed("2", "{}").await.problem().starts_with("400 invalid-field If-Match"));
    for (body, said) in [
        ("[1599]", "400 malformed-body -: the body must be an object, not a list"),
        (
            r#"{"payment_method": ["cus_1", "pm_card_visa"]}"#,
            "400 invalid-field payment_method: must be an object, not a list",
        ),
        (r#"{"amount": null}"#, "400 invalid-field amount: must be a whole number, not null"),
        (r#"{"amount": 0}"#, "400 invalid-field amount: must be from 1 to"),
        (r#"{"sku": "x"}"#, "400 invalid-field sku: is not known; this takes amount, payment_day,"),
        (r#"{"currency": "USD"}"#, "400 invalid-field currency: is not known"),
        (
            r#"{"payment_method": {"customer": "cus_1"}}"#,
            "400 invalid-field payment_method.payment_method: is required",
        ),
    ] {
        let problem = world.ask("PATCH {gold}", body).await.problem();
        assert!(problem.starts_with(said), "{body}: {problem}");
    }
    assert_eq!(world.stored().await.price.minor(), 1499);
}
