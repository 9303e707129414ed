//! A strict stand-in for Stripe: what its documentation says of PaymentIntents, idempotency keys, errors and lists, and nothing
//! that it does not. What is not documented is refused. It moves no money.

mod disputes;
mod intents;
mod refunds;
mod sessions;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::{Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse, Response};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use shared::clock::Clock;

use disputes::Dispute;
use refunds::Refund;
use sessions::Session;

/// The only key that it takes.
pub const STRIPE_KEY: &str = "sk_test_standin";

/// "Idempotent requests" in the API reference: keys may be removed once they are at least 24 hours old.
const KEY_LIFE: TimeDelta = TimeDelta::hours(24);
/// How long a bank debit is under way.
const BANK_TIME: TimeDelta = TimeDelta::days(2);
/// "Pagination" in the API reference.
const MAX_PAGE_ITEMS: usize = 100;

/// What goes wrong with a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StripeFault {
    /// "Rate limits": the limiter refuses it before anything begins; nothing is kept under its key.
    RateLimited,
    /// "Rate limits", object lock time-outs: another request holds the customer.
    LockTimeout,
    /// "Advanced error handling": a request under the same key is being worked on.
    InProgress,
    /// It fails before anything begins.
    NotBegun,
    /// As before, and the answer says that it may be sent again ("Advanced error handling", on `Stripe-Should-Retry`).
    Busy,
    /// It is carried out, and the answer is an error of Stripe's, which is kept under its key.
    FailsAfter,
    /// It is carried out, and the answer is lost on the way; the true one is kept under its key.
    LostAfter,
    /// It is carried out, and its answer does not come before whoever asks has given up.
    Late,
    /// The request takes effect, and the response is 503 with `Stripe-Should-Retry: true`.
    BusyAfter,
    /// The request takes effect, and the response is 409 with `Stripe-Should-Retry: true`.
    ConflictAfter,
    /// The request is refused with 403 before it begins.
    Forbidden,
    /// The response is 402 with an `api_error`, before anything begins.
    ApiErrorBefore,
}

/// A PaymentIntent as it stands.
#[derive(Clone, Debug)]
pub struct Intent {
    pub id: String,
    pub status: &'static str,
    pub metadata: BTreeMap<String, String>,
    pub amount: i64,
    pub currency: String,
    customer: String,
    payment_method: String,
    created: DateTime<Utc>,
    error: Option<&'static str>,
    /// What becomes of it, and when.
    ends: Option<(DateTime<Utc>, Option<&'static str>)>,
}

struct Kept {
    method_and_path: String,
    parameters: BTreeMap<String, String>,
    answer: (StatusCode, Value),
    at: DateTime<Utc>,
}

#[derive(Default)]
struct Books {
    intents: Vec<Intent>,
    sessions: Vec<Session>,
    refunds: Vec<Refund>,
    disputes: Vec<Dispute>,
    /// The customers that do not exist, or no longer do.
    unknown_customers: BTreeSet<String>,
    kept: HashMap<String, Kept>,
    faults: VecDeque<Option<StripeFault>>,
    always: Option<StripeFault>,
    requests: u64,
}

/// The stand-in.
pub struct StripeServer {
    clock: Arc<dyn Clock>,
    books: Mutex<Books>,
}

impl std::fmt::Debug for StripeServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StripeServer").field("intents", &self.intents()).finish_non_exhaustive()
    }
}

type Answer = (StatusCode, Value);

fn error(status: u16, kind: &str, code: Option<&str>) -> Answer {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, json!({"error": {"type": kind, "code": code, "message": "see the code"}}))
}

fn invalid(code: &str) -> Answer {
    error(400, "invalid_request_error", Some(code))
}

impl Intent {
    /// "Expanding responses" in the API reference: with its charge written out.
    fn expanded(&self, is_expanded: bool) -> Value {
        let mut shown = self.json();
        let brand = self.payment_method.strip_prefix("pm_card_").and_then(|name| name.split('_').next());
        if let Some(brand) = brand.filter(|_| is_expanded && self.status == "succeeded") {
            let card = json!({"brand": brand, "last4": "4242", "exp_month": 12, "exp_year": 2099});
            shown["latest_charge"] = json!({
                "id": shown["latest_charge"],
                "object": "charge",
                "payment_method_details": {"type": "card", "card": card},
            });
        }
        shown
    }

    fn json(&self) -> Value {
        json!({
            "id": self.id,
            "object": "payment_intent",
            "status": self.status,
            "amount": self.amount,
            "currency": self.currency,
            "customer": self.customer,
            // "Create a PaymentIntent": one that was declined has none any more.
            "payment_method": self.error.is_none().then_some(&self.payment_method),
            "created": self.created.timestamp(),
            "metadata": self.metadata,
            "livemode": false,
            "latest_charge": self.id.replace("pi_", "ch_"),
            "last_payment_error": self.error.map(decline_json),
        })
    }
}

