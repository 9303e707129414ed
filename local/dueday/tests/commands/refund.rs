//! Tests of `dueday refund`: a repeated command does not refund twice.

use crate::terminal;

use std::collections::BTreeSet;
use std::path::Path;

use chrono::Utc;
use serde_json::Value;
use terminal::{dueday, output};

/// The header row of the CSV file that the tests import.
const HEADER: &str = "account,email,name,locale,external_id,sku,product_name,payment_day,amount,currency,customer,\
                      payment_method,first_payment_date";

/// Creates a data folder with a paid period of 12.99 EUR. Returns the folder and the id of the receipt.
fn folder_with_receipt() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let today = Utc::now().date_naive();
    let row = format!(
        "acme,a@example.com,Acme,,1,gold,Gold plan,{},12.99,EUR,cus_1,pm_card_visa,{today}\n",
        today.format("%-d")
    );
    let path = folder.path().join("s.csv");
    std::fs::write(&path, format!("{HEADER}\n{row}")).unwrap();
    let (code, _, stderr) = run(folder.path(), &["import", path.to_str().unwrap()]);
    assert_eq!(code, 0, "{stderr}");
    let (code, _, stderr) = run(folder.path(), &["run", "payments"]);
    assert_eq!(code, 0, "{stderr}");
    let id = receipt(folder.path())["id"].as_str().unwrap().to_owned();
    (folder, id)
}

/// Runs `dueday` on `folder/data`. Returns the exit code, standard output and standard error.
fn run(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    output(dueday(&folder.join("data")).args(arguments))
}

/// Returns the only receipt of the account, as `dueday receipts` shows it.
fn receipt(folder: &Path) -> Value {
    let (_, stdout, _) = run(folder, &["receipts", "acme", "--json"]);
    serde_json::from_str::<Value>(&stdout).unwrap()[0].clone()
}

