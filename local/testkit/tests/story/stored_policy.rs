//! Tests of the policy that the table stores: which of several values counts, from when on, and for how long.

use aws_sdk_dynamodb::types::AttributeValue;
use billing::{ActionKind, Actor, NewAction, PolicySetting, StoredPolicy, Subscription};
use chrono::TimeDelta;
use clock::Clock as _;
use deployment::Deployment;
use store::{Batch, SetPolicyOutcome, Table};
use sweep::{BatchRequest, SweepError};
use testkit::{capture_log_lines, read_test_config};

use crate::world::{World, billing_time, card, connection_with_act_before, date, new_subscription};

/// Returns the deployment of `world` as a process sees it whose variables contain `variables`.
fn process_with(world: &World, variables: &[(&str, &str)]) -> Deployment {
    let (config, deployment) = (read_test_config(variables).unwrap(), &world.system.deployment);
    let table = config.table.connect_with(deployment.table.client().clone());
    Deployment { table, config, ..deployment.clone() }
}

/// Returns the policy that is stored in `table`.
async fn stored(table: &Table) -> Option<StoredPolicy> {
    table.get_settings().await.unwrap().unwrap().policy
}

#[tokio::test]
async fn run_uses_the_policy_of_the_table_although_its_variables_differ() {
    let (world, subscription) = (World::new().await, new_subscription(10, "2026-03-01"));
    world.store(&subscription).await;
    // In UTC this is still the day before the due date. In Kiritimati it is the due date.
    world.clock.set("2026-03-09T12:00:00Z".parse().unwrap());
    let deadline = world.clock.now() + TimeDelta::hours(1);
    let request = BatchRequest::for_date(date("2026-03-10"));
    let elsewhere = process_with(&world, &[("DUEDAY_TIME_ZONE", "Pacific/Kiritimati")]);
    let (logged, guard) = capture_log_lines();
    let payments = elsewhere.payment_batch().await.unwrap();
    let refused = payments.run(&request, deadline).await;
    assert!(matches!(refused, Err(SweepError::Future { today, .. }) if today == date("2026-03-09")), "{refused:?}");
    drop(guard);
    let warned: Vec<_> =
        logged.fields_of_lines().into_iter().filter(|line| line["message"] == store::POLICY_DIFFERS_MESSAGE).collect();
    assert_eq!(warned.len(), 1, "the variable is logged once: {warned:?}");
    assert_eq!(warned[0]["variable"], "DUEDAY_TIME_ZONE");
    assert_eq!((&warned[0]["given"], &warned[0]["stored"]), (&"Pacific/Kiritimati".into(), &"UTC".into()));

    world.set_policy(PolicySetting::TimeZone, "Pacific/Kiritimati").await;
    let report = payments.run(&request, deadline).await.unwrap();
    assert_eq!(report.counts.paid, 1, "the next run of the same process uses the new policy");
}

#[tokio::test]
async fn batch_keeps_its_policy_although_another_user_of_the_table_reads_a_new_one() {
    let world = World::new().await;
    let deployment = &world.system.deployment;
    let payments = deployment.payment_batch().await.unwrap();
    let (before, after) = world.set_policy(PolicySetting::TimeZone, "Pacific/Kiritimati").await;
    deployment.table.refresh_policy(world.clock.now()).await.unwrap();
    assert_eq!(*deployment.table.policy(), after);
    assert_eq!(*payments.policy(), before, "only the next run reads the policy again");
}

/// The policy that an operator sets during a run. Each of its settings determines a date.
const NEW_POLICY: [(PolicySetting, &str); 3] =
    [(PolicySetting::ReminderLeadDays, "3"), (PolicySetting::RetryGaps, "5,9"), (PolicySetting::CatchUp, "latest")];

/// Sets [`NEW_POLICY`] in `table`, as if no execution had its lease.
async fn set_new_policy(table: Table) {
    let settings = table.get_settings().await.unwrap().unwrap();
    let before = settings.policy.clone().unwrap();
    let after = NEW_POLICY.iter().fold(before, |policy, (setting, text)| policy.with_setting(*setting, text).unwrap());
    let now = billing_time("2026-03-10");
    let action = NewAction { at: now, actor: Actor::Anonymous, kind: ActionKind::ChangeSettings, reason: None };
    assert_eq!(table.set_policy(&settings, &after, now, &action).await.unwrap(), SetPolicyOutcome::Set);
}

