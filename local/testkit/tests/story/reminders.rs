//! Reminders: what a customer reads, when, and what a crash in between comes to.

use std::sync::{Arc, OnceLock};

use billing::{Subscription, Token};
use chrono::TimeDelta;
use chrono_tz::Tz;
use clock::{Clock as _, SimulatedClock};
use days::{DayReader, ShardProof, Walked};
use emulator::{Fault, Operation, Wire};
use store::{Batch, Claim, Claimed};
use sweep::BatchRequest;
use testkit::nth;
use ulid::Ulid;

use crate::world::{SHARDS, World, counts, date, key, morning, new_subscription};

/// Claims the reminder of `subscription` as a run that is killed before it sends anything.
async fn claim_and_die(world: &World, subscription: &Subscription, on: &str) {
    let now = morning(on);
    let claim = Claim { token: Token(Ulid(9)), now, leased_until: now + TimeDelta::minutes(20) };
    let claimed = world.table.claim_reminder(&key(subscription), date(on), claim).await.unwrap();
    assert!(matches!(claimed, Claimed::Held(_)), "{claimed:?}");
}

async fn proof(world: &World, day: &str) -> Vec<ShardProof> {
    let mut reader = DayReader::new(&world.table, Batch::Reminders, SHARDS, Tz::UTC, world.clock.now());
    reader.read(date(day)).await.unwrap().prove()
}

#[tokio::test]
async fn reminder_that_a_killed_run_has_claimed_is_left_behind_and_its_day_is_not_proved_until_it_is_sent() {
    let world = World::new().await;
    let subscription = new_subscription(31, "2026-02-28");
    world.has(&subscription).await;
    claim_and_die(&world, &subscription, "2026-03-24").await;
    let report = world.remind("2026-03-24").await;
    assert_eq!((counts(&report), report.is_done()), (vec![("in_progress", 1)], false));
    let proved = proof(&world, "2026-03-24").await;
    let walked: Vec<Walked> = proved.iter().map(|shard| shard.walked).collect();
    assert_eq!(walked.iter().filter(|walked| **walked == Walked::LeftBehind).count(), 1, "{walked:?}");

    world.clock.set(morning("2026-03-24") + TimeDelta::minutes(20));
    let request = BatchRequest::on(date("2026-03-24"));
    let report = world.reminders.run(&request, morning("2026-03-25")).await.unwrap();
    assert_eq!((counts(&report), report.is_done()), (vec![("sent", 1)], true));
    assert!(proof(&world, "2026-03-24").await.iter().all(ShardProof::holds));
    assert_eq!(world.letterbox.mails().len(), 1);
}

#[tokio::test]
async fn scheduled_run_of_reminders_fails_while_another_worker_holds_one() {
    let world = World::new().await;
    let subscription = new_subscription(31, "2026-02-28");
    world.has(&subscription).await;
    claim_and_die(&world, &subscription, "2026-03-24").await;
    for (minutes, is_done) in [(1, false), (20, true)] {
        let now = morning("2026-03-24") + TimeDelta::minutes(minutes);
        world.clock.set(now);
        let event = serde_json::json!({"scheduled_time": "2026-03-24T06:00:00Z"});
        let answer = world.reminders.handle(event, now + TimeDelta::minutes(15)).await;
        assert_eq!(answer.is_ok(), is_done, "after {minutes} minutes: {answer:?}");
    }
}

#[tokio::test]
async fn reminder_is_sent_once_from_its_date_until_the_due_date() {
    let world = World::new().await;
    let subscription = new_subscription(31, "2026-02-28");
    world.has(&subscription).await;
    assert_eq!(world.remind("2026-03-23").await.counts.due, 0);
    assert_eq!(counts(&world.remind("2026-03-24").await), [("sent", 1)]);
    assert_eq!(world.remind("2026-03-24").await.counts.due, 0);
    let stored = world.stored(&subscription).await;
    assert_eq!((stored.reminded_for, stored.next_reminder_on), (Some(date("2026-03-31")), None));
    assert_eq!((stored.last_reminder_at, stored.reminder_claim), (Some(morning("2026-03-24")), None));
    world.charge("2026-03-31").await;
    assert_eq!(
        world.stored(&subscription).await.next_reminder_on,
        Some(date("2026-04-23")),
        "and the next one follows"
    );
}

