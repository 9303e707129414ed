//! Answers that contradict what was asked for are never receipted; days are real; an index may answer an empty page.

use std::sync::Arc;

use async_trait::async_trait;
use billing::{Decline, GatewayAccount, GatewayToken, Money, Payment, PaymentStatus, Status, Subscription};
use chrono::{DateTime, TimeDelta, Utc};
use emulator::{Fault, Wire};
use gateways::{ChargeAnswer, ChargeRequest, GatewayError, PaymentGateway, Sandbox};
use serde_json::json;

use crate::world::{World, card, counts, morning, new_subscription};

type Change = fn(&mut Payment);

/// The sandbox, which tells of each payment what `change` makes of it.
#[derive(Debug)]
struct Misstating {
    sandbox: Arc<Sandbox>,
    change: Change,
}

#[async_trait]
impl PaymentGateway for Misstating {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        self.sandbox.account().await
    }

    async fn charge(&self, request: &ChargeRequest) -> ChargeAnswer {
        match self.sandbox.charge(request).await {
            ChargeAnswer::Succeeded(mut payment) => {
                (self.change)(&mut payment);
                ChargeAnswer::Succeeded(payment)
            }
            other => other,
        }
    }

    async fn payments_of(&self, customer: &GatewayToken, since: DateTime<Utc>) -> Result<Vec<Payment>, GatewayError> {
        let mut known = self.sandbox.payments_of(customer, since).await?;
        known.iter_mut().for_each(self.change);
        Ok(known)
    }

    async fn payment(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        self.sandbox.payment(id).await
    }
}

/// The first attempt was paid after all.
fn first_is_paid(payment: &mut Payment) {
    if payment.attempt_no == 1 {
        payment.status = PaymentStatus::Succeeded;
    }
}

#[tokio::test]
async fn look_up_finds_what_was_paid_by_an_attempt_of_days_ago() {
    let world = World::new().await;
    let declined = Subscription {
        payment_method: card("pm_card_chargeDeclinedInsufficientFunds"),
        ..new_subscription(10, "2026-02-20")
    };
    world.has(&declined).await;
    for day in ["2026-03-10", "2026-03-11"] {
        world.charge(day).await;
    }
    world.next_charge(Fault::LostBefore);
    world.charge("2026-03-13").await;
    let gateway = Arc::new(Misstating { sandbox: world.sandbox.clone(), change: first_is_paid });
    let payments = world.payments_over(Wire::default(), gateway).await;
    world.charge_by(&payments, "2026-03-13", morning("2026-03-13") + TimeDelta::minutes(21)).await;
    assert_eq!(world.receipts(&declined).await, ["2026-03-10"]);
    assert_eq!(world.sandbox.entries().len(), 2, "the third attempt is not charged");
}

#[tokio::test]
async fn charge_is_not_receipted_when_the_answer_contradicts_the_attempt() {
    let cases: [(&str, Change); 6] = [
        ("it is of 1299.00 EUR, and 12.99 EUR was asked for", |p| p.amount = Money::new(129_900, p.amount.currency())),
        ("it is of 12.99 USD, and 12.99 EUR was asked for", |p| p.amount = Money::new(1299, "USD".parse().unwrap())),
        ("it is another subscription's", |p| p.account = "other".parse().unwrap()),
        ("it is another subscription's", |p| p.subscription = "01JZXCVBNM0123456789ABCDEF".parse().unwrap()),
        ("it is of 2026-04-10, not of 2026-03-10", |p| p.due_on = "2026-04-10".parse().unwrap()),
        ("there is no record of its attempt 7", |p| p.attempt_no = 7),
    ];
    for (said, change) in cases {
        let world = World::new().await;
        let subscription = new_subscription(10, "2026-02-20");
        world.has(&subscription).await;
        let gateway = Arc::new(Misstating { sandbox: world.sandbox.clone(), change });
        let payments = world.payments_over(Wire::default(), gateway).await;
        let report = world.charge_by(&payments, "2026-03-10", morning("2026-03-10")).await;
        assert_eq!(counts(&report), [("failed", 1)], "{said}");
        assert!(report.failures[0].reason.contains(said), "{said}: {}", report.failures[0].reason);
        assert!(!report.is_done(), "{said}");
        assert_eq!(world.receipts(&subscription).await.len(), 0, "{said}");
        let stored = world.stored(&subscription).await;
        assert!(stored.attempt.is_some() && stored.due_on == subscription.due_on, "{said}: a person settles it");
    }
}

