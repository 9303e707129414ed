//! Whatever is wrong with a request is said in plain words: every field and parameter of the document is sent wrong values.

use billing::{Delivery, DeliveryKey};
use chrono::DateTime;
use serde_json::{Value, json};

use crate::router::world::{NEW, World};

/// Words of Rust, serde and the libraries, which say nothing to a caller.
const FOREIGN: [&str; 24] = [
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

fn wrong_values() -> Vec<Value> {
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

fn is_plain(text: &str) -> bool {
    !FOREIGN.iter().any(|word| text.contains(word))
}

/// The schema, or the component it refers to.
fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(name) => document.pointer(name.trim_start_matches('#')).unwrap(),
        None => schema,
    }
}

/// `base` with each field of the schema, at any depth, set to each wrong value, and with a field too many and one too few.
fn wrong_bodies(document: &Value, schema: &Value, base: &Value) -> Vec<Value> {
    let mut bodies = wrong_values();
    let extra = |name: &str| {
        let mut body = base.clone();
        body[name] = 1.into();
        body
    };
    bodies.extend([extra("price"), extra(&"x".repeat(5_000))]);
    for (name, property) in resolved(document, schema)["properties"].as_object().into_iter().flatten() {
        let mut inner = vec![];
        if resolved(document, property)["properties"].is_object() {
            inner = wrong_bodies(document, property, &base[name]);
        }
        for value in wrong_values().into_iter().chain(inner) {
            let mut body = base.clone();
            body[name] = value;
            bodies.push(body);
        }
        let mut lacking = base.clone();
        lacking.as_object_mut().unwrap().remove(name);
        bodies.push(lacking);
    }
    bodies
}

#[tokio::test]
async fn requests_with_a_wrong_body_are_refused_in_plain_words() {
    let world = World::new().await;
    world.charge("2026-03-10T06:00:00Z").await;
    let receipt = format!("2026-03-10.{}.{}", world.gold.id, world.gold.sku);
    let document = api::document();
    let mut refused = 0;
    let created = world.ask("POST /webhook-endpoints", r#"{"url": "https://example.com"}"#).await.json();
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
                "create_subscription" => serde_json::from_str(NEW).unwrap(),
                "put_account" => json!({"email": "a@example.com", "name": "A", "locale": "de"}),
                "change_subscription" => {
                    json!({"payment_method": {"customer": "cus_1", "payment_method": "pm_card_visa"}})
                }
                "create_webhook_endpoint" => json!({"url": "https://example.com", "types": ["payment.succeeded"]}),
                _ => json!({}),
            };
            let path = path.replace("/accounts/{account}/subscriptions/{subscription}", "{gold}");
            let request = format!("{} {}", method.to_uppercase(), path.replace("{account}", "acme"));
            let request =
                request.replace("{endpoint}", endpoint).replace("{event}", "e1").replace("{receipt}", &receipt);
            let is_refund = request.ends_with("/refund");
            for (number, body) in wrong_bodies(&document, schema, &base).into_iter().enumerate() {
                let key = format!("wrong body {number}");
                let headers: &[(&str, &str)] = if is_refund { &[("idempotency-key", &key)] } else { &[] };
                let answered = world.ask_with(&request, headers, &body.to_string()).await;
                assert!(answered.status < 500, "{request} {body}: {}", answered.text);
                if answered.status < 300 {
                    continue;
                }
                refused += 1;
                let problem = answered.json();
                let detail = problem["detail"].as_str().unwrap();
                assert!(is_plain(detail) && detail.len() < 400, "{request} {body}: {detail}");
                assert!(matches!(answered.status, 400 | 409 | 422), "{request} {body}: {}", answered.text);
                let names_it = problem["field"].is_string() || !body.is_object() || answered.status == 409;
                assert!(names_it, "{request} {body}: {}", answered.text);
            }
            for text in
                ["{", "nonsense", "{\"a\":1,}", "{} x", "{'a':1}", "\"\\u12\"", "01", "\u{feff}{}", "[[[[", "{1:2}"]
            {
                let headers: &[(&str, &str)] = if is_refund { &[("idempotency-key", "malformed")] } else { &[] };
                let problem = world.ask_with(&request, headers, text).await.problem();
                assert!(
                    problem.starts_with("400 malformed-body -: the body is not JSON") && is_plain(&problem),
                    "{problem}"
                );
            }
            let headers: &[(&str, &str)] = if is_refund { &[("idempotency-key", "deep")] } else { &[] };
            let deep = world.ask_with(&request, headers, &"[".repeat(10_000)).await.problem();
            assert!(deep.starts_with("400 malformed-body -: the body is not JSON") && is_plain(&deep), "{deep}");
        }
    }
    assert!(refused > 500, "{refused}");
}

