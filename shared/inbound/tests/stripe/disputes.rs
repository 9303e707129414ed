//! Disputes: what is disputed is not charged, in whichever order it is told.

use std::sync::Arc;

use billing::{Dispute, DisputeStatus, Status, Subscription};
use clock::Clock as _;
use emulator::{Fault, Injector, Wire};
use gateways::SigningSecrets;
use inbound::Told;
use store::TableError;
use testkit::nth;

use crate::{SECRET, World, at};

#[tokio::test]
async fn disputed_card_is_not_charged_until_the_dispute_is_won() {
    let world = World::new("pm_card_visa").await;
    world.run("2026-03-10T06:00:00Z").await;
    let id = world.server.dispute("pi_000001", "needs_response");
    let opened = world.server.event("evt_1", "charge.dispute.created", &id);
    assert_eq!(world.tell(&opened).await.unwrap(), Told::Done);
    assert!(world.stored().await.disputed_at.is_some());
    assert_eq!(world.run("2026-04-10T06:00:00Z").await, [("disputed", 1)], "it is owed, and not charged");
    world.server.dispute("pi_000001", "won");
    // An event of before, told late, says what is so now.
    let late = world.server.event("evt_2", "charge.dispute.updated", &id);
    assert_eq!(world.tell(&late).await.unwrap(), Told::Done);
    let disputes = world.table().get_disputes_by_account(&world.gold.account).await.unwrap();
    assert_eq!(disputes.iter().map(|dispute| dispute.status).collect::<Vec<_>>(), [DisputeStatus::Won]);
    assert_eq!(world.stored().await.disputed_at, None);
    assert_eq!(world.run("2026-04-11T06:00:00Z").await, [("paid", 1)]);
}

#[tokio::test]
async fn lost_dispute_keeps_its_card_from_being_charged_and_another_card_is() {
    let world = World::new("pm_card_visa").await;
    world.run("2026-03-10T06:00:00Z").await;
    let id = world.server.dispute("pi_000001", "lost");
    world.tell(&world.server.event("evt_1", "charge.dispute.closed", &id)).await.unwrap();
    assert_eq!(world.run("2026-04-10T06:00:00Z").await, [("disputed", 1)]);
    world.change_card("pm_card_mastercard").await;
    world.tell(&world.server.event("evt_2", "charge.dispute.closed", &id)).await.unwrap();
    assert_eq!(world.run("2026-04-10T09:00:00Z").await, [("paid", 1)], "the dispute is of the old card");
}

#[tokio::test]
async fn disputes_that_are_told_at_the_same_time_leave_the_right_mark() {
    let world = World::new("pm_card_visa").await;
    world.run("2026-03-10T06:00:00Z").await;
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
    let keep = async |id: &str, status: DisputeStatus| {
        disputes.keep::<TableError>(&paid.account, id, async { Ok(dispute(id, status)) }).await
    };
    // It is won and told so while another one, which has read it open, has not written that yet.
    let slow = disputes.keep::<TableError>(&paid.account, "dp_1", async {
        keep("dp_1", DisputeStatus::Won).await?;
        Ok(dispute("dp_1", DisputeStatus::Open))
    });
    assert!(slow.await.unwrap_err().is_transient(), "what is older is not written over what is newer");
    assert_eq!(world.stored().await.disputed_at, None);
    // One is won while another one of the same card is opened.
    keep("dp_2", DisputeStatus::Open).await.unwrap();
    keep("dp_1", DisputeStatus::Won).await.unwrap();
    assert!(world.stored().await.disputed_at.is_some());
    keep("dp_2", DisputeStatus::Won).await.unwrap();
    assert_eq!(world.stored().await.disputed_at, None);
    // A bank may decide anew.
    keep("dp_2", DisputeStatus::Lost).await.unwrap();
    assert!(world.stored().await.disputed_at.is_some());
    // What a person has decided since stays, whatever is told of the same dispute again.
    let now = at("2026-04-10T06:00:00Z");
    let retried = world.stored().await.retry(true, "2026-04-10".parse().unwrap(), now).unwrap();
    world.table().update_subscription(&world.stored().await, &retried).await.unwrap();
    keep("dp_2", DisputeStatus::Lost).await.unwrap();
    assert_eq!(world.stored().await.disputed_at, None);
    assert_eq!(world.run("2026-04-10T06:00:00Z").await, [("paid", 1)]);
}

