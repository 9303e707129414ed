//! Tests of `dueday log`: each command that changes something writes one entry, and a refused command writes none.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use billing::{ActionKind, Actor, ActorName};
use chrono::Utc;
use emulator::{Engine, EngineConnection};
use orders_api::StoredPayments;
use orders_table::{BucketCount, OrdersTable, Requester};
use serde_json::Value;
use store::{Paging, Table};

use crate::orders::import_places;
use crate::terminal::{dueday, output};

/// The header row of the CSV file that the test imports.
const HEADER: &str = "account,email,name,locale,external_id,sku,product_name,payment_day,amount,currency,customer,\
                      payment_method,first_payment_date";

/// Runs `dueday` as the user `jane`. Returns the exit code, standard output and standard error.
fn run(data: &Path, arguments: &[&str]) -> (i32, String, String) {
    output(dueday(data).env("USER", "jane").args(arguments))
}

/// Returns the output of a command that must succeed, as JSON.
fn json(data: &Path, arguments: &[&str]) -> Value {
    let (code, stdout, stderr) = run(data, &[arguments, &["--json"]].concat());
    assert!(code <= 1, "{arguments:?}: {stderr}");
    serde_json::from_str(&stdout).unwrap()
}

/// Returns the entries of the action log of the account that `account` contains. If `account` is empty, returns the
/// entries that belong to no account.
fn log_entries(data: &Path, account: &[&str]) -> Vec<Value> {
    json(data, &[&["log"], account].concat()).as_array().unwrap().clone()
}

