//! Amazon SES, through the real SDK.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_sesv2::config::{Credentials, SharedCredentialsProvider};
use aws_smithy_async::rt::sleep::{AsyncSleep, Sleep};
use emulator::{Limits, serve};
use mail::{Mail, MailError, Mailer, Occasion, tags};
use ses::mailer;
use testkit::{SesFault, SesServer};

use crate::letter::{FROM, assert_is, assert_tells_nothing, hostile, letter, letters};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Time as the SDK sees it: waits before a retry are over at once, a connection is never late, and an answer is when SES hangs.
#[derive(Clone, Debug)]
struct Waits {
    server: Arc<SesServer>,
    waited: Arc<Mutex<Vec<Duration>>>,
}

impl AsyncSleep for Waits {
    fn sleep(&self, duration: Duration) -> Sleep {
        if duration == CONNECT_TIMEOUT {
            return Sleep::new(std::future::pending());
        }
        if duration == ANSWER_TIMEOUT {
            let server = self.server.clone();
            return Sleep::new(async move { server.hangs().await });
        }
        self.waited.lock().unwrap().push(duration);
        Sleep::new(async {})
    }
}

struct Ses {
    server: Arc<SesServer>,
    waited: Arc<Mutex<Vec<Duration>>>,
    sdk: SdkConfig,
    mailer: Arc<dyn Mailer>,
}

fn sdk(url: &str, waits: Waits) -> SdkConfig {
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-west-1"))
        .credentials_provider(SharedCredentialsProvider::new(Credentials::new("local", "local", None, None, "test")))
        .endpoint_url(url)
        .sleep_impl(waits)
        .build()
}

impl Ses {
    async fn new(url: &str) -> Self {
        let server = SesServer::new("roasters.example.com", "dueday");
        let listener = tokio::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(serve(listener, server.clone().router(), Limits::default()));
        let waited = Arc::new(Mutex::default());
        let sdk = sdk(&endpoint, Waits { server: server.clone(), waited: Arc::clone(&waited) });
        let mailer = mailer(url, FROM, &sdk).unwrap();
        Self { server, waited, sdk, mailer }
    }

    /// What came of sending a mail with these faults: the error, how many mails were taken, and by how many requests.
    async fn sent(&self, faults: &[SesFault]) -> (Result<(), MailError>, usize, u64) {
        let (mails, requests) = (self.server.mails().len(), self.server.requests());
        self.server.next(faults.iter().copied());
        let sent = self.mailer.send(&letter(Occasion::Paid, "en")).await;
        self.server.next([]);
        (sent, self.server.mails().len() - mails, self.server.requests() - requests)
    }
}

#[tokio::test]
async fn every_mail_arrives_as_it_was_composed_with_what_it_is_about() {
    let ses = Ses::new("ses:?configuration-set=dueday").await;
    for mail in letters() {
        ses.mailer.send(&mail).await.unwrap();
        let taken = ses.server.mails().pop().unwrap();
        assert_is(&taken.raw, &mail);
        assert_eq!(taken.to, [mail.to.as_str()]);
        assert_eq!(taken.configuration_set.as_deref(), Some("dueday"));
        let expected = [("account", "acme_-eu__1".to_owned()), ("occasion", mail.occasion.to_string())];
        let expected: BTreeMap<_, _> = expected.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        assert_eq!(taken.tags, expected);
        assert_eq!(tags::account_of(&taken.tags[tags::ACCOUNT]), Some(mail.account));
    }
    assert_eq!(ses.server.mails().len(), 24);
}

#[tokio::test]
async fn configuration_set_is_named_only_when_the_url_names_it() {
    let ses = Ses::new("ses:").await;
    ses.mailer.send(&letter(Occasion::Upcoming, "en")).await.unwrap();
    assert_eq!(ses.server.mails()[0].configuration_set, None);
    let other = Ses::new("ses:?configuration-set=other").await;
    let error = other.mailer.send(&letter(Occasion::Upcoming, "en")).await.unwrap_err();
    assert_eq!((error.reason.as_str(), error.is_transient), ("Amazon SES answered NotFoundException", true));
}

#[tokio::test]
async fn texts_add_no_header_and_no_recipient() {
    let ses = Ses::new("ses:").await;
    ses.mailer.send(&hostile()).await.unwrap();
    let taken = ses.server.mails().pop().unwrap();
    assert_is(&taken.raw, &hostile());
    assert_eq!(taken.to, ["billing@acme.example.com"]);
    for from in ["Shop\r\nBcc: eve@example.com <shop@roasters.example.com>", "a@b.example\r\nBcc: eve@example.com"] {
        assert!(mailer("ses:", from, &ses.sdk).is_err(), "{from:?}");
    }
}