#[tokio::test]
async fn inquiry_does_not_stop_charging_and_a_dispute_that_follows_it_does() {
    let world = World::new("pm_card_visa").await;
    world.run("2026-03-10T06:00:00Z").await;
    let id = world.server.inquire("pi_000001");
    world.tell(&world.server.event("evt_1", "charge.dispute.created", &id)).await.unwrap();
    assert_eq!(world.stored().await.disputed_at, None);
    assert_eq!(world.run("2026-04-10T06:00:00Z").await, [("paid", 1)], "the bank only asks");
    world.server.dispute("pi_000001", "needs_response");
    world.tell(&world.server.event("evt_2", "charge.dispute.updated", &id)).await.unwrap();
    assert_eq!(world.stored().await.disputed_at, Some(at("2026-04-10T06:00:00Z")), "since it is a dispute");
    assert_eq!(world.run("2026-05-10T06:00:00Z").await, [("disputed", 1)]);
}

#[tokio::test]
async fn inquiry_that_comes_to_nothing_changes_nothing() {
    let world = World::new("pm_card_visa").await;
    world.run("2026-03-10T06:00:00Z").await;
    let before = world.stored().await;
    let id = world.server.dispute("pi_000001", "warning_needs_response");
    for (event, status) in
        [("evt_1", "warning_needs_response"), ("evt_2", "warning_under_review"), ("evt_3", "warning_closed")]
    {
        world.server.dispute("pi_000001", status);
        world.tell(&world.server.event(event, "charge.dispute.updated", &id)).await.unwrap();
        assert_eq!(world.stored().await, before, "{status}");
    }
    assert_eq!(world.run("2026-04-10T06:00:00Z").await, [("paid", 1)]);
}

#[tokio::test]
async fn dispute_may_last_three_months_and_the_months_in_between_are_waived_when_it_is_won() {
    let world = World::new("pm_card_visa").await;
    world.run("2026-03-10T06:00:00Z").await;
    let id = world.server.dispute("pi_000001", "needs_response");
    world.tell(&world.server.event("evt_1", "charge.dispute.created", &id)).await.unwrap();
    for day in ["2026-04-10", "2026-05-08", "2026-05-10", "2026-06-01"] {
        assert_eq!(world.run(&format!("{day}T06:00:00Z")).await, [("disputed", 1)], "{day}");
        assert_eq!(world.stored().await.status, Status::Active, "{day}");
    }
    world.server.dispute("pi_000001", "won");
    world.tell(&world.server.event("evt_2", "charge.dispute.closed", &id)).await.unwrap();
    let stored = world.stored().await;
    assert_eq!((stored.status, stored.due_on.to_string()), (Status::Active, "2026-06-10".to_owned()));
    assert_eq!(world.waived().await, ["2026-04-10 disputed", "2026-05-10 disputed"]);
    assert_eq!(world.run("2026-06-02T06:00:00Z").await, []);
    assert_eq!(world.run("2026-06-10T06:00:00Z").await, [("paid", 1)]);
    assert_eq!(world.waived().await.len(), 2);
}
#[tokio::test]
async fn won_dispute_leaves_the_months_in_between_owed_where_that_is_set() {
    for (catch_up, due_on, waived) in [("each", "2026-04-10", 0), ("latest", "2026-05-10", 1)] {
        let settings = [("DUEDAY_AFTER_WON_DISPUTE", "charge"), ("DUEDAY_CATCH_UP", catch_up)];
        let world = World::with("pm_card_visa", &settings).await;
        world.run("2026-03-10T06:00:00Z").await;
        let id = world.server.dispute("pi_000001", "needs_response");
        world.tell(&world.server.event("evt_1", "charge.dispute.created", &id)).await.unwrap();
        assert_eq!(world.run("2026-05-20T06:00:00Z").await, [("disputed", 1)]);
        world.server.dispute("pi_000001", "won");
        world.tell(&world.server.event("evt_2", "charge.dispute.closed", &id)).await.unwrap();
        assert_eq!(world.stored().await.due_on.to_string(), due_on, "{catch_up}");
        assert_eq!(world.waived().await.len(), waived, "{catch_up}");
        assert_eq!(world.run("2026-05-21T06:00:00Z").await, [("paid", 1)]);
        world.run("2026-05-22T06:00:00Z").await;
        let paid: Vec<String> = world.receipts().await.iter().map(|receipt| receipt.due_on.to_string()).collect();
        let expected: &[&str] =
            if waived == 0 { &["2026-05-10", "2026-04-10", "2026-03-10"] } else { &["2026-05-10", "2026-03-10"] };
        assert_eq!(paid, expected, "{catch_up}");
    }
}

