//! Checks that the secrets in AWS Secrets Manager can be read and are valid. No check result contains a secret.

use api::DeployedParts;
use encryption::EncryptionKeys;
use gateways::{GatewaySigningKeys, SigningSecrets, parse_stripe_key};
use mail::{SmtpLogin, parse_smtp_login};

use super::aws_cli::{AwsCli, AwsError, Response, text_field};
use super::check_result::DoctorCheck;
use super::stack::Stack;

/// The name of the check of the gateway's key.
const GATEWAY_KEY_CHECK: &str = "secret with the gateway's key";
/// The name of the check of the signing secret of Stripe's webhooks.
const WEBHOOK_SECRET_CHECK: &str = "secret of Stripe's webhooks";
/// The name of the check of the mail server's login.
const MAIL_LOGIN_CHECK: &str = "user and password of the mail server";
/// The name of the check of the keys that encrypt secrets in the table.
const ENCRYPTION_KEYS_CHECK: &str = "encryption keys";

/// The valid key of the configured gateway: Stripe's API key, or the signing keys of the merchant's own gateway.
#[derive(Clone)]
pub enum GatewayKey {
    Stripe(String),
    /// The keys that sign the requests to the merchant's own gateway.
    Own(GatewaySigningKeys),
}

/// The secrets that later checks need. A secret is `None` if it is not needed or not valid.
#[derive(Default)]
pub struct StoredSecrets {
    pub gateway: Option<GatewayKey>,
    pub mail_login: Option<SmtpLogin>,
}

/// Checks the secrets of the stack. Returns the check results, and the valid secrets.
pub async fn check_stack_secrets(aws: &AwsCli, stack: Option<&Stack>) -> (StoredSecrets, Vec<DoctorCheck>) {
    let Some(stack) = stack else {
        let not_checked = |check| DoctorCheck::not_checked(check, "the stack is not known");
        return (
            StoredSecrets::default(),
            [GATEWAY_KEY_CHECK, WEBHOOK_SECRET_CHECK, ENCRYPTION_KEYS_CHECK].map(not_checked).into(),
        );
    };
    let is_stripe = stack.parameter("Gateway") == "stripe";
    let arn_of_key = stack.parameter(if is_stripe { "StripeSecret" } else { "GatewayKeySecret" });
    let arn_of_keys = stack.outputs.get("EncryptionKeysArn").map_or("", String::as_str);
    let webhook = stack.parameter("StripeWebhookSecret");
    let (key, webhook_secret, keys) = futures::join!(
        read_stack_secret(aws, arn_of_key),
        read_stack_secret(aws, webhook),
        read_stack_secret(aws, arn_of_keys)
    );
    let (key, key_finding) = check_secret(GATEWAY_KEY_CHECK, key, |text| match is_stripe {
        true => parse_stripe_key(text).map(GatewayKey::Stripe).map_err(str::to_owned),
        false => {
            text.parse().map(GatewayKey::Own).map_err(|error: gateways::GatewaySigningKeysError| error.to_string())
        }
    });
    // The sandbox gateway of a stack needs no key.
    let needs_key = stack.parameter("Gateway") != "sandbox";
    let mut findings: Vec<DoctorCheck> = Some(key_finding).filter(|_| needs_key).into_iter().collect();
    if is_stripe && webhook.is_empty() {
        findings.push(DoctorCheck::wrong(
            WEBHOOK_SECRET_CHECK,
            "StripeWebhookSecret is blank, so disputes and returned refunds stay unnoticed",
            "See \"Receive Stripe's events\" in docs/cards.md",
        ));
    } else if is_stripe {
        findings.push(
            check_secret(WEBHOOK_SECRET_CHECK, webhook_secret, |text| with_text_error(SigningSecrets::parse(text))).1,
        );
    }
    let login = stack.parameter("MailLoginSecret");
    let mut mail_login = None;
    if !login.is_empty() {
        let (parsed, finding) = check_secret(MAIL_LOGIN_CHECK, read_stack_secret(aws, login).await, parse_smtp_login);
        mail_login = parsed;
        findings.push(finding);
    }
    // The keys encrypt the signing secrets of webhook endpoints, which the core does not have.
    if stack.parts() == DeployedParts::Full {
        findings.push(check_secret(ENCRYPTION_KEYS_CHECK, keys, |text| with_text_error(EncryptionKeys::parse(text))).1);
    }
    (StoredSecrets { gateway: key, mail_login }, findings)
}

