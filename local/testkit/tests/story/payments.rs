//! The life of a payment: claim, charge, settle; what goes wrong in between; what customers do meanwhile.

use std::sync::{Arc, OnceLock};

use billing::{Policy, Status, Subscription, Token};
use chrono::TimeDelta;
use clock::{Clock as _, SimulatedClock};
use emulator::{Fault, Wire};
use settling::{Known, Resolved, Resolving, Settling};
use store::{Claim, Claimed, Paging, SubscriptionKey, Table};
use ulid::Ulid;

use crate::world::{World, cancelled, card, counts, date, key, morning, new_subscription, paused};

#[tokio::test]
async fn charge_of_payment_day_31_is_made_on_the_last_day_of_every_month_of_a_year() {
    let world = World::new().await;
    let subscription = new_subscription(31, "2027-12-31");
    world.has(&subscription).await;
    for day in date("2028-01-01").iter_days().take(366) {
        world.charge(&day.to_string()).await;
        world.charge_at(&day.to_string(), morning(&day.to_string()) + TimeDelta::hours(2)).await;
    }
    let expected: Vec<String> = (1..=12)
        .map(|month| format!("2028-{month:02}-{}", [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1]))
        .collect();
    assert_eq!(world.charged(), expected);
    assert_eq!(world.receipts(&subscription).await, expected);
    assert_eq!(world.stored(&subscription).await.due_on, date("2029-01-31"));
}

#[tokio::test]
async fn run_of_a_finished_day_changes_nothing() {
    let world = World::new().await;
    for day in 1..=7 {
        world.has(&new_subscription(day, "2026-02-28")).await;
    }
    assert_eq!(world.charge("2026-03-07").await.counts.paid, 7);
    let before =
        world.table.get_subscriptions_by_account(&"acme".parse().unwrap(), &Paging::all()).await.unwrap().items;
    let again = world.charge_at("2026-03-07", morning("2026-03-07") + TimeDelta::hours(2)).await;
    assert_eq!((again.counts.due, again.complete), (0, true));
    assert_eq!(
        world.table.get_subscriptions_by_account(&"acme".parse().unwrap(), &Paging::all()).await.unwrap().items,
        before
    );
    assert_eq!(world.charged().len(), 7);
}

#[tokio::test]
async fn charge_after_an_outage_of_months_is_one_period_a_day_each_with_its_receipt() {
    let world = World::new().await;
    let subscription = new_subscription(15, "2026-01-01");
    world.has(&subscription).await;
    for day in ["2026-04-20", "2026-04-20", "2026-04-21", "2026-04-22", "2026-04-23", "2026-04-24"] {
        world.charge(day).await;
    }
    assert_eq!(world.receipts(&subscription).await, ["2026-01-15", "2026-02-15", "2026-03-15", "2026-04-15"]);
    let stored = world.stored(&subscription).await;
    assert_eq!((stored.due_on, stored.next_payment_on), (date("2026-05-15"), Some(date("2026-05-15"))));
}

#[tokio::test]
async fn retry_follows_the_schedule_each_under_a_number_of_its_own() {
    let world = World::new().await;
    let subscription = Subscription {
        payment_method: card("pm_card_chargeDeclinedInsufficientFunds"),
        ..new_subscription(10, "2026-03-01")
    };
    world.has(&subscription).await;
    let mut tried = Vec::new();
    for day in date("2026-03-01").iter_days().take(30) {
        if world.charge(&day.to_string()).await.counts.declined == 1 {
            tried.push(day.to_string());
        }
    }
    assert_eq!(tried, ["2026-03-10", "2026-03-11", "2026-03-13", "2026-03-15", "2026-03-17"]);
    let stored = world.stored(&subscription).await;
    assert_eq!((stored.status, stored.next_payment_on, stored.attempt_seq), (Status::Unpaid, None, 5));
    assert_eq!(world.sandbox.entries().len(), 5, "each try was a charge of its own");
    assert_eq!(world.charged(), [""; 0]);
}

