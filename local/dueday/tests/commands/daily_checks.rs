//! Tests of the checks that the server makes each day.

use std::collections::BTreeMap;
use std::process::Stdio;

use chrono::Utc;
use emulator::Engine;
use serde_json::{Value, json};
use ulid::Ulid;

use crate::process::Process;
use crate::shop::Shop;
use crate::terminal::{dueday, output};

/// Changes the id of the table in the data folder of `shop`, as if the table had been created two days ago.
fn make_table_older(shop: &Shop) {
    let engine = Engine::open(&shop.folder.path().join("data/dynamodb.sqlite")).unwrap();
    let created_at = Utc::now() - chrono::TimeDelta::days(2);
    let id = Ulid::from_parts(created_at.timestamp_millis().try_into().unwrap(), 1);
    let key = json!({"S": "CTL#settings"});
    let request = json!({
        "TableName": "dueday",
        "Key": {"PK": key, "SK": key},
        "UpdateExpression": "SET TableId = :id",
        "ConditionExpression": "attribute_exists(TableId)",
        "ExpressionAttributeValues": {":id": {"S": id.to_string()}},
    });
    engine.execute("UpdateItem", &request).unwrap();
}

#[test]
fn server_audits_the_table_and_compares_it_with_the_gateway_each_day() {
    let shop = Shop::open();
    make_table_older(&shop);
    let data = shop.folder.path().join("data");
    let ports = ["--api-port", "0", "--dynamodb-port", "0", "--gateway-port", "0", "--billing-time", "19:00"];
    let mut server = dueday(&data);
    server.args(ports).args(["--gateway", &shop.gateway.url]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = Process::start(&mut server);
    let events = data.join(format!("events/{}.jsonl", Utc::now().date_naive()));
    let is_audited = |text: &[u8]| String::from_utf8_lossy(text).contains("audit.completed");
    assert!(server.wait_for_file(&events, 0, is_audited), "the server has ended");
    assert!(server.kill());
    let (_, text, stderr) = output(dueday(&data).args(["status", "--json", "--gateway", &shop.gateway.url]));
    let status: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{stderr}"));
    assert!(status["latest_audit"]["ended_at"].is_string(), "{text}");
    assert!(status["latest_comparison"]["ended_at"].is_string(), "{text}");
}
