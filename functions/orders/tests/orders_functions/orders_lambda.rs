//! Sends the sample API Gateway events for the orders API through the real Lambda runtime loop.

use clock::{Clock, SystemClock};
use emulator::Engine;
use orders::{Country, PlaceId, Region};
use orders_table::OrdersTable;
use serde_json::{Value, json};
use store::Table;
use testkit::{InvocationResult, LambdaFunction, sample_account};

/// Returns the sample event in the file `events/apigateway-NAME.json`.
fn sample_event(name: &str) -> Value {
    let path = format!("{}/../../events/apigateway-{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Returns `event` with the token claims `claims`.
fn with_claims(mut event: Value, claims: Value) -> Value {
    event["requestContext"]["authorizer"]["jwt"]["claims"] = claims;
    event
}

/// Returns `event` with the path `path`.
fn with_path(mut event: Value, path: &str) -> Value {
    event["rawPath"] = path.into();
    event
}

/// Sends `event`. Returns the status code and the body of the response.
async fn invoke(function: &mut LambdaFunction, event: &Value) -> (u64, Value) {
    let deadline_ms = SystemClock.now().timestamp_millis() + 15_000;
    let InvocationResult::Response(response) = function.invoke(&event.to_string(), deadline_ms).await else {
        panic!("{event}")
    };
    let body = serde_json::from_str(response["body"].as_str().unwrap_or_default()).unwrap_or_default();
    (response["statusCode"].as_u64().unwrap(), body)
}

#[tokio::test(flavor = "multi_thread")]
async fn sample_events_succeed_and_claims_determine_the_access_rights() {
    let engine = Engine::in_memory();
    let table = OrdersTable::new(engine.client(), "dueday-orders");
    table.create_if_absent().await.unwrap();
    let (region, label) = ("eu".parse::<PlaceId>().unwrap(), |text: &str| text.parse().unwrap());
    table.put_entity(&Region { id: region.clone(), name: label("Europe") }).await.unwrap();
    table.put_entity(&Country { id: "gb".parse().unwrap(), name: label("Britain"), region }).await.unwrap();
    let mut function =
        LambdaFunction::start_on_engine(&engine, env!("CARGO_BIN_EXE_orders-api"), "orders-api", &[]).await;
    let payments = Table::new(engine.client(), "dueday");
    assert!(payments.create_account(&sample_account()).await.unwrap());
    let (status, customer) = invoke(&mut function, &sample_event("put-customer")).await;
    assert_eq!((status, &customer["address"]["city"]), (200, &json!("Leeds")));
    assert!(table.get_customer(&"acme".parse().unwrap()).await.unwrap().unwrap().address.is_some());
    let (status, list) = invoke(&mut function, &sample_event("list-orders")).await;
    assert_eq!((status, list), (200, json!({"data": [], "unreadable": [], "next_cursor": null})));

    let account = json!({"sub": "acme", "scope": "openid dueday/account"});
    assert_eq!(
        invoke(&mut function, &with_claims(sample_event("put-customer"), account.clone())).await.0,
        200,
        "an account may set its own address"
    );
    assert_eq!(invoke(&mut function, &with_claims(sample_event("list-orders"), account)).await.0, 403);
    let other = json!({"sub": "other", "scope": "openid dueday/account"});
    assert_eq!(invoke(&mut function, &with_claims(sample_event("put-customer"), other)).await.0, 404);
    let mut unauthenticated = sample_event("list-orders");
    unauthenticated["requestContext"].as_object_mut().unwrap().remove("authorizer");
    assert_eq!(invoke(&mut function, &unauthenticated).await.0, 401);

    let confidential = with_path(sample_event("list-orders"), "/employees/e-1/confidential");
    let mut without_query = confidential.clone();
    without_query["rawQueryString"] = "".into();
    without_query.as_object_mut().unwrap().remove("queryStringParameters");
    for (scope, status) in
        [("dueday/support", 403), ("dueday/confidential", 403), ("dueday/operator", 403), ("dueday/admin", 404)]
    {
        let request = with_claims(without_query.clone(), json!({"sub": "operator-1", "scope": scope}));
        assert_eq!(invoke(&mut function, &request).await.0, status, "{scope}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn documented_commands_of_orders_function_succeed() {
    for report in &testkit::run_sam_local_commands("OrdersFunction", env!("CARGO_BIN_EXE_orders")).await {
        assert_eq!(report["batchItemFailures"], json!([]), "{report}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn documented_commands_of_orders_api_function_succeed() {
    for report in &testkit::run_sam_local_commands("OrdersApiFunction", env!("CARGO_BIN_EXE_orders-api")).await {
        assert_eq!(report["statusCode"], 200, "{report}");
    }
}
