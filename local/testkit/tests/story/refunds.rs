//! Refunds: the whole, a part, what is too much, and a crash at every call.

use std::sync::Arc;

use audit::{Invariant, Judge};
use billing::{Receipt, RefundRefusal, RefundStatus, Subscription};
use chrono::TimeDelta;
use clock::Clock as _;
use emulator::{Fault, Injector, STRIPE_KEY, StripeFault, StripeServer, Wire};
use gateways as gateway;
use gateways::{GatewayError, RefundAnswer, RefundRequest, RefundState, Refunds as _};
use settling::{RefundError, Refunds};
use store::Paging;
use testkit::{Faulty, nth};
use ulid::Ulid;

use crate::stripe::reached;
use crate::world::{World, date, morning, new_subscription};

const FIRST: Ulid = Ulid::from_parts(1, 1);
const SECOND: Ulid = Ulid::from_parts(2, 2);

struct Paid {
    world: World,
    gold: Subscription,
    receipt: Receipt,
}

async fn stored(world: &World, gold: &Subscription) -> Receipt {
    let now = world.clock.now();
    world.table.get_receipts_by_account(&gold.account, &Paging::all(), now).await.unwrap().items.remove(0)
}

impl Paid {
    /// A month of 12.99 EUR that is paid.
    async fn new() -> Self {
        let world = World::new().await;
        let gold = new_subscription(10, "2026-03-01");
        world.has(&gold).await;
        world.charge("2026-03-10").await;
        let receipt = stored(&world, &gold).await;
        Self { world, gold, receipt }
    }

    fn refunds(&self, gateway: Arc<dyn gateway::Refunds>) -> Refunds {
        Refunds::new(self.world.table.clone(), gateway, self.world.clock.clone())
    }

    async fn refund(&self, id: Ulid, minor: Option<i64>) -> Result<RefundStatus, RefundError> {
        let refunds = self.refunds(self.world.sandbox.clone());
        refunds.refund(&self.gold.account, &self.receipt.id(), id, minor).await.map(|refund| refund.status)
    }

    /// What the receipt says is given back, and what the gateway gave back.
    async fn given_back(&self) -> (i64, usize) {
        let receipt = stored(&self.world, &self.gold).await;
        (receipt.refunded.minor(), self.world.sandbox.refunds_made(&receipt.payment).len())
    }

    async fn broken(&self) -> Vec<Invariant> {
        let (today, now) = (date("2026-03-10"), self.world.clock.now());
        let judge = Judge {
            shards: 4,
            today,
            now,
            records_kept: TimeDelta::days(190),
            retry_days: 7,
            lease: TimeDelta::minutes(20),
        };
        let partition = self.world.table.partitions().next().await.unwrap().unwrap();
        judge.judge(&partition).into_iter().map(|broken| broken.invariant).collect()
    }
}

#[tokio::test]
async fn parts_of_a_payment_are_given_back_until_nothing_is_left() {
    let paid = Paid::new().await;
    assert_eq!(paid.refund(FIRST, Some(500)).await.unwrap(), RefundStatus::Succeeded);
    assert_eq!(paid.given_back().await, (500, 1));
    let too_much = paid.refund(SECOND, Some(800)).await.unwrap_err();
    assert!(
        matches!(too_much, RefundError::Refused(RefundRefusal::NotLeft { left }) if left.minor() == 799),
        "{too_much}"
    );
    assert!(matches!(paid.refund(SECOND, Some(0)).await, Err(RefundError::Refused(_))));
    assert_eq!(paid.refund(SECOND, None).await.unwrap(), RefundStatus::Succeeded);
    assert_eq!(paid.given_back().await, (1_299, 2));
    let nothing = paid.refund(Ulid::from_parts(3, 3), None).await.unwrap_err();
    assert!(matches!(nothing, RefundError::Refused(RefundRefusal::Refunded)), "{nothing}");
    assert_eq!(paid.broken().await, []);
}

#[tokio::test]
async fn refund_that_is_asked_for_again_is_given_once() {
    let paid = Paid::new().await;
    for _ in 0..2 {
        assert_eq!(paid.refund(FIRST, Some(500)).await.unwrap(), RefundStatus::Succeeded);
    }
    assert_eq!(paid.given_back().await, (500, 1));
    assert!(matches!(paid.refund(FIRST, Some(400)).await, Err(RefundError::OtherRefund { .. })));
    let refunds = paid.refunds(paid.world.sandbox.clone());
    let nobody = "nobody".parse().unwrap();
    let missing = refunds.refund(&nobody, &paid.receipt.id(), SECOND, None).await;
    assert!(matches!(missing, Err(RefundError::NoReceipt)));
    paid.world.clock.set(morning("2026-11-10"));
    assert!(matches!(paid.refund(SECOND, None).await, Err(RefundError::NoReceipt)), "it has expired");
}