#[test]
fn repeated_refund_command_refunds_once_unless_it_has_another_idempotency_key() {
    let (folder, id) = folder_with_receipt();
    let refund = |more: &[&str]| {
        // The look-up of an existing refund needs no reason.
        let reason: &[&str] = if more.contains(&"--id") { &[] } else { &["--reason", "a test"] };
        run(folder.path(), &[&["refund", "acme", &id, "--yes"], reason, more].concat())
    };
    let refunded = || receipt(folder.path())["refunded_amount"].clone();

    let (code, _, stderr) = run(folder.path(), &["refund", "acme", &id]);
    assert!(code == 2 && stderr.contains("--reason <TEXT>"), "{stderr}");
    assert_eq!(refunded(), 0, "a refund needs a reason");
    let (code, stdout, stderr) = refund(&["--amount", "5.00"]);
    assert!(code == 0 && stdout.starts_with("5.00 EUR of "), "{stdout}{stderr}");
    let (code, stdout, stderr) = refund(&["--amount", "5.00"]);
    assert!(code == 0 && stdout.contains("was already refunded"), "{stdout}{stderr}");
    assert_eq!(refunded(), 500, "the repeated command refunds nothing");

    for _ in 0..2 {
        let (code, _, stderr) = refund(&["--amount", "5.00", "--idempotency-key", "ticket-2"]);
        assert_eq!((code, refunded()), (0, 1_000.into()), "{stderr}");
    }
    let (code, _, stderr) = refund(&["--amount", "1.00", "--idempotency-key", "ticket-2"]);
    assert!(code == 2 && stderr.contains("belongs to a refund with another amount"), "{stderr}");
    let (code, _, stderr) = refund(&["--idempotency-key", "ticket-2"]);
    assert!(code == 2 && stderr.contains("belongs to a refund with another amount"), "{stderr}");
    let (code, _, stderr) = refund(&["--amount", "5.00", "--idempotency-key", "ticket-3"]);
    assert!(code == 2 && stderr.contains("at most 2.99 EUR"), "{stderr}");

    let (code, _, stderr) = refund(&["--amount", "-1"]);
    assert!(code == 2 && stderr.contains("invalid value '-1' for --amount: must be "), "{stderr}");
    let (_, stdout, _) = refund(&["--json"]);
    let rest: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&rest["amount"], refunded()), (&299.into(), 1_299.into()));
    let (_, stdout, _) = refund(&["--id", rest["id"].as_str().unwrap(), "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&stdout).unwrap(), rest);
    let (code, _, stderr) = refund(&["--id", "01JZXCVBNM0123456789ABCDEF"]);
    assert!(code == 2 && stderr.contains("there is no refund 01JZXCVBNM0123456789ABCDEF"), "{stderr}");
    let (code, _, stderr) = refund(&["--id", "01JZXCVBNM0123456789ABCDEF", "--amount", "1.00"]);
    assert!(code == 2 && stderr.contains("cannot be used with"), "{stderr}");
}

#[test]
fn refund_is_visible_in_receipts_report_why_and_export() {
    let (folder, _) = folder_with_receipt();
    let shown = |arguments: &[&str]| {
        let (code, stdout, stderr) = run(folder.path(), arguments);
        assert_eq!(code, 0, "{arguments:?}: {stdout}{stderr}");
        stdout
    };
    let paid = receipt(folder.path());
    let number = paid["number"].as_str().unwrap();
    assert!(shown(&["report"]).contains("1 payment from "), "without refunds, the report has one amount");

    shown(&["refund", "acme", number, "--amount", "5.00", "--reason", "a test", "--yes"]);
    assert!(
        shown(&["receipts", "acme"]).contains("12.99      5.00            7.99  EUR"),
        "{}",
        shown(&["receipts", "acme"])
    );
    let report = shown(&["report"]);
    assert!(report.contains("\ngross: 12.99 EUR\nrefunded: 5.00 EUR\nnet: 7.99 EUR\n"), "{report}");
    let why = shown(&["why", "acme", paid["subscription"].as_str().unwrap()]);
    assert!(why.contains("; refunded: 5.00 EUR, requested last on "), "{why}");

    shown(&["refund", "acme", number, "--reason", "a test", "--yes"]);
    let why = shown(&["why", "acme", paid["subscription"].as_str().unwrap()]);
    assert!(why.contains("; refunded: 12.99 EUR, requested last on "), "{why}");
    let export = shown(&["export", "receipts"]);
    let today = Utc::now().date_naive();
    assert!(export.contains(number) && export.contains(&format!("12.99,12.99,\"{today}T")), "{export}");
    let refunds = shown(&["export", "refunds", "--from", &today.to_string()]);
    let rows: Vec<&str> = refunds.lines().skip(1).collect();
    let amounts = rows.iter().map(|row| row.split(',').nth(4).unwrap()).collect::<BTreeSet<_>>();
    assert_eq!((rows.len(), amounts), (2, BTreeSet::from(["5.00", "7.99"])), "{refunds}");
    assert!(rows.iter().all(|row| row.starts_with("\"acme\",") && row.contains(",\"succeeded\",")), "{refunds}");
    let earlier = shown(&["export", "refunds", "--to", &today.pred_opt().unwrap().to_string()]);
    assert_eq!(earlier.lines().count(), 1, "only the header: {earlier}");

    let sent = run(folder.path(), &["receipt", "resend", "acme", number]);
    assert_eq!(sent.0, 0, "{}", sent.2);
    let outbox = std::fs::read_dir(folder.path().join("data/outbox")).unwrap();
    let mails: Vec<String> = outbox.map(|mail| std::fs::read_to_string(mail.unwrap().path()).unwrap()).collect();
    let resent = mails.iter().filter(|mail| mail.contains("Subject: Copy: Gold plan: we refunded")).count();
    assert_eq!(
        resent, 1,
        "the mail about a refunded payment does not thank for it, and says that it is a copy: {mails:?}"
    );
}

#[test]
fn report_refuses_a_future_first_day_and_reports_until_today_at_most() {
    let (folder, _) = folder_with_receipt();
    let today = Utc::now().date_naive();
    let (tomorrow, yesterday) = (today.succ_opt().unwrap().to_string(), today.pred_opt().unwrap().to_string());
    let (code, _, stderr) = run(folder.path(), &["report", "--from", &tomorrow]);
    let expected = format!("--from {tomorrow} must not be later than today, {today}");
    assert!(code == 2 && stderr.contains(&expected) && stderr.contains("dueday forecast"), "{stderr}");
    let (code, _, stderr) = run(folder.path(), &["report", "--from", &today.to_string(), "--to", &yesterday]);
    assert!(code == 2 && stderr.contains(&format!("--to {yesterday} must not be before {today}")), "{stderr}");
    let (code, stdout, stderr) = run(folder.path(), &["report", "--from", &yesterday, "--to", &tomorrow]);
    assert!(code == 0 && stdout.contains(&format!("from {yesterday} to {today}")), "{stdout}{stderr}");
    assert!(!stdout.contains("NOT DONE"), "no run was possible before the table existed: {stdout}");
}
