//! Tests of `dueday why`: the explanation, its records, the JSON output, and the exit codes.

use crate::terminal;

use std::path::Path;

use chrono::{Datelike, Days, NaiveDate, Utc};
use serde_json::Value;
use terminal::{dueday, output};

/// Imports a subscription with `payment_method` whose first payment is due today. Returns the subscription's id.
fn import_subscription(data: &Path, today: NaiveDate, payment_method: &str) -> String {
    let csv = data.with_extension("csv");
    let rows = format!(
        "account,email,name,locale,external_id,sku,product_name,payment_day,amount,currency,customer,payment_method,first_payment_date\n\
         acme,a@example.com,Acme,,1,gold,Gold plan,{},12.99,EUR,cus_1,{payment_method},{today}\n",
        today.day()
    );
    std::fs::write(&csv, rows).unwrap();
    let (code, _, stderr) = output(dueday(data).args(["import", csv.to_str().unwrap()]));
    assert_eq!(code, 0, "{stderr}");
    let (_, json, _) = output(dueday(data).args(["subscriptions", "acme", "--json"]));
    serde_json::from_str::<Value>(&json).unwrap()[0]["id"].as_str().unwrap().to_owned()
}

/// Runs `dueday why` for the day `on`. Returns the exit code and the lines of the output, in which each group of spaces
/// is replaced by one space.
fn explain_day(data: &Path, id: &str, on: NaiveDate) -> (i32, Vec<String>) {
    let (code, text, stderr) = output(dueday(data).args(["why", "acme", id, "--date", &on.to_string()]));
    assert_eq!(stderr, "");
    assert!(!text.contains('@') && !text.contains("pm_card") && !text.contains("cus_1"), "{text}");
    (code, text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect())
}

#[test]
fn why_explains_a_payment_before_and_after_its_run() {
    let folder = tempfile::tempdir().unwrap();
    let (data, today) = (folder.path().join("data"), Utc::now().date_naive());
    let id = import_subscription(&data, today, "pm_card_visa");
    let (code, lines) = explain_day(&data, &id, today);
    let shard = &lines.last().unwrap()["runs of shard ".len()..][..1];
    assert_eq!(code, 0, "the run of the day has not started yet: {lines:?}");
    assert_eq!(
        lines,
        [
            format!(
                "no charge is recorded on {today}: the payment due on {today} was owed, and no run of shard {shard} is recorded yet; \
                 it will be tried at the next run"
            ),
            String::new(),
            "record due date recorded at amount details".to_owned(),
            format!("subscription {today} 12.99 EUR active now, next payment {today}"),
            format!("runs of shard {shard} missing"),
        ]
    );
    let (code, json, _) = output(dueday(&data).args(["why", "acme", &id, "--json"]));
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, &json["reason"], &json["run"]["walked"]), (0, &"not_walked".into(), &"missing".into()), "{json}");

    assert_eq!(output(dueday(&data).args(["charging", "off"])).0, 0);
    output(dueday(&data).args(["run", "payments", "--date", &today.to_string()]));
    let (code, lines) = explain_day(&data, &id, today);
    assert!(
        code == 1 && lines[0].contains("deferred rows: charging is switched off"),
        "the operator must act: {lines:?}"
    );
    assert_eq!(output(dueday(&data).args(["charging", "on"])).0, 0);

    assert_eq!(output(dueday(&data).args(["run", "payments", "--date", &today.to_string()])).0, 0);
    let (code, lines) = explain_day(&data, &id, today);
    assert!(code == 0 && lines[0].starts_with(&format!("charged on {today}: 12.99 EUR, due on {today}, payment ")));
    assert!(lines[4].starts_with(&format!("receipt {today} {today} ")) && lines[4].contains("12.99 EUR payment "));
    assert!(lines[5].starts_with(&format!("runs of shard {shard} complete; 2 due, 1 paid, 1 skipped")), "{lines:?}");
    let (code, json, _) = output(dueday(&data).args(["why", "acme", &id, "--date", &today.to_string(), "--json"]));
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, &json["charged"], &json["receipts"][0]["amount"]), (0, &true.into(), &1299.into()), "{json}");
    let ahead = explain_day(&data, &id, today + Days::new(1));
    assert!(ahead.0 == 0 && ahead.1.len() > 3 && !ahead.1.iter().any(|line| line.starts_with("runs")), "{ahead:?}");
}

#[test]
fn why_explains_a_decline_and_refuses_unknown_subscriptions() {
    let folder = tempfile::tempdir().unwrap();
    let (data, today) = (folder.path().join("data"), Utc::now().date_naive());
    let id = import_subscription(&data, today, "pm_card_chargeDeclinedInsufficientFunds");
    assert_eq!(output(dueday(&data).args(["run", "payments", "--date", &today.to_string()])).0, 0);
    let (code, lines) = explain_day(&data, &id, today);
    let tomorrow = today + Days::new(1);
    let sentence = format!(
        "not charged on {today}: attempt 1 to charge 12.99 EUR, due on {today}, was declined (insufficient_funds); \
         it will be tried again on {tomorrow}"
    );
    assert_eq!((code, &lines[0]), (0, &sentence));
    assert_eq!(lines[3], format!("subscription {today} 12.99 EUR past due now, next payment {tomorrow}"));
    assert!(lines[4].starts_with("attempt 1 ") && lines[4].ends_with("12.99 EUR declined (insufficient_funds)"));
    for (arguments, expected) in [
        (vec!["why", "bell", &id], "there is no subscription"),
        (vec!["why", "acme", "01JZXCVBNM0123456789ABCDEF"], "there is no subscription"),
        (vec!["why", "acme", &id, "--date", "yesterday"], "invalid value 'yesterday' for '--date <DATE>'"),
        (vec!["why"], "required arguments were not provided"),
    ] {
        let (code, _, stderr) = output(dueday(&data).args(&arguments));
        assert!(code == 2 && stderr.contains(expected), "{arguments:?}: {stderr}");
    }
}
