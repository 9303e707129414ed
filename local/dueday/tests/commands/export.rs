//! Tests of `dueday export`: the output is complete, sorted, and safe to open in a spreadsheet.

use crate::demo_folder::write_demo_folder;
use crate::terminal;

use std::path::Path;

use terminal::{dueday, output};

/// Runs `dueday export`, which writes CSV. Returns the header and the rows.
fn export(data: &Path, arguments: &[&str]) -> (Vec<String>, Vec<Vec<String>>) {
    let (code, csv, stderr) = output(dueday(data).arg("export").args(arguments));
    assert_eq!(code, 0, "{stderr}");
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let row = |record: &csv::StringRecord| record.iter().map(str::to_owned).collect::<Vec<_>>();
    let header = row(reader.headers().unwrap());
    (header, reader.records().map(|record| row(&record.unwrap())).collect())
}

#[test]
fn export_of_receipts_is_sorted_by_account_and_limited_to_a_date_range() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    write_demo_folder(&data);

    let (header, all) = export(&data, &["receipts"]);
    assert_eq!(header[..2], ["account", "receipt"]);
    let due_date = header.iter().position(|name| name == "due_date").unwrap();
    let paid_at = header.iter().position(|name| name == "processed_at").unwrap();
    let name = header.iter().position(|name| name == "customer_name").unwrap();
    assert!(all.iter().all(|row| !row[name].is_empty()), "each receipt has the customer's name");
    let key = |row: &Vec<String>| (row[0].clone(), row[due_date].clone());
    let keys: Vec<(String, String)> = all.iter().map(key).collect();
    assert!(keys.is_sorted() && keys.len() > 3, "{keys:?}");
    assert!(keys.iter().all(|(account, _)| !account.is_empty()));

    let mut dates: Vec<String> = all.iter().map(|row| row[paid_at][..10].to_owned()).collect();
    dates.sort();
    let (from, to) = (&dates[1], &dates[dates.len() - 2]);
    let is_expected = |row: &&Vec<String>| (from.as_str()..=to.as_str()).contains(&&row[paid_at][..10]);
    let expected: Vec<_> = all.iter().filter(is_expected).map(key).collect();
    let (_, exported) = export(&data, &["receipts", "--from", from, "--to", to]);
    assert_eq!(exported.iter().map(key).collect::<Vec<_>>(), expected);
    assert!(export(&data, &["receipts", "--from", "2999-01-01"]).1.is_empty());

    let (code, _, stderr) =
        output(dueday(&data).args(["export", "receipts", "--from", "2027-02-01", "--to", "2027-01-31"]));
    assert!(code == 2 && stderr.contains("--from 2027-02-01 is later than --to 2027-01-31"), "{stderr}");

    let (_, accounts) = export(&data, &["accounts"]);
    let (_, subscriptions) = export(&data, &["subscriptions"]);
    let ids: Vec<&String> = accounts.iter().map(|row| &row[0]).collect();
    assert!(ids.is_sorted() && !ids.is_empty(), "{ids:?}");
    assert!(subscriptions.iter().map(|row| &row[1]).is_sorted());
    let created = accounts[0].last().unwrap();
    let later = export(&data, &["accounts", "--from", &created[..10]]).1.len();
    let earlier = export(&data, &["accounts", "--to", "2000-01-01"]).1.len();
    assert!(later > 0 && earlier == 0, "accounts are filtered by the day of their creation");
}

#[test]
fn export_escapes_formulas_in_csv_but_not_in_json() {
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
    let (code, _, stderr) = output(dueday(&data).arg("import").arg(&csv));
    assert_eq!(code, 0, "{stderr}");
    let (header, rows) = export(&data, &["subscriptions"]);
    let product_name = header.iter().position(|name| name == "product_name").unwrap();
    assert_eq!(rows[0][product_name], format!("'{formula}"));
    assert_eq!(export(&data, &["accounts"]).1[0][1..3], ["'+a@example.com", "'@Acme"]);
    let (_, json, _) = output(dueday(&data).args(["export", "subscriptions", "--format", "jsonl"]));
    let item: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(item["product_name"], formula);
}

#[test]
fn export_contains_no_formula_whether_cells_are_separated_by_commas_or_semicolons() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let path = folder.path().join("s.csv");
    let header = "account,email,name,locale,external_id,sku,product_name,payment_day,amount,currency,customer,payment_method,first_payment_date";
    let row = "acme,a@example.com,Acme;=1+1,,1,gold,\u{ff1d}Gold; \u{ff20}A1,31,12.99,EUR,cus_1,pm_card_visa,";
    std::fs::write(&path, format!("{header}\n{row}\n")).unwrap();
    let (code, _, stderr) = output(dueday(&data).arg("import").arg(&path));
    assert_eq!(code, 0, "{stderr}");
    for kind in ["accounts", "subscriptions"] {
        let (_, text, _) = output(dueday(&data).args(["export", kind]));
        assert!(text.contains("\"Acme;'=1+1\""), "every text is in quotes: {text}");
        for delimiter in [b',', b';'] {
            let mut reader = csv::ReaderBuilder::new();
            let mut reader = reader.delimiter(delimiter).has_headers(false).flexible(true).from_reader(text.as_bytes());
            for cell in
                reader.records().map(Result::unwrap).flat_map(|row| row.iter().map(str::to_owned).collect::<Vec<_>>())
            {
                let begin = cell.trim_start_matches([' ', '"']);
                let is_formula =
                    begin.starts_with(['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}']);
                assert!(!is_formula, "{kind}, separated by {:?}: {cell}", delimiter as char);
            }
        }
    }
}
