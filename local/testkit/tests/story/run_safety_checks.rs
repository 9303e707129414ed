//! Tests of the safety checks of runs: rejected run requests, limits, and early stops. Also tests that an unreadable
//! item does not prevent the charges of other items.

use std::sync::{Arc, OnceLock};

use aws_sdk_dynamodb::types::AttributeValue;
use billing::Subscription;
use chrono::TimeDelta;
use clock::{Clock as _, SimulatedClock};
use days::{DayRecords, ShardState};
use emulator::{EngineConnection, ExternalOperation, Fault};
use store::{Batch, DueIndexPosition, Lane, Paging};
use sweep::BatchRequest;

use crate::world::{World, billing_time, date, key, new_subscription, nonzero_counts, numbered_subscription};

#[tokio::test]
async fn run_for_a_future_date_is_rejected() {
    let world = World::new().await;
    world.clock.set(billing_time("2026-03-10"));
    let error =
        world.payments.run(&BatchRequest::for_date(date("2026-03-11")), billing_time("2026-03-12")).await.unwrap_err();
    assert_eq!(error.to_string(), "2026-03-11 lies in the future: today is 2026-03-10 in UTC");
}

#[tokio::test]
async fn future_due_date_that_sorts_before_today_is_not_charged() {
    let world = World::new().await;
    let subscription = new_subscription(15, "2026-03-01");
    world.store(&subscription).await;
    // As text, the year +10000 sorts before 2026, so the index returns the subscription as due.
    let far = "+10000-01-15".parse().unwrap();
    world
        .change_subscription(&subscription, |s| Subscription { due_on: far, next_payment_on: Some(far), ..s.clone() })
        .await;
    let report = world.run_payments("2026-03-15").await;
    assert_eq!((nonzero_counts(&report), world.charged_due_dates().len()), (vec![("failed", 1)], 0));
    assert_eq!(report.failures[0].reason, "the index contains the due date +10000-01-15, which is after 2026-03-15");
}

#[tokio::test]
async fn run_with_a_position_in_a_shard_that_was_not_requested_is_rejected() {
    let world = World::new().await;
    world.clock.set(billing_time("2026-03-15"));
    let next = DueIndexPosition { lane: Lane::Due, shard: 3, on: String::new(), pk: String::new(), sk: String::new() };
    let request =
        BatchRequest { shards: Some(vec![0, 1]), next: Some(next), ..BatchRequest::for_date(date("2026-03-15")) };
    let error = world.payments.run(&request, billing_time("2026-03-16")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the position `next` of the request (shard 3) is in a lane or shard that was not requested"
    );
}

#[tokio::test]
async fn run_stops_if_the_gateway_rejects_our_credentials() {
    let world = World::new().await;
    for day in 1..=7 {
        world.store(&new_subscription(day, "2026-02-28")).await;
    }
    world.inject_charge_fault(Fault::Refused("401"));
    let report = world.run_payments("2026-03-07").await;
    assert_eq!((report.complete, report.counts.due, nonzero_counts(&report)), (false, 1, vec![("in_doubt", 1)]));
    assert_eq!(report.stopped.as_deref(), Some("the gateway refuses our requests: 401"));
    let next = BatchRequest { next: report.next, ..BatchRequest::for_date(date("2026-03-07")) };
    let rest = world.payments.run(&next, billing_time("2026-03-07") + TimeDelta::hours(1)).await.unwrap();
    let expected = vec![("in_doubt", 1), ("paid", 6)];
    assert_eq!(
        (rest.complete, nonzero_counts(&rest)),
        (true, expected),
        "the next run continues at the position that the stopped run returned, and counts its open attempt"
    );
}

