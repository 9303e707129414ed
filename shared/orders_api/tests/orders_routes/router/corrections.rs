//! Tests of the corrections of the data of employees.

use serde_json::{Value, json};

use crate::router::test_desk::TestDesk;

/// Gives the employee e-10, who was hired on 2026-11-01, one new job for each of `days`, which begins on this day.
async fn assign_jobs(test_desk: &TestDesk, days: &[&str]) {
    for (n, day) in days.iter().enumerate() {
        let body = json!({"from": day, "assignment": {"job": "buying", "job_title": format!("Buyer {n}"),
            "department": "buying", "represents_customers": true}});
        let assigned = test_desk.send_as_operator("PUT /employees/e-10/assignment", &body).await;
        assert_eq!(assigned.status, 200, "{}", assigned.json);
    }
}

/// Returns the title and the first day of each job of e-10, current job first.
async fn job_history(test_desk: &TestDesk) -> Vec<String> {
    let details = test_desk.get_as_operator("/employees/e-10").await.json;
    let text = |job: &Value| format!("{} {}", job["job_title"].as_str().unwrap(), job["from"].as_str().unwrap());
    details["jobs"].as_array().unwrap().iter().map(text).collect()
}

/// Returns the body of a request that corrects the first day of a job from `recorded` to `correct`.
fn job_start_body(recorded: &str, correct: &str) -> Value {
    json!({"job_start": {"recorded": recorded, "correct": correct}})
}

#[tokio::test]
async fn wrong_data_of_an_employee_is_corrected() {
    let test_desk = TestDesk::new().await;
    let patch = "PATCH /employees/e-10";
    let corrected = test_desk
        .send_as_operator_with(
            patch,
            &[("if-match", "\"1\"")],
            &json!({"name": "Ada King", "hired_on": "2025-12-01", "salary": 10, "currency": "USD"}),
        )
        .await;
    assert_eq!((corrected.status, &corrected.json["name"], corrected.etag()), (200, &json!("Ada King"), "\"2\""));
    assert_eq!(
        test_desk.get_as_operator("/employees/e-10/confidential").await.json,
        json!({"employee": "e-10", "hired_on": "2025-12-01", "salary": 10, "currency": "USD"})
    );
    let details = test_desk.get_as_operator("/employees/e-10").await.json;
    assert_eq!((details["jobs"].as_array().unwrap().len(), &details["jobs"][0]["from"]), (1, &json!("2025-12-01")));
    for (search, expected) in [
        ("name=ada%20king", vec!["e-10"]),
        ("name=ada%20lovelace", vec![]),
        ("hired_after=2025-11-30", vec!["e-10", "e-11"]),
        ("hired_after=2025-12-01", vec!["e-11"]),
    ] {
        assert_eq!(
            test_desk.get_as_operator(&format!("/employees?{search}")).await.list_field("id"),
            expected,
            "{search}"
        );
    }
    let listed = test_desk.get_as_operator("/employees?hired_after=2025-11-30").await.json["data"][0].clone();
    assert_eq!((&listed["name"], &listed["assignment"]["job"]), (&json!("Ada King"), &json!("sales")));
    assert_eq!(test_desk.send_as_operator(patch, &json!({"salary": 10, "currency": "USD"})).await.etag(), "\"2\"");

    let buyer = json!({"assignment": {"job": "buying", "job_title": "B", "department": "buying", "represents_customers": true}, "from": "2026-06-01"});
    test_desk.send_as_operator("PUT /employees/e-10/assignment", &buyer).await;
    // The columns are: the body, and the beginning of the expected problem.
    for (body, expected) in [
        (json!({"hired_on": "2026-06-01"}), "422 refused-field hired_on: must be from 1970-01-01 to 2026-05-31"),
        (json!({"hired_on": "1969-12-31"}), "422 refused-field hired_on: must be from 1970-01-01 to 2026-05-31"),
        (json!({"salary": 10}), "422 refused-field currency: must be given together with salary"),
        (json!({"currency": "USD"}), "422 refused-field salary: must be given together with currency"),
    ] {
        let problem = test_desk.send_as_operator(patch, &body).await.problem_line();
        assert_eq!(problem, expected, "{body}");
    }
    let corrected = test_desk.send_as_operator(patch, &json!({"hired_on": "2026-05-31"})).await;
    assert_eq!(corrected.status, 200, "{}", corrected.json);
    let details = test_desk.get_as_operator("/employees/e-10").await.json;
    let days: Vec<_> = details["jobs"].as_array().unwrap().iter().map(|job| job["from"].clone()).collect();
    assert_eq!(days, ["2026-06-01", "2026-05-31"]);
}

