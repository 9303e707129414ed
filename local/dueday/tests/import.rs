//! Bringing in subscriptions from another system: once, again, after a kill, and however many there are.

mod terminal;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use terminal::{dueday, output};

const HEADER: &str = "account,email,name,locale,external_id,sku,product_name,payment_day,amount,currency,customer,\
                      payment_method,first_payment_date";

/// Imports `path`: the exit code, and what it came to.
fn import(folder: &Path, path: &Path, flags: &[&str]) -> (i32, Value) {
    let (code, stdout, stderr) = output(dueday(&folder.join("data")).arg("import").arg(path).arg("--json").args(flags));
    (code, serde_json::from_str(&stdout).unwrap_or(Value::String(stderr)))
}

/// Created, already there, rejected.
fn counts(imported: &Value) -> [u64; 3] {
    ["created", "already_there", "rejected"].map(|name| imported[name].as_u64().unwrap_or_else(|| panic!("{imported}")))
}

fn subscriptions(folder: &Path) -> Vec<Value> {
    let (code, stdout, stderr) =
        output(dueday(&folder.join("data")).args(["export", "subscriptions", "--format", "jsonl"]));
    assert_eq!(code, 0, "{stderr}");
    stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn write(folder: &Path, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// `count` rows, three to an account.
fn many(count: u32) -> String {
    let mut text = format!("{HEADER}\n");
    for n in 0..count {
        let (account, day) = (n / 3, n % 31 + 1);
        let _ = writeln!(
            text,
            "account-{account},a{account}@example.com,Customer {account},,order {n},gold,Gold plan,{day},12.99,EUR,cus_{account},pm_card_visa,"
        );
    }
    text
}

#[test]
fn what_is_imported_again_is_neither_doubled_nor_reset() {
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
    assert_eq!((code, counts(&imported)), (0, [2, 0, 0]));
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
    assert_eq!(counts(&import(folder, &path, &[]).1), [0, 2, 0]);
    let after = subscriptions(folder);
    assert_eq!(after.len(), 2);
    for (before, after) in before.iter().zip(&after) {
        let expected = if before["sku"] == "yen" { "paused" } else { "active" };
        assert_eq!((&after["id"], &after["amount"]), (&before["id"], &before["amount"]));
        assert_eq!(after["status"], expected);
    }
}

#[test]
fn rows_of_one_identifier_are_one_subscription_whatever_their_sku() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut text = format!("{HEADER}\n");
    for sku in ["gold", "silver", "bronze", "gold"] {
        let _ = writeln!(text, "acme,a@example.com,Acme,,1,{sku},Plan,31,12.99,EUR,cus_1,pm_card_visa,");
    }
    let (code, imported) = import(folder, &write(folder, "s.csv", text), &[]);
    assert_eq!((code, counts(&imported)), (0, [1, 3, 0]), "though they are worked on at the same time");
    assert_eq!(subscriptions(folder).len(), 1);
}

#[test]
fn a_bad_row_is_rejected_with_its_line_and_field_and_the_others_are_imported() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let good = "acme,a@example.com,Acme,,1,gold,Gold plan,31,12.99,EUR,cus_1,pm_card_visa,";
    let mut text = format!("{HEADER}\n{good}\n").into_bytes();
    let mut fields = Vec::new();
    let card = "4242424242424242";
    for (field, row) in [
        ("account", good.replace("acme,", "a#b,")),
        ("email", good.replace("a@example.com", "nobody")),
        ("email", good.replace("a@", &format!("{card}@"))),
        ("name", good.replace("Acme", "4242 4242 4242 4242")),
        ("locale", good.replace("Acme,,", "Acme,english,")),
        ("locale", good.replace("Acme,,", &format!("Acme,{card},"))),
        ("external_id", good.replace(",1,", ",,")),
        ("external_id", good.replace(",1,", &format!(",{card},"))),
        ("sku", good.replace("gold", "a b")),
        ("product_name", good.replace("Gold plan", "")),
        ("payment_day", good.replace("31", "32")),
        ("payment_day", good.replace("31", card)),
        ("amount", good.replace("12.99", "12,99").replacen("12,99", "\"12,99\"", 1)),
        ("amount", good.replace("12.99", "0")),
        ("amount", good.replace("12.99", card)),
        ("amount", good.replace("12.99", &format!("EUR{card}"))),
        ("product_name", good.replace("Gold plan", &format!("Visa{card}"))),
        ("currency", good.replace("EUR", "eur")),
        ("customer", good.replace("cus_1", "4242-4242-4242-4242")),
        ("payment_method", good.replace("pm_card_visa", card)),
        ("first_payment_date", format!("{good}2020-01-31")),
        ("first_payment_date", format!("{good}2030-01-30")),
        ("first_payment_date", format!("{good}tomorrow")),
        ("", good.replace("Acme,", "")),
    ] {
        text.extend(format!("{}\n", row.replace(",1,", ",2,")).bytes());
        fields.push(field);
    }
    text.extend(good.replace("Acme", "Acm").replace(",1,", ",3,").bytes());
    text.extend(b"\nacme,a@example.com,\xff,,4,gold,Gold plan,31,12.99,EUR,cus_1,pm_card_visa,\n");
    let path = write(folder, "s.csv", &text);
    let (code, imported) = import(folder, &path, &[]);
    assert_eq!((code, counts(&imported)), (1, [2, 0, 25]), "{imported}");
    let rejects = std::fs::read_to_string(folder.join("s.rejects.csv")).unwrap();
    fields.push("name");
    let named = csv::Reader::from_reader(rejects.as_bytes()).into_records().map(|row| row.unwrap()[1].to_owned());
    assert_eq!(named.collect::<Vec<_>>(), fields);
    assert!(!rejects.contains("4242"), "no card number is written down: {rejects}");
    insta::assert_snapshot!("rejects", rejects.replace(&chrono::Utc::now().date_naive().to_string(), "TODAY"));
    let stored = format!("{:?}", subscriptions(folder));
    assert!(!stored.contains("4242"), "{stored}");

    let mended = write(folder, "s.csv", format!("{HEADER}\n{good}\n"));
    assert_eq!(import(folder, &mended, &[]).0, 0);
    let left = std::fs::read_to_string(folder.join("s.rejects.csv")).unwrap();
    assert_eq!(left, "line,field,reason\n", "what is mended is no longer listed");

    let path = write(folder, "s.csv", text);
    let elsewhere = folder.join("elsewhere.csv");
    import(folder, &path, &["--dry-run", "--rejects", elsewhere.to_str().unwrap()]);
    assert_eq!(std::fs::read_to_string(elsewhere).unwrap(), rejects);
}

