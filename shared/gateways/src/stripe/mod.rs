//! Stripe: off-session PaymentIntents, created and confirmed in one call.
//!
//! A PaymentIntent that was not paid can be paid later, by whoever confirms it again. So none is reported as declined before it is
//! cancelled: if the cancel finds that it has succeeded, it has. What it is called, and what of an answer is read, is in `wire.rs`.

mod account;
mod amount;
mod customers;
mod hard_declines;
mod lists;
mod pages;
mod reading;
mod refunds;
mod transport;
mod webhook;
mod wire;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use backon::{BackoffBuilder as _, ExponentialBuilder};
use chrono::{DateTime, Utc};
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{RequestBuilder, StatusCode};
use serde::de::DeserializeOwned;

use super::{ChargeAnswer, ChargeRequest, GatewayError, PaymentGateway};
use billing::{GatewayAccount, GatewayToken, Payment, PaymentStatus};
use wire::{Account, Error, ErrorBody, List, PaymentIntent, Status};

pub use reading::{StripeDispute, StripePayment};
pub use transport::{Https, Response, Transport};
pub use webhook::{About, SecretError, SigningSecrets, StripeEvent, WebhookError};

/// Where Stripe answers.
pub const STRIPE_API_BASE: &str = "https://api.stripe.com";

/// The version of the API that the adapter is written for ("Versioning" in Stripe's API reference; docs/decisions.md says what was read).
const VERSION: &str = "2026-07-29.dahlia";

/// Whether the same request may be sent again.
const SHOULD_RETRY: &str = "Stripe-Should-Retry";

/// What Stripe says may be sent again is sent again so many times, the first time after this.
const MAX_RETRIES: usize = 2;
const MIN_DELAY: Duration = Duration::from_millis(500);

/// A page of a list has at most this many ("Pagination" in Stripe's API reference).
const PAGE_ITEMS: &str = "100";

/// Stripe, with a secret key.
#[derive(Clone)]
pub struct Stripe {
    /// Builds requests; the transport sends them.
    http: reqwest::Client,
    transport: Arc<dyn Transport>,
    base: String,
    key: String,
    timeout: Duration,
}

impl fmt::Debug for Stripe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stripe").field("base", &self.base).finish_non_exhaustive()
    }
}

/// Why a request did not succeed.
#[derive(Debug)]
enum Failed {
    /// No usable response: whether Stripe carried the request out is unknown.
    Unknown(String),
    /// Too many requests: Stripe refused this one before it began.
    Throttled(Option<Duration>),
    Unusable(String),
    /// A client error (4xx) with an error of Stripe's in the body. Only [`Error::proves_nothing_was_made`] tells what it means.
    Refused(StatusCode, Box<Error>),
}

impl Failed {
    /// This failure of a request, if an earlier try of the same request had the unknown outcome `earlier`: that try may have been
    /// carried out, whatever this one says. Only an error that contains the PaymentIntent tells what was made.
    fn after(self, earlier: Option<String>) -> Self {
        match (earlier, self) {
            (None, failed) => failed,
            (Some(_), Self::Refused(status, error)) if error.payment_intent.is_some() => Self::Refused(status, error),
            (Some(earlier), failed) => Self::Unknown(format!("{earlier}, and then {}", GatewayError::from(failed))),
        }
    }
}

impl From<Failed> for GatewayError {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Unknown(reason) => Self::Unknown { reason },
            Failed::Throttled(retry_after) => Self::Throttled { retry_after },
            Failed::Unusable(reason) => Self::Unusable { reason },
            Failed::Refused(status, error) => Self::Unknown { reason: format!("{status}: {}", error.name()) },
        }
    }
}

impl Stripe {
    /// Stripe at `base`, with the secret `key`, given at most `timeout` for a charge, and for each page of a list.
    ///
    /// # Panics
    /// If the HTTP client of the machine cannot be set up at all.
    pub fn new(key: impl Into<String>, base: &str, timeout: Duration) -> Self {
        Self::over(Arc::new(Https::new(timeout)), key, base, timeout)
    }

    /// Stripe, reached through `transport`.
    pub fn over(transport: Arc<dyn Transport>, key: impl Into<String>, base: &str, timeout: Duration) -> Self {
        let (http, base) = (reqwest::Client::new(), base.trim_end_matches('/').to_owned());
        Self { http, transport, base, key: key.into(), timeout }
    }

    fn at(&self, path: &str) -> String {
        format!("{}/v1/{path}", self.base)
    }

    /// Sends `request`, and again under the same key where Stripe says that this may help ("Error handling" in Stripe's advanced
    /// documentation, on `Stripe-Should-Retry`). All other unknown outcomes are left to the caller, which looks them up first.
    async fn send<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, Failed> {
        let sent = tokio::time::timeout(self.timeout, self.send_until_known(request)).await;
        sent.unwrap_or_else(|_| Err(Failed::Unknown("no response in time".to_owned())))
    }

