//! Test of the IAM policy of the sandbox gateway's function.

use std::sync::Arc;

use chrono::TimeDelta;
use clock::{Clock as _, SimulatedClock};
use emulator::{Engine, EngineConnection};
use gateways::{ChargeRequest, ChargeResponse, CheckoutPageRequest, RefundRequest, RefundResponse, TimeRange};
use sandbox::SandboxStore as _;
use sandbox_function::SandboxTable;
use serde_json::json;

use super::policies::assert_policy;
use super::six_oclock;

#[tokio::test]
async fn policy_of_sandbox_function_matches_its_requests() {
    let (engine, connection) = (Engine::in_memory(), Arc::new(EngineConnection::recording_permissions()));
    let clock = Arc::new(SimulatedClock::new(six_oclock("2027-01-31"), 1));
    let unrecorded = SandboxTable::new(engine.client(), "dueday-sandbox", clock.clone());
    unrecorded.create_if_absent().await.unwrap();
    let sandbox = SandboxTable::new(engine.client_with_connection(connection.clone()), "dueday-sandbox", clock.clone());
    sandbox.account().await.unwrap();
    let request: ChargeRequest = serde_json::from_value(json!({
        "idempotency_key": "key-1", "account": "acme", "subscription": "01JZXCVBNM0123456789ABCDEG", "sku": "gold",
        "due_on": "2027-01-31", "attempt_no": 1, "amount": 1299, "currency": "EUR", "customer": "cus_acme",
        "payment_method": "pm_card_visa",
    }))
    .unwrap();
    for days in [0, 0, 2] {
        // The second charge request repeats the first request. The third request is sent two days later, when the
        // gateway has forgotten the idempotency key.
        let now = clock.now() + TimeDelta::days(days);
        let ChargeResponse::Succeeded(paid) = sandbox.charge(&request, now).await.unwrap() else { panic!() };
        let refund = RefundRequest {
            refund: clock.ulid(),
            payment: paid.id.clone(),
            amount: paid.amount.currency().price(100).unwrap(),
        };
        let refunded = sandbox.refund(&refund, now).await.unwrap();
        assert!(matches!(refunded, RefundResponse::Made(_)), "{refunded:?}");
        assert!(sandbox.payment(&paid.id, now).await.unwrap().is_some());
        assert!(!sandbox.refunds(&paid.id).await.unwrap().is_empty());
    }
    let customer = &request.payment_method.customer;
    assert_eq!(sandbox.payments(customer, clock.now(), clock.now()).await.unwrap().len(), 2);
    let day = TimeRange::of_day("2027-01-31".parse().unwrap());
    assert_eq!(sandbox.payments_in_range(&day, None, clock.now()).await.unwrap().items.len(), 1);
    assert_eq!(sandbox.refunds_in_range(&day, None).await.unwrap().items.len(), 3);
    let request = CheckoutPageRequest {
        setup: clock.ulid(),
        account: "acme".parse().unwrap(),
        email: "billing@acme.example.com".parse().unwrap(),
        customer: None,
        return_url: "https://api.example.com/back".to_owned(),
    };
    let page = sandbox.open_page(&request, clock.now()).await.unwrap();
    assert_eq!(sandbox.open_page(&request, clock.now()).await.unwrap(), page);
    assert!(sandbox.complete_page(&page.id, &"pm_card_visa".parse().unwrap(), clock.now()).await.unwrap());
    assert_policy("SandboxFunction", &connection.recorded_permissions());
}
