//! Payment gateways: whoever actually moves the money.
//!
//! What the payment batch relies on: a request is made at most once per idempotency key while the key lives; a decline
//! is final; [`PaymentGateway::payments_of`] shows every payment that was accepted before it was asked.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod config;
pub mod conformance;
mod contradiction;
mod http_gateway;
mod sandbox;
mod stripe;

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
    About, Https, Response, SecretError, SigningSecrets, Stripe, StripeDispute, StripeEvent, StripePayment, Transport,
    WebhookError,
};

pub use http_gateway::{ACCOUNT, CLOCK, HttpGateway, ListQuery, PAGES, PAYMENTS, REFUNDS};
pub use sandbox::{Entry, KEY_LIFE, Ledger, LedgerError, PageOpened, PaymentMade, Sandbox};

/// A charge to be made, from a frozen attempt alone.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct ChargeRequest {
    pub idempotency_key: String,
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
    /// The charge of `attempt` of `subscription`: equal for every try of the same attempt.
    pub fn of(subscription: &Subscription, attempt: &Attempt) -> Self {
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

/// What the gateway answered to a charge.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChargeAnswer {
    Succeeded(Payment),
    /// Under way at the bank; days may pass.
    Processing,
    /// It can no longer succeed.
    Declined(Decline),
    /// It refused this request and made nothing.
    Rejected {
        code: String,
    },
    /// An error that says why the request failed, and not whether anything was made. If a look-up finds nothing and the same error
    /// comes back under the same key, it is a rejection.
    #[serde(skip)]
    Unproven {
        code: String,
    },
    /// The key was used with other parameters.
    KeyReused,
    /// No answer, or none that says what happened: a state, not an error.
    Unknown {
        reason: String,
    },
    /// It was asked too often (429), and made nothing. `retry_after` is how long it asks to wait.
    Throttled {
        retry_after: Option<Duration>,
    },
    /// The gateway refuses us altogether (401, 403): nothing more can be charged.
    Unusable {
        reason: String,
    },
}

/// Why the gateway gave no answer to build on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GatewayError {
    #[error("the gateway gave no usable answer: {reason}")]
    Unknown { reason: String },
    #[error("the gateway is asked too often")]
    Throttled { retry_after: Option<Duration> },
    #[error("the gateway refuses us: {reason}")]
    Unusable { reason: String },
}

impl From<GatewayError> for ChargeAnswer {
    fn from(error: GatewayError) -> Self {
        match error {
            GatewayError::Unknown { reason } => Self::Unknown { reason },
            GatewayError::Throttled { retry_after } => Self::Throttled { retry_after },
            GatewayError::Unusable { reason } => Self::Unusable { reason },
        }
    }
}

/// A payment processor.
#[async_trait]
pub trait PaymentGateway: Send + Sync + fmt::Debug {
    /// Whose account it takes payments for.
    ///
    /// # Errors
    /// [`GatewayError`]: it is not known then.
    async fn account(&self) -> Result<GatewayAccount, GatewayError>;

    /// Creates an object at the gateway that marks its account, for a key that may not read the account. Returns the account as the
    /// marker names it; `None` if the gateway needs no marker.
    ///
    /// # Errors
    /// [`GatewayError`]: a marker may have been created that nobody uses.
    async fn create_marker(&self) -> Result<Option<GatewayAccount>, GatewayError> {
        Ok(None)
    }

    /// Returns whether the gateway's account has the marker that `named` is; `None` if `named` is not a marker.
    ///
    /// # Errors
    /// [`GatewayError`]: it is not known then.
    async fn has_marker(&self, _named: &GatewayAccount) -> Result<Option<bool>, GatewayError> {
        Ok(None)
    }

    /// Makes a charge, at most once per idempotency key. Always awaited to its end.
    async fn charge(&self, request: &ChargeRequest) -> ChargeAnswer;

    /// All payments of `customer` made since an instant, by a strongly consistent list.
    ///
    /// # Errors
    /// [`GatewayError`]: nothing is known then.
    async fn payments_of(&self, customer: &GatewayToken, since: DateTime<Utc>) -> Result<Vec<Payment>, GatewayError>;

    /// The payment `id` as it is now; `None` if there is none, or if it was not made for this system. It changes nothing: a payment that is
    /// shown as declined may still be paid.
    ///
    /// # Errors
    /// [`GatewayError`]: nothing is known then.
    async fn payment(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError>;
}

/// A payment, or a part of it, to be given back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RefundRequest {
    /// Names the refund: asked for again, it is the same one.
    pub refund: Ulid,
    pub payment: GatewayToken,
    #[serde(flatten)]
    pub amount: Money,
}

