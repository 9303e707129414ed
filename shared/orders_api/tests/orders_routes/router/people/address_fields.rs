//! Tests of the fields of a shipping address: which values are accepted, and how the optional fields are stored.

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};

use crate::router::test_desk::{TestDesk, address_body};

/// The names of the optional fields.
const OPTIONAL_FIELDS: [&str; 3] = ["line2", "state", "phone"];

/// Returns the names of the stored attributes of the address of the customer `acme`, sorted.
async fn stored_attributes(test_desk: &TestDesk) -> Vec<String> {
    let key = AttributeValue::S("CUSTOMER#acme".to_owned());
    let get = test_desk.desk.table.client().get_item().table_name("dueday-orders").consistent_read(true);
    let item = get.key("PK", key.clone()).key("SK", key).send().await.unwrap().item.unwrap();
    let mut names: Vec<String> = item["ShippingAddress"].as_m().unwrap().keys().cloned().collect();
    names.sort();
    names
}

#[tokio::test]
async fn optional_fields_are_stored_and_can_be_left_out() {
    let test_desk = TestDesk::new().await;
    assert_eq!(test_desk.get_as_operator("/customers/acme").await.json["address"], address_body());
    let all =
        ["City", "Country", "Line2", "Name", "Phone", "PostalCode", "Region", "State", "Street"].map(str::to_owned);
    assert_eq!(stored_attributes(&test_desk).await, all);

    let (mut without, mut nulls) = (address_body(), address_body());
    for field in OPTIONAL_FIELDS {
        without.as_object_mut().unwrap().remove(field);
        nulls[field] = Value::Null;
    }
    for body in [without, nulls.clone()] {
        assert_eq!(test_desk.send_as_operator("PUT /customers/acme", &address_body()).await.status, 200);
        let changed = test_desk.send_as_operator("PUT /customers/acme", &body).await;
        assert_eq!((changed.status, &changed.json["address"]), (200, &nulls), "{}", changed.json);
        // An item of an earlier version has exactly these attributes, so this also shows that such an item can be read.
        let required = ["City", "Country", "Name", "PostalCode", "Region", "Street"].map(str::to_owned);
        assert_eq!(stored_attributes(&test_desk).await, required);
        assert_eq!(test_desk.get_as_operator("/customers/acme").await.json["address"], nulls);
    }
}

#[tokio::test]
async fn invalid_field_of_an_address_is_refused_with_its_name_and_what_is_allowed() {
    let test_desk = TestDesk::new().await;
    let long = "x".repeat(201);
    let label = "must be 1 to 200 characters without control characters, line breaks, or space at the start or end";
    let phone = "must be a phone number such as +44 113 496 0000: from 4 to 15 digits, and at most 30 characters; allowed are \
        digits, spaces, + - ( ) . and /, but no space at the start or end";
    for (field, value, expected) in [
        ("line2", json!(""), label),
        ("line2", json!("Unit 4\nUnit 5"), label),
        ("line2", json!(long), label),
        ("line2", json!(4), "must be text, not 4"),
        ("state", json!(" CA"), label),
        ("state", json!("C\u{7}A"), label),
        ("state", json!(long), label),
        ("phone", json!("no phone"), phone),
        ("phone", json!("123"), phone),
        ("phone", json!("+44 113 496 0000 ext. 7"), phone),
        ("phone", json!("+44 113\t496 0000"), phone),
        ("phone", json!("1".repeat(16)), phone),
        ("phone", json!(441_134_960_000_i64), "must be text, not 441134960000"),
        ("phone", json!("3782 822463 10005"), "must not contain a card number"),
    ] {
        let mut body = address_body();
        body[field] = value;
        let refused = test_desk.send_as_operator("PUT /customers/acme", &body).await;
        let (line, start) = (refused.problem_line(), format!("400 invalid-field {field}: {expected}"));
        assert!(line.starts_with(&start), "{line}");
    }
    let mut body = address_body();
    body["line3"] = json!("Unit 5");
    let refused = test_desk.send_as_operator("PUT /customers/acme", &body).await.problem_line();
    assert!(refused.contains("line3: is unknown; allowed names: name, street, line2, postal_code"), "{refused}");
    assert_eq!(test_desk.get_as_operator("/customers/acme").await.json["address"], address_body());
}
