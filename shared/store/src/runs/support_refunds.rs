//! The sum of a day that support has refunded in one currency. It is counted in the transaction that reserves the refund,
//! so refunds at the same time do not exceed the limit.

use aws_sdk_dynamodb::types::TransactWriteItem;
use billing::{Currency, Money};
use chrono::{NaiveDate, NaiveTime, TimeDelta};
use dynamo::{TIME_TO_LIVE, expiry_timestamp, from_item, key_of_item, n, values};
use serde::Deserialize;

use crate::items::keep_attributes;
use crate::keys;
use crate::table::payments_table::Table;
use dynamo::{Item, TableError};

/// How long the sum of a day is stored after the beginning of the day. The day of a time zone ends at most 36 hours after
/// its beginning in UTC.
pub(crate) const SUPPORT_REFUNDS_RETENTION: TimeDelta = TimeDelta::days(3);

/// The sum that support may refund on one day in one currency.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DailyRefundLimit {
    /// The day, in the time zone of the policy.
    pub on: NaiveDate,
    /// The largest sum of the refunds of this day.
    pub most: Money,
}

/// The stored sum of a day and a currency.
#[derive(Deserialize)]
struct SupportRefundsItem {
    /// The sum in minor units.
    #[serde(rename = "Refunded")]
    refunded: i64,
}

/// Returns when the sum of the day `on` expires, in seconds since 1970.
fn expiry_of_day(on: NaiveDate) -> i64 {
    expiry_timestamp(on.and_time(NaiveTime::MIN).and_utc(), SUPPORT_REFUNDS_RETENTION)
}

/// Returns the item that this program would store for the sum in `item`.
///
/// # Errors
/// [`TableError::Unreadable`] if the sum cannot be read, or the key contains no currency and day.
pub(crate) fn check_support_refunds(item: &Item) -> Result<Item, TableError> {
    let (key, SupportRefundsItem { refunded }) = (key_of_item(item), from_item(item)?);
    let day = keys::day_of_support_refunds(&key.pk);
    let day = day.ok_or_else(|| TableError::unreadable(key.clone(), "its key contains no currency and day"))?;
    if refunded < 0 {
        return Err(TableError::unreadable(key, "its sum is negative"));
    }
    let mut expected = keep_attributes(item, |name| name == "Refunded");
    expected.insert(TIME_TO_LIVE.to_owned(), n(expiry_of_day(day)));
    Ok(expected)
}

impl Table {
    /// Returns the sum that support has refunded on the day `on` in `currency`. Sends one strongly consistent GetItem
    /// request.
    pub async fn get_support_refunds(&self, on: NaiveDate, currency: Currency) -> Result<Money, TableError> {
        let minor = match self.get(keys::key_of_support_refunds(on, currency)).await? {
            Some(item) => from_item::<SupportRefundsItem>(&item)?.refunded,
            None => 0,
        };
        Ok(Money::new(minor, currency))
    }

    /// Builds the update that adds `amount` to the sum of the day of `limit`, on condition that the sum does not exceed the
    /// limit afterwards. A refund that fails later stays in the sum: the limit is reached too early, never too late.
    pub(crate) fn build_support_refund(&self, limit: &DailyRefundLimit, amount: Money) -> TransactWriteItem {
        const ADD: &str = "SET #TTL = :ttl ADD #Refunded :amount";
        // The amount of a refund is at most that of its payment, so the difference cannot overflow.
        let before = limit.most.minor().saturating_sub(amount.minor());
        let within = match before {
            0.. => "attribute_not_exists(#Refunded) OR #Refunded <= :before",
            _ => "#Refunded <= :before",
        };
        let values =
            values([(":ttl", n(expiry_of_day(limit.on))), (":amount", n(amount.minor())), (":before", n(before))]);
        let key = keys::key_of_support_refunds(limit.on, amount.currency());
        TransactWriteItem::builder().update(self.build_update(key, ADD, within, values)).build()
    }
}
