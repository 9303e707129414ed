//! The documented rules of SES by which the stand-in rejects requests. Each rejection contains the URL of the
//! documentation of the rule.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::request::Parts;
use axum::http::{Method, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::SesMail;

const SEND_EMAIL_URL: &str = "https://docs.aws.amazon.com/ses/latest/APIReference-V2/API_SendEmail.html";
const RAW_MESSAGE_URL: &str = "https://docs.aws.amazon.com/ses/latest/APIReference-V2/API_RawMessage.html";
const MESSAGE_TAG_URL: &str = "https://docs.aws.amazon.com/ses/latest/APIReference-V2/API_MessageTag.html";
const DESTINATION_URL: &str = "https://docs.aws.amazon.com/ses/latest/APIReference-V2/API_Destination.html";
const COMMON_ERRORS_URL: &str = "https://docs.aws.amazon.com/ses/latest/APIReference-V2/CommonErrors.html";
const HEADER_FIELDS_URL: &str = "https://docs.aws.amazon.com/ses/latest/dg/header-fields.html";
const IDENTITIES_URL: &str = "https://docs.aws.amazon.com/ses/latest/dg/verify-addresses-and-domains.html";
const QUOTAS_URL: &str = "https://docs.aws.amazon.com/ses/latest/dg/quotas.html";

/// The maximum size of a mail in base64: 40 MB in version 2 of the API ("Message quotas").
const MAX_MESSAGE_BYTES: usize = 40 * 1024 * 1024;
/// The maximum size of a request: the largest mail and the JSON around it.
pub(super) const MAX_REQUEST_BYTES: usize = MAX_MESSAGE_BYTES + 100_000;
/// The maximum number of recipients of a mail ("Message quotas").
const MAX_RECIPIENTS: usize = 50;
/// The maximum length of a line of a mail ("RawMessage"), including the line break as in RFC 5321.
const MAX_LINE_BYTES: usize = 1_000;
/// The maximum length of the name and of the value of a tag.
const MAX_TAG_CHARS: usize = 256;

/// Header fields that SES allows only once in a mail, and that an attacker might inject. The list of SES is longer.
const UNIQUE_FIELDS: [&str; 12] = [
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

/// The error response with which the stand-in rejects a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SesRejection {
    pub status: u16,
    pub error: &'static str,
    /// The URL of the documentation of the broken rule.
    pub source: &'static str,
}

/// The supported fields of a `SendEmail` request. The stand-in rejects other fields. Before you use another field, add
/// its rules to this module.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct SendEmail {
    destination: MailDestination,
    content: MailContent,
    #[serde(default)]
    email_tags: Vec<MailTag>,
    configuration_set_name: Option<String>,
}

/// The recipients of a mail.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct MailDestination {
    to_addresses: Vec<String>,
}

/// The content of a mail. Only raw content is supported.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct MailContent {
    raw: EncodedRawMail,
}

/// The mail in the Internet message format, in base64.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct EncodedRawMail {
    data: String,
}

/// A name and a value that SES stores with a mail.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct MailTag {
    name: String,
    value: String,
}

/// Returns the rejection of an invalid request. `source` is the URL of the documentation of the broken rule.
fn create_bad_request_rejection(source: &'static str) -> SesRejection {
    SesRejection { status: 400, error: "BadRequestException", source }
}

/// Returns the rejection of a request that is larger than any valid message.
pub(super) fn create_rejection_of_too_large_request() -> SesRejection {
    create_bad_request_rejection(QUOTAS_URL)
}