#[tokio::test]
async fn debt_from_before_a_dispute_stays_owed_when_it_is_won() {
    let world = World::new("pm_card_visa").await;
    world.run("2026-03-10T06:00:00Z").await;
    world.change_card("pm_card_visa_chargeDeclinedInsufficientFunds").await;
    assert_eq!(world.run("2026-04-10T06:00:00Z").await, [("declined", 1)]);
    let declined = world.stored().await;
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
    disputes.keep::<TableError>(&paid.account, "dp_1", async { Ok(dispute(DisputeStatus::Open)) }).await.unwrap();
    assert_eq!(world.run("2026-06-20T06:00:00Z").await, [("disputed", 1)]);
    disputes.keep::<TableError>(&paid.account, "dp_1", async { Ok(dispute(DisputeStatus::Won)) }).await.unwrap();
    let stored = world.stored().await;
    assert_eq!((stored.due_on, stored.failed_attempts), (declined.due_on, 0), "April was owed before");
    assert_eq!(stored.next_payment_on, Some("2026-06-20".parse().unwrap()));
    assert_eq!(world.run("2026-06-20T09:00:00Z").await, [("declined", 1)]);
    assert_eq!(world.stored().await.status, Status::PastDue, "it has retries of its own");
    world.change_card("pm_card_mastercard").await;
    assert_eq!(world.run("2026-06-21T06:00:00Z").await, [("paid", 1)]);
    assert_eq!(world.stored().await.due_on.to_string(), "2026-07-10");
    assert_eq!(world.waived().await, ["2026-05-10 unpaid", "2026-06-10 unpaid"]);
}

#[tokio::test]
async fn subscription_that_an_earlier_version_gave_up_in_a_dispute_is_charged_again_when_it_is_won() {
    let world = World::new("pm_card_visa").await;
    world.run("2026-03-10T06:00:00Z").await;
    let id = world.server.dispute("pi_000001", "needs_response");
    world.tell(&world.server.event("evt_1", "charge.dispute.created", &id)).await.unwrap();
    let stored = world.stored().await;
    let given_up = Subscription {
        status: Status::Unpaid,
        unpaid_since: Some("2026-05-08".parse().unwrap()),
        next_payment_on: None,
        next_reminder_on: None,
        ..stored.clone()
    };
    world.table().update_subscription(&stored, &given_up).await.unwrap();
    world.system.clock.set(at("2026-06-01T06:00:00Z"));
    world.server.dispute("pi_000001", "won");
    world.tell(&world.server.event("evt_2", "charge.dispute.closed", &id)).await.unwrap();
    assert_eq!(world.stored().await.status, Status::Active);
    assert_eq!(world.waived().await, ["2026-04-10 disputed", "2026-05-10 disputed"]);
    assert_eq!(world.run("2026-06-10T06:00:00Z").await, [("paid", 1)]);
}

