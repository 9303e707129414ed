//! Payment gateways: whoever actually moves the money.
//!
//! What the payment batch relies on: a request is made at most once per idempotency key while the key lives; a decline
//! is final; [`PaymentGateway::payments_of`] shows every payment that was accepted before it was asked.

mod sandbox;
mod stripe;

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use crate::billing::{
    AccountId, Attempt, Decline, GatewayAccount, GatewayToken, Money, Payment, PaymentMethod, Sku, Subscription,
    SubscriptionId,
};

pub use stripe::{STRIPE_API_BASE, Stripe};

pub use sandbox::{
    ACCOUNT, CLOCK, Entry, KEY_LIFE, Ledger, LedgerError, ListQuery, PAYMENTS, PaymentMade, Sandbox, SandboxClient,
};

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

/// Why payments could not be looked up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LookUpError {
    #[error("the gateway gave no usable answer: {reason}")]
    Unknown { reason: String },
    #[error("the gateway is asked too often")]
    Throttled { retry_after: Option<Duration> },
    #[error("the gateway refuses us: {reason}")]
    Unusable { reason: String },
}

/// A payment processor.
#[async_trait]
pub trait PaymentGateway: Send + Sync + fmt::Debug {
    /// Whose account it takes payments for.
    ///
    /// # Errors
    /// [`LookUpError`]: it is not known then.
    async fn account(&self) -> Result<GatewayAccount, LookUpError>;

    /// Makes a charge, at most once per idempotency key. Always awaited to its end.
    async fn charge(&self, request: &ChargeRequest) -> ChargeAnswer;

    /// All payments of `customer` made since an instant, by a strongly consistent list.
    ///
    /// # Errors
    /// [`LookUpError`]: nothing is known then.
    async fn payments_of(&self, customer: &GatewayToken, since: DateTime<Utc>) -> Result<Vec<Payment>, LookUpError>;
}
