//! Tests of changes of the products of an order before it is picked.

use emulator::EngineConnection;
use serde_json::{Value, json};

use crate::router::test_desk::{TestDesk, address_body, paid_month};

/// Returns a test desk with a second product and an open order of two bags of beans, and the path of the order.
async fn desk_with_open_order() -> (TestDesk, String) {
    let test_desk = TestDesk::with_connection(EngineConnection::default()).await;
    test_desk.send_as_operator("PUT /products/cups", &json!({"name": "Cups"})).await;
    let delivery = "PUT /products/cups/deliveries/01MCCKG2G0000G000000000010";
    assert_eq!(test_desk.send_as_operator(delivery, &json!({"warehouse": "ams", "quantity": 5})).await.status, 200);
    test_desk.place_orders(0..1).await;
    (test_desk, format!("/orders/{}", paid_month(0).order))
}

/// Returns the body of a request that sets the lines of an order.
fn lines_body(products: &[(&str, u32)]) -> Value {
    let line = |(product, quantity): &(&str, u32)| json!({"product": product, "quantity": quantity});
    json!({"lines": products.iter().map(line).collect::<Vec<_>>()})
}

/// Returns the total stock of a product, and its stock in the warehouse.
async fn stock_of(test_desk: &TestDesk, product: &str) -> (i64, i64) {
    let product = test_desk.get_as_operator(&format!("/products/{product}")).await.json;
    (product["total_stock"].as_i64().unwrap(), product["stock"][0]["quantity"].as_i64().unwrap())
}

#[tokio::test]
async fn changed_products_of_an_open_order_move_between_the_order_and_its_warehouse() {
    let (test_desk, order) = desk_with_open_order().await;
    let put = format!("PUT {order}/lines");
    // The columns are: the new products of the order, and the stock of beans and of cups after the change. 100 bags of
    // beans and 5 cups were delivered.
    for (products, beans, cups) in [
        (&[("beans", 3)][..], 97, 5),
        (&[("cups", 5), ("beans", 1)], 99, 0),
        (&[("cups", 2)], 100, 3),
        (&[("cups", 2)], 100, 3),
        (&[("beans", 100)], 0, 5),
        (&[("beans", 2)], 98, 5),
    ] {
        let changed = test_desk.send_as_operator(&put, &lines_body(products)).await;
        assert_eq!((changed.status, &changed.json["status"]), (200, &json!("OPEN")), "{}", changed.json);
        let stored = test_desk.get_as_operator(&order).await;
        assert_eq!((&stored.json["lines"], stored.etag()), (&changed.json["lines"], changed.etag()), "{products:?}");
        assert_eq!(stored.json["lines"].as_array().unwrap().len(), products.len());
        assert_eq!(stored.json["amount"], 1_299);
        assert_eq!(
            (stock_of(&test_desk, "beans").await, stock_of(&test_desk, "cups").await),
            ((beans, beans), (cups, cups))
        );
        let listed = test_desk.get_as_operator("/warehouses/ams/orders").await;
        assert_eq!(listed.json["data"][0]["lines"].as_array().unwrap().len(), products.len(), "the pick list");
        for product in ["beans", "cups"] {
            let is_ordered = products.iter().any(|(id, _)| *id == product);
            let orders = test_desk.get_as_operator(&format!("/products/{product}/orders")).await;
            assert_eq!(orders.json["data"].as_array().unwrap().len(), usize::from(is_ordered), "{product}");
        }
    }
    // Cancelling the order adds its current products to the stock again.
    test_desk.send_as_operator(&put, &lines_body(&[("cups", 4)])).await;
    assert_eq!(test_desk.send_as_operator(&format!("POST {order}/cancel"), &json!({})).await.status, 200);
    assert_eq!((stock_of(&test_desk, "beans").await, stock_of(&test_desk, "cups").await), ((100, 100), (5, 5)));
}

