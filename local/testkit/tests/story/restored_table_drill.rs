//! Tests of a restored table with a fault at each external call. The backup contains open, due and paid subscriptions,
//! and the gateway has made payments since the backup. A call of the comparison, of the confirmation or of the first
//! run fails, or the process is killed. In all cases, the documented steps end with one charge and one receipt for each
//! month.

use std::collections::BTreeMap;
use std::sync::Arc;

use billing::{
    AcceptedDifference, ActionKind, Actor, Attempt, DayReconciliation, DifferenceKind, NewAction, PaymentStatus,
    Subscription,
};
use chrono::{NaiveDate, TimeDelta};
use clock::Clock as _;
use deployment::{Deployment, FaultyService};
use emulator::{Engine, EngineConnection, Fault, FaultInjector};
use reconciling::{CorrectionMode, DaysToCompare, Reconciler};
use sandbox::LedgerEntry;
use store::Paging;
use sweep::BatchRequest;
use testkit::{test_fault_at_each_call, without_faults};

use crate::world::{World, billing_time, card, date, nonzero_counts, numbered_subscription};

/// The first day that may have payments which the backup lacks: the day of the latest run in the backup.
const FIRST_DAY: &str = "2026-03-09";
/// The last day that may have payments which the backup lacks: the day on which a run noticed that the table is a copy.
const NOTICED: &str = "2026-03-12";
/// The day on which the table is compared, confirmed and charged.
const NOW: &str = "2026-03-13";

/// The payment day of each subscription, by its number:
/// - 0 has an open attempt in the backup. The attempt was charged.
/// - 1 was paid before the backup, 2 and 4 were paid after the backup.
/// - 3 was declined after the backup.
/// - 5 is due on the day on which the copy is noticed.
/// - 6 was debited after the backup, and the bank is still processing the debit.
/// - 7 was created and paid after the backup.
const PAYMENT_DAYS: [i64; 8] = [9, 9, 10, 10, 11, 12, 11, 11];
/// The number of the subscription that was declined.
const DECLINED: usize = 3;
/// The number of the subscription that was debited.
const DEBITED: usize = 6;
/// The number of the subscription that was created after the backup.
const CREATED_AFTER_BACKUP: usize = 7;

/// A world with its original table, and a new table with the items of a backup.
struct RestoredWorld {
    world: World,
    restored: Deployment,
    engine: Engine,
    subscriptions: Vec<Subscription>,
}

impl RestoredWorld {
    /// Creates the world on the day [`NOW`], after a run has noticed that the restored table is a copy.
    async fn new() -> Self {
        let world = World::with_one_shard().await;
        let subscriptions: Vec<Subscription> = (0..)
            .zip(PAYMENT_DAYS)
            .map(|(n, day)| {
                let method = match n as usize {
                    DECLINED => "pm_card_visa_chargeDeclined",
                    DEBITED => "pm_usBankAccount_success",
                    _ => "pm_card_visa",
                };
                Subscription { payment_method: card(method), ..numbered_subscription(n, day, "2026-03-01") }
            })
            .collect();
        for subscription in &subscriptions[..CREATED_AFTER_BACKUP] {
            world.store(subscription).await;
        }
        world.inject_charge_fault(Fault::LostAfter);
        let report = world.run_payments(FIRST_DAY).await;
        assert_eq!(nonzero_counts(&report), [("in_doubt", 1), ("paid", 1)]);
        let engine = Engine::in_memory();
        let restored = world.system.deployment.with_client(engine.client());
        restored.table.create_if_absent().await.unwrap();
        restored.table.copy_missing_items(&world.table).await.unwrap();

        world.store(&subscriptions[CREATED_AFTER_BACKUP]).await;
        world.run_payments("2026-03-10").await;
        // The debit of this run succeeds two days later, after the restored table was charged again.
        world.run_payments_at("2026-03-11", billing_time("2026-03-11") + TimeDelta::hours(12)).await;
        world.clock.set(billing_time(NOTICED));
        let batch = restored.batch_of_task(restored.payment_task()).await.unwrap();
        let deadline = billing_time(NOTICED) + TimeDelta::hours(1);
        batch.run(&BatchRequest::for_date(date(NOTICED)), deadline).await.unwrap_err();
        world.clock.set(billing_time(NOW));
        Self { world, restored, engine, subscriptions }
    }

