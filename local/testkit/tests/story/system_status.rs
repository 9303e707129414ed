//! Tests of the state of the system, which an operator reads each morning.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use billing::{
    AuditRecord, DayReconciliation, DifferenceKind, PaymentLimit, PaymentLimits, StoredSecret, Subscription,
    WebhookEndpoint,
};
use chrono::TimeDelta;
use days::{DayState, ProcessFacts, SystemStatus};
use sweep::BatchRequest;
use ulid::Ulid;

use crate::world::{World, billing_time, card, date, new_subscription, numbered_subscription};

/// An item of the table.
type Item = HashMap<String, AttributeValue>;

/// Reads the state of the system one hour after the billing time of `day`.
async fn status_on(world: &World, day: &str) -> SystemStatus {
    let settings = world.table.get_settings().await.unwrap().unwrap();
    let now = billing_time(day) + TimeDelta::hours(1);
    SystemStatus::read(&world.table, &settings, ProcessFacts::without_queues(), now).await.unwrap()
}

/// Returns the sentences of the concerns in `status`.
fn problems(status: &SystemStatus) -> Vec<String> {
    status.concerns.iter().map(ToString::to_string).collect()
}

/// Stores an audit that ended at the billing time of `day` without violations, and a comparison of the day before
/// without differences.
async fn audit_and_compare(world: &World, day: &str) {
    let at = billing_time(day);
    let id = Ulid::from_parts(at.timestamp_millis().try_into().unwrap(), 0);
    let audit = AuditRecord { ended_at: Some(at), ..AuditRecord::new(id, false, at) };
    world.table.create_audit(&audit).await.unwrap();
    let compared =
        DayReconciliation { ended_at: Some(at), ..DayReconciliation::new(date(day).pred_opt().unwrap(), at) };
    assert!(world.table.create_reconciliation(&compared).await.unwrap());
}

/// Returns the state of each day and batch in `status`, with a text such as `2026-03-10 payments`.
fn states(status: &SystemStatus) -> Vec<(String, DayState)> {
    status.days.iter().map(|day| (format!("{} {}", day.date, day.batch), day.state)).collect()
}

#[tokio::test]
async fn status_shows_yesterday_and_today_and_the_problems_that_need_a_person() {
    let world = World::new().await;
    let created = status_on(&world, "2026-01-01").await;
    assert_eq!(created.days.len(), 2, "the table did not exist yesterday");
    assert_eq!(problems(&created), [""; 0], "the runs of today may still come");

    world.store(&new_subscription(10, "2026-03-01")).await;
    world.store(&new_subscription(11, "2026-03-01")).await;
    for day in ["2026-03-09", "2026-03-10"] {
        world.run_reminders(day).await;
        world.run_payments(day).await;
    }
    audit_and_compare(&world, "2026-03-10").await;
    let done = status_on(&world, "2026-03-10").await;
    assert!(states(&done).iter().all(|(_, state)| *state == DayState::Done), "{done:?}");
    assert!(done.days.iter().all(|day| (day.complete_shards, day.shards) == (4, 4)), "{done:?}");
    assert_eq!((done.charged_today.payments, done.charged_today.sums.to_string().as_str()), (1, "12.99 EUR"));
    assert_eq!((done.oldest_due_on, problems(&done)), (None, Vec::new()));

    let morning = status_on(&world, "2026-03-11").await;
    assert_eq!(morning.oldest_due_on.unwrap().to_string(), "2026-03-11");
    assert_eq!(problems(&morning), [""; 0], "the payment of today is not late");

    // No run happens on March 11, and charging is switched off.
    world.table.set_charging(false, None).await.unwrap();
    let missed = status_on(&world, "2026-03-12").await;
    assert_eq!(
        problems(&missed),
        [
            "charging is switched off, so runs charge nothing",
            "the reminders of 2026-03-11 are not done: 0 of 4 shards are complete",
            "the payments of 2026-03-11 are not done: 0 of 4 shards are complete",
            "payments are due and not settled; the oldest has been due since 2026-03-11",
        ]
    );
}

