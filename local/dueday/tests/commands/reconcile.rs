//! A test of `dueday reconcile` with a table that contains past months: the gateway has lost a payment, and a person
//! accepts the difference.

use std::path::Path;

use serde_json::{Value, json};

use crate::demo_folder::write_demo_folder;
use crate::terminal::{dueday, output};

/// Runs `dueday` with `--json` as the user `jane`. Returns the exit code, the JSON output, and the text of standard
/// error.
fn run(data: &Path, arguments: &[&str]) -> (i32, Value, String) {
    let (code, stdout, stderr) = output(dueday(data).env("USER", "jane").args(arguments).arg("--json"));
    (code, serde_json::from_str(&stdout).unwrap_or_default(), stderr)
}

#[test]
fn person_accepts_a_receipt_whose_payment_the_gateway_has_lost() {
    let folder = tempfile::tempdir().unwrap();
    let data = &folder.path().join("data");
    write_demo_folder(data);
    // The older of the two latest receipts was paid before yesterday, so the day of this receipt can be compared.
    let (_, receipts, _) = run(data, &["receipts", "harbour-books"]);
    let (payment, paid) =
        (receipts[1]["gateway_payment_id"].as_str().unwrap(), receipts[1]["processed_at"].as_str().unwrap());
    let day = paid.get(..10).unwrap();
    let ledger_file = data.join("gateway-ledger.jsonl");
    let ledger = std::fs::read_to_string(&ledger_file).unwrap();
    let without: Vec<&str> = ledger.split_inclusive('\n').filter(|line| !line.contains(payment)).collect();
    assert!(without.concat().len() < ledger.len(), "the ledger contains {payment}");
    std::fs::write(&ledger_file, without.concat()).unwrap();

    let accept = ["reconcile", "accept", day, payment, "--because", "the bank confirmed the payment"];
    let (code, _, stderr) = run(data, &accept);
    assert!(code == 2 && stderr.contains(&format!("the comparison of {day} is missing or incomplete")), "{stderr}");
    let compare = ["reconcile", "--from", day, "--to", day];
    assert_eq!(run(data, &[&compare, ["--report-only"].as_slice()].concat()).0, 1);
    let (code, _, stderr) = run(data, &accept);
    assert!(code == 2 && stderr.contains("used the option --report-only"), "{stderr}");
    let (code, days, _) = run(data, &compare);
    assert_eq!((code, &days[0]["differences"]), (1, &json!({"receipt_without_payment": 1})), "{days}");
    assert_eq!(days[0]["first_differences"][0]["id"], payment);

    let (code, _, stderr) = run(data, &["reconcile", "accept", day, "pay_other", "--because", "typed wrongly"]);
    assert!(code == 2 && stderr.contains("has no difference with the id pay_other"), "{stderr}");
    let (code, accepted, _) = run(data, &accept);
    assert_eq!(code, 0);
    assert_eq!(accepted, json!([{"date": day, "kind": "receipt_without_payment", "id": payment}]));
    let (code, _, stderr) = run(data, &accept);
    assert!(code == 2 && stderr.contains("was accepted before"), "{stderr}");
    let (code, days, _) = run(data, &compare);
    assert_eq!((code, &days[0]["accepted"], &days[0]["clean"]), (0, &json!(1), &json!(true)), "{days}");
    let (_, log, _) = run(data, &["log"]);
    let actions: Vec<&str> = log.as_array().unwrap().iter().map(|entry| entry["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["payments.reconcile", "difference.accept", "payments.reconcile"]);
    let log = &log.as_array().unwrap()[1..];
    let entry = (&log[0]["action"], &log[0]["item"], &log[0]["reason"]);
    assert_eq!(entry, (&json!("difference.accept"), &json!(payment), &json!("the bank confirmed the payment")));
    assert_eq!(log[0]["actor"], json!({"kind": "command", "name": "jane"}));
}
