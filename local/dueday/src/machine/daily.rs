//! The daily timer of a machine that serves: what is due at once, then at every run of the timetable, and one lease after a
//! run that left attempts open.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Utc};
use chrono_tz::Tz;
use clock::Clock;
use emulator::{Deployment, next_run};
use payments::ChargeDue;
use reminders::{REMINDER_LEASE, RemindDue};
use serde::Serialize;
use store::{Counts, RunCounts};
use sweep::{BatchRequest, Report, Sweep, SweepError};

use crate::Failure;
use crate::terminal::output;
use crate::terminal::report;

/// A run is given this long.
const TIME_FOR_A_RUN: TimeDelta = TimeDelta::hours(2);
/// A machine that was asleep is late by no more than this.
const WAKE_INTERVAL: Duration = Duration::from_secs(60);

/// The daily timer.
pub struct Daily {
    reminders: Sweep<RemindDue>,
    payments: Sweep<ChargeDue>,
    clock: Arc<dyn Clock>,
    zone: Tz,
    billing_time: NaiveTime,
    lease: TimeDelta,
    prints_json: bool,
}

#[derive(Serialize)]
struct NextRun {
    next_run_at: DateTime<Utc>,
}

/// Whether a run has left rows to which a later run must come back.
fn is_left(run: &Result<Report<impl Counts>, SweepError>) -> bool {
    run.as_ref().map_or(true, |report| {
        let counts: RunCounts = report.counts.into();
        !report.complete || counts.left_behind() > 0
    })
}

impl Daily {
    /// The timer of `deployment`.
    ///
    /// # Errors
    /// [`Failure::Table`].
    pub async fn new(deployment: &Deployment, billing_time: NaiveTime, prints_json: bool) -> Result<Self, Failure> {
        let (reminders, payments) = (deployment.reminders().await?, deployment.payments().await?);
        let (zone, lease) = (deployment.config.billing.zone, deployment.config.charging.lease.max(REMINDER_LEASE));
        Ok(Self { reminders, payments, clock: deployment.clock.clone(), zone, billing_time, lease, prints_json })
    }

    /// Runs until nobody reads what it says.
    pub async fn run(&self) -> Result<(), Failure> {
        loop {
            let now = self.clock.now();
            let is_open = self.sweep(now.with_timezone(&self.zone).date_naive(), now + TIME_FOR_A_RUN).await?;
            let scheduled = next_run(self.clock.now(), self.billing_time, self.zone);
            let next = if is_open { scheduled.min(self.clock.now() + self.lease) } else { scheduled };
            let text = format!("next run at {}\n", next.with_timezone(&self.zone).format("%Y-%m-%d %H:%M %Z"));
            self.say(&NextRun { next_run_at: next }, text)?;
            while self.clock.now() < next {
                let left = next.signed_duration_since(self.clock.now()).to_std().unwrap_or_default();
                tokio::time::sleep(left.min(WAKE_INTERVAL)).await;
            }
        }
    }

    /// Answers whether anything was left open.
    async fn sweep(&self, today: NaiveDate, deadline: DateTime<Utc>) -> Result<bool, Failure> {
        let request = BatchRequest::on(today);
        let reminded = self.reminders.run_in_parts(&request, deadline).await;
        let charged = self.payments.run_in_parts(&request, deadline).await;
        let is_left = is_left(&reminded) || is_left(&charged);
        self.report(reminded)?;
        self.report(charged)?;
        Ok(is_left)
    }

    fn report(&self, report: Result<Report<impl Counts>, SweepError>) -> Result<(), Failure> {
        match report {
            Ok(report) => self.say(&report, report::text(&report)),
            Err(error) => {
                output::tell(format!("error: {}", Failure::from(error).told()));
                Ok(())
            }
        }
    }

    /// Prints a line of JSON if that is asked for, else `text`. There is no server without a reader.
    fn say(&self, value: &impl Serialize, text: String) -> Result<(), Failure> {
        let line = || serde_json::to_string(value).expect("output is representable") + "\n";
        Ok(output::write(&if self.prints_json { line() } else { text })?)
    }
}
