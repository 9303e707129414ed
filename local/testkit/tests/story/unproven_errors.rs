//! Tests of Stripe's errors that do not prove that no payment was made: despite the error, Stripe may have made the
//! payment at once, or may make it hours later.

use std::sync::Arc;

use billing::SubscriptionStatus;
use chrono::TimeDelta;
use deployment::FaultyService;
use emulator::{EngineConnection, FaultInjector, StripeFault};
use sweep::BatchRequest;
use testkit::{FAULTS_AT_EACH_CALL, fault_at_call};

use crate::stripe_world::{DAY, StripeWorld};
use crate::world::{billing_time, date};

/// HTTP statuses and types of errors for which Stripe's documentation does not guarantee that no payment was made.
const UNPROVEN_ERRORS: [(u16, &str); 9] = [
    (400, "api_error"),
    (402, "api_error"),
    (402, "card_error"),
    (402, "invalid_request_error"),
    (404, "api_error"),
    (408, "invalid_request_error"),
    (413, "invalid_request_error"),
    (424, "invalid_request_error"),
    (425, "api_error"),
];

#[tokio::test]
async fn payment_made_despite_an_error_is_found_and_not_repeated() {
    for (status, kind) in UNPROVEN_ERRORS {
        let stripe_world = StripeWorld::new().await;
        // The first request of a run reads the Stripe account, and gets no fault.
        stripe_world.server.set_next_faults([None, Some(StripeFault::Error { status, kind, is_carried_out: true })]);
        assert_eq!(stripe_world.run_payments(DAY, 0).await, [("paid", 1)], "{status} {kind}");
        for day in ["2026-03-11", "2026-03-12"] {
            assert_eq!(stripe_world.run_payments(day, 0).await, [], "{status} {kind}");
        }
        assert_eq!(
            (stripe_world.succeeded_intents().len(), stripe_world.receipt_count().await),
            (1, 1),
            "{status} {kind}"
        );
    }
}

#[tokio::test]
async fn repeated_error_for_the_same_key_is_a_rejection_if_no_payment_was_made() {
    for (status, kind) in UNPROVEN_ERRORS {
        let stripe_world = StripeWorld::new().await;
        stripe_world.server.set_next_faults([None, Some(StripeFault::Error { status, kind, is_carried_out: false })]);
        assert_eq!(stripe_world.run_payments(DAY, 0).await, [("rejected", 1)], "{status} {kind}");
        assert_eq!(stripe_world.succeeded_intents().len(), 0, "{status} {kind}");
        assert_eq!(stripe_world.run_payments("2026-03-11", 0).await, [("paid", 1)], "{status} {kind}");
        assert_eq!(
            (stripe_world.succeeded_intents().len(), stripe_world.receipt_count().await),
            (1, 1),
            "{status} {kind}"
        );
    }
}

#[tokio::test]
async fn attempt_after_a_rejection_is_looked_up_before_the_charge() {
    let stripe_world = StripeWorld::new().await;
    stripe_world.server.set_next_faults([None, Some(StripeFault::ExecutedLater { status: 424, hours: 20 })]);
    assert_eq!(stripe_world.run_payments(DAY, 0).await, [("rejected", 1)]);
    assert_eq!(stripe_world.run_payments("2026-03-11", 0).await, [("paid", 1)]);
    assert_eq!((stripe_world.succeeded_intents().len(), stripe_world.receipt_count().await), (1, 1));
    assert_eq!(stripe_world.succeeded_intents()[0].metadata["dueday_attempt"], "1");
}

#[tokio::test]
async fn look_up_after_a_rejection_uses_the_customer_of_the_rejected_attempt() {
    let stripe_world = StripeWorld::new().await;
    stripe_world.server.set_next_faults([None, Some(StripeFault::ExecutedLater { status: 424, hours: 20 })]);
    assert_eq!(stripe_world.run_payments(DAY, 0).await, [("rejected", 1)]);
    let stored = stripe_world.world.load(&stripe_world.subscription).await;
    let mut changed = stored.clone();
    changed.payment_method.customer = "cus_other".parse().unwrap();
    stripe_world.world.table.update_subscription(&stored, &changed).await.unwrap();
    assert_eq!(stripe_world.run_payments("2026-03-11", 0).await, [("paid", 1)]);
    assert_eq!((stripe_world.succeeded_intents().len(), stripe_world.receipt_count().await), (1, 1));
}

#[tokio::test]
async fn payment_that_stripe_makes_two_days_after_a_server_error_is_found_before_the_next_charge() {
    let stripe_world = StripeWorld::new().await;
    stripe_world.server.set_next_faults([None, Some(StripeFault::ExecutedLater { status: 500, hours: 55 })]);
    assert_eq!(stripe_world.run_payments(DAY, 0).await, [("in_doubt", 1)]);
    for (day, expected) in [("2026-03-11", "in_doubt"), ("2026-03-12", "failed")] {
        // The idempotency key expires after a day, so the stand-in must continue to fail, as Stripe does until it
        // executes the first request.
        stripe_world.server.set_next_faults([None, None, Some(StripeFault::NotBegun)]);
        assert_eq!(stripe_world.run_payments(day, 0).await, [(expected, 1)], "{day}");
    }
    assert_eq!(
        stripe_world.run_payments("2026-03-12", 3).await,
        [("rejected", 1)],
        "the payment has been unknown to Stripe for 48 hours"
    );
    assert_eq!(stripe_world.run_payments("2026-03-13", 0).await, [("paid", 1)]);
    assert_eq!((stripe_world.succeeded_intents().len(), stripe_world.receipt_count().await), (1, 1));
    assert_eq!(stripe_world.world.load(&stripe_world.subscription).await.status, SubscriptionStatus::Active);
}

