//! SMTP: any mail server, Amazon SES's SMTP interface among them.

use std::time::Duration;

use async_trait::async_trait;
use lettre::message::Mailbox;
use lettre::transport::smtp::Error;
use lettre::{AsyncSmtpTransport, AsyncTransport, Tokio1Executor};

use super::message::{encode, sender};
use super::{Mail, MailError, Mailer};

/// The server is given this long to answer.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A mail server.
#[derive(Clone, Debug)]
pub struct Smtp {
    server: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

impl Smtp {
    /// The server at `url`, as `smtps://user:password@host:465` or `smtp://user:password@host:587?tls=required`.
    ///
    /// # Errors
    /// [`MailError`] if `url` or `from` is not one. The URL is not repeated: it holds a password.
    pub fn new(url: &str, from: &str) -> Result<Self, MailError> {
        let wrong = |_: Error| MailError { reason: "the URL is not an SMTP server's".to_owned(), is_transient: false };
        let is_private = url.starts_with("smtps://") || url.contains("tls=required");
        let is_near = ["smtp://127.0.0.1", "smtp://localhost", "smtp://[::1]"].iter().any(|near| url.starts_with(near));
        if !is_private && !is_near {
            let reason = "mail must not leave in clear: use smtps://, or smtp:// with ?tls=required".to_owned();
            return Err(MailError { reason, is_transient: false });
        }
        let server = AsyncSmtpTransport::<Tokio1Executor>::from_url(url).map_err(wrong)?.timeout(Some(TIMEOUT)).build();
        Ok(Self { server, from: sender(from)? })
    }
}

#[async_trait]
impl Mailer for Smtp {
    async fn send(&self, mail: &Mail) -> Result<(), MailError> {
        let sent = self.server.send(encode(mail, &self.from)?).await;
        // What the server says may repeat the address: only its code is told.
        sent.map(drop).map_err(|error| MailError {
            reason: error.status().map_or_else(
                || "the mail server did not answer".to_owned(),
                |code| format!("the mail server answered {code}"),
            ),
            is_transient: !error.status().is_some_and(|code| is_of_the_recipient(&code.to_string())),
        })
    }
}

/// Whether `code` says that the recipient's address takes no mail (RFC 5321, section 4.2.2). All else is of the server, the sender or
/// the account there, and may be mended.
fn is_of_the_recipient(code: &str) -> bool {
    matches!(code, "550" | "551" | "553")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn smtp_refuses_mail_in_clear_and_does_not_repeat_the_password() {
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
        assert!(Smtp::new("smtps://mail.example.com", "nobody").is_err());
    }
}
