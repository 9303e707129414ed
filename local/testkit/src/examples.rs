//! The examples of an OpenAPI document, sent in order and compared.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use serde_json::{Map, Value, json};
use tower::ServiceExt as _;

/// Sends each example of the file at `path` to `router`, after `before` has heard of its operation, and compares the answer.
/// With `UPDATE_EXAMPLES` set, what is answered now is written down instead.
///
/// # Panics
/// If an answer is another, or an operation of `document` has no example.
pub async fn answer_examples(document: &Value, path: &str, router: Router, before: impl AsyncFn(&str)) {
    let is_update = std::env::var_os("UPDATE_EXAMPLES").is_some();
    let text = std::fs::read_to_string(path).expect("the examples are there");
    let mut examples: Vec<Value> = serde_json::from_str(&text).expect("the examples are JSON");
    for example in &mut examples {
        before(example["operation"].as_str().expect("an example names its operation")).await;
        let response = router.clone().oneshot(request(document, example)).await.expect("a router answers");
        let status = response.status().as_u16();
        let bytes = to_bytes(response.into_body(), 1_000_000).await.expect("an answer is whole");
        let answer: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        if is_update {
            (example["status"], example["answer"]) = (json!(status), answer);
        } else {
            assert_eq!((&json!(status), &answer), (&example["status"], &example["answer"]), "{example}");
        }
    }
    if is_update {
        let text = serde_json::to_string_pretty(&examples).expect("examples are JSON") + "\n";
        std::fs::write(path, text).expect("the examples can be written");
    }
    let text = document.to_string();
    for (_, named) in
        text.match_indices("\"#/components/schemas/").map(|(place, found)| text.split_at(place + found.len()))
    {
        let name = named.split('"').next().unwrap_or_default();
        assert!(document["components"]["schemas"][name].is_object(), "there is no schema {name}");
    }
    for (_, _, described) in operations(document) {
        let id = &described["operationId"];
        assert!(examples.iter().any(|example| example["operation"] == *id), "{id} has no example");
    }
}

/// Path template, method and description of each operation.
fn operations(document: &Value) -> impl Iterator<Item = (&String, &String, &Value)> {
    let paths = document["paths"].as_object().expect("there are paths").iter();
    paths.flat_map(|(path, methods)| {
        let methods = methods.as_object().expect("there are methods").iter();
        methods.map(move |(method, described)| (path, method, described))
    })
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn request(document: &Value, example: &Value) -> Request<Body> {
    let name = &example["operation"];
    let found = operations(document).find(|(_, _, described)| described["operationId"] == *name);
    let (path, method, described) = found.unwrap_or_else(|| panic!("there is no operation {name}"));
    let (mut uri, mut query) = (path.clone(), Vec::new());
    let mut request = Request::builder().method(method.to_uppercase().as_str());
    for (name, value) in example["parameters"].as_object().unwrap_or(&Map::new()) {
        let known = described["parameters"].as_array().into_iter().flatten().find(|known| known["name"] == *name);
        match known.unwrap_or_else(|| panic!("{path} has no parameter {name}"))["in"].as_str() {
            Some("path") => uri = uri.replace(&format!("{{{name}}}"), &text(value)),
            Some("query") => query.push(format!("{name}={}", text(value).replace(' ', "%20"))),
            _ => request = request.header(name, text(value)),
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
    request.uri(uri).body(body).expect("an example is a request")
}
