//! Tests of follow-up orders: orders that are split, and products that are sent again.

use serde_json::{Value, json};

use crate::router::test_desk::{TestDesk, TestResponse, address_body, paid_month};

/// The header with the idempotency key, which a request for a replacement requires.
const IDEMPOTENCY_KEY_HEADER: [(&str, &str); 1] = [("idempotency-key", "r-1")];

/// Returns the JSON list of lines with these products and quantities.
fn lines(products: &[(&str, u32)]) -> Value {
    let line = |(product, quantity): &(&str, u32)| json!({"product": product, "quantity": quantity});
    products.iter().map(line).collect()
}

/// Creates a test desk with 100 bags of beans and `cups` cups, and places an order of three bags and two cups. Returns
/// the test desk and the path of the order.
async fn desk_with_order(cups: u32) -> (TestDesk, String) {
    let test_desk = TestDesk::new().await;
    test_desk.send_as_operator("PUT /products/cups", &json!({"name": "Cups"})).await;
    if cups > 0 {
        receive_delivery(&test_desk, "cups", cups, 10).await;
    }
    let sku = json!({"lines": lines(&[("beans", 3), ("cups", 2)])});
    assert_eq!(test_desk.send_as_operator("PUT /skus/coffee", &sku).await.status, 200);
    test_desk.place_orders(0..1).await;
    (test_desk, format!("/orders/{}", paid_month(0).order))
}

/// Adds a delivery of a product to the stock. `delivery` is the end of the identifier of the delivery.
async fn receive_delivery(test_desk: &TestDesk, product: &str, quantity: u32, delivery: u32) {
    let put = format!("PUT /products/{product}/deliveries/01MCCKG2G0000G0000000000{delivery}");
    assert_eq!(test_desk.send_as_operator(&put, &json!({"warehouse": "ams", "quantity": quantity})).await.status, 200);
}

/// Returns the stock of beans and of cups. Checks that the total stock is the stock in the warehouse.
async fn stock_of_beans_and_cups(test_desk: &TestDesk) -> (i64, i64) {
    let mut stock = Vec::new();
    for product in ["beans", "cups"] {
        let product = test_desk.get_as_operator(&format!("/products/{product}")).await.json;
        let in_warehouse = product["stock"][0]["quantity"].as_i64().unwrap_or_default();
        assert_eq!(product["total_stock"], in_warehouse);
        stock.push(in_warehouse);
    }
    (stock[0], stock[1])
}

/// Splits an order, which keeps the products `keep`.
async fn split_order(test_desk: &TestDesk, order: &str, keep: &[(&str, u32)]) -> TestResponse {
    test_desk.send_as_operator(&format!("POST {order}/split"), &json!({"lines": lines(keep)})).await
}

/// Advances an order by `steps`.
async fn advance(test_desk: &TestDesk, order: &str, steps: &[&str]) {
    for step in steps {
        let advanced = test_desk.send_as_operator(&format!("POST {order}/{step}"), &json!({})).await;
        assert_eq!(advanced.status, 200, "{order} {step}: {}", advanced.json);
    }
}

