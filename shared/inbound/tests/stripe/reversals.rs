//! Tests of payments that the bank reversed: the receipt shows the reversal, and the batch never charges the period
//! again.

use audit::{InvariantChecker, Reconciliation, ReportSource, build_sales_report, explain_charge_on_day};
use billing::{DisputeStatus, ItemImage, PaymentStatus, events_between_images};
use chrono::{NaiveDate, TimeDelta};
use clock::Clock as _;
use gateways::PaymentGateway as _;
use inbound::{InboundError, InboundOutcome};

use crate::{World, at};

/// Returns the types of the events that would be published if the stored disputes had just been written.
async fn types_of_published_events(world: &World) -> Vec<String> {
    let stored = world.table().get_disputes_by_account(&world.gold.account).await.unwrap();
    let images = stored.into_iter().map(ItemImage::Dispute);
    let made = images.flat_map(|image| events_between_images(None, Some(&image), world.system.clock.now()));
    made.map(|event| event.data.event_type().to_string()).collect()
}

#[tokio::test]
async fn lost_dispute_marks_the_receipt_and_its_period_is_never_charged_again() {
    let world = World::new("pm_card_visa").await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    let id = world.server.set_dispute_status("pi_000001", "needs_response");
    world.send_event(&world.server.event_body("evt_1", "charge.dispute.created", &id)).await.unwrap();
    assert_eq!(world.receipts().await[0].reversal, None, "the bank has not decided");
    world.system.clock.set(at("2026-03-20T06:00:00Z"));
    world.server.set_dispute_status("pi_000001", "lost");
    for event in ["evt_2", "evt_3"] {
        assert_eq!(
            world.send_event(&world.server.event_body(event, "charge.dispute.closed", &id)).await.unwrap(),
            InboundOutcome::Processed
        );
        let receipt = world.receipts().await.remove(0);
        let reversal = receipt.reversal.unwrap();
        assert_eq!((reversal.at, reversal.amount), (at("2026-03-20T06:00:00Z"), receipt.amount), "{event}");
    }
    assert_eq!(
        types_of_published_events(&world).await,
        ["payment.disputed", "payment.dispute_closed", "payment.reversed"]
    );
    world.change_card("pm_card_mastercard").await;
    for day in ["2026-03-21", "2026-04-10", "2026-04-11"] {
        world.run_payments(&format!("{day}T06:00:00Z")).await;
    }
    let charged: Vec<_> = world.server.intents().iter().map(|made| made.metadata["dueday_due_date"].clone()).collect();
    assert_eq!(
        charged,
        ["2026-03-10", "2026-04-10"],
        "March counts as paid for the batch; a person must collect the money"
    );
    assert!(world.receipts().await[0].reversal.is_none(), "the receipt of April");
}

#[tokio::test]
async fn disputed_debit_is_reversed_and_bank_account_is_not_debited_again() {
    let world = World::new("pm_usBankAccount_success").await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    world.system.clock.set(at("2026-03-12T07:00:00Z"));
    world.send_event(&world.server.event_body("evt_1", "payment_intent.succeeded", "pi_000001")).await.unwrap();
    let id = world.server.reverse_bank_debit("pi_000001", "insufficient_funds");
    world.send_event(&world.server.event_body("evt_2", "charge.dispute.created", &id)).await.unwrap();
    assert!(world.receipts().await[0].reversal.is_some());
    assert_eq!(world.server.intents()[0].status, "succeeded", "the gateway still lists the payment as succeeded");
    assert_eq!(world.run_payments("2026-04-10T06:00:00Z").await, [("disputed", 1)]);
    assert_eq!(world.server.intents().len(), 1);
}

