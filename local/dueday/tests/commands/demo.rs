//! The demo, interrupted: nothing of its past is left to be charged, and it goes on.

use crate::process;
use crate::terminal;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;

use billing::PaymentStatus;
use gateways::Entry;
use process::Process;
use serde_json::Value;
use terminal::{dueday, output};

fn json(data: &Path, arguments: &[&str]) -> Value {
    let (code, stdout, stderr) = output(dueday(data).args(arguments).arg("--json"));
    assert_eq!(code, 0, "{arguments:?}: {stdout}{stderr}");
    serde_json::from_str(&stdout).unwrap()
}

fn charges(data: &Path) -> Vec<Entry> {
    let ledger = std::fs::read_to_string(data.join("gateway-ledger.jsonl")).unwrap_or_default();
    // A line that the gateway is writing is not there yet.
    let whole = ledger.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    whole.map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Kills a demo as soon as `is_time`, unless it has ended by then. Answers whether it was killed.
fn demo_until(data: &Path, is_time: impl Fn() -> bool) -> bool {
    let mut demo = Process::start(dueday(data).arg("demo").stdout(Stdio::null()).stderr(Stdio::null()));
    while !is_time() && !demo.has_ended() {
        std::thread::yield_now();
    }
    demo.kill()
}

/// That nothing is due since before today: a sweep of today would charge it at today's time.
fn assert_nothing_is_left(data: &Path, moment: &str) {
    let today = chrono::Utc::now().date_naive().to_string();
    for row in json(data, &["due"])["payments"]["rows"].as_array().unwrap() {
        assert!(row["on"].as_str().unwrap() >= today.as_str(), "{moment}: {row}");
    }
}

#[test]
fn demo_interrupted_leaves_no_debts_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let data = &folder.path().join("data");
    for lines in [1, 12, 30] {
        assert!(demo_until(data, || charges(data).len() >= lines), "it ended before it was to be killed");
        assert_nothing_is_left(data, &format!("after {lines} charges"));
    }
    // While it copies what it has played.
    let wal = data.join("dynamodb.sqlite-wal");
    let stored = || std::fs::metadata(&wal).map_or(0, |wal| wal.len());
    let mut kills = 0;
    for kib in [40, 400, 1_200] {
        kills += u32::from(demo_until(data, || stored() >= kib * 1_024));
        assert_nothing_is_left(data, &format!("after {kib} KiB"));
    }
    assert!(kills > 0, "no kill fell while it copied");
    json(data, &["demo"]);
    assert_nothing_is_left(data, "at last");
    assert_eq!(json(data, &["demo"])["already_loaded"], true);
    assert_eq!(json(data, &["subscriptions"]).as_array().unwrap().len(), 13);
    assert_eq!(json(data, &["receipts", "hotel-aurora"]).as_array().unwrap().len(), 3);
    let mut charged = BTreeSet::new();
    for entry in charges(data) {
        if let Entry::Payment(made) = entry
            && made.status == PaymentStatus::Succeeded
        {
            let month = made.request.due_on.format("%Y-%m").to_string();
            assert!(charged.insert((made.request.subscription, month)), "charged twice: {:?}", made.request);
        }
    }
    assert!(charged.len() > 25, "{charged:?}");
}

#[test]
fn demo_without_a_gateway_loads_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    let (code, _, stderr) = output(dueday(data).args(["demo", "--gateway", "http://127.0.0.1:9"]));
    assert!(code == 2 && stderr.contains("whose account the gateway charges for is not known"), "{stderr}");
    assert_eq!(json(data, &["accounts"]), Value::Array(Vec::new()));
}