#[tokio::test]
async fn reminder_states_product_amount_and_date_in_text_and_html() {
    let world = World::new().await;
    let subscription = Subscription {
        product_name: "Gold <b> & more".parse().unwrap(),
        email: Some("desk@acme.example.com".parse().unwrap()),
        ..new_subscription(31, "2026-02-28")
    };
    world.has(&subscription).await;
    world.remind("2026-03-24").await;
    let mails = world.letterbox.mails();
    let mail = &mails[0];
    assert_eq!(
        (mail.to.as_str(), mail.subject.as_str()),
        ("desk@acme.example.com", "Gold <b> & more: €12.99 on March 31")
    );
    for said in ["Hello Acme", "Gold <b> & more", "€12.99", "Tuesday, March 31, 2026", "Shop"] {
        assert!(mail.text.contains(said), "{said}: {}", mail.text);
    }
    for said in ["Hello Acme", "Gold &lt;b&gt; &amp; more", "€12.99", "Tuesday, March 31, 2026", "Shop"] {
        assert!(mail.html.contains(said), "{said}: {}", mail.html);
    }
}

#[tokio::test]
async fn reminder_that_could_not_be_sent_is_sent_later() {
    let world = World::new().await;
    let subscription = new_subscription(31, "2026-02-28");
    world.has(&subscription).await;
    world.script.add(Operation::SendMail, [Some(Fault::Refused("closed"))]);
    let report = world.remind("2026-03-24").await;
    assert_eq!(counts(&report), [("failed", 1)]);
    assert_eq!(report.failures[0].reason, "the mail could not be sent: closed");
    assert_eq!(counts(&world.remind("2026-03-24").await), [("in_progress", 1)], "the claim holds for its lease");
    assert_eq!(counts(&world.remind("2026-03-25").await), [("sent", 1)]);
}

#[tokio::test]
async fn reminder_is_not_sent_after_the_due_date_or_once_stopped() {
    let world = World::new().await;
    let (late, paused) = (new_subscription(10, "2026-03-01"), new_subscription(31, "2026-03-01"));
    world.has(&late).await;
    world.has(&paused).await;
    world.customer(&paused, |s| s.pause(date("2026-03-02")).unwrap()).await;
    assert_eq!(counts(&world.remind("2026-03-31").await), [("missed", 1)]);
    assert_eq!(world.letterbox.mails().len(), 0);
    assert_eq!(world.stored(&late).await.next_reminder_on, None);
    assert_eq!(world.stored(&late).await.next_payment_on, Some(date("2026-03-10")), "the payment is still owed");
}

#[tokio::test]
async fn mark_that_was_lost_is_made_again_without_a_second_mail() {
    for fault in [Fault::LostBefore, Fault::LostAfter, Fault::Refused("TransactionConflictException")] {
        // Of the batch's requests the third is the mark: claim, account, mark.
        let wire = Wire::with_faults(nth(3, fault)).and_no_retries();
        let world = World::over(wire).await;
        let subscription = new_subscription(31, "2026-02-28");
        world.has(&subscription).await;
        assert_eq!(counts(&world.remind("2026-03-24").await), [("sent", 1)], "{fault:?}");
        world.remind("2026-03-25").await;
        assert_eq!(world.letterbox.mails().len(), 1, "{fault:?}");
        assert_eq!(world.stored(&subscription).await.next_reminder_on, None, "{fault:?}");
    }
}

#[tokio::test]
async fn reminder_is_not_sent_by_a_worker_that_slept_after_its_claim() {
    // The second request reads the account: when it is answered, the lease has lapsed.
    let clock = Arc::new(OnceLock::<Arc<SimulatedClock>>::new());
    let slept = clock.clone();
    let wire = Wire::with_faults(move |call| {
        if call.number == 2 {
            let clock = slept.get().unwrap();
            clock.set(clock.now() + TimeDelta::minutes(20));
        }
        None
    });
    let world = World::over(wire).await;
    clock.set(world.clock.clone()).unwrap();
    world.has(&new_subscription(31, "2026-02-28")).await;
    assert_eq!(counts(&world.remind("2026-03-24").await), [("failed", 1)]);
    assert_eq!(world.letterbox.mails().len(), 0);
    assert_eq!(counts(&world.remind("2026-03-25").await), [("sent", 1)]);
}