#[tokio::test]
async fn debit_disputed_before_its_settlement_is_reversed() {
    let world = World::new("pm_usBankAccount_success").await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    // The debit succeeded before this time, but the test sends no event about the success.
    world.system.clock.set(at("2026-03-12T07:00:00Z"));
    let id = world.server.reverse_bank_debit("pi_000001", "insufficient_funds");
    assert_eq!(
        world.run_payments("2026-03-12T07:00:00Z").await,
        [("paid", 1)],
        "the run settles the payment without information about the dispute"
    );
    assert!(world.receipts().await[0].reversal.is_none());
    world.send_event(&world.server.event_body("evt_1", "charge.dispute.closed", &id)).await.unwrap();
    assert!(world.receipts().await[0].reversal.is_some());

    let world = World::new("pm_usBankAccount_success").await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    world.system.clock.set(at("2026-03-12T07:00:00Z"));
    let id = world.server.reverse_bank_debit("pi_000001", "insufficient_funds");
    world.send_event(&world.server.event_body("evt_1", "charge.dispute.closed", &id)).await.unwrap();
    assert!(world.receipts().await[0].reversal.is_some(), "the event of the dispute settles the attempt first");
    assert!(
        world.stored_subscription().await.attempt.is_none() && world.stored_subscription().await.disputed_at.is_some()
    );
}

#[tokio::test]
async fn event_of_a_dispute_is_refused_while_the_attempt_is_leased() {
    let world = World::new("pm_card_visa").await;
    world.server.set_next_faults([None, Some(emulator::StripeFault::LostAfter)]);
    assert_eq!(world.run_payments("2026-03-10T06:00:00Z").await, [("in_doubt", 1)]);
    let id = world.server.set_dispute_status("pi_000001", "lost");
    let event = world.server.event_body("evt_1", "charge.dispute.closed", &id);
    assert!(matches!(world.send_event(&event).await.unwrap_err(), InboundError::AttemptLeased { .. }));
    assert!(world.stored_subscription().await.disputed_at.is_some(), "the card is not charged in the meantime");
    world.system.clock.set(at("2026-03-10T08:00:00Z"));
    assert_eq!(world.send_event(&event).await.unwrap(), InboundOutcome::Processed);
    assert!(world.receipts().await[0].reversal.is_some());
}

#[tokio::test]
async fn debit_that_fails_after_it_succeeded_is_reversed() {
    // The columns are: the type of the event, and the id of its object.
    for (kind, of) in [("payment_intent.payment_failed", "pi_000001"), ("charge.failed", "ch_000001")] {
        let world = World::new("pm_usBankAccount_success").await;
        world.run_payments("2026-03-10T06:00:00Z").await;
        world.system.clock.set(at("2026-03-12T07:00:00Z"));
        world.send_event(&world.server.event_body("evt_1", "payment_intent.succeeded", "pi_000001")).await.unwrap();
        world.server.fail_debit_after_success("pi_000001", "insufficient_funds");
        for event in ["evt_2", "evt_3"] {
            assert_eq!(
                world.send_event(&world.server.event_body(event, kind, of)).await.unwrap(),
                InboundOutcome::Processed,
                "{kind}"
            );
            let reversal = world.receipts().await[0].reversal.unwrap();
            assert_eq!(reversal.at, at("2026-03-12T07:00:00Z"), "{kind}");
            let stored = world.table().get_disputes_by_account(&world.gold.account).await.unwrap();
            let stored: Vec<_> =
                stored.iter().map(|dispute| (dispute.status, dispute.reason.as_str(), dispute.version)).collect();
            assert_eq!(stored, [(DisputeStatus::Returned, "insufficient_funds", 1)], "{kind}");
        }
        assert_eq!(types_of_published_events(&world).await, ["payment.reversed"], "{kind}");
        assert_eq!(world.stored_subscription().await.due_on.to_string(), "2026-04-10", "March is not owed again");
        assert_eq!(violations(&world).await, [] as [&str; 0], "{kind}");
        assert_eq!(world.run_payments("2026-04-10T06:00:00Z").await, [("disputed", 1)]);
        assert_eq!(world.server.intents().len(), 1, "{kind}");
    }
}

#[tokio::test]
async fn later_won_dispute_removes_the_reversal_from_the_receipt() {
    let world = World::new("pm_card_visa").await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    let id = world.server.set_dispute_status("pi_000001", "lost");
    world.send_event(&world.server.event_body("evt_1", "charge.dispute.closed", &id)).await.unwrap();
    let (account, disputes) = (world.gold.account.clone(), world.disputes());
    let mut stored = world.table().get_disputes_by_account(&account).await.unwrap().remove(0);
    stored.status = DisputeStatus::Won;
    let now = world.system.clock.now();
    disputes.store_reported_dispute::<store::TableError>(&account, &id, async { Ok(stored) }, now).await.unwrap();
    assert_eq!(world.receipts().await[0].reversal, None);
    assert_eq!(world.stored_subscription().await.disputed_at, None);
}

