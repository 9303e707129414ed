//! Payment gateways: the services that charge the customers' payment methods.
//!
//! The payment batch relies on three promises of a gateway:
//! - While the gateway remembers an idempotency key, it makes at most one charge for the key.
//! - A declined payment can no longer succeed.
//! - [`PaymentGateway::payments_of`] lists every payment that the gateway accepted before the list was requested.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod config;
pub mod conformance;
mod contradictory_response;
mod gateway_url;
mod http_gateway;
mod iam_signer;
mod request_signature;
mod stripe;
mod time_range_lists;

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use billing::{
    AccountId, Attempt, Decline, DisputeStatus, EmailAddress, GatewayAccount, GatewayToken, Money, Payment,
    PaymentMethod, Refund, Sku, Subscription, SubscriptionId,
};

pub use config::*;
pub use stripe::{
    DEBIT_EVENTS, EventSubject, HttpsTransport, InboundWebhookError, NEEDED_EVENTS, Response, SecretError,
    SigningSecrets, Stripe, StripeDispute, StripeEvent, StripePayment, StripeWebhookEndpoint, Transport,
    is_live_stripe_key,
};

pub use gateway_url::{GatewayUrl, GatewayUrlError};
pub use http_gateway::{
    ACCOUNT_PATH, CHECKOUT_PAGES_PATH, CLOCK_HEADER, CustomerPaymentsQuery, HttpGateway, LISTS_PATH, PAYMENTS_PATH,
    REFUNDS_PATH, TimeRangeQuery,
};
pub use iam_signer::IamSigner;
pub use request_signature::{
    GATEWAY_REQUEST_ID_HEADER, GATEWAY_REQUEST_SIGNATURE_HEADER, GATEWAY_REQUEST_TIMESTAMP_HEADER, GatewayKeys,
    MAX_SIGNATURE_TIME_DIFFERENCE, ParseGatewayKeysError, SignatureError, SignedRequestParts,
};
pub use time_range_lists::{ListPage, TimeRange};

/// A request for a charge. It is computed only from the stored subscription and its attempt, so a repeated request is
/// equal to the first request.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct ChargeRequest {
    pub idempotency_key: String,
    /// The id of the table that contains the subscription. It distinguishes the payments of this deployment from those
    /// of another deployment that uses the same gateway account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<Ulid>,
    pub account: AccountId,
    pub subscription: SubscriptionId,
    pub sku: Sku,
    pub due_on: NaiveDate,
    pub attempt_no: u32,
    #[serde(flatten)]
    pub amount: Money,
    #[serde(flatten)]
    pub payment_method: PaymentMethod,
}

impl ChargeRequest {
    /// Returns the request that charges `attempt` of `subscription`. Repeated calls for the same attempt return equal
    /// requests.
    pub fn from_attempt(subscription: &Subscription, attempt: &Attempt) -> Self {
        Self {
            idempotency_key: attempt.idempotency_key(subscription),
            table: attempt.table,
            account: subscription.account.clone(),
            subscription: subscription.id,
            sku: subscription.sku.clone(),
            due_on: attempt.due_on,
            attempt_no: attempt.no,
            amount: attempt.amount,
            payment_method: attempt.payment_method.clone(),
        }
    }
}

/// The gateway's response to a [`ChargeRequest`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChargeResponse {
    Succeeded(Payment),
    /// The bank is processing the payment, which can take days.
    Processing,
    /// The payment was declined and can no longer succeed.
    Declined(Decline),
    /// The gateway rejected the request and made no payment.
    Rejected {
        code: String,
    },
    /// The gateway returned an error that does not prove that no payment was made. The caller looks the payment up. If
    /// there is no payment, the caller repeats the request once with the same idempotency key, and looks the payment up
    /// again. If both responses contain the same error and neither look-up finds a payment, the request counts as
    /// rejected.
    #[serde(skip)]
    Inconclusive {
        code: String,
    },
    /// The idempotency key was used before with other parameters.
    KeyReused,
    /// There was no response, or no usable response: the outcome of the charge is unknown.
    Unknown {
        reason: String,
    },
    /// The gateway refused the request because of its rate limit (HTTP status 429), and made no payment. `retry_after`
    /// is the time that the gateway asks us to wait before the next request.
    Throttled {
        retry_after: Option<Duration>,
    },
    /// The gateway refuses our API key (HTTP status 401 or 403), so no payment can be charged.
    Unusable {
        reason: String,
    },
}

/// The reason why a request to the gateway has no usable response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GatewayError {
    #[error("the gateway returned no usable response: {reason}")]
    Unknown { reason: String },
    #[error("the gateway refused the request because too many requests were sent")]
    Throttled { retry_after: Option<Duration> },
    #[error("the gateway refuses our requests: {reason}")]
    Unusable { reason: String },
}