#[tokio::test]
async fn subscription_that_was_to_end_ends_when_its_dispute_is_won() {
    let world = World::new("pm_card_visa").await;
    world.run("2026-03-10T06:00:00Z").await;
    let id = world.server.dispute("pi_000001", "needs_response");
    world.tell(&world.server.event("evt_1", "charge.dispute.created", &id)).await.unwrap();
    let stored = world.stored().await;
    let ending = Subscription { cancel_from: Some("2026-05".parse().unwrap()), ..stored.clone() };
    world.table().update_subscription(&stored, &ending).await.unwrap();
    assert_eq!(world.run("2026-06-20T06:00:00Z").await, [("disputed", 1)]);
    world.server.dispute("pi_000001", "won");
    world.tell(&world.server.event("evt_2", "charge.dispute.closed", &id)).await.unwrap();
    world.run("2026-06-21T06:00:00Z").await;
    let stored = world.stored().await;
    assert_eq!((stored.status, stored.due_on.to_string()), (Status::Cancelled, "2026-05-10".to_owned()));
    assert_eq!(world.waived().await, ["2026-04-10 disputed"]);
}

#[tokio::test]
async fn debt_of_a_lost_dispute_is_given_up_28_days_after_the_loss_and_of_an_open_one_never() {
    let world = World::new("pm_card_visa").await;
    world.run("2026-03-10T06:00:00Z").await;
    let id = world.server.dispute("pi_000001", "needs_response");
    world.tell(&world.server.event("evt_1", "charge.dispute.created", &id)).await.unwrap();
    assert_eq!(world.run("2026-06-01T06:00:00Z").await, [("disputed", 1)]);
    world.server.dispute("pi_000001", "lost");
    world.tell(&world.server.event("evt_2", "charge.dispute.closed", &id)).await.unwrap();
    for (day, status) in [("2026-06-28", Status::Active), ("2026-06-29", Status::Unpaid)] {
        assert_eq!(world.run(&format!("{day}T06:00:00Z")).await, [("disputed", 1)], "{day}");
        assert_eq!(world.stored().await.status, status, "{day}");
    }
    assert_eq!(world.run("2026-06-30T06:00:00Z").await, [], "it waits for another payment method");
}

#[tokio::test]
async fn crash_at_any_call_of_a_won_dispute_waives_each_month_once() {
    for fault in [Fault::LostBefore, Fault::LostAfter, Fault::CrashBefore, Fault::CrashAfter] {
        let mut calls = 1;
        loop {
            let story = format!("{fault:?} of call {calls}");
            let world = World::new("pm_card_visa").await;
            world.run("2026-03-10T06:00:00Z").await;
            let id = world.server.dispute("pi_000001", "needs_response");
            world.tell(&world.server.event("evt_1", "charge.dispute.created", &id)).await.unwrap();
            world.run("2026-05-20T06:00:00Z").await;
            world.server.dispute("pi_000001", "won");
            let event = world.server.event("evt_2", "charge.dispute.closed", &id);
            let header = SigningSecrets::parse(SECRET).unwrap().sign(event.as_bytes(), world.system.clock.now());
            let injector = Arc::new(Injector::for_runs(Arc::new(nth(calls, fault))));
            let wired = world.system.over(Arc::new(Wire::through(injector.clone()).and_no_retries()));
            let events = World::events(&world.system, wired.table, &world.stripe);
            let _ = injector.run(events.take(&header, event.as_bytes())).await;
            if injector.calls() < calls {
                break;
            }
            world.tell(&event).await.unwrap_or_else(|error| panic!("{story}: {error}"));
            let stored = world.stored().await;
            assert_eq!((stored.disputed_at, stored.due_on.to_string()), (None, "2026-06-10".to_owned()), "{story}");
            assert_eq!(world.waived().await, ["2026-04-10 disputed", "2026-05-10 disputed"], "{story}");
            calls += 1;
        }
        assert!(calls > 5, "{fault:?}: {calls} calls");
    }
}
