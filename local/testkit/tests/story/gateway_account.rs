//! A table belongs to one account at one gateway, and its payments are told from those of another table.

use std::sync::Arc;

use billing::GatewayAccount;
use emulator::{Fault, Wire};
use gateways::{Entry, Ledger, Sandbox};
use sweep::BatchRequest;

use crate::world::{World, counts, date, morning, new_subscription};

fn another_ledger(world: &World) -> Arc<Sandbox> {
    let ledger = [Entry::Account { id: "sandbox_other".to_owned() }].into_iter().collect::<Ledger>();
    Arc::new(Sandbox::new(ledger, world.clock.clone()))
}

#[tokio::test]
async fn run_refuses_to_charge_at_another_gateway_than_the_tables() {
    let (world, subscription) = (World::new().await, new_subscription(10, "2026-03-01"));
    world.has(&subscription).await;
    // The first run names the gateway. Its charge gets no answer.
    world.next_charge(Fault::LostAfter);
    world.charge("2026-03-10").await;
    let other = another_ledger(&world);
    let elsewhere = world.payments_over(Wire::default(), other.clone()).await;
    world.clock.set(morning("2026-03-12"));
    let refused = elsewhere.run(&BatchRequest::on(date("2026-03-12")), morning("2026-03-13")).await.unwrap_err();
    let said = "the day is not begun: the payments of this table are made at sandbox sandbox_in_memory (test), and this run \
                would charge at sandbox sandbox_other (test)";
    assert!(refused.to_string().starts_with(said), "{refused}");
    assert_eq!(other.entries(), [], "nothing is charged there");
    // Moved there on purpose, it charges there; the worker of before refuses then.
    let before = world.table.get_settings().await.unwrap().unwrap().gateway.unwrap();
    let account = GatewayAccount { account: "sandbox_other".to_owned(), ..before.clone() };
    assert_eq!(world.table.set_gateway(Some(&account), &before).await.unwrap(), before, "only from where it is");
    assert_eq!(world.table.set_gateway(Some(&before), &account).await.unwrap(), account);
    let refused = world.payments.run(&BatchRequest::on(date("2026-03-12")), morning("2026-03-13")).await.unwrap_err();
    assert!(refused.to_string().contains("would charge at sandbox sandbox_in_memory (test)"), "{refused}");
}

#[tokio::test]
async fn two_tables_with_the_same_subscription_at_one_gateway_charge_each_its_own() {
    let (one, two) = (World::new().await, World::set_up_with_id(9).await);
    let subscription = new_subscription(10, "2026-03-01");
    let mut receipts = Vec::new();
    for world in [&one, &two] {
        world.has(&subscription).await;
        let payments = world.payments_over(Wire::default(), one.sandbox.clone()).await;
        one.clock.set(morning("2026-03-10"));
        assert_eq!(counts(&world.charge_by(&payments, "2026-03-10", morning("2026-03-10")).await), [("paid", 1)]);
        receipts.extend(world.receipts(&subscription).await);
    }
    assert_eq!((one.charged(), receipts), (vec!["2026-03-10".to_owned(); 2], vec!["2026-03-10".to_owned(); 2]));
}

#[tokio::test]
async fn payment_of_another_table_is_not_taken_for_ones_own() {
    // The other table has paid; here the charge never arrived, and the look-up finds the other's.
    let (one, two) = (World::new().await, World::set_up_with_id(9).await);
    let subscription = new_subscription(10, "2026-03-01");
    one.has(&subscription).await;
    one.charge("2026-03-10").await;
    two.has(&subscription).await;
    two.next_charge(Fault::LostBefore);
    two.charge("2026-03-10").await;
    let payments = two.payments_over(Wire::default(), one.sandbox.clone()).await;
    let later = morning("2026-03-10") + chrono::TimeDelta::hours(2);
    one.clock.set(later);
    assert_eq!(counts(&two.charge_by(&payments, "2026-03-10", later).await), [("paid", 1)]);
    assert_eq!(one.charged().len(), 2, "each table its own");
}

#[tokio::test]
async fn attempt_that_was_claimed_before_tables_were_named_keeps_its_key() {
    let subscription = crate::lifecycle::claimed(&new_subscription(10, "2026-03-01"));
    let attempt = subscription.attempt.as_ref().unwrap();
    assert_eq!(attempt.table, None);
    let key = attempt.idempotency_key(&subscription);
    assert_eq!(key, "22d093a907f7c0506ea37f461fb8fc8828db6191b808c7a284c7a2669e7052fd", "as it was sent before");
    let named = billing::Attempt { table: Some(ulid::Ulid(7)), ..attempt.clone() };
    assert_ne!(named.idempotency_key(&subscription), key);
}
