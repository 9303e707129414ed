//! Checks that mails can be sent through Amazon SES, and that bounces are reported.

use api::DeployedParts;
use mail::{SmtpLogin, SmtpMailer};
use serde_json::Value;

use super::aws_cli::{AwsCli, Response, list_field, text_field};
use super::check_result::DoctorCheck;
use super::stack::Stack;

/// The name of the check whether the sender is verified.
const SENDER_CHECK: &str = "sender of mails";
/// The name of the check of the AWS account at Amazon SES.
const ACCOUNT_CHECK: &str = "Amazon SES";
/// The name of the check of the mail server.
const SERVER_CHECK: &str = "mail server";
/// The name of the check whether bounces and complaints are reported.
const FEEDBACK_CHECK: &str = "bounces and complaints";

/// Checks that the stack can send mails. `login` contains the user and the password of its mail server; `None` if the
/// mail server needs no login or the login is not known.
pub async fn check_mails_of_stack(aws: &AwsCli, stack: Option<&Stack>, login: Option<SmtpLogin>) -> Vec<DoctorCheck> {
    let not_checked = |reason: &str| {
        [SENDER_CHECK, ACCOUNT_CHECK, FEEDBACK_CHECK].map(|check| DoctorCheck::not_checked(check, reason)).into()
    };
    let Some(stack) = stack else { return not_checked("the stack is not known") };
    if stack.resources.is_empty() {
        return not_checked("the resources of the stack are not known");
    }
    let Some(set) = stack.resources.get("MailConfigurationSet") else {
        return vec![check_mail_server(stack, login).await];
    };
    let account = aws.run(&["sesv2", "get-account"]);
    let of_set = ["sesv2", "get-configuration-set-event-destinations", "--configuration-set-name", set];
    let (sender, account, destinations) = futures::join!(check_ses_sender(aws, stack), account, aws.run(&of_set));
    let topic = stack.resources.get("MailFeedback").map(String::as_str);
    let mut findings = vec![sender, check_ses_account(account, stack.is_prod())];
    // The core receives no bounces and complaints.
    if stack.parts() == DeployedParts::Full {
        findings.push(check_bounce_feedback(destinations, topic));
    }
    findings
}

/// Checks that Amazon SES accepts the mails of a stack that will be deployed with the parameters of `stack`. Returns
/// nothing if the stack will use a mail server.
pub async fn check_mails_before_deployment(aws: &AwsCli, stack: &Stack) -> Vec<DoctorCheck> {
    if stack.parameter("MailUrl") != "ses:" {
        return Vec::new();
    }
    let (sender, account) = futures::join!(check_ses_sender(aws, stack), aws.run(&["sesv2", "get-account"]));
    vec![sender, check_ses_account(account, stack.is_prod())]
}

/// Checks that the mail server of the stack accepts the login.
async fn check_mail_server(stack: &Stack, login: Option<SmtpLogin>) -> DoctorCheck {
    let has_login = login.is_some();
    if !has_login && !stack.parameter("MailLoginSecret").is_empty() {
        return DoctorCheck::not_checked(SERVER_CHECK, "its user and password are not known");
    }
    let smtp = match SmtpMailer::new(stack.parameter("MailUrl"), stack.parameter("MailFrom")) {
        Ok(smtp) => smtp,
        Err(error) => {
            return DoctorCheck::wrong(SERVER_CHECK, error.reason, "Deploy with a valid MailUrl and MailFrom");
        }
    };
    let smtp = match login {
        Some(login) => smtp.with_login(login.into()),
        None => smtp,
    };
    match smtp.connect().await {
        Ok(()) if has_login => DoctorCheck::good(SERVER_CHECK, "it accepts the user and the password"),
        Ok(()) => DoctorCheck::good(SERVER_CHECK, "it responds, and needs no user"),
        Err(error) => {
            DoctorCheck::wrong(SERVER_CHECK, error.reason, "Correct MailUrl or the secret in MailLoginSecret")
        }
    }
}

/// Returns the identities (addresses or domains) with which the stack may send mails: the parameter `SesIdentity` if it
/// is set, otherwise the address of the sender and the domain of this address.
fn ses_identities_of_stack(stack: &Stack) -> Vec<String> {
    let (named, from) = (stack.parameter("SesIdentity"), stack.parameter("MailFrom"));
    if !named.is_empty() {
        return vec![named.to_owned()];
    }
    let address = from.rsplit('<').next().unwrap_or_default().trim_end_matches('>').trim();
    let domain = address.rsplit('@').next().unwrap_or_default();
    vec![address.to_owned(), domain.to_owned()]
}

