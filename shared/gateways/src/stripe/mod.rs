//! The gateway Stripe: charges with off-session PaymentIntents, which are created and confirmed in one request.
//!
//! A PaymentIntent that has not succeeded can still succeed later, if it is confirmed again. Therefore the adapter
//! cancels the PaymentIntent before it reports a decline. If the PaymentIntent has succeeded before the cancellation,
//! the charge is reported as succeeded. Before a charge is reported as declined, the adapter also reads the canceled
//! PaymentIntent once, because the money may have moved although a response says `canceled`. `wire_format.rs` contains
//! the metadata of a PaymentIntent and the fields of responses that are read.

mod account;
mod amount;
mod amount_rules;
mod customers;
mod hard_declines;
mod inbound_webhook;
mod inspection;
mod lists;
mod outcome;
mod pages;
mod payment_intent;
mod reading;
mod refunds;
mod transport;
mod wire_format;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use backon::{BackoffBuilder as _, ExponentialBuilder};
use chrono::{DateTime, Utc};
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{RequestBuilder, StatusCode};
use serde::de::DeserializeOwned;

use super::{ChargeRequest, ChargeResponse, GatewayError, PaymentGateway};
use billing::{AmountRules, GatewayAccount, GatewayToken, Payment, PaymentStatus};
use config::CurrentSecret;
use wire_format::{PaymentIntent, StripeAccount, StripeError, StripeErrorBody, StripePaymentStatus};

pub use account::is_live_stripe_key;
pub use amount_rules::{amount_rules_of_account, stripe_amount_rules};
pub use inbound_webhook::{
    DEBIT_EVENTS, EventSubject, InboundWebhookError, NEEDED_EVENTS, SigningSecrets, StripeEvent,
    StripeSigningSecretError,
};
pub use inspection::StripeWebhookEndpoint;
pub use reading::{StripeDispute, StripePayment};
pub use transport::{HttpResponse, HttpsStripeTransport, StripeTransport};

/// The base URL of Stripe's API.
pub const STRIPE_API_BASE: &str = "https://api.stripe.com";

/// The version of Stripe's API that this adapter is written for ("Versioning" in Stripe's API reference;
/// docs/decisions/interfaces.md lists the sources).
const API_VERSION: &str = "2026-07-29.dahlia";

/// The response header that states whether the same request may be repeated.
const SHOULD_RETRY: &str = "Stripe-Should-Retry";

/// How often a request is repeated, at most, if [`SHOULD_RETRY`] allows it.
const MAX_RETRIES: usize = 2;
/// The delay before the first repetition.
const MIN_DELAY: Duration = Duration::from_millis(500);

/// The largest page size of Stripe's lists ("Pagination" in Stripe's API reference).
const PAGE_SIZE: &str = "100";

/// A client of Stripe's API with a secret or restricted key.
#[derive(Clone)]
pub struct Stripe {
    /// Only builds requests. `transport` sends them.
    http: reqwest::Client,
    transport: Arc<dyn StripeTransport>,
    base: String,
    key: Arc<CurrentSecret<String>>,
    timeout: Duration,
}

impl fmt::Debug for Stripe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stripe").field("base", &self.base).finish_non_exhaustive()
    }
}

/// The reason why a request to Stripe failed.
#[derive(Debug)]
enum RequestFailure {
    /// There was no usable response: it is unknown whether Stripe carried out the request.
    Unknown(String),
    /// Stripe's rate limit refused the request before it began. Contains the time to wait, if Stripe returned one.
    Throttled(Option<Duration>),
    /// Stripe refuses the key.
    Unusable(String),
    /// A client error (4xx) with a [`StripeError`] in the body. Use [`StripeError::proves_no_payment_was_made`] to
    /// decide whether a payment may have been made.
    Refused(StatusCode, Box<StripeError>),
}

impl RequestFailure {
    /// Combines this failure of a request with `earlier`, the reason why the outcome of the previous, identical request
    /// is unknown. `earlier` is `None` if this is the first request. Stripe may have carried out the previous request,
    /// so after a previous request the outcome stays unknown, whatever this failure is. The exception is an error that
    /// contains the PaymentIntent, because the PaymentIntent shows the outcome.
    fn with_unknown_outcome_of_earlier_failure(self, earlier: Option<String>) -> Self {
        match (earlier, self) {
            (None, failure) => failure,
            (Some(_), Self::Refused(status, error)) if error.payment_intent.is_some() => Self::Refused(status, error),
            (Some(earlier), failure) => Self::Unknown(format!("{earlier}, and then {}", GatewayError::from(failure))),
        }
    }
}

impl From<RequestFailure> for GatewayError {
    fn from(failure: RequestFailure) -> Self {
        match failure {
            RequestFailure::Unknown(reason) => Self::Unknown { reason },
            RequestFailure::Throttled(retry_after) => Self::Throttled { retry_after },
            RequestFailure::Unusable(reason) => Self::Unusable { reason },
            RequestFailure::Refused(status, error) => {
                Self::Unknown { reason: format!("{status}: {}", error.most_specific_code()) }
            }
        }
    }
}