#[tokio::test]
async fn requests_with_a_wrong_or_unknown_parameter_are_refused_in_plain_words() {
    let world = World::new().await;
    let document = api::document();
    let encoded = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let named = |account: &str, subscription: &str, batch: &str| {
                let path = path.replace("{account}", account).replace("{subscription}", subscription);
                let path = path.replace("{batch}", batch).replace("{receipt}", "x");
                format!("{} {path}", method.to_uppercase())
            };
            let right = named("acme", &world.gold.id.to_string(), "payments");
            let unknown = world.ask(&format!("{right}?unheard_of=1"), "").await;
            let said = "400 invalid-field unheard_of: is not known; this takes";
            assert!(unknown.problem().starts_with(said), "{right}: {}", unknown.problem());
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let name = parameter["name"].as_str().unwrap();
                for value in wrong_values() {
                    let Some(text) = value.as_str() else { continue };
                    let answered = match parameter["in"].as_str().unwrap() {
                        "query" => world.ask(&format!("{right}?{name}={}", encoded(text)), "").await,
                        "path" if text.is_empty() => continue,
                        "path" => {
                            let text = encoded(text);
                            let other =
                                |known: &str, usual: &str| if name == known { text.clone() } else { usual.to_owned() };
                            let subscription = other("subscription", &world.gold.id.to_string());
                            let request = named(&other("account", "acme"), &subscription, &other("batch", "payments"));
                            world.ask(&request, "").await
                        }
                        _ if text.is_ascii() => world.ask_with(&right, &[(name, text)], "").await,
                        _ => continue,
                    };
                    assert!(answered.status < 500, "{right} {name}={text}: {}", answered.text);
                    if answered.status >= 400 {
                        let problem = answered.json();
                        let detail = problem["detail"].as_str().unwrap();
                        assert!(is_plain(detail) && detail.len() < 400, "{right} {name}={text}: {detail}");
                    }
                }
            }
        }
    }
}

#[test]
fn document_describes_every_field_and_gives_away_no_idempotency_key() {
    let document = api::document();
    let is_described = |property: &Value| {
        let alternatives = || property["oneOf"].as_array().into_iter().flatten();
        property["description"].is_string() || alternatives().any(|one| one["description"].is_string())
    };
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        assert!(schema["description"].is_string(), "{name}");
        for (field, property) in schema["properties"].as_object().into_iter().flatten() {
            assert!(is_described(property), "{name}.{field}");
        }
    }
    for (path, methods) in document["paths"].as_object().unwrap() {
        for operation in methods.as_object().unwrap().values() {
            let is_open = ["/", "/health", "/payment-method-setups/{setup}/return"].contains(&path.as_str());
            let security = if is_open { json!([]) } else { json!([{"token": []}]) };
            assert_eq!(operation["security"], security, "{path}");
            assert!(operation["summary"].is_string() && operation["description"].is_string(), "{path}");
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                assert!(parameter["description"].is_string(), "{path} {}", parameter["name"]);
                let has_example = !parameter["example"].is_null();
                assert!(parameter["name"] != "Idempotency-Key" || !has_example, "{path}: it would be sent again");
            }
        }
    }
    assert_eq!(document["servers"][0]["url"], "/");
}
