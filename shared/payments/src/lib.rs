//! The payment batch. The batch claims each due payment, charges it at the gateway and settles the outcome. The batch
//! also takes over each attempt in doubt and looks it up at the gateway. Then it settles the attempt, or sends the same
//! charge again under the same idempotency key. The crate `charging` does all of this; this crate selects the rows,
//! decides what happens to a row that is not charged, and counts the results.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod day_ceilings;
mod due_row;
mod open_row;
mod outcome;
mod row_error;
mod row_result;
mod run;
mod totals;

use std::num::NonZeroU32;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use billing::Attempt;
use charging::{ApplyError, ChargeConfig, Charger, OlderTableCheck};
use clock::Clock;
use day_ceilings::reason_to_refuse_day;
use gateways::PaymentGateway;
use row_error::RowError;
use run::RowContext;
use store::{DueEntry, DueIndexPosition, DuePage, Lane, Settings, Table, TableError};
use sweep::{BatchTask, DayToStart, RunReport};

pub use outcome::PaymentOutcome;
pub use run::PaymentRun;
pub use totals::PaymentTotals;

/// The time that is reserved for the claim before a charge, so that enough time is left for the charge after a slow
/// claim.
const CLAIM_MARGIN: TimeDelta = TimeDelta::seconds(12);
/// A run stores its start time only if the stored time is at least this old.
const RUN_TIME_RESOLUTION: TimeDelta = TimeDelta::minutes(1);

/// The result of processing one row of the payment batch.
type RowResult = sweep::RowResult<PaymentOutcome>;

/// The payment batch: charges due payments and settles open attempts.
#[derive(Debug)]
pub struct PaymentBatch {
    table: Table,
    charger: Charger,
    /// Compares the table with the gateway's latest payments; `None` if DynamoDB shows whether a table was restored.
    older_table_check: Option<Arc<OlderTableCheck>>,
    clock: Arc<dyn Clock>,
}

#[async_trait]
impl BatchTask for PaymentBatch {
    type Outcome = PaymentOutcome;
    type Run = PaymentRun;

    async fn read_page(
        &self,
        run: &PaymentRun,
        table: &Table,
        shard: u32,
        on: NaiveDate,
        after: Option<&DueIndexPosition>,
        limit: i32,
    ) -> Result<DuePage, TableError> {
        let settings = table.get_settings().await?;
        match settings {
            Some(settings) => run.apply_settings(&settings),
            None => run.charges.disable_charging(),
        }
        table.get_due_payments_by_date(shard, on, after, limit).await
    }

    fn lease_duration(&self) -> TimeDelta {
        Attempt::LEASE
    }

    fn lanes(&self) -> &'static [Lane] {
        &[Lane::Due, Lane::Open]
    }

    fn start_run(&self, runs: NonZeroU32) -> PaymentRun {
        PaymentRun::with_charges(self.charger.start_run(runs))
    }

    async fn after_page(
        &self,
        run: &PaymentRun,
        shard: Option<u32>,
        today: NaiveDate,
    ) -> (PaymentTotals, Result<(), TableError>) {
        let charges = &run.charges.uncounted_charges;
        let written = match shard {
            Some(shard) => charges.write(&self.table, today, shard).await,
            None => {
                // The stored total of a day is the sum over all shards, so any shard is right.
                charges.write_or_warn(&self.table, today, 0).await;
                Ok(())
            }
        };
        (run.take_totals(), written)
    }

    async fn reason_to_refuse_run(
        &self,
        table: &Table,
        settings: &Settings,
        day: Option<DayToStart>,
    ) -> Result<Option<String>, TableError> {
        if let Some(reason) = self.charger.reason_to_refuse_gateway_account(table, settings).await? {
            return Ok(Some(reason));
        }
        if let Some(check) = &self.older_table_check
            && let Some(reason) = check.reason_to_refuse(table, settings, self.clock.now()).await?
        {
            return Ok(Some(reason));
        }
        self.record_run_time(table, settings).await?;
        match day {
            Some(day) => reason_to_refuse_day(table, settings, day).await,
            None => Ok(None),
        }
    }

    fn log_report(report: &RunReport<PaymentOutcome>, now: DateTime<Utc>) {
        outcome::log_report(report, now);
    }

    async fn unresolved_problem(&self, table: &Table) -> Result<Option<String>, TableError> {
        Ok(charging::unresolved_findings(&table.get_open_findings().await?))
    }

    async fn work_on_row(
        &self,
        run: &PaymentRun,
        lane: Lane,
        due: &DueEntry,
        today: NaiveDate,
        deadline: DateTime<Utc>,
    ) -> RowResult {
        let context = RowContext { run, today, deadline };
        if !self.charger.has_time_to_charge(deadline - CLAIM_MARGIN) {
            return RowResult::OutOfTime;
        }
        let done = match lane {
            Lane::Due => self.process_due_row(context, due).await,
            Lane::Open if run.was_left_open(due.key.subscription) => Ok(RowResult::LeftToOtherLane),
            Lane::Open => self.process_open_row(context, due).await,
        };
        let done = match done {
            Ok(done) => done,
            // If a write got no response, it is unknown whether the write took effect: an attempt may be open.
            Err(ApplyError::Table(error)) if error.is_transient() => row_result::in_doubt_result(&due.key, &error),
            Err(error) => RowError::from(error).into(),
        };
        if lane == Lane::Due && row_result::may_have_open_attempt(&done) {
            run.mark_left_open(due.key.subscription);
        }
        done
    }
}

impl PaymentBatch {
    /// Creates the batch that charges the due payments of `table` through `gateway`.
    pub fn new(table: Table, gateway: Arc<dyn PaymentGateway>, config: &ChargeConfig, clock: Arc<dyn Clock>) -> Self {
        Self {
            charger: Charger::new(table.clone(), gateway, config, clock.clone()),
            table,
            older_table_check: None,
            clock,
        }
    }

    /// Adds `check`, the check of this process that the table is not older than the gateway's latest payments.
    pub fn with_older_table_check(self, check: Option<Arc<OlderTableCheck>>) -> Self {
        Self { older_table_check: check, ..self }
    }

    /// Opens the connection to the gateway before the first charge. If that fails, the first run opens it.
    pub async fn connect(&self) {
        self.charger.connect().await;
    }

    /// Stores the start time of a payment run in `table`, from which a later check lists the gateway's payments. Without
    /// the check, only the confirmation of a restored table has stored a time. It is kept current, because the days to
    /// compare after another restore begin at this time.
    ///
    /// # Errors
    /// [`TableError`] if a request to the table failed.
    async fn record_run_time(&self, table: &Table, settings: &Settings) -> Result<(), TableError> {
        let now = self.clock.now();
        let latest = settings.latest_payment_run_at;
        if latest.is_none() && self.older_table_check.is_none() {
            return Ok(());
        }
        if latest.is_none_or(|latest| latest + RUN_TIME_RESOLUTION <= now || latest > now + RUN_TIME_RESOLUTION) {
            table.record_payment_run_time(now).await?;
        }
        Ok(())
    }
}
