//! Tests of reminders: their contents, the days on which they are sent, and faults, killed runs and suspended workers.

use std::sync::{Arc, OnceLock};

use billing::{Account, ClaimToken, MailStatus, Subscription};
use chrono::TimeDelta;
use clock::{Clock as _, SimulatedClock};
use days::{DayReader, ShardProof, ShardState};
use emulator::{EngineConnection, ExternalOperation, Fault};
use mail::MailFault;
use store::{Batch, Claim, ClaimOutcome};
use sweep::BatchRequest;
use testkit::fault_at_call;
use ulid::Ulid;

use crate::world::{
    SHARDS, World, billing_time, date, key, new_subscription, nonzero_counts, numbered_subscription,
    subscription_of_acme,
};

/// Claims the reminder of `subscription` and sends nothing, like a run that is killed after the claim.
async fn claim_without_sending(world: &World, subscription: &Subscription, on: &str) {
    let now = billing_time(on);
    let claim = Claim { token: ClaimToken(Ulid(9)), now, leased_until: now + TimeDelta::minutes(20) };
    let claimed = world.table.claim_reminder(&key(subscription), date(on), claim).await.unwrap();
    assert!(matches!(claimed, ClaimOutcome::Claimed(_)), "{claimed:?}");
}

/// Returns the proof of each shard, computed from the run records. A proof states whether the reminder batch of `day`
/// is complete in the shard.
async fn shard_proofs(world: &World, day: &str) -> Vec<ShardProof> {
    let mut reader = DayReader::new(&world.table, Batch::Reminders, SHARDS, world.clock.now());
    reader.read(date(day)).await.unwrap().prove_shards()
}

#[tokio::test]
async fn day_is_not_complete_until_a_reminder_claimed_by_a_killed_run_is_sent() {
    let world = World::new().await;
    let subscription = new_subscription(31, "2026-02-28");
    world.store(&subscription).await;
    claim_without_sending(&world, &subscription, "2026-03-24").await;
    let report = world.run_reminders("2026-03-24").await;
    assert_eq!((nonzero_counts(&report), report.is_done()), (vec![("in_progress", 1)], false));
    let shards = shard_proofs(&world, "2026-03-24").await;
    let states: Vec<ShardState> = shards.iter().map(|shard| shard.walked).collect();
    assert_eq!(states.iter().filter(|state| **state == ShardState::LeftBehind).count(), 1, "{states:?}");

    world.clock.set(billing_time("2026-03-24") + TimeDelta::minutes(20));
    let request = BatchRequest::for_date(date("2026-03-24"));
    let report = world.reminders.run(&request, billing_time("2026-03-25")).await.unwrap();
    assert_eq!((nonzero_counts(&report), report.is_done()), (vec![("sent", 1)], true));
    assert!(shard_proofs(&world, "2026-03-24").await.iter().all(ShardProof::is_complete));
    assert_eq!(world.mails_sent.mails().len(), 1);
}

#[tokio::test]
async fn run_with_a_due_row_without_an_outcome_is_not_done() {
    let world = World::new().await;
    world.store(&new_subscription(31, "2026-02-28")).await;
    let mut reminders = world.run_reminders("2026-03-24").await;
    let mut payments = world.run_payments("2026-03-31").await;
    assert!(reminders.is_done() && payments.is_done());
    reminders.counts.due += 1;
    payments.counts.due += 1;
    assert!(!reminders.is_done() && !payments.is_done());
}

#[tokio::test]
async fn scheduled_reminder_run_fails_while_another_worker_has_claimed_a_reminder() {
    let world = World::new().await;
    let subscription = new_subscription(31, "2026-02-28");
    world.store(&subscription).await;
    claim_without_sending(&world, &subscription, "2026-03-24").await;
    for (minutes, is_done) in [(1, false), (20, true)] {
        let now = billing_time("2026-03-24") + TimeDelta::minutes(minutes);
        world.clock.set(now);
        let event = serde_json::json!({"scheduled_time": "2026-03-24T06:00:00Z"});
        let result = world.reminders.handle_invocation(event, now + TimeDelta::minutes(15)).await;
        assert_eq!(result.is_ok(), is_done, "after {minutes} minutes: {result:?}");
    }
}

