//! Tests of responses of Stripe that mislead: a payment is shown as canceled although it succeeded, or as succeeded
//! although less was received; a list contains a payment twice, or an object of another program.

use billing::SubscriptionId;
use chrono::DateTime;
use emulator::{MisleadingView, StripeFault};
use gateways::{GatewayError, PaymentGateway as _};

use crate::stripe_world::{DAY, StripeWorld};

#[tokio::test]
async fn payment_that_is_shown_as_canceled_although_it_succeeded_is_not_charged_again() {
    // Each case contains the misleading response, and the outcomes of the runs on five days.
    for (fault, outcomes) in [
        (StripeFault::CanceledUntilRead { hours: 24 * 30 }, ["paid", "", "", "", ""]),
        (StripeFault::CanceledWithPaidCharge { hours: 49 }, ["in_doubt", "in_doubt", "failed", "paid", ""]),
    ] {
        let stripe_world = StripeWorld::new().await;
        stripe_world.server.set_next_faults([None, Some(fault)]);
        for (day, outcome) in (10..).zip(outcomes) {
            let expected: Vec<_> = (!outcome.is_empty()).then_some((outcome, 1)).into_iter().collect();
            let counts = stripe_world.run_payments(&format!("2026-03-{day}"), 0).await;
            assert_eq!(counts, expected, "{fault:?}, March {day}");
        }
        assert_eq!(stripe_world.payments_and_receipts().await, (1, vec![DAY.to_owned()]), "{fault:?}");
    }
}

#[tokio::test]
async fn look_up_reads_a_canceled_payment_before_it_believes_the_list() {
    let stripe_world = StripeWorld::new().await;
    stripe_world.server.set_next_faults([None, Some(StripeFault::LostAfter)]);
    assert_eq!(stripe_world.run_payments(DAY, 0).await, [("in_doubt", 1)]);
    let view = MisleadingView::CanceledUntilRead { until: DateTime::<chrono::Utc>::MAX_UTC };
    stripe_world.server.set_misleading_view("pi_000001", Some(view));
    let before = stripe_world.server.request_count();
    assert_eq!(stripe_world.run_payments(DAY, 2).await, [("paid", 1)]);
    assert_eq!(stripe_world.server.request_count() - before, 3, "the account, the list, and the canceled payment");
    assert_eq!(stripe_world.payments_and_receipts().await, (1, vec![DAY.to_owned()]));
}

#[tokio::test]
async fn success_needs_one_request_and_a_decline_three() {
    for (card, outcome, requests) in
        [("pm_card_visa", "paid", 1), ("pm_card_visa_chargeDeclinedInsufficientFunds", "declined", 3)]
    {
        let stripe_world = StripeWorld::with_card(card).await;
        assert_eq!(stripe_world.run_payments(DAY, 0).await, [(outcome, 1)]);
        // The run also reads the account once.
        assert_eq!(stripe_world.server.request_count() - 1, requests, "{card}");
    }
}

#[tokio::test]
async fn long_canceled_payments_cost_a_look_up_no_request() {
    let stripe_world = StripeWorld::new().await;
    stripe_world.server.set_next_faults([None, Some(StripeFault::LostAfter)]);
    assert_eq!(stripe_world.run_payments(DAY, 0).await, [("in_doubt", 1)]);
    // The same customer has 30 canceled payments of another subscription.
    let stored = stripe_world.world.load(&stripe_world.subscription).await;
    let request = gateways::ChargeRequest::from_attempt(&stored, stored.attempt.as_ref().unwrap());
    for no in 0..30 {
        let mut declined = request.clone();
        declined.idempotency_key = format!("other-{no}");
        declined.subscription = SubscriptionId::new(ulid::Ulid::from_parts(7, no));
        declined.payment_method.payment_method = "pm_card_visa_chargeDeclined".parse().unwrap();
        assert!(matches!(stripe_world.stripe.charge(&declined).await, gateways::ChargeResponse::Declined(_)));
    }
    let before = stripe_world.server.request_count();
    assert_eq!(stripe_world.run_payments(DAY, 2).await, [("paid", 1)]);
    assert_eq!(stripe_world.server.request_count() - before, 2, "the account and the list");
}

#[tokio::test]
async fn payment_of_which_less_was_received_gets_no_receipt_and_is_not_charged_again() {
    let stripe_world = StripeWorld::new().await;
    stripe_world.server.set_next_faults([None, Some(StripeFault::LostAfter)]);
    assert_eq!(stripe_world.run_payments(DAY, 0).await, [("in_doubt", 1)]);
    stripe_world.server.set_misleading_view("pi_000001", Some(MisleadingView::ReceivedLess { amount: 1_298 }));
    for (day, hours, outcome) in [(DAY, 2, "in_doubt"), ("2026-03-12", 0, "failed"), ("2026-03-14", 0, "failed")] {
        assert_eq!(stripe_world.run_payments(day, hours).await, [(outcome, 1)], "{day}");
    }
    assert_eq!(stripe_world.payments_and_receipts().await, (1, vec![]), "a person must decide");
    let read = stripe_world.stripe.payment(&"pi_000001".parse().unwrap()).await;
    assert!(matches!(&read, Err(GatewayError::Unreadable { reason }) if reason.contains("1298 of 1299")), "{read:?}");
}

#[tokio::test]
async fn list_with_a_repeated_or_a_foreign_payment_does_not_change_the_outcome() {
    for fault in [StripeFault::ListedTwice, StripeFault::ForeignObjectListed] {
        let stripe_world = StripeWorld::new().await;
        stripe_world.server.set_next_faults([None, Some(StripeFault::LostAfter)]);
        assert_eq!(stripe_world.run_payments(DAY, 0).await, [("in_doubt", 1)]);
        // The first request of a run reads the account, the second the list.
        stripe_world.server.set_next_faults([None, Some(fault)]);
        assert_eq!(stripe_world.run_payments(DAY, 2).await, [("paid", 1)], "{fault:?}");
    }
}

#[tokio::test]
async fn own_payment_that_cannot_be_read_keeps_its_attempt_in_doubt() {
    let stripe_world = StripeWorld::new().await;
    stripe_world.server.set_next_faults([None, Some(StripeFault::LostAfter)]);
    assert_eq!(stripe_world.run_payments(DAY, 0).await, [("in_doubt", 1)]);
    stripe_world.server.set_currency_of_intent("pi_000001", "xyz");
    assert_eq!(stripe_world.run_payments(DAY, 2).await, [("in_doubt", 1)]);
    assert_eq!(stripe_world.server.intents().len(), 1, "no second charge");
}
