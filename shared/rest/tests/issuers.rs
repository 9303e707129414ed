//! Tests of the callers that tokens of common issuers determine.

use config::Env;
use emulator::gateway_claims;
use rest::{Caller, Problem, Rights, TokenRules, account_of_subject};
use serde_json::{Value, json};
use testkit::{ExpectedRights, issuer_tokens};

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
