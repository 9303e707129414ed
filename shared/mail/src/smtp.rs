//! Sends mails by SMTP to any mail server, including the SMTP interface of Amazon SES.

use std::time::Duration;

use async_trait::async_trait;
use config::{ConfigError, CurrentSecret};
use lettre::message::Mailbox;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::{AsyncSmtpTransportBuilder, Error};
use lettre::{AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};
use tokio::sync::Mutex;
use url::Url;

use super::mail_encoding::{encode, parse_sender};
use super::{Mail, MailError, Mailer};

/// The maximum time for which a mailer waits for a response of the mail server.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);

/// The connections to a mail server.
type ServerConnections = AsyncSmtpTransport<Tokio1Executor>;

/// The user and the password of a mail server.
pub type Login = Credentials;

/// Parses the user and the password of a mail server, `USER:PASSWORD`.
///
/// # Errors
/// If `text` is not allowed, returns an error text that describes what is allowed, without the password.
pub fn parse_login(text: &str) -> Result<Login, String> {
    match text.trim().split_once(':') {
        Some((user, password)) if !user.is_empty() && !password.is_empty() => {
            Ok(Credentials::new(user.to_owned(), password.to_owned()))
        }
        _ => Err("must be the user and the password of the mail server, as USER:PASSWORD".to_owned()),
    }
}

/// Returns whether connections to the mail server at `url` are always encrypted.
fn is_encrypted(url: &Url) -> bool {
    // The first parameter `tls` counts, as in lettre.
    let tls = url.query_pairs().find(|(name, _)| name == "tls");
    url.scheme() == "smtps" || tls.is_some_and(|(_, value)| value == "required")
}

/// Returns whether the mail server at `url` is on this machine. The host is compared as text, because the URL parser
/// recognizes IPv4 addresses only in URLs of web schemes such as `https`.
fn is_local(url: &Url) -> bool {
    matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

/// A mailer that sends mails by SMTP.
#[derive(Debug)]
pub struct SmtpMailer {
    builder: AsyncSmtpTransportBuilder,
    from: Mailbox,
    /// The user and the password for the mail server; `None` if the URL contains them, or if the server needs no login.
    login: Option<CurrentSecret<Login>>,
    /// The open connections, and the user and the password with which they were opened; `None` before the first use.
    server: Mutex<Option<(Option<Login>, ServerConnections)>>,
}

impl SmtpMailer {
    /// Creates a mailer for the server at `url`, such as `smtps://host:465`,
    /// `smtps://user:password@host:465` or `smtp://user:password@host:587?tls=required`.
    ///
    /// # Errors
    /// Returns an error in these cases:
    /// - `url` is not a valid SMTP URL.
    /// - `url` allows unencrypted connections to another machine.
    /// - `from` is not a valid sender.
    ///
    /// The error does not contain the URL, because the URL may contain a password.
    pub fn new(url: &str, from: &str) -> Result<Self, MailError> {
        let invalid_url = || MailError { reason: "the URL is not a valid SMTP URL".to_owned(), is_transient: false };
        let parsed = Url::parse(url).map_err(|_| invalid_url())?;
        if !is_encrypted(&parsed) && !is_local(&parsed) {
            let reason = "the connection must be encrypted: use smtps://, or smtp:// with ?tls=required".to_owned();
            return Err(MailError { reason, is_transient: false });
        }
        let builder = AsyncSmtpTransport::<Tokio1Executor>::from_url(url).map_err(|_| invalid_url())?;
        let builder = builder.timeout(Some(RESPONSE_TIMEOUT));
        Ok(Self { builder, from: parse_sender(from)?, login: None, server: Mutex::default() })
    }

    /// Makes the mailer log in with `login`. The user and the password may be replaced while the program runs.
    pub fn with_login(self, login: CurrentSecret<Login>) -> Self {
        Self { login: Some(login), ..self }
    }

    /// Connects to the server, and logs in if it needs a login. Sends no mail.
    ///
    /// # Errors
    /// Returns an error if the server does not respond, or refuses the user or the password.
    pub async fn connect(&self) -> Result<(), MailError> {
        let login = match &self.login {
            Some(login) => Some(login.get().await.map_err(unreadable_login)?),
            None => None,
        };
        match self.connections(login).await.test_connection().await {
            Ok(true) => Ok(()),
            Ok(false) => {
                Err(MailError { reason: "the mail server closed the connection".to_owned(), is_transient: true })
            }
            Err(error) => Err(mail_error(error)),
        }
    }

    /// Returns the connections that use `login`. If the open connections use another login, because the login was
    /// replaced, returns new connections instead.
    async fn connections(&self, login: Option<Login>) -> ServerConnections {
        let mut server = self.server.lock().await;
        match &*server {
            Some((used, open)) if *used == login => open.clone(),
            _ => {
                let builder = match &login {
                    Some(login) => self.builder.clone().credentials(login.clone()),
                    None => self.builder.clone(),
                };
                server.insert((login, builder.build())).1.clone()
            }
        }
    }

    /// Sends `message`. If the server refuses the login and the login was replaced, sends the message again with the
    /// new login. A server that refuses the login has not accepted the message, so the mail is not sent twice.
    async fn send_message(&self, message: Message) -> Result<(), MailError> {
        let Some(login) = &self.login else {
            return self.connections(None).await.send(message).await.map(drop).map_err(mail_error);
        };
        let current = login.get().await.map_err(unreadable_login)?;
        match self.connections(Some(current.clone())).await.send(message.clone()).await {
            Err(error) if is_login_refused(&error) => match login.get_replacement(&current).await {
                Some(new) => self.connections(Some(new)).await.send(message).await.map(drop).map_err(mail_error),
                None => Err(mail_error(error)),
            },
            sent => sent.map(drop).map_err(mail_error),
        }
    }
}

#[async_trait]
impl Mailer for SmtpMailer {
    async fn send(&self, mail: &Mail) -> Result<(), MailError> {
        self.send_message(encode(mail, &self.from)?).await
    }
}

/// Converts the error of an unreadable login into a [`MailError`].
fn unreadable_login(error: ConfigError) -> MailError {
    MailError { reason: error.to_string(), is_transient: true }
}

/// Converts `error` into a [`MailError`] that contains only the status code: the server's text may contain the
/// recipient's address.
fn mail_error(error: Error) -> MailError {
    MailError {
        reason: error.status().map_or_else(
            || "the mail server did not respond".to_owned(),
            |code| format!("the mail server responded with {code}"),
        ),
        is_transient: !error.status().is_some_and(|code| is_recipient_rejected(&code.to_string())),
    }
}

/// Returns whether the server refused the user or the password (RFC 4954, section 6).
fn is_login_refused(error: &Error) -> bool {
    error.status().is_some_and(|code| code.to_string() == "535")
}

/// Returns whether the status `code` means that the recipient's address does not accept mails (RFC 5321, section
/// 4.2.2). All other codes mean problems of the server, the sender or the sender's account, which a person can fix.
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
            assert!(SmtpMailer::new(url, from).is_ok(), "{url}");
        }
        for url in [
            "smtp://user:secret@mail.example.com",
            "smtp://localhost.example.com:25?secret",
            "smtp://127.0.0.1.example.com?secret",
            "smtp://localhost@mail.example.com?secret",
            "smtp://mail.example.com:587?secret=tls=required",
            "smtp://mail.example.com:587?tls=opportunistic&tls=required&secret",
            "http://user:secret@mail.example.com?tls=required",
            "secret",
        ] {
            let error = SmtpMailer::new(url, from).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
        assert!(SmtpMailer::new("smtps://mail.example.com", "not an address").is_err());
    }
}
