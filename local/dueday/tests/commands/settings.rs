//! Tests of the commands that change the settings of a table on AWS: `dueday settings` and `dueday confirm-table`.

use std::path::Path;

use aws_sdk_dynamodb::types::AttributeValue;
use billing::{DayReconciliation, GatewayList};
use chrono::{DateTime, TimeDelta, Utc};
use emulator::Engine;
use store::{Batch, Table};

use crate::look_up::RemoteTable;
use crate::orders::{folder_with_payments, run};
use crate::terminal::{dueday, output};

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_shown_and_changed_and_invalid_values_are_refused() {
    let remote = RemoteTable::new().await;
    let settings = remote.run(&["settings", "get"]).1;
    assert!(settings.contains("max-charges") && settings.contains("none"), "{settings}");
    assert_eq!(remote.run(&["settings", "set", "max-charges", "100"]).1, "max-charges was none and is now 100\n");
    assert_eq!(remote.run(&["settings", "set", "max-charges", "100"]).1, "max-charges is already 100\n");
    let refused = remote.run(&["settings", "set", "gateway-failures", "0"]);
    let reason = "gateway-failures must be a whole number from 1 to 1000, not \"0\"";
    assert!(refused.0 == 2 && refused.2.contains(reason), "{refused:?}");
    let stored = remote.json(&["settings", "get", "max-charges", "--json"]);
    assert_eq!((&stored[0]["setting"], &stored[0]["value"]), (&"max-charges".into(), &"100".into()));
    assert_eq!(remote.json(&["settings", "get", "gateway-failures", "--json"])[0]["value"], "20");
}

#[tokio::test(flavor = "multi_thread")]
async fn restored_table_is_confirmed_only_after_each_day_was_compared_with_the_gateway() {
    let remote = RemoteTable::new().await;
    let table = Table::new(remote.engine.client(), "payments");
    let confirm = || remote.run(&["confirm-table", "--yes"]);
    assert!(confirm().2.contains("there is nothing to confirm"));
    // The latest run in the backup began shortly after midnight in UTC. The clocks of two machines may differ, so the
    // day before this run must also be compared.
    table.record_run_time("2027-01-30T00:30:00Z".parse().unwrap()).await.unwrap();
    // DynamoDB gives each table an id. The settings of a restored table contain the id of the original table.
    assert_eq!(table.init_dynamodb_id("another-table").await.unwrap(), "another-table");
    let id = table.dynamodb_id().await.unwrap().unwrap();
    table.record_copy_with_id(&id, "2027-01-30T12:00:00Z".parse().unwrap()).await.unwrap();
    assert_eq!(remote.json(&["charging", "--json"])["charging"], false);
    for day in ["2027-01-29", "2027-01-30"] {
        let (code, _, stderr) = confirm();
        let refusal = format!("{day} was not compared with the gateway since the copy was noticed: run");
        assert!(code == 2 && stderr.contains(&refusal), "{stderr}");
        assert!(stderr.contains("reconcile --from 2027-01-29 --to 2027-01-30"), "{stderr}");
        let started_at: DateTime<Utc> = "2027-01-31T02:00:00Z".parse().unwrap();
        let compared = DayReconciliation::new(day.parse().unwrap(), started_at);
        assert!(table.create_reconciliation(&compared).await.unwrap());
        let (_, _, stderr) = confirm();
        assert!(stderr.contains(&format!("the comparison of {day} with the gateway has not ended")), "{stderr}");
        let next = DayReconciliation { ended_at: Some(started_at), ..compared.clone() };
        table.update_reconciliation(&compared, next).await.unwrap();
    }
    let confirmed = confirm().1;
    assert!(confirmed.starts_with("confirmed. Charging is off"), "{confirmed}");
    assert_eq!(remote.json(&["charging", "on", "--json"])["charging"], true);
}

