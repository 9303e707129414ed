//! The runs of a day: the reminder and the payment batch at the billing time, and both again two hours later.

use std::sync::Arc;

use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Utc};
use chrono_tz::Tz;
use clock::SimulatedClock;
use emulator::{Deployment, runs_on};
use payments::ChargeDue;
use reminders::RemindDue;
use store::{Counts, PaymentCounts, ReminderCounts};
use sweep::{BatchRequest, Report, Sweep};

use crate::SimulationError;

/// One run is given this long; in simulated time it takes none.
const TIME_FOR_A_RUN: TimeDelta = TimeDelta::hours(1);

/// The daily runs of a deployment on a simulated clock.
pub struct DailyRuns {
    clock: Arc<SimulatedClock>,
    zone: Tz,
    reminders: Sweep<RemindDue>,
    payments: Sweep<ChargeDue>,
    /// What the runs counted so far, of both batches.
    pub reminded: ReminderCounts,
    pub charged: PaymentCounts,
}

impl DailyRuns {
    /// The runs of `deployment`, whose clock is `clock`, without a limit of the gateway's rate.
    ///
    /// # Errors
    /// [`SimulationError`]: a table that does not answer.
    pub async fn new(mut deployment: Deployment, clock: Arc<SimulatedClock>) -> Result<Self, SimulationError> {
        deployment.config.charging.gateway_rate = None;
        let (reminders, payments) = (deployment.reminders().await?, deployment.payments().await?);
        let zone = deployment.config.billing.zone;
        Ok(Self { clock, zone, reminders, payments, reminded: Default::default(), charged: Default::default() })
    }

    /// The instants of the runs of `day`.
    pub fn times(&self, day: NaiveDate) -> [DateTime<Utc>; 2] {
        runs_on(day, NaiveTime::from_hms_opt(6, 0, 0).unwrap_or_default(), self.zone)
    }

    /// All runs of one day.
    pub async fn day(&mut self, day: NaiveDate) -> Result<(), SimulationError> {
        for time in self.times(day) {
            self.both(day, time).await?;
        }
        Ok(())
    }

    /// Both batches for `day`, at `time`.
    pub async fn both(&mut self, day: NaiveDate, time: DateTime<Utc>) -> Result<(), SimulationError> {
        self.clock.set(time);
        let (request, deadline) = (BatchRequest::on(day), time + TIME_FOR_A_RUN);
        let reminded = self.reminders.run(&request, deadline).await;
        let charged = self.payments.run(&request, deadline).await;
        add(&mut self.reminded, &reminded?)?;
        add(&mut self.charged, &charged?)
    }
}

fn add<C: Counts>(total: &mut C, report: &Report<C>) -> Result<(), SimulationError> {
    if !report.complete || !report.adds_up() {
        let report = serde_json::to_string(report).unwrap_or_default();
        return Err(SimulationError::Unfinished { report });
    }
    *total += report.counts;
    Ok(())
}
