//! Tests of repeated imports: existing subscriptions are not changed, and missing subscriptions are created.

use crate::file;
use crate::terminal;

use std::collections::BTreeSet;
use std::process::Stdio;

use serde_json::json;

use file::{HEADER, csv_with_rows, import, import_counts, read_rejects, stored_subscriptions, write_file};
use terminal::{dueday, output};

#[test]
fn repeated_import_creates_nothing_twice_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // A file as a spreadsheet program saves it: a byte order mark, CRLF, surrounding blanks, quotes, and another order
    // of columns.
    let rows = "\u{feff}external_id,account,email,name,locale,sku,product_name,payment_day,amount,currency,customer,payment_method,first_payment_date\r\n\
        order 1 , acme,billing@acme.example.com,\"Acme, Inc.\",de-AT,gold,Gold plan,31,12.99,EUR,cus_1,pm_card_visa,\r\n\
        order 2,acme,billing@acme.example.com,\"Acme, Inc.\",de-AT,yen,Yen plan,3,500,JPY,cus_1,pm_card_visa,2030-05-03\r\n";
    let path = write_file(folder, "s.csv", rows);
    assert_eq!(import(folder, &path, &["--dry-run"]).1["created"], 2);
    assert_eq!(stored_subscriptions(folder).len(), 0, "a dry run writes nothing");
    let (code, imported) = import(folder, &path, &[]);
    assert_eq!((code, import_counts(&imported)), (0, [2, 0, 0, 0]));
    assert_eq!(import_counts(&import(folder, &path, &[]).1), [0, 2, 0, 0]);
    let before = stored_subscriptions(folder);
    let yen = before.iter().find(|s| s["sku"] == "yen").unwrap();
    assert_eq!(
        (&yen["amount"], &yen["currency"], &yen["due_date"]),
        (&500.into(), &"JPY".into(), &"2030-05-03".into())
    );
    let (_, account, _) = output(dueday(&folder.join("data")).args(["accounts", "acme", "--json"]));
    assert!(account.contains("Acme, Inc.") && account.contains("de-AT"), "the rows create the account: {account}");

    // The operator pauses a subscription, then the file is imported again with another SKU and another price.
    let id = yen["id"].as_str().unwrap();
    let (code, paused, _) = output(dueday(&folder.join("data")).args(["subscription", "pause", "acme", id, "--json"]));
    assert!(code == 0 && paused.contains("\"paused\""), "{paused}");
    let path = write_file(folder, "s.csv", rows.replace(",yen,", ",yen-2,").replace("12.99", "99.99"));
    let (code, imported) = import(folder, &path, &[]);
    assert_eq!(
        (code, import_counts(&imported)),
        (1, [0, 0, 2, 0]),
        "different values are reported, and the exit code is 1"
    );
    let expected = [
        ["2", "amount", "99.99", "differs: the table contains 12.99, which is not changed"],
        ["3", "sku", "yen-2", "differs: the table contains yen, which is not changed"],
    ];
    assert_eq!(read_rejects(&folder.join("s.rejects.csv")), expected);
    let after = stored_subscriptions(folder);
    assert_eq!(after.len(), 2);
    for (before, after) in before.iter().zip(&after) {
        let expected = if before["sku"] == "yen" { "paused" } else { "active" };
        assert_eq!((&after["id"], &after["amount"]), (&before["id"], &before["amount"]));
        assert_eq!(after["status"], expected);
    }
}

#[test]
fn import_is_complete_after_several_kills() {
    const ROWS: u32 = 1_500;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let path = write_file(folder, "s.csv", csv_with_rows(ROWS));
    let stored = || std::fs::metadata(folder.join("data/dynamodb.sqlite-wal")).map_or(0, |wal| wal.len());
    let mut kills = 0;
    for kib in [40, 900, 200, 1_500] {
        let mut process = dueday(&folder.join("data")).arg("import").arg(&path).stdout(Stdio::null()).spawn().unwrap();
        let from = stored();
        // Wait until the import has written `kib` KiB, has ended, or has emptied the write-ahead log.
        while process.try_wait().unwrap().is_none() && (from..from + kib * 1024).contains(&stored()) {
            std::thread::yield_now();
        }
        process.kill().unwrap();
        process.wait().unwrap();
        kills += 1;
    }
    let (code, imported) = import(folder, &path, &[]);
    let [created, already_there, differs, rejected] = import_counts(&imported);
    assert_eq!((code, created + already_there, differs + rejected), (0, u64::from(ROWS), 0), "after {kills} kills");
    assert!(already_there > 0, "all kills happened before the first write");
    let all = stored_subscriptions(folder);
    let ids: BTreeSet<_> = all.iter().map(|s| s["id"].to_string()).collect();
    assert_eq!((all.len(), ids.len()), (1_500, 1_500), "every subscription is created exactly once");
}

