//! Bringing in a file again: what is there already stays as it is, and what is not comes in.

use crate::file;
use crate::terminal;

use std::collections::BTreeSet;
use std::process::Stdio;

use serde_json::json;

use file::{HEADER, counts, import, many, rejects, subscriptions, write};
use terminal::{dueday, output};

#[test]
fn import_of_a_file_again_neither_doubles_nor_resets() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // As a spreadsheet writes it: a byte order mark, CRLF, blanks around, quotes, another order of columns.
    let rows = "\u{feff}external_id,account,email,name,locale,sku,product_name,payment_day,amount,currency,customer,payment_method,first_payment_date\r\n\
        order 1 , acme,billing@acme.example.com,\"Acme, Inc.\",de-AT,gold,Gold plan,31,12.99,EUR,cus_1,pm_card_visa,\r\n\
        order 2,acme,other@acme.example.com,Acme,,yen,Yen plan,3,500,JPY,cus_1,pm_card_visa,2030-05-03\r\n";
    let path = write(folder, "s.csv", rows);
    assert_eq!(import(folder, &path, &["--dry-run"]).1["created"], 2);
    assert_eq!(subscriptions(folder).len(), 0, "a dry run does nothing");
    let (code, imported) = import(folder, &path, &[]);
    assert_eq!((code, counts(&imported)), (0, [2, 0, 0, 0]));
    assert_eq!(counts(&import(folder, &path, &[]).1), [0, 2, 0, 0]);
    let before = subscriptions(folder);
    let yen = before.iter().find(|s| s["sku"] == "yen").unwrap();
    assert_eq!(
        (&yen["amount"], &yen["currency"], &yen["due_date"]),
        (&500.into(), &"JPY".into(), &"2030-05-03".into())
    );
    let (_, account, _) = output(dueday(&folder.join("data")).args(["accounts", "acme", "--json"]));
    assert!(account.contains("Acme, Inc.") && account.contains("de-AT"), "the first row makes the account: {account}");

    // The customer acts, then the file comes again, with another SKU for one of them.
    let id = yen["id"].as_str().unwrap();
    let (code, paused, _) = output(dueday(&folder.join("data")).args(["subscription", "pause", "acme", id, "--json"]));
    assert!(code == 0 && paused.contains("\"paused\""), "{paused}");
    let path = write(folder, "s.csv", rows.replace(",yen,", ",yen-2,").replace("12.99", "99.99"));
    let (code, imported) = import(folder, &path, &[]);
    assert_eq!((code, counts(&imported)), (1, [0, 0, 2, 0]), "what differs is told, and an error");
    let told = [
        ["2", "amount", "99.99", "is 12.99 in the table, and left so"],
        ["3", "sku", "yen-2", "is yen in the table, and left so"],
    ];
    assert_eq!(rejects(&folder.join("s.rejects.csv")), told);
    let after = subscriptions(folder);
    assert_eq!(after.len(), 2);
    for (before, after) in before.iter().zip(&after) {
        let expected = if before["sku"] == "yen" { "paused" } else { "active" };
        assert_eq!((&after["id"], &after["amount"]), (&before["id"], &before["amount"]));
        assert_eq!(after["status"], expected);
    }
}

#[test]
fn import_killed_again_and_again_is_complete_in_the_end() {
    const ROWS: u32 = 1_500;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let path = write(folder, "s.csv", many(ROWS));
    let stored = || std::fs::metadata(folder.join("data/dynamodb.sqlite-wal")).map_or(0, |wal| wal.len());
    let mut kills = 0;
    for kib in [40, 900, 200, 1_500] {
        let mut process = dueday(&folder.join("data")).arg("import").arg(&path).stdout(Stdio::null()).spawn().unwrap();
        let from = stored();
        // Until it has written that much, or is done, or has emptied its log.
        while process.try_wait().unwrap().is_none() && (from..from + kib * 1024).contains(&stored()) {
            std::thread::yield_now();
        }
        process.kill().unwrap();
        process.wait().unwrap();
        kills += 1;
    }
    let (code, imported) = import(folder, &path, &[]);
    let [created, already_there, differs, rejected] = counts(&imported);
    assert_eq!((code, created + already_there, differs + rejected), (0, u64::from(ROWS), 0), "after {kills} kills");
    assert!(already_there > 0, "the kills fell before anything was written");
    let all = subscriptions(folder);
    let ids: BTreeSet<_> = all.iter().map(|s| s["id"].to_string()).collect();
    assert_eq!((all.len(), ids.len()), (1_500, 1_500), "none lost, none doubled");
}

