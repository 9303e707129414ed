//! Errors of Stripe that do not prove that nothing was made. The payment may have been made all the same, at once or hours later.

use std::sync::Arc;

use billing::{Status, Subscription};
use chrono::TimeDelta;
use emulator::{Fault, InProcess, Injector, Intent, StripeFault, StripeServer, Wire};
use gateways::Stripe;
use sweep::BatchRequest;
use testkit::{Faulty, nth};

use crate::world::{World, counts, date, morning, new_subscription};

const DAY: &str = "2026-03-10";

struct Story {
    world: World,
    server: Arc<StripeServer>,
    stripe: Arc<Stripe>,
    subscription: Subscription,
}

impl Story {
    async fn new() -> Self {
        Self::paying_with("pm_card_visa").await
    }

    async fn paying_with(card: &str) -> Self {
        let world = World::new().await;
        let mut subscription = new_subscription(10, "2026-03-01");
        subscription.payment_method.payment_method = card.parse().unwrap();
        world.has(&subscription).await;
        let server = StripeServer::new(world.clock.clone());
        let stripe = Arc::new(InProcess::adapter(Arc::new(InProcess(server.clone()))));
        Self { world, server, stripe, subscription }
    }

    async fn run(&self, day: &str, hours: i64) -> Vec<(&'static str, u64)> {
        let payments = self.world.payments_over(Wire::default(), self.stripe.clone()).await;
        let now = morning(day) + TimeDelta::hours(hours);
        self.world.clock.set(now);
        let report = payments.run(&BatchRequest::on(date(day)), now + TimeDelta::hours(1)).await;
        counts(&report.unwrap())
    }

    fn paid(&self) -> Vec<Intent> {
        self.server.intents().into_iter().filter(|intent| intent.status == "succeeded").collect()
    }

    async fn receipts(&self) -> usize {
        self.world.receipts(&self.subscription).await.len()
    }
}

