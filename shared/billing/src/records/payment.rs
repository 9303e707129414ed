//! The data of the payment gateway: gateway accounts, payment methods and payments.

use std::fmt;

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use crate::values::calendar::Period;
use crate::values::card::{Card, readable_card};
use crate::values::ids::{AccountId, GatewayToken, SubscriptionId};
use crate::values::money::Money;

/// A payment method: the tokens of the payment gateway for the customer and for the card or bank account.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PaymentMethod {
    /// The gateway's token of the customer.
    pub customer: GatewayToken,
    /// The gateway's token of the customer's card or bank account.
    pub payment_method: GatewayToken,
}

/// The gateway account that receives all payments of a payments table. (Each deployment has its own payments table.) A
/// payment in one gateway account is not visible in another gateway account.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct GatewayAccount {
    /// The kind of gateway, such as `sandbox` or `stripe`.
    pub kind: String,
    /// The gateway's id of the account. If the gateway's key may not read this id, the id of the marker customer, which
    /// Dueday creates at the gateway to identify the account.
    pub account: String,
    /// Whether payments in this account move real money.
    pub live: bool,
}

impl fmt::Display for GatewayAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, account, live } = self;
        write!(f, "{kind} {account} ({})", if *live { "live" } else { "test" })
    }
}

/// A payment as the gateway returns it, with the identifiers that the charge request contained.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Payment {
    /// The gateway's id of the payment.
    pub id: GatewayToken,
    /// The id of the table that requested the payment; absent from a payment that an earlier version of Dueday
    /// requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<Ulid>,
    pub account: AccountId,
    pub subscription: SubscriptionId,
    pub due_on: NaiveDate,
    pub attempt_no: u32,
    #[serde(flatten)]
    pub amount: Money,
    pub status: PaymentStatus,
    /// The charged card; absent if the payment method was not a card.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "readable_card")]
    pub card: Option<Box<Card>>,
    pub created_at: DateTime<Utc>,
}

impl Payment {
    /// Returns the period that the payment pays. The payment day may have changed since it was requested, so payments,
    /// attempts and receipts are compared by period, and not by due date.
    pub fn period(&self) -> Period {
        Period::from_day(self.due_on)
    }
}

/// The status of a payment. Only the status `Processing` can still change.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PaymentStatus {
    Succeeded,
    /// The bank is processing the payment, which can take days.
    Processing,
    /// The payment failed, and cannot succeed any more.
    Declined(Decline),
}

/// The reason why a payment failed.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Decline {
    /// The gateway's code for the reason of the decline, such as `insufficient_funds`.
    pub code: String,
    /// Whether another try with the same payment method is useless (lost, stolen or expired card, closed account).
    pub hard: bool,
}
