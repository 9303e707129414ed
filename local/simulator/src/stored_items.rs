//! Reads the table's items attribute by attribute, without the production code that writes them.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, NaiveDate, Utc};

/// The attributes of an item of the table, by name.
pub type Attributes = HashMap<String, AttributeValue>;

/// The account id and the subscription id, which together identify a subscription.
pub type SubscriptionName = (String, String);

/// Returns the account id and the subscription id as one text.
pub fn display_name((account, subscription): &SubscriptionName) -> String {
    format!("{account} {subscription}")
}

/// The stored status of a subscription.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoredStatus {
    Active,
    PastDue,
    Unpaid,
    Paused,
    Cancelled,
}

/// A stored subscription.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredSubscription {
    pub name: SubscriptionName,
    pub status: StoredStatus,
    pub payment_day: u32,
    /// The first due date of the subscription.
    pub first_due: NaiveDate,
    /// The current due date: the date of the next payment, or of the payment that is owed.
    pub due: NaiveDate,
    /// The date in the payment index; `None` if the index does not contain the subscription.
    pub next_payment: Option<NaiveDate>,
    /// The date in the reminder index; `None` if the index does not contain the subscription.
    pub next_reminder: Option<NaiveDate>,
    pub has_open_attempt: bool,
}

/// A stored receipt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredReceipt {
    pub subscription: SubscriptionName,
    pub due: NaiveDate,
    /// The gateway's id of the payment.
    pub payment: String,
    pub amount: i64,
    pub currency: String,
    pub at: DateTime<Utc>,
}

/// The outcome of a payment attempt that did not succeed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoredOutcome {
    Declined {
        is_hard: bool,
    },
    Rejected,
    /// The subscription was paused or cancelled before the gateway had created a payment.
    Dropped,
}

/// The stored record of a payment attempt that did not succeed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredAttempt {
    pub subscription: SubscriptionName,
    pub due: NaiveDate,
    /// The number of the attempt.
    pub no: u32,
    pub outcome: StoredOutcome,
    pub at: DateTime<Utc>,
}

/// The stored record of a waived month.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredWaiver {
    pub subscription: SubscriptionName,
    pub due: NaiveDate,
    pub reason: String,
    pub at: DateTime<Utc>,
}

/// A stored run record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredRun {
    pub key: String,
    pub has_ended: bool,
    /// The number of due rows that the run read.
    pub due: i64,
    /// The number of rows with an outcome: the sum of all other counts.
    pub outcomes: i64,
}

/// The key of an item: its partition key, and its sort key split at each `#`.
pub struct StoredKey<'a> {
    pk: &'a str,
    sk: Vec<&'a str>,
}

impl<'a> StoredKey<'a> {
    /// Reads the key of `item`; `None` if the partition key or the sort key is missing.
    pub fn from_item(item: &'a Attributes) -> Option<Self> {
        Some(Self { pk: read_text_attribute(item, "PK")?, sk: read_text_attribute(item, "SK")?.split('#').collect() })
    }

    /// Returns the kind of the item: the first part of its sort key.
    pub fn kind(&self) -> Option<&'a str> {
        self.sk.first().copied()
    }

    /// Returns whether `kind` is the first part of the partition key.
    pub fn has_partition_kind(&self, kind: &str) -> bool {
        self.pk.split('#').next() == Some(kind)
    }

    /// Returns the account id in the partition key; `None` if the item does not belong to an account.
    pub fn account(&self) -> Option<&'a str> {
        self.pk.strip_prefix("ACC#")
    }

    /// Returns the name of the subscription whose id is part number `index` (from 0) of the sort key.
    fn subscription(&self, index: usize) -> Option<SubscriptionName> {
        Some((self.account()?.to_owned(), (*self.sk.get(index)?).to_owned()))
    }

    /// Returns the due date in the sort key of a receipt, an attempt record or a waiver.
    fn due(&self) -> Option<NaiveDate> {
        self.sk.get(1)?.parse().ok()
    }
}

impl StoredStatus {
    /// Returns the status that is stored as `text`; `None` if `text` is not a status.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "active" => Self::Active,
            "past_due" => Self::PastDue,
            "unpaid" => Self::Unpaid,
            "paused" => Self::Paused,
            "cancelled" => Self::Cancelled,
            _ => return None,
        })
    }
}

