//! Tests of a restored table: a table is restored from a backup, and the gateway has made payments since the backup. No
//! run charges payments of the restored table until two conditions are met: each day since the backup was compared with
//! the gateway, and a person has confirmed the table.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse as _;
use axum::routing::any;
use axum::{Json, Router};
use billing::{
    AcceptedDifference, Account, ActionKind, Actor, DayReconciliation, DifferenceKind, GatewayList, LoggedAction,
    Money, NewAction, PaymentMethod, Receipt, Subscription,
};
use charging::OlderTableCheck;
use chrono::TimeDelta;
use deployment::Deployment;
use emulator::{Engine, ExternalOperation, Fault, ServerLimits, serve_http};
use gateways::{HttpGateway, LISTS_PATH, RefundRequest, Refunds as _};
use reconciling::{ConfirmationProblem, CorrectionMode, DaysToCompare, ReconcileError, Reconciler};
use sandbox::{LedgerEntry, Sandbox};
use serde_json::json;
use store::Paging;
use sweep::BatchRequest;
use testkit::sample_account;
use ulid::Ulid;

use crate::world::{World, billing_time, card, date, new_subscription, nonzero_counts, numbered_subscription};

/// Returns a deployment with a new table that contains a copy of all items in the table of `world`.
async fn restore_backup(world: &World) -> Deployment {
    let restored = world.system.deployment.with_client(Engine::in_memory().client());
    restored.table.create_if_absent().await.unwrap();
    restored.table.copy_missing_items(&world.table).await.unwrap();
    restored
}

/// The result of the comparison of a day.
#[derive(PartialEq, Eq, Debug)]
struct ComparisonCounts {
    /// The number of settled payments.
    settled: u64,
    differences: u64,
}

/// Compares March 10 in the restored table with the gateway.
async fn reconcile(world: &World, restored: &Deployment) -> ComparisonCounts {
    let settings = restored.table.get_settings().await.unwrap().unwrap();
    let mut reconciler = Reconciler::new(
        restored.table.clone(),
        settings.table_id,
        world.sandbox.clone(),
        CorrectionMode::of_table(&settings),
        world.clock.clone(),
        date("2026-03-11"),
    );
    let day = reconciler.reconcile(date("2026-03-10"), None).await.unwrap();
    ComparisonCounts { settled: day.counts.settled, differences: day.differences.values().sum() }
}

/// Returns the receipts of the account of `subscription` in the table of `deployment`.
async fn receipts(deployment: &Deployment, subscription: &Subscription) -> Vec<Receipt> {
    let now = deployment.clock.now();
    deployment.table.get_receipts_by_account(&subscription.account, &Paging::all(), now).await.unwrap().items
}

