//! Completes the OpenAPI document of the routes with security requirements, error responses and examples.

use std::borrow::Cow;

use billing::openapi::build_ulid_schema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::openapi::schema::Schema;
use utoipa::openapi::{OpenApi, RefOr};
use utoipa::{PartialSchema, ToSchema};

use crate::Problem;

/// The description of the access token in the OpenAPI document.
const TOKEN_DESCRIPTION: &str = "An access token (JSON Web Token) of the deployment's issuer. A token with the scope \
    dueday/read, dueday/support or dueday/admin is an operator's: read changes nothing, support changes accounts, \
    subscriptions, orders and stock, and admin may do everything. A token with the scope dueday/account belongs to the \
    account in its claim sub. Any other token has no rights. A deployment can choose another start of the scopes and \
    another claim.";

/// The OpenAPI schema of a ULID. Use it as the `value_type` of an identifier that has no type of its own.
#[derive(Debug)]
pub struct UlidText;

impl PartialSchema for UlidText {
    fn schema() -> RefOr<Schema> {
        build_ulid_schema("A ULID.").into()
    }
}

impl ToSchema for UlidText {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Ulid")
    }
}

/// An example request and its response.
#[derive(Deserialize)]
struct OperationExample {
    operation: String,
    /// The values of the path, query and header parameters, by name.
    #[serde(default)]
    parameters: Map<String, Value>,
    body: Option<Value>,
    status: u16,
    answer: Value,
}

/// The general part of an API's OpenAPI document, and the examples of its operations.
#[derive(Clone, Copy, Debug)]
pub struct OpenApiDescription {
    /// The description of the API.
    pub text: &'static str,
    /// The names and descriptions of the groups of operations.
    pub tags: &'static [(&'static str, &'static str)],
    /// A request and its response for each operation, in JSON. A test sends the requests and compares the responses.
    pub examples: &'static str,
}

/// Returns the OpenAPI 3.1 document of `routes`, with an example for each operation.
///
/// # Panics
/// If `description.examples` is not valid; the test that sends the examples detects this.
pub fn build_openapi_document(routes: OpenApi, description: &OpenApiDescription) -> Value {
    let mut document = serde_json::to_value(routes).expect("the document is JSON");
    document["info"] = json!({
        "title": "Dueday",
        "version": env!("CARGO_PKG_VERSION"),
        "description": description.text,
        "contact": {"name": "The operator of this deployment"},
        "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
    });
    document["servers"] = json!([{"url": "/", "description": "The server that serves this document"}]);
    document["tags"] = description.tags.iter().map(|(name, text)| json!({"name": name, "description": text})).collect();
    document["components"]["schemas"]["Problem"] = json!(<Problem as utoipa::PartialSchema>::schema());
    document["components"]["responses"] = build_error_responses().into();
    document["components"]["securitySchemes"]["token"] = json!({
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": TOKEN_DESCRIPTION,
    });
    let examples: Vec<OperationExample> = serde_json::from_str(description.examples).expect("the examples are JSON");
    for operation in openapi_operations(&mut document) {
        if !operation["security"].is_array() {
            operation["security"] = json!([{"token": []}]);
        } else {
            operation["security"] = json!([]);
        }
        add_error_responses(operation);
        let name = operation["operationId"].clone();
        if let Some(example) = examples.iter().find(|example| name == example.operation.as_str()) {
            add_operation_example(operation, example);
        }
    }
    replace_one_of_by_any_of(&mut document);
    remove_unused_schemas(&mut document);
    document
}

/// Replaces `oneOf` by `anyOf` in each choice between schemas that have names: such a choice has no tag, and a value may
/// match several of them, because a schema allows further fields.
fn replace_one_of_by_any_of(value: &mut Value) {
    match value {
        Value::Object(object) => {
            let is_choice = |members: &Value| {
                members.as_array().is_some_and(|members| members.iter().all(|it| it["$ref"].is_string()))
            };
            if object.get("oneOf").is_some_and(is_choice)
                && let Some(members) = object.remove("oneOf")
            {
                object.insert("anyOf".to_owned(), members);
            }
            object.values_mut().for_each(replace_one_of_by_any_of);
        }
        Value::Array(members) => members.iter_mut().for_each(replace_one_of_by_any_of),
        _ => {}
    }
}

/// Removes unreferenced schemas. The schema of a list contains the schema of its items inline, so the separate schema
/// of the items may have no reference.
fn remove_unused_schemas(document: &mut Value) {
    loop {
        let text = document.to_string();
        let schemas = document["components"]["schemas"].as_object_mut().expect("a document with schemas");
        let before = schemas.len();
        schemas.retain(|name, _| text.contains(&format!("\"#/components/schemas/{name}\"")));
        if schemas.len() == before {
            return;
        }
    }
}

/// Iterates over the operations of all paths.
fn openapi_operations(document: &mut Value) -> impl Iterator<Item = &mut Value> {
    let paths = document["paths"].as_object_mut().expect("a document with paths");
    paths.values_mut().flat_map(|path| path.as_object_mut()).flat_map(|path| path.values_mut())
}

