//! Tests of the comparison of a day with a fault at each external call. If a call fails or the process is killed, the
//! next comparison settles the same payment once, and finds the same difference.

use std::sync::Arc;

use billing::{DayReconciliation, DifferenceKind, FindingReason, PaymentMethod, Subscription};
use chrono::TimeDelta;
use deployment::{Deployment, FaultyService};
use emulator::{EngineConnection, FaultInjector};
use gateways::ChargeRequest;
use reconciling::{CorrectionMode, Reconciler};
use store::Paging;
use testkit::{FAULTS_AT_EACH_CALL, test_fault_at_each_call, without_faults};

use crate::world::{World, billing_time, card, date, numbered_subscription};

/// The day that is compared.
const DAY: &str = "2026-03-10";

/// A world with three subscriptions: the first was paid, the second was declined and nevertheless paid, and the third
/// was paid twice.
struct ComparedWorld {
    world: World,
    subscriptions: Vec<Subscription>,
}

impl ComparedWorld {
    async fn new() -> Self {
        let world = World::with_one_shard().await;
        let mut subscriptions = Vec::new();
        for (n, name) in (0..).zip(["pm_card_visa", "pm_card_visa_chargeDeclined", "pm_card_visa"]) {
            let subscription =
                Subscription { payment_method: card(name), ..numbered_subscription(n, 10, "2026-03-01") };
            world.store(&subscription).await;
            subscriptions.push(subscription);
        }
        world.run_payments(DAY).await;
        let compared = Self { world, subscriptions };
        compared.charge_at_gateway(1, 1).await;
        compared.charge_at_gateway(2, 7).await;
        compared.world.clock.set(billing_time("2026-03-11"));
        compared
    }

    /// Returns a copy of this world and of the gateway's payments.
    async fn copy(&self) -> Self {
        Self { world: self.world.copy().await, subscriptions: self.subscriptions.clone() }
    }

    /// Makes a payment of the subscription `n` at the gateway, without changing the table.
    async fn charge_at_gateway(&self, n: usize, attempt_no: u32) {
        let subscription = &self.subscriptions[n];
        let request = ChargeRequest {
            idempotency_key: format!("{n} {attempt_no}"),
            table: Some(self.world.table.get_settings().await.unwrap().unwrap().table_id),
            account: subscription.account.clone(),
            subscription: subscription.id,
            sku: subscription.sku.clone(),
            due_on: date(DAY),
            attempt_no,
            amount: subscription.price,
            payment_method: PaymentMethod {
                payment_method: "pm_card_visa".parse().unwrap(),
                ..subscription.payment_method.clone()
            },
        };
        self.world.sandbox.charge_at(&request, billing_time(DAY) + TimeDelta::hours(3)).unwrap();
    }

    /// Returns a reconciler. `injector` decides on the faults of its requests.
    async fn reconciler(&self, injector: &Arc<FaultInjector>) -> Reconciler {
        let connection = Arc::new(EngineConnection::with_injector(injector.clone()).without_retries());
        let Deployment { table, .. } = self.world.system.with_connection(connection);
        let table_id = self.world.table.get_settings().await.unwrap().unwrap().table_id;
        Reconciler::new(
            table,
            table_id,
            Arc::new(FaultyService::new(self.world.gateway.clone(), injector.clone())),
            CorrectionMode::SettleOrStoreFinding,
            self.world.clock.clone(),
            date("2026-03-11"),
        )
    }

    /// Compares the day. `injector` decides on the faults of the requests. Returns `None` if the comparison failed or
    /// was killed.
    async fn reconcile(&self, injector: &Arc<FaultInjector>) -> Option<DayReconciliation> {
        let mut reconciler = self.reconciler(injector).await;
        injector.run(reconciler.reconcile(date(DAY), None)).await.and_then(Result::ok)
    }

    /// Asserts that each subscription has one receipt, and that the only finding and the only difference of `day` is
    /// the second payment of the subscription that was paid twice.
    async fn assert_compared(&self, day: &DayReconciliation, fault: &str) {
        let kinds: Vec<DifferenceKind> = day.first_differences.iter().map(|difference| difference.kind).collect();
        assert_eq!(
            (kinds.as_slice(), day.ended_at.is_some()),
            ([DifferenceKind::PaidTwice].as_slice(), true),
            "{fault}"
        );
        let findings = self.world.table.get_open_findings().await.unwrap();
        let reasons: Vec<FindingReason> = findings.iter().map(|finding| finding.reason).collect();
        assert_eq!(reasons, [FindingReason::PaidTwice], "{fault}");
        for subscription in &self.subscriptions {
            let now = billing_time("2026-03-11");
            let receipts = self.world.table.get_receipts_by_account(&subscription.account, &Paging::all(), now).await;
            assert_eq!(receipts.unwrap().items.len(), 1, "{fault}: {}", subscription.account);
            let stored = self.world.table.get_subscription(&subscription.account, subscription.id).await;
            assert_eq!(stored.unwrap().unwrap().due_on, date("2026-04-10"), "{fault}: {}", subscription.account);
        }
    }
}

#[tokio::test]
async fn fault_at_any_call_of_a_comparison_changes_nothing_in_its_result() {
    let prepared = ComparedWorld::new().await;
    test_fault_at_each_call(&FAULTS_AT_EACH_CALL, 20, async |injector, name| {
        let compared = prepared.copy().await;
        let day = match compared.reconcile(injector).await {
            Some(day) if day.ended_at.is_some() => day,
            _ => compared.reconcile(&without_faults()).await.expect(name),
        };
        compared.assert_compared(&day, name).await;
        let again = compared.reconcile(&without_faults()).await.expect(name);
        compared.assert_compared(&again, &format!("{name}, compared again")).await;
    })
    .await;
}

#[tokio::test]
async fn stored_comparison_that_the_caller_has_read_is_not_read_again() {
    let mut calls = Vec::new();
    for is_read_by_caller in [false, true] {
        let (compared, injector) = (ComparedWorld::new().await, without_faults());
        let first = compared.reconcile(&without_faults()).await.unwrap();
        let mut reconciler = compared.reconciler(&injector).await;
        let again = match is_read_by_caller {
            true => injector.run(reconciler.reconcile_after(Some(first), date(DAY), None)).await,
            false => injector.run(reconciler.reconcile(date(DAY), None)).await,
        };
        compared.assert_compared(&again.unwrap().unwrap(), "compared again").await;
        calls.push(injector.call_count());
    }
    assert_eq!(calls[0], calls[1] + 1, "the request for the stored comparison");
}