#[tokio::test]
async fn restored_table_charges_nothing_twice_and_misses_nothing() {
    let (world, paid, due) =
        (World::new().await, new_subscription(10, "2026-03-01"), new_subscription(11, "2026-03-01"));
    world.store(&paid).await;
    world.store(&due).await;
    // The first run stores the id of the table. Nothing is due yet.
    world.run_payments("2026-03-09").await;
    let restored = restore_backup(&world).await;
    // A payment is made after the backup.
    assert_eq!(nonzero_counts(&world.run_payments("2026-03-10").await), [("paid", 1)]);
    let receipt = receipts(&world.system.deployment, &paid).await;
    assert_eq!(world.charged_due_dates().len(), 1);

    world.clock.set(billing_time("2026-03-11"));
    let batch = restored.batch_of_task(restored.payment_task()).await.unwrap();
    let request = BatchRequest::for_date(date("2026-03-11"));
    let refused = batch.run(&request, billing_time("2026-03-12")).await.unwrap_err().to_string();
    assert!(
        refused.starts_with("the run was not started: this table was restored from a backup or copied"),
        "{refused}"
    );
    let reminders = restored.reminder_batch().await.unwrap();
    let not_sent = reminders.run(&request, billing_time("2026-03-12")).await.unwrap_err().to_string();
    assert_eq!(not_sent, refused, "reminders that were sent after the backup are not sent again");
    let settings = restored.table.get_settings().await.unwrap().unwrap();
    assert!(!settings.charging, "sign-ups are not charged either");
    assert_eq!(settings.latest_run_at, Some(billing_time("2026-03-09")), "the latest run in the backup stays known");
    assert_eq!(settings.copy_noticed_at, Some(billing_time("2026-03-11")));

    // Charging is switched on again by mistake, without a confirmation.
    restored.table.set_charging(true, None).await.unwrap();
    assert_eq!(batch.run(&request, billing_time("2026-03-12")).await.unwrap_err().to_string(), refused);
    assert_eq!(world.charged_due_dates().len(), 1);

    // Before the first run, a sign-up notices the restored table, too.
    let other = restore_backup(&world).await;
    let signed_up = numbered_subscription(7, 11, "2026-03-01");
    other.table.put_account(&Account { id: signed_up.account.clone(), ..sample_account() }).await.unwrap();
    other.table.create_subscription(&signed_up, None).await.unwrap();
    assert!(other.table.get_settings().await.unwrap().unwrap().charging);
    let sign_up = other.sign_up_charges().charge_now(&signed_up, date("2026-03-11")).await.unwrap().unwrap();
    assert_eq!(sign_up.subscription.attempt_seq, 0, "no attempt was started");
    assert_eq!(world.charged_due_dates().len(), 1);
    let settings_of_other = other.table.get_settings().await.unwrap().unwrap();
    assert!(!settings_of_other.charging && settings_of_other.copy_noticed_at.is_some());

    // The comparison with the gateway writes the receipt that the backup does not contain.
    assert_eq!(reconcile(&world, &restored).await, ComparisonCounts { settled: 1, differences: 0 });
    let written = receipts(&restored, &paid).await;
    assert_eq!((written.len(), &written[0].payment, written[0].due_on), (1, &receipt[0].payment, receipt[0].due_on));

    let (before, id) = (settings.dynamodb_id.unwrap(), restored.table.dynamodb_id().await.unwrap().unwrap());
    assert!(restored.table.confirm_copy(&before, &id, None).await.unwrap());
    assert!(!restored.table.confirm_copy(&before, &id, None).await.unwrap(), "it is confirmed already");
    assert_eq!(restored.table.get_settings().await.unwrap().unwrap().copy_noticed_at, None);
    restored.table.set_charging(true, None).await.unwrap();
    let report = batch.run(&request, billing_time("2026-03-11") + TimeDelta::hours(1)).await.unwrap();
    assert_eq!(nonzero_counts(&report), [("paid", 1)], "the payment of March 11 is not missed");
    assert_eq!(world.charged_due_dates().len(), 2);
    // The original table is not affected.
    assert!(world.table.get_settings().await.unwrap().unwrap().charging);
}

/// The gateway has a payment of a subscription that the backup does not contain. The payment was made before the
/// confirmation, so it does not prove that the confirmed table is older than the gateway.
#[tokio::test]
async fn confirmed_table_is_not_refused_because_of_a_subscription_that_the_backup_does_not_contain() {
    let world = World::new().await;
    world.store(&new_subscription(10, "2026-03-01")).await;
    world.run_payments("2026-03-09").await;
    let restored = restore_backup(&world).await;
    world.store(&numbered_subscription(1, 10, "2026-03-01")).await;
    assert_eq!(nonzero_counts(&world.run_payments("2026-03-10").await), [("paid", 2)]);

    world.clock.set(billing_time("2026-03-11"));
    let check = Some(Arc::new(OlderTableCheck::new(world.sandbox.clone())));
    let batch = restored.batch_of_task(restored.payment_task().with_older_table_check(check)).await.unwrap();
    let request = BatchRequest::for_date(date("2026-03-11"));
    batch.run(&request, billing_time("2026-03-12")).await.unwrap_err();
    let expected = ComparisonCounts { settled: 1, differences: 1 };
    assert_eq!(reconcile(&world, &restored).await, expected, "the other subscription does not exist");
    let before = restored.table.get_settings().await.unwrap().unwrap().dynamodb_id.unwrap();
    let id = restored.table.dynamodb_id().await.unwrap().unwrap();
    assert!(restored.table.confirm_copy(&before, &id, None).await.unwrap());
    restored.table.set_charging(true, None).await.unwrap();
    let report = batch.run(&request, billing_time("2026-03-12")).await.unwrap();
    assert_eq!(nonzero_counts(&report), []);
    assert!(restored.table.get_settings().await.unwrap().unwrap().charging);
}

