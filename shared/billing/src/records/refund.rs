//! The refund of a payment or a part of it.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use strum::Display;
use ulid::Ulid;

use crate::records::dispute::Dispute;
use crate::records::receipt::Receipt;
use crate::records::receipt_id::ReceiptId;
use crate::values::ids::{AccountId, GatewayToken};
use crate::values::money::Money;

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

/// What a request for a refund asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RefundDemand {
    /// The amount in minor units; `None` for the whole refundable amount.
    pub minor: Option<i64>,
    /// Whether an operator has requested the refund although the bank has reversed this money, or may still reverse it
    /// because of an open dispute.
    pub although_disputed: bool,
    /// Whether the refund counts toward the sum that support may refund per day, and must not exceed it.
    pub has_daily_limit: bool,
}

impl From<Option<i64>> for RefundDemand {
    /// Returns the demand for `minor` minor units, without the permission to refund disputed money, and without a limit of
    /// the day.
    fn from(minor: Option<i64>) -> Self {
        Self { minor, although_disputed: false, has_daily_limit: false }
    }
}

/// The amount of a new refund.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CheckedRefundAmount {
    pub amount: Money,
    /// Whether the amount contains money that the bank has reversed, or may still reverse because of an open dispute.
    pub is_disputed: bool,
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
    #[error(
        "the customer would get the money twice: the bank has reversed {reversed} of the payment, and may still reverse \
         {disputed} because of an open dispute; {refundable} can be refunded"
    )]
    Disputed { reversed: Money, disputed: Money, refundable: Money },
    #[error("support may refund at most {most} per day, and has refunded {refunded} today; an admin may refund more")]
    OverDailyLimit { most: Money, refunded: Money },
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

    /// Returns the amount of the payment that is not refunded yet, even if the bank has reversed the payment or may
    /// still reverse it.
    pub fn unrefunded_amount(&self) -> Money {
        Money::new(self.amount.minor().saturating_sub(self.refunded.minor()), self.amount.currency())
    }

    /// Returns the amount that can be refunded without giving the customer the same money twice: the paid amount minus
    /// the refunds, minus the amount that the bank reversed, and minus the amount of open disputes. `disputes` are all
    /// disputes of the account. The result is negative if the customer can get more back than the paid amount.
    pub fn refundable_amount(&self, disputes: &[Dispute]) -> Money {
        let returnable = self.reversed_amount(disputes).minor().saturating_add(self.disputed_amount(disputes).minor());
        Money::new(self.unrefunded_amount().minor().saturating_sub(returnable), self.amount.currency())
    }

    /// Returns the amount that the bank reversed, according to `disputes` or, if they contain no reversal, according to
    /// this receipt.
    fn reversed_amount(&self, disputes: &[Dispute]) -> Money {
        let reversal = self.reversal_from(disputes).or(self.reversal);
        reversal.map_or(Money::new(0, self.amount.currency()), |reversal| reversal.amount)
    }

    /// Checks that the refund `demand` can be made, and returns its amount. `disputes` are all disputes of the account.
    ///
    /// # Errors
    /// - [`RefundRefusal::FullyRefunded`] if the whole payment is refunded.
    /// - [`RefundRefusal::InvalidAmount`] if the requested amount is not from 1 to the amount that is not refunded yet.
    /// - [`RefundRefusal::Disputed`] if the requested amount is more than the [refundable
    ///   amount](Receipt::refundable_amount) because of a dispute, and `demand` does not permit this.
    pub fn checked_refund_amount(
        &self,
        demand: RefundDemand,
        disputes: &[Dispute],
    ) -> Result<CheckedRefundAmount, RefundRefusal> {
        let (remaining, refundable) = (self.unrefunded_amount(), self.refundable_amount(disputes));
        if remaining.minor() <= 0 {
            return Err(RefundRefusal::FullyRefunded);
        }
        let whole = if demand.although_disputed { remaining } else { refundable };
        let minor = demand.minor.unwrap_or(whole.minor().max(1));
        if !(1..=remaining.minor()).contains(&minor) {
            return Err(RefundRefusal::InvalidAmount { remaining });
        }
        let is_disputed = minor > refundable.minor();
        if is_disputed && !demand.although_disputed {
            let (reversed, disputed) = (self.reversed_amount(disputes), self.disputed_amount(disputes));
            let refundable = Money::new(refundable.minor().max(0), refundable.currency());
            return Err(RefundRefusal::Disputed { reversed, disputed, refundable });
        }
        Ok(CheckedRefundAmount { amount: Money::new(minor, remaining.currency()), is_disputed })
    }
}
