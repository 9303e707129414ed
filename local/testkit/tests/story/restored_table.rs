//! Tests that nothing is charged in a table that was restored from a backup, until a person has confirmed the table.

use emulator::{Deployment, Engine};
use sweep::BatchRequest;

use crate::world::{World, billing_time, date, new_subscription, nonzero_counts};

/// Returns the deployment of `world` with a new table that contains a copy of all its items.
async fn restore_backup(world: &World) -> Deployment {
    let restored = world.system.deployment.over(Engine::memory().client());
    restored.table.create_if_absent().await.unwrap();
    restored.table.copy_missing_items(&world.table).await.unwrap();
    restored
}

#[tokio::test]
async fn restored_table_is_not_charged_until_it_is_confirmed() {
    let (world, subscription) = (World::new().await, new_subscription(10, "2026-03-01"));
    world.store(&subscription).await;
    // The first run stores the id of the table. Nothing is due yet.
    world.run_payments("2026-03-09").await;
    let restored = restore_backup(&world).await;
    // The payment is made after the backup.
    assert_eq!(nonzero_counts(&world.run_payments("2026-03-10").await), [("paid", 1)]);
    assert_eq!(world.charged_due_dates().len(), 1);

    world.clock.set(billing_time("2026-03-11"));
    let batch = restored.sweep(restored.charge_due()).await.unwrap();
    let request = BatchRequest::for_date(date("2026-03-11"));
    let refused = batch.run(&request, billing_time("2026-03-12")).await.unwrap_err().to_string();
    assert!(
        refused.starts_with("the run was not started: this table was restored from a backup or copied"),
        "{refused}"
    );
    let settings = restored.table.get_settings().await.unwrap().unwrap();
    assert!(!settings.charging, "sign-ups are not charged either");

    // Charging is switched on again by mistake, without a confirmation.
    restored.table.set_charging(true).await.unwrap();
    assert_eq!(batch.run(&request, billing_time("2026-03-12")).await.unwrap_err().to_string(), refused);
    assert_eq!(world.charged_due_dates().len(), 1);

    // After the confirmation, runs begin. Charging is still off: the gateway remembers idempotency keys for a day only, so it
    // would charge the payment of March 10 again, which the table does not contain.
    let id = restored.table.dynamodb_id().await.unwrap().unwrap();
    assert_eq!(restored.table.set_dynamodb_id(settings.dynamodb_id.as_deref(), &id).await.unwrap(), id);
    let report = batch.run(&request, billing_time("2026-03-12")).await.unwrap();
    assert_eq!(report.stopped.as_deref(), Some("charging is switched off"));
    assert_eq!(world.charged_due_dates().len(), 1);
    // The original table is not affected.
    assert!(world.table.get_settings().await.unwrap().unwrap().charging);
}
