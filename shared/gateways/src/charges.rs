//! Charges and payments: the part of a gateway that every gateway implements.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use billing::{
    AccountId, AmountRules, Attempt, Decline, GatewayAccount, GatewayToken, Money, Payment, PaymentMethod, Sku,
    Subscription, SubscriptionId,
};

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
    /// The gateway responded, but the payment, refund or dispute in its response contradicts itself or cannot be read.
    /// Another request for the same object will probably have the same result; requests for other objects will not.
    #[error("the gateway returned data that contradicts itself or cannot be read: {reason}")]
    Unreadable { reason: String },
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
            Self::Unreadable { .. } => "Unreadable",
            Self::Throttled { .. } => "Throttled",
            Self::Unusable { .. } => "Unusable",
        }
    }
}

impl From<GatewayError> for ChargeResponse {
    fn from(error: GatewayError) -> Self {
        match error {
            GatewayError::Unknown { reason } | GatewayError::Unreadable { reason } => Self::Unknown { reason },
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

    /// Returns the amounts that the gateway can charge. A price that these rules do not allow is refused when it is
    /// entered. By default, the gateway states no rules.
    ///
    /// # Errors
    /// [`GatewayError`] if the gateway must be asked, and there is no usable response.
    async fn amount_rules(&self) -> Result<AmountRules, GatewayError> {
        Ok(AmountRules::none())
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
    async fn payments_of_customer(
        &self,
        customer: &GatewayToken,
        since: DateTime<Utc>,
    ) -> Result<Vec<Payment>, GatewayError>;

    /// Returns the payment `id` in its current state; `None` if there is no such payment, or if it was not made by this
    /// software. Unlike [`PaymentGateway::payments_of_customer`], this method changes nothing at the gateway: it does
    /// not cancel a payment that has not succeeded yet. A payment that this method returns as declined may therefore
    /// still succeed.
    ///
    /// # Errors
    /// [`GatewayError`] if there is no usable response.
    async fn payment(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError>;
}