#[tokio::test]
async fn wrong_first_day_of_a_later_job_is_corrected_between_the_jobs_before_and_after_it() {
    let test_desk = TestDesk::new().await;
    assign_jobs(&test_desk, &["2026-12-01", "2027-01-10"]).await;
    let patch = "PATCH /employees/e-10";
    for (body, expected) in [
        (
            job_start_body("2026-12-01", "2026-11-01"),
            "422 refused-field job_start: must be from 2026-11-02 to 2027-01-09",
        ),
        (
            job_start_body("2026-12-01", "2027-01-10"),
            "422 refused-field job_start: must be from 2026-11-02 to 2027-01-09",
        ),
        (
            job_start_body("2027-01-10", "2026-12-01"),
            "422 refused-field job_start: must be from 2026-12-02 to 2027-01-31",
        ),
        (
            job_start_body("2027-01-10", "2027-02-01"),
            "422 refused-field job_start: must be from 2026-12-02 to 2027-01-31",
        ),
        (
            job_start_body("2026-11-01", "2026-11-02"),
            "422 refused-field job_start: no job of the employee after the first one begins on 2026-11-01; the first job begins on the hire \
             date",
        ),
        (
            job_start_body("2026-12-02", "2026-12-03"),
            "422 refused-field job_start: no job of the employee after the first one begins on 2026-12-02; the first job begins on the hire \
             date",
        ),
    ] {
        assert_eq!(test_desk.send_as_operator(patch, &body).await.problem_line(), expected, "{body}");
    }
    let [first, second, third] = ["Account Manager", "Buyer 0", "Buyer 1"];
    let unchanged = [format!("{third} 2027-01-10"), format!("{second} 2026-12-01"), format!("{first} 2026-11-01")];
    assert_eq!(job_history(&test_desk).await, unchanged, "a refused correction changes nothing");

    // A repeated request changes nothing.
    let stale = test_desk
        .send_as_operator_with(patch, &[("if-match", "\"1\"")], &job_start_body("2027-01-10", "2027-01-31"))
        .await;
    assert_eq!(stale.status, 412);
    for _ in 0..2 {
        let corrected = test_desk.send_as_operator(patch, &job_start_body("2027-01-10", "2027-01-31")).await;
        assert_eq!((corrected.status, corrected.etag()), (200, "\"4\""), "{}", corrected.json);
        assert_eq!(
            job_history(&test_desk).await,
            [format!("{third} 2027-01-31"), format!("{second} 2026-12-01"), format!("{first} 2026-11-01")]
        );
    }
    // The second job gets the former first day of the first job, and the first job begins earlier.
    let mut both = job_start_body("2026-12-01", "2026-11-01");
    both["hired_on"] = json!("2026-10-01");
    assert_eq!(test_desk.send_as_operator(patch, &both).await.status, 200);
    assert_eq!(
        job_history(&test_desk).await,
        [format!("{third} 2027-01-31"), format!("{second} 2026-11-01"), format!("{first} 2026-10-01")]
    );
    let table = &test_desk.desk.table;
    for (day, expected) in
        [("2026-10-31", first), ("2026-11-01", second), ("2027-01-30", second), ("2027-01-31", third)]
    {
        let current = table.current_job(&"e-10".parse().unwrap(), day.parse().unwrap()).await.unwrap().unwrap();
        assert_eq!(current.job_title.as_str(), expected, "{day}");
    }
}

#[tokio::test]
async fn corrected_job_begins_before_its_employee_leaves_or_gets_the_planned_assignment() {
    // The columns are: the request after which the last job ends, its body, the day of the correction, and the last day
    // on which the corrected job can begin.
    let planned =
        json!({"from": "2027-02-10", "assignment": {"job": "sales", "job_title": "S", "department": "sales-eu"}});
    for (request, body, today, latest) in [
        ("POST /employees/e-10/leave", json!({"on": "2027-01-20"}), "2027-01-31", "2027-01-19"),
        ("POST /employees/e-10/leave", json!({"on": "2027-02-10"}), "2027-02-20", "2027-02-09"),
        ("PUT /employees/e-10/assignment", planned, "2027-02-20", "2027-02-09"),
    ] {
        let test_desk = TestDesk::new().await;
        let other = json!({"representative": "e-11"});
        test_desk.send_as_operator("PUT /customers/acme/representative", &other).await;
        assign_jobs(&test_desk, &["2026-12-01"]).await;
        assert_eq!(test_desk.send_as_operator(request, &body).await.status, 200);
        test_desk.clock.set(format!("{today}T12:00:00Z").parse().unwrap());
        let refused = test_desk.send_as_operator("PATCH /employees/e-10", &job_start_body("2026-12-01", today)).await;
        let expected = format!("422 refused-field job_start: must be from 2026-11-02 to {latest}");
        assert_eq!(refused.problem_line(), expected);
        let corrected =
            test_desk.send_as_operator("PATCH /employees/e-10", &job_start_body("2026-12-01", latest)).await;
        assert_eq!(corrected.status, 200, "{}", corrected.json);
        assert_eq!(job_history(&test_desk).await[0], format!("Buyer 0 {latest}"));
    }
}
