//! The totals of a payment run in addition to its row counts.

use std::ops::AddAssign;

use chrono::{DateTime, Utc};
use serde::Serialize;
use store::RunSums;
use sweep::RunTotals;

use charging::ChargeRequestMetrics;

/// The totals of a payment run in addition to its row counts.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct PaymentTotals {
    /// The sums of the successful and of the declined payments, by currency.
    pub sums: RunSums,
    /// The number of payments that were charged although their reminder had not been sent.
    pub unreminded: u64,
    /// The time of the first claim of the oldest attempt that the run has left open with an unknown outcome; `None` if
    /// there is none. An attempt does not count if the gateway has responded to its look-up. Only the log contains the
    /// age of this attempt.
    #[serde(skip)]
    pub oldest_in_doubt: Option<DateTime<Utc>>,
    /// The charge requests to the gateway. Only the log contains them: each walk logs its requests.
    #[serde(skip)]
    pub(super) charge_metrics: ChargeRequestMetrics,
}

impl PaymentTotals {
    /// Adds the attempt in doubt that was first claimed at `claimed_at`.
    pub(super) fn add_in_doubt(&mut self, claimed_at: DateTime<Utc>) {
        self.oldest_in_doubt = Some(self.oldest_in_doubt.map_or(claimed_at, |oldest| oldest.min(claimed_at)));
    }

    /// Returns the number of complete hours from the first claim of the oldest attempt in doubt until `now`; 0 if there
    /// is none.
    pub fn oldest_in_doubt_hours(&self, now: DateTime<Utc>) -> u64 {
        let hours = self.oldest_in_doubt.map_or(0, |at| now.signed_duration_since(at).num_hours());
        u64::try_from(hours).unwrap_or(0)
    }
}

impl RunTotals for PaymentTotals {
    fn sums(&self) -> RunSums {
        self.sums.clone()
    }

    fn log_walk(&self) {
        self.charge_metrics.log();
    }

    fn warning(&self) -> Option<String> {
        (self.unreminded > 0).then(|| format!("charged without a reminder: {}", self.unreminded))
    }
}

impl AddAssign for PaymentTotals {
    fn add_assign(&mut self, other: Self) {
        self.sums.add(&other.sums);
        self.unreminded += other.unreminded;
        other.oldest_in_doubt.into_iter().for_each(|at| self.add_in_doubt(at));
        self.charge_metrics += other.charge_metrics;
    }
}
