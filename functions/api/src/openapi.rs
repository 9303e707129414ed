//! The OpenAPI document: what the routes say of themselves, with what all of them have in common and their examples.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{Problem, routes};

const DESCRIPTION: &str = "Recurring payments: accounts, their subscriptions and receipts, and what an operator asks. \
    Amounts are integers in minor units of the currency. Errors are problems (RFC 9457) that name the field and what is \
    allowed. A POST may carry an Idempotency-Key: the same caller, route, key and body get the same answer for 24 hours. \
    An account may read its own things, pause, resume and cancel, and change payment method and payment day; everything \
    else is the operator's.";

const TOKEN: &str = "A token of the deployment's issuer. One with the scope dueday/operator is an operator's; any other is of \
    the account that its subject names.";

/// What is sent and answered for each operation; a test sends each of them and compares.
const EXAMPLES: &str = include_str!("../examples.json");

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
        "contact": {"name": "The operator of this deployment"},
        "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
    });
    document["servers"] = json!([{"url": "/", "description": "The server that this document is of"}]);
    document["tags"] = json!([
        {"name": "accounts", "description": "Who pays"},
        {"name": "subscriptions", "description": "What is paid each month"},
        {"name": "receipts", "description": "What was paid in the last six months"},
        {"name": "webhooks", "description": "Programs that are told what happens"},
        {"name": "operation", "description": "What is due, and what the batches did"},
    ]);
    document["components"]["schemas"]["Problem"] = json!(<Problem as utoipa::PartialSchema>::schema());
    document["components"]["securitySchemes"]["token"] = json!({
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": TOKEN,
    });
    let examples: Vec<Example> = serde_json::from_str(EXAMPLES).expect("the examples are JSON");
    let paths = document["paths"].as_object_mut().expect("there are paths");
    for operation in paths.values_mut().flat_map(|path| path.as_object_mut()).flat_map(|path| path.values_mut()) {
        if !operation["security"].is_array() {
            operation["security"] = json!([{"token": []}]);
        } else {
            operation["security"] = json!([]);
        }
        add_problems(operation);
        let name = operation["operationId"].clone();
        if let Some(example) = examples.iter().find(|example| name == example.operation.as_str()) {
            add_example(operation, example);
        }
    }
    document
}

/// The document of a server on one machine, where a token may be left out: whoever reaches it is its operator.
///
/// # Panics
/// As [`document`].
pub fn local_document() -> Value {
    let mut document = document();
    let paths = document["paths"].as_object_mut().expect("there are paths");
    for operation in paths.values_mut().flat_map(|path| path.as_object_mut()).flat_map(|path| path.values_mut()) {
        let choices = operation["security"].as_array_mut().filter(|choices| !choices.is_empty());
        choices.into_iter().for_each(|choices| choices.push(json!({})));
    }
    document
}

fn add_example(operation: &mut Value, example: &Example) {
    for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap_or_default();
        // Whoever tries it out would send the key that others have sent, and be given their answer.
        if let Some(value) = example.parameters.get(name).filter(|_| name != "Idempotency-Key") {
            parameter["example"] = value.clone();
        }
    }
    if let (Some(body), Value::Object(_)) = (&example.body, &operation["requestBody"]) {
        operation["requestBody"]["content"]["application/json"]["example"] = body.clone();
    }
    if !example.answer.is_null() {
        let media_type = if example.status < 400 { "application/json" } else { "application/problem+json" };
        operation["responses"][example.status.to_string()]["content"][media_type]["example"] = example.answer.clone();
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
    let has_body = operation["requestBody"].is_object();
    let is_open = operation["security"].as_array().is_some_and(Vec::is_empty);
    let problems = [
        (400, "A field, parameter or header is not valid, or not known", true),
        (401, "The request carries no token, or one that is not valid", !is_open),
        (403, "The token is an account's, and only an operator may do this", !is_open),
        (404, "There is no such thing, or it is another account's", has("account") || has("endpoint")),
        (409, "It stands against where things are, or another request is writing them", has_body),
        (412, "The subscription has changed since", has("If-Match")),
        (413, "The body is larger than 64 KB", has_body),
        (415, "The header Content-Type: application/json is missing", has_body),
        (422, "The idempotency key was used with another body, or a field is refused as things are", has_body),
        (422, "The days lie ahead, or are not kept any more", has("from")),
        (422, "The cursor is another list's", has("cursor")),
        (503, "Temporarily unavailable: the same request may succeed later", true),
    ];
    for (status, description, _) in problems.into_iter().filter(|(_, _, can_be)| *can_be) {
        operation["responses"][status.to_string()] = json!({
            "description": description,
            "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
        });
    }
}
