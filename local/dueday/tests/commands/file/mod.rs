//! Files to import, and what came of them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::terminal::{dueday, output};

/// The columns.
pub const HEADER: &str = "account,email,name,locale,external_id,sku,product_name,payment_day,amount,currency,customer,\
                      payment_method,first_payment_date";

/// Imports `path`: the exit code, and what it came to.
pub fn import(folder: &Path, path: &Path, flags: &[&str]) -> (i32, Value) {
    let (code, stdout, stderr) = output(dueday(&folder.join("data")).arg("import").arg(path).arg("--json").args(flags));
    (code, serde_json::from_str(&stdout).unwrap_or(Value::String(stderr)))
}

/// Created, already there, different, rejected.
pub fn counts(imported: &Value) -> [u64; 4] {
    ["created", "already_there", "differs", "rejected"]
        .map(|name| imported[name].as_u64().unwrap_or_else(|| panic!("{imported}")))
}

pub fn subscriptions(folder: &Path) -> Vec<Value> {
    let (code, stdout, stderr) =
        output(dueday(&folder.join("data")).args(["export", "subscriptions", "--format", "jsonl"]));
    assert_eq!(code, 0, "{stderr}");
    stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub fn write(folder: &Path, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// Line, field, value and reason of what was not imported.
pub fn rejects(path: &Path) -> Vec<[String; 4]> {
    let text = std::fs::read_to_string(path).unwrap();
    let rows = csv::Reader::from_reader(text.as_bytes()).into_records();
    rows.map(|row| std::array::from_fn(|cell| row.as_ref().unwrap()[cell].to_owned())).collect()
}

/// `count` rows, three to an account.
pub fn many(count: u32) -> String {
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