/// The responses of which the documentation says nothing, or not that nothing was made.
const UNPROVEN: [(u16, &str); 9] = [
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
async fn payment_that_was_made_before_an_error_is_found_and_not_made_again() {
    for (status, kind) in UNPROVEN {
        let story = Story::new().await;
        // The first request asks for the account.
        story.server.next([None, Some(StripeFault::Error { status, kind, is_carried_out: true })]);
        assert_eq!(story.run(DAY, 0).await, [("paid", 1)], "{status} {kind}");
        for day in ["2026-03-11", "2026-03-12"] {
            assert_eq!(story.run(day, 0).await, [], "{status} {kind}");
        }
        assert_eq!((story.paid().len(), story.receipts().await), (1, 1), "{status} {kind}");
    }
}

#[tokio::test]
async fn error_that_comes_back_under_the_same_key_is_a_rejection_if_nothing_was_made() {
    for (status, kind) in UNPROVEN {
        let story = Story::new().await;
        story.server.next([None, Some(StripeFault::Error { status, kind, is_carried_out: false })]);
        assert_eq!(story.run(DAY, 0).await, [("rejected", 1)], "{status} {kind}");
        assert_eq!(story.paid().len(), 0, "{status} {kind}");
        assert_eq!(story.run("2026-03-11", 0).await, [("paid", 1)], "{status} {kind}");
        assert_eq!((story.paid().len(), story.receipts().await), (1, 1), "{status} {kind}");
    }
}

#[tokio::test]
async fn claim_after_a_rejection_looks_up_before_it_charges() {
    let story = Story::new().await;
    story.server.next([None, Some(StripeFault::RepairedAfter { status: 424, hours: 20 })]);
    assert_eq!(story.run(DAY, 0).await, [("rejected", 1)]);
    assert_eq!(story.run("2026-03-11", 0).await, [("paid", 1)]);
    assert_eq!((story.paid().len(), story.receipts().await), (1, 1));
    assert_eq!(story.paid()[0].metadata["dueday_attempt"], "1");
}

#[tokio::test]
async fn claim_after_a_rejection_looks_up_the_customer_of_the_rejected_attempt() {
    let story = Story::new().await;
    story.server.next([None, Some(StripeFault::RepairedAfter { status: 424, hours: 20 })]);
    assert_eq!(story.run(DAY, 0).await, [("rejected", 1)]);
    let stored = story.world.stored(&story.subscription).await;
    let mut changed = stored.clone();
    changed.payment_method.customer = "cus_other".parse().unwrap();
    story.world.table.update_subscription(&stored, &changed).await.unwrap();
    assert_eq!(story.run("2026-03-11", 0).await, [("paid", 1)]);
    assert_eq!((story.paid().len(), story.receipts().await), (1, 1));
}

#[tokio::test]
async fn server_error_that_is_repaired_after_two_days_is_found_before_the_next_charge() {
    let story = Story::new().await;
    story.server.next([None, Some(StripeFault::RepairedAfter { status: 500, hours: 55 })]);
    assert_eq!(story.run(DAY, 0).await, [("in_doubt", 1)]);
    for (day, expected) in [("2026-03-11", "in_doubt"), ("2026-03-12", "failed")] {
        // The key is forgotten after a day: the stand-in must go on failing, as Stripe does while it repairs.
        story.server.next([None, None, Some(StripeFault::NotBegun)]);
        assert_eq!(story.run(day, 0).await, [(expected, 1)], "{day}");
    }
    assert_eq!(story.run("2026-03-12", 3).await, [("rejected", 1)], "unknown to Stripe for 48 hours");
    assert_eq!(story.run("2026-03-13", 0).await, [("paid", 1)]);
    assert_eq!((story.paid().len(), story.receipts().await), (1, 1));
    assert_eq!(story.world.stored(&story.subscription).await.status, Status::Active);
}

#[tokio::test]
async fn permanent_error_counts_as_a_soft_decline_the_third_day_and_never_fails_for_48_hours() {
    let story = Story::new().await;
    let error = StripeFault::Error { status: 402, kind: "api_error", is_carried_out: false };
    for (day, expected) in
        [(DAY, "rejected"), ("2026-03-11", "rejected"), ("2026-03-12", "declined"), ("2026-03-13", "declined")]
    {
        let charges_at = if day == DAY { 1 } else { 2 };
        story.server.next((0..8).map(|n| (n == charges_at).then_some(error)));
        assert_eq!(story.run(day, 0).await, [(expected, 1)], "{day}");
    }
    assert_eq!(story.paid().len(), 0);
}

#[tokio::test]
async fn unknown_try_makes_the_whole_charge_unknown_whatever_the_next_try_says() {
    for then in [StripeFault::RateLimited, StripeFault::Forbidden, StripeFault::LockTimeout] {
        let story = Story::new().await;
        story.server.next([None, Some(StripeFault::BusyAfter), Some(then)]);
        assert_eq!(story.run(DAY, 0).await, [("in_doubt", 1)], "{then:?}");
        assert_eq!(story.run(DAY, 2).await, [("paid", 1)], "{then:?}");
        assert_eq!((story.paid().len(), story.receipts().await), (1, 1), "{then:?}");
    }
}

#[tokio::test]
async fn crash_at_any_call_around_an_unproven_error_pays_the_period_once() {
    let errors = [
        StripeFault::Error { status: 424, kind: "api_error", is_carried_out: true },
        StripeFault::Error { status: 402, kind: "api_error", is_carried_out: false },
        StripeFault::RepairedAfter { status: 424, hours: 1 },
        StripeFault::RepairedAfter { status: 500, hours: 20 },
        StripeFault::BusyAfter,
    ];
    for error in errors {
        for fault in [Fault::LostBefore, Fault::LostAfter, Fault::CrashBefore, Fault::CrashAfter] {
            let mut calls = 1;
            loop {
                let story = Story::new().await;
                let injector = Arc::new(Injector::for_runs(Arc::new(nth(calls, fault))));
                let gateway = Arc::new(Faulty::new(story.stripe.clone(), injector.clone()));
                let wire = Wire::through(injector.clone()).and_no_retries();
                let payments = story.world.payments_over(wire, gateway).await;
                story.world.clock.set(morning(DAY));
                story.server.next([None, Some(error)]);
                let request = BatchRequest::on(date(DAY));
                let _ = injector.run(payments.run(&request, morning(DAY) + TimeDelta::hours(1))).await;
                if injector.calls() < calls {
                    break;
                }
                // Where the run was killed before the charge, the error is not met at all.
                story.server.next([]);
                for (day, hours) in [(DAY, 2), ("2026-03-11", 0), ("2026-03-12", 0), ("2026-03-13", 0)] {
                    story.run(day, hours).await;
                }
                let at = format!("{error:?}: {fault:?} of call {calls}");
                assert_eq!((story.paid().len(), story.receipts().await), (1, 1), "{at}: {:?}", story.server);
                calls += 1;
            }
            assert!(calls > 6, "{error:?} {fault:?}: {calls} calls");
        }
    }
}

#[tokio::test]
async fn decline_of_an_attempt_that_was_in_doubt_is_looked_up_before_the_retry() {
    let story = Story::paying_with("pm_card_visa_chargeDeclinedInsufficientFunds").await;
    story.server.next([None, Some(StripeFault::RepairedAfter { status: 500, hours: 30 })]);
    assert_eq!(story.run(DAY, 0).await, [("in_doubt", 1)]);
    // Stripe has forgotten the key: the same charge is made anew, and declined.
    assert_eq!(story.run("2026-03-11", 0).await, [("declined", 1)]);
    assert_eq!(story.server.intents().len(), 1);
    // Six hours later it also carries out the first request. That payment could still succeed.
    assert_eq!(story.run("2026-03-12", 0).await, [("declined", 1)]);
    let open = story.server.intents().into_iter().filter(|intent| intent.status != "canceled");
    assert_eq!((open.count(), story.server.intents().len()), (0, 3), "{:?}", story.server);
}