#[tokio::test]
async fn backordered_order_keeps_what_is_in_stock_and_the_remainder_waits() {
    let (test_desk, order) = desk_with_order(1).await;
    assert_eq!(test_desk.get_as_operator(&order).await.json["status"], "BACKORDERED");
    let split = test_desk.send_as_operator(&format!("POST {order}/split"), &Value::Null).await;
    let (kept, rest) = (&split.json["order"], &split.json["follow_up"]);
    assert_eq!((split.status, split.etag()), (201, "\"2\""), "{}", split.json);
    assert_eq!((&kept["status"], &kept["lines"]), (&json!("OPEN"), &lines(&[("beans", 3), ("cups", 1)])));
    assert_eq!((&kept["follow_ups"], &kept["amount"], &kept["follows"]), (&json!(1), &json!(1_299), &Value::Null));
    assert_eq!((&rest["status"], &rest["lines"]), (&json!("BACKORDERED"), &lines(&[("cups", 1)])));
    assert_eq!((&rest["amount"], &rest["reason"]), (&json!(0), &json!("remainder")));
    assert_eq!((&rest["follows"], &rest["id"]), (&kept["id"], &json!(format!("{}.2", paid_month(0).order))));
    assert_eq!((&rest["placed_at"], &rest["representative"]), (&kept["placed_at"], &kept["representative"]));
    assert_eq!(stock_of_beans_and_cups(&test_desk).await, (97, 0));
    let follow_up = format!("{order}.2");
    let id = rest["id"].as_str().unwrap().parse().unwrap();
    let (stored, _) = test_desk.desk.table.get_order(id).await.unwrap().unwrap();
    let missing: Vec<String> =
        stored.missing.iter().map(|line| format!("{} {}", line.product, line.quantity)).collect();
    assert_eq!(missing, ["cups 1"], "the order has taken the last cup");
    assert_eq!(test_desk.get_as_operator(&order).await.json, *kept);
    assert_eq!(test_desk.get_as_operator(&follow_up).await.json, *rest);
    // The follow-up order is filled when its product arrives, and is then picked, shipped, delivered and returned like
    // any order.
    receive_delivery(&test_desk, "cups", 1, 11).await;
    assert_eq!(test_desk.fill_waiting_orders().await, 1);
    advance(&test_desk, &follow_up, &["pick", "ship", "deliver", "return"]).await;
    advance(&test_desk, &order, &["pick", "ship"]).await;
    assert_eq!(stock_of_beans_and_cups(&test_desk).await, (97, 1));
}

#[tokio::test]
async fn stock_of_an_open_order_stays_reserved_and_each_part_restores_its_own_pieces() {
    // The columns are: the products that the order keeps, the products of the follow-up order, the stock (beans, cups)
    // after the order is cancelled, and the stock after the follow-up order is cancelled, too. The order has three of
    // 100 bags and two of five cups.
    for (keep, rest, after_order, after_rest) in [
        (&[("beans", 1)][..], &[("beans", 2), ("cups", 2)][..], (98, 3), (100, 5)),
        (&[("cups", 2)], &[("beans", 3)], (97, 5), (100, 5)),
        (&[("cups", 1), ("beans", 3)], &[("cups", 1)], (100, 4), (100, 5)),
    ] {
        let (test_desk, order) = desk_with_order(5).await;
        let split = split_order(&test_desk, &order, keep).await;
        let follow_up = format!("{order}.2");
        assert_eq!(split.status, 201, "{}", split.json);
        for part in ["order", "follow_up"] {
            assert_eq!((&split.json[part]["status"], &split.json[part]["warehouse"]), (&json!("OPEN"), &json!("ams")));
            assert_eq!(split.json[part]["address"]["city"], "Leeds");
        }
        assert_eq!(split.json["follow_up"]["lines"], lines(rest));
        assert_eq!(stock_of_beans_and_cups(&test_desk).await, (97, 3));
        let picked = test_desk.get_as_operator("/warehouses/ams/orders").await.list_field("id");
        assert_eq!(picked.len(), 2, "{picked:?}");
        for product in ["beans", "cups"] {
            let expected = keep.iter().chain(rest).filter(|(id, _)| *id == product).count();
            let orders = test_desk.get_as_operator(&format!("/products/{product}/orders")).await;
            assert_eq!(orders.json["data"].as_array().unwrap().len(), expected, "{product}");
        }
        advance(&test_desk, &order, &["cancel"]).await;
        assert_eq!(stock_of_beans_and_cups(&test_desk).await, after_order, "{keep:?}");
        advance(&test_desk, &follow_up, &["cancel"]).await;
        assert_eq!(stock_of_beans_and_cups(&test_desk).await, after_rest, "{keep:?}");
    }
}

