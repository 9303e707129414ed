//! Tests of gateway responses that contradict the request or themselves: a payment in such a response gets no receipt.
//! Also tests of runs for past dates, and of empty list pages of the payment index.

use std::sync::Arc;

use async_trait::async_trait;
use billing::{Decline, GatewayAccount, GatewayToken, Money, Payment, PaymentStatus, Subscription, SubscriptionStatus};
use chrono::{DateTime, TimeDelta, Utc};
use emulator::{EngineConnection, Fault};
use gateways::{ChargeRequest, ChargeResponse, GatewayError, PaymentGateway};
use sandbox::Sandbox;
use serde_json::json;

use crate::world::{World, billing_time, card, new_subscription, nonzero_counts};

/// A function that changes a payment in a response of the gateway.
type ChangePayment = fn(&mut Payment);

/// The sandbox gateway, but `change` modifies each payment in its charges and lists, and `change_read` each payment that
/// is requested by its id.
#[derive(Debug)]
struct ModifyingGateway {
    sandbox: Arc<Sandbox>,
    change: ChangePayment,
    change_read: ChangePayment,
}

impl ModifyingGateway {
    /// Creates a gateway whose responses to requests for single payments are correct.
    fn new(world: &World, change: ChangePayment) -> Arc<Self> {
        Arc::new(Self { sandbox: world.sandbox.clone(), change, change_read: |_| {} })
    }
}

#[async_trait]
impl PaymentGateway for ModifyingGateway {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        self.sandbox.account().await
    }

    async fn charge(&self, request: &ChargeRequest) -> ChargeResponse {
        match self.sandbox.charge(request).await {
            ChargeResponse::Succeeded(mut payment) => {
                (self.change)(&mut payment);
                ChargeResponse::Succeeded(payment)
            }
            other => other,
        }
    }

    async fn payments_of_customer(
        &self,
        customer: &GatewayToken,
        since: DateTime<Utc>,
    ) -> Result<Vec<Payment>, GatewayError> {
        let mut payments = self.sandbox.payments_of_customer(customer, since).await?;
        payments.iter_mut().for_each(self.change);
        Ok(payments)
    }

    async fn payment(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        let mut read = self.sandbox.payment(id).await?;
        read.iter_mut().for_each(self.change_read);
        Ok(read)
    }
}

/// Sets the status of `payment` to succeeded if it is the payment of the first attempt.
fn report_first_attempt_as_paid(payment: &mut Payment) {
    if payment.attempt_no == 1 {
        payment.status = PaymentStatus::Succeeded;
    }
}

#[tokio::test]
async fn look_up_finds_the_late_success_of_an_earlier_attempt() {
    let world = World::new().await;
    let declined = Subscription {
        payment_method: card("pm_card_chargeDeclinedInsufficientFunds"),
        ..new_subscription(10, "2026-02-20")
    };
    world.store(&declined).await;
    for day in ["2026-03-10", "2026-03-11"] {
        world.run_payments(day).await;
    }
    world.inject_charge_fault(Fault::LostBefore);
    world.run_payments("2026-03-13").await;
    let gateway = ModifyingGateway::new(&world, report_first_attempt_as_paid);
    let payments = world.separate_payment_batch(EngineConnection::default(), gateway).await;
    world.run_payment_batch(&payments, "2026-03-13", billing_time("2026-03-13") + TimeDelta::minutes(21)).await;
    assert_eq!(world.receipt_due_dates(&declined).await, ["2026-03-10"]);
    assert_eq!(world.sandbox.entries().len(), 2, "the third attempt is not charged");
}