#[test]
fn import_brings_in_what_is_new_wherever_it_stands_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let text = many(900);
    // A customer's rows far apart, and a part of the file that is there already, in pieces of all lengths.
    let mut rows: Vec<&str> = text.lines().skip(1).collect();
    rows.sort_by_key(|row| row.split("order ").nth(1).unwrap().split(',').next().unwrap().parse::<u32>().unwrap() % 7);
    let of = |rows: &[&str]| format!("{HEADER}\n{}\n", rows.join("\n"));
    let there: Vec<&str> = (0_usize..).zip(&rows).filter(|(n, _)| n / 70 % 3 == 1).map(|(_, row)| *row).collect();
    let first = import(folder, &write(folder, "there.csv", of(&there)), &[]).1;
    assert_eq!(counts(&first), [280, 0, 0, 0]);
    // One that cannot be read keeps none of its neighbours out.
    let bad = rows[450].replace("12.99", "free");
    let mut broken = rows.clone();
    broken[450] = &bad;
    let (code, imported) = import(folder, &write(folder, "all.csv", of(&broken)), &[]);
    let was_there = u64::from(there.contains(&rows[450]));
    assert_eq!((code, counts(&imported)), (1, [620 - (1 - was_there), 280 - was_there, 0, 1]));
    let path = write(folder, "all.csv", of(&rows));
    assert_eq!(counts(&import(folder, &path, &[]).1), [1 - was_there, 899 + was_there, 0, 0]);
    assert_eq!(subscriptions(folder).len(), 900, "none lost, none doubled");
}

#[test]
fn import_finds_what_an_import_of_long_ago_has_made_whatever_its_product_is_now() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let rows = many(120);
    assert_eq!(counts(&import(folder, &write(folder, "s.csv", &rows), &[]).1), [120, 0, 0, 0]);
    // The records of their identifiers have expired.
    let engine = emulator::Engine::open(&folder.join("data").join("dynamodb.sqlite")).unwrap();
    let all = engine.ask("Scan", &json!({"TableName": "dueday"})).unwrap();
    let keys = all["Items"].as_array().unwrap().iter().map(|item| json!({"PK": item["PK"], "SK": item["SK"]}));
    let records: Vec<_> = keys.filter(|key| key["PK"]["S"].as_str().unwrap().starts_with("IDEM#")).collect();
    assert_eq!(records.len(), 120);
    for key in records {
        engine.ask("DeleteItem", &json!({"TableName": "dueday", "Key": key})).unwrap();
    }
    drop(engine);
    // Between rows of new customers, so that the import takes all rows for new; and their customers come again and again.
    let new = many(1_200).replace("account-", "new-").replace("order ", "new order ");
    let new: Vec<&str> = new.lines().skip(1).step_by(3).collect();
    let silver = rows.replace(",gold,", ",silver,");
    let of_old = |place: usize| silver.lines().skip(1 + place).step_by(3);
    let parts = (0..3).flat_map(|place| new.iter().copied().skip(place * 130).take(130).chain(of_old(place)));
    let text = format!("{HEADER}\n{}\n", parts.collect::<Vec<_>>().join("\n"));
    let (code, imported) = import(folder, &write(folder, "s.csv", text), &[]);
    assert_eq!(
        (code, counts(&imported)),
        (1, [390, 0, 120, 0]),
        "a second subscription would be charged beside the first"
    );
    assert_eq!(subscriptions(folder).len(), 510);
}
