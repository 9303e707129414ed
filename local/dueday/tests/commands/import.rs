//! Tests of `dueday import`: the format of the file, the report, and the rejects.

use crate::file;
use crate::terminal;

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use file::{HEADER, csv_with_rows, import, import_counts, read_rejects, stored_subscriptions, write_file};
use terminal::{dueday, output};

#[test]
fn import_uses_the_first_row_of_an_external_id_and_a_dry_run_reports_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut text = format!("{HEADER}\n");
    for sku in ["gold", "silver", "bronze", "gold"] {
        let _ = writeln!(text, "acme,a@example.com,Acme,,1,{sku},Plan,31,12.99,EUR,cus_1,pm_card_visa,");
    }
    let path = write_file(folder, "s.csv", text);
    let (code, imported) = import(folder, &path, &["--dry-run"]);
    assert_eq!((code, import_counts(&imported)), (1, [1, 1, 2, 0]), "the same counts as the import");
    let listed = read_rejects(&folder.join("s.rejects.csv"));
    let reason = "line 2 has the same id with other values; only the first line counts";
    assert_eq!(listed, [["3", "external_id", "", reason], ["4", "external_id", "", reason]]);

    let (code, imported) = import(folder, &path, &[]);
    assert_eq!((code, import_counts(&imported)), (1, [1, 1, 2, 0]), "although the rows are imported concurrently");
    let stored = stored_subscriptions(folder);
    assert_eq!((stored.len(), &stored[0]["sku"]), (1, &"gold".into()), "the first row counts");
    let reason = "differs: the table contains gold, which is not changed";
    assert_eq!(read_rejects(&folder.join("s.rejects.csv"))[0], ["3", "sku", "silver", reason]);
}

#[test]
fn import_lists_different_values_and_hides_private_ones() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let row = "acme,a@example.com,Acme,,1,gold,Gold plan,31,12.99,EUR,cus_1,pm_card_visa,2030-01-31";
    import(folder, &write_file(folder, "s.csv", format!("{HEADER}\n{row}\n")), &[]);
    let other = "acme,a@example.com,Acme,,1,gold,Golden plan,30,500,JPY,cus_2,pm_other,2030-01-30";
    let path = write_file(folder, "s.csv", format!("{HEADER}\n{other}\n"));
    for flags in [&["--dry-run"][..], &[]] {
        let (code, imported) = import(folder, &path, flags);
        assert_eq!((code, import_counts(&imported)), (1, [0, 0, 1, 0]));
        let fields =
            read_rejects(&folder.join("s.rejects.csv")).into_iter().map(|[_, field, ..]| field).collect::<Vec<_>>();
        let named =
            ["product_name", "payment_day", "amount", "currency", "customer", "payment_method", "first_payment_date"];
        assert_eq!(fields, named);
    }
    let text = std::fs::read_to_string(folder.join("s.rejects.csv")).unwrap();
    assert!(!["cus_", "pm_"].iter().any(|token| text.contains(token)), "{text}");
    let stored = &stored_subscriptions(folder)[0];
    assert_eq!((&stored["amount"], &stored["payment_day"]), (&1299.into(), &31.into()), "the import changes nothing");
}

