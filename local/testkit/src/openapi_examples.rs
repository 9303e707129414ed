//! Checks the examples of an OpenAPI document: sends each example's request, and compares the response.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use serde_json::{Map, Value, json};
use tower::ServiceExt as _;

/// Sends the request of each example in the JSON file at `path` to `router`, in order, and compares the response with
/// the example. Before each request, calls `before` with the operation's id. If the environment variable
/// `UPDATE_EXAMPLES` is set, writes the current responses to the file instead of comparing them.
///
/// # Panics
/// If a response differs from its example, an operation of `document` has no example, or `document` refers to a schema
/// that it does not contain.
pub async fn check_openapi_examples(document: &Value, path: &str, router: Router, before: impl AsyncFn(&str)) {
    let is_update = std::env::var_os("UPDATE_EXAMPLES").is_some();
    let text = std::fs::read_to_string(path).expect("the file of examples exists");
    let mut examples: Vec<Value> = serde_json::from_str(&text).expect("the examples are JSON");
    for example in &mut examples {
        before(example["operation"].as_str().expect("an example has an operation")).await;
        let response =
            router.clone().oneshot(create_example_request(document, example)).await.expect("the router responds");
        let status = response.status().as_u16();
        let bytes = to_bytes(response.into_body(), 1_000_000).await.expect("the response body is complete");
        let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        if is_update {
            (example["status"], example["answer"]) = (json!(status), body);
        } else {
            assert_eq!((&json!(status), &body), (&example["status"], &example["answer"]), "{example}");
        }
    }
    if is_update {
        let text = serde_json::to_string_pretty(&examples).expect("examples are JSON") + "\n";
        std::fs::write(path, text).expect("the examples can be written");
    }
    let text = document.to_string();
    for (_, after_prefix) in
        text.match_indices("\"#/components/schemas/").map(|(index, prefix)| text.split_at(index + prefix.len()))
    {
        let name = after_prefix.split('"').next().unwrap_or_default();
        assert!(document["components"]["schemas"][name].is_object(), "the document has no schema {name}");
    }
    for (_, _, operation) in list_operations(document) {
        let id = &operation["operationId"];
        assert!(examples.iter().any(|example| example["operation"] == *id), "the operation {id} has no example");
    }
}

/// Returns each operation of the OpenAPI `document`: its path template, its method and its JSON object.
fn list_operations(document: &Value) -> impl Iterator<Item = (&String, &String, &Value)> {
    let paths = document["paths"].as_object().expect("the document has paths").iter();
    paths.flat_map(|(path, methods)| {
        let methods = methods.as_object().expect("a path has methods").iter();
        methods.map(move |(method, operation)| (path, method, operation))
    })
}

/// Returns the value of a parameter as text: a JSON string without its quotes.
fn format_parameter_value(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the HTTP request of `example`.
fn create_example_request(document: &Value, example: &Value) -> Request<Body> {
    let id = &example["operation"];
    let found = list_operations(document).find(|(_, _, operation)| operation["operationId"] == *id);
    let (path, method, operation) = found.unwrap_or_else(|| panic!("the document has no operation {id}"));
    let (mut uri, mut query) = (path.clone(), Vec::new());
    let mut request = Request::builder().method(method.to_uppercase().as_str());
    for (name, value) in example["parameters"].as_object().unwrap_or(&Map::new()) {
        let parameter =
            operation["parameters"].as_array().into_iter().flatten().find(|parameter| parameter["name"] == *name);
        match parameter.unwrap_or_else(|| panic!("{path} has no parameter {name}"))["in"].as_str() {
            Some("path") => uri = uri.replace(&format!("{{{name}}}"), &format_parameter_value(value)),
            Some("query") => query.push(format!("{name}={}", format_parameter_value(value).replace(' ', "%20"))),
            _ => request = request.header(name, format_parameter_value(value)),
        }
    }
    if !query.is_empty() {
        uri = format!("{uri}?{}", query.join("&"));
    }
    if method != "get" {
        request = request.header("content-type", "application/json");
    }
    let body = match &example["body"] {
        Value::Null => Body::empty(),
        body => Body::from(body.to_string()),
    };
    request.uri(uri).body(body).expect("an example is a valid request")
}
