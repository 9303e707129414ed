//! Tests of refunds at the stand-in for Stripe, with faults and crashes: no amount is refunded twice, and the table and
//! Stripe agree on the refunds in the end.

use std::sync::Arc;

use billing::{Receipt, Refund, RefundStatus, Subscription};
use chrono::TimeDelta;
use clock::Clock as _;
use deployment::FaultyService;
use emulator::{EngineConnection, FaultInjector, STRIPE_KEY, StripeFault, StripeServer};
use gateway_objects::{RefundError, RefundRequester};
use gateways as gateway;
use gateways::Stripe;
use store::{Paging, Table};
use sweep::BatchRequest;
use testkit::{FAULTS_AT_EACH_CALL, fault_at_call};
use ulid::Ulid;

use crate::stripe::connect;
use crate::world::{World, billing_time, date, new_subscription};

/// The day on which the refunded payment was made.
const DAY: &str = "2026-03-10";
/// The id of the first refund in a test.
const FIRST_REFUND: Ulid = Ulid::from_parts(1, 1);
/// The id of the second refund in a test.
const SECOND_REFUND: Ulid = Ulid::from_parts(2, 2);

/// A world with a period of 12.99 EUR that was paid at the stand-in for Stripe.
struct PaidWorld {
    world: World,
    server: Arc<StripeServer>,
    stripe: Arc<Stripe>,
    gold: Subscription,
    receipt: Receipt,
}

impl PaidWorld {
    /// Creates a world, and runs its payment batch on [`DAY`].
    async fn new() -> Self {
        let (world, gold) = (World::new().await, new_subscription(10, "2026-03-01"));
        world.store(&gold).await;
        let server = StripeServer::new(world.clock.clone());
        let stripe = Arc::new(connect(&server, STRIPE_KEY).await);
        let payments = world.separate_payment_batch(EngineConnection::default(), stripe.clone()).await;
        world.clock.set(billing_time(DAY));
        payments.run(&BatchRequest::for_date(date(DAY)), billing_time(DAY) + TimeDelta::hours(1)).await.unwrap();
        let receipt = load_receipt(&world, &gold).await;
        Self { world, server, stripe, gold, receipt }
    }

    /// Returns the service that stores refunds in `table` and makes the refunds at `gateway`.
    fn refunds(&self, table: Table, gateway: Arc<dyn gateway::Refunds>) -> RefundRequester {
        RefundRequester::new(table, gateway, self.world.clock.clone())
    }

    /// Refunds `minor` minor units of the payment, or the remaining amount if `minor` is `None`.
    async fn refund(&self, id: Ulid, minor: Option<i64>) -> Result<RefundStatus, RefundError> {
        let refunds = self.refunds(self.world.table.clone(), self.stripe.clone());
        refunds.refund(&self.gold.account, &self.receipt.id(), id, minor, None).await.map(|refund| refund.status)
    }

    fn advance_clock(&self, minutes: i64) {
        self.world.clock.set(self.world.clock.now() + TimeDelta::minutes(minutes));
    }

    /// Returns the stored refunds of the receipt.
    async fn stored_refunds(&self) -> Vec<Refund> {
        self.world.table.get_refunds_by_receipt(&self.gold.account, &self.receipt.id()).await.unwrap()
    }

    /// Returns the refunded amount in the receipt and the refunded amount at Stripe, in minor units.
    async fn refunded(&self) -> (i64, i64) {
        let refunds = self.server.refunds();
        let at_stripe = refunds.iter().filter(|(_, status)| *status != "failed").map(|(amount, _)| amount).sum();
        (load_receipt(&self.world, &self.gold).await.refunded.minor(), at_stripe)
    }
}

/// Returns the stored receipt of the payment of `gold`.
async fn load_receipt(world: &World, gold: &Subscription) -> Receipt {
    let now = world.clock.now();
    world.table.get_receipts_by_account(&gold.account, &Paging::all(), now).await.unwrap().items.remove(0)
}

#[tokio::test]
async fn successful_refund_is_not_reported_as_failed_if_its_retry_is_rejected() {
    for effect in [StripeFault::BusyAfter, StripeFault::ConflictAfter] {
        for refusal in [StripeFault::RateLimited, StripeFault::Forbidden] {
            let case = format!("{effect:?}, then {refusal:?}");
            let paid = PaidWorld::new().await;
            // The first request reads the Stripe account, and gets no fault.
            paid.server.set_next_faults([None, Some(effect), Some(refusal)]);
            assert_eq!(
                paid.refund(FIRST_REFUND, Some(500)).await.unwrap(),
                RefundStatus::Succeeded,
                "{case}: Stripe lists the refund"
            );
            assert_eq!(paid.refunded().await, (500, 500), "{case}");
            // The operator refunds the remaining amount with another idempotency key.
            assert_eq!(paid.refund(SECOND_REFUND, None).await.unwrap(), RefundStatus::Succeeded, "{case}");
            assert_eq!(paid.refunded().await, (1_299, 1_299), "{case}");
        }
    }
}