impl StoredSubscription {
    /// Reads a subscription; `None` if an attribute is missing or invalid.
    pub fn from_item(key: &StoredKey<'_>, item: &Attributes) -> Option<Self> {
        Some(Self {
            name: key.subscription(1)?,
            status: StoredStatus::parse(read_text_attribute(item, "Status")?)?,
            payment_day: read_number_attribute(item, "PaymentDay")?.try_into().ok()?,
            first_due: read_date_attribute(item, "FirstDueDate")?,
            due: read_date_attribute(item, "DueDate")?,
            next_payment: read_date_attribute(item, "NextPaymentDate"),
            next_reminder: read_date_attribute(item, "NextReminderDate"),
            has_open_attempt: item.contains_key("AttemptNo"),
        })
    }
}

impl StoredReceipt {
    /// Reads a receipt; `None` if an attribute is missing or invalid.
    pub fn from_item(key: &StoredKey<'_>, item: &Attributes) -> Option<Self> {
        Some(Self {
            subscription: key.subscription(5)?,
            due: key.due()?,
            payment: read_text_attribute(item, "GatewayPaymentId")?.to_owned(),
            amount: read_number_attribute(item, "ProcessedAmount")?,
            currency: read_text_attribute(item, "Currency")?.to_owned(),
            at: read_instant_attribute(item, "ProcessedDate")?,
        })
    }
}

impl StoredAttempt {
    /// Reads an attempt record; `None` if an attribute is missing or invalid.
    pub fn from_item(key: &StoredKey<'_>, item: &Attributes) -> Option<Self> {
        let is_hard = *item.get("Hard")?.as_bool().ok()?;
        let outcome = match read_text_attribute(item, "Outcome")? {
            "declined" => StoredOutcome::Declined { is_hard },
            "rejected" => StoredOutcome::Rejected,
            "dropped" => StoredOutcome::Dropped,
            _ => return None,
        };
        let no = key.sk.get(4)?.parse().ok()?;
        Some(Self {
            subscription: key.subscription(3)?,
            due: key.due()?,
            no,
            outcome,
            at: read_instant_attribute(item, "ProcessedDate")?,
        })
    }
}

impl StoredWaiver {
    /// Reads a waiver; `None` if an attribute is missing or invalid.
    pub fn from_item(key: &StoredKey<'_>, item: &Attributes) -> Option<Self> {
        let reason = read_text_attribute(item, "Reason")?.to_owned();
        Some(Self {
            subscription: key.subscription(3)?,
            due: key.due()?,
            reason,
            at: read_instant_attribute(item, "ProcessedDate")?,
        })
    }
}

impl StoredRun {
    /// Reads a run record. If the run has not ended, missing counts are 0.
    pub fn from_item(key: &StoredKey<'_>, item: &Attributes) -> Self {
        let counts = item.get("Counts").and_then(|counts| counts.as_m().ok());
        let count = |name: &str| counts.and_then(|counts| read_number_attribute(counts, name)).unwrap_or(0);
        let all: i64 = counts.into_iter().flat_map(|counts| counts.keys()).map(|name| count(name)).sum();
        Self {
            key: format!("{} {}", key.pk, key.sk.join("#")),
            has_ended: item.contains_key("EndedAt"),
            due: count("due"),
            outcomes: all - count("due"),
        }
    }
}

/// Returns the text attribute `name` of `item`; `None` if the attribute is missing or has another type.
pub fn read_text_attribute<'a>(item: &'a Attributes, name: &str) -> Option<&'a str> {
    item.get(name)?.as_s().ok().map(String::as_str)
}

/// Returns the number attribute `name` of `item`; `None` if the attribute is missing or has another type.
fn read_number_attribute(item: &Attributes, name: &str) -> Option<i64> {
    item.get(name)?.as_n().ok()?.parse().ok()
}

/// Returns the instant in the text attribute `name` of `item`; `None` if the attribute is missing or invalid.
fn read_instant_attribute(item: &Attributes, name: &str) -> Option<DateTime<Utc>> {
    read_text_attribute(item, name)?.parse().ok()
}

/// Returns the date in the text attribute `name` of `item`; `None` if the attribute is missing or invalid.
fn read_date_attribute(item: &Attributes, name: &str) -> Option<NaiveDate> {
    read_text_attribute(item, name)?.parse().ok()
}
