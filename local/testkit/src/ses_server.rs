//! A strict stand-in for Amazon SES by its API, version 2: what its documentation says of `SendEmail` with raw content, and nothing
//! that it does not. It keeps what it takes, and sends nothing.

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

use rules::{MAX_REQUEST_BYTES, Refusal};

/// "Common Errors" in the API reference: the header that names an error.
const ERROR_TYPE: HeaderName = HeaderName::from_static("x-amzn-errortype");

/// What goes wrong with a request that is as it should be. Each error is one of `SendEmail` in the API reference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SesFault {
    AccountSuspended,
    BadRequest,
    LimitExceeded,
    MailFromDomainNotVerified,
    MessageRejected,
    NotFound,
    SendingPaused,
    TooManyRequests,
    /// An error of the server's own, before anything is taken.
    Internal,
    /// The mail is taken, and the answer is lost on the way.
    LostAfter,
    /// The mail is taken, and there is no answer.
    HangsAfter,
}

impl SesFault {
    /// The status and the name of its answer, if it is one.
    fn error(self) -> Option<(u16, &'static str)> {
        Some(match self {
            Self::AccountSuspended => (400, "AccountSuspendedException"),
            Self::BadRequest => (400, "BadRequestException"),
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

/// A mail that was taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SesMail {
    /// In the Internet message format.
    pub raw: Vec<u8>,
    pub to: Vec<String>,
    pub tags: BTreeMap<String, String>,
    pub configuration_set: Option<String>,
}

#[derive(Default)]
struct Books {
    mails: Vec<SesMail>,
    faults: VecDeque<SesFault>,
    requests: u64,
}

/// The stand-in.
pub struct SesServer {
    /// The domain that mails may be from.
    identity: String,
    configuration_set: String,
    books: Mutex<Books>,
    hanging: Notify,
}

impl std::fmt::Debug for SesServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SesServer").field("requests", &self.requests()).finish_non_exhaustive()
    }
}

impl SesServer {
    /// One for mails from the domain `identity`, with one configuration set.
    pub fn new(identity: &str, configuration_set: &str) -> Arc<Self> {
        Arc::new(Self {
            identity: identity.to_owned(),
            configuration_set: configuration_set.to_owned(),
            books: Mutex::default(),
            hanging: Notify::new(),
        })
    }

    /// Its routes.
    pub fn router(self: Arc<Self>) -> Router {
        Router::new().fallback(answer).with_state(self)
    }

    /// What goes wrong with the next requests, in their order.
    pub fn next(&self, faults: impl IntoIterator<Item = SesFault>) {
        self.books().faults = faults.into_iter().collect();
    }

    /// All mails that were taken, the oldest first.
    pub fn mails(&self) -> Vec<SesMail> {
        self.books().mails.clone()
    }

    /// How many requests it has had.
    pub fn requests(&self) -> u64 {
        self.books().requests
    }

    /// Ends when a request hangs that nobody has waited for yet.
    pub async fn hangs(&self) {
        self.hanging.notified().await;
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn take(&self, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        self.books().requests += 1;
        let checked = match to_bytes(body, MAX_REQUEST_BYTES).await {
            Ok(body) => rules::check(&parts, &body, &self.identity, &self.configuration_set),
            Err(_) => Err(rules::too_large()),
        };
        let mail = match checked {
            Ok(mail) => mail,
            Err(Refusal { status, error, because }) => return refused(status, error, because),
        };
        let fault = self.books().faults.pop_front();
        if let Some((status, error)) = fault.and_then(SesFault::error) {
            // As SES does, the text repeats addresses.
            let text = format!("The following identities failed the check in region EU-WEST-1: {}", mail.to.join(", "));
            return refused(status, error, &text);
        }
        let id = {
            let mut books = self.books();
            books.mails.push(mail);
            format!("0102018c-{:012}-000000", books.mails.len())
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

fn refused(status: u16, error: &'static str, text: &str) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, [(ERROR_TYPE, error)], axum::Json(json!({"message": text}))).into_response()
}

async fn answer(State(server): State<Arc<SesServer>>, request: Request) -> Response {
    server.take(request).await
}
