//! A simulation with faults: months of a whole deployment with random faults, outages and customer actions. One seed
//! decides all these faults, outages and actions, and the oracle checks every write, charge and mail.
//!
//! The simulation runs the production code: both batches, the API, the webhook receiver, and the charging engine,
//! with which an operator resolves an unknown outcome. Each of these tasks runs in its own simulated process,
//! concurrently with the other tasks. Two simulations with the same seed make the same calls in the same order.

mod actor_tasks;
mod clock_ahead;
mod corrupter;
mod day_planner;
mod days;
mod environment;
mod process;
mod random_choices;
mod restored_table;
mod seeds;
mod world;

use audit::InvariantChecker;
use std::rc::Rc;

use chrono::{DateTime, Days, NaiveDate, NaiveTime, Utc};
use clock::Clock as _;
use deployment::DeploymentConfig;

use crate::SimulationError;
use crate::history::SimulatedRecords;
use crate::oracle::OracleCounts;
use crate::random_faults::FaultConfig;
use crate::schedule::{ActorId, UnfinishedActors};
use crate::simulated_gateway::GatewayKind;
use clock_ahead::ClockAhead;
pub use corrupter::InjectedCorruption;
use corrupter::ItemCorrupter;
use day_planner::{DayPlanner, PlannedTask};
pub use restored_table::RestoreCounts;
use restored_table::TableBackup;
pub use seeds::{FaultSimulationSettings, simulate_seeds};
use world::SimulatedWorld;

/// The number of days between the first day without faults and the last day. In these days, the system finishes the
/// work that outages left, and bank debits complete.
const FAULT_FREE_DAYS: u64 = 8;

/// The result of a simulation with faults.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FaultSimulationResult {
    pub seed: u64,
    pub from: NaiveDate,
    /// The last day of the simulation.
    pub to: NaiveDate,
    /// The number of subscriptions at the end.
    pub subscriptions: usize,
    /// The number of subscriptions, summed over all days.
    pub subscription_days: u64,
    /// The numbers of writes, charges and mails that the oracle checked.
    pub counts: OracleCounts,
    /// The number of events that followed from the changes of the table.
    pub events: usize,
    /// The number of external calls (to the table, the gateway or the mailer) that the schedule resumed.
    pub turns: u64,
    /// The number of injected faults. Requests that were lost in an outage of the gateway are not included.
    pub faults: u64,
    /// The number of days with an outage of the whole system or of the gateway.
    pub outage_days: u32,
    /// A hash of every external call, every response and every instant, in their order.
    pub digest: u64,
    /// The events and the items of the simulation.
    pub records: SimulatedRecords,
    /// The number of subscriptions that were changed as by a run with a clock that was ahead, and were repaired.
    pub clock_repairs: u32,
    /// The numbers of acts after the table was replaced by a backup.
    pub restore: RestoreCounts,
    /// The corruptions of stored items, in their order. Empty unless the simulation corrupts items.
    pub corruptions: Vec<InjectedCorruption>,
    /// The violations that the oracle found. The simulation ends on the day of the first violation.
    pub violations: Vec<String>,
}

/// A simulation with faults that is in progress.
struct FaultSimulation {
    world: Rc<SimulatedWorld>,
    actors: UnfinishedActors,
    /// The actors that have not finished, each with its process.
    busy: Vec<(ActorId, Rc<process::SimulatedProcess>)>,
    /// The tasks of the day that have not started, the latest first.
    planned_tasks: Vec<(DateTime<Utc>, PlannedTask)>,
    planner: DayPlanner,
    /// Corrupts items; `None` in a simulation without corruptions.
    corrupter: Option<ItemCorrupter>,
    /// Writes as a run with a clock that was ahead; `None` in a simulation without such writes.
    clock_ahead: Option<ClockAhead>,
    /// The backup with which the table is replaced at the end; `None` in a simulation without a restore.
    backup: Option<TableBackup>,
    subscription_days: u64,
    /// The number of subscriptions that were created during the simulation.
    created: u32,
}

/// Simulates `settings` with the seed `seed`, and then some days without faults. Calls `on_day` after each day without a
/// violation.
///
/// # Errors
/// [`SimulationError`] if a date is out of range, a subscription cannot be created, or the table cannot be accessed.
pub fn simulate_with_faults(
    settings: FaultSimulationSettings,
    seed: u64,
    on_day: impl FnMut(NaiveDate),
) -> Result<FaultSimulationResult, SimulationError> {
    run_simulation(settings, seed, ManualWrites::default(), on_day)
}

