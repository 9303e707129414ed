//! Hourly limits on expensive operations of one account or of one payment method setup.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::ReturnValue;
use billing::AccountId;
use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use ulid::Ulid;

use crate::items::keep_attributes;
use crate::keys;
use crate::table::payments_table::Table;
use dynamo::{Item, TableError};
use dynamo::{TIME_TO_LIVE, UpdateItemOutcome, expiry_timestamp, from_item, key_of_item, n};
use serde::Deserialize;

/// How long a counter is stored after the beginning of its hour.
pub(crate) const COUNTER_RETENTION: TimeDelta = TimeDelta::hours(2);

/// The highest limit of all operations.
const MAX_USES: u32 = 60;

/// An operation with an hourly limit, and the account or payment method setup for which its uses are counted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LimitedOperation {
    /// Creating checkout pages of the gateway for this account. The account itself requests them, or a customer with
    /// the card link in a mail.
    SetupsOf(AccountId),
    /// Retrying owed payments of this account, at the request of the account itself.
    RetriesOf(AccountId),
    /// Requesting the result of this payment method setup from the gateway, each time a customer opens its return page.
    ReturnsTo(Ulid),
}

impl LimitedOperation {
    /// Returns the maximum number of uses of this operation in an hour.
    pub fn max_uses_per_hour(&self) -> u32 {
        match self {
            Self::SetupsOf(_) => 20,
            Self::RetriesOf(_) => 10,
            Self::ReturnsTo(_) => MAX_USES,
        }
    }

    /// Returns the part of the counter's key that identifies the operation and the account or setup.
    fn key_part(&self) -> String {
        match self {
            Self::SetupsOf(account) => format!("setups#{account}"),
            Self::RetriesOf(account) => format!("retries#{account}"),
            Self::ReturnsTo(setup) => format!("returns#{setup}"),
        }
    }
}

/// Returns the item that this program would store for the counter in `item`.
///
/// # Errors
/// [`TableError::Unreadable`] if the number of uses cannot be read, is too high, or its key contains no hour.
pub(crate) fn check_use_counter(item: &Item) -> Result<Item, TableError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct LimitItem {
        uses: u32,
    }
    let (key, LimitItem { uses }) = (key_of_item(item), from_item(item)?);
    let hour = key.pk.rsplit('#').next().map(|hour| format!("{hour}:00:00Z"));
    let hour = hour.and_then(|hour| hour.parse::<DateTime<Utc>>().ok());
    let hour = hour.ok_or_else(|| TableError::unreadable(key.clone(), "its key contains no hour"))?;
    if uses > MAX_USES {
        return Err(TableError::unreadable(key, format!("it has {uses} uses, more than any limit")));
    }
    let mut expected = keep_attributes(item, |name| name == "Uses");
    expected.insert(TIME_TO_LIVE.to_owned(), n(expiry_timestamp(hour, COUNTER_RETENTION)));
    Ok(expected)
}

impl Table {
    /// Counts one use of the operation `limited` in the hour of `now`. Returns `None` if the use is within the limit.
    /// Otherwise, counts nothing and returns the time at which the next hour begins. Sends one UpdateItem request.
    pub async fn count_use(
        &self,
        limited: &LimitedOperation,
        now: DateTime<Utc>,
    ) -> Result<Option<DateTime<Utc>>, TableError> {
        const IS_WITHIN_LIMIT: &str = "attribute_not_exists(#Uses) OR #Uses < :limit";
        let hour = now.duration_trunc(TimeDelta::hours(1)).unwrap_or(now);
        let next = hour + TimeDelta::hours(1);
        let values = HashMap::from([
            (":one".to_owned(), n(1)),
            (":limit".to_owned(), n(limited.max_uses_per_hour())),
            (":expiry".to_owned(), n(expiry_timestamp(hour, COUNTER_RETENTION))),
        ]);
        let key = keys::key_of_limit(&limited.key_part(), hour);
        let update = self.build_update(key, "SET #TTL = :expiry ADD #Uses :one", IS_WITHIN_LIMIT, values);
        match self.send_update(update, ReturnValue::None).await? {
            UpdateItemOutcome::Updated(_) => Ok(None),
            UpdateItemOutcome::ConditionFailed(_) => Ok(Some(next)),
        }
    }
}
