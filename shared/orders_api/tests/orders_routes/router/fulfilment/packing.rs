//! Tests of the list of a warehouse's orders, of the packing slips, and of the steps up to the shipment.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use emulator::EngineConnection;
use rest::{AccountActions, Caller, Role};
use serde_json::{Value, json};

use crate::router::test_desk::{TestDesk, acme_caller, address_body, connection_with_unprocessed_keys, paid_month};

/// Returns the id of the order for the paid month with the number `n`.
fn order_id(n: u64) -> String {
    paid_month(n).order.to_string()
}

#[tokio::test]
async fn warehouse_lists_its_open_orders_with_products_and_addresses_in_both_directions() {
    let test_desk = TestDesk::new().await;
    test_desk.place_orders(0..9).await;
    let path = "GET /warehouses/ams/orders";
    let all = test_desk.send_as_operator(path, &Value::Null).await;
    assert_eq!(all.status, 200, "{}", all.json);
    let mut expected: Vec<String> = (0..9).map(order_id).collect();
    expected.sort_by_key(|order| {
        let paid = (0..9).map(paid_month).find(|paid| paid.order.to_string() == *order).unwrap();
        (paid.paid_at, order.clone())
    });
    assert_eq!(all.list_field("id"), expected);
    let first = &all.json["data"][0];
    assert_eq!(first["address"], address_body());
    assert_eq!(first["lines"], json!([{"product": "beans", "name": "House Blend", "quantity": 2}]));

    for (sort, limit) in [("oldest_first", 1), ("oldest_first", 4), ("newest_first", 2), ("newest_first", 100)] {
        let (mut listed, mut cursor) = (Vec::new(), String::new());
        loop {
            let request = format!("{path}?sort={sort}&limit={limit}{cursor}");
            let page = test_desk.send_as_operator(&request, &Value::Null).await;
            listed.extend(page.list_field("id"));
            let Some(next) = page.json["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        let expected: Vec<String> =
            if sort == "newest_first" { expected.iter().rev().cloned().collect() } else { expected.clone() };
        assert_eq!(listed, expected, "{sort}, {limit} at once");
    }
}

#[tokio::test]
async fn order_whose_own_item_is_missing_is_reported_to_its_packers() {
    let test_desk = TestDesk::new().await;
    test_desk.place_orders(0..3).await;
    let key = |name: &str, value: String| (name.to_owned(), AttributeValue::S(value));
    let own_item = HashMap::from([key("PK", format!("ORDER#{}", order_id(1))), key("SK", "CUSTOMER#acme".to_owned())]);
    let delete = test_desk.desk.table.client().delete_item().table_name("dueday-orders").set_key(Some(own_item));
    delete.condition_expression("attribute_exists(PK)").send().await.unwrap();
    let listed = test_desk.get_as_operator("/warehouses/ams/orders").await;
    assert_eq!(listed.list_field("id").len(), 2);
    let unreadable = listed.json["unreadable"].to_string();
    assert!(unreadable.contains(&order_id(1)) && unreadable.contains("its own item does not exist"), "{unreadable}");
}

#[tokio::test]
async fn packing_slips_have_a_page_with_code_address_and_products_for_each_order() {
    let test_desk = TestDesk::new().await;
    test_desk.place_orders(0..3).await;
    let router = test_desk.router_for(Caller::Operator(Role::Admin));
    let page = test_desk.send_for_text(router, "GET /warehouses/ams/orders?limit=2", "text/html").await;
    assert_eq!(page.matches("<section>").count(), 2);
    assert_eq!(page.matches("<svg").count(), 2);
    assert!(!page.contains("<?xml"), "HTML contains no XML declaration");
    assert!(
        page.contains(&order_id(0))
            && page.contains("1 High Street<br>Unit 4<br>LS1 Leeds, West Yorkshire<br>")
            && page.contains("House Blend")
    );
    assert!(page.contains("next page</a>"), "there are more orders");
}

/// Returns the text in the QR code `svg`. The dark modules (squares) of the image are rectangles in the form `M8
/// 8h4v4H8V8`.
fn decode_qr_code(svg: &str) -> String {
    let size: usize = svg.split("width=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap().parse().unwrap();
    let path = svg.split(" d=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    let mut is_dark = vec![false; size * size];
    for rectangle in path.split('M').skip(1) {
        let numbers = rectangle.split(|letter: char| !letter.is_ascii_digit()).filter(|text| !text.is_empty());
        let numbers: Vec<usize> = numbers.map(|number| number.parse().unwrap()).collect();
        let [left, top, width, height, ..] = numbers[..] else { panic!("{rectangle}") };
        for y in top..top + height {
            is_dark[y * size + left..][..width].fill(true);
        }
    }
    let grey = |x, y| if is_dark[y * size + x] { 0 } else { 255 };
    let mut image = rqrr::PreparedImage::prepare_from_greyscale(size, size, grey);
    let codes = image.detect_grids();
    let [code] = codes.as_slice() else { panic!("{} codes", codes.len()) };
    code.decode().unwrap().1
}

#[tokio::test]
async fn code_on_each_packing_slip_is_the_number_of_its_order() {
    let test_desk = TestDesk::new().await;
    test_desk.place_orders(0..3).await;
    let router = test_desk.router_for(Caller::Operator(Role::Admin));
    let page = test_desk.send_for_text(router, "GET /warehouses/ams/orders", "text/html").await;
    let slips: Vec<&str> = page.split("<section>").skip(1).collect();
    assert_eq!(slips.len(), 3);
    let mut codes = Vec::new();
    for slip in slips {
        let svg = slip.split("<svg").nth(1).and_then(|rest| rest.split("</svg>").next()).unwrap();
        let code = decode_qr_code(svg);
        assert!(slip.replace(svg, "").contains(&code), "{code}: the slip also contains the number as text");
        codes.push(code);
    }
    codes.sort();
    assert_eq!(codes, [0, 1, 2].map(order_id));
}

#[tokio::test]
async fn list_with_more_than_a_hundred_keys_is_complete_although_keys_stay_unprocessed() {
    let test_desk = TestDesk::with_connection(connection_with_unprocessed_keys(2)).await;
    let delivery = "PUT /products/beans/deliveries/01MCCKG2G0000G000000000010";
    let body = json!({"warehouse": "ams", "quantity": 100});
    assert_eq!(test_desk.send_as_operator(delivery, &body).await.status, 200);
    test_desk.place_orders(0..100).await;
    let batches = || test_desk.connection.request_counts().get("BatchGetItem").copied().unwrap_or_default();
    // The list reads 101 keys: those of 100 orders and of their product. In the first pass of the loop, half of the
    // keys of two requests stay unprocessed, so two more requests are needed.
    for expected in [4, 2] {
        let before = batches();
        let page = test_desk.send_as_operator("GET /warehouses/ams/orders?limit=100", &Value::Null).await;
        let mut ids = page.list_field("id");
        ids.sort();
        let mut all: Vec<String> = (0..100).map(order_id).collect();
        all.sort();
        assert_eq!(ids, all);
        let orders = page.json["data"].as_array().unwrap();
        assert!(orders.iter().all(|order| order["lines"][0]["name"] == "House Blend"), "{}", orders[0]);
        assert_eq!(batches() - before, expected);
    }
}

#[tokio::test]
async fn list_of_a_warehouse_needs_one_query_and_one_batch_read() {
    let test_desk = TestDesk::with_connection(EngineConnection::recording_permissions()).await;
    test_desk.place_orders(0..40).await;
    let before = test_desk.connection.request_counts();
    let page = test_desk.send_as_operator("GET /warehouses/ams/orders?limit=40", &Value::Null).await;
    assert_eq!(page.list_field("id").len(), 40);
    let mut requests = test_desk.connection.request_counts();
    requests.retain(|operation, count| {
        *count -= before.get(operation).copied().unwrap_or_default();
        *count > 0
    });
    let requests: Vec<(String, u64)> = requests.into_iter().collect();
    assert_eq!(requests, [("BatchGetItem".to_owned(), 1), ("Query".to_owned(), 1)]);
}

#[tokio::test]
async fn many_orders_take_a_step_at_once_and_each_refusal_names_its_problem() {
    let test_desk = TestDesk::new().await;
    test_desk.place_orders(0..3).await;
    let missing = "2027-01-31.01JZXCVBNM0123456789ABCDEF";
    let pick = json!({"step": "pick", "orders": [{"order": order_id(0)}, {"order": missing}, {"order": order_id(1)}]});
    for _ in 0..2 {
        let picked = test_desk.send_as_operator("POST /orders/advance", &pick).await;
        assert_eq!((picked.status, &picked.json["failed"]), (200, &json!(1)), "{}", picked.json);
        assert_eq!(picked.list_field("order"), [order_id(0), missing.to_owned(), order_id(1)]);
        assert_eq!(
            (&picked.json["data"][0]["status"], &picked.json["data"][2]["status"]),
            (&json!("PICKED"), &json!("PICKED"))
        );
        assert_eq!(picked.json["data"][1]["problem"]["status"], 404);
    }
    let parcel = |n: u64, number: &str| json!({"order": order_id(n), "carrier": "Post", "tracking_number": number});
    let ship = json!({"step": "ship", "orders": [parcel(0, "RR1"), parcel(2, "RR2")]});
    let shipped = test_desk.send_as_operator("POST /orders/advance", &ship).await;
    assert_eq!(shipped.json["data"][1]["problem"]["detail"], "an order that is OPEN cannot become SHIPPED");
    let first = test_desk.send_as_operator(&format!("GET /orders/{}", order_id(0)), &Value::Null).await;
    let expected = json!(["SHIPPED", "2027-01-31T12:00:00Z", "Post", "RR1"]);
    let fields = ["status", "shipped_at", "carrier", "tracking_number"].map(|name| first.json[name].clone());
    assert_eq!(json!(fields), expected);

    let other = json!({"step": "ship", "orders": [parcel(0, "RR1"), parcel(0, "RR9")]});
    let other_number = json!({"step": "ship", "orders": [parcel(0, "RR9")]});
    let refused = test_desk.send_as_operator("POST /orders/advance", &other_number).await;
    let problem = &refused.json["data"][0]["problem"]["detail"];
    assert_eq!(
        *problem,
        format!("the order {} was shipped already, with another carrier or tracking number", order_id(0))
    );
    for (body, problem) in [
        (other, "must contain the order"),
        (
            json!({"step": "pick", "orders": [{"order": order_id(1).replace("-31.", "-32.")}]}),
            "orders.order: must be an order id",
        ),
        (json!({"step": "pick", "orders": []}), "orders: must contain from 1 to 100 orders, not 0"),
        (
            json!({"step": "pick", "orders": [parcel(1, "RR1")]}),
            "orders: carrier and tracking_number are only for the step ship",
        ),
        (json!({"step": "cancel", "orders": [{"order": order_id(1)}]}), "step: "),
    ] {
        let refused = test_desk.send_as_operator("POST /orders/advance", &body).await;
        assert!(
            [400, 422].contains(&refused.status) && refused.problem_line().contains(problem),
            "{}",
            refused.problem_line()
        );
    }
    let refused =
        test_desk.send_as_operator(&format!("POST /orders/{}/deliver", order_id(0)), &json!({"carrier": "Post"})).await;
    assert_eq!(refused.problem_line(), "422 refused-field carrier: is only for the step ship");
}

#[tokio::test]
async fn order_keeps_its_address_until_it_is_corrected_before_the_shipment() {
    let test_desk = TestDesk::new().await;
    test_desk.place_orders(0..1).await;
    let of_city = |city: &str| {
        let mut address = address_body();
        address["city"] = json!(city);
        address
    };
    assert_eq!(test_desk.send_as_operator("PUT /customers/acme", &of_city("York")).await.status, 200);
    test_desk.place_orders(1..2).await;
    let order = format!("/orders/{}", order_id(0));
    let city = async || {
        test_desk.send_as_operator(&format!("GET {order}"), &Value::Null).await.json["address"]["city"].clone()
    };
    assert_eq!(city().await, "Leeds", "the order was placed before the customer moved");
    let second = test_desk.send_as_operator(&format!("GET /orders/{}", order_id(1)), &Value::Null).await;
    assert_eq!(second.json["address"]["city"], "York");

    let put = format!("PUT {order}/address");
    let acme = test_desk.router_for(acme_caller());
    let other = test_desk.router_for(Caller::of_account("other".parse().unwrap()));
    let forbidden = AccountActions::parse("none").unwrap();
    let forbidden = test_desk.router_for(Caller::Account { id: "acme".parse().unwrap(), actions: forbidden });
    assert_eq!(test_desk.send_to_router(other, &put, &[], &of_city("Hull")).await.status, 404);
    assert_eq!(test_desk.send_to_router(forbidden, &put, &[], &of_city("Hull")).await.status, 403);
    assert_eq!(test_desk.send_to_router(acme.clone(), &put, &[], &of_city("Hull")).await.status, 200);
    assert_eq!(city().await, "Hull");
    assert_eq!(test_desk.send_as_operator(&format!("POST {order}/pick"), &json!({})).await.status, 200);
    let late = test_desk.send_to_router(acme, &put, &[], &of_city("Bath")).await;
    assert_eq!(
        late.problem_line(),
        "409 conflict -: the order is picked already; ask the merchant to correct its address"
    );
    assert_eq!(test_desk.send_as_operator(&put, &of_city("Bath")).await.status, 200);
    assert_eq!(test_desk.send_as_operator(&format!("POST {order}/ship"), &json!({})).await.status, 200);
    let shipped = test_desk.send_as_operator(&put, &of_city("Hull")).await;
    assert_eq!(shipped.status, 409, "{}", shipped.problem_line());
    assert_eq!(city().await, "Bath");
}

#[tokio::test]
async fn saved_response_contains_no_address() {
    let test_desk = TestDesk::new().await;
    test_desk.place_orders(0..1).await;
    let (pick, key) = (format!("POST /orders/{}/pick", order_id(0)), [("idempotency-key", "k")]);
    let first = test_desk.send_as_operator_with(&pick, &key, &json!({})).await;
    assert_eq!(first.json["address"], address_body());
    let repeated = test_desk.send_as_operator_with(&pick, &key, &json!({})).await;
    assert_eq!((repeated.status, &repeated.json["address"]), (200, &Value::Null));
    assert_eq!(repeated.json["status"], "PICKED");
}

#[tokio::test]
async fn addresses_are_removed_from_all_orders_except_those_that_must_be_shipped() {
    let test_desk = TestDesk::new().await;
    test_desk.place_orders(0..2).await;
    let order = format!("/orders/{}", order_id(0));
    for (step, body) in [("pick", json!({})), ("ship", json!({"carrier": "Post", "tracking_number": "RR1"}))] {
        assert_eq!(test_desk.send_as_operator(&format!("POST {order}/{step}"), &body).await.status, 200);
    }
    let (table, account) = (&test_desk.desk.table, "acme".parse().unwrap());
    assert_eq!(table.remove_addresses(&account).await.unwrap(), 2, "the customer and the shipped order");
    assert_eq!(table.remove_addresses(&account).await.unwrap(), 0);
    let shipped = test_desk.send_as_operator(&format!("GET {order}"), &Value::Null).await.json;
    assert_eq!((&shipped["address"], &shipped["tracking_number"]), (&Value::Null, &Value::Null));
    assert_eq!(shipped["shipped_at"], "2027-01-31T12:00:00Z");
    let open = test_desk.send_as_operator(&format!("GET /orders/{}", order_id(1)), &Value::Null).await.json;
    assert_eq!(open["address"], address_body(), "it must still be shipped");
}
