//! The router on a clock that is set.

use std::sync::Arc;

use api::{Api, Caller};
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use axum::{Extension, Router};
use chrono::TimeDelta;
use local::{Engine, sample};
use shared::ambient::Simulated;
use shared::config::{Config, Env};
use shared::table::{Paging, Table};
use tower::ServiceExt;

async fn create(router: &Router, key: &str) -> (StatusCode, String) {
    let body = r#"{"sku":"gold","product_name":"Gold plan","payment_day":10,"amount":1299,"currency":"EUR",
        "payment_method":{"customer":"cus_1","payment_method":"pm_card_visa"},"first_payment_date":"2026-03-10"}"#;
    let request = Request::post("/accounts/acme/subscriptions")
        .header("content-type", "application/json")
        .header("idempotency-key", key)
        .body(Body::from(body))
        .unwrap();
    let response = router.clone().oneshot(request).await.unwrap();
    let status = response.status();
    (status, String::from_utf8(to_bytes(response.into_body(), 100_000).await.unwrap().to_vec()).unwrap())
}

#[tokio::test]
async fn a_request_repeated_after_midnight_is_answered_as_it_was_before() {
    let clock = Arc::new(Simulated::new("2026-03-10T23:59:00Z".parse().unwrap(), 0));
    let table = Table::new(Engine::memory().client(), "dueday", TimeDelta::days(190));
    table.create_if_absent().await.unwrap();
    table.put_account(&sample::account()).await.unwrap();
    let config = Config::read(Env(&|_| None)).unwrap();
    let router =
        Api::new(table.clone(), &config, clock.clone()).await.unwrap().router().layer(Extension(Caller::Operator));

    let (status, first) = create(&router, "order-1").await;
    assert_eq!(status, StatusCode::CREATED, "{first}");
    clock.set("2026-03-11T00:01:00Z".parse().unwrap());
    assert_eq!(create(&router, "order-1").await, (StatusCode::CREATED, first), "the same key: the same answer");
    let (status, refused) = create(&router, "order-2").await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(refused.contains("must not lie before 2026-03-11"), "{refused}");
    assert_eq!(table.get_subscriptions_by_account(&sample::account().id, &Paging::all()).await.unwrap().items.len(), 1);
}
