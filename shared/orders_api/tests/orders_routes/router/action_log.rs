//! Tests of the action log: each request that changes something writes one entry in the payments table, and a refused or
//! repeated request writes none.

use std::collections::BTreeSet;

use billing::{ActionKind, Actor, LoggedAction};
use chrono::TimeDelta;
use clock::Clock as _;
use erasing::request_erasure;
use serde_json::{Value, json};
use store::Paging;
use testkit::sample_action;

use crate::router::test_desk::{TestDesk, address_body, employee_body, paid_month};

/// A test case: a request that changes something, and the entry of the action log that the request must write.
struct RequestCase {
    operation: &'static str,
    request: String,
    body: Value,
    /// A request to the same route that must be refused, and its body.
    refused: (String, Value),
    kind: &'static str,
    /// The account of the entry; `None` if the entry belongs to no account.
    account: Option<&'static str>,
    /// The changed fields, as the log entry states them: their values before and after the change.
    fields: (Value, Value),
}

/// Returns the body of a request that sets a shipping address in `city`.
fn address_body_of(city: &str) -> Value {
    let mut address = address_body();
    address["city"] = json!(city);
    address
}

/// Returns a case for each route that changes something.
fn request_cases() -> Vec<RequestCase> {
    let case = |operation, request: &str, body: Value, refused: Value, kind, account, fields| RequestCase {
        operation,
        request: request.to_owned(),
        body,
        refused: (request.to_owned(), refused),
        kind,
        account,
        fields,
    };
    let order = format!("/orders/{}", paid_month(0).order);
    let wrong = json!({"x": 1});
    let mut moved = employee_body("Ada Lovelace");
    moved["assignment"]["department"] = json!("sales-na");
    vec![
        case(
            "put_warehouse",
            "PUT /warehouses/nyc",
            json!({"name": "New York", "region": "na"}),
            wrong.clone(),
            "warehouse.put",
            None,
            (json!({}), json!({"name": "New York", "region": "na"})),
        ),
        case(
            "put_product",
            "PUT /products/beans",
            json!({"name": "Winter Blend"}),
            wrong.clone(),
            "product.put",
            None,
            (json!({"name": "House Blend"}), json!({"name": "Winter Blend"})),
        ),
        case(
            "receive_delivery",
            "PUT /products/beans/deliveries/01MCCKG2G0000G000000000004",
            json!({"warehouse": "ams", "quantity": 7}),
            json!({"warehouse": "none", "quantity": 7}),
            "stock.receive",
            None,
            (json!({}), json!({"product": "beans", "warehouse": "ams", "quantity": "7"})),
        ),
        case(
            "count_stock",
            "PUT /products/beans/counts/01MCCKG2G0000G000000000005",
            json!({"warehouse": "ams", "found": 105, "reason": "two more than expected"}),
            json!({"warehouse": "none", "found": 105, "reason": "two more than expected"}),
            "stock.count",
            None,
            (json!({"stock": "103"}), json!({"product": "beans", "warehouse": "ams", "stock": "105"})),
        ),
        case(
            "write_off_stock",
            "PUT /products/beans/write-offs/01MCCKG2G0000G000000000006",
            json!({"warehouse": "ams", "quantity": 5, "reason": "torn bags"}),
            json!({"warehouse": "ams", "quantity": 106, "reason": "torn bags"}),
            "stock.write_off",
            None,
            (json!({"stock": "105"}), json!({"product": "beans", "warehouse": "ams", "stock": "100"})),
        ),
        case(
            "transfer_stock",
            "PUT /products/beans/transfers/01MCCKG2G0000G000000000007",
            json!({"warehouse": "ams", "to_warehouse": "nyc", "quantity": 10}),
            json!({"warehouse": "ams", "to_warehouse": "ams", "quantity": 10}),
            "stock.transfer",
            None,
            (
                json!({"stock": "100", "to_stock": "0"}),
                json!({"product": "beans", "warehouse": "ams", "to_warehouse": "nyc", "stock": "90", "to_stock": "10"}),
            ),
        ),
        case(
            "put_sku",
            "PUT /skus/coffee",
            json!({"lines": [{"product": "beans", "quantity": 3}]}),
            json!({"lines": [{"product": "none", "quantity": 3}]}),
            "sku.put",
            None,
            (json!({"products": "2 x beans"}), json!({"products": "3 x beans"})),
        ),
        case(
            "hire_employee",
            "PUT /employees/e-12",
            employee_body("Mary Secret"),
            wrong.clone(),
            "employee.hire",
            None,
            (json!({}), json!({"job": "sales", "department": "sales-eu", "warehouse": "ams"})),
        ),
        case(
            "assign_employee",
            "PUT /employees/e-12/assignment",
            json!({"assignment": moved["assignment"]}),
            json!({"assignment": moved["assignment"], "from": "2026-01-01"}),
            "employee.change",
            None,
            (json!({"department": "sales-eu"}), json!({"department": "sales-na"})),
        ),
        case(
            "leave_employee",
            "POST /employees/e-12/leave",
            json!({}),
            wrong.clone(),
            "employee.change",
            None,
            (json!({"job": "sales", "department": "sales-na", "warehouse": "ams"}), json!({"left_on": "2027-01-31"})),
        ),
        RequestCase {
            // The account of the refused request does not exist.
            refused: ("PUT /customers/acne".to_owned(), address_body()),
            ..case(
                "put_customer",
                "PUT /customers/new",
                address_body(),
                Value::Null,
                "customer.change",
                Some("new"),
                (json!({}), json!({"representative": "e-11", "address": "changed"})),
            )
        },
        case(
            "hand_over_customer",
            "PUT /customers/new/representative",
            json!({"representative": "e-10"}),
            json!({"representative": "none"}),
            "customer.change",
            Some("new"),
            (json!({"representative": "e-11"}), json!({"representative": "e-10"})),
        ),
        case(
            "put_order_lines",
            &format!("PUT {order}/lines"),
            json!({"lines": [{"product": "beans", "quantity": 4}]}),
            json!({"lines": [{"product": "none", "quantity": 4}]}),
            "order.change",
            Some("acme"),
            (json!({"products": "2 x beans"}), json!({"products": "4 x beans"})),
        ),
        case(
            "split_order",
            &format!("POST {order}/split"),
            json!({"lines": [{"product": "beans", "quantity": 3}]}),
            json!({"lines": [{"product": "beans", "quantity": 4}]}),
            "order.change",
            Some("acme"),
            (
                json!({"products": "4 x beans"}),
                json!({"products": "3 x beans", "follow_up": format!("{}.2", paid_month(0).order)}),
            ),
        ),
        case(
            "replace_order",
            &format!("POST {order}.2/replacements"),
            json!({"reason": "parcel lost"}),
            json!({"reason": "parcel lost", "lines": [{"product": "beans", "quantity": 2}]}),
            "order.change",
            Some("acme"),
            (json!({}), json!({"products": "1 x beans", "follows": format!("{}.2", paid_month(0).order)})),
        ),
        case(
            "put_order_address",
            &format!("PUT {order}/address"),
            address_body_of("Leeds North"),
            wrong.clone(),
            "order.change",
            Some("acme"),
            (json!({}), json!({"address": "changed"})),
        ),
        case(
            "advance_orders",
            "POST /orders/advance",
            json!({"step": "pick", "orders": [{"order": paid_month(1).order}]}),
            json!({"step": "pick", "orders": []}),
            "order.change",
            Some("acme"),
            (json!({"status": "OPEN"}), json!({"status": "PICKED"})),
        ),
        RequestCase {
            refused: (format!("POST {order}/deliver"), json!({})),
            ..case(
                "advance_order",
                &format!("POST {order}/pick"),
                json!({}),
                Value::Null,
                "order.change",
                Some("acme"),
                (json!({"status": "OPEN"}), json!({"status": "PICKED"})),
            )
        },
    ]
}

