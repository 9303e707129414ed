//! Tests of a data folder of one machine that was restored from a backup: its table has the same ids as before and no
//! mark that is newer than itself, but the gateway has payments of later attempts. No run charges anything until each
//! day since the backup was compared with the gateway, and a person has confirmed the table.

use std::collections::BTreeMap;
use std::sync::Arc;

use billing::{
    ActionKind, Actor, ChangeRefusal, DayReconciliation, DifferenceKind, NewAction, PaymentMethod, PaymentStatus,
    Subscription, WaivedReason,
};
use charging::{ApplyResult, OlderTableCheck, StatedOutcome};
use chrono::TimeDelta;
use clock::Clock as _;
use deployment::Deployment;
use emulator::{ExternalOperation, Fault};
use erasing::{Eraser, request_erasure};
use reconciling::{CorrectionMode, DaysToCompare, Reconciler};
use sandbox::LedgerEntry;
use store::{OLDER_TABLE, Paging};
use sweep::BatchRequest;

use crate::subscription_changes::change_payment_day;
use crate::world::{World, billing_time, cancel, card, date, nonzero_counts, numbered_subscription};

/// Returns a deployment with a copy of the table of `world`, with the same ids, as a copy of the data folder has. Each
/// of its processes compares the table with the gateway's latest payments.
fn copy_folder(world: &World) -> Deployment {
    let older_table_check = Some(Arc::new(OlderTableCheck::new(world.sandbox.clone())));
    Deployment { older_table_check, ..world.system.deployment.with_client(world.system.engine.copy().client()) }
}

/// Stores a subscription with each of the payment days and cards `subscriptions`, and returns them.
async fn store_subscriptions(world: &World, subscriptions: &[(i64, &str)]) -> Vec<Subscription> {
    let mut all = Vec::new();
    for (n, (day, method)) in (0..).zip(subscriptions) {
        let payment_method = PaymentMethod { customer: format!("cus_{n}").parse().unwrap(), ..card(method) };
        let subscription = Subscription { payment_method, ..numbered_subscription(n, *day, "2026-03-01") };
        world.store(&subscription).await;
        all.push(subscription);
    }
    all
}

/// Returns the attempt numbers of the payments of `subscription` at the gateway that were not declined.
fn payments_at_gateway(world: &World, subscription: &Subscription) -> Vec<u32> {
    let entries = world.sandbox.entries();
    let payments = entries.iter().filter_map(|entry| match entry {
        LedgerEntry::Payment(payment) if payment.request.subscription == subscription.id => Some(payment),
        _ => None,
    });
    let is_kept = |status: &PaymentStatus| !matches!(status, PaymentStatus::Declined(_));
    payments.filter(|payment| is_kept(&payment.status)).map(|payment| payment.request.attempt_no).collect()
}

/// Runs the payment batch of `deployment` at noon of the day `on`, as a new process does. Returns the counts, or the
/// error.
async fn run_payments(world: &World, deployment: &Deployment, on: &str) -> Result<Vec<(&'static str, u64)>, String> {
    let noon = billing_time(on) + TimeDelta::hours(12);
    world.clock.set(noon);
    let older_table_check = Some(Arc::new(OlderTableCheck::new(world.sandbox.clone())));
    let deployment = Deployment { older_table_check, ..deployment.clone() };
    let batch = deployment.payment_batch().await.unwrap();
    let report = batch.run(&BatchRequest::for_date(date(on)), noon + TimeDelta::hours(1)).await;
    report.map(|report| nonzero_counts(&report)).map_err(|error| error.to_string())
}

/// Returns a reconciler, which compares the table of `older` with the gateway.
async fn reconciler(world: &World, older: &Deployment) -> Reconciler {
    let settings = older.table.get_settings().await.unwrap().unwrap();
    Reconciler::new(
        older.table.clone(),
        settings.table_id,
        world.sandbox.clone(),
        CorrectionMode::of_table(&settings),
        world.clock.clone(),
        older.table.policy().date_at(world.clock.now()),
    )
}

/// Compares each of `days` in the table of `older` with the gateway. There must be no difference.
async fn compare_days(world: &World, older: &Deployment, days: DaysToCompare) {
    let mut reconciler = reconciler(world, older).await;
    for on in days.first.iter_days().take_while(|on| *on <= days.last) {
        let compared = reconciler.reconcile(on, None).await.unwrap();
        assert_eq!(compared.first_differences, [], "{on}");
    }
}

