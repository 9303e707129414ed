//! Counts the requests of an account, or of the return page of one payment method setup, toward an hourly limit, and
//! refuses those above the limit.

use chrono::{DateTime, Utc};
use rest::{Caller, Problem};
use store::LimitedOperation;

use crate::Api;

impl Api {
    /// Counts one request at the time `now` toward the hourly limit of the operation `limited`.
    ///
    /// # Errors
    /// 429 if the limit of this hour is reached.
    pub(crate) async fn count_limited_use(
        &self,
        limited: &LimitedOperation,
        now: DateTime<Utc>,
    ) -> Result<(), Problem> {
        let Some(next_hour) = self.table.count_use(limited, now).await? else { return Ok(()) };
        let what = match limited {
            LimitedOperation::SetupsOf(_) => "new pages for a payment method",
            LimitedOperation::RetriesOf(_) => "retries",
            LimitedOperation::ReturnsTo(_) => "requests for this page",
        };
        let detail = format!(
            "at most {} {what} are allowed in an hour; the next hour begins at {}",
            limited.max_uses_per_hour(),
            next_hour.format("%H:%M UTC")
        );
        Err(Problem::too_many_requests(detail, (next_hour - now).num_seconds().max(1)))
    }

    /// Counts one request at the time `now` toward the hourly limit of the operation `limited`, unless the caller is an
    /// operator.
    ///
    /// # Errors
    /// 429 if the limit of this hour is reached.
    pub(crate) async fn count_limited_use_by_caller(
        &self,
        caller: &Caller,
        limited: &LimitedOperation,
        now: DateTime<Utc>,
    ) -> Result<(), Problem> {
        match caller {
            Caller::Operator(_) => Ok(()),
            Caller::Account { .. } => self.count_limited_use(limited, now).await,
        }
    }
}
