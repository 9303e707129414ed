//! Checks that users of the token issuer cannot change the claim that contains the id of their account. Otherwise a
//! user could write the id of another account into the claim, and act for that account.

use serde_json::Value;

use super::aws_cli::{AwsCli, Response, list_field, text_field};
use super::check_result::DoctorCheck;
use super::stack::Stack;

/// The name of the check in the output.
const CHECK_NAME: &str = "claim with the account";

/// The claims that only the issuer sets ("Using the access token" in the developer guide of Amazon Cognito).
const ISSUED_CLAIMS: [&str; 2] = ["sub", "client_id"];
/// The claims with the user name, in access tokens and in id tokens.
const USER_NAME_CLAIMS: [&str; 2] = ["username", "cognito:username"];
/// The standard attributes that an app client without own `WriteAttributes` can write ("WriteAttributes" in the API
/// reference of Amazon Cognito). `email_verified` and `phone_number_verified` are not among them.
const DEFAULT_WRITABLE: [&str; 17] = [
    "address",
    "birthdate",
    "email",
    "family_name",
    "gender",
    "given_name",
    "locale",
    "middle_name",
    "name",
    "nickname",
    "phone_number",
    "picture",
    "preferred_username",
    "profile",
    "updated_at",
    "website",
    "zoneinfo",
];

/// Checks the claim from which the API of the stack reads the account of a caller.
pub async fn check_token_claim(aws: &AwsCli, stack: Option<&Stack>) -> DoctorCheck {
    let Some(stack) = stack else { return DoctorCheck::not_checked(CHECK_NAME, "the stack is not known") };
    // If the stack has its own user pool, the template sets the claim to `username`.
    let own_pool = stack.outputs.get("UserPoolId").map(String::as_str);
    let claim = if own_pool.is_some() { "username" } else { stack.parameter("AccountClaim") };
    let issuer = stack.parameter("JwtIssuer");
    if ISSUED_CLAIMS.contains(&claim) {
        return DoctorCheck::good(CHECK_NAME, format!("{claim}, which only the issuer sets"));
    }
    let Some(pool) = own_pool.or_else(|| user_pool_id(issuer)) else {
        let reason = format!("{issuer} is not Amazon Cognito; check that its users cannot change the claim {claim}");
        return DoctorCheck::not_checked(CHECK_NAME, reason);
    };
    if USER_NAME_CLAIMS.contains(&claim) {
        let described = aws.run(&["cognito-idp", "describe-user-pool", "--user-pool-id", pool]).await;
        return check_user_names(claim, described);
    }
    let clients = aws.run(&["cognito-idp", "list-user-pool-clients", "--user-pool-id", pool]).await;
    let clients = match clients {
        Ok(clients) => clients,
        Err(error) => return DoctorCheck::not_checked(CHECK_NAME, error.to_string()),
    };
    let ids: Vec<&str> = list_field(&clients, "UserPoolClients").map(|client| text_field(client, "ClientId")).collect();
    let describe = async |id: &str| {
        let command = ["cognito-idp", "describe-user-pool-client", "--user-pool-id", pool, "--client-id", id];
        aws.run(&command).await
    };
    let mut described = Vec::new();
    for id in ids {
        described.push(describe(id).await);
    }
    check_app_clients(claim, described)
}

/// Returns the id of the user pool at the URL of the issuer; `None` if the issuer is not Amazon Cognito.
fn user_pool_id(issuer: &str) -> Option<&str> {
    let (host, pool) = issuer.strip_prefix("https://")?.trim_end_matches('/').split_once('/')?;
    (host.starts_with("cognito-idp.") && !pool.contains('/')).then_some(pool)
}

/// Checks that users of the pool cannot choose their user name. Otherwise a user could choose the id of another account
/// as user name.
fn check_user_names(claim: &str, described: Response) -> DoctorCheck {
    let pool = match described {
        Ok(described) => described["UserPool"].clone(),
        Err(error) => return DoctorCheck::not_checked(CHECK_NAME, error.to_string()),
    };
    let only_administrators = pool["AdminCreateUserConfig"]["AllowAdminCreateUserOnly"] == true;
    // If users sign in with a mail address or phone number, Cognito generates the user name in the token.
    let is_generated = list_field(&pool, "UsernameAttributes").next().is_some();
    if only_administrators || is_generated {
        return DoctorCheck::good(CHECK_NAME, format!("{claim}, which users cannot choose"));
    }
    let detail = format!("users who sign up choose {claim}, and could choose the id of another account");
    DoctorCheck::wrong(
        CHECK_NAME,
        detail,
        "Set AdminCreateUserConfig.AllowAdminCreateUserOnly of the user pool, or use the claim sub",
    )
}

