//! Tests of changes of orders, products, SKUs and warehouses, and of repeated requests.

use serde_json::{Value, json};

use crate::router::test_desk::{TestDesk, address_body, paid_month};

#[tokio::test]
async fn order_advances_once_for_each_idempotency_key_and_version() {
    let test_desk = TestDesk::new().await;
    test_desk.place_orders(0..1).await;
    let path = format!("/orders/{}", paid_month(0).order);
    let read = test_desk.get_as_operator(&path).await;
    assert_eq!((read.json["status"].as_str(), read.etag()), (Some("OPEN"), "\"1\""), "{}", read.json);
    let (pick, ship) = (format!("POST {path}/pick"), format!("POST {path}/ship"));

    let headers = [("if-match", "\"1\""), ("idempotency-key", "pick-1")];
    let picked = test_desk.send_as_operator_with(&pick, &headers, &json!({})).await;
    assert_eq!((picked.status, picked.json["status"].as_str(), picked.etag()), (200, Some("PICKED"), "\"2\""));
    assert_eq!(
        test_desk.send_as_operator_with(&ship, &[("if-match", "\"1\"")], &json!({})).await.status,
        412,
        "version 1 is no longer the current version"
    );
    assert_eq!(test_desk.send_as_operator_with(&ship, &[("if-match", "\"2\"")], &json!({})).await.status, 200);

    // A client that did not get the response repeats its request. The order has already advanced to the next status.
    let replayed = test_desk.send_as_operator_with(&pick, &headers, &json!({})).await;
    let mut expected = picked.json.clone();
    expected["address"] = Value::Null;
    assert_eq!(
        (&replayed.json, replayed.etag(), &replayed.headers["idempotent-replayed"]),
        (&expected, "\"2\"", &"true".parse().unwrap())
    );
    let without_key = test_desk.send_as_operator(&pick, &json!({})).await;
    assert!(without_key.problem_line().starts_with("409 conflict -: an order that is SHIPPED cannot become PICKED"));
    let shipped_again = test_desk.send_as_operator_with(&ship, &[("idempotency-key", "ship-1")], &json!({})).await;
    assert_eq!((shipped_again.status, shipped_again.etag()), (200, "\"3\""), "the order is SHIPPED already");

    assert_eq!(test_desk.send_as_operator(&format!("POST {path}/return"), &json!({})).await.json["status"], "RETURNED");
    let saved = test_desk.send_as_operator_with(&ship, &[("idempotency-key", "ship-1")], &json!({})).await;
    let mut expected = shipped_again.json.clone();
    expected["address"] = Value::Null;
    assert_eq!(saved.json, expected, "the response is saved, though the order did not change");
    assert_eq!(
        test_desk.get_as_operator("/products/beans").await.json["total_stock"],
        100,
        "the products of the returned order are in stock again"
    );
}

#[tokio::test]
async fn if_match_refuses_changes_of_a_version_that_the_client_has_not_seen() {
    let test_desk = TestDesk::new().await;
    let put = "PUT /customers/new";
    for (request, body) in [
        (put, address_body()),
        ("PUT /products/new", json!({"name": "New"})),
        ("PUT /warehouses/new", json!({"name": "New", "region": "eu"})),
    ] {
        for tag in ["\"1\"", "\"0\"", "*"] {
            assert_eq!(
                test_desk.send_as_operator_with(request, &[("if-match", tag)], &body).await.status,
                412,
                "{request} {tag}"
            );
        }
    }
    assert_eq!(
        test_desk
            .send_as_operator_with("PUT /products/beans", &[("if-match", "*")], &json!({"name": "Beans"}))
            .await
            .status,
        200
    );
    assert_eq!(
        test_desk.get_as_operator("/customers/new").await.status,
        404,
        "the refused request did not create the customer"
    );
    let order = orders::PaidPeriod { account: "new".parse().unwrap(), ..paid_month(1) };
    test_desk.desk.place_order(&order).await.unwrap();
    let waiting = test_desk.get_as_operator("/customers/new").await;
    assert_eq!((&waiting.json["address"], waiting.etag()), (&Value::Null, "\"1\""));
    let shipped = test_desk.send_as_operator_with(put, &[("if-match", "\"1\"")], &address_body()).await;
    assert_eq!((shipped.status, shipped.etag()), (200, "\"2\""), "{}", shipped.json);
    assert_eq!(test_desk.fill_waiting_orders().await, 1);
    assert_eq!(test_desk.send_as_operator_with(put, &[("if-match", "\"1\"")], &address_body()).await.status, 412);
    let same = test_desk.send_as_operator_with(put, &[("if-match", "\"2\"")], &address_body()).await;
    assert_eq!((same.status, same.etag()), (200, "\"2\""), "the address is the same, so the version is, too");
}
