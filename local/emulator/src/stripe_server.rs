//! A strict stand-in for Stripe: it implements the documented behaviour of PaymentIntents, idempotency keys, errors and
//! lists, and refuses everything that is not documented. It moves no money.

mod accounts;
mod charge_amounts;
mod disputes;
mod first_list_pages;
mod idempotency_keys;
mod in_process;
mod injected_faults;
mod intent_json;
mod intents;
mod misleading_responses;
mod random_faults;
mod refunds;
mod requests;
mod sessions;
mod webhook_endpoints;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::http::{Method, StatusCode};
use chrono::{DateTime, TimeDelta, Utc};
use clock::Clock;
use serde_json::{Value, json};

use accounts::Customer;
pub use charge_amounts::stripe_currencies;
use disputes::Dispute;
use idempotency_keys::{IdempotencyKeys, KeyReused};
pub use in_process::InProcessTransport;
pub use injected_faults::StripeFault;
use misleading_responses::ForeignObjects;
pub use misleading_responses::MisleadingView;
use random_faults::{DeferredRequest, RandomFaults};
use refunds::Refund;
use requests::handle_http_request;
pub use requests::{StripeRequest, StripeResponse};
use sessions::CheckoutSession;
use webhook_endpoints::WebhookEndpoint;

/// The secret key of the stand-in's account.
pub const STRIPE_KEY: &str = "sk_test_standin";

/// A restricted key of the same account. The key has only the permissions that `docs/cards.md` lists, so it cannot read
/// the data of the account itself.
pub const STRIPE_RESTRICTED_KEY: &str = "rk_test_standin";

/// The version of Stripe's API that the stand-in imitates. A request for another version is refused.
pub const STRIPE_VERSION: &str = "2026-07-29.dahlia";
/// The processing time of a bank debit.
const BANK_PROCESSING_TIME: TimeDelta = TimeDelta::days(2);
/// The maximum number of items on a list page ("Pagination" in the API reference).
const MAX_PAGE_ITEMS: usize = 100;

/// A PaymentIntent.
#[derive(Clone, Debug)]
pub struct StandInPaymentIntent {
    pub id: String,
    /// Stripe's status, such as `succeeded`.
    pub status: &'static str,
    pub metadata: BTreeMap<String, String>,
    /// The amount in the smallest unit of the currency.
    pub amount: i64,
    pub currency: String,
    pub customer: String,
    pub payment_method: String,
    pub created: DateTime<Utc>,
    /// The decline code, if the payment was declined.
    pub error: Option<&'static str>,
    /// The advice code that the bank gives with a decline.
    advice: Option<&'static str>,
    /// The instant at which the bank responds to a debit, and the decline code if the debit fails.
    bank_outcome: Option<(DateTime<Utc>, Option<&'static str>)>,
    /// How responses contradict this PaymentIntent; `None` if they show its state.
    misleading: Option<MisleadingView>,
}

/// The objects of the stand-in, its idempotency keys, and the faults of its next responses.
#[derive(Default)]
struct ServerState {
    intents: Vec<StandInPaymentIntent>,
    sessions: Vec<CheckoutSession>,
    refunds: Vec<Refund>,
    disputes: Vec<Dispute>,
    customers: Vec<Customer>,
    webhook_endpoints: Vec<WebhookEndpoint>,
    /// The decline code of all further declines; `None` if each decline has the code of its test payment method.
    decline_code: Option<&'static str>,
    /// The advice code of all further declines; `None` if declines have no advice code.
    advice: Option<&'static str>,
    foreign_objects: ForeignObjects,
    /// The customers that were deleted.
    deleted_customers: BTreeSet<String>,
    stored_responses: IdempotencyKeys,
    /// The faults of the next requests; `None` for a request without a fault.
    faults: VecDeque<Option<StripeFault>>,
    /// The fault of each request for which `faults` contains no fault; `None` if such requests have no fault.
    permanent_fault: Option<StripeFault>,
    random_faults: Option<RandomFaults>,
    /// The requests that got an error response and take effect later.
    deferred_requests: Vec<DeferredRequest>,
    /// The number of requests that the server has received since it was created.
    request_count: u64,
}

/// The stand-in for Stripe.
pub struct StripeServer {
    clock: Arc<dyn Clock>,
    state: Mutex<ServerState>,
}

impl std::fmt::Debug for StripeServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StripeServer").field("intents", &self.intents()).finish_non_exhaustive()
    }
}