/// Merges two documents for the local server, which serves the routes of both APIs.
///
/// # Panics
/// If one of the two documents was not created by [`build_openapi_document`].
pub fn merge_openapi_documents(mut document: Value, other: Value) -> Value {
    for pointer in ["/paths", "/components/schemas", "/components/responses"] {
        let added = other
            .pointer(pointer)
            .and_then(Value::as_object)
            .expect("a document with paths, schemas and responses")
            .clone();
        document
            .pointer_mut(pointer)
            .and_then(Value::as_object_mut)
            .expect("a document with paths, schemas and responses")
            .extend(added);
    }
    let texts = [&document, &other].map(|document| document["info"]["description"].as_str().unwrap_or_default());
    document["info"]["description"] = texts.join("\n\n").into();
    let tags = other["tags"].as_array().into_iter().flatten().cloned();
    document["tags"].as_array_mut().expect("a document with tags").extend(tags);
    document
}

/// Returns `document` for a local server that needs no token: everyone who can connect to it has operator rights.
///
/// # Panics
/// If the document was not created by [`build_openapi_document`].
pub fn make_tokens_optional(mut document: Value) -> Value {
    for operation in openapi_operations(&mut document) {
        let choices = operation["security"].as_array_mut().filter(|choices| !choices.is_empty());
        choices.into_iter().for_each(|choices| choices.push(json!({})));
    }
    document
}

/// Adds the parameters, the body and the response of `example` to `operation`.
fn add_operation_example(operation: &mut Value, example: &OperationExample) {
    for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap_or_default();
        // Add no example for the header Idempotency-Key: all people who try the operation would send the same key, and
        // get the response to the first of their requests.
        if let Some(value) = example.parameters.get(name).filter(|_| name != "Idempotency-Key") {
            parameter["example"] = value.clone();
        }
    }
    if let (Some(body), Value::Object(_)) = (&example.body, &operation["requestBody"]) {
        operation["requestBody"]["content"]["application/json"]["example"] = body.clone();
    }
    if !example.answer.is_null() {
        let media_type = if example.status < 400 { "application/json" } else { "application/problem+json" };
        let response = &mut operation["responses"][example.status.to_string()];
        // A reference cannot contain an example, so the response is repeated in this operation.
        if let Some(name) = response["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()) {
            *response = build_error_responses()[name].clone();
        }
        response["content"][media_type]["example"] = example.answer.clone();
    }
}

/// The path parameters that contain the id of a stored item. An operation with one of them can return 404.
const ITEM_PARAMETERS: [&str; 10] =
    ["account", "audit", "endpoint", "order", "product", "setup", "warehouse", "employee", "link", "number"];

/// The ids of the operations with an hourly limit for each account, or for each payment method setup. These operations
/// can return 429.
const LIMITED_OPERATION_IDS: [&str; 4] =
    ["create_payment_method_setup", "open_card_link", "retry_subscription", "return_from_payment_method_setup"];

/// The error responses: the name, the status code and the description of each.
const ERROR_RESPONSES: [(&str, u16, &str); 12] = [
    ("Invalid", 400, "A field, parameter or header is invalid or unknown"),
    ("NoToken", 401, "The request has no token, or an invalid one"),
    ("NotAllowed", 403, "The token does not allow this request"),
    ("NotFound", 404, "An item of the path does not exist, or belongs to another account"),
    ("Conflict", 409, "The request conflicts with the current state, or with another request at the same time"),
    ("OtherVersion", 412, "The stored version does not match If-Match"),
    ("TooLarge", 413, "The body is larger than 64 KiB"),
    ("NotJson", 415, "The header Content-Type: application/json is missing, or the body has a Content-Encoding"),
    ("NotAllowedNow", 422, "A field or parameter is valid in itself, but not in the current state"),
    ("KeyReused", 422, "The idempotency key was used with another body, or a field is not valid in the current state"),
    (
        "TooManyRequests",
        429,
        "The hourly limit of this operation is reached; Retry-After contains the seconds until it is allowed again",
    ),
    ("Unavailable", 503, "Temporarily unavailable: the same request may succeed later"),
];

/// Returns the error responses, to which the operations refer.
fn build_error_responses() -> Map<String, Value> {
    let content = json!({"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}});
    let response = |description| json!({"description": description, "content": content});
    ERROR_RESPONSES.iter().map(|(name, _, description)| ((*name).to_owned(), response(*description))).collect()
}

/// Adds the error responses that the operation can return, computed from its parameters and its body.
fn add_error_responses(operation: &mut Value) {
    let names: Vec<String> = operation["parameters"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|parameter| parameter["name"].as_str().map(str::to_owned))
        .collect();
    let has = |name: &str| names.iter().any(|known| known == name);
    let has_body = operation["requestBody"].is_object();
    let needs_token = !operation["security"].as_array().is_some_and(Vec::is_empty);
    let is_limited = LIMITED_OPERATION_IDS.iter().any(|id| operation["operationId"] == *id);
    let can_be = |name: &str| match name {
        "NoToken" | "NotAllowed" => needs_token,
        "NotFound" => names.iter().any(|name| ITEM_PARAMETERS.contains(&name.as_str())),
        "Conflict" | "TooLarge" | "NotJson" => has_body,
        "OtherVersion" => has("If-Match"),
        "NotAllowedNow" => has_body || has("from") || has("cursor"),
        "KeyReused" => has("Idempotency-Key"),
        "TooManyRequests" => is_limited,
        _ => true,
    };
    for (name, status, _) in ERROR_RESPONSES.into_iter().filter(|(name, ..)| can_be(name)) {
        operation["responses"][status.to_string()] = json!({"$ref": format!("#/components/responses/{name}")});
    }
}
