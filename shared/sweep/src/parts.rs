//! Runs a batch in parts, outside of Lambda. The whole run has no time limit of its own. Each part has the time limit
//! of one invocation of the batch function.

use chrono::{DateTime, Utc};

use super::daily_execution::MAX_INVOCATION_TIME;
use super::report::MAX_LISTED_FAILURES;
use super::{BatchRequest, BatchTask, Outcome, RunReport, Sweep, SweepError};

impl<T: BatchTask> Sweep<T> {
    /// Carries out `request` in parts, until the end of the index or until shortly before `deadline`. Returns one
    /// report about all parts. Each part writes its own run records with its own time limit. So if the process is
    /// killed, other runs soon recognize that its last part was cut off.
    ///
    /// # Errors
    /// The errors of [`Sweep::run`].
    pub async fn run_in_parts(
        &self,
        request: &BatchRequest,
        deadline: DateTime<Utc>,
    ) -> Result<RunReport<T::Outcome>, SweepError> {
        let limit = || deadline.min(self.clock.now() + MAX_INVOCATION_TIME);
        let mut whole = self.run(request, limit()).await?;
        while let Some(from) = whole.next.clone().filter(|_| whole.stopped.is_none() && self.clock.now() < deadline) {
            // All parts use the policy that the first part has read.
            let settings = self.table.get_settings().await?.ok_or(SweepError::NoSettings)?;
            let request = BatchRequest { next: Some(from.clone()), ..request.clone() };
            let part = self.run_with_settings(settings, &request, limit()).await?;
            let has_moved = part.next.as_ref() != Some(&from);
            add_partial_report(&mut whole, part);
            if !has_moved {
                break;
            }
        }
        Ok(whole)
    }
}

/// Adds the report `part` to `whole`, the report about all earlier parts.
fn add_partial_report<O: Outcome>(whole: &mut RunReport<O>, part: RunReport<O>) {
    whole.counts += part.counts;
    whole.totals += part.totals;
    whole.oldest_due_days = whole.oldest_due_days.max(part.oldest_due_days);
    whole.failures.extend(part.failures);
    whole.failures.truncate(MAX_LISTED_FAILURES);
    whole.next = part.next;
    whole.complete = part.complete;
    whole.stopped = whole.stopped.take().or(part.stopped);
}
