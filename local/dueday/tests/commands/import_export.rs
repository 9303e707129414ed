//! Tests of an import with the columns of an export, and with the states of subscriptions in the earlier system.

use crate::file::{HEADER, import, import_counts, read_rejects, stored_subscriptions, write_file};
use crate::terminal::{dueday, output};

use std::path::Path;

use chrono::{Days, Months, NaiveDate, Utc};
use serde_json::Value;

/// Returns the first day of a month that is at least `months` months after today.
fn first_of_month(months: u32) -> NaiveDate {
    let today = Utc::now().date_naive();
    let later = today.checked_add_months(Months::new(months + 1)).unwrap();
    later - Days::new(u64::from(chrono::Datelike::day0(&later)))
}

/// Returns what `dueday export subscriptions` writes about the data folder in `folder`.
fn export(folder: &Path) -> String {
    let (code, csv, stderr) = output(dueday(&folder.join("data")).args(["export", "subscriptions"]));
    assert_eq!(code, 0, "{stderr}");
    csv
}

#[test]
fn import_reads_status_and_planned_end() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (first, end) = (first_of_month(0), first_of_month(2));
    let row = |id: u32, status: &str, cancel_date: &str| {
        format!(
            "acme,a@example.com,Acme,,{id},sku-{id},Plan,1,12.99,EUR,cus_1,pm_card_visa,{first},{status},{cancel_date}"
        )
    };
    let rows = [
        row(1, "", ""),
        row(2, "Paused", ""),
        row(3, "active", &end.to_string()),
        row(4, "active", &first.to_string()),
        row(5, "cancelled", ""),
        row(6, "resting", ""),
        row(7, "", &(end + Days::new(1)).to_string()),
        row(8, "paused", &end.to_string()),
    ];
    let path = write_file(folder, "s.csv", format!("{HEADER},status,cancel_date\n{}\n", rows.join("\n")));
    for flags in [&["--dry-run"][..], &[]] {
        let (code, imported) = import(folder, &path, flags);
        assert_eq!((code, import_counts(&imported)), (1, [4, 0, 0, 4]), "{imported}");
        let reasons: Vec<String> =
            read_rejects(&folder.join("s.rejects.csv")).into_iter().map(|cells| cells.join("|")).collect();
        let next_day = end + Days::new(1);
        assert_eq!(
            reasons,
            [
                "6|status|cancelled|only subscriptions that are active or paused can be created by an import".to_owned(),
                "7|status|resting|must be active or paused; blank means active".to_owned(),
                format!("8|cancel_date|{next_day}|must be on the payment day, which is {end} in that month, not {next_day}"),
                "9|status|paused|a subscription with a planned cancellation cannot be paused; undo the cancellation first"
                    .to_owned(),
            ]
        );
    }
    let mut stored = stored_subscriptions(folder);
    stored.sort_by_key(|subscription| subscription["external_id"].as_str().unwrap().to_owned());
    let states: Vec<[&Value; 3]> =
        stored.iter().map(|s| [&s["status"], &s["cancel_date"], &s["next_payment_date"]]).collect();
    let (first, end): (Value, Value) = (first.to_string().into(), end.to_string().into());
    let (active, paused) = (Value::from("active"), Value::from("paused"));
    assert_eq!(
        states,
        [
            [&active, &Value::Null, &first],
            [&paused, &Value::Null, &Value::Null],
            [&active, &end, &first],
            [&active, &first, &Value::Null],
        ]
    );
    let (_, audit, _) = output(dueday(&folder.join("data")).arg("audit"));
    assert!(audit.contains("every invariant holds"), "{audit}");
}

