//! Tests of disputes: a disputed payment method is not charged, whatever the order in which the events arrive.

use billing::{Dispute, DisputeStatus, Subscription, SubscriptionStatus};
use clock::Clock as _;
use inbound::InboundOutcome;
use store::TableError;
use testkit::FAULTS_AT_EACH_CALL;

use crate::{World, at};

#[tokio::test]
async fn disputed_card_is_not_charged_until_the_dispute_is_won() {
    let world = World::new("pm_card_visa").await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    let id = world.server.set_dispute_status("pi_000001", "needs_response");
    let opened = world.server.event_body("evt_1", "charge.dispute.created", &id);
    assert_eq!(world.send_event(&opened).await.unwrap(), InboundOutcome::Processed);
    assert!(world.stored_subscription().await.disputed_at.is_some());
    assert_eq!(
        world.run_payments("2026-04-10T06:00:00Z").await,
        [("disputed", 1)],
        "April is owed, but is not charged"
    );
    world.server.set_dispute_status("pi_000001", "won");
    // An event about an earlier state of the dispute arrives late. The handler reads the dispute from Stripe again, and
    // so stores its current state.
    let late = world.server.event_body("evt_2", "charge.dispute.updated", &id);
    assert_eq!(world.send_event(&late).await.unwrap(), InboundOutcome::Processed);
    let disputes = world.table().get_disputes_by_account(&world.gold.account).await.unwrap();
    assert_eq!(disputes.iter().map(|dispute| dispute.status).collect::<Vec<_>>(), [DisputeStatus::Won]);
    assert_eq!(world.stored_subscription().await.disputed_at, None);
    assert_eq!(world.run_payments("2026-04-11T06:00:00Z").await, [("paid", 1)]);
}

#[tokio::test]
async fn lost_dispute_blocks_its_card_but_not_another_card() {
    let world = World::new("pm_card_visa").await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    let id = world.server.set_dispute_status("pi_000001", "lost");
    world.send_event(&world.server.event_body("evt_1", "charge.dispute.closed", &id)).await.unwrap();
    assert_eq!(world.run_payments("2026-04-10T06:00:00Z").await, [("disputed", 1)]);
    world.change_card("pm_card_mastercard").await;
    world.send_event(&world.server.event_body("evt_2", "charge.dispute.closed", &id)).await.unwrap();
    assert_eq!(world.run_payments("2026-04-10T09:00:00Z").await, [("paid", 1)], "the dispute concerns the old card");
}

#[tokio::test]
async fn concurrent_dispute_events_leave_the_mark_of_the_latest_states() {
    let world = World::new("pm_card_visa").await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    let (paid, disputes) = (world.receipts().await.remove(0), world.disputes());
    let dispute = |id: &str, status: DisputeStatus| Dispute {
        id: id.parse().unwrap(),
        account: paid.account.clone(),
        receipt: paid.id(),
        payment: paid.payment.clone(),
        payment_method: "pm_card_visa".parse().unwrap(),
        amount: paid.amount,
        reason: "fraudulent".to_owned(),
        status,
        opened_at: at("2026-03-11T00:00:00Z"),
        closed_at: None,
        version: 1,
    };
    let now = || world.system.clock.now();
    let store = async |id: &str, status: DisputeStatus| {
        disputes.store_reported_dispute::<TableError>(&paid.account, id, async { Ok(dispute(id, status)) }, now()).await
    };
    // This worker has read the dispute as open. Before it writes that state, another worker stores the dispute as won.
    let read = async {
        store("dp_1", DisputeStatus::Won).await?;
        Ok(dispute("dp_1", DisputeStatus::Open))
    };
    let slow = disputes.store_reported_dispute::<TableError>(&paid.account, "dp_1", read, now());
    assert!(slow.await.unwrap_err().is_transient(), "an older state does not replace a newer state");
    assert_eq!(world.stored_subscription().await.disputed_at, None);
    // One dispute is won while another dispute of the same card is open.
    store("dp_2", DisputeStatus::Open).await.unwrap();
    store("dp_1", DisputeStatus::Won).await.unwrap();
    assert!(world.stored_subscription().await.disputed_at.is_some());
    store("dp_2", DisputeStatus::Won).await.unwrap();
    assert_eq!(world.stored_subscription().await.disputed_at, None);
    // A bank can change its decision.
    store("dp_2", DisputeStatus::Lost).await.unwrap();
    assert!(world.stored_subscription().await.disputed_at.is_some());
    // An operator retries the payment despite the dispute. This decision stays in effect, even if another event reports
    // the same dispute.
    let now = at("2026-04-10T06:00:00Z");
    let retried =
        world.stored_subscription().await.retry_owed_payment(true, "2026-04-10".parse().unwrap(), now).unwrap();
    world.table().update_subscription(&world.stored_subscription().await, &retried).await.unwrap();
    store("dp_2", DisputeStatus::Lost).await.unwrap();
    assert_eq!(world.stored_subscription().await.disputed_at, None);
    assert_eq!(world.run_payments("2026-04-10T06:00:00Z").await, [("paid", 1)]);
}