/// A backup of a copy that was not confirmed contains the mark and the comparisons of that copy.
#[tokio::test]
async fn backup_of_an_unconfirmed_copy_is_noticed_and_must_be_compared_itself() {
    let world = World::new().await;
    world.store(&new_subscription(10, "2026-03-01")).await;
    world.run_payments("2026-03-09").await;
    let restored = restore_backup(&world).await;
    world.run_payments("2026-03-10").await;
    let notice = async |copy: &Deployment, on: &str| {
        world.clock.set(billing_time(on));
        let batch = copy.batch_of_task(copy.payment_task()).await.unwrap();
        for _ in 0..2 {
            batch.run(&BatchRequest::for_date(date(on)), billing_time(on) + TimeDelta::hours(1)).await.unwrap_err();
        }
        copy.table.get_settings().await.unwrap().unwrap().copy_noticed_at.unwrap()
    };
    assert_eq!(notice(&restored, "2026-03-11").await, billing_time("2026-03-11"));
    world.clock.set(billing_time("2026-03-12"));
    assert_eq!(reconcile(&world, &restored).await, ComparisonCounts { settled: 1, differences: 0 });
    let backup = restored.with_client(Engine::in_memory().client());
    backup.table.create_if_absent().await.unwrap();
    backup.table.copy_missing_items(&restored.table).await.unwrap();

    assert_eq!(notice(&backup, "2026-03-20").await, billing_time("2026-03-20"));
    let settings = backup.table.get_settings().await.unwrap().unwrap();
    let days = DaysToCompare::of_table(&settings, settings.copy_noticed_at.unwrap());
    assert_eq!((days.first, days.last), (date("2026-03-09"), date("2026-03-20")));
    assert!(days.find_problem(&backup.table, false).await.unwrap().is_some());
}

/// In this test, three payments were made after the backup. One was refunded in part since then, and one completely.
#[tokio::test]
async fn comparison_of_a_restored_table_writes_receipts_with_the_refunds_of_their_payments() {
    let world = World::new().await;
    let all: Vec<Subscription> = (0..3).map(|n| numbered_subscription(n, 10, "2026-03-01")).collect();
    for subscription in &all {
        world.store(subscription).await;
    }
    world.run_payments("2026-03-09").await;
    let restored = restore_backup(&world).await;
    assert_eq!(nonzero_counts(&world.run_payments("2026-03-10").await), [("paid", 3)]);
    for (subscription, refunded) in all.iter().zip([0, 1, subscription_price()]) {
        let payment = receipts(&world.system.deployment, subscription).await.remove(0).payment;
        if refunded > 0 {
            let amount = Money::new(refunded, subscription.price.currency());
            world
                .sandbox
                .refund(&RefundRequest { refund: Ulid::from_parts(1, refunded.unsigned_abs().into()), payment, amount })
                .await;
        }
    }
    world.clock.set(billing_time("2026-03-11"));
    restored.table.record_copy(billing_time("2026-03-11")).await.unwrap();
    assert_eq!(reconcile(&world, &restored).await, ComparisonCounts { settled: 3, differences: 0 });
    for (subscription, refunded) in all.iter().zip([0, 1, subscription_price()]) {
        let receipt = receipts(&restored, subscription).await.remove(0);
        assert_eq!(receipt.refunded.minor(), refunded);
        let refunds = restored.table.get_refunds_by_receipt(&receipt.account, &receipt.id()).await.unwrap();
        assert_eq!(refunds.iter().map(|refund| refund.amount.minor()).sum::<i64>(), refunded);
        let stored = restored.table.get_subscription(&receipt.account, receipt.subscription).await.unwrap().unwrap();
        assert_eq!((stored.attempt_seq, stored.open_findings), (1, 0));
    }
    assert_eq!(restored.table.get_open_findings().await.unwrap(), []);
}

