//! Who may do what, and what is refused with which words.

use rest::Caller;
use serde_json::{Value, json};

use crate::router::world::{World, acme, address, paid, somebody};

#[tokio::test]
async fn account_reaches_its_own_orders_and_no_others() {
    let world = World::new().await;
    world.order(0..1).await;
    let order = format!("GET /orders/{}", paid(0).order);
    let other = Caller::Account("other".parse().unwrap());
    for (request, body) in [
        ("PUT /customers/acme", address()),
        ("GET /customers/acme", Value::Null),
        ("GET /customers/acme/orders", Value::Null),
        (order.as_str(), Value::Null),
    ] {
        assert_eq!(world.send(world.of(acme()), request, &[], &body).await.status, 200, "{request}");
        let theirs = world.send(world.of(other.clone()), request, &[], &body).await;
        assert!(theirs.problem().starts_with("404 not-found -: there is no such "), "{request}: {}", theirs.problem());
    }
    let missing = world.send(world.of(other), "GET /orders/2027-01-31.01JZXCVBNM0123456789ABCDEF", &[], &Value::Null);
    let theirs = world.send(world.of(Caller::Account("other".parse().unwrap())), &order, &[], &Value::Null);
    assert_eq!(missing.await.json, theirs.await.json, "nothing tells that it is there");
}

#[tokio::test]
async fn everything_else_is_the_operators_and_salaries_are_for_a_scope_of_their_own() {
    let world = World::new().await;
    world.order(0..1).await;
    let documented = orders_api::document();
    let own = ["put_customer", "get_customer", "list_customer_orders", "get_order"];
    for (path, methods) in documented["paths"].as_object().unwrap() {
        let path = path.replace("{account}", "acme").replace("{order}", &paid(0).order.to_string());
        let path = path.replace("{step}", "pick").replace("{delivery}", "01MCCKG2G0000G000000000003");
        let path = path.replace("{product}", "beans").replace("{sku}", "coffee");
        let path = path.replace("{warehouse}", "ams").replace("{employee}", "e-10");
        for (method, operation) in methods.as_object().unwrap() {
            let request = format!("{} {path}", method.to_uppercase());
            if own.contains(&operation["operationId"].as_str().unwrap()) {
                continue;
            }
            let refused = world.send(world.of(acme()), &request, &[], &json!({})).await;
            assert!(refused.problem().starts_with("403 forbidden -: "), "{request}: {}", refused.problem());
            let nobody = world.send(world.anonymous(), &request, &[], &json!({})).await;
            assert_eq!(nobody.status, 401, "{request}");
        }
    }
    let hired = "GET /employees?hired_after=2026-01-01";
    for request in ["GET /employees/e-10/confidential", hired] {
        let refused = world.send(world.of(Caller::Operator), request, &[], &Value::Null).await;
        assert!(refused.problem().starts_with("403 forbidden -: the token lacks the scope"), "{}", refused.problem());
    }
    assert_eq!(world.ask(hired, &Value::Null).await.listed("id"), ["e-10", "e-11"]);
    let told = world.get("/employees/e-10").await.json.to_string();
    assert!(!told.contains("5400000"), "{told}");
    let without = world.send(world.of(Caller::Operator), "GET /employees/e-10", &[], &Value::Null).await.json;
    assert_eq!(without["jobs"][0]["from"], Value::Null, "it is when they were hired: {without}");
    assert!(!without.to_string().contains("2026-11-01"), "{without}");
    let mut guess = somebody("Ada Lovelace");
    for salary in [5_400_000, 1] {
        guess["salary"] = salary.into();
        let guessed = world.send(world.of(Caller::Operator), "PUT /employees/e-10", &[], &guess).await;
        assert_eq!(guessed.status, 403, "nothing tells whether it is right");
    }
    assert_eq!(world.get("/employees/e-10/confidential").await.json["salary"], 5_400_000);
}

