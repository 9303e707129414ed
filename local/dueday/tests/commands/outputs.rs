//! Compares the outputs of the commands with snapshots.

use crate::orders::PLACES;
use crate::shop::Shop;
use crate::terminal::{dueday, output};

use chrono::{Datelike, Utc};
use regex::Regex;
use serde_json::Value;

/// Commands whose outputs are in a snapshot. Most of these commands only read the state of the system.
const READING_COMMANDS: [&str; 25] = [
    "accounts",
    "subscriptions",
    "receipts acme",
    "run reminders",
    "run payments",
    "reshard",
    "confirm-clock",
    "due",
    "due --json",
    "runs",
    "runs payments --json",
    "report",
    "audit",
    "audit --gateway-list",
    "findings",
    "events --account acme",
    "events --type payment.succeeded --json",
    "shards",
    "charging",
    "settings get",
    "status",
    "export accounts",
    "export subscriptions",
    "export receipts",
    "orders list",
];

#[test]
fn output_of_commands_that_look_at_the_system_matches_its_snapshot() {
    let shop = Shop::open();
    shop.run("run reminders");
    let transcript = READING_COMMANDS
        .map(|command| format!("$ dueday {command}\n{}\n", shop.without_changing_values(&shop.run(command))));
    insta::assert_snapshot!("looks", transcript.concat());
}

/// Further commands whose exit codes and outputs are in a snapshot. Some of these commands are refused.
const OTHER_COMMANDS: [&str; 10] = [
    "resolve acme {acme} --not-charged --reason lost",
    "move-gateway",
    "findings resolve acme {payment} --close --because closed",
    "charging off",
    "run payments",
    "charging on",
    "shards set 2 --yes",
    "shards set 8 --yes",
    "orders stock nothing",
    "listen --forward-to nowhere",
];

#[test]
fn output_of_other_commands_matches_its_snapshot() {
    let shop = Shop::open();
    let transcript = OTHER_COMMANDS.map(|command| {
        let (code, output) = shop.run_command(command);
        format!("$ dueday {command}\n{}exit code {code}\n\n", shop.without_changing_values(&output))
    });
    insta::assert_snapshot!("others", transcript.concat());
}

/// The files that the commands of the order desk import, each with its name and its content.
const ORDER_FILES: [(&str, &str); 3] = [
    ("goods.csv", "product,name,sku,quantity,warehouse,region,stock\nbeans,House Blend 1 kg,gold,2,ams,eu,5\n"),
    (
        "people.csv",
        "employee,name,job,title,represents_customers,department,warehouse,hired_on,salary,currency,left_on\n\
         ada,Ada Fields,am,Account Manager,true,sales,,2026-01-10,46500.00,EUR,\n\
         jun,Jun Potter,pk,Picker,false,logistics,ams,2026-02-01,31000.00,EUR,\n",
    ),
    ("places.csv", PLACES),
];

/// Commands of the order desk, in the sequence in which an operator would use them.
const ORDER_DESK_COMMANDS: [&str; 33] = [
    "orders import {folder}/goods.csv",
    "orders people {folder}/people.csv",
    "orders places {folder}/places.csv",
    "orders import {folder}/goods.csv",
    "orders import {folder}/goods.csv",
    "orders people {folder}/people.csv",
    "orders list",
    "orders address acme --name Acme --street High-Street-1 --city Leeds --postal-code LS1 --country gb --region eu",
    "orders list --status open",
    "orders show {order}",
    "orders stock beans",
    "orders receive beans ams 500",
    "orders hand-over acme ada",
    "orders split {order}",
    "orders split {order} --keep beans=1",
    "orders replace {order} --reason parcel-lost",
    "orders pick {order}",
    "orders ship {order}",
    "orders replace {order} --reason parcel-lost --line beans=1",
    "orders show {order}",
    "orders show {order}.2",
    "orders deliver {order}",
    "orders cancel {order} --yes",
    "orders return {order}",
    "orders stock beans",
    "orders show {order}",
    "orders show unknown",
    "orders employees --warehouse ams",
    "orders employees ada --json",
    "orders region eu",
    "orders ranking {quarter}",
    "orders shards --orders 100000",
    "orders shards set 8 --yes",
];

#[test]
fn output_of_the_order_desk_matches_its_snapshot() {
    let mut shop = Shop::open();
    let folder = shop.folder.path().to_owned();
    for (name, contents) in ORDER_FILES {
        std::fs::write(folder.join(name), contents).unwrap();
    }
    let today = Utc::now().date_naive();
    let quarter = format!("{}-Q{}", today.year(), today.month0() / 3 + 1);
    shop.words.extend([("{folder}", folder.display().to_string()), ("{quarter}", quarter)]);
    let transcript = ORDER_DESK_COMMANDS.map(|command| {
        if command.contains("{order}") && !shop.words.iter().any(|(word, _)| *word == "{order}") {
            let orders: Value = serde_json::from_str(&shop.run("orders list --json")).unwrap();
            shop.words.push(("{order}", orders[0]["order"].as_str().unwrap().to_owned()));
        }
        let (code, output) = shop.run_command(command);
        format!("$ dueday {command}\n{}exit code {code}\n\n", shop.without_changing_values(&output))
    });
    insta::assert_snapshot!("orders", transcript.concat());
}

