//! The sample events of the orders' API, through the real Lambda runtime loop.

use clock::{Clock, SystemClock};
use emulator::Engine;
use orders::OrdersTable;
use serde_json::{Value, json};
use testkit::{Answer, Function};

fn event(name: &str) -> Value {
    let path = format!("{}/../../events/apigateway-{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// As `event`, of whoever has these claims.
fn of(mut event: Value, claims: Value) -> Value {
    event["requestContext"]["authorizer"]["jwt"]["claims"] = claims;
    event
}

/// As `event`, of another path.
fn at(mut event: Value, path: &str) -> Value {
    event["rawPath"] = path.into();
    event
}

async fn answer(function: &mut Function, event: &Value) -> (u64, Value) {
    let deadline_ms = SystemClock.now().timestamp_millis() + 15_000;
    let Answer::Response(response) = function.invoke(&event.to_string(), deadline_ms).await else { panic!("{event}") };
    let body = serde_json::from_str(response["body"].as_str().unwrap_or_default()).unwrap_or_default();
    (response["statusCode"].as_u64().unwrap(), body)
}

#[tokio::test(flavor = "multi_thread")]
async fn function_answers_the_sample_events_and_tells_callers_apart_by_their_claims() {
    let engine = Engine::memory();
    let table = OrdersTable::new(engine.client(), "dueday-orders");
    table.create_if_absent().await.unwrap();
    let mut function = Function::on(&engine, env!("CARGO_BIN_EXE_orders-api"), "orders-api", &[]).await;
    let (status, customer) = answer(&mut function, &event("put-customer")).await;
    assert_eq!(
        (status, &customer["address"]["city"], &customer["orders"]["filled"]),
        (200, &json!("Leeds"), &json!(0))
    );
    assert!(table.customer(&"acme".parse().unwrap()).await.unwrap().unwrap().address.is_some());
    let (status, list) = answer(&mut function, &event("list-orders")).await;
    assert_eq!((status, list), (200, json!({"data": [], "unreadable": [], "next_cursor": null})));

    let account = json!({"sub": "acme", "scope": "openid"});
    assert_eq!(answer(&mut function, &of(event("put-customer"), account.clone())).await.0, 200, "its own");
    assert_eq!(answer(&mut function, &of(event("list-orders"), account)).await.0, 403);
    let other = json!({"sub": "other", "scope": "openid"});
    assert_eq!(answer(&mut function, &of(event("put-customer"), other)).await.0, 404);
    let mut nobody = event("list-orders");
    nobody["requestContext"].as_object_mut().unwrap().remove("authorizer");
    assert_eq!(answer(&mut function, &nobody).await.0, 401);

    let confidential = at(event("list-orders"), "/employees/e-1/confidential");
    let mut without_query = confidential.clone();
    without_query["rawQueryString"] = "".into();
    without_query.as_object_mut().unwrap().remove("queryStringParameters");
    for (scope, status) in
        [("dueday/operator", 403), ("dueday/confidential", 403), ("dueday/operator dueday/confidential", 404)]
    {
        let asked = of(without_query.clone(), json!({"sub": "somebody", "scope": scope}));
        assert_eq!(answer(&mut function, &asked).await.0, status, "{scope}");
    }
}