/// Simulates like [`simulate_with_faults`]. On some days, a subscription is also written as by a run with a clock that
/// was ahead, and is repaired at once as by `dueday audit --fix`. The oracle checks each repair. If the gateway is
/// Stripe, a backup replaces the table at the end, and people execute the steps after a restore.
///
/// # Errors
/// Like [`simulate_with_faults`].
pub fn simulate_with_repairs(
    settings: FaultSimulationSettings,
    seed: u64,
    on_day: impl FnMut(NaiveDate),
) -> Result<FaultSimulationResult, SimulationError> {
    let clock_ahead = Some(ClockAhead::new(seed));
    let writes = ManualWrites { clock_ahead, corrupter: None, is_restored: settings.gateway == GatewayKind::Stripe };
    run_simulation(settings, seed, writes, on_day)
}

/// The writes of a simulation that no process of Dueday makes; `None` if the simulation makes no such writes.
#[derive(Default)]
struct ManualWrites {
    clock_ahead: Option<ClockAhead>,
    corrupter: Option<ItemCorrupter>,
    /// Whether a backup replaces the table at the end.
    is_restored: bool,
}

/// Simulates like [`simulate_with_faults`], and also corrupts most accounts: one attribute of one item on a random day.
/// After each corruption, the audit of the account must find the corruption, or `CORRUPTIONS_THE_AUDIT_MAY_MISS` must
/// contain the attribute. The corrupted items are not repaired. For an account with a corruption, the oracle checks
/// only that no month is charged twice. For all other accounts, the oracle makes all its checks. The published events
/// are not checked.
///
/// # Errors
/// As [`simulate_with_faults`].
pub fn simulate_with_corruptions(
    settings: FaultSimulationSettings,
    seed: u64,
) -> Result<FaultSimulationResult, SimulationError> {
    let corrupter = Some(ItemCorrupter::new(seed));
    let writes = ManualWrites { corrupter, ..ManualWrites::default() };
    run_simulation(settings, seed, writes, |_| {})
}

/// Executes a simulation with faults and with the given manual writes.
fn run_simulation(
    settings: FaultSimulationSettings,
    seed: u64,
    writes: ManualWrites,
    on_day: impl FnMut(NaiveDate),
) -> Result<FaultSimulationResult, SimulationError> {
    let FaultSimulationSettings { mut config, new_subscribers, from, months, fault_rate, gateway } = settings;
    let dates = SimulationDates::new(from, months)?;
    config.charging.gateway_rate = None;
    let checker = initial_checker(&config, dates.day_before);
    let fault_config = FaultConfig { rate: fault_rate, seed };
    let mut simulation = FaultSimulation::new(config, fault_config, gateway, writes, dates);
    simulation.create_subscriptions(new_subscribers, dates.day_before)?;
    simulation.simulate_days(dates, checker, on_day)?;
    simulation.check_end_of_simulation(dates.to, checker);
    simulation.into_result(seed, dates, checker)
}

/// The dates of a simulation with faults.
#[derive(Clone, Copy)]
struct SimulationDates {
    /// The day before the first day.
    day_before: NaiveDate,
    from: NaiveDate,
    /// The first day without faults.
    fault_free_from: NaiveDate,
    /// The last day.
    to: NaiveDate,
}

impl SimulationDates {
    /// Returns the dates of a simulation with faults in `months` months from the day `from`.
    ///
    /// # Errors
    /// [`SimulationError::Calendar`] if a date is out of range.
    fn new(from: NaiveDate, months: u32) -> Result<Self, SimulationError> {
        let day_before = from.pred_opt().ok_or(SimulationError::Calendar)?;
        let fault_free_from = from.checked_add_months(chrono::Months::new(months)).ok_or(SimulationError::Calendar)?;
        let to = fault_free_from.checked_add_days(Days::new(FAULT_FREE_DAYS)).ok_or(SimulationError::Calendar)?;
        Ok(Self { day_before, from, fault_free_from, to })
    }
}

/// Returns the checker of a new table with `config`, at the beginning of the day `today`.
fn initial_checker(config: &DeploymentConfig, today: NaiveDate) -> InvariantChecker {
    let policy = &config.table.configured_policy.policy;
    InvariantChecker {
        shards: config.table.initial_shards,
        today,
        now: today.and_time(NaiveTime::MIN).and_utc(),
        records_kept: policy.receipt_retention(),
        longest_gap: policy.dunning.longest_gap(),
        lead: policy.lead,
    }
}