#[tokio::test]
async fn reminder_is_sent_once_from_its_date_until_the_due_date() {
    let world = World::new().await;
    let subscription = new_subscription(31, "2026-02-28");
    world.store(&subscription).await;
    assert_eq!(world.run_reminders("2026-03-23").await.counts.due, 0);
    assert_eq!(nonzero_counts(&world.run_reminders("2026-03-24").await), [("sent", 1)]);
    assert_eq!(world.run_reminders("2026-03-24").await.counts.due, 0);
    let stored = world.load(&subscription).await;
    assert_eq!((stored.reminded_for, stored.next_reminder_on), (Some(date("2026-03-31")), None));
    assert_eq!((stored.last_reminder_at, stored.reminder_claim), (Some(billing_time("2026-03-24")), None));
    world.run_payments("2026-03-31").await;
    assert_eq!(
        world.load(&subscription).await.next_reminder_on,
        Some(date("2026-04-23")),
        "the next reminder is planned"
    );
}

#[tokio::test]
async fn reminder_contains_product_amount_and_date_in_text_and_html() {
    let world = World::new().await;
    let subscription = Subscription {
        product_name: "Gold <b> & more".parse().unwrap(),
        email: Some("desk@acme.example.com".parse().unwrap()),
        ..new_subscription(31, "2026-02-28")
    };
    world.store(&subscription).await;
    world.run_reminders("2026-03-24").await;
    let mails = world.mails_sent.mails();
    let mail = &mails[0];
    assert_eq!(
        (mail.to.as_str(), mail.subject.as_str()),
        ("desk@acme.example.com", "Gold <b> & more: €12.99 on March 31")
    );
    for expected in ["Hello Acme", "Gold <b> & more", "€12.99", "Tuesday, March 31, 2026", "Shop"] {
        assert!(mail.text.contains(expected), "{expected}: {}", mail.text);
    }
    for expected in ["Hello Acme", "Gold &lt;b&gt; &amp; more", "€12.99", "Tuesday, March 31, 2026", "Shop"] {
        assert!(mail.html.contains(expected), "{expected}: {}", mail.html);
    }
}

#[tokio::test]
async fn failed_reminder_is_sent_by_a_later_run() {
    let world = World::new().await;
    let subscription = new_subscription(31, "2026-02-28");
    world.store(&subscription).await;
    world.script.add(ExternalOperation::SendMail, [Some(Fault::Refused("closed"))]);
    let report = world.run_reminders("2026-03-24").await;
    assert_eq!(nonzero_counts(&report), [("failed", 1)]);
    assert_eq!(report.failures[0].reason, "the mail could not be sent: closed");
    assert_eq!(
        nonzero_counts(&world.run_reminders("2026-03-24").await),
        [("in_progress", 1)],
        "the claim of the failed reminder is valid until its lease expires"
    );
    assert_eq!(nonzero_counts(&world.run_reminders("2026-03-25").await), [("sent", 1)]);
}

/// Stores two subscriptions whose reminders are due on 2026-03-24: one with the address `billing@acme.example.com`, and
/// one with another address. Returns the first one.
async fn store_two_due_reminders(world: &World) -> Subscription {
    let acme = subscription_of_acme(31, "2026-02-28");
    world.store(&acme).await;
    let email = Some("ada@example.com".parse().unwrap());
    world.store(&Subscription { email, ..numbered_subscription(1, 31, "2026-02-28") }).await;
    acme
}

#[tokio::test]
async fn address_that_accepts_no_mail_is_marked_and_stops_no_other_reminder_and_no_day() {
    let world = World::new().await;
    let acme = store_two_due_reminders(&world).await;
    world.mails_sent.refuse_mails_to("billing@acme.example.com", MailFault::RecipientPermanent);
    let report = world.run_reminders("2026-03-24").await;
    assert_eq!((nonzero_counts(&report), report.is_done()), (vec![("sent", 1), ("undeliverable", 1)], true));
    let account = world.table.get_account(&acme.account).await.unwrap().unwrap();
    assert_eq!(account.mail_status, MailStatus::Bounced);
    assert!(shard_proofs(&world, "2026-03-24").await.iter().all(ShardProof::is_complete));

    let moved = Account { email: "new@acme.example.com".parse().unwrap(), ..account };
    world.table.put_account(&moved).await.unwrap();
    assert_eq!(nonzero_counts(&world.run_reminders("2026-03-25").await), [("sent", 1)], "the reminder stays due");
    assert_eq!(world.mails_sent.mails()[1].to, moved.email);
}

