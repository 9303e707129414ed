//! Tests of the commands that read, change and export data, on a table that is used like a table on AWS. Also tests the
//! help texts.

use crate::terminal;

use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};
use std::sync::Arc;

use billing::{AuditRecord, Finding, FindingReason, Subscription};
use chrono::{Datelike, TimeDelta, Utc};
use clock::{Clock, SystemClock};
use emulator::{Engine, RunningEngine, ServerLimits, serve_http};
use sandbox::{Ledger, Sandbox, gateway_router};
use serde_json::Value;
use store::{Paging, Settings, Table};
use terminal::{dueday, output};

/// A table on the embedded engine that commands use like a table on AWS: over HTTP, with credentials and a region.
pub struct RemoteTable {
    pub engine: Engine,
    folder: tempfile::TempDir,
    /// The HTTP server of the engine.
    served: RunningEngine,
}

impl RemoteTable {
    /// Creates the table, and imports three subscriptions that are due tomorrow.
    pub async fn new() -> Self {
        let engine = Engine::in_memory();
        let table = Table::new(engine.client(), "payments");
        table.create_if_absent().await.unwrap();
        let served = engine.clone().serve((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let remote = Self { engine, folder: tempfile::tempdir().unwrap(), served };
        let (code, _, stderr) = remote.run(&["accounts"]);
        assert!(code == 2 && stderr.contains("the table \"payments\" has no settings yet"), "{stderr}");
        table.init_settings(&Settings::new(2, SystemClock.ulid())).await.unwrap();
        let csv = remote.folder.path().join("s.csv");
        let day = (Utc::now() + TimeDelta::days(1)).day();
        std::fs::write(
            &csv,
            format!(
                "account,email,name,locale,external_id,sku,product_name,payment_day,amount,currency,customer,payment_method,first_payment_date\n\
                 acme,a@example.com,Acme,,1,gold,Gold plan,{day},12.99,EUR,cus_1,pm_card_visa,\n\
                 acme,a@example.com,Acme,,2,yen,\"Yen plan, \"\"large\"\"\",{day},500,JPY,cus_1,pm_card_visa,\n\
                 bell,b@example.com,Bell,,3,gold,Gold plan,{day},12.99,EUR,cus_2,pm_card_visa,\n"
            ),
        )
        .unwrap();
        let (code, stdout, stderr) = remote.run(&["import", csv.to_str().unwrap()]);
        let imported = "3 rows: 3 created, 0 already exist, 0 differ, 0 rejected\n";
        assert!(code == 0 && stdout.starts_with(imported), "{stdout}{stderr}");
        remote
    }

    /// Returns the command `dueday` with credentials for this table.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = dueday(&self.folder.path().join("data"));
        command
            .env("AWS_ACCESS_KEY_ID", "key")
            .env("AWS_SECRET_ACCESS_KEY", "secret")
            .env("AWS_REGION", "eu-west-1")
            .env("DUEDAY_DYNAMODB_ENDPOINT", self.served.url())
            .args(["--table", "payments"])
            .args(arguments);
        command
    }

    /// Runs `dueday` on this table. Returns the exit code, standard output and standard error.
    pub fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        output(&mut self.command(arguments))
    }

