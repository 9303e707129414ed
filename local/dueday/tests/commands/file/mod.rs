//! Helpers for the tests of `dueday import`: they write CSV files, import them, and read the results.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::terminal::{dueday, output};

/// The header row of the CSV files that the tests write and import with `dueday import`.
pub const HEADER: &str = "account,email,name,locale,external_id,sku,product_name,payment_day,amount,currency,customer,\
                      payment_method,first_payment_date";

/// Imports the file at `path` into `folder/data`. Returns the exit code and the report, or the error message as a JSON
/// string.
pub fn import(folder: &Path, path: &Path, flags: &[&str]) -> (i32, Value) {
    let (code, stdout, stderr) = output(dueday(&folder.join("data")).arg("import").arg(path).arg("--json").args(flags));
    let report = serde_json::from_str(&stdout);
    (code, report.unwrap_or_else(|_| serde_json::from_str::<Value>(&stderr).unwrap()["error"]["message"].clone()))
}

/// Returns the numbers of rows in an import report: created, already in the table, different from the table, rejected.
pub fn import_counts(imported: &Value) -> [u64; 4] {
    ["created", "already_there", "differs", "rejected"]
        .map(|name| imported[name].as_u64().unwrap_or_else(|| panic!("{imported}")))
}

/// Returns all subscriptions in `folder/data`, as `dueday export` writes them.
pub fn stored_subscriptions(folder: &Path) -> Vec<Value> {
    let (code, stdout, stderr) =
        output(dueday(&folder.join("data")).args(["export", "subscriptions", "--format", "jsonl"]));
    assert_eq!(code, 0, "{stderr}");
    stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Writes `text` to the file `name` in `folder`. Returns the path of the file.
pub fn write_file(folder: &Path, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// Returns the line, field, value and reason of each entry in the file of rejects at `path`.
pub fn read_rejects(path: &Path) -> Vec<[String; 4]> {
    let text = std::fs::read_to_string(path).unwrap();
    let rows = csv::Reader::from_reader(text.as_bytes()).into_records();
    rows.map(|row| std::array::from_fn(|cell| row.as_ref().unwrap()[cell].to_owned())).collect()
}

/// Returns the text of a CSV file for `dueday import` with `count` subscriptions, three for each account, each with its
/// own SKU.
pub fn csv_with_rows(count: u32) -> String {
    let mut text = format!("{HEADER}\n");
    for n in 0..count {
        let (account, sku, day) = (n / 3, ["gold", "gold-2", "gold-3"][(n % 3) as usize], n % 31 + 1);
        let _ = writeln!(
            text,
            "account-{account},a{account}@example.com,Customer {account},,order {n},{sku},Gold plan,{day},12.99,EUR,cus_{account},pm_card_visa,"
        );
    }
    text
}