#[tokio::test]
async fn older_folder_is_noticed_at_the_first_run_and_charges_nothing_twice_after_its_confirmation() {
    let world = World::with_one_shard().await;
    let cards = ["pm_card_visa", "pm_card_visa", "pm_usBankAccount_success", "pm_card_visa_chargeDeclined"];
    let all =
        store_subscriptions(&world, &[(9, cards[0]), (10, cards[1]), (10, cards[2]), (10, cards[3]), (13, cards[0])])
            .await;
    let original = Deployment { older_table_check: None, ..world.system.deployment.clone() };
    assert_eq!(run_payments(&world, &original, "2026-03-09").await.unwrap(), [("paid", 1)]);
    let (older, other) = (copy_folder(&world), copy_folder(&world));
    let after_backup = run_payments(&world, &original, "2026-03-10").await.unwrap();
    assert_eq!(after_backup, [("declined", 1), ("paid", 1), ("processing", 1)]);

    // A sign-up before the first run is not charged.
    let sign_up = other.sign_up_charges().charge_now(&all[1], date("2026-03-10")).await.unwrap().unwrap();
    assert_eq!(sign_up.subscription.attempt_seq, 0, "no attempt was started");
    assert!(!other.table.get_settings().await.unwrap().unwrap().charging);
    assert_eq!(payments_at_gateway(&world, &all[1]), [1]);

    let refused = run_payments(&world, &older, "2026-03-11").await.unwrap_err();
    assert!(refused.contains(OLDER_TABLE), "{refused}");
    // Another process is refused, too, although charging was switched on by mistake, and so are the reminders.
    older.table.set_charging(true, None).await.unwrap();
    let again = run_payments(&world, &older, "2026-03-11").await.unwrap_err();
    assert!(again.contains(OLDER_TABLE), "{again}");
    let reminders = older.reminder_batch().await.unwrap();
    reminders.run(&BatchRequest::for_date(date("2026-03-11")), billing_time("2026-03-12")).await.unwrap_err();
    let settings = older.table.get_settings().await.unwrap().unwrap();
    assert!(!settings.charging);
    let days = DaysToCompare::of_table(&settings, settings.copy_noticed_at.unwrap());
    assert_eq!((days.first, days.last), (date("2026-03-09"), date("2026-03-11")));

    world.clock.set(billing_time("2026-03-12") + TimeDelta::hours(12));
    compare_days(&world, &older, days).await;
    assert_eq!(days.find_problem(&older.table, false).await.unwrap(), None);
    let id = settings.dynamodb_id.unwrap();
    assert!(older.table.confirm_copy(&id, &id, None).await.unwrap());
    assert!(!older.table.confirm_copy(&id, &id, None).await.unwrap(), "it is confirmed already");
    older.table.set_charging(true, None).await.unwrap();

    // Each process compares again, and finds no payment of a later attempt.
    let first_run = run_payments(&world, &older, "2026-03-13").await.unwrap();
    assert_eq!(first_run, [("declined", 1), ("paid", 1)], "the comparison has written the receipt of the debit");
    assert_eq!(run_payments(&world, &older, "2026-03-14").await.unwrap(), [("declined", 1)]);
    for (n, (subscription, expected)) in all.iter().zip([1, 1, 1, 0, 1]).enumerate() {
        let payments = payments_at_gateway(&world, subscription);
        assert_eq!(payments.len(), expected, "subscription {n}: {payments:?}");
        let stored = older.table.get_subscription(&subscription.account, subscription.id).await.unwrap().unwrap();
        assert!(payments.iter().all(|number| *number <= stored.attempt_seq), "subscription {n}: {payments:?}");
        let now = world.clock.now();
        let receipts = older.table.get_receipts_by_account(&subscription.account, &Paging::all(), now).await.unwrap();
        assert_eq!(receipts.items.len(), usize::from(n != 3), "subscription {n}");
    }
}

