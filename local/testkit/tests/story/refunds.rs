//! Tests of refunds: full and partial refunds, amounts that are too high, and a crash at every call.

use std::sync::Arc;

use audit::{Invariant, InvariantChecker, ReportSource, build_sales_report};
use billing::{Money, Receipt, RefundRefusal, RefundStatus, Subscription};
use chrono::TimeDelta;
use clock::Clock as _;
use deployment::FaultyService;
use emulator::{EngineConnection, Fault, FaultInjector, STRIPE_KEY, StripeFault, StripeServer};
use gateway_objects::{RefundError, RefundRequester};
use gateways as gateway;
use gateways::{GatewayError, RefundRequest, RefundResponse, RefundState, Refunds as _};
use store::Paging;
use testkit::{FAULTS_AT_EACH_CALL, fault_at_call};
use ulid::Ulid;

use crate::stripe::connect;
use crate::world::{World, billing_time, date, new_subscription};

/// The id of the first refund in a test.
const FIRST_REFUND: Ulid = Ulid::from_parts(1, 1);
/// The id of the second refund in a test.
const SECOND_REFUND: Ulid = Ulid::from_parts(2, 2);

/// A world in which a month of 12.99 EUR of the subscription `gold` was paid at the sandbox gateway.
struct PaidWorld {
    world: World,
    gold: Subscription,
    receipt: Receipt,
}

/// The sales of a day. The amounts are in minor units.
#[derive(PartialEq, Eq, Debug, Default)]
struct Sales {
    /// The number of payments.
    payments: u64,
    /// The number of refunds.
    refunds: u64,
    /// The refunded amount.
    refunded: i64,
    /// The net amount.
    net: i64,
}

/// Returns the stored receipt of the payment of `gold`.
async fn load_receipt(world: &World, gold: &Subscription) -> Receipt {
    let now = world.clock.now();
    world.table.get_receipts_by_account(&gold.account, &Paging::all(), now).await.unwrap().items.remove(0)
}

impl PaidWorld {
    /// Creates a world, and runs its payment batch on the day on which the subscription is due.
    async fn new() -> Self {
        let world = World::new().await;
        let gold = new_subscription(10, "2026-03-01");
        world.store(&gold).await;
        world.run_payments("2026-03-10").await;
        let receipt = load_receipt(&world, &gold).await;
        Self { world, gold, receipt }
    }

    /// Returns the service that refunds payments at `gateway`.
    fn refunds(&self, gateway: Arc<dyn gateway::Refunds>) -> RefundRequester {
        RefundRequester::new(self.world.table.clone(), gateway, self.world.clock.clone())
    }

    /// Refunds `minor` minor units of the payment, or the remaining amount if `minor` is `None`.
    async fn refund(&self, id: Ulid, minor: Option<i64>) -> Result<RefundStatus, RefundError> {
        let refunds = self.refunds(self.world.sandbox.clone());
        refunds.refund(&self.gold.account, &self.receipt.id(), id, minor, None).await.map(|refund| refund.status)
    }

    /// Returns the refunded amount of the receipt (in minor units), and the number of refunds at the gateway.
    async fn refunded(&self) -> (i64, usize) {
        let receipt = load_receipt(&self.world, &self.gold).await;
        (receipt.refunded.minor(), self.world.sandbox.refunds_made(&receipt.payment).len())
    }

    /// Returns the sales of `day`.
    async fn sales(&self, day: &str) -> Sales {
        let (table, settings) = (&self.world.table, self.world.table.get_settings().await.unwrap().unwrap());
        let source = ReportSource { table, settings: &settings, now: self.world.clock.now() };
        let day = build_sales_report(source, date(day)..=date(day)).await.unwrap().days.remove(0);
        day.taken.first().map_or_else(Sales::default, |sales| Sales {
            payments: sales.payments,
            refunds: sales.refunds,
            refunded: sales.refunded_amount,
            net: sales.net_amount,
        })
    }

    /// Audits the table, and returns the violated invariants.
    async fn violations(&self) -> Vec<Invariant> {
        let (today, now) = (date("2026-03-10"), self.world.clock.now());
        let checker = InvariantChecker {
            shards: 4,
            today,
            now,
            records_kept: TimeDelta::days(190),
            longest_gap: 2,
            lead: Default::default(),
        };
        let partition = self.world.table.account_partitions().next().await.unwrap().unwrap();
        checker.check_account(&partition).into_iter().map(|violation| violation.invariant).collect()
    }
}

