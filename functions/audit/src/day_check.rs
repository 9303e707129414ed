//! The check that the batches of today are done by the hour that the merchant has set, and that nothing needs a person.

use chrono::NaiveDate;
use days::{Concern, ProcessFacts, SystemStatus, incomplete_batches};
use serde::Serialize;
use store::{Batch, Settings, TableError};

use crate::TableChecks;

/// The log message if the payment batch or the reminder batch of today is not done at the hour of the check. The filter
/// of an alarm in `template.yaml` contains the same text.
pub const DAY_NOT_DONE_MESSAGE: &str = "a batch of the day is not done by the hour that was set";

/// The log message if both batches of today (payments and reminders) are done at the hour of the check. The filter of
/// an alarm in `template.yaml` contains the same text: the alarm fires if no check is made.
pub const DAY_DONE_MESSAGE: &str = "both batches of the day are done";

/// The log message of everything that needs a person at the hour of the check. The filter of an alarm in `template.yaml`
/// contains the same text.
pub const CONCERN_MESSAGE: &str = "a person is needed";

/// The response to an invocation that checks whether the batches of today are done.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct DayCheckResponse {
    /// The current date in the billing time zone.
    pub date: NaiveDate,
    /// The batches that are not done.
    pub not_done: Vec<Batch>,
    /// What needs a person, as `dueday status` says it.
    pub problems: Vec<String>,
}

impl TableChecks {
    /// Checks whether the run records prove that both batches of today are done, and what needs a person. Logs the
    /// result. Alarms of their own check the queues.
    pub(crate) async fn check_day(&self, settings: &Settings) -> Result<DayCheckResponse, TableError> {
        let now = self.audit.clock.now();
        let date = self.audit.table.policy().date_at(now);
        let not_done = incomplete_batches(&self.audit.table, settings.shards, date, now).await?;
        match not_done.as_slice() {
            [] => tracing::info!(%date, "{DAY_DONE_MESSAGE}"),
            batches => tracing::error!(%date, ?batches, "{DAY_NOT_DONE_MESSAGE}: see `dueday status`"),
        }
        let concerns =
            SystemStatus::read(&self.audit.table, settings, ProcessFacts::without_queues(), now).await?.concerns;
        for concern in &concerns {
            tracing::error!(%date, %concern, "{CONCERN_MESSAGE}: {}", concern.next_step());
        }
        Ok(DayCheckResponse { date, not_done, problems: concerns.iter().map(Concern::to_string).collect() })
    }
}
