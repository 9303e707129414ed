//! Tests of the route `/`, and of properties that all responses or all writing requests have.

use serde_json::{Value, json};

use crate::router::world::{World, acme};

#[tokio::test]
async fn index_links_to_the_documentation_only_if_it_is_served() {
    let world = World::new().await;
    let index = world.request_without_token("GET /", &[], "").await;
    assert_eq!((index.status, index.header("content-type")), (200, "application/json"), "{}", index.text);
    let mut expected = json!({"name": "Dueday", "version": env!("CARGO_PKG_VERSION"), "health": "/health"});
    (expected["docs"], expected["openapi"]) = (Value::Null, Value::Null);
    assert_eq!(index.json(), expected, "this server does not serve the documentation");

    let world = world.with_docs().await;
    let index = world.request_without_token("GET /", &[], "").await.json();
    assert_eq!((&index["docs"], &index["openapi"]), (&"/docs".into(), &"/openapi.json".into()));
    let page = world.request_without_token("GET /", &[("accept", "text/html,*/*;q=0.8")], "").await;
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    insta::assert_snapshot!("index", page.text);
}

#[tokio::test]
async fn every_response_ends_with_a_newline() {
    let world = World::new().await;
    for (request, body, status) in [
        ("GET /", "", 200),
        ("GET /health", "", 200),
        ("GET {gold}", "", 200),
        ("GET /accounts/acme/receipts", "", 200),
        ("GET /nowhere", "", 404),
        ("DELETE {gold}", "", 405),
        ("POST {gold}/pause", "{", 400),
        ("POST {gold}/pause", "", 200),
    ] {
        let response = world.request(request, body).await;
        assert_eq!(response.status, status, "{request}: {}", response.text);
        assert!(response.text.ends_with('\n') && !response.text.ends_with("\n\n"), "{request}: {:?}", response.text);
    }
    let anonymous = world.request_without_token("GET {gold}", &[], "").await;
    assert!(anonymous.status == 401 && anonymous.text.ends_with("}\n"), "{:?}", anonymous.text);
}

#[tokio::test]
async fn requests_that_write_require_a_media_type_that_an_html_form_cannot_send() {
    let world = World::new().await;
    // The media types that a web page of another site can send without a preflight request of the browser.
    for media_type in ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"] {
        for (request, body) in [
            ("POST {gold}/cancel", ""),
            ("POST {gold}/pause", ""),
            ("POST {gold}/cancel", "{}"),
            ("PATCH {gold}", "{}"),
            ("PUT /accounts/acme", "{}"),
            ("POST /accounts/acme/subscriptions", "{}"),
        ] {
            let refused = world.request_with_headers(request, &[("content-type", media_type)], body).await;
            assert!(
                refused.problem().starts_with("415 not-json -: send the header Content-Type: application/json"),
                "{request} {media_type}: {}",
                refused.problem()
            );
        }
    }
    assert_eq!(world.stored_gold().await, world.gold, "nothing was written");
    let json = [("content-type", "application/json; charset=utf-8")];
    let cancelled = world.request_as(&acme(), "POST {gold}/cancel", &json, "").await;
    assert_eq!(cancelled.json()["status"], "cancelled", "{}", cancelled.text);
}

#[tokio::test]
async fn body_with_a_content_encoding_is_refused_with_the_allowed_one() {
    let world = World::new().await;
    let send = async |encoding: &str| {
        let headers = [("content-type", "application/json"), ("content-encoding", encoding)];
        world.request_as(&acme(), "POST {gold}/cancel", &headers, "{}").await
    };
    for encoding in ["gzip", "br", "unknown", "identity, gzip", ""] {
        let refused = send(encoding).await;
        let problem = refused.problem();
        assert!(
            problem.starts_with("415 unsupported-content-encoding -: send the body without compression"),
            "{problem}"
        );
        assert_eq!(refused.header("accept-encoding"), "identity");
        assert_eq!(refused.header("content-type"), "application/problem+json");
    }
    assert_eq!(world.stored_gold().await, world.gold, "nothing was written");
    assert_eq!(send("Identity").await.status, 200);
}
