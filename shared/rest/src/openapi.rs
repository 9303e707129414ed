//! The OpenAPI document: what the routes say of themselves, with what all of them have in common and their examples.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::openapi::OpenApi;

use crate::Problem;

const TOKEN: &str = "A token of the deployment's issuer. One with the scope dueday/operator is an operator's, who needs dueday/confidential, too, for what is confidential of employees; any other is of \
    the account that its subject names.";

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

/// What a function says of its routes beside what they say themselves.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    pub text: &'static str,
    /// What operations are grouped by: names and descriptions.
    pub tags: &'static [(&'static str, &'static str)],
    /// What is sent and answered for each operation, in JSON; a test sends each of them and compares.
    pub examples: &'static str,
}

/// The OpenAPI 3.1 document of `routes`, with an example of each.
///
/// # Panics
/// If the examples cannot be read, as their test shows at once.
pub fn document(routes: OpenApi, said: &Description) -> Value {
    let mut document = serde_json::to_value(routes).expect("the document is JSON");
    document["info"] = json!({
        "title": "Dueday",
        "version": env!("CARGO_PKG_VERSION"),
        "description": said.text,
        "contact": {"name": "The operator of this deployment"},
        "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
    });
    document["servers"] = json!([{"url": "/", "description": "The server that this document is of"}]);
    document["tags"] = said.tags.iter().map(|(name, text)| json!({"name": name, "description": text})).collect();
    document["components"]["schemas"]["Problem"] = json!(<Problem as utoipa::PartialSchema>::schema());
    document["components"]["securitySchemes"]["token"] = json!({
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": TOKEN,
    });
    let examples: Vec<Example> = serde_json::from_str(said.examples).expect("the examples are JSON");
    for operation in operations(&mut document) {
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
    remove_unused(&mut document);
    document
}

/// Removes the schemas that nothing refers to: those of a list's items are written out in the list's.
fn remove_unused(document: &mut Value) {
    loop {
        let text = document.to_string();
        let schemas = document["components"]["schemas"].as_object_mut().expect("there are schemas");
        let before = schemas.len();
        schemas.retain(|name, _| text.contains(&format!("\"#/components/schemas/{name}\"")));
        if schemas.len() == before {
            return;
        }
    }
}

fn operations(document: &mut Value) -> impl Iterator<Item = &mut Value> {
    let paths = document["paths"].as_object_mut().expect("there are paths");
    paths.values_mut().flat_map(|path| path.as_object_mut()).flat_map(|path| path.values_mut())
}

/// The document of a server on one machine that serves what both documents describe. A token may be left out there: whoever
/// reaches it is its operator.
///
/// # Panics
/// If either is none of [`document`]'s.
pub fn local_document(mut document: Value, other: Value) -> Value {
    for pointer in ["/paths", "/components/schemas"] {
        let added = other.pointer(pointer).and_then(Value::as_object).expect("there are some").clone();
        document.pointer_mut(pointer).and_then(Value::as_object_mut).expect("there are some").extend(added);
    }
    let texts = [&document, &other].map(|document| document["info"]["description"].as_str().unwrap_or_default());
    document["info"]["description"] = texts.join("\n\n").into();
    let tags = other["tags"].as_array().into_iter().flatten().cloned();
    document["tags"].as_array_mut().expect("there are tags").extend(tags);
    for operation in operations(&mut document) {
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

/// What paths name that may not be there.
const NAMED: [&str; 7] = ["account", "endpoint", "order", "product", "setup", "warehouse", "employee"];

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
    let is_refusable = has_body || has("from") || has("cursor");
    let is_open = operation["security"].as_array().is_some_and(Vec::is_empty);
    let problems = [
        (400, "A field, parameter or header is not valid, or not known", true),
        (401, "The request carries no token, or one that is not valid", !is_open),
        (403, "The token does not allow this", !is_open),
        (
            404,
            "There is no such thing, or it is another account's",
            names.iter().any(|name| NAMED.contains(&name.as_str())),
        ),
        (409, "It stands against where things are, or another request is writing them", has_body),
        (412, "It has changed since", has("If-Match")),
        (413, "The body is larger than 64 KB", has_body),
        (415, "The header Content-Type: application/json is missing", has_body),
        (422, "A field or parameter is as it must be, and is refused as things are", is_refusable),
        (
            422,
            "The idempotency key was used with another body, or a field is refused as things are",
            has("Idempotency-Key"),
        ),
        (503, "Temporarily unavailable: the same request may succeed later", true),
    ];
    for (status, description, _) in problems.into_iter().filter(|(_, _, can_be)| *can_be) {
        operation["responses"][status.to_string()] = json!({
            "description": description,
            "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
        });
    }
}
