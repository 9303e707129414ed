//! The refund of a payment or a part of it.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use strum::Display;
use ulid::Ulid;

use super::{AccountId, GatewayToken, Money, Receipt, ReceiptId};

/// The code of a refund that failed because the gateway refused the request before processing it. The caller may repeat
/// the same request.
pub const REFUSED_BY_GATEWAY: &str = "not_asked";

/// A refund of a payment or a part of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refund {
    pub id: Ulid,
    pub account: AccountId,
    pub receipt: ReceiptId,
    /// The gateway's identifier of the payment.
    pub payment: GatewayToken,
    pub amount: Money,
    /// How the request for the refund specified the amount. `None` if the refund was not requested with Dueday but made
    /// at the gateway itself, or if an earlier version of Dueday stored the refund.
    pub requested: Option<RequestedAmount>,
    pub status: RefundStatus,
    /// The gateway's identifier of the refund; `None` until the gateway has reported this identifier.
    pub gateway_refund: Option<GatewayToken>,
    /// The gateway's code for the failure of the refund, or [`REFUSED_BY_GATEWAY`].
    pub code: Option<String>,
    pub created_at: DateTime<Utc>,
    /// The end of the lease of the worker that requests the refund.
    pub leased_until: DateTime<Utc>,
    /// When the refund succeeded or failed; `None` while the refund is pending.
    pub settled_at: Option<DateTime<Utc>>,
    /// When the refund is deleted from the table, together with its receipt, in seconds since 1970.
    pub expires: i64,
    /// The version of the stored item. Every write increases it by one.
    pub version: u64,
}

/// How a request for a refund specified the amount.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestedAmount {
    /// The request contained the exact amount.
    Exact,
    /// The request was for the whole remaining amount.
    Remainder,
}

/// The sum of the refunds of a receipt that have succeeded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SucceededRefunds {
    pub amount: Money,
    /// When the latest of these refunds succeeded.
    pub latest_at: DateTime<Utc>,
}

impl Refund {
    /// Returns whether the refund failed because the gateway refused the request before processing it.
    pub fn is_refused_by_gateway(&self) -> bool {
        self.status == RefundStatus::Failed && self.code.as_deref() == Some(REFUSED_BY_GATEWAY)
    }

    /// Returns whether a new refund request asks for the same amount as the request for this refund, so that the new
    /// request may be a repetition. The new request asks for `minor` minor units. If `minor` is `None`, the new request
    /// asks for the whole remaining amount.
    pub fn is_requested_by(&self, minor: Option<i64>) -> bool {
        match (self.requested, minor) {
            (Some(RequestedAmount::Exact) | None, Some(minor)) => minor == self.amount.minor(),
            (Some(RequestedAmount::Remainder) | None, None) => true,
            (Some(RequestedAmount::Exact), None) | (Some(RequestedAmount::Remainder), Some(_)) => false,
        }
    }
}

/// Whether a refund is pending, has succeeded or has failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Display, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(
    feature = "openapi",
    schema(description = "The status of a refund. `pending`: the bank is processing it, or its outcome is unknown.")
)]
pub enum RefundStatus {
    /// The gateway has not finished the refund, or its outcome is unknown.
    Pending,
    Succeeded,
    Failed,
}

/// The reason why an amount cannot be refunded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RefundRefusal {
    #[error("the payment is fully refunded already")]
    FullyRefunded,
    #[error("must be from 1 to {}, the remaining amount of the payment in minor units", remaining.minor())]
    InvalidAmount { remaining: Money },
}

impl Receipt {
    /// Returns the sum of the successful refunds in `refunds`, the refunds of this receipt; `None` if no refund has
    /// succeeded. The sum does not contain pending refunds: the customer does not have the money yet, and a pending
    /// refund may still fail.
    pub fn succeeded_refunds(&self, refunds: &[Refund]) -> Option<SucceededRefunds> {
        let succeeded = || refunds.iter().filter(|refund| refund.status == RefundStatus::Succeeded);
        let latest_at = succeeded().map(|refund| refund.settled_at.unwrap_or(refund.created_at)).max()?;
        let none = Money::new(0, self.amount.currency());
        let sum = succeeded().try_fold(none, |sum, refund| sum.checked_add(refund.amount));
        // If the refunds cannot be added up (they have another currency, or the sum is too large), assume that the
        // whole payment was refunded.
        Some(SucceededRefunds { amount: sum.unwrap_or(self.amount), latest_at })
    }

    /// Returns the amount of the payment that is not refunded yet.
    pub fn remaining(&self) -> Money {
        Money::new(self.amount.minor().saturating_sub(self.refunded.minor()), self.amount.currency())
    }

    /// Checks that `minor` minor units can be refunded, and returns them as an amount. If `minor` is `None`, returns
    /// the whole remaining amount.
    ///
    /// # Errors
    /// - [`RefundRefusal::FullyRefunded`] if nothing remains
    /// - [`RefundRefusal::InvalidAmount`] if `minor` is not from 1 to the remaining amount
    pub fn checked_refund_amount(&self, minor: Option<i64>) -> Result<Money, RefundRefusal> {
        let remaining = self.remaining();
        if remaining.minor() <= 0 {
            return Err(RefundRefusal::FullyRefunded);
        }
        match minor.unwrap_or(remaining.minor()) {
            minor if (1..=remaining.minor()).contains(&minor) => Ok(Money::new(minor, remaining.currency())),
            _ => Err(RefundRefusal::InvalidAmount { remaining }),
        }
    }
}