    /// Returns a copy of this world, of its tables and of the gateway's payments.
    async fn copy(&self) -> Self {
        let (world, engine) = (self.world.copy().await, self.engine.copy());
        let restored = world.system.deployment.with_client(engine.client());
        Self { world, restored, engine, subscriptions: self.subscriptions.clone() }
    }

    /// Compares each day. `injector` decides on the faults of the requests. Returns `None` if a comparison failed or
    /// was killed.
    async fn reconcile(&self, injector: &Arc<FaultInjector>) -> Option<Vec<DayReconciliation>> {
        let connection = Arc::new(EngineConnection::with_injector(injector.clone()).without_retries());
        let table = self.restored.with_client(self.engine.client_with_connection(connection)).table;
        let settings = self.restored.table.get_settings().await.unwrap().unwrap();
        let mut reconciler = Reconciler::new(
            table,
            settings.table_id,
            Arc::new(FaultyService::new(self.world.sandbox.clone(), injector.clone())),
            CorrectionMode::of_table(&settings),
            self.world.clock.clone(),
            date(NOW),
        );
        let compare_all = async {
            let mut days = Vec::new();
            for on in date(FIRST_DAY).iter_days().take_while(|on| *on <= date(NOTICED)) {
                days.push(reconciler.reconcile(on, None).await?);
            }
            Ok::<_, reconciling::ReconcileError>(days)
        };
        injector.run(compare_all).await.and_then(Result::ok)
    }

    /// Accepts the only difference: the payment of the customer who signed up after the backup.
    async fn accept_payment_of_missing_subscription(&self, days: &[DayReconciliation], name: &str) {
        let found: Vec<_> =
            days.iter().flat_map(|day| day.first_differences.iter().map(|found| (day.on, found))).collect();
        let [(on, difference)] = found.as_slice() else { panic!("{name}: {found:#?}") };
        assert_eq!((*on, difference.kind), (date("2026-03-11"), DifferenceKind::PaymentWithoutReceipt), "{name}");
        assert!(difference.what.contains("its subscription does not exist"), "{name}: {difference:?}");
        let (reason, at) = ("the customer is entered again by hand".parse().unwrap(), self.world.clock.now());
        let accepted = AcceptedDifference { on: *on, kind: difference.kind, id: difference.id.clone(), reason, at };
        let action = NewAction { at, actor: Actor::Anonymous, kind: ActionKind::AcceptDifference, reason: None };
        self.restored.table.accept_difference(&accepted, &action).await.unwrap();
    }

    /// Compares each day without faults, and accepts the payment whose subscription is missing.
    async fn reconcile_without_faults(&self, name: &str) {
        let days = Box::pin(self.reconcile(&without_faults())).await.expect(name);
        self.accept_payment_of_missing_subscription(&days, name).await;
        let again = Box::pin(self.reconcile(&without_faults())).await.expect(name);
        assert!(again.iter().all(DayReconciliation::is_clean), "{name}: {again:#?}");
    }

    /// Confirms the table as `dueday confirm-table` does, switches charging on, and runs the payment batch of the day.
    /// `injector` decides on the faults of the requests. Returns the counts of the run; `None` if a step failed or was
    /// killed.
    async fn confirm_and_run(&self, injector: &Arc<FaultInjector>) -> Option<Vec<(&'static str, u64)>> {
        let connection = Arc::new(EngineConnection::with_injector(injector.clone()).without_retries());
        let gateway = Arc::new(FaultyService::new(self.world.sandbox.clone(), injector.clone()));
        let deployment =
            Deployment { gateway, ..self.restored.with_client(self.engine.client_with_connection(connection)) };
        let confirm_and_run = async {
            let table = &deployment.table;
            let (settings, id) = (table.get_settings().await.ok()??, table.dynamodb_id().await.ok()??);
            let before = settings.dynamodb_id.clone().unwrap();
            if before != id {
                let days = DaysToCompare::of_table(&settings, settings.copy_noticed_at.unwrap());
                assert_eq!((days.first, days.last), (date(FIRST_DAY), date(NOTICED)));
                assert_eq!(days.find_problem(table, false).await.ok()?, None);
                let (at, actor) = (self.world.clock.now(), Actor::Operator(None));
                let action = NewAction { at, actor, kind: ActionKind::ConfirmTable, reason: None };
                assert!(table.confirm_copy(&before, &id, Some(&action)).await.ok()?);
            }
            table.set_charging(true, None).await.ok()?;
            let batch = deployment.payment_batch().await.ok()?;
            let deadline = self.world.clock.now() + TimeDelta::hours(1);
            batch.run(&BatchRequest::for_date(date(NOW)), deadline).await.ok()
        };
        let report = injector.run(confirm_and_run).await.flatten()?;
        Some(nonzero_counts(&report))
    }

