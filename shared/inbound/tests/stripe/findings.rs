//! Successful payments without a receipt, of which Stripe's events tell: settled where nothing speaks against it, else a finding that
//! keeps the period from being charged until a person decides.

use billing::{Finding, FindingReason, GatewayToken, Money};
use gateways::{ChargeAnswer, ChargeRequest, PaymentGateway as _, RefundRequest, Refunds as _};
use settling::{Decision, FindingError, Findings, Settling};

use super::*;

const DAY: &str = "2026-03-10T06:00:00Z";
const NEXT_DAY: &str = "2026-03-11T06:00:00Z";

/// An error that is kept under the key, after which Stripe makes the payment two hours later.
const MADE_LATER: StripeFault = StripeFault::RepairedAfter { status: 424, hours: 2 };

impl World {
    async fn succeeded(&self, event: &str, payment: &str) -> Result<Told, ToldError> {
        self.tell(&self.server.event(event, "payment_intent.succeeded", payment)).await
    }

    /// A payment that this table has asked for, made without its knowledge.
    async fn pays(&self, due_on: &str, attempt_no: u32, amount: i64) -> GatewayToken {
        let request = ChargeRequest {
            idempotency_key: format!("{due_on} {attempt_no} {amount}"),
            table: None,
            account: self.gold.account.clone(),
            subscription: self.gold.id,
            sku: self.gold.sku.clone(),
            due_on: due_on.parse().unwrap(),
            attempt_no,
            amount: Money::new(amount, self.gold.price.currency()),
            payment_method: self.gold.payment_method.clone(),
        };
        match self.stripe.charge(&request).await {
            ChargeAnswer::Succeeded(payment) => payment.id,
            other => panic!("{other:?}"),
        }
    }

    async fn refund_all(&self, payment: &GatewayToken, minor: i64) {
        let amount = Money::new(minor, self.gold.price.currency());
        self.stripe.refund(&RefundRequest { refund: Ulid::from_parts(9, 9), payment: payment.clone(), amount }).await;
    }

    async fn open_findings(&self) -> Vec<Finding> {
        self.table().get_open_findings().await.unwrap()
    }

    async fn resolve(&self, payment: &GatewayToken, decision: Decision) -> Result<Subscription, FindingError> {
        let policy = self.system.deployment.config.billing.policy.clone();
        let settling = Settling::new(self.table().clone(), policy, self.system.clock.clone());
        let findings = Findings { settling: &settling, gateway: self.stripe.as_ref() };
        let today = self.system.clock.now().date_naive();
        findings.resolve((&self.gold.account, payment), decision, "asked the customer", today).await
    }

    /// A rejected attempt of 10 March, which made nothing.
    async fn rejected() -> Self {
        let world = World::new("pm_card_visa").await;
        world.server.next([None, Some(StripeFault::Error { status: 424, kind: "api_error", is_carried_out: false })]);
        assert_eq!(world.run(DAY).await, [("rejected", 1)]);
        world
    }
}

#[tokio::test]
async fn success_of_a_rejected_attempt_is_settled_by_its_event() {
    let world = World::new("pm_card_visa").await;
    world.server.next([None, Some(MADE_LATER)]);
    assert_eq!(world.run(DAY).await, [("rejected", 1)]);
    world.system.clock.set(at("2026-03-10T09:00:00Z"));
    assert_eq!(world.succeeded("evt_1", "pi_000001").await.unwrap(), Told::Done);
    assert_eq!(world.receipts().await.len(), 1);
    assert_eq!(world.open_findings().await, []);
    assert_eq!(world.run(NEXT_DAY).await, []);
    assert_eq!(world.server.intents().len(), 1, "it was charged once");
    let charged = world.table().get_charged("2026-03-10".parse().unwrap()).await.unwrap();
    assert_eq!(charged.charges(), 1, "the total of the day contains it");
}

