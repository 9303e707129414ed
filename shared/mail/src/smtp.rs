//! Sends mails by SMTP to any mail server, including the SMTP interface of Amazon SES.

use std::time::Duration;

use async_trait::async_trait;
use lettre::message::Mailbox;
use lettre::transport::smtp::Error;
use lettre::{AsyncSmtpTransport, AsyncTransport, Tokio1Executor};

use super::message::{encode, parse_sender};
use super::{Mail, MailError, Mailer};

/// The maximum time to wait for a response of the server.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A mailer that sends mails by SMTP.
#[derive(Clone, Debug)]
pub struct Smtp {
    server: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

impl Smtp {
    /// Creates a mailer for the server at `url`, such as `smtps://user:password@host:465` or
    /// `smtp://user:password@host:587?tls=required`.
    ///
    /// # Errors
    /// Returns an error if `url` is not a valid SMTP URL, if it allows unencrypted connections to another machine, or
    /// if `from` is not a valid sender. The error does not contain the URL, because the URL contains a password.
    pub fn new(url: &str, from: &str) -> Result<Self, MailError> {
        let invalid_url =
            |_: Error| MailError { reason: "the URL is not a valid SMTP URL".to_owned(), is_transient: false };
        let is_encrypted = url.starts_with("smtps://") || url.contains("tls=required");
        let is_local =
            ["smtp://127.0.0.1", "smtp://localhost", "smtp://[::1]"].iter().any(|local| url.starts_with(local));
        if !is_encrypted && !is_local {
            let reason = "the connection must be encrypted: use smtps://, or smtp:// with ?tls=required".to_owned();
            return Err(MailError { reason, is_transient: false });
        }
        let builder = AsyncSmtpTransport::<Tokio1Executor>::from_url(url).map_err(invalid_url)?;
        let server = builder.timeout(Some(TIMEOUT)).build();
        Ok(Self { server, from: parse_sender(from)? })
    }
}

#[async_trait]
impl Mailer for Smtp {
    async fn send(&self, mail: &Mail) -> Result<(), MailError> {
        let sent = self.server.send(encode(mail, &self.from)?).await;
        // The error contains only the status code, because the server's text may contain the recipient's address.
        sent.map(drop).map_err(|error| MailError {
            reason: error.status().map_or_else(
                || "the mail server did not respond".to_owned(),
                |code| format!("the mail server responded with {code}"),
            ),
            is_transient: !error.status().is_some_and(|code| is_recipient_rejected(&code.to_string())),
        })
    }
}

/// Returns whether the status `code` means that the recipient's address does not accept mail (RFC 5321, section 4.2.2).
/// All other codes are problems of the server, the sender or the sender's account, which can be fixed.
fn is_recipient_rejected(code: &str) -> bool {
    matches!(code, "550" | "551" | "553")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn unencrypted_url_is_rejected_and_the_error_does_not_contain_the_password() {
        let from = "Shop <billing@example.com>";
        for url in
            ["smtps://u:p@mail.example.com:465", "smtp://u:p@mail.example.com:587?tls=required", "smtp://127.0.0.1:25"]
        {
            assert!(Smtp::new(url, from).is_ok(), "{url}");
        }
        for url in ["smtp://user:secret@mail.example.com", "http://user:secret@mail.example.com?tls=required", "secret"]
        {
            let error = Smtp::new(url, from).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
        assert!(Smtp::new("smtps://mail.example.com", "not an address").is_err());
    }
}