#[tokio::test]
async fn policy_that_changes_at_any_request_of_a_run_counts_from_the_next_run_on() {
    // The paid subscription gets a reminder date, the declined one a retry date, and the third one has missed two months.
    let (paid, missed) = (new_subscription(10, "2026-03-01"), new_subscription(9, "2026-01-01"));
    let card = card("pm_card_chargeDeclinedInsufficientFunds");
    let declined = Subscription { payment_method: card, ..new_subscription(8, "2026-03-01") };
    let of_next_run = new_subscription(12, "2026-03-11");
    // The outcome with one policy during the whole run: the dates that a human reads off the calendar.
    let with_old = "2026-04-03, 2026-03-11, 2026-02-09";
    let with_new = "2026-04-07, 2026-03-15, 2026-04-09";
    let mut outcomes = Vec::new();
    for at in 1.. {
        let world = World::new().await;
        for subscription in [&paid, &missed, &declined, &of_next_run] {
            world.store(subscription).await;
        }
        let table = world.table.clone();
        let connection = connection_with_act_before(at, move || set_new_policy(table.clone()));
        let payments = world.separate_payment_batch(connection, world.gateway.clone()).await;
        world.run_payment_batch(&payments, "2026-03-10", billing_time("2026-03-10")).await;
        if stored(&world.table).await.unwrap().value_text(PolicySetting::RetryGaps) != "5,9" {
            break;
        }
        let reminder = world.load(&paid).await.next_reminder_on.unwrap();
        let (retry, due) = (world.load(&declined).await.next_payment_on.unwrap(), world.load(&missed).await.due_on);
        outcomes.push(format!("{reminder}, {retry}, {due}"));
        world.run_payment_batch(&payments, "2026-03-12", billing_time("2026-03-12")).await;
        let reminder = world.load(&of_next_run).await.next_reminder_on.unwrap();
        assert_eq!(reminder, date("2026-04-09"), "the run after the change at request {at}");
    }
    let first_old = outcomes.iter().position(|outcome| outcome == with_old).unwrap();
    let (before, after) = outcomes.split_at(first_old);
    assert!(!before.is_empty() && before.iter().all(|outcome| outcome == with_new), "{before:?}");
    assert!(after.len() > 10 && after.iter().all(|outcome| outcome == with_old), "{after:?}");
}

#[tokio::test]
async fn copy_of_the_policy_is_read_again_after_a_minute() {
    let world = World::new().await;
    let (now, table) = (billing_time("2026-03-10"), world.table.with_own_policy());
    table.refresh_policy(now).await.unwrap();
    let (before, after) = world.set_policy(PolicySetting::ReminderLeadDays, "3").await;
    for (seconds, expected) in [(59, &before), (60, &before), (61, &after)] {
        table.refresh_policy(now + TimeDelta::seconds(seconds)).await.unwrap();
        assert_eq!(*table.policy(), *expected, "{seconds} s");
    }
    table.refresh_policy(now - TimeDelta::days(1)).await.unwrap();
    assert_eq!(*table.policy(), after, "a copy from a later time is read again");
}

#[tokio::test]
async fn table_of_an_earlier_version_adopts_the_policy_of_the_first_batch() {
    let world = World::new().await;
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let update = world.table.client().update_item().table_name(world.table.name()).update_expression("REMOVE #Policy");
    let update = update.expression_attribute_names("#Policy", "Policy");
    update.key("PK", text("CTL#settings")).key("SK", text("CTL#settings")).send().await.unwrap();
    assert_eq!(stored(&world.table).await, None);
    let berlin = process_with(&world, &[("DUEDAY_TIME_ZONE", "Europe/Berlin")]);
    berlin.payment_batch().await.unwrap();
    assert_eq!(stored(&world.table).await.unwrap().value_text(PolicySetting::TimeZone), "Europe/Berlin");
    let tokyo = process_with(&world, &[("DUEDAY_TIME_ZONE", "Asia/Tokyo")]);
    let reminders = tokyo.reminder_batch().await.unwrap();
    assert_eq!(stored(&world.table).await.unwrap().value_text(PolicySetting::TimeZone), "Europe/Berlin");
    assert_eq!(reminders.policy().value_text(PolicySetting::TimeZone), "Europe/Berlin");
}

#[tokio::test]
async fn policy_is_not_set_while_a_daily_execution_has_its_lease() {
    let world = World::new().await;
    let (now, table) = (billing_time("2026-03-10"), &world.table);
    let until = now + TimeDelta::minutes(30);
    table.acquire_execution_lease(Batch::Reminders, "x-1", now, until, Some(4)).await.unwrap();
    let settings = table.get_settings().await.unwrap().unwrap();
    let after = settings.policy.clone().unwrap().with_setting(PolicySetting::RetryGaps, "3,9").unwrap();
    let action = NewAction { at: now, actor: Actor::Anonymous, kind: ActionKind::ChangeSettings, reason: None };
    let running = SetPolicyOutcome::Running { batch: Batch::Reminders, by: "x-1".to_owned(), until };
    assert_eq!(table.set_policy(&settings, &after, now, &action).await.unwrap(), running);
    assert_eq!(stored(table).await, settings.policy);
    assert_eq!(table.set_policy(&settings, &after, until, &action).await.unwrap(), SetPolicyOutcome::Set);
}