#[tokio::test]
async fn stopped_run_fails_if_scheduled_and_returns_a_report_if_requested() {
    let world = World::new().await;
    world.store(&new_subscription(1, "2026-02-28")).await;
    let deadline = billing_time("2026-03-07") + TimeDelta::minutes(15);
    for (event, is_failure) in [
        (serde_json::json!({"scheduled_time": "2026-03-07T06:00:00Z"}), true),
        (serde_json::json!({"date": "2026-03-07", "shards": [1]}), false),
    ] {
        world.clock.set(billing_time("2026-03-07"));
        let stored = world.load(&new_subscription(1, "2026-02-28")).await;
        if let Some(attempt) = stored.attempt {
            world.clock.set(attempt.leased_until);
        }
        world.inject_charge_fault(Fault::Refused("401"));
        match world.payments.handle_invocation(event, deadline + TimeDelta::hours(1)).await {
            Err(error) => {
                let error = error.to_string();
                assert!(is_failure && error.starts_with("the day is not done: {"), "{error}");
                assert!(error.contains(r#""stopped":"the gateway refuses our requests: 401""#), "{error}");
            }
            Ok(report) => {
                let report = report.report().unwrap();
                assert_eq!(
                    (report.stopped.as_deref(), is_failure),
                    (Some("the gateway refuses our requests: 401"), false)
                )
            }
        }
    }
}

#[tokio::test]
async fn run_stops_before_its_deadline_and_returns_the_next_position() {
    let world = World::new().await;
    for day in 1..=7 {
        world.store(&new_subscription(day, "2026-02-28")).await;
    }
    world.clock.set(billing_time("2026-03-07"));
    let request = BatchRequest::for_date(date("2026-03-07"));
    let soon = billing_time("2026-03-07") + TimeDelta::seconds(51);
    let stopped = world.payments.run(&request, soon).await.unwrap();
    let charges = world.charged_due_dates().len();
    assert_eq!(
        (stopped.complete, stopped.counts.due, charges),
        (false, 0, 0),
        "51 seconds are too little time for a charge"
    );
    let next = BatchRequest { next: stopped.next, ..request };
    let rest = world.payments.run(&next, billing_time("2026-03-07") + TimeDelta::hours(1)).await.unwrap();
    assert_eq!((rest.complete, rest.counts.paid), (true, 7));
}

#[tokio::test]
async fn run_in_parts_continues_after_the_maximum_invocation_time_and_reports_the_total() {
    // Every third request to the table takes ten minutes.
    let clock = Arc::new(OnceLock::<Arc<SimulatedClock>>::new());
    let advanced_clock = clock.clone();
    let connection = EngineConnection::with_faults(move |call| {
        if call.number % 3 == 0 {
            let clock = advanced_clock.get().unwrap();
            clock.set(clock.now() + TimeDelta::minutes(10));
        }
        None
    });
    let world = World::with_connection(connection).await;
    clock.set(world.clock.clone()).unwrap();
    for n in 0..8 {
        world.store(&numbered_subscription(n, 15, "2026-03-01")).await;
    }
    world.clock.set(billing_time("2026-03-08"));
    let request = BatchRequest::for_date(date("2026-03-08"));
    let report =
        world.reminders.run_in_parts(&request, billing_time("2026-03-08") + TimeDelta::hours(12)).await.unwrap();
    assert!(report.complete && report.adds_up(), "{report:?}");
    assert_eq!((report.counts.due, world.mails_sent.mails().len() as u64), (8, report.counts.sent));
    let runs = world.table.get_runs_by_date(Batch::Reminders, request.date, &Paging::all()).await.unwrap().items;
    assert!(runs.len() > 4, "the run must have several parts: {runs:?}");
    assert!(runs.iter().all(|run| run.deadline.unwrap() - run.started_at <= TimeDelta::minutes(15)));
}

#[tokio::test]
async fn run_with_charging_switched_off_claims_nothing_but_settles_open_attempts() {
    for (fault, open_count) in [(Fault::LostAfter, ("paid", 1)), (Fault::LostBefore, ("in_doubt", 1))] {
        let world = World::new().await;
        let (with_open_attempt, due) = (new_subscription(6, "2026-02-28"), new_subscription(7, "2026-02-28"));
        world.store(&with_open_attempt).await;
        world.store(&due).await;
        world.inject_charge_fault(fault);
        assert_eq!(nonzero_counts(&world.run_payments("2026-03-06").await), [("in_doubt", 1)]);
        world.table.set_charging(false, None).await.unwrap();
        let report = world.run_payments("2026-03-07").await;
        assert_eq!((report.complete, report.stopped.as_deref()), (true, Some("charging is switched off")));
        let counts = nonzero_counts(&report);
        assert!(counts.contains(&open_count) && counts.contains(&("skipped", 1)), "{report:?}");
        let charged = if fault == Fault::LostAfter { vec!["2026-03-06"] } else { vec![] };
        assert_eq!(world.charged_due_dates(), charged, "no new charge");
        assert_eq!(world.load(&due).await, due, "the due subscription is unchanged");

        world.table.set_charging(true, None).await.unwrap();
        let report = world.run_payments("2026-03-08").await;
        assert_eq!(
            (report.stopped, world.charged_due_dates().len()),
            (None, 2),
            "both subscriptions are charged after charging is switched on"
        );
    }
}

#[tokio::test]
async fn run_over_a_daily_limit_is_not_started() {
    // Three payments, 38.97 EUR in total, are due. `rejection` is the expected message of the rejected run. It is empty
    // if the payments are within the limit.
    for (name, value, rejection) in [
        ("max-charges", "2", "3 payments are due or charged; at most 2 may be charged per day"),
        ("max-sums", "JPY=1,EUR=38.96", "38.97 EUR are due or charged; at most 38.96 EUR may be charged per day"),
        ("max-charges", "3", ""),
        ("max-sums", "EUR=38.97", ""),
    ] {
        let world = World::with_payment_limits(&[(name, value)]).await;
        for day in 1..=4 {
            world.store(&new_subscription(day, "2026-02-28")).await;
        }
        world.clock.set(billing_time("2026-03-03"));
        let request = BatchRequest::for_date(date("2026-03-03"));
        let result = world.payments.run(&request, billing_time("2026-03-03") + TimeDelta::hours(1)).await;
        match rejection {
            "" => assert_eq!(result.unwrap().counts.paid, 3, "{name}={value}"),
            rejection => {
                let expected = format!("the run was not started: {rejection}");
                assert_eq!(result.unwrap_err().to_string(), expected);
                let runs = world.table.get_runs_by_date(Batch::Payments, date("2026-03-03"), &Paging::all()).await;
                let day = DayRecords::new(Batch::Payments, date("2026-03-03"), 4, billing_time("2026-03-03"));
                let shards = day.with_records(runs.unwrap().items).prove_shards();
                assert!(shards.iter().all(|shard| shard.walked == ShardState::Stopped));
                let is_recorded = shards.iter().all(|shard| shard.stopped.as_ref() == Some(&expected));
                assert!(is_recorded, "the run records contain the reason");
            }
        }
        assert_eq!(world.charged_due_dates().len(), if rejection.is_empty() { 3 } else { 0 }, "{name}={value}");
    }
}

#[tokio::test]
async fn run_stops_after_consecutive_gateway_failures() {
    let world = World::with_settings(&[("DUEDAY_CONCURRENCY", "1")]).await;
    world.set_payment_limits(&[("gateway-failures", "3")]).await;
    for day in 1..=9 {
        world.store(&new_subscription(day, "2026-02-28")).await;
    }
    // The first two charges fail, the third succeeds, and all further charges fail.
    let lost = Some(Fault::LostBefore);
    world.script.add(ExternalOperation::Charge, [lost, lost, None].into_iter().chain([lost; 6]));
    let report = world.run_payments("2026-03-09").await;
    assert!(!report.complete && report.next.is_some(), "{report:?}");
    let stopped = report.stopped.unwrap();
    assert!(stopped.starts_with("the gateway failed 3 times in a row"), "{stopped}");
    assert_eq!((report.counts.paid, report.counts.in_doubt), (1, 5));
    assert_eq!(world.script.clear(ExternalOperation::Charge), 3, "the run does not try the other charges");
}

#[tokio::test]
async fn unreadable_item_is_reported_with_its_key_every_day_and_others_are_charged() {
    let (text, number) = (|text: &str| AttributeValue::S(text.to_owned()), |n: &str| AttributeValue::N(n.to_owned()));
    for (attribute, value, expected_reason) in [
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
        let unreadable = new_subscription(1, "2026-02-28");
        for day in 1..=4 {
            world.store(&new_subscription(day, "2026-02-28")).await;
        }
        let item_key = key(&unreadable).key();
        let table = world.table.client().update_item().table_name(world.table.name());
        let corrupt =
            table.key("PK", AttributeValue::S(item_key.pk.clone())).key("SK", AttributeValue::S(item_key.sk.clone()));
        let corrupt = corrupt.update_expression("SET #a = :v").expression_attribute_names("#a", attribute);
        corrupt.expression_attribute_values(":v", value).send().await.unwrap();
        for (day, others) in [("2026-03-07", vec![("paid", 3)]), ("2026-03-08", vec![])] {
            let report = world.run_payments(day).await;
            let expected: Vec<_> = [("failed", 1)].into_iter().chain(others).collect();
            assert_eq!((report.complete, nonzero_counts(&report)), (true, expected), "{attribute} on {day}");
            assert_eq!(report.failures[0].key, item_key.to_string(), "{attribute}");
            assert!(report.failures[0].reason.contains(expected_reason), "{attribute}: {}", report.failures[0].reason);
        }
        assert_eq!(world.charged_due_dates().len(), 3, "{attribute}");
    }
}

#[tokio::test]
async fn scheduled_run_fails_unless_its_day_is_done() {
    // `minutes` is the time that the run has until its deadline.
    for (case, fault, card, minutes, is_done) in [
        ("the payment succeeds", None, "pm_card_visa", 60, true),
        ("the card is declined", None, "pm_card_visa_chargeDeclined", 60, true),
        ("the bank is processing a debit", None, "pm_usBankAccount_success", 60, true),
        ("out of time", None, "pm_card_visa", 0, false),
        ("in doubt", Some(Fault::LostAfter), "pm_card_visa", 60, false),
        ("rejected", None, "pm_unknown", 60, false),
    ] {
        let world = World::new().await;
        let subscription =
            Subscription { payment_method: crate::world::card(card), ..new_subscription(7, "2026-02-28") };
        world.store(&subscription).await;
        fault.into_iter().for_each(|fault| world.inject_charge_fault(fault));
        world.clock.set(billing_time("2026-03-07"));
        let event = serde_json::json!({"scheduled_time": "2026-03-07T06:00:00Z"});
        let result =
            world.payments.handle_invocation(event, billing_time("2026-03-07") + TimeDelta::minutes(minutes)).await;
        assert_eq!(result.is_ok(), is_done, "{case}: {result:?}");
        let has_next = result.is_err_and(|error| error.to_string().contains(r#""next":{"shard""#));
        assert_eq!(has_next, case == "out of time", "{case}: the error contains the next position");
    }
}

#[tokio::test]
async fn settings_with_zero_shards_are_rejected() {
    let world = World::new().await;
    let settings = world.table.client().update_item().table_name(world.table.name());
    let key = AttributeValue::S("CTL#settings".to_owned());
    let set_zero = settings.key("PK", key.clone()).key("SK", key).update_expression("SET Shards = :none");
    set_zero.expression_attribute_values(":none", AttributeValue::N("0".to_owned())).send().await.unwrap();
    world.clock.set(billing_time("2026-03-07"));
    let error =
        world.payments.run(&BatchRequest::for_date(date("2026-03-07")), billing_time("2026-03-08")).await.unwrap_err();
    assert!(error.to_string().contains("Shards must be at least 1, not 0"), "{error}");
}

#[tokio::test]
async fn run_with_a_clock_far_behind_the_latest_run_is_rejected_until_an_operator_confirms_the_clock() {
    let world = World::new().await;
    world.store(&new_subscription(15, "2026-03-01")).await;
    // A machine with a clock that is a year fast starts a run.
    world.run_reminders("2027-03-15").await;
    let now = billing_time("2026-03-15");
    world.clock.set(now);
    let request = BatchRequest::for_date(date("2026-03-15"));
    let run = async || world.payments.run(&request, now + TimeDelta::hours(1)).await;
    let begin = serde_json::json!({"begin": {"scheduled_time": now, "execution": "first", "at_once": 1}});
    for error in [
        run().await.unwrap_err(),
        world.payments.handle_invocation(begin, now + TimeDelta::hours(1)).await.unwrap_err(),
    ] {
        assert_eq!(error.error_type(), "ClockBehind");
        let expected =
            "this machine's clock says 2026-03-15 06:00:00 UTC, and a run was recorded at 2027-03-15 06:00:00 UTC";
        assert!(error.to_string().starts_with(expected), "{error}");
    }
    assert_eq!(world.charged_due_dates().len(), 0);
    world.table.confirm_clock(now, billing_time("2027-03-15"), None).await.unwrap();
    assert_eq!(run().await.unwrap().counts.paid, 1);
    // A clock that is up to an hour behind the latest run is accepted.
    for (minutes, is_rejected) in [(60, false), (61, true)] {
        world.clock.set(now - TimeDelta::minutes(minutes));
        assert_eq!(run().await.is_err(), is_rejected, "{minutes} minutes behind");
    }
}