/// Returns the price of the subscriptions of these tests, in minor units.
fn subscription_price() -> i64 {
    new_subscription(10, "2026-03-01").price.minor()
}

/// Serves `sandbox` over HTTP, as a merchant's own gateway that does not list the payments of a time range, and does
/// not know the customer `removed`.
async fn serve_without_lists(sandbox: Arc<Sandbox>, removed: &'static str) -> HttpGateway {
    let router = Router::new()
        .route(&format!("{LISTS_PATH}/{{*list}}"), any(|| async { StatusCode::NOT_FOUND }))
        .fallback_service(sandbox::gateway_router(sandbox))
        .layer(from_fn(move |request: Request, next: Next| async move {
            let is_removed = request.method() == Method::GET && request.uri().to_string().contains(removed);
            if is_removed { StatusCode::NOT_FOUND.into_response() } else { next.run(request).await }
        }));
    serve_gateway(router).await
}

/// Serves `router` as a merchant's own gateway.
async fn serve_gateway(router: Router) -> HttpGateway {
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(serve_http(listener, router, ServerLimits::default()));
    HttpGateway::new(&url, Duration::from_secs(5))
}

/// Returns the number of payments of `subscription` that the gateway has made.
fn payments_at_gateway(world: &World, subscription: &Subscription) -> usize {
    let is_of = |entry: &LedgerEntry| matches!(entry, LedgerEntry::Payment(payment) if payment.request.subscription == subscription.id);
    world.sandbox.entries().iter().filter(|entry| is_of(entry)).count()
}

/// Returns a reconciler, which compares the table of `restored` with `gateway` on March 12.
async fn reconciler(restored: &Deployment, gateway: Arc<dyn gateways::Refunds>) -> Reconciler {
    let settings = restored.table.get_settings().await.unwrap().unwrap();
    Reconciler::new(
        restored.table.clone(),
        settings.table_id,
        gateway,
        CorrectionMode::of_table(&settings),
        restored.clock.clone(),
        date("2026-03-12"),
    )
}

/// Compares each day from March 9 to 11 in the table of `restored` with `gateway`.
async fn reconcile_days(restored: &Deployment, gateway: Arc<dyn gateways::Refunds>) -> Vec<DayReconciliation> {
    let mut reconciler = reconciler(restored, gateway).await;
    let mut days = Vec::new();
    for on in date("2026-03-09").iter_days().take(3) {
        days.push(reconciler.reconcile(on, None).await.unwrap());
    }
    days
}

