//! The life of a payment: claim, charge, settle; what goes wrong in between; what customers do meanwhile.

use std::sync::{Arc, OnceLock};

use chrono::{DateTime, TimeDelta, Utc};
use local::{Fault, Wire};
use shared::ambient::Simulated;
use shared::batch::{BatchRequest, Walked, prove};
use shared::billing::{Status, Subscription, Token};
use shared::table::{Batch, Claim, Claimed, Paging, Position, Table};
use ulid::Ulid;

use crate::world::{Mishap, World, card, counts, date, key, morning, new_subscription};

#[tokio::test]
async fn a_year_of_the_31st_is_charged_on_every_months_last_day() {
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
async fn a_finished_day_run_again_changes_nothing() {
    let world = World::new().await;
    for day in 1..=7 {
        world.has(&new_subscription(day, "2026-02-28")).await;
    }
    assert_eq!(world.charge("2026-03-07").await.counts["paid"], 7);
    let before =
        world.table.get_subscriptions_by_account(&"acme".parse().unwrap(), &Paging::all()).await.unwrap().items;
    let again = world.charge_at("2026-03-07", morning("2026-03-07") + TimeDelta::hours(2)).await;
    assert_eq!((again.counts["due"], again.complete), (0, true));
    assert_eq!(
        world.table.get_subscriptions_by_account(&"acme".parse().unwrap(), &Paging::all()).await.unwrap().items,
        before
    );
    assert_eq!(world.charged().len(), 7);
}

#[tokio::test]
async fn an_outage_of_months_is_caught_up_one_period_a_day_each_with_its_own_receipt() {
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
async fn a_date_ahead_is_refused() {
    let world = World::new().await;
    world.clock.set(morning("2026-03-10"));
    let error = world.payments.run(&BatchRequest::on(date("2026-03-11")), morning("2026-03-12")).await.unwrap_err();
    assert_eq!(error.to_string(), "2026-03-11 lies in the future: today is 2026-03-10 in UTC");
}

#[tokio::test]
async fn declines_are_retried_by_the_schedule_each_under_a_number_of_its_own() {
    let world = World::new().await;
    let subscription = Subscription {
        payment_method: card("pm_card_chargeDeclinedInsufficientFunds"),
        ..new_subscription(10, "2026-03-01")
    };
    world.has(&subscription).await;
    let mut tried = Vec::new();
    for day in date("2026-03-01").iter_days().take(30) {
        if world.charge(&day.to_string()).await.counts["declined"] == 1 {
            tried.push(day.to_string());
        }
    }
    assert_eq!(tried, ["2026-03-10", "2026-03-11", "2026-03-13", "2026-03-15", "2026-03-17"]);
    let stored = world.stored(&subscription).await;
    assert_eq!((stored.status, stored.next_payment_on, stored.attempt_seq), (Status::Unpaid, None, 5));
    assert_eq!(world.gateway.sandbox.entries().len(), 5, "each try was a charge of its own");
    assert_eq!(world.charged(), [""; 0]);
}

#[tokio::test]
async fn a_bank_debit_stays_open_until_the_bank_has_answered() {
    let world = World::new().await;
    let subscription =
        Subscription { payment_method: card("pm_usBankAccount_success"), ..new_subscription(10, "2026-03-01") };
    world.has(&subscription).await;
    assert_eq!(counts(&world.charge("2026-03-10").await), [("processing", 1)]);
    assert_eq!(counts(&world.charge("2026-03-11").await), [("processing", 1)]);
    assert_eq!(counts(&world.charge("2026-03-12").await), [("paid", 1)]);
    assert_eq!(world.receipts(&subscription).await, ["2026-03-10"]);
    assert_eq!(world.gateway.sandbox.entries().len(), 2, "one payment, one resolution");
}

#[tokio::test]
async fn what_the_gateway_rejects_is_counted_and_tried_again_tomorrow() {
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
async fn a_lost_answer_is_looked_up_and_never_charged_under_a_new_key() {
    for mishap in [Mishap::LostBefore, Mishap::LostAfter] {
        let world = World::new().await;
        let subscription = new_subscription(10, "2026-03-01");
        world.has(&subscription).await;
        world.gateway.plan.lock().unwrap().push(mishap);
        assert_eq!(counts(&world.charge("2026-03-10").await), [("in_doubt", 1)]);
        let held = world.charge_at("2026-03-10", morning("2026-03-10") + TimeDelta::minutes(19)).await;
        assert_eq!(counts(&held), [("in_doubt", 1)], "under lease: not ours to touch");
        let resolved = world.charge_at("2026-03-10", morning("2026-03-10") + TimeDelta::minutes(20)).await;
        assert_eq!(counts(&resolved), [("paid", 1)], "{mishap:?}");
        assert_eq!(
            (world.charged(), world.receipts(&subscription).await),
            (vec!["2026-03-10".to_owned()], vec!["2026-03-10".to_owned()])
        );
        assert_eq!(world.stored(&subscription).await.attempt_seq, 1, "one attempt");
    }
}

/// A world in which another worker takes the open attempt over, at `later`, right before the batch's request `nth`.
async fn with_another_worker(subscription: &Subscription, nth: u64, later: DateTime<Utc>) -> World {
    let of = key(subscription);
    let elsewhere = Arc::new(OnceLock::<Table>::new());
    let other = elsewhere.clone();
    // On a thread of its own: the batch waits for its request.
    let wire = Wire::with_faults(move |n, _| {
        if n == nth {
            let (table, of) = (other.get().unwrap().clone(), of.clone());
            let take_over = async move {
                let open =
                    table.get_subscription(&of.account, of.subscription).await.unwrap().unwrap().attempt.unwrap();
                let token = Token(Ulid::from_parts(8, 8));
                let claim = Claim { token, now: later, leased_until: later + TimeDelta::minutes(20) };
                assert!(matches!(table.take_over(&of, &open, claim).await.unwrap(), Claimed::Held(_)));
            };
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            std::thread::spawn(move || runtime.block_on(take_over)).join().unwrap();
        }
        Fault::None
    });
    let world = World::over(wire).await;
    elsewhere.set(world.table.clone()).unwrap();
    world.has(subscription).await;
    world
}

#[tokio::test]
async fn a_take_over_lost_to_a_quicker_worker_leaves_the_attempt_in_doubt() {
    let later = morning("2026-03-10") + TimeDelta::hours(2);
    // Of the batch's requests the third is the take-over.
    let world = with_another_worker(&new_subscription(10, "2026-03-01"), 3, later).await;
    world.gateway.plan.lock().unwrap().push(Mishap::LostBefore);
    world.charge("2026-03-10").await;
    assert_eq!(counts(&world.charge_at("2026-03-10", later).await), [("in_doubt", 1)], "not ours, and not done");
    assert_eq!(world.charged().len(), 0);
    assert_eq!(counts(&world.charge("2026-03-11").await), [("paid", 1)]);
}

#[tokio::test]
async fn a_rejection_is_not_settled_when_another_worker_may_be_charging_by_then() {
    let rejected = Subscription { payment_method: card("pm_no_such_method"), ..new_subscription(10, "2026-03-01") };
    // The second request settles: it comes so late that the lease has lapsed.
    let world = with_another_worker(&rejected, 2, morning("2026-03-10") + TimeDelta::hours(2)).await;
    assert_eq!(counts(&world.charge("2026-03-10").await), [("in_doubt", 1)]);
    let stored = world.stored(&rejected).await;
    assert_eq!(stored.attempt.map(|open| (open.no, open.held_by)), Some((1, Token(Ulid::from_parts(8, 8)))));
}

#[tokio::test]
async fn a_worker_that_slept_through_its_lease_does_not_charge() {
    let later = morning("2026-03-10") + TimeDelta::hours(2);
    let clock = Arc::new(OnceLock::<Arc<Simulated>>::new());
    let slept = clock.clone();
    // The third request takes over; when it is answered, the lease it gave has lapsed.
    let wire = Wire::with_faults(move |n, _| {
        if n == 3 {
            slept.get().unwrap().set(later + TimeDelta::minutes(21));
        }
        Fault::None
    });
    let world = World::over(wire).await;
    clock.set(world.clock.clone()).unwrap();
    world.has(&new_subscription(10, "2026-03-01")).await;
    world.gateway.plan.lock().unwrap().push(Mishap::LostBefore);
    world.charge("2026-03-10").await;
    assert_eq!(counts(&world.charge_at("2026-03-10", later).await), [("in_doubt", 1)]);
    assert_eq!(world.charged().len(), 0, "somebody else may have taken it over and dropped it");
    assert_eq!(counts(&world.charge("2026-03-11").await), [("paid", 1)]);
}

#[tokio::test]
async fn an_attempt_the_gateway_never_heard_of_is_given_up_after_two_days() {
    let world = World::new().await;
    let subscription = new_subscription(10, "2026-03-01");
    world.has(&subscription).await;
    world.gateway.plan.lock().unwrap().push(Mishap::LostBefore);
    world.charge("2026-03-10").await;
    let late = world.charge_at("2026-03-12", morning("2026-03-12") + TimeDelta::minutes(1)).await;
    assert_eq!(counts(&late), [("rejected", 1)]);
    assert_eq!(counts(&world.charge("2026-03-13").await), [("paid", 1)]);
    assert_eq!((world.charged().len(), world.stored(&subscription).await.attempt_seq), (1, 2));
}

#[tokio::test]
async fn a_date_that_sorts_before_today_and_lies_ahead_is_not_charged() {
    let world = World::new().await;
    let subscription = new_subscription(15, "2026-03-01");
    world.has(&subscription).await;
    let far = "+10000-01-15".parse().unwrap();
    world.customer(&subscription, |s| Subscription { due_on: far, next_payment_on: Some(far), ..s.clone() }).await;
    let report = world.charge("2026-03-15").await;
    assert_eq!((counts(&report), world.charged().len()), (vec![("failed", 1)], 0));
    assert_eq!(report.failures[0].reason, "the index shows it due on +10000-01-15, after 2026-03-15");
}

#[tokio::test]
async fn a_position_in_a_shard_that_is_not_asked_for_is_refused() {
    let world = World::new().await;
    world.clock.set(morning("2026-03-15"));
    let next = Position { shard: 3, on: String::new(), pk: String::new(), sk: String::new() };
    let request = BatchRequest { shards: Some(vec![0, 1]), next: Some(next), ..BatchRequest::on(date("2026-03-15")) };
    let error = world.payments.run(&request, morning("2026-03-16")).await.unwrap_err();
    assert_eq!(error.to_string(), "next goes on in shard 3, which is not among the shards asked for");
}

#[tokio::test]
async fn a_gateway_that_refuses_us_stops_the_run() {
    let world = World::new().await;
    for day in 1..=7 {
        world.has(&new_subscription(day, "2026-02-28")).await;
    }
    world.gateway.plan.lock().unwrap().push(Mishap::Unusable);
    let report = world.charge("2026-03-07").await;
    assert_eq!((report.complete, report.counts["due"], counts(&report)), (false, 1, vec![("in_doubt", 1)]));
    assert_eq!(report.stopped.as_deref(), Some("the gateway refuses us: 401"));
    let next = BatchRequest { next: report.next, ..BatchRequest::on(date("2026-03-07")) };
    let rest = world.payments.run(&next, morning("2026-03-07") + TimeDelta::hours(1)).await.unwrap();
    assert_eq!((rest.complete, counts(&rest)), (true, vec![("paid", 6)]), "goes on where it stopped");
}

#[tokio::test]
async fn a_scheduled_run_that_stops_fails_and_one_that_is_asked_for_answers() {
    let world = World::new().await;
    world.has(&new_subscription(1, "2026-02-28")).await;
    let deadline = morning("2026-03-07") + TimeDelta::minutes(15);
    for (event, is_failure) in [
        (serde_json::json!({"scheduled_time": "2026-03-07T06:00:00Z"}), true),
        (serde_json::json!({"date": "2026-03-07", "shards": [0]}), false),
    ] {
        world.clock.set(morning("2026-03-07"));
        let stored = world.stored(&new_subscription(1, "2026-02-28")).await;
        if let Some(attempt) = stored.attempt {
            world.clock.set(attempt.leased_until);
        }
        world.gateway.plan.lock().unwrap().push(Mishap::Unusable);
        let answer = world.payments.handle(event, deadline + TimeDelta::hours(1)).await;
        match answer {
            Err(error) => assert_eq!(
                (error.to_string().as_str(), is_failure),
                ("the run stopped: the gateway refuses us: 401", true)
            ),
            Ok(report) => {
                assert_eq!((report.stopped.as_deref(), is_failure), (Some("the gateway refuses us: 401"), false))
            }
        }
    }
}

#[tokio::test]
async fn a_run_stops_by_itself_before_its_deadline_and_says_where_to_go_on() {
    let world = World::new().await;
    for day in 1..=7 {
        world.has(&new_subscription(day, "2026-02-28")).await;
    }
    world.clock.set(morning("2026-03-07"));
    let request = BatchRequest::on(date("2026-03-07"));
    let soon = morning("2026-03-07") + TimeDelta::seconds(51);
    let cut = world.payments.run(&request, soon).await.unwrap();
    assert_eq!((cut.complete, cut.counts["due"], world.charged().len()), (false, 0, 0), "too little time for a charge");
    let next = BatchRequest { next: cut.next, ..request };
    let rest = world.payments.run(&next, morning("2026-03-07") + TimeDelta::hours(1)).await.unwrap();
    assert_eq!((rest.complete, rest.counts["paid"]), (true, 7));
}

#[tokio::test]
async fn with_charging_switched_off_nothing_is_claimed_and_what_was_begun_is_settled() {
    for (mishap, begun) in [(Mishap::LostAfter, ("paid", 1)), (Mishap::LostBefore, ("in_doubt", 1))] {
        let world = World::new().await;
        let (begun_one, due_one) = (new_subscription(6, "2026-02-28"), new_subscription(7, "2026-02-28"));
        world.has(&begun_one).await;
        world.has(&due_one).await;
        world.gateway.plan.lock().unwrap().push(mishap);
        assert_eq!(counts(&world.charge("2026-03-06").await), [("in_doubt", 1)]);
        world.table.set_charging(false).await.unwrap();
        let report = world.charge("2026-03-07").await;
        assert_eq!((report.complete, report.stopped.as_deref()), (true, Some("charging is switched off")));
        assert!(counts(&report).contains(&begun) && counts(&report).contains(&("skipped", 1)), "{report:?}");
        let charged = if mishap == Mishap::LostAfter { vec!["2026-03-06"] } else { vec![] };
        assert_eq!(world.charged(), charged, "nothing new is charged");
        assert_eq!(world.stored(&due_one).await, due_one, "what is due is as it was");

        world.table.set_charging(true).await.unwrap();
        let report = world.charge("2026-03-08").await;
        assert_eq!((report.stopped, world.charged().len()), (None, 2), "all is made good");
    }
}

#[tokio::test]
async fn a_day_over_a_ceiling_is_not_begun() {
    for (name, value, said) in [
        ("DUEDAY_MAX_CHARGES", "2", "3 payments are due, and at most 2 may be charged in a day"),
        ("DUEDAY_MAX_SUMS", "JPY=1,EUR=38.96", "38.97 EUR are due, and at most 38.96 EUR may be charged in a day"),
        ("DUEDAY_MAX_CHARGES", "3", ""),
        ("DUEDAY_MAX_SUMS", "EUR=38.97", ""),
    ] {
        let world = World::set_up(Wire::metered(), |asked| (asked == name).then(|| value.to_owned())).await;
        for day in 1..=4 {
            world.has(&new_subscription(day, "2026-02-28")).await;
        }
        world.clock.set(morning("2026-03-03"));
        let request = BatchRequest::on(date("2026-03-03"));
        let ran = world.payments.run(&request, morning("2026-03-03") + TimeDelta::hours(1)).await;
        match said {
            "" => assert_eq!(ran.unwrap().counts["paid"], 3, "{name}={value}"),
            said => {
                let said = format!("the day is not begun: {said}");
                assert_eq!(ran.unwrap_err().to_string(), said);
                let runs = world.table.get_runs_by_date(Batch::Payments, date("2026-03-03"), &Paging::all()).await;
                let shards = prove(Batch::Payments, 4, &runs.unwrap().items);
                assert!(shards.iter().all(|shard| shard.walked == Walked::Unfinished));
                assert!(shards.iter().all(|shard| shard.stopped.as_ref() == Some(&said)), "it is on record");
            }
        }
        assert_eq!(world.charged().len(), if said.is_empty() { 3 } else { 0 }, "{name}={value}");
    }
}

#[tokio::test]
async fn a_run_stops_when_the_gateway_fails_many_times_in_a_row() {
    let variable = |name: &str| (name == "DUEDAY_GATEWAY_FAILURES").then(|| "3".to_owned());
    let world = World::set_up(Wire::metered(), variable).await;
    for day in 1..=9 {
        world.has(&new_subscription(day, "2026-02-28")).await;
    }
    // Two failures, an answer, and then nothing but failures.
    let (lost, fine) = (Mishap::LostBefore, Mishap::None);
    *world.gateway.plan.lock().unwrap() = [lost, lost, fine].into_iter().chain([lost; 6]).rev().collect();
    let report = world.charge("2026-03-09").await;
    assert!(!report.complete && report.next.is_some(), "{report:?}");
    let stopped = report.stopped.unwrap();
    assert!(stopped.starts_with("the gateway failed 3 times in a row"), "{stopped}");
    assert_eq!((report.counts["paid"], report.counts["in_doubt"]), (1, 5));
    let left = world.gateway.plan.lock().unwrap().len();
    assert_eq!(left, 3, "the others were not tried");
}

#[tokio::test]
async fn one_bad_item_is_reported_with_its_key_and_the_others_go_on() {
    let world = World::new().await;
    let bad = new_subscription(1, "2026-02-28");
    for day in 1..=4 {
        world.has(&new_subscription(day, "2026-02-28")).await;
    }
    let key = crate::world::key(&bad).key();
    let text = |text: &str| aws_sdk_dynamodb::types::AttributeValue::S(text.to_owned());
    let corrupt =
        world.table.client().update_item().table_name("dueday").key("PK", text(&key.pk)).key("SK", text(&key.sk));
    corrupt
        .update_expression("SET Currency = :c")
        .expression_attribute_values(":c", text("DOGE"))
        .send()
        .await
        .unwrap();
    let report = world.charge("2026-03-07").await;
    assert_eq!((report.complete, counts(&report)), (true, vec![("failed", 1), ("paid", 3)]));
    assert_eq!(report.failures[0].key, key.to_string());
    assert!(report.failures[0].reason.contains("ISO 4217"), "{}", report.failures[0].reason);
}

#[tokio::test]
async fn a_subscription_stopped_while_an_attempt_is_in_doubt_is_settled_or_dropped_but_not_charged() {
    for (mishap, receipts) in [(Mishap::LostBefore, 0), (Mishap::LostAfter, 1)] {
        for status in [Status::Paused, Status::Cancelled] {
            let world = World::new().await;
            let subscription = new_subscription(10, "2026-03-01");
            world.has(&subscription).await;
            world.gateway.plan.lock().unwrap().push(mishap);
            world.charge("2026-03-10").await;
            world
                .customer(&subscription, |s| if status == Status::Paused { s.pause().unwrap() } else { s.cancel() })
                .await;
            world.charge("2026-03-11").await;
            let stored = world.stored(&subscription).await;
            assert_eq!((stored.status, stored.attempt, stored.next_payment_on), (status, None, None), "{mishap:?}");
            assert_eq!(
                (world.charged().len(), world.receipts(&subscription).await.len()),
                (receipts, receipts),
                "{mishap:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_price_changed_while_an_attempt_is_open_counts_from_the_next() {
    let world = World::new().await;
    let subscription = new_subscription(10, "2026-03-01");
    world.has(&subscription).await;
    world.gateway.plan.lock().unwrap().push(Mishap::LostBefore);
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
async fn no_lost_write_charges_twice_or_loses_the_period() {
    let mut reached_us = 0;
    for has_retries in [true, false] {
        for fault in [Fault::LostBefore, Fault::LostAfter, Fault::Answered("ThrottlingException")] {
            for nth in 1..=2 {
                let planned = fault.clone();
                let wire = Wire::with_faults(move |n, _| if n == nth { planned.clone() } else { Fault::None });
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