/// An earlier version has stored no time of a payment run in the backup, and the refused run stores its own time.
#[tokio::test]
async fn folder_of_an_earlier_version_is_compared_from_the_latest_run_of_its_backup_on() {
    let world = World::with_one_shard().await;
    store_subscriptions(&world, &[(9, "pm_card_visa"), (10, "pm_card_visa")]).await;
    world.run_payments("2026-03-09").await;
    let (older, reminded) = (copy_folder(&world), copy_folder(&world));
    assert_eq!(older.table.get_settings().await.unwrap().unwrap().latest_payment_run_at, None);
    world.run_payments("2026-03-10").await;

    let refused = run_payments(&world, &older, "2026-03-14").await.unwrap_err();
    assert!(refused.contains(OLDER_TABLE), "{refused}");
    let settings = older.table.get_settings().await.unwrap().unwrap();
    let days = DaysToCompare::of_table(&settings, settings.copy_noticed_at.unwrap());
    assert_eq!((days.first, days.last), (date("2026-03-09"), date("2026-03-14")));

    // A run of the reminders is not refused, and stores its time before the first payment run.
    let settings = || async { reminded.table.get_settings().await.unwrap().unwrap() };
    reminded.table.init_payment_run_time().await.unwrap();
    world.clock.set(billing_time("2026-03-14"));
    let reminders = reminded.reminder_batch().await.unwrap();
    reminders.run(&BatchRequest::for_date(date("2026-03-14")), billing_time("2026-03-15")).await.unwrap();
    assert_eq!(settings().await.latest_run_at, Some(billing_time("2026-03-14")));
    let refused = run_payments(&world, &reminded, "2026-03-14").await.unwrap_err();
    assert!(refused.contains(OLDER_TABLE), "{refused}");
}

/// In each case, the first attempt is open in the backup. In the original table, a person has closed it, and the second
/// attempt was declined, succeeded, or is a bank debit in progress.
#[tokio::test]
async fn open_attempt_of_a_backup_is_closed_if_the_gateway_has_a_payment_of_a_later_attempt() {
    let cases = [
        ("pm_card_visa_chargeDeclined", 0, 0, 0, [("declined", 1)].as_slice()),
        ("pm_card_visa", 1, 1, 0, &[]),
        // A person must decide about the finding of the debit. Until then, its row fails.
        ("pm_usBankAccount_success", 1, 0, 1, &[("failed", 1)]),
    ];
    for (method, payments, receipts, findings, next_run) in cases {
        let world = World::with_one_shard().await;
        let subscription = store_subscriptions(&world, &[(9, method)]).await.remove(0);
        world.script.add(ExternalOperation::Charge, [Some(Fault::LostBefore)]);
        assert_eq!(nonzero_counts(&world.run_payments("2026-03-09").await), [("in_doubt", 1)]);
        let older = copy_folder(&world);
        world.clock.set(billing_time("2026-03-09") + TimeDelta::hours(3));
        let closed = world.resolve_attempt(&subscription, &StatedOutcome::NotCharged).await;
        assert!(matches!(closed, ApplyResult::Settled(_)), "{method}: {closed:?}");
        world.run_payments("2026-03-10").await;
        assert_eq!(payments_at_gateway(&world, &subscription).len(), payments, "{method}");

        run_payments(&world, &older, "2026-03-10").await.unwrap_err();
        world.clock.set(billing_time("2026-03-11"));
        let settings = older.table.get_settings().await.unwrap().unwrap();
        let days = DaysToCompare::of_table(&settings, settings.copy_noticed_at.unwrap());
        compare_days(&world, &older, days).await;
        let stored = older.table.get_subscription(&subscription.account, subscription.id).await.unwrap().unwrap();
        assert_eq!((stored.attempt, stored.attempt_seq, stored.open_findings), (None, 2, findings), "{method}");
        let now = world.clock.now();
        let written = older.table.get_receipts_by_account(&subscription.account, &Paging::all(), now).await.unwrap();
        assert_eq!(written.items.len(), receipts, "{method}");

        let id = settings.dynamodb_id.unwrap();
        assert!(older.table.confirm_copy(&id, &id, None).await.unwrap());
        older.table.set_charging(true, None).await.unwrap();
        assert_eq!(run_payments(&world, &older, "2026-03-12").await.unwrap(), next_run, "{method}");
        assert_eq!(payments_at_gateway(&world, &subscription).len(), payments, "{method}");
    }
}

