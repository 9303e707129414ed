//! Every API Gateway event of `events/`, through the real Lambda runtime loop.

use billing::{AccountId, Subscription};
use clock::{Clock, SystemClock};
use serde_json::{Value, json};
use store::Paging;
use testkit::{Answer, Function, sample};

/// Nothing is delivered again here.
const QUEUE: (&str, &str) = ("DUEDAY_DELIVERY_QUEUE", "http://127.0.0.1:9/queue");

fn event(name: &str) -> Value {
    let path = format!("{}/../../events/apigateway-{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The status, the body, and the headers of the answer to `event`.
async fn answer(function: &mut Function, event: &Value) -> (u64, Value, Value) {
    let deadline_ms = SystemClock.now().timestamp_millis() + 15_000;
    let Answer::Response(response) = function.invoke(&event.to_string(), deadline_ms).await else { panic!("{event}") };
    let body = serde_json::from_str(response["body"].as_str().unwrap_or_default()).unwrap_or_default();
    (response["statusCode"].as_u64().unwrap(), body, response["headers"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn put_account_and_create_subscription_are_read_back_by_the_account() {
    let mut function = Function::start(env!("CARGO_BIN_EXE_api"), "api", &[QUEUE]).await;
    let (status, index, _) = answer(&mut function, &event("index")).await;
    assert_eq!((status, &index["name"], &index["docs"]), (200, &"Dueday".into(), &Value::Null), "{index}");
    let (status, health, _) = answer(&mut function, &event("health")).await;
    assert_eq!((status, health), (200, json!({"status": "ok", "shards": 4})));

    let (status, account, _) = answer(&mut function, &event("put-account")).await;
    assert_eq!((status, &account["id"], &account["mail_status"]), (201, &"acme".into(), &"deliverable".into()));
    assert_eq!(answer(&mut function, &event("put-account")).await.0, 200, "again: it is there");

    let (status, created, headers) = answer(&mut function, &event("create-subscription")).await;
    assert_eq!((status, &created["payment_day"], &created["amount"]), (201, &31.into(), &1299.into()), "{created}");
    assert_eq!(headers["idempotent-replayed"], Value::Null);
    let (status, replayed, headers) = answer(&mut function, &event("create-subscription")).await;
    assert_eq!((status, &replayed, &headers["idempotent-replayed"]), (201, &created, &"true".into()));

    let (status, list, _) = answer(&mut function, &event("list-subscriptions")).await;
    assert_eq!((status, &list), (200, &json!({"data": [created], "unreadable": [], "next_cursor": null})));
    let (status, list, _) = answer(&mut function, &event("list-receipts")).await;
    assert_eq!((status, list), (200, json!({"data": [], "unreadable": [], "next_cursor": null})));
    assert_eq!(answer(&mut function, &event("get-account")).await.0, 200);

    let acme: AccountId = "acme".parse().unwrap();
    let stored = function.table.get_subscriptions_by_account(&acme, &Paging::all()).await.unwrap().items;
    assert_eq!(stored.len(), 1);
    assert_eq!((stored[0].id.to_string(), stored[0].version), (created["id"].as_str().unwrap().to_owned(), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn change_cancel_and_get_schedule_answer_the_sample_events() {
    let mut function = Function::start(env!("CARGO_BIN_EXE_api"), "api", &[QUEUE]).await;
    answer(&mut function, &event("put-account")).await;
    let today = SystemClock.now().date_naive();
    // The subscription that the sample events name.
    let named = Subscription { id: "01JZXCVBNM0123456789ABCDEF".parse().unwrap(), ..sample::subscription(10, today) };
    function.table.create_subscription(&named, None).await.unwrap();

    let (status, changed, headers) = answer(&mut function, &event("change-subscription")).await;
    assert_eq!((status, &changed["amount"], &headers["etag"]), (200, &1499.into(), &"\"2\"".into()), "{changed}");
    assert_eq!(answer(&mut function, &event("change-subscription")).await.0, 412, "it is no longer version 1");
    let (status, schedule, _) = answer(&mut function, &event("get-schedule")).await;
    assert_eq!((status, schedule["data"].as_array().unwrap().len()), (200, 3), "{schedule}");
    let (status, due, _) = answer(&mut function, &event("list-due-payments")).await;
    assert_eq!((status, &due["data"]), (200, &json!([])), "{due}");
    let (status, ending, _) = answer(&mut function, &event("cancel-subscription")).await;
    assert_eq!((status, &ending["cancel_date"]), (200, &named.due_on.to_string().into()), "{ending}");
    let (_, again, headers) = answer(&mut function, &event("cancel-subscription")).await;
    assert_eq!((again, &headers["idempotent-replayed"]), (ending, &"true".into()));
    let (_, schedule, _) = answer(&mut function, &event("get-schedule")).await;
    assert_eq!(schedule["data"], json!([]), "nothing is charged any more");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_without_a_token_or_of_another_account_are_refused() {
    let mut function = Function::start(env!("CARGO_BIN_EXE_api"), "api", &[QUEUE]).await;
    answer(&mut function, &event("put-account")).await;
    for name in ["put-account", "get-account", "create-subscription", "list-subscriptions", "list-receipts"] {
        let mut anonymous = event(name);
        anonymous["requestContext"].as_object_mut().unwrap().remove("authorizer");
        let (status, problem, headers) = answer(&mut function, &anonymous).await;
        assert_eq!((status, &problem["type"]), (401, &"urn:dueday:problem:unauthorized".into()), "{name}");
        assert_eq!(headers["content-type"], "application/problem+json");

        let mut other = event(name);
        other["requestContext"]["authorizer"]["jwt"]["claims"] = json!({"sub": "somebody-else", "scope": "openid"});
        let status = answer(&mut function, &other).await.0;
        assert_eq!(status, 404, "{name} by another account");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn create_subscription_names_the_wrong_field_and_what_is_allowed() {
    let mut function = Function::start(env!("CARGO_BIN_EXE_api"), "api", &[QUEUE]).await;
    answer(&mut function, &event("put-account")).await;
    let body: Value = serde_json::from_str(event("create-subscription")["body"].as_str().unwrap()).unwrap();
    for (field, value, said) in [
        ("payment_day", json!(32), "from 1 to 31, not 32"),
        ("payment_day", json!("31"), "must be a whole number, not text"),
        ("amount", json!(0), "from 1 to 999999999999"),
        ("amount", json!(12.99), "must be a whole number, not 12.99; amounts are in minor units"),
        ("currency", json!("eur"), "ISO 4217 currency code in capitals"),
        ("sku", json!("a#b"), "1 to 64 of letters, digits, '.', '_', '-', and begin with a letter or a digit"),
        ("payment_method.customer", json!(""), "1 to 255 of letters, digits"),
        ("email", json!("nobody"), "must be an e-mail address"),
        ("amount", json!("1299"), "must be a whole number, not text; amounts are in minor units"),
        ("sku", json!(".."), "begin with a letter or a digit"),
        ("payment_method", json!("pm_card_visa"), "must be an object, not text"),
        ("first_payment_date", json!("31.01.2027"), "must be a date like 2027-01-31"),
        ("first_payment_date", json!("2027-02-29"), "must be a date like 2027-01-31"),
        ("first_payment_date", json!("+10000-01-31"), "must be a date like 2027-01-31"),
        ("product_name", json!("Gold\u{202e}plan"), "must not hold characters that change the direction"),
        ("product_name", Value::Null, "must be text, not null"),
        ("price", json!(1), "is not known; this takes sku, product_name"),
    ] {
        let mut wrong = body.clone();
        match field.split_once('.') {
            Some((parent, child)) => wrong[parent][child] = value.clone(),
            None => wrong[field] = value.clone(),
        }
        let mut request = event("create-subscription");
        request["body"] = wrong.to_string().into();
        let (status, problem, _) = answer(&mut function, &request).await;
        assert_eq!((status, &problem["field"]), (400, &field.into()), "{field}={value}: {problem}");
        assert!(problem["detail"].as_str().unwrap().contains(said), "{field}={value}: {problem}");
    }
    for (date, said) in [("2999-01-31", "must not lie after"), ("2001-01-31", "must not lie before")] {
        let mut refused = body.clone();
        refused["first_payment_date"] = json!(date);
        let mut request = event("create-subscription");
        request["body"] = refused.to_string().into();
        let (status, problem, _) = answer(&mut function, &request).await;
        assert_eq!((status, &problem["field"]), (422, &"first_payment_date".into()), "{date}: {problem}");
        assert!(problem["detail"].as_str().unwrap().contains(said), "{date}: {problem}");
    }
    let mut lacking = body.clone();
    lacking.as_object_mut().unwrap().remove("sku");
    for (text, status, kind) in [
        (lacking.to_string(), 400, "invalid-field"),
        ("{".to_owned(), 400, "malformed-body"),
        (format!("{body} x"), 400, "malformed-body"),
        (format!("\"{}\"", "x".repeat(70_000)), 413, "too-large"),
    ] {
        let mut request = event("create-subscription");
        request["body"] = text.into();
        let (answered, problem, _) = answer(&mut function, &request).await;
        assert_eq!(
            (answered, problem["type"].as_str().unwrap()),
            (status, format!("urn:dueday:problem:{kind}").as_str()),
            "{problem}"
        );
    }
    let mut reused = event("create-subscription");
    answer(&mut function, &reused).await;
    let mut dearer = body;
    dearer["amount"] = json!(1599);
    reused["body"] = dearer.to_string().into();
    assert_eq!(answer(&mut function, &reused).await.0, 422, "an idempotency key used for another body");
    let acme: AccountId = "acme".parse().unwrap();
    assert_eq!(
        function.table.get_subscriptions_by_account(&acme, &Paging::all()).await.unwrap().items.len(),
        1,
        "nothing else was written"
    );
}