    /// Asserts that the only open finding is the debit, which the bank is still processing.
    async fn assert_only_debit_is_blocked(&self, name: &str) {
        let findings = self.restored.table.get_open_findings().await.unwrap();
        let [finding] = findings.as_slice() else { panic!("{name}: {findings:?}") };
        assert_eq!(finding.account, self.subscriptions[DEBITED].account, "{name}: the debit is not made again");
    }

    /// Asserts that the gateway made one debit, and one successful charge for each other month except the declined
    /// month. Also asserts that the restored table has one receipt for each of these charges, except for the
    /// subscription that was created after the backup.
    async fn assert_charged_once(&self, name: &str) {
        let is_debit = |entry: &LedgerEntry| matches!(entry, LedgerEntry::Payment(payment) if payment.request.subscription == self.subscriptions[DEBITED].id);
        let debits = self.world.sandbox.entries().iter().filter(|entry| is_debit(entry)).count();
        assert_eq!(debits, 1, "{name}");
        let mut charged: BTreeMap<(String, NaiveDate), u32> = BTreeMap::new();
        for entry in self.world.sandbox.entries() {
            if let LedgerEntry::Payment(payment) = entry
                && payment.status == PaymentStatus::Succeeded
            {
                *charged.entry((payment.request.subscription.to_string(), payment.request.due_on)).or_default() += 1;
            }
        }
        assert!(charged.values().all(|count| *count == 1), "{name}: {charged:?}");
        assert_eq!(charged.len(), PAYMENT_DAYS.len() - 2, "{name}: {charged:?}");
        for (n, subscription) in self.subscriptions.iter().enumerate() {
            let (table, now) = (&self.restored.table, self.world.clock.now());
            let receipts = table.get_receipts_by_account(&subscription.account, &Paging::all(), now).await.unwrap();
            let expected = usize::from(![DECLINED, DEBITED, CREATED_AFTER_BACKUP].contains(&n));
            assert_eq!(receipts.items.len(), expected, "{name}: subscription {n}");
        }
    }
}

/// The counts of the first payment run after the confirmation of the restored table.
const FIRST_RUN_COUNTS: [(&str, u64); 3] = [("declined", 1), ("failed", 1), ("paid", 1)];

#[tokio::test]
async fn kill_at_any_call_of_the_comparison_of_a_restored_table_charges_nothing_twice() {
    let prepared = Box::pin(RestoredWorld::new()).await;
    test_fault_at_each_call(&[Fault::CrashAfter], 40, async |injector, name| {
        let drill = Box::pin(prepared.copy()).await;
        if Box::pin(drill.reconcile(injector)).await.is_none() {
            // The killed process may have leased the open attempt.
            drill.world.clock.set(billing_time(NOW) + Attempt::LEASE);
        }
        Box::pin(drill.reconcile_without_faults(name)).await;
        assert_eq!(Box::pin(drill.confirm_and_run(&without_faults())).await.expect(name), FIRST_RUN_COUNTS, "{name}");
        drill.assert_only_debit_is_blocked(name).await;
        drill.assert_charged_once(name).await;
    })
    .await;
}

#[tokio::test]
async fn kill_at_any_call_of_the_confirmation_and_of_the_first_run_charges_nothing_twice() {
    let prepared = Box::pin(RestoredWorld::new()).await;
    test_fault_at_each_call(&[Fault::CrashAfter], 25, async |injector, name| {
        let drill = Box::pin(prepared.copy()).await;
        Box::pin(drill.reconcile_without_faults(name)).await;
        Box::pin(drill.confirm_and_run(injector)).await;
        // A killed process may have leased the shards of the run and an attempt.
        drill.world.clock.set(billing_time(NOW) + TimeDelta::hours(1));
        Box::pin(drill.confirm_and_run(&without_faults())).await.expect(name);
        drill.assert_only_debit_is_blocked(name).await;
        drill.assert_charged_once(name).await;
    })
    .await;
}
