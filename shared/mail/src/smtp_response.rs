//! Classifies the error responses of mail servers (RFC 5321 and RFC 3463). Servers use the codes loosely, so the step of
//! the mail and some texts count, too.

use std::fmt;

use super::MailFault;

/// The step of a mail to which a server responded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SmtpStep {
    /// The connection, its encryption and the login.
    Connection,
    /// The command with the address of the sender.
    Sender,
    /// The command with the address of the recipient.
    Recipient,
    /// The message itself.
    Message,
}

impl fmt::Display for SmtpStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connection => "the connection or the login",
            Self::Sender => "MAIL FROM",
            Self::Recipient => "RCPT TO",
            Self::Message => "DATA",
        })
    }
}

/// Texts, in small letters, with which servers refuse the sender, this program's server or every mail, although they
/// respond to the recipient or to the message. The codes of these responses are also used for single recipients.
const TEXTS_ABOUT_ALL_MAILS: &[&str] = &[
    "access denied: user",
    "administrative prohibition",
    "authenticat",
    "authoriz",
    "banned",
    "blacklist",
    "block list",
    "blocked using",
    "blocklist",
    "client host",
    "daily limit",
    "daily message quota",
    "dkim",
    "dmarc",
    "helo",
    "insufficient system",
    "internal error",
    "ip address",
    "message rate",
    "not allowed to send",
    "not verified",
    "outgoing",
    "rate exceeded",
    "rate limit",
    "rcpthosts",
    "relay",
    "reputation",
    "reverse dns",
    "sendasdenied",
    "sender",
    "sending has been paused",
    "sending paused",
    "sending rate",
    "service unavailable",
    "spamhaus",
    "spf",
    "storedrv.submission",
    "submission quota",
    "temporary service failure",
    "throttl",
    "too many",
];

/// Texts, in small letters, with which servers say that an address does not exist. A response without an enhanced status
/// code marks an account only if it contains one of them: servers respond to a recipient with much that is not about it.
const TEXTS_ABOUT_MISSING_ADDRESS: &[&str] = &[
    "does not exist",
    "invalid rcpt",
    "invalid recipient",
    "mailbox not found",
    "mailbox unavailable",
    "no mailbox",
    "no such",
    "not local",
    "unknown user",
    "user not found",
    "user unknown",
];

/// Returns the fault that the error response with the status `code` and the text `text` to `step` means.
pub(crate) fn classify_response(step: SmtpStep, code: u16, text: &str) -> MailFault {
    let text = text.to_lowercase();
    let is_transient = code < 500;
    let all_mails = if is_transient { MailFault::ServiceTransient } else { MailFault::Settings };
    let recipient = if is_transient { MailFault::RecipientTransient } else { MailFault::RecipientPermanent };
    let status = enhanced_status(code, &text);
    // The server or the recipient's server does not accept this address because it is not ASCII (RFC 6531, 3.6.2).
    if matches!(status, Some((6, 7 | 9 | 10))) {
        return MailFault::RecipientPermanent;
    }
    if matches!(step, SmtpStep::Connection | SmtpStep::Sender) || code == 421 {
        return all_mails;
    }
    match status {
        // The address of the sender.
        Some((1, 7 | 8)) => return all_mails,
        // The recipient's mailbox or domain does not exist, or the address is not valid.
        Some((1, 1 | 2 | 3 | 6 | 10)) => return recipient,
        // The mail system; a failed directory, or congestion.
        Some((3, _) | (4, 3 | 5)) => return all_mails,
        // Authentication, and the identity of the sender.
        Some((7, 8..=14 | 20..=29 | 54 | 57 | 60 | 64)) => return all_mails,
        _ => {}
    }
    let says_one_of = |texts: &[&str]| texts.iter().any(|part| text.contains(part));
    if says_one_of(TEXTS_ABOUT_ALL_MAILS) {
        return all_mails;
    }
    match (status, code) {
        // The mailbox is disabled. Gmail also uses this status for a mailbox that receives too many mails at a time.
        (Some((2, 1)), _) if !says_one_of(&["at a rate", "too quickly"]) => recipient,
        // The network of the recipient's server: Exchange also uses this status for an address that does not exist.
        (Some((4, 1)), _) if text.contains("recipient address rejected") => recipient,
        // The format of the message, which is the same for all recipients.
        (Some((6, _)), _) => all_mails,
        // A full mailbox may be emptied, and a policy, for example against spam, is not about the address itself.
        (Some((1 | 2 | 4 | 7, _)), _) => MailFault::RecipientTransient,
        (_, 501 | 510 | 511 | 521 | 550 | 551 | 553 | 556) if step == SmtpStep::Recipient => {
            match says_one_of(TEXTS_ABOUT_MISSING_ADDRESS) {
                true => MailFault::RecipientPermanent,
                false => MailFault::RecipientTransient,
            }
        }
        (_, 450..=452 | 550..=554) => MailFault::RecipientTransient,
        _ => all_mails,
    }
}