#[tokio::test]
async fn charge_of_a_bank_debit_stays_open_until_the_bank_has_answered() {
    let world = World::new().await;
    let subscription =
        Subscription { payment_method: card("pm_usBankAccount_success"), ..new_subscription(10, "2026-03-01") };
    world.has(&subscription).await;
    assert_eq!(counts(&world.charge("2026-03-10").await), [("processing", 1)]);
    assert_eq!(counts(&world.charge("2026-03-11").await), [("processing", 1)]);
    assert_eq!(counts(&world.charge("2026-03-12").await), [("paid", 1)]);
    assert_eq!(world.receipts(&subscription).await, ["2026-03-10"]);
    assert_eq!(world.sandbox.entries().len(), 2, "one payment, one resolution");
}

#[tokio::test]
async fn charge_that_the_gateway_rejects_is_counted_and_tried_again_tomorrow() {
    let world = World::new().await;
    let subscription = Subscription { payment_method: card("pm_no_such_method"), ..new_subscription(10, "2026-03-01") };
    world.has(&subscription).await;
    assert_eq!(counts(&world.charge("2026-03-10").await), [("rejected", 1)]);
    let stored = world.stored(&subscription).await;
    assert_eq!(
        (stored.status, stored.next_payment_on, stored.attempt),
        (Status::Active, Some(date("2026-03-11")), None)
    );
}

#[tokio::test]
async fn look_up_finds_a_charge_whose_answer_was_lost_and_no_new_key_is_used() {
    for fault in [Fault::LostBefore, Fault::LostAfter] {
        let world = World::new().await;
        let subscription = new_subscription(10, "2026-03-01");
        world.has(&subscription).await;
        world.next_charge(fault);
        assert_eq!(counts(&world.charge("2026-03-10").await), [("in_doubt", 1)]);
        let held = world.charge_at("2026-03-10", morning("2026-03-10") + TimeDelta::minutes(19)).await;
        assert_eq!(counts(&held), [("in_doubt", 1)], "under lease: not ours to touch");
        let resolved = world.charge_at("2026-03-10", morning("2026-03-10") + TimeDelta::minutes(20)).await;
        assert_eq!(counts(&resolved), [("paid", 1)], "{fault:?}");
        assert_eq!(
            (world.charged(), world.receipts(&subscription).await),
            (vec!["2026-03-10".to_owned()], vec!["2026-03-10".to_owned()])
        );
        assert_eq!(world.stored(&subscription).await.attempt_seq, 1, "one attempt");
    }
}

/// A world in which somebody does `act` right before the batch's request `nth`.
async fn with_somebody_before<F: Future<Output = ()>>(
    subscription: &Subscription,
    nth: u64,
    act: impl Fn(Table, SubscriptionKey) -> F + Copy + Send + Sync + 'static,
) -> World {
    let of = key(subscription);
    let elsewhere = Arc::new(OnceLock::<Table>::new());
    let other = elsewhere.clone();
    // On a thread of its own: the batch waits for its request.
    let wire = Wire::with_faults(move |call| {
        if call.number == nth {
            let (table, of) = (other.get().unwrap().clone(), of.clone());
            let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            std::thread::spawn(move || runtime().block_on(act(table, of))).join().unwrap();
        }
        None
    });
    let world = World::over(wire).await;
    elsewhere.set(world.table.clone()).unwrap();
    world.has(subscription).await;
    world
}

/// A world in which another worker takes the open attempt over, two hours later, right before the batch's request `nth`.
async fn with_another_worker(subscription: &Subscription, nth: u64) -> World {
    with_somebody_before(subscription, nth, |table, of| async move {
        let open = table.get_subscription(&of.account, of.subscription).await.unwrap().unwrap().attempt.unwrap();
        let later = morning("2026-03-10") + TimeDelta::hours(2);
        let token = Token(Ulid::from_parts(8, 8));
        let claim = Claim { token, now: later, leased_until: later + TimeDelta::minutes(20) };
        assert!(matches!(table.take_over(&of, &open, claim).await.unwrap(), Claimed::Held(_)));
    })
    .await
}

