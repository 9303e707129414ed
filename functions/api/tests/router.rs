//! The router on a clock that is set: what callers see, request by request.

use std::sync::Arc;

use api::{Api, Caller};
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request};
use axum::{Extension, Router};
use chrono::{DateTime, TimeDelta, Utc};
use local::{Engine, Fault, Wire, sample};
use serde_json::{Value, json};
use shared::ambient::Simulated;
use shared::batch::{BatchRequest, ChargeDue, Sweep};
use shared::billing::{Account, Subscription};
use shared::config::{Config, Env};
use shared::gateway::{Ledger, Sandbox};
use shared::table::{Batch, Paging, RunRecord, Table};
use tower::ServiceExt;

/// An API on 5 March 2026, with the account `acme` and its Gold plan on the tenth.
struct World {
    router: Router,
    clock: Arc<Simulated>,
    table: Table,
    payments: Sweep<ChargeDue>,
    gold: Subscription,
}

struct Answered {
    status: u16,
    headers: HeaderMap,
    text: String,
}

impl Answered {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Status, kind of problem, field, and detail.
    fn problem(&self) -> String {
        let json = self.json();
        let text = |name: &str| json[name].as_str().unwrap_or("-").replace("urn:dueday:problem:", "");
        format!("{} {} {}: {}", self.status, text("type"), text("field"), text("detail"))
    }
}

impl World {
    async fn new() -> Self {
        Self::over(Wire::default()).await
    }

    /// A world whose API reaches the table over `wire`.
    async fn over(wire: Wire) -> Self {
        let clock = Arc::new(Simulated::new(at("2026-03-05T12:00:00Z"), 0));
        let engine = Engine::memory();
        let config = Config::read(Env(&|name| (name == "DUEDAY_SHARDS").then(|| "1".to_owned()))).unwrap();
        let table = Table::new(engine.client(), "dueday", TimeDelta::days(190));
        table.create_if_absent().await.unwrap();
        table.put_account(&sample::account()).await.unwrap();
        let gold = sample::subscription(10, at("2026-03-01T00:00:00Z").date_naive());
        table.create_subscription(&gold, None).await.unwrap();
        table.init_settings(&config.initial_settings(clock.as_ref())).await.unwrap();
        let wired = Table::new(engine.client_over(Arc::new(wire)), "dueday", TimeDelta::days(190));
        let router = Api::new(wired, &config, clock.clone()).await.unwrap().router();
        let sandbox = Arc::new(Sandbox::new(Ledger::memory(), clock.clone()));
        let charge_due = ChargeDue::new(table.clone(), sandbox, &config, clock.clone());
        let payments = Sweep::new(table.clone(), charge_due, &config, clock.clone()).await.unwrap();
        Self { router, clock, table, payments, gold }
    }

    async fn send(&self, caller: &Caller, request: &str, headers: &[(&str, &str)], body: &str) -> Answered {
        let (method, path) = request.split_once(' ').unwrap();
        let path = path.replace("{gold}", &format!("/accounts/acme/subscriptions/{}", self.gold.id));
        let mut request = Request::builder().method(method).uri(path);
        if !body.is_empty() {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let router = self.router.clone().layer(Extension(caller.clone()));
        let response = router.oneshot(request.body(Body::from(body.to_owned())).unwrap()).await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = to_bytes(response.into_body(), 1_000_000).await.unwrap();
        Answered { status, headers, text: String::from_utf8(bytes.to_vec()).unwrap() }
    }

    /// The operator's request.
    async fn ask(&self, request: &str, body: &str) -> Answered {
        self.send(&Caller::Operator, request, &[], body).await
    }

    async fn keyed(&self, request: &str, key: &str, body: &str) -> Answered {
        self.send(&Caller::Operator, request, &[("idempotency-key", key)], body).await
    }

    async fn stored(&self) -> Subscription {
        self.table.get_subscription(&self.gold.account, self.gold.id).await.unwrap().unwrap()
    }

    async fn charge(&self, morning: &str) {
        self.clock.set(at(morning));
        let request = BatchRequest::on(at(morning).date_naive());
        self.payments.run(&request, at(morning) + TimeDelta::hours(1)).await.unwrap();
    }
}

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn acme() -> Caller {
    Caller::Account(sample::account().id)
}

const NEW: &str = r#"{"sku":"silver","product_name":"Silver plan","payment_day":10,"amount":599,"currency":"EUR",
    "payment_method":{"customer":"cus_1","payment_method":"pm_card_visa"},"first_payment_date":"2026-03-10"}"#;