#[tokio::test]
async fn partial_refunds_are_accepted_until_the_payment_is_fully_refunded() {
    let paid = PaidWorld::new().await;
    assert_eq!(paid.refund(FIRST_REFUND, Some(500)).await.unwrap(), RefundStatus::Succeeded);
    assert_eq!(paid.refunded().await, (500, 1));
    let too_much = paid.refund(SECOND_REFUND, Some(800)).await.unwrap_err();
    assert!(
        matches!(too_much, RefundError::Refused(RefundRefusal::InvalidAmount { remaining }) if remaining.minor() == 799),
        "{too_much}"
    );
    assert!(matches!(paid.refund(SECOND_REFUND, Some(0)).await, Err(RefundError::Refused(_))));
    assert_eq!(paid.refund(SECOND_REFUND, None).await.unwrap(), RefundStatus::Succeeded);
    assert_eq!(paid.refunded().await, (1_299, 2));
    let nothing = paid.refund(Ulid::from_parts(3, 3), None).await.unwrap_err();
    assert!(matches!(nothing, RefundError::Refused(RefundRefusal::FullyRefunded)), "{nothing}");
    assert_eq!(paid.violations().await, []);
}

#[tokio::test]
async fn repeated_refund_request_refunds_once() {
    let paid = PaidWorld::new().await;
    for _ in 0..2 {
        assert_eq!(paid.refund(FIRST_REFUND, Some(500)).await.unwrap(), RefundStatus::Succeeded);
    }
    assert_eq!(paid.refunded().await, (500, 1));
    assert!(matches!(paid.refund(FIRST_REFUND, Some(400)).await, Err(RefundError::AmountMismatch { .. })));
    let refunds = paid.refunds(paid.world.sandbox.clone());
    let unknown_account = "unknown".parse().unwrap();
    let missing = refunds.refund(&unknown_account, &paid.receipt.id(), SECOND_REFUND, None, None).await;
    assert!(matches!(missing, Err(RefundError::NoReceipt)));
    paid.world.clock.set(billing_time("2026-11-10"));
    assert!(matches!(paid.refund(SECOND_REFUND, None).await, Err(RefundError::NoReceipt)), "the receipt has expired");
}

#[tokio::test]
async fn refund_is_made_once_despite_a_crash_at_any_call() {
    for fault in FAULTS_AT_EACH_CALL {
        let mut calls = 1;
        loop {
            let case = format!("{fault:?} at call {calls}");
            let paid = PaidWorld::new().await;
            let injector = Arc::new(FaultInjector::active_during_runs(Arc::new(fault_at_call(calls, fault))));
            let deployment = paid
                .world
                .system
                .with_connection(Arc::new(EngineConnection::with_injector(injector.clone()).without_retries()));
            let gateway = Arc::new(FaultyService::new(paid.world.sandbox.clone(), injector.clone()));
            let refunds = RefundRequester::new(deployment.table, gateway, paid.world.clock.clone());
            let _ = injector
                .run(refunds.refund(&paid.gold.account, &paid.receipt.id(), FIRST_REFUND, Some(500), None))
                .await;
            if injector.call_count() < calls {
                break;
            }
            let repeated = paid.refund(FIRST_REFUND, Some(500)).await;
            let is_expected = matches!(repeated, Ok(RefundStatus::Succeeded) | Err(RefundError::InProgress));
            assert!(is_expected, "{case}: {repeated:?}");
            paid.world.clock.set(paid.world.clock.now() + TimeDelta::minutes(3));
            assert_eq!(paid.refund(FIRST_REFUND, Some(500)).await.unwrap(), RefundStatus::Succeeded, "{case}");
            assert_eq!(paid.refunded().await, (500, 1), "{case}");
            assert_eq!(
                paid.refund(SECOND_REFUND, None).await.unwrap(),
                RefundStatus::Succeeded,
                "{case}: the remaining amount is refunded"
            );
            assert_eq!((paid.refunded().await, paid.violations().await), ((1_299, 2), Vec::new()), "{case}");
            calls += 1;
        }
        assert!(calls > 4, "only {calls} calls");
    }
}

#[tokio::test]
async fn refund_that_the_gateway_rejects_does_not_change_the_receipt() {
    let paid = PaidWorld::new().await;
    // The payment was already refunded directly at the gateway.
    let refund_at_gateway =
        RefundRequest { refund: SECOND_REFUND, payment: paid.receipt.payment.clone(), amount: paid.receipt.amount };
    paid.world.sandbox.refund(&refund_at_gateway).await;
    assert_eq!(paid.refund(FIRST_REFUND, Some(500)).await.unwrap(), RefundStatus::Failed);
    assert_eq!((paid.refunded().await.0, paid.violations().await), (0, Vec::new()));
}

