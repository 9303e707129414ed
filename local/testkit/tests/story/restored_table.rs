//! Test of a restored table: a table is restored from a backup, and the gateway has made payments since the backup. No run
//! charges payments of the restored table until each day since the backup was compared with the gateway, and a person has
//! confirmed the table.

use billing::{Account, Receipt, Subscription};
use chrono::TimeDelta;
use emulator::{Deployment, Engine};
use reconciling::{Reconciler, Settlement};
use store::Paging;
use sweep::BatchRequest;
use testkit::sample;

use crate::world::{World, billing_time, date, new_subscription, nonzero_counts, numbered_subscription};

/// Returns a deployment with a new table that contains a copy of all items in the table of `world`.
async fn restore_backup(world: &World) -> Deployment {
    let restored = world.system.deployment.over(Engine::memory().client());
    restored.table.create_if_absent().await.unwrap();
    restored.table.copy_missing_items(&world.table).await.unwrap();
    restored
}

/// Compares March 10 in the restored table with the gateway. Returns the numbers of settled payments and of differences.
async fn reconcile(world: &World, restored: &Deployment) -> (u64, u64) {
    let settings = restored.table.get_settings().await.unwrap().unwrap();
    let policy = restored.config.billing.policy.clone();
    let mut reconciler = Reconciler::new(
        (restored.table.clone(), settings.table_id),
        world.sandbox.clone(),
        (policy, Settlement::of_table(&settings)),
        world.clock.clone(),
        date("2026-03-11"),
    );
    let day = reconciler.reconcile(date("2026-03-10"), None).await.unwrap();
    (day.counts.settled, day.differences.values().sum())
}

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
    let batch = restored.sweep(restored.charge_due()).await.unwrap();
    let request = BatchRequest::for_date(date("2026-03-11"));
    let refused = batch.run(&request, billing_time("2026-03-12")).await.unwrap_err().to_string();
    assert!(
        refused.starts_with("the run was not started: this table was restored from a backup or copied"),
        "{refused}"
    );
    let reminders = restored.reminders().await.unwrap();
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
    other.table.put_account(&Account { id: signed_up.account.clone(), ..sample::account() }).await.unwrap();
    other.table.create_subscription(&signed_up, None).await.unwrap();
    assert!(other.table.get_settings().await.unwrap().unwrap().charging);
    let sign_up = other.charge_due().for_sign_up().charge_now(&signed_up, date("2026-03-11")).await.unwrap().unwrap();
    assert_eq!(sign_up.subscription.attempt_seq, 0, "no attempt was started");
    assert_eq!(world.charged_due_dates().len(), 1);
    let settings_of_other = other.table.get_settings().await.unwrap().unwrap();
    assert!(!settings_of_other.charging && settings_of_other.copy_noticed_at.is_some());

    // The comparison with the gateway writes the receipt that the backup does not contain.
    assert_eq!(reconcile(&world, &restored).await, (1, 0));
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
