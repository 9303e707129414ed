//! Tests of the list of the regions, countries, locations, jobs and departments.

use orders::{Country, Region};
use serde_json::{Value, json};

use crate::router::test_desk::TestDesk;

#[tokio::test]
async fn each_list_of_the_company_is_read_by_page_with_its_own_cursors() {
    let test_desk = TestDesk::new().await;
    for (id, name) in [("ca", "Canada"), ("us", "United States")] {
        let (id, name, region) = (id.parse().unwrap(), name.parse().unwrap(), "na".parse().unwrap());
        test_desk.desk.table.put_entity(&Country { id, name, region }).await.unwrap();
    }
    for (list, first) in [
        ("regions", json!({"id": "eu", "name": "Europe"})),
        ("countries", json!({"id": "ca", "name": "Canada", "region": "na"})),
        ("locations", json!({"id": "leeds", "address": "1 High Street", "country_name": "Britain"})),
        ("jobs", json!({"id": "buying", "title": "Buyer", "represents_customers": false})),
        ("departments", json!({"id": "buying", "name": "buying", "location": "leeds"})),
    ] {
        assert_eq!(test_desk.get_as_operator(&format!("/company/{list}")).await.json["data"][0], first, "{list}");
    }
    let first = test_desk.get_as_operator("/company/countries?limit=2").await;
    assert_eq!(first.list_field("id"), ["ca", "gb"]);
    let cursor = first.json["next_cursor"].as_str().unwrap();
    let last = test_desk.get_as_operator(&format!("/company/countries?limit=2&cursor={cursor}")).await;
    assert_eq!(last.list_field("id"), ["us"]);
    let of_other_list = test_desk.get_as_operator(&format!("/company/regions?cursor={cursor}")).await;
    assert!(of_other_list.problem_line().starts_with("422 refused-field cursor: "), "{}", of_other_list.problem_line());
    let unknown = test_desk.get_as_operator("/company/planets").await.problem_line();
    assert!(unknown.starts_with("400 invalid-field list: "), "{unknown}");
}

#[tokio::test]
async fn changed_entity_is_found_by_its_new_data_only() {
    let test_desk = TestDesk::without_data().await;
    let table = &test_desk.desk.table;
    for region in ["eu", "na"] {
        table.put_entity(&Region { id: region.parse().unwrap(), name: region.parse().unwrap() }).await.unwrap();
    }
    for region in ["eu", "na"] {
        let (id, name) = ("is".parse().unwrap(), "Iceland".parse().unwrap());
        table.put_entity(&Country { id, name, region: region.parse().unwrap() }).await.unwrap();
        for other in ["eu", "na"] {
            let (countries, _) = table.countries_and_warehouses(&other.parse().unwrap()).await.unwrap();
            assert_eq!(countries.len(), usize::from(other == region), "the countries of {other}");
        }
        let listed = test_desk.get_as_operator("/company/countries").await.json;
        assert_eq!(listed["data"], json!([{"id": "is", "name": "Iceland", "region": region}]));
        assert_eq!((&listed["unreadable"], &listed["next_cursor"]), (&json!([]), &Value::Null));
    }
}