#[tokio::test]
async fn success_that_may_not_be_settled_keeps_its_period_from_being_charged() {
    type Make = (&'static str, u32, i64, bool, FindingReason);
    let cases: [Make; 4] = [
        ("2026-03-10", 1, 9_999, false, FindingReason::AmountDiffers),
        ("2026-03-10", 7, 1_299, false, FindingReason::NoAttempt),
        ("2026-03-10", 1, 1_299, true, FindingReason::Refunded),
        ("2026-04-10", 1, 1_299, false, FindingReason::NotDue),
    ];
    for (due_on, attempt_no, amount, is_refunded, reason) in cases {
        let world = World::rejected().await;
        let payment = world.pays(due_on, attempt_no, amount).await;
        if is_refunded {
            world.refund_all(&payment, amount).await;
        }
        assert_eq!(world.succeeded("evt_1", payment.as_str()).await.unwrap(), Told::Done, "{reason}");
        let found = world.open_findings().await;
        assert_eq!(found.iter().map(|found| (found.reason, found.blocks)).collect::<Vec<_>>(), [(reason, true)]);
        assert_eq!(world.receipts().await, [], "{reason}");
        let before = world.server.intents().len();
        assert_eq!(world.run(NEXT_DAY).await, [("failed", 1)], "{reason}: the day is not done");
        assert_eq!(world.server.intents().len(), before, "{reason}: nothing is charged");
        assert_eq!(world.succeeded("evt_2", payment.as_str()).await.unwrap(), Told::Done, "{reason}");
        assert_eq!(world.open_findings().await, found, "{reason}: under another event it is the same finding");
    }
}

#[tokio::test]
async fn period_is_charged_again_only_after_a_person_has_decided() {
    let world = World::rejected().await;
    let payment = world.pays("2026-03-10", 1, 9_999).await;
    world.succeeded("evt_1", payment.as_str()).await.unwrap();
    world.system.clock.set(at(NEXT_DAY));
    let refused = world.resolve(&payment, Decision::Close).await.unwrap_err();
    assert!(matches!(refused, FindingError::StillPaid { .. }), "{refused}");
    world.refund_all(&payment, 9_999).await;
    let refused = world.resolve(&payment, Decision::Receipt).await.unwrap_err();
    assert!(matches!(refused, FindingError::NoReceipt { .. }), "{refused}");
    assert_eq!(world.resolve(&payment, Decision::Close).await.unwrap().open_findings, 0);
    assert_eq!(world.open_findings().await, []);
    let kept = world.table().get_findings_by_account(&world.gold.account).await.unwrap();
    assert_eq!(kept[0].resolved.as_ref().unwrap().reason, "asked the customer");
    let again = world.resolve(&payment, Decision::Close).await.unwrap_err();
    assert!(matches!(again, FindingError::Missing { .. }), "{again}");
    world.succeeded("evt_2", payment.as_str()).await.unwrap();
    assert_eq!(world.open_findings().await, [], "a late event does not open it again");
}

#[tokio::test]
async fn person_may_accept_a_payment_as_that_of_the_period() {
    let world = World::rejected().await;
    let payment = world.pays("2026-03-10", 7, 1_299).await;
    world.succeeded("evt_1", payment.as_str()).await.unwrap();
    let paid = world.resolve(&payment, Decision::Receipt).await.unwrap();
    assert_eq!((paid.open_findings, paid.due_on), (0, "2026-04-10".parse().unwrap()));
    assert_eq!(world.receipts().await.iter().map(|receipt| &receipt.payment).collect::<Vec<_>>(), [&payment]);
    assert_eq!(world.run(NEXT_DAY).await, []);
}

#[tokio::test]
async fn second_payment_of_a_period_is_a_finding_and_later_periods_are_charged() {
    let world = World::new("pm_card_visa").await;
    world.run(DAY).await;
    assert_eq!(world.succeeded("evt_1", "pi_000001").await.unwrap(), Told::Done, "it has its receipt");
    assert_eq!(world.open_findings().await, []);
    let second = world.pays("2026-03-10", 7, 1_299).await;
    assert_eq!(world.succeeded("evt_2", second.as_str()).await.unwrap(), Told::Done);
    let found = world.open_findings().await;
    assert_eq!((found.len(), found[0].reason, found[0].blocks), (1, FindingReason::PaidTwice, false));
    assert_eq!(world.run("2026-04-10T06:00:00Z").await, [("paid", 1)], "April is not kept from being charged");
    assert_eq!(world.open_findings().await.len(), 1);
    let scheduled = async || {
        let deployment = Deployment { gateway: world.stripe.clone(), ..world.system.deployment.clone() };
        let payments = deployment.payments().await.unwrap();
        let deadline = world.system.clock.now() + TimeDelta::minutes(15);
        payments.handle(serde_json::json!({"date": "2026-04-10"}), deadline).await
    };
    let error = scheduled().await.unwrap_err().to_string();
    assert!(error.contains("successful payments have no receipt"), "{error}");
    world.resolve(&second, Decision::CloseAlthoughPaid).await.unwrap();
    scheduled().await.unwrap();
}

#[tokio::test]
async fn crash_at_any_call_leaves_one_receipt_or_one_finding() {
    for (amount, receipts, open) in [(1_299, 1, 0), (9_999, 0, 1)] {
        for fault in [Fault::LostBefore, Fault::LostAfter, Fault::CrashBefore, Fault::CrashAfter] {
            let mut calls = 1;
            loop {
                let story = format!("{amount}: {fault:?} of call {calls}");
                let world = World::rejected().await;
                let payment = world.pays("2026-03-10", 1, amount).await;
                let event = world.server.event("evt_1", "payment_intent.succeeded", payment.as_str());
                let header = SigningSecrets::parse(SECRET).unwrap().sign(event.as_bytes(), world.system.clock.now());
                let injector = Arc::new(Injector::for_runs(Arc::new(nth(calls, fault))));
                let wired = world.system.over(Arc::new(Wire::through(injector.clone()).and_no_retries()));
                let events = World::events(&world.system, wired.table, &world.stripe);
                let _ = injector.run(events.take(&header, event.as_bytes())).await;
                if injector.calls() < calls {
                    break;
                }
                world.tell(&event).await.unwrap_or_else(|error| panic!("{story}: {error}"));
                assert_eq!(world.receipts().await.len(), receipts, "{story}");
                assert_eq!(world.open_findings().await.len(), open, "{story}");
                assert_eq!(world.stored().await.open_findings as usize, open, "{story}");
                calls += 1;
            }
            assert!(calls > 5, "{amount} {fault:?}: {calls} calls");
        }
    }
}
