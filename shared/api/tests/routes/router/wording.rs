//! Checks that problems are in plain words: sends many invalid values in each field and parameter of the OpenAPI
//! document.

use billing::{Delivery, DeliveryKey};
use chrono::DateTime;
use serde_json::{Value, json};

use crate::router::world::{NEW_SUBSCRIPTION, World};

/// Words from Rust, serde and other libraries, which callers do not understand.
const LIBRARY_WORDS: [&str; 24] = [
    "expected",
    "i64",
    "i32",
    "u64",
    "u32",
    "u8",
    "usize",
    "struct",
    "enum",
    "variant",
    "ident",
    "invalid type",
    "invalid value",
    "invalid length",
    "invalid digit",
    "invalid characters",
    "out of range",
    "line 1 column",
    "trailing characters",
    "EOF",
    "premature end",
    "unexpected",
    "Some(",
    "`",
];

/// Returns values that most fields and parameters refuse.
fn invalid_values() -> Vec<Value> {
    let texts = [
        "",
        " ",
        "x",
        "12.99",
        "1299",
        "-1",
        "1e3",
        "9999999999999999999999",
        "31.01.2027",
        "2027-02-29",
        "2027-1-1",
        "+12027-01-01",
        "2027-01-31T00:00:00Z",
        "null",
        "true",
        "{}",
        "é",
        "\u{202e}",
        "\u{200b}",
        "=?utf-8?q?x?=",
        "4242424242424242",
        "eur",
        "EURO",
        "both",
        "..",
        "-x",
        "a#b",
    ];
    let mut values: Vec<Value> = texts.into_iter().map(Value::from).collect();
    values.extend([json!(null), json!(true), json!(0), json!(-1), json!(32), json!(300), json!(12.99), json!(1299.0)]);
    values.extend([json!(1e30), json!(u64::MAX), json!([]), json!([1, "a"]), json!({}), json!({"a": 1})]);
    values.push("x".repeat(5_000).into());
    values
}

fn contains_no_library_word(text: &str) -> bool {
    !LIBRARY_WORDS.iter().any(|word| text.contains(word))
}

/// Returns `schema`, or the component of `document` to which it refers.
fn resolve<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(name) => document.pointer(name.trim_start_matches('#')).unwrap(),
        None => schema,
    }
}

/// Returns invalid request bodies: each of the invalid values, and variants of `base` in which one field, at any depth,
/// is missing, unknown or has one of the invalid values.
fn invalid_bodies(document: &Value, schema: &Value, base: &Value) -> Vec<Value> {
    let mut bodies = invalid_values();
    let extra = |name: &str| {
        let mut body = base.clone();
        body[name] = 1.into();
        body
    };
    bodies.extend([extra("price"), extra(&"x".repeat(5_000))]);
    for (name, property) in resolve(document, schema)["properties"].as_object().into_iter().flatten() {
        let mut inner = vec![];
        if resolve(document, property)["properties"].is_object() {
            inner = invalid_bodies(document, property, &base[name]);
        }
        for value in invalid_values().into_iter().chain(inner) {
            let mut body = base.clone();
            body[name] = value;
            bodies.push(body);
        }
        let mut without_field = base.clone();
        without_field.as_object_mut().unwrap().remove(name);
        bodies.push(without_field);
    }
    bodies
}

#[tokio::test]
async fn invalid_bodies_are_refused_in_plain_words() {
    let world = World::new().await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    let receipt = format!("2026-03-10.{}.{}", world.gold.id, world.gold.sku);
    let document = api::openapi_document();
    let mut refused = 0;
    let created = world.request("POST /webhook-endpoints", r#"{"url": "https://example.com"}"#).await.json();
    let endpoint = created["id"].as_str().unwrap();
    let key = DeliveryKey { endpoint: endpoint.parse().unwrap(), event: "e1".to_owned() };
    let delivery = Delivery::new(key, "account.created".to_owned(), "{}".to_owned(), DateTime::UNIX_EPOCH);
    assert!(world.table.create_delivery(&delivery).await.unwrap());
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            if schema.is_null() {
                continue;
            }
            let base = match operation["operationId"].as_str().unwrap() {
                "create_subscription" => serde_json::from_str(NEW_SUBSCRIPTION).unwrap(),
                "put_account" => json!({"email": "a@example.com", "name": "A", "locale": "de"}),
                "change_subscription" => {
                    json!({"payment_method": {"customer": "cus_1", "payment_method": "pm_card_visa"}})
                }
                "create_webhook_endpoint" => json!({"url": "https://example.com", "types": ["payment.succeeded"]}),
                "refund_receipt" => json!({"reason": "late"}),
                _ => json!({}),
            };
            let path = path.replace("/accounts/{account}/subscriptions/{subscription}", "{gold}");
            let request = format!("{} {}", method.to_uppercase(), path.replace("{account}", "acme"));
            let request =
                request.replace("{endpoint}", endpoint).replace("{event}", "e1").replace("{receipt}", &receipt);
            let is_refund = request.ends_with("/refund");
            for (number, body) in invalid_bodies(&document, schema, &base).into_iter().enumerate() {
                let key = format!("invalid body {number}");
                let headers: &[(&str, &str)] = if is_refund { &[("idempotency-key", &key)] } else { &[] };
                let response = world.request_with_headers(&request, headers, &body.to_string()).await;
                assert!(response.status < 500, "{request} {body}: {}", response.text);
                if response.status < 300 {
                    continue;
                }
                refused += 1;
                let problem = response.json();
                let detail = problem["detail"].as_str().unwrap();
                assert!(contains_no_library_word(detail) && detail.len() < 400, "{request} {body}: {detail}");
                assert!(matches!(response.status, 400 | 409 | 422), "{request} {body}: {}", response.text);
                let names_field = problem["field"].is_string() || !body.is_object() || response.status == 409;
                assert!(names_field, "{request} {body}: {}", response.text);
            }
            for text in
                ["{", "nonsense", "{\"a\":1,}", "{} x", "{'a':1}", "\"\\u12\"", "01", "\u{feff}{}", "[[[[", "{1:2}"]
            {
                let headers: &[(&str, &str)] = if is_refund { &[("idempotency-key", "malformed")] } else { &[] };
                let problem = world.request_with_headers(&request, headers, text).await.problem();
                assert!(
                    problem.starts_with("400 malformed-body -: the body is not JSON")
                        && contains_no_library_word(&problem),
                    "{problem}"
                );
            }
            let headers: &[(&str, &str)] = if is_refund { &[("idempotency-key", "deep")] } else { &[] };
            let deep = world.request_with_headers(&request, headers, &"[".repeat(10_000)).await.problem();
            assert!(
                deep.starts_with("400 malformed-body -: the body is not JSON") && contains_no_library_word(&deep),
                "{deep}"
            );
        }
    }
    assert!(refused > 500, "only {refused} bodies were refused");
}

