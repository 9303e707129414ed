//! Sends mails by SMTP to any mail server, including the SMTP interface of Amazon SES.

use std::time::Duration;

use async_trait::async_trait;
use config::{ConfigError, CurrentSecret};
use lettre::Message;
use lettre::message::Mailbox;
use lettre::transport::smtp::Error;
use lettre::transport::smtp::client::AsyncSmtpConnection;
use lettre::transport::smtp::commands::{Data, Mail as MailFrom, Rcpt};
use lettre::transport::smtp::extension::{Extension, MailBodyParameter, MailParameter};
use tokio::time::timeout;

use super::connection_pool::{ConnectionPool, SmtpStepError, end_connection};
use super::login::SmtpLogin;
use super::mail_encoding::{encode_mail, parse_sender, recipient_address};
use super::mail_server::MailServer;
use super::recipient_redaction::redact_recipient;
use super::smtp_response::{SmtpStep, classify_response};
use super::{Mail, MailError, MailFault, Mailer};

/// The maximum time to send a mail, with the time to connect to the mail server and to log in.
const SEND_TIMEOUT: Duration = Duration::from_secs(20);

/// A mailer that sends mails by SMTP.
#[derive(Debug)]
pub struct SmtpMailer {
    connections: ConnectionPool,
    from: Mailbox,
    /// The user and the password for the mail server; `None` if the URL contains them, or if the server needs no login.
    login: Option<CurrentSecret<SmtpLogin>>,
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
        let connections = ConnectionPool::new(MailServer::parse(url)?);
        Ok(Self { connections, from: parse_sender(from)?, login: None })
    }

    /// Makes the mailer log in with `login`. The user and the password may be replaced while the program runs.
    pub fn with_login(self, login: CurrentSecret<SmtpLogin>) -> Self {
        Self { login: Some(login), ..self }
    }

    /// Connects to the server, and logs in if it needs a login. Sends no mail.
    ///
    /// # Errors
    /// Returns an error if the server does not respond, or refuses the user or the password.
    pub async fn connect(&self) -> Result<(), MailError> {
        let login = self.current_login().await?;
        let taken =
            timeout(SEND_TIMEOUT, self.connections.take(login.as_ref())).await.map_err(|_| smtp_timeout_error())?;
        let connection = taken.map_err(|SmtpStepError { step, error }| smtp_mail_error(step, &error, &[]))?;
        self.connections.put_back(connection, login.as_ref()).await;
        Ok(())
    }

    /// Returns the current user and password; `None` if the URL contains them, or if the server needs no login.
    async fn current_login(&self) -> Result<Option<SmtpLogin>, MailError> {
        match &self.login {
            Some(login) => Ok(Some(login.get().await.map_err(unreadable_login_error)?)),
            None => Ok(None),
        }
    }

    /// Sends `message` once, with the login `login`. Returns whether it was sent: `false` if the server does not support
    /// addresses that are not ASCII, but the message has one.
    async fn try_to_send(&self, message: &Message, login: Option<&SmtpLogin>) -> Result<bool, SmtpStepError> {
        let mut connection = self.connections.take(login).await?;
        let (envelope, bytes) = (message.envelope(), message.formatted());
        let mut parameters = Vec::new();
        if !envelope.to().iter().chain(envelope.from()).all(|address| AsRef::<str>::as_ref(address).is_ascii()) {
            if !connection.server_info().supports_feature(Extension::SmtpUtfEight) {
                self.connections.put_back(connection, login).await;
                return Ok(false);
            }
            parameters.push(MailParameter::SmtpUtfEight);
        }
        if !bytes.is_ascii() {
            parameters.push(MailParameter::Body(MailBodyParameter::EightBitMime));
        }
        match send_in_steps(&mut connection, message, parameters, &bytes).await {
            Ok(()) => {
                self.connections.put_back(connection, login).await;
                Ok(true)
            }
            Err(error) => {
                end_connection(&mut connection).await;
                Err(error)
            }
        }
    }

    /// Sends `message`. If the server refuses the login and the login was replaced, sends the message again with the
    /// new login. A server that refuses the login has not accepted the message, so the mail is not sent twice.
    async fn send_message(&self, message: &Message, mail: &Mail) -> Result<(), MailError> {
        let login = self.current_login().await?;
        let mut sent = timeout(SEND_TIMEOUT, self.try_to_send(message, login.as_ref())).await;
        if let (Ok(Err(SmtpStepError { error, .. })), Some(secret), Some(refused)) = (&sent, &self.login, &login)
            && is_login_refused(error)
            && let Some(new) = secret.get_replacement(refused).await
        {
            sent = timeout(SEND_TIMEOUT, self.try_to_send(message, Some(&new))).await;
        }
        match sent {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => Err(self.error_without_smtputf8()),
            Ok(Err(SmtpStepError { step, error })) => {
                let in_punycode = message.envelope().to().first().map(ToString::to_string).unwrap_or_default();
                Err(smtp_mail_error(step, &error, &[mail.to.as_str(), &in_punycode]))
            }
            Err(_) => Err(smtp_timeout_error()),
        }
    }

    /// Returns the error for an address that the server cannot take, because it does not support SMTPUTF8.
    fn error_without_smtputf8(&self) -> MailError {
        let (fault, owner) = match AsRef::<str>::as_ref(&self.from.email).is_ascii() {
            true => (MailFault::RecipientPermanent, "recipient"),
            false => (MailFault::Settings, "sender"),
        };
        let reason = format!("the address of the {owner} is not ASCII, and the mail server does not support SMTPUTF8");
        MailError::new(fault, reason)
    }
}

