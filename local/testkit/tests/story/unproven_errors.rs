//! Tests of Stripe's errors that do not prove that no payment was made: despite the error, Stripe may have made the
//! payment at once, or may make it hours later.

use std::sync::Arc;

use billing::{Status, Subscription};
use chrono::TimeDelta;
use deployment::Faulty;
use emulator::{EngineConnection, InProcessTransport, Injector, Intent, StripeFault, StripeServer};
use gateways::Stripe;
use sweep::BatchRequest;
use testkit::{FAULTS_AT_EACH_CALL, fault_at_call};

use crate::world::{World, billing_time, date, new_subscription, nonzero_counts};

/// The day on which the subscription of each test is due.
const DAY: &str = "2026-03-10";

/// A world with one subscription, and a Stripe adapter that is connected to the stand-in for Stripe.
struct StripeWorld {
    world: World,
    server: Arc<StripeServer>,
    stripe: Arc<Stripe>,
    subscription: Subscription,
}

impl StripeWorld {
    /// Creates a world whose subscription has a valid card.
    async fn new() -> Self {
        Self::with_card("pm_card_visa").await
    }

    /// Creates a world whose subscription has the test payment method `card`.
    async fn with_card(card: &str) -> Self {
        let world = World::with_one_shard().await;
        let mut subscription = new_subscription(10, "2026-03-01");
        subscription.payment_method.payment_method = card.parse().unwrap();
        world.store(&subscription).await;
        let server = StripeServer::new(world.clock.clone());
        let stripe = Arc::new(InProcessTransport::adapter(Arc::new(InProcessTransport(server.clone()))));
        Self { world, server, stripe, subscription }
    }

    /// Runs the payment batch of `day`, `hours` after the billing time. Returns the counts that are not zero.
    async fn run_payments(&self, day: &str, hours: i64) -> Vec<(&'static str, u64)> {
        let payments = self.world.separate_payment_batch(EngineConnection::default(), self.stripe.clone()).await;
        let now = billing_time(day) + TimeDelta::hours(hours);
        self.world.clock.set(now);
        let report = payments.run(&BatchRequest::for_date(date(day)), now + TimeDelta::hours(1)).await;
        nonzero_counts(&report.unwrap())
    }

    /// Returns the PaymentIntents that succeeded.
    fn succeeded_intents(&self) -> Vec<Intent> {
        self.server.intents().into_iter().filter(|intent| intent.status == "succeeded").collect()
    }

    /// Returns the number of receipts in the table.
    async fn receipt_count(&self) -> usize {
        self.world.receipt_due_dates(&self.subscription).await.len()
    }
}

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
    assert_eq!(stripe_world.world.load(&stripe_world.subscription).await.status, Status::Active);
}

#[tokio::test]
async fn permanent_error_counts_as_a_soft_decline_from_the_third_day() {
    let stripe_world = StripeWorld::new().await;
    let error = StripeFault::Error { status: 402, kind: "api_error", is_carried_out: false };
    for (day, expected) in
        [(DAY, "rejected"), ("2026-03-11", "rejected"), ("2026-03-12", "declined"), ("2026-03-13", "declined")]
    {
        // Before the charge request, a run reads the account and, after a rejection, looks up the earlier attempt.
        let charge_index = if day == DAY { 1 } else { 2 };
        stripe_world.server.set_next_faults((0..8).map(|n| (n == charge_index).then_some(error)));
        assert_eq!(stripe_world.run_payments(day, 0).await, [(expected, 1)], "{day}");
    }
    assert_eq!(stripe_world.succeeded_intents().len(), 0);
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
                let injector = Arc::new(Injector::active_during_runs(Arc::new(fault_at_call(calls, fault))));
                let gateway = Arc::new(Faulty::new(stripe_world.stripe.clone(), injector.clone()));
                let connection = EngineConnection::with_injector(injector.clone()).without_retries();
                let payments = stripe_world.world.separate_payment_batch(connection, gateway).await;
                stripe_world.world.clock.set(billing_time(DAY));
                stripe_world.server.set_next_faults([None, Some(error)]);
                let request = BatchRequest::for_date(date(DAY));
                let _ = injector.run(payments.run(&request, billing_time(DAY) + TimeDelta::hours(1))).await;
                if injector.calls() < calls {
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
