//! Tests of lists that are read list page by list page. The items of a list are spread over several partitions.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use emulator::EngineConnection;
use orders::PaidPeriod;
use serde_json::json;

use crate::router::test_desk::{TestDesk, address_body, connection_with_unprocessed_keys, paid_month};

/// Returns the ids of all items in the list at `path`, which is read in list pages of `limit` items each. Checks that
/// every list page except the last one has `limit` items.
async fn read_all_list_pages(test_desk: &TestDesk, path: &str, limit: usize) -> Vec<String> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    let and = if path.contains('?') { '&' } else { '?' };
    for _ in 0..200 {
        let page = test_desk.get_as_operator(&format!("{path}{and}limit={limit}{cursor}")).await;
        let listed = page.list_field("id");
        all.extend(listed.iter().cloned());
        match page.json["next_cursor"].as_str() {
            None => return all,
            Some(next) => {
                assert_eq!(listed.len(), limit, "{path}");
                cursor = format!("&cursor={next}");
            }
        }
    }
    panic!("{path} still returns a next_cursor after 200 list pages");
}

#[tokio::test]
async fn list_pages_of_any_size_contain_each_order_once_even_if_orders_have_the_same_instant() {
    let test_desk = TestDesk::new().await;
    test_desk.place_orders(0..23).await;
    for n in [3, 8, 9, 15] {
        let picked =
            test_desk.send_as_operator(&format!("POST /orders/{}/pick", paid_month(n).order), &json!({})).await;
        assert_eq!(picked.status, 200);
    }
    let paid_at: BTreeMap<String, DateTime<Utc>> =
        (0..23).map(|n| (paid_month(n).order.to_string(), paid_month(n).paid_at)).collect();
    // The sequence of orders that were paid at the same instant is not specified.
    let assert_each_order_once_oldest_first = |listed: &[String], when: &str| {
        assert!(listed.is_sorted_by_key(|order| paid_at[order]), "{when}: {listed:?}");
        let different: BTreeSet<&String> = listed.iter().collect();
        assert_eq!((listed.len(), different), (23, paid_at.keys().collect()), "{when}");
    };
    let representative =
        test_desk.get_as_operator("/customers/acme").await.json["representative"].as_str().unwrap().to_owned();
    for path in [
        "/orders".to_owned(),
        "/customers/acme/orders".to_owned(),
        "/products/beans/orders".to_owned(),
        format!("/employees/{representative}/orders"),
    ] {
        for limit in [1, 2, 3, 4, 5, 7, 22, 23, 24, 100] {
            let listed = read_all_list_pages(&test_desk, &path, limit).await;
            assert_each_order_once_oldest_first(&listed, &format!("{path} by {limit}"));
        }
        let picked: BTreeSet<_> =
            read_all_list_pages(&test_desk, &format!("{path}?status=PICKED"), 3).await.into_iter().collect();
        assert_eq!(picked, [3, 8, 9, 15].map(|n| paid_month(n).order.to_string()).into(), "{path}");
        assert_eq!(
            read_all_list_pages(&test_desk, &format!("{path}?to=2027-01-30"), 3).await,
            Vec::<String>::new(),
            "{path}"
        );
        let listed = read_all_list_pages(&test_desk, &format!("{path}?from=2027-01-31&to=2027-01-31"), 50).await;
        assert_each_order_once_oldest_first(&listed, &path);
    }
}

