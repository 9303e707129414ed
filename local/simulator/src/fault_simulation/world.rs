//! The world of one simulation with faults: its environment, and its pool of simulated processes.

use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::rc::Rc;

use billing::{Policy, PolicySetting};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use clock::Clock as _;
use config::{ConfiguredPolicy, Env, variable_of_setting};
use deployment::DeploymentConfig;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use store::TableError;

use super::environment::SimulationEnvironment;
use super::process::SimulatedProcess;
use crate::oracle::{ActorRole, SimulatedActor};
use crate::random_faults::FaultConfig;
use crate::schedule::{ActorId, poll_future_until_ready};
use crate::simulated_gateway::GatewayKind;

/// The maximum difference between the clock of a process and the true time.
const MAX_SKEW_SECONDS: i64 = 180;
/// On average, the simulation discards one in this many processes that do not serve the API when they become idle, and
/// reuses the others.
const DISCARD_ONE_IN: u32 = 12;
/// On average, the simulation discards one in this many processes that serve the API when they become idle, and reuses
/// the others.
const DISCARD_API_ONE_IN: u32 = 100;

/// The environment of one simulation with faults, and its idle processes.
pub struct SimulatedWorld {
    environment: SimulationEnvironment,
    /// The random numbers for the planned tasks and for the properties of new processes.
    pub rng: RefCell<ChaCha8Rng>,
    /// The random numbers for the variables of new processes.
    variables_rng: RefCell<ChaCha8Rng>,
    /// The idle processes that do not serve the API.
    idle: RefCell<Vec<Rc<SimulatedProcess>>>,
    /// The idle processes that serve the API.
    idle_api: RefCell<Vec<Rc<SimulatedProcess>>>,
    /// The number of the actor that was started last.
    last_actor: Cell<ActorId>,
}

impl SimulatedWorld {
    /// Creates a world with an empty table, whose simulated clock begins at `now`. The seed of `fault_config` decides
    /// every random choice.
    pub fn new(config: DeploymentConfig, now: DateTime<Utc>, fault_config: FaultConfig, gateway: GatewayKind) -> Self {
        // Each component has its own random number generator, so the number of random choices of one component does not
        // change the choices of another component.
        let mut seeds = ChaCha8Rng::seed_from_u64(fault_config.seed);
        Self {
            environment: SimulationEnvironment::new(config, now, fault_config, gateway, &mut seeds),
            rng: RefCell::new(ChaCha8Rng::seed_from_u64(seeds.random())),
            variables_rng: RefCell::new(ChaCha8Rng::seed_from_u64(seeds.random())),
            idle: RefCell::default(),
            idle_api: RefCell::default(),
            last_actor: Cell::new(0),
        }
    }

    /// Stops all faults, and discards the idle processes that do not serve the API, so the runs after this call start in
    /// new processes.
    pub fn stop_faults(&self) {
        self.schedule.stop_faults();
        self.history.set_index_consistent(true);
        self.gateway.stop_faults();
        self.faults.set_gateway_outage(false);
        self.idle.borrow_mut().clear();
    }

    /// Returns an idle process, or starts one: a process of the API if `is_api`, otherwise a process for all other
    /// tasks.
    pub fn idle_or_new_process(&self, is_api: bool) -> Result<Rc<SimulatedProcess>, TableError> {
        let idle = if is_api { &self.idle_api } else { &self.idle };
        if let Some(idle) = idle.borrow_mut().pop() {
            return Ok(idle);
        }
        let (skew, has_retries) = {
            let mut rng = self.rng.borrow_mut();
            (rng.random_range(-MAX_SKEW_SECONDS..=MAX_SKEW_SECONDS), rng.random())
        };
        let config = self.config_of_new_process();
        let process =
            poll_future_until_ready(SimulatedProcess::start(self, config, TimeDelta::seconds(skew), has_retries))?;
        if is_api {
            poll_future_until_ready(process.create_api())?;
        }
        Ok(Rc::new(process))
    }

    /// Returns the configuration of a new process. Most processes have other variables than the table, as after a mistake
    /// at a deployment or at the command line: only the policy that the first process has stored may count.
    fn config_of_new_process(&self) -> DeploymentConfig {
        let mut config = self.environment.config.clone();
        if self.last_actor.get() > 0 {
            let mut rng = self.variables_rng.borrow_mut();
            config.table.configured_policy = random_policy_variables(&mut rng);
        }
        config
    }

    /// Starts an actor in `role`, and returns it with its process. `date` is the due date up to which a batch run
    /// charges or reminds; `None` for other roles. If `is_prompt`, no call of the actor waits long for its turn.
    pub fn start_actor(
        &self,
        role: ActorRole,
        date: Option<NaiveDate>,
        is_prompt: bool,
    ) -> Result<(ActorId, Rc<SimulatedProcess>), TableError> {
        let is_api = matches!(role, ActorRole::Request { .. } | ActorRole::Operator);
        let process = self.idle_or_new_process(is_api)?;
        let actor = self.last_actor.get() + 1;
        self.last_actor.set(actor);
        process.process_schedule.set_calling_actor(actor, is_prompt);
        let (skew, today) = (process.clock.skew, self.day_of(process.clock.now()));
        self.oracle().record_actor_start(actor, self.clock.now(), SimulatedActor { role, skew, today, date });
        Ok((actor, process))
    }

    /// Ends `actor`, whose process becomes idle.
    pub fn end_actor(&self, actor: ActorId, process: Rc<SimulatedProcess>) {
        process.process_schedule.set_calling_actor(0, false);
        self.oracle().record_actor_end(actor);
        let (idle, one_in) = match process.has_api() {
            true => (&self.idle_api, DISCARD_API_ONE_IN),
            false => (&self.idle, DISCARD_ONE_IN),
        };
        if !self.rng.borrow_mut().random_ratio(1, one_in) {
            idle.borrow_mut().push(process);
        }
    }
}

/// Returns variables of a random policy. Each second variable is not set.
fn random_policy_variables(rng: &mut ChaCha8Rng) -> ConfiguredPolicy {
    let mut variables: Vec<(&str, &str)> = Vec::new();
    for setting in Policy::setting_names() {
        let texts: &[&str] = match setting {
            PolicySetting::TimeZone => &["UTC", "America/New_York", "Pacific/Kiritimati", "not a zone"],
            PolicySetting::ReminderLeadDays => &["0", "1", "7", "27"],
            PolicySetting::RetryGaps => &["1", "1,2,2,2", "5,5", "3,9,15"],
            PolicySetting::AfterLastRetry => &["unpaid", "cancelled"],
            PolicySetting::CatchUp => &["each", "latest"],
            PolicySetting::Resume => &["charge", "wait"],
            PolicySetting::AfterWonDispute => &["charge", "waive"],
            PolicySetting::ReceiptDays => &["10", "190", "1000"],
            PolicySetting::ActionDays => &["1", "730"],
        };
        if rng.random() {
            variables.extend(texts.choose(rng).map(|text| (variable_of_setting(setting).name, *text)));
        }
    }
    let find = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned());
    ConfiguredPolicy::read(Env(&find))
}

impl Deref for SimulatedWorld {
    type Target = SimulationEnvironment;

    fn deref(&self) -> &SimulationEnvironment {
        &self.environment
    }
}