#[tokio::test]
async fn take_over_lost_to_a_quicker_worker_leaves_the_attempt_in_doubt() {
    let later = morning("2026-03-10") + TimeDelta::hours(2);
    // Of the batch's requests the third is the take-over.
    let world = with_another_worker(&new_subscription(10, "2026-03-01"), 3).await;
    world.next_charge(Fault::LostBefore);
    world.charge("2026-03-10").await;
    assert_eq!(counts(&world.charge_at("2026-03-10", later).await), [("in_doubt", 1)], "not ours, and not done");
    assert_eq!(world.charged().len(), 0);
    assert_eq!(counts(&world.charge("2026-03-11").await), [("paid", 1)]);
}

#[tokio::test]
async fn settle_of_a_rejection_is_refused_when_another_worker_may_be_charging() {
    let rejected = Subscription { payment_method: card("pm_no_such_method"), ..new_subscription(10, "2026-03-01") };
    // The second request settles: it comes so late that the lease has lapsed.
    let world = with_another_worker(&rejected, 2).await;
    assert_eq!(counts(&world.charge("2026-03-10").await), [("in_doubt", 1)]);
    let stored = world.stored(&rejected).await;
    assert_eq!(stored.attempt.map(|open| (open.no, open.held_by)), Some((1, Token(Ulid::from_parts(8, 8)))));
}

#[tokio::test]
async fn charge_is_not_made_by_a_worker_that_slept_before_it() {
    // The first request claims, and the fourth, after a claim refused and a read, takes over: when it is answered, so many minutes have passed.
    for (nth, minutes, is_charged) in [(1, 4, true), (1, 5, false), (4, 4, true), (4, 5, false), (4, 18, false)] {
        let clock = Arc::new(OnceLock::<Arc<SimulatedClock>>::new());
        let slept = clock.clone();
        let wire = Wire::with_faults(move |call| {
            if call.number == nth {
                let clock = slept.get().unwrap();
                clock.set(clock.now() + TimeDelta::minutes(minutes));
            }
            None
        });
        let world = World::over(wire).await;
        clock.set(world.clock.clone()).unwrap();
        world.has(&new_subscription(10, "2026-03-01")).await;
        let mut now = morning("2026-03-10");
        if nth == 4 {
            world.next_charge(Fault::LostBefore);
            world.charge_at("2026-03-10", now).await;
            now += TimeDelta::hours(2);
        }
        let expected = if is_charged { ("paid", 1) } else { ("in_doubt", 1) };
        let story = format!("request {nth}, {minutes} minutes");
        assert_eq!(counts(&world.charge_at("2026-03-10", now).await), [expected], "{story}");
        assert_eq!(
            world.charged().len(),
            usize::from(is_charged),
            "{story}: others may have taken it over and dropped it"
        );
        world.charge("2026-03-11").await;
        assert_eq!(world.charged().len(), 1, "{story}");
    }
}

#[tokio::test]
async fn settle_reports_a_payment_whose_attempt_was_settled_otherwise() {
    let subscription = new_subscription(10, "2026-03-01");
    // Before the settlement somebody declares by hand that it was not charged, an hour later.
    let world = with_somebody_before(&subscription, 2, |table, of| async move {
        let clock = SimulatedClock::new(morning("2026-03-10") + TimeDelta::hours(1), 8);
        let settling = Settling::new(table, Policy::default(), Arc::new(clock));
        let of = (&of.account, of.subscription);
        let by_hand = Resolving { settling: &settling, gateway: None, lease: TimeDelta::minutes(20) };
        let resolved = by_hand.resolve(of, &Known::NotCharged, date("2026-03-10")).await.unwrap();
        assert!(matches!(resolved, Resolved::Settled(_)));
    })
    .await;
    let report = world.charge("2026-03-10").await;
    assert_eq!(counts(&report), [("failed", 1)]);
    let reason = &report.failures[0].reason;
    assert!(
        reason.ends_with("was made, and there is no receipt of it: its attempt was settled as something else"),
        "{reason}"
    );
}

