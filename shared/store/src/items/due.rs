use aws_sdk_dynamodb::types::AttributeValue;
use chrono::NaiveDate;
use serde::{Deserialize, Serialize};

use super::super::{Item, Key, SubscriptionKey, TableError};
use super::subscription::TermsItem;
use super::subscription::names::SHARD;
use billing::{Course, Currency, Label, Money, PaymentDay, Period, Status};
use dynamo::{from_item, key_of};

/// A row of a due list, as an index shows it: a hint of what to look at, never a basis for a write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Due {
    pub key: SubscriptionKey,
    /// The index's date: next payment or next reminder.
    pub on: NaiveDate,
    pub due_on: NaiveDate,
    pub product_name: Label,
    pub amount: Money,
    /// Paused or cancelled, and listed only because a payment of it is open. The reminder index does not show it.
    pub is_stopped: bool,
    /// What is known of its due dates; `None` in the reminder index, which does not show it.
    pub course: Option<Course>,
}

impl Due {
    /// Whether it will be charged: it is not stopped, and this due date is not the one that ends it.
    pub fn will_be_charged(&self) -> bool {
        let cancel_from = self.course.as_ref().and_then(|course| course.cancel_from);
        !self.is_stopped && cancel_from.is_none_or(|from| from > Period::of(self.due_on))
    }
}

/// What both indexes project besides their keys and that a [`Due`] is read from.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct DueItem {
    #[serde(rename = "PK")]
    pk: String,
    #[serde(rename = "SK")]
    sk: String,
    #[serde(alias = "NextPaymentDate", alias = "NextReminderDate")]
    on: NaiveDate,
    pub(super) due_date: NaiveDate,
    pub(super) product_name: Label,
    pub(super) payment_amount: i64,
    pub(super) currency: Currency,
    pub(super) status: Option<Status>,
    pub(super) payment_day: Option<PaymentDay>,
    pub(super) cancel_period: Option<Period>,
    pub(super) unpaid_since: Option<NaiveDate>,
    #[serde(default)]
    pub(super) waiting_terms: Vec<TermsItem>,
}

impl DueItem {
    pub fn read(item: &Item) -> Result<Due, TableError> {
        let row: DueItem = from_item(item)?;
        let key = Key { pk: row.pk, sk: row.sk };
        let key = SubscriptionKey::parse(&key)
            .ok_or_else(|| TableError::unreadable(key, "its key is not a subscription's"))?;
        let unreadable = |error| TableError::unreadable(key.key(), format!("WaitingTerms {error}"));
        let waiting_terms = row.waiting_terms.into_iter().map(|terms| terms.read(row.currency));
        let waiting_terms = waiting_terms.collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
        let amount = Money::new(row.payment_amount, row.currency);
        let course = row.payment_day.map(|payment_day| Course {
            due_on: row.due_date,
            payment_day,
            price: amount,
            waiting_terms,
            cancel_from: row.cancel_period,
            unpaid_since: row.unpaid_since,
        });
        let is_stopped = row.status.is_some_and(|status| !status.is_chargeable());
        Ok(Due { key, on: row.on, due_on: row.due_date, product_name: row.product_name, amount, is_stopped, course })
    }
}

/// A walk over a shard has as many lanes as its batch needs, one after the other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(
    feature = "openapi",
    schema(
        description = "`due`: what is due is charged. `open`: payments that were begun and not settled are looked up."
    )
)]
pub enum Lane {
    /// What is due. Payments that are open are passed by.
    #[default]
    Due,
    /// Payments that are open, and are looked up at the gateway: slow ones never keep what is payable waiting.
    Open,
}

impl Lane {
    fn is_first(&self) -> bool {
        *self == Self::Due
    }
}

/// Where a walk over an index stands: the entry it goes on after.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Position {
    #[serde(default, skip_serializing_if = "Lane::is_first")]
    pub lane: Lane,
    pub shard: u32,
    /// The entry's date in the index.
    pub on: String,
    pub pk: String,
    pub sk: String,
}

impl Position {
    pub(crate) fn of(shard: u32, date_attribute: &str, item: &Item) -> Self {
        let Key { pk, sk } = key_of(item);
        let on = item.get(date_attribute).and_then(|on| on.as_s().ok()).cloned().unwrap_or_default();
        Self { lane: Lane::Due, shard, on, pk, sk }
    }

    /// Before the first entry of `shard`, in `lane`.
    pub fn start_of(lane: Lane, shard: u32) -> Self {
        Self { lane, shard, on: String::new(), pk: String::new(), sk: String::new() }
    }

    /// The same entry, in `lane`.
    pub fn in_lane(self, lane: Lane) -> Self {
        Self { lane, ..self }
    }

    /// Whether it stands before the first entry of its lane.
    pub fn is_start_of_lane(&self) -> bool {
        self.pk.is_empty()
    }

    /// Whether it stands before the first entry of the first lane.
    pub fn is_start(&self) -> bool {
        self.lane.is_first() && self.is_start_of_lane()
    }

    /// Whether it names an entry that is due on or before `date`.
    pub fn is_due_by(&self, date: NaiveDate) -> bool {
        let is_key = |text: &str| (1..=1024).contains(&text.len());
        let is_due = |on: NaiveDate| on <= date && on.to_string() == self.on;
        is_key(&self.pk) && is_key(&self.sk) && self.on.parse().is_ok_and(is_due)
    }

    pub(crate) fn start_key(&self, date_attribute: &str) -> Item {
        let text = |text: &String| AttributeValue::S(text.clone());
        Item::from([
            ("PK".to_owned(), text(&self.pk)),
            ("SK".to_owned(), text(&self.sk)),
            (SHARD.to_owned(), AttributeValue::N(self.shard.to_string())),
            (date_attribute.to_owned(), text(&self.on)),
        ])
    }
}