/// "Errors" in the API reference: a decline has the code `card_declined`, but for those with a code of their own.
fn decline_json(decline: &str) -> Value {
    let code = match decline {
        "expired_card" | "incorrect_cvc" | "processing_error" | "authentication_required" => decline,
        _ => "card_declined",
    };
    json!({"type": "card_error", "code": code, "decline_code": decline})
}

/// "Testing" in the documentation: what a test payment method does. `None` is no payment method.
enum Behaviour {
    Succeeds,
    Declines(&'static str),
    Processes(Option<&'static str>),
}

fn behaviour(payment_method: &str) -> Option<Behaviour> {
    Some(match payment_method {
        "pm_card_visa" | "pm_card_mastercard" | "pm_card_amex" => Behaviour::Succeeds,
        "pm_card_visa_chargeDeclined" => Behaviour::Declines("generic_decline"),
        "pm_card_visa_chargeDeclinedInsufficientFunds" => Behaviour::Declines("insufficient_funds"),
        "pm_card_visa_chargeDeclinedLostCard" => Behaviour::Declines("lost_card"),
        "pm_card_chargeDeclinedExpiredCard" => Behaviour::Declines("expired_card"),
        "pm_card_authenticationRequired" => Behaviour::Declines("authentication_required"),
        "pm_usBankAccount_success" => Behaviour::Processes(None),
        "pm_usBankAccount_insufficientFunds" => Behaviour::Processes(Some("insufficient_funds")),
        _ => return None,
    })
}

impl StripeServer {
    /// One whose time is that of `clock`.
    pub fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self { clock, books: Mutex::default() })
    }

    /// Its routes.
    pub fn router(self: Arc<Self>) -> Router {
        Router::new().fallback(answer).with_state(self)
    }

    /// What goes wrong with the next requests, in their order.
    pub fn next(&self, faults: impl IntoIterator<Item = Option<StripeFault>>) {
        self.books().faults = faults.into_iter().collect();
    }

    /// Makes the customer `id` one that does not exist.
    pub fn forget_customer(&self, id: &str) {
        self.books().unknown_customers.insert(id.to_owned());
    }

    /// All PaymentIntents, the oldest first.
    pub fn intents(&self) -> Vec<Intent> {
        let mut books = self.books();
        let now = self.clock.now();
        books.intents.iter_mut().for_each(|intent| intent.passes(now));
        books.intents.clone()
    }

    /// How many requests it has had.
    pub fn requests(&self) -> u64 {
        self.books().requests
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(
        &self,
        (method, host, path): (&Method, &str, &str),
        key: Option<&str>,
        parameters: BTreeMap<String, String>,
    ) -> Answer {
        let (now, mut books) = (self.clock.now(), self.books());
        books.requests += 1;
        books.intents.iter_mut().for_each(|intent| intent.passes(now));
        let fault = books.faults.pop_front().flatten().or(books.always);
        match fault {
            Some(StripeFault::RateLimited) => return error(429, "invalid_request_error", Some("rate_limit")),
            Some(StripeFault::LockTimeout) => return error(429, "invalid_request_error", Some("lock_timeout")),
            Some(StripeFault::InProgress) => return error(409, "idempotency_error", Some("idempotency_key_in_use")),
            Some(StripeFault::NotBegun | StripeFault::Busy) => return error(503, "api_error", None),
            Some(StripeFault::Forbidden) => return error(403, "invalid_request_error", None),
            Some(StripeFault::ApiErrorBefore) => return error(402, "api_error", None),
            Some(
                StripeFault::FailsAfter
                | StripeFault::LostAfter
                | StripeFault::Late
                | StripeFault::BusyAfter
                | StripeFault::ConflictAfter,
            )
            | None => {}
        }
        let method_and_path = format!("{method} {path}");
        if let Some(key) = key {
            books.kept.retain(|_, kept| now.signed_duration_since(kept.at) < KEY_LIFE);
            if let Some(kept) = books.kept.get(key) {
                if kept.method_and_path != method_and_path || kept.parameters != parameters {
                    return error(400, "idempotency_error", None);
                }
                return match fault {
                    Some(fault) => fault.response().unwrap_or_else(|| error(502, "api_error", None)),
                    None => kept.answer.clone(),
                };
            }
        }
        let (begun, answer) = books.carry_out((method, host, path), &parameters, now);
        let answer = match fault {
            Some(StripeFault::FailsAfter) if begun => error(500, "api_error", None),
            _ => answer,
        };
        // What is invalid is refused before it begins, and not kept.
        if let Some(key) = key.filter(|_| begun) {
            let kept = Kept { method_and_path, parameters, answer: answer.clone(), at: now };
            books.kept.insert(key.to_owned(), kept);
        }
        fault.and_then(StripeFault::response).unwrap_or(answer)
    }
}

impl StripeFault {
    /// Returns the response that replaces the true one of a request that took effect.
    fn response(self) -> Option<Answer> {
        match self {
            Self::LostAfter => Some(error(502, "api_error", None)),
            Self::BusyAfter => Some(error(503, "api_error", None)),
            Self::ConflictAfter => Some(error(409, "idempotency_error", Some("idempotency_key_in_use"))),
            _ => None,
        }
    }