/// Checks a request to a stand-in that has this `identity` (a domain) and this configuration set. Returns the mail of
/// the request.
///
/// # Errors
/// Returns the rejection if the request breaks a documented rule.
pub(super) fn check_send_email_request(
    parts: &Parts,
    body: &[u8],
    identity: &str,
    configuration_set: &str,
) -> Result<SesMail, SesRejection> {
    if (&parts.method, parts.uri.path()) != (&Method::POST, "/v2/email/outbound-emails") {
        return Err(SesRejection { status: 404, error: "UnknownOperationException", source: SEND_EMAIL_URL });
    }
    let header = |name: header::HeaderName| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
    let signed = header(header::AUTHORIZATION);
    if !signed.starts_with("AWS4-HMAC-SHA256 Credential=") || !signed.contains("/ses/aws4_request") {
        return Err(SesRejection { status: 403, error: "IncompleteSignature", source: COMMON_ERRORS_URL });
    }
    if header(header::CONTENT_TYPE) != "application/json" {
        return Err(create_bad_request_rejection(SEND_EMAIL_URL));
    }
    let request: SendEmail = serde_json::from_slice(body).map_err(|_| create_bad_request_rejection(SEND_EMAIL_URL))?;
    if request.configuration_set_name.as_deref().is_some_and(|name| name != configuration_set) {
        return Err(SesRejection { status: 404, error: "NotFoundException", source: SEND_EMAIL_URL });
    }
    let to = request.destination.to_addresses;
    // An address may contain only ASCII characters. SES accepts a domain with other characters only in Punycode.
    let is_address = |to: &String| {
        to.is_ascii() && to.split_once('@').is_some_and(|(name, at)| !name.is_empty() && at.contains('.'))
    };
    if !(1..=MAX_RECIPIENTS).contains(&to.len()) || !to.iter().all(is_address) {
        return Err(create_bad_request_rejection(DESTINATION_URL));
    }
    let tags = check_mail_tags(request.email_tags)?;
    if request.content.raw.data.len() > MAX_MESSAGE_BYTES {
        return Err(create_bad_request_rejection(QUOTAS_URL));
    }
    let raw = STANDARD.decode(&request.content.raw.data).map_err(|_| create_bad_request_rejection(RAW_MESSAGE_URL))?;
    check_raw_mail(&raw, identity)?;
    Ok(SesMail { raw, to, tags, configuration_set: request.configuration_set_name })
}

/// Checks the tags of a mail, and returns their values by name.
fn check_mail_tags(tags: Vec<MailTag>) -> Result<BTreeMap<String, String>, SesRejection> {
    let is_allowed = |text: &str| {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        (1..=MAX_TAG_CHARS).contains(&text.len()) && text.bytes().all(is_allowed)
    };
    let count = tags.len();
    let tags: BTreeMap<String, String> = tags.into_iter().map(|tag| (tag.name, tag.value)).collect();
    let are_valid = tags.len() == count && tags.iter().all(|(name, value)| is_allowed(name) && is_allowed(value));
    if are_valid { Ok(tags) } else { Err(create_bad_request_rejection(MESSAGE_TAG_URL)) }
}