#[tokio::test]
async fn charge_whose_answer_contradicts_its_own_status_is_looked_up() {
    let statuses: [Change; 2] = [
        |p| p.status = PaymentStatus::Processing,
        |p| p.status = PaymentStatus::Declined(Decline { code: "lost_card".to_owned(), hard: true }),
    ];
    for change in statuses {
        let world = World::new().await;
        let subscription = new_subscription(10, "2026-02-20");
        world.has(&subscription).await;
        let gateway = Arc::new(Misstating { sandbox: world.sandbox.clone(), change });
        let payments = world.payments_over(Wire::default(), gateway).await;
        let report = world.charge_by(&payments, "2026-03-10", morning("2026-03-10")).await;
        assert_eq!(counts(&report), [("in_doubt", 1)]);
        assert_eq!(world.receipts(&subscription).await.len(), 0, "it says succeeded, and that it has not");
        let later = world.charge_at("2026-03-10", morning("2026-03-10") + TimeDelta::hours(1)).await;
        assert_eq!((counts(&later), world.charged().len()), (vec![("paid", 1)], 1), "the list says that it was paid");
    }
}

#[tokio::test]
async fn look_up_reports_a_month_that_was_paid_twice_and_receipts_it_once() {
    let world = World::new().await;
    let subscription = new_subscription(10, "2026-02-20");
    world.has(&subscription).await;
    world.next_charge(emulator::Fault::LostAfter);
    world.charge("2026-03-10").await;
    // Somebody charged the month by hand, under a number of their own and on another day.
    let stored = world.stored(&subscription).await;
    let mut by_hand = ChargeRequest::of(&stored, stored.attempt.as_ref().unwrap());
    (by_hand.idempotency_key, by_hand.attempt_no) = ("by hand".to_owned(), 99);
    by_hand.due_on = "2026-03-12".parse().unwrap();
    assert!(matches!(world.sandbox.charge(&by_hand).await, ChargeAnswer::Succeeded(_)));
    let report = world.charge("2026-03-11").await;
    assert_eq!(counts(&report), [("failed", 1)]);
    let reason = &report.failures[0].reason;
    assert!(reason.starts_with("2026-03 was paid more than once, by pay_"), "{reason}");
    assert_eq!(world.receipts(&subscription).await, ["2026-03-10"]);
    assert_eq!(world.stored(&subscription).await.due_on.to_string(), "2026-04-10");
}

#[tokio::test]
async fn charge_counts_from_the_present_day_however_many_dates_are_run_in_an_hour() {
    let world = World::new().await;
    let declined = Subscription {
        payment_method: card("pm_card_chargeDeclinedInsufficientFunds"),
        ..new_subscription(1, "2025-12-20")
    };
    let missed = new_subscription(2, "2025-12-20");
    world.has(&declined).await;
    world.has(&missed).await;
    let now = morning("2026-04-20");
    for (minutes, day) in
        (0..).zip(["2026-01-05", "2026-01-06", "2026-01-08", "2026-02-10", "2026-03-12", "2026-04-20"])
    {
        world.charge_at(day, now + TimeDelta::minutes(10 * minutes)).await;
    }
    let stored = world.stored(&declined).await;
    assert_eq!((stored.status, stored.failed_attempts), (Status::PastDue, 1), "one decline a day");
    assert_eq!(stored.next_payment_on.unwrap().to_string(), "2026-04-21");
    assert_eq!(world.receipts(&missed).await, ["2026-01-02"], "one of the missed months a day");
    world.charge("2026-04-21").await;
    assert_eq!(world.receipts(&missed).await, ["2026-01-02", "2026-02-02"]);
}

#[tokio::test]
async fn sweep_goes_on_after_an_empty_page_of_the_index() {
    let world = World::new().await;
    for day in 1..=5 {
        world.has(&new_subscription(day, "2026-02-28")).await;
    }
    // The first page of each query is empty, and says where to go on.
    let wire = Wire::with_answers(|request, answer| {
        let is_first = request["IndexName"] == "GSI-2" && request["ExclusiveStartKey"].is_null();
        if is_first && answer["Items"].as_array().is_some_and(|items| !items.is_empty()) {
            let key = |text: &str| json!({"S": text});
            answer["LastEvaluatedKey"] = json!({
                "PK": key("ACC#a"), "SK": key("SUB#"), "Shard": answer["Items"][0]["Shard"], "NextPaymentDate": key("0001-01-01")
            });
            answer["Items"] = json!([]);
        }
    });
    let payments = world.payments_over(wire, world.gateway.clone()).await;
    let report = world.charge_by(&payments, "2026-03-07", morning("2026-03-07")).await;
    assert_eq!((report.complete, counts(&report)), (true, vec![("paid", 5)]));
}
