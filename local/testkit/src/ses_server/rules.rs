//! What the stand-in refuses, and where the documentation of SES says that it would.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::request::Parts;
use axum::http::{Method, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::SesMail;

const SEND_EMAIL: &str = "https://docs.aws.amazon.com/ses/latest/APIReference-V2/API_SendEmail.html";
const RAW_MESSAGE: &str = "https://docs.aws.amazon.com/ses/latest/APIReference-V2/API_RawMessage.html";
const MESSAGE_TAG: &str = "https://docs.aws.amazon.com/ses/latest/APIReference-V2/API_MessageTag.html";
const DESTINATION: &str = "https://docs.aws.amazon.com/ses/latest/APIReference-V2/API_Destination.html";
const COMMON_ERRORS: &str = "https://docs.aws.amazon.com/ses/latest/APIReference-V2/CommonErrors.html";
const HEADER_FIELDS: &str = "https://docs.aws.amazon.com/ses/latest/dg/header-fields.html";
const IDENTITIES: &str = "https://docs.aws.amazon.com/ses/latest/dg/verify-addresses-and-domains.html";
const QUOTAS: &str = "https://docs.aws.amazon.com/ses/latest/dg/quotas.html";

/// "Message quotas": 40 MB by this version of the API (10 by the first), counted in base 64.
const MAX_MESSAGE_BYTES: usize = 40 * 1024 * 1024;
/// A largest message, and what is around it.
pub(super) const MAX_REQUEST_BYTES: usize = MAX_MESSAGE_BYTES + 100_000;
/// "Message quotas".
const MAX_RECIPIENTS: usize = 50;
/// "RawMessage", by RFC 5321 with the line's end.
const MAX_LINE_BYTES: usize = 1_000;
const MAX_TAG_CHARS: usize = 256;

/// Of the fields that "can't appear more than once", those that could be slipped in with a purpose.
const ONCE: [&str; 12] = [
    "auto-submitted",
    "content-transfer-encoding",
    "content-type",
    "date",
    "from",
    "list-unsubscribe",
    "message-id",
    "mime-version",
    "reply-to",
    "return-path",
    "sender",
    "subject",
];

/// Why a request was refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub status: u16,
    pub error: &'static str,
    /// The page that says so.
    pub because: &'static str,
}