#[tokio::test]
async fn refund_counts_on_the_day_of_its_request_and_a_closed_month_stays_closed() {
    let paid = PaidWorld::new().await;
    let march = paid.sales("2026-03-10").await;
    assert_eq!(march, Sales { payments: 1, net: 1_299, ..Sales::default() });
    paid.world.clock.set(billing_time("2026-04-05"));
    assert_eq!(paid.refund(FIRST_REFUND, Some(500)).await.unwrap(), RefundStatus::Succeeded);
    assert_eq!(paid.sales("2026-03-10").await, march);
    let april = Sales { payments: 0, refunds: 1, refunded: 500, net: -500 };
    assert_eq!(paid.sales("2026-04-05").await, april);

    // The response to the second refund is lost. Two days later the gateway refuses it, because the money was refunded there.
    paid.world.clock.set(billing_time("2026-04-06"));
    let injector = Arc::new(FaultInjector::active_during_runs(Arc::new(fault_at_call(1, Fault::LostBefore))));
    let lost = paid.refunds(Arc::new(FaultyService::new(paid.world.sandbox.clone(), injector.clone())));
    let (account, receipt) = (&paid.gold.account, paid.receipt.id());
    injector.run(lost.refund(account, &receipt, SECOND_REFUND, None, None)).await.unwrap().unwrap();
    let pending = Sales { payments: 0, refunds: 1, refunded: 799, net: -799 };
    assert_eq!(paid.sales("2026-04-06").await, pending);
    paid.world.clock.set(billing_time("2026-04-08"));
    let at_gateway = RefundRequest {
        refund: Ulid::from_parts(3, 3),
        payment: paid.receipt.payment.clone(),
        amount: Money::new(799, paid.receipt.amount.currency()),
    };
    paid.world.sandbox.refund(&at_gateway).await;
    assert_eq!(paid.refund(SECOND_REFUND, None).await.unwrap(), RefundStatus::Failed);
    assert_eq!(paid.sales("2026-03-10").await, march);
    assert_eq!(paid.sales("2026-04-06").await, pending, "the figures of an earlier day stay the same");
    let failed = Sales { refunded: -799, net: 799, ..Sales::default() };
    assert_eq!(paid.sales("2026-04-08").await, failed, "the refund failed on this day");
}

#[tokio::test]
async fn refund_is_undone_if_the_gateway_rejects_our_key_and_reported_if_it_stays_pending() {
    let paid = PaidWorld::new().await;
    // Each case contains the fault of the refund request, and the amount that the receipt then shows as refunded, in
    // minor units.
    for (fault, pending) in [(Fault::Refused("401"), 0), (Fault::LostBefore, 1_299)] {
        let injector = Arc::new(FaultInjector::active_during_runs(Arc::new(fault_at_call(1, fault))));
        let gateway = Arc::new(FaultyService::new(paid.world.sandbox.clone(), injector.clone()));
        let result = injector
            .run(async {
                paid.refunds(gateway)
                    .refund(&paid.gold.account, &paid.receipt.id(), Ulid::from_parts(4, pending), None, None)
                    .await
            })
            .await
            .unwrap();
        assert_eq!(result.is_err(), pending == 0, "{result:?}");
        assert_eq!(paid.refunded().await, (i64::try_from(pending).unwrap(), 0));
    }
    assert_eq!(paid.violations().await, []);
    paid.world.clock.set(billing_time("2026-03-25"));
    assert_eq!(paid.violations().await, [Invariant::Refunded], "the refund has been pending for two weeks");
}

#[tokio::test]
async fn stripe_refunds_are_made_once_and_listed() {
    let world = World::new().await;
    let server = StripeServer::new(world.clock.clone());
    let stripe = connect(&server, STRIPE_KEY).await;
    let payment = crate::stripe::charge_example(&stripe).await;
    let request = |refund, minor| RefundRequest {
        refund,
        payment: payment.id.clone(),
        amount: billing::Money::new(minor, payment.amount.currency()),
    };
    server.set_next_faults([Some(StripeFault::LostAfter)]);
    let lost = stripe.refund(&request(FIRST_REFUND, 500)).await;
    assert!(matches!(lost, RefundResponse::Unknown(GatewayError::Unknown { .. })), "{lost:?}");
    let made = stripe.refunds_of_payment(&payment.id).await.unwrap();
    assert_eq!((made.len(), made[0].refund, &made[0].state), (1, Some(FIRST_REFUND), &RefundState::Succeeded));
    assert_eq!(
        stripe.refund(&request(FIRST_REFUND, 500)).await,
        RefundResponse::Made(made[0].clone()),
        "the same refund"
    );
    let too_much = stripe.refund(&request(SECOND_REFUND, 800)).await;
    assert!(
        matches!(&too_much, RefundResponse::Rejected { code } if code == "charge_already_refunded" || code == "amount_too_large"),
        "{too_much:?}"
    );
    server.set_next_faults([Some(StripeFault::RateLimited)]);
    let throttled = stripe.refund(&request(SECOND_REFUND, 700)).await;
    assert!(matches!(throttled, RefundResponse::Unknown(GatewayError::Throttled { .. })), "{throttled:?}");
    for n in 0..120 {
        let more = stripe.refund(&request(Ulid::from_parts(9, n), 1)).await;
        assert!(matches!(more, RefundResponse::Made(_)), "{more:?}");
    }
    assert_eq!(stripe.refunds_of_payment(&payment.id).await.unwrap().len(), 121, "all list pages are read");
}