impl Stripe {
    /// Returns a client of the API at `base` with the secret `key`. A charge, and each request for a list page, takes
    /// at most `timeout`.
    ///
    /// # Panics
    /// If the HTTP client cannot be created.
    pub fn new(key: impl Into<String>, base: &str, timeout: Duration) -> Self {
        Self::with_transport(Arc::new(HttpsStripeTransport::new(timeout)), key, base, timeout)
    }

    /// Returns a client that sends its requests through `transport`.
    pub fn with_transport(
        transport: Arc<dyn StripeTransport>,
        key: impl Into<String>,
        base: &str,
        timeout: Duration,
    ) -> Self {
        let (http, base) = (transport.http_client(), base.trim_end_matches('/').to_owned());
        Self { http, transport, base, key: Arc::new(CurrentSecret::from(key.into())), timeout }
    }

    /// Returns this client, changed so that it uses the current value of `key`.
    pub fn with_key(self, key: CurrentSecret<String>) -> Self {
        Self { key: Arc::new(key), ..self }
    }

    async fn current_key(&self) -> Result<String, RequestFailure> {
        self.key.get().await.map_err(|error| RequestFailure::Unusable(error.to_string()))
    }

    fn api_url(&self, path: &str) -> String {
        format!("{}/v1/{path}", self.base)
    }

    /// Sends `request`. Repeats it under the same idempotency key if the header `Stripe-Should-Retry` of the response
    /// allows it ("Error handling" in Stripe's advanced documentation). The caller must look up every other unknown
    /// outcome before it repeats the request.
    async fn send<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, RequestFailure> {
        let result = tokio::time::timeout(self.timeout, self.send_with_retries(request)).await;
        result.unwrap_or_else(|_| Err(RequestFailure::Unknown("no response in time".to_owned())))
    }

    async fn send_with_retries<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, RequestFailure> {
        let delays = ExponentialBuilder::new().with_min_delay(MIN_DELAY).with_max_times(MAX_RETRIES).with_jitter();
        let (mut delays, mut unknown_reason) = (delays.build(), None);
        loop {
            let copy = request.try_clone().expect("forms and queries are held in memory");
            let (failure, may_retry) = match self.send_once(copy).await {
                Ok(object) => return Ok(object),
                Err((failure, may_retry)) => {
                    (failure.with_unknown_outcome_of_earlier_failure(unknown_reason.take()), may_retry)
                }
            };
            match (delays.next(), failure) {
                (Some(delay), RequestFailure::Unknown(reason)) if may_retry => {
                    unknown_reason = Some(reason);
                    self.transport.wait(delay).await;
                }
                (_, failure) => return Err(failure),
            }
        }
    }

    /// Sends `request` once. If Stripe refuses the key and the key has been replaced, sends the request again with the
    /// new key: Stripe has not carried out the refused request. The error contains the failure, and whether the same
    /// request may be repeated immediately.
    async fn send_once<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, (RequestFailure, bool)> {
        let key = self.current_key().await.map_err(|failure| (failure, false))?;
        let again = request.try_clone().expect("forms and queries are held in memory");
        match self.send_with_key(request, &key).await {
            Err((RequestFailure::Unusable(reason), _)) => match self.key.get_replacement(&key).await {
                Some(newer) => self.send_with_key(again, &newer).await,
                None => Err((RequestFailure::Unusable(reason), false)),
            },
            result => result,
        }
    }

