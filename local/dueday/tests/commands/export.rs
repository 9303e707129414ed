//! Copying the table out: whole, in order, and safe to open in a spreadsheet.

use crate::terminal;

use std::path::Path;

use terminal::{dueday, output};

/// What is exported as CSV: its header, and its rows.
fn export(data: &Path, arguments: &[&str]) -> (Vec<String>, Vec<Vec<String>>) {
    let (code, csv, told) = output(dueday(data).arg("export").args(arguments));
    assert_eq!(code, 0, "{told}");
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let row = |record: &csv::StringRecord| record.iter().map(str::to_owned).collect::<Vec<_>>();
    let header = row(reader.headers().unwrap());
    (header, reader.records().map(|record| row(&record.unwrap())).collect())
}

#[test]
fn export_of_receipts_names_the_account_and_is_sorted_and_of_a_range() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let (code, _, told) = output(dueday(&data).arg("demo"));
    assert_eq!(code, 0, "{told}");

    let (header, all) = export(&data, &["receipts"]);
    assert_eq!(header[..2], ["account", "receipt"]);
    let place = header.iter().position(|name| name == "due_date").unwrap();
    let of = |row: &Vec<String>| (row[0].clone(), row[place].clone());
    let keys: Vec<(String, String)> = all.iter().map(of).collect();
    assert!(keys.is_sorted() && keys.len() > 3, "{keys:?}");
    assert!(keys.iter().all(|(account, _)| !account.is_empty()));

    let mut dates: Vec<String> = keys.iter().map(|(_, date)| date.clone()).collect();
    dates.sort();
    let (from, to) = (&dates[1], &dates[dates.len() - 2]);
    let wanted: Vec<_> = keys.iter().filter(|(_, date)| (from..=to).contains(&date)).cloned().collect();
    let (_, some) = export(&data, &["receipts", "--from", from, "--to", to]);
    assert_eq!(some.iter().map(of).collect::<Vec<_>>(), wanted);
    assert!(export(&data, &["receipts", "--from", "2999-01-01"]).1.is_empty());

    let (code, _, told) =
        output(dueday(&data).args(["export", "receipts", "--from", "2027-02-01", "--to", "2027-01-31"]));
    assert!(code == 2 && told.contains("--from 2027-02-01 is later than --to 2027-01-31"), "{told}");

    let (_, accounts) = export(&data, &["accounts"]);
    let (_, subscriptions) = export(&data, &["subscriptions"]);
    let ids: Vec<&String> = accounts.iter().map(|row| &row[0]).collect();
    assert!(ids.is_sorted() && !ids.is_empty(), "{ids:?}");
    assert!(subscriptions.iter().map(|row| &row[1]).is_sorted());
    let created = accounts[0].last().unwrap();
    let later = export(&data, &["accounts", "--from", &created[..10]]).1.len();
    let earlier = export(&data, &["accounts", "--to", "2000-01-01"]).1.len();
    assert!(later > 0 && earlier == 0, "accounts by the day of their creation");
}

#[test]
fn export_marks_formulas_for_spreadsheets_but_not_for_programs() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let csv = folder.path().join("s.csv");
    let formula = r#"=HYPERLINK("http://evil.example","Gold")"#;
    let quoted = formula.replace('"', "\"\"");
    std::fs::write(
        &csv,
        format!(
            "account,email,name,locale,external_id,sku,product_name,payment_day,amount,currency,customer,payment_method,first_payment_date\n\
             acme,+a@example.com,@Acme,,1,gold,\"{quoted}\",31,12.99,EUR,cus_1,pm_card_visa,\n"
        ),
    )
    .unwrap();
    let (code, _, told) = output(dueday(&data).arg("import").arg(&csv));
    assert_eq!(code, 0, "{told}");
    let (header, rows) = export(&data, &["subscriptions"]);
    let place = header.iter().position(|name| name == "product_name").unwrap();
    assert_eq!(rows[0][place], format!("'{formula}"));
    assert_eq!(export(&data, &["accounts"]).1[0][1..3], ["'+a@example.com", "'@Acme"]);
    let (_, json, _) = output(dueday(&data).args(["export", "subscriptions", "--format", "jsonl"]));
    let item: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(item["product_name"], formula);
}