/// Returns the checker that `dueday audit` would use at this time.
fn invariant_checker(world: &World) -> InvariantChecker {
    let now = world.system.clock.now();
    let records_kept = TimeDelta::days(190);
    InvariantChecker { shards: 1, today: now.date_naive(), now, records_kept, longest_gap: 2, lead: Default::default() }
}

/// Returns the violations that the audit finds in the table, without a comparison with the gateway's lists.
pub async fn violations_in_table(world: &World) -> Vec<String> {
    let partition = world.table().account_partitions().next().await.unwrap().unwrap();
    let broken = invariant_checker(world).check_account(&partition).into_iter();
    broken.map(|broken| format!("{}: {}", broken.invariant, broken.what)).collect()
}

/// Returns the violations that the audit finds in the table and in the gateway's lists.
pub async fn violations(world: &World) -> Vec<String> {
    let checker = invariant_checker(world);
    let partition = world.table().account_partitions().next().await.unwrap().unwrap();
    let table = world.table().get_settings().await.unwrap().unwrap().table_id;
    let (mut reconciliation, mut broken) = Reconciliation::begin(world.stripe.clone(), checker, table).await.unwrap();
    broken.extend(checker.check_account(&partition));
    broken.extend(reconciliation.compare_account(&partition).await.unwrap());
    broken.into_iter().map(|broken| format!("{}: {}", broken.invariant, broken.what)).collect()
}

#[tokio::test]
async fn report_why_and_audit_show_a_reversal() {
    let world = World::new("pm_card_visa").await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    world.system.clock.set(at("2026-03-20T06:00:00Z"));
    let id = world.server.set_dispute_status("pi_000001", "lost");
    world.send_event(&world.server.event_body("evt_1", "charge.dispute.closed", &id)).await.unwrap();
    let day = "2026-03-10".parse().unwrap();
    let settings = world.table().get_settings().await.unwrap().unwrap();
    let source = ReportSource { table: world.table(), settings: &settings, now: world.system.clock.now() };
    let sales =
        async |day: NaiveDate| build_sales_report(source, day..=day).await.unwrap().days.remove(0).taken.remove(0);
    let (price, paid, reversed) = (world.gold.price, sales(day).await, sales("2026-03-20".parse().unwrap()).await);
    assert_eq!((paid.payments, paid.sum, paid.reversals, paid.net_amount), (1, price, 0, price.minor()));
    assert_eq!((reversed.payments, reversed.reversals, reversed.reversed_amount), (0, 1, price.minor()));
    assert_eq!(reversed.net_amount, -price.minor(), "the figures of the day of the payment stay the same");
    for (on, begin) in [("2026-03-10", "charged on 2026-03-10"), ("2026-03-15", "not charged on 2026-03-15")] {
        let (gold, on) = (&world.gold, Some(on.parse().unwrap()));
        let why = explain_charge_on_day(world.table(), &gold.account, gold.id, on, world.system.clock.now()).await;
        let why = why.unwrap().unwrap().to_string();
        assert!(
            why.starts_with(begin) && why.contains("2026-03-20 the gateway reported that the bank reversed"),
            "{why}"
        );
    }
    assert_eq!(violations(&world).await, [] as [&str; 0]);
    let receipt = world.receipts().await.remove(0);
    world.table().mark_reversal(&receipt, None).await.unwrap();
    let missing = violations(&world).await;
    assert!(missing.len() == 1 && missing[0].starts_with("disputed: the bank reversed"), "{missing:?}");
    let listed = world
        .stripe
        .payments_of_customer(&world.gold.payment_method.customer, at("2026-03-01T00:00:00Z"))
        .await
        .unwrap();
    assert!(listed[0].status == PaymentStatus::Succeeded, "the gateway's list does not show the reversal");
}