/// Nothing can notice a restored copy with the same id if the gateway lists no payments of a day.
#[tokio::test(flavor = "multi_thread")]
async fn person_states_that_a_table_was_restored() {
    let remote = RemoteTable::new().await;
    let table = Table::new(remote.engine.client(), "payments");
    table.record_run_time("2026-01-30T08:00:00Z".parse().unwrap()).await.unwrap();
    assert!(remote.run(&["confirm-table", "--yes"]).2.contains("there is nothing to confirm"));
    let (code, _, stderr) = remote.run(&["confirm-table", "--restored", "--yes"]);
    let refusal = "2026-01-30 was not compared with the gateway since the copy was noticed";
    assert!(code == 2 && stderr.contains(refusal), "{stderr}");
    assert_eq!(remote.json(&["charging", "--json"])["charging"], false);
    let again = remote.run(&["confirm-table", "--yes"]).2;
    assert!(again.contains(refusal), "{again}");
}

#[tokio::test(flavor = "multi_thread")]
async fn restored_table_whose_gateway_lists_no_days_is_confirmed_only_with_a_reason() {
    let remote = RemoteTable::new().await;
    let table = Table::new(remote.engine.client(), "payments");
    let noticed_at: DateTime<Utc> = "2027-01-30T12:00:00Z".parse().unwrap();
    table.record_run_time("2027-01-30T08:00:00Z".parse().unwrap()).await.unwrap();
    table.init_dynamodb_id("another-table").await.unwrap();
    let id = table.dynamodb_id().await.unwrap().unwrap();
    table.record_copy_with_id(&id, noticed_at).await.unwrap();
    let with_reason = ["confirm-table", "--yes", "--without-lists", "--because", "no customer is new"];
    let (code, _, stderr) = remote.run(&with_reason);
    assert!(code == 2 && stderr.contains("2027-01-30 was not compared with the gateway"), "{stderr}");

    let started_at = noticed_at + TimeDelta::days(1);
    let new = DayReconciliation::new("2027-01-30".parse().unwrap(), started_at);
    let listed = DayReconciliation { ended_at: Some(started_at), ..new.clone() };
    let unlisted = DayReconciliation { not_compared: [GatewayList::Payments].into(), ..listed.clone() };
    let by_customer = DayReconciliation { customers_compared: true, ..unlisted.clone() };
    assert!(table.create_reconciliation(&new).await.unwrap());
    let mut stored = new;
    for (next, arguments, refusal) in [
        (listed, &with_reason[..], "the gateway lists the payments of each day from 2027-01-30 to 2027-01-30: run"),
        // A comparison that an earlier version of Dueday made, which did not compare the customers.
        (unlisted, &with_reason[..], "the latest comparison of 2027-01-30 compared no payments"),
        (by_customer, &with_reason[..2], "only the customers in the backup were compared: look for the payments"),
    ] {
        stored = table.update_reconciliation(&stored, next).await.unwrap();
        let (code, _, stderr) = remote.run(arguments);
        assert!(code == 2 && stderr.contains(refusal), "{refusal}: {stderr}");
    }
    let (_, _, stderr) = remote.run(&with_reason[..3]);
    assert!(stderr.contains("--because <REASON>"), "{stderr}");
    let confirmed = remote.json(&[&with_reason[..], &["--json"]].concat());
    assert_eq!(confirmed["charging"], false);
    let log = remote.json(&["log", "--json"]);
    let entry = log.as_array().unwrap().iter().find(|entry| entry["action"] == "table.confirm").unwrap();
    assert_eq!(entry["reason"], "no customer is new");
}

