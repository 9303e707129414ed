//! Tests that send a request for each route with the token of each kind of caller, and check whether the caller may use
//! the route.

use std::collections::BTreeMap;

use chrono::Utc;
use emulator::TokenIssuer;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::{ExpectedRights, issuer_tokens};

use super::routes::{self, Route, RouteAccess};
use super::server::{Ids, Response, Server, sign_with};

/// The problem of a response about an account that does not exist, or that the caller must not reach.
const NO_ACCOUNT: &str = "404 not-found there is no such account";

/// The server with the accounts `alder` and `birch`, and the ids of an account that does not exist.
struct World {
    server: Server,
    alder: Ids,
    birch: Ids,
    missing: Ids,
}

/// Starts a server, and creates two accounts, each with a subscription, a receipt and an order.
async fn start_world() -> World {
    let server = Server::start();
    server.create_sku_and_warehouse().await;
    let [alder, birch] = server.sign_up(["alder", "birch"]).await;
    // Well-formed ids of items that do not exist.
    let other = |id: &str| id.replace(&birch.subscription, "01JZXCVBNM0123456789ABCDEF");
    let missing = Ids {
        account: "cedar".to_owned(),
        subscription: other(&birch.subscription),
        receipt: other(&birch.receipt),
        order: other(&birch.order),
    };
    assert!(missing.receipt != birch.receipt && missing.order != birch.order, "{birch:?}");
    World { server, alder, birch, missing }
}

impl World {
    /// Sends the request of `route` for the items with the ids `ids`. `authorization` is the value of the header
    /// `Authorization`.
    async fn send(&self, authorization: Option<&str>, route: &Route, ids: &Ids) -> Response {
        self.server.send(authorization, &route.method, &route.path_for(ids), route.body.as_ref()).await
    }

    /// Sends the request of `route` for the items with the ids `ids`, with the token `token`.
    async fn send_with_token(&self, token: &str, route: &Route, ids: &Ids) -> Response {
        self.send(Some(&format!("Bearer {token}")), route, ids).await
    }

    /// Returns the stored account `birch`, its subscriptions, its receipts and its customer.
    async fn read_items_of_account_birch(&self) -> Vec<Value> {
        let mut stored = Vec::new();
        for path in ["accounts/birch", "accounts/birch/subscriptions", "accounts/birch/receipts", "customers/birch"] {
            stored.push(self.server.send_as_operator(Method::GET, &format!("/{path}"), Value::Null).await);
        }
        stored
    }
}

/// Asserts that the caller may use the route: the response neither refuses the caller nor reports a server error.
fn assert_allowed(response: &Response, case: &str) {
    let is_refused = [401, 403].contains(&response.status) || response.problem() == NO_ACCOUNT;
    assert!(!is_refused && response.status < 500, "{case}: {response:?}");
}

/// Asserts that the response is a problem with this status and kind, and with a detail that states the reason.
fn assert_refused(response: &Response, status: u16, kind: &str, case: &str) {
    let problem = response.json();
    assert_eq!(
        (response.status, problem["type"].as_str(), response.content_type.as_str()),
        (status, Some(format!("urn:dueday:problem:{kind}").as_str()), "application/problem+json"),
        "{case}: {response:?}"
    );
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.len() > 20), "{case}: {response:?}");
    let is_challenged = response.challenge.as_deref().is_some_and(|challenge| challenge.starts_with("Bearer"));
    assert_eq!(is_challenged, kind != "forbidden", "{case}: {response:?}");
}

#[tokio::test]
async fn request_without_an_accepted_token_is_refused_on_every_route_that_is_not_public() {
    let world = start_world().await;
    let (server, operator) = (&world.server, &world.server.operator);
    let claims = json!({"sub": "alder", "scope": "dueday/admin dueday/account"});
    let with = |name: &str, value: Value| {
        let mut changed = claims.clone();
        changed[name] = value;
        format!("Bearer {}", server.sign(&changed))
    };
    let now = Utc::now().timestamp();
    let [head, _, signature]: [&str; 3] = operator.split('.').collect::<Vec<_>>().try_into().unwrap();
    let signed = server.sign(&claims);
    let changed = signed.split('.').nth(1).unwrap();
    let forged = sign_with(&TokenIssuer::new(&TokenIssuer::generate_key()).unwrap(), &claims);
    let nameless = server.sign(&json!({"scope": "dueday/account"}));
    let refusals = [
        ("no token", None, 401, "unauthorized"),
        ("another scheme", Some("Basic YTpi".to_owned()), 401, "invalid-token"),
        ("a token without its scheme", Some(operator.clone()), 401, "invalid-token"),
        ("no JSON Web Token", Some("Bearer TOKEN".to_owned()), 401, "invalid-token"),
        ("a token of another key", Some(format!("Bearer {forged}")), 401, "invalid-token"),
        ("a changed token", Some(format!("Bearer {head}.{changed}.{signature}")), 401, "invalid-token"),
        ("another audience", Some(with("aud", json!("other"))), 401, "invalid-token"),
        ("another issuer", Some(with("iss", json!("urn:dueday:other"))), 401, "invalid-token"),
        ("an expired token", Some(with("exp", json!(now - 1))), 401, "invalid-token"),
        ("a token of the future", Some(with("nbf", json!(now + 600))), 401, "invalid-token"),
        ("an ID token", Some(with("token_use", json!("id"))), 401, "invalid-token"),
        ("a token without a scope of the API", Some(with("scope", json!("openid profile"))), 403, "insufficient-scope"),
        ("an account's token without the account", Some(format!("Bearer {nameless}")), 403, "insufficient-scope"),
    ];
    for route in routes::all_routes() {
        for (name, authorization, status, kind) in &refusals {
            let case = format!("{} with {name}", route.operation_id);
            let response = world.send(authorization.as_deref(), &route, &world.alder).await;
            match route.access {
                RouteAccess::Public => assert_allowed(&response, &case),
                _ => assert_refused(&response, *status, kind, &case),
            }
        }
    }
}

