//! Stripe: off-session PaymentIntents, created and confirmed in one call.
//!
//! A PaymentIntent that was not paid can be paid later, by whoever confirms it again. So none is reported as declined before it is
//! cancelled: if the cancel finds that it has succeeded, it has. What it is called, and what of an answer is read, is in `wire.rs`.

mod amount;
mod declines;
mod lists;
mod pages;
mod reading;
mod refunds;
mod webhook;
mod wire;

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use backon::{BackoffBuilder as _, ExponentialBuilder};
use chrono::{DateTime, Utc};
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{RequestBuilder, StatusCode};
use serde::de::DeserializeOwned;

use super::{ChargeAnswer, ChargeRequest, GatewayError, PaymentGateway};
use crate::billing::{GatewayAccount, GatewayToken, Payment, PaymentStatus};
use wire::{Account, Error, ErrorBody, List, PaymentIntent, Status};

pub use reading::{StripeDispute, StripePayment};
pub use webhook::{About, SecretError, SigningSecrets, StripeEvent, WebhookError};

/// Where Stripe answers.
pub const STRIPE_API_BASE: &str = "https://api.stripe.com";

/// The version of the API that this is written for ("Versioning" in Stripe's API reference).
const VERSION: &str = "2024-06-20";

/// Whether the same request may be sent again.
const SHOULD_RETRY: &str = "Stripe-Should-Retry";

/// A connection is made within this time, or is not.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// What Stripe says may be sent again is sent again so many times, the first time after this.
const MAX_RETRIES: usize = 2;
const MIN_DELAY: Duration = Duration::from_millis(500);

/// A page of a list has at most this many ("Pagination" in Stripe's API reference).
const PAGE_ITEMS: &str = "100";

/// Stripe, with a secret key.
#[derive(Clone)]
pub struct Stripe {
    http: reqwest::Client,
    base: String,
    key: String,
    timeout: Duration,
}

impl fmt::Debug for Stripe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stripe").field("base", &self.base).finish_non_exhaustive()
    }
}

/// An answer that is no success, or none at all.
#[derive(Debug)]
enum Failed {
    /// Nothing that says what happened.
    Unknown(String),
    /// It was asked too often, before it began.
    Throttled(Option<Duration>),
    Unusable(String),
    /// It began, and says why it came to nothing, or to what.
    Refused(StatusCode, Box<Error>),
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
    /// If the machine's HTTP client cannot be set up at all.
    pub fn new(key: impl Into<String>, base: &str, timeout: Duration) -> Self {
        let http = reqwest::Client::builder().timeout(timeout).connect_timeout(CONNECT_TIMEOUT);
        let http = http.redirect(reqwest::redirect::Policy::none()).build().expect("an HTTP client");
        Self { http, base: base.trim_end_matches('/').to_owned(), key: key.into(), timeout }
    }

    fn at(&self, path: &str) -> String {
        format!("{}/v1/{path}", self.base)
    }

    /// Sends `request`, and again under the same key where Stripe says that this may help ("Error handling" in Stripe's advanced
    /// documentation, on `Stripe-Should-Retry`). Whatever else is not known is left to the protocol, which looks up first.
    async fn send<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, Failed> {
        let sent = tokio::time::timeout(self.timeout, self.send_until_known(request)).await;
        sent.unwrap_or_else(|_| Err(Failed::Unknown("no answer in time".to_owned())))
    }

    async fn send_until_known<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, Failed> {
        let delays = ExponentialBuilder::new().with_min_delay(MIN_DELAY).with_max_times(MAX_RETRIES).with_jitter();
        let mut delays = delays.build();
        loop {
            let again = request.try_clone().expect("forms and queries are held in memory");
            let (failed, may_retry) = match self.send_once(again).await {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            match delays.next() {
                Some(delay) if may_retry => tokio::time::sleep(delay).await,
                _ => return Err(failed),
            }
        }
    }

    /// Sends `request` once. Of a failure, whether it may be sent again at once.
    async fn send_once<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, (Failed, bool)> {
        let unknown = |error: reqwest::Error| (Failed::Unknown(error.without_url().to_string()), false);
        let request = request.bearer_auth(&self.key).header("Stripe-Version", VERSION);
        let response = request.send().await.map_err(unknown)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.bytes().await.map_err(unknown)?;
        if status.is_success() {
            let unreadable = |_| (Failed::Unknown(format!("{status}, and no object of Stripe's")), false);
            return serde_json::from_slice(&body).map_err(unreadable);
        }
        let error = serde_json::from_slice::<ErrorBody>(&body).map(|body| Box::new(body.error));
        let failed = failed(status, &headers, error.ok());
        // Whoever is asked too often is asked less often, not again.
        let may_retry =
            matches!(failed, Failed::Unknown(_)) && headers.get(SHOULD_RETRY).is_some_and(|is| is == "true");
        Err((failed, may_retry))
    }

    /// What `intent` has come to. What can still be paid is cancelled first; `key` is that of the charge.
    async fn settled(&self, intent: &PaymentIntent, key: &str) -> Result<PaymentStatus, Failed> {
        match intent.status {
            Status::Succeeded => Ok(PaymentStatus::Succeeded),
            Status::Processing => Ok(PaymentStatus::Processing),
            Status::Canceled => Ok(PaymentStatus::Declined(intent.decline())),
            Status::RequiresPaymentMethod
            | Status::RequiresConfirmation
            | Status::RequiresAction
            | Status::RequiresCapture => {
                let path = self.at(&format!("payment_intents/{}/cancel", intent.id));
                let request = self.http.post(path).header("Idempotency-Key", format!("{key}-cancel"));
                match self.send::<PaymentIntent>(request).await {
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
            Ok(intent) => self.answer(&intent, request).await,
            Err(Failed::Refused(_, error)) => match &error.payment_intent {
                // It was made and not paid.
                Some(intent) => self.answer(intent, request).await,
                None if error.kind == "idempotency_error" => ChargeAnswer::KeyReused,
                // A card that was charged leaves a PaymentIntent, which would be named here.
                None if error.kind == "card_error" => ChargeAnswer::Unknown { reason: error.name().to_owned() },
                None => ChargeAnswer::Rejected { code: error.name().to_owned() },
            },
            Err(failed) => GatewayError::from(failed).into(),
        }
    }

    async fn answer(&self, intent: &PaymentIntent, request: &ChargeRequest) -> ChargeAnswer {
        match self.settled(intent, &request.idempotency_key).await {
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
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Failed::Unusable(status.to_string()),
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
        // Keys name their mode ("API keys" in Stripe's documentation).
        let live = self.key.starts_with("sk_live_") || self.key.starts_with("rk_live_");
        Ok(GatewayAccount { kind: "stripe".to_owned(), account: account.id, live })
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
            let page: List = self.send(self.http.get(self.at("payment_intents")).query(&query)).await?;
            for intent in &page.data {
                // Those of other programs are left alone.
                if intent.payment(PaymentStatus::Processing).is_some() {
                    let status = self.settled(intent, intent.id.as_str()).await?;
                    payments.extend(intent.payment(status));
                }
            }
            match page.data.last() {
                Some(last) if page.has_more => after = Some(last.id.clone()),
                _ => return Ok(payments),
            }
        }
    }
}
