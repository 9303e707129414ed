//! Orders on their way, goods that arrive, and what is asked again.

use serde_json::{Value, json};

use crate::router::world::{World, address, paid, somebody};

#[tokio::test]
async fn order_goes_its_way_once_for_each_key_and_version() {
    let world = World::new().await;
    world.order(0..1).await;
    let path = format!("/orders/{}", paid(0).order);
    let read = world.get(&path).await;
    assert_eq!((read.json["status"].as_str(), read.etag()), (Some("OPEN"), "\"1\""), "{}", read.json);
    let (pick, ship) = (format!("POST {path}/pick"), format!("POST {path}/ship"));

    let headers = [("if-match", "\"1\""), ("idempotency-key", "pick-1")];
    let picked = world.ask_with(&pick, &headers, &json!({})).await;
    assert_eq!((picked.status, picked.json["status"].as_str(), picked.etag()), (200, Some("PICKED"), "\"2\""));
    assert_eq!(
        world.ask_with(&ship, &[("if-match", "\"1\"")], &json!({})).await.status,
        412,
        "of what was seen before"
    );
    assert_eq!(world.ask_with(&ship, &[("if-match", "\"2\"")], &json!({})).await.status, 200);

    // The answer was lost, and it is asked again, though the order has gone on.
    let again = world.ask_with(&pick, &headers, &json!({})).await;
    assert_eq!(
        (&again.json, again.etag(), &again.headers["idempotent-replayed"]),
        (&picked.json, "\"2\"", &"true".parse().unwrap())
    );
    let without_key = world.ask(&pick, &json!({})).await;
    assert!(without_key.problem().starts_with("409 conflict -: an order that is SHIPPED cannot become PICKED"));
    let shipped_again = world.ask_with(&ship, &[("idempotency-key", "ship-1")], &json!({})).await;
    assert_eq!((shipped_again.status, shipped_again.etag()), (200, "\"3\""), "it is that already");

    assert_eq!(world.ask(&format!("POST {path}/return"), &json!({})).await.json["status"], "RETURNED");
    let kept = world.ask_with(&ship, &[("idempotency-key", "ship-1")], &json!({})).await;
    assert_eq!(kept.json, shipped_again.json, "kept, though nothing was changed");
    assert_eq!(world.get("/products/beans").await.json["total_stock"], 100, "what was returned is there again");
}

#[tokio::test]
async fn delivery_counts_once_and_fills_what_has_waited() {
    let world = World::new().await;
    world.order(0..51).await;
    assert_eq!(world.get("/orders?status=BACKORDERED").await.listed("waits_for"), ["stock"]);
    let delivery = "PUT /products/beans/deliveries/01MCCKG2G0000G000000000009";
    let body = json!({"warehouse": "ams", "quantity": 10});
    assert_eq!(world.ask(delivery, &body).await.json, json!({"filled": 1, "still_waiting": 0, "not_looked_at": 0}));
    assert_eq!(world.ask(delivery, &body).await.json, json!({"filled": 0, "still_waiting": 0, "not_looked_at": 0}));
    for other in [json!({"warehouse": "ams", "quantity": 11}), json!({"warehouse": "ber", "quantity": 10})] {
        world.ask("PUT /warehouses/ber", &json!({"name": "Berlin", "region": "eu"})).await;
        let refused = world.ask(delivery, &other).await.problem();
        assert!(
            refused.starts_with("422 refused-field delivery: 01MCCKG2G0000G000000000009 names a delivery of"),
            "{refused}"
        );
    }
    let product = world.get("/products/beans").await.json;
    assert_eq!(
        (&product["total_stock"], &product["stock"]),
        (&json!(8), &json!([{"warehouse": "ams", "quantity": 8}]))
    );
}

#[tokio::test]
async fn sku_is_made_of_what_was_said_last_or_of_nothing() {
    let world = World::new().await;
    world.ask("PUT /products/cups", &json!({"name": "Cups"})).await;
    let made_of = |products: &[&str]| {
        let lines = products.iter().map(|product| json!({"product": product, "quantity": 1}));
        json!({"lines": lines.collect::<Vec<_>>()})
    };
    // At the same time, one of the two is last, and it is not both together.
    let (cups, beans) = (made_of(&["cups"]), made_of(&["beans"]));
    let (one, other) = tokio::join!(world.ask("PUT /skus/tea", &cups), world.ask("PUT /skus/tea", &beans));
    assert_eq!((one.status, other.status), (200, 200));
    assert_eq!(world.get("/skus/tea").await.json["lines"].as_array().unwrap().len(), 1);
    for lines in [json!([]), json!([{"product": "beans", "quantity": 3}]), json!([]), json!([])] {
        let put = world.ask("PUT /skus/tea", &json!({"lines": lines})).await;
        assert_eq!((put.status, &put.json["lines"]), (200, &lines), "{}", put.json);
        assert_eq!(world.get("/skus/tea").await.json, put.json);
    }
}

