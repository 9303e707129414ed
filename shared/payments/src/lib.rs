//! The payment batch. The batch claims each due payment, charges it at the gateway and settles the outcome. The batch
//! also takes over each attempt in doubt and looks it up at the gateway. Then it settles the attempt, or sends the same
//! charge again under the same idempotency key.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod attempts_in_doubt;
mod breaker;
mod charge;
mod charge_now;
mod charge_request_metrics;
mod claim;
mod config;
mod first_payment;
mod gateway_account;
mod outcome;
mod request_pace;
mod row_error;
mod run;
mod settle;

use std::num::NonZeroU32;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;
use tokio::sync::OnceCell;
use ulid::Ulid;

use ::config::BillingConfig;
use billing::{ClaimToken, GatewayAccount, Policy};
use clock::Clock;
use gateways::{GatewayError, PaymentGateway};
use request_pace::RequestPace;
use row_error::RowError;
use run::RowContext;
use settling::{SettleError, Settling};
use store::{Batch, Claim, Due, DueList, DuePage, Lane, Position, Settings, SubscriptionKey, Table, TableError};
use sweep::{RunTotals, Task};

pub use charge_now::SIGN_UP_GATEWAY_TIMEOUT;
pub use charge_request_metrics::ChargeRequestMetrics;
pub use config::*;
pub use first_payment::{FirstPayment, SubscriptionWithFirstPayment};
pub use outcome::PaymentOutcome;
pub use run::PaymentRun;

/// The timeout of one request to the gateway.
pub const GATEWAY_TIMEOUT: TimeDelta = TimeDelta::seconds(30);
/// The time that is reserved for the settlement after a charge.
const SETTLE_MARGIN: TimeDelta = TimeDelta::seconds(10);
/// The time that is reserved for the claim before a charge, so that enough time is left for the charge after a slow
/// claim.
const CLAIM_MARGIN: TimeDelta = TimeDelta::seconds(12);
/// How long a process waits at its start for the gateway's response with the gateway account. Lambda allows ten seconds
/// for the whole start of a process.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// The number of due payments that one request reads, before a run compares the charges of the day with the ceilings
/// (the merchant's limits on the charges of a day).
const DUE_PAYMENTS_PAGE_SIZE: usize = 1_000;

/// The log message of an attempt whose outcome is still unknown, with the error.
const IN_DOUBT_MESSAGE: &str = "an attempt stays in doubt";

/// The result of processing one row of the payment batch.
type RowResult = sweep::RowResult<PaymentOutcome>;

/// The payment batch: charges due payments and settles open attempts.
#[derive(Debug)]
pub struct PaymentBatch {
    table: Table,
    gateway: Arc<dyn PaymentGateway>,
    policy: Policy,
    settling: Settling,
    zone: Tz,
    /// How long a claim leases an attempt. The lease is longer than the time for which a worker may work on an attempt.
    lease: TimeDelta,
    /// The longest time that a charge and its settlement can take.
    time_to_charge: TimeDelta,
    pace: RequestPace,
    /// The id of the table; it is set when the settings of the table are read for the first time.
    table_id: OnceLock<Ulid>,
    /// Set when a sign-up has found that the table accepts sign-ups: the table is not an unconfirmed copy. The check is
    /// not repeated, because a table does not become a copy later.
    accepts_sign_ups: OnceCell<()>,
    /// The gateway account to which the API key belongs; it is set when the gateway has returned the account.
    account: OnceCell<GatewayAccount>,
    /// The marker: a customer at the gateway by which runs recognize the gateway account, if the API key may not read
    /// the account. It is set when the marker was found at the gateway.
    marker: OnceCell<GatewayAccount>,
    clock: Arc<dyn Clock>,
}

#[async_trait]
impl Task for PaymentBatch {
    type Outcome = PaymentOutcome;
    type Run = PaymentRun;

