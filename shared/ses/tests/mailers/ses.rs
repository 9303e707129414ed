//! Tests of the SES mailer with the real AWS SDK, against a stand-in for Amazon SES.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_sesv2::config::{Credentials, SharedCredentialsProvider};
use aws_smithy_async::rt::sleep::{AsyncSleep, Sleep};
use emulator::{ServerLimits, serve_http};
use mail::MailFault::{RecipientPermanent, ServiceTransient, Settings};
use mail::{Mail, MailError, MailKind, Mailer, tags};
use ses::{MAIL_NOT_ACCEPTED, SesMailer};
use testkit::{SesFault, SesServer};

use crate::example_mails::{
    FROM, assert_message_is, assert_no_personal_data, example_mail, example_mails, mail_with_injection,
};

/// The connection timeout of the mailer. [`FakeSleep`] recognizes the timeout by this duration.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The response timeout of the mailer. [`FakeSleep`] recognizes the timeout by this duration.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// A replacement for the SDK's sleep function. Delays before a retry end at once and are recorded, the connection
/// timeout never expires, and the response timeout expires when the stand-in hangs.
#[derive(Clone, Debug)]
struct FakeSleep {
    server: Arc<SesServer>,
    delays: Arc<Mutex<Vec<Duration>>>,
}

impl AsyncSleep for FakeSleep {
    fn sleep(&self, duration: Duration) -> Sleep {
        if duration == CONNECT_TIMEOUT {
            return Sleep::new(std::future::pending());
        }
        if duration == RESPONSE_TIMEOUT {
            let server = self.server.clone();
            return Sleep::new(async move { server.wait_until_request_hangs().await });
        }
        self.delays.lock().unwrap().push(duration);
        Sleep::new(async {})
    }
}

/// A mailer with a stand-in for Amazon SES, and the delays before the mailer's retries.
struct Ses {
    server: Arc<SesServer>,
    delays: Arc<Mutex<Vec<Duration>>>,
    sdk: SdkConfig,
    mailer: Arc<dyn Mailer>,
}

/// Returns an AWS configuration for the stand-in at `url`. The SDK waits with `sleep`.
fn sdk_config(url: &str, sleep: FakeSleep) -> SdkConfig {
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-west-1"))
        .credentials_provider(SharedCredentialsProvider::new(Credentials::new("local", "local", None, None, "test")))
        .endpoint_url(url)
        .sleep_impl(sleep)
        .build()
}

/// Creates the SES mailer that is tested.
fn mailer(url: &str, from: &str, sdk: &SdkConfig) -> Result<Arc<dyn Mailer>, MailError> {
    Ok(Arc::new(SesMailer::new(url, from, sdk)?))
}

impl Ses {
    /// Starts the stand-in, and creates a mailer with the mailer URL `url` that sends its mails to the stand-in.
    async fn new(url: &str) -> Self {
        let server = SesServer::new("roasters.example.com", "dueday");
        let listener = tokio::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(serve_http(listener, server.clone().router(), ServerLimits::default()));
        let delays = Arc::new(Mutex::default());
        let sdk = sdk_config(&endpoint, FakeSleep { server: server.clone(), delays: Arc::clone(&delays) });
        let mailer = mailer(url, FROM, &sdk).unwrap();
        Self { server, delays, sdk, mailer }
    }

    /// Sends a mail while the stand-in has `faults`, one per request. Returns the result, the number of accepted mails,
    /// and the number of requests.
    async fn send_with_faults(&self, faults: &[SesFault]) -> (Result<(), MailError>, usize, u64) {
        let (mails, requests) = (self.server.mails().len(), self.server.request_count());
        self.server.set_faults(faults.iter().copied());
        let result = self.mailer.send(&example_mail(MailKind::Paid, "en")).await;
        self.server.set_faults([]);
        (result, self.server.mails().len() - mails, self.server.request_count() - requests)
    }
}