#[tokio::test]
async fn status_names_the_latest_compared_day_if_it_is_old() {
    let world = World::new().await;
    let started_at = billing_time("2026-03-08");
    let compared =
        DayReconciliation { ended_at: Some(started_at), ..DayReconciliation::new(date("2026-03-07"), started_at) };
    assert!(world.table.create_reconciliation(&compared).await.unwrap());
    // The comparisons of later days have begun, but the gateway has not responded.
    for day in ["2026-03-08", "2026-03-09"] {
        let begun = DayReconciliation::new(date(day), billing_time("2026-03-10"));
        assert!(world.table.create_reconciliation(&begun).await.unwrap());
    }
    let is_old = "no day after 2026-03-07 was compared with the gateway".to_owned();
    assert!(!problems(&status_on(&world, "2026-03-10").await).contains(&is_old));
    assert!(problems(&status_on(&world, "2026-03-11").await).contains(&is_old));
}

#[tokio::test]
async fn differences_of_the_last_months_and_violations_of_the_audit_that_ended_stay_problems() {
    let world = World::new().await;
    // Each day since January was compared, and only the first day has differences.
    for day in date("2026-01-05").iter_days().take_while(|day| *day <= date("2026-03-07")) {
        let differences = if day == date("2026-01-05") { 2 } else { 0 };
        let new = DayReconciliation::new(day, billing_time("2026-03-08"));
        assert!(world.table.create_reconciliation(&new).await.unwrap());
        let differences = [(DifferenceKind::ReceiptWithoutPayment, differences)].into_iter().filter(|(_, n)| *n > 0);
        let next = DayReconciliation { differences: differences.collect(), ..new.clone() };
        world.table.update_reconciliation(&new, next).await.unwrap();
    }
    let differences = "differences between the table and the gateway on 2026-01-05: 2".to_owned();
    assert!(problems(&status_on(&world, "2026-03-08").await).contains(&differences));

    // The audit of the next night has begun, and has found nothing so far.
    let audit = |ms, day| AuditRecord::new(Ulid::from_parts(ms, 0), false, billing_time(day));
    let violations = [("paid".to_owned(), 3)].into();
    let ended = AuditRecord { violations, ended_at: Some(billing_time("2026-03-07")), ..audit(1, "2026-03-07") };
    for audit in [&ended, &audit(2, "2026-03-08")] {
        world.table.create_audit(audit).await.unwrap();
    }
    let violations = format!("violations that the audit {} found: 3", ended.id);
    assert!(problems(&status_on(&world, "2026-03-08").await).contains(&violations));
}

/// Returns a world with one subscription of each payment day in `payment_days`, whose batches ran on March 9 and 10, and
/// which was audited and compared.
async fn world_on_march_10(payment_days: &[i64]) -> World {
    let world = World::new().await;
    for payment_day in payment_days {
        world.store(&new_subscription(*payment_day, "2026-03-01")).await;
    }
    for day in ["2026-03-09", "2026-03-10"] {
        world.run_reminders(day).await;
        world.run_payments(day).await;
    }
    audit_and_compare(&world, "2026-03-10").await;
    world
}

