//! Tests of the callers that tokens of common issuers determine.

use config::Env;
use emulator::gateway_claims;
use rest::{Caller, CallerRights, Problem, Role, TokenRules, account_of_subject};
use serde_json::{Value, json};
use testkit::{ExpectedRights, issuer_tokens};

/// Returns the token rules for the environment variables `settings`.
fn rules(settings: &[(&str, &str)]) -> TokenRules {
    let find = |name: &str| settings.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned());
    TokenRules::read(Env(&find)).unwrap()
}

/// Returns the rights that a token with `claims` grants, or the problem if it grants none.
fn rights(rules: &TokenRules, claims: &Value) -> Result<CallerRights, Problem> {
    rules.rights_of_claims(&gateway_claims(claims.as_object().unwrap()))
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
            ExpectedRights::Admin => Ok(Caller::Operator(Role::Admin)),
            ExpectedRights::Account(account) => Ok(Caller::of_account(account.parse().unwrap())),
            ExpectedRights::None => Err(403),
            ExpectedRights::NoAccessToken => Err(401),
        };
        assert_eq!(rights, expected, "{}", token.name);
    }
}

#[test]
fn scopes_and_the_claim_of_the_account_have_the_configured_names() {
    let configured = rules(&[("DUEDAY_SCOPE_PREFIX", "billing."), ("DUEDAY_ACCOUNT_CLAIM", "customer")]);
    let caller = |rules: &TokenRules, claims: Value| {
        rights(rules, &claims).map(|rights| rights.caller).map_err(|problem| status(&problem))
    };
    assert_eq!(caller(&configured, json!({"sub": "1", "scope": "dueday/admin dueday/account"})), Err(403));
    assert_eq!(caller(&configured, json!({"sub": "1", "scope": "billing.admin"})), Ok(Caller::Operator(Role::Admin)));
    let account = json!({"sub": "1", "customer": "acme", "scp": ["billing.account"]});
    assert_eq!(caller(&configured, account), Ok(Caller::of_account("acme".parse().unwrap())));
    for without in
        [json!({"sub": "1", "scope": "billing.account"}), json!({"customer": "", "scope": "billing.account"})]
    {
        assert_eq!(caller(&configured, without), Err(403), "the token does not name its account");
    }
    let without_prefix = rules(&[("DUEDAY_SCOPE_PREFIX", "none")]);
    assert_eq!(caller(&without_prefix, json!({"scope": "support"})), Ok(Caller::Operator(Role::Support)));
    assert_eq!(caller(&without_prefix, json!({"scope": "dueday/support"})), Err(403));
}

#[test]
fn variable_of_an_earlier_version_is_refused() {
    let find = |name: &str| (name == "DUEDAY_OPERATOR_SCOPE").then(|| "billing.admin".to_owned());
    let error = TokenRules::read(Env(&find)).unwrap_err().to_string();
    assert_eq!(error, "DUEDAY_OPERATOR_SCOPE is not read any more: unset it, and set DUEDAY_SCOPE_PREFIX");
}

#[test]
fn highest_role_of_the_scopes_is_the_role_of_the_operator() {
    let rules = rules(&[]);
    let account = Caller::of_account("acme".parse().unwrap());
    for (scopes, expected) in [
        ("dueday/read", Caller::Operator(Role::Read)),
        ("dueday/support", Caller::Operator(Role::Support)),
        ("dueday/admin", Caller::Operator(Role::Admin)),
        ("dueday/support dueday/read", Caller::Operator(Role::Support)),
        ("dueday/account dueday/read", Caller::Operator(Role::Read)),
        ("dueday/account dueday/reader dueday/administrator", account.clone()),
        // The scopes of earlier versions.
        ("dueday/operator", Caller::Operator(Role::Operator)),
        ("dueday/operator dueday/confidential", Caller::Operator(Role::Admin)),
        ("dueday/operator dueday/confidential.all", Caller::Operator(Role::Operator)),
        ("dueday/support dueday/confidential", Caller::Operator(Role::Support)),
        ("dueday/account dueday/confidential", account),
    ] {
        let rights = rights(&rules, &json!({"sub": "acme", "scope": scopes})).unwrap();
        assert_eq!(rights.caller, expected, "{scopes}");
    }
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
