//! Disputes: what is disputed is not charged, in whichever order it is told.

use shared::billing::{Changes, Dispute, DisputeStatus, PaymentMethod, Status};
use shared::table::TableError;
use webhooks::Told;

use crate::{World, at};

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
    let lead = world.system.deployment.config.policy.lead;
    let other =
        PaymentMethod { payment_method: "pm_card_mastercard".parse().unwrap(), ..world.gold.payment_method.clone() };
    let changes = Changes { payment_method: Some(other), ..Changes::default() };
    let changed = world.stored().await.change(&changes, lead, "2026-04-10".parse().unwrap()).unwrap();
    world.table().update_subscription(&world.stored().await, &changed).await.unwrap();
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
    let id = world.server.dispute("pi_000001", "warning_needs_response");
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
async fn what_is_disputed_for_28_days_is_given_up() {
    let world = World::new("pm_card_visa").await;
    world.run("2026-03-10T06:00:00Z").await;
    let id = world.server.dispute("pi_000001", "needs_response");
    world.tell(&world.server.event("evt_1", "charge.dispute.created", &id)).await.unwrap();
    for (day, status) in
        [("2026-04-10", Status::Active), ("2026-05-07", Status::Active), ("2026-05-08", Status::Unpaid)]
    {
        assert_eq!(world.run(&format!("{day}T06:00:00Z")).await, [("disputed", 1)], "{day}");
        assert_eq!(world.stored().await.status, status, "{day}");
    }
    assert_eq!(world.run("2026-05-09T06:00:00Z").await, [], "it is due no more");
}
