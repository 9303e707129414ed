//! The questions of `dueday deploy init`, and the checks of their answers.

use billing::EmailAddress;
use chrono_tz::Tz;

/// A question about a deployment.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// The name of the option that answers the question.
    pub option: &'static str,
    pub asked: &'static str,
    /// What the answer is used for, and an example.
    pub explanation: &'static str,
    check: fn(&str) -> Result<(), String>,
}

/// All questions, in the order in which they are asked.
pub const QUESTIONS: [Question; 6] = [
    Question {
        option: "name",
        asked: "What is the merchant's name?",
        explanation: "Customers see it in mails and receipts.",
        check: check_merchant,
    },
    Question {
        option: "sender",
        asked: "Who sends the mails?",
        explanation: "An address of a domain that is verified in Amazon SES, such as: Shop <billing@example.com>",
        check: check_sender,
    },
    Question {
        option: "charge-with",
        asked: "How are customers charged?",
        explanation: "In production. The profile dev charges at the sandbox gateway, which moves no money.\n\
            With Stripe: the ARN of the AWS Secrets Manager secret with your key.\n\
            With your own gateway: its https URL, and the ARN of the secret with the key that signs the requests to it.",
        check: check_gateway,
    },
    Question {
        option: "zone",
        asked: "In which time zone does a day begin and end?",
        explanation: "An IANA name, such as: Europe/Vienna",
        check: check_zone,
    },
    Question {
        option: "tokens",
        asked: "Who issues the tokens of the API's callers?",
        explanation: "The issuer's https URL and the audience, such as: https://issuer.example.com/ dueday",
        check: check_tokens,
    },
    Question {
        option: "alarms",
        asked: "Who receives alarms?",
        explanation: "An e-mail address, which must confirm the subscription, such as: ops@example.com",
        check: check_address,
    },
];

impl Question {
    /// Checks the answer `text`, and returns it without white space around it.
    ///
    /// # Errors
    /// Returns what the answer must be.
    pub fn check(&self, text: &str) -> Result<String, String> {
        let text = text.trim();
        (self.check)(text).map(|()| text.to_owned())
    }
}

/// The checked answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answers(Vec<String>);

impl Answers {
    /// Creates the answers from the checked `texts`, one for each of the [`QUESTIONS`].
    pub fn new(texts: Vec<String>) -> Self {
        Self(texts)
    }

    /// Returns the parameters of the template that the answers determine, with their values. A stage without
    /// `has_real_money` charges at the sandbox gateway.
    pub fn parameters(&self, has_real_money: bool) -> Vec<(&'static str, String)> {
        let [merchant, sender, gateway, zone, tokens, alarms] =
            [0, 1, 2, 3, 4, 5].map(|index| self.0.get(index).cloned().unwrap_or_default());
        let mut parameters =
            vec![("Merchant", merchant), ("MailFrom", sender), ("MailUrl", "ses:".to_owned()), ("TimeZone", zone)];
        parameters.extend(match gateway.split_once(' ') {
            _ if !has_real_money => vec![("Gateway", "sandbox".to_owned())],
            None => vec![("Gateway", "stripe".to_owned()), ("StripeSecret", gateway)],
            Some((url, secret)) => vec![("Gateway", url.to_owned()), ("GatewayKeySecret", secret.trim().to_owned())],
        });
        if let Some((issuer, audience)) = tokens.split_once(' ') {
            parameters.extend([("JwtIssuer", issuer.to_owned()), ("JwtAudience", audience.trim().to_owned())]);
        }
        parameters.push(("AlarmEmail", alarms));
        parameters
    }
}

fn check_merchant(text: &str) -> Result<(), String> {
    if text.is_empty() { Err("must be the name that customers know".to_owned()) } else { Ok(()) }
}

fn check_sender(text: &str) -> Result<(), String> {
    let is_valid = mail::parse_sender(text).is_ok() && text.is_ascii();
    if is_valid { Ok(()) } else { Err("must be an address, or a name and an address in <>, in ASCII".to_owned()) }
}

fn check_gateway(text: &str) -> Result<(), String> {
    let is_secret = |text: &str| {
        text.starts_with("arn:") && text.contains(":secretsmanager:") && !text.contains(char::is_whitespace)
    };
    let is_url = |text: &str| text.strip_prefix("https://").is_some_and(|host| !host.is_empty());
    let is_valid = match text.split_once(' ') {
        None => is_secret(text),
        Some((url, secret)) => is_url(url) && is_secret(secret.trim()),
    };
    let allowed = "must be the ARN of a secret in AWS Secrets Manager, or an https URL and such an ARN, with a space \
        between them";
    if is_valid { Ok(()) } else { Err(allowed.to_owned()) }
}

fn check_zone(text: &str) -> Result<(), String> {
    text.parse::<Tz>().map(drop).map_err(|_| "must be an IANA time zone, such as Europe/Vienna".to_owned())
}

fn check_tokens(text: &str) -> Result<(), String> {
    let parts =
        text.split_once(' ').filter(|(issuer, audience)| issuer.starts_with("https://") && !audience.trim().is_empty());
    parts
        .map(drop)
        .ok_or_else(|| "must be the https URL of an issuer and an audience, with a space between them".to_owned())
}

fn check_address(text: &str) -> Result<(), String> {
    text.parse::<EmailAddress>().map(drop).map_err(|_| "must be an e-mail address".to_owned())
}
