//! Tests of damaged items: the audit reports damaged items, no payment is charged because of them, and damaged dates of
//! the indexes are repaired.

use std::collections::HashMap;

use audit::Invariant;
use aws_sdk_dynamodb::types::AttributeValue;
use billing::{Attempt, Money, Subscription};

use crate::table_audit::{checker, violations, world_after_a_quarter};
use crate::world::{World, card, date, new_subscription};

/// Stores a copy of each item whose sort key begins with `sk_prefix`, after `change` has changed the copy. A
/// copy with an unchanged key replaces the item.
async fn copy_items(world: &World, sk_prefix: &str, change: impl Fn(&mut HashMap<String, AttributeValue>)) {
    for mut item in world.table.scan().await.unwrap() {
        if item["SK"].as_s().unwrap().starts_with(sk_prefix) {
            change(&mut item);
            world.table.client().put_item().table_name(world.table.name()).set_item(Some(item)).send().await.unwrap();
        }
    }
}

#[tokio::test]
async fn audit_reports_duplicate_items_and_wrong_expiry_times() {
    let (world, subscription) = (World::new().await, new_subscription(10, "2026-03-01"));
    world.store(&subscription).await;
    world.run_payments("2026-03-10").await;
    let text = |value: &str| AttributeValue::S(value.to_owned());
    copy_items(&world, "SUB#", |item| {
        let sk = item["SK"].as_s().unwrap().replace("#SKU#gold", "#SKU#copper");
        item.extend([("SK".to_owned(), text(&sk)), ("SKU".to_owned(), text("copper"))]);
    })
    .await;
    copy_items(&world, "REC#", |item| {
        let sk = item["SK"].as_s().unwrap().replace("2026-03-10", "2026-04-10");
        item.extend([("SK".to_owned(), text(&sk)), ("DueDate".to_owned(), text("2026-04-10"))]);
    })
    .await;
    copy_items(&world, "SUB#", |item| drop(item.insert("TTL".to_owned(), AttributeValue::N("1".to_owned())))).await;
    let found = violations(&world, "2026-03-10").await;
    let has =
        |invariant, text: &str| found.iter().any(|(violated, what)| *violated == invariant && what.contains(text));
    assert!(has(Invariant::StoredOnce, "is stored as"), "{found:?}");
    assert!(has(Invariant::StoredOnce, "has several receipts: 2026-03-10"), "{found:?}");
    assert!(has(Invariant::Consistent, "unexpected or missing: TTL"), "{found:?}");
    let later = violations(&world, "2027-03-10").await;
    assert!(
        later.iter().any(|(violated, what)| *violated == Invariant::Expiring && what.contains("still exists")),
        "{later:?}"
    );
}

#[tokio::test]
async fn damaged_attempt_is_not_charged_by_a_take_over() {
    type Damage = fn(&mut Attempt);
    let damages: [(&str, Damage); 4] = [
        ("the price of its month is 12.99 EUR", |attempt| attempt.amount = Money::new(1, attempt.amount.currency())),
        ("but the subscription is due on 2026-03-10", |attempt| attempt.due_on = date("2026-02-10")),
        ("contains no table id", |attempt| attempt.table = None),
        ("but the latest attempt has the number 1", |attempt| attempt.no = 2),
    ];
    for (expected, damage) in damages {
        let (world, subscription) = (World::new().await, new_subscription(10, "2026-03-01"));
        world.store(&subscription).await;
        world.inject_charge_fault(emulator::Fault::LostBefore);
        world.run_payments("2026-03-10").await;
        world
            .change_subscription(&subscription, |s| {
                let mut damaged = s.clone();
                damaged.attempt.iter_mut().for_each(damage);
                damaged
            })
            .await;
        let found = violations(&world, "2026-03-11").await;
        let is_reported =
            |(violated, what): &(Invariant, String)| *violated == Invariant::AttemptMatches && what.contains(expected);
        assert!(found.iter().any(is_reported), "{expected}: {found:?}");
        let report = world.run_payments("2026-03-11").await;
        assert!(format!("{report:?}").contains(expected), "{expected}: {report:?}");
        assert_eq!(world.charged_due_dates(), [] as [String; 0], "{expected}");
    }
}

#[tokio::test]
async fn payment_planned_before_its_due_date_is_not_charged() {
    let (world, subscription) = (World::new().await, new_subscription(10, "2026-03-01"));
    world.store(&subscription).await;
    world
        .change_subscription(&subscription, |s| Subscription { next_payment_on: Some(date("2026-03-05")), ..s.clone() })
        .await;
    let report = world.run_payments("2026-03-05").await;
    assert!(
        format!("{report:?}").contains("the next payment date 2026-03-05 is before the due date 2026-03-10"),
        "{report:?}"
    );
    assert_eq!(world.charged_due_dates(), [] as [String; 0]);
}

