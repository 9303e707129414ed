//! The refund: a payment, or a part of it, given back.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use strum::Display;
use ulid::Ulid;

use super::{AccountId, GatewayToken, Money, Receipt, ReceiptId};

/// The code of a refund that failed because the gateway refused the request before it began. The same request may ask for it again.
pub const NOT_ASKED: &str = "not_asked";

/// One giving back, of a whole payment or a part of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refund {
    pub id: Ulid,
    pub account: AccountId,
    pub receipt: ReceiptId,
    /// The gateway's identifier of the payment.
    pub payment: GatewayToken,
    pub amount: Money,
    /// How its request named the amount; absent of a refund that was made at the gateway itself or stored by an earlier version.
    pub requested: Option<RequestedAmount>,
    pub status: RefundStatus,
    /// The gateway's identifier of the refund, once it is known there.
    pub gateway_refund: Option<GatewayToken>,
    /// The gateway's own word for why it has failed.
    pub code: Option<String>,
    pub created_at: DateTime<Utc>,
    /// Until then it belongs to whoever asks the gateway.
    pub leased_until: DateTime<Utc>,
    /// When it has succeeded or failed.
    pub settled_at: Option<DateTime<Utc>>,
    /// When it expires with its receipt, in seconds since 1970.
    pub expires: i64,
    /// Raised by one with every write.
    pub version: u64,
}

/// How a request for a refund named the amount.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestedAmount {
    /// The request named this amount.
    Exact,
    /// The request was for all that was left of the payment.
    Remainder,
}

impl Refund {
    /// Returns whether it failed because the gateway refused the request before it began.
    pub fn is_not_asked(&self) -> bool {
        self.status == RefundStatus::Failed && self.code.as_deref() == Some(NOT_ASKED)
    }

    /// Returns whether a request for `minor`, or for all that is left, is the request that this refund was made for.
    pub fn is_requested_by(&self, minor: Option<i64>) -> bool {
        match (self.requested, minor) {
            (Some(RequestedAmount::Exact) | None, Some(minor)) => minor == self.amount.minor(),
            (Some(RequestedAmount::Remainder) | None, None) => true,
            (Some(RequestedAmount::Exact), None) | (Some(RequestedAmount::Remainder), Some(_)) => false,
        }
    }
}

/// Where a refund stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Display, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(description = "`pending`: on its way, or not known yet."))]
pub enum RefundStatus {
    /// The gateway has not finished it, or its outcome is unknown.
    Pending,
    Succeeded,
    Failed,
}

/// Why an amount cannot be given back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RefundRefusal {
    #[error("it is refunded already")]
    Refunded,
    #[error("must be from 1 to {}, what is left of the payment in minor units", left.minor())]
    NotLeft { left: Money },
}

impl Receipt {
    /// What is left to give back.
    pub fn left(&self) -> Money {
        Money::new(self.amount.minor().saturating_sub(self.refunded.minor()), self.amount.currency())
    }

    /// `minor` of it, or all that is left.
    ///
    /// # Errors
    /// [`RefundRefusal`].
    pub fn refundable(&self, minor: Option<i64>) -> Result<Money, RefundRefusal> {
        let left = self.left();
        if left.minor() <= 0 {
            return Err(RefundRefusal::Refunded);
        }
        match minor.unwrap_or(left.minor()) {
            minor if (1..=left.minor()).contains(&minor) => Ok(Money::new(minor, left.currency())),
            _ => Err(RefundRefusal::NotLeft { left }),
        }
    }
}
