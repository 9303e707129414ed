//! The end of a simulation at the stand-in for Stripe: a random backup replaces the table, and people execute the steps
//! of `docs/trouble.md`. The daily runs then continue for more than a month, without faults.
//!
//! Stripe has the payments that were made after the backup. Its objects, not the table, decide whether a month was
//! charged twice.

mod gateway_truth;
mod person;

use std::sync::Arc;

use audit::InvariantChecker;
use charging::OlderTableCheck;
use chrono::{DateTime, Days, NaiveDate, NaiveTime, TimeDelta, Utc};
use clock::Clock as _;
use deployment::Deployment;
use emulator::{Engine, InProcessTransport, StripeServer, batch_run_times_on};
use gateways::Stripe;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use serde_json::{Value, json};
use sweep::{BatchRequest, SweepError};

use super::world::SimulatedWorld;
use crate::SimulationError;
use crate::item_audit::audit_items;
use crate::simulation::CountingMailer;
use crate::stored_items::SubscriptionName;
use crate::table_contents::TableContents;
use gateway_truth::GatewayTruth;

/// The backup is made at most this number of days before the faults end.
const MAX_BACKUP_AGE: u64 = 25;
/// The number of days after the restore: a whole month, so that each month that the restored table may charge again is
/// due once more.
const DAYS_AFTER_RESTORE: u64 = 40;

/// How the table is replaced by the backup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RestoreKind {
    /// A new table of DynamoDB with another id, restored from a backup.
    NewTable,
    /// An older copy of the whole data folder of one machine. The table has the same id.
    OlderFolder,
    /// The table is not replaced. People only decide about the findings of the simulation.
    Nothing,
}

/// The numbers of the acts at the end of a simulation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct RestoreCounts {
    /// The number of restored tables that a run noticed.
    pub noticed: u64,
    /// The number of receipts that the comparisons with the gateway wrote.
    pub receipts: u64,
    /// The number of findings about which a person decided.
    pub decisions: u64,
    /// The number of wrong decisions about findings that were refused.
    pub refused_decisions: u64,
    /// The number of payments that were made after the restore.
    pub payments: u64,
}

impl RestoreCounts {
    /// Adds the numbers of `other`.
    pub fn add(&mut self, other: &Self) {
        self.noticed += other.noticed;
        self.receipts += other.receipts;
        self.decisions += other.decisions;
        self.refused_decisions += other.refused_decisions;
        self.payments += other.payments;
    }
}

/// The backup of a simulation, with which its table is replaced at the end.
pub struct TableBackup {
    rng: ChaCha8Rng,
    kind: RestoreKind,
    /// The time of the backup.
    pub at: DateTime<Utc>,
    /// The backup; `None` until the time of the backup.
    engine: Option<Engine>,
}

impl TableBackup {
    /// Chooses the kind of the restore and the time of the backup: one of the days before `fault_free_from`, shortly
    /// before, during or after the first run of the day. `seed` decides.
    pub fn new(seed: u64, world: &SimulatedWorld, fault_free_from: NaiveDate) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let kind = match rng.random_range(0..5) {
            0..2 => RestoreKind::NewTable,
            2..4 => RestoreKind::OlderFolder,
            _ => RestoreKind::Nothing,
        };
        let day = fault_free_from - Days::new(rng.random_range(1..=MAX_BACKUP_AGE));
        let at = batch_run_times(world, day)[0] + TimeDelta::seconds(rng.random_range(-300..=1_200));
        Self { rng, kind, at, engine: None }
    }

    /// Copies the table of `world`.
    pub fn copy_table(&mut self, world: &SimulatedWorld) {
        self.engine = Some(world.engine.copy());
    }

    /// Replaces the table by the backup after the day `last`, and simulates the steps of the people and the days after
    /// them. Returns the numbers of acts, and the violations.
    ///
    /// # Errors
    /// [`SimulationError`] if the restored table cannot be accessed.
    pub fn restore(
        self,
        world: &SimulatedWorld,
        checker: InvariantChecker,
        last: NaiveDate,
    ) -> Result<(RestoreCounts, Vec<String>), SimulationError> {
        let Some(stripe) = &world.stripe else { return Ok(Default::default()) };
        let Self { rng, kind, at, engine } = self;
        let engine = match kind {
            RestoreKind::NewTable | RestoreKind::OlderFolder => engine.unwrap_or_else(|| world.engine.copy()),
            RestoreKind::Nothing => world.engine.copy(),
        };
        prepare_settings(&engine, &world.config.table.name, kind)?;
        let server = stripe.server();
        let gateway = Arc::new(InProcessTransport::stripe_adapter(Arc::new(InProcessTransport(server.clone()))));
        let mailer = Arc::new(CountingMailer::default());
        let deployment =
            Deployment::new(engine.client(), world.config.clone(), gateway.clone(), mailer, world.clock.clone());
        let cancelled = world.oracle().cancelled_subscriptions();
        let restored = RestoredTable {
            world,
            kind,
            backup_at: if kind == RestoreKind::Nothing { world.clock.now() } else { at },
            truth: GatewayTruth::new(server.clone(), cancelled.clone()),
            cancelled,
            server,
            gateway,
            deployment,
            rng,
            is_confirmed: kind == RestoreKind::Nothing,
            counts: RestoreCounts::default(),
            violations: Vec::new(),
        };
        // The schedule of the simulation is not used any more: no two calls happen concurrently.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let runtime = runtime.map_err(|error| SimulationError::Runtime(error.to_string()))?;
        runtime.block_on(restored.simulate_days(checker, last))
    }
}