/// Checks that one of the identities of the sender is verified.
async fn check_ses_sender(aws: &AwsCli, stack: &Stack) -> DoctorCheck {
    let mut finding = DoctorCheck::not_checked(SENDER_CHECK, "the stack has no sender");
    for identity in ses_identities_of_stack(stack) {
        let response = aws.run(&["sesv2", "get-email-identity", "--email-identity", &identity]).await;
        finding = check_ses_identity(&identity, response);
        if finding.is_good() {
            return finding;
        }
    }
    finding
}

/// Checks that Amazon SES has verified `identity`, an address or a domain.
fn check_ses_identity(identity: &str, response: Response) -> DoctorCheck {
    match response {
        Ok(found) if found["VerifiedForSendingStatus"] == true => {
            DoctorCheck::good(SENDER_CHECK, format!("{identity} is verified"))
        }
        Ok(found) => {
            let status = text_field(&found, "VerificationStatus");
            let advice = match text_field(&found, "IdentityType") {
                "EMAIL_ADDRESS" => "Open the link in the mail of Amazon SES to this address",
                _ => "Add the DKIM records that Amazon SES shows to the DNS of the domain",
            };
            DoctorCheck::wrong(SENDER_CHECK, format!("{identity} is not verified ({status})"), advice)
        }
        Err(error) if error.is_missing() => {
            let advice = format!("Run `aws sesv2 create-email-identity --email-identity {identity}`");
            DoctorCheck::wrong(
                SENDER_CHECK,
                format!("{identity} is not an identity of Amazon SES in this region"),
                advice,
            )
        }
        Err(error) => DoctorCheck::not_checked(SENDER_CHECK, error.to_string()),
    }
}

/// Checks that Amazon SES allows the AWS account to send mails to all customers.
fn check_ses_account(response: Response, is_prod: bool) -> DoctorCheck {
    let account = match response {
        Ok(account) => account,
        Err(error) => return DoctorCheck::not_checked(ACCOUNT_CHECK, error.to_string()),
    };
    let enforcement = text_field(&account, "EnforcementStatus");
    if account["SendingEnabled"] != true || enforcement == "SHUTDOWN" {
        let advice = "See the account dashboard and the reputation metrics of Amazon SES";
        return DoctorCheck::wrong(ACCOUNT_CHECK, format!("sending is paused ({enforcement})"), advice);
    }
    match (account["ProductionAccessEnabled"] == true, is_prod) {
        (true, _) if enforcement == "PROBATION" => DoctorCheck::wrong(
            ACCOUNT_CHECK,
            "the account is under review",
            "Reduce bounces and complaints; see the support case that AWS has opened",
        ),
        (true, _) => DoctorCheck::good(
            ACCOUNT_CHECK,
            format!("it is out of the sandbox, and may send {}", describe_mail_quota(&account)),
        ),
        (false, false) => DoctorCheck::good(
            ACCOUNT_CHECK,
            "it is in the sandbox: only verified addresses get mails, which Stage=dev allows",
        ),
        (false, true) => {
            let advice = "Request production access: \"Moving out of the Amazon SES sandbox\" in its developer guide";
            DoctorCheck::wrong(ACCOUNT_CHECK, "it is in the sandbox, so customers get no mails", advice)
        }
    }
}

/// Returns the number of mails that the account may send, as text.
fn describe_mail_quota(account: &Value) -> String {
    match account["SendQuota"]["Max24HourSend"].as_f64() {
        Some(number) if number >= 0.0 => format!("{number} mails a day"),
        _ => "mails without a limit".to_owned(),
    }
}

