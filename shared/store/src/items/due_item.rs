use aws_sdk_dynamodb::types::AttributeValue;
use chrono::NaiveDate;
use serde::{Deserialize, Serialize};

use crate::items::subscription::SubscriptionItem;
use crate::items::subscription::names::SHARD;
use crate::keys::SubscriptionKey;
use billing::{Currency, Label, Money, Period, SubscriptionStatus, last_payment_day_in_sight};
use dynamo::{Item, Key, TableError};
use dynamo::{from_item, key_of_item};

/// One row of the list of due subscriptions, read from an index. The row may be stale, so no write is computed from it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DueEntry {
    pub key: SubscriptionKey,
    /// The date of the index entry: the next payment date in the payment index, the next reminder date in the reminder
    /// index.
    pub on: NaiveDate,
    /// The due date of the subscription's next payment.
    pub due_on: NaiveDate,
    pub product_name: Label,
    pub amount: Money,
    /// Whether the subscription is not charged any more, for example because it is paused or cancelled. Such a
    /// subscription is in the list only because a payment attempt is open. Always `false` in the reminder index, which
    /// does not contain the status.
    pub is_stopped: bool,
    /// The first month that will not be charged, because of a planned or completed cancellation. Always `None` in the
    /// reminder index, which does not contain this month.
    pub cancel_from: Option<Period>,
}

impl DueEntry {
    /// Returns whether the payment of `due_on` may be charged: the subscription is not stopped (paused, unpaid or
    /// cancelled), and its scheduled cancellation (if any) takes effect in a later month. Whether the payment will be
    /// charged is known only from the subscription, which may be disputed.
    pub fn may_be_charged(&self) -> bool {
        !self.is_stopped && self.cancel_from.is_none_or(|from| from > Period::from_day(self.due_on))
    }
}

/// The attributes of an index entry from which a [`DueEntry`] is read.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct DueItem {
    #[serde(rename = "PK")]
    pk: String,
    #[serde(rename = "SK")]
    sk: String,
    #[serde(alias = "NextPaymentDate", alias = "NextReminderDate")]
    on: NaiveDate,
    due_date: NaiveDate,
    product_name: Label,
    payment_amount: i64,
    currency: Currency,
    status: Option<SubscriptionStatus>,
    cancel_period: Option<Period>,
}

/// Checks at compile time that the fields of [`DueItem`] are also fields of [`SubscriptionItem`], because the
/// attributes of an index entry are copies of the subscription's attributes.
const _: fn(&SubscriptionItem, &DueItem) = |item, row| {
    let _ = (&item.product_name, &row.product_name);
    let _ = (&item.payment_amount, &row.payment_amount);
    let _ = (&item.currency, &row.currency);
    let _ = (&item.due_date, &row.due_date);
    let _ = (&item.status, &row.status);
    let _ = (&item.cancel_period, &row.cancel_period);
};

impl DueItem {
    /// Reads a row from an entry of the payment index or the reminder index.
    pub fn read(item: &Item) -> Result<DueEntry, TableError> {
        let row: DueItem = from_item(item)?;
        let key = Key { pk: row.pk, sk: row.sk };
        let key = SubscriptionKey::parse(&key)
            .ok_or_else(|| TableError::unreadable(key, "its key is not the key of a subscription"))?;
        let is_stopped = row.status.is_some_and(|status| !status.is_chargeable());
        Ok(DueEntry {
            key,
            on: row.on,
            due_on: row.due_date,
            product_name: row.product_name,
            amount: Money::new(row.payment_amount, row.currency),
            is_stopped,
            cancel_from: row.cancel_period,
        })
    }
}

/// A lane: one pass over the rows of a shard, either for due payments or reminders, or for open payment attempts. The
/// payment batch has both lanes; the reminder batch has only the first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(
    feature = "openapi",
    schema(
        description = "One pass over the rows of a shard. `due`: charge the payments that are due. `open`: look up the payment \
                       attempts that were started and have no outcome yet."
    )
)]
pub enum Lane {
    /// Processes the rows that are due, except open payment attempts.
    #[default]
    Due,
    /// Looks up open payment attempts at the gateway. Open attempts have their own lane, so that slow look-ups do not
    /// delay due payments.
    Open,
}

impl Lane {
    /// Returns whether this is the first lane: the one that processes the due rows of a shard.
    fn is_first(&self) -> bool {
        *self == Self::Due
    }
}

/// A position in an index: the entry after which a walk or a list continues.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DueIndexPosition {
    #[serde(default, skip_serializing_if = "Lane::is_first")]
    pub lane: Lane,
    /// The shard of the index entry.
    pub shard: u32,
    /// The date of the index entry (the sort key of the index), as text.
    pub on: String,
    pub pk: String,
    pub sk: String,
}

impl DueIndexPosition {
    /// Returns the position of the index entry `item`. `date_attribute` is the sort key of the index.
    pub(crate) fn from_index_item(shard: u32, date_attribute: &str, item: &Item) -> Self {
        let Key { pk, sk } = key_of_item(item);
        let on = item.get(date_attribute).and_then(|on| on.as_s().ok()).cloned().unwrap_or_default();
        Self { lane: Lane::Due, shard, on, pk, sk }
    }

    /// Returns the position before the first index entry of `shard`, in the lane `lane`.
    pub fn start_of(lane: Lane, shard: u32) -> Self {
        Self { lane, shard, on: String::new(), pk: String::new(), sk: String::new() }
    }

    /// Returns the position of the same index entry in the lane `lane` (due rows or open attempts).
    pub fn in_lane(self, lane: Lane) -> Self {
        Self { lane, ..self }
    }

    /// Returns whether this position is before the first index entry of its lane.
    pub fn is_start_of_lane(&self) -> bool {
        self.pk.is_empty()
    }

    /// Returns whether this position is before the first row of the first lane: no row of the shard was read yet.
    pub fn is_start(&self) -> bool {
        self.lane.is_first() && self.is_start_of_lane()
    }

    /// Returns whether this can be the position of an index entry in the list of due and postponed payments
    /// ([`Table::get_due_and_postponed_by_date`]) of the date `date`. Used to check a position that a caller has sent.
    ///
    /// [`Table::get_due_and_postponed_by_date`]: crate::table::payments_table::Table::get_due_and_postponed_by_date
    pub fn is_in_due_list(&self, date: NaiveDate, today: NaiveDate) -> bool {
        let is_key = |text: &str| (1..=1024).contains(&text.len());
        let is_listed =
            |on: NaiveDate| (on <= date || on > last_payment_day_in_sight(today)) && on.to_string() == self.on;
        is_key(&self.pk) && is_key(&self.sk) && self.on.parse().is_ok_and(is_listed)
    }

    /// Converts the position to the `ExclusiveStartKey` of a Query. `date_attribute` is the sort key of the index.
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
