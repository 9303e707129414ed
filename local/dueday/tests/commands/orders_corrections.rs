//! Tests of `dueday orders correct`, which corrects wrong data of employees.

use chrono::{Days, Utc};

use crate::orders::{folder_with_payments, json_output, run};

#[test]
fn wrong_data_and_the_wrong_first_day_of_a_later_job_are_corrected() {
    let folder = tempfile::tempdir().unwrap();
    let (data, people) = (folder_with_payments(folder.path()), folder.path().join("people.csv"));
    let header = "employee,name,job,title,represents_customers,department,warehouse,hired_on,salary,currency,left_on\n";
    // The second import gives the employee another job from today on.
    for job in ["pk,Picker,false,logistics", "am,Account Manager,true,sales"] {
        std::fs::write(&people, format!("{header}ada,Ada Fields,{job},,2026-01-10,52000.00,EUR,\n")).unwrap();
        let (code, _, stderr) = run(&data, &["orders", "people", people.to_str().unwrap()]);
        assert_eq!(code, 0, "{stderr}");
    }
    let today = Utc::now().date_naive();
    let days = [0, 1].map(|days| (today - Days::new(days)).to_string());
    let [now, yesterday] = days.each_ref().map(String::as_str);
    let correct = ["orders", "correct", "ada", "--job-start", now, yesterday, "--hired-on", "2026-01-12"];
    for _ in 0..2 {
        let corrected = json_output(&data, &correct);
        assert_eq!(
            (&corrected["jobs"][0]["from"], &corrected["jobs"][1]["from"]),
            (&yesterday.into(), &"2026-01-12".into())
        );
        assert_eq!(corrected["jobs"][0]["title"], "Account Manager");
    }
    let salary = ["orders", "correct", "ada", "--salary", "53000", "--currency", "EUR", "--name", "Ada Archer"];
    assert_eq!(json_output(&data, &salary)["name"], "Ada Archer");
    // The columns are: the options, and a part of the error.
    for (options, expected) in [
        (&["--job-start", yesterday, "2026-01-12"][..], "must be from 2026-01-13 to "),
        (
            &["--job-start", "2026-01-12", "2026-01-13"],
            "no job of the employee after the first one begins on 2026-01-12",
        ),
        (&["--salary", "53000"], "--currency"),
        (&["--salary", "a lot", "--currency", "EUR"], "--salary a lot"),
        (&[], "--job-start"),
    ] {
        let (code, _, stderr) = run(&data, &[&["orders", "correct", "ada"], options].concat());
        assert!(code == 2 && stderr.contains(expected), "{options:?}: {code} {stderr}");
    }
}