/// What of a request is understood. What else `SendEmail` may have is refused, so that whoever uses it writes its rules first.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct SendEmail {
    destination: Destination,
    content: Content,
    #[serde(default)]
    email_tags: Vec<Tag>,
    configuration_set_name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Destination {
    to_addresses: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Content {
    raw: Raw,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Raw {
    data: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Tag {
    name: String,
    value: String,
}

fn bad(because: &'static str) -> Refusal {
    Refusal { status: 400, error: "BadRequestException", because }
}

/// The refusal of a request that is larger than any message.
pub(super) fn too_large() -> Refusal {
    bad(QUOTAS)
}

/// The mail that a request holds.
pub(super) fn check(parts: &Parts, body: &[u8], identity: &str, configuration_set: &str) -> Result<SesMail, Refusal> {
    if (&parts.method, parts.uri.path()) != (&Method::POST, "/v2/email/outbound-emails") {
        return Err(Refusal { status: 404, error: "UnknownOperationException", because: SEND_EMAIL });
    }
    let header = |name: header::HeaderName| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
    let signed = header(header::AUTHORIZATION);
    if !signed.starts_with("AWS4-HMAC-SHA256 Credential=") || !signed.contains("/ses/aws4_request") {
        return Err(Refusal { status: 403, error: "IncompleteSignature", because: COMMON_ERRORS });
    }
    if header(header::CONTENT_TYPE) != "application/json" {
        return Err(bad(SEND_EMAIL));
    }
    let request: SendEmail = serde_json::from_slice(body).map_err(|_| bad(SEND_EMAIL))?;
    if request.configuration_set_name.as_deref().is_some_and(|name| name != configuration_set) {
        return Err(Refusal { status: 404, error: "NotFoundException", because: SEND_EMAIL });
    }
    let to = request.destination.to_addresses;
    // Neither a local part nor a domain may have other characters; a domain that has some is in Punycode.
    let is_address = |to: &String| {
        to.is_ascii() && to.split_once('@').is_some_and(|(name, at)| !name.is_empty() && at.contains('.'))
    };
    if !(1..=MAX_RECIPIENTS).contains(&to.len()) || !to.iter().all(is_address) {
        return Err(bad(DESTINATION));
    }
    let tags = tags(request.email_tags)?;
    if request.content.raw.data.len() > MAX_MESSAGE_BYTES {
        return Err(bad(QUOTAS));
    }
    let raw = STANDARD.decode(&request.content.raw.data).map_err(|_| bad(RAW_MESSAGE))?;
    check_message(&raw, identity)?;
    Ok(SesMail { raw, to, tags, configuration_set: request.configuration_set_name })
}

fn tags(tags: Vec<Tag>) -> Result<BTreeMap<String, String>, Refusal> {
    let is_allowed = |text: &str| {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        (1..=MAX_TAG_CHARS).contains(&text.len()) && text.bytes().all(is_allowed)
    };
    let count = tags.len();
    let tags: BTreeMap<String, String> = tags.into_iter().map(|tag| (tag.name, tag.value)).collect();
    let is_well = tags.len() == count && tags.iter().all(|(name, value)| is_allowed(name) && is_allowed(value));
    if is_well { Ok(tags) } else { Err(bad(MESSAGE_TAG)) }
}

fn check_message(raw: &[u8], identity: &str) -> Result<(), Refusal> {
    // What is outside of 7 bits is to be encoded.
    let text = std::str::from_utf8(raw).ok().filter(|text| text.is_ascii()).ok_or_else(|| bad(RAW_MESSAGE))?;
    let (head, _) = text.split_once("\r\n\r\n").ok_or_else(|| bad(RAW_MESSAGE))?;
    let is_line = |line: &str| line.len() < MAX_LINE_BYTES - 1 && !line.contains(['\r', '\n']);
    if !text.split("\r\n").all(is_line) {
        return Err(bad(RAW_MESSAGE));
    }
    let (mut seen, mut from) = (BTreeSet::new(), None);
    for line in head.split("\r\n").filter(|line| !line.starts_with([' ', '\t'])) {
        let (name, value) = line.split_once(':').ok_or_else(|| bad(RAW_MESSAGE))?;
        let name = name.to_ascii_lowercase();
        if !seen.insert(name.clone()) && ONCE.contains(&name.as_str()) {
            return Err(bad(HEADER_FIELDS));
        }
        if name == "from" {
            from = value.rsplit_once('@').map(|(_, domain)| domain.trim_end_matches('>'));
        }
    }
    match from {
        None => Err(bad(RAW_MESSAGE)),
        Some(domain) if domain != identity => {
            Err(Refusal { status: 400, error: "MessageRejected", because: IDENTITIES })
        }
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Request;
    use serde_json::{Value, json};

    use super::*;

    const RAW: &str = "From: Shop <shop@example.com>\r\nTo: a@example.org\r\nSubject: Hi\r\n\r\nHello\r\n";

    fn body(raw: &str) -> Value {
        json!({
            "Destination": {"ToAddresses": ["a@example.org"]},
            "Content": {"Raw": {"Data": STANDARD.encode(raw)}},
            "EmailTags": [{"Name": "account", "Value": "acme_-eu"}],
            "ConfigurationSetName": "dueday",
        })
    }

    fn checked(change: impl FnOnce(&mut Value)) -> Result<SesMail, Refusal> {
        let mut body = body(RAW);
        change(&mut body);
        sent("application/json", &body)
    }

    fn sent(content_type: &str, body: &Value) -> Result<SesMail, Refusal> {
        let request = Request::post("/v2/email/outbound-emails")
            .header(header::CONTENT_TYPE, content_type)
            .header(header::AUTHORIZATION, "AWS4-HMAC-SHA256 Credential=a/20260301/eu-west-1/ses/aws4_request");
        let (parts, ()) = request.body(()).unwrap().into_parts();
        check(&parts, body.to_string().as_bytes(), "example.com", "dueday")
    }

    #[test]
    fn stand_in_refuses_what_the_documentation_refuses() {
        assert_eq!(checked(|_| {}).unwrap().tags, BTreeMap::from([("account".to_owned(), "acme_-eu".to_owned())]));
        let tag = |body: &mut Value, value: &str| body["EmailTags"][0]["Value"] = value.into();
        let raw = |body: &mut Value, raw: &str| body["Content"]["Raw"]["Data"] = STANDARD.encode(raw).into();
        let refusals = [
            (checked(|body| tag(body, "acme.eu")), MESSAGE_TAG),
            (checked(|body| tag(body, "")), MESSAGE_TAG),
            (checked(|body| tag(body, &"x".repeat(257))), MESSAGE_TAG),
            (checked(|body| body["Content"] = json!({})), SEND_EMAIL),
            (checked(|body| body["Content"]["Simple"] = json!({})), SEND_EMAIL),
            (checked(|body| body["ConfigurationSetName"] = "other".into()), SEND_EMAIL),
            (checked(|body| body["Destination"]["ToAddresses"] = json!([])), DESTINATION),
            (checked(|body| body["Destination"]["ToAddresses"] = json!(["ä@example.org"])), DESTINATION),
            (checked(|body| body["Content"]["Raw"]["Data"] = RAW.into()), RAW_MESSAGE),
            (checked(|body| raw(body, "Subject: Hi\r\n\r\nHello")), RAW_MESSAGE),
            (checked(|body| raw(body, "From: shop@example.com\r\n")), RAW_MESSAGE),
            (checked(|body| raw(body, &RAW.replace("Hello", "ä"))), RAW_MESSAGE),
            (checked(|body| raw(body, &RAW.replace("Hello", &"x".repeat(999)))), RAW_MESSAGE),
            (checked(|body| raw(body, &RAW.replace("To:", "Subject: Ha\r\nTo:"))), HEADER_FIELDS),
            (checked(|body| raw(body, &RAW.replace("example.com", "example.net"))), IDENTITIES),
            (checked(|body| raw(body, &"x".repeat(MAX_MESSAGE_BYTES))), QUOTAS),
            (sent("application/x-amz-json-1.1", &body(RAW)), SEND_EMAIL),
        ];
        for (nth, (answer, page)) in refusals.into_iter().enumerate() {
            assert_eq!(answer.map_err(|refusal| refusal.because), Err(page), "{nth}");
        }
        assert!(checked(|body| raw(body, &RAW.replace("Hello", &"x".repeat(998)))).is_ok());
    }
}