#[tokio::test]
async fn account_reaches_only_its_own_items_and_other_accounts_look_like_missing_accounts() {
    let world = start_world().await;
    let account = world.server.token(&["--account", "alder"]);
    let before = world.read_items_of_account_birch().await;
    for route in routes::all_routes() {
        let own = world.send_with_token(&account, &route, &world.alder).await;
        match route.access {
            RouteAccess::Public | RouteAccess::Own | RouteAccess::OwnOrSupport => {
                assert_allowed(&own, &route.operation_id)
            }
            RouteAccess::Operator | RouteAccess::Admin | RouteAccess::Confidential => {
                assert_refused(&own, 403, "forbidden", &route.operation_id)
            }
        }
        if route.access == RouteAccess::Own && route.method == Method::GET {
            assert_eq!(own.status, 200, "{}: {own:?}", route.operation_id);
        }
        if route.names_account() {
            let of_other = world.send_with_token(&account, &route, &world.birch).await;
            let of_missing = world.send_with_token(&account, &route, &world.missing).await;
            assert_eq!(of_other.status, 404, "{}: {of_other:?}", route.operation_id);
            assert_eq!(of_other, of_missing, "{} reveals that the account exists", route.operation_id);
        }
    }
    assert_eq!(world.read_items_of_account_birch().await, before, "the items of birch are unchanged");
}

/// The scopes of operators: those of the roles, and those of earlier versions.
const SCOPES_OF_OPERATORS: [&str; 5] =
    ["dueday/read", "dueday/support", "dueday/admin", "dueday/operator", "dueday/operator dueday/confidential"];

#[tokio::test]
async fn each_role_may_use_its_routes_and_no_others() {
    let world = start_world().await;
    world.server.set_setting("support-refunds", "EUR=500.00");
    let before = world.read_items_of_account_birch().await;
    let mut refused = BTreeMap::new();
    for scopes in SCOPES_OF_OPERATORS {
        let token = world.server.sign(&json!({"sub": "operator-1", "scope": scopes}));
        for route in routes::all_routes() {
            let case = format!("{} with {scopes}", route.operation_id);
            // The requests of the other roles change the account alder. Those of the role read change nothing.
            let ids = if scopes == "dueday/read" { &world.birch } else { &world.alder };
            let response = world.send_with_token(&token, &route, ids).await;
            if route.access.allows_operator(scopes, &route.method) {
                assert_allowed(&response, &case);
            } else {
                assert_refused(&response, 403, "forbidden", &case);
                *refused.entry(scopes).or_insert(0) += 1;
            }
        }
        if scopes == "dueday/read" {
            assert_eq!(world.read_items_of_account_birch().await, before, "the role read has changed something");
        }
    }
    // The role read may send only GET requests; support may not use the routes for admins.
    let routes = routes::all_routes();
    let of_role =
        |scopes: &str| routes.iter().filter(|route| !route.access.allows_operator(scopes, &route.method)).count();
    for scopes in SCOPES_OF_OPERATORS {
        assert_eq!(refused.get(scopes).copied().unwrap_or(0), of_role(scopes), "{scopes}");
    }
    assert!(
        of_role("dueday/read") > of_role("dueday/support") && of_role("dueday/support") > of_role("dueday/operator")
    );
    assert_eq!((of_role("dueday/operator"), of_role("dueday/admin")), (2, 0));
}

#[tokio::test]
async fn tokens_of_each_issuer_have_their_rights_on_every_route() {
    let world = start_world().await;
    for token in issuer_tokens() {
        // Replace the issuer, the audience, the client and the times in the claims of the token by those of the local
        // issuer. A token without an audience, such as an access token of Amazon Cognito, still has no audience.
        let mut claims = token.claims.clone();
        let has_audience = !claims["aud"].is_null();
        claims["aud"] = if has_audience { json!(["dueday"]) } else { Value::Null };
        claims["client_id"] = json!("dueday");
        for name in ["iss", "exp", "iat", "nbf"] {
            claims.as_object_mut().unwrap().remove(name);
        }
        let signed = world.server.sign(&claims);
        let own = match token.rights {
            ExpectedRights::Account(account) => {
                let body = json!({"email": "a@example.com", "name": account});
                world.server.send_as_operator(Method::PUT, &format!("/accounts/{account}"), body).await;
                Ids { account: account.to_owned(), ..world.missing.clone() }
            }
            _ => world.alder.clone(),
        };
        for route in routes::all_routes() {
            let case = format!("{} with {}", route.operation_id, token.name);
            let response = world.send_with_token(&signed, &route, &own).await;
            match (route.access, token.rights) {
                (RouteAccess::Public, _)
                | (RouteAccess::Own | RouteAccess::OwnOrSupport, ExpectedRights::Account(_))
                | (_, ExpectedRights::Admin) => assert_allowed(&response, &case),
                (_, ExpectedRights::Account(_)) => {
                    assert_refused(&response, 403, "forbidden", &case);
                }
                (_, ExpectedRights::None) => assert_refused(&response, 403, "insufficient-scope", &case),
                (_, ExpectedRights::NoAccessToken) => assert_refused(&response, 401, "invalid-token", &case),
            }
        }
    }
}
