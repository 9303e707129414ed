//! Checks that the template accepts the tokens of only one issuer, and that a customer with a token of its user pool
//! can act only on the customer's own account.

use serde_yaml_ng::Value;

use crate::stack::Stack;
use crate::template::{template, text};

/// Returns the elements of a list of strings.
fn strings(list: &Value) -> Vec<String> {
    list.as_sequence().unwrap().iter().map(text).collect()
}

/// Evaluates the rules about tokens. Returns the descriptions of the assertions that refuse the deployment.
fn refusals(changes: &[(&str, &str)]) -> Vec<String> {
    let stack = Stack::new(changes);
    let rules = ["UserPoolIssuesTheTokens", "ApiNeedsAnIssuer"];
    rules.iter().flat_map(|rule| stack.refusals_of_rule(rule)).collect()
}

#[test]
fn template_refuses_combinations_of_parameters_without_an_issuer_or_with_two() {
    const NEEDS_ISSUER: &str = "The API needs JwtIssuer, or UserPoolDomain";
    const NEEDS_AUDIENCE: &str = "JwtIssuer needs JwtAudience";
    const FOR_POOL: &str = "SignInCallbackUrls needs UserPoolDomain";
    const FOR_OTHER_ISSUER: &str = "With UserPoolDomain, JwtIssuer and JwtAudience must be blank";
    const DEFAULTS: &str = "With UserPoolDomain, ScopePrefix and AccountClaim must keep their defaults";
    let issuer = [("JwtIssuer", "https://issuer.example.com/"), ("JwtAudience", "one,two")];
    let pool = [("UserPoolDomain", "acme")];
    for (base, change, expected) in [
        (&issuer[..], ("Stage", "dev"), &[][..]),
        (&pool, ("Stage", "dev"), &[]),
        (&pool, ("SignInCallbackUrls", "https://shop.example.com/"), &[]),
        (&[], ("Stage", "dev"), &[NEEDS_ISSUER, NEEDS_AUDIENCE]),
        (&issuer, ("JwtIssuer", ""), &[NEEDS_ISSUER]),
        (&issuer, ("JwtAudience", ""), &[NEEDS_AUDIENCE]),
        (&issuer, ("UserPoolDomain", "acme"), &[FOR_OTHER_ISSUER]),
        (&issuer, ("SignInCallbackUrls", "https://shop.example.com/"), &[FOR_POOL]),
        (&issuer, ("ScopePrefix", "shop:"), &[]),
        (&pool, ("JwtIssuer", "https://issuer.example.com/"), &[FOR_OTHER_ISSUER]),
        (&pool, ("JwtAudience", "one"), &[FOR_OTHER_ISSUER]),
        (&pool, ("UserPoolDomain", "none"), &[NEEDS_ISSUER, NEEDS_AUDIENCE]),
        (&pool, ("ScopePrefix", "shop:"), &[DEFAULTS]),
        (&pool, ("AccountClaim", "email"), &[DEFAULTS]),
    ] {
        let changes: Vec<(&str, &str)> = base.iter().copied().chain([change]).collect();
        assert_eq!(refusals(&changes), expected, "{changes:?}");
    }
}

#[test]
fn template_allows_accounts_the_actions_that_the_functions_know() {
    let template = template();
    let parameter = &template["Parameters"]["AccountActions"];
    let default = rest::ACCOUNT_ACTIONS.default.unwrap();
    assert_eq!(text(&parameter["Default"]), default);
    let allowed = regex::Regex::new(&text(&parameter["AllowedPattern"])).unwrap();
    for actions in
        default.split(',').chain(["none", default, "cancel,payment-method", "stop", "pause,", "none,pause", ""])
    {
        let is_known = rest::AccountActions::parse(actions).is_ok();
        assert_eq!(allowed.is_match(actions), is_known, "{actions}");
    }
}

#[test]
fn template_creates_a_user_pool_only_on_request_and_accepts_its_tokens() {
    let template = template();
    assert_eq!(text(&template["Parameters"]["UserPoolDomain"]["Default"]), "none");
    let resources = template["Resources"].as_mapping().unwrap();
    for (name, resource) in resources {
        let is_of_pool = resource["Type"].as_str().is_some_and(|kind| kind.starts_with("AWS::Cognito::"));
        let condition = resource["Condition"].as_str().unwrap_or_default();
        assert!(!is_of_pool || ["HasUserPool", "HasSignIn"].contains(&condition), "{name:?}");
    }
    let jwt = &template["Resources"]["Api"]["Properties"]["Auth"]["Authorizers"]["Jwt"]["JwtConfiguration"];
    let [issuer, audience] = ["issuer", "audience"].map(|name| format!("{:?}", jwt[name]));
    assert!(issuer.contains("Users.ProviderURL") && issuer.contains("JwtIssuer"), "{issuer}");
    for client in ["UsersMachineClient", "UsersPeopleClient", "JwtAudience"] {
        assert!(audience.contains(client), "{audience}");
    }
}

