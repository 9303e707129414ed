//! Checks that web pages of the allowed origins (a parameter of the template) may send every request of the API.

use std::collections::BTreeSet;

use serde_yaml_ng::Value;

use crate::template::{template, text};

/// The headers that a browser may send to another origin without a preflight request ("CORS-safelisted request-header"
/// in the Fetch standard).
const SAFE_HEADERS: [&str; 1] = ["accept"];

#[test]
fn web_pages_of_allowed_origins_may_send_every_request_of_the_api() {
    let template = template();
    let cors = &template["Resources"]["Api"]["Properties"]["CorsConfiguration"];
    let listed = |name: &str| -> BTreeSet<String> { cors[name].as_sequence().unwrap().iter().map(text).collect() };
    let document = rest::openapi::merge_openapi_documents(api::openapi_document(), orders_api::openapi_document());
    let document: serde_json::Value = serde_json::to_value(&document).unwrap();
    let (mut methods, mut headers) = (BTreeSet::new(), BTreeSet::from(["authorization".to_owned()]));
    for (method, operation) in
        document["paths"].as_object().unwrap().values().flat_map(|path| path.as_object().unwrap())
    {
        methods.insert(method.to_uppercase());
        if operation.get("requestBody").is_some() {
            headers.insert("content-type".to_owned());
        }
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let names = parameters
            .filter(|parameter| parameter["in"] == "header")
            .map(|parameter| parameter["name"].as_str().unwrap());
        headers.extend(names.map(str::to_lowercase).filter(|name| !SAFE_HEADERS.contains(&name.as_str())));
    }
    assert_eq!(listed("AllowMethods"), methods);
    assert_eq!(listed("AllowHeaders"), headers);
    assert!(listed("ExposeHeaders").contains("etag"), "a page needs the version for the header If-Match");
    assert!(cors.get("AllowCredentials").is_none(), "the API uses no cookies");
}

#[test]
fn preflight_request_needs_no_token_on_any_path() {
    let template = template();
    let of = |function: &str| -> Vec<(String, String, bool)> {
        let events = template["Resources"][function]["Properties"]["Events"].as_mapping().unwrap().values();
        let routes = events.filter(|event| event["Properties"]["Path"].is_string());
        let route = |event: &Value| {
            let route = &event["Properties"];
            (text(&route["Method"]), text(&route["Path"]), route["Auth"]["Authorizer"] == "NONE")
        };
        routes.map(route).collect()
    };
    let general = ("OPTIONS".to_owned(), "/{proxy+}".to_owned(), true);
    assert!(of("ApiFunction").contains(&general), "the route for preflight requests to the default route");
    // If a path has a route for any method, API Gateway uses this route also for preflight requests (`OPTIONS`), and
    // not the general route for preflight requests. So each such path needs its own route for preflight requests.
    let routes = of("OrdersApiFunction");
    for (_, path, _) in routes.iter().filter(|(method, _, _)| method == "ANY") {
        assert!(routes.contains(&("OPTIONS".to_owned(), path.clone(), true)), "no preflight route for {path}");
    }
}
