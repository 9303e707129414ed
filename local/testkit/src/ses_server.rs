//! A strict stand-in for the Amazon SES API, version 2. It supports only `SendEmail` with raw content, rejects requests
//! that break a documented rule, records the accepted mails, and sends nothing.

mod rules;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::stream;
use serde_json::json;
use tokio::sync::Notify;

use rules::{MAX_REQUEST_BYTES, SesRejection};

/// The response header that contains the name of the error ("Common Errors" in the API reference).
const ERROR_TYPE: HeaderName = HeaderName::from_static("x-amzn-errortype");

/// A fault that the stand-in injects into a valid request. Most faults are errors of `SendEmail` in the API reference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SesFault {
    AccountSuspended,
    BadRequest,
    /// SES refuses the address of the recipient.
    IllegalAddress,
    LimitExceeded,
    MailFromDomainNotVerified,
    MessageRejected,
    NotFound,
    SendingPaused,
    TooManyRequests,
    /// The server has an internal error and does not accept the mail.
    Internal,
    /// The server accepts the mail, but the response is lost.
    LostAfter,
    /// The server accepts the mail and never responds.
    HangsAfter,
}

impl SesFault {
    /// Returns the HTTP status and the name of the error response, or `None` if the fault has no error response.
    fn error_response(self) -> Option<(u16, &'static str)> {
        Some(match self {
            Self::AccountSuspended => (400, "AccountSuspendedException"),
            Self::BadRequest | Self::IllegalAddress => (400, "BadRequestException"),
            Self::LimitExceeded => (400, "LimitExceededException"),
            Self::MailFromDomainNotVerified => (400, "MailFromDomainNotVerifiedException"),
            Self::MessageRejected => (400, "MessageRejected"),
            Self::NotFound => (404, "NotFoundException"),
            Self::SendingPaused => (400, "SendingPausedException"),
            Self::TooManyRequests => (429, "TooManyRequestsException"),
            Self::Internal => (500, "InternalServiceErrorException"),
            Self::LostAfter | Self::HangsAfter => return None,
        })
    }
}

/// A mail that the stand-in accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SesMail {
    /// The mail in the Internet message format.
    pub raw: Vec<u8>,
    pub to: Vec<String>,
    pub tags: BTreeMap<String, String>,
    pub configuration_set: Option<String>,
}

/// The accepted mails, the faults of the next requests, and the number of all requests.
#[derive(Default)]
struct SesServerState {
    mails: Vec<SesMail>,
    /// The faults of the next valid requests.
    faults: VecDeque<SesFault>,
    requests: u64,
}

/// The stand-in for Amazon SES.
pub struct SesServer {
    /// The domain from which mails may be sent.
    identity: String,
    configuration_set: String,
    state: Mutex<SesServerState>,
    /// Is notified when a request starts to hang ([`SesFault::HangsAfter`]).
    hanging: Notify,
}

impl std::fmt::Debug for SesServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SesServer").field("requests", &self.request_count()).finish_non_exhaustive()
    }
}

impl SesServer {
    /// Creates a stand-in that accepts mails from the domain `identity` and has one configuration set.
    pub fn new(identity: &str, configuration_set: &str) -> Arc<Self> {
        Arc::new(Self {
            identity: identity.to_owned(),
            configuration_set: configuration_set.to_owned(),
            state: Mutex::default(),
            hanging: Notify::new(),
        })
    }

    /// Returns the HTTP routes.
    pub fn router(self: Arc<Self>) -> Router {
        Router::new().fallback(respond_to_send_email).with_state(self)
    }

    /// Sets the faults of the next valid requests, in their order. Replaces the faults that were set before.
    pub fn set_faults(&self, faults: impl IntoIterator<Item = SesFault>) {
        self.state().faults = faults.into_iter().collect();
    }

    /// Returns all accepted mails, the oldest first.
    pub fn mails(&self) -> Vec<SesMail> {
        self.state().mails.clone()
    }

    /// Returns the number of requests that were received, including rejected requests.
    pub fn request_count(&self) -> u64 {
        self.state().requests
    }

    /// Waits until a request hangs ([`SesFault::HangsAfter`]). Each hanging request ends the wait of one call of this
    /// method.
    pub async fn wait_until_request_hangs(&self) {
        self.hanging.notified().await;
    }

    fn state(&self) -> MutexGuard<'_, SesServerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks a request, and records its mail or applies its fault.
    async fn handle_request(&self, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        self.state().requests += 1;
        let checked = match to_bytes(body, MAX_REQUEST_BYTES).await {
            Ok(body) => rules::check_send_email_request(&parts, &body, &self.identity, &self.configuration_set),
            Err(_) => Err(rules::create_rejection_of_too_large_request()),
        };
        let mail = match checked {
            Ok(mail) => mail,
            Err(SesRejection { status, error, source }) => return create_error_response(status, error, source),
        };
        let fault = self.state().faults.pop_front();
        if let Some((status, error)) = fault.and_then(SesFault::error_response) {
            // Like SES, repeat the mail addresses in the text. The tests of the mailer check that the mailer's errors
            // do not contain these addresses.
            let reason = match fault {
                Some(SesFault::IllegalAddress) => "Local address contains control or whitespace",
                _ => "The following identities failed the check in region EU-WEST-1",
            };
            let text = format!("{reason}: {}", mail.to.join(", "));
            return create_error_response(status, error, &text);
        }
        let id = {
            let mut state = self.state();
            state.mails.push(mail);
            format!("0102018c-{:012}-000000", state.mails.len())
        };
        match fault {
            Some(SesFault::HangsAfter) => {
                self.hanging.notify_one();
                std::future::pending().await
            }
            Some(_) => {
                let lost = stream::iter([Err::<String, _>(std::io::Error::other("lost"))]);
                ([(header::CONTENT_TYPE, "application/json")], Body::from_stream(lost)).into_response()
            }
            None => axum::Json(json!({"MessageId": id})).into_response(),
        }
    }
}

/// Returns the error response with the error name `error` and the message `text`.
fn create_error_response(status: u16, error: &'static str, text: &str) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, [(ERROR_TYPE, error)], axum::Json(json!({"message": text}))).into_response()
}

async fn respond_to_send_email(State(server): State<Arc<SesServer>>, request: Request) -> Response {
    server.handle_request(request).await
}
