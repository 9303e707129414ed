//! Tests of the changes of the stock that people request: counts, write-offs, transfers and unsellable returns.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};

use crate::router::test_desk::{TestDesk, paid_month};

impl TestDesk {
    /// Returns the total stock of beans, and their stock in each warehouse.
    async fn stock_of_beans(&self) -> (u64, Vec<(String, u64)>) {
        let product = self.get_as_operator("/products/beans").await.json;
        let stock = product["stock"].as_array().unwrap().iter();
        let stock = stock.map(|of| (of["warehouse"].as_str().unwrap().to_owned(), of["quantity"].as_u64().unwrap()));
        (product["total_stock"].as_u64().unwrap(), stock.collect())
    }

    /// Returns the kind and the change of the stock of each movement of beans, newest first.
    async fn movements_of_beans(&self) -> Vec<(String, i64)> {
        let list = self.get_as_operator("/products/beans/movements").await.json;
        let movements = list["data"].as_array().unwrap().iter();
        let kind = |movement: &Value| movement["kind"].as_str().unwrap().to_owned();
        movements.map(|movement| (kind(movement), movement["stock_change"].as_i64().unwrap())).collect()
    }
}

/// Returns the method and the path of a request that changes the stock of beans. `change` is the last part of the path,
/// such as `counts`. `number` is the last digit of the identifier of the movement: movements with larger numbers are
/// listed as newer.
fn movement_request(change: &str, number: u32) -> String {
    format!("PUT /products/beans/{change}/01MCCKG2G0000G00000000001{number}")
}

#[tokio::test]
async fn counts_write_offs_and_transfers_change_the_stock_once() {
    let test_desk = TestDesk::new().await;
    test_desk.send_as_operator("PUT /warehouses/ber", &json!({"name": "Berlin", "region": "eu"})).await;
    let of = |ams: u64, ber: Option<u64>| {
        let ber = ber.map(|ber| ("ber".to_owned(), ber));
        let stock: Vec<(String, u64)> = [("ams".to_owned(), ams)].into_iter().chain(ber).collect();
        (stock.iter().map(|(_, pieces)| pieces).sum::<u64>(), stock)
    };
    assert_eq!(test_desk.stock_of_beans().await, of(100, None));
    // The columns are: the request, its body, the change of the stock in its warehouse, and the stock afterwards.
    let steps = [
        (
            movement_request("counts", 1),
            json!({"warehouse": "ams", "found": 97, "reason": "yearly count"}),
            -3,
            of(97, None),
        ),
        (
            movement_request("counts", 2),
            json!({"warehouse": "ams", "found": 97, "reason": "counted again"}),
            0,
            of(97, None),
        ),
        (
            movement_request("write-offs", 3),
            json!({"warehouse": "ams", "quantity": 7, "reason": "torn"}),
            -7,
            of(90, None),
        ),
        (
            movement_request("transfers", 4),
            json!({"warehouse": "ams", "to_warehouse": "ber", "quantity": 30}),
            -30,
            of(60, Some(30)),
        ),
        (
            movement_request("transfers", 5),
            json!({"warehouse": "ber", "to_warehouse": "ams", "quantity": 30, "reason": "too many"}),
            -30,
            of(90, Some(0)),
        ),
        (movement_request("counts", 6), json!({"warehouse": "ber", "found": 2, "reason": "found"}), 2, of(90, Some(2))),
    ];
    for (request, body, change, stock) in &steps {
        let moved = test_desk.send_as_operator(request, body).await;
        assert_eq!((moved.status, &moved.json["stock_change"]), (200, &json!(change)), "{}", moved.json);
        assert_eq!(test_desk.stock_of_beans().await, *stock, "{request}");
        let repeated = test_desk.send_as_operator(request, body).await;
        assert_eq!((repeated.status, repeated.json), (200, moved.json), "{request} repeated");
        assert_eq!(test_desk.stock_of_beans().await, *stock, "{request} repeated");
    }
    // A request that is repeated after other changes of the stock also changes nothing.
    let (request, body, ..) = &steps[0];
    assert_eq!(test_desk.send_as_operator(request, body).await.status, 200);
    assert_eq!(test_desk.stock_of_beans().await, of(90, Some(2)));
    let expected = [
        ("count", 2),
        ("transfer", -30),
        ("transfer", -30),
        ("write_off", -7),
        ("count", 0),
        ("count", -3),
        ("delivery", 100),
    ];
    assert_eq!(test_desk.movements_of_beans().await, expected.map(|(kind, change)| (kind.to_owned(), change)));
}