#[test]
fn user_pool_has_the_scopes_of_the_api_and_each_app_client_has_one_grant() {
    let template = template();
    let resources = &template["Resources"];
    let server = &resources["UsersScopes"]["Properties"];
    let scopes = server["Scopes"].as_sequence().unwrap().iter();
    let scopes: Vec<String> =
        scopes.map(|scope| format!("{}/{}", text(&server["Identifier"]), text(&scope["ScopeName"]))).collect();
    let roles = rest::Role::GIVEN.map(|role| format!("dueday/{role}"));
    let earlier = ["dueday/operator", "dueday/confidential"].map(str::to_owned);
    assert_eq!(scopes, [&roles[..], &["dueday/account".to_owned()], &earlier].concat());

    let prefix = text(&template["Parameters"]["ScopePrefix"]["Default"]);
    assert_eq!(rest::SCOPE_PREFIX.default, Some(prefix.as_str()));
    for function in ["ApiFunction", "OrdersApiFunction"] {
        let given = &resources[function]["Properties"]["Environment"]["Variables"][rest::SCOPE_PREFIX.name];
        let Value::Tagged(given) = given else { panic!("{given:?}") };
        assert_eq!(text(&given.value), "ScopePrefix", "{function}");
    }

    let machine = &resources["UsersMachineClient"]["Properties"];
    let people = &resources["UsersPeopleClient"]["Properties"];
    assert_eq!(strings(&machine["AllowedOAuthFlows"]), ["client_credentials"]);
    assert_eq!(strings(&machine["AllowedOAuthScopes"]), [&roles[..2], &earlier[..1]].concat());
    assert_eq!(strings(&people["AllowedOAuthFlows"]), ["code"]);
    assert_eq!(strings(&people["AllowedOAuthScopes"]), ["openid", "dueday/account"]);
    assert_eq!((machine["GenerateSecret"].as_bool(), people["GenerateSecret"].as_bool()), (Some(true), Some(false)));
    for client in [machine, people] {
        // No other authentication flow is allowed. A token of `ALLOW_USER_PASSWORD_AUTH`, for example, would have the
        // scope aws.cognito.signin.user.admin and no scope of the API.
        assert_eq!(strings(&client["ExplicitAuthFlows"]), ["ALLOW_REFRESH_TOKEN_AUTH"]);
    }
}

#[test]
fn only_an_administrator_creates_users_and_users_cannot_change_their_account() {
    let template = template();
    let users = &template["Resources"]["Users"];
    let properties = &users["Properties"];
    assert_eq!(properties["AdminCreateUserConfig"]["AllowAdminCreateUserOnly"].as_bool(), Some(true));
    // With UsernameAttributes, the user name would be an e-mail address, which users can change.
    assert!(properties["UsernameAttributes"].is_null() && properties["Schema"].is_null());
    assert_eq!(properties["UsernameConfiguration"]["CaseSensitive"].as_bool(), Some(true));
    for function in ["ApiFunction", "OrdersApiFunction"] {
        let variables = &template["Resources"][function]["Properties"]["Environment"]["Variables"];
        let claim = format!("{:?}", variables["DUEDAY_ACCOUNT_CLAIM"]);
        assert!(claim.contains("HasUserPool") && claim.contains("username"), "{claim}");
    }
}

#[test]
fn user_pool_is_kept_like_the_table_and_does_not_hinder_the_removal_of_a_failed_first_deployment() {
    let template = template();
    let [users, table] = ["Users", "Table"].map(|name| &template["Resources"][name]);
    assert_eq!(text(&users["DeletionPolicy"]), "RetainExceptOnCreate");
    for policy in ["DeletionPolicy", "UpdateReplacePolicy"] {
        assert_eq!(users[policy], table[policy], "{policy}");
    }
    assert!(users["Properties"]["DeletionProtection"].is_null(), "it would keep the pool after a failed deployment");
}