#[test]
fn each_command_that_changes_something_writes_one_entry_and_a_refused_command_writes_none() {
    let folder = tempfile::tempdir().unwrap();
    let (file, data) = (folder.path().join("s.csv"), folder.path().join("data"));
    let today = Utc::now().date_naive();
    let day = today.format("%-d");
    let row = format!("acme,a@example.com,Ms Secret,,1,gold,Gold plan,{day},12.99,EUR,cus_1,pm_card_visa,{today}\n");
    std::fs::write(&file, format!("{HEADER}\n{row}")).unwrap();
    json(&data, &["import", file.to_str().unwrap(), "--dry-run"]);
    assert_eq!(log_entries(&data, &[]).len(), 0, "a dry run changes nothing");
    json(&data, &["import", file.to_str().unwrap()]);
    json(&data, &["run", "payments"]);
    assert_eq!(log_entries(&data, &["acme"]).len(), 0, "runs and imports write no entry for each account");

    let receipt = json(&data, &["receipts", "acme"])[0]["number"].as_str().unwrap().to_owned();
    let id = json(&data, &["subscriptions", "acme"])[0]["id"].as_str().unwrap().to_owned();
    let (acme, none): (&[&str], &[&str]) = (&["acme"], &[]);
    // The columns are: the command, the account in whose log the command writes its entry, and the kind of the entry;
    // `-` for a refused command.
    let cases: [(&[&str], &[&str], &str); 19] = [
        (&["account", "change", "acme", "--name", "Mr Secret"], acme, "account.put"),
        (&["account", "change", "other", "--name", "Other"], none, "-"),
        (
            &["subscription", "change", "acme", &id, "--price", "14.99", "--reason", "new list"],
            acme,
            "subscription.change",
        ),
        (&["subscription", "pause", "acme", &id], acme, "subscription.pause"),
        (&["subscription", "change", "acme", &id, "--payment-day", "last"], acme, "-"),
        (&["subscription", "resume", "acme", &id], acme, "subscription.resume"),
        (&["subscription", "retry", "acme", &id], acme, "-"),
        (&["refund", &receipt, "--amount", "5.00", "--yes", "--reason", "ticket 4711"], acme, "refund.create"),
        (&["refund", &receipt, "--amount", "50.00", "--yes", "--reason", "ticket 4712"], acme, "-"),
        // A refund needs a reason.
        (&["refund", &receipt, "--amount", "1.00", "--yes"], acme, "-"),
        (&["subscription", "cancel", "acme", &id, "--at-period-end"], acme, "subscription.cancel"),
        (&["subscription", "uncancel", "acme", &id], acme, "subscription.uncancel"),
        (&["webhooks", "create", "https://example.com/secret"], none, "webhook_endpoint.create"),
        (&["shards", "set", "6", "--yes"], none, "shards.set"),
        (&["shards", "set", "2", "--yes"], none, "-"),
        (&["reshard"], none, "shards.reshard"),
        (&["orders", "shards", "set", "8", "--yes"], none, "buckets.set"),
        (&["orders", "shards", "set", "2", "--yes"], none, "-"),
        (&["charging", "off", "--reason", "drill"], none, "charging.switch"),
    ];
    for (command, account, kind) in cases {
        let before = (log_entries(&data, acme), log_entries(&data, none));
        let (code, _, stderr) = run(&data, command);
        assert_eq!(code == 2, kind == "-", "{command:?}: {stderr}");
        let after = (log_entries(&data, acme), log_entries(&data, none));
        let new = |after: &[Value], before: &[Value]| -> Vec<Value> {
            after.iter().filter(|entry| !before.contains(entry)).cloned().collect()
        };
        let all = [new(&after.0, &before.0), new(&after.1, &before.1)].concat();
        let kinds: Vec<&str> = all.iter().map(|entry| entry["action"].as_str().unwrap()).collect();
        assert_eq!(kinds, if kind == "-" { vec![] } else { vec![kind] }, "{command:?}");
        for entry in &all {
            assert_eq!(entry["actor"], serde_json::json!({"kind": "command", "name": "jane"}), "{command:?}");
            assert_eq!(entry["account"] == "acme", account == acme, "{command:?}");
        }
    }
    let without_account = log_entries(&data, none);
    assert_eq!(without_account[0]["before"], serde_json::json!({"charging": "on"}));
    assert_eq!(without_account[0]["after"], serde_json::json!({"charging": "off"}));
    assert_eq!(without_account[0]["reason"], "drill");
    let import = without_account.iter().find(|entry| entry["action"] == "subscriptions.import").unwrap();
    assert_eq!(import["after"], serde_json::json!({"rows": "1", "created": "1", "rejected": "0"}));
    let text = format!("{:?}{without_account:?}", log_entries(&data, acme));
    for secret in ["a@example.com", "Secret", "cus_1", "pm_card", "example.com/secret"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    let goods = folder.path().join("goods.csv");
    std::fs::write(&goods, "product,name,sku,quantity,warehouse,region,stock\nbeans,Beans,gold,1,ams,eu,5\n").unwrap();
    import_places(folder.path(), &data);
    let before = (log_entries(&data, acme).len(), log_entries(&data, none).len());
    json(&data, &["orders", "import", goods.to_str().unwrap()]);
    json(&data, &["orders", "receive", "beans", "ams", "10"]);
    let address = ["--name", "Ms Secret", "--street", "S", "--postal-code", "1", "--city", "C", "--country", "nl"];
    json(&data, &[&["orders", "address", "acme", "--region", "eu"], address.as_slice()].concat());
    let (of_account, without) = (log_entries(&data, acme), log_entries(&data, none));
    assert_eq!((of_account.len(), without.len()), (before.0 + 1, before.1 + 2));
    assert_eq!(of_account[0]["action"], "customer.change");
    assert_eq!((&without[0]["action"], &without[1]["action"]), (&"stock.receive".into(), &"goods.import".into()));
    assert_eq!(without[1]["after"], serde_json::json!({"products": "1", "warehouses": "1", "stocks": "1"}));
    assert!(!format!("{of_account:?}").contains("Secret"));
    let (code, stdout, _) = run(&data, &["log", "acme"]);
    assert!(code == 0 && stdout.contains("command jane") && stdout.contains("ticket 4711"), "{stdout}");
    let (code, _, stderr) = run(&data, &["log", "other"]);
    assert!(code == 2 && stderr.contains("there is no account other"), "{stderr}");
}

#[tokio::test]
async fn number_of_buckets_and_its_entry_are_written_in_one_transaction() {
    let engine = Engine::in_memory();
    let connection = Arc::new(EngineConnection::default());
    let payments = Table::new(engine.client(), "dueday");
    payments.create_if_absent().await.unwrap();
    let orders = OrdersTable::new(engine.client_with_connection(connection.clone()), "dueday-orders");
    orders.create_if_absent().await.unwrap();
    orders.get_or_store_buckets(BucketCount::new(4)).await.unwrap();
    let (payments, at) = (Arc::new(StoredPayments(payments)), Utc::now());
    let actor = Actor::Command(ActorName::new("jane"));
    let orders = orders.requested_by(Requester { payments: payments.clone(), actor, at });
    for (buckets, stored, expected) in [
        (8, 8, &[("GetItem", 1), ("TransactWriteItems", 1)][..]),
        // The number of buckets does not change, so nothing is logged.
        (8, 8, &[("GetItem", 1)]),
        (2, 8, &[("GetItem", 1)]),
    ] {
        let before = connection.request_counts();
        assert_eq!(orders.raise_buckets(BucketCount::new(buckets)).await.unwrap(), BucketCount::new(stored));
        let after = connection.request_counts();
        let sent = after.iter().map(|(name, count)| (name.as_str(), count - before.get(name).unwrap_or(&0)));
        let sent: BTreeMap<&str, u64> = sent.filter(|(_, count)| *count > 0).collect();
        assert_eq!(sent, expected.iter().copied().collect(), "{buckets}");
    }
    let entries = payments.0.get_actions_without_account(&Paging::all(), at).await.unwrap();
    let kinds: Vec<ActionKind> = entries.items.iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds, [ActionKind::SetBuckets]);
    let (before, after) = (&entries.items[0].before["buckets"], &entries.items[0].after["buckets"]);
    assert_eq!((before.as_str(), after.as_str()), ("4", "8"));
}
