//! Tests of the API of a deployment with only the core: it refuses what it cannot do, and reports it.

use serde_json::Value;

use crate::router::world::{NEW_SUBSCRIPTION, World, acme, at};

/// The requests about webhook endpoints, with their bodies.
const WEBHOOK_REQUESTS: [(&str, &str); 8] = [
    ("POST /webhook-endpoints", r#"{"url": "https://example.com/hook"}"#),
    ("GET /webhook-endpoints", ""),
    ("GET /webhook-endpoints/01JZXCVBNM0123456789ABCDEF", ""),
    ("PATCH /webhook-endpoints/01JZXCVBNM0123456789ABCDEF", "{}"),
    ("DELETE /webhook-endpoints/01JZXCVBNM0123456789ABCDEF", ""),
    ("POST /webhook-endpoints/01JZXCVBNM0123456789ABCDEF/rotate-secret", "{}"),
    ("GET /webhook-endpoints/01JZXCVBNM0123456789ABCDEF/deliveries", ""),
    ("POST /webhook-endpoints/01JZXCVBNM0123456789ABCDEF/deliveries/e1/redeliver", "{}"),
];

#[tokio::test]
async fn core_refuses_webhook_endpoints_and_says_that_they_are_not_deployed() {
    let world = World::new().await.with_core_only().await;
    for (request, body) in WEBHOOK_REQUESTS {
        let refused = world.request(request, body).await.problem();
        let expected =
            "409 not-deployed -: outbound webhooks are not deployed. Deploy the stack with the parameter Parts=full";
        assert_eq!(refused, expected, "{request}");
        let other = world.request_as(&acme(), request, &[], body).await.problem();
        assert_eq!(other, "403 forbidden -: only an operator may do this", "{request}");
    }
}

#[tokio::test]
async fn core_refuses_an_erasure_that_no_function_would_carry_out() {
    let world = World::new().await.with_core_only().await;
    world.cancel_subscriptions().await;
    let refused = world.request("DELETE /accounts/acme", "").await.problem();
    assert!(refused.starts_with("409 not-deployed -: the function that erases accounts is not deployed"), "{refused}");
    assert!(refused.contains("dueday account erase"), "{refused}");
    let account = world.request("PUT /accounts/acme", r#"{"email": "b@example.com", "name": "B"}"#).await;
    assert_eq!(account.status, 200, "no erasure was requested: {}", account.text);
}

#[tokio::test]
async fn core_charges_and_refunds_like_all_parts() {
    let world = World::new().await.with_core_only().await;
    let created = world.request("POST /accounts/acme/subscriptions", NEW_SUBSCRIPTION).await;
    assert_eq!(created.status, 201, "{}", created.text);
    assert_eq!(world.request("GET /accounts/acme/receipts", "").await.status, 200);
}

#[tokio::test]
async fn status_lists_what_the_core_does_not_do_and_misses_no_nightly_check() {
    let problems = |status: &Value| -> Vec<String> { serde_json::from_value(status["problems"].clone()).unwrap() };
    let is_about_checks = |problem: &String| problem.contains("audit") || problem.contains("compared");
    let full = World::new().await;
    full.clock.set(at("2026-03-15T12:00:00Z"));
    let status = full.request("GET /status", "").await.json();
    assert_eq!(status["not_deployed"], serde_json::json!([]));
    assert_eq!(problems(&status).iter().filter(|problem| is_about_checks(problem)).count(), 2, "{status}");

    let core = full.with_core_only().await;
    let status = core.request("GET /status", "").await.json();
    let missing = status["not_deployed"].as_array().unwrap();
    assert!(missing.iter().any(|part| part == "events, their archive and outbound webhooks"), "{missing:?}");
    assert!(!problems(&status).iter().any(is_about_checks), "{status}");
}
