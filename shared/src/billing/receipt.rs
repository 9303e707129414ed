//! The receipt of a successful payment, and the record of one that was not.

use chrono::{DateTime, NaiveDate, Utc};

use super::{AccountId, EmailAddress, GatewayToken, Label, Money, Sku, SubscriptionId};

/// Proof of one successful payment of one due date. It expires: it is never what protects from charging twice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Receipt {
    pub account: AccountId,
    pub subscription: SubscriptionId,
    pub sku: Sku,
    pub product_name: Label,
    /// The subscription's own address; absent when its mail goes to the account's.
    pub email: Option<EmailAddress>,
    pub due_on: NaiveDate,
    pub amount: Money,
    /// The gateway's identifier of the payment.
    pub payment: GatewayToken,
    pub processed_at: DateTime<Utc>,
}

/// What was tried, when, and what the gateway said, of an attempt that did not succeed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttemptRecord {
    pub account: AccountId,
    pub subscription: SubscriptionId,
    pub due_on: NaiveDate,
    pub attempt_no: u32,
    pub amount: Money,
    /// `declined`, `rejected` or `dropped`.
    pub outcome: &'static str,
    /// The gateway's code.
    pub code: String,
    pub hard: bool,
    pub processed_at: DateTime<Utc>,
}