#[tokio::test]
async fn errors_can_be_mended_and_tell_no_address() {
    let ses = Ses::new("ses:").await;
    for (fault, code) in [
        (SesFault::AccountSuspended, "AccountSuspendedException"),
        (SesFault::BadRequest, "BadRequestException"),
        (SesFault::LimitExceeded, "LimitExceededException"),
        (SesFault::MailFromDomainNotVerified, "MailFromDomainNotVerifiedException"),
        (SesFault::MessageRejected, "MessageRejected"),
        (SesFault::NotFound, "NotFoundException"),
        (SesFault::SendingPaused, "SendingPausedException"),
        (SesFault::Internal, "InternalServiceErrorException"),
    ] {
        let (sent, taken, requests) = ses.sent(&[fault]).await;
        let error = sent.unwrap_err();
        assert_eq!((taken, requests), (0, 1), "{fault:?}: asked once");
        assert_eq!((error.reason.as_str(), error.is_transient), (format!("Amazon SES answered {code}").as_str(), true));
        assert_tells_nothing(&error, &letter(Occasion::Paid, "en"));
    }
    let nobody = Mail { to: "jörg@example.com".parse().unwrap(), ..letter(Occasion::Paid, "en") };
    let error = ses.mailer.send(&nobody).await.unwrap_err();
    assert!(!error.is_transient, "SES takes no such address: {error}");
    assert_tells_nothing(&error, &nobody);
}

#[tokio::test]
async fn throttled_mail_is_sent_again_for_a_while() {
    let ses = Ses::new("ses:").await;
    let (sent, taken, requests) = ses.sent(&[SesFault::TooManyRequests; 3]).await;
    assert!(sent.is_ok());
    assert_eq!((taken, requests), (1, 4));
    assert_eq!(ses.waited.lock().unwrap().len(), 3);

    let (sent, taken, requests) = ses.sent(&[SesFault::TooManyRequests; 100]).await;
    assert!(sent.unwrap_err().is_transient);
    let waited: Duration = ses.waited.lock().unwrap().drain(3..).sum();
    assert!(taken == 0 && (4..30).contains(&requests), "{requests}");
    assert!(waited >= Duration::from_secs(6) && waited <= Duration::from_secs(14), "{waited:?}");
}

#[tokio::test]
async fn mail_whose_answer_is_lost_is_not_sent_again() {
    let ses = Ses::new("ses:").await;
    for fault in [SesFault::LostAfter, SesFault::HangsAfter] {
        let (sent, taken, requests) = ses.sent(&[fault]).await;
        let error = sent.unwrap_err();
        assert_eq!((taken, requests), (1, 1), "{fault:?}");
        assert!(error.is_transient);
        assert_tells_nothing(&error, &letter(Occasion::Paid, "en"));
    }
    assert!(ses.waited.lock().unwrap().is_empty());
}

#[tokio::test]
async fn server_that_is_away_is_asked_again_and_told_as_away() {
    let ses = Ses::new("ses:").await;
    let nobody = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("http://{}", nobody.local_addr().unwrap());
    drop(nobody);
    let waits = Waits { server: ses.server.clone(), waited: ses.waited.clone() };
    let mailer = mailer("ses:", FROM, &sdk(&url, waits)).unwrap();
    let error = mailer.send(&letter(Occasion::Paid, "en")).await.unwrap_err();
    assert_eq!(
        (error.reason.as_str(), error.is_transient),
        ("Amazon SES could not be reached, or did not answer", true)
    );
    assert!(ses.waited.lock().unwrap().len() >= 3);
}

#[tokio::test]
async fn mailer_refuses_a_url_that_is_none_and_a_place_without_a_region() {
    let ses = Ses::new("ses:").await;
    let long = format!("ses:?configuration-set={}", "x".repeat(65));
    for url in ["ses:x", "ses:?configuration-set=", "ses:?configuration-set=a b", "ses:?set=a", "ses://", &long] {
        let error = mailer(url, FROM, &ses.sdk).unwrap_err();
        assert_eq!(error.reason, "Amazon SES is ses:, or ses:?configuration-set=NAME", "{url}");
    }
    let nowhere = SdkConfig::builder().behavior_version(BehaviorVersion::latest()).build();
    let error = mailer("ses:", FROM, &nowhere).unwrap_err();
    assert!(error.reason.contains("AWS_REGION"), "{error}");
}
