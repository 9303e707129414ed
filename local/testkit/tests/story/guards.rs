//! What a run refuses, what stops it or holds it back, and that one bad item never stops the others.

use std::sync::{Arc, OnceLock};

use aws_sdk_dynamodb::types::AttributeValue;
use billing::Subscription;
use chrono::TimeDelta;
use clock::{Clock as _, SimulatedClock};
use days::{DayRecords, Walked};
use emulator::{Fault, Operation, Wire};
use store::{Batch, Lane, Paging, Position};
use sweep::BatchRequest;

use crate::world::{World, another, counts, date, key, morning, new_subscription};

#[tokio::test]
async fn run_of_a_future_date_is_refused() {
    let world = World::new().await;
    world.clock.set(morning("2026-03-10"));
    let error = world.payments.run(&BatchRequest::on(date("2026-03-11")), morning("2026-03-12")).await.unwrap_err();
    assert_eq!(error.to_string(), "2026-03-11 lies in the future: today is 2026-03-10 in UTC");
}

#[tokio::test]
async fn charge_is_refused_when_the_due_date_sorts_before_today_and_lies_ahead() {
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
async fn run_from_a_position_in_another_shard_is_refused() {
    let world = World::new().await;
    world.clock.set(morning("2026-03-15"));
    let next = Position { lane: Lane::Due, shard: 3, on: String::new(), pk: String::new(), sk: String::new() };
    let request = BatchRequest { shards: Some(vec![0, 1]), next: Some(next), ..BatchRequest::on(date("2026-03-15")) };
    let error = world.payments.run(&request, morning("2026-03-16")).await.unwrap_err();
    assert_eq!(error.to_string(), "next goes on in shard 3, which is not among the shards asked for");
}

#[tokio::test]
async fn run_stops_when_the_gateway_refuses_us() {
    let world = World::new().await;
    for day in 1..=7 {
        world.has(&new_subscription(day, "2026-02-28")).await;
    }
    world.next_charge(Fault::Refused("401"));
    let report = world.charge("2026-03-07").await;
    assert_eq!((report.complete, report.counts.due, counts(&report)), (false, 1, vec![("in_doubt", 1)]));
    assert_eq!(report.stopped.as_deref(), Some("the gateway refuses us: 401"));
    let next = BatchRequest { next: report.next, ..BatchRequest::on(date("2026-03-07")) };
    let rest = world.payments.run(&next, morning("2026-03-07") + TimeDelta::hours(1)).await.unwrap();
    let expected = vec![("in_doubt", 1), ("paid", 6)];
    assert_eq!((rest.complete, counts(&rest)), (true, expected), "goes on where it stopped, and sees what is open");
}

#[tokio::test]
async fn run_that_stops_fails_if_scheduled_and_answers_if_requested() {
    let world = World::new().await;
    world.has(&new_subscription(1, "2026-02-28")).await;
    let deadline = morning("2026-03-07") + TimeDelta::minutes(15);
    for (event, is_failure) in [
        (serde_json::json!({"scheduled_time": "2026-03-07T06:00:00Z"}), true),
        (serde_json::json!({"date": "2026-03-07", "shards": [1]}), false),
    ] {
        world.clock.set(morning("2026-03-07"));
        let stored = world.stored(&new_subscription(1, "2026-02-28")).await;
        if let Some(attempt) = stored.attempt {
            world.clock.set(attempt.leased_until);
        }
        world.next_charge(Fault::Refused("401"));
        let answer = world.payments.handle(event, deadline + TimeDelta::hours(1)).await;
        match answer {
            Err(error) => {
                let said = error.to_string();
                assert!(is_failure && said.starts_with("the day is not done: {"), "{said}");
                assert!(said.contains(r#""stopped":"the gateway refuses us: 401""#), "{said}");
            }
            Ok(report) => {
                let report = report.report().unwrap();
                assert_eq!((report.stopped.as_deref(), is_failure), (Some("the gateway refuses us: 401"), false))
            }
        }
    }
}

#[tokio::test]
async fn run_stops_before_its_deadline_and_says_where_to_continue() {
    let world = World::new().await;
    for day in 1..=7 {
        world.has(&new_subscription(day, "2026-02-28")).await;
    }
    world.clock.set(morning("2026-03-07"));
    let request = BatchRequest::on(date("2026-03-07"));
    let soon = morning("2026-03-07") + TimeDelta::seconds(51);
    let cut = world.payments.run(&request, soon).await.unwrap();
    assert_eq!((cut.complete, cut.counts.due, world.charged().len()), (false, 0, 0), "too little time for a charge");
    let next = BatchRequest { next: cut.next, ..request };
    let rest = world.payments.run(&next, morning("2026-03-07") + TimeDelta::hours(1)).await.unwrap();
    assert_eq!((rest.complete, rest.counts.paid), (true, 7));
}

#[tokio::test]
async fn run_in_parts_goes_on_after_the_time_of_an_invocation_and_reports_the_whole() {
    // The response to each third request comes ten minutes later.
    let clock = Arc::new(OnceLock::<Arc<SimulatedClock>>::new());
    let moved = clock.clone();
    let wire = Wire::with_faults(move |call| {
        if call.number % 3 == 0 {
            let clock = moved.get().unwrap();
            clock.set(clock.now() + TimeDelta::minutes(10));
        }
        None
    });
    let world = World::over(wire).await;
    clock.set(world.clock.clone()).unwrap();
    for n in 0..8 {
        world.has(&another(n, 15, "2026-03-01")).await;
    }
    world.clock.set(morning("2026-03-08"));
    let request = BatchRequest::on(date("2026-03-08"));
    let report = world.reminders.run_in_parts(&request, morning("2026-03-08") + TimeDelta::hours(12)).await.unwrap();
    assert!(report.complete && report.adds_up(), "{report:?}");
    assert_eq!((report.counts.due, world.letterbox.mails().len() as u64), (8, report.counts.sent));
    let runs = world.table.get_runs_by_date(Batch::Reminders, request.date, &Paging::all()).await.unwrap().items;
    assert!(runs.len() > 4, "in parts: {runs:?}");
    assert!(runs.iter().all(|run| run.deadline.unwrap() - run.started_at <= TimeDelta::minutes(15)));
}

#[tokio::test]
async fn run_with_charging_switched_off_claims_nothing_and_settles_what_was_begun() {
    for (fault, begun) in [(Fault::LostAfter, ("paid", 1)), (Fault::LostBefore, ("in_doubt", 1))] {
        let world = World::new().await;
        let (begun_one, due_one) = (new_subscription(6, "2026-02-28"), new_subscription(7, "2026-02-28"));
        world.has(&begun_one).await;
        world.has(&due_one).await;
        world.next_charge(fault);
        assert_eq!(counts(&world.charge("2026-03-06").await), [("in_doubt", 1)]);
        world.table.set_charging(false).await.unwrap();
        let report = world.charge("2026-03-07").await;
        assert_eq!((report.complete, report.stopped.as_deref()), (true, Some("charging is switched off")));
        assert!(counts(&report).contains(&begun) && counts(&report).contains(&("skipped", 1)), "{report:?}");
        let charged = if fault == Fault::LostAfter { vec!["2026-03-06"] } else { vec![] };
        assert_eq!(world.charged(), charged, "nothing new is charged");
        assert_eq!(world.stored(&due_one).await, due_one, "what is due is as it was");

        world.table.set_charging(true).await.unwrap();
        let report = world.charge("2026-03-08").await;
        assert_eq!((report.stopped, world.charged().len()), (None, 2), "all is made good");
    }
}

#[tokio::test]
async fn run_of_a_day_over_a_ceiling_is_not_begun() {
    for (name, value, said) in [
        ("DUEDAY_MAX_CHARGES", "2", "3 payments are due or charged, and at most 2 may be charged in a day"),
        (
            "DUEDAY_MAX_SUMS",
            "JPY=1,EUR=38.96",
            "38.97 EUR are due or charged, and at most 38.96 EUR may be charged in a day",
        ),
        ("DUEDAY_MAX_CHARGES", "3", ""),
        ("DUEDAY_MAX_SUMS", "EUR=38.97", ""),
    ] {
        let world = World::with(&[(name, value)]).await;
        for day in 1..=4 {
            world.has(&new_subscription(day, "2026-02-28")).await;
        }
        world.clock.set(morning("2026-03-03"));
        let request = BatchRequest::on(date("2026-03-03"));
        let ran = world.payments.run(&request, morning("2026-03-03") + TimeDelta::hours(1)).await;
        match said {
            "" => assert_eq!(ran.unwrap().counts.paid, 3, "{name}={value}"),
            said => {
                let said = format!("the day is not begun: {said}");
                assert_eq!(ran.unwrap_err().to_string(), said);
                let runs = world.table.get_runs_by_date(Batch::Payments, date("2026-03-03"), &Paging::all()).await;
                let day = DayRecords::new(Batch::Payments, date("2026-03-03"), 4, morning("2026-03-03"));
                let shards = day.with(runs.unwrap().items).prove();
                assert!(shards.iter().all(|shard| shard.walked == Walked::Stopped));
                assert!(shards.iter().all(|shard| shard.stopped.as_ref() == Some(&said)), "it is on record");
            }
        }
        assert_eq!(world.charged().len(), if said.is_empty() { 3 } else { 0 }, "{name}={value}");
    }
}

#[tokio::test]
async fn run_stops_when_the_gateway_fails_many_times_in_a_row() {
    let world = World::with(&[("DUEDAY_GATEWAY_FAILURES", "3"), ("DUEDAY_CONCURRENCY", "1")]).await;
    for day in 1..=9 {
        world.has(&new_subscription(day, "2026-02-28")).await;
    }
    // Two failures, an answer, and then nothing but failures.
    let lost = Some(Fault::LostBefore);
    world.script.add(Operation::Charge, [lost, lost, None].into_iter().chain([lost; 6]));
    let report = world.charge("2026-03-09").await;
    assert!(!report.complete && report.next.is_some(), "{report:?}");
    let stopped = report.stopped.unwrap();
    assert!(stopped.starts_with("the gateway failed 3 times in a row"), "{stopped}");
    assert_eq!((report.counts.paid, report.counts.in_doubt), (1, 5));
    assert_eq!(world.script.clear(Operation::Charge), 3, "the others were not tried");
}

#[tokio::test]
async fn run_reports_a_bad_item_with_its_key_every_day_and_charges_the_others() {
    let (text, number) = (|text: &str| AttributeValue::S(text.to_owned()), |n: &str| AttributeValue::N(n.to_owned()));
    for (attribute, value, said) in [
        ("Currency", text("DOGE"), "ISO 4217"),
        ("PaymentAmount", text("lots"), "cannot be read"),
        ("PaymentAmount", number("0"), "PaymentAmount must be from 1"),
        ("DueDate", text("2026-02-30"), "cannot be read"),
        ("NextPaymentDate", text("2026-02-30"), "cannot be read"),
        ("Status", text("asleep"), "cannot be read"),
        ("AttemptNo", number("1"), "its attempt is incomplete"),
        ("PaymentDay", number("32"), "must be a day of the month"),
        ("PaymentDetails", text("4242"), "cannot be read"),
    ] {
        let world = World::new().await;
        let bad = new_subscription(1, "2026-02-28");
        for day in 1..=4 {
            world.has(&new_subscription(day, "2026-02-28")).await;
        }
        let of = key(&bad).key();
        let table = world.table.client().update_item().table_name(world.table.name());
        let corrupt = table.key("PK", AttributeValue::S(of.pk.clone())).key("SK", AttributeValue::S(of.sk.clone()));
        let corrupt = corrupt.update_expression("SET #a = :v").expression_attribute_names("#a", attribute);
        corrupt.expression_attribute_values(":v", value).send().await.unwrap();
        for (day, others) in [("2026-03-07", vec![("paid", 3)]), ("2026-03-08", vec![])] {
            let report = world.charge(day).await;
            let expected: Vec<_> = [("failed", 1)].into_iter().chain(others).collect();
            assert_eq!((report.complete, counts(&report)), (true, expected), "{attribute} on {day}");
            assert_eq!(report.failures[0].key, of.to_string(), "{attribute}");
            assert!(report.failures[0].reason.contains(said), "{attribute}: {}", report.failures[0].reason);
        }
        assert_eq!(world.charged().len(), 3, "{attribute}");
    }
}

#[tokio::test]
async fn a_scheduled_run_fails_unless_its_day_is_done() {
    for (story, fault, card, minutes, is_done) in [
        ("all is paid", None, "pm_card_visa", 60, true),
        ("a card is declined", None, "pm_card_visa_chargeDeclined", 60, true),
        ("at the bank", None, "pm_usBankAccount_success", 60, true),
        ("out of time", None, "pm_card_visa", 0, false),
        ("in doubt", Some(Fault::LostAfter), "pm_card_visa", 60, false),
        ("rejected", None, "pm_unknown", 60, false),
    ] {
        let world = World::new().await;
        let subscription =
            Subscription { payment_method: crate::world::card(card), ..new_subscription(7, "2026-02-28") };
        world.has(&subscription).await;
        fault.into_iter().for_each(|fault| world.next_charge(fault));
        world.clock.set(morning("2026-03-07"));
        let event = serde_json::json!({"scheduled_time": "2026-03-07T06:00:00Z"});
        let answer = world.payments.handle(event, morning("2026-03-07") + TimeDelta::minutes(minutes)).await;
        assert_eq!(answer.is_ok(), is_done, "{story}: {answer:?}");
        let has_next = answer.is_err_and(|error| error.to_string().contains(r#""next":{"shard""#));
        assert_eq!(has_next, story == "out of time", "{story}: its error says where to go on");
    }
}

#[tokio::test]
async fn settings_without_a_shard_are_refused() {
    let world = World::new().await;
    let settings = world.table.client().update_item().table_name(world.table.name());
    let key = AttributeValue::S("CTL#settings".to_owned());
    let none = settings.key("PK", key.clone()).key("SK", key).update_expression("SET Shards = :none");
    none.expression_attribute_values(":none", AttributeValue::N("0".to_owned())).send().await.unwrap();
    world.clock.set(morning("2026-03-07"));
    let error = world.payments.run(&BatchRequest::on(date("2026-03-07")), morning("2026-03-08")).await.unwrap_err();
    assert!(error.to_string().contains("Shards must be at least 1, not 0"), "{error}");
}

#[tokio::test]
async fn run_whose_clock_is_far_behind_the_latest_run_refuses_until_an_operator_confirms() {
    let world = World::new().await;
    world.has(&new_subscription(15, "2026-03-01")).await;
    // A machine whose clock is a year ahead begins a run.
    world.remind("2027-03-15").await;
    let now = morning("2026-03-15");
    world.clock.set(now);
    let request = BatchRequest::on(date("2026-03-15"));
    let run = async || world.payments.run(&request, now + TimeDelta::hours(1)).await;
    let begin = serde_json::json!({"begin": {"scheduled_time": now, "execution": "first", "at_once": 1}});
    for error in [run().await.unwrap_err(), world.payments.handle(begin, now + TimeDelta::hours(1)).await.unwrap_err()]
    {
        assert_eq!(error.kind(), "ClockBehind");
        let said =
            "this machine's clock says 2026-03-15 06:00:00 UTC, and a run was recorded at 2027-03-15 06:00:00 UTC";
        assert!(error.to_string().starts_with(said), "{error}");
    }
    assert_eq!(world.charged().len(), 0);
    world.table.confirm_clock(now, morning("2027-03-15")).await.unwrap();
    assert_eq!(run().await.unwrap().counts.paid, 1);
    // An hour is borne.
    for (minutes, is_refused) in [(60, false), (61, true)] {
        world.clock.set(now - TimeDelta::minutes(minutes));
        assert_eq!(run().await.is_err(), is_refused, "{minutes} minutes behind");
    }
}