    async fn send_until_known<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, Failed> {
        let delays = ExponentialBuilder::new().with_min_delay(MIN_DELAY).with_max_times(MAX_RETRIES).with_jitter();
        let (mut delays, mut first_unknown) = (delays.build(), None);
        loop {
            let again = request.try_clone().expect("forms and queries are held in memory");
            let (failed, may_retry) = match self.send_once(again).await {
                Ok(object) => return Ok(object),
                Err((failed, may_retry)) => (failed.after(first_unknown.take()), may_retry),
            };
            match (delays.next(), failed) {
                (Some(delay), Failed::Unknown(reason)) if may_retry => {
                    first_unknown = Some(reason);
                    self.transport.wait(delay).await;
                }
                (_, failed) => return Err(failed),
            }
        }
    }

    /// Sends `request` once. Of a failure, whether it may be sent again at once.
    async fn send_once<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, (Failed, bool)> {
        let unknown = |reason: String| (Failed::Unknown(reason), false);
        let request = request.bearer_auth(&self.key).header("Stripe-Version", VERSION).build();
        let request = request.map_err(|error| unknown(error.without_url().to_string()))?;
        let Response { status, headers, body } = self.transport.send(request).await.map_err(unknown)?;
        if status.is_success() {
            let unreadable = |_| unknown(format!("{status}, and no object of Stripe's"));
            return serde_json::from_slice(&body).map_err(unreadable);
        }
        let error = serde_json::from_slice::<ErrorBody>(&body).map(|body| Box::new(body.error));
        let failed = failed(status, &headers, error.ok());
        // A caller that sends too many requests must send fewer, not the same ones again.
        let may_retry =
            matches!(failed, Failed::Unknown(_)) && headers.get(SHOULD_RETRY).is_some_and(|is| is == "true");
        Err((failed, may_retry))
    }

    /// Returns the final outcome of `intent`. A PaymentIntent that can still be paid is cancelled first.
    async fn settled(&self, intent: &PaymentIntent) -> Result<PaymentStatus, Failed> {
        if let Some(contradiction) = intent.contradiction() {
            return Err(Failed::Unknown(contradiction));
        }
        match intent.status {
            Status::Succeeded => Ok(PaymentStatus::Succeeded),
            Status::Processing => Ok(PaymentStatus::Processing),
            Status::Canceled => Ok(PaymentStatus::Declined(intent.decline())),
            Status::RequiresPaymentMethod
            | Status::RequiresConfirmation
            | Status::RequiresAction
            | Status::RequiresCapture => {
                let path = self.at(&format!("payment_intents/{}/cancel", intent.id));
                // Without an idempotency key each try is carried out anew: under a key, Stripe returns the error of the first try for a
                // day. A cancel that is repeated changes nothing and says so.
                match self.send::<PaymentIntent>(self.http.post(path)).await {
                    Ok(cancelled) => cancelled.status.ended(intent),
                    // It is in another state by now: the error says in which.
                    Err(Failed::Refused(status, error)) => match &error.payment_intent {
                        Some(now) => now.status.ended(intent),
                        None => Err(Failed::Refused(status, error)),
                    },
                    Err(failed) => Err(failed),
                }
            }
        }
    }

    async fn create(&self, request: &ChargeRequest) -> ChargeAnswer {
        let Ok(parameters) = wire::parameters(request) else {
            return ChargeAnswer::Rejected { code: "amount_not_representable".to_owned() };
        };
        let create = self.http.post(self.at("payment_intents")).form(&parameters);
        let create = create.header("Idempotency-Key", &request.idempotency_key);
        match self.send::<PaymentIntent>(create).await {
            Ok(intent) => self.answer(&intent).await,
            Err(Failed::Refused(status, error)) => match &error.payment_intent {
                // An error about a payment that succeeded contradicts itself.
                Some(intent) if matches!(intent.status, Status::Succeeded | Status::Processing) => {
                    ChargeAnswer::Unproven { code: format!("{}_but_paid", status.as_u16()) }
                }
                // It was made and not paid.
                Some(intent) => self.answer(intent).await,
                None if error.kind == "idempotency_error" => ChargeAnswer::KeyReused,
                None if error.proves_nothing_was_made(status) => {
                    ChargeAnswer::Rejected { code: error.name().to_owned() }
                }
                // Stripe says why it failed, and not whether the card was charged.
                None => ChargeAnswer::Unproven { code: format!("{}_{}", status.as_u16(), error.name()) },
            },
            Err(failed) => GatewayError::from(failed).into(),
        }
    }

