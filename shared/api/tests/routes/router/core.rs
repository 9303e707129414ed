//! Tests of the API of a deployment with only the core: it refuses what it cannot do, and reports it.

use rest::{Caller, Role};
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

/// Returns the requests of the examples in the OpenAPI document, such as `GET /accounts/acme`, with their bodies.
fn example_requests() -> Vec<(String, String)> {
    let document = api::openapi_document();
    let mut requests = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let mut path = path.clone();
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let example = match &parameter["example"] {
                    Value::String(text) => text.clone(),
                    Value::Null => "01MCCKG2G0000G0000000000ZZ".to_owned(),
                    other => other.to_string(),
                };
                path = path.replace(&format!("{{{}}}", parameter["name"].as_str().unwrap()), &example);
            }
            let body = &operation["requestBody"]["content"]["application/json"]["example"];
            let body = if body.is_null() { String::new() } else { body.to_string() };
            requests.push((format!("{} {path}", method.to_uppercase()), body));
        }
    }
    requests
}

#[tokio::test]
async fn each_caller_is_refused_the_same_requests_with_only_the_core() {
    let (full, core) = (World::new().await, World::new().await.with_core_only().await);
    let roles = [Role::Read, Role::Support, Role::Operator, Role::Admin].map(Caller::Operator);
    let mut refused = Vec::new();
    for caller in roles.into_iter().chain([acme()]) {
        let mut number = 0;
        for (request, body) in example_requests() {
            let is_forbidden = async |world: &World| {
                let response = world.request_as(&caller, &request, &[("idempotency-key", "key-1")], &body).await;
                response.status == 403 && response.json()["type"] == "urn:dueday:problem:forbidden"
            };
            let is_refused = is_forbidden(&full).await;
            assert_eq!(is_forbidden(&core).await, is_refused, "{request} as {caller:?}");
            number += usize::from(is_refused);
        }
        refused.push(number);
    }
    let [read, support, operator, admin, account] = refused[..] else { panic!("{refused:?}") };
    assert!(read > support && support > operator && (operator, admin) == (0, 0) && account > read, "{refused:?}");
}
