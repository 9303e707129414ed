//! The record of an unsuccessful payment attempt.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};

use crate::values::ids::{AccountId, GatewayToken, SubscriptionId};
use crate::values::money::Money;

/// The outcome of an unsuccessful payment attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Display, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(
    feature = "openapi",
    schema(
        description = "The outcome of an unsuccessful payment attempt. `declined`: the payment failed, usually because \
            the bank declined it. `rejected`: the gateway refused the request and created no payment. `dropped`: the \
            subscription was paused or cancelled before the gateway had created a payment."
    )
)]
pub enum AttemptEnd {
    /// The payment failed, and cannot succeed any more.
    Declined,
    /// The gateway refused the request, and created no payment.
    Rejected,
    /// The subscription was paused or cancelled before the gateway had created a payment.
    Dropped,
}

/// The record of an unsuccessful payment attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttemptRecord {
    pub account: AccountId,
    pub subscription: SubscriptionId,
    pub due_on: NaiveDate,
    pub attempt_no: u32,
    pub amount: Money,
    /// The gateway's token of the customer whom the attempt was to charge; absent from a record that an earlier version
    /// of Dueday wrote.
    pub customer: Option<GatewayToken>,
    pub outcome: AttemptEnd,
    /// The gateway's code of the failure; for a dropped attempt, the status of the subscription (`paused` or
    /// `cancelled`).
    pub code: String,
    /// Whether another try with the same payment method is useless.
    pub hard: bool,
    /// Whether the failure counted as a decline, so that the next try follows the retry schedule. A declined attempt
    /// always counts as a decline. A rejected attempt counts as a decline if it is at least the third rejected attempt
    /// in a row.
    pub is_decline: bool,
    pub processed_at: DateTime<Utc>,
}