impl FaultSimulation {
    /// Creates a simulation without subscriptions. Its clock shows noon of the day before the first day.
    fn new(
        config: DeploymentConfig,
        fault_config: FaultConfig,
        gateway: GatewayKind,
        writes: ManualWrites,
        dates: SimulationDates,
    ) -> Self {
        let ManualWrites { clock_ahead, corrupter, is_restored } = writes;
        let (shards, seed) = (config.table.initial_shards, fault_config.seed);
        let noon = NaiveTime::from_hms_opt(12, 0, 0).unwrap_or_default();
        let world = SimulatedWorld::new(config, dates.day_before.and_time(noon).and_utc(), fault_config, gateway);
        let backup = is_restored.then(|| TableBackup::new(seed, &world, dates.fault_free_from));
        Self {
            world: Rc::new(world),
            actors: UnfinishedActors::default(),
            busy: Vec::new(),
            planned_tasks: Vec::new(),
            planner: DayPlanner::new(shards),
            corrupter,
            clock_ahead,
            backup,
            subscription_days: 0,
            created: 0,
        }
    }

    /// Simulates all days until the oracle reports a violation. Calls `on_day` after each day without a violation.
    fn simulate_days(
        &mut self,
        dates: SimulationDates,
        checker: InvariantChecker,
        mut on_day: impl FnMut(NaiveDate),
    ) -> Result<(), SimulationError> {
        for day in dates.from.iter_days().take_while(|day| *day <= dates.to) {
            if day == dates.fault_free_from {
                self.stop_faults()?;
            }
            if day < dates.fault_free_from {
                if let Some(clock_ahead) = &mut self.clock_ahead {
                    clock_ahead.change_and_repair(&self.world, checker, day);
                }
                if let Some(corrupter) = &mut self.corrupter {
                    corrupter.corrupt_items(&self.world, checker, day);
                }
                self.simulate_day_with_faults(day)?
            } else {
                self.simulate_day_without_faults(day)?
            }
            if !self.world.oracle().violations.is_empty() {
                break;
            }
            on_day(day);
        }
        Ok(())
    }

    /// If there is no violation yet, lets the oracle check the state after the last day `to`, and audits the accounts
    /// that were not corrupted.
    fn check_end_of_simulation(&self, to: NaiveDate, checker: InvariantChecker) {
        let world = &self.world;
        world.history.add_table_to_trace();
        let mut oracle = world.oracle();
        if !oracle.violations.is_empty() {
            return;
        }
        oracle.check_end_of_simulation(world.clock.now(), to);
        if self.corrupter.is_none() {
            oracle.violations.extend(world.history.find_contradictions());
        }
        let checker = InvariantChecker { today: to, now: world.clock.now(), ..checker };
        let audited = world.history.audit_intact_accounts(checker, |account| oracle.is_account_corrupted(account));
        oracle.violations.extend(audited);
    }

    /// Returns the result. If there is no violation, the backup first replaces the table, and the steps after a restore
    /// are checked.
    fn into_result(
        self,
        seed: u64,
        dates: SimulationDates,
        checker: InvariantChecker,
    ) -> Result<FaultSimulationResult, SimulationError> {
        let world = self.world;
        let mut oracle = world.oracle();
        let violations = std::mem::take(&mut oracle.violations);
        let counts = oracle.counts;
        let subscriptions = oracle.expected_subscriptions().count();
        drop(oracle);
        let records = world.history.records();
        let (restore, violations) = match self.backup.filter(|_| violations.is_empty()) {
            Some(backup) => backup.restore(&world, checker, dates.to)?,
            None => (RestoreCounts::default(), violations),
        };
        Ok(FaultSimulationResult {
            seed,
            from: dates.from,
            to: dates.to,
            subscriptions,
            subscription_days: self.subscription_days,
            counts,
            events: world.history.event_count(),
            turns: world.schedule.resumed_call_count(),
            faults: world.faults.fault_count(),
            outage_days: self.planner.outage_days,
            digest: world.schedule.trace_digest(),
            records,
            restore,
            clock_repairs: self.clock_ahead.map(|clock_ahead| clock_ahead.repairs).unwrap_or_default(),
            corruptions: self.corrupter.map(|corrupter| corrupter.injected).unwrap_or_default(),
            violations,
        })
    }
}