    /// Returns whether the response says that the same request may be sent again.
    fn may_retry(self) -> bool {
        matches!(self, Self::Busy | Self::BusyAfter | Self::ConflictAfter)
    }
}

impl Intent {
    /// A bank answers in time.
    fn passes(&mut self, now: DateTime<Utc>) {
        if let Some((at, error)) = self.ends.filter(|(at, _)| now >= *at) {
            debug_assert!(now >= at);
            (self.status, self.error, self.ends) = match error {
                None => ("succeeded", None, None),
                Some(error) => ("requires_payment_method", Some(error), None),
            };
        }
    }
}

impl Books {
    /// Whether the request began, and its answer.
    fn carry_out(
        &mut self,
        (method, host, path): (&Method, &str, &str),
        parameters: &BTreeMap<String, String>,
        now: DateTime<Utc>,
    ) -> (bool, Answer) {
        let segments: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        match (method.as_str(), segments.as_slice()) {
            ("GET", ["v1", "account"]) => (false, (StatusCode::OK, json!({"id": "acct_standin", "object": "account"}))),
            ("GET", ["v1", "payment_intents"]) => (false, self.list(parameters)),
            ("POST", ["v1", "payment_intents"]) => self.create(parameters, now),
            ("GET", ["v1", "payment_intents" | "refunds" | "disputes", id]) if parameters.is_empty() => {
                let gone = || error(404, "invalid_request_error", Some("resource_missing"));
                (false, self.object(id, now).map_or_else(gone, |object| (StatusCode::OK, object)))
            }
            ("POST", ["v1", "payment_intents", id, "cancel"]) => self.cancel(id, parameters),
            ("POST", ["v1", "refunds"]) => self.create_refund(parameters, now),
            ("GET", ["v1", "refunds"]) => (false, self.list_refunds(parameters)),
            ("GET", ["v1", "disputes"]) => (false, self.list_disputes(parameters)),
            ("POST", ["v1", "checkout", "sessions"]) => self.create_session(parameters, host, now),
            ("GET", ["v1", "checkout", "sessions", id]) => (false, self.session(id, parameters, now)),
            _ => (false, error(404, "invalid_request_error", Some("url_invalid"))),
        }
    }

    /// The object that is called so.
    fn object(&self, id: &str, now: DateTime<Utc>) -> Option<Value> {
        let intent = self.intents.iter().find(|intent| intent.id == id).map(Intent::json);
        let refund = || self.refunds.iter().find(|refund| refund.id == id).map(Refund::json);
        let dispute = || self.disputes.iter().find(|dispute| dispute.is(id)).map(Dispute::json);
        let session = || self.sessions.iter().find(|session| session.is(id)).map(|session| session.json(now, false));
        intent.or_else(refund).or_else(dispute).or_else(session)
    }
}

/// The pairs of a form or a query; a name that is given twice is none that is documented.
fn pairs(text: &str) -> Option<BTreeMap<String, String>> {
    let uri = format!("/?{text}").parse().ok()?;
    let pairs = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(&uri).ok()?.0;
    let count = pairs.len();
    let pairs: BTreeMap<String, String> = pairs.into_iter().collect();
    (pairs.len() == count).then_some(pairs)
}

async fn answer(State(server): State<Arc<StripeServer>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let body: Bytes = to_bytes(body, 1_000_000).await.unwrap_or_default();
    let text = if parts.method == Method::GET {
        parts.uri.query().unwrap_or_default()
    } else {
        std::str::from_utf8(&body).unwrap_or("&&")
    };
    let (now, browsed) = (server.clock.now(), std::str::from_utf8(&body).unwrap_or_default());
    if let Some(page) = server.books().browsed(&parts.method, parts.uri.path(), browsed, now) {
        return page;
    }
    let is_form = body.is_empty() || header("content-type") == Some("application/x-www-form-urlencoded");
    let fault = server.books().faults.front().copied().flatten();
    let may_retry = fault.is_some_and(StripeFault::may_retry);
    let (status, answer) = if header("authorization") != Some(&format!("Bearer {STRIPE_KEY}")) {
        error(401, "invalid_request_error", None)
    } else if header("stripe-version").is_none() || !is_form {
        invalid("parameter_invalid")
    } else {
        match pairs(text) {
            None => invalid("parameter_invalid"),
            Some(parameters) => {
                let asked = (&parts.method, header("host").unwrap_or_default(), parts.uri.path());
                server.take(asked, header("idempotency-key"), parameters)
            }
        }
    };
    if fault == Some(StripeFault::Late) {
        // Until the connection is closed from the other end.
        std::future::pending::<()>().await;
    }
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::RETRY_AFTER, "0")];
    let may_retry = may_retry.then_some([("Stripe-Should-Retry", "true")]);
    (status, headers, may_retry.map(AppendHeaders), answer.to_string()).into_response()
}