#[tokio::test]
async fn permanent_error_is_rejected_each_day_and_never_becomes_a_decline() {
    let stripe_world = StripeWorld::new().await;
    let error = StripeFault::Error { status: 402, kind: "api_error", is_carried_out: false };
    for day in [DAY, "2026-03-11", "2026-03-12", "2026-03-13"] {
        // Before the charge request, a run reads the account and, after a rejection, looks up the earlier attempt.
        let charge_index = if day == DAY { 1 } else { 2 };
        stripe_world.server.set_next_faults((0..8).map(|n| (n == charge_index).then_some(error)));
        assert_eq!(stripe_world.run_payments(day, 0).await, [("rejected", 1)], "{day}");
    }
    assert_eq!(stripe_world.succeeded_intents().len(), 0);
    assert_eq!(stripe_world.world.load(&stripe_world.subscription).await.status, SubscriptionStatus::Active);
}

#[tokio::test]
async fn charge_with_one_unknown_request_is_unknown_despite_the_response_to_its_retry() {
    for retry_fault in [StripeFault::RateLimited, StripeFault::Forbidden, StripeFault::LockTimeout] {
        let stripe_world = StripeWorld::new().await;
        stripe_world.server.set_next_faults([None, Some(StripeFault::BusyAfter), Some(retry_fault)]);
        assert_eq!(stripe_world.run_payments(DAY, 0).await, [("in_doubt", 1)], "{retry_fault:?}");
        assert_eq!(stripe_world.run_payments(DAY, 2).await, [("paid", 1)], "{retry_fault:?}");
        assert_eq!(
            (stripe_world.succeeded_intents().len(), stripe_world.receipt_count().await),
            (1, 1),
            "{retry_fault:?}"
        );
    }
}

#[tokio::test]
async fn month_is_paid_once_despite_a_crash_and_an_unproven_error() {
    let errors = [
        StripeFault::Error { status: 424, kind: "api_error", is_carried_out: true },
        StripeFault::Error { status: 402, kind: "api_error", is_carried_out: false },
        StripeFault::ExecutedLater { status: 424, hours: 1 },
        StripeFault::ExecutedLater { status: 500, hours: 20 },
        StripeFault::BusyAfter,
    ];
    for error in errors {
        for fault in FAULTS_AT_EACH_CALL {
            let mut calls = 1;
            loop {
                let stripe_world = StripeWorld::new().await;
                let injector = Arc::new(FaultInjector::active_during_runs(Arc::new(fault_at_call(calls, fault))));
                let gateway = Arc::new(FaultyService::new(stripe_world.stripe.clone(), injector.clone()));
                let connection = EngineConnection::with_injector(injector.clone()).without_retries();
                let payments = stripe_world.world.separate_payment_batch(connection, gateway).await;
                stripe_world.world.clock.set(billing_time(DAY));
                stripe_world.server.set_next_faults([None, Some(error)]);
                let request = BatchRequest::for_date(date(DAY));
                let _ = injector.run(payments.run(&request, billing_time(DAY) + TimeDelta::hours(1))).await;
                if injector.call_count() < calls {
                    break;
                }
                // If the run was killed before the charge, the error was not used. Remove it before the later runs.
                stripe_world.server.set_next_faults([]);
                for (day, hours) in [(DAY, 2), ("2026-03-11", 0), ("2026-03-12", 0), ("2026-03-13", 0)] {
                    stripe_world.run_payments(day, hours).await;
                }
                let case = format!("{error:?}: {fault:?} at call {calls}");
                assert_eq!(
                    (stripe_world.succeeded_intents().len(), stripe_world.receipt_count().await),
                    (1, 1),
                    "{case}: {:?}",
                    stripe_world.server
                );
                calls += 1;
            }
            assert!(calls > 6, "{error:?} {fault:?}: only {calls} calls");
        }
    }
}

#[tokio::test]
async fn decline_of_an_attempt_that_was_in_doubt_is_looked_up_before_the_retry() {
    let stripe_world = StripeWorld::with_card("pm_card_visa_chargeDeclinedInsufficientFunds").await;
    stripe_world.server.set_next_faults([None, Some(StripeFault::ExecutedLater { status: 500, hours: 30 })]);
    assert_eq!(stripe_world.run_payments(DAY, 0).await, [("in_doubt", 1)]);
    // The idempotency key has expired at Stripe, so the same request makes a new charge, which is declined.
    assert_eq!(stripe_world.run_payments("2026-03-11", 0).await, [("declined", 1)]);
    assert_eq!(stripe_world.server.intents().len(), 1);
    // Six hours later, Stripe also executes the first request. The next run must cancel the payment of this request,
    // because the payment could still succeed.
    assert_eq!(stripe_world.run_payments("2026-03-12", 0).await, [("declined", 1)]);
    let open = stripe_world.server.intents().into_iter().filter(|intent| intent.status != "canceled");
    assert_eq!((open.count(), stripe_world.server.intents().len()), (0, 3), "{:?}", stripe_world.server);
}