/// After the backup, the customer has moved the payment to an earlier day. In the backup, it is due four days later.
#[tokio::test]
async fn receipt_of_a_payment_that_a_backup_does_not_contain_has_the_due_date_of_the_payment() {
    let world = World::with_one_shard().await;
    let subscription = store_subscriptions(&world, &[(14, "pm_card_visa")]).await.remove(0);
    world.run_payments("2026-03-08").await;
    let older = copy_folder(&world);
    let moved = change_payment_day(&subscription, 10, "2026-03-08");
    world.table.update_subscription(&subscription, &moved).await.unwrap();
    assert_eq!(nonzero_counts(&world.run_payments("2026-03-10").await), [("paid", 1)]);

    run_payments(&world, &older, "2026-03-10").await.unwrap_err();
    world.clock.set(billing_time("2026-03-11"));
    let settings = older.table.get_settings().await.unwrap().unwrap();
    compare_days(&world, &older, DaysToCompare::of_table(&settings, settings.copy_noticed_at.unwrap())).await;
    let stored = older.table.get_subscription(&subscription.account, subscription.id).await.unwrap().unwrap();
    assert_eq!((stored.due_on, stored.attempt_seq), (date("2026-04-14"), 1));
    let now = world.clock.now();
    let receipts = older.table.get_receipts_by_account(&subscription.account, &Paging::all(), now).await.unwrap();
    assert_eq!(receipts.items[0].due_on, date("2026-03-10"));
}

/// In the original table, the merchant has waived March, and April was paid. The backup still owes March.
#[tokio::test]
async fn paid_month_after_a_waived_month_gets_its_receipt_after_the_waiver_was_repeated() {
    let world = World::with_one_shard().await;
    let subscription = store_subscriptions(&world, &[(10, "pm_card_visa")]).await.remove(0);
    world.run_payments("2026-03-09").await;
    let older = copy_folder(&world);
    let (march, lead) = ("2026-03".parse().unwrap(), world.system.deployment.table.policy().lead);
    let waive = |stored: &Subscription, later_findings: u32| {
        let now = billing_time("2026-03-10");
        stored.waive_month(march, WaivedReason::Merchant, later_findings, lead, date("2026-03-10"), now)
    };
    world.table.write_settlement(subscription.clone(), |stored| waive(stored, 0)).await.unwrap();
    assert_eq!(nonzero_counts(&world.run_payments("2026-04-10").await), [("paid", 1)]);

    run_payments(&world, &older, "2026-04-10").await.unwrap_err();
    world.clock.set(billing_time("2026-04-11"));
    let settings = older.table.get_settings().await.unwrap().unwrap();
    let days = DaysToCompare::of_table(&settings, settings.copy_noticed_at.unwrap());
    let differences = |compared: DayReconciliation| compared.differences;
    let on = date("2026-04-10");
    let mut reconciler = reconciler(&world, &older).await;
    let found = differences(reconciler.reconcile(on, None).await.unwrap());
    assert_eq!(found, BTreeMap::from([(DifferenceKind::PaymentWithoutReceipt, 1)]));
    let (account, id) = (&subscription.account, subscription.id);
    let later_findings = older.table.count_findings_after(account, id, march).await.unwrap();
    assert_eq!(later_findings, 1);
    let stored = older.table.get_subscription(account, id).await.unwrap().unwrap();
    assert!(matches!(waive(&stored, 0), Err(ChangeRefusal::OpenFinding { .. })));
    older.table.write_settlement(stored, |stored| waive(stored, later_findings)).await.unwrap();
    compare_days(&world, &older, days).await;
    let stored = older.table.get_subscription(account, id).await.unwrap().unwrap();
    assert_eq!((stored.due_on, stored.open_findings), (date("2026-05-10"), 0));
    let now = world.clock.now();
    let receipts = older.table.get_receipts_by_account(account, &Paging::all(), now).await.unwrap();
    assert_eq!(receipts.items.iter().map(|receipt| receipt.due_on).collect::<Vec<_>>(), [on]);
}

