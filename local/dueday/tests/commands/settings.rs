//! Tests of the commands that change the settings of a table on AWS: `dueday settings` and `dueday confirm-table`.

use billing::{DayReconciliation, GatewayList};
use chrono::{DateTime, TimeDelta, Utc};
use store::Table;

use crate::look_up::RemoteTable;

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
    let table = Table::new(remote.engine.client(), "payments", TimeDelta::days(190));
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
    let table = Table::new(remote.engine.client(), "payments", TimeDelta::days(190));
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
    let table = Table::new(remote.engine.client(), "payments", TimeDelta::days(190));
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
        (unlisted, &with_reason[..], "2027-01-30 has no comparison of payments"),
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