#[tokio::test]
async fn impossible_movements_are_refused_and_change_nothing() {
    let test_desk = TestDesk::new().await;
    let count = json!({"warehouse": "ams", "found": 100, "reason": "yearly count"});
    assert_eq!(test_desk.send_as_operator(&movement_request("counts", 1), &count).await.status, 200);
    let before = (test_desk.stock_of_beans().await, test_desk.movements_of_beans().await);
    let (missing, other) = (
        movement_request("counts", 2).replace("beans", "none"),
        movement_request("counts", 1).replace("counts", "write-offs"),
    );
    for (request, body, expected) in [
        (
            movement_request("write-offs", 2),
            json!({"warehouse": "ams", "quantity": 101, "reason": "torn"}),
            "409 conflict -: the stock of beans in ams is only 100, and 101 were requested",
        ),
        (
            movement_request("transfers", 2),
            json!({"warehouse": "ams", "to_warehouse": "ams", "quantity": 1}),
            "422 refused-field to_warehouse: the pieces are in ams already; name another warehouse",
        ),
        (
            movement_request("transfers", 2),
            json!({"warehouse": "ams", "to_warehouse": "nowhere", "quantity": 1}),
            "422 refused-field to_warehouse: there is no warehouse nowhere",
        ),
        (
            movement_request("transfers", 2),
            json!({"warehouse": "nowhere", "to_warehouse": "ams", "quantity": 1}),
            "422 refused-field warehouse: there is no warehouse nowhere",
        ),
        (
            movement_request("counts", 2),
            json!({"warehouse": "ams", "found": 1_000_000_001, "reason": "r"}),
            "400 invalid-field found: must be from 0 to 1000000000, not 1000000001",
        ),
        (
            movement_request("write-offs", 2),
            json!({"warehouse": "ams", "quantity": 0, "reason": "r"}),
            "400 invalid-field quantity: must be from 1 to 1000000000, not 0",
        ),
        (movement_request("counts", 2), json!({"warehouse": "ams", "found": 1}), "400 invalid-field reason: "),
        (
            movement_request("counts", 2).replace("01MCC", "x"),
            count.clone(),
            "400 invalid-field movement: must be a ULID",
        ),
        (missing, count.clone(), "404 not-found -: there is no such product"),
        (
            movement_request("counts", 1),
            json!({"warehouse": "ams", "found": 99, "reason": "yearly count"}),
            "422 refused-field movement: 01MCCKG2G0000G000000000011 was already used for another movement",
        ),
        (
            other,
            json!({"warehouse": "ams", "quantity": 100, "reason": "yearly count"}),
            "422 refused-field movement: 01MCCKG2G0000G000000000011 was already used for another movement",
        ),
        (
            "PUT /products/beans/deliveries/01MCCKG2G0000G000000000011".to_owned(),
            json!({"warehouse": "ams", "quantity": 100}),
            "422 refused-field delivery: the delivery 01MCCKG2G0000G000000000011 was already received",
        ),
    ] {
        let problem = test_desk.send_as_operator(&request, &body).await.problem_line();
        assert!(problem.starts_with(expected), "{request}: {problem}");
        assert_eq!((test_desk.stock_of_beans().await, test_desk.movements_of_beans().await), before, "{request}");
    }
}

#[tokio::test]
async fn stock_delivery_recorded_by_older_software_is_not_added_again() {
    let test_desk = TestDesk::new().await;
    let id = "01MCCKG2G0000G000000000012";
    let record = json!({"PK": "PRODUCT#beans", "SK": format!("ARRIVAL#{id}"), "Warehouse": "ams"});
    let mut item: HashMap<String, AttributeValue> = record
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, text)| (name.clone(), AttributeValue::S(text.as_str().unwrap().to_owned())))
        .collect();
    item.insert("Stock".to_owned(), AttributeValue::N("7".to_owned()));
    let client = test_desk.desk.table.client();
    client.put_item().table_name("dueday-orders").set_item(Some(item)).send().await.unwrap();
    let delivery = format!("PUT /products/beans/deliveries/{id}");
    for (quantity, status) in [(7, 200), (8, 422)] {
        let body = json!({"warehouse": "ams", "quantity": quantity});
        let received = test_desk.send_as_operator(&delivery, &body).await;
        assert_eq!((received.status, test_desk.stock_of_beans().await.0), (status, 100), "{}", received.json);
    }
}