#[tokio::test]
async fn refund_with_an_unknown_outcome_is_pending_until_a_look_up_succeeds() {
    for look_up in [StripeFault::NotBegun, StripeFault::RateLimited, StripeFault::Forbidden] {
        let paid = PaidWorld::new().await;
        paid.server.set_next_faults([None, Some(StripeFault::LostAfter), Some(look_up)]);
        assert_eq!(paid.refund(FIRST_REFUND, Some(800)).await.unwrap(), RefundStatus::Pending, "{look_up:?}");
        assert_eq!(paid.refunded().await, (800, 800), "the pending refund counts as refunded");
        paid.advance_clock(3);
        // While the outcome is unknown, the same request stays pending, and another refund of the payment is rejected.
        paid.server.set_next_faults([None, Some(look_up)]);
        assert_eq!(paid.refund(FIRST_REFUND, Some(800)).await.unwrap(), RefundStatus::Pending, "{look_up:?}");
        paid.advance_clock(3);
        paid.server.set_next_faults([None, Some(look_up)]);
        assert!(paid.refund(SECOND_REFUND, Some(800)).await.is_err(), "{look_up:?}");
        assert_eq!(paid.stored_refunds().await.len(), 1, "{look_up:?}");
        paid.advance_clock(3);
        let too_much = paid.refund(SECOND_REFUND, Some(800)).await;
        assert!(matches!(too_much, Err(RefundError::Refused(_))), "{look_up:?}: {too_much:?}");
        assert_eq!(paid.refund(FIRST_REFUND, Some(800)).await.unwrap(), RefundStatus::Succeeded, "{look_up:?}");
        assert_eq!(paid.refunded().await, (800, 800), "{look_up:?}");
    }
}

#[tokio::test]
async fn refund_fails_only_if_the_error_proves_that_nothing_was_refunded() {
    let paid = PaidWorld::new().await;
    paid.server.refund_in_the_dashboard(paid.receipt.payment.as_str(), 1_000, "succeeded");
    assert_eq!(paid.refund(FIRST_REFUND, Some(500)).await.unwrap(), RefundStatus::Failed, "Stripe rejects the amount");
    assert_eq!(paid.refunded().await, (0, 1_000));
    // An error of another kind does not prove that nothing was refunded. This request had no effect, but Dueday cannot
    // know this.
    paid.server.set_next_faults([None, Some(StripeFault::ApiErrorBefore)]);
    assert_eq!(paid.refund(SECOND_REFUND, Some(200)).await.unwrap(), RefundStatus::Pending);
    paid.advance_clock(3);
    assert_eq!(paid.refund(SECOND_REFUND, Some(200)).await.unwrap(), RefundStatus::Succeeded, "the repeated request");
    assert_eq!(paid.refunded().await, (200, 1_200));
}

/// The faults that the test injects into the first refund request.
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
async fn two_faults_never_cause_a_double_refund_or_hide_a_refund() {
    for first in FAULTS {
        for second in [StripeFault::RateLimited, StripeFault::Forbidden, StripeFault::LostAfter] {
            let case = format!("{first:?}, then {second:?}");
            let paid = PaidWorld::new().await;
            paid.server.set_next_faults([None, Some(first), Some(second)]);
            let reported = paid.refund(FIRST_REFUND, Some(500)).await;
            let count_at_stripe = paid.server.refunds().len();
            let is_failed = paid.stored_refunds().await.iter().any(|refund| refund.status == RefundStatus::Failed);
            assert!(!(is_failed && count_at_stripe > 0), "{case}: {reported:?}, although Stripe has refunded");
            paid.server.set_next_faults([]);
            paid.advance_clock(3);
            // The repeated request with the same key leads to exactly one refund, also if the first request was
            // rejected.
            assert_eq!(paid.refund(FIRST_REFUND, Some(500)).await.unwrap(), RefundStatus::Succeeded, "{case}");
            assert_eq!(paid.refunded().await, (500, 500), "{case}");
        }
    }
}

#[tokio::test]
async fn refund_is_made_once_despite_a_crash_and_a_later_fault() {
    for fault in FAULTS_AT_EACH_CALL {
        for later_fault in [StripeFault::LostAfter, StripeFault::FailsAfter, StripeFault::Forbidden] {
            let mut calls = 1;
            loop {
                let case = format!("{fault:?} at call {calls}, then {later_fault:?}");
                let paid = PaidWorld::new().await;
                let injector = Arc::new(FaultInjector::active_during_runs(Arc::new(fault_at_call(calls, fault))));
                let deployment = paid
                    .world
                    .system
                    .with_connection(Arc::new(EngineConnection::with_injector(injector.clone()).without_retries()));
                let gateway = Arc::new(FaultyService::new(paid.stripe.clone(), injector.clone()));
                let refunds = paid.refunds(deployment.table, gateway);
                let _ = injector
                    .run(refunds.refund(&paid.gold.account, &paid.receipt.id(), FIRST_REFUND, Some(500), None))
                    .await;
                if injector.call_count() < calls {
                    break;
                }
                paid.advance_clock(3);
                paid.server.set_next_faults([None, None, Some(later_fault), Some(later_fault)]);
                let reported = paid.refund(FIRST_REFUND, Some(500)).await;
                assert!(!matches!(reported, Ok(RefundStatus::Failed)), "{case}");
                paid.server.set_next_faults([]);
                paid.advance_clock(3);
                let status = paid.refund(FIRST_REFUND, Some(500)).await.unwrap();
                assert_eq!(status, RefundStatus::Succeeded, "{case}: after {reported:?}");
                assert_eq!(paid.refunded().await, (500, 500), "{case}");
                calls += 1;
            }
            assert!(calls > 4, "only {calls} calls");
        }
    }
}
