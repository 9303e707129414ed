//! Sends the API Gateway events in `events/` to the function, through the real Lambda runtime loop.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::{Json, Router};
use billing::{AccountId, SigningSecret, Subscription};
use clock::{Clock, SimulatedClock, SystemClock, Timer as _};
use config::Env;
use emulator::{ServerLimits, serve_http};
use gateway_secrets::{FirstSecretRead, create_gateway_from_environment};
use sandbox::{Ledger, Sandbox, signed_gateway_router};
use serde_json::{Value, json};
use store::Paging;
use testkit::{
    ENCRYPTION_KEY, InvocationResult, LambdaFunction, items_with_plain_secret, sample_subscription,
    start_secrets_manager,
};
use tower::ServiceExt as _;

/// The environment variable with the URL of the delivery queue. No server listens at this URL, because these tests
/// redeliver no event.
const QUEUE_VARIABLE: (&str, &str) = ("DUEDAY_DELIVERY_QUEUE", "http://127.0.0.1:9/queue");

/// Reads the API Gateway event `name` from the folder `events/`.
fn sample_event(name: &str) -> Value {
    let path = format!("{}/../../events/apigateway-{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Sends `event`. Returns the status code, the body and the headers of the response.
async fn invoke(function: &mut LambdaFunction, event: &Value) -> (u64, Value, Value) {
    let deadline_ms = SystemClock.now().timestamp_millis() + 15_000;
    let InvocationResult::Response(response) = function.invoke(&event.to_string(), deadline_ms).await else {
        panic!("{event}")
    };
    let body = serde_json::from_str(response["body"].as_str().unwrap_or_default()).unwrap_or_default();
    (response["statusCode"].as_u64().unwrap(), body, response["headers"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn account_reads_the_account_and_subscription_that_an_operator_created() {
    let mut function = LambdaFunction::start(env!("CARGO_BIN_EXE_api"), "api", &[QUEUE_VARIABLE]).await;
    let (status, index, _) = invoke(&mut function, &sample_event("index")).await;
    assert_eq!((status, &index["name"], &index["docs"]), (200, &"Dueday".into(), &Value::Null), "{index}");
    let (status, health, _) = invoke(&mut function, &sample_event("health")).await;
    assert_eq!((status, health), (200, json!({"status": "ok"})));

    let (status, account, _) = invoke(&mut function, &sample_event("put-account")).await;
    assert_eq!((status, &account["id"], &account["mail_status"]), (201, &"acme".into(), &"deliverable".into()));
    assert_eq!(invoke(&mut function, &sample_event("put-account")).await.0, 200, "the account exists already");

    let (status, created, headers) = invoke(&mut function, &sample_event("create-subscription")).await;
    assert_eq!((status, &created["payment_day"], &created["amount"]), (201, &31.into(), &1299.into()), "{created}");
    assert_eq!(headers["idempotent-replayed"], Value::Null);
    let (status, replayed, headers) = invoke(&mut function, &sample_event("create-subscription")).await;
    assert_eq!((status, &replayed, &headers["idempotent-replayed"]), (201, &created, &"true".into()));

    let (status, list, _) = invoke(&mut function, &sample_event("list-subscriptions")).await;
    assert_eq!((status, &list), (200, &json!({"data": [created], "unreadable": [], "next_cursor": null})));
    let (status, list, _) = invoke(&mut function, &sample_event("list-receipts")).await;
    assert_eq!((status, list), (200, json!({"data": [], "unreadable": [], "next_cursor": null})));
    assert_eq!(invoke(&mut function, &sample_event("get-account")).await.0, 200);

    let acme: AccountId = "acme".parse().unwrap();
    let stored = function.table.get_subscriptions_by_account(&acme, &Paging::all()).await.unwrap().items;
    assert_eq!(stored.len(), 1);
    assert_eq!((stored[0].id.to_string(), stored[0].version), (created["id"].as_str().unwrap().to_owned(), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_endpoint_is_created_with_the_encryption_key_in_secrets_manager() {
    let secrets = start_secrets_manager(&[("encryption-keys", ENCRYPTION_KEY)]).await;
    let start = async |name| {
        let variables = [
            QUEUE_VARIABLE,
            ("DUEDAY_ENCRYPTION_KEYS_SECRET_NAME", name),
            ("AWS_ENDPOINT_URL_SECRETS_MANAGER", secrets.as_str()),
        ];
        LambdaFunction::start(env!("CARGO_BIN_EXE_api"), "api", &variables).await
    };
    let mut create = sample_event("create-subscription");
    create["rawPath"] = "/webhook-endpoints".into();
    create["requestContext"]["http"]["path"] = "/webhook-endpoints".into();
    create["body"] = r#"{"url": "https://1.1.1.1/hook"}"#.into();
    let mut function = start("encryption-keys").await;
    let (status, created, _) = invoke(&mut function, &create).await;
    assert_eq!(status, 201, "{created}");
    let secret: SigningSecret = created["secret"].as_str().unwrap().parse().unwrap();
    let (status, repeated, headers) = invoke(&mut function, &create).await;
    assert_eq!((status, &repeated, &headers["idempotent-replayed"]), (201, &created, &"true".into()));
    assert_eq!(items_with_plain_secret(&function.table, &secret).await, []);

    let mut without_keys = start("another").await;
    assert_eq!(invoke(&mut without_keys, &create).await.0, 503);
    assert_eq!(invoke(&mut without_keys, &sample_event("health")).await.0, 200, "the other routes work");
}

#[tokio::test(flavor = "multi_thread")]
async fn function_of_a_core_stack_needs_no_queue_and_no_encryption_keys_and_refuses_webhook_endpoints() {
    // The template gives the function of such a stack blank variables.
    let variables = [
        ("DUEDAY_PARTS", "core"),
        ("DUEDAY_DELIVERY_QUEUE", ""),
        ("DUEDAY_QUEUES", ""),
        ("DUEDAY_ENCRYPTION_KEYS_SECRET_NAME", ""),
    ];
    let mut function = LambdaFunction::start(env!("CARGO_BIN_EXE_api"), "api", &variables).await;
    assert_eq!(invoke(&mut function, &sample_event("put-account")).await.0, 201);
    assert_eq!(invoke(&mut function, &sample_event("create-subscription")).await.0, 201);
    let mut create = sample_event("create-subscription");
    create["rawPath"] = "/webhook-endpoints".into();
    create["requestContext"]["http"]["path"] = "/webhook-endpoints".into();
    create["body"] = r#"{"url": "https://1.1.1.1/hook"}"#.into();
    let (status, refused, _) = invoke(&mut function, &create).await;
    assert_eq!((status, &refused["type"]), (409, &"urn:dueday:problem:not-deployed".into()), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sample_events_change_and_cancel_a_subscription_and_get_its_schedule() {
    let mut function = LambdaFunction::start(env!("CARGO_BIN_EXE_api"), "api", &[QUEUE_VARIABLE]).await;
    invoke(&mut function, &sample_event("put-account")).await;
    let today = SystemClock.now().date_naive();
    // The sample events contain this id.
    let subscription =
        Subscription { id: "01JZXCVBNM0123456789ABCDEF".parse().unwrap(), ..sample_subscription(10, today) };
    function.table.create_subscription(&subscription, None).await.unwrap();

    let (status, changed, headers) = invoke(&mut function, &sample_event("change-subscription")).await;
    assert_eq!((status, &changed["amount"], &headers["etag"]), (200, &1499.into(), &"\"2\"".into()), "{changed}");
    assert_eq!(
        invoke(&mut function, &sample_event("change-subscription")).await.0,
        412,
        "the stored version is 2, not 1"
    );
    let (status, schedule, _) = invoke(&mut function, &sample_event("get-schedule")).await;
    assert_eq!((status, schedule["data"].as_array().unwrap().len()), (200, 3), "{schedule}");
    let (status, due, _) = invoke(&mut function, &sample_event("list-due-payments")).await;
    assert_eq!((status, &due["data"]), (200, &json!([])), "{due}");
    let (status, ending, _) = invoke(&mut function, &sample_event("cancel-subscription")).await;
    assert_eq!((status, &ending["cancel_date"]), (200, &subscription.due_on.to_string().into()), "{ending}");
    let (_, again, headers) = invoke(&mut function, &sample_event("cancel-subscription")).await;
    assert_eq!((again, &headers["idempotent-replayed"]), (ending, &"true".into()));
    let (_, schedule, _) = invoke(&mut function, &sample_event("get-schedule")).await;
    assert_eq!(schedule["data"], json!([]), "a subscription that will be cancelled has no planned payments");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_without_a_token_or_of_another_account_are_refused() {
    let mut function = LambdaFunction::start(env!("CARGO_BIN_EXE_api"), "api", &[QUEUE_VARIABLE]).await;
    invoke(&mut function, &sample_event("put-account")).await;
    for name in ["put-account", "get-account", "create-subscription", "list-subscriptions", "list-receipts"] {
        let mut anonymous = sample_event(name);
        anonymous["requestContext"].as_object_mut().unwrap().remove("authorizer");
        let (status, problem, headers) = invoke(&mut function, &anonymous).await;
        assert_eq!((status, &problem["type"]), (401, &"urn:dueday:problem:unauthorized".into()), "{name}");
        assert_eq!(headers["content-type"], "application/problem+json");

        let mut other = sample_event(name);
        other["requestContext"]["authorizer"]["jwt"]["claims"] =
            json!({"sub": "other-account", "scope": "openid dueday/account"});
        let status = invoke(&mut function, &other).await.0;
        assert_eq!(status, 404, "{name} by another account");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn preflight_request_of_a_browser_needs_no_token() {
    let mut function = LambdaFunction::start(env!("CARGO_BIN_EXE_api"), "api", &[QUEUE_VARIABLE]).await;
    let mut preflight = sample_event("get-account");
    preflight["requestContext"].as_object_mut().unwrap().remove("authorizer");
    preflight["requestContext"]["http"]["method"] = "OPTIONS".into();
    preflight["headers"] = json!({"origin": "https://shop.example.com", "access-control-request-method": "GET"});
    let (status, body, _) = invoke(&mut function, &preflight).await;
    assert_eq!((status, body), (204, Value::Null));
}

/// Serves `routes` and returns their base URL.
async fn serve_routes(routes: Router) -> String {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(serve_http(listener, routes, ServerLimits::default()));
    url
}

/// Imitates `GetQueueAttributes` of SQS. The queue `/lost` has two due messages and no redrive policy. The queue
/// `/deliveries` has due, delayed and in-progress messages, and a redrive policy. No other queue exists.
async fn queue_attributes(body: String) -> (StatusCode, Json<Value>) {
    let request: Value = serde_json::from_str(&body).unwrap();
    let url = request["QueueUrl"].as_str().unwrap();
    let numbers = |due: &str, delayed: &str, in_progress: &str| {
        json!({"ApproximateNumberOfMessages": due, "ApproximateNumberOfMessagesDelayed": delayed,
            "ApproximateNumberOfMessagesNotVisible": in_progress})
    };
    let attributes = match url.rsplit_once('/') {
        Some((_, "lost")) => numbers("2", "0", "0"),
        Some((_, "deliveries")) => {
            let mut attributes = numbers("7", "3", "1");
            attributes["RedrivePolicy"] = json!({"maxReceiveCount": 100}).to_string().into();
            attributes
        }
        _ => {
            let error = json!({"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "no such queue"});
            return (StatusCode::BAD_REQUEST, Json(error));
        }
    };
    (StatusCode::OK, Json(json!({ "Attributes": attributes })))
}

#[tokio::test(flavor = "multi_thread")]
async fn status_shows_the_messages_in_the_queues_and_says_if_a_queue_cannot_be_read() {
    let sqs = serve_routes(Router::new().fallback(queue_attributes)).await;
    let mut get_status = sample_event("index");
    (get_status["rawPath"], get_status["requestContext"]["http"]["path"]) = (json!("/status"), json!("/status"));
    get_status["requestContext"]["authorizer"] = sample_event("put-account")["requestContext"]["authorizer"].clone();
    let queue = |name: &str, waiting: Option<u64>, in_progress: Option<u64>, keeps_failed_messages: Option<bool>| {
        json!({
            "name": name,
            "waiting": waiting,
            "in_progress": in_progress,
            "keeps_failed_messages": keeps_failed_messages,
            "late_since": null,
        })
    };
    let deliveries = queue("deliveries", Some(10), Some(1), Some(false));
    let lost = queue("lost", Some(2), Some(0), Some(true));
    let unknown = queue("deleted", None, None, None);
    let lost_messages = "messages in the queue lost that could not be processed: 2";
    for (names, queues, expected) in [
        (&["deliveries", "lost"][..], json!([deliveries, lost]), &[lost_messages][..]),
        // The queue that cannot be read does not hide the others.
        (
            &["deliveries", "deleted", "lost"],
            json!([deliveries, unknown, lost]),
            &["the queue deleted could not be read", lost_messages],
        ),
    ] {
        let urls: Vec<String> = names.iter().map(|name| format!("{name}={sqs}/{name}")).collect();
        let urls = urls.join(",");
        let variables = [QUEUE_VARIABLE, ("DUEDAY_QUEUES", urls.as_str()), ("AWS_ENDPOINT_URL_SQS", sqs.as_str())];
        let mut function = LambdaFunction::start(env!("CARGO_BIN_EXE_api"), "api", &variables).await;
        let (status, body, _) = invoke(&mut function, &get_status).await;
        assert_eq!((status, &body["queues"]), (200, &queues), "{body}");
        let problems = body["problems"].as_array().unwrap();
        let of_queues: Vec<&Value> =
            problems.iter().filter(|problem| problem.as_str().unwrap().contains("queue")).collect();
        assert_eq!(of_queues, expected, "{problems:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn gateway_key_is_read_again_when_it_is_readable_and_when_it_is_replaced() {
    const OLD_KEY: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const NEW_KEY: &str = "whsec_AaNqVDMAAAEAAAAAAAAACAGjalQzAAABAAAAAAAAAAg=";
    let clock = Arc::new(SimulatedClock::new("2027-01-31T06:00:00Z".parse().unwrap(), 1));
    let stored: Arc<Mutex<Option<&str>>> = Arc::default();
    let shared = stored.clone();
    // Imitates `GetSecretValue` of Secrets Manager.
    let get_secret_value = move || async move {
        match *shared.lock().unwrap() {
            Some(key) => (StatusCode::OK, Json(json!({"Name": "gateway-key", "SecretString": key}))),
            None => (StatusCode::BAD_REQUEST, Json(json!({"__type": "ResourceNotFoundException", "Message": "none"}))),
        }
    };
    let secrets = serve_routes(Router::new().fallback(get_secret_value)).await;
    let sandbox = Arc::new(Sandbox::new(Ledger::in_memory(), clock.clone()));
    let keys: Arc<Mutex<&str>> = Arc::new(Mutex::new(OLD_KEY));
    let (accepted, time) = (keys.clone(), clock.clone());
    // The routes of a sandbox gateway that accepts the key in `keys`. The test replaces this key.
    let routes = move |request: Request| {
        let key = accepted.lock().unwrap().parse().unwrap();
        signed_gateway_router(sandbox.clone(), key, time.clone()).oneshot(request)
    };
    let url = serve_routes(Router::new().fallback(routes)).await;
    let sdk = aws_config::defaults(aws_config::BehaviorVersion::latest());
    let sdk = sdk.region("eu-west-1").test_credentials().endpoint_url(&secrets).load().await;
    let env = |name: &str| match name {
        "DUEDAY_GATEWAY" => Some(url.clone()),
        "DUEDAY_GATEWAY_KEY_SECRET_NAME" => Some("gateway-key".to_owned()),
        _ => None,
    };
    let timeout = Duration::from_secs(5);
    let gateway = create_gateway_from_environment(Env(&env), &sdk, timeout, FirstSecretRead::MayFail, clock.clone())
        .await
        .unwrap();
    assert!(gateway.account().await.is_err(), "the key cannot be read");
    *stored.lock().unwrap() = Some(OLD_KEY);
    assert!(gateway.account().await.is_err(), "it is not read again at once");
    clock.sleep(Duration::from_secs(60)).await;
    gateway.account().await.unwrap();
    (*stored.lock().unwrap(), *keys.lock().unwrap()) = (Some(NEW_KEY), NEW_KEY);
    clock.sleep(Duration::from_secs(10)).await;
    gateway.account().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn route_that_needs_the_gateway_returns_503_while_the_gateways_key_cannot_be_read() {
    let secrets = start_secrets_manager(&[]).await;
    let variables = [
        QUEUE_VARIABLE,
        ("DUEDAY_GATEWAY", "http://127.0.0.1:9"),
        ("DUEDAY_GATEWAY_KEY_SECRET_NAME", "gateway-key"),
        ("AWS_ENDPOINT_URL_SECRETS_MANAGER", secrets.as_str()),
    ];
    let mut function = LambdaFunction::start(env!("CARGO_BIN_EXE_api"), "api", &variables).await;
    assert_eq!(invoke(&mut function, &sample_event("put-account")).await.0, 201, "other routes work");
    let mut set_up = sample_event("create-subscription");
    let path = json!("/accounts/acme/payment-method-setups");
    (set_up["rawPath"], set_up["requestContext"]["http"]["path"], set_up["body"]) = (path.clone(), path, Value::Null);
    let (status, problem, _) = invoke(&mut function, &set_up).await;
    assert_eq!(status, 503, "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn checkout_page_returns_the_browser_to_the_configured_address_or_to_the_domain_of_api_gateway() {
    const KEY: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let sandbox = Arc::new(Sandbox::new(Ledger::in_memory(), Arc::new(SystemClock)));
    let routes = signed_gateway_router(sandbox.clone(), KEY.parse().unwrap(), Arc::new(SystemClock));
    let gateway = serve_routes(routes).await;
    sandbox.set_url(&gateway);
    let secrets = start_secrets_manager(&[("gateway-key", KEY)]).await;
    for (configured, expected) in [
        ("https://pay.example.com", "https://pay.example.com"),
        ("", "https://a1b2c3d4e5.execute-api.eu-west-1.amazonaws.com"),
    ] {
        let variables = [
            QUEUE_VARIABLE,
            ("DUEDAY_API_URL", configured),
            ("DUEDAY_GATEWAY", gateway.as_str()),
            ("DUEDAY_GATEWAY_KEY_SECRET_NAME", "gateway-key"),
            ("AWS_ENDPOINT_URL_SECRETS_MANAGER", secrets.as_str()),
        ];
        let mut function = LambdaFunction::start(env!("CARGO_BIN_EXE_api"), "api", &variables).await;
        invoke(&mut function, &sample_event("put-account")).await;
        let mut set_up = sample_event("create-subscription");
        let path = json!("/accounts/acme/payment-method-setups");
        (set_up["rawPath"], set_up["requestContext"]["http"]["path"], set_up["body"]) =
            (path.clone(), path, "{}".into());
        set_up["headers"]["host"] = "evil.example".into();
        let (status, setup, _) = invoke(&mut function, &set_up).await;
        assert_eq!(status, 201, "{setup}");
        let page = setup["url"].as_str().unwrap().rsplit('/').next().unwrap().parse().unwrap();
        let (opened, _) = sandbox.page_at(&page, SystemClock.now()).unwrap();
        let id = setup["id"].as_str().unwrap();
        assert_eq!(opened.return_url, format!("{expected}/payment-method-setups/{id}/return"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn create_subscription_error_names_the_invalid_field_and_the_allowed_values() {
    let mut function = LambdaFunction::start(env!("CARGO_BIN_EXE_api"), "api", &[QUEUE_VARIABLE]).await;
    invoke(&mut function, &sample_event("put-account")).await;
    let body: Value = serde_json::from_str(sample_event("create-subscription")["body"].as_str().unwrap()).unwrap();
    // The columns are: a field, an invalid value of the field, and a part of the expected error.
    for (field, value, expected) in [
        ("payment_day", json!(32), "from 1 to 31, not 32"),
        ("payment_day", json!("31"), "must be a whole number, not text"),
        ("amount", json!(0), "from 1 to 999999999999"),
        ("amount", json!(12.99), "must be a whole number, not 12.99; amounts are in minor units"),
        ("currency", json!("eur"), "ISO 4217 currency code in capitals"),
        ("sku", json!("a#b"), "1 to 64 letters, digits, '.', '_' or '-', and must begin with a letter or a digit"),
        ("payment_method.customer", json!(""), "1 to 255 letters, digits"),
        ("email", json!("no-address"), "must be an e-mail address"),
        ("amount", json!("1299"), "must be a whole number, not text; amounts are in minor units"),
        ("sku", json!(".."), "begin with a letter or a digit"),
        ("payment_method", json!("pm_card_visa"), "must be an object, not text"),
        ("first_payment_date", json!("31.01.2027"), "must be a date like 2027-01-31"),
        ("first_payment_date", json!("2027-02-29"), "must be a date like 2027-01-31"),
        ("first_payment_date", json!("+10000-01-31"), "must be a date like 2027-01-31"),
        ("product_name", json!("Gold\u{202e}plan"), "must not contain characters that change the direction"),
        ("product_name", Value::Null, "must be text, not null"),
        ("price", json!(1), "is unknown; allowed names: sku, product_name"),
    ] {
        let mut wrong = body.clone();
        match field.split_once('.') {
            Some((parent, child)) => wrong[parent][child] = value.clone(),
            None => wrong[field] = value.clone(),
        }
        let mut request = sample_event("create-subscription");
        request["body"] = wrong.to_string().into();
        let (status, problem, _) = invoke(&mut function, &request).await;
        assert_eq!((status, &problem["field"]), (400, &field.into()), "{field}={value}: {problem}");
        assert!(problem["detail"].as_str().unwrap().contains(expected), "{field}={value}: {problem}");
    }
    for (date, expected) in [("2999-01-31", "must not be after"), ("2001-01-31", "must not be before")] {
        let mut refused = body.clone();
        refused["first_payment_date"] = json!(date);
        let mut request = sample_event("create-subscription");
        request["body"] = refused.to_string().into();
        let (status, problem, _) = invoke(&mut function, &request).await;
        assert_eq!((status, &problem["field"]), (422, &"first_payment_date".into()), "{date}: {problem}");
        assert!(problem["detail"].as_str().unwrap().contains(expected), "{date}: {problem}");
    }
    let mut without_sku = body.clone();
    without_sku.as_object_mut().unwrap().remove("sku");
    for (text, status, kind) in [
        (without_sku.to_string(), 400, "invalid-field"),
        ("{".to_owned(), 400, "malformed-body"),
        (format!("{body} x"), 400, "malformed-body"),
        (format!("\"{}\"", "x".repeat(70_000)), 413, "too-large"),
    ] {
        let mut request = sample_event("create-subscription");
        request["body"] = text.into();
        let (actual_status, problem, _) = invoke(&mut function, &request).await;
        assert_eq!(
            (actual_status, problem["type"].as_str().unwrap()),
            (status, format!("urn:dueday:problem:{kind}").as_str()),
            "{problem}"
        );
    }
    let mut reused = sample_event("create-subscription");
    invoke(&mut function, &reused).await;
    let mut with_other_amount = body;
    with_other_amount["amount"] = json!(1599);
    reused["body"] = with_other_amount.to_string().into();
    assert_eq!(invoke(&mut function, &reused).await.0, 422, "the idempotency key was used with another body");
    let acme: AccountId = "acme".parse().unwrap();
    assert_eq!(
        function.table.get_subscriptions_by_account(&acme, &Paging::all()).await.unwrap().items.len(),
        1,
        "the refused requests wrote nothing"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn unencoded_characters_in_the_query_string_and_a_large_body_get_a_response() {
    let mut function = LambdaFunction::start(env!("CARGO_BIN_EXE_api"), "api", &[QUEUE_VARIABLE]).await;
    invoke(&mut function, &sample_event("put-account")).await;
    let mut list = sample_event("list-receipts");
    for character in [" ", "\"", "<", ">", "#", "ä", "\u{1}"] {
        list["rawQueryString"] = format!("cursor=a{character}b").into();
        let (status, problem, _) = invoke(&mut function, &list).await;
        assert_eq!((status, &problem["field"]), (400, &"cursor".into()), "{character}: {problem}");
    }
    let mut put = sample_event("put-account");
    put["body"] = format!(r#"{{"name": "{}"}}"#, "x".repeat(1024 * 1024)).into();
    put["isBase64Encoded"] = false.into();
    let (status, problem, _) = invoke(&mut function, &put).await;
    assert_eq!((status, &problem["type"]), (413, &"urn:dueday:problem:too-large".into()), "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn documented_commands_of_api_function_succeed() {
    for report in &testkit::run_sam_local_commands("ApiFunction", env!("CARGO_BIN_EXE_api")).await {
        assert_eq!(report["statusCode"], 201, "{report}");
    }
}