/// The test has six subscriptions, each with its own customer at the gateway. The backup contains one receipt and two
/// open attempts of the subscriptions 0, 1 and 2. One of these attempts is charged only after the backup. Subscription
/// 3 was paid after the backup. Subscription 4 was debited after the backup, and the bank is still processing the
/// debit. Subscription 5 is due on the day on which a run notices that the table is a copy.
#[tokio::test]
async fn restored_table_at_a_gateway_without_lists_is_confirmed_with_a_reason_and_charges_nothing_twice() {
    let world = World::new().await;
    let mut all = Vec::new();
    for (n, day) in (0..).zip([9, 9, 9, 10, 10, 11]) {
        let method = if n == 4 { "pm_usBankAccount_success" } else { "pm_card_visa" };
        let payment_method = PaymentMethod { customer: format!("cus_{n}").parse().unwrap(), ..card(method) };
        let subscription = Subscription { payment_method, ..numbered_subscription(n, day, "2026-03-01") };
        world.store(&subscription).await;
        all.push(subscription);
    }
    world.script.add(ExternalOperation::Charge, [Some(Fault::LostAfter), Some(Fault::LostBefore)]);
    assert_eq!(nonzero_counts(&world.run_payments("2026-03-09").await), [("in_doubt", 2), ("paid", 1)]);
    let restored = restore_backup(&world).await;
    world.run_payments_at("2026-03-10", billing_time("2026-03-10") + TimeDelta::hours(12)).await;
    let charged: Vec<usize> = all.iter().map(|subscription| payments_at_gateway(&world, subscription)).collect();
    assert_eq!(charged, [1, 1, 1, 1, 1, 0]);

    let gateway = Arc::new(serve_without_lists(world.sandbox.clone(), "cus_none").await);
    let restored = Deployment { gateway: gateway.clone(), ..restored };
    let batch = restored.payment_batch().await.unwrap();
    world.clock.set(billing_time("2026-03-11"));
    let deadline = billing_time("2026-03-12") + TimeDelta::hours(2);
    batch.run(&BatchRequest::for_date(date("2026-03-11")), deadline).await.unwrap_err();
    world.clock.set(billing_time("2026-03-12"));
    let settings = restored.table.get_settings().await.unwrap().unwrap();
    let days = DaysToCompare::of_table(&settings, settings.copy_noticed_at.unwrap());
    let (first, last) = (date("2026-03-09"), date("2026-03-11"));
    let not_compared = Some(ConfirmationProblem::NotCompared(first));
    assert_eq!(
        days.find_problem(&restored.table, true).await.unwrap(),
        not_compared,
        "a reason replaces no comparison"
    );

    let compared = reconcile_days(&restored, gateway).await;
    for day in &compared {
        assert!(day.not_compared.contains(&GatewayList::Payments) && day.customers_compared, "{day:#?}");
        assert_eq!((day.ended_at.is_some(), day.difference_count()), (true, 0), "{day:#?}");
    }
    let settled: u64 = compared.iter().map(|day| day.counts.settled).sum();
    assert_eq!(settled, 3, "the successful payments without a receipt in the backup");
    let processing: Vec<u64> = compared.iter().map(|day| day.counts.processing).collect();
    assert_eq!(processing, [0, 1, 0]);
    let findings = restored.table.get_open_findings().await.unwrap();
    assert!(matches!(findings.as_slice(), [debit] if debit.account == all[4].account), "{findings:?}");

    let only_customers = Some(ConfirmationProblem::OnlyCustomersCompared(first));
    assert_eq!(days.find_problem(&restored.table, false).await.unwrap(), only_customers);
    assert_eq!(days.find_problem(&restored.table, true).await.unwrap(), None);
    let action = NewAction {
        at: billing_time("2026-03-12"),
        actor: Actor::Operator(None),
        kind: ActionKind::ConfirmTable,
        reason: Some("no customer is new".parse().unwrap()),
    };
    let (before, id) = (settings.dynamodb_id.unwrap(), restored.table.dynamodb_id().await.unwrap().unwrap());
    assert!(restored.table.confirm_copy(&before, &id, Some(&action)).await.unwrap());
    let logged = restored.table.get_actions_without_account(&Paging::all(), action.at).await.unwrap().items;
    let reasons: Vec<_> = logged.iter().filter(|entry| entry.kind == ActionKind::ConfirmTable).collect();
    assert!(matches!(reasons.as_slice(), [LoggedAction { reason: Some(_), .. }]), "{logged:?}");

    restored.table.set_charging(true, None).await.unwrap();
    let report = batch.run(&BatchRequest::for_date(date("2026-03-12")), deadline).await.unwrap();
    assert_eq!(nonzero_counts(&report), [("failed", 1), ("paid", 1)], "the debit is not made again");
    for (n, subscription) in all.iter().enumerate() {
        assert_eq!(payments_at_gateway(&world, subscription), 1, "subscription {n}");
        assert_eq!(receipts(&restored, subscription).await.len(), usize::from(n != 4), "subscription {n}");
    }

    // If the gateway lists the payments of each day, a person cannot decide that a comparison of the customers is
    // sufficient.
    let with_lists = restore_backup(&world).await;
    with_lists.table.record_copy(billing_time("2026-03-11")).await.unwrap();
    reconcile_days(&with_lists, world.sandbox.clone()).await;
    let all_listed = Some(ConfirmationProblem::AllListed { first, last });
    assert_eq!(days.find_problem(&with_lists.table, true).await.unwrap(), all_listed);
    assert_eq!(days.find_problem(&with_lists.table, false).await.unwrap(), None);
}

