//! Tests of requests through API Gateway: the problems for tokens that grant no rights, and the public URL.

use std::collections::HashMap;

use api_gateway::{add_api_gateway_middlewares, encode_query_string};
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::header::WWW_AUTHENTICATE;
use axum::routing::get;
use axum::{Extension, Router};
use config::Env;
use emulator::gateway_claims;
use lambda_http::request::{LambdaRequest, RequestContext};
use lambda_http::{LambdaEvent, RequestExt as _};
use rest::{Caller, ConfidentialAccess, PublicUrl, Role, TokenRules};
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// Returns the token rules of a deployment without settings.
fn rules() -> TokenRules {
    TokenRules::read(Env(&|_| None)).unwrap()
}

/// Sends a request to a route for operators with the role admin. The request has a token with `claims`, or
/// no token. Returns the status code, the kind and the detail of the problem, and the header `WWW-Authenticate`.
async fn send(claims: Option<Value>) -> (u16, String, String, Option<String>) {
    let routes = Router::new().route("/", get(async |_: ConfidentialAccess| "done"));
    let router = add_api_gateway_middlewares(rest::complete_router(routes), rules());
    let mut context = json!({"http": {"method": "GET", "path": "/"}, "timeEpoch": 0});
    if let Some(claims) = claims {
        let texts: HashMap<String, String> = gateway_claims(claims.as_object().unwrap());
        context["authorizer"] = json!({"jwt": {"claims": texts, "scopes": null}});
    }
    let mut request = Request::builder().uri("/").body(Body::empty()).unwrap();
    // Set another caller first: the middleware must remove this caller.
    request.extensions_mut().insert(Caller::Operator(Role::Admin));
    request.extensions_mut().insert(RequestContext::ApiGatewayV2(serde_json::from_value(context).unwrap()));
    let response = router.oneshot(request).await.unwrap();
    let challenge = response.headers().get(WWW_AUTHENTICATE).map(|value| value.to_str().unwrap().to_owned());
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), 10_000).await.unwrap();
    let problem: Value = serde_json::from_slice(&body).unwrap_or_default();
    let text = |name: &str| problem[name].as_str().unwrap_or_default().to_owned();
    (status, text("type"), text("detail"), challenge)
}

#[tokio::test]
async fn problem_says_why_a_token_is_refused() {
    let refused = |status, kind: &str, detail: &str, challenge: Option<&str>| {
        (status, format!("urn:dueday:problem:{kind}"), detail.to_owned(), challenge.map(str::to_owned))
    };
    assert_eq!(
        send(None).await,
        refused(
            401,
            "unauthorized",
            "the request has no token; send the header Authorization: Bearer TOKEN",
            Some("Bearer")
        )
    );
    assert_eq!(
        send(Some(json!({"token_use": "id", "scope": "dueday/admin"}))).await,
        refused(
            401,
            "invalid-token",
            "the token is not an access token: its claim token_use is not access; send the access token, not the ID token",
            Some("Bearer error=\"invalid_token\"")
        )
    );
    assert_eq!(
        send(Some(json!({"at_hash": "x", "scope": "dueday/admin"}))).await,
        refused(
            401,
            "invalid-token",
            "the token is an ID token: it has the claim at_hash; send the access token",
            Some("Bearer error=\"invalid_token\"")
        )
    );
    assert_eq!(
        send(Some(json!({"sub": "acme", "scope": "openid"}))).await,
        refused(
            403,
            "insufficient-scope",
            "the token needs the scope dueday/account of an account, or a scope of operators: dueday/read, dueday/support, \
             dueday/admin",
            Some("Bearer error=\"insufficient_scope\"")
        )
    );
    assert_eq!(
        send(Some(json!({"scope": "dueday/account"}))).await,
        refused(
            403,
            "insufficient-scope",
            "the token has the scope of an account, but no claim sub with the account",
            Some("Bearer error=\"insufficient_scope\"")
        )
    );
    assert_eq!(
        send(Some(json!({"sub": "acme", "scope": "dueday/account"}))).await,
        refused(403, "forbidden", "only an operator may do this", None)
    );
    assert_eq!(send(Some(json!({"scope": "dueday/admin"}))).await.0, 200);
}

#[tokio::test]
async fn public_url_is_the_domain_of_api_gateway_unless_another_one_is_configured() {
    let routes = Router::new().route("/", get(async |url: PublicUrl| url.join("/page")));
    let configured = PublicUrl::parse("https://pay.example.com").unwrap();
    for (routes, expected) in [
        (routes.clone(), "https://api.example.com/page"),
        (routes.layer(Extension(configured)), "https://pay.example.com/page"),
    ] {
        let context = json!({"http": {"method": "GET", "path": "/"}, "timeEpoch": 0, "domainName": "api.example.com"});
        let mut request = Request::builder().uri("/").header("host", "evil.example.com").body(Body::empty()).unwrap();
        request.extensions_mut().insert(RequestContext::ApiGatewayV2(serde_json::from_value(context).unwrap()));
        let response = add_api_gateway_middlewares(routes, rules()).oneshot(request).await.unwrap();
        assert_eq!(to_bytes(response.into_body(), 1_000).await.unwrap(), expected);
    }
}

#[test]
fn query_string_with_characters_that_no_uri_contains_is_encoded() {
    let event: Value = serde_json::from_str(include_str!("../../../events/apigateway-list-receipts.json")).unwrap();
    for (raw, expected) in [
        ("", None),
        ("limit=5&cursor=a%20b+c", Some("limit=5&cursor=a%20b+c")),
        ("q=a b", Some("q=a%20b")),
        ("q=\"a\"<b>#c", Some("q=%22a%22%3Cb%3E%23c")),
        ("q=\u{1}\t\u{7f}", Some("q=%01%09%7F")),
        ("q=ä€", Some("q=%C3%A4%E2%82%AC")),
        ("q='[]{}|\\^`%zz", Some("q='[]{}|\\^`%zz")),
    ] {
        let mut event = event.clone();
        event["rawQueryString"] = raw.into();
        let payload: LambdaRequest = serde_json::from_value(event).unwrap();
        let encoded = encode_query_string(LambdaEvent::new(payload, lambda_http::Context::default()));
        let request: lambda_http::Request = encoded.payload.into();
        assert_eq!(request.uri().query(), expected, "{raw}");
        if raw == "q=a b" {
            assert_eq!(request.query_string_parameters().first("q"), Some("a b"));
        }
    }
}
