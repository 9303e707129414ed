//! A test of `dueday run` that is interrupted with Ctrl-C.

use std::process::{Command, Stdio};

use chrono::{Datelike, Utc};
use serde_json::Value;

use crate::file::{HEADER, write_file};
use crate::terminal::{dueday, output};

/// The number of due payments.
const ROWS: u64 = 40;

#[cfg(unix)]
#[test]
fn interrupted_run_reports_and_records_what_it_charged_and_the_next_run_charges_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let today = Utc::now().date_naive();
    let row =
        |n| format!("a{n},a@example.com,A,,{n},gold,Gold,{},12.99,EUR,cus_{n},pm_card_visa,{today}\n", today.day());
    let csv = write_file(folder.path(), "s.csv", format!("{HEADER}\n{}", (0..ROWS).map(row).collect::<String>()));
    assert_eq!(output(dueday(&data).arg("import").arg(csv)).0, 0);

    let mut slow_run = dueday(&data);
    slow_run.args(["run", "payments", "--gateway-rate", "4"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let process = slow_run.spawn().unwrap();
    let ledger = || std::fs::read_to_string(data.join("gateway-ledger.jsonl")).unwrap_or_default();
    let charges = || ledger().matches("\"event\":\"payment\"").count();
    while charges() < 4 {
        std::thread::yield_now();
    }
    assert!(Command::new("kill").args(["-INT", &process.id().to_string()]).status().unwrap().success());
    let ended = process.wait_with_output().unwrap();
    let (report, messages) = (String::from_utf8(ended.stdout).unwrap(), String::from_utf8(ended.stderr).unwrap());
    assert_eq!(ended.status.code(), Some(1), "{report}{messages}");
    assert!(report.contains(" paid\n") && report.contains("  stopped: ended by the operator\n"), "{report}");
    assert!(messages.contains("Ending the run: waiting for the rows in progress"), "{messages}");

    let recorded = || -> u64 {
        let (_, runs, _) = output(dueday(&data).args(["runs", "payments", "--json"]));
        let runs: Value = serde_json::from_str(&runs).unwrap();
        let shards = runs["shards"].as_array().unwrap().iter();
        shards.filter_map(|shard| shard["counts"]["paid"].as_u64()).sum()
    };
    let charged = u64::try_from(charges()).unwrap();
    assert!((4..ROWS).contains(&charged), "{charged} charges");
    assert_eq!(recorded(), charged, "the run record counts what the interrupted run has charged");
    assert_eq!(output(dueday(&data).args(["run", "payments"])).0, 0);
    assert_eq!((recorded(), charges()), (ROWS, usize::try_from(ROWS).unwrap()));
}