#[tokio::test]
async fn look_up_gives_up_after_two_days_an_attempt_that_the_gateway_never_knew() {
    let world = World::new().await;
    let subscription = new_subscription(10, "2026-03-01");
    world.has(&subscription).await;
    world.next_charge(Fault::LostBefore);
    world.charge("2026-03-10").await;
    let late = world.charge_at("2026-03-12", morning("2026-03-12") + TimeDelta::minutes(1)).await;
    assert_eq!(counts(&late), [("rejected", 1)]);
    assert_eq!(counts(&world.charge("2026-03-13").await), [("paid", 1)]);
    assert_eq!((world.charged().len(), world.stored(&subscription).await.attempt_seq), (1, 2));
}

#[tokio::test]
async fn take_over_settles_or_drops_the_attempt_of_a_stopped_subscription_and_does_not_charge() {
    for (fault, receipts) in [(Fault::LostBefore, 0), (Fault::LostAfter, 1)] {
        for status in [Status::Paused, Status::Cancelled] {
            let world = World::new().await;
            let subscription = new_subscription(10, "2026-03-01");
            world.has(&subscription).await;
            world.next_charge(fault);
            world.charge("2026-03-10").await;
            world
                .customer(&subscription, |s| if status == Status::Paused { paused(s).into() } else { cancelled(s) })
                .await;
            world.charge("2026-03-11").await;
            let stored = world.stored(&subscription).await;
            assert_eq!((stored.status, stored.attempt, stored.next_payment_on), (status, None, None), "{fault:?}");
            assert_eq!(
                (world.charged().len(), world.receipts(&subscription).await.len()),
                (receipts, receipts),
                "{fault:?}"
            );
        }
    }
}

#[tokio::test]
async fn charge_takes_a_price_changed_while_an_attempt_was_open_from_the_next_month() {
    let world = World::new().await;
    let subscription = new_subscription(10, "2026-03-01");
    world.has(&subscription).await;
    world.next_charge(Fault::LostBefore);
    world.charge("2026-03-10").await;
    let dearer = subscription.price.currency().price(1599).unwrap();
    world.customer(&subscription, |s| Subscription { price: dearer, ..s.clone() }).await;
    world.charge("2026-03-11").await;
    world.charge("2026-04-10").await;
    let amounts: Vec<i64> = world.receipted(&subscription).await.into_iter().map(|(_, amount)| amount).collect();
    assert_eq!(amounts, [1299, 1599]);
}

/// For every write of the payment batch and each way to lose it: the run as it is, then runs until all is settled.
#[tokio::test]
async fn charge_is_neither_doubled_nor_lost_by_any_lost_write() {
    let mut reached_us = 0;
    for has_retries in [true, false] {
        for fault in [Fault::LostBefore, Fault::LostAfter, Fault::Refused("ThrottlingException")] {
            for nth in 1..=2 {
                let wire = Wire::with_faults(testkit::nth(nth, fault));
                let world = World::over(if has_retries { wire } else { wire.and_no_retries() }).await;
                let subscription = new_subscription(10, "2026-03-01");
                world.has(&subscription).await;
                let first = world.charge("2026-03-10").await;
                let requests: u64 = world.wire.requests().values().sum();
                assert!(requests >= nth, "the fault fired: {requests} requests");
                reached_us += u32::from(counts(&first) != [("paid", 1)]);
                world.charge_at("2026-03-10", morning("2026-03-10") + TimeDelta::hours(2)).await;
                world.charge("2026-03-11").await;
                let story = format!("{fault:?} of request {nth}, retries {has_retries}, first {:?}", counts(&first));
                assert_eq!(world.charged(), ["2026-03-10"], "{story}");
                assert_eq!(world.receipts(&subscription).await, ["2026-03-10"], "{story}");
                let stored = world.stored(&subscription).await;
                assert_eq!((stored.due_on, stored.attempt), (date("2026-04-10"), None), "{story}");
            }
        }
    }
    assert!(reached_us >= 3, "the SDK's own retries hid all but {reached_us} faults");
}
