//! The questions of `dueday deploy init`, and the checks of their answers.

use api::DeployedParts;
use billing::EmailAddress;
use chrono_tz::Tz;
use sha2::{Digest as _, Sha256};

/// A question about a deployment.
#[derive(Clone, Copy, Debug)]
pub struct DeployQuestion {
    /// The name of the option that answers the question.
    pub option: &'static str,
    pub asked: &'static str,
    /// The purpose of the answer, and an example.
    pub explanation: &'static str,
    check: fn(&str) -> Result<(), String>,
}

/// All questions, in the order in which they are asked.
pub const QUESTIONS: [DeployQuestion; 7] = [
    DeployQuestion {
        option: "name",
        asked: "What is the merchant's name?",
        explanation: "Customers see it in mails and receipts.",
        check: check_merchant_answer,
    },
    DeployQuestion {
        option: "sender",
        asked: "Who sends the mails?",
        explanation: "An address of a domain that is verified in Amazon SES, such as: Shop <billing@example.com>",
        check: check_sender_answer,
    },
    DeployQuestion {
        option: "charge-with",
        asked: "How are customers charged?",
        explanation: "In production. The profile dev charges at the sandbox gateway, which moves no money.\n\
            With Stripe: the ARN of the AWS Secrets Manager secret with your key. Create it with:\n\
            aws secretsmanager create-secret --name dueday/stripe-key-live --secret-string file://FILE\n\
            With your own gateway: its https URL, and the ARN of the secret with the key that signs the requests to it.\n\
            With \"later\", only the profile dev is written.",
        check: check_gateway_answer,
    },
    DeployQuestion {
        option: "zone",
        asked: "In which time zone does a day begin and end?",
        explanation: "An IANA name, such as: Europe/Vienna",
        check: check_time_zone_answer,
    },
    DeployQuestion {
        option: "tokens",
        asked: "Who issues the tokens of the API's callers?",
        explanation: "The issuer's https URL and the audiences, such as: https://issuer.example.com/ dueday\n\
            With \"none\", the deployment creates an Amazon Cognito user pool.",
        check: check_tokens_answer,
    },
    DeployQuestion {
        option: "alarms",
        asked: "Who receives alarms?",
        explanation: "An e-mail address, which must confirm the subscription, such as: ops@example.com",
        check: check_alarm_address_answer,
    },
    DeployQuestion {
        option: "parts",
        asked: "Which parts do you want?",
        explanation: "core: the API, the two daily batches with their alarms, the table, and the inbound webhooks of Stripe.\n\
            full: also mails after payments, events, outbound webhooks, nightly checks and the dashboard.\n\
            You can change core to full later. docs/costs.md has the costs of both.",
        check: check_parts_answer,
    },
];

impl DeployQuestion {
    /// Checks the answer `text`, and returns it without white space around it.
    ///
    /// # Errors
    /// If the answer is not valid. The error states what the answer must be.
    pub fn check_answer(&self, text: &str) -> Result<String, String> {
        let text = text.trim();
        (self.check)(text).map(|()| text.to_owned())
    }
}

/// The answer with which the merchant postpones the choice of the gateway for production.
const GATEWAY_CHOSEN_LATER: &str = "later";

/// The checked answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeployAnswers(Vec<String>);

impl DeployAnswers {
    /// Creates the answers from the checked `texts`, one for each of the [`QUESTIONS`].
    pub fn new(texts: Vec<String>) -> Self {
        Self(texts)
    }

    /// Returns whether the answers contain a gateway for production.
    pub fn has_production_gateway(&self) -> bool {
        self.0.get(2).is_some_and(|gateway| gateway != GATEWAY_CHOSEN_LATER)
    }

    /// Returns the parameters of the template that the answers determine for the stage `stage`, with their values. Only
    /// the stage `prod` moves money; every other stage charges at the sandbox gateway.
    pub fn parameters(&self, stage: &str) -> Vec<(&'static str, String)> {
        let [merchant, sender, gateway, zone, tokens, alarms, parts] =
            [0, 1, 2, 3, 4, 5, 6].map(|index| self.0.get(index).cloned().unwrap_or_default());
        let mut parameters =
            vec![("Merchant", merchant), ("MailFrom", sender), ("MailUrl", "ses:".to_owned()), ("TimeZone", zone)];
        parameters.extend(match gateway.split_once(' ') {
            _ if stage != "prod" => vec![("Gateway", "sandbox".to_owned())],
            _ if !self.has_production_gateway() => Vec::new(),
            None => vec![("Gateway", "stripe".to_owned()), ("StripeSecret", gateway)],
            Some((url, secret)) => vec![("Gateway", url.to_owned()), ("GatewayKeySecret", secret.trim().to_owned())],
        });
        parameters.extend(match tokens.split_once(' ') {
            Some((issuer, audience)) => {
                vec![("JwtIssuer", issuer.to_owned()), ("JwtAudience", audience.trim().to_owned())]
            }
            None => vec![("UserPoolDomain", self.user_pool_domain(stage))],
        });
        parameters.extend([("AlarmEmail", alarms), ("Parts", parts)]);
        parameters
    }

