//! The table's items as they are stored. They are read here attribute by attribute, and not by the code that writes them.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, NaiveDate, Utc};

/// An item of the table.
pub type Attributes = HashMap<String, AttributeValue>;

/// What a subscription is known by here: account and subscription.
pub type Who = (String, String);

pub fn name((account, subscription): &Who) -> String {
    format!("{account} {subscription}")
}

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
    pub who: Who,
    pub status: StoredStatus,
    pub payment_day: u32,
    pub first_due: NaiveDate,
    pub due: NaiveDate,
    pub next_payment: Option<NaiveDate>,
    pub next_reminder: Option<NaiveDate>,
    pub has_attempt: bool,
}

/// A stored receipt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredReceipt {
    pub who: Who,
    pub due: NaiveDate,
    pub payment: String,
    pub amount: i64,
    pub currency: String,
    pub at: DateTime<Utc>,
}

/// How an attempt ended that did not succeed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoredOutcome {
    Declined { is_hard: bool },
    Rejected,
    Dropped,
}

/// A stored record of an attempt that did not succeed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredAttempt {
    pub who: Who,
    pub due: NaiveDate,
    pub no: u32,
    pub outcome: StoredOutcome,
    pub at: DateTime<Utc>,
}

/// A stored record of a month that was waived.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredWaiver {
    pub who: Who,
    pub due: NaiveDate,
    pub reason: String,
    pub at: DateTime<Utc>,
}

/// A stored run record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredRun {
    pub key: String,
    pub is_closed: bool,
    pub due: i64,
    /// The sum of all other counts.
    pub others: i64,
}

/// The parts of an item's key.
pub struct StoredKey<'a> {
    pk: &'a str,
    sk: Vec<&'a str>,
}

impl<'a> StoredKey<'a> {
    pub fn of(item: &'a Attributes) -> Option<Self> {
        Some(Self { pk: text(item, "PK")?, sk: text(item, "SK")?.split('#').collect() })
    }

    /// What kind of item it is.
    pub fn kind(&self) -> Option<&'a str> {
        self.sk.first().copied()
    }

    pub fn is_of(&self, kind: &str) -> bool {
        self.pk.split('#').next() == Some(kind)
    }

    pub fn account(&self) -> Option<&'a str> {
        self.pk.strip_prefix("ACC#")
    }

    /// Account and subscription, where the subscription is part number `index` of the sort key.
    fn who(&self, index: usize) -> Option<Who> {
        Some((self.account()?.to_owned(), (*self.sk.get(index)?).to_owned()))
    }

    fn due(&self) -> Option<NaiveDate> {
        self.sk.get(1)?.parse().ok()
    }
}

impl StoredStatus {
    /// The status as it is stored.
    pub fn read(text: &str) -> Option<Self> {
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
    /// `None` if an attribute is missing or wrong.
    pub fn read(key: &StoredKey<'_>, item: &Attributes) -> Option<Self> {
        Some(Self {
            who: key.who(1)?,
            status: StoredStatus::read(text(item, "Status")?)?,
            payment_day: number(item, "PaymentDay")?.try_into().ok()?,
            first_due: date(item, "FirstDueDate")?,
            due: date(item, "DueDate")?,
            next_payment: date(item, "NextPaymentDate"),
            next_reminder: date(item, "NextReminderDate"),
            has_attempt: item.contains_key("AttemptNo"),
        })
    }
}

impl StoredReceipt {
    /// `None` if an attribute is missing or wrong.
    pub fn read(key: &StoredKey<'_>, item: &Attributes) -> Option<Self> {
        Some(Self {
            who: key.who(5)?,
            due: key.due()?,
            payment: text(item, "GatewayPaymentId")?.to_owned(),
            amount: number(item, "ProcessedAmount")?,
            currency: text(item, "Currency")?.to_owned(),
            at: instant(item, "ProcessedDate")?,
        })
    }
}

impl StoredAttempt {
    /// `None` if an attribute is missing or wrong.
    pub fn read(key: &StoredKey<'_>, item: &Attributes) -> Option<Self> {
        let is_hard = *item.get("Hard")?.as_bool().ok()?;
        let outcome = match text(item, "Outcome")? {
            "declined" => StoredOutcome::Declined { is_hard },
            "rejected" => StoredOutcome::Rejected,
            "dropped" => StoredOutcome::Dropped,
            _ => return None,
        };
        let no = key.sk.get(4)?.parse().ok()?;
        Some(Self { who: key.who(3)?, due: key.due()?, no, outcome, at: instant(item, "ProcessedDate")? })
    }
}

impl StoredWaiver {
    /// `None` if an attribute is missing or wrong.
    pub fn read(key: &StoredKey<'_>, item: &Attributes) -> Option<Self> {
        let reason = text(item, "Reason")?.to_owned();
        Some(Self { who: key.who(3)?, due: key.due()?, reason, at: instant(item, "ProcessedDate")? })
    }
}

impl StoredRun {
    /// A run that is not closed may have no counts.
    pub fn read(key: &StoredKey<'_>, item: &Attributes) -> Self {
        let counts = item.get("Counts").and_then(|counts| counts.as_m().ok());
        let count = |name: &str| counts.and_then(|counts| number(counts, name)).unwrap_or(0);
        let all: i64 = counts.into_iter().flat_map(|counts| counts.keys()).map(|name| count(name)).sum();
        Self {
            key: format!("{} {}", key.pk, key.sk.join("#")),
            is_closed: item.contains_key("EndedAt"),
            due: count("due"),
            others: all - count("due"),
        }
    }
}

pub fn text<'a>(item: &'a Attributes, name: &str) -> Option<&'a str> {
    item.get(name)?.as_s().ok().map(String::as_str)
}

fn number(item: &Attributes, name: &str) -> Option<i64> {
    item.get(name)?.as_n().ok()?.parse().ok()
}

fn instant(item: &Attributes, name: &str) -> Option<DateTime<Utc>> {
    text(item, name)?.parse().ok()
}

fn date(item: &Attributes, name: &str) -> Option<NaiveDate> {
    text(item, name)?.parse().ok()
}