#[test]
fn import_rejects_invalid_rows_with_line_field_and_value_and_imports_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let good = "acme,a@example.com,Acme,,1,gold,Gold plan,31,12.99,EUR,cus_1,pm_card_visa,";
    let mut text = format!("{HEADER}\n{good}\n").into_bytes();
    let mut fields = Vec::new();
    let card = "4242424242424242";
    for (field, row) in [
        ("account", good.replace("acme,", "a#b,")),
        ("email", good.replace("a@example.com", "no-email")),
        ("email", good.replace("a@", &format!("{card}@"))),
        ("name", good.replace("Acme", "4242 4242 4242 4242")),
        ("locale", good.replace("Acme,,", "Acme,english,")),
        ("locale", good.replace("Acme,,", &format!("Acme,{card},"))),
        ("external_id", good.replace(",1,", ",,")),
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
        ("first_payment_date", format!("{good}2020-01-31")),
        ("first_payment_date", format!("{good}2030-01-30")),
        ("first_payment_date", format!("{good}tomorrow")),
        ("", good.replace("Acme,", "")),
    ] {
        text.extend(format!("{}\n", row.replace(",1,", ",2,")).bytes());
        fields.push(field);
    }
    text.extend(good.replace(",gold,", ",silver,").replace(",1,", ",3,").bytes());
    text.extend(b"\nacme,a@example.com,\xff,,4,gold,Gold plan,31,12.99,EUR,cus_1,pm_card_visa,\n");
    let path = write_file(folder, "s.csv", &text);
    let (code, imported) = import(folder, &path, &[]);
    assert_eq!((code, import_counts(&imported)), (1, [2, 0, 0, 22]), "{imported}");
    let rejects = std::fs::read_to_string(folder.join("s.rejects.csv")).unwrap();
    fields.push("name");
    let named = file::read_rejects(&folder.join("s.rejects.csv")).into_iter().map(|[_, field, ..]| field);
    assert_eq!(named.collect::<Vec<_>>(), fields);
    assert!(!rejects.contains("4242"), "the file of rejects contains a card number: {rejects}");
    insta::assert_snapshot!("rejects", rejects.replace(&chrono::Utc::now().date_naive().to_string(), "TODAY"));
    let stored = format!("{:?}", stored_subscriptions(folder));
    assert!(!stored.contains("4242"), "{stored}");

    let corrected = write_file(folder, "s.csv", format!("{HEADER}\n{good}\n"));
    assert_eq!(import(folder, &corrected, &[]).0, 0);
    let remaining = std::fs::read_to_string(folder.join("s.rejects.csv")).unwrap();
    assert_eq!(remaining, "\"line\",\"field\",\"value\",\"reason\"\n", "corrected rows are no longer listed");

    let path = write_file(folder, "s.csv", text);
    let elsewhere = folder.join("elsewhere.csv");
    import(folder, &path, &["--dry-run", "--rejects", elsewhere.to_str().unwrap()]);
    assert_eq!(std::fs::read_to_string(elsewhere).unwrap(), rejects);
}

#[test]
fn import_refuses_an_unreadable_file_before_it_writes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (text, expected) in [
        (
            String::new(),
            "the first line must contain the column names, but contains none; the columns are account,email",
        ),
        (HEADER.replace("sku,", ""), "the header lacks sku; the columns are account,email"),
        (format!("{HEADER},plan"), "column 14 \"plan\" is unknown; the columns are account,email"),
        (format!("{HEADER},sku"), "the header contains sku more than once"),
        ("acme,4242424242424242".to_owned(), "the first line must contain the column names, but contains none"),
        ("account,4242424242424242".to_owned(), "column 2 \"\" is unknown"),
        ("PK\u{3}\u{4}sheet.xml".to_owned(), "is a spreadsheet file, not CSV: save it as \"CSV UTF-8\""),
        ("a\0c\0c\0".to_owned(), "is not UTF-8 text: save it as \"CSV UTF-8\""),
    ] {
        let path = write_file(folder, "s.csv", &text);
        let (code, error) = import(folder, &path, &[]);
        assert!(code == 2 && error.as_str().unwrap().contains(expected), "{text}: {error}");
    }
    let path = write_file(folder, "s.csv", csv_with_rows(1));
    let (code, error) = import(folder, &path, &["--rejects", path.to_str().unwrap()]);
    assert!(code == 2 && error.as_str().unwrap().contains("is the file to import"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), csv_with_rows(1), "the file is not changed");
    let (code, error) = import(folder, &folder.join("nowhere.csv"), &[]);
    assert!(code == 2 && error.as_str().unwrap().contains("nowhere.csv: No such file"), "{error}");
}

#[test]
fn import_reports_all_invalid_cells_of_a_row() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let row = "a#b,no-email,,english,,a b,,32,\"12,99\",eur,,,31.01.2027";
    let path = write_file(folder, "s.csv", format!("{HEADER}\n{row}\n"));
    let (code, imported) = import(folder, &path, &[]);
    assert_eq!((code, import_counts(&imported)), (1, [0, 0, 0, 1]), "one row");
    insta::assert_snapshot!("all_that_is_wrong", std::fs::read_to_string(folder.join("s.rejects.csv")).unwrap());
    let late = "acme,a@example.com,Acme,,1,gold,Gold plan,31,0,EUR,cus_1,pm_card_visa,2020-01-31";
    import(folder, &write_file(folder, "s.csv", format!("{HEADER}\n{late}\n")), &[]);
    let fields: Vec<String> =
        read_rejects(&folder.join("s.rejects.csv")).into_iter().map(|[_, field, ..]| field).collect();
    assert_eq!(fields, ["amount", "first_payment_date"], "the first payment date is checked at the same time");
}

