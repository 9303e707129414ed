//! The receipt of a successful payment, and the record of one that was not.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};

use super::{AccountId, EmailAddress, GatewayToken, IdError, Label, Money, Sku, SubscriptionId};

/// What a receipt is known by: due date, subscription and SKU, as `2026-03-31.01JZXCVBNM0123456789ABCDEF.gold`.
///
/// ```
/// use shared::billing::ReceiptId;
/// let id: ReceiptId = "2026-03-31.01JZXCVBNM0123456789ABCDEF.gold".parse()?;
/// assert_eq!((id.due_on.to_string(), id.sku.as_str()), ("2026-03-31".to_owned(), "gold"));
/// assert!("2026-3-31.01JZXCVBNM0123456789ABCDEF.gold".parse::<ReceiptId>().is_err(), "it has one spelling");
/// # Ok::<(), shared::billing::IdError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ReceiptId {
    pub due_on: NaiveDate,
    pub subscription: SubscriptionId,
    pub sku: Sku,
}

impl FromStr for ReceiptId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let mut parts = text.splitn(3, '.');
        let (due_on, subscription, sku) = (parts.next(), parts.next(), parts.next());
        let due_on = due_on.and_then(|text| text.parse::<NaiveDate>().ok().filter(|on| on.to_string() == text));
        let id = due_on.zip(subscription).zip(sku).ok_or(IdError::Receipt)?;
        let ((due_on, subscription), sku) = id;
        let (subscription, sku) = (subscription.parse(), sku.parse());
        Ok(Self {
            due_on,
            subscription: subscription.map_err(|_| IdError::Receipt)?,
            sku: sku.map_err(|_| IdError::Receipt)?,
        })
    }
}

impl fmt::Display for ReceiptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.due_on, self.subscription, self.sku)
    }
}

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

impl Receipt {
    /// What it is known by.
    pub fn id(&self) -> ReceiptId {
        ReceiptId { due_on: self.due_on, subscription: self.subscription, sku: self.sku.clone() }
    }
}

/// How an attempt ended that did not succeed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptEnd {
    /// It can no longer succeed.
    Declined,
    /// The gateway refused the request and made nothing.
    Rejected,
    /// The subscription was stopped before the gateway knew anything of it.
    Dropped,
}

impl AttemptEnd {
    /// The word used in the table and in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            AttemptEnd::Declined => "declined",
            AttemptEnd::Rejected => "rejected",
            AttemptEnd::Dropped => "dropped",
        }
    }
}

/// What was tried, when, and what the gateway said, of an attempt that did not succeed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttemptRecord {
    pub account: AccountId,
    pub subscription: SubscriptionId,
    pub due_on: NaiveDate,
    pub attempt_no: u32,
    pub amount: Money,
    pub outcome: AttemptEnd,
    /// The gateway's code; of one that was dropped, the status it was stopped by.
    pub code: String,
    pub hard: bool,
    pub processed_at: DateTime<Utc>,
}

/// Why a month is waived.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ForgivenFor {
    /// The subscription was unpaid when it fell due.
    Unpaid,
    /// We have missed it.
    Missed,
}

impl ForgivenFor {
    /// The word used in the table and in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            ForgivenFor::Unpaid => "unpaid",
            ForgivenFor::Missed => "missed",
        }
    }
}

/// A month that was owed and is waived.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForgivenPeriod {
    pub account: AccountId,
    pub subscription: SubscriptionId,
    pub due_on: NaiveDate,
    pub reason: ForgivenFor,
    pub forgiven_at: DateTime<Utc>,
}
