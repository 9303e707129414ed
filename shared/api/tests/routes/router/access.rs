//! Who may do what, and what is refused with which words.

use billing::{Account, Subscription};
use rest::Caller;
use serde_json::{Value, json};
use testkit::sample;

use crate::router::world::{NEW, World, acme, at};

#[tokio::test]
async fn requests_of_an_account_reach_its_own_things_and_no_others() {
    let world = World::new().await;
    let other = Caller::Account("somebody".parse().unwrap());
    for (request, body) in [
        ("GET /accounts/acme", ""),
        ("GET /accounts/acme/subscriptions", ""),
        ("GET {gold}", ""),
        ("GET {gold}/schedule", ""),
        ("GET {gold}/why", ""),
        ("GET /accounts/acme/receipts", ""),
        ("PATCH {gold}", r#"{"payment_day": 12}"#),
        ("PATCH {gold}", r#"{"payment_method": {"customer": "cus_1", "payment_method": "pm_card_mastercard"}}"#),
        ("POST {gold}/pause", ""),
        ("POST {gold}/resume", ""),
        ("POST {gold}/cancel", r#"{"at_period_end": true}"#),
        ("POST {gold}/uncancel", ""),
    ] {
        let own = world.send(&acme(), request, &[], body).await;
        assert_eq!(own.status, 200, "{request} {body}: {}", own.text);
        let others = world.send(&other, request, &[], body).await;
        assert!(others.problem().starts_with("404 not-found -: there is no such account"), "{request} {}", others.text);
    }
    for (request, body, field) in [
        ("PUT /accounts/acme", r#"{"email": "a@example.com", "name": "A"}"#, "-"),
        ("POST /accounts/acme/subscriptions", NEW, "-"),
        ("PATCH {gold}", r#"{"amount": 1}"#, "amount"),
        ("PATCH {gold}", r#"{"product_name": "Free"}"#, "product_name"),
        ("PATCH {gold}", r#"{"email": null}"#, "email"),
        (
            "PATCH {gold}",
            r#"{"payment_method": {"customer": "cus_2", "payment_method": "pm_card_visa"}}"#,
            "payment_method.customer",
        ),
        ("POST /accounts/acme/receipts/2026-03-10.01JZXCVBNM0123456789ABCDEF.gold/refund", "", "-"),
        ("GET /due/payments", "", "-"),
        ("GET /due/reminders", "", "-"),
        ("GET /runs", "", "-"),
        ("GET /forecast", "", "-"),
        ("GET /reports/days", "", "-"),
        ("POST /webhook-endpoints", r#"{"url": "https://example.com"}"#, "-"),
        ("GET /webhook-endpoints", "", "-"),
        ("GET /webhook-endpoints/01JZXCVBNM0123456789ABCDEF", "", "-"),
        ("PATCH /webhook-endpoints/01JZXCVBNM0123456789ABCDEF", "", "-"),
        ("DELETE /webhook-endpoints/01JZXCVBNM0123456789ABCDEF", "", "-"),
        ("POST /webhook-endpoints/01JZXCVBNM0123456789ABCDEF/rotate-secret", "", "-"),
        ("GET /webhook-endpoints/01JZXCVBNM0123456789ABCDEF/deliveries", "", "-"),
        ("POST /webhook-endpoints/01JZXCVBNM0123456789ABCDEF/deliveries/1/redeliver", "", "-"),
    ] {
        let refused = world.send(&acme(), request, &[], body).await;
        assert!(
            refused.problem().starts_with(&format!("403 forbidden {field}: ")),
            "{request} {body}: {}",
            refused.text
        );
    }
    let stored = world.stored().await;
    assert_eq!((stored.price.minor(), stored.payment_method.customer.as_str()), (1299, "cus_1"));
}

#[tokio::test]
async fn list_subscriptions_with_a_cursor_reaches_no_other_account() {
    let world = World::new().await;
    let rival = Account { id: "rival".parse().unwrap(), ..sample::account() };
    world.table.put_account(&rival).await.unwrap();
    for day in [11, 12] {
        let theirs = sample::subscription(day, at("2026-03-01T00:00:00Z").date_naive());
        let theirs = Subscription { account: rival.id.clone(), ..theirs };
        world.table.create_subscription(&theirs, None).await.unwrap();
    }
    let page = world.ask("GET /accounts/rival/subscriptions?limit=1", "").await.json();
    let cursor = page["next_cursor"].as_str().unwrap();
    let next = world.ask(&format!("GET /accounts/rival/subscriptions?limit=1&cursor={cursor}"), "").await.json();
    assert_eq!((&next["data"][0]["payment_day"], &next["next_cursor"]), (&12.into(), &Value::Null));
    // Another account's cursor goes on in one's own list.
    let own = world.send(&acme(), &format!("GET /accounts/acme/subscriptions?cursor={cursor}"), &[], "").await;
    let accounts: Vec<_> = own.json()["data"].as_array().unwrap().iter().map(|s| s["account"].clone()).collect();
    assert!(own.status == 200 && accounts.iter().all(|account| account == "acme"), "{}", own.text);
    // What was never shown is 400; what another list has shown is 422.
    for (cursor, status) in [("x", 422), ("UkVDIw", 422), ("U1VCIzE=", 400), ("%FF", 400), ("", 400)] {
        let wrong = world.ask(&format!("GET /accounts/acme/subscriptions?cursor={cursor}"), "").await;
        assert_eq!((wrong.status, &wrong.json()["field"]), (status, &"cursor".into()), "{cursor}: {}", wrong.text);
    }
}

#[tokio::test]
async fn requests_with_wrong_parameters_name_them() {
    let world = World::new().await;
    for (request, said) in [
        ("GET /accounts/acme/subscriptions?limit=0", "400 invalid-field limit: must be a whole number from 1 to 100"),
        ("GET /accounts/acme/receipts?limit=many", "400 invalid-field limit: must be a whole number from 1 to 100"),
        ("GET /accounts/acme/receipts?page=2", "400 invalid-field page: is not known; this takes cursor and limit"),
        ("GET /accounts/acme/receipts?limit=1&limit=2", "400 invalid-field limit: must be given once"),
        ("GET {gold}/schedule?months=37", "400 invalid-field months: must be a whole number from 1 to 36"),
        ("GET {gold}/why?date=31", "400 invalid-field date: must be a date like"),
        ("GET {gold}/why?day=2026-03-10", "400 invalid-field day: is not known; this takes date"),
        (
            "GET /accounts/acme/subscriptions/01JZXCVBNM0123456789ABCDEF/why",
            "404 not-found -: there is no such subscription",
        ),
        ("GET /due/payments?date=tomorrow", "400 invalid-field date: must be a date like"),
        ("GET /due/payments?date=%2B12026-01-01", "400 invalid-field date: must be a date like"),
        ("GET /due/payments?cursor=e30", "422 refused-field cursor: must be the next_cursor"),
        ("GET /due/both", "400 invalid-field batch: must be reminders or payments"),
        (
            "GET /due/payments?date=2027-02-29",
            "400 invalid-field date: must be a date like 2027-01-31: year, month, day",
        ),
        ("GET /due/payments?date=31.01.2027", "400 invalid-field date: must be a date like 2027-01-31"),
        ("GET /accounts/..", "400 invalid-field account: must be 1 to 64 of"),
        ("GET /accounts/-rf", "400 invalid-field account: must be 1 to 64 of"),
        ("GET /reports/days?from=2020-01-01", "422 refused-field from: must be "),
        ("GET /reports/days?to=2099-01-01", "422 refused-field to: must be from "),
        ("GET /reports/days?from=2026-03-02&to=2026-03-01", "422 refused-field to: must be from 2026-03-02 to "),
        ("POST /webhook-endpoints {\"url\": \"http://example.com\"}", "422 refused-field url: must be an https URL"),
        ("POST /webhook-endpoints {\"url\": \"example.com\"}", "422 refused-field url: must be an http or https URL"),
        (
            "POST /webhook-endpoints {\"url\": \"https://example.com\", \"types\": [\"payment.lost\"]}",
            "400 invalid-field types: must be one of account.created, ",
        ),
        ("GET /webhook-endpoints/1", "404 not-found -: there is no such webhook endpoint"),
        ("GET /runs?batch=both", "400 invalid-field batch: must be reminders or payments"),
        ("GET /accounts/a%20b", "400 invalid-field account: must be 1 to 64 of"),
        ("GET /accounts/acme/subscriptions/1", "400 invalid-field subscription: must be a ULID"),
        ("GET /accounts/acme/receipts/1", "404 not-found -: there is no such receipt"),
        (
            "GET /accounts/acme/subscriptions/01JZXCVBNM0123456789ABCDEF",
            "404 not-found -: there is no such subscription",
        ),
        ("POST {gold}/cancel?at_period_end=true", "400 invalid-field at_period_end: is not known; this takes none"),
        ("GET {gold}?expand=account", "400 invalid-field expand: is not known"),
        ("POST {gold}/stop", "404 not-found -: there is nothing at this path"),
        ("DELETE {gold}", "405 method-not-allowed -: "),
        ("POST {gold}/pause {\"until\":1}", "400 invalid-field until: is not known"),
    ] {
        let (request, body) =
            request.split_once(" {\"").map_or((request, String::new()), |(r, b)| (r, format!("{{\"{b}")));
        let problem = world.ask(request, &body).await.problem();
        assert!(problem.starts_with(said), "{request}: {problem}");
    }
}

#[tokio::test]
async fn put_create_and_change_refuse_a_card_number_in_every_field_but_account_and_sku() {
    let world = World::new().await;
    let card = "4242 4242 4242 4242";
    let account = |email: &str, name: &str| json!({"email": email, "name": name}).to_string();
    let with = |path: &str, value: &str| {
        let mut body: Value = serde_json::from_str(NEW).unwrap();
        *body.pointer_mut(path).unwrap() = value.into();
        body.to_string()
    };
    for (request, body, field) in [
        ("PUT /accounts/acme", account("4242424242424242@example.com", "A"), "email"),
        ("PUT /accounts/acme", account("a@example.com", &format!("Visa {card}")), "name"),
        ("POST /accounts/acme/subscriptions", with("/product_name", card), "product_name"),
        (
            "POST /accounts/acme/subscriptions",
            with("/payment_method/customer", "4242424242424242"),
            "payment_method.customer",
        ),
        (
            "POST /accounts/acme/subscriptions",
            with("/payment_method/payment_method", "4242-4242-4242-4242"),
            "payment_method.payment_method",
        ),
        (
            "PUT /accounts/acme",
            json!({"email": "a@example.com", "name": "A", "locale": "en-4242-4242-4242-4242"}).to_string(),
            "locale",
        ),
        ("PATCH {gold}", json!({"email": "4242424242424242@example.com"}).to_string(), "email"),
    ] {
        let problem = world.ask(request, &body).await.problem();
        let expected = format!("400 invalid-field {field}: must not hold a card number");
        assert!(problem.starts_with(&expected) && !problem.contains("4242"), "{problem}");
    }
    assert_eq!(world.ask("POST /accounts/acme/subscriptions", &with("/sku", "4242424242424242")).await.status, 201);
    assert_eq!(world.ask("PUT /accounts/4242424242424242", &account("a@example.com", "A")).await.status, 201);
    let stored = format!("{:?}", world.table.scan().await.unwrap());
    assert!(!stored.contains(card) && !stored.contains("4242-"), "nothing of it is stored");
}
