//! Amazon SES by its API, version 2. The message is written as for SMTP, and sent as it is.
//!
//! The API knows no idempotency key: a mail that is sent twice arrives twice. A request is made again only when SES has certainly
//! not taken the mail: it was throttled, or nothing listened. After a lost answer the mail is not known to have left, and whoever
//! sends it decides; see [`Mailer::send`].
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use aws_config::SdkConfig;
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

use mail::tags::{self, tag_of};
use mail::{Mail, MailError, Mailer, encode, sender};

/// What comes before the name of a configuration set in the URL.
const CONFIGURATION_SET: &str = "?configuration-set=";
/// Names of configuration sets are at most so long ("CreateConfigurationSet" in the API reference).
const MAX_NAME_CHARS: usize = 64;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// SES is given this long to answer. A request that is given up may have been carried out: rather wait.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// The waits before a request is made again, and what they add up to. With the last answer that is 20 seconds, as a mail server has.
const MIN_DELAY: Duration = Duration::from_millis(500);
const MAX_DELAY: Duration = Duration::from_secs(2);
const TOTAL_DELAY: Duration = Duration::from_secs(10);

/// The mailer of a function at `url`: `ses:` or `ses:?configuration-set=NAME` for Amazon SES as `sdk` reaches it, or what
/// [`mail::mailer`] knows.
///
/// # Errors
/// [`MailError`] if `url` or `from` is not one.
pub fn mailer(url: &str, from: &str, sdk: &SdkConfig) -> Result<Arc<dyn Mailer>, MailError> {
    if url.starts_with("ses:") { Ok(Arc::new(Ses::new(url, from, sdk)?)) } else { mail::mailer(url, from) }
}

/// Amazon SES.
#[derive(Clone, Debug)]
pub struct Ses {
    client: Client,
    from: Mailbox,
    configuration_set: Option<String>,
}

impl Ses {
    /// SES in the region and with the credentials of `sdk`; `url` is `ses:`, or `ses:?configuration-set=NAME`.
    ///
    /// # Errors
    /// [`MailError`] if `url` or `from` is not one, or there is no region.
    pub fn new(url: &str, from: &str, sdk: &SdkConfig) -> Result<Self, MailError> {
        let configuration_set = match url.strip_prefix("ses:") {
            Some("") => None,
            Some(query) => Some(query.strip_prefix(CONFIGURATION_SET).filter(|name| is_name(name)).ok_or_else(wrong)?),
            None => return Err(wrong()),
        };
        let from = sender(from)?;
        if !AsRef::<str>::as_ref(&from.email).is_ascii() {
            return Err(permanent("the sender's address must be ASCII, its domain in Punycode"));
        }
        if sdk.region().is_none() {
            return Err(permanent("Amazon SES needs a region: set AWS_REGION"));
        }
        let timeouts =
            TimeoutConfig::builder().connect_timeout(CONNECT_TIMEOUT).operation_attempt_timeout(ANSWER_TIMEOUT).build();
        let config = Builder::from(sdk)
            .timeout_config(timeouts)
            // The SDK would make a request again after a lost answer, too.
            .retry_config(RetryConfig::disabled())
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .build();
        let configuration_set = configuration_set.map(str::to_owned);
        Ok(Self { client: Client::from_conf(config), from, configuration_set })
    }
}

#[async_trait]
impl Mailer for Ses {
    async fn send(&self, mail: &Mail) -> Result<(), MailError> {
        // "Destination" in the API reference. What SES can never take is refused here, for good: its own errors tell the recipient's
        // faults from the sender's by sentences alone.
        if !mail.to.as_str().is_ascii() {
            return Err(permanent("Amazon SES takes addresses of ASCII characters alone, a domain in Punycode"));
        }
        let raw = RawMessage::builder().data(Blob::new(encode(mail, &self.from)?.formatted())).build();
        let raw = raw.map_err(|_| permanent("a mail must not be empty"))?;
        let request = self
            .client
            .send_email()
            .destination(Destination::builder().to_addresses(mail.to.as_str()).build())
            .content(EmailContent::builder().raw(raw).build())
            .email_tags(tag(tags::ACCOUNT, &tag_of(&mail.account))?)
            .email_tags(tag(tags::OCCASION, &mail.occasion.to_string())?)
            .set_configuration_set_name(self.configuration_set.clone());
        let delays = ExponentialBuilder::new().with_min_delay(MIN_DELAY).with_max_delay(MAX_DELAY).with_jitter();
        let mut delays = delays.without_max_times().with_total_delay(Some(TOTAL_DELAY)).build();
        loop {
            let Err(error) = request.clone().send().await else { return Ok(()) };
            match delays.next().filter(|_| is_not_taken(&error)) {
                Some(delay) => self.wait(delay).await,
                None => return Err(told(&error)),
            }
        }
    }
}

impl Ses {
    /// As the SDK waits.
    async fn wait(&self, delay: Duration) {
        if let Some(sleep) = self.client.config().sleep_impl() {
            sleep.sleep(delay).await;
        }
    }
}

/// Whether SES has certainly not taken the mail, and may take it in a moment.
fn is_not_taken(error: &SdkError<SendEmailError>) -> bool {
    matches!(error.code(), Some("TooManyRequestsException" | "ThrottlingException" | "Throttling"))
        || was_refused(error)
}

/// Whether no connection was had because nobody listens there. Of one that breaks later it is not known what has arrived.
fn was_refused(error: &SdkError<SendEmailError>) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// What SES says may repeat addresses: only its code is told. No code is of the recipient alone: `MessageRejected` is also what an
/// account in the sandbox is told, `BadRequestException` what one with a wrong configuration set is. All of that can be mended; an
/// address that takes no mail is a bounce, later.
fn told(error: &SdkError<SendEmailError>) -> MailError {
    let is_code = |code: &&str| code.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let status = || error.raw_response().map(|response| response.status().to_string());
    let answered = error.code().filter(is_code).map(str::to_owned).or_else(status);
    let reason = answered.map_or_else(
        || "Amazon SES could not be reached, or did not answer".to_owned(),
        |answered| format!("Amazon SES answered {answered}"),
    );
    MailError { reason, is_transient: true }
}

fn tag(name: &str, value: &str) -> Result<MessageTag, MailError> {
    MessageTag::builder().name(name).value(value).build().map_err(|_| permanent("a tag must not be empty"))
}

fn is_name(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=MAX_NAME_CHARS).contains(&text.len()) && text.bytes().all(is_allowed)
}

fn wrong() -> MailError {
    permanent("Amazon SES is ses:, or ses:?configuration-set=NAME")
}

fn permanent(reason: &str) -> MailError {
    MailError { reason: reason.to_owned(), is_transient: false }
}