#[test]
fn exported_subscriptions_can_be_imported_into_the_same_and_into_another_table() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, other) = (folder.path(), tempfile::tempdir().unwrap());
    let (first, end) = (first_of_month(0), first_of_month(2));
    let rows = [
        format!("acme,+a@example.com,@Acme,de,1,gold,=Plan,1,12.99,EUR,cus_1,pm_card_visa,{first},,{end},"),
        format!(
            "acme,+a@example.com,@Acme,de,2,silver,\"Tea; =1+1;＝2\",1,500,JPY,cus_1,pm_card_visa,{first},paused,,"
        ),
        format!(
            "bell,b@example.com,Bell,,0003,gold,\"Plan, \"\"large\"\"\",1,12.99,EUR,cus_2,pm_card_visa,{first},,,own@example.com"
        ),
    ];
    let header = format!("{HEADER},status,cancel_date,own_email");
    let path = write_file(folder, "s.csv", format!("{header}\n{}\n", rows.join("\n")));
    assert_eq!(import(folder, &path, &[]).0, 0);

    let exported = export(folder);
    let path = write_file(folder, "exported.csv", exported.clone());
    let (code, imported) = import(folder, &path, &[]);
    assert_eq!((code, import_counts(&imported)), (0, [0, 3, 0, 0]), "nothing differs: {imported}");
    let (code, imported) = import(other.path(), &path, &[]);
    assert_eq!((code, import_counts(&imported)), (0, [3, 0, 0, 0]), "{imported}");
    let without_creation = |csv: &str| -> Vec<String> {
        // The last column is the time of the creation.
        csv.lines().map(|line| line.rsplit_once(',').unwrap().0.to_owned()).collect()
    };
    assert_eq!(without_creation(&export(other.path())), without_creation(&exported), "nothing is lost");

    // A subscription of the API has no external id, and keeps its own id.
    let without_external_id = exported.replace(",0003,", ",,");
    let third = tempfile::tempdir().unwrap();
    let path = write_file(third.path(), "s.csv", without_external_id);
    assert_eq!(import_counts(&import(third.path(), &path, &[]).1), [3, 0, 0, 0]);
    let id = |folder: &Path| {
        let stored = stored_subscriptions(folder);
        stored.iter().find(|found| found["account"] == "bell").unwrap()["id"].clone()
    };
    assert_eq!(id(third.path()), id(folder));

    // A changed account would get a second subscription, because the external id belongs to the first account.
    let path = write_file(folder, "moved.csv", exported.replace(",\"bell\",", ",\"bella\","));
    let (code, imported) = import(folder, &path, &[]);
    assert_eq!((code, import_counts(&imported)), (1, [0, 2, 0, 1]), "{imported}");
    assert_eq!(read_rejects(&folder.join("moved.rejects.csv"))[0][1], "subscription");
}

#[test]
fn exported_subscription_that_another_table_would_charge_wrongly_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let first = first_of_month(0);
    let row = format!("acme,a@example.com,Acme,,1,gold,Plan,1,12.99,EUR,cus_1,pm_card_visa,{first}");
    let obstacle = "a payment is in progress";
    let path = write_file(folder, "s.csv", format!("{HEADER},import_obstacle\n{row},{obstacle}\n"));
    let (code, imported) = import(folder, &path, &[]);
    assert_eq!((code, import_counts(&imported)), (1, [0, 0, 0, 1]), "{imported}");
    let rejected = &read_rejects(&folder.join("s.rejects.csv"))[0];
    assert_eq!((rejected[1].as_str(), rejected[2].as_str()), ("import_obstacle", obstacle));
}

#[test]
fn import_ignores_blank_cells_at_the_end_of_the_lines() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let row = |id: u32| format!("acme,a@example.com,Acme,,{id},sku-{id},Plan,31,12.99,EUR,cus_1,pm_card_visa,");
    let text = format!("{HEADER},,\n{},,\n{}\n{},,,\n{},lost\n", row(1), row(2), row(3), row(4));
    let (code, imported) = import(folder, &write_file(folder, "s.csv", text), &[]);
    assert_eq!((code, import_counts(&imported)), (1, [3, 0, 0, 1]), "{imported}");
    let reason = "must have 13 fields, not 14; a field that contains the delimiter must be in double quotes";
    assert_eq!(read_rejects(&folder.join("s.rejects.csv")), [["5", "", "", reason]]);
    let path = write_file(folder, "hole.csv", format!("{},,name\n", HEADER.replace("name,", "")));
    let (code, _, stderr) = output(dueday(&folder.join("data")).arg("import").arg(&path));
    assert!(code == 2 && stderr.contains("is unknown"), "a blank name between others is an error: {stderr}");
}

#[test]
fn import_says_that_a_quote_is_not_closed_only_if_it_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let row = |name: &str| format!("acme,a@example.com,Acme,,1,gold,{name},31,12.99,EUR,cus_1,pm_card_visa,");
    let path = write_file(folder, "s.csv", format!("{HEADER}\n{}\n", row("\"Gold,\nfor two\"")));
    assert_eq!(import(folder, &path, &[]).0, 1);
    let [[line, field, _, reason]] = read_rejects(&folder.join("s.rejects.csv")).try_into().unwrap();
    assert_eq!((line.as_str(), field.as_str()), ("2", "product_name"));
    assert!(reason.contains("line breaks") && !reason.contains("quote"), "{reason}");
}