/// Checks the mail `raw` (in the Internet message format), whose sender must be of the domain `identity`.
fn check_raw_mail(raw: &[u8], identity: &str) -> Result<(), SesRejection> {
    // The mail must encode characters outside of 7-bit ASCII.
    let text = std::str::from_utf8(raw)
        .ok()
        .filter(|text| text.is_ascii())
        .ok_or_else(|| create_bad_request_rejection(RAW_MESSAGE_URL))?;
    let (head, _) = text.split_once("\r\n\r\n").ok_or_else(|| create_bad_request_rejection(RAW_MESSAGE_URL))?;
    let is_line = |line: &str| line.len() < MAX_LINE_BYTES - 1 && !line.contains(['\r', '\n']);
    if !text.split("\r\n").all(is_line) {
        return Err(create_bad_request_rejection(RAW_MESSAGE_URL));
    }
    let (mut seen, mut from) = (BTreeSet::new(), None);
    for line in head.split("\r\n").filter(|line| !line.starts_with([' ', '\t'])) {
        let (name, value) = line.split_once(':').ok_or_else(|| create_bad_request_rejection(RAW_MESSAGE_URL))?;
        let name = name.to_ascii_lowercase();
        if !seen.insert(name.clone()) && UNIQUE_FIELDS.contains(&name.as_str()) {
            return Err(create_bad_request_rejection(HEADER_FIELDS_URL));
        }
        if name == "from" {
            from = value.rsplit_once('@').map(|(_, domain)| domain.trim_end_matches('>'));
        }
    }
    match from {
        None => Err(create_bad_request_rejection(RAW_MESSAGE_URL)),
        Some(domain) if domain != identity => {
            Err(SesRejection { status: 400, error: "MessageRejected", source: IDENTITIES_URL })
        }
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Request;
    use serde_json::{Value, json};

    use super::*;

    /// A valid mail, which the tests change.
    const RAW_MAIL: &str = "From: Shop <shop@example.com>\r\nTo: a@example.org\r\nSubject: Hi\r\n\r\nHello\r\n";

    /// Returns the JSON body of a valid request that sends the mail `raw`.
    fn create_send_email_body(raw: &str) -> Value {
        json!({
            "Destination": {"ToAddresses": ["a@example.org"]},
            "Content": {"Raw": {"Data": STANDARD.encode(raw)}},
            "EmailTags": [{"Name": "account", "Value": "acme_-eu"}],
            "ConfigurationSetName": "dueday",
        })
    }

    /// Checks a valid request after `change` modified its JSON body.
    fn check_request_with_change(change: impl FnOnce(&mut Value)) -> Result<SesMail, SesRejection> {
        let mut body = create_send_email_body(RAW_MAIL);
        change(&mut body);
        check_request("application/json", &body)
    }

    /// Checks a request with this content type and body, and with a valid method, path and signature.
    fn check_request(content_type: &str, body: &Value) -> Result<SesMail, SesRejection> {
        let request = Request::post("/v2/email/outbound-emails")
            .header(header::CONTENT_TYPE, content_type)
            .header(header::AUTHORIZATION, "AWS4-HMAC-SHA256 Credential=a/20260301/eu-west-1/ses/aws4_request");
        let (parts, ()) = request.body(()).unwrap().into_parts();
        check_send_email_request(&parts, body.to_string().as_bytes(), "example.com", "dueday")
    }

    #[test]
    fn ses_server_rejects_a_request_that_violates_a_documented_rule() {
        assert_eq!(
            check_request_with_change(|_| {}).unwrap().tags,
            BTreeMap::from([("account".to_owned(), "acme_-eu".to_owned())])
        );
        let tag = |body: &mut Value, value: &str| body["EmailTags"][0]["Value"] = value.into();
        let raw = |body: &mut Value, raw: &str| body["Content"]["Raw"]["Data"] = STANDARD.encode(raw).into();
        // Each entry contains the result of a request that breaks one rule, and the documentation page of this rule.
        let rejections = [
            (check_request_with_change(|body| tag(body, "acme.eu")), MESSAGE_TAG_URL),
            (check_request_with_change(|body| tag(body, "")), MESSAGE_TAG_URL),
            (check_request_with_change(|body| tag(body, &"x".repeat(257))), MESSAGE_TAG_URL),
            (check_request_with_change(|body| body["Content"] = json!({})), SEND_EMAIL_URL),
            (check_request_with_change(|body| body["Content"]["Simple"] = json!({})), SEND_EMAIL_URL),
            (check_request_with_change(|body| body["ConfigurationSetName"] = "other".into()), SEND_EMAIL_URL),
            (check_request_with_change(|body| body["Destination"]["ToAddresses"] = json!([])), DESTINATION_URL),
            (
                check_request_with_change(|body| body["Destination"]["ToAddresses"] = json!(["ä@example.org"])),
                DESTINATION_URL,
            ),
            (check_request_with_change(|body| body["Content"]["Raw"]["Data"] = RAW_MAIL.into()), RAW_MESSAGE_URL),
            (check_request_with_change(|body| raw(body, "Subject: Hi\r\n\r\nHello")), RAW_MESSAGE_URL),
            (check_request_with_change(|body| raw(body, "From: shop@example.com\r\n")), RAW_MESSAGE_URL),
            (check_request_with_change(|body| raw(body, &RAW_MAIL.replace("Hello", "ä"))), RAW_MESSAGE_URL),
            (
                check_request_with_change(|body| raw(body, &RAW_MAIL.replace("Hello", &"x".repeat(999)))),
                RAW_MESSAGE_URL,
            ),
            (
                check_request_with_change(|body| raw(body, &RAW_MAIL.replace("To:", "Subject: Ha\r\nTo:"))),
                HEADER_FIELDS_URL,
            ),
            (
                check_request_with_change(|body| raw(body, &RAW_MAIL.replace("example.com", "example.net"))),
                IDENTITIES_URL,
            ),
            (check_request_with_change(|body| raw(body, &"x".repeat(MAX_MESSAGE_BYTES))), QUOTAS_URL),
            (check_request("application/x-amz-json-1.1", &create_send_email_body(RAW_MAIL)), SEND_EMAIL_URL),
        ];
        for (index, (result, page)) in rejections.into_iter().enumerate() {
            assert_eq!(
                result.map_err(|rejection| rejection.source),
                Err(page),
                "the request with index {index} in the list"
            );
        }
        assert!(check_request_with_change(|body| raw(body, &RAW_MAIL.replace("Hello", &"x".repeat(998)))).is_ok());
    }
}
