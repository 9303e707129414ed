//! The payment batch: claim, charge, settle; and for an attempt in doubt: take over, look up, settle or charge again
//! under the same key.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod breaker;
mod charge;
mod charge_now;
mod claim;
mod config;
mod first_payment;
mod gateway_account;
mod outcome;
mod pace;
mod run;
mod settle;
mod take_over;

use std::num::NonZeroU32;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;
use tokio::sync::OnceCell;
use ulid::Ulid;

use ::config::BillingConfig;
use billing::{Ceilings, GatewayAccount, Policy, Token};
use clock::Clock;
use gateways::PaymentGateway;
use pace::Pace;
use run::Work;
use settling::{SettleError, Settling};
use store::{Batch, Claim, Due, DueList, DuePage, Lane, Position, Table, TableError};
use sweep::{Task, Totals};

pub use charge_now::TIME_TO_WAIT;
pub use config::*;
pub use first_payment::{FirstPayment, SignUp};
pub use outcome::PaymentOutcome;
pub use run::PaymentRun;

/// The gateway is given this long to answer one request.
pub const GATEWAY_TIMEOUT: TimeDelta = TimeDelta::seconds(30);
/// A settlement is given this long, after the charge.
const MARGIN: TimeDelta = TimeDelta::seconds(10);
/// A claim is given this long, before the charge: one that is begun leaves time enough to charge.
const CLAIM_TIME: TimeDelta = TimeDelta::seconds(12);
/// The gateway is waited for so long while a process begins; Lambda allows it ten seconds in all.
const TIME_TO_CONNECT: Duration = Duration::from_secs(3);
/// Rows read at once to count a day.
const COUNTED_ROWS: usize = 1_000;

/// The result of the work on a due payment.
type Done = sweep::Done<PaymentOutcome>;

/// Charges what is due.
#[derive(Debug)]
pub struct ChargeDue {
    table: Table,
    gateway: Arc<dyn PaymentGateway>,
    policy: Policy,
    settling: Settling,
    zone: Tz,
    /// How long a claim keeps others away: longer than an attempt may be worked on.
    lease: TimeDelta,
    /// How long a bank debit may be processing before it is reported as failed.
    max_processing: TimeDelta,
    /// A charge and its settlement are given this long.
    time_to_charge: TimeDelta,
    pace: Pace,
    /// The table's own id, once a page was read.
    table_id: OnceLock<Ulid>,
    /// Whose account at the gateway it is, once it was asked.
    account: OnceCell<GatewayAccount>,
    /// The marker that names the account, once it was found at the gateway.
    marker: OnceCell<GatewayAccount>,
    ceilings: Ceilings,
    /// A run stops after so many failures of the gateway in a row.
    max_failures: u32,
    clock: Arc<dyn Clock>,
}

#[async_trait]
impl Task for ChargeDue {
    type Outcome = PaymentOutcome;
    type Run = PaymentRun;

    async fn page(
        &self,
        run: &PaymentRun,
        table: &Table,
        shard: u32,
        on: NaiveDate,
        after: Option<&Position>,
        limit: i32,
    ) -> Result<DuePage, TableError> {
        let settings = table.get_settings().await?;
        run.set_charging(settings.as_ref().is_some_and(|settings| settings.charging));
        if let Some(settings) = settings {
            // It never changes.
            self.table_id.get_or_init(|| settings.table_id);
        }
        table.get_due_payments_by_date(shard, on, after, limit).await
    }

    fn lease(&self) -> TimeDelta {
        self.lease
    }