    async fn read_page(
        &self,
        run: &PaymentRun,
        table: &Table,
        shard: u32,
        on: NaiveDate,
        after: Option<&Position>,
        limit: i32,
    ) -> Result<DuePage, TableError> {
        let settings = table.get_settings().await?;
        match settings {
            Some(settings) => {
                run.apply_settings(&settings);
                // Set the id of the table only once, because it never changes.
                self.table_id.get_or_init(|| settings.table_id);
            }
            None => run.disable_charging(),
        }
        table.get_due_payments_by_date(shard, on, after, limit).await
    }

    fn lease_duration(&self) -> TimeDelta {
        self.lease
    }

    fn lanes(&self) -> &'static [Lane] {
        &[Lane::Due, Lane::Open]
    }

    fn start_run(&self, runs: NonZeroU32) -> PaymentRun {
        self.pace.start_run(runs);
        PaymentRun::default()
    }

    fn take_totals(&self, run: &PaymentRun) -> RunTotals {
        run.take_totals()
    }

    async fn reason_to_refuse_table(&self, table: &Table, settings: &Settings) -> Result<Option<String>, TableError> {
        self.reason_to_refuse_gateway_account(table, settings).await
    }

    async fn reason_to_refuse_day(
        &self,
        table: &Table,
        settings: &Settings,
        on: NaiveDate,
        today: NaiveDate,
    ) -> Result<Option<String>, TableError> {
        let ceilings = &settings.payment_limits.ceilings;
        if ceilings.is_unlimited() {
            return Ok(None);
        }
        let (mut day, mut after) = (table.get_charge_total(today).await?, None);
        loop {
            let DueList { rows, next } =
                table.get_due_by_date(Batch::Payments, settings.shards, on, after, DUE_PAYMENTS_PAGE_SIZE).await?;
            let due = rows.iter().filter_map(|row| row.due.as_ref().ok()).filter(|due| due.will_be_charged());
            due.for_each(|due| day.add(due.amount));
            after = next;
            if after.is_none() {
                return Ok(ceilings.reason_exceeded(&day));
            }
        }
    }

    async fn write_charge_total(&self, run: &PaymentRun, shard: u32, today: NaiveDate) -> Result<(), TableError> {
        run.uncounted_charges.write(&self.table, today, shard).await
    }

    async fn write_remaining_charges(&self, run: &PaymentRun, today: NaiveDate) {
        // The stored total of a day is the sum over all shards, so any shard is right.
        run.uncounted_charges.write_or_warn(&self.table, today, 0).await;
    }

    async fn unresolved_problem(&self, table: &Table) -> Result<Option<String>, TableError> {
        Ok(settling::unresolved_findings(&table.get_open_findings().await?))
    }

    async fn work_on_row(
        &self,
        run: &PaymentRun,
        lane: Lane,
        due: &Due,
        today: NaiveDate,
        deadline: DateTime<Utc>,
    ) -> RowResult {
        let context = RowContext { run, today, deadline };
        if !self.has_time_to_charge(deadline - CLAIM_MARGIN) {
            return RowResult::OutOfTime;
        }
        let done = match lane {
            Lane::Due if run.is_charging_enabled() => self.charge_due(context, due).await,
            Lane::Due => self.result_while_switched_off(due, today).await,
            Lane::Open if run.was_left_open(due.key.subscription) => Ok(RowResult::LeftToOtherLane),
            Lane::Open => self.process_open_attempt(context, due).await,
        };
        let done = match done {
            Ok(done) => done,
            // If a write got no response, it is unknown whether the write took effect: an attempt may be open.
            Err(SettleError::Table(error)) if error.is_transient() => result_of_attempt_in_doubt(&due.key, &error),
            Err(error) => RowError::from(error).into(),
        };
        if lane == Lane::Due && may_have_open_attempt(&done) {
            run.mark_left_open(due.key.subscription);
        }
        done
    }
}