#[tokio::test]
async fn decline_of_an_earlier_attempt_is_confirmed_before_the_month_is_charged_again() {
    // Each case contains the change of the payment when it is requested by its id, the outcome of the look-up, the
    // number of payments at the gateway, and the due dates of the receipts.
    let cases: [(ChangePayment, &str, usize, &[&str]); 3] = [
        (|_| {}, "paid", 2, &["2026-03-10"]),
        (report_first_attempt_as_paid, "paid", 1, &["2026-03-10"]),
        (|payment| payment.amount = Money::new(1, payment.amount.currency()), "in_doubt", 1, &[]),
    ];
    for (change_read, outcome, charges, receipts) in cases {
        let world = World::new().await;
        let declined = Subscription {
            payment_method: card("pm_card_chargeDeclinedInsufficientFunds"),
            ..new_subscription(10, "2026-02-20")
        };
        world.store(&declined).await;
        world.run_payments("2026-03-10").await;
        let new_card = |stored: &Subscription| Subscription { payment_method: card("pm_card_visa"), ..stored.clone() };
        world.change_subscription(&declined, new_card).await;
        world.inject_charge_fault(Fault::LostBefore);
        world.run_payments("2026-03-11").await;
        let gateway = Arc::new(ModifyingGateway { sandbox: world.sandbox.clone(), change: |_| {}, change_read });
        let payments = world.separate_payment_batch(EngineConnection::default(), gateway).await;
        let later = billing_time("2026-03-11") + TimeDelta::minutes(21);
        let report = world.run_payment_batch(&payments, "2026-03-11", later).await;
        assert_eq!(nonzero_counts(&report), [(outcome, 1)]);
        assert_eq!(world.receipt_due_dates(&declined).await, receipts);
        assert_eq!(world.sandbox.entries().len(), charges, "{outcome}");
    }
}

#[tokio::test]
async fn payment_that_contradicts_its_attempt_gets_no_receipt() {
    // Each case contains the expected reason of the failure, and the function that makes the gateway's response
    // contradictory.
    let cases: [(&str, ChangePayment); 6] = [
        ("its amount is 1299.00 EUR, and 12.99 EUR was requested", |p| {
            p.amount = Money::new(129_900, p.amount.currency())
        }),
        ("its amount is 12.99 USD, and 12.99 EUR was requested", |p| {
            p.amount = Money::new(1299, "USD".parse().unwrap())
        }),
        ("it belongs to another subscription", |p| p.account = "other".parse().unwrap()),
        ("it belongs to another subscription", |p| p.subscription = "01JZXCVBNM0123456789ABCDEF".parse().unwrap()),
        ("its due date is 2026-04-10, not 2026-03-10", |p| p.due_on = "2026-04-10".parse().unwrap()),
        ("there is no record of its attempt 7", |p| p.attempt_no = 7),
    ];
    for (expected, change) in cases {
        let world = World::new().await;
        let subscription = new_subscription(10, "2026-02-20");
        world.store(&subscription).await;
        let gateway = ModifyingGateway::new(&world, change);
        let payments = world.separate_payment_batch(EngineConnection::default(), gateway).await;
        let report = world.run_payment_batch(&payments, "2026-03-10", billing_time("2026-03-10")).await;
        assert_eq!(nonzero_counts(&report), [("failed", 1)], "{expected}");
        assert!(report.failures[0].reason.contains(expected), "{expected}: {}", report.failures[0].reason);
        assert!(!report.is_done(), "{expected}");
        assert_eq!(world.receipt_due_dates(&subscription).await.len(), 0, "{expected}");
        let stored = world.load(&subscription).await;
        let is_open = stored.attempt.is_some() && stored.due_on == subscription.due_on;
        assert!(is_open, "{expected}: the attempt stays open until an operator resolves it");
    }
}

#[tokio::test]
async fn charge_with_a_contradictory_status_is_looked_up() {
    // Each function changes the payment in the response to a successful charge. The response then says that the charge
    // succeeded, but the payment in the response has another status.
    let statuses: [ChangePayment; 2] = [
        |p| p.status = PaymentStatus::Processing,
        |p| p.status = PaymentStatus::Declined(Decline { code: "lost_card".to_owned(), hard: true }),
    ];
    for change in statuses {
        let world = World::new().await;
        let subscription = new_subscription(10, "2026-02-20");
        world.store(&subscription).await;
        let gateway = ModifyingGateway::new(&world, change);
        let payments = world.separate_payment_batch(EngineConnection::default(), gateway).await;
        let report = world.run_payment_batch(&payments, "2026-03-10", billing_time("2026-03-10")).await;
        assert_eq!(nonzero_counts(&report), [("in_doubt", 1)]);
        assert_eq!(
            world.receipt_due_dates(&subscription).await.len(),
            0,
            "the charge succeeded according to the response, but not according to the payment in it"
        );
        let later = world.run_payments_at("2026-03-10", billing_time("2026-03-10") + TimeDelta::hours(1)).await;
        assert_eq!(
            (nonzero_counts(&later), world.charged_due_dates().len()),
            (vec![("paid", 1)], 1),
            "the gateway's list of payments shows the success"
        );
    }
}

