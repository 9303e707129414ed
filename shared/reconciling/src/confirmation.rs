//! The rule for the confirmation of a restored or copied table: each day whose payments may be missing in the table
//! must have been compared with the gateway.

use billing::{DayReconciliation, GatewayList};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use store::{Settings, Table, TableError};

/// The days that must be compared with the gateway before a restored or copied table may be charged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DaysToCompare {
    /// The first day in UTC.
    pub first: NaiveDate,
    /// The last day in UTC: the day on which a run or a command noticed that the table is a copy.
    pub last: NaiveDate,
    /// The time at which a run or a command noticed that the table is a copy. A comparison before this time may have
    /// been restored with the backup, so it proves nothing.
    noticed_at: DateTime<Utc>,
}

/// The reason why the comparisons of a restored table do not allow its confirmation.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConfirmationProblem {
    #[error("{0} was not compared with the gateway since the copy was noticed")]
    NotCompared(NaiveDate),
    #[error("the comparison of {0} with the gateway has not ended")]
    NotEnded(NaiveDate),
    #[error("the latest comparison of {0} used the option --report-only")]
    ReportOnly(NaiveDate),
    #[error(
        "the latest comparison of {0} compared no payments: the gateway does not list the payments of a day, and the payments of each customer were not compared either"
    )]
    PaymentsNotCompared(NaiveDate),
    #[error(
        "{on} has differences ({differences}), each of which must be corrected or accepted (`dueday reconcile accept`)"
    )]
    Differences { on: NaiveDate, differences: u64 },
    /// The gateway does not list the payments of a day, so only those of the customers in the table were compared.
    #[error("the gateway does not list the payments of {0}, so only the customers in the backup were compared")]
    OnlyCustomersCompared(NaiveDate),
    #[error("the gateway lists the payments of each day from {first} to {last}")]
    AllListed { first: NaiveDate, last: NaiveDate },
}

impl DaysToCompare {
    /// Returns the days to compare for a table with `settings`. A run or a command noticed at `noticed_at` that this
    /// table is a copy. The first day is the day of the latest run in the backup: each run stores its time in the
    /// settings, but a run on a copy stores it only after an operator has confirmed the copy. On one machine, a run of
    /// the reminders may not notice that the table is old, so the time of the latest payment run counts if it is
    /// earlier. The first day is computed from the time one hour before that run, because the clocks of two machines
    /// may differ by up to an hour.
    pub fn of_table(settings: &Settings, noticed_at: DateTime<Utc>) -> Self {
        let known_until = settings.payments_known_until().min(noticed_at);
        let first = (known_until - TimeDelta::hours(1)).date_naive();
        Self { first, last: noticed_at.date_naive(), noticed_at }
    }

    /// Returns the first reason why the stored comparisons of these days do not prove that `table` agrees with the
    /// gateway; `None` if they prove it. `without_lists` is whether a person has decided that the comparison of the
    /// customers in the table is sufficient. Such a decision is a problem, too, if the gateway lists the payments of
    /// all days.
    ///
    /// # Errors
    /// [`TableError`] if a request to the table failed.
    pub async fn find_problem(
        &self,
        table: &Table,
        without_lists: bool,
    ) -> Result<Option<ConfirmationProblem>, TableError> {
        let Self { first, last, .. } = *self;
        let mut unlisted = None;
        for on in first.iter_days().take_while(|on| *on <= last) {
            let compared = table.get_reconciliation(on).await?;
            match self.problem_of_day(on, compared.as_ref()) {
                Some(ConfirmationProblem::OnlyCustomersCompared(on)) => drop(unlisted.get_or_insert(on)),
                Some(problem) => return Ok(Some(problem)),
                None => {}
            }
        }
        Ok(match unlisted {
            Some(on) => (!without_lists).then_some(ConfirmationProblem::OnlyCustomersCompared(on)),
            None => without_lists.then_some(ConfirmationProblem::AllListed { first, last }),
        })
    }

    /// Returns the reason why `compared`, the stored comparison of the day `on`, is not sufficient; `None` if it is.
    fn problem_of_day(&self, on: NaiveDate, compared: Option<&DayReconciliation>) -> Option<ConfirmationProblem> {
        let Some(compared) = compared.filter(|compared| compared.started_at >= self.noticed_at) else {
            return Some(ConfirmationProblem::NotCompared(on));
        };
        let differences = compared.difference_count();
        let is_listed = !compared.not_compared.contains(&GatewayList::Payments);
        match compared {
            DayReconciliation { ended_at: None, .. } => Some(ConfirmationProblem::NotEnded(on)),
            DayReconciliation { report_only: true, .. } => Some(ConfirmationProblem::ReportOnly(on)),
            _ if !is_listed && !compared.customers_compared => Some(ConfirmationProblem::PaymentsNotCompared(on)),
            _ if differences > 0 => Some(ConfirmationProblem::Differences { on, differences }),
            _ => (!is_listed).then_some(ConfirmationProblem::OnlyCustomersCompared(on)),
        }
    }
}