impl TestDesk {
    /// Returns all entries of the action log.
    async fn logged_actions(&self) -> Vec<LoggedAction> {
        let (paging, now) = (Paging::all(), self.clock.now());
        let mut all = self.payments.get_actions_without_account(&paging, now).await.unwrap().items;
        for account in ["acme", "new", "acne"] {
            let of_account =
                self.payments.get_actions_by_account(&account.parse().unwrap(), &paging, now).await.unwrap();
            all.extend(of_account.items);
        }
        all
    }
}

#[tokio::test]
async fn each_route_that_changes_something_writes_one_entry_and_refused_and_repeated_requests_write_none() {
    let document = orders_api::openapi_document();
    let mut changing = BTreeSet::new();
    for methods in document["paths"].as_object().unwrap().values() {
        for (_, operation) in methods.as_object().unwrap().iter().filter(|(method, _)| *method != "get") {
            changing.insert(operation["operationId"].as_str().unwrap().to_owned());
        }
    }
    let cases = request_cases();
    assert_eq!(
        changing,
        cases.iter().map(|case| case.operation.to_owned()).collect(),
        "add a case for each new route that changes something"
    );
    let test_desk = TestDesk::new().await;
    test_desk.place_orders(0..2).await;
    for case in cases {
        if case.operation == "replace_order" {
            for step in ["pick", "ship"] {
                let follow_up = format!("POST /orders/{}.2/{step}", paid_month(0).order);
                assert_eq!(test_desk.send_as_operator(&follow_up, &json!({})).await.status, 200);
            }
        }
        // Without a key, a repeated request would create another follow-up order.
        let creates_an_order = ["split_order", "replace_order"].contains(&case.operation);
        let headers: &[(&str, &str)] = if creates_an_order { &[("idempotency-key", "k-1")] } else { &[] };
        let before = test_desk.logged_actions().await;
        let (request, body) = &case.refused;
        let refused = test_desk.send_as_operator_with(request, headers, body).await;
        assert!((400..500).contains(&refused.status), "{request}: {}", refused.json);
        assert_eq!(test_desk.logged_actions().await.len(), before.len(), "{request} was refused");

        let response = test_desk.send_as_operator_with(&case.request, headers, &case.body).await;
        assert!([200, 201].contains(&response.status), "{}: {}", case.request, response.json);
        let mut new = test_desk.logged_actions().await;
        new.retain(|entry| !before.contains(entry));
        let [entry] = new.as_slice() else { panic!("{}: {new:?}", case.request) };
        assert_eq!(entry.kind.to_string(), case.kind, "{}", case.request);
        assert_eq!(entry.account.as_ref().map(|account| account.as_str()), case.account, "{}", case.request);
        assert_eq!((json!(entry.before), json!(entry.after)), case.fields, "{}", case.request);
        let reason = entry.reason.as_ref().map(|reason| reason.as_str());
        assert_eq!(reason, case.body["reason"].as_str(), "{}", case.request);
        assert_eq!(entry.actor, Actor::Anonymous, "{}", case.request);
        let text = format!("{entry:?}");
        for secret in ["Secret", "5400000", "5_400_000", "2026-11-01", "High Street", "Leeds"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
        test_desk.clock.set(test_desk.clock.now() + TimeDelta::seconds(1));

        let repeated = test_desk.send_as_operator_with(&case.request, headers, &case.body).await;
        let count = before.len() + 1;
        assert!([200, 201].contains(&repeated.status), "{}: {}", case.request, repeated.json);
        assert_eq!(test_desk.logged_actions().await.len(), count, "{} repeated", case.request);
    }
}

#[tokio::test]
async fn address_of_an_unknown_or_erased_account_is_refused_and_changes_nothing() {
    let test_desk = TestDesk::new().await;
    let unknown = test_desk.send_as_operator("PUT /customers/acne", &address_body()).await;
    assert_eq!(unknown.problem_line(), "404 not-found -: there is no account acne");
    assert!(test_desk.desk.table.get_customer(&"acne".parse().unwrap()).await.unwrap().is_none());

    let (account, now) = ("new".parse().unwrap(), test_desk.clock.now());
    request_erasure(&test_desk.payments, &account, &sample_action(ActionKind::EraseAccount), now).await.unwrap();
    let erased = test_desk.send_as_operator("PUT /customers/new", &address_body()).await;
    assert_eq!(erased.problem_line(), "404 not-found -: there is no account new");
    assert!(test_desk.desk.table.get_customer(&account).await.unwrap().is_none());

    // The customer of an erased account still has a representative. The customer can still be handed over, so that the
    // representative can leave the company.
    assert_eq!(test_desk.send_as_operator("PUT /customers/acme", &address_body()).await.status, 200);
    let account = "acme".parse().unwrap();
    request_erasure(&test_desk.payments, &account, &sample_action(ActionKind::EraseAccount), now).await.unwrap();
    let refused = test_desk.send_as_operator("PUT /customers/acme", &address_body_of("York")).await;
    assert_eq!(refused.problem_line(), "404 not-found -: there is no account acme");
    for representative in ["e-10", "e-11"] {
        let body = json!({"representative": representative});
        let handed_over = test_desk.send_as_operator("PUT /customers/acme/representative", &body).await;
        assert_eq!(handed_over.json["representative"], representative, "{}", handed_over.json);
    }
}