#[test]
fn import_counts_lines_as_an_editor_does() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for end in ["\n", "\r\n", "\r"] {
        let bad = "acme,a@example.com,Acme,,1,gold,Gold plan,99,12.99,EUR,cus_1,pm_card_visa,";
        let long = bad.replace("Gold plan", "\"Gold\nplan\r\nof two\"").replace(",1,", ",2,");
        let blank = ",,,,,,,,,,,,";
        // The header is on line 1; the rows begin on the lines 4, 5 (to 7), 8, 10 and 11.
        let text = ["", HEADER, "", "", bad, &long, bad, "", blank, bad].join(end);
        let path = write_file(folder, "s.csv", text.strip_prefix(end).unwrap());
        import(folder, &path, &[]);
        let found: Vec<[String; 4]> = read_rejects(&folder.join("s.rejects.csv"));
        let at = |line: &str| {
            found.iter().filter(|[at, ..]| at == line).map(|[_, field, ..]| field.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(at("4"), ["payment_day"], "{end:?}: {found:?}");
        assert_eq!(at("5"), ["product_name", "payment_day"], "{end:?}: {found:?}");
        assert_eq!((at("8"), at("10"), at("11")), (vec!["payment_day"], vec![""], vec!["payment_day"]), "{end:?}");
    }
}

#[test]
fn import_reads_csv_variants_of_spreadsheet_programs() {
    let rows = format!("{HEADER}\nacme,a@example.com,Zo\u{eb},,1,gold,Gold plan,last,12.99,EUR,cus_1,pm_card_visa,\n");
    let utf_16 = |text: &str, to_bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
        std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(to_bytes).collect()
    };
    for (format, bytes) in [
        ("semicolons", rows.replace(',', ";").into_bytes()),
        ("tabs", rows.replace(',', "\t").into_bytes()),
        ("a byte order mark", format!("\u{feff}{rows}").into_bytes()),
        ("capitals", rows.replace(HEADER, &HEADER.to_uppercase()).into_bytes()),
        (
            "names for people",
            rows.replacen("external_id", "External ID", 1).replacen("email", "E-Mail", 1).into_bytes(),
        ),
        ("UTF-16, little-endian", utf_16(&rows.replace(',', "\t").replace('\n', "\r\n"), u16::to_le_bytes)),
        ("UTF-16, big-endian", utf_16(&rows, u16::to_be_bytes)),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let (code, imported) = import(folder, &write_file(folder, "s.csv", bytes), &[]);
        assert_eq!((code, &imported["created"]), (0, &1.into()), "{format}: {imported}");
        assert_eq!(stored_subscriptions(folder)[0]["payment_day"], 31, "last is the last day of each month");
        let (_, account, _) = output(dueday(&folder.join("data")).args(["accounts", "acme", "--json"]));
        assert!(account.contains("Zo\u{eb}"), "{format}: {account}");
    }
}

#[test]
fn import_reads_the_delimiter_that_excel_writes_in_the_first_line() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let csv = csv_with_rows(1);
    for (name, line) in [("plain", "sep=;\r\n"), ("quoted", "\"SEP=;\"\n")] {
        let path = write_file(folder, &format!("{name}.csv"), format!("{line}{}", csv.replace(',', ";")));
        assert_eq!(import(folder, &path, &["--dry-run"]).1["created"], 1, "{line:?}");
    }
    let path = write_file(folder, "other.csv", format!("sep=x\n{csv}"));
    let (code, _, stderr) = output(dueday(&folder.join("data")).arg("import").arg(&path));
    assert!(
        code == 2 && stderr.contains("line 1 must name the delimiter as sep=, or sep=; or sep= with a tab"),
        "{stderr}"
    );
}

#[test]
fn import_names_an_unclosed_quote_and_the_lines_that_it_swallowed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let row = |id: u32, name: &str| {
        format!("acme,a@example.com,{name},,{id},gold-{id},Gold plan,1,12.99,EUR,cus_1,pm_card_visa,")
    };
    let rows = [row(1, "Acme"), row(2, "\"Acme"), row(3, "Acme"), row(4, "\"Acme\""), row(5, "Acme")];
    let path = write_file(folder, "s.csv", format!("{HEADER}\n{}\n", rows.join("\n")));
    let (code, imported) = import(folder, &path, &[]);
    assert_eq!((code, import_counts(&imported)), (1, [2, 0, 0, 1]));
    let reason = "the double quote before \"Acme,,2,\" is not closed on its line, so the lines 3 to 5 became one row, and none of \
                  them is imported: close the quote, or write a quote inside of a cell twice";
    assert_eq!(read_rejects(&folder.join("s.rejects.csv")), [["3", "", "", reason]]);
}

