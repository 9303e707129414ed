//! Tests of the rights of operators and accounts, and of the problems in the responses to refused requests.

use billing::{Account, Subscription};
use rest::{AccountActions, Caller};
use serde_json::{Value, json};
use testkit::{sample_account, sample_subscription};

use crate::router::world::{NEW_SUBSCRIPTION, World, acme, at};

#[tokio::test]
async fn account_may_read_and_change_only_its_own_data() {
    let world = World::new().await;
    let other = Caller::of_account("other".parse().unwrap());
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
        let own = world.request_as(&acme(), request, &[], body).await;
        assert_eq!(own.status, 200, "{request} {body}: {}", own.text);
        let refused = world.request_as(&other, request, &[], body).await;
        assert!(
            refused.problem().starts_with("404 not-found -: there is no such account"),
            "{request} {}",
            refused.text
        );
    }
    // The columns are: the request, its body, and the `field` of the problem (`-` if there is none).
    for (request, body, field) in [
        ("PUT /accounts/acme", r#"{"email": "a@example.com", "name": "A"}"#, "-"),
        ("POST /accounts/acme/subscriptions", NEW_SUBSCRIPTION, "-"),
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
        ("GET /audits", "", "-"),
        ("GET /audits/01MCCKG2G0000G0000000000AA", "", "-"),
        ("GET /forecast", "", "-"),
        ("GET /receipts/202603-7KQ29M-4T3XWA", "", "-"),
        ("GET /reports/days", "", "-"),
        ("GET /status", "", "-"),
        ("POST /webhook-endpoints", r#"{"url": "https://example.com"}"#, "-"),
        ("POST {gold}/correct-price", r#"{"amount": 1, "reason": "x"}"#, "-"),
        ("POST {gold}/waive", r#"{"month": "2026-03", "reason": "x"}"#, "-"),
        ("POST {gold}/paid-elsewhere", r#"{"month": "2026-03", "reason": "x"}"#, "-"),
        ("GET /webhook-endpoints", "", "-"),
        ("GET /webhook-endpoints/01JZXCVBNM0123456789ABCDEF", "", "-"),
        ("PATCH /webhook-endpoints/01JZXCVBNM0123456789ABCDEF", "", "-"),
        ("DELETE /webhook-endpoints/01JZXCVBNM0123456789ABCDEF", "", "-"),
        ("POST /webhook-endpoints/01JZXCVBNM0123456789ABCDEF/rotate-secret", "", "-"),
        ("GET /webhook-endpoints/01JZXCVBNM0123456789ABCDEF/deliveries", "", "-"),
        ("POST /webhook-endpoints/01JZXCVBNM0123456789ABCDEF/deliveries/1/redeliver", "", "-"),
    ] {
        let refused = world.request_as(&acme(), request, &[], body).await;
        assert!(
            refused.problem().starts_with(&format!("403 forbidden {field}: ")),
            "{request} {body}: {}",
            refused.text
        );
    }
    let stored = world.stored_gold().await;
    assert_eq!((stored.price.minor(), stored.payment_method.customer.as_str()), (1299, "cus_1"));
}

#[tokio::test]
async fn account_may_make_only_the_changes_that_the_merchant_allows() {
    let world = World::new().await;
    let method = r#"{"payment_method": {"customer": "cus_1", "payment_method": "pm_card_mastercard"}}"#;
    let change_both =
        r#"{"payment_day": 12, "payment_method": {"customer": "cus_1", "payment_method": "pm_card_visa"}}"#;
    // The columns are: the action that the merchant can allow or forbid, a request that needs this action, its body,
    // and the `field` of the problem if the action is not allowed.
    for (action, request, body, field) in [
        ("pause", "POST {gold}/pause", "", "-"),
        ("resume", "POST {gold}/resume", "", "-"),
        ("payment-day", "PATCH {gold}", r#"{"payment_day": 12}"#, "payment_day"),
        ("payment-method", "PATCH {gold}", method, "payment_method"),
        ("payment-method", "POST /accounts/acme/payment-method-setups", "", "-"),
        ("payment-method", "PATCH {gold}", change_both, "payment_method"),
        ("cancel", "POST {gold}/cancel", r#"{"at_period_end": true}"#, "-"),
        ("uncancel", "POST {gold}/uncancel", "", "-"),
        ("retry", "POST {gold}/retry", "", "-"),
    ] {
        let all = rest::ACCOUNT_ACTIONS.default.unwrap();
        let others: Vec<&str> = all.split(',').filter(|other| *other != action).collect();
        let with = |actions: &str| Caller::Account {
            id: sample_account().id,
            actions: AccountActions::parse(actions).unwrap(),
        };
        let before = world.stored_gold().await;
        // If no action is allowed, both fields of `change_both` are refused, and the problem names only the first
        // field. So do not test this case.
        let none = if body == change_both { None } else { Some("none") };
        for actions in none.into_iter().chain([others.join(",").as_str()]) {
            let refused = world.request_as(&with(actions), request, &[], body).await.problem();
            let expected = format!("403 forbidden {field}: the merchant does not allow customers to ");
            assert!(refused.starts_with(&expected), "{request} with {actions}: {refused}");
        }
        assert_eq!(world.stored_gold().await, before, "{request} is refused");
        let needed = if body == change_both { "payment-day,payment-method" } else { action };
        let allowed = world.request_as(&with(needed), request, &[], body).await;
        // Nothing is owed, so a retry is refused with 409.
        let status = match action {
            "retry" => 409,
            _ if request.ends_with("setups") => 201,
            _ => 200,
        };
        assert_eq!(allowed.status, status, "{request} with {needed}: {}", allowed.text);
    }
    let none = Caller::Account { id: sample_account().id, actions: AccountActions::parse("none").unwrap() };
    assert_eq!(world.request_as(&none, "GET {gold}", &[], "").await.status, 200, "an account may always read");
}

#[tokio::test]
async fn list_subscriptions_with_a_cursor_reaches_no_other_account() {
    let world = World::new().await;
    let rival = Account { id: "rival".parse().unwrap(), ..sample_account() };
    world.table.put_account(&rival).await.unwrap();
    for day in [11, 12] {
        let subscription = sample_subscription(day, at("2026-03-01T00:00:00Z").date_naive());
        let subscription = Subscription { account: rival.id.clone(), ..subscription };
        world.table.create_subscription(&subscription, None).await.unwrap();
    }
    let page = world.request("GET /accounts/rival/subscriptions?limit=1", "").await.json();
    let cursor = page["next_cursor"].as_str().unwrap();
    let next = world.request(&format!("GET /accounts/rival/subscriptions?limit=1&cursor={cursor}"), "").await.json();
    assert_eq!((&next["data"][0]["payment_day"], &next["next_cursor"]), (&12.into(), &Value::Null));
    // A cursor from the list of another account does not give access to that list: the caller still gets its own
    // subscriptions.
    let own = world.request_as(&acme(), &format!("GET /accounts/acme/subscriptions?cursor={cursor}"), &[], "").await;
    let accounts: Vec<_> = own.json()["data"].as_array().unwrap().iter().map(|s| s["account"].clone()).collect();
    assert!(own.status == 200 && accounts.iter().all(|account| account == "acme"), "{}", own.text);
    // The status is 400 for a malformed cursor, and 422 for a cursor of another list.
    for (cursor, status) in [("x", 422), ("UkVDIw", 422), ("U1VCIzE=", 400), ("%FF", 400), ("", 400)] {
        let wrong = world.request(&format!("GET /accounts/acme/subscriptions?cursor={cursor}"), "").await;
        assert_eq!((wrong.status, &wrong.json()["field"]), (status, &"cursor".into()), "{cursor}: {}", wrong.text);
    }
}

#[tokio::test]
async fn problem_contains_the_name_of_the_invalid_parameter() {
    let world = World::new().await;
    for (request, expected) in [
        ("GET /accounts/acme/subscriptions?limit=0", "400 invalid-field limit: must be a whole number from 1 to 100"),
        ("GET /accounts/acme/receipts?limit=many", "400 invalid-field limit: must be a whole number from 1 to 100"),
        ("GET /accounts/acme/receipts?page=2", "400 invalid-field page: is unknown; allowed names: cursor and limit"),
        ("GET /accounts/acme/receipts?limit=1&limit=2", "400 invalid-field limit: must not be repeated"),
        ("GET {gold}/schedule?months=37", "400 invalid-field months: must be a whole number from 1 to 36"),
        ("GET {gold}/why?date=31", "400 invalid-field date: must be a date like"),
        ("GET {gold}/why?day=2026-03-10", "400 invalid-field day: is unknown; allowed names: date"),
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
        ("GET /accounts/..", "400 invalid-field account: must be 1 to 64 letters"),
        ("GET /accounts/-rf", "400 invalid-field account: must be 1 to 64 letters"),
        ("GET /reports/days?from=2020-01-01", "422 refused-field from: must be "),
        ("GET /reports/days?from=2099-01-01", "422 refused-field from: must not be later than today, "),
        ("GET /reports/days?from=2026-03-02&to=2026-03-01", "422 refused-field to: must not be before 2026-03-02"),
        ("POST /webhook-endpoints {\"url\": \"http://example.com\"}", "422 refused-field url: must be an https URL"),
        ("POST /webhook-endpoints {\"url\": \"example.com\"}", "422 refused-field url: must be an http or https URL"),
        (
            "POST /webhook-endpoints {\"url\": \"https://example.com\", \"types\": [\"payment.lost\"]}",
            "400 invalid-field types: must be one of account.created, ",
        ),
        ("GET /webhook-endpoints/1", "404 not-found -: there is no such webhook endpoint"),
        ("GET /runs?batch=both", "400 invalid-field batch: must be reminders or payments"),
        ("GET /accounts/a%20b", "400 invalid-field account: must be 1 to 64 letters"),
        ("GET /accounts/acme/subscriptions/1", "400 invalid-field subscription: must be a ULID"),
        ("GET /accounts/acme/receipts/1", "404 not-found -: there is no such receipt"),
        (
            "GET /accounts/acme/subscriptions/01JZXCVBNM0123456789ABCDEF",
            "404 not-found -: there is no such subscription",
        ),
        ("POST {gold}/cancel?at_period_end=true", "400 invalid-field at_period_end: is unknown; allowed names: none"),
        ("GET {gold}?expand=account", "400 invalid-field expand: is unknown"),
        ("POST {gold}/stop", "404 not-found -: there is nothing at this path"),
        ("DELETE {gold}", "405 method-not-allowed -: "),
        ("POST {gold}/pause {\"until\":1}", "400 invalid-field until: is unknown"),
    ] {
        // Some of the requests have a JSON body after the path.
        let (request, body) =
            request.split_once(" {\"").map_or((request, String::new()), |(r, b)| (r, format!("{{\"{b}")));
        let problem = world.request(request, &body).await.problem();
        assert!(problem.starts_with(expected), "{request}: {problem}");
    }
}

#[tokio::test]
async fn card_numbers_are_refused_in_every_text_but_ids_and_tokens_may_look_like_them() {
    let world = World::new().await;
    let card = "4242 4242 4242 4242";
    let account = |email: &str, name: &str| json!({"email": email, "name": name}).to_string();
    let with = |path: &str, value: &str| {
        let mut body: Value = serde_json::from_str(NEW_SUBSCRIPTION).unwrap();
        *body.pointer_mut(path).unwrap() = value.into();
        body.to_string()
    };
    for (request, body, field) in [
        ("PUT /accounts/acme", account("4242424242424242@example.com", "A"), "email"),
        ("PUT /accounts/acme", account("a@example.com", &format!("Visa {card}")), "name"),
        ("POST /accounts/acme/subscriptions", with("/product_name", card), "product_name"),
        ("POST /accounts/acme/subscriptions", with("/product_name", "4242.4242.4242.4242"), "product_name"),
        (
            "PUT /accounts/acme",
            json!({"email": "a@example.com", "name": "A", "locale": "en-4242-4242-4242-4242"}).to_string(),
            "locale",
        ),
        ("PATCH {gold}", json!({"email": "4242424242424242@example.com"}).to_string(), "email"),
    ] {
        let problem = world.request(request, &body).await.problem();
        let expected = format!("400 invalid-field {field}: must not contain a card number");
        assert!(problem.starts_with(&expected) && !problem.contains("4242"), "{problem}");
    }
    assert_eq!(world.request("POST /accounts/acme/subscriptions", &with("/sku", "4242424242424242")).await.status, 201);
    let endpoint = json!({"url": "https://example.com/4242424242424242"}).to_string();
    let problem = world.request("POST /webhook-endpoints", &endpoint).await.problem();
    assert!(problem.starts_with("422 refused-field url: must not contain a card number"), "{problem}");
    for (field, sku) in [("/payment_method/customer", "bronze"), ("/payment_method/payment_method", "tin")] {
        let body = with(field, "8313147988756817").replace("\"silver\"", &format!("\"{sku}\""));
        assert_eq!(world.request("POST /accounts/acme/subscriptions", &body).await.status, 201, "{field}");
    }
    assert_eq!(world.request("PUT /accounts/4242424242424242", &account("a@example.com", "A")).await.status, 201);
    let stored = format!("{:?}", world.table.scan().await.unwrap());
    assert!(!stored.contains(card) && !stored.contains("4242-"), "no card number is stored");
}
