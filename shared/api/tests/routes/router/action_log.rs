//! Tests of the action log: each route that changes stored data writes one entry, and a refused request writes no
//! entry.

use std::collections::BTreeSet;

use billing::{ActionKind, Actor, ActorName, Delivery, DeliveryKey, LoggedAction};
use chrono::{DateTime, TimeDelta};
use clock::Clock as _;
use emulator::{EngineConnection, ExternalOperation, Fault};
use rest::{Caller, Role, TokenSubject};
use store::{CardLink, Paging};
use testkit::fault_in_first_calls;
use ulid::Ulid;

use crate::router::world::{NEW_SUBSCRIPTION, World, acme, at};

/// A test case: a request that changes stored data, the body of a refused request to the same route, and the kind of
/// the entry in the action log. If `refused_body` is `-`, the refused request is a request for an item that does not
/// exist.
struct Case {
    operation: &'static str,
    request: &'static str,
    body: &'static str,
    refused_body: &'static str,
    kind: &'static str,
}

/// Creates a test case.
const fn case(
    operation: &'static str,
    request: &'static str,
    body: &'static str,
    refused_body: &'static str,
    kind: &'static str,
) -> Case {
    Case { operation, request, body, refused_body, kind }
}

/// The test cases, in an order in which each request succeeds.
const CASES: [Case; 20] = [
    case(
        "put_account",
        "PUT /accounts/acme",
        r#"{"email": "new@example.com", "name": "Ms Secret", "mail_status": "bounced"}"#,
        r#"{"email": "x"}"#,
        "account.put",
    ),
    case(
        "create_subscription",
        "POST /accounts/acme/subscriptions",
        NEW_SUBSCRIPTION,
        r#"{"sku": "x"}"#,
        "subscription.create",
    ),
    case("change_subscription", "PATCH {gold}", r#"{"amount": 1499}"#, r#"{"amount": -1}"#, "subscription.change"),
    case("pause_subscription", "POST {gold}/pause", "{}", r#"{"x": 1}"#, "subscription.pause"),
    case("resume_subscription", "POST {gold}/resume", "{}", r#"{"x": 1}"#, "subscription.resume"),
    case(
        "cancel_subscription",
        "POST {gold}/cancel",
        r#"{"at_period_end": true}"#,
        r#"{"at_period_end": 1}"#,
        "subscription.cancel",
    ),
    case("uncancel_subscription", "POST {gold}/uncancel", "{}", r#"{"x": 1}"#, "subscription.uncancel"),
    case(
        "refund_receipt",
        "POST /accounts/acme/receipts/{receipt}/refund",
        r#"{"amount": 100, "reason": "ticket 4711"}"#,
        r#"{"amount": 100}"#,
        "refund.create",
    ),
    case("retry_subscription", "POST {gold}/retry", "{}", r#"{"x": 1}"#, "subscription.retry"),
    case("open_card_link", "POST /card-links/{link}", "", "-", "payment_method_setup.create"),
    case(
        "create_payment_method_setup",
        "POST /accounts/acme/payment-method-setups",
        "{}",
        r#"{"subscriptions": []}"#,
        "payment_method_setup.create",
    ),
    case(
        "correct_price",
        "POST {gold}/correct-price",
        r#"{"amount": 999, "reason": "wrong price"}"#,
        r#"{"amount": 999}"#,
        "subscription.correct_price",
    ),
    case(
        "waive_month",
        "POST {gold}/waive",
        r#"{"month": "2026-04", "reason": "goodwill"}"#,
        r#"{"month": "2026-05", "reason": "goodwill"}"#,
        "subscription.waive",
    ),
    case(
        "record_paid_elsewhere",
        "POST {gold}/paid-elsewhere",
        r#"{"month": "2026-05", "reason": "cash"}"#,
        r#"{"month": "2026-04", "reason": "cash"}"#,
        "subscription.paid_elsewhere",
    ),
    case(
        "create_webhook_endpoint",
        "POST /webhook-endpoints",
        r#"{"url": "https://example.com/secret"}"#,
        r#"{"url": "http://example.com"}"#,
        "webhook_endpoint.create",
    ),
    case(
        "change_webhook_endpoint",
        "PATCH /webhook-endpoints/{endpoint}",
        r#"{"types": ["payment.succeeded"]}"#,
        r#"{"types": ["x"]}"#,
        "webhook_endpoint.change",
    ),
    case(
        "rotate_webhook_secret",
        "POST /webhook-endpoints/{endpoint}/rotate-secret",
        "{}",
        r#"{"x": 1}"#,
        "webhook_endpoint.rotate_secret",
    ),
    case(
        "redeliver_event",
        "POST /webhook-endpoints/{endpoint}/deliveries/e1/redeliver",
        "{}",
        r#"{"x": 1}"#,
        "delivery.redeliver",
    ),
    case("remove_webhook_endpoint", "DELETE /webhook-endpoints/{endpoint}", "", "-", "webhook_endpoint.remove"),
    // For this route, the test sends the same request twice. The first request is refused, because the subscriptions
    // are not cancelled yet.
    case("erase_account", "DELETE /accounts/acme", "", "", "account.erase"),
];

impl World {
    /// Returns all entries of the action log, in no particular order.
    async fn logged(&self) -> Vec<LoggedAction> {
        let (paging, now) = (Paging::all(), self.clock.now());
        let mut all = self.table.get_actions_by_account(&self.gold.account, &paging, now).await.unwrap();
        let mut without = self.table.get_actions_without_account(&paging, now).await.unwrap();
        assert!(all.unreadable.is_empty() && without.unreadable.is_empty());
        all.items.append(&mut without.items);
        all.items
    }
}

/// The ids of the receipt and the webhook endpoint in the paths of the requests.
struct Ids {
    receipt: String,
    endpoint: String,
}

impl Ids {
    /// Returns `request` with the ids in place of the placeholders in its path, such as `{receipt}`.
    fn path(&self, request: &str) -> String {
        let link = Ulid(77).to_string();
        let request = request.replace("{receipt}", &self.receipt).replace("{link}", &link);
        request.replace("{endpoint}", &self.endpoint)
    }
}

/// Sends `request`, and returns the status code of the response. Only a request for a refund gets the idempotency key
/// `key`, because refunds require a key.
async fn send(world: &World, request: &str, key: &str, body: &str) -> u16 {
    let headers = [("idempotency-key", key)];
    let headers: &[(&str, &str)] = if request.ends_with("/refund") { &headers } else { &[] };
    world.request_with_headers(request, headers, body).await.status
}

/// Gives the subscription `gold` a card that is declined, and runs the payment batch, so that a payment is owed. Then
/// stores a card link for this payment, with which the customer can enter another card.
async fn decline_payment_and_store_card_link(world: &World) {
    let card = r#"{"payment_method": {"customer": "cus_1", "payment_method": "pm_card_visa_chargeDeclinedInsufficientFunds"}}"#;
    assert_eq!(world.request("PATCH {gold}", card).await.status, 200);
    world.run_payments("2026-04-10T06:00:00Z").await;
    let gold = world.stored_gold().await;
    let link = CardLink { account: gold.account, subscription: gold.id, due_on: gold.due_on };
    world.table.put_card_link(Ulid(77), &link, world.clock.now()).await.unwrap();
}

/// Stores a delivery of the event `e1` to the first webhook endpoint. Returns the id of the endpoint.
async fn store_delivery(world: &World) -> String {
    let list = world.request("GET /webhook-endpoints", "").await.json();
    let endpoint = list["data"][0]["id"].as_str().unwrap().to_owned();
    let key = DeliveryKey { endpoint: endpoint.parse().unwrap(), event: "e1".to_owned() };
    let delivery = Delivery::new(key, "account.created".to_owned(), "{}".to_owned(), DateTime::UNIX_EPOCH);
    assert!(world.table.create_delivery(&delivery).await.unwrap());
    endpoint
}

#[tokio::test]
async fn each_route_that_changes_something_writes_one_entry_and_a_refused_request_writes_none() {
    let document = api::openapi_document();
    let mut changing = BTreeSet::new();
    for methods in document["paths"].as_object().unwrap().values() {
        for (_, operation) in methods.as_object().unwrap().iter().filter(|(method, _)| *method != "get") {
            changing.insert(operation["operationId"].as_str().unwrap().to_owned());
        }
    }
    let logged: BTreeSet<String> = CASES.iter().map(|case| case.operation.to_owned()).collect();
    assert_eq!(changing, logged, "add a case for each new route that changes something");

    let world = World::new().await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    let mut ids = Ids { receipt: format!("2026-03-10.{}.{}", world.gold.id, world.gold.sku), endpoint: String::new() };
    assert_eq!(world.logged().await, [], "runs log no action");
    for (number, case) in CASES.iter().enumerate() {
        match case.operation {
            "retry_subscription" => decline_payment_and_store_card_link(&world).await,
            "change_webhook_endpoint" => ids.endpoint = store_delivery(&world).await,
            _ => {}
        }
        let (request, before) = (ids.path(case.request), world.logged().await);
        if case.refused_body == "-" {
            let missing = request.replace(&ids.path("{link}"), &Ulid(78).to_string());
            let missing =
                if ids.endpoint.is_empty() { missing } else { missing.replace(&ids.endpoint, &Ulid(79).to_string()) };
            assert_eq!(send(&world, &missing, "missing", "").await, 404, "{missing}");
        } else {
            let status = send(&world, &request, &format!("refused {number}"), case.refused_body).await;
            assert!((400..500).contains(&status), "{request} {}: {status}", case.refused_body);
        }
        assert_eq!(world.logged().await.len(), before.len(), "{request} was refused");
        if case.operation == "erase_account" {
            world.cancel_subscriptions().await;
            world.clock.set(world.clock.now() + TimeDelta::days(3));
        }
        let status = send(&world, &request, &format!("key {number}"), case.body).await;
        assert!((200..400).contains(&status), "{request} {}: {status}", case.body);
        let mut after = world.logged().await;
        after.retain(|entry| !before.contains(entry));
        let kinds: Vec<String> = after.iter().map(|entry| entry.kind.to_string()).collect();
        assert_eq!(kinds, [case.kind], "{request} {}", case.body);
        assert_eq!((&after[0].actor, after[0].at), (&Actor::Anonymous, world.clock.now()), "{request}");
        world.clock.set(world.clock.now() + TimeDelta::seconds(1));
    }
    let items = world.table.scan().await.unwrap();
    let entries = items.into_iter().filter(|item| item["SK"].as_s().unwrap().starts_with("ACTION#"));
    let entries: Vec<String> = entries.map(|item| format!("{item:?}")).collect();
    assert_eq!(entries.len(), CASES.len() + 1, "one more for the change of the payment method before the retry");
    for secret in ["new@example.com", "Ms Secret", "cus_1", "pm_card", "example.com/secret"] {
        assert!(!entries.iter().any(|entry| entry.contains(secret)), "{secret}: {entries:?}");
    }
}

#[tokio::test]
async fn repeated_request_and_a_change_without_effect_write_no_entry() {
    let world = World::new().await;
    for _ in 0..2 {
        assert_eq!(world.request_with_key("POST {gold}/pause", "k", "{}").await.status, 200);
        assert_eq!(world.request("PATCH {gold}", r#"{"amount": 1499}"#).await.status, 200);
        assert_eq!(world.request_with_key("POST {gold}/resume", "r", "{}").await.status, 200);
        assert_eq!(
            world.request_with_key("POST /accounts/acme/subscriptions", "n", NEW_SUBSCRIPTION).await.status,
            201
        );
    }
    assert_eq!(world.logged().await.len(), 4);
}

#[tokio::test]
async fn log_names_the_actor_and_hides_operators_and_reasons_from_the_account() {
    let world = World::new().await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    let receipt = format!("2026-03-10.{}.{}", world.gold.id, world.gold.sku);
    let refund = format!("POST /accounts/acme/receipts/{receipt}/refund");
    let with_subject = |subject: &str| world.with_subject(TokenSubject(ActorName::new(subject)));
    let body = r#"{"amount": 100, "reason": "ticket 4711"}"#;
    let key = [("idempotency-key", "k")];
    let as_operator = with_subject("auth0|7").request_as(&Caller::Operator(Role::Admin), &refund, &key, body).await;
    assert_eq!(as_operator.status, 201, "{}", as_operator.text);
    world.clock.set(at("2026-03-11T06:00:00Z"));
    let as_account = with_subject("ms@example.com").request_as(&acme(), "POST {gold}/pause", &[], "").await;
    assert_eq!(as_account.status, 200, "{}", as_account.text);

    let path = "GET /accounts/acme/log";
    let list = world.request(path, "").await.json();
    let hashed = ActorName::new("ms@example.com").unwrap();
    assert_eq!(list["data"][0]["actor"], serde_json::json!({"kind": "account", "name": hashed.as_str()}));
    assert_eq!(list["data"][0]["before"]["status"], "active");
    assert_eq!(list["data"][0]["after"]["status"], "paused");
    assert_eq!(list["data"][1]["actor"], serde_json::json!({"kind": "operator", "name": "auth0|7"}));
    assert_eq!(list["data"][1]["reason"], "ticket 4711");
    assert_eq!(list["data"][1]["after"]["amount"], "1.00 EUR");

    let own = world.request_as(&acme(), path, &[], "").await.json();
    assert_eq!(own["data"][0], list["data"][0]);
    assert_eq!(own["data"][1]["actor"], serde_json::json!({"kind": "operator", "name": null}));
    assert_eq!(own["data"][1]["reason"], serde_json::Value::Null);
    let other = world.request_as(&Caller::of_account("other".parse().unwrap()), path, &[], "").await;
    assert_eq!(other.status, 404);
    assert_eq!(world.request("GET /accounts/none/log", "").await.status, 404);

    let first = world.request(&format!("{path}?limit=1"), "").await.json();
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = world.request(&format!("{path}?limit=1&cursor={cursor}"), "").await.json();
    assert_eq!((&first["data"][0], &second["data"][0]), (&list["data"][0], &list["data"][1]));
    assert_eq!(second["next_cursor"], serde_json::Value::Null);
}

#[tokio::test]
async fn card_that_the_customer_enters_is_logged_for_each_subscription_with_the_setup_as_the_actor() {
    let world = World::new().await;
    let other = world.request_with_key("POST /accounts/acme/subscriptions", "n", NEW_SUBSCRIPTION).await.json();
    let setup = world.request("POST /accounts/acme/payment-method-setups", "{}").await.json();
    let setup = setup["id"].as_str().unwrap();
    let stored = world.table.get_setup(setup.parse().unwrap()).await.unwrap().unwrap();
    let name = stored.public_name();
    let (page, card) = (format!("page_{setup}").parse().unwrap(), "pm_card_mastercard".parse().unwrap());
    world.clock.set(world.clock.now() + TimeDelta::minutes(1));
    let before = world.logged().await;
    let return_path = format!("GET /payment-method-setups/{setup}/return");
    assert_eq!(world.request_without_token(&return_path, &[], "").await.json()["status"], "open");
    assert_eq!(world.logged().await.len(), before.len(), "the customer has entered nothing yet");
    assert!(world.sandbox.complete_page_at(&page, &card, world.clock.now()).unwrap());
    for _ in 0..2 {
        assert_eq!(world.request_without_token(&return_path, &[], "").await.json()["status"], "complete");
    }
    let mut entries = world.logged().await;
    entries.retain(|entry| !before.contains(entry));
    let mut subscriptions: Vec<String> = entries.iter().map(|entry| entry.subscription.unwrap().to_string()).collect();
    subscriptions.sort();
    let mut expected = vec![world.gold.id.to_string(), other["id"].as_str().unwrap().to_owned()];
    expected.sort();
    assert_eq!(subscriptions, expected, "each subscription has one entry, although the customer returned twice");
    for entry in &entries {
        assert_eq!(entry.actor, Actor::Customer(ActorName::new(&name)), "{entry:?}");
        assert_eq!((entry.kind, entry.at), (ActionKind::ChangeSubscription, world.clock.now()), "{entry:?}");
        assert!(!format!("{entry:?}").contains("pm_card"), "{entry:?}");
    }
    let own = world.request_as(&acme(), "GET /accounts/acme/log", &[], "").await.json();
    assert_eq!(own["data"][0]["actor"], serde_json::json!({"kind": "customer", "name": name}));

    // Everyone who knows the id of the setup can open its web page, so no list and no event contains the id.
    for path in ["/accounts/acme/log", "/log"] {
        let listed = world.request(&format!("GET {path}"), "").await.text;
        assert!(!listed.contains(setup), "{path}: {listed}");
    }
    for entry in world.logged().await {
        let image = billing::ItemImage::Action(Box::new(entry));
        for event in billing::events_between_images(None, Some(&image), world.clock.now()) {
            let event = billing::CloudEvent::new(event, "source");
            assert!(!serde_json::to_string(&event).unwrap().contains(setup), "{event:?}");
        }
    }
    let page = world.request_without_token(&format!("GET /payment-method-setups/{name}/return"), &[], "").await;
    assert_eq!(page.status, 404, "the public name opens nothing: {}", page.text);
}

#[tokio::test]
async fn entries_expire_after_two_years_and_the_list_without_account_reads_all_months() {
    let world = World::new().await;
    let months = ["2026-03-31T23:59:59Z", "2026-04-01T00:00:00Z", "2026-07-05T12:00:00Z"];
    for (number, time) in months.into_iter().enumerate() {
        world.clock.set(at(time));
        let body = format!(r#"{{"url": "https://example.com/{number}"}}"#);
        assert_eq!(world.request("POST /webhook-endpoints", &body).await.status, 201);
    }
    let times = async |after, limit, now| {
        let page = world.table.get_actions_without_account(&Paging { after, limit }, now).await.unwrap();
        (page.items.iter().map(|entry| entry.at).collect::<Vec<_>>(), page.next)
    };
    let (newest, middle, oldest) = (at(months[2]), at(months[1]), at(months[0]));
    assert_eq!(times(None, None, newest).await, (vec![newest, middle, oldest], None));
    let (first, next) = times(None, Some(2), newest).await;
    assert_eq!(first, [newest, middle]);
    assert_eq!(times(next, Some(2), newest).await, (vec![oldest], None));
    let (expired, kept) = (oldest + TimeDelta::days(730), oldest + TimeDelta::days(730) - TimeDelta::seconds(1));
    assert_eq!(times(None, None, kept).await.0.len(), 3);
    assert_eq!(times(None, None, expired).await.0, [newest, middle]);
}

#[tokio::test]
async fn change_whose_response_was_lost_is_made_and_logged_once() {
    let lost = fault_in_first_calls(1, ExternalOperation::DynamoDb("TransactWriteItems"), Fault::LostAfter);
    let connection = EngineConnection::with_faults(lost).without_retries().without_transaction_tokens();
    let world = World::with_connection(connection).await;
    // The transaction is executed, but its response is lost. The code sends the transaction again, and its condition
    // fails because the first transaction was executed.
    let if_match = [("if-match", "\"1\"")];
    let changed = world.request_with_headers("PATCH {gold}", &if_match, r#"{"amount": 1499}"#).await;
    assert_eq!((changed.status, changed.header("etag")), (200, "\"2\""), "{}", changed.text);
    assert_eq!(world.logged().await.len(), 1);
}

#[tokio::test]
async fn changes_of_a_subscription_are_logged_with_the_reason_of_the_caller() {
    let world = World::new().await;
    let changes = [
        ("PATCH {gold}", r#"{"amount": 1499, "reason": "a better price"}"#),
        ("POST {gold}/pause", r#"{"reason": "moves house"}"#),
        ("POST {gold}/resume", r#"{"reason": "has moved"}"#),
        ("POST {gold}/cancel", r#"{"at_period_end": true, "reason": "too expensive"}"#),
        ("POST {gold}/uncancel", r#"{"reason": "was a mistake"}"#),
    ];
    for (request, body) in changes {
        let response = world.request(request, body).await;
        assert_eq!(response.status, 200, "{request}: {}", response.text);
        world.clock.set(world.clock.now() + TimeDelta::seconds(1));
    }
    let reasons: Vec<String> =
        world.logged().await.iter().map(|entry| entry.reason.as_ref().unwrap().as_str().to_owned()).collect();
    assert_eq!(reasons, ["was a mistake", "too expensive", "has moved", "moves house", "a better price"]);
}
