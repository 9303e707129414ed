//! Tests that a table belongs to one account at one gateway, and that a payment for another table at the same gateway
//! never counts as a payment for this table.

use std::sync::Arc;

use billing::GatewayAccount;
use emulator::{EngineConnection, Fault};
use sandbox::{Ledger, LedgerEntry, Sandbox};
use sweep::BatchRequest;

use crate::world::{World, billing_time, date, new_subscription, nonzero_counts};

/// Returns a sandbox gateway whose gateway account differs from the account of `world`.
fn other_gateway(world: &World) -> Arc<Sandbox> {
    let ledger = [LedgerEntry::Account { id: "sandbox_other".to_owned() }].into_iter().collect::<Ledger>();
    Arc::new(Sandbox::new(ledger, world.clock.clone()))
}

#[tokio::test]
async fn run_at_another_gateway_account_than_that_of_the_table_is_rejected() {
    let (world, subscription) = (World::new().await, new_subscription(10, "2026-03-01"));
    world.store(&subscription).await;
    // The first run stores the gateway's account in the settings. Its charge gets no response.
    world.inject_charge_fault(Fault::LostAfter);
    world.run_payments("2026-03-10").await;
    let other = other_gateway(&world);
    let batch_at_other = world.separate_payment_batch(EngineConnection::default(), other.clone()).await;
    world.clock.set(billing_time("2026-03-12"));
    let error =
        batch_at_other.run(&BatchRequest::for_date(date("2026-03-12")), billing_time("2026-03-13")).await.unwrap_err();
    let expected = "the run was not started: the payments of this table are made at sandbox sandbox_in_memory (test), and this run \
                would charge at sandbox sandbox_other (test)";
    assert!(error.to_string().starts_with(expected), "{error}");
    assert_eq!(other.entries(), [], "no charge at the other gateway");
    // An operator moves the table to the other gateway. A batch with the earlier gateway is then rejected.
    let before = world.table.get_settings().await.unwrap().unwrap().gateway.unwrap();
    let account = GatewayAccount { account: "sandbox_other".to_owned(), ..before.clone() };
    assert_eq!(
        world.table.set_gateway(Some(&account), &before, None).await.unwrap(),
        before,
        "set_gateway changes nothing if the caller states another gateway than the stored one"
    );
    assert_eq!(world.table.set_gateway(Some(&before), &account, None).await.unwrap(), account);
    let error =
        world.payments.run(&BatchRequest::for_date(date("2026-03-12")), billing_time("2026-03-13")).await.unwrap_err();
    assert!(error.to_string().contains("would charge at sandbox sandbox_in_memory (test)"), "{error}");
}

#[tokio::test]
async fn two_tables_with_the_same_subscription_at_one_gateway_both_charge() {
    let (one, two) = (World::new().await, World::with_seed(9).await);
    let subscription = new_subscription(10, "2026-03-01");
    let mut receipts = Vec::new();
    for world in [&one, &two] {
        world.store(&subscription).await;
        let payments = world.separate_payment_batch(EngineConnection::default(), one.sandbox.clone()).await;
        one.clock.set(billing_time("2026-03-10"));
        assert_eq!(
            nonzero_counts(&world.run_payment_batch(&payments, "2026-03-10", billing_time("2026-03-10")).await),
            [("paid", 1)]
        );
        receipts.extend(world.receipt_due_dates(&subscription).await);
    }
    assert_eq!(
        (one.charged_due_dates(), receipts),
        (vec!["2026-03-10".to_owned(); 2], vec!["2026-03-10".to_owned(); 2])
    );
}

#[tokio::test]
async fn look_up_ignores_the_payment_of_another_table() {
    // Table one has charged the subscription. The charge of table two was lost, so a run of table two looks up the
    // payment, and finds only the payment of table one.
    let (one, two) = (World::new().await, World::with_seed(9).await);
    let subscription = new_subscription(10, "2026-03-01");
    one.store(&subscription).await;
    one.run_payments("2026-03-10").await;
    two.store(&subscription).await;
    two.inject_charge_fault(Fault::LostBefore);
    two.run_payments("2026-03-10").await;
    let payments = two.separate_payment_batch(EngineConnection::default(), one.sandbox.clone()).await;
    let later = billing_time("2026-03-10") + chrono::TimeDelta::hours(2);
    one.clock.set(later);
    assert_eq!(nonzero_counts(&two.run_payment_batch(&payments, "2026-03-10", later).await), [("paid", 1)]);
    assert_eq!(one.charged_due_dates().len(), 2, "each table has made one charge");
}

#[tokio::test]
async fn idempotency_key_of_an_attempt_without_a_table_id_equals_that_of_earlier_versions() {
    let subscription = crate::lifecycle::with_open_attempt(&new_subscription(10, "2026-03-01"));
    let attempt = subscription.attempt.as_ref().unwrap();
    assert_eq!(attempt.table, None);
    let key = attempt.idempotency_key(&subscription);
    assert_eq!(
        key, "22d093a907f7c0506ea37f461fb8fc8828db6191b808c7a284c7a2669e7052fd",
        "the key that earlier versions sent"
    );
    let with_table_id = billing::Attempt { table: Some(ulid::Ulid(7)), ..attempt.clone() };
    assert_ne!(with_table_id.idempotency_key(&subscription), key);
}