#[tokio::test]
async fn month_that_was_paid_twice_gets_one_receipt_and_is_reported() {
    let world = World::new().await;
    let subscription = new_subscription(10, "2026-02-20");
    world.store(&subscription).await;
    world.inject_charge_fault(emulator::Fault::LostAfter);
    world.run_payments("2026-03-10").await;
    // An operator charges the same month manually, with another attempt number and another due date.
    let stored = world.load(&subscription).await;
    let mut manual_charge = ChargeRequest::from_attempt(&stored, stored.attempt.as_ref().unwrap());
    (manual_charge.idempotency_key, manual_charge.attempt_no) = ("by hand".to_owned(), 99);
    manual_charge.due_on = "2026-03-12".parse().unwrap();
    assert!(matches!(world.sandbox.charge(&manual_charge).await, ChargeResponse::Succeeded(_)));
    let report = world.run_payments("2026-03-11").await;
    assert_eq!(nonzero_counts(&report), [("failed", 1)]);
    let reason = &report.failures[0].reason;
    assert!(reason.starts_with("2026-03 was paid more than once, by pay_"), "{reason}");
    assert_eq!(world.receipt_due_dates(&subscription).await, ["2026-03-10"]);
    assert_eq!(world.load(&subscription).await.due_on.to_string(), "2026-04-10");
}

#[tokio::test]
async fn runs_for_many_past_dates_in_one_hour_charge_each_subscription_once() {
    let world = World::new().await;
    let declined = Subscription {
        payment_method: card("pm_card_chargeDeclinedInsufficientFunds"),
        ..new_subscription(1, "2025-12-20")
    };
    let missed = new_subscription(2, "2025-12-20");
    world.store(&declined).await;
    world.store(&missed).await;
    let now = billing_time("2026-04-20");
    for (minutes, day) in
        (0..).zip(["2026-01-05", "2026-01-06", "2026-01-08", "2026-02-10", "2026-03-12", "2026-04-20"])
    {
        world.run_payments_at(day, now + TimeDelta::minutes(10 * minutes)).await;
    }
    let stored = world.load(&declined).await;
    assert_eq!(
        (stored.status, stored.failed_attempts),
        (SubscriptionStatus::PastDue, 1),
        "at most one attempt per day"
    );
    assert_eq!(stored.next_payment_on.unwrap().to_string(), "2026-04-21");
    assert_eq!(world.receipt_due_dates(&missed).await, ["2026-01-02"], "at most one missed month per day");
    world.run_payments("2026-04-21").await;
    assert_eq!(world.receipt_due_dates(&missed).await, ["2026-01-02", "2026-02-02"]);
}

#[tokio::test]
async fn sweep_continues_after_an_empty_list_page_of_the_index() {
    let world = World::new().await;
    for day in 1..=5 {
        world.store(&new_subscription(day, "2026-02-28")).await;
    }
    // The first list page of each query is empty and has a LastEvaluatedKey.
    let connection = EngineConnection::with_changed_responses(|request, response| {
        let is_first = request["IndexName"] == "GSI-2" && request["ExclusiveStartKey"].is_null();
        if is_first && response["Items"].as_array().is_some_and(|items| !items.is_empty()) {
            let key = |text: &str| json!({"S": text});
            response["LastEvaluatedKey"] = json!({
                "PK": key("ACC#a"), "SK": key("SUB#"), "Shard": response["Items"][0]["Shard"], "NextPaymentDate": key("0001-01-01")
            });
            response["Items"] = json!([]);
        }
    });
    let payments = world.separate_payment_batch(connection, world.gateway.clone()).await;
    let report = world.run_payment_batch(&payments, "2026-03-07", billing_time("2026-03-07")).await;
    assert_eq!((report.complete, nonzero_counts(&report)), (true, vec![("paid", 5)]));
}