#[tokio::test]
async fn day_that_was_run_does_not_come_again_after_two_changes_of_the_time_zone() {
    let world = World::new().await;
    world.clock.set("2026-03-10T10:00:00Z".parse().unwrap());
    world.set_policy(PolicySetting::TimeZone, "Pacific/Kiritimati").await;
    // This is half past midnight of March 11 in Kiritimati, and half past eleven in the evening of March 10 in Auckland.
    world.table.record_run_time("2026-03-10T10:30:00Z".parse().unwrap()).await.unwrap();
    world.set_policy(PolicySetting::TimeZone, "Pacific/Auckland").await;
    let settings = world.table.get_settings().await.unwrap().unwrap();
    assert_eq!(settings.latest_run_day(), Some(date("2026-03-11")));
    let before = settings.policy.clone().unwrap();
    let later = before.with_setting(PolicySetting::TimeZone, "Pacific/Honolulu").unwrap();
    for (now, is_allowed) in [("2026-03-11T09:59:00Z", false), ("2026-03-11T10:00:00Z", true)] {
        let checked = later.check_replaces(&before, settings.latest_run_day(), now.parse().unwrap());
        assert_eq!(checked.is_ok(), is_allowed, "{now}: {checked:?}");
    }
}

#[tokio::test]
async fn run_with_a_clock_that_was_ahead_does_not_forbid_a_new_time_zone_after_the_clock_is_confirmed() {
    let world = World::new().await;
    let (ahead, now) = (billing_time("2030-01-10"), billing_time("2026-03-10"));
    world.table.record_run_time(ahead).await.unwrap();
    world.clock.set(now);
    world.set_policy(PolicySetting::ReceiptDays, "200").await;
    world.table.confirm_clock(now, ahead, None).await.unwrap();
    let settings = world.table.get_settings().await.unwrap().unwrap();
    assert_eq!(settings.latest_run_day(), Some(date("2026-03-10")));
}

#[tokio::test]
async fn run_that_begins_a_minute_after_another_one_on_the_next_day_stores_its_time() {
    let world = World::new().await;
    for (at, stored) in [
        ("2026-03-10T23:59:30Z", "2026-03-10T23:59:30Z"),
        ("2026-03-10T23:59:59Z", "2026-03-10T23:59:30Z"),
        ("2026-03-11T00:00:10Z", "2026-03-11T00:00:10Z"),
    ] {
        world.run_payments_at(&at[..10], at.parse().unwrap()).await;
        let latest = world.table.get_settings().await.unwrap().unwrap().latest_run_at;
        assert_eq!(latest, Some(stored.parse().unwrap()), "{at}");
    }
}

#[tokio::test]
async fn refund_of_an_old_receipt_is_kept_although_receipts_are_now_kept_for_less_time() {
    let world = World::with_settings(&[("DUEDAY_RECEIPT_DAYS", "400")]).await;
    let subscription = new_subscription(10, "2026-03-01");
    world.store(&subscription).await;
    world.run_payments("2026-03-10").await;
    world.set_policy(PolicySetting::ReceiptDays, "190").await;
    let now = billing_time("2027-01-10");
    world.table.refresh_policy(now).await.unwrap();
    let receipts =
        world.table.get_receipts_by_account(&subscription.account, &store::Paging::all(), now).await.unwrap();
    let expires = world.table.refund_expiry(&receipts.items[0], now);
    assert_eq!(expires, (now + TimeDelta::days(190)).timestamp(), "the receipt is 306 days old");
    let soon = billing_time("2026-03-11");
    let with_receipt = (receipts.items[0].processed_at + TimeDelta::days(190)).timestamp();
    assert_eq!(world.table.refund_expiry(&receipts.items[0], soon), with_receipt);
}

#[tokio::test]
async fn stored_text_that_cannot_be_read_stops_a_run_and_is_replaced() {
    let world = World::new().await;
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let update = world.table.client().update_item().table_name(world.table.name());
    let update = update.update_expression("SET #Policy.#zone = :zone").expression_attribute_names("#Policy", "Policy");
    let update =
        update.expression_attribute_names("#zone", "time-zone").expression_attribute_values(":zone", text("Mars"));
    update.key("PK", text("CTL#settings")).key("SK", text("CTL#settings")).send().await.unwrap();
    let request = BatchRequest::for_date(date("2026-03-10"));
    let refused = world.payments.run(&request, billing_time("2026-03-11")).await.unwrap_err().to_string();
    assert!(refused.contains("its policy: time-zone must be an IANA time zone"), "{refused}");
    let settings = world.table.get_settings().await.unwrap().unwrap();
    let after = settings.policy.clone().unwrap().with_setting(PolicySetting::TimeZone, "UTC").unwrap();
    let now = billing_time("2026-03-10");
    let action = NewAction { at: now, actor: Actor::Anonymous, kind: ActionKind::ChangeSettings, reason: None };
    assert_eq!(world.table.set_policy(&settings, &after, now, &action).await.unwrap(), SetPolicyOutcome::Set);
    world.clock.set(now);
    world.payments.run(&request, billing_time("2026-03-11")).await.unwrap();
}