#[tokio::test]
async fn products_of_a_backordered_order_are_changed_without_stock_and_the_order_is_tried_again() {
    let (test_desk, _) = desk_with_open_order().await;
    test_desk.place_orders(1..50).await;
    assert_eq!(stock_of(&test_desk, "beans").await, (0, 0));
    test_desk.place_orders(50..51).await;
    let order = format!("/orders/{}", paid_month(50).order);
    assert_eq!(test_desk.get_as_operator(&order).await.json["waits_for"], "stock");
    let changed = test_desk.send_as_operator(&format!("PUT {order}/lines"), &lines_body(&[("cups", 2)])).await;
    assert_eq!((changed.status, &changed.json["status"]), (200, &json!("BACKORDERED")), "{}", changed.json);
    assert_eq!(stock_of(&test_desk, "cups").await, (5, 5));
    assert_eq!(test_desk.fill_waiting_orders().await, 1);
    assert_eq!(
        (test_desk.get_as_operator(&order).await.json["status"].clone(), stock_of(&test_desk, "cups").await),
        (json!("OPEN"), (3, 3))
    );
}

#[tokio::test]
async fn newer_orders_are_filled_when_an_older_one_wants_less() {
    let (test_desk, _) = desk_with_open_order().await;
    test_desk.place_orders(1..50).await;
    // The older order needs 10 bags and the newer order needs 2 bags. Then 5 bags arrive.
    test_desk.place_orders(52..53).await;
    let older = format!("/orders/{}", paid_month(52).order);
    test_desk.send_as_operator(&format!("PUT {older}/lines"), &lines_body(&[("beans", 10)])).await;
    test_desk.place_orders(56..57).await;
    let newer = format!("/orders/{}", paid_month(56).order);
    let delivery = "PUT /products/beans/deliveries/01MCCKG2G0000G000000000011";
    test_desk.send_as_operator(delivery, &json!({"warehouse": "ams", "quantity": 5})).await;
    assert_eq!(test_desk.fill_waiting_orders().await, 0, "the older order comes first");
    test_desk.send_as_operator(&format!("PUT {older}/lines"), &lines_body(&[("cups", 1)])).await;
    assert_eq!(test_desk.fill_waiting_orders().await, 2);
    for order in [older, newer] {
        assert_eq!(test_desk.get_as_operator(&order).await.json["status"], "OPEN", "{order}");
    }
}

#[tokio::test]
async fn impossible_products_are_refused_and_change_nothing() {
    let (test_desk, order) = desk_with_open_order().await;
    let put = format!("PUT {order}/lines");
    let many: Vec<String> = (0..20).map(|n| format!("p{n}")).collect();
    for product in &many {
        test_desk.send_as_operator(&format!("PUT /products/{product}"), &json!({"name": product})).await;
    }
    let many: Vec<(&str, u32)> = many.iter().map(|product| (product.as_str(), 1)).collect();
    let before = test_desk.get_as_operator(&order).await.json;
    // The columns are: the products, and the expected problem.
    for (products, expected) in [
        (&[][..], "422 refused-field lines: an order must have at least one product; cancel the order instead"),
        (&[("none", 1)], "422 refused-field product: there is no product none"),
        (&[("beans", 1), ("beans", 2)], "422 refused-field lines: the product beans is listed twice"),
        (&[("cups", 6)], "409 conflict -: the stock of cups in ams is only 5, and 6 were requested"),
        (&[("beans", 103)], "409 conflict -: the stock of beans in ams is only 98, and 101 were requested"),
        (&many, "422 refused-field lines: at most 20 products of an order can change at once, not 21"),
    ] {
        let problem = test_desk.send_as_operator(&put, &lines_body(products)).await.problem_line();
        assert!(problem.starts_with(expected), "{products:?}: {problem}");
        assert_eq!(test_desk.get_as_operator(&order).await.json, before, "{products:?}");
    }
    let stale = test_desk.send_as_operator_with(&put, &[("if-match", "\"7\"")], &lines_body(&[("cups", 1)])).await;
    assert_eq!(stale.status, 412);
    test_desk.send_as_operator(&format!("POST {order}/pick"), &json!({})).await;
    let picked = test_desk.send_as_operator(&put, &lines_body(&[("cups", 1)])).await.problem_line();
    assert_eq!(
        picked,
        "409 conflict -: the products of an order that is PICKED cannot be changed; it must be BACKORDERED or OPEN"
    );
    assert_eq!(test_desk.send_as_operator("PUT /customers/acme", &address_body()).await.status, 200);
}