#[tokio::test]
async fn invalid_and_unknown_parameters_are_refused_in_plain_words() {
    let world = World::new().await;
    let document = api::openapi_document();
    let encoded = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let request_to = |account: &str, subscription: &str, batch: &str| {
                let path = path.replace("{account}", account).replace("{subscription}", subscription);
                let path = path.replace("{batch}", batch).replace("{receipt}", "x");
                format!("{} {path}", method.to_uppercase())
            };
            let valid = request_to("acme", &world.gold.id.to_string(), "payments");
            let unknown = world.request(&format!("{valid}?unheard_of=1"), "").await;
            let expected = "400 invalid-field unheard_of: is unknown; allowed names:";
            assert!(unknown.problem().starts_with(expected), "{valid}: {}", unknown.problem());
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let name = parameter["name"].as_str().unwrap();
                for value in invalid_values() {
                    let Some(text) = value.as_str() else { continue };
                    let response = match parameter["in"].as_str().unwrap() {
                        "query" => world.request(&format!("{valid}?{name}={}", encoded(text)), "").await,
                        "path" if text.is_empty() => continue,
                        "path" => {
                            let text = encoded(text);
                            let value_of =
                                |known: &str, usual: &str| if name == known { text.clone() } else { usual.to_owned() };
                            let subscription = value_of("subscription", &world.gold.id.to_string());
                            let request =
                                request_to(&value_of("account", "acme"), &subscription, &value_of("batch", "payments"));
                            world.request(&request, "").await
                        }
                        _ if text.is_ascii() => world.request_with_headers(&valid, &[(name, text)], "").await,
                        _ => continue,
                    };
                    assert!(response.status < 500, "{valid} {name}={text}: {}", response.text);
                    if response.status >= 400 {
                        let problem = response.json();
                        let detail = problem["detail"].as_str().unwrap();
                        assert!(
                            contains_no_library_word(detail) && detail.len() < 400,
                            "{valid} {name}={text}: {detail}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn document_describes_every_field_and_has_no_example_of_an_idempotency_key() {
    let document = api::openapi_document();
    let is_described = |property: &Value| {
        let alternatives = || property["oneOf"].as_array().into_iter().flatten();
        property["description"].is_string() || alternatives().any(|schema| schema["description"].is_string())
    };
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        assert!(schema["description"].is_string(), "{name}");
        for (field, property) in schema["properties"].as_object().into_iter().flatten() {
            assert!(is_described(property), "{name}.{field}");
        }
    }
    for (path, methods) in document["paths"].as_object().unwrap() {
        for operation in methods.as_object().unwrap().values() {
            let needs_no_token = ["/", "/health", "/payment-method-setups/{setup}/return", "/card-links/{link}"]
                .contains(&path.as_str());
            let security = if needs_no_token { json!([]) } else { json!([{"token": []}]) };
            assert_eq!(operation["security"], security, "{path}");
            assert!(operation["summary"].is_string() && operation["description"].is_string(), "{path}");
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                assert!(parameter["description"].is_string(), "{path} {}", parameter["name"]);
                let has_example = !parameter["example"].is_null();
                assert!(
                    parameter["name"] != "Idempotency-Key" || !has_example,
                    "{path}: users would send the same key"
                );
            }
        }
    }
    assert_eq!(document["servers"][0]["url"], "/");
}
