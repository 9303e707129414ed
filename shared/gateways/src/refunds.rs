//! Refunds and disputes, and the lists of payments, refunds and disputes of a time range.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use super::list_page::ListedItem;
use super::{GatewayError, ListPage, PaymentGateway, TimeRange};
use billing::{DisputeStatus, GatewayToken, Money, Payment, Refund, RefundStatus};

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

impl ListedItem for (GatewayToken, GatewayRefund) {
    fn id(&self) -> &GatewayToken {
        &self.1.id
    }

    fn payment(&self) -> Option<&GatewayToken> {
        Some(&self.0)
    }
}

impl ListedItem for GatewayDispute {
    fn id(&self) -> &GatewayToken {
        &self.id
    }

    fn payment(&self) -> Option<&GatewayToken> {
        self.payment.as_ref()
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

impl RefundState {
    /// Returns the status with which a refund in this state is stored.
    pub fn status(&self) -> RefundStatus {
        match self {
            Self::Pending => RefundStatus::Pending,
            Self::Succeeded => RefundStatus::Succeeded,
            Self::Failed { .. } => RefundStatus::Failed,
        }
    }
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
    async fn refunds_of_payment(&self, payment: &GatewayToken) -> Result<Vec<GatewayRefund>, GatewayError>;

    /// Lists all refunds that were made at or after `since`, each with the id of its payment, as one list page. Returns
    /// `None` if the gateway can list refunds by payment only.
    ///
    /// # Errors
    /// [`GatewayError`] if the list could not be read completely.
    async fn refunds_since(
        &self,
        _since: DateTime<Utc>,
    ) -> Result<Option<ListPage<(GatewayToken, GatewayRefund)>>, GatewayError> {
        Ok(None)
    }

    /// Lists all disputes that were opened at or after `since`, as one list page. Returns `None` if the gateway has no
    /// list of disputes.
    ///
    /// # Errors
    /// [`GatewayError`] if the list could not be read completely.
    async fn disputes_since(&self, _since: DateTime<Utc>) -> Result<Option<ListPage<GatewayDispute>>, GatewayError> {
        Ok(None)
    }

    /// Returns a list page of all payments of this software that were created in `range`, in any order: the first list
    /// page, or the list page after the position `after`. Changes nothing at the gateway, so a payment in the list with
    /// the status declined may still succeed. Returns `None` if the gateway does not offer this list.
    ///
    /// # Errors
    /// [`GatewayError`] if there is no usable response.
    async fn payments_in_range(
        &self,
        _range: &TimeRange,
        _after: Option<&str>,
    ) -> Result<Option<ListPage<Payment>>, GatewayError> {
        Ok(None)
    }

    /// Returns a list page of all refunds that were created in `range`, each with the id of its payment. Works like
    /// [`Refunds::payments_in_range`], but the list may contain refunds of payments that this software has not
    /// requested.
    ///
    /// # Errors
    /// [`GatewayError`] if there is no usable response.
    async fn refunds_in_range(
        &self,
        _range: &TimeRange,
        _after: Option<&str>,
    ) -> Result<Option<ListPage<(GatewayToken, GatewayRefund)>>, GatewayError> {
        Ok(None)
    }

    /// Returns a list page of all disputes that were opened in `range`. Works like [`Refunds::refunds_in_range`].
    ///
    /// # Errors
    /// [`GatewayError`] if there is no usable response.
    async fn disputes_in_range(
        &self,
        _range: &TimeRange,
        _after: Option<&str>,
    ) -> Result<Option<ListPage<GatewayDispute>>, GatewayError> {
        Ok(None)
    }

    /// Returns the dispute `id` in its current state, with the details that the lists do not contain. Returns `None` if
    /// the gateway has no such dispute, or does not return single disputes.
    ///
    /// # Errors
    /// [`GatewayError`] if there is no usable response.
    async fn dispute_details(&self, _id: &GatewayToken) -> Result<Option<DisputeDetails>, GatewayError> {
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

/// A dispute with the details that the gateway's lists do not contain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DisputeDetails {
    pub dispute: GatewayDispute,
    /// The gateway's code for the reason of the dispute, such as `fraudulent`.
    pub reason: String,
    /// The payment method with which the disputed payment was made, if the gateway returns it.
    pub payment_method: Option<GatewayToken>,
}