#[tokio::test]
async fn payments_that_a_bank_or_a_dispute_delays_need_no_person() {
    let world = world_on_march_10(&[]).await;
    let account = card("pm_usBankAccount_success");
    let debit = Subscription { payment_method: account, ..numbered_subscription(1, 11, "2026-03-01") };
    let disputed_at = Some(billing_time("2026-03-10"));
    let disputed = Subscription { disputed_at, ..numbered_subscription(2, 11, "2026-03-01") };
    world.store(&debit).await;
    world.store(&disputed).await;
    for day in ["2026-03-11", "2026-03-12"] {
        world.run_reminders(day).await;
        world.run_payments(day).await;
    }
    let status = status_on(&world, "2026-03-12").await;
    assert_eq!(status.oldest_due_on, Some(date("2026-03-11")));
    assert_eq!(problems(&status), [""; 0]);

    // Without the dispute, the payment should have been made.
    world.change_subscription(&disputed, |s| Subscription { disputed_at: None, ..s.clone() }).await;
    let late = "payments are due and not settled; the oldest has been due since 2026-03-11".to_owned();
    assert_eq!(problems(&status_on(&world, "2026-03-12").await), std::slice::from_ref(&late));
    world.change_subscription(&disputed, |s| Subscription { disputed_at, ..s.clone() }).await;

    // A bank that processes a debit for more than 25 days needs a person.
    let status = status_on(&world, "2026-04-10").await;
    assert!(problems(&status).contains(&late), "{status:?}");
}

#[tokio::test]
async fn runs_that_stop_on_the_day_itself_need_a_person() {
    let world = world_on_march_10(&[11]).await;
    let before = PaymentLimits::default();
    let mut limits = before.clone();
    limits.set_limit(PaymentLimit::MaxCharges, "0").unwrap();
    assert!(world.table.set_payment_limits(&before, &limits, None).await.unwrap());
    world.run_reminders("2026-03-11").await;
    world.clock.set(billing_time("2026-03-11"));
    let request = BatchRequest::for_date(date("2026-03-11"));
    let deadline = billing_time("2026-03-11") + TimeDelta::minutes(10);
    assert!(world.payments.run(&request, deadline).await.is_err());
    let [concern] = status_on(&world, "2026-03-11").await.concerns.try_into().unwrap();
    let text = concern.to_string();
    let expected = "the payments of 2026-03-11, today, have stopped in 4 of 4 shards; the run was not started: ";
    assert!(text.starts_with(expected), "{text}");
}

#[tokio::test]
async fn clock_behind_the_latest_run_and_disabled_endpoint_need_a_person() {
    let world = world_on_march_10(&[11]).await;
    let settings = world.table.get_settings().await.unwrap().unwrap();
    let now = billing_time("2026-03-09") + TimeDelta::hours(1);
    let status = SystemStatus::read(&world.table, &settings, ProcessFacts::without_queues(), now).await.unwrap();
    let text = problems(&status).concat();
    assert!(text.contains("a run was recorded at 2026-03-10 06:00:00 UTC, so no run starts"), "{text}");

    let url = "https://example.com/hook".parse().unwrap();
    let secret = StoredSecret::Encrypted("v1:1".to_owned());
    let endpoint = WebhookEndpoint {
        disabled_because: Some("it failed for 5 days".to_owned()),
        ..WebhookEndpoint::new(Ulid::from_parts(1, 1), url, secret, now)
    };
    world.table.create_webhook_endpoint(&endpoint, None).await.unwrap();
    let disabled = format!("the webhook endpoint {} is disabled: it failed for 5 days", endpoint.id);
    assert_eq!(problems(&status_on(&world, "2026-03-10").await), [disabled]);
}