impl RefundRequest {
    /// The request of `refund`: equal for every try of it.
    pub fn of(refund: &Refund) -> Self {
        Self { refund: refund.id, payment: refund.payment.clone(), amount: refund.amount }
    }
}

/// A refund as the gateway has it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RefundMade {
    pub id: GatewayToken,
    /// Its name here; absent of one that was made elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refund: Option<Ulid>,
    #[serde(flatten)]
    pub amount: Money,
    pub state: RefundState,
}

impl RefundMade {
    /// Returns whether this is `refund`. One that was made at the gateway itself has no id of ours, and is found by the gateway's.
    pub fn is_of(&self, refund: &Refund) -> bool {
        self.refund == Some(refund.id) || refund.gateway_refund.as_ref() == Some(&self.id)
    }
}

/// What has become of a refund.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefundState {
    Pending,
    Succeeded,
    /// Nothing was given back.
    Failed {
        code: String,
    },
}

/// What the gateway answered to a refund.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefundAnswer {
    Made(RefundMade),
    /// It refused this request, and made nothing.
    Rejected {
        code: String,
    },
    /// Whether it was made is not known; of a gateway that was asked too often or refuses us altogether, it was not.
    #[serde(skip)]
    NotKnown(GatewayError),
}

/// A payment processor that gives payments back.
#[async_trait]
pub trait Refunds: PaymentGateway {
    /// Gives back, at most once for each [`RefundRequest::refund`].
    async fn refund(&self, request: &RefundRequest) -> RefundAnswer;

    /// All refunds of `payment`, by a strongly consistent list.
    ///
    /// # Errors
    /// [`GatewayError`]: nothing is known then.
    async fn refunds_of(&self, payment: &GatewayToken) -> Result<Vec<RefundMade>, GatewayError>;

    /// Lists all refunds made since an instant, each with its payment. Returns `None` if the gateway lists refunds by payment only.
    ///
    /// # Errors
    /// [`GatewayError`]: nothing is known then.
    async fn refunds_since(
        &self,
        _since: DateTime<Utc>,
    ) -> Result<Option<Vec<(GatewayToken, RefundMade)>>, GatewayError> {
        Ok(None)
    }

    /// Lists all disputes opened since an instant. Returns `None` if the gateway has no list of disputes.
    ///
    /// # Errors
    /// [`GatewayError`]: nothing is known then.
    async fn disputes_since(&self, _since: DateTime<Utc>) -> Result<Option<Vec<DisputeMade>>, GatewayError> {
        Ok(None)
    }
}

/// A dispute as the gateway has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DisputeMade {
    pub id: GatewayToken,
    /// The disputed payment; absent of a payment that was made without a PaymentIntent.
    pub payment: Option<GatewayToken>,
    pub amount: Money,
    pub status: DisputeStatus,
    pub opened_at: DateTime<Utc>,
}

/// All that a payment processor does for a merchant.
pub trait Processor: PaymentMethodPages + Refunds {}

impl<T: PaymentMethodPages + Refunds> Processor for T {}

/// A page on which a customer is to give a payment method.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PageRequest {
    /// Names the page: asked for again, it is the same one.
    pub setup: Ulid,
    pub account: AccountId,
    pub email: EmailAddress,
    /// The gateway's customer who gives it; absent for one who is not known there yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub customer: Option<GatewayToken>,
    /// Where the customer goes on, whether it was given or not.
    pub return_url: String,
}

/// A page that is open.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Page {
    pub id: GatewayToken,
    pub url: String,
    pub expires_at: DateTime<Utc>,
}

/// What has become of a page.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PageState {
    /// Nothing was given yet.
    Open,
    /// This was given at that time, and may be charged while the customer is away.
    Complete { payment_method: PaymentMethod, given_at: DateTime<Utc> },
    /// Nothing was given, and nothing will be.
    Expired,
}

/// A payment processor with pages of its own, on which customers give what is charged: no card data reaches us.
#[async_trait]
pub trait PaymentMethodPages: PaymentGateway {
    /// Opens a page.
    ///
    /// # Errors
    /// [`GatewayError`]: one may have been opened that nobody knows; it expires.
    async fn open_page(&self, request: &PageRequest) -> Result<Page, GatewayError>;

    /// What has become of the page `id`.
    ///
    /// # Errors
    /// [`GatewayError`].
    async fn page_state(&self, id: &GatewayToken) -> Result<PageState, GatewayError>;
}
