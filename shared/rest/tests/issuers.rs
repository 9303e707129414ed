//! Tests of the callers that tokens of common issuers determine, and of the problems for tokens that grant no rights.

use std::collections::HashMap;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::header::WWW_AUTHENTICATE;
use axum::routing::get;
use config::Env;
use emulator::gateway_claims;
use lambda_http::request::RequestContext;
use rest::caller::ConfidentialAccess;
use rest::{Caller, Problem, Rights, TokenRules, account_of_subject, behind_api_gateway};
use serde_json::{Value, json};
use testkit::{ExpectedRights, issuer_tokens};
use tower::ServiceExt as _;

/// Returns the token rules for the environment variables `settings`.
fn rules(settings: &[(&str, &str)]) -> TokenRules {
    let find = |name: &str| settings.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned());
    TokenRules::read(Env(&find)).unwrap()
}

/// Returns the rights that a token with `claims` grants, or the problem if it grants none.
fn rights(rules: &TokenRules, claims: &Value) -> Result<Rights, Problem> {
    rules.rights(&gateway_claims(claims.as_object().unwrap()))
}

/// Returns the HTTP status code of `problem`.
fn status(problem: &Problem) -> u64 {
    serde_json::to_value(problem).unwrap()["status"].as_u64().unwrap()
}

#[test]
fn tokens_of_each_issuer_grant_the_rights_of_their_scopes_and_id_tokens_grant_none() {
    let rules = rules(&[]);
    for token in issuer_tokens() {
        let rights = rights(&rules, &token.claims).map(|rights| rights.caller).map_err(|problem| status(&problem));
        let expected = match token.rights {
            ExpectedRights::Operator => Ok(Caller::Operator),
            ExpectedRights::Account(account) => Ok(Caller::account(account.parse().unwrap())),
            ExpectedRights::None => Err(403),
            ExpectedRights::NoAccessToken => Err(401),
        };
        assert_eq!(rights, expected, "{}", token.name);
    }
}

#[test]
fn scopes_and_the_claim_of_the_account_have_the_configured_names() {
    let rules = rules(&[
        ("DUEDAY_OPERATOR_SCOPE", "billing.admin"),
        ("DUEDAY_CONFIDENTIAL_SCOPE", "billing.salaries"),
        ("DUEDAY_ACCOUNT_SCOPE", "billing.self"),
        ("DUEDAY_ACCOUNT_CLAIM", "customer"),
    ]);
    let caller =
        |claims: Value| rights(&rules, &claims).map(|rights| rights.caller).map_err(|problem| status(&problem));
    assert_eq!(caller(json!({"sub": "1", "scope": "dueday/operator dueday/account"})), Err(403));
    assert_eq!(caller(json!({"sub": "1", "scope": "billing.admin"})), Ok(Caller::Operator));
    let account = json!({"sub": "1", "customer": "acme", "scp": ["billing.self"]});
    assert_eq!(caller(account), Ok(Caller::account("acme".parse().unwrap())));
    for without in [json!({"sub": "1", "scope": "billing.self"}), json!({"customer": "", "scope": "billing.self"})] {
        assert_eq!(caller(without), Err(403), "the token does not name its account");
    }
    for (scopes, has_confidential_access) in [
        ("billing.admin", false),
        ("billing.admin billing.salaries", true),
        ("billing.admin billing.salaries.all", false),
    ] {
        let rights = rights(&rules, &json!({"scope": scopes})).unwrap();
        assert_eq!(rights.has_confidential_access, has_confidential_access, "{scopes}");
    }
    let without_operator = rights(&rules, &json!({"customer": "acme", "scope": "billing.self billing.salaries"}));
    assert!(!without_operator.unwrap().has_confidential_access);
}

#[test]
fn scope_of_accounts_that_is_also_the_scope_of_operators_is_refused() {
    let find = |name: &str| (name == "DUEDAY_ACCOUNT_SCOPE").then(|| "dueday/operator".to_owned());
    let error = TokenRules::read(Env(&find)).unwrap_err().to_string();
    assert_eq!(error, "DUEDAY_ACCOUNT_SCOPE must not be the scope of operators, dueday/operator");
}

#[test]
fn subject_that_is_no_account_id_becomes_an_account_of_its_own() {
    for subject in ["acme", "36fa0f91-f94d-4a0c-afed-6b7d952e47da", "A.b_c-1"] {
        assert_eq!(account_of_subject(subject).as_str(), subject);
    }
    let long = "x".repeat(65);
    let subjects = ["auth0|abc", "auth0|abd", "auth0/abc", "-rf", "..", "a#b", "a b", "", "ü", long.as_str()];
    let computed: Vec<String> = subjects.iter().map(|subject| account_of_subject(subject).to_string()).collect();
    for (n, account) in computed.iter().enumerate() {
        assert!(account.len() == 39 && account.starts_with("sha256-"), "{account}");
        assert!(!computed[..n].contains(account), "two subjects have the account {account}");
        assert_ne!(account_of_subject(account).as_str(), account, "a subject must not name the account of another one");
    }
}

/// Sends a request to a route for operators with access to confidential data. The request has a token with `claims`, or
/// no token. Returns the status code, the kind and the detail of the problem, and the header `WWW-Authenticate`.
async fn send(claims: Option<Value>) -> (u16, String, String, Option<String>) {
    let routes = Router::new().route("/", get(async |_: ConfidentialAccess| "done"));
    let router = behind_api_gateway(rest::router(routes), rules(&[]));
    let mut context = json!({"http": {"method": "GET", "path": "/"}, "timeEpoch": 0});
    if let Some(claims) = claims {
        let texts: HashMap<String, String> = gateway_claims(claims.as_object().unwrap());
        context["authorizer"] = json!({"jwt": {"claims": texts, "scopes": null}});
    }
    let mut request = Request::builder().uri("/").body(Body::empty()).unwrap();
    // Set another caller first: the middleware must remove this caller.
    request.extensions_mut().insert(Caller::Operator);
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
        send(Some(json!({"token_use": "id", "scope": "dueday/operator"}))).await,
        refused(
            401,
            "invalid-token",
            "the token is not an access token: its claim token_use is not access; send the access token, not the ID token",
            Some("Bearer error=\"invalid_token\"")
        )
    );
    assert_eq!(
        send(Some(json!({"at_hash": "x", "scope": "dueday/operator"}))).await,
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
            "the token needs the scope dueday/account of an account, or the scope dueday/operator of an operator",
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
    let operator = "dueday/operator dueday/confidential";
    assert_eq!(send(Some(json!({"scope": operator}))).await.0, 200);
}
