//! Tests of the erasure of an account: which callers may request it, in which states of the account it is refused, and
//! which requests are refused after it.

use erasing::Eraser;

use crate::router::world::{NEW_SUBSCRIPTION, World, acme};

/// The body of a request that creates or changes an account.
const ACCOUNT_BODY: &str = r#"{"email": "a@example.com", "name": "A"}"#;

#[tokio::test]
async fn erasure_needs_an_operator_and_is_refused_while_a_subscription_is_active() {
    let world = World::new().await;
    let refused = world.request_as(&acme(), "DELETE /accounts/acme", &[], "").await;
    assert_eq!(refused.problem(), "403 forbidden -: only an operator may do this");
    let missing = world.request("DELETE /accounts/unknown", "").await;
    assert_eq!(missing.problem(), "404 not-found -: there is no such account");
    let id = world.gold.id;
    let active = world.request("DELETE /accounts/acme", "").await.problem();
    let expected = format!("the account cannot be erased: the subscription {id} is active, not cancelled");
    assert_eq!(active, format!("409 conflict -: {expected}"));
}

#[tokio::test]
async fn erasure_is_refused_while_the_customer_can_enter_a_card() {
    let world = World::new().await;
    let setup = world.request("POST /accounts/acme/payment-method-setups", "{}").await.json();
    world.cancel_subscriptions().await;
    let open = world.request("DELETE /accounts/acme", "").await.problem();
    let expected = format!("the payment method setup {} is open until", setup["id"].as_str().unwrap());
    assert!(open.starts_with("409 conflict") && open.contains(&expected), "{open}");
}

#[tokio::test]
async fn account_cannot_be_changed_during_its_erasure_and_its_id_cannot_be_used_after_it() {
    let world = World::new().await;
    world.cancel_subscriptions().await;
    for _ in 0..2 {
        let requested = world.request("DELETE /accounts/acme", "").await;
        assert_eq!((requested.status, &requested.json()["step"]), (202, &"order_desk".into()), "{}", requested.text);
    }
    let changes = [
        ("PUT /accounts/acme", ACCOUNT_BODY),
        ("POST /accounts/acme/subscriptions", NEW_SUBSCRIPTION),
        ("POST /accounts/acme/payment-method-setups", "{}"),
    ];
    for (request, body) in changes {
        let refused = world.request(request, body).await.problem();
        assert_eq!(refused, "409 conflict -: the account is being erased, and can no longer be changed", "{request}");
    }
    let eraser = Eraser::new(world.table.clone(), None, world.clock.clone());
    assert_eq!(eraser.continue_all_erasures(None).await.unwrap().erased, 1);
    let erased = world.request("DELETE /accounts/acme", "").await;
    assert_eq!((erased.status, erased.json()["erased_at"].as_str()), (200, Some("2026-03-05T12:00:00Z")));
    for (request, body) in &changes[..2] {
        let refused = world.request(request, body).await.problem();
        let expected = "410 gone -: the account was erased; no account can have its id again";
        assert_eq!(refused, expected, "{request}");
    }
    for request in ["GET /accounts/acme", "GET /accounts/acme/subscriptions"] {
        let missing = world.request(request, "").await.problem();
        assert_eq!(missing, "404 not-found -: there is no such account", "{request}");
    }
}