impl GatewayError {
    /// Returns the name of the error, such as `Throttled`, which the log contains as `error_type`.
    pub fn error_type(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "Unknown",
            Self::Throttled { .. } => "Throttled",
            Self::Unusable { .. } => "Unusable",
        }
    }
}

impl From<GatewayError> for ChargeResponse {
    fn from(error: GatewayError) -> Self {
        match error {
            GatewayError::Unknown { reason } => Self::Unknown { reason },
            GatewayError::Throttled { retry_after } => Self::Throttled { retry_after },
            GatewayError::Unusable { reason } => Self::Unusable { reason },
        }
    }
}

/// A payment processor that charges customers and lists their payments.
#[async_trait]
pub trait PaymentGateway: Send + Sync + fmt::Debug {
    /// Returns the gateway account that receives the payments.
    ///
    /// # Errors
    /// [`GatewayError`] if there is no usable response. The account is then unknown.
    async fn account(&self) -> Result<GatewayAccount, GatewayError>;

    /// Creates a marker: an object at the gateway that identifies the gateway account, for a key without permission to
    /// read the account. Returns the account with the id of the marker in place of the account's id. Returns `None` if
    /// the key can read the account, so that no marker is needed.
    ///
    /// # Errors
    /// [`GatewayError`] if there is no usable response. The gateway may nevertheless have created a marker, which is
    /// never used.
    async fn create_marker(&self) -> Result<Option<GatewayAccount>, GatewayError> {
        Ok(None)
    }

    /// Returns whether the marker `stored` exists in the gateway's account; `None` if `stored` is not a marker.
    ///
    /// # Errors
    /// [`GatewayError`] if there is no usable response.
    async fn has_marker(&self, _stored: &GatewayAccount) -> Result<Option<bool>, GatewayError> {
        Ok(None)
    }

    /// Makes a charge, at most once per idempotency key. If the caller drops the future before the response, the
    /// outcome is unknown.
    async fn charge(&self, request: &ChargeRequest) -> ChargeResponse;

    /// Lists all payments of `customer` that this software requested at or after `since`, also declined payments and
    /// payments in progress. If a payment is not in progress but could still succeed, the gateway cancels the payment
    /// first, so that a decline is final. The list is strongly consistent.
    ///
    /// # Errors
    /// [`GatewayError`] if the list could not be read completely.
    async fn payments_of(&self, customer: &GatewayToken, since: DateTime<Utc>) -> Result<Vec<Payment>, GatewayError>;

    /// Returns the payment `id` in its current state; `None` if there is no such payment, or if it was not made by this
    /// software. Unlike [`PaymentGateway::payments_of`], this method changes nothing at the gateway: it does not cancel
    /// a payment that has not succeeded yet. A payment that this method returns as declined may therefore still
    /// succeed.
    ///
    /// # Errors
    /// [`GatewayError`] if there is no usable response.
    async fn payment(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError>;
}

/// A request for a refund of a payment, or of a part of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RefundRequest {
    /// The id of the refund. All requests with the same id make at most one refund.
    pub refund: Ulid,
    pub payment: GatewayToken,
    #[serde(flatten)]
    pub amount: Money,
}

impl RefundRequest {
    /// Returns the request for `refund`. Repeated calls for the same refund return equal requests.
    pub fn from_refund(refund: &Refund) -> Self {
        Self { refund: refund.id, payment: refund.payment.clone(), amount: refund.amount }
    }
}

/// A refund, as the gateway reports it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GatewayRefund {
    pub id: GatewayToken,
    /// Our id of the refund; `None` if the refund was not requested by this software.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refund: Option<Ulid>,
    #[serde(flatten)]
    pub amount: Money,
    pub state: RefundState,
}

impl GatewayRefund {
    /// Returns whether this refund and the stored `refund` are the same refund. Compares our id and the gateway's id,
    /// because a refund that was created at the gateway itself does not have our id.
    pub fn matches(&self, refund: &Refund) -> bool {
        self.refund == Some(refund.id) || refund.gateway_refund.as_ref() == Some(&self.id)
    }
}

/// The state of a refund at the gateway.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefundState {
    Pending,
    Succeeded,
    /// The refund failed: no money was refunded.
    Failed {
        code: String,
    },
}

/// The gateway's response to a [`RefundRequest`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefundResponse {
    /// The gateway made this refund, either now or for an earlier request with the same id.
    Made(GatewayRefund),
    /// The gateway rejected the request and made no refund.
    Rejected { code: String },
    /// There was no usable response. After [`GatewayError::Throttled`] and [`GatewayError::Unusable`] no refund was
    /// made; after [`GatewayError::Unknown`] the outcome is unknown.
    #[serde(skip)]
    Unknown(GatewayError),
}

/// A payment processor that can refund payments.
#[async_trait]
pub trait Refunds: PaymentGateway {
    /// Makes a refund. Requests with the same [`RefundRequest::refund`] id make at most one refund.
    async fn refund(&self, request: &RefundRequest) -> RefundResponse;

