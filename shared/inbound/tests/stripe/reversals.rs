//! Payments that the bank took back: the receipt shows it, and the batch never charges their periods again.

use audit::{Judge, Reading, Reconciliation, explain, report};
use billing::{DisputeStatus, Image, PaymentStatus, events};
use chrono::TimeDelta;
use chrono_tz::Tz;
use clock::Clock as _;
use gateways::PaymentGateway as _;
use inbound::{Told, ToldError};

use crate::{World, at};

/// The types of the events of the stored dispute, as if it was just written.
async fn published(world: &World) -> Vec<String> {
    let stored = world.table().get_disputes_by_account(&world.gold.account).await.unwrap();
    let images = stored.into_iter().map(Image::Dispute);
    let made = images.flat_map(|image| events(None, Some(&image), world.system.clock.now()));
    made.map(|event| event.news.event_type().to_string()).collect()
}

#[tokio::test]
async fn lost_dispute_marks_the_receipt_and_its_period_is_never_charged_again() {
    let world = World::new("pm_card_visa").await;
    world.run("2026-03-10T06:00:00Z").await;
    let id = world.server.dispute("pi_000001", "needs_response");
    world.tell(&world.server.event("evt_1", "charge.dispute.created", &id)).await.unwrap();
    assert_eq!(world.receipts().await[0].reversal, None, "the bank has not decided");
    world.system.clock.set(at("2026-03-20T06:00:00Z"));
    world.server.dispute("pi_000001", "lost");
    for event in ["evt_2", "evt_3"] {
        assert_eq!(world.tell(&world.server.event(event, "charge.dispute.closed", &id)).await.unwrap(), Told::Done);
        let receipt = world.receipts().await.remove(0);
        let reversal = receipt.reversal.unwrap();
        assert_eq!((reversal.at, reversal.amount), (at("2026-03-20T06:00:00Z"), receipt.amount), "{event}");
    }
    assert_eq!(published(&world).await, ["payment.disputed", "payment.dispute_closed", "payment.reversed"]);
    world.change_card("pm_card_mastercard").await;
    for day in ["2026-03-21", "2026-04-10", "2026-04-11"] {
        world.run(&format!("{day}T06:00:00Z")).await;
    }
    let charged: Vec<_> = world.server.intents().iter().map(|made| made.metadata["dueday_due_date"].clone()).collect();
    assert_eq!(charged, ["2026-03-10", "2026-04-10"], "March is paid for the batch, and a person collects it");
    assert!(world.receipts().await[0].reversal.is_none(), "April's receipt");
}

#[tokio::test]
async fn debit_that_is_taken_back_is_reversed_and_its_account_is_not_debited_again() {
    let world = World::new("pm_usBankAccount_success").await;
    world.run("2026-03-10T06:00:00Z").await;
    world.system.clock.set(at("2026-03-12T07:00:00Z"));
    world.tell(&world.server.event("evt_1", "payment_intent.succeeded", "pi_000001")).await.unwrap();
    let id = world.server.take_back("pi_000001", "insufficient_funds");
    world.tell(&world.server.event("evt_2", "charge.dispute.created", &id)).await.unwrap();
    assert!(world.receipts().await[0].reversal.is_some());
    assert_eq!(world.server.intents()[0].status, "succeeded", "the gateway lists it as before");
    assert_eq!(world.run("2026-04-10T06:00:00Z").await, [("disputed", 1)]);
    assert_eq!(world.server.intents().len(), 1);
}

#[tokio::test]
async fn debit_that_is_taken_back_before_its_success_is_settled_gets_its_mark() {
    let world = World::new("pm_usBankAccount_success").await;
    world.run("2026-03-10T06:00:00Z").await;
    // Nobody reported the success, and a worker may still hold the attempt.
    world.system.clock.set(at("2026-03-12T07:00:00Z"));
    let id = world.server.take_back("pi_000001", "insufficient_funds");
    assert_eq!(world.run("2026-03-12T07:00:00Z").await, [("paid", 1)], "the run settles it without knowing");
    assert!(world.receipts().await[0].reversal.is_none());
    world.tell(&world.server.event("evt_1", "charge.dispute.closed", &id)).await.unwrap();
    assert!(world.receipts().await[0].reversal.is_some());

    let world = World::new("pm_usBankAccount_success").await;
    world.run("2026-03-10T06:00:00Z").await;
    world.system.clock.set(at("2026-03-12T07:00:00Z"));
    let id = world.server.take_back("pi_000001", "insufficient_funds");
    world.tell(&world.server.event("evt_1", "charge.dispute.closed", &id)).await.unwrap();
    assert!(world.receipts().await[0].reversal.is_some(), "the event of the dispute settles the attempt first");
    assert!(world.stored().await.attempt.is_none() && world.stored().await.disputed_at.is_some());
}

#[tokio::test]
async fn dispute_of_an_attempt_that_a_worker_holds_is_delivered_again() {
    let world = World::new("pm_card_visa").await;
    world.server.next([None, Some(emulator::StripeFault::LostAfter)]);
    assert_eq!(world.run("2026-03-10T06:00:00Z").await, [("in_doubt", 1)]);
    let id = world.server.dispute("pi_000001", "lost");
    let event = world.server.event("evt_1", "charge.dispute.closed", &id);
    assert!(matches!(world.tell(&event).await.unwrap_err(), ToldError::Held { .. }));
    assert!(world.stored().await.disputed_at.is_some(), "no subscription is charged with it meanwhile");
    world.system.clock.set(at("2026-03-10T08:00:00Z"));
    assert_eq!(world.tell(&event).await.unwrap(), Told::Done);
    assert!(world.receipts().await[0].reversal.is_some());
}