#[tokio::test]
async fn recipient_with_a_full_mailbox_delays_only_the_own_reminder() {
    let world = World::new().await;
    let acme = store_two_due_reminders(&world).await;
    world.mails_sent.refuse_mails_to("billing@acme.example.com", MailFault::RecipientTransient);
    let report = world.run_reminders("2026-03-24").await;
    assert_eq!((nonzero_counts(&report), report.is_done()), (vec![("delayed", 1), ("sent", 1)], true));
    assert!(shard_proofs(&world, "2026-03-24").await.iter().all(ShardProof::is_complete));
    let account = world.table.get_account(&acme.account).await.unwrap().unwrap();
    assert_eq!(account.mail_status, MailStatus::Deliverable);

    world.mails_sent.refuse_mails_to("billing@acme.example.com", None);
    assert_eq!(nonzero_counts(&world.run_reminders("2026-03-24").await), [("sent", 1)], "a run of the same day");
}

#[tokio::test]
async fn refused_settings_of_the_merchant_mark_no_account_and_the_day_is_not_done() {
    for fault in [MailFault::Settings, MailFault::ServiceTransient] {
        let world = World::new().await;
        let acme = store_two_due_reminders(&world).await;
        world.mails_sent.refuse_mails_to("billing@acme.example.com", fault);
        let report = world.run_reminders("2026-03-24").await;
        assert_eq!((nonzero_counts(&report), report.is_done()), (vec![("failed", 1), ("sent", 1)], false), "{fault:?}");
        let account = world.table.get_account(&acme.account).await.unwrap().unwrap();
        assert_eq!(account.mail_status, MailStatus::Deliverable, "{fault:?}");
    }
}

#[tokio::test]
async fn reminder_is_not_sent_after_the_due_date_or_while_paused() {
    let world = World::new().await;
    let (late, paused) = (new_subscription(10, "2026-03-01"), new_subscription(31, "2026-03-01"));
    world.store(&late).await;
    world.store(&paused).await;
    world.change_subscription(&paused, |s| s.pause(date("2026-03-02")).unwrap()).await;
    assert_eq!(nonzero_counts(&world.run_reminders("2026-03-31").await), [("missed", 1)]);
    assert_eq!(world.mails_sent.mails().len(), 0);
    assert_eq!(world.load(&late).await.next_reminder_on, None);
    assert_eq!(world.load(&late).await.next_payment_on, Some(date("2026-03-10")), "the payment is still owed");
}

#[tokio::test]
async fn fault_when_marking_a_sent_reminder_causes_no_second_mail() {
    for fault in [Fault::LostBefore, Fault::LostAfter, Fault::Refused("TransactionConflictException")] {
        // The batch's requests are: claim the reminder, read the account, mark the reminder as sent. The fault is at
        // the third request.
        let connection = EngineConnection::with_faults(fault_at_call(3, fault)).without_retries();
        let world = World::with_connection(connection).await;
        let subscription = new_subscription(31, "2026-02-28");
        world.store(&subscription).await;
        assert_eq!(nonzero_counts(&world.run_reminders("2026-03-24").await), [("sent", 1)], "{fault:?}");
        world.run_reminders("2026-03-25").await;
        assert_eq!(world.mails_sent.mails().len(), 1, "{fault:?}");
        assert_eq!(world.load(&subscription).await.next_reminder_on, None, "{fault:?}");
    }
}

#[tokio::test]
async fn worker_that_was_suspended_after_its_claim_does_not_send_the_reminder() {
    // The second request reads the account. Its response takes so long that the lease expires.
    let clock = Arc::new(OnceLock::<Arc<SimulatedClock>>::new());
    let clock_of_connection = clock.clone();
    let connection = EngineConnection::with_faults(move |call| {
        if call.number == 2 {
            let clock = clock_of_connection.get().unwrap();
            clock.set(clock.now() + TimeDelta::minutes(20));
        }
        None
    });
    let world = World::with_connection(connection).await;
    clock.set(world.clock.clone()).unwrap();
    world.store(&new_subscription(31, "2026-02-28")).await;
    assert_eq!(nonzero_counts(&world.run_reminders("2026-03-24").await), [("failed", 1)]);
    assert_eq!(world.mails_sent.mails().len(), 0);
    assert_eq!(nonzero_counts(&world.run_reminders("2026-03-25").await), [("sent", 1)]);
}
