//! The environment of one simulation with faults, and its pool of simulated processes.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use clock::{Clock as _, SimulatedClock};
use deployment::Config;
use emulator::Engine;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use sandbox::{Ledger, Sandbox};
use store::TableError;

use super::process::Process;
use crate::history::History;
use crate::oracle::{Actor, Oracle, Role, Rules};
use crate::random_faults::{FaultConfig, RandomFaults};
use crate::schedule::{ActorId, Schedule, now_or_panic};
use crate::simulated_gateway::{GatewayKind, SimulatedGateway};
use crate::stripe_gateway::StripeGateway;
use crate::unreliable_gateway::UnreliableGateway;

/// The maximum difference between the clock of a process and the true time.
const MAX_SKEW_SECONDS: i64 = 180;
/// A process without an API that becomes idle is discarded with a probability of 1 divided by this number.
const DISCARD_ONE_IN: u32 = 12;
/// A process with an API that becomes idle is discarded with a probability of 1 divided by this number.
const DISCARD_API_ONE_IN: u32 = 100;
/// For each percent of the configured fault rate, on average this number of 1,000 requests has a fault of the gateway
/// itself. At the sandbox gateway, only charge requests have such faults.
const GATEWAY_FAULTS_PER_PERCENT: f64 = 15.0;

/// The environment of one simulation with faults, which all its processes share.
pub struct World {
    pub schedule: Schedule,
    pub clock: Arc<SimulatedClock>,
    pub engine: Engine,
    pub config: Config,
    pub faults: Arc<RandomFaults>,
    pub history: Arc<History>,
    pub gateway: Arc<dyn SimulatedGateway>,
    /// The same gateway as in `gateway` if that gateway is Stripe, otherwise `None`.
    pub stripe: Option<Arc<StripeGateway>>,
    pub oracle: Arc<Mutex<Oracle>>,
    /// The random numbers for the planned tasks and for the properties of new processes.
    pub rng: RefCell<ChaCha8Rng>,
    /// The idle processes without an API.
    idle: RefCell<Vec<Rc<Process>>>,
    /// The idle processes with an API.
    idle_api: RefCell<Vec<Rc<Process>>>,
    /// The number of the actor that was started last.
    last_actor: Cell<ActorId>,
}

impl World {
    /// Creates an environment with an empty table, whose simulated clock begins at `now`. The seed of `fault_config`
    /// decides every random choice.
    pub fn new(config: Config, now: DateTime<Utc>, fault_config: FaultConfig, gateway: GatewayKind) -> Self {
        // Each component has its own random number generator, so the number of random choices of one component does not
        // change the choices of another component.
        let mut seeds = ChaCha8Rng::seed_from_u64(fault_config.seed);
        let (engine, clock) = (Engine::memory(), Arc::new(SimulatedClock::new(now, seeds.random())));
        let schedule = Schedule::new(seeds.random(), clock.clone());
        let oracle = Arc::new(Mutex::new(Oracle::new(Rules::of(&config.billing.policy), config.billing.zone)));
        let history = History::new(engine.clone(), clock.clone(), schedule.clone(), oracle.clone(), seeds.random());
        let (gateway_clock, gateway_schedule, gateway_oracle) = (clock.clone(), schedule.clone(), oracle.clone());
        let gateway_fault_config = (seeds.random(), gateway_faults_per_thousand(fault_config.rate));
        let (gateway, stripe): (Arc<dyn SimulatedGateway>, _) = match gateway {
            GatewayKind::Sandbox => {
                let sandbox = Arc::new(Sandbox::new(Ledger::memory(), clock.clone()));
                (
                    Arc::new(UnreliableGateway::new(
                        sandbox,
                        gateway_clock,
                        gateway_schedule,
                        gateway_oracle,
                        gateway_fault_config,
                    )),
                    None,
                )
            }
            GatewayKind::Stripe => {
                let stripe =
                    Arc::new(StripeGateway::new(gateway_clock, gateway_schedule, gateway_oracle, gateway_fault_config));
                (stripe.clone(), Some(stripe))
            }
        };
        let faults = Arc::new(RandomFaults::new(FaultConfig { seed: seeds.random(), ..fault_config }));
        Self {
            schedule,
            clock,
            engine,
            config,
            faults,
            history: Arc::new(history),
            gateway,
            stripe,
            oracle,
            rng: RefCell::new(ChaCha8Rng::seed_from_u64(seeds.random())),
            idle: RefCell::default(),
            idle_api: RefCell::default(),
            last_actor: Cell::new(0),
        }
    }

    /// Stops all faults, and discards the idle processes without an API, so the runs after this call start in new
    /// processes.
    pub fn stop_faults(&self) {
        self.schedule.stop_faults();
        self.history.set_index_consistent(true);
        self.gateway.stop_faults();
        self.faults.set_gateway_outage(false);
        self.idle.borrow_mut().clear();
    }

    pub fn oracle(&self) -> MutexGuard<'_, Oracle> {
        self.oracle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the day at `instant` in the billing time zone.
    pub fn day_of(&self, instant: DateTime<Utc>) -> NaiveDate {
        self.config.billing.date_at(instant)
    }

    /// Returns an idle process, or starts one: a process of the API if `is_api`, otherwise a process for all other
    /// tasks.
    pub fn idle_or_new_process(&self, is_api: bool) -> Result<Rc<Process>, TableError> {
        let idle = if is_api { &self.idle_api } else { &self.idle };
        if let Some(idle) = idle.borrow_mut().pop() {
            return Ok(idle);
        }
        let (skew, has_retries) = {
            let mut rng = self.rng.borrow_mut();
            (rng.random_range(-MAX_SKEW_SECONDS..=MAX_SKEW_SECONDS), rng.random())
        };
        let process = now_or_panic(Process::start(self, TimeDelta::seconds(skew), has_retries))?;
        if is_api {
            now_or_panic(process.create_api())?;
        }
        Ok(Rc::new(process))
    }

    /// Starts an actor in `role`, and returns it with its process. `date` is the due date up to which a batch run
    /// charges or reminds; `None` for other roles. If `is_prompt`, no call of the actor waits long for its turn.
    pub fn start_actor(
        &self,
        role: Role,
        date: Option<NaiveDate>,
        is_prompt: bool,
    ) -> Result<(ActorId, Rc<Process>), TableError> {
        let is_api = matches!(role, Role::Request { .. } | Role::Operator);
        let process = self.idle_or_new_process(is_api)?;
        let actor = self.last_actor.get() + 1;
        self.last_actor.set(actor);
        process.process_schedule.set_actor(actor, is_prompt);
        let (skew, today) = (process.clock.skew, self.day_of(process.clock.now()));
        self.oracle().record_actor_start(actor, self.clock.now(), Actor { role, skew, today, date });
        Ok((actor, process))
    }

    /// Ends `actor`, whose process becomes idle.
    pub fn end_actor(&self, actor: ActorId, process: Rc<Process>) {
        process.process_schedule.set_actor(0, false);
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

/// Converts the configured fault rate (from 0 to 1) to the average number of faulty requests per 1,000 requests at the
/// gateway; at most 300.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 300")]
fn gateway_faults_per_thousand(faults: f64) -> u32 {
    (faults * 100.0 * GATEWAY_FAULTS_PER_PERCENT).round().min(300.0) as u32
}