#[tokio::test]
async fn a_request_repeated_after_midnight_is_answered_as_it_was_before() {
    let world = World::new().await;
    world.clock.set(at("2026-03-10T23:59:00Z"));
    let first = world.keyed("POST /accounts/acme/subscriptions", "order-1", NEW).await;
    assert_eq!((first.status, first.header("etag"), first.header("idempotent-replayed")), (201, "\"1\"", ""));
    world.clock.set(at("2026-03-11T00:01:00Z"));
    let again = world.keyed("POST /accounts/acme/subscriptions", "order-1", NEW).await;
    assert_eq!((again.status, &again.text, again.header("etag")), (201, &first.text, "\"1\""), "the same answer");
    assert_eq!(again.header("idempotent-replayed"), "true");
    let refused = world.keyed("POST /accounts/acme/subscriptions", "order-2", NEW).await;
    assert!(refused.problem().starts_with("422 refused-field first_payment_date: must not lie before 2026-03-11"));
    let all = world.table.get_subscriptions_by_account(&sample::account().id, &Paging::all()).await.unwrap();
    assert_eq!(all.items.len(), 2);
}

#[tokio::test]
async fn what_was_done_under_a_key_is_answered_again_and_not_done_again() {
    let world = World::new().await;
    let paused = world.keyed("POST {gold}/pause", "k1", "").await;
    assert_eq!((paused.status, &paused.json()["status"], paused.header("etag")), (200, &"paused".into(), "\"2\""));
    assert_eq!(
        world.keyed("POST {gold}/resume", "k1", "").await.json()["status"],
        "active",
        "a key counts for its route"
    );
    let again = world.keyed("POST {gold}/pause", "k1", "{}").await;
    assert_eq!((&again.text, again.header("idempotent-replayed")), (&paused.text, "true"));
    assert_eq!(world.stored().await.status.as_str(), "active", "it is not paused again");

    let ending = world.keyed("POST {gold}/cancel", "k2", r#"{"at_period_end": true}"#).await;
    assert_eq!((&ending.json()["status"], &ending.json()["cancel_date"]), (&"active".into(), &"2026-03-10".into()));
    let other = world.keyed("POST {gold}/cancel", "k2", "").await;
    assert_eq!(other.problem().split(' ').take(2).collect::<Vec<_>>(), ["422", "idempotency-key-reused"]);
    assert_eq!(world.stored().await.status.as_str(), "active", "the other body was not carried out");
    let own = world.send(&acme(), "POST {gold}/uncancel", &[("idempotency-key", "k2")], "").await;
    assert_eq!((own.status, &own.json()["cancel_date"]), (200, &Value::Null), "a key counts for its caller");

    // What was refused is not kept: the same key may be used once it can be done.
    world.keyed("POST {gold}/cancel", "k3", r#"{"at_period_end": true}"#).await;
    assert_eq!(world.keyed("POST {gold}/pause", "k4", "").await.status, 409);
    world.keyed("POST {gold}/uncancel", "k5", "").await;
    assert_eq!(world.keyed("POST {gold}/pause", "k4", "").await.status, 200);
}

#[tokio::test]
async fn two_requests_at_once_under_one_key_are_carried_out_once() {
    // Each loses once against the other, as DynamoDB says of transactions that meet.
    let world = World::over(Wire::with_faults(|_, operation| match operation {
        "TransactWriteItems" => Fault::Cancelled("TransactionConflict"),
        _ => Fault::None,
    }))
    .await;
    for (request, body) in [("POST /accounts/acme/subscriptions", NEW), ("POST {gold}/pause", "")] {
        let met = world.keyed(request, "k", body).await;
        assert!(met.problem().starts_with("409 in-progress -: another request is changing"), "{}", met.problem());
    }
    assert_eq!(world.stored().await, world.gold);
    let lucky = std::sync::atomic::AtomicU32::new(0);
    let world = World::over(Wire::with_faults(move |_, operation| {
        let is_first = || lucky.fetch_add(1, std::sync::atomic::Ordering::Relaxed) < 3;
        if operation == "TransactWriteItems" && is_first() {
            Fault::Cancelled("TransactionConflict")
        } else {
            Fault::None
        }
    }))
    .await;
    assert_eq!(world.keyed("POST /accounts/acme/subscriptions", "k", NEW).await.status, 201, "tried again");
}

#[tokio::test]
async fn an_answer_that_got_lost_is_given_when_the_request_comes_again() {
    for has_retries in [true, false] {
        for (request, body) in [("POST /accounts/acme/subscriptions", NEW), ("POST {gold}/pause", "")] {
            let lost = std::sync::atomic::AtomicBool::new(false);
            let wire = Wire::with_faults(move |_, operation| {
                let is_first =
                    operation == "TransactWriteItems" && !lost.swap(true, std::sync::atomic::Ordering::Relaxed);
                if is_first { Fault::LostAfter } else { Fault::None }
            });
            let world = World::over(if has_retries { wire } else { wire.and_no_retries() }).await;
            let first = world.keyed(request, "k", body).await;
            // Without the SDK's own retry the caller learns nothing, and asks again under the same key.
            assert_eq!(first.status == 503, !has_retries, "{}", first.text);
            let again = world.keyed(request, "k", body).await;
            assert!(matches!(again.status, 200 | 201), "{request}: {}", again.text);
            let all = world.table.get_subscriptions_by_account(&world.gold.account, &Paging::all()).await.unwrap();
            let expected = if request.ends_with("pause") { 1 } else { 2 };
            assert_eq!((all.items.len(), all.items[0].version <= 2), (expected, true), "{request}");
        }
    }
}

#[tokio::test]
async fn a_change_is_made_only_on_what_the_caller_has_seen() {
    let world = World::new().await;
    let read = world.ask("GET {gold}", "").await;
    assert_eq!(read.header("etag"), "\"1\"");
    let changed =
        async |tag: &str, body: &str| world.send(&Caller::Operator, "PATCH {gold}", &[("if-match", tag)], body).await;
    let first = changed("\"1\"", r#"{"amount": 1499}"#).await;
    assert_eq!((first.status, first.header("etag"), &first.json()["amount"]), (200, "\"2\"", &1499.into()));
    let stale = changed("\"1\"", r#"{"amount": 1}"#).await;
    assert!(stale.problem().starts_with("412 stale"), "{}", stale.problem());
    assert_eq!(changed("\"7\", \"2\"", "{}").await.status, 200, "one of several");
    assert_eq!(changed("*", r#"{"email": "gold@acme.example.com"}"#).await.json()["email"], "gold@acme.example.com");
    assert_eq!(world.ask("PATCH {gold}", r#"{"email": null}"#).await.json()["email"], Value::Null);
    assert!(changed("2", "{}").await.problem().starts_with("400 invalid-field If-Match"));
    for (body, said) in [
        ("[1599]", "400 malformed-body -: must be an object, not a list"),
        (r#"{"payment_method": ["cus_1", "pm_card_visa"]}"#, "400 invalid-field payment_method: must not be a list"),
        (r#"{"amount": null}"#, "400 invalid-field amount: invalid type: null"),
        (r#"{"amount": 0}"#, "400 invalid-field amount: must be from 1 to"),
        (r#"{"sku": "x"}"#, "400 invalid-field sku: is not known; expected one of"),
        (r#"{"currency": "USD"}"#, "400 invalid-field currency: is not known"),
        (
            r#"{"payment_method": {"customer": "cus_1"}}"#,
            "400 invalid-field payment_method.payment_method: is required",
        ),
    ] {
        let problem = world.ask("PATCH {gold}", body).await.problem();
        assert!(problem.starts_with(said), "{body}: {problem}");
    }
    assert_eq!(world.stored().await.price.minor(), 1499);
}

#[tokio::test]
async fn an_account_does_what_is_its_own_to_do_and_no_more() {
    let world = World::new().await;
    let other = Caller::Account("somebody".parse().unwrap());
    for (request, body) in [
        ("GET /accounts/acme", ""),
        ("GET /accounts/acme/subscriptions", ""),
        ("GET {gold}", ""),
        ("GET {gold}/schedule", ""),
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
        ("GET /due/payments", "", "-"),
        ("GET /due/reminders", "", "-"),
        ("GET /runs", "", "-"),
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
async fn a_cursor_reaches_no_other_account() {
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
async fn parameters_are_named_when_they_are_wrong() {
    let world = World::new().await;
    for (request, said) in [
        ("GET /accounts/acme/subscriptions?limit=0", "400 invalid-field limit: must be from 1 to 100"),
        ("GET /accounts/acme/receipts?limit=many", "400 invalid-field limit: must be from 1 to 100"),
        ("GET /accounts/acme/receipts?page=2", "400 invalid-field page: is not known; this takes cursor, limit"),
        ("GET /accounts/acme/receipts?limit=1&limit=2", "400 invalid-field limit: must be given once"),
        ("GET {gold}/schedule?months=37", "400 invalid-field months: must be from 1 to 36"),
        ("GET /due/payments?date=tomorrow", "400 invalid-field date: must be a date like"),
        ("GET /due/payments?date=%2B12026-01-01", "400 invalid-field date: must be a date like"),
        ("GET /due/payments?cursor=e30", "422 refused-field cursor: must be the next_cursor"),
        ("GET /runs?batch=both", "400 invalid-field batch: must be reminders or payments"),
        ("GET /accounts/a%20b", "400 invalid-field account: must be 1 to 64 of"),
        ("GET /accounts/acme/subscriptions/1", "400 invalid-field subscription: must be a ULID"),
        ("GET /accounts/acme/receipts/1", "404 not-found -: there is no such receipt"),
        (
            "GET /accounts/acme/subscriptions/01JZXCVBNM0123456789ABCDEF",
            "404 not-found -: there is no such subscription",
        ),
        ("POST {gold}/cancel?at_period_end=true", "400 invalid-field at_period_end: is not known; this takes no"),
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
async fn a_card_number_is_refused_in_every_field_but_account_and_sku() {
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

#[tokio::test]
async fn a_customer_who_acts_while_a_payment_is_open_is_told_what_counts() {
    let world = World::new().await;
    let mut open = world.stored().await;
    open.payment_method.payment_method = "pm_usBankAccount_success".parse().unwrap();
    world.table.update_subscription(&world.gold, &open).await.unwrap();
    world.charge("2026-03-10T06:00:00Z").await;
    let dearer = world.ask("PATCH {gold}", r#"{"amount": 1999}"#).await.json();
    assert_eq!((&dearer["amount"], &dearer["open_payment"]["amount"]), (&1999.into(), &1299.into()), "{dearer}");
    let schedule = world.ask("GET {gold}/schedule?months=2", "").await.json();
    let amounts: Vec<_> = schedule["data"].as_array().unwrap().iter().map(|row| row["amount"].clone()).collect();
    assert_eq!(amounts, [1299, 1999], "{schedule}");
    let cancelled = world.ask("POST {gold}/cancel", "").await.json();
    assert_eq!((&cancelled["status"], &cancelled["next_payment_date"]), (&"cancelled".into(), &"2026-03-10".into()));
    world.charge("2026-03-13T06:00:00Z").await;
    let settled = world.ask("GET {gold}", "").await.json();
    assert_eq!((&settled["open_payment"], &settled["next_payment_date"]), (&Value::Null, &Value::Null), "{settled}");
    let receipts = world.ask("GET /accounts/acme/receipts", "").await.json();
    assert_eq!(receipts["data"][0]["amount"], 1299, "what was under way at the bank is receipted: {receipts}");
    for (request, body, said) in [
        ("POST {gold}/pause", "", "a subscription that is cancelled cannot be paused"),
        ("POST {gold}/resume", "", "a subscription that is cancelled cannot be resumed"),
        ("POST {gold}/uncancel", "", "a subscription that is cancelled cannot be taken up again; create a new one"),
        ("PATCH {gold}", r#"{"amount": 1}"#, "a subscription that is cancelled cannot be changed"),
    ] {
        let problem = world.ask(request, body).await.problem();
        assert_eq!(problem, format!("409 conflict -: {said}"), "{request}");
    }
    assert_eq!(world.ask("POST {gold}/cancel", "").await.status, 200, "cancelling twice is cancelling once");
}

#[tokio::test]
async fn a_receipt_is_shown_as_json_and_as_a_page_until_it_expires() {
    let world = World::new().await;
    let evil = Account { name: "Acme <script>alert(1)</script>".parse().unwrap(), ..sample::account() };
    world.table.put_account(&evil).await.unwrap();
    world.charge("2026-03-10T06:00:00Z").await;
    let id = world.ask("GET /accounts/acme/receipts", "").await.json()["data"][0]["id"].as_str().unwrap().to_owned();
    let path = format!("GET /accounts/acme/receipts/{id}");
    assert_eq!(world.ask(&path, "").await.json()["amount"], 1299);
    let browser = [("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")];
    let page = world.send(&acme(), &path, &browser, "").await;
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    assert_eq!((page.header("cache-control"), page.header("vary")), ("no-store", "accept"));
    assert!(page.header("content-security-policy").starts_with("default-src 'none'"));
    insta::assert_snapshot!("receipt", page.text);
    let json = world.send(&acme(), &path, &[("accept", "application/json, text/html")], "").await;
    assert_eq!(json.header("content-type"), "application/json");
    world.clock.set(at("2026-09-16T06:00:00Z"));
    assert!(world.ask(&path, "").await.problem().starts_with("404 not-found -: there is no such receipt"));
}

#[tokio::test]
async fn an_operator_sees_what_is_due_page_by_page_and_what_the_runs_did() {
    let world = World::new().await;
    for day in [7, 8, 9] {
        let other = sample::subscription(day, at("2026-03-01T00:00:00Z").date_naive());
        world.table.create_subscription(&other, None).await.unwrap();
    }
    let (mut dates, mut query) = (Vec::new(), "date=2026-03-09&limit=2".to_owned());
    loop {
        let page = world.ask(&format!("GET /due/payments?{query}"), "").await.json();
        dates.extend(page["data"].as_array().unwrap().iter().map(|row| row["date"].as_str().unwrap().to_owned()));
        match page["next_cursor"].as_str() {
            Some(cursor) => query = format!("date=2026-03-09&limit=2&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(dates, ["2026-03-07", "2026-03-08", "2026-03-09"]);
    assert_eq!(world.ask("GET /due/reminders", "").await.json()["data"].as_array().unwrap().len(), 4, "of today");
    world.charge("2026-03-09T06:00:00Z").await;
    world.charge("2026-03-09T08:00:00Z").await;
    let runs = world.ask("GET /runs?date=2026-03-09&limit=1", "").await.json();
    assert_eq!((&runs["data"][0]["counts"]["paid"], &runs["data"][0]["complete"]), (&3.into(), &true.into()), "{runs}");
    let cursor = runs["next_cursor"].as_str().unwrap();
    let other = world.ask(&format!("GET /runs?date=2026-03-09&batch=reminders&cursor={cursor}"), "").await;
    assert!(other.problem().starts_with("422 refused-field cursor: is of the other batch"), "{}", other.problem());
    let rest = world.ask(&format!("GET /runs?date=2026-03-09&cursor={cursor}"), "").await.json();
    assert_eq!((&rest["data"][0]["counts"]["due"], &rest["next_cursor"]), (&0.into(), &Value::Null), "{rest}");

    // Of both batches, with pages that end where the first one does.
    for shard in 0..2 {
        let (batch, on, started_at) =
            (Batch::Reminders, at("2026-03-09T00:00:00Z").date_naive(), at("2026-03-09T06:00:00Z"));
        let run = RunRecord { batch, on, shard, id: Default::default(), started_at, from: None, end: None };
        world.table.open_run(&run).await.unwrap();
    }
    let (mut seen, mut query) = (Vec::new(), String::new());
    loop {
        let page = world.ask(&format!("GET /runs?date=2026-03-09&limit=2{query}"), "").await.json();
        let batch = |run: &Value| run["batch"].as_str().unwrap().to_owned();
        seen.push(page["data"].as_array().unwrap().iter().map(batch).collect::<Vec<_>>());
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        query = format!("&cursor={cursor}");
    }
    assert_eq!(seen, [["reminders", "reminders"], ["payments", "payments"]]);
}
