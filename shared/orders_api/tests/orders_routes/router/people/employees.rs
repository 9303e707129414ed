//! Tests of hiring, assigning and leaving employees, and of the refusal of planned changes that an earlier version stored.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use orders_desk::DeskError;
use serde_json::{Value, json};
use store::TableError;

use crate::router::test_desk::{TestDesk, employee_body};

#[tokio::test]
async fn employee_is_hired_once_and_leaves_only_after_handing_over_all_customers() {
    let test_desk = TestDesk::new().await;
    assert_eq!(
        test_desk.send_as_operator("PUT /employees/e-10", &employee_body("Ada Lovelace")).await.status,
        200,
        "the same request again"
    );
    test_desk.send_as_operator("PUT /customers/acme/representative", &json!({"representative": "e-10"})).await;
    assert_eq!(test_desk.get_as_operator("/employees/e-10/customers").await.list_field("account"), ["acme"]);
    assert_eq!(
        test_desk.send_as_operator("POST /employees/e-10/leave", &json!({})).await.status,
        409,
        "acme would have no representative"
    );
    test_desk.send_as_operator("PUT /customers/acme/representative", &json!({"representative": "e-11"})).await;

    let buyer = json!({"assignment": {"job": "buying", "job_title": "Buyer", "department": "buying"}});
    let moved =
        test_desk.send_as_operator_with("PUT /employees/e-10/assignment", &[("if-match", "\"1\"")], &buyer).await;
    assert_eq!((moved.status, moved.etag()), (200, "\"2\""), "{}", moved.json);
    assert_eq!(
        test_desk
            .send_as_operator_with("PUT /employees/e-10/assignment", &[("if-match", "\"1\"")], &buyer)
            .await
            .status,
        412
    );
    let details = test_desk.get_as_operator("/employees/e-10").await.json;
    let jobs: Vec<_> = details["jobs"].as_array().unwrap().iter().map(|job| (&job["job"], &job["from"])).collect();
    assert_eq!(jobs, [(&json!("buying"), &json!("2027-01-31")), (&json!("sales"), &json!("2026-11-01"))]);
    assert_eq!(test_desk.get_as_operator("/employees?title=buyer").await.list_field("id"), ["e-10"]);
    assert_eq!(test_desk.get_as_operator("/employees?title=account%20manager").await.list_field("id"), ["e-11"]);
    assert_eq!(test_desk.get_as_operator("/employees?department=buying").await.list_field("id"), ["e-10"]);
    assert_eq!(test_desk.get_as_operator("/warehouses/ams/employees").await.list_field("id"), ["e-11"]);

    let left = test_desk.send_as_operator("POST /employees/e-10/leave", &json!({})).await;
    assert_eq!((&left.json["left_on"], &left.json["assignment"]), (&json!("2027-01-31"), &Value::Null));
    test_desk.clock.set("2027-02-01T12:00:00Z".parse().unwrap());
    let again = test_desk.send_as_operator("POST /employees/e-10/leave", &json!({})).await;
    assert_eq!(again.json, left.json, "a repeated request changes nothing");
    assert_eq!(
        test_desk.get_as_operator("/employees?name=ADA%20lovelace").await.list_field("id"),
        ["e-10"],
        "a former employee is still found by name"
    );
}

#[tokio::test]
async fn employees_are_found_by_name_in_both_forms_of_letters_with_accents() {
    let test_desk = TestDesk::new().await;
    let (composed, decomposed) = ("Zo\u{eb}", "Zoe\u{308}");
    for (id, name) in [("e-20", composed), ("e-21", decomposed)] {
        let hired = test_desk.send_as_operator(&format!("PUT /employees/{id}"), &employee_body(name)).await;
        assert_eq!(hired.status, 201);
    }
    for name in ["Zo%C3%AB", "zoe%CC%88"] {
        let found = test_desk.get_as_operator(&format!("/employees?name={name}")).await;
        assert_eq!(found.list_field("id"), ["e-20", "e-21"], "{name}");
    }
}

#[tokio::test]
async fn employee_leaves_on_a_past_day_of_the_current_job_at_the_earliest() {
    let test_desk = TestDesk::new().await;
    test_desk.send_as_operator("PUT /customers/acme/representative", &json!({"representative": "e-11"})).await;
    let leave = async |on: &str| {
        let (employee, on) = ("e-10".parse().unwrap(), on.parse().unwrap());
        test_desk.desk.end_employment::<DeskError>(&employee, on, |_| Ok(())).await
    };
    // The employee was hired on 2026-11-01, and today is 2027-01-31.
    for (on, expected) in [
        ("2026-10-31", "the current job of e-10 cannot end before its first day"),
        ("2027-02-01", "must be from 1970-01-01 to 2027-01-31"),
        ("1969-12-31", "must be from 1970-01-01 to 2027-01-31"),
    ] {
        assert_eq!(leave(on).await.unwrap_err().to_string(), expected, "{on}");
    }
    assert_eq!(leave("2026-11-01").await.unwrap().left_on, Some("2026-11-01".parse().unwrap()));
}

#[tokio::test]
async fn planned_change_of_an_earlier_version_is_refused_with_the_remedy() {
    let test_desk = TestDesk::new().await;
    let table = &test_desk.desk.table;
    table.refuse_planned_changes().await.unwrap();
    let put = async |item: Value| {
        let item = serde_json::from_value::<HashMap<String, String>>(item).unwrap();
        let item = item.into_iter().map(|(name, text)| (name, AttributeValue::S(text))).collect();
        table.client().put_item().table_name("dueday-orders").set_item(Some(item)).send().await.unwrap();
    };
    let remedy = "remove the planned change with DELETE /employees/{employee}/planned-change, and upgrade again";
    put(json!({"PK": "EMP#e-10", "SK": "PLANNED-CHANGES", "Data": "2027-03-01"})).await;
    let refused = table.refuse_planned_changes().await.unwrap_err().to_string();
    assert!(
        refused.starts_with("the item EMP#e-10 EMP#e-10 cannot be read: ") && refused.ends_with(remedy),
        "{refused}"
    );

    // The reading of the employee is refused, too, and nothing overwrites the planned change.
    let update = table.client().update_item().table_name("dueday-orders");
    let key = ["PK", "SK"].map(|name| (name.to_owned(), AttributeValue::S("EMP#e-10".to_owned())));
    let planned = AttributeValue::M(HashMap::from([("From".to_owned(), AttributeValue::S("2027-03-01".to_owned()))]));
    let update = update.set_key(Some(key.into())).update_expression("SET Planned = :planned");
    update.expression_attribute_values(":planned", planned).send().await.unwrap();
    let id = "e-10".parse().unwrap();
    for read in [
        table.get_employee(&id).await.map(drop),
        table.employee_details(&id).await.map(drop),
        test_desk.desk.hand_over_customer(&"acme".parse().unwrap(), &id).await.map(drop).map_err(table_error),
    ] {
        let refused = read.unwrap_err().to_string();
        assert!(refused.ends_with(remedy), "{refused}");
    }
}

/// Returns the error of the table in `error`.
fn table_error(error: DeskError) -> TableError {
    match error {
        DeskError::Table(error) => error,
        other => panic!("{other}"),
    }
}