/// Converts the error of a parser to its text.
fn with_text_error<T, E: std::error::Error>(parsed: Result<T, E>) -> Result<T, String> {
    parsed.map_err(|error| error.to_string())
}

/// Reads the secret with this ARN. Returns an error if `arn` is empty.
async fn read_stack_secret(aws: &AwsCli, arn: &str) -> Response {
    if arn.is_empty() {
        return Err(AwsError::Failed("the stack does not name the secret".to_owned()));
    }
    aws.run(&["secretsmanager", "get-secret-value", "--secret-id", arn]).await
}

/// Checks that a secret is valid text. Returns the parsed secret, if it is valid, and the check result.
fn check_secret<T>(
    check: &'static str,
    response: Response,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> (Option<T>, DoctorCheck) {
    let secret = match response {
        Ok(secret) => secret,
        Err(error) if error.is_missing() => {
            let advice = "Create it, and deploy with its ARN";
            return (None, DoctorCheck::wrong(check, "the secret does not exist", advice));
        }
        Err(error) => return (None, DoctorCheck::not_checked(check, error.to_string())),
    };
    let advice = "Store the right value with `aws secretsmanager put-secret-value`";
    match text_field(&secret, "SecretString").trim() {
        "" => (None, DoctorCheck::wrong(check, "the secret is empty", advice)),
        text => match parse(text) {
            Ok(parsed) => (Some(parsed), DoctorCheck::good(check, "readable and valid")),
            Err(reason) => (None, DoctorCheck::wrong(check, format!("the secret {reason}"), advice)),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns a response of `get-secret-value`, as documented in the AWS CLI reference.
    fn secret_value_response(text: &str) -> Response {
        Ok(json!({
            "ARN": "arn:aws:secretsmanager:eu-west-1:123456789012:secret:dueday/stripe-key-a1b2c3",
            "Name": "dueday/stripe-key",
            "VersionId": "a1b2c3d4-5678-90ab-cdef-EXAMPLE11111",
            "SecretString": text,
            "VersionStages": ["AWSCURRENT"],
            "CreatedDate": 1523477145.713,
        }))
    }

    #[test]
    fn secret_must_exist_and_be_valid_and_is_never_shown() {
        let check =
            |response| check_secret(GATEWAY_KEY_CHECK, response, |text| parse_stripe_key(text).map_err(str::to_owned));
        let (key, finding) = check(secret_value_response(" rk_live_0123456789\n"));
        assert_eq!((key.as_deref(), finding.is_good()), (Some("rk_live_0123456789"), true));
        for wrong in ["", " ", "whsec_0123456789", "{\"key\":\"sk_live_0123456789\"}"] {
            let (key, finding) = check(secret_value_response(wrong));
            let shown = serde_json::to_string(&finding).unwrap();
            assert!(key.is_none() && shown.contains("wrong") && !shown.contains("0123456789"), "{shown}");
        }
        let (_, missing) = check(Err(AwsError::Refused("ResourceNotFoundException".to_owned())));
        assert_eq!(
            missing,
            DoctorCheck::wrong(GATEWAY_KEY_CHECK, "the secret does not exist", "Create it, and deploy with its ARN")
        );
        let (_, denied) = check(Err(AwsError::Denied("secretsmanager:GetSecretValue".to_owned())));
        assert_eq!(
            denied,
            DoctorCheck::not_checked(GATEWAY_KEY_CHECK, "the permission secretsmanager:GetSecretValue is missing")
        );
    }
}