#[tokio::test]
async fn every_mail_arrives_unchanged_with_its_tags() {
    let ses = Ses::new("ses:?configuration-set=dueday").await;
    for mail in example_mails() {
        ses.mailer.send(&mail).await.unwrap();
        let accepted = ses.server.mails().pop().unwrap();
        assert_message_is(&accepted.raw, &mail);
        assert_eq!(accepted.to, [mail.to.as_str()]);
        assert_eq!(accepted.configuration_set.as_deref(), Some("dueday"));
        let expected = [("account", "acme_-eu__1".to_owned()), ("occasion", mail.kind.to_string())];
        let expected: BTreeMap<_, _> = expected.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        assert_eq!(accepted.tags, expected);
        assert_eq!(tags::account_from_tag(&accepted.tags[tags::ACCOUNT_TAG]), Some(mail.account));
    }
    assert_eq!(ses.server.mails().len(), 112, "sixteen kinds in seven languages");
}

#[tokio::test]
async fn configuration_set_of_the_url_is_sent_to_ses() {
    let ses = Ses::new("ses:").await;
    ses.mailer.send(&example_mail(MailKind::Upcoming, "en")).await.unwrap();
    assert_eq!(ses.server.mails()[0].configuration_set, None);
    let other = Ses::new("ses:?configuration-set=other").await;
    let error = other.mailer.send(&example_mail(MailKind::Upcoming, "en")).await.unwrap_err();
    assert!(error.reason.starts_with("Amazon SES responded with NotFoundException: "), "{error}");
    assert_eq!(error.fault, Settings);
}

#[tokio::test]
async fn texts_cannot_inject_headers_or_recipients() {
    let ses = Ses::new("ses:").await;
    ses.mailer.send(&mail_with_injection()).await.unwrap();
    let accepted = ses.server.mails().pop().unwrap();
    assert_message_is(&accepted.raw, &mail_with_injection());
    assert_eq!(accepted.to, ["billing@acme.example.com"]);
    for from in ["Shop\r\nBcc: eve@example.com <shop@roasters.example.com>", "a@b.example\r\nBcc: eve@example.com"] {
        assert!(mailer("ses:", from, &ses.sdk).is_err(), "{from:?}");
    }
}

#[tokio::test]
async fn errors_of_ses_are_classified_and_contain_no_address() {
    let ses = Ses::new("ses:").await;
    for (fault, code, expected) in [
        (SesFault::AccountSuspended, "AccountSuspendedException", Settings),
        (SesFault::BadRequest, "BadRequestException", Settings),
        (SesFault::IllegalAddress, "BadRequestException", RecipientPermanent),
        (SesFault::LimitExceeded, "LimitExceededException", ServiceTransient),
        (SesFault::MailFromDomainNotVerified, "MailFromDomainNotVerifiedException", Settings),
        (SesFault::MessageRejected, "MessageRejected", Settings),
        (SesFault::NotFound, "NotFoundException", Settings),
        (SesFault::SendingPaused, "SendingPausedException", Settings),
        (SesFault::Internal, "InternalServiceErrorException", ServiceTransient),
    ] {
        let (result, accepted, requests) = ses.send_with_faults(&[fault]).await;
        let error = result.unwrap_err();
        assert_eq!((accepted, requests), (0, 1), "{fault:?}: no retry");
        let reason = format!("Amazon SES responded with {code}: ");
        assert!(error.reason.starts_with(&reason), "{error}");
        assert_eq!(error.fault, expected, "{error}");
        assert_no_personal_data(&error, &example_mail(MailKind::Paid, "en"));
    }
}

#[tokio::test]
async fn address_that_is_not_ascii_is_refused_and_its_domain_is_sent_in_punycode() {
    let ses = Ses::new("ses:").await;
    let mail = |to: &str| Mail { to: to.parse().unwrap(), ..example_mail(MailKind::Paid, "en") };
    let error = ses.mailer.send(&mail("jörg@example.com")).await.unwrap_err();
    assert_eq!(error.fault, RecipientPermanent, "{error}");
    assert_no_personal_data(&error, &mail("jörg@example.com"));
    assert_eq!(ses.server.request_count(), 0);
    ses.mailer.send(&mail("ada@bücher.example")).await.unwrap();
    assert_eq!(ses.server.mails()[0].to, ["ada@xn--bcher-kva.example"]);
}