    /// Lists all refunds of `payment`. The list is strongly consistent.
    ///
    /// # Errors
    /// [`GatewayError`] if the list could not be read completely.
    async fn refunds_of(&self, payment: &GatewayToken) -> Result<Vec<GatewayRefund>, GatewayError>;

    /// Lists all refunds that were made at or after `since`, each with the id of its payment. Returns `None` if the
    /// gateway can list refunds by payment only.
    ///
    /// # Errors
    /// [`GatewayError`] if the list could not be read completely.
    async fn refunds_since(
        &self,
        _since: DateTime<Utc>,
    ) -> Result<Option<Vec<(GatewayToken, GatewayRefund)>>, GatewayError> {
        Ok(None)
    }

    /// Lists all disputes that were opened at or after `since`. Returns `None` if the gateway has no list of disputes.
    ///
    /// # Errors
    /// [`GatewayError`] if the list could not be read completely.
    async fn disputes_since(&self, _since: DateTime<Utc>) -> Result<Option<Vec<GatewayDispute>>, GatewayError> {
        Ok(None)
    }

    /// Returns a list page of all payments of this software that were created in `range`, in any order: the first list
    /// page, or the list page after the position `after`. Changes nothing at the gateway, so a payment in the list with
    /// the status declined may still succeed. Returns `None` if the gateway does not offer this list.
    ///
    /// # Errors
    /// [`GatewayError`] if there is no usable response.
    async fn payments_in(
        &self,
        _range: &TimeRange,
        _after: Option<&str>,
    ) -> Result<Option<ListPage<Payment>>, GatewayError> {
        Ok(None)
    }

    /// Returns a list page of all refunds that were created in `range`, each with the id of its payment. Works like
    /// [`Refunds::payments_in`], but the list may contain refunds of payments that this software has not requested.
    ///
    /// # Errors
    /// [`GatewayError`] if there is no usable response.
    async fn refunds_in(
        &self,
        _range: &TimeRange,
        _after: Option<&str>,
    ) -> Result<Option<ListPage<(GatewayToken, GatewayRefund)>>, GatewayError> {
        Ok(None)
    }

    /// Returns a list page of all disputes that were opened in `range`. Works like [`Refunds::refunds_in`].
    ///
    /// # Errors
    /// [`GatewayError`] if there is no usable response.
    async fn disputes_in(
        &self,
        _range: &TimeRange,
        _after: Option<&str>,
    ) -> Result<Option<ListPage<GatewayDispute>>, GatewayError> {
        Ok(None)
    }
}

/// A dispute, as the gateway reports it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GatewayDispute {
    pub id: GatewayToken,
    /// The disputed payment; `None` if the disputed charge at Stripe has no PaymentIntent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payment: Option<GatewayToken>,
    #[serde(flatten)]
    pub amount: Money,
    pub status: DisputeStatus,
    pub opened_at: DateTime<Utc>,
}

/// A payment gateway that supports everything that Dueday needs: charges, refunds and checkout pages.
pub trait FullGateway: CheckoutPages + Refunds {}

impl<T: CheckoutPages + Refunds> FullGateway for T {}

/// A request for a checkout page on which a customer enters a payment method.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CheckoutPageRequest {
    /// The id of the payment method setup. A repeated request with the same id returns the same checkout page.
    pub setup: Ulid,
    pub account: AccountId,
    pub email: EmailAddress,
    /// The gateway's customer who will own the payment method. `None` if the customer does not exist at the gateway
    /// yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub customer: Option<GatewayToken>,
    /// The URL to which the gateway redirects the customer from the checkout page, whether the customer entered a
    /// payment method or cancelled.
    pub return_url: String,
}

/// An open checkout page.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CheckoutPage {
    pub id: GatewayToken,
    pub url: String,
    pub expires_at: DateTime<Utc>,
}

/// The state of a checkout page.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckoutPageState {
    /// The customer has not entered a payment method yet.
    Open,
    /// The customer entered this payment method at `given_at`. It may be charged without the customer being present.
    Complete { payment_method: PaymentMethod, given_at: DateTime<Utc> },
    /// The checkout page expired before the customer entered a payment method.
    Expired,
}

/// A payment processor that hosts checkout pages, on which customers enter their payment methods. No card data reaches
/// this software.
#[async_trait]
pub trait CheckoutPages: PaymentGateway {
    /// Opens a checkout page, or returns the checkout page that was opened before for the same payment method setup.
    ///
    /// # Errors
    /// [`GatewayError`] if there is no usable response. The gateway may nevertheless have opened a checkout page, which
    /// is never used and expires.
    async fn create_checkout_page(&self, request: &CheckoutPageRequest) -> Result<CheckoutPage, GatewayError>;

    /// Returns the state of the checkout page `id`.
    ///
    /// # Errors
    /// [`GatewayError`] if there is no usable response.
    async fn checkout_page_state(&self, id: &GatewayToken) -> Result<CheckoutPageState, GatewayError>;
}