    async fn answer(&self, intent: &PaymentIntent) -> ChargeAnswer {
        match self.settled(intent).await {
            Ok(PaymentStatus::Processing) => ChargeAnswer::Processing,
            Ok(PaymentStatus::Declined(decline)) => ChargeAnswer::Declined(decline),
            Ok(PaymentStatus::Succeeded) => match intent.payment(PaymentStatus::Succeeded) {
                Some(payment) => ChargeAnswer::Succeeded(payment),
                None => ChargeAnswer::Unknown { reason: format!("{} does not carry its names", intent.id) },
            },
            // It was made: only a look at it tells what it has come to.
            Err(failed) => ChargeAnswer::Unknown {
                reason: format!("{} is not settled: {}", intent.id, GatewayError::from(failed)),
            },
        }
    }
}

impl Status {
    /// What a cancelled `intent` has come to that stands so now.
    fn ended(self, intent: &PaymentIntent) -> Result<PaymentStatus, Failed> {
        match self {
            Self::Succeeded => Ok(PaymentStatus::Succeeded),
            Self::Processing => Ok(PaymentStatus::Processing),
            Self::Canceled => Ok(PaymentStatus::Declined(intent.decline())),
            Self::RequiresPaymentMethod | Self::RequiresConfirmation | Self::RequiresAction | Self::RequiresCapture => {
                Err(Failed::Unknown(format!("{} is not cancelled", intent.id)))
            }
        }
    }
}

/// What an answer that is no success says ("Advanced error handling" in Stripe's documentation).
fn failed(status: StatusCode, headers: &HeaderMap, error: Option<Box<Error>>) -> Failed {
    let is = |code: &str| error.as_ref().is_some_and(|error| error.code.as_deref() == Some(code));
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            Failed::Unusable(account::refusal(status, error.as_deref()))
        }
        // Another request holds the object: this one has begun.
        StatusCode::TOO_MANY_REQUESTS if is("lock_timeout") => Failed::Unknown("429: lock_timeout".to_owned()),
        // The limit of rates is looked at before anything begins.
        StatusCode::TOO_MANY_REQUESTS => Failed::Throttled(retry_after(headers)),
        // A request under the same key is being worked on.
        StatusCode::CONFLICT => Failed::Unknown(status.to_string()),
        status if status.is_client_error() => match error {
            Some(error) => Failed::Refused(status, error),
            None => Failed::Unknown(format!("{status}, and no error of Stripe's")),
        },
        status => Failed::Unknown(status.to_string()),
    }
}

/// When to ask again, in whole seconds.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

#[async_trait]
impl PaymentGateway for Stripe {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        let account: Account = self.send(self.http.get(self.at("account"))).await?;
        Ok(self.named(account.id))
    }

    async fn create_marker(&self) -> Result<Option<GatewayAccount>, GatewayError> {
        Ok(self.new_marker().await?)
    }

    async fn has_marker(&self, named: &GatewayAccount) -> Result<Option<bool>, GatewayError> {
        Ok(self.finds_marker(named).await?)
    }

    async fn charge(&self, request: &ChargeRequest) -> ChargeAnswer {
        // It may take two requests, and whoever asks has reckoned with the time of one.
        let made = tokio::time::timeout(self.timeout, self.create(request));
        made.await.unwrap_or_else(|_| ChargeAnswer::Unknown { reason: "no answer in time".to_owned() })
    }

    async fn payments_of(&self, customer: &GatewayToken, since: DateTime<Utc>) -> Result<Vec<Payment>, GatewayError> {
        let (mut payments, mut after) = (Vec::new(), None::<GatewayToken>);
        loop {
            let since = since.timestamp().to_string();
            let mut query = vec![("customer", customer.as_str()), ("created[gte]", &since), ("limit", PAGE_ITEMS)];
            query.push(("expand[0]", "data.latest_charge"));
            query.extend(after.as_ref().map(|after| ("starting_after", after.as_str())));
            let page: List = match self.send(self.http.get(self.at("payment_intents")).query(&query)).await {
                Err(Failed::Refused(_, error)) if error.is_of("customer") => {
                    return Ok(self.payments_of_missing(customer).await?);
                }
                page => page?,
            };
            for intent in &page.data {
                // Those of other programs are left alone.
                if intent.payment(PaymentStatus::Processing).is_some() {
                    let status = self.settled(intent).await?;
                    payments.extend(intent.payment(status));
                }
            }
            match page.data.last() {
                Some(last) if page.has_more => after = Some(last.id.clone()),
                _ => return Ok(payments),
            }
        }
    }

    async fn payment(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        Ok(self.intent(id).await?.map(|read| read.payment))
    }
}
