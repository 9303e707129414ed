//! A strict stand-in for Stripe: what its documentation says of PaymentIntents, idempotency keys, errors and lists, and nothing
//! that it does not. What is not documented is refused. It moves no money.

mod accounts;
mod disputes;
mod faults;
mod idempotency_keys;
mod in_process;
mod intents;
mod refunds;
mod requests;
mod sessions;
mod unkind;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::http::{Method, StatusCode};
use chrono::{DateTime, TimeDelta, Utc};
use clock::Clock;
use serde_json::{Value, json};

use accounts::Customer;
use disputes::Dispute;
pub use faults::StripeFault;
use idempotency_keys::{IdempotencyKeys, KeyReused};
pub use in_process::InProcess;
use refunds::Refund;
use requests::answer;
pub use requests::{StripeRequest, StripeResponse};
use sessions::Session;
use unkind::{Repair, Unkind};

/// The secret key of the stand-in's account.
pub const STRIPE_KEY: &str = "sk_test_standin";

/// A restricted key of the same account. It may do what `docs/cards.md` names, and may not read the account itself.
pub const STRIPE_RESTRICTED_KEY: &str = "rk_test_standin";

/// The version of Stripe's API that the stand-in imitates. A request for another version is refused.
pub const STRIPE_VERSION: &str = "2026-07-29.dahlia";
/// How long a bank debit is under way.
const BANK_TIME: TimeDelta = TimeDelta::days(2);
/// "Pagination" in the API reference.
const MAX_PAGE_ITEMS: usize = 100;

/// A PaymentIntent as it stands.
#[derive(Clone, Debug)]
pub struct Intent {
    pub id: String,
    pub status: &'static str,
    pub metadata: BTreeMap<String, String>,
    pub amount: i64,
    pub currency: String,
    pub customer: String,
    pub payment_method: String,
    pub created: DateTime<Utc>,
    /// The code of the decline, if it was declined.
    pub error: Option<&'static str>,
    /// The advice that the bank gives with a decline.
    advice: Option<&'static str>,
    /// What becomes of it, and when.
    ends: Option<(DateTime<Utc>, Option<&'static str>)>,
}

#[derive(Default)]
struct Books {
    intents: Vec<Intent>,
    sessions: Vec<Session>,
    refunds: Vec<Refund>,
    disputes: Vec<Dispute>,
    customers: Vec<Customer>,
    advice: Option<&'static str>,
    /// The customers that do not exist, or no longer do.
    unknown_customers: BTreeSet<String>,
    kept: IdempotencyKeys,
    faults: VecDeque<Option<StripeFault>>,
    always: Option<StripeFault>,
    unkind: Option<Unkind>,
    repairs: Vec<Repair>,
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
            "last_payment_error": self.error.map(|error| {
                let mut last = decline_json(error, self.advice);
                last["payment_method"] = json!({"id": self.payment_method, "object": "payment_method"});
                last
            }),
        })
    }
}

/// "Errors" in the API reference: a decline has the code `card_declined`, but for those with a code of their own.
fn decline_json(decline: &str, advice: Option<&str>) -> Value {
    let code = match decline {
        "expired_card" | "incorrect_cvc" | "processing_error" | "authentication_required" => decline,
        _ => "card_declined",
    };
    let mut error = json!({"type": "card_error", "code": code, "decline_code": decline});
    if let Some(advice) = advice {
        error["advice_code"] = advice.into();
    }
    error
}

