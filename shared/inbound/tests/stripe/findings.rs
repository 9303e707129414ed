//! Tests of events about successful payments without a receipt. The payment is settled if the rules allow it; otherwise
//! it becomes a finding, which blocks charging of the period until a person decides.

use billing::{ActionKind, Finding, FindingReason, GatewayToken, Money, RefundStatus};
use charging::{FindingDecision, FindingError};
use gateways::{ChargeRequest, ChargeResponse, PaymentGateway as _, RefundRequest, Refunds as _};
use testkit::FAULTS_AT_EACH_CALL;

use super::*;

/// The time of the payment run on the due date of the subscription.
const FIRST_RUN_TIME: &str = "2026-03-10T06:00:00Z";
/// The time of the payment run on the next day.
const NEXT_RUN_TIME: &str = "2026-03-11T06:00:00Z";

/// The fault in which Stripe responds with an error and stores this error under the idempotency key, but nevertheless
/// makes the payment two hours later.
const MADE_LATER: StripeFault = StripeFault::ExecutedLater { status: 424, hours: 2 };

impl World {
    /// Sends the event with the id `event`, which reports the success of `payment`, to the handler.
    async fn send_success_event(&self, event: &str, payment: &str) -> Result<InboundOutcome, InboundError> {
        self.send_event(&self.server.event_body(event, "payment_intent.succeeded", payment)).await
    }

    /// Makes a payment with the metadata of this subscription directly at Stripe, without an attempt in the table.
    async fn make_payment(&self, due_on: &str, attempt_no: u32, amount: i64) -> GatewayToken {
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
            ChargeResponse::Succeeded(payment) => payment.id,
            other => panic!("{other:?}"),
        }
    }

    /// Refunds `minor` minor units of `payment` directly at Stripe, without a refund in the table.
    async fn refund_payment(&self, payment: &GatewayToken, minor: i64) {
        let amount = Money::new(minor, self.gold.price.currency());
        self.stripe.refund(&RefundRequest { refund: Ulid::from_parts(9, 9), payment: payment.clone(), amount }).await;
    }

    /// Refunds `minor` minor units of `payment` like [`World::refund_payment`], as a second refund.
    async fn refund_payment_again(&self, payment: &GatewayToken, minor: i64) {
        let amount = Money::new(minor, self.gold.price.currency());
        self.stripe.refund(&RefundRequest { refund: Ulid::from_parts(9, 10), payment: payment.clone(), amount }).await;
    }

    /// Returns the findings that no person has resolved.
    async fn open_findings(&self) -> Vec<Finding> {
        self.table().get_open_findings().await.unwrap()
    }

    /// Returns the id of the changed item in each entry of the account's action log.
    async fn logged_items(&self) -> Vec<String> {
        let actions =
            self.table().get_actions_by_account(&self.gold.account, &Paging::all(), DateTime::UNIX_EPOCH).await;
        let actions = actions.unwrap().into_items().unwrap();
        actions.into_iter().filter_map(|entry| entry.item).collect()
    }

    /// Resolves the finding about `payment` with `decision`, as an operator does. Returns the changed subscription.
    async fn resolve_finding(
        &self,
        payment: &GatewayToken,
        decision: FindingDecision,
    ) -> Result<Subscription, FindingError> {
        let engine = self.system.deployment.charging_engine();
        let engine = engine.with_action(sample_action(ActionKind::ResolveFinding));
        let account = &self.gold.account;
        let today = self.system.clock.now().date_naive();
        engine.resolve_finding(self.stripe.as_ref(), account, payment, decision, "asked the customer", today).await
    }

    /// Creates a world with an attempt on 10 March that was rejected: Stripe made no payment.
    async fn with_rejected_attempt() -> Self {
        let world = World::new("pm_card_visa").await;
        world.server.set_next_faults([
            None,
            Some(StripeFault::Error { status: 424, kind: "api_error", is_carried_out: false }),
        ]);
        assert_eq!(world.run_payments(FIRST_RUN_TIME).await, [("rejected", 1)]);
        world
    }
}