/// The status and the JSON body of a response.
type JsonResponse = (StatusCode, Value);

/// Whether the execution of a request began, and the response. The response is stored under the idempotency key only if
/// the execution began.
type BegunAndResponse = (bool, JsonResponse);

/// Returns an error response with Stripe's error type `kind` and error code `code`.
fn stripe_error_response(status: u16, kind: &str, code: Option<&str>) -> JsonResponse {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, json!({"error": {"type": kind, "code": code, "message": "see the code"}}))
}

/// Returns the response to an invalid request, with Stripe's error code `code`.
fn invalid_request_response(code: &str) -> JsonResponse {
    stripe_error_response(400, "invalid_request_error", Some(code))
}

/// Returns the error object for the decline code `decline`. Its error code is `card_declined`, except for declines with
/// their own error code ("Errors" in the API reference).
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

/// The behaviour of a test payment method ("Testing" in the documentation).
enum PaymentMethodBehaviour {
    Succeeds,
    /// The payment is declined with this code.
    Declines(&'static str),
    /// A bank debit. After the processing time it fails with this code, or succeeds if the code is `None`.
    Processes(Option<&'static str>),
}

/// Returns the behaviour of `payment_method`; `None` if it does not exist.
fn behaviour_of_payment_method(payment_method: &str) -> Option<PaymentMethodBehaviour> {
    Some(match payment_method {
        "pm_card_visa" | "pm_card_visa_debit" | "pm_card_mastercard" | "pm_card_amex" | "pm_card_jcb" => {
            PaymentMethodBehaviour::Succeeds
        }
        "pm_card_visa_chargeDeclined" => PaymentMethodBehaviour::Declines("generic_decline"),
        "pm_card_visa_chargeDeclinedInsufficientFunds" => PaymentMethodBehaviour::Declines("insufficient_funds"),
        "pm_card_visa_chargeDeclinedLostCard" => PaymentMethodBehaviour::Declines("lost_card"),
        "pm_card_chargeDeclinedExpiredCard" => PaymentMethodBehaviour::Declines("expired_card"),
        "pm_card_authenticationRequired" => PaymentMethodBehaviour::Declines("authentication_required"),
        "pm_usBankAccount_success" => PaymentMethodBehaviour::Processes(None),
        "pm_usBankAccount_insufficientFunds" => PaymentMethodBehaviour::Processes(Some("insufficient_funds")),
        _ => return None,
    })
}

impl StripeServer {
    /// Creates a stand-in that uses the time of `clock`.
    pub fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self { clock, state: Mutex::default() })
    }

    /// Returns the HTTP routes.
    pub fn router(self: Arc<Self>) -> Router {
        Router::new().fallback(handle_http_request).with_state(self)
    }

    /// Sets the faults of the next requests, in their order. `None` is a request without a fault.
    pub fn set_next_faults(&self, faults: impl IntoIterator<Item = Option<StripeFault>>) {
        self.lock_state().faults = faults.into_iter().collect();
    }

    /// Sets the advice code of all further declines ("Declines" in the documentation, about advice codes).
    pub fn set_decline_advice(&self, advice: &'static str) {
        self.lock_state().advice = Some(advice);
    }

    /// Sets the decline code of all further declines.
    pub fn set_decline_code(&self, code: &'static str) {
        self.lock_state().decline_code = Some(code);
    }

    /// Deletes the customer `id`.
    pub fn delete_customer(&self, id: &str) {
        self.lock_state().deleted_customers.insert(id.to_owned());
    }

    /// Returns all PaymentIntents, the oldest first.
    pub fn intents(&self) -> Vec<StandInPaymentIntent> {
        self.read_intents(<[StandInPaymentIntent]>::to_vec)
    }

