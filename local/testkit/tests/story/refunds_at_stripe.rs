//! Refunds over the stand-in for Stripe: whatever response hides the effect of a request, the same money is not refunded twice, and the
//! table and Stripe state the same refunds in the end.

use std::sync::Arc;

use billing::{Receipt, Refund, RefundStatus, Subscription};
use chrono::TimeDelta;
use clock::Clock as _;
use emulator::{Fault, Injector, STRIPE_KEY, StripeFault, StripeServer, Wire};
use gateways as gateway;
use gateways::Stripe;
use settling::{RefundError, Refunds};
use store::{Paging, Table};
use sweep::BatchRequest;
use testkit::{Faulty, nth};
use ulid::Ulid;

use crate::stripe::reached;
use crate::world::{World, date, morning, new_subscription};

const DAY: &str = "2026-03-10";
const FIRST: Ulid = Ulid::from_parts(1, 1);
const SECOND: Ulid = Ulid::from_parts(2, 2);

/// A period of 12.99 EUR that was paid through the stand-in.
struct Paid {
    world: World,
    server: Arc<StripeServer>,
    stripe: Arc<Stripe>,
    gold: Subscription,
    receipt: Receipt,
}

impl Paid {
    async fn new() -> Self {
        let (world, gold) = (World::new().await, new_subscription(10, "2026-03-01"));
        world.has(&gold).await;
        let server = StripeServer::new(world.clock.clone());
        let stripe = Arc::new(reached(&server, STRIPE_KEY).await);
        let payments = world.payments_over(Wire::default(), stripe.clone()).await;
        world.clock.set(morning(DAY));
        payments.run(&BatchRequest::on(date(DAY)), morning(DAY) + TimeDelta::hours(1)).await.unwrap();
        let receipt = receipt(&world, &gold).await;
        Self { world, server, stripe, gold, receipt }
    }

    fn refunds(&self, table: Table, gateway: Arc<dyn gateway::Refunds>) -> Refunds {
        Refunds::new(table, gateway, self.world.clock.clone())
    }

    async fn refund(&self, id: Ulid, minor: Option<i64>) -> Result<RefundStatus, RefundError> {
        let refunds = self.refunds(self.world.table.clone(), self.stripe.clone());
        refunds.refund(&self.gold.account, &self.receipt.id(), id, minor).await.map(|refund| refund.status)
    }

    fn minutes_pass(&self, minutes: i64) {
        self.world.clock.set(self.world.clock.now() + TimeDelta::minutes(minutes));
    }

    async fn stored(&self) -> Vec<Refund> {
        self.world.table.get_refunds_by_receipt(&self.gold.account, &self.receipt.id()).await.unwrap()
    }

    /// Returns what the receipt states as refunded, and what Stripe has refunded.
    async fn refunded(&self) -> (i64, i64) {
        let refunds = self.server.refunds();
        let at_stripe = refunds.iter().filter(|(_, status)| *status != "failed").map(|(amount, _)| amount).sum();
        (receipt(&self.world, &self.gold).await.refunded.minor(), at_stripe)
    }
}

async fn receipt(world: &World, gold: &Subscription) -> Receipt {
    let now = world.clock.now();
    world.table.get_receipts_by_account(&gold.account, &Paging::all(), now).await.unwrap().items.remove(0)
}

#[tokio::test]
async fn refund_that_took_effect_is_not_reported_as_failed_when_the_retry_is_refused() {
    for effect in [StripeFault::BusyAfter, StripeFault::ConflictAfter] {
        for refusal in [StripeFault::RateLimited, StripeFault::Forbidden] {
            let story = format!("{effect:?}, then {refusal:?}");
            let paid = Paid::new().await;
            // Stripe is asked for its account before the refund.
            paid.server.next([None, Some(effect), Some(refusal)]);
            assert_eq!(paid.refund(FIRST, Some(500)).await.unwrap(), RefundStatus::Succeeded, "{story}: it is listed");
            assert_eq!(paid.refunded().await, (500, 500), "{story}");
            // The operator refunds the rest, under another key.
            assert_eq!(paid.refund(SECOND, None).await.unwrap(), RefundStatus::Succeeded, "{story}");
            assert_eq!(paid.refunded().await, (1_299, 1_299), "{story}");
        }
    }
}

