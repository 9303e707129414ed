//! Tests of the address of an order: the address that the customer had when the order was placed, or a later
//! correction.

use orders::PaidPeriod;
use serde_json::{Value, json};

use crate::router::test_desk::{TestDesk, address_body, paid_month};

/// Returns the body of a request that sets an address in `city`.
fn address_in(city: &str) -> Value {
    let mut address = address_body();
    address["city"] = json!(city);
    address
}

/// Sets the number of bags of beans in each order that is placed from now on. 100 bags are in stock.
async fn set_quantity(test_desk: &TestDesk, quantity: u32) {
    let sku = json!({"lines": [{"product": "beans", "quantity": quantity}]});
    assert_eq!(test_desk.send_as_operator("PUT /skus/coffee", &sku).await.status, 200);
}

/// Changes the shipping address of a customer to an address in `city`.
async fn move_customer(test_desk: &TestDesk, account: &str, city: &str) {
    let moved = test_desk.send_as_operator(&format!("PUT /customers/{account}"), &address_in(city)).await;
    assert_eq!(moved.status, 200, "{}", moved.json);
}

/// Adds a delivery of `quantity` bags of beans to the stock.
async fn receive_beans(test_desk: &TestDesk, quantity: u32) {
    let put = "PUT /products/beans/deliveries/01MCCKG2G0000G000000000010";
    let body = json!({"warehouse": "ams", "quantity": quantity});
    assert_eq!(test_desk.send_as_operator(put, &body).await.status, 200);
}

/// Places the order for the month with the number `n` of the account `new`. This account has no address at first.
/// Returns the path of the order.
async fn place_for_new(test_desk: &TestDesk, n: u64) -> String {
    let paid = PaidPeriod { account: "new".parse().unwrap(), ..paid_month(n) };
    test_desk.desk.place_order(&paid).await.unwrap();
    format!("/orders/{}", paid.order)
}

/// Returns the status of an order, why it waits, and the city of its address.
async fn order_state(test_desk: &TestDesk, path: &str) -> (Value, Value, Value) {
    let order = test_desk.get_as_operator(path).await.json;
    (order["status"].clone(), order["waits_for"].clone(), order["address"]["city"].clone())
}

/// Returns the expected result of [`order_state`].
fn expected_state(status: &str, waits_for: Option<&str>, city: Option<&str>) -> (Value, Value, Value) {
    (json!(status), json!(waits_for), json!(city))
}

#[tokio::test]
async fn backordered_order_keeps_the_address_that_its_customer_had_when_it_was_placed() {
    let test_desk = TestDesk::new().await;
    set_quantity(&test_desk, 101).await;
    test_desk.place_orders(0..1).await;
    let order = format!("/orders/{}", paid_month(0).order);
    assert_eq!(order_state(&test_desk, &order).await, expected_state("BACKORDERED", Some("stock"), Some("Leeds")));
    move_customer(&test_desk, "acme", "York").await;
    test_desk.place_orders(1..2).await;
    let second = format!("/orders/{}", paid_month(1).order);
    assert_eq!(order_state(&test_desk, &second).await, expected_state("BACKORDERED", Some("stock"), Some("York")));
    receive_beans(&test_desk, 1).await;
    let before = test_desk.connection.request_counts();
    assert_eq!(test_desk.fill_waiting_orders().await, 1);
    let reads = |requests: &std::collections::BTreeMap<String, u64>| requests.get("GetItem").copied();
    assert_eq!(reads(&test_desk.connection.request_counts()), reads(&before), "the customer is not read");
    assert_eq!(order_state(&test_desk, &order).await, expected_state("OPEN", None, Some("Leeds")));

    // The account corrects the address of the waiting order. When stock is reserved for the order, the order keeps the
    // corrected address.
    let account = test_desk.router_for(crate::router::test_desk::acme_caller());
    let corrected = test_desk.send_to_router(account, &format!("PUT {second}/address"), &[], &address_in("Hull")).await;
    assert_eq!((corrected.status, &corrected.json["address"]["city"]), (200, &json!("Hull")), "{}", corrected.json);
    let cancelled = test_desk.send_as_operator(&format!("POST {order}/cancel"), &json!({})).await;
    assert_eq!(cancelled.status, 200);
    assert_eq!(test_desk.fill_waiting_orders().await, 1);
    assert_eq!(order_state(&test_desk, &second).await, expected_state("OPEN", None, Some("Hull")));
    let refused = test_desk.send_as_operator(&format!("PUT {order}/address"), &address_in("Bath")).await;
    assert_eq!(
        refused.problem_line(),
        "409 conflict -: the address of an order that is CANCELLED cannot be corrected; it must be BACKORDERED, OPEN or PICKED"
    );
}