#[tokio::test]
async fn inquiry_does_not_stop_charging_but_a_following_dispute_does() {
    let world = World::new("pm_card_visa").await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    let id = world.server.open_inquiry("pi_000001");
    world.send_event(&world.server.event_body("evt_1", "charge.dispute.created", &id)).await.unwrap();
    assert_eq!(world.stored_subscription().await.disputed_at, None);
    assert_eq!(world.run_payments("2026-04-10T06:00:00Z").await, [("paid", 1)], "the bank only asks");
    world.server.set_dispute_status("pi_000001", "needs_response");
    world.send_event(&world.server.event_body("evt_2", "charge.dispute.updated", &id)).await.unwrap();
    assert_eq!(
        world.stored_subscription().await.disputed_at,
        Some(at("2026-04-10T06:00:00Z")),
        "the inquiry became a dispute at this time"
    );
    assert_eq!(world.run_payments("2026-05-10T06:00:00Z").await, [("disputed", 1)]);
}

#[tokio::test]
async fn closed_inquiry_changes_nothing() {
    let world = World::new("pm_card_visa").await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    let before = world.stored_subscription().await;
    let id = world.server.set_dispute_status("pi_000001", "warning_needs_response");
    for (event, status) in
        [("evt_1", "warning_needs_response"), ("evt_2", "warning_under_review"), ("evt_3", "warning_closed")]
    {
        world.server.set_dispute_status("pi_000001", status);
        world.send_event(&world.server.event_body(event, "charge.dispute.updated", &id)).await.unwrap();
        assert_eq!(world.stored_subscription().await, before, "{status}");
    }
    assert_eq!(world.run_payments("2026-04-10T06:00:00Z").await, [("paid", 1)]);
}

#[tokio::test]
async fn won_dispute_waives_the_months_of_its_duration() {
    let world = World::new("pm_card_visa").await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    let id = world.server.set_dispute_status("pi_000001", "needs_response");
    world.send_event(&world.server.event_body("evt_1", "charge.dispute.created", &id)).await.unwrap();
    for day in ["2026-04-10", "2026-05-08", "2026-05-10", "2026-06-01"] {
        assert_eq!(world.run_payments(&format!("{day}T06:00:00Z")).await, [("disputed", 1)], "{day}");
        assert_eq!(world.stored_subscription().await.status, SubscriptionStatus::Active, "{day}");
    }
    world.server.set_dispute_status("pi_000001", "won");
    world.send_event(&world.server.event_body("evt_2", "charge.dispute.closed", &id)).await.unwrap();
    let stored = world.stored_subscription().await;
    assert_eq!((stored.status, stored.due_on.to_string()), (SubscriptionStatus::Active, "2026-06-10".to_owned()));
    assert_eq!(world.waived_periods().await, ["2026-04-10 disputed", "2026-05-10 disputed"]);
    assert_eq!(world.run_payments("2026-06-02T06:00:00Z").await, []);
    assert_eq!(world.run_payments("2026-06-10T06:00:00Z").await, [("paid", 1)]);
    assert_eq!(world.waived_periods().await.len(), 2);
}

#[tokio::test]
async fn dispute_that_is_won_on_a_due_date_leaves_it_owed_even_if_midnight_passes() {
    let mut call = 1;
    loop {
        let world = World::new("pm_card_visa").await;
        world.run_payments("2026-03-10T06:00:00Z").await;
        let id = world.server.set_dispute_status("pi_000001", "needs_response");
        world.send_event(&world.server.event_body("evt_1", "charge.dispute.created", &id)).await.unwrap();
        world.system.clock.set(at("2026-04-10T23:59:59Z"));
        world.server.set_dispute_status("pi_000001", "won");
        let won = world.server.event_body("evt_2", "charge.dispute.closed", &id);
        if !world.send_event_and_pass_time(&won, call, "2026-04-11T00:00:01Z").await {
            break;
        }
        assert_eq!(world.stored_subscription().await.due_on.to_string(), "2026-04-10", "midnight during call {call}");
        assert!(world.waived_periods().await.is_empty(), "midnight during call {call}");
        call += 1;
    }
    assert!(call > 5, "the event needs several requests");
}