    /// Returns the prefix of the domain of the user pool for the stage `stage`. The prefix must be unique in an AWS
    /// region, so it contains a hash of the answers. Equal answers have equal prefixes.
    fn user_pool_domain(&self, stage: &str) -> String {
        let hash = Sha256::digest(self.0.join("\n"));
        let hash: String = hash.iter().take(5).map(|byte| format!("{byte:02x}")).collect();
        format!("dueday-{stage}-{hash}")
    }
}

/// Checks the answer with the merchant's name.
fn check_merchant_answer(text: &str) -> Result<(), String> {
    if text.is_empty() { Err("must be the name that customers know".to_owned()) } else { Ok(()) }
}

/// Checks the answer with the sender of mails.
fn check_sender_answer(text: &str) -> Result<(), String> {
    let address = text.rsplit('<').next().unwrap_or_default().trim_end_matches('>');
    // The template uses the text after the first "@" as the domain of the sender, so the sender must contain only one
    // "@".
    let is_valid = mail::parse_sender(text).is_ok()
        && address.parse::<EmailAddress>().is_ok()
        && text.is_ascii()
        && text.matches('@').count() == 1;
    let allowed =
        "must be an address, or a name without @ and an address in <>, in ASCII, with a domain such as example.com";
    if is_valid { Ok(()) } else { Err(allowed.to_owned()) }
}

/// Checks the answer with the gateway and its secret.
fn check_gateway_answer(text: &str) -> Result<(), String> {
    let is_url = |text: &str| text.strip_prefix("https://").is_some_and(|host| !host.is_empty());
    let is_valid = match text.split_once(' ') {
        None => text == GATEWAY_CHOSEN_LATER || is_secret_arn(text),
        Some((url, secret)) => is_url(url) && is_secret_arn(secret.trim()),
    };
    let allowed = "must be later, or the complete ARN of a secret in AWS Secrets Manager, such as \
        arn:aws:secretsmanager:eu-west-1:123456789012:secret:dueday/stripe-key-a1b2c3, or an https URL and such an ARN, with a \
        space between them";
    if is_valid { Ok(()) } else { Err(allowed.to_owned()) }
}

/// Returns whether `text` is the complete ARN of a secret. The complete name of a secret ends with six random
/// characters. With an ARN without these characters, IAM would refuse all requests for the secret.
fn is_secret_arn(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    let [arn, partition, service, region, account, kind, name] = parts[..] else { return false };
    let has_suffix = name.rsplit_once('-').is_some_and(|(name, suffix)| {
        !name.is_empty() && suffix.len() == 6 && suffix.chars().all(|character| character.is_ascii_alphanumeric())
    });
    (arn, service, kind) == ("arn", "secretsmanager", "secret")
        && partition.starts_with("aws")
        && !region.is_empty()
        && account.len() == 12
        && account.chars().all(|digit| digit.is_ascii_digit())
        && has_suffix
        && !text.contains(char::is_whitespace)
}

/// Checks the answer with the time zone.
fn check_time_zone_answer(text: &str) -> Result<(), String> {
    text.parse::<Tz>().map(drop).map_err(|_| "must be an IANA time zone, such as Europe/Vienna".to_owned())
}

/// Checks the answer with the issuer and the audiences of tokens.
fn check_tokens_answer(text: &str) -> Result<(), String> {
    let is_audience = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace);
    let are_audiences = |text: &str| text.trim().split(',').all(is_audience);
    let is_issuer = |text: &str| text.strip_prefix("https://").is_some_and(|host| !host.is_empty());
    let is_valid = match text.split_once(' ') {
        None => text == "none",
        Some((issuer, audiences)) => is_issuer(issuer) && are_audiences(audiences),
    };
    let allowed = "must be none, or the https URL of an issuer and its audiences, with a space between them, and commas \
        between several audiences";
    if is_valid { Ok(()) } else { Err(allowed.to_owned()) }
}

/// Checks the answer with the parts.
fn check_parts_answer(text: &str) -> Result<(), String> {
    text.parse::<DeployedParts>().map(drop)
}

/// Checks the answer with the address that receives alarms.
fn check_alarm_address_answer(text: &str) -> Result<(), String> {
    text.parse::<EmailAddress>().map(drop).map_err(|_| "must be an e-mail address".to_owned())
}
