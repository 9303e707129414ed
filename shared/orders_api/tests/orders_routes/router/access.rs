//! Tests of the access rights of callers, and of the problem responses to refused requests.

use rest::{AccountActions, Caller, Role};
use serde_json::{Value, json};

use crate::router::test_desk::{TestDesk, acme_caller, address_body, employee_body, paid_month};

#[tokio::test]
async fn account_can_access_only_its_own_address_and_orders() {
    let test_desk = TestDesk::new().await;
    test_desk.place_orders(0..1).await;
    let order = format!("GET /orders/{}", paid_month(0).order);
    let other = Caller::of_account("other".parse().unwrap());
    for (request, body) in [
        ("PUT /customers/acme", address_body()),
        ("GET /customers/acme", Value::Null),
        ("GET /customers/acme/orders", Value::Null),
        (order.as_str(), Value::Null),
    ] {
        assert_eq!(
            test_desk.send_to_router(test_desk.router_for(acme_caller()), request, &[], &body).await.status,
            200,
            "{request}"
        );
        let refused = test_desk.send_to_router(test_desk.router_for(other.clone()), request, &[], &body).await;
        assert!(
            refused.problem_line().starts_with("404 not-found -: there is no such "),
            "{request}: {}",
            refused.problem_line()
        );
    }
    let missing = test_desk.send_to_router(
        test_desk.router_for(other),
        "GET /orders/2027-01-31.01JZXCVBNM0123456789ABCDEF",
        &[],
        &Value::Null,
    );
    let of_other_account = test_desk.send_to_router(
        test_desk.router_for(Caller::of_account("other".parse().unwrap())),
        &order,
        &[],
        &Value::Null,
    );
    assert_eq!(missing.await.json, of_other_account.await.json, "the response must not reveal that the order exists");
}

#[tokio::test]
async fn account_may_set_its_address_only_if_the_merchant_allows_it() {
    let test_desk = TestDesk::new().await;
    for (actions, status) in [("none", 403), ("pause,cancel", 403), ("address", 200)] {
        let actions = AccountActions::parse(actions).unwrap();
        let router = test_desk.router_for(Caller::Account { id: "acme".parse().unwrap(), actions });
        let response = test_desk.send_to_router(router, "PUT /customers/acme", &[], &address_body()).await;
        assert_eq!(response.status, status, "{}", response.problem_line());
    }
}

#[tokio::test]
async fn other_routes_need_an_operator_and_salaries_need_the_role_admin() {
    let test_desk = TestDesk::new().await;
    test_desk.place_orders(0..1).await;
    let documented = orders_api::openapi_document();
    let allowed_for_accounts =
        ["put_customer", "get_customer", "list_customer_orders", "get_order", "put_order_address"];
    for (path, methods) in documented["paths"].as_object().unwrap() {
        let path = path.replace("{account}", "acme").replace("{order}", &paid_month(0).order.to_string());
        let path = path.replace("{step}", "pick").replace("{delivery}", "01MCCKG2G0000G000000000003");
        let path = path.replace("{product}", "beans").replace("{sku}", "coffee");
        let path = path.replace("{warehouse}", "ams").replace("{employee}", "e-10");
        let path = path.replace("{list}", "regions");
        let path = match path.split_once('{') {
            Some((path, _)) => format!("{path}new"),
            None => path,
        };
        for (method, operation) in methods.as_object().unwrap() {
            let request = format!("{} {path}", method.to_uppercase());
            if allowed_for_accounts.contains(&operation["operationId"].as_str().unwrap()) {
                continue;
            }
            let refused =
                test_desk.send_to_router(test_desk.router_for(acme_caller()), &request, &[], &json!({})).await;
            assert!(refused.problem_line().starts_with("403 forbidden -: "), "{request}: {}", refused.problem_line());
            let unauthenticated =
                test_desk.send_to_router(test_desk.router_without_caller(), &request, &[], &json!({})).await;
            assert_eq!(unauthenticated.status, 401, "{request}");
        }
    }
    let hired = "GET /employees?hired_after=2026-01-01";
    for request in ["GET /employees/e-10/confidential", hired] {
        let refused = test_desk
            .send_to_router(test_desk.router_for(Caller::Operator(Role::Operator)), request, &[], &Value::Null)
            .await;
        assert!(
            refused.problem_line().starts_with("403 forbidden -: this needs the role admin"),
            "{}",
            refused.problem_line()
        );
    }
    assert_eq!(test_desk.send_as_operator(hired, &Value::Null).await.list_field("id"), ["e-10", "e-11"]);
    let details = test_desk.get_as_operator("/employees/e-10").await.json.to_string();
    assert!(!details.contains("5400000"), "{details}");
    let without_scope = test_desk
        .send_to_router(
            test_desk.router_for(Caller::Operator(Role::Operator)),
            "GET /employees/e-10",
            &[],
            &Value::Null,
        )
        .await
        .json;
    assert_eq!(without_scope["jobs"][0]["from"], Value::Null, "the first job starts on the hire date: {without_scope}");
    assert!(!without_scope.to_string().contains("2026-11-01"), "{without_scope}");
    let mut guessed_body = employee_body("Ada Lovelace");
    for salary in [5_400_000, 1] {
        guessed_body["salary"] = salary.into();
        let refused = test_desk
            .send_to_router(
                test_desk.router_for(Caller::Operator(Role::Operator)),
                "PUT /employees/e-10",
                &[],
                &guessed_body,
            )
            .await;
        assert_eq!(refused.status, 403, "the response must not reveal whether the salary is right");
    }
    assert_eq!(test_desk.get_as_operator("/employees/e-10/confidential").await.json["salary"], 5_400_000);
}