#[tokio::test]
async fn won_dispute_leaves_months_owed_if_so_configured() {
    // The columns are: the catch-up policy, the due date after the dispute, and the number of waived months.
    for (catch_up, due_on, waived) in [("each", "2026-04-10", 0), ("latest", "2026-05-10", 1)] {
        let settings = [("DUEDAY_AFTER_WON_DISPUTE", "charge"), ("DUEDAY_CATCH_UP", catch_up)];
        let world = World::with_settings("pm_card_visa", &settings).await;
        world.run_payments("2026-03-10T06:00:00Z").await;
        let id = world.server.set_dispute_status("pi_000001", "needs_response");
        world.send_event(&world.server.event_body("evt_1", "charge.dispute.created", &id)).await.unwrap();
        assert_eq!(world.run_payments("2026-05-20T06:00:00Z").await, [("disputed", 1)]);
        world.server.set_dispute_status("pi_000001", "won");
        world.send_event(&world.server.event_body("evt_2", "charge.dispute.closed", &id)).await.unwrap();
        assert_eq!(world.stored_subscription().await.due_on.to_string(), due_on, "{catch_up}");
        assert_eq!(world.waived_periods().await.len(), waived, "{catch_up}");
        assert_eq!(world.run_payments("2026-05-21T06:00:00Z").await, [("paid", 1)]);
        world.run_payments("2026-05-22T06:00:00Z").await;
        let paid: Vec<String> = world.receipts().await.iter().map(|receipt| receipt.due_on.to_string()).collect();
        let expected: &[&str] =
            if waived == 0 { &["2026-05-10", "2026-04-10", "2026-03-10"] } else { &["2026-05-10", "2026-03-10"] };
        assert_eq!(paid, expected, "{catch_up}");
    }
}

#[tokio::test]
async fn debt_from_before_a_dispute_stays_owed_when_it_is_won() {
    let world = World::new("pm_card_visa").await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    world.change_card("pm_card_visa_chargeDeclinedInsufficientFunds").await;
    assert_eq!(world.run_payments("2026-04-10T06:00:00Z").await, [("declined", 1)]);
    let declined = world.stored_subscription().await;
    let (paid, disputes) = (world.receipts().await.remove(0), world.disputes());
    let dispute = |status: DisputeStatus| Dispute {
        id: "dp_1".parse().unwrap(),
        account: paid.account.clone(),
        receipt: paid.id(),
        payment: paid.payment.clone(),
        payment_method: declined.payment_method.payment_method.clone(),
        amount: paid.amount,
        reason: "fraudulent".to_owned(),
        status,
        opened_at: at("2026-04-11T00:00:00Z"),
        closed_at: None,
        version: 1,
    };
    let store = async |status: DisputeStatus| {
        let (read, now) = (async { Ok(dispute(status)) }, world.system.clock.now());
        disputes.store_reported_dispute::<TableError>(&paid.account, "dp_1", read, now).await
    };
    store(DisputeStatus::Open).await.unwrap();
    assert_eq!(world.run_payments("2026-06-20T06:00:00Z").await, [("disputed", 1)]);
    store(DisputeStatus::Won).await.unwrap();
    let stored = world.stored_subscription().await;
    assert_eq!((stored.due_on, stored.failed_attempts), (declined.due_on, 0), "April was owed before the dispute");
    assert_eq!(stored.next_payment_on, Some("2026-06-20".parse().unwrap()));
    assert_eq!(world.run_payments("2026-06-20T09:00:00Z").await, [("declined", 1)]);
    assert_eq!(world.stored_subscription().await.status, SubscriptionStatus::PastDue, "the retries start again");
    world.change_card("pm_card_mastercard").await;
    assert_eq!(world.run_payments("2026-06-21T06:00:00Z").await, [("paid", 1)]);
    assert_eq!(world.stored_subscription().await.due_on.to_string(), "2026-07-10");
    assert_eq!(world.waived_periods().await, ["2026-05-10 unpaid", "2026-06-10 unpaid"]);
}