#[tokio::test]
async fn list_of_movements_has_list_pages_and_accepts_only_its_own_cursors() {
    let test_desk = TestDesk::new().await;
    test_desk.send_as_operator("PUT /products/tea", &json!({"name": "Tea"})).await;
    for number in 1..=5 {
        let body = json!({"warehouse": "ams", "found": 100 + number, "reason": "count"});
        assert_eq!(test_desk.send_as_operator(&movement_request("counts", number), &body).await.status, 200);
    }
    for limit in [1, 2, 3, 6, 7] {
        let (mut listed, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = test_desk.get_as_operator(&format!("/products/beans/movements?limit={limit}{cursor}")).await;
            listed.extend(page.list_field("id"));
            let Some(next) = page.json["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
            let of_other = test_desk.get_as_operator(&format!("/products/tea/movements?limit={limit}{cursor}")).await;
            assert!(of_other.problem_line().starts_with("422 refused-field cursor: "), "{}", of_other.json);
        }
        assert_eq!(listed.len(), 6, "by {limit}");
        assert!(listed.is_sorted_by(|a, b| a > b), "by {limit}: {listed:?}");
    }
    assert_eq!(test_desk.get_as_operator("/products/tea/movements").await.json["data"], json!([]));
    let missing = test_desk.get_as_operator("/products/none/movements").await;
    assert_eq!(missing.problem_line(), "404 not-found -: there is no such product");
}

#[tokio::test]
async fn unsellable_products_of_a_returned_order_are_not_added_to_the_stock() {
    let test_desk = TestDesk::new().await;
    test_desk.place_orders(0..2).await;
    let orders = [0, 1].map(|n| format!("/orders/{}", paid_month(n).order));
    for order in &orders {
        for step in ["pick", "ship"] {
            assert_eq!(test_desk.send_as_operator(&format!("POST {order}/{step}"), &json!({})).await.status, 200);
        }
    }
    let unsellable = json!({"unsellable": true});
    let refused = test_desk.send_as_operator(&format!("POST {}/deliver", orders[0]), &unsellable).await;
    assert_eq!(refused.problem_line(), "422 refused-field unsellable: is only for the step return");
    for _ in 0..2 {
        let returned = test_desk.send_as_operator(&format!("POST {}/return", orders[0]), &unsellable).await.json;
        assert_eq!((&returned["status"], &returned["written_off"]), (&json!("RETURNED"), &json!(true)), "{returned}");
        assert_eq!(test_desk.stock_of_beans().await.0, 96, "the stock of neither order is restored");
    }
    let returned = test_desk.send_as_operator(&format!("POST {}/return", orders[1]), &json!({})).await.json;
    assert_eq!((&returned["status"], &returned["written_off"]), (&json!("RETURNED"), &json!(false)), "{returned}");
    assert_eq!(test_desk.stock_of_beans().await.0, 98);
    let refused = test_desk.send_as_operator(&format!("POST {}/return", orders[1]), &unsellable).await.problem_line();
    assert!(refused.ends_with("were added to the stock already; write them off from the stock"), "{refused}");
}

#[tokio::test]
async fn movements_of_an_order_are_listed_newest_first_and_add_up() {
    let test_desk = TestDesk::new().await;
    test_desk.send_as_operator("PUT /products/cups", &json!({"name": "Cup"})).await;
    let delivery = json!({"warehouse": "ams", "quantity": 5});
    let request = "PUT /products/cups/deliveries/01MCCKG2G0000G000000000009";
    assert_eq!(test_desk.send_as_operator(request, &delivery).await.status, 200);
    test_desk.place_orders(0..1).await;
    let order = format!("/orders/{}", paid_month(0).order);
    let lines = json!({"lines": [{"product": "beans", "quantity": 3}, {"product": "cups", "quantity": 1}]});
    assert_eq!(test_desk.send_as_operator(&format!("PUT {order}/lines"), &lines).await.status, 200);
    assert_eq!(test_desk.send_as_operator(&format!("POST {order}/cancel"), &json!({})).await.status, 200);

    let (mut listed, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = test_desk.get_as_operator(&format!("{order}/movements?limit=1{cursor}")).await.json;
        let movement = &page["data"][0];
        let change = |line: &Value| format!("{} {}", line["product"].as_str().unwrap(), line["stock_change"]);
        let changes: Vec<String> = movement["lines"].as_array().unwrap().iter().map(change).collect();
        listed.push(format!(
            "{} {}: {}",
            movement["version"],
            movement["effect"].as_str().unwrap(),
            changes.join(", ")
        ));
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(listed, ["3 restored: beans 3, cups 1", "2 exchanged: beans -1, cups -1", "1 deducted: beans -2"]);

    let other = format!("/orders/{}/movements", paid_month(1).order);
    assert_eq!(test_desk.get_as_operator(&other).await.status, 404);
    test_desk.place_orders(1..2).await;
    let refused = test_desk.get_as_operator(&format!("{other}?{}", cursor.trim_start_matches('&'))).await;
    assert_eq!(
        refused.problem_line(),
        "422 refused-field cursor: must be the next_cursor of an earlier page of this list"
    );
}

#[tokio::test]
async fn stock_that_a_count_or_a_transfer_adds_fills_backordered_orders() {
    let test_desk = TestDesk::new().await;
    test_desk.send_as_operator("PUT /warehouses/ber", &json!({"name": "Berlin", "region": "eu"})).await;
    test_desk.place_orders(0..52).await;
    assert_eq!(test_desk.get_as_operator("/orders?status=BACKORDERED").await.list_field("id").len(), 2);
    for (warehouse, found) in [("ams", 1), ("ber", 1)] {
        let body = json!({"warehouse": warehouse, "found": found, "reason": "found"});
        let number = if warehouse == "ams" { 1 } else { 2 };
        assert_eq!(test_desk.send_as_operator(&movement_request("counts", number), &body).await.status, 200);
        assert_eq!(test_desk.fill_waiting_orders().await, 0, "an order needs two pieces in one warehouse");
    }
    let body = json!({"warehouse": "ams", "to_warehouse": "ber", "quantity": 1});
    assert_eq!(test_desk.send_as_operator(&movement_request("transfers", 3), &body).await.status, 200);
    assert_eq!(test_desk.fill_waiting_orders().await, 1);
    let body = json!({"warehouse": "ams", "found": 2, "reason": "found"});
    assert_eq!(test_desk.send_as_operator(&movement_request("counts", 4), &body).await.status, 200);
    assert_eq!(test_desk.fill_waiting_orders().await, 1);
    let stock = [("ams".to_owned(), 0), ("ber".to_owned(), 0)].to_vec();
    assert_eq!(test_desk.stock_of_beans().await, (0, stock));
}

#[tokio::test]
async fn order_of_the_most_products_is_cancelled_and_logged_in_one_transaction() {
    let test_desk = TestDesk::new().await;
    let products: Vec<String> = (0..20).map(|number| format!("p-{number:02}")).collect();
    for (product, number) in products.iter().zip(10..) {
        test_desk.send_as_operator(&format!("PUT /products/{product}"), &json!({"name": product})).await;
        let delivery = format!("PUT /products/{product}/deliveries/01MCCKG2G0000G0000000001{number}");
        let body = json!({"warehouse": "ams", "quantity": 5});
        assert_eq!(test_desk.send_as_operator(&delivery, &body).await.status, 200);
    }
    let lines: Vec<Value> = products.iter().map(|product| json!({"product": product, "quantity": 1})).collect();
    assert_eq!(test_desk.send_as_operator("PUT /skus/coffee", &json!({"lines": lines})).await.status, 200);
    test_desk.place_orders(0..1).await;
    let order = format!("/orders/{}", paid_month(0).order);
    let stock = async || test_desk.get_as_operator("/products/p-19").await.json["total_stock"].clone();
    assert_eq!(stock().await, 4);
    let headers = [("idempotency-key", "cancel-1")];
    let cancelled = test_desk.send_as_operator_with(&format!("POST {order}/cancel"), &headers, &json!({})).await;
    assert_eq!((cancelled.status, &cancelled.json["status"]), (200, &json!("CANCELLED")), "{}", cancelled.json);
    assert_eq!(stock().await, 5);
}
