//! Hourly limits on expensive operations of one account or of one payment method setup.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::ReturnValue;
use billing::AccountId;
use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use ulid::Ulid;

use super::{Table, TableError, keys};
use dynamo::{UpdateItemOutcome, expiry, n};

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
            Self::ReturnsTo(_) => 60,
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
            (":expiry".to_owned(), n(expiry(hour, TimeDelta::hours(2)))),
        ]);
        let key = keys::key_of_limit(&limited.key_part(), hour);
        let update = self.build_update(key, "SET #TTL = :expiry ADD #Uses :one", IS_WITHIN_LIMIT, values);
        match self.send_update(update, ReturnValue::None).await? {
            UpdateItemOutcome::Updated(_) => Ok(None),
            UpdateItemOutcome::ConditionFailed(_) => Ok(Some(next)),
        }
    }
}
