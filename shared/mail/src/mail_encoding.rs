//! Encodes mails in the Internet message format (RFC 5322), which all mail servers accept.

use std::time::SystemTime;

use lettre::Message;
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart};

use super::{Mail, MailError};
use billing::EmailAddress;

/// Parses the sender of mails: an address, or a name and an address in `<>`.
pub fn parse_sender(text: &str) -> Result<Mailbox, MailError> {
    text.parse().map_err(|_| permanent_error("the sender must be an address, or a name and an address in <>"))
}

/// Encodes `mail` in the Internet message format (RFC 5322), with a plain-text and an HTML part.
pub fn encode(mail: &Mail, from: &Mailbox) -> Result<Message, MailError> {
    let mut message = Message::builder().from(from.clone()).to(mailbox(&mail.to)?);
    if let Some(reply_to) = &mail.reply_to {
        message = message.reply_to(mailbox(reply_to)?);
    }
    if let Some(address) = &mail.unsubscribe_at {
        let name = HeaderName::new_from_ascii_str("List-Unsubscribe");
        let by_mail = format!("<mailto:{}?subject=unsubscribe>", address.as_str());
        message = message.raw_header(HeaderValue::new(name, by_mail));
    }
    message
        .subject(&mail.subject)
        .date(SystemTime::from(mail.written_at))
        .message_id(Some(format!("<{}@{}>", mail.id, from.email.domain())))
        .raw_header(HeaderValue::new(HeaderName::new_from_ascii_str("Auto-Submitted"), "auto-generated".to_owned()))
        .multipart(MultiPart::alternative_plain_html(mail.text.clone(), mail.html.clone()))
        .map_err(|error| permanent_error(&error.to_string()))
}

/// Converts `address` into the type of the mail library.
fn mailbox(address: &EmailAddress) -> Result<Mailbox, MailError> {
    let address = address.as_str().parse().map_err(|_| permanent_error("an address is not valid in a mail header"))?;
    Ok(Mailbox::new(None, address))
}

/// Creates the error for a mail that cannot be sent, even with a later try.
fn permanent_error(reason: &str) -> MailError {
    MailError { reason: reason.to_owned(), is_transient: false }
}
