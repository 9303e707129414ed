//! Tests of the route that receives the events, and of their signatures.

use super::*;

#[tokio::test]
async fn webhook_route_returns_success_only_for_verified_and_processed_events() {
    let world = World::new("pm_card_visa").await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    let secrets = SigningSecrets::parse(SECRET).unwrap();
    let (event, now) =
        (world.server.event_body("evt_1", "payment_intent.succeeded", "pi_000001"), world.system.clock.now());
    let status_of_request = async |signature: Option<String>, body: &str| {
        let mut request = Request::post("/webhooks/stripe");
        if let Some(signature) = signature {
            request = request.header("Stripe-Signature", signature);
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        stripe_webhook_routes(world.events.clone()).oneshot(request).await.unwrap().status()
    };
    let signed = |body: &str| Some(secrets.sign(body.as_bytes(), now));
    assert_eq!(status_of_request(None, &event).await, StatusCode::BAD_REQUEST);
    assert_eq!(status_of_request(signed(&event), &event.replace("pi_", "pj_")).await, StatusCode::BAD_REQUEST);
    let old = secrets.sign(event.as_bytes(), now - TimeDelta::seconds(301));
    assert_eq!(status_of_request(Some(old), &event).await, StatusCode::BAD_REQUEST);
    world.server.set_permanent_fault(Some(StripeFault::NotBegun));
    assert_eq!(
        status_of_request(signed(&event), &event).await,
        StatusCode::SERVICE_UNAVAILABLE,
        "Stripe sends it again"
    );
    world.server.set_permanent_fault(None);
    assert_eq!(status_of_request(signed(&event), &event).await, StatusCode::OK);
    assert_eq!(status_of_request(signed(&event), &event).await, StatusCode::OK);
}

/// Sends `body` with a valid signature to the route. Returns the status and the problem in the response.
async fn send_signed(world: &World, body: &str) -> (StatusCode, serde_json::Value) {
    let signature = SigningSecrets::parse(SECRET).unwrap().sign(body.as_bytes(), world.system.clock.now());
    let request = Request::post("/webhooks/stripe").header("Stripe-Signature", signature);
    let response = stripe_webhook_routes(world.events.clone())
        .oneshot(request.body(Body::from(body.to_owned())).unwrap())
        .await
        .unwrap();
    let status = response.status();
    let bytes = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap();
    (status, serde_json::from_slice(&bytes).unwrap())
}

#[tokio::test]
async fn too_large_body_is_refused_with_a_problem() {
    let world = World::new("pm_card_visa").await;
    let (status, problem) = send_signed(&world, &"x".repeat(1024 * 1024 + 1)).await;
    assert_eq!((status, &problem["type"]), (StatusCode::PAYLOAD_TOO_LARGE, &"urn:dueday:problem:too-large".into()));
    assert_eq!(send_signed(&world, &"x".repeat(1024 * 1024)).await.0, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn signed_event_with_a_thin_payload_is_refused_with_advice_and_not_logged_as_forged() {
    let world = World::new("pm_card_visa").await;
    let thin = r#"{"id": "evt_1", "object": "v2.core.event", "type": "v1.payment_intent.succeeded",
        "related_object": {"id": "pi_000001", "type": "payment_intent"}}"#;
    let (lines, guard) = testkit::capture_log_lines();
    let (status, problem) = send_signed(&world, thin).await;
    drop(guard);
    let advice = "create an event destination with snapshot payloads";
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(problem["detail"].as_str().unwrap().contains(advice), "{problem}");
    let logged = lines.fields_of_lines();
    let messages: Vec<_> = logged.iter().map(|line| line["message"].as_str().unwrap()).collect();
    assert_eq!(messages, [inbound::FAILED_EVENT_MESSAGE], "it is not reported as forged");
    assert!(logged[0]["error"].as_str().unwrap().contains(advice), "{logged:?}");
}

#[tokio::test]
async fn event_is_verified_with_the_signing_secret_that_has_replaced_the_known_one() {
    let world = World::new("pm_card_visa").await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    let parse = |text: &str| SigningSecrets::parse(text).unwrap();
    let secret = create_replaced_secret(parse("whsec_fedcba9876543210"), parse(SECRET), &world.system.clock).await;
    let clock = world.system.clock.clone();
    let handler = StripeEventHandler::new(world.table().clone(), world.stripe.clone(), secret, clock);
    let event = world.server.event_body("evt_1", "payment_intent.succeeded", "pi_000001");
    let signed = |secret: &str| parse(secret).sign(event.as_bytes(), world.system.clock.now());
    let outcome = handler.handle(&signed(SECRET), event.as_bytes()).await.unwrap();
    assert_eq!(outcome, InboundOutcome::Processed);
    let refused = handler.handle(&signed("whsec_aaaaaaaaaaaaaaaa"), event.as_bytes()).await;
    assert!(matches!(refused, Err(InboundError::NotVerified(InboundWebhookError::NotSigned))), "{refused:?}");
}
