//! A run in parts: the whole run takes as long as it must, and none of its parts longer than an invocation of a function.

use chrono::{DateTime, Utc};

use super::daily_execution::LONGEST_INVOCATION;
use super::run::MAX_FAILURES_NAMED;
use super::{BatchRequest, CountsOf, Report, Sweep, SweepError, Task};

impl<T: Task> Sweep<T> {
    /// Walks what `request` asks for until the end of the index or shortly before `deadline`, in parts. Each part has run
    /// records with a time limit of its own, so that a killed process is soon known to be cut off.
    ///
    /// # Errors
    /// [`SweepError`], as [`Sweep::run`].
    pub async fn run_in_parts(
        &self,
        request: &BatchRequest,
        deadline: DateTime<Utc>,
    ) -> Result<Report<CountsOf<T>>, SweepError> {
        let limit = || deadline.min(self.clock.now() + LONGEST_INVOCATION);
        let mut whole = self.run(request, limit()).await?;
        while let Some(from) = whole.next.clone().filter(|_| whole.stopped.is_none() && self.clock.now() < deadline) {
            let part = self.run(&BatchRequest { next: Some(from.clone()), ..request.clone() }, limit()).await?;
            let has_moved = part.next.as_ref() != Some(&from);
            add(&mut whole, part);
            if !has_moved {
                break;
            }
        }
        Ok(whole)
    }
}

fn add<C: store::Counts>(whole: &mut Report<C>, part: Report<C>) {
    whole.counts += part.counts;
    whole.sums.add(&part.sums);
    whole.unreminded += part.unreminded;
    whole.failures.extend(part.failures);
    whole.failures.truncate(MAX_FAILURES_NAMED);
    whole.next = part.next;
    whole.complete = part.complete;
    whole.stopped = whole.stopped.take().or(part.stopped);
}