/// Returns the subject and the detail of the enhanced status code (RFC 3463), such as `(1, 1)` for `5.1.1`; `None` if
/// `text` contains no status code of the class of `code`. The status code is the first word or follows a `#`.
fn enhanced_status(code: u16, text: &str) -> Option<(u16, u16)> {
    let marked = text.split_once('#').map_or("", |(_, rest)| rest);
    [text, marked].into_iter().find_map(|text| {
        let word = text.split(|c: char| !c.is_ascii_digit() && c != '.').next()?;
        let mut numbers = word.trim_end_matches('.').split('.').map(str::parse);
        match [numbers.next()?, numbers.next()?, numbers.next()?] {
            [Ok(class), Ok(subject), Ok(detail)] if numbers.next().is_none() && class == code / 100 => {
                Some((subject, detail))
            }
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::MailFault::{RecipientPermanent, RecipientTransient, ServiceTransient, Settings};
    use super::SmtpStep::{Connection, Message, Recipient, Sender};
    use super::*;

    /// Real responses of mail servers: Postfix, Exim, Sendmail, qmail, Exchange, Gmail and Amazon SES.
    const RESPONSES: &[(SmtpStep, u16, &str, MailFault)] = &[
        (Connection, 421, "4.3.2 Service not available, closing transmission channel", ServiceTransient),
        (Connection, 421, "Too many concurrent SMTP connections", ServiceTransient),
        (Connection, 454, "4.7.0 TLS not available due to local problem", ServiceTransient),
        (Connection, 454, "4.7.0 Temporary authentication failure", ServiceTransient),
        (Connection, 530, "5.7.0 Authentication required", Settings),
        (Connection, 534, "5.7.9 Application-specific password required", Settings),
        (Connection, 535, "Authentication Credentials Invalid", Settings),
        (Connection, 535, "5.7.8 Error: authentication failed", Settings),
        (Connection, 554, "No SMTP service here", Settings),
        (Sender, 421, "4.7.0 Try again later, closing connection", ServiceTransient),
        (Sender, 451, "4.3.0 Error: queue file write error", ServiceTransient),
        (Sender, 452, "4.3.1 Insufficient system storage", ServiceTransient),
        (Sender, 501, "Invalid MAIL FROM address provided", Settings),
        (Sender, 530, "5.7.1 Authentication required", Settings),
        (Sender, 550, "5.7.1 Sender address rejected: not owned by user", Settings),
        (Sender, 552, "5.3.4 Message size exceeds fixed limit", Settings),
        (Sender, 553, "5.7.1 Sender address rejected: not logged in", Settings),
        (Sender, 550, "5.6.7 Addresses need SMTPUTF8", RecipientPermanent),
        (Recipient, 421, "4.4.2 Timeout, closing transmission channel", ServiceTransient),
        (Recipient, 450, "4.1.2 Recipient address rejected: Domain not found", RecipientTransient),
        (Recipient, 450, "4.1.8 Sender address rejected: Domain not found", ServiceTransient),
        (
            Recipient,
            450,
            "4.2.0 Recipient address rejected: Greylisted, see http://postgrey.example",
            RecipientTransient,
        ),
        (Recipient, 450, "4.7.1 Error: too many recipients from this client", ServiceTransient),
        (Recipient, 450, "mailbox unavailable", RecipientTransient),
        (Recipient, 451, "4.3.0 Temporary lookup failure", ServiceTransient),
        (Recipient, 451, "4.7.1 Greylisting in action, please come back later", RecipientTransient),
        (Recipient, 451, "Temporary service failure", ServiceTransient),
        (Recipient, 452, "4.2.2 The email account that you tried to reach is over quota", RecipientTransient),
        (Recipient, 452, "requested action not taken", RecipientTransient),
        (Recipient, 452, "4.3.1 Insufficient system resources", ServiceTransient),
        (Recipient, 454, "4.7.1 Relay access denied", ServiceTransient),
        (Recipient, 454, "Throttling failure: Maximum sending rate exceeded", ServiceTransient),
        (Recipient, 501, "5.1.3 Bad recipient address syntax", RecipientPermanent),
        (Recipient, 501, "Invalid RCPT TO address provided", RecipientPermanent),
        (Recipient, 503, "5.5.1 Error: need MAIL command", Settings),
        (Recipient, 530, "Access denied", Settings),
        (Recipient, 550, "5.1.1 The email account that you tried to reach does not exist", RecipientPermanent),
        (Recipient, 550, "5.1.1 User unknown in relay recipient table", RecipientPermanent),
        (Recipient, 550, "5.2.1 The email account that you tried to reach is disabled", RecipientPermanent),
        (Recipient, 550, "5.4.1 Recipient address rejected: Access denied", RecipientPermanent),
        (Recipient, 550, "5.7.1 Unable to relay", Settings),
        (Recipient, 550, "5.7.54 SMTP; Unable to relay recipient in non-accepted domain", Settings),
        (Recipient, 550, "relay not permitted", Settings),
        (Recipient, 550, "No such user here", RecipientPermanent),
        (Recipient, 550, "Access denied - Invalid HELO name", Settings),
        (Recipient, 550, "Administrative prohibition", Settings),
        (Recipient, 550, "You are not authorized to send", Settings),
        (Recipient, 550, "Access denied", RecipientTransient),
        (Recipient, 550, "Rejected because of local policy", RecipientTransient),
        (Recipient, 550, "5.1.90 Your message can't be sent because you've reached your daily limit", Settings),
        (Recipient, 550, "5.2.1 The user you are trying to contact is receiving mail at a rate", RecipientTransient),
        (Recipient, 450, "4.2.1 Peak SMTP relay limit exceeded", ServiceTransient),
        (Recipient, 550, "5.4.4 unable to route", RecipientTransient),
        (Recipient, 550, "Outgoing mail from shop.example has been suspended", Settings),
        (Recipient, 550, "Example is not allowed to send mail on behalf of your address", Settings),
        (Recipient, 550, "Domain shop.example has exceeded the max emails per hour", RecipientTransient),
        (Recipient, 550, "no", RecipientTransient),
        (Recipient, 551, "User not local", RecipientPermanent),
        (Recipient, 552, "5.2.2 Mailbox full", RecipientTransient),
        (Recipient, 553, "sorry, that domain isn't in my list of allowed rcpthosts (#5.7.1)", Settings),
        (Recipient, 553, "5.6.7 Non-ASCII addresses not permitted", RecipientPermanent),
        (Recipient, 554, "rejected", RecipientTransient),
        (Recipient, 554, "5.7.1 Recipient address rejected: Access denied", RecipientTransient),
        (Recipient, 554, "5.7.1 Relay access denied", Settings),
        (Recipient, 554, "5.7.1 Service unavailable; Client host [192.0.2.1] blocked using zen.spamhaus.org", Settings),
        (Recipient, 556, "5.1.10 Recipient address has null MX", RecipientPermanent),
        (Message, 451, "4.7.1 Please try again later", RecipientTransient),
        (Message, 452, "requested action not taken: insufficient system storage", ServiceTransient),
        (Message, 454, "Throttling failure: Daily message quota exceeded", ServiceTransient),
        (
            Message,
            550,
            "5.7.1 Our system has detected that this message is likely unsolicited mail",
            RecipientTransient,
        ),
        (Message, 550, "5.7.26 This mail has been blocked because it is unauthenticated", Settings),
        (Message, 550, "5.7.60 Client does not have permissions to send as this sender", Settings),
        (Message, 552, "5.2.2 Over quota", RecipientTransient),
        (Message, 554, "5.2.2 Submission quota exceeded", Settings),
        (Message, 554, "5.2.0 STOREDRV.Submission.Exception:SendAsDeniedException", Settings),
        (Message, 554, "5.2.252 SendAsDenied; a@example.com not allowed to send as b@example.com", Settings),
        (Message, 554, "Message rejected: Email address is not verified. The following identities failed", Settings),
        (
            Message,
            554,
            "Access denied: User arn:aws:iam::123:user/x is not authorized to perform ses:SendRawEmail",
            Settings,
        ),
        (Message, 554, "Transaction failed", RecipientTransient),
    ];

    #[test]
    fn each_documented_response_is_classified() {
        for (step, code, text, expected) in RESPONSES.iter().copied() {
            assert_eq!(classify_response(step, code, text), expected, "{code} {text} to {step}");
        }
    }

    #[test]
    fn enhanced_status_is_read_only_where_servers_write_it() {
        for (code, text, expected) in [
            (550, "5.1.1 unknown", Some((1, 1))),
            (553, "no rcpthosts (#5.7.1)", Some((7, 1))),
            (550, "host 5.1.1.2 unknown", None),
            (550, "5.1.1.2 unknown", None),
            (450, "5.1.1 unknown", None),
            (550, "unknown", None),
        ] {
            assert_eq!(enhanced_status(code, text), expected, "{text}");
        }
    }
}