#[tokio::test]
async fn refused_requests_name_the_field_and_the_allowed_values() {
    let test_desk = TestDesk::new().await;
    test_desk.place_orders(0..1).await;
    let ship = format!("POST /orders/{}/ship", paid_month(0).order);
    let duplicate_lines = json!({"lines": [{"product": "beans", "quantity": 1}, {"product": "beans", "quantity": 1}]});
    let too_many_lines: Vec<Value> = (0..21).map(|n| json!({"product": format!("p{n}"), "quantity": 1})).collect();
    let mut unknown_region = address_body();
    unknown_region["region"] = "mars".into();
    let mut zero_salary = employee_body("Ada");
    zero_salary["salary"] = 0.into();
    let mut unknown_warehouse = employee_body("Ada");
    unknown_warehouse["assignment"]["warehouse"] = "nowhere".into();
    let mut hired_late = employee_body("Ada");
    hired_late["hired_on"] = "2027-02-01".into();
    let mut hired_early = employee_body("Ada");
    hired_early["hired_on"] = "1969-12-31".into();
    // The columns are: the request, its body, and the beginning of the expected problem: status, kind, field (`-` if
    // the problem names no field) and detail.
    for (request, body, expected_problem) in [
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
        ("GET /customers/none", Value::Null, "404 not-found -: there is no such customer"),
        ("GET /customers/none/orders", Value::Null, "404 not-found -: there is no such customer"),
        (
            "GET /employees",
            Value::Null,
            "422 refused-field name: exactly one of name, title, department and hired_after",
        ),
        ("GET /employees?name=A&title=B", Value::Null, "422 refused-field name: exactly one of"),
        ("PUT /customers/acme", json!({"name": "A"}), "400 invalid-field street: "),
        (
            "PUT /customers/acme",
            unknown_region,
            "422 refused-field region: there is no warehouse in the region mars; the regions with a warehouse are: eu",
        ),
        (
            "PUT /customers/acme/representative",
            json!({"representative": "none"}),
            "422 refused-field representative: none is not a customer representative",
        ),
        (
            "PUT /customers/none/representative",
            json!({"representative": "e-11"}),
            "404 not-found -: there is no such customer",
        ),
        (
            "PUT /skus/tea",
            json!({"lines": [{"product": "tea", "quantity": 1}]}),
            "422 refused-field product: there is no product tea",
        ),
        (
            "PUT /skus/tea",
            json!({"lines": [{"product": "beans", "quantity": 0}]}),
            "400 invalid-field lines: the quantity of the product beans must be from 1 to 1000000000",
        ),
        ("PUT /skus/tea", duplicate_lines, "422 refused-field lines: the product beans is listed twice"),
        (
            "PUT /skus/tea",
            json!({"lines": too_many_lines}),
            "400 invalid-field lines: at most 20 products can be listed, not 21",
        ),
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
        ("PUT /employees/e-13", unknown_warehouse, "422 refused-field warehouse: there is no warehouse nowhere"),
        ("PUT /employees/e-12", hired_late, "422 refused-field hired_on: must be from 1970-01-01 to 2027-01-31"),
        ("PUT /employees/e-12", hired_early, "422 refused-field hired_on: must be from 1970-01-01 to 2027-01-31"),
        ("POST /employees/e-10/leave", json!({"on": "2027-01-31"}), "400 invalid-field on: "),
        ("PUT /employees/e-12", zero_salary, "400 invalid-field salary: "),
        (
            "PUT /employees/e-10",
            employee_body("Another"),
            "409 conflict -: an employee with this id was already hired with other details",
        ),
        (
            "POST /employees/e-10/leave",
            json!({}),
            "409 conflict -: e-10 still represents customers (1 in all, such as acme)",
        ),
        ("POST /employees/none/leave", json!({}), "404 not-found -: there is no employee none"),
        (ship.as_str(), json!({}), "409 conflict -: an order that is OPEN cannot become SHIPPED"),
        (&ship.replace("/ship", "/fly"), json!({}), "400 invalid-field step: "),
        (&ship.replace("2027-01-31", "2027-01-30"), json!({}), "404 not-found -: there is no such order"),
    ] {
        if request.contains("/leave") && request.contains("e-10") {
            // A hash of the account decides whether e-10 or e-11 represents acme. Make e-10 the representative in any
            // case.
            test_desk.send_as_operator("PUT /customers/acme/representative", &json!({"representative": "e-10"})).await;
        }
        let problem = test_desk.send_as_operator(request, &body).await.problem_line();
        assert!(problem.starts_with(expected_problem), "{request}: {problem}");
    }
}

