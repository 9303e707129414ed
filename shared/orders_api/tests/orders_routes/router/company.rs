//! Tests of the regions, countries, locations, jobs and departments.

use serde_json::{Value, json};

use crate::router::test_desk::{TestDesk, address_body, employee_body};

#[tokio::test]
async fn entities_are_created_in_the_sequence_of_their_references_and_listed_by_page() {
    let test_desk = TestDesk::without_data().await;
    // The columns are: the request, its body, and the response: the expected problem, or nothing if it succeeds.
    for (request, body, expected) in [
        (
            "PUT /company/countries/gb",
            json!({"name": "Britain", "region": "eu"}),
            Some(
                "422 refused-field region: there is no region eu; there are no regions yet; create it with PUT \
                 /company/regions/eu or `dueday orders places`",
            ),
        ),
        (
            "PUT /warehouses/ams",
            json!({"name": "Amsterdam", "region": "eu"}),
            Some(
                "422 refused-field region: there is no region eu; there are no regions yet; create it with PUT \
                 /company/regions/eu or `dueday orders places`",
            ),
        ),
        ("PUT /company/regions/eu", json!({"name": "Europe"}), None),
        ("PUT /company/regions/na", json!({"name": "North America"}), None),
        (
            "PUT /company/countries/ca",
            json!({"name": "Canada", "region": "mars"}),
            Some(
                "422 refused-field region: there is no region mars; the existing ids are: eu, na; create it with PUT \
                 /company/regions/mars or `dueday orders places`",
            ),
        ),
        (
            "PUT /customers/acme",
            address_body(),
            Some(
                "422 refused-field country: there is no country gb; there are no countries yet; create it with PUT \
                 /company/countries/gb or `dueday orders places`",
            ),
        ),
        (
            "PUT /company/locations/leeds",
            json!({"address": "1 High Street", "country_name": "Britain"}),
            Some(
                "422 refused-field country_name: there is no country with the name Britain; there are no countries yet; \
                 create it with PUT /company/countries/{country} or `dueday orders places`",
            ),
        ),
        ("PUT /company/countries/gb", json!({"name": "Britain", "region": "eu"}), None),
        ("PUT /company/countries/ca", json!({"name": "Canada", "region": "na"}), None),
        ("PUT /company/countries/us", json!({"name": "United States", "region": "na"}), None),
        (
            "PUT /company/locations/leeds",
            json!({"address": "1 High Street", "country_name": "Mars"}),
            Some(
                "422 refused-field country_name: there is no country with the name Mars; the existing names are: \
                 Canada, Britain, United States; create it with PUT /company/countries/{country} or `dueday orders places`",
            ),
        ),
        ("PUT /company/locations/leeds", json!({"address": "1 High Street", "country_name": "britain"}), None),
        (
            "PUT /company/departments/sales",
            json!({"name": "Sales", "location": "york"}),
            Some(
                "422 refused-field location: there is no location york; the existing ids are: leeds; create it with PUT \
                 /company/locations/york or `dueday orders places`",
            ),
        ),
        (
            "PUT /employees/e-1",
            employee_body("Ada"),
            Some(
                "422 refused-field job: there is no job sales; there are no jobs yet; create it with PUT /company/jobs/sales \
                 or `dueday orders places`",
            ),
        ),
        ("PUT /company/departments/sales", json!({"name": "Sales", "location": "leeds"}), None),
        (
            "PUT /company/jobs/am",
            json!({"title": "Account Manager"}),
            Some("400 invalid-field represents_customers: is required"),
        ),
        ("PUT /company/jobs/am", json!({"title": "Account Manager", "represents_customers": true}), None),
        ("PUT /customers/acme", address_body(), None),
    ] {
        let response = test_desk.send_as_operator(request, &body).await;
        match expected {
            Some(expected) => assert_eq!(response.problem_line(), expected, "{request}"),
            None => assert_eq!(response.status, 200, "{request}: {}", response.json),
        }
    }
    let first = test_desk.get_as_operator("/company/countries?limit=2").await;
    assert_eq!(first.list_field("id"), ["ca", "gb"]);
    let cursor = first.json["next_cursor"].as_str().unwrap();
    let last = test_desk.get_as_operator(&format!("/company/countries?limit=2&cursor={cursor}")).await;
    assert_eq!(last.list_field("id"), ["us"]);
    let of_other_list = test_desk.get_as_operator(&format!("/company/regions?cursor={cursor}")).await;
    assert!(of_other_list.problem_line().starts_with("422 refused-field cursor: "), "{}", of_other_list.problem_line());
}

#[tokio::test]
async fn changed_entity_is_found_by_its_new_data_only() {
    let test_desk = TestDesk::without_data().await;
    for region in ["eu", "na"] {
        test_desk.send_as_operator(&format!("PUT /company/regions/{region}"), &json!({"name": region})).await;
    }
    for region in ["eu", "na"] {
        let body = json!({"name": "Iceland", "region": region});
        let response = test_desk.send_as_operator("PUT /company/countries/is", &body).await;
        assert_eq!(response.json, json!({"id": "is", "name": "Iceland", "region": region}));
        for other in ["eu", "na"] {
            let table = &test_desk.desk.table;
            let (countries, _) = table.countries_and_warehouses(&other.parse().unwrap()).await.unwrap();
            assert_eq!(countries.len(), usize::from(other == region), "the countries of {other}");
        }
        let listed = test_desk.get_as_operator("/company/countries").await.json;
        assert_eq!(listed["data"], json!([{"id": "is", "name": "Iceland", "region": region}]));
        assert_eq!((&listed["unreadable"], &listed["next_cursor"]), (&json!([]), &Value::Null));
    }
}