#[tokio::test]
async fn wrong_requests_name_the_field_and_what_is_allowed() {
    let world = World::new().await;
    world.order(0..1).await;
    let ship = format!("POST /orders/{}/ship", paid(0).order);
    let twice = json!({"lines": [{"product": "beans", "quantity": 1}, {"product": "beans", "quantity": 1}]});
    let many: Vec<Value> = (0..21).map(|n| json!({"product": format!("p{n}"), "quantity": 1})).collect();
    let mut elsewhere = address();
    elsewhere["region"] = "mars".into();
    let mut free = somebody("Ada");
    free["salary"] = 0.into();
    let mut nowhere = somebody("Ada");
    nowhere["assignment"]["warehouse"] = "nowhere".into();
    for (request, body, said) in [
        ("GET /orders?status=open", Value::Null, "400 invalid-field status: "),
        ("GET /orders?from=2027-02-01&to=2027-01-01", Value::Null, "422 refused-field to: must be 2027-02-01 or later"),
        ("GET /orders?cursor=e30", Value::Null, "422 refused-field cursor: must be the next_cursor"),
        (
            "GET /orders/ranking?quarter=2027-Q5&currency=EUR",
            Value::Null,
            "400 invalid-field quarter: must be a quarter",
        ),
        ("GET /orders/ranking?quarter=2027-Q1", Value::Null, "400 invalid-field currency: "),
        ("GET /orders/1", Value::Null, "404 not-found -: there is no such order"),
        ("GET /orders/2027-02-30.01JZXCVBNM0123456789ABCDEF", Value::Null, "404 not-found -: there is no such order"),
        ("GET /products/none", Value::Null, "404 not-found -: there is no such product"),
        ("GET /products/none/orders", Value::Null, "404 not-found -: there is no such product"),
        ("GET /warehouses/none", Value::Null, "404 not-found -: there is no such warehouse"),
        ("GET /warehouses/none/employees", Value::Null, "404 not-found -: there is no such warehouse"),
        ("GET /employees/none", Value::Null, "404 not-found -: there is no such employee"),
        ("GET /employees/none/confidential", Value::Null, "404 not-found -: there is no such employee"),
        ("GET /employees/none/customers", Value::Null, "404 not-found -: there is no such employee"),
        ("GET /employees/none/orders", Value::Null, "404 not-found -: there is no such employee"),
        ("GET /customers/none", Value::Null, "404 not-found -: the order desk does not know this customer"),
        ("GET /customers/none/orders", Value::Null, "404 not-found -: the order desk does not know this customer"),
        (
            "GET /employees",
            Value::Null,
            "422 refused-field name: exactly one of name, title, department and hired_after",
        ),
        ("GET /employees?name=A&title=B", Value::Null, "422 refused-field name: exactly one of"),
        ("PUT /customers/acme", json!({"name": "A"}), "400 invalid-field street: "),
        (
            "PUT /customers/acme",
            elsewhere,
            "422 refused-field region: there is no warehouse in the region mars: there are some in eu",
        ),
        (
            "PUT /customers/acme/representative",
            json!({"representative": "none"}),
            "422 refused-field representative: none looks after no customers",
        ),
        (
            "PUT /customers/none/representative",
            json!({"representative": "e-11"}),
            "404 not-found -: the order desk does not know",
        ),
        (
            "PUT /skus/tea",
            json!({"lines": [{"product": "tea", "quantity": 1}]}),
            "422 refused-field product: there is no product tea",
        ),
        (
            "PUT /skus/tea",
            json!({"lines": [{"product": "beans", "quantity": 0}]}),
            "400 invalid-field lines: must be from 1 to 1000000000 of beans",
        ),
        ("PUT /skus/tea", twice, "422 refused-field lines: must name beans once"),
        ("PUT /skus/tea", json!({"lines": many}), "400 invalid-field lines: must be at most 20 products, not 21"),
        (
            "PUT /products/beans/deliveries/1",
            json!({"warehouse": "ams", "quantity": 1}),
            "400 invalid-field delivery: must be a ULID",
        ),
        (
            "PUT /products/beans/deliveries/01MCCKG2G0000G000000000004",
            json!({"warehouse": "ams", "quantity": 0}),
            "400 invalid-field quantity: must be from 1 to 1000000000, not 0",
        ),
        (
            "PUT /products/beans/deliveries/01MCCKG2G0000G000000000004",
            json!({"warehouse": "none", "quantity": 1}),
            "422 refused-field warehouse: there is no warehouse none",
        ),
        (
            "PUT /products/none/deliveries/01MCCKG2G0000G000000000004",
            json!({"warehouse": "ams", "quantity": 1}),
            "404 not-found -: there is no such product",
        ),
        ("PUT /employees/e-13", nowhere, "422 refused-field warehouse: there is no warehouse nowhere"),
        ("PUT /employees/e-12", free, "400 invalid-field salary: "),
        (
            "PUT /employees/e-10",
            somebody("Another"),
            "409 conflict -: there is an employee of this id, who was hired otherwise",
        ),
        ("POST /employees/e-10/leave", json!({}), "409 conflict -: e-10 looks after "),
        ("POST /employees/none/leave", json!({}), "404 not-found -: there is no employee none"),
        (ship.as_str(), json!({}), "409 conflict -: an order that is OPEN cannot become SHIPPED"),
        (&ship.replace("/ship", "/fly"), json!({}), "400 invalid-field step: "),
        (&ship.replace("2027-01-31", "2027-01-30"), json!({}), "404 not-found -: there is no order 2027-01-30."),
    ] {
        if request.contains("/leave") && request.contains("e-10") {
            // Whoever of the two looks after acme.
            world.ask("PUT /customers/acme/representative", &json!({"representative": "e-10"})).await;
        }
        let problem = world.ask(request, &body).await.problem();
        assert!(problem.starts_with(said), "{request}: {problem}");
    }
}
