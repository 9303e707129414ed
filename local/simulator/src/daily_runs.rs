//! The daily runs of a simulation: the reminder batch and the payment batch at 06:00 in the billing time zone, and both
//! batches again two hours later.

use std::sync::Arc;

use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Utc};
use chrono_tz::Tz;
use clock::SimulatedClock;
use deployment::Deployment;
use emulator::batch_run_times_on;
use payments::PaymentBatch;
use reminders::ReminderBatch;
use store::{PaymentCounts, ReminderCounts};
use sweep::{BatchRequest, Outcome, RunReport, Sweep};

use crate::SimulationError;

/// The time from the start of a run to its deadline. The simulated clock does not advance during a run, so no run
/// reaches its deadline.
const RUN_TIME_LIMIT: TimeDelta = TimeDelta::hours(1);

/// Executes the daily runs of a deployment on a simulated clock.
pub struct DailyRuns {
    clock: Arc<SimulatedClock>,
    zone: Tz,
    reminders: Sweep<ReminderBatch>,
    payments: Sweep<PaymentBatch>,
    /// The sum of the counts of all runs of the reminder batch so far.
    pub reminded: ReminderCounts,
    /// The sum of the counts of all runs of the payment batch so far.
    pub charged: PaymentCounts,
}

impl DailyRuns {
    /// Creates the daily runs of `deployment`. `clock` must be the clock of the deployment. The runs have no rate limit
    /// for requests to the gateway.
    ///
    /// # Errors
    /// [`SimulationError::Table`] if the table cannot be read.
    pub async fn new(mut deployment: Deployment, clock: Arc<SimulatedClock>) -> Result<Self, SimulationError> {
        deployment.config.charging.gateway_rate = None;
        let (reminders, payments) = (deployment.reminder_batch().await?, deployment.payment_batch().await?);
        let zone = deployment.config.table.configured_policy.policy.zone;
        Ok(Self { clock, zone, reminders, payments, reminded: Default::default(), charged: Default::default() })
    }

    /// Returns the two instants of `day` at which both batches run.
    pub fn batch_run_times_on(&self, day: NaiveDate) -> [DateTime<Utc>; 2] {
        batch_run_times_on(day, NaiveTime::from_hms_opt(6, 0, 0).unwrap_or_default(), self.zone)
    }

    /// Executes all runs of `day`.
    pub async fn run_day(&mut self, day: NaiveDate) -> Result<(), SimulationError> {
        for time in self.batch_run_times_on(day) {
            self.run_both_batches(day, time).await?;
        }
        Ok(())
    }

    /// Executes both batches for `day`, at the instant `time`.
    pub async fn run_both_batches(&mut self, day: NaiveDate, time: DateTime<Utc>) -> Result<(), SimulationError> {
        self.clock.set(time);
        let (request, deadline) = (BatchRequest::for_date(day), time + RUN_TIME_LIMIT);
        let reminded = self.reminders.run(&request, deadline).await;
        let charged = self.payments.run(&request, deadline).await;
        add_run_counts(&mut self.reminded, &reminded?)?;
        add_run_counts(&mut self.charged, &charged?)
    }
}

/// Adds the counts of a run to `total`.
///
/// # Errors
/// [`SimulationError::Unfinished`] if the run did not reach the end of the index, or if the sum of its outcome counts
/// differs from its number of due rows.
fn add_run_counts<O: Outcome>(total: &mut O::Counts, report: &RunReport<O>) -> Result<(), SimulationError> {
    if !report.complete || !report.adds_up() {
        let report = serde_json::to_string(report).unwrap_or_default();
        return Err(SimulationError::Unfinished { report });
    }
    *total += report.counts;
    Ok(())
}