#[tokio::test]
async fn unreadable_or_copied_run_record_stops_only_its_shard() {
    let world = world_on_march_10(&[11]).await;
    let is_run = |item: &Item, sk: &str| {
        item["PK"] == AttributeValue::S("RUN#payments#2026-03-10".to_owned())
            && item["SK"].as_s().unwrap().starts_with(sk)
    };
    let put = |item: Item| world.table.client().put_item().table_name(world.table.name()).set_item(Some(item)).send();
    let items = world.table.scan().await.unwrap();
    let mut unreadable = items.iter().find(|item| is_run(item, "SHARD#1#")).unwrap().clone();
    unreadable.insert("StartedAt".to_owned(), AttributeValue::S("yesterday".to_owned()));
    put(unreadable).await.unwrap();
    let text = problems(&status_on(&world, "2026-03-11").await).concat();
    assert!(text.contains("the payments of 2026-03-10 are not done: 3 of 4 shards are complete"), "{text}");
    assert!(text.contains("run records of the payments of 2026-03-10 cannot be read: 1; the item RUN#"), "{text}");

    // Copies of the records of March 10 do not prove that March 11, on which no run happened, is done.
    for item in items.iter().filter(|item| is_run(item, "SHARD#")) {
        let mut copy = item.clone();
        copy.insert("PK".to_owned(), AttributeValue::S("RUN#payments#2026-03-11".to_owned()));
        put(copy).await.unwrap();
    }
    let text = problems(&status_on(&world, "2026-03-12").await).concat();
    assert!(text.contains("the payments of 2026-03-11 are not done: 0 of 4 shards are complete"), "{text}");

    // A later run reads and settles all that these days have left.
    world.run_reminders("2026-03-12").await;
    world.run_payments("2026-03-12").await;
    let done = status_on(&world, "2026-03-12").await;
    let of_payments = |(day, state): &(String, DayState)| !day.ends_with("payments") || *state == DayState::Done;
    assert!(states(&done).iter().all(of_payments), "{done:?}");

    // Neither do copies whose date was changed too: a run never begins days before its date.
    for item in items.iter().filter(|item| is_run(item, "SHARD#")) {
        let mut copy = item.clone();
        copy.insert("PK".to_owned(), AttributeValue::S("RUN#payments#2026-03-13".to_owned()));
        copy.insert("Date".to_owned(), AttributeValue::S("2026-03-13".to_owned()));
        put(copy).await.unwrap();
    }
    let text = problems(&status_on(&world, "2026-03-14").await).concat();
    assert!(text.contains("the payments of 2026-03-13 are not done: 0 of 4 shards are complete"), "{text}");
    assert!(text.contains("of 2026-03-13 began before this day"), "{text}");
}

#[tokio::test]
async fn rejected_charge_needs_a_person_until_its_payment_is_settled() {
    let world = World::new().await;
    let rejected = Subscription { payment_method: card("pm_unknown"), ..new_subscription(10, "2026-03-01") };
    world.store(&rejected).await;
    for day in ["2026-03-09", "2026-03-10"] {
        world.run_reminders(day).await;
        world.run_payments(day).await;
    }
    audit_and_compare(&world, "2026-03-10").await;
    let expected = "payments whose charge the gateway has rejected: 1";
    assert_eq!(problems(&status_on(&world, "2026-03-10").await), [expected]);

    // The day of the rejection stays incomplete, but that needs no person.
    world.change_subscription(&rejected, |s| Subscription { payment_method: card("pm_card_visa"), ..s.clone() }).await;
    world.run_reminders("2026-03-11").await;
    world.run_payments("2026-03-11").await;
    let settled = status_on(&world, "2026-03-11").await;
    assert_eq!(states(&settled)[1], ("2026-03-10 payments".to_owned(), DayState::NotDone), "{settled:?}");
    assert_eq!(problems(&settled), [""; 0]);
}

#[tokio::test]
async fn rejected_charge_is_reported_even_if_more_rows_are_due_than_the_status_reads() {
    let world = World::with_one_shard().await;
    let rejected = Subscription { payment_method: card("pm_unknown"), ..new_subscription(10, "2026-03-01") };
    world.store(&rejected).await;
    world.run_reminders("2026-03-10").await;
    world.run_payments("2026-03-10").await;
    // These rows come before the rejected one, which is due tomorrow.
    for n in 1..1_050 {
        world.store(&numbered_subscription(n, 10, "2026-03-01")).await;
    }
    let problems = problems(&status_on(&world, "2026-03-10").await).concat();
    assert!(problems.contains("payments whose charge the gateway has rejected: 1"), "{problems}");
}