#[tokio::test]
async fn subscription_set_unpaid_by_earlier_version_is_charged_again_after_won_dispute() {
    let world = World::new("pm_card_visa").await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    let id = world.server.set_dispute_status("pi_000001", "needs_response");
    world.send_event(&world.server.event_body("evt_1", "charge.dispute.created", &id)).await.unwrap();
    let stored = world.stored_subscription().await;
    let given_up = Subscription {
        status: SubscriptionStatus::Unpaid,
        unpaid_since: Some("2026-05-08".parse().unwrap()),
        next_payment_on: None,
        next_reminder_on: None,
        ..stored.clone()
    };
    world.table().update_subscription(&stored, &given_up).await.unwrap();
    world.system.clock.set(at("2026-06-01T06:00:00Z"));
    world.server.set_dispute_status("pi_000001", "won");
    world.send_event(&world.server.event_body("evt_2", "charge.dispute.closed", &id)).await.unwrap();
    assert_eq!(world.stored_subscription().await.status, SubscriptionStatus::Active);
    assert_eq!(world.waived_periods().await, ["2026-04-10 disputed", "2026-05-10 disputed"]);
    assert_eq!(world.run_payments("2026-06-10T06:00:00Z").await, [("paid", 1)]);
}

#[tokio::test]
async fn scheduled_cancellation_takes_effect_when_dispute_is_won() {
    let world = World::new("pm_card_visa").await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    let id = world.server.set_dispute_status("pi_000001", "needs_response");
    world.send_event(&world.server.event_body("evt_1", "charge.dispute.created", &id)).await.unwrap();
    let stored = world.stored_subscription().await;
    let ending = Subscription { cancel_from: Some("2026-05".parse().unwrap()), ..stored.clone() };
    world.table().update_subscription(&stored, &ending).await.unwrap();
    assert_eq!(world.run_payments("2026-06-20T06:00:00Z").await, [("disputed", 1)]);
    world.server.set_dispute_status("pi_000001", "won");
    world.send_event(&world.server.event_body("evt_2", "charge.dispute.closed", &id)).await.unwrap();
    world.run_payments("2026-06-21T06:00:00Z").await;
    let stored = world.stored_subscription().await;
    assert_eq!((stored.status, stored.due_on.to_string()), (SubscriptionStatus::Cancelled, "2026-05-10".to_owned()));
    assert_eq!(world.waived_periods().await, ["2026-04-10 disputed"]);
}

#[tokio::test]
async fn subscription_is_unpaid_28_days_after_lost_dispute_but_never_during_open_dispute() {
    let world = World::new("pm_card_visa").await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    let id = world.server.set_dispute_status("pi_000001", "needs_response");
    world.send_event(&world.server.event_body("evt_1", "charge.dispute.created", &id)).await.unwrap();
    assert_eq!(world.run_payments("2026-06-01T06:00:00Z").await, [("disputed", 1)]);
    world.server.set_dispute_status("pi_000001", "lost");
    world.send_event(&world.server.event_body("evt_2", "charge.dispute.closed", &id)).await.unwrap();
    for (day, status) in [("2026-06-28", SubscriptionStatus::Active), ("2026-06-29", SubscriptionStatus::Unpaid)] {
        assert_eq!(world.run_payments(&format!("{day}T06:00:00Z")).await, [("disputed", 1)], "{day}");
        assert_eq!(world.stored_subscription().await.status, status, "{day}");
    }
    assert_eq!(
        world.run_payments("2026-06-30T06:00:00Z").await,
        [],
        "the subscription is charged only after a new payment method"
    );
}

#[tokio::test]
async fn crash_at_any_call_of_a_won_dispute_waives_each_month_once() {
    for fault in FAULTS_AT_EACH_CALL {
        let mut calls = 1;
        loop {
            let story = format!("{fault:?} of call {calls}");
            let world = World::new("pm_card_visa").await;
            world.run_payments("2026-03-10T06:00:00Z").await;
            let id = world.server.set_dispute_status("pi_000001", "needs_response");
            world.send_event(&world.server.event_body("evt_1", "charge.dispute.created", &id)).await.unwrap();
            world.run_payments("2026-05-20T06:00:00Z").await;
            world.server.set_dispute_status("pi_000001", "won");
            let event = world.server.event_body("evt_2", "charge.dispute.closed", &id);
            if world.send_event_with_fault(&event, calls, fault).await < calls {
                break;
            }
            world.send_event(&event).await.unwrap_or_else(|error| panic!("{story}: {error}"));
            let stored = world.stored_subscription().await;
            assert_eq!((stored.disputed_at, stored.due_on.to_string()), (None, "2026-06-10".to_owned()), "{story}");
            assert_eq!(world.waived_periods().await, ["2026-04-10 disputed", "2026-05-10 disputed"], "{story}");
            calls += 1;
        }
        assert!(calls > 5, "{fault:?}: {calls} calls");
    }
}