#[tokio::test]
async fn debit_that_fails_after_it_succeeded_is_reversed() {
    for (kind, of) in [("payment_intent.payment_failed", "pi_000001"), ("charge.failed", "ch_000001")] {
        let world = World::new("pm_usBankAccount_success").await;
        world.run("2026-03-10T06:00:00Z").await;
        world.system.clock.set(at("2026-03-12T07:00:00Z"));
        world.tell(&world.server.event("evt_1", "payment_intent.succeeded", "pi_000001")).await.unwrap();
        world.server.fail_after_success("pi_000001", "insufficient_funds");
        for event in ["evt_2", "evt_3"] {
            assert_eq!(world.tell(&world.server.event(event, kind, of)).await.unwrap(), Told::Done, "{kind}");
            let reversal = world.receipts().await[0].reversal.unwrap();
            assert_eq!(reversal.at, at("2026-03-12T07:00:00Z"), "{kind}");
            let stored = world.table().get_disputes_by_account(&world.gold.account).await.unwrap();
            let stored: Vec<_> = stored.iter().map(|one| (one.status, one.reason.as_str(), one.version)).collect();
            assert_eq!(stored, [(DisputeStatus::Returned, "insufficient_funds", 1)], "{kind}");
        }
        assert_eq!(published(&world).await, ["payment.reversed"], "{kind}");
        assert_eq!(world.stored().await.due_on.to_string(), "2026-04-10", "March is not owed again");
        assert_eq!(found(&world).await, [] as [&str; 0], "{kind}");
        assert_eq!(world.run("2026-04-10T06:00:00Z").await, [("disputed", 1)]);
        assert_eq!(world.server.intents().len(), 1, "{kind}");
    }
}

#[tokio::test]
async fn bank_that_decides_anew_takes_the_mark_off_the_receipt() {
    let world = World::new("pm_card_visa").await;
    world.run("2026-03-10T06:00:00Z").await;
    let id = world.server.dispute("pi_000001", "lost");
    world.tell(&world.server.event("evt_1", "charge.dispute.closed", &id)).await.unwrap();
    let (account, disputes) = (world.gold.account.clone(), world.disputes());
    let mut stored = world.table().get_disputes_by_account(&account).await.unwrap().remove(0);
    stored.status = DisputeStatus::Won;
    disputes.keep::<store::TableError>(&account, &id, async { Ok(stored) }).await.unwrap();
    assert_eq!(world.receipts().await[0].reversal, None);
    assert_eq!(world.stored().await.disputed_at, None);
}

fn judge(world: &World) -> Judge {
    let now = world.system.clock.now();
    let (records_kept, lease) = (TimeDelta::days(190), TimeDelta::minutes(20));
    Judge { shards: 1, today: now.date_naive(), now, records_kept, retry_days: 7, lease }
}

/// What the audit finds in the account alone.
pub async fn found_in_table(world: &World) -> Vec<String> {
    let partition = world.table().partitions().next().await.unwrap().unwrap();
    let broken = judge(world).judge(&partition).into_iter();
    broken.map(|broken| format!("{}: {}", broken.invariant, broken.what)).collect()
}

/// What the audit finds in the account and in the lists of the gateway.
pub async fn found(world: &World) -> Vec<String> {
    let judge = judge(world);
    let partition = world.table().partitions().next().await.unwrap().unwrap();
    let table = world.table().get_settings().await.unwrap().unwrap().table_id;
    let (mut reconciliation, mut broken) = Reconciliation::begin(world.stripe.clone(), judge, table).await.unwrap();
    broken.extend(judge.judge(&partition));
    broken.extend(reconciliation.compare(&partition).await.unwrap());
    broken.into_iter().map(|broken| format!("{}: {}", broken.invariant, broken.what)).collect()
}

#[tokio::test]
async fn reversal_is_shown_by_report_why_and_audit() {
    let world = World::new("pm_card_visa").await;
    world.run("2026-03-10T06:00:00Z").await;
    world.system.clock.set(at("2026-03-20T06:00:00Z"));
    let id = world.server.dispute("pi_000001", "lost");
    world.tell(&world.server.event("evt_1", "charge.dispute.closed", &id)).await.unwrap();
    let day = "2026-03-10".parse().unwrap();
    let reading = Reading { table: world.table(), shards: 1, zone: Tz::UTC, now: world.system.clock.now() };
    let taken = report(reading, day..=day).await.unwrap().days.remove(0).taken.remove(0);
    let price = world.gold.price;
    assert_eq!((taken.payments, taken.sum), (1, price), "the payment was made on that day");
    assert_eq!((taken.reversed_payments, taken.reversed_amount), (1, price.minor()));
    for (on, begin) in [("2026-03-10", "charged on 2026-03-10"), ("2026-03-15", "not charged on 2026-03-15")] {
        let of = (&world.gold.account, world.gold.id);
        let on = Some(on.parse().unwrap());
        let why = explain(world.table(), of, on, Tz::UTC, world.system.clock.now()).await.unwrap().unwrap().to_string();
        assert!(why.starts_with(begin) && why.contains("2026-03-20 we learned that the bank took"), "{why}");
    }
    assert_eq!(found(&world).await, [] as [&str; 0]);
    let receipt = world.receipts().await.remove(0);
    world.table().mark_reversal(&receipt, None).await.unwrap();
    let missing = found(&world).await;
    assert!(missing.len() == 1 && missing[0].starts_with("disputed: the bank took"), "{missing:?}");
    let listed =
        world.stripe.payments_of(&world.gold.payment_method.customer, at("2026-03-01T00:00:00Z")).await.unwrap();
    assert!(listed[0].status == PaymentStatus::Succeeded, "the list of the gateway does not show it");
}
