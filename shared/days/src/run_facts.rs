//! The facts about the runs of some days: the states of their shards, and the payments that prevent that a day counts as
//! complete.

use chrono::{DateTime, NaiveDate, Utc};

use store::{Batch, Settings, Table, TableError};

use super::postponed_payments::count_postponed_payments;
use super::proven_day::ProvenDay;
use super::rejected_payments::count_rejected_payments;

/// The facts about the runs of some days in which their concerns are found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunFacts {
    /// The current date in the billing time zone.
    pub today: NaiveDate,
    pub days: Vec<ProvenDay>,
    /// The number of payments whose charge the gateway has rejected, and that are not settled yet. Only counted if a run of
    /// `days` has rejected a charge.
    pub rejected_payments: u64,
    /// The number of payments without a receipt, which a person must resolve.
    pub open_findings: usize,
    pub unreadable_findings: Vec<String>,
    /// The number of due payments that no run finds, because a clock that was ahead has planned them for an impossibly
    /// late date. Only counted if `days` contain today.
    pub postponed_payments: u64,
}

impl RunFacts {
    /// Reads the payments that prevent that the `days` count as complete; none if `days` contain no payment batch. `now` is the
    /// current time, and `settings` are the settings of `table`. Sends Query requests for the findings, and for the postponed
    /// payments of each shard if `days` contain today.
    pub async fn read(
        table: &Table,
        settings: &Settings,
        days: Vec<ProvenDay>,
        now: DateTime<Utc>,
    ) -> Result<Self, TableError> {
        let today = table.policy().date_at(now);
        if days.iter().all(|day| day.batch != Batch::Payments) {
            return Ok(Self::without_payments(days, today));
        }
        let findings = table.list_open_findings().await?;
        let postponed_payments = match days.iter().any(|day| day.date == today) {
            true => count_postponed_payments(table, settings.shards, today).await?,
            false => 0,
        };
        Ok(Self {
            today,
            rejected_payments: count_rejected_payments(table, &days, today).await?,
            open_findings: findings.items.len(),
            unreadable_findings: findings.unreadable.iter().map(ToString::to_string).collect(),
            postponed_payments,
            days,
        })
    }

    /// Returns the facts about the runs of `days` alone.
    pub fn without_payments(days: Vec<ProvenDay>, today: NaiveDate) -> Self {
        let (rejected_payments, open_findings, postponed_payments) = (0, 0, 0);
        Self { today, days, rejected_payments, open_findings, unreadable_findings: Vec::new(), postponed_payments }
    }

    /// Returns whether a payment run of today has not recorded its end, so that the total of today may lack its charges.
    pub(super) fn may_have_uncounted_charges(&self) -> bool {
        let of_today = |day: &&ProvenDay| day.date == self.today && day.batch == Batch::Payments;
        self.days.iter().filter(of_today).flat_map(|day| &day.shards).any(|shard| shard.has_run_without_end)
    }
}