/// Checks that Amazon SES sends bounces and complaints to the stack's `topic`.
fn check_bounce_feedback(response: Response, topic: Option<&str>) -> DoctorCheck {
    let destinations = match response {
        Ok(destinations) => destinations,
        Err(error) if error.is_missing() => {
            let detail = "the configuration set of the stack does not exist, so no mail can be sent";
            return DoctorCheck::wrong(FEEDBACK_CHECK, detail, "Deploy the template again");
        }
        Err(error) => return DoctorCheck::not_checked(FEEDBACK_CHECK, error.to_string()),
    };
    let is_complete = |destination: &&Value| {
        let has = |wanted: &str| list_field(destination, "MatchingEventTypes").any(|kind| kind == wanted);
        let arn = text_field(&destination["SnsDestination"], "TopicArn");
        destination["Enabled"] == true && has("BOUNCE") && has("COMPLAINT") && topic.is_none_or(|topic| arn == topic)
    };
    if list_field(&destinations, "EventDestinations").any(|destination| is_complete(&destination)) {
        return DoctorCheck::good(FEEDBACK_CHECK, "they are sent to the topic of the stack");
    }
    let detail = "they are not sent to the topic of the stack, so mails to wrong addresses continue";
    DoctorCheck::wrong(FEEDBACK_CHECK, detail, "Deploy the template again")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::aws_cli::AwsError;
    use super::*;

    /// Returns a response of `get-email-identity`, as documented ("GetEmailIdentity" in the API reference of SES v2).
    fn email_identity_response(kind: &str, is_verified: bool) -> Response {
        Ok(json!({
            "IdentityType": kind,
            "FeedbackForwardingStatus": true,
            "VerifiedForSendingStatus": is_verified,
            "VerificationStatus": if is_verified { "SUCCESS" } else { "PENDING" },
            "DkimAttributes": {"SigningEnabled": true, "Status": "SUCCESS", "Tokens": []},
        }))
    }

    /// Returns a response of `get-account`, as documented ("GetAccount" in the API reference of SES v2).
    fn ses_account_response(is_in_production: bool, is_sending: bool, enforcement: &str) -> Response {
        Ok(json!({
            "DedicatedIpAutoWarmupEnabled": false,
            "EnforcementStatus": enforcement,
            "ProductionAccessEnabled": is_in_production,
            "SendQuota": {"Max24HourSend": 50000.0, "MaxSendRate": 14.0, "SentLast24Hours": 0.0},
            "SendingEnabled": is_sending,
        }))
    }

    /// Returns a response of `get-configuration-set-event-destinations`, as documented
    /// ("GetConfigurationSetEventDestinations" in the API reference of SES v2).
    fn event_destinations_response(is_enabled: bool, kinds: &[&str], topic: &str) -> Response {
        Ok(json!({"EventDestinations": [{
            "Name": "feedback",
            "Enabled": is_enabled,
            "MatchingEventTypes": kinds,
            "SnsDestination": {"TopicArn": topic},
        }]}))
    }

    #[test]
    fn mail_sender_must_be_verified_at_amazon_ses() {
        assert!(check_ses_identity("example.com", email_identity_response("DOMAIN", true)).is_good());
        for unverified in [email_identity_response("DOMAIN", false), email_identity_response("EMAIL_ADDRESS", false)] {
            assert!(!check_ses_identity("example.com", unverified).is_good());
        }
        let missing = check_ses_identity("example.com", Err(AwsError::Refused("NotFoundException".to_owned())));
        let line = serde_json::to_string(&missing).unwrap();
        assert!(line.contains("wrong") && line.contains("create-email-identity"), "{line}");
        let denied = check_ses_identity("example.com", Err(AwsError::Denied("ses:GetEmailIdentity".to_owned())));
        assert_eq!(denied, DoctorCheck::not_checked(SENDER_CHECK, "the permission ses:GetEmailIdentity is missing"));
    }

    #[test]
    fn checked_ses_identities_equal_the_identities_in_the_policy_of_the_template() {
        let stack = |identity: &str, from: &str| {
            let parameters = [("SesIdentity", identity), ("MailFrom", from)];
            let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
            ses_identities_of_stack(&Stack { parameters, ..Stack::default() })
        };
        assert_eq!(stack("", "Shop <billing@example.com>"), ["billing@example.com", "example.com"]);
        assert_eq!(stack("", "billing@example.com"), ["billing@example.com", "example.com"]);
        assert_eq!(stack("example.org", "Shop <billing@example.com>"), ["example.org"]);
    }

    #[test]
    fn amazon_ses_account_must_be_out_of_the_ses_sandbox_in_prod() {
        assert!(check_ses_account(ses_account_response(true, true, "HEALTHY"), true).is_good());
        assert!(!check_ses_account(ses_account_response(false, true, "HEALTHY"), true).is_good());
        assert!(check_ses_account(ses_account_response(false, true, "HEALTHY"), false).is_good());
        assert!(!check_ses_account(ses_account_response(true, false, "HEALTHY"), false).is_good());
        assert!(!check_ses_account(ses_account_response(true, true, "SHUTDOWN"), true).is_good());
        assert!(!check_ses_account(ses_account_response(true, true, "PROBATION"), true).is_good());
    }

    #[test]
    fn bounces_and_complaints_must_reach_the_sns_topic() {
        let topic = "arn:aws:sns:eu-west-1:123456789012:feedback";
        let both = ["BOUNCE", "COMPLAINT"];
        assert!(check_bounce_feedback(event_destinations_response(true, &both, topic), Some(topic)).is_good());
        assert!(!check_bounce_feedback(event_destinations_response(false, &both, topic), Some(topic)).is_good());
        assert!(!check_bounce_feedback(event_destinations_response(true, &["BOUNCE"], topic), Some(topic)).is_good());
        assert!(!check_bounce_feedback(event_destinations_response(true, &both, "arn:other"), Some(topic)).is_good());
        assert!(!check_bounce_feedback(Ok(json!({"EventDestinations": []})), Some(topic)).is_good());
        assert!(!check_bounce_feedback(Err(AwsError::Refused("NotFoundException".to_owned())), Some(topic)).is_good());
    }
}