    async fn send_with_key<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        key: &str,
    ) -> Result<T, (RequestFailure, bool)> {
        let unknown = |reason: String| (RequestFailure::Unknown(reason), false);
        let request = request.bearer_auth(key).header("Stripe-Version", API_VERSION).build();
        let request = request.map_err(|error| unknown(error.without_url().to_string()))?;
        let HttpResponse { status, headers, body } = self.transport.send(request).await.map_err(unknown)?;
        if status.is_success() {
            let unreadable = |_| unknown(format!("{status}, and the body is not a Stripe object"));
            return serde_json::from_slice(&body).map_err(unreadable);
        }
        let error = serde_json::from_slice::<StripeErrorBody>(&body).map(|body| Box::new(body.error));
        let failure = request_failure(status, &headers, error.ok());
        // Do not repeat a request here that Stripe's rate limit has refused: the caller must first lower its rate of
        // requests.
        let may_retry =
            matches!(failure, RequestFailure::Unknown(_)) && headers.get(SHOULD_RETRY).is_some_and(|is| is == "true");
        Err((failure, may_retry))
    }

    /// Creates and confirms a PaymentIntent for `request`, and returns the response to the charge.
    async fn create_payment_intent(&self, request: &ChargeRequest) -> ChargeResponse {
        let Ok(parameters) = wire_format::payment_intent_parameters(request) else {
            return ChargeResponse::Rejected { code: "amount_not_representable".to_owned() };
        };
        let create = self.http.post(self.api_url("payment_intents")).form(&parameters);
        let create = create.header("Idempotency-Key", &request.idempotency_key);
        match self.send::<PaymentIntent>(create).await {
            Ok(intent) => self.charge_response(&intent).await,
            Err(RequestFailure::Refused(status, error)) => match &error.payment_intent {
                // The response contradicts itself: it is an error, but its PaymentIntent has succeeded or is
                // processing.
                Some(intent)
                    if matches!(intent.status, StripePaymentStatus::Succeeded | StripePaymentStatus::Processing) =>
                {
                    ChargeResponse::Inconclusive { code: format!("{}_but_paid", status.as_u16()) }
                }
                // The PaymentIntent was created, and has not succeeded.
                Some(intent) => self.charge_response(intent).await,
                None if error.kind == "idempotency_error" => ChargeResponse::KeyReused,
                None if error.proves_no_payment_was_made(status) => {
                    ChargeResponse::Rejected { code: error.most_specific_code().to_owned() }
                }
                // The error does not prove that the card was not charged.
                None => {
                    ChargeResponse::Inconclusive { code: format!("{}_{}", status.as_u16(), error.most_specific_code()) }
                }
            },
            Err(failure) => GatewayError::from(failure).into(),
        }
    }
}

/// Classifies an error response ("Advanced error handling" in Stripe's documentation).
fn request_failure(status: StatusCode, headers: &HeaderMap, error: Option<Box<StripeError>>) -> RequestFailure {
    let has_code = |code: &str| error.as_ref().is_some_and(|error| error.code.as_deref() == Some(code));
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            RequestFailure::Unusable(account::describe_refusal(status, error.as_deref()))
        }
        // Another request has locked the object. Stripe had already begun this request, so its outcome is unknown.
        StatusCode::TOO_MANY_REQUESTS if has_code("lock_timeout") => {
            RequestFailure::Unknown("429: lock_timeout".to_owned())
        }
        // Stripe checks the rate limit before it begins a request.
        StatusCode::TOO_MANY_REQUESTS => RequestFailure::Throttled(retry_after_header(headers)),
        // Stripe is processing another request with the same idempotency key.
        StatusCode::CONFLICT => RequestFailure::Unknown(status.to_string()),
        status if status.is_client_error() => match error {
            Some(error) => RequestFailure::Refused(status, error),
            None => RequestFailure::Unknown(format!("{status}, and the body is not a Stripe error")),
        },
        status => RequestFailure::Unknown(status.to_string()),
    }
}

/// Returns the time to wait before the next request, from the header `Retry-After` in whole seconds.
fn retry_after_header(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

#[async_trait]
impl PaymentGateway for Stripe {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        let account: StripeAccount = self.send(self.http.get(self.api_url("account"))).await?;
        Ok(self.gateway_account(account.id).await?)
    }

    async fn create_marker(&self) -> Result<Option<GatewayAccount>, GatewayError> {
        Ok(self.new_marker().await?)
    }

    async fn has_marker(&self, stored: &GatewayAccount) -> Result<Option<bool>, GatewayError> {
        Ok(self.marker_exists(stored).await?)
    }

    async fn amount_rules(&self) -> Result<AmountRules, GatewayError> {
        Ok(stripe_amount_rules())
    }

    async fn charge(&self, request: &ChargeRequest) -> ChargeResponse {
        // A charge can need three requests (create, cancel and read), but the caller allows only one timeout for the
        // whole charge.
        let response = tokio::time::timeout(self.timeout, self.create_payment_intent(request));
        response.await.unwrap_or_else(|_| ChargeResponse::Unknown { reason: "no response in time".to_owned() })
    }

    async fn payments_of_customer(
        &self,
        customer: &GatewayToken,
        since: DateTime<Utc>,
    ) -> Result<Vec<Payment>, GatewayError> {
        let since = since.timestamp().to_string();
        let filter = [("customer", customer.as_str()), ("created[gte]", &since), ("expand[0]", "data.latest_charge")];
        let listed = match self.list_all("payment_intents", &filter).await {
            Err(RequestFailure::Refused(_, error)) if error.is_missing("customer") => {
                return Ok(self.payments_of_missing_customer(customer).await?);
            }
            listed => listed?,
        };
        // PaymentIntents that other programs have created are ignored. They must never be cancelled.
        let mut payments = Vec::new();
        for intent in listed.read_items(PaymentIntent::read_own).into_complete_items()? {
            // Read the payment before the status is resolved: an unreadable PaymentIntent is not cancelled.
            let payment = intent.payment(PaymentStatus::Processing)?;
            payments.push(Payment { status: self.resolve_status(&intent).await?, ..payment });
        }
        Ok(payments)
    }

    async fn payment(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        Ok(self.get_payment_intent(id).await?.map(|read| read.payment))
    }
}
