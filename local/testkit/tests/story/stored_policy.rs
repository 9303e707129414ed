//! Tests of the policy that the table stores: which of several values counts, from when on, and for how long.

use aws_sdk_dynamodb::types::AttributeValue;
use billing::{ActionKind, Actor, NewAction, Policy, PolicySetting, StoredPolicy};
use chrono::TimeDelta;
use clock::Clock as _;
use deployment::Deployment;
use store::{Batch, SetPolicyOutcome, Table};
use sweep::{BatchRequest, SweepError};
use testkit::{capture_log_lines, config};

use crate::world::{World, billing_time, date, new_subscription};

/// Sets `setting` of the policy in `table` to `text`. Returns the policy before and after.
async fn change(table: &Table, setting: PolicySetting, text: &str) -> (Policy, Policy) {
    let settings = table.get_settings().await.unwrap().unwrap();
    let before = settings.policy.clone().unwrap();
    let after = before.with(setting, text).unwrap();
    let now = billing_time("2026-03-10");
    let action = NewAction { at: now, actor: Actor::Anonymous, kind: ActionKind::ChangeSettings, reason: None };
    assert_eq!(table.set_policy(&settings, &after, now, &action).await.unwrap(), SetPolicyOutcome::Set);
    // The settings that were read before are outdated now.
    let again = table.set_policy(&settings, &before, now, &action).await.unwrap();
    assert_eq!(again, SetPolicyOutcome::Changed);
    (before.read().unwrap(), after.read().unwrap())
}

/// Returns the deployment of `world` as a process sees it whose variables contain `variables`.
fn process_with(world: &World, variables: &[(&str, &str)]) -> Deployment {
    let (config, deployment) = (config(variables).unwrap(), &world.system.deployment);
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
    let payments = elsewhere.payments().await.unwrap();
    let refused = payments.run(&request, deadline).await;
    assert!(matches!(refused, Err(SweepError::Future { today, .. }) if today == date("2026-03-09")), "{refused:?}");
    drop(guard);
    let warned: Vec<_> =
        logged.fields().into_iter().filter(|line| line["message"] == store::POLICY_DIFFERS_MESSAGE).collect();
    assert_eq!(warned.len(), 1, "the variable is logged once: {warned:?}");
    assert_eq!(warned[0]["variable"], "DUEDAY_TIME_ZONE");
    assert_eq!((&warned[0]["given"], &warned[0]["stored"]), (&"Pacific/Kiritimati".into(), &"UTC".into()));

    change(&world.table, PolicySetting::TimeZone, "Pacific/Kiritimati").await;
    let report = payments.run(&request, deadline).await.unwrap();
    assert_eq!(report.counts.paid, 1, "the next run of the same process uses the new policy");
}

#[tokio::test]
async fn batch_keeps_its_policy_although_another_user_of_the_table_reads_a_new_one() {
    let world = World::new().await;
    let deployment = &world.system.deployment;
    let payments = deployment.payments().await.unwrap();
    let (before, after) = change(&deployment.table, PolicySetting::TimeZone, "Pacific/Kiritimati").await;
    deployment.table.refresh_policy(world.clock.now()).await.unwrap();
    assert_eq!(*deployment.table.policy(), after);
    assert_eq!(*payments.policy(), before, "only the next run reads the policy again");
}

#[tokio::test]
async fn copy_of_the_policy_is_read_again_after_a_minute() {
    let world = World::new().await;
    let (now, table) = (billing_time("2026-03-10"), world.table.with_own_policy());
    table.refresh_policy(now).await.unwrap();
    let (before, after) = change(&world.table, PolicySetting::ReminderLeadDays, "3").await;
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
    berlin.payments().await.unwrap();
    assert_eq!(stored(&world.table).await.unwrap().text_of(PolicySetting::TimeZone), "Europe/Berlin");
    let tokyo = process_with(&world, &[("DUEDAY_TIME_ZONE", "Asia/Tokyo")]);
    let reminders = tokyo.reminders().await.unwrap();
    assert_eq!(stored(&world.table).await.unwrap().text_of(PolicySetting::TimeZone), "Europe/Berlin");
    assert_eq!(reminders.policy().text_of(PolicySetting::TimeZone), "Europe/Berlin");
}

#[tokio::test]
async fn policy_is_not_set_while_a_daily_execution_has_its_lease() {
    let world = World::new().await;
    let (now, table) = (billing_time("2026-03-10"), &world.table);
    let until = now + TimeDelta::minutes(30);
    table.acquire_execution_lease(Batch::Reminders, "x-1", now, until, Some(4)).await.unwrap();
    let settings = table.get_settings().await.unwrap().unwrap();
    let after = settings.policy.clone().unwrap().with(PolicySetting::RetryGaps, "3,9").unwrap();
    let action = NewAction { at: now, actor: Actor::Anonymous, kind: ActionKind::ChangeSettings, reason: None };
    let running = SetPolicyOutcome::Running { batch: Batch::Reminders, by: "x-1".to_owned(), until };
    assert_eq!(table.set_policy(&settings, &after, now, &action).await.unwrap(), running);
    assert_eq!(stored(table).await, settings.policy);
    assert_eq!(table.set_policy(&settings, &after, until, &action).await.unwrap(), SetPolicyOutcome::Set);
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
    let after = settings.policy.clone().unwrap().with(PolicySetting::TimeZone, "UTC").unwrap();
    let now = billing_time("2026-03-10");
    let action = NewAction { at: now, actor: Actor::Anonymous, kind: ActionKind::ChangeSettings, reason: None };
    assert_eq!(world.table.set_policy(&settings, &after, now, &action).await.unwrap(), SetPolicyOutcome::Set);
    world.clock.set(now);
    world.payments.run(&request, billing_time("2026-03-11")).await.unwrap();
}