#[tokio::test]
async fn payments_of_an_erased_account_do_not_make_the_table_look_older() {
    let world = World::with_one_shard().await;
    let all = store_subscriptions(&world, &[(9, "pm_card_visa"), (10, "pm_card_visa")]).await;
    let deployment = world.system.deployment.clone();
    assert_eq!(run_payments(&world, &deployment, "2026-03-09").await.unwrap(), [("paid", 1)]);
    let table = &world.table;
    let paid = table.get_subscription(&all[0].account, all[0].id).await.unwrap().unwrap();
    table.update_subscription(&paid, &cancel(&paid).subscription).await.unwrap();
    let now = world.clock.now();
    let action = NewAction { at: now, actor: Actor::Operator(None), kind: ActionKind::EraseAccount, reason: None };
    request_erasure(table, &all[0].account, &action, now).await.unwrap();
    assert_eq!(
        Eraser::new(table.clone(), None, world.clock.clone()).continue_all_erasures(None).await.unwrap().erased,
        1
    );
    assert_eq!(table.get_subscription(&all[0].account, all[0].id).await.unwrap(), None);
    assert_eq!(run_payments(&world, &deployment, "2026-03-10").await.unwrap(), [("paid", 1)]);
}

#[tokio::test]
async fn payment_of_a_later_attempt_at_a_look_up_switches_charging_off() {
    let world = World::with_one_shard().await;
    let all = store_subscriptions(&world, &[(9, "pm_card_visa"), (20, "pm_card_visa")]).await;
    world.script.add(ExternalOperation::Charge, [Some(Fault::LostAfter)]);
    assert_eq!(nonzero_counts(&world.run_payments("2026-03-09").await), [("in_doubt", 1)]);
    let older = world.system.deployment.with_client(world.system.engine.copy().client());
    world.run_payments_at("2026-03-09", billing_time("2026-03-09") + TimeDelta::hours(3)).await;
    world.run_payments("2026-04-09").await;

    // Some items were restored by hand, so that neither the id of the table nor the folder shows it.
    let batch = older.payment_batch().await.unwrap();
    world.clock.set(billing_time("2026-04-10"));
    let request = BatchRequest::for_date(date("2026-03-10"));
    let report = batch.run(&request, billing_time("2026-04-11")).await.unwrap();
    assert_eq!(nonzero_counts(&report), [("paid", 1)], "the payment of March is settled");
    assert!(!older.table.get_settings().await.unwrap().unwrap().charging);
    let later = BatchRequest::for_date(date("2026-04-10"));
    let refused = batch.run(&later, billing_time("2026-04-11")).await.unwrap_err().to_string();
    assert!(refused.contains(OLDER_TABLE), "{refused}");
    let settings = older.table.get_settings().await.unwrap().unwrap();
    let days = DaysToCompare::of_table(&settings, settings.copy_noticed_at.unwrap());
    assert_eq!(days.first, date("2026-03-09"), "the open attempt was claimed on this day, before the backup");
    assert_eq!(payments_at_gateway(&world, &all[0]), [1, 2]);
    assert_eq!(payments_at_gateway(&world, &all[1]), [1], "only the original table has charged March 20");
}

#[tokio::test]
async fn run_is_refused_while_the_latest_payments_cannot_be_compared() {
    let world = World::with_one_shard().await;
    let all = store_subscriptions(&world, &[(9, "pm_card_visa")]).await;
    let gateway = Arc::new(deployment::FaultyService::new(
        world.sandbox.clone(),
        Arc::new(emulator::FaultInjector::new(Arc::new(testkit::fault_at_call(1, Fault::LostBefore)))),
    ));
    let check = Some(Arc::new(OlderTableCheck::new(gateway)));
    let deployment = Deployment { older_table_check: check, ..world.system.deployment.clone() };
    let batch = deployment.payment_batch().await.unwrap();
    world.clock.set(billing_time("2026-03-09"));
    let (request, deadline) = (BatchRequest::for_date(date("2026-03-09")), billing_time("2026-03-10"));
    let refused = batch.run(&request, deadline).await.unwrap_err().to_string();
    assert!(refused.contains("the gateway's latest payments cannot be compared with the table"), "{refused}");
    assert_eq!(payments_at_gateway(&world, &all[0]), [0; 0]);
    assert_eq!(
        nonzero_counts(&batch.run(&request, deadline).await.unwrap()),
        [("paid", 1)],
        "the next run compares again"
    );
}