#[tokio::test]
async fn list_page_needs_one_request_for_each_bucket_and_status_even_if_all_orders_have_the_same_instant() {
    let test_desk = TestDesk::with_connection(EngineConnection::counting_capacity_units()).await;
    for n in 0..210 {
        test_desk.desk.place_order(&PaidPeriod { paid_at: paid_month(0).paid_at, ..paid_month(n) }).await.unwrap();
    }
    let connection = &test_desk.connection;
    let request_count = || connection.request_counts().values().sum::<u64>();
    // The columns are: the path, and the number of requests for one list page: one to read the number of buckets, and
    // one for each of the three buckets and each requested status.
    for (path, requests) in [("/orders?status=BACKORDERED", 1 + 3), ("/orders", 1 + 7 * 3)] {
        let (mut cursor, mut units_of_pages, mut listed) = (String::new(), Vec::new(), 0);
        let and = if path.contains('?') { '&' } else { '?' };
        loop {
            connection.take_capacity_units();
            let before = request_count();
            let page = test_desk.get_as_operator(&format!("{path}{and}limit=20{cursor}")).await;
            assert_eq!(request_count() - before, requests, "{path}");
            units_of_pages.push(connection.take_capacity_units().values().sum::<f64>());
            listed += page.list_field("id").len();
            let Some(next) = page.json["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(listed, if path == "/orders" { 210 } else { 160 });
        // A list page reads no orders of earlier list pages again, so later list pages do not read more than the first one.
        assert!(units_of_pages.iter().all(|units| *units <= units_of_pages[0]), "{path}: {units_of_pages:?}");
    }
}

#[tokio::test]
async fn products_are_read_with_one_request_for_a_hundred_and_unprocessed_keys_are_read_again() {
    let test_desk = TestDesk::with_connection(connection_with_unprocessed_keys(2)).await;
    let mut expected = vec!["beans".to_owned()];
    for n in 0..99 {
        test_desk.send_as_operator(&format!("PUT /products/p-{n:02}"), &json!({"name": format!("P {n}")})).await;
        expected.push(format!("p-{n:02}"));
    }
    let batches = || test_desk.connection.request_counts().get("BatchGetItem").copied().unwrap_or_default();
    for requests in [3, 1] {
        let (all, reads) = (batches(), test_desk.connection.request_counts()["GetItem"]);
        assert_eq!(test_desk.get_as_operator("/products?limit=100").await.list_field("id"), expected);
        assert_eq!((batches() - all, test_desk.connection.request_counts()["GetItem"] - reads), (requests, 0));
    }
}

#[tokio::test]
async fn cursor_outside_of_the_requested_days_returns_an_empty_list_page() {
    let test_desk = TestDesk::new().await;
    test_desk.place_orders(0..3).await;
    let cursor = test_desk.get_as_operator("/orders?limit=1").await.json["next_cursor"].as_str().unwrap().to_owned();
    for path in ["/orders?to=2027-01-30", "/orders?from=2200-01-01", "/orders?to=1960-01-01"] {
        let page = test_desk.get_as_operator(&format!("{path}&cursor={cursor}")).await;
        assert_eq!((page.status, page.list_field("id").len()), (200, 0), "{path}");
    }
}

#[tokio::test]
async fn list_of_orders_accepts_only_its_own_cursors() {
    let test_desk = TestDesk::new().await;
    test_desk.place_orders(0..3).await;
    let representative =
        test_desk.get_as_operator("/customers/acme").await.json["representative"].as_str().unwrap().to_owned();
    let of_representative = format!("/employees/{representative}/orders");
    let lists = ["/orders", "/customers/acme/orders", "/products/beans/orders", &of_representative];
    for list in lists {
        let page = test_desk.get_as_operator(&format!("{list}?limit=1")).await;
        let cursor = page.json["next_cursor"].as_str().unwrap().to_owned();
        for other in lists.into_iter().chain(["/customers/other/orders", "/products/cups/orders"]) {
            let next = test_desk.get_as_operator(&format!("{other}?cursor={cursor}")).await;
            let expected = if other == list { 200 } else { 422 };
            assert_eq!(next.status, expected, "cursor of {list} in {other}: {}", next.json);
        }
    }
}

#[tokio::test]
async fn products_and_employees_have_list_pages_and_reject_cursors_of_other_lists() {
    let test_desk = TestDesk::new().await;
    for n in 0..7 {
        assert_eq!(
            test_desk
                .send_as_operator(&format!("PUT /products/p-{n}"), &json!({"name": format!("P {n}")}))
                .await
                .status,
            201
        );
    }
    let products = ["beans", "p-0", "p-1", "p-2", "p-3", "p-4", "p-5", "p-6"];
    for limit in [1, 3, 7, 8, 9] {
        assert_eq!(read_all_list_pages(&test_desk, "/products", limit).await, products, "{limit}");
        assert_eq!(read_all_list_pages(&test_desk, "/employees?department=sales-eu", limit).await, ["e-10", "e-11"]);
        assert_eq!(read_all_list_pages(&test_desk, "/employees?hired_after=2026-10-31", limit).await, ["e-10", "e-11"]);
    }
    assert_eq!(
        read_all_list_pages(&test_desk, "/employees?hired_after=2026-11-01", 5).await,
        Vec::<String>::new(),
        "hired_after excludes the day itself"
    );
    let cursor = test_desk.get_as_operator("/products?limit=1").await.json["next_cursor"].as_str().unwrap().to_owned();
    let hired = test_desk.get_as_operator("/employees?hired_after=2026-10-31&limit=1").await.json["next_cursor"]
        .as_str()
        .unwrap()
        .to_owned();
    let titled = test_desk.get_as_operator("/employees?department=sales-eu&limit=1").await.json["next_cursor"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(test_desk.send_as_operator("PUT /customers/new", &address_body()).await.status, 200);
    for account in ["acme", "new"] {
        let request = format!("PUT /customers/{account}/representative");
        assert_eq!(test_desk.send_as_operator(&request, &json!({"representative": "e-10"})).await.status, 200);
    }
    let customers = test_desk.get_as_operator("/employees/e-10/customers?limit=1").await.json["next_cursor"].clone();
    let customers = customers.as_str().unwrap();
    let next = test_desk.get_as_operator(&format!("/employees/e-10/customers?cursor={customers}")).await;
    assert_eq!(next.list_field("account"), ["new"]);
    for path in [
        format!("/orders?cursor={cursor}"),
        format!("/products?cursor={titled}"),
        format!("/employees/e-11/customers?cursor={customers}"),
        format!("/employees?department=sales-eu&cursor={hired}"),
        format!("/employees?department=sales-us&cursor={titled}"),
        format!("/employees?title=sales-eu&cursor={titled}"),
        format!("/employees?name=sales-eu&cursor={titled}"),
        format!("/warehouses/ams/employees?cursor={titled}"),
        format!("/employees?hired_after=2026-10-31&cursor={titled}"),
    ] {
        let other = test_desk.get_as_operator(&path).await.problem_line();
        assert!(other.starts_with("422 refused-field cursor: "), "{path}: {other}");
    }
    for day in ["2027-01-31", "2027-02-01", "2099-01-01", "0001-01-01"] {
        let found = test_desk.get_as_operator(&format!("/employees?hired_after={day}")).await;
        assert_eq!(
            (found.status, found.list_field("id").len()),
            (200, if day == "0001-01-01" { 2 } else { 0 }),
            "{day}"
        );
    }
}