#[tokio::test]
async fn follow_up_can_be_split_and_replaced_and_its_main_order_numbers_the_new_orders() {
    let (test_desk, order) = desk_with_order(9).await;
    assert_eq!(split_order(&test_desk, &order, &[("beans", 2)]).await.status, 201);
    let second = split_order(&test_desk, &format!("{order}.2"), &[("beans", 1)]).await;
    assert_eq!(second.json["follow_up"]["id"], format!("{}.3", paid_month(0).order), "{}", second.json);
    assert_eq!(second.json["follow_up"]["follows"], format!("{}.2", paid_month(0).order));
    assert_eq!((&second.json["order"]["follow_ups"], second.etag()), (&json!(0), "\"2\""));
    advance(&test_desk, &format!("{order}.3"), &["pick", "ship"]).await;
    let replace = format!("POST {order}.3/replacements");
    let body = json!({"reason": "parcel lost", "lines": lines(&[("cups", 1)])});
    let replaced = test_desk.send_as_operator_with(&replace, &IDEMPOTENCY_KEY_HEADER, &body).await;
    assert_eq!(replaced.status, 201, "{}", replaced.json);
    let new = &replaced.json["follow_up"];
    assert_eq!((&new["status"], &new["reason"], &new["amount"]), (&json!("OPEN"), &json!("replacement"), &json!(0)));
    assert_eq!(new["id"], format!("{}.4", paid_month(0).order));
    let main = test_desk.get_as_operator(&order).await;
    assert_eq!((&main.json["follow_ups"], main.etag()), (&json!(3), "\"4\""));
    // Two cups were shipped for the month, and one cup was sent again.
    assert_eq!(stock_of_beans_and_cups(&test_desk).await, (97, 6));
    let listed = test_desk.get_as_operator("/customers/acme/orders").await.list_field("id");
    let ids: Vec<String> = ["", ".2", ".3", ".4"].map(|part| format!("{}{part}", paid_month(0).order)).into();
    assert_eq!(std::collections::BTreeSet::from_iter(listed), std::collections::BTreeSet::from_iter(ids));
}