/// A restored table, its gateway, and the people who compare both.
struct RestoredTable<'a> {
    world: &'a SimulatedWorld,
    kind: RestoreKind,
    /// The table contains no change after this time.
    backup_at: DateTime<Utc>,
    truth: GatewayTruth,
    /// The subscriptions that were cancelled before the restore.
    cancelled: Vec<SubscriptionName>,
    server: Arc<StripeServer>,
    gateway: Arc<Stripe>,
    deployment: Deployment,
    rng: ChaCha8Rng,
    /// True if runs must not be refused: the table was not replaced, or a person has confirmed it.
    is_confirmed: bool,
    counts: RestoreCounts,
    violations: Vec<String>,
}

impl RestoredTable<'_> {
    /// Simulates the days after `last`. Stops after the first day with a violation.
    async fn simulate_days(
        mut self,
        checker: InvariantChecker,
        last: NaiveDate,
    ) -> Result<(RestoreCounts, Vec<String>), SimulationError> {
        let end = last + Days::new(DAYS_AFTER_RESTORE);
        for day in last.iter_days().skip(1).take_while(|day| *day <= end) {
            for time in batch_run_times(self.world, day) {
                self.world.clock.set(time);
                self.confirm_if_possible().await?;
                self.decide_about_findings().await?;
                self.run_payments(day).await?;
            }
            if self.is_confirmed {
                self.compare_latest_day().await?;
            }
            self.counts.payments += self.truth.check_new_payments(&mut self.violations);
            if !self.violations.is_empty() {
                break;
            }
        }
        if self.violations.is_empty() {
            self.check_table_at_end(checker, end).await?;
        }
        let kind = self.kind;
        let violations = self.violations.into_iter().map(|found| format!("after the restore ({kind:?}): {found}"));
        Ok((self.counts, violations.collect()))
    }

    /// Runs the payment batch of `day` in a new process, which compares the table with the gateway's latest payments.
    async fn run_payments(&mut self, day: NaiveDate) -> Result<(), SimulationError> {
        let older_table_check = Some(Arc::new(OlderTableCheck::new(self.gateway.clone())));
        let deployment = Deployment { older_table_check, ..self.deployment.clone() };
        let deadline = self.world.clock.now() + TimeDelta::hours(1);
        match deployment.payment_batch().await?.run(&BatchRequest::for_date(day), deadline).await {
            Ok(report) if !report.adds_up() || report.stopped.is_some() => {
                self.violations.push(format!("the run of {day} did not end: {:?}", report.stopped));
            }
            Ok(_) if self.kind == RestoreKind::NewTable && !self.is_confirmed => {
                self.violations.push(format!("the run of {day} did not notice the new table"));
            }
            Ok(_) => self.is_confirmed = true,
            Err(SweepError::Refused { .. }) if !self.is_confirmed => {}
            Err(error) => self.violations.push(format!("the run of {day} failed: {error}")),
        }
        Ok(())
    }

    /// Checks the table at the end: nothing was missed, each payment since the backup has a receipt or a finding, and
    /// the audit finds nothing.
    async fn check_table_at_end(&mut self, checker: InvariantChecker, end: NaiveDate) -> Result<(), SimulationError> {
        let table = &self.deployment.table;
        let contents = TableContents::read(table, &[]).await?;
        let open = table.get_open_findings().await?;
        self.truth.check_payments_and_due_dates(&contents, &open, self.backup_at, end, &mut self.violations);
        let items = self.deployment.table.scan().await?;
        let to_json =
            |item| serde_json::to_value(serde_dynamo::Item::from(item)).expect("an item can be written as JSON");
        let items: Vec<Value> = items.into_iter().map(to_json).collect();
        let checker = InvariantChecker { today: end, now: self.world.clock.now(), ..checker };
        self.violations.extend(audit_items(checker, items.iter()));
        Ok(())
    }
}

/// Returns the two times of `day` at which the payment batch runs.
fn batch_run_times(world: &SimulatedWorld, day: NaiveDate) -> [DateTime<Utc>; 2] {
    batch_run_times_on(day, NaiveTime::from_hms_opt(6, 0, 0).unwrap_or_default(), world.zone())
}

/// Prepares the settings in the copy of the table. A new table has another id than its settings. Operators of the
/// simulation may have limited the charges, or switched charging off: both end.
fn prepare_settings(engine: &Engine, table: &str, kind: RestoreKind) -> Result<(), SimulationError> {
    let key = json!({"PK": {"S": "CTL#settings"}, "SK": {"S": "CTL#settings"}});
    let (mut set, mut values) = (
        "SET PaymentLimits = :limits, Charging = :on".to_owned(),
        json!({
            ":limits": {"M": {"max-charges": {"S": "none"}}},
            ":on": {"BOOL": true},
        }),
    );
    if kind == RestoreKind::NewTable {
        set += ", DynamodbId = :id";
        values[":id"] = json!({"S": "the-table-of-the-backup"});
    }
    let update = json!({"TableName": table, "Key": key, "UpdateExpression": set, "ExpressionAttributeValues": values});
    engine.execute("UpdateItem", &update).map(drop).map_err(SimulationError::Engine)
}