    /// Runs `dueday` on this table, and asserts that it succeeds. Returns its output, which must be JSON.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let (code, stdout, stderr) = self.run(arguments);
        assert_eq!(code, 0, "{arguments:?}: {stderr}");
        serde_json::from_str(&stdout).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn account_is_found_by_the_own_address_of_a_subscription_which_keeps_it() {
    let remote = RemoteTable::new().await;
    let gold = remote.json(&["subscriptions", "acme", "--json"])[0]["id"].as_str().unwrap().to_owned();
    let change = ["subscription", "change", "acme", &gold, "--email", "Plan@example.com"];
    assert_eq!(remote.run(&change).0, 0);
    let found = remote.json(&["accounts", "--email", "plan@example.com", "--json"]);
    assert_eq!((found.as_array().unwrap().len(), &found[0]["id"]), (1, &"acme".into()), "{found}");
    assert!(remote.run(&["subscriptions", "acme"]).1.contains("Plan@example.com"));
    let (code, _, stderr) = remote.run(&["account", "change", "acme", "--email", "new@example.com"]);
    let kept =
        format!("({gold}) still go to Plan@example.com. `dueday subscription change acme {gold} --account-email`");
    assert!(code == 0 && stderr.contains(&kept), "{stderr}");
    assert_eq!(remote.run(&["subscription", "change", "acme", &gold, "--account-email"]).0, 0);
    let (code, _, stderr) = remote.run(&["account", "change", "acme", "--email", "newer@example.com"]);
    assert!(code == 0 && stderr.is_empty(), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_work_on_a_table_on_aws() {
    let remote = RemoteTable::new().await;
    let accounts = remote.json(&["accounts", "--json"]);
    assert_eq!(accounts.as_array().unwrap().len(), 2);
    assert_eq!(remote.json(&["accounts", "acme", "--json"])[0]["email"], "a@example.com");
    let by_email = remote.json(&["accounts", "--email", "B@Example.com", "--json"]);
    assert_eq!((by_email.as_array().unwrap().len(), &by_email[0]["id"]), (1, &"bell".into()));
    assert_eq!(remote.json(&["accounts", "--email", "zoe@example.com", "--json"]), serde_json::json!([]));
    let active = remote.json(&["subscriptions", "--status", "active", "--json"]);
    assert_eq!(active.as_array().unwrap().len(), 3);
    assert_eq!(remote.json(&["subscriptions", "--status", "unpaid", "--json"]), serde_json::json!([]));
    assert_eq!(active[0]["external_id"], "1", "{active}");
    let by_external_id = remote.json(&["subscriptions", "--external-id", "2", "--json"]);
    assert_eq!((by_external_id.as_array().unwrap().len(), &by_external_id[0]["sku"]), (1, &"yen".into()));
    let (_, text, _) = remote.run(&["accounts"]);
    assert!(text.contains("acme     Acme  a@example.com") && text.ends_with("2 accounts\n"), "{text}");
    assert_eq!(remote.json(&["subscriptions", "--json"]).as_array().unwrap().len(), 3);
    let (_, text, _) = remote.run(&["subscriptions", "acme", "--limit", "1"]);
    assert!(text.ends_with("the first 1 subscription; --limit shows more\n"), "{text}");

    let id = remote.json(&["subscriptions", "acme", "--json"])[0]["id"].as_str().unwrap().to_owned();
    let (code, text, _) = remote.run(&["why", "acme", &id]);
    assert!(code == 0 && text.contains("no payment is due before") && text.contains("missing"), "{text}");
    let act = |action: &str| remote.json(&["subscription", action, "acme", &id, "--json"]);
    assert_eq!(act("pause")["status"], "paused");
    let (code, _, stderr) = remote.run(&["subscription", "cancel", "acme", &id, "--at-period-end"]);
    assert!(
        code == 2 && stderr.contains("a subscription that is paused has no current period; cancel it immediately"),
        "{stderr}"
    );
    assert_eq!(remote.json(&["subscription", "resume", "acme", &id, "--json"])["status"], "active");
    let (code, text, _) = remote.run(&["subscription", "cancel", "acme", &id, "--at-period-end"]);
    assert!(code == 0 && text.contains("ends on"), "{text}");
    assert_eq!(act("uncancel")["cancel_date"], Value::Null);
    let cancelled = remote.json(&["subscription", "cancel", "acme", &id, "--yes", "--json"]);
    assert_eq!(cancelled["status"], "cancelled");
    let (code, _, stderr) = remote.run(&["subscription", "resume", "acme", &id]);
    assert!(code == 2 && stderr.contains("a subscription that is cancelled cannot be resumed"), "{stderr}");

    assert!(remote.run(&["charging"]).1.starts_with("charging is on"));
    assert!(remote.run(&["charging", "off"]).1.starts_with("charging is off: runs charge nothing"));
    assert_eq!(remote.json(&["charging", "--json"])["charging"], false);
    assert_eq!(remote.json(&["charging", "on", "--json"])["charging"], true);

    let (code, _, stderr) = remote.run(&["runs", "payments", "--date", "2020-01-31"]);
    assert!(code == 2 && stderr.contains("--date 2020-01-31 is before the table was created, on "), "{stderr}");
    let today = Utc::now().date_naive();
    let (code, text, _) = remote.run(&["runs", "payments", "--date", &today.to_string()]);
    assert!(code == 1 && text.contains("missing"), "{text}");
    let next = "Start the day again: docs/trouble.md, \"A day is not done\".";
    let verdict = format!("The runs of {today} are NOT complete: of 2 shards, 2 missing\n{next}\n");
    assert!(text.ends_with(&verdict), "{text}");

    let soon = (Utc::now() + TimeDelta::days(2)).date_naive().to_string();
    let due = remote.json(&["due", "--date", &soon, "--json"]);
    assert_eq!((&due["payments"]["count"], due["payments"]["sums"].as_array().unwrap().len()), (&2.into(), 2), "{due}");
    assert_eq!(remote.json(&["receipts", "acme", "--json"]), Value::Array(Vec::new()));
    for (arguments, expected) in [
        (vec!["accounts", "unknown"], "there is no account unknown"),
        (vec!["receipts", "unknown"], "there is no account unknown"),
        (vec!["subscription", "pause", "bell", &id], "there is no subscription"),
        (vec!["why", "bell", &id], "there is no subscription"),
        (
            vec!["resolve", "acme", &id, "--not-charged", "--reason", "x"],
            "with --table, also give --gateway with the deployed value",
        ),
        (
            vec!["resolve", "acme", &id, "--not-charged", "--although-the-gateway-says", "--reason", "x"],
            "there is nothing to resolve",
        ),
        (vec!["move-gateway"], "with --table, also give --gateway with the deployed value"),
        (vec!["resolve", "acme", &id], "required arguments were not provided"),
        (vec!["resolve", "acme", &id, "--not-charged"], "--reason <TEXT>"),
        (vec!["subscription", "pause", "bell", "1"], "there is no subscription 1 in the account bell"),
        (vec!["accounts", "a#b"], "must be 1 to 64 letters, digits"),
        (vec!["demo"], "`demo` only works on the local table: leave out --table"),
        (vec!["run", "payments"], "`run` only works on the local table"),
        (vec![], "`dueday` only works on the local table"),
    ] {
        let (code, _, stderr) = remote.run(&arguments);
        assert!(code == 2 && stderr.contains(expected), "{arguments:?}: {stderr}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn account_and_subscription_are_changed_by_command() {
    let remote = RemoteTable::new().await;
    let change = ["account", "change", "acme", "--email", "books@example.com", "--locale", "de", "--json"];
    let changed = remote.json(&change);
    assert_eq!(
        (&changed["email"], &changed["locale"], &changed["name"]),
        (&"books@example.com".into(), &"de".into(), &"Acme".into())
    );
    assert_eq!(remote.json(&change), changed, "a repeated change changes nothing");

    let table = Table::new(remote.engine.client(), "payments");
    let subscriptions = table.get_subscriptions_by_account(&"acme".parse().unwrap(), &Paging::all()).await.unwrap();
    let gold = subscriptions.items.into_iter().find(|found| found.sku.as_str() == "gold").unwrap();
    let id = gold.id.to_string();
    let change =
        |arguments: &[&str]| remote.run(&[&["subscription", "change", "acme", id.as_str()], arguments].concat());
    let (code, json, stderr) = change(&[
        "--price",
        "14.99",
        "--payment-day",
        "last",
        "--product-name",
        "Gold",
        "--email",
        "g@example.com",
        "--json",
    ]);
    assert_eq!(code, 0, "{stderr}");
    let changed: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&changed["amount"], &changed["payment_day"], &changed["product_name"], &changed["email"]),
        (&1499.into(), &31.into(), &"Gold".into(), &"g@example.com".into())
    );
    let (_, json, _) = change(&["--account-email", "--json"]);
    let changed: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&changed["email"], &changed["amount"]), (&Value::Null, &1499.into()));

    for (arguments, expected) in [
        (vec![], "the following required arguments were not provided"),
        (vec!["--price", "14,99"], "invalid value '14,99' for --price: must be an amount like 12.99"),
        (vec!["--price", "0"], "must be"),
        (vec!["--payment-day", "40"], "must be a day of the month from 1 to 31, or last"),
        (vec!["--email", "a@example.com", "--account-email"], "cannot be used with '--account-email'"),
    ] {
        let (code, _, stderr) = change(&arguments);
        assert!(code == 2 && stderr.contains(expected), "{arguments:?}: {stderr}");
    }
    for (arguments, expected) in [
        (vec!["account", "change", "acme"], "<--email <ADDRESS>|--name <NAME>|--locale <LOCALE>>"),
        (vec!["account", "change", "nope", "--name", "Nope"], "there is no account nope"),
        (vec!["account", "card-link", "acme", "--api", "ftp://x"], "must be a URL such as http"),
        (vec!["account", "card-link", "acme"], "with --table, also give --api with the URL of the API"),
        (vec!["subscription", "change", "bell", id.as_str(), "--price", "1"], "there is no subscription"),
    ] {
        let (code, _, stderr) = remote.run(&arguments);
        assert!(code == 2 && stderr.contains(expected), "{arguments:?}: {stderr}");
    }
    let unchanged = table.get_subscription(&gold.account, gold.id).await.unwrap().unwrap();
    assert_eq!(unchanged.price.minor(), 1_499, "a refused change changes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn card_link_opens_a_page_at_the_gateway_that_returns_to_the_api() {
    let remote = RemoteTable::new().await;
    let sandbox = Arc::new(Sandbox::new(Ledger::in_memory(), Arc::new(SystemClock)));
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let gateway = format!("http://{}", listener.local_addr().unwrap());
    sandbox.set_url(&gateway);
    tokio::spawn(serve_http(listener, gateway_router(sandbox.clone()), ServerLimits::default()));
    let link = ["account", "card-link", "acme", "--gateway", &gateway, "--api", "https://api.example.com/", "--json"];
    let setup = remote.json(&link);
    assert_eq!((&setup["status"], &setup["subscriptions"]), (&"open".into(), &Value::Null));
    let url = setup["url"].as_str().unwrap();
    assert!(url.starts_with(&format!("{gateway}/pages/")), "{url}");
    let page = url.rsplit('/').next().unwrap().parse().unwrap();
    let (opened, _) = sandbox.page_at(&page, Utc::now()).unwrap();
    let id = setup["id"].as_str().unwrap();
    assert_eq!(opened.return_url, format!("https://api.example.com/payment-method-setups/{id}/return"));
    let table = Table::new(remote.engine.client(), "payments");
    assert!(table.get_setup(id.parse().unwrap()).await.unwrap().is_some(), "the return page finds the setup");
}

#[tokio::test(flavor = "multi_thread")]
async fn findings_are_shown_until_a_person_resolves_them() {
    let remote = RemoteTable::new().await;
    let (code, text, _) = remote.run(&["findings"]);
    assert!(code == 0 && text.contains("Every payment has its receipt"), "{text}");
    let table = Table::new(remote.engine.client(), "payments");
    let acme = "acme".parse().unwrap();
    let gold = table.get_subscriptions_by_account(&acme, &Paging::all()).await.unwrap().items.remove(0);
    let finding = Finding {
        account: acme,
        subscription: gold.id,
        sku: gold.sku.clone(),
        due_on: gold.due_on,
        payment: "pay_1".parse().unwrap(),
        amount: gold.price,
        reason: FindingReason::AmountDiffers,
        blocks: true,
        found_at: Utc::now(),
        resolved: None,
        version: 1,
    };
    table.put_finding(gold, |_| finding.clone()).await.unwrap();
    let (code, text, _) = remote.run(&["findings"]);
    assert!(code == 1 && text.contains("pay_1") && text.contains("the amount or the currency differs"), "{text}");
    assert!(text.contains("not charged until it is resolved"), "{text}");
    let (code, json, _) = remote.run(&["findings", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, &json[0]["payment"], &json[0]["blocks_charging"]), (1, &"pay_1".into(), &true.into()));
    let (code, text, _) = remote.run(&["runs", "payments"]);
    assert!(code == 1 && text.contains("payments without a receipt: 1\n  See them with `dueday findings`"), "{text}");
    let (code, text, _) = remote.run(&["audit"]);
    assert!(code == 1 && text.contains("resolved") && text.contains("1 violation"), "{text}");

    let sandbox = Arc::new(Sandbox::new(Ledger::in_memory(), Arc::new(SystemClock)));
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let gateway = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(serve_http(listener, gateway_router(sandbox), ServerLimits::default()));
    let resolve = |extra: &[&str]| {
        let arguments = ["findings", "resolve", "acme", "pay_1", "--gateway", &gateway, "--because", "a test"];
        remote.run(&[&arguments, extra].concat())
    };
    let (code, _, stderr) = resolve(&["--receipt"]);
    assert!(code == 2 && stderr.contains("at the gateway it has not succeeded"), "{stderr}");
    let (code, _, stderr) = resolve(&["--close"]);
    assert_eq!(code, 0, "{stderr}");
    let (code, _, stderr) = resolve(&["--close"]);
    assert!(code == 2 && stderr.contains("there is no open finding about the payment pay_1"), "{stderr}");
    assert_eq!(remote.run(&["findings"]).0, 0);
    assert_eq!(remote.run(&["audit"]).0, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_audit_continues_after_its_last_account_and_is_stored() {
    let remote = RemoteTable::new().await;
    let (code, _, stderr) = remote.run(&["audit", "--resume"]);
    assert!(code == 2 && stderr.contains("no audit was interrupted"), "{stderr}");
    assert_eq!(remote.run(&["audit", "list"]).1, "No audit is stored: run `dueday audit`.\n");

    // Damage a subscription of every account. Store an audit that was interrupted after the first account.
    let table = Table::new(remote.engine.client(), "payments");
    let mut partitions = table.account_partitions();
    let first = partitions.next().await.unwrap().unwrap();
    let position = partitions.position().map(str::to_owned);
    let mut damaged = vec![first.subscriptions[0].clone()];
    while let Some(partition) = partitions.next().await.unwrap() {
        damaged.push(partition.subscriptions[0].clone());
    }
    for stored in &damaged {
        let damage = |s: &Subscription| Ok::<_, ()>(Subscription { next_payment_on: None, ..s.clone() });
        table.rewrite_subscription(stored.clone(), damage).await.unwrap();
    }
    let started = AuditRecord::new(SystemClock.ulid(), false, Utc::now());
    let interrupted = AuditRecord { accounts: 1, subscriptions: 1, position, ..started };
    table.create_audit(&interrupted).await.unwrap();
    let listed = remote.json(&["audit", "list", "--json"]);
    assert_eq!((&listed[0]["accounts"], &listed[0]["ended_at"]), (&1.into(), &Value::Null));

    let (code, json, stderr) = remote.run(&["audit", "--resume", "--json"]);
    let resumed: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(code, 1, "{stderr}");
    assert_eq!(resumed["accounts"], damaged.len(), "the first account was counted before");
    assert_eq!(resumed["violations"], damaged.len() - 1, "the first account is not checked again: {resumed}");
    let shown = remote.json(&["audit", "show", "--json"]);
    let keys: Vec<&str> = shown["stored"].as_array().unwrap().iter().map(|v| v["key"].as_str().unwrap()).collect();
    assert_eq!((keys.len(), &shown["violations"]["indexed"]), (damaged.len() - 1, &(damaged.len() - 1).into()));
    assert!(!keys.iter().any(|key| key.contains(&damaged[0].id.to_string())), "{keys:?}");
    let (code, text, _) = remote.run(&["audit", "show", &interrupted.id.to_string(), "--limit", "1"]);
    assert!(code == 0 && text.contains("indexed") && !text.contains("not ended"), "{text}");
    let (code, _, stderr) = remote.run(&["audit", "--resume"]);
    assert!(code == 2 && stderr.contains("no audit was interrupted"), "{stderr}");

    // A second process that continues the same audit is refused.
    let next = AuditRecord { accounts: 2, ..interrupted.clone() };
    let lost = table.update_audit(&interrupted, next, Vec::new()).await;
    assert!(matches!(lost, Err(store::TableError::Contended { .. })), "{lost:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_table_on_aws_is_reported() {
    let remote = RemoteTable::new().await;
    let mut other = dueday(&remote.folder.path().join("data"));
    other
        .env("AWS_ACCESS_KEY_ID", "key")
        .env("AWS_SECRET_ACCESS_KEY", "secret")
        .env("AWS_REGION", "eu-west-1")
        .env("DUEDAY_DYNAMODB_ENDPOINT", remote.served.url())
        .args(["--table", "nope", "accounts"]);
    let (code, _, stderr) = output(&mut other);
    assert!(code == 2 && stderr.contains("there is no table \"nope\" on AWS in the configured region"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn export_contains_all_values_of_an_import() {
    let remote = RemoteTable::new().await;
    let (code, csv, _) = remote.run(&["export", "subscriptions"]);
    assert_eq!(code, 0);
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let header = reader.headers().unwrap().clone();
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let cell = |row: &csv::StringRecord, name: &str| {
        row.get(header.iter().position(|column| column == name).unwrap()).unwrap().to_owned()
    };
    let yen = rows.iter().find(|row| cell(row, "sku") == "yen").unwrap();
    assert_eq!((cell(yen, "product_name"), cell(yen, "amount")), ("Yen plan, \"large\"".into(), "500".into()));
    assert_eq!(rows.iter().filter(|row| cell(row, "amount") == "12.99").count(), 2);
    let (_, jsonl, _) = remote.run(&["export", "accounts", "--format", "jsonl"]);
    let ids: Vec<Value> =
        jsonl.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].clone()).collect();
    assert!(ids.len() == 2 && ids.contains(&"bell".into()), "{jsonl}");
    assert_eq!(remote.run(&["export", "receipts"]).1.lines().count(), 1, "only the header");

    // If the reader closes the pipe after one line, the command does not fail, although its output is larger than the
    // pipe's buffer.
    let mut text = "account,email,name,locale,external_id,sku,product_name,payment_day,amount,currency,customer,payment_method,first_payment_date\n".to_owned();
    for n in 0..600 {
        let product = "Gold plan ".repeat(15);
        text += &format!("bell,b@example.com,Bell,,more {n},gold-{n},{product},3,12.99,EUR,cus_2,pm_card_visa,\n");
    }
    let more = remote.folder.path().join("more.csv");
    std::fs::write(&more, text).unwrap();
    assert_eq!(remote.run(&["import", more.to_str().unwrap()]).0, 0);
    let mut process = remote.command(&["export", "subscriptions"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(process.wait().unwrap().code(), Some(0));
}

#[test]
fn help_describes_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = String::new();
    for command in [
        "",
        "demo",
        "run",
        "due",
        "import",
        "accounts",
        "subscriptions",
        "receipts",
        "subscription",
        "subscription cancel",
        "why",
        "resolve",
        "runs",
        "charging",
        "doctor",
        "gateway",
        "export",
        "completions",
        "simulate",
    ] {
        let (code, stdout, stderr) =
            output(dueday(&folder.path().join("data")).args(command.split_whitespace()).arg("-h"));
        assert_eq!(code, 0, "{stderr}");
        text += &format!("$ dueday {command} -h\n{stdout}\n");
    }
    let data = folder.path().join("data").display().to_string();
    insta::assert_snapshot!("help", text.replace(&format!("={data}"), "="));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (code, script, _) = output(dueday(&folder.path().join("data")).args(["completions", shell]));
        assert!(code == 0 && script.contains("at-period-end"), "{shell}");
    }
}