#[async_trait]
impl Mailer for SmtpMailer {
    async fn send(&self, mail: &Mail) -> Result<(), MailError> {
        let message = encode_mail(mail, &self.from, recipient_address(&mail.to)?)?;
        self.send_message(&message, mail).await
    }
}

/// Sends `message`, whose encoded form is `bytes`, over `connection`. `parameters` are those of MAIL FROM.
async fn send_in_steps(
    connection: &mut AsyncSmtpConnection,
    message: &Message,
    parameters: Vec<MailParameter>,
    bytes: &[u8],
) -> Result<(), SmtpStepError> {
    let at = |step| move |error| SmtpStepError { step, error };
    let envelope = message.envelope();
    let sender = MailFrom::new(envelope.from().cloned(), parameters);
    connection.command(sender).await.map_err(at(SmtpStep::Sender))?;
    for recipient in envelope.to() {
        let recipient = Rcpt::new(recipient.clone(), Vec::new());
        connection.command(recipient).await.map_err(at(SmtpStep::Recipient))?;
    }
    connection.command(Data).await.map_err(at(SmtpStep::Message))?;
    connection.message(bytes).await.map(drop).map_err(at(SmtpStep::Message))
}

/// Converts the error of an unreadable login into a [`MailError`].
fn unreadable_login_error(error: ConfigError) -> MailError {
    MailError::new(MailFault::Settings, error.to_string())
}

/// Returns the error for a server that has not responded in time.
fn smtp_timeout_error() -> MailError {
    let reason = format!("the mail server did not respond within {} seconds", SEND_TIMEOUT.as_secs());
    MailError::new(MailFault::ServiceTransient, reason)
}

/// Converts `error`, which occurred at `step`, into a [`MailError`] with the server's own response, but without the
/// address of the recipient, which is `recipients` in all its forms.
fn smtp_mail_error(step: SmtpStep, error: &Error, recipients: &[&str]) -> MailError {
    let source = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    let text = redact_recipient(&source, recipients);
    if let Some(code) = error.status() {
        let reason = format!("the mail server responded to {step} with {code} {text}");
        // The address could contain one of the texts by which responses are classified.
        return MailError::new(classify_response(step, u16::from(code), &text), reason.trim_end());
    }
    let (fault, reason) = if error.is_tls() {
        (MailFault::Settings, format!("the connection to the mail server could not be encrypted: {text}"))
    } else if error.is_client() {
        (MailFault::Settings, format!("the mail server cannot be used: {text}"))
    } else if error.is_response() {
        (MailFault::ServiceTransient, format!("the mail server sent no complete response to {step}"))
    } else {
        (MailFault::ServiceTransient, format!("the connection to the mail server failed at {step}: {text}"))
    };
    MailError::new(fault, reason)
}

/// Returns whether the server refused the user or the password (RFC 4954, section 6).
fn is_login_refused(error: &Error) -> bool {
    error.status().is_some_and(|code| u16::from(code) == 535)
}
