//! Sends mails with the Amazon SES API, version 2. The message has the same encoding as for SMTP and is sent as raw
//! data.
//!
//! The API has no idempotency keys: if a request is sent twice, the customer gets the mail twice. A request is retried
//! only if SES has certainly not accepted the mail, because SES throttled the request or refused the connection. If the
//! response is lost, it is unknown whether the mail was sent, and the caller decides whether to send the mail again;
//! see [`Mailer::send`].
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod fault;

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use aws_config::SdkConfig;
use aws_errors::AwsRequestError;
use aws_sdk_sesv2::Client;
use aws_sdk_sesv2::config::retry::RetryConfig;
use aws_sdk_sesv2::config::timeout::TimeoutConfig;
use aws_sdk_sesv2::config::{AsyncSleep as _, Builder, StalledStreamProtectionConfig};
use aws_sdk_sesv2::error::{ProvideErrorMetadata as _, SdkError};
use aws_sdk_sesv2::operation::send_email::SendEmailError;
use aws_sdk_sesv2::primitives::Blob;
use aws_sdk_sesv2::types::{Destination, EmailContent, MessageTag, RawMessage};
use backon::{BackoffBuilder as _, ExponentialBuilder};
use lettre::message::Mailbox;

use clock::Clock;
use config::{ConfigError, Env};
use mail::tags::{self, account_tag};
use mail::{
    MAIL_FROM, MAIL_LOGIN_SECRET_NAME, MAIL_URL, Mail, MailError, MailFault, Mailer, SmtpMailer, encode_mail,
    parse_sender, parse_smtp_login, recipient_address,
};

/// The log message if Amazon SES responds to the last try to send a mail with an error that does not concern only the
/// recipient, for example because a sending quota is used up. An alarm in `template.yaml` matches this text.
pub const MAIL_NOT_ACCEPTED: &str = "Amazon SES has not accepted a mail";

/// The text before the name of a configuration set in a mailer URL.
const CONFIGURATION_SET: &str = "?configuration-set=";
/// The maximum length of a configuration set's name, in characters ("CreateConfigurationSet" in the API reference).
const MAX_NAME_CHARS: usize = 64;

/// The maximum time to connect to SES.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The maximum time to wait for a response of SES. It is long, because after a timeout it is unknown whether SES has
/// sent the mail.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
/// The delay before the first retry of a request that SES has certainly not accepted.
const MIN_DELAY: Duration = Duration::from_millis(500);
/// The longest delay before a retry.
const MAX_DELAY: Duration = Duration::from_secs(2);
/// The maximum sum of all delays before retries. Together with the timeout of the last request, sending a mail takes at
/// most 20 seconds, which is also the timeout for a mail server.
const TOTAL_DELAY: Duration = Duration::from_secs(10);

