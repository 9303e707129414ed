//! The daily timer of the local server. It runs the reminder and payment batches at the start and at every scheduled
//! time. If a run leaves rows unfinished, the next run starts when the leases of these rows have expired.

use std::sync::Arc;
use std::time::Duration;

use api::QueueStateReader as _;
use billing::Attempt;
use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Utc};
use clock::Clock;
use days::{CheckSchedule, ProcessFacts, SystemStatus};
use deployment::Deployment;
use emulator::next_run_time;
use payments::PaymentBatch;
use reminders::{REMINDER_LEASE, ReminderBatch};
use serde::Serialize;
use store::{RunCounts, Table, TableError};
use sweep::{BatchRequest, Outcome, RunReport, Sweep, SweepError};

use super::queues::LocalQueues;
use super::reminder_priority::ReminderPriority;
use crate::Failure;
use crate::terminal::output;
use crate::terminal::report;

/// The time after the start of a daily run at which both batches must stop, even if rows are left.
const RUN_TIME_LIMIT: TimeDelta = TimeDelta::hours(2);
/// The longest sleep before the timer reads the clock again. If a run was missed while the computer was in standby, the
/// timer starts this run within this time after the computer wakes.
const WAKE_INTERVAL: Duration = Duration::from_secs(60);

/// Runs the reminder batch and the payment batch every day.
pub struct DailyTimer {
    reminders: Sweep<ReminderBatch>,
    payments: Sweep<PaymentBatch>,
    clock: Arc<dyn Clock>,
    table: Table,
    billing_time: NaiveTime,
    /// The lease duration of the payment batch or of the reminder batch, whichever is longer.
    longest_lease: TimeDelta,
    prints_json: bool,
    queues: LocalQueues,
    /// Makes other work of the server wait while reminders are being sent.
    reminder_priority: ReminderPriority,
}

/// The time of the next run, as printed with `--json`.
#[derive(Serialize)]
struct NextRun {
    next_run_at: DateTime<Utc>,
}

/// Returns whether the run failed, did not reach the last row, left rows that a later run must finish, or has a due row
/// without an outcome.
fn has_unfinished_rows(run: &Result<RunReport<impl Outcome>, SweepError>) -> bool {
    run.as_ref().map_or(true, |report| {
        let counts: RunCounts = report.counts.into();
        !report.complete || counts.unfinished() > 0 || !report.adds_up()
    })
}

impl DailyTimer {
    /// Creates the timer of `deployment`, whose messages are in `queues`.
    ///
    /// # Errors
    /// [`Failure::Table`] if the table cannot be read.
    pub async fn new(
        deployment: &Deployment,
        billing_time: NaiveTime,
        queues: LocalQueues,
        prints_json: bool,
    ) -> Result<Self, Failure> {
        let (reminders, payments) = (deployment.reminder_batch().await?, deployment.payment_batch().await?);
        let longest_lease = Attempt::LEASE.max(REMINDER_LEASE);
        Ok(Self {
            reminders,
            payments,
            clock: deployment.clock.clone(),
            table: deployment.table.clone(),
            billing_time,
            longest_lease,
            queues,
            prints_json,
            reminder_priority: ReminderPriority::default(),
        })
    }

    /// Makes the reminders of this timer come before other work, which uses `priority`, too.
    pub fn with_reminder_priority(self, priority: ReminderPriority) -> Self {
        Self { reminder_priority: priority, ..self }
    }

    /// Runs the reminder batch and the payment batch now and at every scheduled time. If rows are left unfinished, the
    /// next run starts as soon as their leases have expired. Returns only if the output cannot be written.
    pub async fn run_batches_daily(&self) -> Result<(), Failure> {
        loop {
            let now = self.clock.now();
            if let Err(error) = self.table.refresh_policy(now).await {
                output::print_message(format!("error: {error}"));
            }
            let date = self.table.policy().date_at(now);
            let has_unfinished_rows = self.run_batches(date, now + RUN_TIME_LIMIT).await?;
            if let Err(error) = self.print_concerns().await {
                output::print_message(format!("error: {error}"));
            }
            self.wait_for_next_run(has_unfinished_rows).await?;
        }
    }

    /// Waits until the next run, and prints its time. If a person changes the time zone meanwhile, the time is computed
    /// again.
    async fn wait_for_next_run(&self, has_unfinished_rows: bool) -> Result<(), Failure> {
        let ended_at = self.clock.now();
        let mut printed = None;
        loop {
            let zone = self.table.policy().zone;
            let scheduled = next_run_time(ended_at, self.billing_time, zone);
            let next = if has_unfinished_rows { scheduled.min(ended_at + self.longest_lease) } else { scheduled };
            if printed.replace((next, zone)) != Some((next, zone)) {
                let text = format!("next run at {}\n", next.with_timezone(&zone).format("%Y-%m-%d %H:%M %Z"));
                self.print_line(&NextRun { next_run_at: next }, text)?;
            }
            let now = self.clock.now();
            if now >= next {
                return Ok(());
            }
            let left = next.signed_duration_since(now).to_std().unwrap_or_default();
            tokio::time::sleep(left.min(WAKE_INTERVAL)).await;
            // A failed request changes nothing: the next run reports it.
            let _ = self.table.refresh_policy(self.clock.now()).await;
        }
    }

    /// Runs both batches once. Returns whether a batch failed or left rows that a later run must finish.
    async fn run_batches(&self, today: NaiveDate, deadline: DateTime<Utc>) -> Result<bool, Failure> {
        let request = BatchRequest::for_date(today);
        self.reminder_priority.start_reminders();
        let reminded = self.reminders.run_in_parts(&request, deadline).await;
        self.reminder_priority.finish_reminders();
        let charged = self.payments.run_in_parts(&request, deadline).await;
        let has_unfinished_rows = has_unfinished_rows(&reminded) || has_unfinished_rows(&charged);
        self.print_report(reminded)?;
        self.print_report(charged)?;
        Ok(has_unfinished_rows)
    }

    /// Prints what needs a person after the runs. `DailyChecks` makes the missing audits and comparisons.
    async fn print_concerns(&self) -> Result<(), TableError> {
        let Some(settings) = self.table.get_settings().await? else { return Ok(()) };
        let process = ProcessFacts {
            queues: Ok(self.queues.read_queue_states().await),
            check_schedule: CheckSchedule::InThisProcess,
        };
        let status = SystemStatus::read(&self.table, &settings, process, self.clock.now()).await?;
        for concern in &status.concerns {
            output::print_message(format!("a person is needed: {concern}\n  {}", concern.next_step()));
        }
        Ok(())
    }

    /// Prints the report of a batch run, or the error if the run failed.
    fn print_report(&self, report: Result<RunReport<impl Outcome>, SweepError>) -> Result<(), Failure> {
        match report {
            Ok(report) => self.print_line(&report, report::format_report(&report)),
            Err(error) => {
                output::print_message(format!("error: {}", Failure::from(error).message()));
                Ok(())
            }
        }
    }

    /// Prints `value` as a line of JSON with `--json`, otherwise `text`. A closed pipe is an error here, so that the
    /// server stops when the reader of its output has stopped.
    fn print_line(&self, value: &impl Serialize, text: String) -> Result<(), Failure> {
        let line = || serde_json::to_string(value).expect("the output can be written as JSON") + "\n";
        Ok(output::write_to_stdout(&if self.prints_json { line() } else { text })?)
    }
}
