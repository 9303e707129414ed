//! Tests of changes of products, SKUs and warehouses.

use serde_json::json;

use crate::router::test_desk::{TestDesk, address_body};

#[tokio::test]
async fn sku_has_exactly_the_products_of_the_last_request() {
    let test_desk = TestDesk::new().await;
    test_desk.send_as_operator("PUT /products/cups", &json!({"name": "Cups"})).await;
    let sku_body = |products: &[&str]| {
        let lines = products.iter().map(|product| json!({"product": product, "quantity": 1}));
        json!({"lines": lines.collect::<Vec<_>>()})
    };
    // Two concurrent requests replace the products of the same SKU. After that, the SKU has the product of only one
    // request, not the products of both requests.
    let (cups, beans) = (sku_body(&["cups"]), sku_body(&["beans"]));
    let (first, second) = tokio::join!(
        test_desk.send_as_operator("PUT /skus/tea", &cups),
        test_desk.send_as_operator("PUT /skus/tea", &beans)
    );
    assert_eq!((first.status, second.status), (200, 200));
    assert_eq!(test_desk.get_as_operator("/skus/tea").await.json["lines"].as_array().unwrap().len(), 1);
    for lines in [json!([]), json!([{"product": "beans", "quantity": 3}]), json!([]), json!([])] {
        let put = test_desk.send_as_operator("PUT /skus/tea", &json!({"lines": lines})).await;
        assert_eq!((put.status, &put.json["lines"]), (200, &lines), "{}", put.json);
        assert_eq!(test_desk.get_as_operator("/skus/tea").await.json, put.json);
    }
}

#[tokio::test]
async fn renamed_product_and_moved_warehouse_are_found_by_the_new_data() {
    let test_desk = TestDesk::new().await;
    let product = test_desk
        .send_as_operator_with("PUT /products/beans", &[("if-match", "\"1\"")], &json!({"name": "Dark Roast"}))
        .await;
    assert_eq!((product.status, &product.json["name"], product.etag()), (200, &json!("Dark Roast"), "\"2\""));
    assert_eq!(product.json["total_stock"], 100, "the stock does not change");
    assert_eq!(
        test_desk
            .send_as_operator_with("PUT /products/beans", &[("if-match", "\"1\"")], &json!({"name": "X"}))
            .await
            .status,
        412
    );
    assert_eq!(test_desk.get_as_operator("/products/beans").await.etag(), "\"2\"");

    let moved = test_desk.send_as_operator("PUT /warehouses/ams", &json!({"name": "Rotterdam", "region": "na"})).await;
    assert_eq!((moved.status, moved.etag()), (200, "\"2\""));
    let listed = test_desk.get_as_operator("/warehouses").await.json["data"].clone();
    assert_eq!(
        listed,
        json!([{"id": "ams", "name": "Rotterdam", "region": "na"}]),
        "the copy of the warehouse in the list of all warehouses is updated, too"
    );
    let refused = test_desk.send_as_operator("PUT /customers/acme", &address_body()).await.problem_line();
    assert!(refused.contains("the regions with a warehouse are: na"), "{refused}");
}

#[tokio::test]
async fn repeated_delivery_is_added_to_the_stock_once_and_fills_backordered_orders() {
    let test_desk = TestDesk::new().await;
    test_desk.place_orders(0..51).await;
    assert_eq!(test_desk.get_as_operator("/orders?status=BACKORDERED").await.list_field("waits_for"), ["stock"]);
    let delivery = "PUT /products/beans/deliveries/01MCCKG2G0000G000000000009";
    let body = json!({"warehouse": "ams", "quantity": 10});
    for filled in [1, 0] {
        let received = test_desk.send_as_operator(delivery, &body).await.json;
        let expected =
            json!({"id": "01MCCKG2G0000G000000000009", "product": "beans", "warehouse": "ams", "quantity": 10});
        assert_eq!((received, test_desk.fill_waiting_orders().await), (expected, filled));
    }
    for other in [json!({"warehouse": "ams", "quantity": 11}), json!({"warehouse": "ber", "quantity": 10})] {
        test_desk.send_as_operator("PUT /warehouses/ber", &json!({"name": "Berlin", "region": "eu"})).await;
        let refused = test_desk.send_as_operator(delivery, &other).await.problem_line();
        assert!(
            refused.starts_with(
                "422 refused-field delivery: the delivery 01MCCKG2G0000G000000000009 was already received"
            ),
            "{refused}"
        );
    }
    let product = test_desk.get_as_operator("/products/beans").await.json;
    assert_eq!(
        (&product["total_stock"], &product["stock"]),
        (&json!(8), &json!([{"warehouse": "ams", "quantity": 8}]))
    );
}
