//! Concurrent requests to the table of the sandbox, and lost requests.

use std::collections::BTreeSet;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use clock::{Clock as _, SimulatedClock};
use emulator::{Engine, EngineConnection, ExternalCall, ExternalOperation, Fault, FaultDecider, FaultInjector};
use futures::future::join_all;
use gateways::{ChargeRequest, ChargeResponse, RefundRequest, RefundResponse};
use sandbox::SandboxStore as _;
use sandbox_function::SandboxTable;
use serde_json::json;

/// Returns the simulated time of the requests.
fn now() -> DateTime<Utc> {
    "2027-01-31T06:00:00Z".parse().unwrap()
}

/// A fault injector without faults that pauses each request at each of its calls to DynamoDB. All concurrent requests
/// therefore read the table before the first of them writes.
struct PauseAtEachCall;

impl FaultDecider for PauseAtEachCall {
    fn fault_of_call(&self, _: &ExternalCall<'_>) -> Option<Fault> {
        None
    }

    fn yields_per_call(&self) -> u32 {
        3
    }
}

/// Creates the sandbox's table on `engine`. `faults` are injected into the DynamoDB requests of the returned sandbox.
async fn sandbox_with(engine: &Engine, faults: impl FaultDecider + 'static) -> SandboxTable {
    let clock = Arc::new(SimulatedClock::new(now(), 1));
    SandboxTable::new(engine.client(), "dueday-sandbox", clock.clone()).create_if_absent().await.unwrap();
    let connection = Arc::new(EngineConnection::with_injector(Arc::new(FaultInjector::new(Arc::new(faults)))));
    SandboxTable::new(engine.client_with_connection(connection), "dueday-sandbox", clock)
}

/// Returns a charge request with the idempotency key `key-1`.
fn charge_request(amount: i64, payment_method: &str) -> ChargeRequest {
    let request = json!({
        "idempotency_key": "key-1", "account": "acme", "subscription": "01JZXCVBNM0123456789ABCDEG", "sku": "gold",
        "due_on": "2027-01-31", "attempt_no": 1, "amount": amount, "currency": "EUR", "customer": "cus_acme",
        "payment_method": payment_method,
    });
    serde_json::from_value(request).unwrap()
}

/// Returns the number of payments that the sandbox lists for the customer.
async fn number_of_payments(sandbox: &SandboxTable) -> usize {
    sandbox.payments(&"cus_acme".parse().unwrap(), DateTime::UNIX_EPOCH, now()).await.unwrap().len()
}