#[tokio::test]
async fn paid_month_is_not_charged_again_if_the_due_date_is_damaged() {
    for damaged in ["2026-03-10", "2026-03-31", "2026-02-10"] {
        let (world, subscription) = (World::new().await, new_subscription(10, "2026-03-01"));
        world.store(&subscription).await;
        world.run_payments("2026-03-10").await;
        assert_eq!(world.charged_due_dates(), ["2026-03-10"]);
        world.change_subscription(&subscription, |s| Subscription { due_on: date(damaged), ..s.clone() }).await;
        let found = violations(&world, "2026-04-10").await;
        assert!(found.iter().any(|(_, what)| what.contains("ChargeableFrom says that it is paid")), "{found:?}");
        let report = world.run_payments("2026-04-10").await;
        let expected = format!("the month of the due date {damaged} is already paid");
        assert!(format!("{report:?}").contains(&expected), "{report:?}");
        assert_eq!(world.charged_due_dates(), ["2026-03-10"], "{damaged}");
    }
}

#[tokio::test]
async fn attempt_that_lost_its_number_prevents_another_attempt() {
    let (world, subscription) = (World::new().await, new_subscription(10, "2026-03-01"));
    world.store(&subscription).await;
    world.inject_charge_fault(emulator::Fault::LostAfter);
    world.run_payments("2026-03-10").await;
    assert_eq!(world.charged_due_dates(), ["2026-03-10"]);
    copy_items(&world, "SUB#", |item| drop(item.remove("AttemptNo"))).await;
    let report = world.run_payments("2026-03-11").await;
    assert!(format!("{report:?}").contains("its attempt is incomplete"), "{report:?}");
    assert_eq!(world.charged_due_dates(), ["2026-03-10"]);
}

#[tokio::test]
async fn repair_of_a_reminder_keeps_the_date_of_a_retry() {
    let (world, subscription) = (World::new().await, new_subscription(10, "2026-03-01"));
    let declined = card("pm_card_visa_chargeDeclinedInsufficientFunds");
    world.store(&Subscription { payment_method: declined, ..subscription.clone() }).await;
    world.run_payments("2026-03-10").await;
    world.run_payments("2026-03-11").await;
    let retried = world.load(&subscription).await;
    assert_eq!(retried.next_payment_on, Some(date("2026-03-13")));
    let damage = |s: &Subscription| Subscription { next_reminder_on: Some(date("2026-03-03")), ..s.clone() };
    world.change_subscription(&subscription, damage).await;
    let partition = world.table.account_partitions().next().await.unwrap().unwrap();
    let changes: Vec<_> =
        checker("2026-03-11").find_repairs(partition).into_iter().map(|repair| repair.changes).collect();
    assert_eq!(changes, [["NextReminderDate: 2026-03-03 -> none"]]);
}

#[tokio::test]
async fn damaged_index_dates_are_repaired_if_nothing_else_is_wrong() {
    type Damage = fn(&Subscription) -> Subscription;
    let damages: [(&str, Damage); 5] = [
        ("NextPaymentDate: none -> 2026-05-10", |s| Subscription { next_payment_on: None, ..s.clone() }),
        ("NextPaymentDate: 2026-04-09 -> 2026-05-10", |s| Subscription {
            next_payment_on: Some(date("2026-04-09")),
            ..s.clone()
        }),
        ("NextReminderDate: none -> 2026-05-03", |s| Subscription { next_reminder_on: None, ..s.clone() }),
        ("NextReminderDate: 2026-05-09 -> 2026-05-03", |s| Subscription {
            next_reminder_on: Some(date("2026-05-09")),
            ..s.clone()
        }),
        // The due date itself is damaged. The index dates are computed from it, so the checker proposes no repair.
        ("", |s| Subscription { next_payment_on: None, due_on: date("2026-06-10"), ..s.clone() }),
    ];
    for (expected, damage) in damages {
        let (world, all) = world_after_a_quarter().await;
        let undamaged = world.load(&all[0]).await;
        world.change_subscription(&all[0], damage).await;
        let mut partitions = world.table.account_partitions();
        let mut changes = Vec::new();
        while let Some(partition) = partitions.next().await.unwrap() {
            for repair in checker("2026-04-12").find_repairs(partition) {
                changes.extend(repair.changes);
                world.table.update_subscription(&repair.stored, &repair.repaired).await.unwrap();
            }
        }
        assert_eq!(changes.concat(), expected);
        if !expected.is_empty() {
            assert_eq!(violations(&world, "2026-04-12").await, [], "{expected}");
            let repaired = world.load(&all[0]).await;
            assert_eq!(Subscription { version: undamaged.version, ..repaired }, undamaged, "{expected}");
        }
    }
}
