//! Tests of the erasure of an account: no item of the order desk contains the address of a customer or a parcel afterwards,
//! also not the saved responses to requests with an idempotency key.

use billing::ActionKind;
use clock::Clock as _;
use erasing::{Eraser, request_erasure};
use serde_json::{Value, json};
use testkit::sample_action;

use crate::router::test_desk::{TestDesk, TestResponse, address_body, paid_month};

/// The texts that the test uses only in addresses and parcels, so that no item may contain them after the erasure.
const PERSONAL_TEXTS: [&str; 8] = [
    "Canary Name",
    "Canary Street",
    "Canary Lane",
    "Canary Yard",
    "Canary Isles",
    "+34 928 555 019",
    "Canary Post",
    "CANARY-RR1",
];

/// Returns all items of the orders table as text.
async fn all_items(test_desk: &TestDesk) -> Vec<String> {
    let scan = test_desk.desk.table.client().scan().table_name("dueday-orders").consistent_read(true);
    let items: Result<Vec<_>, _> = scan.into_paginator().items().send().collect().await;
    items.unwrap().iter().map(|item| format!("{item:?}")).collect()
}

/// Returns the texts of `PERSONAL_TEXTS` that occur in the items for which `is_searched` returns true.
async fn personal_texts(test_desk: &TestDesk, is_searched: fn(&str) -> bool) -> Vec<&'static str> {
    let items: Vec<String> = all_items(test_desk).await.into_iter().filter(|item| is_searched(item)).collect();
    assert!(!items.is_empty());
    PERSONAL_TEXTS.into_iter().filter(|personal| items.iter().any(|item| item.contains(personal))).collect()
}

/// Returns whether `item` is the saved response to a request with an idempotency key.
fn is_saved_response(item: &str) -> bool {
    item.contains("IDEM#")
}

/// Sends each request of `requests` with its own idempotency key, and returns the responses.
async fn send_with_keys(test_desk: &TestDesk, requests: &[(String, Value)]) -> Vec<TestResponse> {
    let mut responses = Vec::new();
    for (request, body) in requests {
        let key = [("idempotency-key", request.rsplit('/').next().unwrap())];
        let response = test_desk.send_as_operator_with(request, &key, body).await;
        assert!([200, 201].contains(&response.status), "{request}: {}", response.json);
        responses.push(response);
    }
    responses
}

#[tokio::test]
async fn no_item_contains_an_address_or_a_parcel_after_an_erasure_also_if_requests_are_repeated() {
    let test_desk = TestDesk::new().await;
    let mut address = address_body();
    (address["name"], address["street"]) = (json!("Canary Name"), json!("Canary Street"));
    (address["line2"], address["state"]) = (json!("Canary Yard"), json!("Canary Isles"));
    address["phone"] = json!("+34 928 555 019");
    test_desk.send_as_operator("PUT /customers/acme", &address).await;
    test_desk.place_orders(0..1).await;
    let order = format!("/orders/{}", paid_month(0).order);
    address["street"] = json!("Canary Lane");
    test_desk.send_as_operator(&format!("PUT {order}/address"), &address).await;
    let parcel = json!({"carrier": "Canary Post", "tracking_number": "CANARY-RR1"});
    let requests = [
        (format!("POST {order}/split"), json!({"lines": [{"product": "beans", "quantity": 1}]})),
        (format!("POST {order}/pick"), json!({})),
        (format!("POST {order}/ship"), parcel),
        (format!("POST {order}/deliver"), json!({})),
        (format!("POST {order}/replacements"), json!({"reason": "broken"})),
    ];
    let first = send_with_keys(&test_desk, &requests).await;
    assert_eq!(first[3].json["address"]["street"], "Canary Lane");
    assert_eq!(first[4].json["follow_up"]["address"]["street"], "Canary Street");
    for part in [2, 3] {
        for step in ["pick", "ship"] {
            let shipped = test_desk.send_as_operator(&format!("POST {order}.{part}/{step}"), &json!({})).await;
            assert_eq!(shipped.status, 200, "{}", shipped.json);
        }
    }
    assert_eq!(personal_texts(&test_desk, |_| true).await, PERSONAL_TEXTS);
    assert!(personal_texts(&test_desk, is_saved_response).await.is_empty());

    let (account, now) = ("acme".parse().unwrap(), test_desk.clock.now());
    request_erasure(&test_desk.payments, &account, &sample_action(ActionKind::EraseAccount), now).await.unwrap();
    let orders = Some(test_desk.desk.table.clone());
    let eraser = Eraser::new(test_desk.payments.clone(), orders, test_desk.clock.clone());
    assert_eq!(eraser.continue_all_erasures(None).await.unwrap().erased, 1);
    assert!(personal_texts(&test_desk, |_| true).await.is_empty());

    let repeated = send_with_keys(&test_desk, &requests).await;
    for (first, repeated) in first.iter().zip(&repeated) {
        let (first, text) = (&first.json, repeated.json.to_string());
        assert_eq!(repeated.headers["idempotent-replayed"], "true", "{text}");
        assert!(!text.contains("Canary") && !text.contains("CANARY") && !text.contains("928 555"), "{text}");
        let id = |json: &Value| [json["id"].clone(), json["order"]["id"].clone(), json["follow_up"]["id"].clone()];
        assert_eq!(id(&repeated.json), id(first));
    }
    assert!(personal_texts(&test_desk, |_| true).await.is_empty());
}