#[tokio::test]
async fn idempotency_key_charges_once_under_concurrent_requests() {
    let sandbox = sandbox_with(&Engine::in_memory(), PauseAtEachCall).await;
    let request = charge_request(1299, "pm_card_visa");
    let responses = join_all((0..8).map(|_| sandbox.charge(&request, now()))).await;
    let ids: BTreeSet<String> = responses
        .into_iter()
        .map(|response| match response.unwrap() {
            ChargeResponse::Succeeded(payment) => payment.id.to_string(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!((ids.len(), number_of_payments(&sandbox).await), (1, 1));

    // After 24 hours the sandbox has forgotten the idempotency key. Eight concurrent requests under this key make only
    // one more payment.
    let later = now() + sandbox::rules::IDEMPOTENCY_KEY_LIFETIME;
    let responses = join_all((0..8).map(|_| sandbox.charge(&request, later))).await;
    assert!(responses.iter().all(|response| matches!(response, Ok(ChargeResponse::Succeeded(_)))), "{responses:?}");
    assert_eq!(number_of_payments(&sandbox).await, 2);
}

#[tokio::test]
async fn concurrent_requests_with_different_parameters_under_one_key_charge_once() {
    let sandbox = sandbox_with(&Engine::in_memory(), PauseAtEachCall).await;
    let requests = [charge_request(1299, "pm_card_visa"), charge_request(1300, "pm_card_visa")];
    let responses = join_all(requests.iter().map(|request| sandbox.charge(request, now()))).await;
    let reused = responses.iter().filter(|response| matches!(response, Ok(ChargeResponse::KeyReused))).count();
    assert_eq!((reused, number_of_payments(&sandbox).await), (1, 1), "{responses:?}");
}

#[tokio::test]
async fn concurrent_refunds_never_exceed_the_payment() {
    let sandbox = sandbox_with(&Engine::in_memory(), PauseAtEachCall).await;
    let charged = sandbox.charge(&charge_request(1000, "pm_card_visa"), now()).await.unwrap();
    let ChargeResponse::Succeeded(paid) = charged else { panic!("{charged:?}") };
    let clock = SimulatedClock::new(now(), 2);
    let refund = |minor| RefundRequest {
        refund: clock.ulid(),
        payment: paid.id.clone(),
        amount: paid.amount.currency().price(minor).unwrap(),
    };
    let requests: Vec<_> = (0..4).map(|_| refund(400)).collect();
    let responses = join_all(requests.iter().map(|request| sandbox.refund(request, now()))).await;
    let made = responses.iter().filter(|response| matches!(response, Ok(RefundResponse::Made(_)))).count();
    assert_eq!((made, sandbox.refunds(&paid.id).await.unwrap().len()), (2, 2), "{responses:?}");
    // Four concurrent requests for the same refund make one refund.
    let last = refund(200);
    let responses = join_all((0..4).map(|_| sandbox.refund(&last, now()))).await;
    assert!(responses.iter().all(|response| matches!(response, Ok(RefundResponse::Made(_)))), "{responses:?}");
    assert_eq!(sandbox.refunds(&paid.id).await.unwrap().len(), 3);
}

#[tokio::test]
async fn one_refund_id_refunds_only_one_of_two_payments() {
    let sandbox = sandbox_with(&Engine::in_memory(), PauseAtEachCall).await;
    let mut requests = Vec::new();
    for key in ["key-1", "key-2"] {
        let request = ChargeRequest { idempotency_key: key.to_owned(), ..charge_request(1000, "pm_card_visa") };
        let ChargeResponse::Succeeded(paid) = sandbox.charge(&request, now()).await.unwrap() else { panic!() };
        let refund = "01JZXCVBNM0123456789ABCDEH".parse().unwrap();
        requests.push(RefundRequest { refund, payment: paid.id, amount: paid.amount });
    }
    let responses = join_all(requests.iter().map(|request| sandbox.refund(request, now()))).await;
    let made = responses.iter().filter(|response| matches!(response, Ok(RefundResponse::Made(_)))).count();
    assert_eq!(made, 1, "{responses:?}");
}

#[tokio::test]
async fn repeated_charge_after_a_lost_or_cancelled_request_makes_one_payment() {
    for fault in [Fault::LostBefore, Fault::LostAfter, Fault::Cancelled("TransactionConflict")] {
        let engine = Engine::in_memory();
        // The SDK tries a request three times. All three tries have the fault, so the first charge fails.
        let all_tries = move |call: &ExternalCall<'_>| {
            (call.operation == ExternalOperation::DynamoDb("TransactWriteItems")).then_some(fault)
        };
        let failing = sandbox_with(&engine, all_tries).await;
        let request = charge_request(1299, "pm_card_visa");
        assert!(failing.charge(&request, now()).await.is_err(), "{fault:?}");
        let sandbox = sandbox_with(&engine, PauseAtEachCall).await;
        let ChargeResponse::Succeeded(paid) = sandbox.charge(&request, now()).await.unwrap() else { panic!() };
        assert_eq!(number_of_payments(&sandbox).await, 1, "{fault:?}");
        assert_eq!(sandbox.payment(&paid.id, now()).await.unwrap().as_ref(), Some(&paid));
    }
}

#[tokio::test]
async fn bank_debit_is_processing_for_two_days_and_its_status_then_is_final() {
    let sandbox = sandbox_with(&Engine::in_memory(), PauseAtEachCall).await;
    let request = charge_request(1299, "pm_usBankAccount_insufficientFunds");
    assert_eq!(sandbox.charge(&request, now()).await.unwrap(), ChargeResponse::Processing);
    for (hours, status) in [(47, "processing"), (48, "declined")] {
        let then = now() + chrono::TimeDelta::hours(hours);
        let listed = sandbox.payments(&"cus_acme".parse().unwrap(), now(), then).await.unwrap();
        let text = serde_json::to_string(&listed).unwrap();
        assert!(text.contains(status), "after {hours} hours: {text}");
    }
}
