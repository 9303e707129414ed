//! Encodes mails in the Internet message format (RFC 5322), which all mail servers accept.

use std::borrow::Cow;
use std::time::SystemTime;

use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart};
use lettre::{Address, Message};

use super::{Mail, MailError, MailFault};
use billing::EmailAddress;

/// The reason why an address of the merchant is refused.
pub(crate) const ASCII_BEFORE_AT: &str =
    "must have only ASCII characters before the @: many mail servers accept no others";

/// Parses the sender of mails: an address, or a name and an address in `<>`. The domain of the address is converted to
/// Punycode.
///
/// # Errors
/// [`MailFault::Settings`] if `text` is not a valid sender, or the part before the `@` is not ASCII: a mail server that
/// refuses it refuses every mail.
pub fn parse_sender(text: &str) -> Result<Mailbox, MailError> {
    let invalid =
        || MailError::new(MailFault::Settings, "the sender must be an address, or a name and an address in <>");
    let Mailbox { name, email } = text.parse().map_err(|_| invalid())?;
    let email = address_in_punycode(email.as_ref()).ok_or_else(invalid)?;
    if !is_ascii_before_at(email.as_ref()) {
        return Err(MailError::new(MailFault::Settings, format!("the sender {ASCII_BEFORE_AT}")));
    }
    Ok(Mailbox::new(name, email))
}

/// Returns whether the part of `address` before the `@` is ASCII.
pub(crate) fn is_ascii_before_at(address: &str) -> bool {
    address.rsplit_once('@').is_none_or(|(user, _)| user.is_ascii())
}

/// Returns the address of a recipient for a mail server, with its domain in Punycode (RFC 3492), because many servers
/// accept only ASCII domains. The part before the `@` stays unchanged: it has no form in ASCII.
///
/// # Errors
/// [`MailFault::RecipientPermanent`] if the address is not valid in a mail.
pub fn recipient_address(address: &EmailAddress) -> Result<Address, MailError> {
    address_in_punycode(address.as_str())
        .ok_or_else(|| MailError::new(MailFault::RecipientPermanent, "the address is not valid in a mail"))
}

/// Returns whether `one` and `other` are the same mail address. Treats capital and small letters as equal, and a domain
/// and its form in Punycode.
pub fn is_same_mailbox(one: &str, other: &str) -> bool {
    address_with_punycode_domain(one).eq_ignore_ascii_case(&address_with_punycode_domain(other))
}

/// Returns the address `text` with its domain in Punycode; `None` if it is not a valid address.
fn address_in_punycode(text: &str) -> Option<Address> {
    address_with_punycode_domain(text).parse().ok()
}

/// Returns the address `text` with its domain in Punycode; `text` itself if its domain is ASCII or not valid.
fn address_with_punycode_domain(text: &str) -> Cow<'_, str> {
    match text.rsplit_once('@') {
        Some((user, domain)) if !domain.is_ascii() => match idna::domain_to_ascii(domain) {
            Ok(domain) => Cow::Owned(format!("{user}@{domain}")),
            Err(_) => Cow::Borrowed(text),
        },
        _ => Cow::Borrowed(text),
    }
}

/// Encodes `mail` to `recipient` in the Internet message format (RFC 5322), with a plain-text and an HTML part. If the
/// sender `from` has no name, its name is that of the merchant.
///
/// # Errors
/// [`MailFault::Settings`] if the address for replies is not valid, or the message cannot be encoded.
pub fn encode_mail(mail: &Mail, from: &Mailbox, recipient: Address) -> Result<Message, MailError> {
    let sender_name = from.name.clone().unwrap_or_else(|| mail.sender_name.clone());
    let sender = Mailbox::new(Some(sender_name), from.email.clone());
    let mut message = Message::builder().from(sender).to(Mailbox::new(None, recipient));
    if let Some(reply_to) = &mail.reply_to {
        let reply_to = address_in_punycode(reply_to.as_str());
        let reply_to = reply_to.ok_or_else(|| mail_settings_error("the address for replies is not valid in a mail"))?;
        message = message.reply_to(Mailbox::new(None, reply_to));
    }
    if let Some(address) = &mail.unsubscribe_at {
        let name = HeaderName::new_from_ascii_str("List-Unsubscribe");
        let by_mail = format!("<mailto:{}?subject=unsubscribe>", address_with_punycode_domain(address.as_str()));
        message = message.raw_header(HeaderValue::new(name, by_mail));
    }
    message
        .subject(&mail.subject)
        .date(SystemTime::from(mail.written_at))
        .message_id(Some(format!("<{}@{}>", mail.id, from.email.domain())))
        .raw_header(HeaderValue::new(HeaderName::new_from_ascii_str("Auto-Submitted"), "auto-generated".to_owned()))
        .multipart(MultiPart::alternative_plain_html(mail.text.clone(), mail.html.clone()))
        .map_err(|error| mail_settings_error(&error.to_string()))
}

/// Creates the error for a mail that cannot be sent to any recipient.
fn mail_settings_error(reason: &str) -> MailError {
    MailError::new(MailFault::Settings, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domain_is_converted_to_punycode_and_the_user_stays() {
        for (address, expected) in [
            ("ada@example.com", "ada@example.com"),
            ("ada@bücher.example", "ada@xn--bcher-kva.example"),
            ("josé@bücher.example", "josé@xn--bcher-kva.example"),
            ("info@例え.jp", "info@xn--r8jz45g.jp"),
        ] {
            assert_eq!(recipient_address(&address.parse().unwrap()).unwrap().to_string(), expected);
            assert!(is_same_mailbox(address, expected), "{address}");
        }
        assert!(is_same_mailbox("ada@bücher.example", "ADA@XN--BCHER-KVA.example"));
        assert!(!is_same_mailbox("ada@bücher.example", "ada@buecher.example"));
        assert_eq!(parse_sender("Shop <shop@bücher.example>").unwrap().email.domain(), "xn--bcher-kva.example");
        assert_eq!(parse_sender("Shop <josé@example.com>").unwrap_err().fault, MailFault::Settings);
    }
}