#[tokio::test]
async fn references_to_unknown_places_and_jobs_are_refused() {
    let test_desk = TestDesk::new().await;
    let with = |body: Value, pointer: &str, value: &str| {
        let mut changed = body;
        *changed.pointer_mut(pointer).unwrap() = value.into();
        changed
    };
    let assignment = json!({"assignment": employee_body("Ada")["assignment"]});
    // The columns are: the request, its body, and the expected problem.
    for (request, body, expected) in [
        (
            "PUT /customers/acme",
            with(address_body(), "/country", "zz"),
            "422 refused-field country: there is no country zz; the existing ids are: gb",
        ),
        (
            "PUT /warehouses/new",
            json!({"name": "New", "region": "mars"}),
            "422 refused-field region: there is no region mars; the existing ids are: eu, na",
        ),
        (
            "PUT /warehouses/ams",
            json!({"name": "Amsterdam", "region": "mars"}),
            "422 refused-field region: there is no region mars; the existing ids are: eu, na",
        ),
        (
            "PUT /employees/e-12",
            with(employee_body("Ada"), "/assignment/job", "boss"),
            "422 refused-field job: there is no job boss; the existing ids are: buying, sales",
        ),
        (
            "PUT /employees/e-12",
            with(employee_body("Ada"), "/assignment/department", "mars"),
            "422 refused-field department: there is no department mars; the existing ids are: buying, sales-eu, sales-na",
        ),
        (
            "PUT /employees/e-10/assignment",
            with(assignment, "/assignment/job", "boss"),
            "422 refused-field job: there is no job boss; the existing ids are: buying, sales",
        ),
    ] {
        let problem = test_desk.send_as_operator(request, &body).await.problem_line();
        assert_eq!(problem, format!("{expected}; import it with `dueday orders places`"), "{request}");
    }
    for (request, body, status) in [
        ("PUT /customers/acme", address_body(), 200),
        ("PUT /warehouses/new", json!({"name": "New", "region": "na"}), 201),
        ("PUT /employees/e-12", employee_body("Ada"), 201),
    ] {
        assert_eq!(test_desk.send_as_operator(request, &body).await.status, status, "{request}");
    }
    assert_eq!(
        test_desk.send_as_operator("PUT /customers/acme", &with(address_body(), "/region", "na")).await.status,
        200,
        "there is a warehouse in this region now"
    );
}
