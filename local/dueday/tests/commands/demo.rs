//! Tests of an interrupted `dueday demo`: the data folder contains no unpaid past months, and a later `dueday demo`
//! adds the missing data.

use crate::process;
use crate::terminal;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;

use billing::PaymentStatus;
use chrono::Timelike as _;
use process::{Process, count_lines};
use sandbox::LedgerEntry;
use serde_json::Value;
use terminal::{dueday, output};

/// Runs `dueday` with `--json`, and asserts that it succeeds. Returns its output.
fn json_output(data: &Path, arguments: &[&str]) -> Value {
    let (code, stdout, stderr) = output(dueday(data).args(arguments).arg("--json"));
    assert_eq!(code, 0, "{arguments:?}: {stdout}{stderr}");
    serde_json::from_str(&stdout).unwrap()
}

/// Returns the complete lines of the gateway's ledger.
fn ledger_entries(data: &Path) -> Vec<LedgerEntry> {
    let ledger = std::fs::read_to_string(data.join("gateway-ledger.jsonl")).unwrap_or_default();
    // Ignore a line that the gateway is still writing.
    let whole = ledger.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    whole.map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Starts `dueday demo`, and kills it as soon as `is_time` accepts the content of the file `name`. Returns false if the
/// demo ended before that.
fn kill_demo_when(data: &Path, name: &str, is_time: impl Fn(&[u8]) -> bool) -> bool {
    let mut demo = Process::start(dueday(data).arg("demo").stdout(Stdio::piped()).stderr(Stdio::null()));
    demo.wait_for_file(&data.join(name), 0, is_time) && demo.kill()
}

/// Asserts that no payment with a due date before today is still due. Today's run would charge such a payment today,
/// and not on its day in the past.
fn assert_no_past_payments_are_due(data: &Path, moment: &str) {
    let today = chrono::Utc::now().date_naive().to_string();
    for row in json_output(data, &["due"])["payments"]["rows"].as_array().unwrap() {
        assert!(row["on"].as_str().unwrap() >= today.as_str(), "{moment}: {row}");
    }
}

#[test]
fn interrupted_demo_leaves_no_due_payments_and_can_be_continued() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    for lines in [1, 12] {
        let was_killed = kill_demo_when(data, "gateway-ledger.jsonl", |ledger| count_lines(ledger) >= lines);
        assert!(was_killed, "the demo ended before the kill");
        assert_no_past_payments_are_due(data, &format!("after {lines} charges"));
    }
    // Kill the demo while it copies the simulated table into the data folder.
    let mut kills = 0;
    for kib in [40, 1_200] {
        kills += u32::from(kill_demo_when(data, "dynamodb.sqlite-wal", |wal| wal.len() >= kib * 1_024));
        assert_no_past_payments_are_due(data, &format!("after {kib} KiB"));
    }
    assert!(kills > 0, "no kill happened during the copy");
    json_output(data, &["demo"]);
    assert_no_past_payments_are_due(data, "after the complete demo");
    assert_eq!(json_output(data, &["demo"])["already_loaded"], true);
    assert_eq!(json_output(data, &["subscriptions"]).as_array().unwrap().len(), 13);
    assert_eq!(json_output(data, &["receipts", "hotel-aurora"]).as_array().unwrap().len(), 3);
    let mails = std::fs::read_dir(data.join("outbox"))
        .unwrap()
        .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    let mut subjects = BTreeSet::new();
    for mail in mails {
        let header = |name: &str| mail.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
        let heading = (header("To: "), header("Subject: "), header("Date: "));
        assert!(subjects.insert(heading.clone()), "the same mail was written twice: {heading:?}");
    }
    assert!(subjects.len() > 30, "{subjects:?}");
    let refunded = json_output(data, &["receipts", "hotel-aurora"])[0]["refunded_amount"].as_i64().unwrap();
    assert!(refunded > 0, "a payment was refunded in part");
    let mut charged = BTreeSet::new();
    for entry in ledger_entries(data) {
        if let LedgerEntry::Payment(made) = entry
            && made.status == PaymentStatus::Succeeded
        {
            let month = made.request.due_on.format("%Y-%m").to_string();
            assert!(charged.insert((made.request.subscription, month)), "charged twice: {:?}", made.request);
        }
    }
    assert!(charged.len() > 25, "{charged:?}");
}

#[test]
fn demo_before_the_hour_of_the_daily_runs_makes_todays_payments() {
    let folder = tempfile::tempdir().unwrap();
    // In this time zone, it is between one and two o'clock in the night. The sign in `Etc/GMT-3` means: three hours
    // ahead of UTC.
    let zone = match chrono::Utc::now().hour() {
        0 => "Etc/GMT-1".to_owned(),
        hour @ 1..14 => format!("Etc/GMT+{}", hour - 1),
        hour => format!("Etc/GMT-{}", 25 - hour),
    };
    let run = |arguments: &[&str]| output(dueday(folder.path()).args(arguments).env("DUEDAY_TIME_ZONE", &zone));
    let (code, stdout, stderr) = run(&["demo"]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    for batch in ["payments", "reminders"] {
        let (_, stdout, stderr) = run(&["runs", batch, "--json"]);
        let day: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(day["state"], "done", "{zone}: {stdout}{stderr}");
    }
}

#[test]
fn demo_without_a_gateway_loads_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    let (code, _, stderr) = output(dueday(data).args(["demo", "--gateway", "http://127.0.0.1:9"]));
    assert!(code == 2 && stderr.contains("the account of the gateway is unknown"), "{stderr}");
    assert_eq!(json_output(data, &["accounts"]), Value::Array(Vec::new()));
}
