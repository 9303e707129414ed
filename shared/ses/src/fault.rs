//! Classifies the error responses of Amazon SES ("SendEmail" in its API reference, and "Amazon SES email sending
//! errors" in its developer guide).

use mail::MailFault;

/// Error codes after which a later try with the same settings succeeds.
const CODES_OF_SERVICE: &[&str] = &[
    "InternalFailure",
    "InternalServiceErrorException",
    "LimitExceededException",
    "RequestTimeout",
    "RequestTimeoutException",
    "ServiceUnavailable",
    "ServiceUnavailableException",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
];

/// Error codes with which SES rejects a request because of an address or another of its values.
const CODES_OF_INVALID_VALUE: &[&str] = &["BadRequestException", "InvalidParameterValue"];

/// Texts, in small letters, about an address. The sender is parsed before, and SES accepts only verified senders, so the
/// address is that of the recipient.
const TEXTS_ABOUT_ADDRESS: &[&str] = &[
    "address contains",
    "domain contains",
    "domain ends with",
    "domain starts with",
    "illegal address",
    "invalid domain",
    "local address",
    "missing '@domain'",
    "missing final '@domain'",
    "only ascii",
    "user name is missing",
];

/// Returns the fault that an error response of SES means. `code` is the error code, `text` is the message, and `status`
/// is the HTTP status.
pub(crate) fn classify_ses_response(status: u16, code: &str, text: &str) -> MailFault {
    let text = text.to_lowercase();
    let is_about_address = || TEXTS_ABOUT_ADDRESS.iter().any(|about_address| text.contains(about_address));
    match code {
        code if CODES_OF_SERVICE.contains(&code) => MailFault::ServiceTransient,
        code if CODES_OF_INVALID_VALUE.contains(&code) && is_about_address() => MailFault::RecipientPermanent,
        // SES rejects addresses that bounced before for other senders.
        "MessageRejected" if text.contains("address blacklisted") => MailFault::RecipientPermanent,
        // SES found a virus or other bad content in this one mail.
        "MessageRejected" if text.contains("bad content") => MailFault::RecipientTransient,
        _ if status >= 500 || status == 429 => MailFault::ServiceTransient,
        // The sender is not verified, or the account is in the SES sandbox; sending is paused; the policy, the
        // credentials or the configuration set are wrong.
        _ => MailFault::Settings,
    }
}

#[cfg(test)]
mod tests {
    use super::MailFault::{RecipientPermanent, RecipientTransient, ServiceTransient, Settings};
    use super::*;

    /// Documented and observed responses of SES: the HTTP status, the code, the message and the fault.
    const RESPONSES: &[(u16, &str, &str, MailFault)] = &[
        (400, "AccountSuspendedException", "The account is permanently suspended", Settings),
        (400, "BadRequestException", "Domain contains illegal character", RecipientPermanent),
        (400, "BadRequestException", "Domain contains control or whitespace", RecipientPermanent),
        (400, "BadRequestException", "Domain ends with dot", RecipientPermanent),
        (400, "BadRequestException", "Domain starts with dot", RecipientPermanent),
        (400, "BadRequestException", "Illegal address", RecipientPermanent),
        (400, "BadRequestException", "Local address contains control or whitespace", RecipientPermanent),
        (400, "BadRequestException", "Missing final '@domain'", RecipientPermanent),
        (400, "BadRequestException", "Configuration set <redacted> is invalid", Settings),
        (400, "InvalidParameterValue", "Local address contains control or whitespace", RecipientPermanent),
        (400, "LimitExceededException", "There are too many instances", ServiceTransient),
        (400, "MailFromDomainNotVerifiedException", "The MAIL FROM domain is not verified", Settings),
        (400, "MessageRejected", "Email address is not verified. The following identities failed", Settings),
        (400, "MessageRejected", "Address blacklisted", RecipientPermanent),
        (400, "MessageRejected", "Bad content detected", RecipientTransient),
        (400, "SendingPausedException", "Account sending has been paused", Settings),
        (400, "ThrottlingException", "Maximum sending rate exceeded.", ServiceTransient),
        (400, "ThrottlingException", "Daily message quota exceeded.", ServiceTransient),
        (400, "RequestExpired", "The request is too old", Settings),
        (403, "AccessDeniedException", "User is not authorized to perform ses:SendEmail", Settings),
        (403, "InvalidClientTokenId", "The security token is invalid", Settings),
        (403, "SignatureDoesNotMatch", "Check your AWS Secret Access Key", Settings),
        (403, "ExpiredTokenException", "The security token has expired", Settings),
        (404, "NotFoundException", "Configuration set does not exist", Settings),
        (429, "TooManyRequestsException", "Too many requests", ServiceTransient),
        (500, "InternalServiceErrorException", "Internal error", ServiceTransient),
        (503, "ServiceUnavailable", "Try again", ServiceTransient),
        (502, "", "", ServiceTransient),
    ];

    #[test]
    fn each_documented_response_is_classified() {
        for (status, code, text, expected) in RESPONSES.iter().copied() {
            assert_eq!(classify_ses_response(status, code, text), expected, "{status} {code}: {text}");
        }
    }
}