#[test]
fn import_reports_monthly_sums_and_first_payment_dates() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let row = |n: u32, amount: &str, currency: &str, date: &str| {
        let day = &date[8..];
        format!("acme,a@example.com,Acme,,{n},gold-{n},Gold,{day},{amount},{currency},cus_1,pm_card_visa,{date}\n")
    };
    let few =
        [row(1, "12.99", "EUR", "2030-01-31"), row(2, "7.01", "EUR", "2030-02-28"), row(3, "500", "JPY", "2030-01-31")];
    let path = write_file(folder, "s.csv", format!("{HEADER}\n{}", few.concat()));
    let data = folder.join("data");
    let (code, text, _) = output(dueday(&data).arg("import").arg(&path).arg("--dry-run"));
    assert_eq!(code, 0);
    insta::assert_snapshot!("preview", text);
    let imported = import(folder, &path, &["--dry-run"]).1;
    assert_eq!(imported["sums"][1], serde_json::json!({"amount": 500, "currency": "JPY"}));
    assert_eq!(imported["first_payments"], serde_json::json!({"2030-01-31": 2, "2030-02-28": 1}));
    let many: String = (1..=12).map(|month| row(month, "1", "EUR", &format!("2030-{month:02}-15"))).collect();
    let path = write_file(folder, "s.csv", format!("{HEADER}\n{many}"));
    let (_, text, _) = output(dueday(&data).arg("import").arg(&path));
    assert!(text.contains("from 2030-01-15 to 2030-12-15, on 12 days"), "{text}");
}

#[test]
fn import_reads_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let path = write_file(folder, "s.csv", csv_with_rows(10) + "wrong\n");
    let from_input = |flags: &[&str]| {
        let mut command = dueday(&folder.join("data"));
        output(command.current_dir(folder).args(["import", "-"]).args(flags).stdin(std::fs::File::open(&path).unwrap()))
    };
    let (code, stdout, _) = from_input(&[]);
    assert!(code == 1 && stdout.starts_with("11 rows: 10 created, 0 already exist, 0 differ, 1 rejected"), "{stdout}");
    assert_eq!(read_rejects(&folder.join("stdin.rejects.csv")).len(), 1);
    let (_, stdout, _) = from_input(&["--rejects", "other.csv"]);
    assert!(stdout.contains("10 already exist") && stdout.contains("reason in other.csv"), "{stdout}");
}