#[tokio::test]
async fn refund_with_an_unknown_outcome_is_pending_until_a_look_up_answers() {
    for look_up in [StripeFault::NotBegun, StripeFault::RateLimited, StripeFault::Forbidden] {
        let paid = Paid::new().await;
        paid.server.next([None, Some(StripeFault::LostAfter), Some(look_up)]);
        assert_eq!(paid.refund(FIRST, Some(800)).await.unwrap(), RefundStatus::Pending, "{look_up:?}");
        assert_eq!(paid.refunded().await, (800, 800), "the pending refund counts against what is left");
        paid.minutes_pass(3);
        // Nothing is known yet: the same request is still pending, and no other refund of the payment is made.
        paid.server.next([None, Some(look_up)]);
        assert_eq!(paid.refund(FIRST, Some(800)).await.unwrap(), RefundStatus::Pending, "{look_up:?}");
        paid.minutes_pass(3);
        paid.server.next([None, Some(look_up)]);
        assert!(paid.refund(SECOND, Some(800)).await.is_err(), "{look_up:?}");
        assert_eq!(paid.stored().await.len(), 1, "{look_up:?}");
        paid.minutes_pass(3);
        let too_much = paid.refund(SECOND, Some(800)).await;
        assert!(matches!(too_much, Err(RefundError::Refused(_))), "{look_up:?}: {too_much:?}");
        assert_eq!(paid.refund(FIRST, Some(800)).await.unwrap(), RefundStatus::Succeeded, "{look_up:?}");
        assert_eq!(paid.refunded().await, (800, 800), "{look_up:?}");
    }
}

#[tokio::test]
async fn refund_is_failed_only_when_the_error_proves_that_nothing_was_made() {
    let paid = Paid::new().await;
    paid.server.refund_in_the_dashboard(paid.receipt.payment.as_str(), 1_000, "succeeded");
    assert_eq!(paid.refund(FIRST, Some(500)).await.unwrap(), RefundStatus::Failed, "an invalid request");
    assert_eq!(paid.refunded().await, (0, 1_000));
    // An error of another kind proves nothing, though the request did not take effect.
    paid.server.next([None, Some(StripeFault::ApiErrorBefore)]);
    assert_eq!(paid.refund(SECOND, Some(200)).await.unwrap(), RefundStatus::Pending);
    paid.minutes_pass(3);
    assert_eq!(paid.refund(SECOND, Some(200)).await.unwrap(), RefundStatus::Succeeded, "asked for again");
    assert_eq!(paid.refunded().await, (200, 1_200));
}

/// Everything that goes wrong with a request to the stand-in, but for one that never ends.
const FAULTS: [StripeFault; 10] = [
    StripeFault::RateLimited,
    StripeFault::LockTimeout,
    StripeFault::InProgress,
    StripeFault::NotBegun,
    StripeFault::ApiErrorBefore,
    StripeFault::Forbidden,
    StripeFault::FailsAfter,
    StripeFault::LostAfter,
    StripeFault::BusyAfter,
    StripeFault::ConflictAfter,
];

#[tokio::test]
async fn two_faults_at_any_request_never_refund_twice_nor_hide_a_refund() {
    for first in FAULTS {
        for second in [StripeFault::RateLimited, StripeFault::Forbidden, StripeFault::LostAfter] {
            let story = format!("{first:?}, then {second:?}");
            let paid = Paid::new().await;
            paid.server.next([None, Some(first), Some(second)]);
            let reported = paid.refund(FIRST, Some(500)).await;
            let made = paid.server.refunds().len();
            let is_failed = paid.stored().await.iter().any(|refund| refund.status == RefundStatus::Failed);
            assert!(!(is_failed && made > 0), "{story}: {reported:?} though Stripe has refunded");
            paid.server.next([]);
            paid.minutes_pass(3);
            // The same request, repeated under the same key, has one refund of the part, also where the first was refused.
            assert_eq!(paid.refund(FIRST, Some(500)).await.unwrap(), RefundStatus::Succeeded, "{story}");
            assert_eq!(paid.refunded().await, (500, 500), "{story}");
        }
    }
}

#[tokio::test]
async fn crash_at_any_call_with_any_fault_after_it_refunds_once() {
    for fault in [Fault::LostBefore, Fault::LostAfter, Fault::CrashBefore, Fault::CrashAfter] {
        for then in [StripeFault::LostAfter, StripeFault::FailsAfter, StripeFault::Forbidden] {
            let mut calls = 1;
            loop {
                let story = format!("{fault:?} of call {calls}, then {then:?}");
                let paid = Paid::new().await;
                let injector = Arc::new(Injector::for_runs(Arc::new(nth(calls, fault))));
                let wired = paid.world.system.over(Arc::new(Wire::through(injector.clone()).and_no_retries()));
                let gateway = Arc::new(Faulty::new(paid.stripe.clone(), injector.clone()));
                let refunds = paid.refunds(wired.table, gateway);
                let _ = injector.run(refunds.refund(&paid.gold.account, &paid.receipt.id(), FIRST, Some(500))).await;
                if injector.calls() < calls {
                    break;
                }
                paid.minutes_pass(3);
                paid.server.next([None, None, Some(then), Some(then)]);
                let reported = paid.refund(FIRST, Some(500)).await;
                assert!(!matches!(reported, Ok(RefundStatus::Failed)), "{story}");
                paid.server.next([]);
                paid.minutes_pass(3);
                let then = paid.refund(FIRST, Some(500)).await.unwrap();
                assert_eq!(then, RefundStatus::Succeeded, "{story}: after {reported:?}");
                assert_eq!(paid.refunded().await, (500, 500), "{story}");
                calls += 1;
            }
            assert!(calls > 4, "only {calls} calls");
        }
    }
}