#[tokio::test]
async fn address_comes_from_the_first_order_on_and_is_not_written_over_unseen() {
    let world = World::new().await;
    let put = "PUT /customers/new";
    for (request, body) in [
        (put, address()),
        ("PUT /products/new", json!({"name": "New"})),
        ("PUT /warehouses/new", json!({"name": "New", "region": "eu"})),
    ] {
        for tag in ["\"1\"", "\"0\"", "*"] {
            assert_eq!(world.ask_with(request, &[("if-match", tag)], &body).await.status, 412, "{request} {tag}");
        }
    }
    assert_eq!(
        world.ask_with("PUT /products/beans", &[("if-match", "*")], &json!({"name": "Beans"})).await.status,
        200
    );
    assert_eq!(world.get("/customers/new").await.status, 404, "nothing was made of it");
    let order = orders::PaidPeriod { account: "new".parse().unwrap(), ..paid(1) };
    world.desk.place(&order).await.unwrap();
    let waiting = world.get("/customers/new").await;
    assert_eq!((&waiting.json["address"], waiting.etag()), (&Value::Null, "\"1\""));
    let shipped = world.ask_with(put, &[("if-match", "\"1\"")], &address()).await;
    assert_eq!((&shipped.json["orders"]["filled"], shipped.etag()), (&json!(1), "\"2\""), "{}", shipped.json);
    assert_eq!(world.ask_with(put, &[("if-match", "\"1\"")], &address()).await.status, 412);
    let same = world.ask_with(put, &[("if-match", "\"2\"")], &address()).await;
    assert_eq!((same.status, same.etag()), (200, "\"2\""), "nothing has changed");
}

#[tokio::test]
async fn names_and_regions_are_changed_and_found_by_the_new_ones() {
    let world = World::new().await;
    let product = world.ask_with("PUT /products/beans", &[("if-match", "\"1\"")], &json!({"name": "Dark Roast"})).await;
    assert_eq!((product.status, &product.json["name"], product.etag()), (200, &json!("Dark Roast"), "\"2\""));
    assert_eq!(product.json["total_stock"], 100, "its stock stays");
    assert_eq!(
        world.ask_with("PUT /products/beans", &[("if-match", "\"1\"")], &json!({"name": "X"})).await.status,
        412
    );
    assert_eq!(world.get("/products/beans").await.etag(), "\"2\"");

    let moved = world.ask("PUT /warehouses/ams", &json!({"name": "Rotterdam", "region": "nl"})).await;
    assert_eq!((moved.status, moved.etag()), (200, "\"2\""));
    let listed = world.get("/warehouses").await.json["data"].clone();
    assert_eq!(listed, json!([{"id": "ams", "name": "Rotterdam", "region": "nl"}]), "the list is a copy");
    let refused = world.ask("PUT /customers/acme", &address()).await.problem();
    assert!(refused.contains("there are some in nl"), "{refused}");
}

#[tokio::test]
async fn employee_is_hired_once_moves_and_leaves_when_nobody_is_left_alone() {
    let world = World::new().await;
    assert_eq!(world.ask("PUT /employees/e-10", &somebody("Ada Lovelace")).await.status, 200, "told again");
    world.ask("PUT /customers/acme/representative", &json!({"representative": "e-10"})).await;
    assert_eq!(world.get("/employees/e-10/customers").await.listed("account"), ["acme"]);
    assert_eq!(world.ask("POST /employees/e-10/leave", &json!({})).await.status, 409, "acme is left alone");
    world.ask("PUT /customers/acme/representative", &json!({"representative": "e-11"})).await;

    let buyer =
        json!({"assignment": {"job": "buying", "job_title": "Buyer", "department": "buying"}, "from": "2027-02-01"});
    let moved = world.ask_with("PUT /employees/e-10/assignment", &[("if-match", "\"1\"")], &buyer).await;
    assert_eq!((moved.status, moved.etag()), (200, "\"2\""), "{}", moved.json);
    assert_eq!(world.ask_with("PUT /employees/e-10/assignment", &[("if-match", "\"1\"")], &buyer).await.status, 412);
    let details = world.get("/employees/e-10").await.json;
    let jobs: Vec<_> = details["jobs"].as_array().unwrap().iter().map(|job| (&job["job"], &job["from"])).collect();
    assert_eq!(jobs, [(&json!("buying"), &json!("2027-02-01")), (&json!("sales"), &json!("2026-11-01"))]);
    assert_eq!(world.get("/employees?title=buyer").await.listed("id"), ["e-10"]);
    assert_eq!(world.get("/employees?title=account%20manager").await.listed("id"), ["e-11"]);
    assert_eq!(world.get("/employees?department=buying").await.listed("id"), ["e-10"]);
    assert_eq!(world.get("/warehouses/ams/employees").await.listed("id"), ["e-11"]);

    let before = json!({"assignment": {"job": "j", "job_title": "T", "department": "d"}, "from": "2027-01-31"});
    let refused = world.ask("PUT /employees/e-10/assignment", &before).await.problem();
    assert!(refused.starts_with("409 conflict -: e-10 began what they do on 2027-02-01"), "{refused}");
    let left = world.ask("POST /employees/e-10/leave", &json!({"on": "2027-03-01"})).await;
    assert_eq!((&left.json["left_on"], &left.json["assignment"]), (&json!("2027-03-01"), &Value::Null));
    assert_eq!(world.ask("POST /employees/e-10/leave", &json!({})).await.json, left.json, "told again");
    assert_eq!(
        world.ask("POST /employees/e-10/leave", &json!({"on": "2027-04-01"})).await.json["left_on"],
        "2027-04-01"
    );
    assert_eq!(world.get("/employees?name=ADA%20lovelace").await.listed("id"), ["e-10"], "their name stays");
}