#[cfg(unix)]
#[test]
fn import_from_a_pipe_is_interrupted_immediately() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut command = dueday(&folder.join("data"));
    let mut process =
        command.current_dir(folder).args(["import", "-"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Write only a part of the file, so that the import has started, handles signals, and waits for the rest.
    let input = process.stdin.as_mut().unwrap();
    std::io::Write::write_all(input, csv_with_rows(2_000).as_bytes()).unwrap();
    let stored = || std::fs::metadata(folder.join("data/dynamodb.sqlite-wal")).map_or(0, |wal| wal.len());
    while stored() < 200 * 1024 {
        assert_eq!(process.try_wait().unwrap(), None, "the import must wait for the rest of the file");
        std::thread::yield_now();
    }
    let pid = process.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert_eq!(process.wait().unwrap().code(), Some(130));
}

/// Checks the CSV text `csv` with `dueday import - --dry-run`. Returns the peak memory of the process in KiB, until it has
/// read all rows except those in the buffer of the pipe.
#[cfg(target_os = "linux")]
fn peak_kib(data: &Path, csv: &str) -> u64 {
    let mut command = dueday(data);
    command.args(["import", "-", "--dry-run"]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut process = command.spawn().unwrap();
    let mut input = process.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, csv.as_bytes()).unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    drop(input);
    assert!(process.wait().unwrap().success());
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn dry_run_of_many_rows_needs_little_more_memory_than_a_small_one() {
    let folder = tempfile::tempdir().unwrap();
    let [of_few, of_many] = [2_000, 20_000].map(|rows| peak_kib(&folder.path().join("data"), &csv_with_rows(rows)));
    // A dry run keeps the ids of all rows, to compare them with each other: less than 400 bytes a row.
    assert!(of_many < of_few + 18_000 * 400 / 1_024, "{of_few} KiB for 2,000 rows, {of_many} KiB for 20,000");
}

/// A row of an import of the account `account`, which the next cells describe.
fn row(account: &str, contact: &str, external_id: &str, sku: &str) -> String {
    format!("{account},{contact},{external_id},{sku},Plan,31,12.99,EUR,cus_1,pm_card_visa,")
}

#[test]
fn import_rejects_a_second_subscription_of_a_sku_unless_it_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let acme = "a@example.com,Acme,";
    let text = format!("{HEADER}\n{}\n{}\n", row("acme", acme, "0004712", "gold"), row("acme", acme, "7", "silver"));
    assert_eq!(import(folder, &write_file(folder, "s.csv", text), &[]).0, 0);
    // A spreadsheet has removed the leading zeros; another row is new.
    let rows = [row("acme", acme, "4712", "gold"), row("acme", acme, "7", "silver"), row("b", acme, "8", "gold")];
    let path = write_file(folder, "s.csv", format!("{HEADER}\n{}\n", rows.join("\n")));
    for flags in [&["--dry-run"][..], &[]] {
        let (code, imported) = import(folder, &path, flags);
        assert_eq!((code, import_counts(&imported)), (1, [1, 1, 0, 1]), "{imported}");
        let [[line, field, value, reason]] = read_rejects(&folder.join("s.rejects.csv")).try_into().unwrap();
        assert_eq!((line.as_str(), field.as_str(), value.as_str()), ("2", "sku", "gold"));
        assert!(reason.starts_with("the account already has the subscription 0"), "{reason}");
    }
    let (code, imported) = import(folder, &path, &["--allow-second"]);
    assert_eq!((code, import_counts(&imported)), (0, [1, 2, 0, 0]), "{imported}");
    let (code, imported) = import(folder, &path, &[]);
    assert_eq!((code, import_counts(&imported)), (0, [0, 3, 0, 0]), "imported rows are unchanged: {imported}");

    // In one file, the column allows single rows.
    let header = format!("{HEADER},allow_second");
    let second = |id: &str, allowed: &str| format!("{},{allowed}", row("c", acme, id, "gold"));
    let text = [header, second("1", ""), second("2", "false"), second("3", "TRUE"), second("4", "yes")].join("\n");
    let path = write_file(folder, "s.csv", format!("{text}\n"));
    for flags in [&["--dry-run"][..], &[]] {
        let (code, imported) = import(folder, &path, flags);
        assert_eq!((code, import_counts(&imported)), (1, [2, 0, 0, 2]), "{imported}");
        let fields: Vec<[String; 2]> =
            read_rejects(&folder.join("s.rejects.csv")).into_iter().map(|[line, field, ..]| [line, field]).collect();
        assert_eq!(fields, [["3", "sku"], ["5", "allow_second"]]);
    }
}

#[test]
fn import_rejects_rows_of_one_account_with_different_contact_data() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let rows = [
        row("acme", "a@example.com,Acme,", "1", "gold"),
        row("b", "a@example.com,Acme,", "2", "gold"),
        row("acme", "a@example.com,Acme Inc.,de", "3", "silver"),
        row("acme", "b@example.com,Acme,", "4", "bronze"),
        row("acme", "a@example.com,Acme,en", "5", "iron"),
    ];
    let path = write_file(folder, "s.csv", format!("{HEADER}\n{}\n", rows.join("\n")));
    for flags in [&["--dry-run"][..], &[]] {
        let (code, imported) = import(folder, &path, flags);
        assert_eq!((code, import_counts(&imported)), (1, [3, 0, 0, 2]), "{imported}");
        let reason = "differs from line 2: all rows of an account must have the same value";
        let expected = [
            ["4", "name", "Acme Inc.", reason],
            ["4", "locale", "de", reason],
            ["5", "email", "b@example.com", reason],
        ];
        assert_eq!(read_rejects(&folder.join("s.rejects.csv")), expected);
    }
}

#[test]
fn probable_duplicates_of_a_file_and_of_the_table_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let contact = "a@example.com,Acme,";
    let text = format!("{HEADER}\n{}\n", row("acme", contact, "caf\u{e9}-07", "gold"));
    import(folder, &write_file(folder, "s.csv", text), &[]);
    let rows = [
        row("acme", contact, "cafe\u{301}-7", "silver"),
        row("ACME", contact, "9", "gold"),
        row("b", contact, "SUB-7", "gold"),
        row("b", contact, "sub-7", "silver"),
        row("b", contact, "sub-8", "iron"),
    ];
    let path = write_file(folder, "s.csv", format!("{HEADER}\n{}\n", rows.join("\n")));
    let (code, imported) = import(folder, &path, &["--dry-run"]);
    let groups = imported["probable_duplicates"].as_array().unwrap();
    assert_eq!((code, groups.len()), (0, 3), "{imported}");
    assert_eq!(groups[0], serde_json::json!([{"account": "ACME", "line": 3}, {"account": "acme"}]));
    import(folder, &path, &[]);
    let (code, found, _) = output(dueday(&folder.join("data")).args(["duplicates", "--json"]));
    let listed: serde_json::Value = serde_json::from_str(&found).unwrap();
    assert_eq!((code, listed.as_array().unwrap().len()), (1, 3), "{listed}");
}