#[tokio::test]
async fn crash_at_any_call_gives_nothing_back_twice_and_ends_with_what_was_asked() {
    for fault in [Fault::LostBefore, Fault::LostAfter, Fault::CrashBefore, Fault::CrashAfter] {
        let mut calls = 1;
        loop {
            let story = format!("{fault:?} of call {calls}");
            let paid = Paid::new().await;
            let injector = Arc::new(Injector::for_runs(Arc::new(nth(calls, fault))));
            let wired = paid.world.system.over(Arc::new(Wire::through(injector.clone()).and_no_retries()));
            let gateway = Arc::new(Faulty::new(paid.world.sandbox.clone(), injector.clone()));
            let refunds = Refunds::new(wired.table, gateway, paid.world.clock.clone());
            let _ = injector.run(refunds.refund(&paid.gold.account, &paid.receipt.id(), FIRST, Some(500))).await;
            if injector.calls() < calls {
                break;
            }
            let at_once = paid.refund(FIRST, Some(500)).await;
            let is_told = matches!(at_once, Ok(RefundStatus::Succeeded) | Err(RefundError::InProgress));
            assert!(is_told, "{story}: {at_once:?}");
            paid.world.clock.set(paid.world.clock.now() + TimeDelta::minutes(3));
            assert_eq!(paid.refund(FIRST, Some(500)).await.unwrap(), RefundStatus::Succeeded, "{story}");
            assert_eq!(paid.given_back().await, (500, 1), "{story}");
            assert_eq!(paid.refund(SECOND, None).await.unwrap(), RefundStatus::Succeeded, "{story}: and the rest");
            assert_eq!((paid.given_back().await, paid.broken().await), ((1_299, 2), Vec::new()), "{story}");
            calls += 1;
        }
        assert!(calls > 4, "only {calls} calls");
    }
}

#[tokio::test]
async fn refund_that_the_gateway_refuses_leaves_the_payment_as_it_was() {
    let paid = Paid::new().await;
    // More was given back at the gateway itself.
    let elsewhere =
        RefundRequest { refund: SECOND, payment: paid.receipt.payment.clone(), amount: paid.receipt.amount };
    paid.world.sandbox.refund(&elsewhere).await;
    assert_eq!(paid.refund(FIRST, Some(500)).await.unwrap(), RefundStatus::Failed);
    assert_eq!((paid.given_back().await.0, paid.broken().await), (0, Vec::new()));
}

#[tokio::test]
async fn refund_of_a_gateway_that_refuses_us_is_free_again_and_one_that_stays_pending_is_told() {
    let paid = Paid::new().await;
    for (fault, pending) in [(Fault::Refused("401"), 0), (Fault::LostBefore, 1_299)] {
        let injector = Arc::new(Injector::for_runs(Arc::new(nth(1, fault))));
        let gateway = Arc::new(Faulty::new(paid.world.sandbox.clone(), injector.clone()));
        let asked = injector
            .run(async {
                paid.refunds(gateway)
                    .refund(&paid.gold.account, &paid.receipt.id(), Ulid::from_parts(4, pending), None)
                    .await
            })
            .await
            .unwrap();
        assert_eq!(asked.is_err(), pending == 0, "{asked:?}");
        assert_eq!(paid.given_back().await, (i64::try_from(pending).unwrap(), 0));
    }
    assert_eq!(paid.broken().await, []);
    paid.world.clock.set(morning("2026-03-25"));
    assert_eq!(paid.broken().await, [Invariant::Refunded], "pending for two weeks");
}

#[tokio::test]
async fn refunds_of_stripes_are_made_once_and_found() {
    let world = World::new().await;
    let server = StripeServer::new(world.clock.clone());
    let stripe = reached(&server, STRIPE_KEY).await;
    let payment = crate::stripe::charged(&stripe).await;
    let request = |refund, minor| RefundRequest {
        refund,
        payment: payment.id.clone(),
        amount: billing::Money::new(minor, payment.amount.currency()),
    };
    server.next([Some(StripeFault::LostAfter)]);
    let lost = stripe.refund(&request(FIRST, 500)).await;
    assert!(matches!(lost, RefundAnswer::NotKnown(GatewayError::Unknown { .. })), "{lost:?}");
    let made = stripe.refunds_of(&payment.id).await.unwrap();
    assert_eq!((made.len(), made[0].refund, &made[0].state), (1, Some(FIRST), &RefundState::Succeeded));
    assert_eq!(stripe.refund(&request(FIRST, 500)).await, RefundAnswer::Made(made[0].clone()), "the same key");
    let too_much = stripe.refund(&request(SECOND, 800)).await;
    assert!(
        matches!(&too_much, RefundAnswer::Rejected { code } if code == "charge_already_refunded" || code == "amount_too_large"),
        "{too_much:?}"
    );
    server.next([Some(StripeFault::RateLimited)]);
    let throttled = stripe.refund(&request(SECOND, 700)).await;
    assert!(matches!(throttled, RefundAnswer::NotKnown(GatewayError::Throttled { .. })), "{throttled:?}");
    for n in 0..120 {
        let more = stripe.refund(&request(Ulid::from_parts(9, n), 1)).await;
        assert!(matches!(more, RefundAnswer::Made(_)), "{more:?}");
    }
    assert_eq!(stripe.refunds_of(&payment.id).await.unwrap().len(), 121, "all pages");
}