#[tokio::test]
async fn list_pages_continue_after_a_follow_up() {
    let (test_desk, order) = desk_with_order(9).await;
    for kept in [("beans", 2), ("beans", 1)] {
        assert_eq!(split_order(&test_desk, &order, &[kept]).await.status, 201);
    }
    for list in ["/orders", "/customers/acme/orders", "/products/beans/orders", "/warehouses/ams/orders"] {
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = test_desk.get_as_operator(&format!("{list}?limit=1{cursor}")).await;
            assert_eq!(page.status, 200, "{list}: {}", page.json);
            let field = if list.starts_with("/products") { "order" } else { "id" };
            found.extend(page.list_field(if page.json["data"][0][field].is_null() { "id" } else { field }));
            match page.json["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        found.sort();
        let expected = ["", ".2", ".3"].map(|part| format!("{}{part}", paid_month(0).order));
        assert_eq!(found, expected, "{list}");
    }
}

#[tokio::test]
async fn replacement_is_filled_or_waits_and_a_repeated_request_sends_nothing_twice() {
    for (cups, status, left) in [(4, "OPEN", (94, 0)), (3, "BACKORDERED", (97, 1))] {
        let (test_desk, order) = desk_with_order(cups).await;
        advance(&test_desk, &order, &["pick", "ship", "deliver"]).await;
        let replace = format!("POST {order}/replacements");
        let body = json!({"reason": "broken"});
        let without_key = test_desk.send_as_operator(&replace, &body).await.problem_line();
        assert!(without_key.starts_with("400 invalid-field Idempotency-Key: is required"), "{without_key}");
        let first = test_desk.send_as_operator_with(&replace, &IDEMPOTENCY_KEY_HEADER, &body).await;
        let repeated = test_desk.send_as_operator_with(&replace, &IDEMPOTENCY_KEY_HEADER, &body).await;
        assert_eq!((first.status, repeated.status), (201, 201), "{}", first.json);
        assert_eq!(repeated.headers["idempotent-replayed"], "true");
        let new = &first.json["follow_up"];
        assert_eq!((&new["status"], &new["lines"]), (&json!(status), &lines(&[("beans", 3), ("cups", 2)])));
        // The saved response contains no address.
        assert_eq!(repeated.json["follow_up"]["address"], Value::Null);
        assert_eq!(repeated.json["follow_up"]["id"], new["id"]);
        assert_eq!(test_desk.get_as_operator(&order).await.json["follow_ups"], 1);
        assert_eq!(stock_of_beans_and_cups(&test_desk).await, left);
        let reused =
            test_desk.send_as_operator_with(&replace, &IDEMPOTENCY_KEY_HEADER, &json!({"reason": "lost"})).await;
        assert_eq!(reused.status, 422, "{}", reused.json);
    }
}

#[tokio::test]
async fn impossible_follow_ups_are_refused_and_change_nothing() {
    let (test_desk, order) = desk_with_order(5).await;
    let (splitting, replacing) = (format!("POST {order}/split"), format!("POST {order}/replacements"));
    let keep = |products: &[(&str, u32)]| json!({"lines": lines(products)});
    let replacement = |products: &[(&str, u32)]| json!({"reason": "lost", "lines": lines(products)});
    let check = async |request: &str, body: Value, expected: &str| {
        let before = test_desk.get_as_operator(&order).await.json;
        let stock_before = stock_of_beans_and_cups(&test_desk).await;
        let problem = test_desk.send_as_operator_with(request, &IDEMPOTENCY_KEY_HEADER, &body).await.problem_line();
        assert!(problem.starts_with(expected), "{request} {body}: {problem}");
        assert_eq!(test_desk.get_as_operator(&order).await.json, before, "{body}");
        assert_eq!(stock_of_beans_and_cups(&test_desk).await, stock_before, "{body}");
    };
    let all = [("beans", 3), ("cups", 2)];
    let picked = [("beans", 1)];
    check(&splitting, keep(&[]), "422 refused-field lines: at least one product must be listed").await;
    check(&splitting, keep(&all), "422 refused-field lines: the list contains all products of the order").await;
    check(&splitting, keep(&[("beans", 4)]), "422 refused-field lines: the order has only 3 pieces of beans").await;
    check(&splitting, keep(&[("tea", 1)]), "422 refused-field lines: the order has only 0 pieces of tea").await;
    check(&splitting, keep(&[("beans", 1), ("beans", 1)]), "422 refused-field lines: the product beans is").await;
    check(&splitting, json!({}), "422 refused-field lines: the products of an open order are reserved").await;
    check(&replacing, json!({"reason": "x"}), "409 conflict -: an order that is OPEN cannot be replaced").await;
    let stale = test_desk.send_as_operator_with(&splitting, &[("if-match", "\"7\"")], &keep(&picked)).await;
    assert_eq!(stale.status, 412);
    advance(&test_desk, &order, &["pick"]).await;
    check(&splitting, keep(&picked), "409 conflict -: an order that is PICKED cannot be split").await;
    advance(&test_desk, &order, &["ship"]).await;
    check(&splitting, keep(&picked), "409 conflict -: an order that is SHIPPED cannot be split").await;
    check(&replacing, replacement(&[("cups", 3)]), "422 refused-field lines: the order has only 2 pieces of cups")
        .await;
    check(&replacing, replacement(&[]), "422 refused-field lines: at least one product must be listed").await;
    check(&replacing, json!({}), "400 invalid-field reason").await;
    for unknown in ["2027-01-31.01JZXCVBNM0123456789ABCDEF", "2027-01-31.01JZXCVBNM0123456789ABCDEF.2"] {
        let missing = test_desk.send_as_operator(&format!("POST /orders/{unknown}/split"), &keep(&picked)).await;
        assert_eq!(missing.status, 404, "{unknown}");
    }
}

#[tokio::test]
async fn without_lines_an_order_is_split_only_if_one_warehouse_has_a_part_of_it() {
    for (cups, beans_sold, address, expected) in [
        (0, 100, true, "409 conflict -: no warehouse has a product of the order in stock"),
        (0, 0, false, "409 conflict -: the customer has no shipping address"),
        (1, 0, true, "201 - -: -"),
    ] {
        let (test_desk, _) = desk_with_order(cups).await;
        if beans_sold > 0 {
            let body = json!({"warehouse": "ams", "quantity": beans_sold, "reason": "mice"});
            let write_off = "PUT /products/beans/write-offs/01MCCKG2G0000G000000000020";
            assert_eq!(test_desk.send_as_operator(write_off, &body).await.status, 200);
        }
        let account = if address { "acme" } else { "new" };
        let paid = orders::PaidPeriod { account: account.parse().unwrap(), ..paid_month(1) };
        test_desk.desk.place_order(&paid).await.unwrap();
        let split = test_desk.send_as_operator(&format!("POST /orders/{}/split", paid.order), &json!({})).await;
        assert!(split.problem_line().starts_with(expected), "{}", split.json);
    }
    let (test_desk, order) = desk_with_order(0).await;
    receive_delivery(&test_desk, "cups", 2, 12).await;
    let split = test_desk.send_as_operator(&format!("POST {order}/split"), &json!({})).await.problem_line();
    assert!(split.starts_with("409 conflict -: one warehouse has all products of the order in stock"), "{split}");
    assert_eq!(test_desk.send_as_operator("PUT /customers/acme", &address_body()).await.status, 200);
}

#[tokio::test]
async fn order_of_another_customer_is_filled_if_a_split_needs_less_of_its_product() {
    let (test_desk, order) = desk_with_order(0).await;
    test_desk.send_as_operator("PUT /products/apples", &json!({"name": "Apples"})).await;
    let wanted = lines(&[("apples", 1), ("beans", 101), ("cups", 10)]);
    assert_eq!(test_desk.send_as_operator(&format!("PUT {order}/lines"), &json!({"lines": wanted})).await.status, 200);
    let sku = json!({"lines": lines(&[("cups", 2)])});
    assert_eq!(test_desk.send_as_operator("PUT /skus/coffee", &sku).await.status, 200);
    test_desk.place_orders(4..5).await;
    receive_delivery(&test_desk, "cups", 6, 10).await;
    assert_eq!(test_desk.fill_waiting_orders().await, 0, "the older order needs ten cups");
    // After the split, neither order can be filled, and cups are the first product of neither. But each needs only five
    // cups, so the newer order of cups does not have to wait for these orders.
    let split = split_order(&test_desk, &order, &[("apples", 1), ("cups", 5)]).await;
    assert_eq!((split.status, &split.json["order"]["status"]), (201, &json!("BACKORDERED")), "{}", split.json);
    assert_eq!(test_desk.fill_waiting_orders().await, 1);
    let newer = test_desk.get_as_operator(&format!("/orders/{}", paid_month(4).order)).await.json;
    assert_eq!(newer["status"], "OPEN");
}

#[tokio::test]
async fn order_is_not_split_without_lines_if_a_warehouse_in_another_region_has_all_its_products() {
    let (test_desk, order) = desk_with_order(0).await;
    test_desk.send_as_operator("PUT /warehouses/nyc", &json!({"name": "New York", "region": "na"})).await;
    for (product, quantity, delivery) in [("beans", 3, 20), ("cups", 2, 21)] {
        let put = format!("PUT /products/{product}/deliveries/01MCCKG2G0000G0000000000{delivery}");
        let body = json!({"warehouse": "nyc", "quantity": quantity});
        assert_eq!(test_desk.send_as_operator(&put, &body).await.status, 200);
    }
    let refused = test_desk.send_as_operator(&format!("POST {order}/split"), &Value::Null).await.problem_line();
    assert!(refused.contains("one warehouse has all products of the order in stock"), "{refused}");
    assert_eq!(test_desk.fill_waiting_orders().await, 1);
}

#[tokio::test]
async fn packing_slip_of_a_follow_up_names_the_order_that_it_follows() {
    let (test_desk, order) = desk_with_order(5).await;
    assert_eq!(split_order(&test_desk, &order, &[("beans", 1)]).await.status, 201);
    let router = test_desk.router_for(rest::Caller::Operator(rest::Role::Admin));
    let slips = test_desk.send_for_text(router, "GET /warehouses/ams/orders", "text/html").await;
    let number = paid_month(0).order;
    let follows = format!("<p>Remainder of the order <span class=\"number\">{number}</span></p>");
    assert_eq!(slips.matches(&follows).count(), 1, "{slips}");
    assert!(slips.contains(&format!("<p class=\"number\">{number}.2</p>")));
}

#[tokio::test]
async fn split_of_an_order_of_20_products_requests_to_fill_other_backordered_orders_of_each_product() {
    let test_desk = TestDesk::new().await;
    let names: Vec<String> = (10..30).map(|n| format!("p-{n}")).collect();
    let all = |quantity| -> Value { lines(&names.iter().map(|name| (name.as_str(), quantity)).collect::<Vec<_>>()) };
    for (name, delivery) in names.iter().zip(10..) {
        test_desk.send_as_operator(&format!("PUT /products/{name}"), &json!({"name": name})).await;
        receive_delivery(&test_desk, name, 3, delivery).await;
    }
    let put_sku = async |lines: Value| {
        let put = test_desk.send_as_operator("PUT /skus/coffee", &json!({"lines": lines})).await;
        assert_eq!(put.status, 200, "{}", put.json);
    };
    // The oldest order needs seven pieces of each product. So two newer orders, each for four pieces of one product, must wait.
    put_sku(all(7)).await;
    test_desk.place_orders(0..1).await;
    let order = format!("/orders/{}", paid_month(0).order);
    let waiting = [("p-11", 4), ("p-29", 8)];
    for (name, n) in waiting {
        put_sku(lines(&[(name, 4)])).await;
        test_desk.place_orders(n..n + 1).await;
        receive_delivery(&test_desk, name, 1, 40).await;
    }
    assert_eq!(test_desk.fill_waiting_orders().await, 0, "the oldest order needs seven pieces");
    // The order keeps one piece of each product and is filled. This is the largest possible transaction, because it
    // also contains an entry of the action log and the saved response.
    let key = [("idempotency-key", "k")];
    let split = test_desk.send_as_operator_with(&format!("POST {order}/split"), &key, &json!({"lines": all(1)})).await;
    assert_eq!((split.status, &split.json["order"]["status"]), (201, &json!("OPEN")), "{}", split.json);
    let tasks = test_desk.desk.table.fill_tasks().await.unwrap().items;
    let products: usize = tasks.iter().map(|task| 1 + task.further.len()).sum();
    assert_eq!(
        (tasks.len(), products),
        (1, 20),
        "one action of the transaction requests to fill the orders of all products"
    );
    // The follow-up order is split again: this transaction also counts the new follow-up order in the main order.
    let rest = format!("{order}.2");
    let split = test_desk.send_as_operator_with(&format!("POST {rest}/split"), &key, &json!({"lines": all(1)})).await;
    assert_eq!((split.status, &split.json["order"]["status"]), (201, &json!("OPEN")), "{}", split.json);
    assert_eq!(test_desk.fill_waiting_orders().await, 0, "three pieces of each product are missing");
    for (name, _) in waiting {
        receive_delivery(&test_desk, name, 2, 41).await;
    }
    assert_eq!(test_desk.fill_waiting_orders().await, 0, "the remainder needs five of the four pieces");
    let last = format!("{order}.3");
    let split = test_desk.send_as_operator_with(&format!("POST {last}/split"), &key, &json!({"lines": all(2)})).await;
    assert_eq!((split.status, &split.json["order"]["status"]), (201, &json!("BACKORDERED")), "{}", split.json);
    assert_eq!(test_desk.fill_waiting_orders().await, 2, "each part needs at most three pieces of each product");
    for (_, n) in waiting {
        let newer = test_desk.get_as_operator(&format!("/orders/{}", paid_month(n).order)).await.json;
        assert_eq!(newer["status"], "OPEN");
    }
    assert_eq!(test_desk.desk.table.fill_tasks().await.unwrap().items, []);
}