#[tokio::test]
async fn order_without_an_address_takes_that_of_its_customer_when_its_products_are_reserved() {
    let test_desk = TestDesk::new().await;
    let order = place_for_new(&test_desk, 1).await;
    assert_eq!(order_state(&test_desk, &order).await, expected_state("BACKORDERED", Some("address"), None));
    set_quantity(&test_desk, 101).await;
    let large = place_for_new(&test_desk, 2).await;
    move_customer(&test_desk, "new", "York").await;
    assert_eq!(test_desk.fill_waiting_orders().await, 1);
    assert_eq!(order_state(&test_desk, &order).await, expected_state("OPEN", None, Some("York")));
    // The products of the other order are not reserved yet. The order gets the address that the customer has when they
    // are reserved.
    assert_eq!(order_state(&test_desk, &large).await, expected_state("BACKORDERED", Some("stock"), None));
    move_customer(&test_desk, "new", "Hull").await;
    receive_beans(&test_desk, 3).await;
    assert_eq!(test_desk.fill_waiting_orders().await, 1);
    assert_eq!(order_state(&test_desk, &large).await, expected_state("OPEN", None, Some("Hull")));
    assert_eq!(order_state(&test_desk, &order).await, expected_state("OPEN", None, Some("York")));
}

#[tokio::test]
async fn order_that_waits_for_an_address_is_filled_after_it_got_its_own() {
    let test_desk = TestDesk::new().await;
    let (order, other) = (place_for_new(&test_desk, 1).await, place_for_new(&test_desk, 2).await);
    assert_eq!(test_desk.fill_waiting_orders().await, 0);
    assert_eq!(
        test_desk.desk.table.fill_tasks().await.unwrap().items,
        [],
        "only the correction requests to fill the order"
    );
    let account = test_desk.router_for(rest::Caller::of_account("new".parse().unwrap()));
    let put = format!("PUT {order}/address");
    let corrected = test_desk.send_to_router(account, &put, &[], &address_in("Hull")).await;
    assert_eq!((corrected.status, corrected.etag()), (200, "\"2\""), "{}", corrected.json);
    assert_eq!(test_desk.fill_waiting_orders().await, 1);
    assert_eq!(order_state(&test_desk, &order).await, expected_state("OPEN", None, Some("Hull")));
    assert_eq!(order_state(&test_desk, &other).await, expected_state("BACKORDERED", Some("address"), None));
    assert_eq!(test_desk.get_as_operator("/customers/new").await.json["address"], Value::Null);
}

#[tokio::test]
async fn parts_of_a_split_order_keep_its_address_and_a_replacement_gets_that_of_the_customer() {
    let test_desk = TestDesk::new().await;
    set_quantity(&test_desk, 101).await;
    test_desk.place_orders(0..1).await;
    let order = format!("/orders/{}", paid_month(0).order);
    move_customer(&test_desk, "acme", "York").await;
    let split = test_desk.send_as_operator(&format!("POST {order}/split"), &Value::Null).await;
    assert_eq!(split.status, 201, "{}", split.json);
    assert_eq!(order_state(&test_desk, &order).await, expected_state("OPEN", None, Some("Leeds")));
    let rest = format!("{order}.2");
    assert_eq!(order_state(&test_desk, &rest).await, expected_state("BACKORDERED", Some("stock"), Some("Leeds")));
    for step in ["pick", "ship"] {
        assert_eq!(test_desk.send_as_operator(&format!("POST {order}/{step}"), &json!({})).await.status, 200);
    }
    let replace = format!("POST {order}/replacements");
    let body = json!({"reason": "parcel lost"});
    let replaced = test_desk.send_as_operator_with(&replace, &[("idempotency-key", "k")], &body).await;
    assert_eq!(replaced.status, 201, "{}", replaced.json);
    let replacement = format!("{order}.3");
    assert_eq!(order_state(&test_desk, &replacement).await, expected_state("BACKORDERED", Some("stock"), Some("York")));
    move_customer(&test_desk, "acme", "Bath").await;
    receive_beans(&test_desk, 200).await;
    assert_eq!(test_desk.fill_waiting_orders().await, 2);
    assert_eq!(order_state(&test_desk, &rest).await, expected_state("OPEN", None, Some("Leeds")));
    assert_eq!(order_state(&test_desk, &replacement).await, expected_state("OPEN", None, Some("York")));
}

#[tokio::test]
async fn both_parts_of_an_order_that_waited_for_an_address_get_the_same_one() {
    let test_desk = TestDesk::new().await;
    set_quantity(&test_desk, 101).await;
    let order = place_for_new(&test_desk, 0).await;
    assert_eq!(order_state(&test_desk, &order).await, expected_state("BACKORDERED", Some("address"), None));
    move_customer(&test_desk, "new", "York").await;
    let split = test_desk.send_as_operator(&format!("POST {order}/split"), &Value::Null).await;
    assert_eq!(split.status, 201, "{}", split.json);
    move_customer(&test_desk, "new", "Bath").await;
    receive_beans(&test_desk, 200).await;
    test_desk.fill_waiting_orders().await;
    for part in [order.clone(), format!("{order}.2")] {
        assert_eq!(order_state(&test_desk, &part).await, expected_state("OPEN", None, Some("York")), "{part}");
    }
}
