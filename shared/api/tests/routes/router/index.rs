//! What all answers have in common, and what stands at `/`.

use serde_json::{Value, json};

use crate::router::world::{World, acme};

#[tokio::test]
async fn read_index_points_to_what_there_is() {
    let world = World::new().await;
    let index = world.anonymous("GET /", &[], "").await;
    assert_eq!((index.status, index.header("content-type")), (200, "application/json"), "{}", index.text);
    let mut expected = json!({"name": "Dueday", "version": env!("CARGO_PKG_VERSION"), "health": "/health"});
    (expected["docs"], expected["openapi"]) = (Value::Null, Value::Null);
    assert_eq!(index.json(), expected, "the document is not served here");

    let world = world.with_docs().await;
    let index = world.anonymous("GET /", &[], "").await.json();
    assert_eq!((&index["docs"], &index["openapi"]), (&"/docs".into(), &"/openapi.json".into()));
    let page = world.anonymous("GET /", &[("accept", "text/html,*/*;q=0.8")], "").await;
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    insta::assert_snapshot!("index", page.text);
}

#[tokio::test]
async fn every_answer_ends_with_a_newline() {
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
        let answered = world.ask(request, body).await;
        assert_eq!(answered.status, status, "{request}: {}", answered.text);
        assert!(answered.text.ends_with('\n') && !answered.text.ends_with("\n\n"), "{request}: {:?}", answered.text);
    }
    let anonymous = world.anonymous("GET {gold}", &[], "").await;
    assert!(anonymous.status == 401 && anonymous.text.ends_with("}\n"), "{:?}", anonymous.text);
}

#[tokio::test]
async fn requests_that_write_need_a_media_type_that_a_form_cannot_send() {
    let world = World::new().await;
    // What a page of another site can send without being asked first by the browser.
    for sent in ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"] {
        for (request, body) in [
            ("POST {gold}/cancel", ""),
            ("POST {gold}/pause", ""),
            ("POST {gold}/cancel", "{}"),
            ("PATCH {gold}", "{}"),
            ("PUT /accounts/acme", "{}"),
            ("POST /accounts/acme/subscriptions", "{}"),
        ] {
            let refused = world.ask_with(request, &[("content-type", sent)], body).await;
            assert!(
                refused.problem().starts_with("415 not-json -: send the header Content-Type: application/json"),
                "{request} {sent}: {}",
                refused.problem()
            );
        }
    }
    assert_eq!(world.stored().await, world.gold, "nothing was written");
    let json = [("content-type", "application/json; charset=utf-8")];
    let cancelled = world.send(&acme(), "POST {gold}/cancel", &json, "").await;
    assert_eq!(cancelled.json()["status"], "cancelled", "{}", cancelled.text);
}