    /// Calls `read` with all PaymentIntents, the oldest first, without copying them.
    pub fn read_intents<T>(&self, read: impl FnOnce(&[StandInPaymentIntent]) -> T) -> T {
        let mut state = self.lock_state();
        state.advance_to(self.clock.now());
        read(&state.intents)
    }

    /// Returns the number of requests that were received.
    pub fn request_count(&self) -> u64 {
        self.lock_state().request_count
    }

    fn lock_state(&self) -> MutexGuard<'_, ServerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes requests fail at random: on average, `per_thousand` of a thousand requests have a fault. `seed` decides
    /// which requests have a fault. A `per_thousand` of 0 ends the faults.
    pub fn set_random_faults(&self, seed: u64, per_thousand: u32) {
        self.lock_state().random_faults = (per_thousand > 0).then(|| RandomFaults::new(seed, per_thousand));
    }

    /// Counts `request`, and returns its fault, if it has one.
    fn next_fault(&self, request: &StripeRequest<'_>) -> Option<StripeFault> {
        let mut state = self.lock_state();
        state.request_count += 1;
        let scripted = state.faults.pop_front().flatten().or(state.permanent_fault);
        scripted.or_else(|| state.random_faults.as_mut().and_then(|random_faults| random_faults.next_fault(request)))
    }

    /// Returns the response to a request with a valid API key: the error response of `fault`, the response that is
    /// stored under the idempotency key `key`, or the result of executing the request.
    fn respond_with_fault(
        &self,
        method: &Method,
        host: &str,
        path: &str,
        key: Option<&str>,
        parameters: BTreeMap<String, String>,
        fault: Option<StripeFault>,
    ) -> JsonResponse {
        let (now, mut state) = (self.clock.now(), self.lock_state());
        state.advance_to(now);
        if let Some(refusal) = fault.and_then(StripeFault::refusal_response) {
            return refusal;
        }
        let method_and_path = format!("{method} {path}");
        match key.and_then(|key| state.stored_responses.stored_response(key, &method_and_path, &parameters, now)) {
            None => {}
            Some(Err(KeyReused)) => return stripe_error_response(400, "idempotency_error", None),
            Some(Ok(stored)) => {
                return match fault {
                    Some(StripeFault::FailsAfter) => stripe_error_response(502, "api_error", None),
                    Some(fault) => fault.replacement_response().unwrap_or(stored),
                    None => stored,
                };
            }
        }
        let (has_begun, response) = match fault {
            Some(StripeFault::FailsBefore) => (true, stripe_error_response(500, "api_error", None)),
            Some(StripeFault::Error { status, kind, is_carried_out: false }) => {
                (true, stripe_error_response(status, kind, None))
            }
            Some(StripeFault::ExecutedLater { status, hours }) => {
                state.deferred_requests.push(DeferredRequest::new(&method_and_path, parameters.clone(), now, hours));
                (true, stripe_error_response(status, "api_error", None))
            }
            _ => state.execute(method, host, path, &parameters, now),
        };
        let response = match fault {
            Some(fault) => state.change_misleading_response(fault, &method_and_path, response, now),
            None => response,
        };
        let response = match fault {
            Some(StripeFault::FailsAfter) if has_begun => stripe_error_response(500, "api_error", None),
            Some(StripeFault::Error { status, kind, is_carried_out: true }) if has_begun => {
                stripe_error_response(status, kind, None)
            }
            _ => response,
        };
        // An invalid request is refused before it begins, and its response is not stored.
        if let Some(key) = key.filter(|_| has_begun) {
            state.stored_responses.store(key, method_and_path, parameters, response.clone(), now);
        }
        fault.and_then(StripeFault::replacement_response).unwrap_or(response)
    }
}

impl StandInPaymentIntent {
    /// Changes the status according to the bank's response, if the response is due by `now`.
    fn apply_due_bank_outcome(&mut self, now: DateTime<Utc>) {
        if let Some((at, error)) = self.bank_outcome.filter(|(at, _)| now >= *at) {
            debug_assert!(now >= at);
            (self.status, self.error, self.bank_outcome) = match error {
                None => ("succeeded", None, None),
                Some(error) => ("requires_payment_method", Some(error), None),
            };
        }
    }
}