/// The reason why the mailer could not be created.
#[derive(Debug, thiserror::Error)]
pub enum MailerError {
    /// A variable is missing.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The URL or the sender is not valid.
    #[error("the mailer of DUEDAY_MAIL_URL and DUEDAY_MAIL_FROM cannot be created: {}", .0.reason)]
    Mail(#[from] MailError),
}

/// Creates the mailer of a Lambda function from the environment variables `env`. `DUEDAY_MAIL_URL` selects the mail
/// service: `ses:` or `ses:?configuration-set=NAME` for Amazon SES with the AWS configuration `sdk`, or any URL that
/// [`mail::create_mailer`] supports. `DUEDAY_MAIL_FROM` is the sender. If `DUEDAY_MAIL_LOGIN_SECRET_NAME` is set, the
/// user and the password of the mail server are read from AWS Secrets Manager when the first mail is sent, again when
/// they may be outdated (by the time of `clock`), and again when the server refuses them.
///
/// # Errors
/// [`MailerError`] if a variable is missing or not valid.
pub fn create_configured_mailer(
    env: Env<'_>,
    sdk: &SdkConfig,
    clock: Arc<dyn Clock>,
) -> Result<Arc<dyn Mailer>, MailerError> {
    let (url, from) = (env.required_text(&MAIL_URL)?, env.required_text(&MAIL_FROM)?);
    if url.starts_with("ses:") {
        return Ok(Arc::new(SesMailer::new(&url, &from, sdk)?));
    }
    let Some(name) = env.get(&MAIL_LOGIN_SECRET_NAME) else { return Ok(mail::create_mailer(&url, &from)?) };
    let login = secrets::create_current_secret(sdk, &MAIL_LOGIN_SECRET_NAME, name, parse_smtp_login, clock);
    Ok(Arc::new(SmtpMailer::new(&url, &from)?.with_login(login)))
}

/// A mailer that sends mails with Amazon SES.
#[derive(Clone, Debug)]
pub struct SesMailer {
    client: Client,
    from: Mailbox,
    configuration_set: Option<String>,
}

impl SesMailer {
    /// Creates a mailer with the region and the credentials of `sdk`. `url` is `ses:` or `ses:?configuration-set=NAME`.
    ///
    /// # Errors
    /// Returns an error if `url` or `from` is not valid, or `sdk` has no region.
    pub fn new(url: &str, from: &str, sdk: &SdkConfig) -> Result<Self, MailError> {
        let configuration_set = match url.strip_prefix("ses:") {
            Some("") => None,
            Some(query) => Some(
                query
                    .strip_prefix(CONFIGURATION_SET)
                    .filter(|name| is_configuration_set_name(name))
                    .ok_or_else(invalid_ses_url_error)?,
            ),
            None => return Err(invalid_ses_url_error()),
        };
        let from = parse_sender(from)?;
        if !AsRef::<str>::as_ref(&from.email).is_ascii() {
            return Err(mail_settings_error("the local part of the sender's address must be ASCII"));
        }
        if sdk.region().is_none() {
            return Err(mail_settings_error("Amazon SES needs a region: set AWS_REGION"));
        }
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .operation_attempt_timeout(RESPONSE_TIMEOUT)
            .build();
        let config = Builder::from(sdk)
            .timeout_config(timeouts)
            // Disable the SDK's retries: the SDK would also retry a request whose response was lost, and the mail might
            // be sent twice.
            .retry_config(RetryConfig::disabled())
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .build();
        let configuration_set = configuration_set.map(str::to_owned);
        Ok(Self { client: Client::from_conf(config), from, configuration_set })
    }
}

#[async_trait]
impl Mailer for SesMailer {
    async fn send(&self, mail: &Mail) -> Result<(), MailError> {
        let recipient = recipient_address(&mail.to)?;
        // SES does not support SMTPUTF8 ("Destination" in the API reference).
        if !AsRef::<str>::as_ref(&recipient).is_ascii() {
            let reason = "Amazon SES accepts only ASCII characters in the local part of an address";
            return Err(MailError::new(MailFault::RecipientPermanent, reason));
        }
        let to = recipient.to_string();
        let raw = RawMessage::builder().data(Blob::new(encode_mail(mail, &self.from, recipient)?.formatted())).build();
        let raw = raw.map_err(|_| mail_settings_error("a mail must not be empty"))?;
        let request = self
            .client
            .send_email()
            .destination(Destination::builder().to_addresses(to).build())
            .content(EmailContent::builder().raw(raw).build())
            .email_tags(build_message_tag(tags::ACCOUNT_TAG, &account_tag(&mail.account))?)
            .email_tags(build_message_tag(tags::MAIL_KIND_TAG, &mail.kind.to_string())?)
            .set_configuration_set_name(self.configuration_set.clone());
        let delays = ExponentialBuilder::new().with_min_delay(MIN_DELAY).with_max_delay(MAX_DELAY).with_jitter();
        let mut delays = delays.without_max_times().with_total_delay(Some(TOTAL_DELAY)).build();
        loop {
            let Err(error) = request.clone().send().await else { return Ok(()) };
            match delays.next().filter(|_| is_safe_to_retry(&error)) {
                Some(delay) => self.wait_before_retry(delay).await,
                None => {
                    let mail_error = convert_ses_error(&error);
                    if !mail_error.fault.concerns_only_recipient() {
                        log_ses_error_code(mail, &error);
                    }
                    return Err(mail_error);
                }
            }
        }
    }
}

impl SesMailer {
    /// Waits for `delay` with the sleep function of the SDK. Tests replace this function, so that they do not wait.
    async fn wait_before_retry(&self, delay: Duration) {
        if let Some(sleep) = self.client.config().sleep_impl() {
            sleep.sleep(delay).await;
        }
    }
}

/// Returns whether SES has certainly not accepted the mail and may accept it shortly.
fn is_safe_to_retry(error: &SdkError<SendEmailError>) -> bool {
    matches!(error.code(), Some("TooManyRequestsException" | "ThrottlingException" | "Throttling"))
        || is_connection_refused(error)
}

/// Returns whether the connection was refused, so that SES did not receive the request. If a connection breaks later,
/// SES may have received the request.
fn is_connection_refused(error: &SdkError<SendEmailError>) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Converts an error of SES into a [`MailError`], without the mail addresses that the text of SES may contain.
fn convert_ses_error(error: &SdkError<SendEmailError>) -> MailError {
    let cause = AwsRequestError::new(error);
    match error.raw_response() {
        Some(response) => {
            let code = cause.code.as_deref().unwrap_or_default();
            let fault = fault::classify_ses_response(response.status().as_u16(), code, cause.innermost_text());
            MailError::new(fault, format!("Amazon SES responded with {cause}"))
        }
        None => {
            let reason = format!("Amazon SES could not be reached or did not respond: {cause}");
            MailError::new(MailFault::ServiceTransient, reason)
        }
    }
}

/// Logs the error code of SES for the final try to send `mail`; the caller logs the whole error. Logs nothing if there was no response, because SES
/// may then have accepted the mail, but the log message states that it did not.
fn log_ses_error_code(mail: &Mail, error: &SdkError<SendEmailError>) {
    if error.raw_response().is_some() {
        let error_type = error.code().filter(|code| is_ses_error_code(code)).unwrap_or("Unknown");
        tracing::warn!(account = %mail.account, kind = %mail.kind, error_type, "{MAIL_NOT_ACCEPTED}");
    }
}

/// Returns whether `text` consists of letters and digits only, like the error codes of SES.
fn is_ses_error_code(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Returns a tag that is sent to SES together with a mail.
fn build_message_tag(name: &str, value: &str) -> Result<MessageTag, MailError> {
    MessageTag::builder().name(name).value(value).build().map_err(|_| mail_settings_error("a tag must not be empty"))
}

/// Returns whether `text` is a possible name of a configuration set.
fn is_configuration_set_name(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=MAX_NAME_CHARS).contains(&text.len()) && text.bytes().all(is_allowed)
}

/// Returns the error for a URL that does not have the form of an SES URL.
fn invalid_ses_url_error() -> MailError {
    mail_settings_error("the URL for Amazon SES must be ses: or ses:?configuration-set=NAME")
}

/// Returns an error with which no mail can be sent.
fn mail_settings_error(reason: &str) -> MailError {
    MailError::new(MailFault::Settings, reason)
}