/// "Testing" in the documentation: what a test payment method does. `None` is no payment method.
enum Behaviour {
    Succeeds,
    Declines(&'static str),
    Processes(Option<&'static str>),
}

fn behaviour(payment_method: &str) -> Option<Behaviour> {
    Some(match payment_method {
        "pm_card_visa" | "pm_card_visa_debit" | "pm_card_mastercard" | "pm_card_amex" | "pm_card_jcb" => {
            Behaviour::Succeeds
        }
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

    /// Banks give `advice` with each decline from now on ("Declines", on advice codes).
    pub fn advise(&self, advice: &'static str) {
        self.books().advice = Some(advice);
    }

    /// Makes the customer `id` one that does not exist.
    pub fn forget_customer(&self, id: &str) {
        self.books().unknown_customers.insert(id.to_owned());
    }

    /// All PaymentIntents, the oldest first.
    pub fn intents(&self) -> Vec<Intent> {
        self.read(<[Intent]>::to_vec)
    }

    /// Reads all PaymentIntents in place, the oldest first.
    pub fn read<T>(&self, read: impl FnOnce(&[Intent]) -> T) -> T {
        let mut books = self.books();
        books.pass_to(self.clock.now());
        read(&books.intents)
    }

    /// How many requests it has had.
    pub fn requests(&self) -> u64 {
        self.books().requests
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes requests go wrong by `seed`: of a thousand that change something, so many.
    pub fn be_unkind(&self, seed: u64, per_thousand: u32) {
        self.books().unkind = (per_thousand > 0).then(|| Unkind::new(seed, per_thousand));
    }

    /// The fault of the next request.
    fn next_fault(&self, request: &StripeRequest<'_>) -> Option<StripeFault> {
        let mut books = self.books();
        books.requests += 1;
        let scripted = books.faults.pop_front().flatten().or(books.always);
        scripted.or_else(|| books.unkind.as_mut().and_then(|unkind| unkind.fault(request)))
    }

    fn take(
        &self,
        (method, host, path): (&Method, &str, &str),
        key: Option<&str>,
        parameters: BTreeMap<String, String>,
        fault: Option<StripeFault>,
    ) -> Answer {
        let (now, mut books) = (self.clock.now(), self.books());
        books.pass_to(now);
        match fault {
            Some(StripeFault::RateLimited | StripeFault::RateLimitedFor(_)) => {
                return error(429, "invalid_request_error", Some("rate_limit"));
            }
            Some(StripeFault::LockTimeout) => return error(429, "invalid_request_error", Some("lock_timeout")),
            Some(StripeFault::InProgress) => return error(409, "idempotency_error", Some("idempotency_key_in_use")),
            Some(StripeFault::NotBegun | StripeFault::Busy) => return error(503, "api_error", None),
            Some(StripeFault::Forbidden) => {
                return error(403, "invalid_request_error", Some("more_permissions_required"));
            }
            Some(StripeFault::ApiErrorBefore) => return error(402, "api_error", None),
            _ => {}
        }
        let method_and_path = format!("{method} {path}");
        match key.and_then(|key| books.kept.response(key, &method_and_path, &parameters, now)) {
            None => {}
            Some(Err(KeyReused)) => return error(400, "idempotency_error", None),
            Some(Ok(kept)) => {
                return match fault {
                    Some(StripeFault::FailsAfter) => error(502, "api_error", None),
                    Some(fault) => fault.response().unwrap_or(kept),
                    None => kept,
                };
            }
        }
        let (begun, answer) = match fault {
            Some(StripeFault::FailsKept) => (true, error(500, "api_error", None)),
            Some(StripeFault::Error { status, kind, is_carried_out: false }) => (true, error(status, kind, None)),
            Some(StripeFault::RepairedAfter { status, hours }) => {
                books.repairs.push(Repair::new(&method_and_path, parameters.clone(), now, hours));
                (true, error(status, "api_error", None))
            }
            _ => books.carry_out((method, host, path), &parameters, now),
        };
        let answer = match fault {
            Some(StripeFault::FailsAfter) if begun => error(500, "api_error", None),
            Some(StripeFault::Error { status, kind, is_carried_out: true }) if begun => error(status, kind, None),
            _ => answer,
        };
        // What is invalid is refused before it begins, and not kept.
        if let Some(key) = key.filter(|_| begun) {
            books.kept.keep(key, (method_and_path, parameters), answer.clone(), now);
        }
        fault.and_then(StripeFault::response).unwrap_or(answer)
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
    /// Banks answer and Stripe repairs, as of `now`.
    fn pass_to(&mut self, now: DateTime<Utc>) {
        self.repair(now);
        self.intents.iter_mut().for_each(|intent| intent.passes(now));
    }

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
            ("POST", ["v1", "customers"]) => self.create_customer(parameters),
            ("GET", ["v1", "customers", id]) if parameters.is_empty() => (false, self.customer(id)),
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
