//! Example claims of tokens of common issuers, as the issuers document them, each with the rights that such a token
//! must grant. The claims are from these sources:
//!
//! - Amazon Cognito: "Understanding the access token" and "Understanding the identity (ID) token" in its developer guide
//! - Auth0: "Access Token Profiles" and "Enable Role-Based Access Control for APIs" in its documentation
//! - Microsoft Entra ID: "Access token claims reference", "ID token claims reference" and "Optional claims reference" in
//!   the documentation of the Microsoft identity platform
//! - Keycloak: `AccessToken.java`, `IDToken.java` and `TokenUtil.java`, which contains the values of the claim `typ`

use serde_json::{Value, json};

/// The rights that a token of [`issuer_tokens`] must grant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExpectedRights {
    /// An operator with the role admin.
    Admin,
    /// The account with this id.
    Account(&'static str),
    /// The token grants no rights, so the response has the status 403. Either the token is for another API, or its
    /// claims do not show whether it is an access token or an ID token.
    None,
    /// A claim of the token says that it is not an access token, so the response has the status 401.
    NoAccessToken,
}

/// The claims of an example token, and the rights that the token must grant.
#[derive(Clone, Debug)]
pub struct IssuerToken {
    /// The name of the issuer, and the kind of the token.
    pub name: &'static str,
    pub claims: Value,
    pub rights: ExpectedRights,
}

/// Returns tokens of Amazon Cognito, Auth0, Microsoft Entra ID and Keycloak. Dueday's scopes
/// have their default names, and the claim `sub` determines the account.
pub fn issuer_tokens() -> Vec<IssuerToken> {
    [cognito_tokens(), auth0_tokens(), entra_id_tokens(), keycloak_tokens()].concat()
}

/// Creates an example token.
fn create_example_token(name: &'static str, rights: ExpectedRights, claims: Value) -> IssuerToken {
    IssuerToken { name, claims, rights }
}

/// Returns the example tokens of Amazon Cognito.
fn cognito_tokens() -> Vec<IssuerToken> {
    let issuer = "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_example";
    let user = "aaaaaaaa-bbbb-4ccc-dddd-eeeeeeeeeeee";
    vec![
        create_example_token(
            "Cognito, a machine's access token (client credentials)",
            ExpectedRights::Admin,
            json!({
                "sub": "1example23456789", "token_use": "access", "scope": "dueday/admin", "auth_time": 1676312777,
                "iss": issuer, "exp": 1676316377, "iat": 1676312777, "version": 2,
                "jti": "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee", "client_id": "1example23456789"
            }),
        ),
        create_example_token(
            "Cognito, a person's access token (authorization code)",
            ExpectedRights::Account(user),
            json!({
                "sub": user, "cognito:groups": ["customers"], "iss": issuer, "version": 2, "client_id": "2example",
                "origin_jti": "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee", "event_id": "64f513be-32db-42b0-b78e-b02127b4f463",
                "token_use": "access", "scope": "openid dueday/account", "auth_time": 1676312777, "exp": 1676316377,
                "iat": 1676312777, "jti": "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee", "username": "my-test-user"
            }),
        ),
        create_example_token(
            "Cognito, an access token of InitiateAuth",
            ExpectedRights::None,
            json!({
                "sub": user, "iss": issuer, "client_id": "2example", "token_use": "access",
                "scope": "aws.cognito.signin.user.admin", "auth_time": 1676312777, "exp": 1676316377,
                "iat": 1676312777, "username": "my-test-user"
            }),
        ),
        create_example_token(
            "Cognito, an ID token whose user has chosen the names of scopes as attributes",
            ExpectedRights::NoAccessToken,
            json!({
                "sub": user, "cognito:groups": ["customers"], "email_verified": true, "iss": issuer,
                "cognito:username": "my-test-user", "aud": "2example", "event_id": "64f513be-32db-42b0-b78e-b02127b4f463",
                "token_use": "id", "auth_time": 1676312777, "exp": 1676316377, "iat": 1676312777,
                "email": "my-test-user@example.com", "scope": "dueday/admin", "permissions": ["dueday/admin"]
            }),
        ),
    ]
}

/// Returns the example tokens of Auth0.
fn auth0_tokens() -> Vec<IssuerToken> {
    let audience = json!(["https://api.example.com", "https://my-domain.auth0.com/userinfo"]);
    vec![
        create_example_token(
            "Auth0, a machine's access token",
            ExpectedRights::Admin,
            json!({
                "iss": "https://my-domain.auth0.com/", "sub": "my_client_id@clients", "aud": "https://api.example.com",
                "iat": 1311280970, "exp": 1311281970, "scope": "dueday/admin", "gty": "client-credentials",
                "azp": "my_client_id", "permissions": ["dueday/admin"]
            }),
        ),
        create_example_token(
            "Auth0, a person's access token of the Auth0 profile, with permissions",
            ExpectedRights::Account("sha256-59b4f4f5e80f5eb398cfab577367bb25"),
            json!({
                "iss": "https://my-domain.auth0.com/", "sub": "auth0|123456", "aud": audience, "azp": "my_client_id",
                "exp": 1311281970, "iat": 1311280970, "scope": "openid profile", "permissions": ["dueday/account"]
            }),
        ),
        create_example_token(
            "Auth0, a person's access token of the RFC 9068 profile",
            ExpectedRights::Account("sha256-59b4f4f5e80f5eb398cfab577367bb25"),
            json!({
                "iss": "https://my-domain.auth0.com/", "sub": "auth0|123456", "aud": audience,
                "client_id": "my_client_id", "exp": 1311281970, "iat": 1311280970, "jti": "73WakrfVbNJBaAmhQtEeDv",
                "scope": "openid profile dueday/account"
            }),
        ),
        create_example_token(
            "Auth0, an ID token",
            ExpectedRights::None,
            json!({
                "iss": "https://my-domain.auth0.com/", "sub": "auth0|123456", "aud": "my_client_id",
                "exp": 1311281970, "iat": 1311280970, "nonce": "abc", "name": "Jane Doe", "email": "jane@example.com"
            }),
        ),
    ]
}