    fn lanes(&self) -> &'static [Lane] {
        &[Lane::Due, Lane::Open]
    }

    fn begin(&self, runs: NonZeroU32) -> PaymentRun {
        self.pace.share(runs);
        PaymentRun::new(false, self.max_failures)
    }

    fn take_totals(&self, run: &PaymentRun) -> Totals {
        run.take_totals()
    }

    async fn refuses_table(&self, table: &Table) -> Result<Option<String>, TableError> {
        self.refuses_account_of(table).await
    }

    async fn refuses(
        &self,
        table: &Table,
        shards: u32,
        on: NaiveDate,
        today: NaiveDate,
    ) -> Result<Option<String>, TableError> {
        if self.ceilings.are_none() {
            return Ok(None);
        }
        let (mut day, mut after) = (table.get_charged(today).await?, None);
        loop {
            let DueList { rows, next } =
                table.get_due_by_date(Batch::Payments, shards, on, after, COUNTED_ROWS).await?;
            let due = rows.iter().filter_map(|row| row.due.as_ref().ok()).filter(|due| due.will_be_charged());
            due.for_each(|due| day.add(due.amount));
            after = next;
            if after.is_none() {
                return Ok(self.ceilings.exceeded_by(&day));
            }
        }
    }

    async fn page_done(&self, shard: u32, today: NaiveDate) -> Result<(), TableError> {
        self.settling.count(today, shard).await
    }

    async fn unresolved(&self, table: &Table) -> Result<Option<String>, TableError> {
        Ok(settling::unresolved(&table.get_open_findings().await?))
    }

    async fn work(&self, run: &PaymentRun, lane: Lane, due: &Due, today: NaiveDate, deadline: DateTime<Utc>) -> Done {
        let work = Work { run, today, deadline };
        if !self.has_time_to_charge(deadline - CLAIM_TIME) {
            return Done::OutOfTime;
        }
        let done = match lane {
            Lane::Due if run.is_charging() => self.charge_due(work, due).await,
            Lane::Due => self.hold_back(due, today).await,
            Lane::Open if run.has_left_open(due.key.subscription) => Ok(Done::PassedBy),
            Lane::Open => self.settle_open(work, due).await,
        };
        let done = match done {
            Ok(done) => done,
            // Whether a write that got no answer took effect is unknown: an attempt may be open.
            Err(SettleError::Table(error)) if error.is_transient() => in_doubt(&error),
            Err(error) => Done::Failed { reason: error.to_string() },
        };
        if lane == Lane::Due && is_left(&done) {
            run.leave_open(due.key.subscription);
        }
        done
    }
}

impl ChargeDue {
    /// Charges what is due in `table` through `gateway`.
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
            lease: config.lease,
            max_processing: config.max_processing,
            zone: billing.zone,
            time_to_charge: GATEWAY_TIMEOUT + MARGIN,
            pace: Pace::at(config.gateway_rate),
            table_id: OnceLock::new(),
            account: OnceCell::new(),
            marker: OnceCell::new(),
            ceilings: config.ceilings.clone(),
            max_failures: config.gateway_failures,
            clock,
        }
    }

    /// Opens the connection to the gateway ahead of the first charge. If it does not answer, the first run asks again.
    pub async fn connect(&self) {
        let asked = self.account.get_or_try_init(|| self.gateway.account());
        if !matches!(tokio::time::timeout(TIME_TO_CONNECT, asked).await, Ok(Ok(_))) {
            tracing::warn!("the gateway has not said yet whose account it is");
        }
    }

    fn has_time_to_charge(&self, deadline: DateTime<Utc>) -> bool {
        sweep::time_left(self.clock.as_ref(), deadline) > self.time_to_charge
    }

    /// Whether the gateway's present pause, if there is one, ends early enough to charge before `deadline`.
    fn may_wait(&self, deadline: DateTime<Utc>) -> bool {
        let pause = TimeDelta::from_std(self.pace.pause_left()).unwrap_or(TimeDelta::MAX);
        pause.is_zero() || sweep::time_left(self.clock.as_ref(), deadline) > self.time_to_charge + pause
    }

    /// The gateway has answered: it is there, and not too much is asked of it.
    fn answered(&self, run: &PaymentRun) {
        run.breaker.reset();
        self.pace.answered();
    }

    fn new_claim(&self) -> Claim {
        let now = self.clock.now();
        Claim { token: Token(self.clock.ulid()), now, leased_until: now + self.lease }
    }
}

/// Whether a row is counted, and there is something left to do.
fn is_left(done: &Done) -> bool {
    let is_open = |outcome: &PaymentOutcome| matches!(outcome, PaymentOutcome::InDoubt | PaymentOutcome::Processing);
    match done {
        Done::Counted(outcome) => is_open(outcome),
        Done::Failed { .. } | Done::HeldBack { .. } => true,
        Done::Stop { counted, .. } => counted.is_some(),
        Done::OutOfTime | Done::PassedBy => false,
    }
}

fn switched_off(counted: PaymentOutcome) -> Done {
    Done::HeldBack { counted, reason: "charging is switched off".to_owned() }
}

fn in_doubt(reason: &dyn std::fmt::Display) -> Done {
    tracing::warn!(%reason, "an attempt is left in doubt");
    Done::Counted(PaymentOutcome::InDoubt)
}