impl ServerState {
    /// Applies the bank responses and executes the deferred requests that are due by `now`.
    fn advance_to(&mut self, now: DateTime<Utc>) {
        self.execute_deferred_requests(now);
        self.intents.iter_mut().for_each(|intent| {
            intent.apply_due_bank_outcome(now);
            intent.misleading = intent.misleading.filter(|misleading| !misleading.has_ended(now));
        });
    }

    /// Executes a request. Returns whether the execution began, and the response.
    fn execute(
        &mut self,
        method: &Method,
        host: &str,
        path: &str,
        parameters: &BTreeMap<String, String>,
        now: DateTime<Utc>,
    ) -> BegunAndResponse {
        let segments: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        match (method.as_str(), segments.as_slice()) {
            ("GET", ["v1", "account"]) => (false, (StatusCode::OK, json!({"id": "acct_standin", "object": "account"}))),
            ("GET", ["v1", "payment_intents"]) => (false, self.list_intents(parameters)),
            ("POST", ["v1", "payment_intents"]) => self.create_intent(parameters, now),
            ("GET", ["v1", "payment_intents", id]) => (false, self.retrieve_intent(id, parameters)),
            ("GET", ["v1", "refunds" | "disputes", id]) if parameters.is_empty() => {
                let not_found = || stripe_error_response(404, "invalid_request_error", Some("resource_missing"));
                (false, self.find_object(id, now).map_or_else(not_found, |object| (StatusCode::OK, object)))
            }
            ("POST", ["v1", "payment_intents", id, "cancel"]) => self.cancel_intent(id, parameters),
            ("POST", ["v1", "refunds"]) => self.create_refund(parameters, now),
            ("GET", ["v1", "refunds"]) => (false, self.list_refunds(parameters)),
            ("POST", ["v1", "customers"]) => self.create_customer(parameters),
            ("GET", ["v1", "customers", id]) if parameters.is_empty() => (false, self.retrieve_customer(id)),
            ("POST", ["v1", "webhook_endpoints"]) => self.create_webhook_endpoint(parameters),
            ("GET", ["v1", "webhook_endpoints"]) => (false, self.list_webhook_endpoints(parameters)),
            ("GET", ["v1", "charges" | "customers" | "payment_methods" | "setup_intents"])
            | ("GET", ["v1", "checkout", "sessions"]) => (false, self.list_first_page(path, parameters, now)),
            ("GET", ["v1", "disputes"]) => (false, self.list_disputes(parameters)),
            ("POST", ["v1", "checkout", "sessions"]) => self.create_session(parameters, host, now),
            ("GET", ["v1", "checkout", "sessions", id]) => (false, self.retrieve_session(id, parameters, now)),
            _ => (false, stripe_error_response(404, "invalid_request_error", Some("url_invalid"))),
        }
    }

    /// Returns the JSON of the PaymentIntent, refund, dispute or Checkout Session `id`.
    fn find_object(&self, id: &str, now: DateTime<Utc>) -> Option<Value> {
        let intent = self.intents.iter().find(|intent| intent.id == id).map(StandInPaymentIntent::current_json);
        let refund = || self.refunds.iter().find(|refund| refund.id == id).map(Refund::json);
        let dispute = || self.disputes.iter().find(|dispute| dispute.has_id(id)).map(Dispute::json);
        let session =
            || self.sessions.iter().find(|session| session.has_id(id)).map(|session| session.json(now, false));
        intent.or_else(refund).or_else(dispute).or_else(session)
    }
}

/// Parses a form or a query. Returns `None` if a name occurs twice, because Stripe does not document that.
fn parse_parameters(text: &str) -> Option<BTreeMap<String, String>> {
    let uri = format!("/?{text}").parse().ok()?;
    let pairs = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(&uri).ok()?.0;
    let count = pairs.len();
    let pairs: BTreeMap<String, String> = pairs.into_iter().collect();
    (pairs.len() == count).then_some(pairs)
}