#[tokio::test]
async fn success_of_a_rejected_attempt_is_settled_by_its_event() {
    let world = World::new("pm_card_visa").await;
    world.server.set_next_faults([None, Some(MADE_LATER)]);
    assert_eq!(world.run_payments(FIRST_RUN_TIME).await, [("rejected", 1)]);
    world.system.clock.set(at("2026-03-10T09:00:00Z"));
    assert_eq!(world.send_success_event("evt_1", "pi_000001").await.unwrap(), InboundOutcome::Processed);
    assert_eq!(world.receipts().await.len(), 1);
    assert_eq!(world.open_findings().await, []);
    assert_eq!(world.run_payments(NEXT_RUN_TIME).await, []);
    assert_eq!(world.server.intents().len(), 1, "the customer was charged once");
    let charged = world.table().get_charge_total("2026-03-10".parse().unwrap()).await.unwrap();
    assert_eq!(charged.charges(), 1, "the total of the day contains the payment");
}

#[tokio::test]
async fn finding_blocks_charging_of_its_period() {
    // The columns are: the due date, the attempt number and the amount of the payment; whether the payment is refunded;
    // and the reason of its finding.
    type PaymentCase = (&'static str, u32, i64, bool, FindingReason);
    let cases: [PaymentCase; 4] = [
        ("2026-03-10", 1, 9_999, false, FindingReason::AmountDiffers),
        ("2026-03-10", 7, 1_299, false, FindingReason::NoAttempt),
        ("2026-03-10", 1, 1_299, true, FindingReason::Refunded),
        ("2026-04-10", 1, 1_299, false, FindingReason::NotDue),
    ];
    for (due_on, attempt_no, amount, is_refunded, reason) in cases {
        let world = World::with_rejected_attempt().await;
        let payment = world.make_payment(due_on, attempt_no, amount).await;
        if is_refunded {
            world.refund_payment(&payment, amount).await;
        }
        assert_eq!(
            world.send_success_event("evt_1", payment.as_str()).await.unwrap(),
            InboundOutcome::Processed,
            "{reason}"
        );
        let found = world.open_findings().await;
        assert_eq!(found.iter().map(|found| (found.reason, found.blocks)).collect::<Vec<_>>(), [(reason, true)]);
        assert_eq!(world.receipts().await, [], "{reason}");
        let before = world.server.intents().len();
        assert_eq!(world.run_payments(NEXT_RUN_TIME).await, [("failed", 1)], "{reason}: the day is not complete");
        assert_eq!(world.server.intents().len(), before, "{reason}: nothing is charged");
        assert_eq!(
            world.send_success_event("evt_2", payment.as_str()).await.unwrap(),
            InboundOutcome::Processed,
            "{reason}"
        );
        assert_eq!(world.open_findings().await, found, "{reason}: another event about the payment adds no finding");
    }
}

#[tokio::test]
async fn period_is_charged_again_only_after_a_person_has_decided() {
    let world = World::with_rejected_attempt().await;
    let payment = world.make_payment("2026-03-10", 1, 9_999).await;
    world.send_success_event("evt_1", payment.as_str()).await.unwrap();
    world.system.clock.set(at(NEXT_RUN_TIME));
    let refused = world.resolve_finding(&payment, FindingDecision::Close).await.unwrap_err();
    assert!(matches!(refused, FindingError::StillPaid { .. }), "{refused}");
    world.refund_payment(&payment, 9_999).await;
    let refused = world.resolve_finding(&payment, FindingDecision::Receipt).await.unwrap_err();
    assert!(matches!(refused, FindingError::NoReceipt { .. }), "{refused}");
    assert_eq!(world.resolve_finding(&payment, FindingDecision::Close).await.unwrap().open_findings, 0);
    assert_eq!(world.open_findings().await, []);
    let kept = world.table().get_findings_by_account(&world.gold.account).await.unwrap();
    assert_eq!(kept[0].resolved.as_ref().unwrap().reason, "asked the customer");
    assert_eq!(world.logged_items().await, [payment.to_string()], "the refused decisions write no entry");
    let missing = world.resolve_finding(&payment, FindingDecision::Close).await.unwrap_err();
    assert!(matches!(missing, FindingError::Missing { .. }), "{missing}");
    world.send_success_event("evt_2", payment.as_str()).await.unwrap();
    assert_eq!(world.open_findings().await, [], "a late event does not open the finding again");
}

#[tokio::test]
async fn finding_with_a_part_refund_is_not_closed_and_its_receipt_shows_the_refund() {
    let world = World::with_rejected_attempt().await;
    let payment = world.make_payment("2026-03-10", 7, 1_299).await;
    world.send_success_event("evt_1", payment.as_str()).await.unwrap();
    world.refund_payment(&payment, 1).await;
    let refused = world.resolve_finding(&payment, FindingDecision::Close).await.unwrap_err();
    assert!(matches!(refused, FindingError::StillPaid { kept, .. } if kept.minor() == 1_298), "{refused}");
    world.system.clock.set(at(NEXT_RUN_TIME));
    let paid = world.resolve_finding(&payment, FindingDecision::Receipt).await.unwrap();
    assert_eq!((paid.open_findings, paid.due_on), (0, "2026-04-10".parse().unwrap()));
    let receipts = world.receipts().await;
    let [receipt] = receipts.as_slice() else { panic!("{receipts:?}") };
    assert_eq!((&receipt.payment, receipt.refunded.minor()), (&payment, 1));
    let refunds = world.table().get_refunds_by_receipt(&world.gold.account, &receipt.id()).await.unwrap();
    let [refund] = refunds.as_slice() else { panic!("{refunds:?}") };
    assert_eq!((refund.amount.minor(), refund.status), (1, RefundStatus::Succeeded));
    assert_eq!(world.run_payments(NEXT_RUN_TIME).await, [], "the month is not charged again");
    // An event about the refund finds it stored already.
    world.refunds().update_refunds_from_gateway(&world.gold.account, &receipt.id(), &payment).await.unwrap();
    assert_eq!(world.receipts().await, receipts);
}

#[tokio::test]
async fn second_payment_of_a_period_is_closed_only_after_its_whole_refund() {
    let world = World::new("pm_card_visa").await;
    world.run_payments(FIRST_RUN_TIME).await;
    let second = world.make_payment("2026-03-10", 7, 1_299).await;
    world.send_success_event("evt_1", second.as_str()).await.unwrap();
    world.refund_payment(&second, 1_298).await;
    let refused = world.resolve_finding(&second, FindingDecision::Close).await.unwrap_err();
    assert!(matches!(refused, FindingError::StillPaid { kept, .. } if kept.minor() == 1), "{refused}");
    world.refund_payment_again(&second, 1).await;
    world.resolve_finding(&second, FindingDecision::Close).await.unwrap();
    assert_eq!(world.open_findings().await, []);
}

#[tokio::test]
async fn person_can_accept_a_payment_for_the_due_period() {
    let world = World::with_rejected_attempt().await;
    let payment = world.make_payment("2026-03-10", 7, 1_299).await;
    world.send_success_event("evt_1", payment.as_str()).await.unwrap();
    let paid = world.resolve_finding(&payment, FindingDecision::Receipt).await.unwrap();
    assert_eq!((paid.open_findings, paid.due_on), (0, "2026-04-10".parse().unwrap()));
    assert_eq!(paid.attempt_seq, 7, "no later attempt gets the number of the accepted payment");
    assert_eq!(world.receipts().await.iter().map(|receipt| &receipt.payment).collect::<Vec<_>>(), [&payment]);
    let charged = world.table().get_charge_total("2026-03-10".parse().unwrap()).await.unwrap();
    assert_eq!(charged.sums().iter().collect::<Vec<_>>(), [world.gold.price]);
    assert_eq!(world.run_payments(NEXT_RUN_TIME).await, []);
}

#[tokio::test]
async fn second_payment_of_a_period_is_a_finding_and_later_periods_are_charged() {
    let world = World::new("pm_card_visa").await;
    world.run_payments(FIRST_RUN_TIME).await;
    assert_eq!(
        world.send_success_event("evt_1", "pi_000001").await.unwrap(),
        InboundOutcome::Processed,
        "the payment has its receipt"
    );
    assert_eq!(world.open_findings().await, []);
    let second = world.make_payment("2026-03-10", 7, 1_299).await;
    assert_eq!(world.send_success_event("evt_2", second.as_str()).await.unwrap(), InboundOutcome::Processed);
    let found = world.open_findings().await;
    assert_eq!((found.len(), found[0].reason, found[0].blocks), (1, FindingReason::PaidTwice, false));
    assert_eq!(
        world.run_payments("2026-04-10T06:00:00Z").await,
        [("paid", 1)],
        "the finding of March does not block April"
    );
    assert_eq!(world.open_findings().await.len(), 1);
    let scheduled = async || {
        let deployment = Deployment { gateway: world.stripe.clone(), ..world.system.deployment.clone() };
        let payments = deployment.payment_batch().await.unwrap();
        let deadline = world.system.clock.now() + TimeDelta::minutes(15);
        payments.handle_invocation(serde_json::json!({"date": "2026-04-10"}), deadline).await
    };
    let error = scheduled().await.unwrap_err().to_string();
    assert!(error.contains("payments at the gateway have no receipt in the table"), "{error}");
    world.resolve_finding(&second, FindingDecision::CloseAlthoughPaid).await.unwrap();
    let charged = world.table().get_charge_total("2026-04-10".parse().unwrap()).await.unwrap();
    assert_eq!(charged.charges(), 1, "the payment that got no receipt is not counted");
    scheduled().await.unwrap();
}

#[tokio::test]
async fn event_that_is_processed_across_midnight_has_one_date() {
    let (day, next_day) = ("2026-03-10".parse().unwrap(), "2026-03-11".parse().unwrap());
    let mut call = 1;
    loop {
        let world = World::with_rejected_attempt().await;
        let payment = world.make_payment("2026-03-10", 1, 1_299).await;
        world.system.clock.set(at("2026-03-10T23:59:59Z"));
        let event = world.server.event_body("evt_1", "payment_intent.succeeded", payment.as_str());
        if !world.send_event_and_pass_time(&event, call, "2026-03-11T00:00:01Z").await {
            break;
        }
        let charges_of = async |day| world.table().get_charge_total(day).await.unwrap().charges();
        assert_eq!((charges_of(day).await, charges_of(next_day).await), (1, 0), "midnight during call {call}");
        call += 1;
    }
    assert!(call > 5, "the event needs several requests");
}

#[tokio::test]
async fn crash_at_any_call_leaves_one_receipt_or_one_finding() {
    // The columns are: the amount of the payment, and the expected numbers of receipts and of open findings.
    for (amount, receipts, open) in [(1_299, 1, 0), (9_999, 0, 1)] {
        for fault in FAULTS_AT_EACH_CALL {
            let mut calls = 1;
            loop {
                let story = format!("{amount}: {fault:?} of call {calls}");
                let world = World::with_rejected_attempt().await;
                let payment = world.make_payment("2026-03-10", 1, amount).await;
                let event = world.server.event_body("evt_1", "payment_intent.succeeded", payment.as_str());
                if world.send_event_with_fault(&event, calls, fault).await < calls {
                    break;
                }
                world.send_event(&event).await.unwrap_or_else(|error| panic!("{story}: {error}"));
                assert_eq!(world.receipts().await.len(), receipts, "{story}");
                assert_eq!(world.open_findings().await.len(), open, "{story}");
                assert_eq!(world.stored_subscription().await.open_findings as usize, open, "{story}");
                calls += 1;
            }
            assert!(calls > 5, "{amount} {fault:?}: {calls} calls");
        }
    }
}
