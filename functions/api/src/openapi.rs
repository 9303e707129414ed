//! The OpenAPI document: what the routes say of themselves, with what all of them have in common and their examples.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{Problem, routes};

const DESCRIPTION: &str = "Recurring payments: accounts, their subscriptions and receipts, and what an operator asks. \
    Amounts are integers in minor units of the currency. Errors are problems (RFC 9457) that name the field and what is \
    allowed. A POST may carry an Idempotency-Key: the same caller, route, key and body get the same answer for 24 hours. \
    An account may read its own things, pause, resume and cancel, and change payment method and payment day; everything \
    else is the operator's.";

/// What is sent and answered for each operation; a test sends each of them and compares.
const EXAMPLES: &str = include_str!("../examples.json");

/// Parameters that many operations take.
const PARAMETERS: [(&str, &str); 10] = [
    ("account", "The account"),
    ("subscription", "The subscription"),
    ("receipt", "The receipt"),
    ("cursor", "The next_cursor of an earlier page"),
    ("limit", "At most this many items"),
    ("months", "At most this many months"),
    ("date", "A date; today in the billing time zone if absent"),
    ("batch", "One of the two batches"),
    ("Idempotency-Key", "The same key with the same body gets the same answer for 24 hours"),
    ("If-Match", "Only if the subscription still has this ETag"),
];

/// One request and its answer.
#[derive(Deserialize)]
struct Example {
    operation: String,
    /// Path, query and header parameters.
    #[serde(default)]
    parameters: Map<String, Value>,
    body: Option<Value>,
    status: u16,
    answer: Value,
}

/// The OpenAPI 3.1 document of all routes, with an example of each.
///
/// # Panics
/// If the examples cannot be read, as their test shows at once.
pub fn document() -> Value {
    let (_, described) = routes::all().split_for_parts();
    let mut document = serde_json::to_value(described).expect("the document is JSON");
    document["info"] = json!({
        "title": "Dueday",
        "version": env!("CARGO_PKG_VERSION"),
        "description": DESCRIPTION,
        "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
    });
    document["tags"] = json!([
        {"name": "accounts", "description": "Who pays"},
        {"name": "subscriptions", "description": "What is paid each month"},
        {"name": "receipts", "description": "What was paid in the last six months"},
        {"name": "operation", "description": "What is due, and what the batches did"},
    ]);
    document["components"]["schemas"]["Problem"] = json!(<Problem as utoipa::PartialSchema>::schema());
    document["components"]["securitySchemes"] =
        json!({"token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}});
    document["security"] = json!([{"token": []}]);

    let examples: Vec<Example> = serde_json::from_str(EXAMPLES).expect("the examples are JSON");
    let paths = document["paths"].as_object_mut().expect("there are paths");
    for operation in paths.values_mut().flat_map(|path| path.as_object_mut()).flat_map(|path| path.values_mut()) {
        add_problems(operation);
        describe_absent_body(operation);
        let name = operation["operationId"].clone();
        let example = examples.iter().find(|example| name == example.operation.as_str());
        for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
            describe(parameter, example);
        }
        if let Some(example) = example {
            if let (Some(body), Value::Object(_)) = (&example.body, &operation["requestBody"]) {
                operation["requestBody"]["content"]["application/json"]["example"] = body.clone();
            }
            let answer = &mut operation["responses"][example.status.to_string()]["content"]["application/json"];
            answer["example"] = example.answer.clone();
        }
    }
    document
}

/// A body that may be absent may not be null.
fn describe_absent_body(operation: &mut Value) {
    if let Some(schema) = operation.pointer_mut("/requestBody/content/application~1json/schema")
        && without_null(schema)
    {
        operation["requestBody"]["required"] = false.into();
    }
}

/// What is optional is written as what it is or null. Takes the null out; answers whether there was one.
fn without_null(schema: &mut Value) -> bool {
    let is_null = |shape: &Value| *shape == json!({"type": "null"});
    if let Some(types) = schema["type"].as_array() {
        schema["type"] = types.iter().find(|kind| *kind != "null").cloned().unwrap_or_default();
        return true;
    }
    let shapes = schema["oneOf"].as_array().filter(|shapes| shapes.iter().any(is_null));
    let Some(shape) = shapes.and_then(|shapes| shapes.iter().find(|shape| !is_null(shape))).cloned() else {
        return false;
    };
    *schema = shape;
    true
}

fn describe(parameter: &mut Value, example: Option<&Example>) {
    let name = parameter["name"].as_str().unwrap_or_default().to_owned();
    if let Some((_, text)) = PARAMETERS.iter().find(|(known, _)| *known == name) {
        parameter["description"] = (*text).into();
    }
    if let Some(schema) = parameter.get_mut("schema") {
        without_null(schema);
    }
    if let Some(value) = example.and_then(|example| example.parameters.get(&name)) {
        parameter["example"] = value.clone();
    }
}

/// Adds the problems that an operation can answer, by what it takes.
fn add_problems(operation: &mut Value) {
    let names: Vec<String> = operation["parameters"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|parameter| parameter["name"].as_str().map(str::to_owned))
        .collect();
    let has = |name: &str| names.iter().any(|known| known == name);
    let (has_body, is_open) = (operation["requestBody"].is_object(), operation["security"].is_array());
    let problems = [
        (400, "A field, parameter or header is not valid", has_body || !names.is_empty()),
        (401, "The request carries no verified identity", !is_open),
        (403, "Only an operator may do this", !is_open),
        (404, "There is no such thing, or it is another account's", has("account")),
        (409, "It stands against where things are, or another request is writing them", has_body),
        (412, "The subscription has changed since", has("If-Match")),
        (413, "The body is larger than 64 KB", has_body),
        (415, "The body is not JSON", has_body),
        (422, "The idempotency key was used with another body, or a date is refused", has("Idempotency-Key")),
        (422, "The cursor is another list's", has("cursor")),
        (503, "Temporarily unavailable", true),
    ];
    for (status, description, _) in problems.into_iter().filter(|(_, _, can_be)| *can_be) {
        operation["responses"][status.to_string()] = json!({
            "description": description,
            "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
        });
    }
}