#[test]
fn a_file_that_cannot_be_read_is_refused_before_anything_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (text, said) in [
        (String::new(), "the header lacks account, email"),
        (HEADER.replace("sku,", ""), "the header lacks sku; the columns are account,email"),
        (format!("{HEADER},plan"), "column 14 \"plan\" is not known; the columns are account,email"),
        (format!("{HEADER},sku"), "the header names sku more than once"),
        (HEADER.replace(',', ";"), "column 1 \"\" is not known"),
        ("acme,4242424242424242".to_owned(), "column 1 \"acme\" is not known"),
        ("account,4242424242424242".to_owned(), "column 2 \"\" is not known"),
    ] {
        let path = write(folder, "s.csv", &text);
        let (code, told) = import(folder, &path, &[]);
        assert!(code == 2 && told.as_str().unwrap().contains(said), "{text}: {told}");
    }
    let path = write(folder, "s.csv", many(1));
    let (code, told) = import(folder, &path, &["--rejects", path.to_str().unwrap()]);
    assert!(code == 2 && told.as_str().unwrap().contains("is the file to import"), "{told}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), many(1), "it is as it was");
    let (code, told) = import(folder, &folder.join("nowhere.csv"), &[]);
    assert!(code == 2 && told.as_str().unwrap().contains("nowhere.csv: No such file"), "{told}");
}

#[test]
fn an_import_killed_again_and_again_is_complete_in_the_end() {
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
    let [created, already_there, rejected] = counts(&imported);
    assert_eq!((code, created + already_there, rejected), (0, u64::from(ROWS), 0), "after {kills} kills");
    assert!(already_there > 0, "the kills fell before anything was written");
    let all = subscriptions(folder);
    let ids: BTreeSet<_> = all.iter().map(|s| s["id"].to_string()).collect();
    assert_eq!((all.len(), ids.len()), (1_500, 1_500), "none lost, none doubled");
}

/// The most memory that `command` had, in KiB.
fn peak_kib(command: &mut Command) -> u64 {
    let mut process = command.stdout(Stdio::null()).spawn().unwrap();
    let path = format!("/proc/{}/status", process.id());
    let mut peak = 0;
    while process.try_wait().unwrap().is_none() {
        let status = std::fs::read_to_string(&path).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
        peak = peak.max(kib.unwrap_or(0));
        std::thread::yield_now();
    }
    assert!(process.wait().unwrap().success());
    peak
}

#[cfg(target_os = "linux")]
#[test]
fn a_hundred_thousand_rows_take_no_more_memory_than_a_few() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let few = write(folder, "few.csv", many(5_000));
    let all = write(folder, "all.csv", many(100_000));
    let dry = |path: &Path| peak_kib(dueday(&folder.join("data")).arg("import").arg(path).arg("--dry-run"));
    let (of_few, of_all) = (dry(&few), dry(&all));
    assert!(of_few > 1_024, "nothing was measured: {of_few} KiB");
    assert!(of_all < of_few + 8 * 1_024, "{of_few} KiB for 5,000 rows, {of_all} KiB for 100,000");
}