#[test]
fn import_creates_new_rows_at_any_position_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let text = csv_with_rows(900);
    // The rows of each account are far apart in the file. Before the whole file, every third block of 70 rows is
    // imported.
    let mut rows: Vec<&str> = text.lines().skip(1).collect();
    rows.sort_by_key(|row| row.split("order ").nth(1).unwrap().split(',').next().unwrap().parse::<u32>().unwrap() % 7);
    let of = |rows: &[&str]| format!("{HEADER}\n{}\n", rows.join("\n"));
    let there: Vec<&str> = (0_usize..).zip(&rows).filter(|(n, _)| n / 70 % 3 == 1).map(|(_, row)| *row).collect();
    let first = import(folder, &write_file(folder, "there.csv", of(&there)), &[]).1;
    assert_eq!(import_counts(&first), [280, 0, 0, 0]);
    // An invalid row does not prevent the import of its neighbours.
    let bad = rows[450].replace("12.99", "free");
    let mut broken = rows.clone();
    broken[450] = &bad;
    let (code, imported) = import(folder, &write_file(folder, "all.csv", of(&broken)), &[]);
    let was_there = u64::from(there.contains(&rows[450]));
    assert_eq!((code, import_counts(&imported)), (1, [620 - (1 - was_there), 280 - was_there, 0, 1]));
    let path = write_file(folder, "all.csv", of(&rows));
    assert_eq!(import_counts(&import(folder, &path, &[]).1), [1 - was_there, 899 + was_there, 0, 0]);
    assert_eq!(stored_subscriptions(folder).len(), 900, "every subscription is created exactly once");
}

#[test]
fn import_finds_old_subscriptions_after_their_idempotency_records_expired_and_their_sku_changed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let rows = csv_with_rows(120);
    assert_eq!(import_counts(&import(folder, &write_file(folder, "s.csv", &rows), &[]).1), [120, 0, 0, 0]);
    // Delete the idempotency records, as if they had expired.
    let engine = emulator::Engine::open(&folder.join("data").join("dynamodb.sqlite")).unwrap();
    let all = engine.execute("Scan", &json!({"TableName": "dueday"})).unwrap();
    let keys = all["Items"].as_array().unwrap().iter().map(|item| json!({"PK": item["PK"], "SK": item["SK"]}));
    let records: Vec<_> = keys.filter(|key| key["PK"]["S"].as_str().unwrap().starts_with("IDEM#")).collect();
    assert_eq!(records.len(), 120);
    for key in records {
        engine.execute("DeleteItem", &json!({"TableName": "dueday", "Key": key})).unwrap();
    }
    drop(engine);
    // The old rows are between rows of new accounts, so that the import assumes that all rows are new. The rows of each
    // old account are imported in several batches.
    let new = csv_with_rows(1_200).replace("account-", "new-").replace("order ", "new order ");
    let new: Vec<&str> = new.lines().skip(1).step_by(3).collect();
    let silver = rows.replace(",gold", ",silver");
    let of_old = |place: usize| silver.lines().skip(1 + place).step_by(3);
    let parts = (0..3).flat_map(|place| new.iter().copied().skip(place * 130).take(130).chain(of_old(place)));
    let text = format!("{HEADER}\n{}\n", parts.collect::<Vec<_>>().join("\n"));
    let (code, imported) = import(folder, &write_file(folder, "s.csv", text), &[]);
    assert_eq!(
        (code, import_counts(&imported)),
        (1, [390, 0, 120, 0]),
        "a second subscription would be charged beside the first"
    );
    assert_eq!(stored_subscriptions(folder).len(), 510);
}