/// Returns the example tokens of Microsoft Entra ID.
fn entra_id_tokens() -> Vec<IssuerToken> {
    let issuer = "https://login.microsoftonline.com/aaaabbbb-0000-cccc-1111-dddd2222eeee/v2.0";
    let person = json!({
        "aud": "00001111-aaaa-2222-bbbb-3333cccc4444", "iss": issuer, "iat": 1537231048, "nbf": 1537231048,
        "exp": 1537234948, "azp": "11112222-bbbb-3333-cccc-4444dddd5555", "azpacr": "0", "name": "Jane Doe",
        "oid": "aaaaaaaa-0000-1111-2222-bbbbbbbbbbbb", "preferred_username": "jane@example.com",
        "scp": "dueday/account", "sub": "HKZpfaHyWadeOouYlitjrI-KffTm222X5rrV3xDqfKQ",
        "tid": "aaaabbbb-0000-cccc-1111-dddd2222eeee", "ver": "2.0"
    });
    let with = |changes: Value| {
        let mut claims = person.clone();
        for (name, value) in changes.as_object().into_iter().flatten() {
            claims[name.as_str()] = value.clone();
        }
        claims.as_object_mut().into_iter().for_each(|claims| claims.retain(|_, value| !value.is_null()));
        claims
    };
    vec![
        create_example_token(
            "Entra ID, a person's access token",
            ExpectedRights::Account("HKZpfaHyWadeOouYlitjrI-KffTm222X5rrV3xDqfKQ"),
            with(json!({})),
        ),
        create_example_token(
            "Entra ID, an application's access token with the optional claim idtyp",
            ExpectedRights::Admin,
            with(json!({
                "scp": null, "name": null, "preferred_username": null, "idtyp": "app", "roles": ["dueday/admin"],
                "oid": "aaaaaaaa-bbbb-cccc-1111-222222222222", "sub": "aaaaaaaa-bbbb-cccc-1111-222222222222"
            })),
        ),
        create_example_token(
            "Entra ID, an application's access token without the optional claim idtyp",
            ExpectedRights::None,
            with(json!({"scp": null, "name": null, "preferred_username": null, "roles": ["dueday/admin"]})),
        ),
        create_example_token(
            "Entra ID, an ID token of a user who has the role of operators",
            ExpectedRights::None,
            with(json!({"scp": null, "azp": null, "azpacr": null, "nonce": "abc", "roles": ["dueday/admin"]})),
        ),
    ]
}

/// Returns the example tokens of Keycloak.
fn keycloak_tokens() -> Vec<IssuerToken> {
    let issuer = "https://keycloak.example.com/realms/shop";
    let user = "36fa0f91-f94d-4a0c-afed-6b7d952e47da";
    let person = |kind: &str, scope: &str| {
        json!({
            "exp": 1673171296, "iat": 1673170996, "jti": "d58f5dc8-fd8f-462b-8a19-716f8f83985b", "iss": issuer,
            "aud": ["dueday", "account"], "sub": user, "typ": kind, "azp": "shop",
            "sid": "2a88c258-f73a-4103-b862-e1fbd8f4e04e", "acr": "1", "allowed-origins": ["https://shop.example.com"],
            "realm_access": {"roles": ["offline_access", "default-roles-shop", "uma_authorization"]},
            "resource_access": {"account": {"roles": ["manage-account", "view-profile"]}}, "scope": scope,
            "email_verified": true, "preferred_username": "jane", "email": "jane@example.com"
        })
    };
    vec![
        create_example_token(
            "Keycloak, a machine's access token",
            ExpectedRights::Admin,
            json!({
                "exp": 1673171296, "iat": 1673170996, "jti": "trrtcc:312ee6d6-3c5b", "iss": issuer, "aud": "dueday",
                "sub": "0d8f6d2b-29e4-4e4d-8a08-3f3a3b0a3e0c", "typ": "Bearer", "azp": "backend", "acr": "1",
                "scope": "profile dueday/admin", "clientHost": "203.0.113.7", "client_id": "backend",
                "preferred_username": "service-account-backend"
            }),
        ),
        create_example_token(
            "Keycloak, a person's access token",
            ExpectedRights::Account(user),
            person("Bearer", "openid email dueday/account"),
        ),
        create_example_token(
            "Keycloak, an ID token",
            ExpectedRights::NoAccessToken,
            person("ID", "openid dueday/admin"),
        ),
        create_example_token(
            "Keycloak, a refresh token",
            ExpectedRights::NoAccessToken,
            person("Refresh", "openid dueday/account"),
        ),
        create_example_token(
            "Keycloak, a token bound to a key",
            ExpectedRights::NoAccessToken,
            person("DPoP", "dueday/account"),
        ),
    ]
}