/// Checks that no app client of the pool can write the attribute `claim`. With a token of an app client, a user can
/// change the attributes that this app client can write.
fn check_app_clients(claim: &str, described: Vec<Response>) -> DoctorCheck {
    for response in described {
        let client = match response {
            Ok(response) => response["UserPoolClient"].clone(),
            Err(error) => return DoctorCheck::not_checked(CHECK_NAME, error.to_string()),
        };
        if can_client_write(&client, claim) {
            let detail = format!("users of the app client {:?} can change {claim}", text_field(&client, "ClientName"));
            let advice = "Remove the attribute from WriteAttributes of the app client, or use the claim sub";
            return DoctorCheck::wrong(CHECK_NAME, detail, advice);
        }
    }
    DoctorCheck::good(CHECK_NAME, format!("{claim}, which no app client of the user pool can write"))
}

/// Returns whether users of the app client `client` can write `attribute`. Cognito leaves out `WriteAttributes` if the
/// app client can write the standard attributes.
fn can_client_write(client: &Value, attribute: &str) -> bool {
    match client["WriteAttributes"].as_array() {
        Some(attributes) if !attributes.is_empty() => attributes.iter().any(|writable| writable == attribute),
        _ => DEFAULT_WRITABLE.contains(&attribute),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::aws_cli::AwsError;
    use super::*;

    /// Returns a response of `describe-user-pool-client`, as documented in the AWS CLI reference.
    fn app_client_response(writable: Option<&[&str]>) -> Response {
        let mut client = json!({
            "UserPoolId": "eu-west-1_aaaaaaaaa",
            "ClientName": "MyApp",
            "ClientId": "38fjsnc484p94kpqsnet7mpld0",
            "LastModifiedDate": 1548108676.163,
            "RefreshTokenValidity": 30,
            "ReadAttributes": ["email", "custom:account"],
        });
        if let Some(writable) = writable {
            client["WriteAttributes"] = json!(writable);
        }
        Ok(json!({"UserPoolClient": client}))
    }

    #[test]
    fn no_app_client_may_write_the_claim_with_the_account() {
        let claim = "custom:account";
        assert!(
            check_app_clients(claim, vec![app_client_response(None), app_client_response(Some(&["email", "name"]))])
                .is_good()
        );
        assert!(
            !check_app_clients(claim, vec![app_client_response(None), app_client_response(Some(&["email", claim]))])
                .is_good()
        );
        assert!(
            !check_app_clients("preferred_username", vec![app_client_response(None)]).is_good(),
            "a standard attribute is writable"
        );
        assert!(check_app_clients("email", vec![app_client_response(Some(&["name"]))]).is_good());
        let denied = AwsError::Denied("cognito-idp:DescribeUserPoolClient".to_owned());
        assert!(!check_app_clients(claim, vec![app_client_response(None), Err(denied)]).is_good());
    }

    #[test]
    fn users_of_the_user_pool_may_not_choose_their_user_name() {
        let pool = |admin_only: bool, attributes: &[&str]| {
            Ok(json!({"UserPool": {
                "Id": "eu-west-1_aaaaaaaaa",
                "AdminCreateUserConfig": {"AllowAdminCreateUserOnly": admin_only},
                "UsernameAttributes": attributes,
            }}))
        };
        assert!(check_user_names("username", pool(true, &[])).is_good());
        assert!(check_user_names("username", pool(false, &["email"])).is_good());
        assert!(!check_user_names("username", pool(false, &[])).is_good());
        assert!(!check_user_names("username", Err(AwsError::NotInstalled)).is_good());
    }

    #[test]
    fn user_pool_id_is_read_from_the_token_issuer() {
        assert_eq!(user_pool_id("https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_aaa"), Some("eu-west-1_aaa"));
        assert_eq!(user_pool_id("https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_aaa/"), Some("eu-west-1_aaa"));
        assert_eq!(user_pool_id("https://issuer.example.com/tenant"), None);
    }
}