impl PaymentBatch {
    /// Creates the batch that charges the due payments of `table` through `gateway`.
    pub fn new(
        table: Table,
        gateway: Arc<dyn PaymentGateway>,
        (billing, config): (&BillingConfig, &ChargeConfig),
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            policy: billing.policy.clone(),
            settling: Settling::new(table.clone(), billing.policy.clone(), clock.clone()),
            table,
            gateway,
            lease: billing.lease,
            zone: billing.zone,
            time_to_charge: GATEWAY_TIMEOUT + SETTLE_MARGIN,
            pace: RequestPace::with_rate(config.gateway_rate),
            table_id: OnceLock::new(),
            account: OnceCell::new(),
            accepts_sign_ups: OnceCell::new(),
            marker: OnceCell::new(),
            clock,
        }
    }

    /// Opens the connection to the gateway before the first charge, by reading the gateway account. If the account cannot
    /// be read, or not in time, the first run reads it again.
    pub async fn connect(&self) {
        let account = self.account.get_or_try_init(|| self.gateway.account());
        let no_response = |_| Err(GatewayError::Unknown { reason: "no response in time".to_owned() });
        if let Err(error) = tokio::time::timeout(CONNECT_TIMEOUT, account).await.unwrap_or_else(no_response) {
            let error_type = error.error_type();
            tracing::warn!(%error, error_type, "the gateway account could not be read yet: the first run reads it again");
        }
    }

    /// Returns whether the time until `deadline` is enough for a charge and its settlement.
    fn has_time_to_charge(&self, deadline: DateTime<Utc>) -> bool {
        sweep::time_left(self.clock.as_ref(), deadline) > self.time_to_charge
    }

    /// Returns whether enough time is left to charge before `deadline`, after the current pause of requests to the
    /// gateway. If no pause is active, returns `true` without looking at the deadline.
    fn has_time_to_charge_after_pause(&self, deadline: DateTime<Utc>) -> bool {
        let pause = TimeDelta::from_std(self.pace.remaining_pause()).unwrap_or(TimeDelta::MAX);
        pause.is_zero() || sweep::time_left(self.clock.as_ref(), deadline) > self.time_to_charge + pause
    }

    /// Records that the gateway has responded: resets the circuit breaker of `run`, and makes the next pause of
    /// requests short again.
    fn record_response(&self, run: &PaymentRun) {
        run.breaker.reset();
        self.pace.record_response();
    }

    /// Creates a claim with a new token, whose lease begins now.
    fn new_claim(&self) -> Claim {
        let now = self.clock.now();
        Claim { token: ClaimToken(self.clock.ulid()), now, leased_until: now + self.lease }
    }
}

/// Returns whether a row with the result `done` was counted and may still have an open payment attempt.
fn may_have_open_attempt(done: &RowResult) -> bool {
    let is_open = |outcome: &PaymentOutcome| matches!(outcome, PaymentOutcome::InDoubt | PaymentOutcome::Processing);
    match done {
        RowResult::Counted(outcome) => is_open(outcome),
        RowResult::Failed { .. } | RowResult::Deferred { .. } => true,
        RowResult::StopRun { counted, .. } => counted.is_some(),
        RowResult::OutOfTime | RowResult::LeftToOtherLane => false,
    }
}

/// Returns the result of a row that is counted with `outcome`, but deferred because charging is switched off.
fn deferred_because_charging_is_off(outcome: PaymentOutcome) -> RowResult {
    RowResult::Deferred { counted: outcome, reason: "charging is switched off".to_owned() }
}

/// Logs that the attempt of the subscription `key` stays in doubt because of the table's `error`. Returns the result of
/// the subscription's row.
fn result_of_attempt_in_doubt(
    SubscriptionKey { account, subscription, .. }: &SubscriptionKey,
    error: &TableError,
) -> RowResult {
    tracing::warn!(%account, %subscription, %error, error_type = "Table", "{IN_DOUBT_MESSAGE}");
    RowResult::Counted(PaymentOutcome::InDoubt)
}