/// Commands that change webhook endpoints and list their deliveries, also with values that are refused.
const WEBHOOK_COMMANDS: [&str; 25] = [
    "webhooks",
    "webhooks create http://127.0.0.1:9/hook --type account.created --type account.changed",
    "webhooks create ftp://127.0.0.1/",
    "webhooks create http://127.0.0.1:9/hook --type payment.lost",
    "webhooks",
    "webhooks show {endpoint}",
    "webhooks show {endpoint} --json",
    "webhooks show nothing",
    "webhooks show 01JZXCVBNM0123456789ABCDEF",
    "webhooks change {endpoint}",
    "webhooks change {endpoint} --url http://127.0.0.1:9/other --type account.changed",
    "webhooks rotate-secret {endpoint}",
    "webhooks rotate-secret {endpoint}",
    "webhooks encrypt-secrets",
    "webhooks deliveries {endpoint}",
    "webhooks deliveries {endpoint} --status lost",
    "webhooks redeliver {endpoint}",
    "webhooks redeliver {endpoint} unknown",
    "webhooks redeliver {endpoint} --failed",
    "webhooks disable {endpoint}",
    "webhooks",
    "webhooks redeliver {endpoint} unknown",
    "webhooks enable {endpoint}",
    "webhooks remove {endpoint} --yes",
    "webhooks remove {endpoint} --yes",
];

#[test]
fn output_of_the_webhooks_commands_matches_its_snapshot() {
    let mut shop = Shop::open();
    let secret = Regex::new("whsec_[A-Za-z0-9+/=]+").unwrap();
    let transcript = WEBHOOK_COMMANDS.map(|command| {
        if command.contains("{endpoint}") && !shop.words.iter().any(|(word, _)| *word == "{endpoint}") {
            let endpoints: Value = serde_json::from_str(&shop.run("webhooks --json")).unwrap();
            shop.words.push(("{endpoint}", endpoints[0]["id"].as_str().unwrap().to_owned()));
        }
        let (code, output) = shop.run_command(command);
        let output = secret.replace_all(&shop.without_changing_values(&output), "{secret}").into_owned();
        format!("$ dueday {command}\n{output}exit code {code}\n\n")
    });
    insta::assert_snapshot!("webhooks", transcript.concat());
}

#[test]
fn event_of_a_change_is_listed_as_a_delivery_and_redelivered_by_its_id() {
    let shop = Shop::open();
    let created = shop.run("webhooks create http://127.0.0.1:9/hook --json");
    let endpoint = serde_json::from_str::<Value>(&created).unwrap()["id"].as_str().unwrap().to_owned();
    shop.run("account change acme --name Other");
    shop.run("events");
    let deliveries = || -> Value {
        serde_json::from_str(&shop.run(&format!("webhooks deliveries {endpoint} --status pending --json"))).unwrap()
    };
    let listed = deliveries();
    let (event, first) = (listed[0]["event"].as_str().unwrap(), listed.as_array().unwrap().len());
    let sent = shop.run(&format!("webhooks redeliver {endpoint} {event}"));
    assert_eq!(sent, "1 event will be sent again, as soon as `dueday` runs\n");
    assert_eq!(deliveries().as_array().unwrap().len(), first);
}

#[test]
fn output_of_a_forecast_and_of_the_check_of_a_gateway_matches_its_snapshot_except_for_numbers() {
    let shop = Shop::open();
    let commands =
        ["forecast", "forecast --months 1 --json", "gateway check {gateway} --wait 0s", "gateway check notaurl"];
    let transcript = commands.map(|command| {
        let command = command.replace("{gateway}", &shop.gateway.url);
        let (code, output) = shop.run_command(&command);
        let output = Regex::new(r"\d+").unwrap().replace_all(&shop.without_changing_values(&output), "9").into_owned();
        let command = command.replace(&shop.gateway.url, "{gateway}");
        format!("$ dueday {command}\n{output}exit code {code}\n\n")
    });
    insta::assert_snapshot!("numbers", transcript.concat());
}

#[test]
fn output_of_the_demo_and_of_a_simulation_matches_its_snapshot_except_for_numbers() {
    let folder = tempfile::tempdir().unwrap();
    // The demo quotes this folder in the commands that it suggests.
    let data = folder.path().join("a b");
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/src/commands/try_out/demo.csv");
    let simulate = ["simulate", "--from", "2027-01-01", "--months", "1", "--file", demo];
    let transcript = [&["demo"][..], &simulate].map(|arguments| {
        let (code, stdout, _) = output(dueday(&data).args(arguments));
        assert_eq!(code, 0, "{arguments:?}: {stdout}");
        let text = stdout.replace(&folder.path().display().to_string(), "{folder}");
        let text = match arguments {
            ["simulate", ..] => text,
            // The number of payments depends on the day on which the test runs, so replace all numbers.
            _ => Regex::new(r"\d+").unwrap().replace_all(&text, "9").into_owned(),
        };
        format!("$ dueday {}\n{text}\n", arguments[0])
    });
    insta::assert_snapshot!("demo", transcript.concat());
}