#[tokio::test]
async fn throttled_mail_is_retried_for_a_limited_time() {
    let ses = Ses::new("ses:").await;
    let (result, accepted, requests) = ses.send_with_faults(&[SesFault::TooManyRequests; 3]).await;
    assert!(result.is_ok());
    assert_eq!((accepted, requests), (1, 4));
    assert_eq!(ses.delays.lock().unwrap().len(), 3);

    let (result, accepted, requests) = ses.send_with_faults(&[SesFault::TooManyRequests; 100]).await;
    assert_eq!(result.unwrap_err().fault, ServiceTransient);
    let total_delay: Duration = ses.delays.lock().unwrap().drain(3..).sum();
    assert!(accepted == 0 && (4..30).contains(&requests), "{requests}");
    assert!(total_delay >= Duration::from_secs(6) && total_delay <= Duration::from_secs(14), "{total_delay:?}");
}

/// A log writer that keeps the output in memory.
#[derive(Clone, Default)]
struct LogBuffer(Arc<Mutex<Vec<u8>>>);

impl Write for LogBuffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Checks the log lines that the metric filter of an alarm counts.
#[tokio::test]
async fn error_response_of_ses_is_logged_with_its_code_and_a_lost_response_is_not() {
    let ses = Ses::new("ses:").await;
    let kept = LogBuffer::default();
    let writer = kept.clone();
    let lines = tracing_subscriber::fmt().json().with_writer(move || writer.clone()).finish();
    let logging = testkit::capture_logs(lines);
    for fault in [SesFault::SendingPaused, SesFault::LostAfter, SesFault::LimitExceeded] {
        assert!(ses.send_with_faults(&[fault]).await.0.is_err());
    }
    assert!(ses.send_with_faults(&[SesFault::TooManyRequests]).await.0.is_ok());
    drop(logging);
    let logged = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
    let logged: Vec<serde_json::Value> = logged.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let logged = logged.iter().map(|line| &line["fields"]).filter(|fields| fields["message"] == MAIL_NOT_ACCEPTED);
    let types: Vec<&str> = logged
        .inspect(|fields| assert!(!fields.to_string().contains('@'), "{fields}"))
        .map(|fields| fields["error_type"].as_str().unwrap())
        .collect();
    assert_eq!(types, ["SendingPausedException", "LimitExceededException"]);
}

#[tokio::test]
async fn mail_is_not_retried_after_a_lost_response() {
    let ses = Ses::new("ses:").await;
    for fault in [SesFault::LostAfter, SesFault::HangsAfter] {
        let (result, accepted, requests) = ses.send_with_faults(&[fault]).await;
        let error = result.unwrap_err();
        assert_eq!((accepted, requests), (1, 1), "{fault:?}");
        assert_eq!(error.fault, ServiceTransient);
        assert_no_personal_data(&error, &example_mail(MailKind::Paid, "en"));
    }
    assert!(ses.delays.lock().unwrap().is_empty());
}

#[tokio::test]
async fn refused_connection_is_retried_and_then_reported() {
    let ses = Ses::new("ses:").await;
    let closed_listener = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("http://{}", closed_listener.local_addr().unwrap());
    drop(closed_listener);
    let sleep = FakeSleep { server: ses.server.clone(), delays: ses.delays.clone() };
    let mailer = mailer("ses:", FROM, &sdk_config(&url, sleep)).unwrap();
    let error = mailer.send(&example_mail(MailKind::Paid, "en")).await.unwrap_err();
    let reason = "Amazon SES could not be reached or did not respond: dispatch failure: io error: ";
    assert!(error.reason.starts_with(reason), "{error}");
    assert_eq!(error.fault, ServiceTransient);
    assert!(ses.delays.lock().unwrap().len() >= 3);
}

#[tokio::test]
async fn mailer_rejects_an_invalid_url_and_a_missing_region() {
    let ses = Ses::new("ses:").await;
    let long = format!("ses:?configuration-set={}", "x".repeat(65));
    for url in ["ses:x", "ses:?configuration-set=", "ses:?configuration-set=a b", "ses:?set=a", "ses://", &long] {
        let error = mailer(url, FROM, &ses.sdk).unwrap_err();
        assert_eq!(error.reason, "the URL for Amazon SES must be ses: or ses:?configuration-set=NAME", "{url}");
    }
    let sdk_without_region = SdkConfig::builder().behavior_version(BehaviorVersion::latest()).build();
    let error = mailer("ses:", FROM, &sdk_without_region).unwrap_err();
    assert!(error.reason.contains("AWS_REGION"), "{error}");
}