/// Returns the id of a subscription of `acme`.
fn gold_of_acme(remote: &RemoteTable) -> String {
    let all = remote.json(&["subscriptions", "acme", "--json"]);
    let gold = all.as_array().unwrap().iter().find(|subscription| subscription["sku"] == "gold").unwrap();
    gold["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn flag_that_contradicts_the_policy_of_the_table_changes_nothing() {
    let remote = RemoteTable::new().await;
    let id = gold_of_acme(&remote);
    let show = || remote.json(&["subscriptions", "acme", "--json"]);
    let before = show();
    for (flag, value, stored) in [
        ("--time-zone", "Pacific/Kiritimati", "UTC"),
        ("--reminder-lead-days", "1", "7"),
        ("--retry-gaps", "1,1", "1,2,2,2"),
        ("--after-last-retry", "cancelled", "unpaid"),
        ("--catch-up", "latest", "each"),
        ("--resume", "wait", "charge"),
        ("--after-won-dispute", "charge", "waive"),
        ("--receipt-days", "10", "190"),
        ("--action-days", "10", "730"),
    ] {
        let (code, stdout, stderr) =
            remote.run(&["subscription", "change", "acme", &id, "--payment-day", "5", flag, value]);
        let reason = format!("{flag} {value} contradicts the policy of the table, which has {stored}");
        assert!(code == 2 && stdout.is_empty() && stderr.contains(&reason), "{flag}: {stderr}");
    }
    assert_eq!(show(), before);
    let (code, _, stderr) =
        remote.run(&["subscription", "change", "acme", &id, "--price", "13.49", "--time-zone", "UTC"]);
    assert_eq!(code, 0, "a flag with the value of the table is allowed: {stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn policy_is_shown_and_changed_with_a_preview_and_an_entry_of_the_action_log() {
    let remote = RemoteTable::new().await;
    let settings = remote.run(&["settings", "get"]).1;
    assert!(settings.contains("retry-gaps") && settings.contains("1,2,2,2"), "{settings}");
    let (code, stdout, stderr) = remote.run(&["settings", "set", "reminder-lead-days", "10", "--yes"]);
    assert_eq!((code, stdout.as_str()), (0, "reminder-lead-days was 7 and is now 10\n"), "{stderr}");
    assert!(stderr.contains("No planned reminder moves"), "{stderr}");
    assert_eq!(remote.json(&["settings", "get", "reminder-lead-days", "--json"])[0]["value"], "10");
    let refused = remote.run(&["settings", "set", "time-zone", "Mars/Olympus", "--yes"]);
    assert!(refused.0 == 2 && refused.2.contains("time-zone must be an IANA time zone"), "{refused:?}");
    let log = remote.json(&["log", "--json"]);
    let entry = log.as_array().unwrap().iter().find(|entry| entry["after"]["reminder-lead-days"] == "10");
    assert_eq!(entry.unwrap()["before"]["reminder-lead-days"], "7", "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn policy_is_not_changed_while_a_daily_execution_runs_or_if_a_day_would_come_again() {
    let remote = RemoteTable::new().await;
    let table = Table::new(remote.engine.client(), "payments");
    let (now, set) = (Utc::now(), |zone: &str| remote.run(&["settings", "set", "time-zone", zone, "--yes"]));
    table.acquire_execution_lease(Batch::Payments, "x-1", now, now + TimeDelta::hours(1), Some(2)).await.unwrap();
    let (code, _, stderr) = set("Pacific/Kiritimati");
    assert!(
        code == 2 && stderr.contains("the daily execution x-1 of the payments batch is running, until"),
        "{stderr}"
    );
    table.release_execution_lease(Batch::Payments, "x-1").await.unwrap();
    // Kiritimati is 14 hours before UTC, and Niue 11 hours after it: it is always a later day in Kiritimati.
    let (code, _, stderr) = set("Pacific/Kiritimati");
    assert_eq!(code, 0, "{stderr}");
    table.record_run_time(now).await.unwrap();
    let (code, _, stderr) = set("Pacific/Niue");
    assert!(code == 2 && stderr.contains("but a run has begun on"), "{stderr}");
    assert_eq!(remote.json(&["settings", "get", "time-zone", "--json"])[0]["value"], "Pacific/Kiritimati");
}

#[tokio::test(flavor = "multi_thread")]
async fn table_of_an_earlier_version_gets_its_policy_once() {
    let remote = RemoteTable::new().await;
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let update = remote.engine.client().update_item().table_name("payments").update_expression("REMOVE #Policy");
    let update = update.expression_attribute_names("#Policy", "Policy");
    update.key("PK", text("CTL#settings")).key("SK", text("CTL#settings")).send().await.unwrap();
    let (code, _, stderr) = remote.run(&["accounts"]);
    assert!(code == 2 && stderr.contains("deploy this version first, or store the deployed values"), "{stderr}");
    let adopt = |zone: &str| remote.run(&["settings", "adopt", "--yes", "--time-zone", zone]);
    let (code, stdout, stderr) = adopt("Europe/Berlin");
    assert!(code == 0 && stdout.contains("Europe/Berlin"), "{stdout}{stderr}");
    assert_eq!(adopt("Europe/Berlin").0, 0);
    let (code, _, stderr) = adopt("Asia/Tokyo");
    assert!(code == 2 && stderr.contains("which has Europe/Berlin"), "{stderr}");
    assert_eq!(remote.run(&["accounts"]).0, 0);
}

/// Changes the settings item of the local table in the folder `data` with the update expression `change`.
async fn change_settings(data: &Path, change: &str, values: &[(&str, &str)]) {
    let engine = Engine::open(&data.join("dynamodb.sqlite")).unwrap();
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let update = engine.client().update_item().table_name("dueday").update_expression(change);
    let update = update.key("PK", text("CTL#settings")).key("SK", text("CTL#settings"));
    let update = update.expression_attribute_names("#Policy", "Policy");
    let update = match values {
        [] => update,
        _ => update.expression_attribute_names("#zone", "time-zone"),
    };
    let update =
        values.iter().fold(update, |update, (name, value)| update.expression_attribute_values(*name, text(value)));
    update.send().await.unwrap();
}

#[tokio::test]
async fn folder_of_an_earlier_version_gets_the_policy_of_its_service_and_not_of_another_command() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder_with_payments(folder.path());
    change_settings(&data, "REMOVE #Policy", &[]).await;
    for command in [&["status"][..], &["accounts"], &["subscriptions", "acme"]] {
        let (code, _, stderr) = run(&data, command);
        assert!(code == 2 && stderr.contains("has no policy, because an earlier version"), "{command:?}: {stderr}");
    }
    let (_, stdout, _) = run(&data, &["doctor"]);
    assert!(stdout.contains("the table has none, because an earlier version wrote it"), "{stdout}");
    let (code, _, stderr) = run(&data, &["run", "payments", "--time-zone", "Europe/Berlin", "--retry-gaps", "3,9"]);
    assert_eq!(code, 0, "{stderr}");
    let (code, stdout, _) = run(&data, &["settings", "get"]);
    assert!(code == 0 && stdout.contains("Europe/Berlin") && stdout.contains("3,9"), "{stdout}");
}

#[tokio::test]
async fn policy_that_cannot_be_read_is_repaired_on_one_machine() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder_with_payments(folder.path());
    change_settings(&data, "SET #Policy.#zone = :zone", &[(":zone", "Mars")]).await;
    let (code, _, stderr) = run(&data, &["accounts"]);
    assert!(code == 2 && stderr.contains("time-zone must be an IANA time zone"), "{stderr}");
    let (_, stdout, _) = run(&data, &["doctor"]);
    assert!(stdout.contains("dueday settings set time-zone VALUE"), "{stdout}");
    let (code, _, stderr) = run(&data, &["settings", "set", "time-zone", "UTC", "--yes"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(run(&data, &["accounts"]).0, 0);
}

#[tokio::test]
async fn flag_that_contradicts_the_policy_is_refused_by_settings_too_and_a_variable_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder_with_payments(folder.path());
    let (code, _, stderr) = run(&data, &["settings", "set", "retry-gaps", "3,9", "--yes", "--time-zone", "Asia/Tokyo"]);
    assert!(code == 2 && stderr.contains("which has UTC"), "{stderr}");
    assert!(run(&data, &["settings", "get", "retry-gaps"]).1.contains("1,2,2,2"));
    for command in ["doctor", "status"] {
        let (code, stdout, stderr) = output(dueday(&data).env("DUEDAY_TIME_ZONE", "Asia/Tokyo").arg(command));
        let difference = "DUEDAY_TIME_ZONE contains Asia/Tokyo, but the table has UTC, which is used";
        assert!(code == 1 && stdout.contains(difference), "{command}: {stdout}{stderr}");
    }
}