/// In this test, the gateway has removed a customer whom the backup contains, as a merchant does who erases the data of
/// a customer.
#[tokio::test]
async fn customer_whom_the_gateway_has_removed_does_not_stop_the_comparison_and_is_accepted_by_a_person() {
    let world = World::new().await;
    for n in 0..3 {
        let payment_method = PaymentMethod { customer: format!("cus_{n}").parse().unwrap(), ..card("pm_card_visa") };
        world.store(&Subscription { payment_method, ..numbered_subscription(n, 9, "2026-03-01") }).await;
    }
    assert_eq!(nonzero_counts(&world.run_payments("2026-03-09").await), [("paid", 3)]);
    let restored = restore_backup(&world).await;
    world.clock.set(billing_time("2026-03-11"));
    restored.table.record_copy(billing_time("2026-03-11")).await.unwrap();
    world.clock.set(billing_time("2026-03-12") + TimeDelta::hours(12));
    let gateway = Arc::new(serve_without_lists(world.sandbox.clone(), "cus_1").await);
    // The id names the customer, not the account, which may have other customers.
    let removed = (DifferenceKind::CustomerNotCompared, "cus_1".to_owned());
    for day in reconcile_days(&restored, gateway.clone()).await {
        let found: Vec<_> = day.first_differences.iter().map(|found| (found.kind, found.id.clone())).collect();
        assert!(found.contains(&removed), "{day:#?}");
        assert!(day.ended_at.is_some() && day.customers_compared, "{day:#?}");
    }
    // The gateway no longer shows the payment of the removed customer. A person accepts that this customer is not
    // compared on March 11.
    let on = date("2026-03-11");
    let (reason, at) = ("the customer was removed".parse().unwrap(), billing_time("2026-03-12"));
    let accepted = AcceptedDifference { on, kind: removed.0, id: removed.1, reason, at };
    let action = NewAction {
        at,
        actor: Actor::Operator(None),
        kind: ActionKind::AcceptDifference,
        reason: Some(accepted.reason.clone()),
    };
    assert!(restored.table.accept_difference(&accepted, &action).await.unwrap());
    let compared = reconcile_days(&restored, gateway).await;
    assert_eq!((compared[2].difference_count(), compared[2].counts.accepted), (0, 1), "{:#?}", compared[2]);
}

#[tokio::test]
async fn comparison_of_customers_that_was_interrupted_before_the_confirmation_ends_afterwards() {
    let world = World::new().await;
    let interrupted = DayReconciliation {
        position: Some("ACC#a ACC#a".to_owned()),
        not_compared: [GatewayList::Payments].into(),
        ..DayReconciliation::new(date("2026-03-09"), billing_time("2026-03-11"))
    };
    assert!(world.table.create_reconciliation(&interrupted).await.unwrap());
    world.clock.set(billing_time("2026-03-12") + TimeDelta::hours(12));
    let compared = reconcile_days(&world.system.deployment, world.sandbox.clone()).await;
    assert!(compared[0].ended_at.is_some() && !compared[0].customers_compared, "{:#?}", compared[0]);
}

#[tokio::test]
async fn comparison_with_a_gateway_that_always_returns_the_same_cursor_ends_with_an_error() {
    let world = World::new().await;
    let page = || async { Json(json!({"items": [], "next": "the-same-cursor"})) };
    let gateway = serve_gateway(Router::new().fallback(page)).await;
    world.clock.set(billing_time("2026-03-12") + TimeDelta::hours(12));
    let mut reconciler = reconciler(&world.system.deployment, Arc::new(gateway)).await;
    let error = reconciler.reconcile(date("2026-03-09"), None).await.unwrap_err();
    assert!(matches!(error, ReconcileError::NoProgress { .. }), "{error}");
}
