//! All that one play takes place in, and the processes that are there.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use clock::{Clock as _, SimulatedClock};
use emulator::{Config, Engine};
use gateways::{Ledger, Sandbox};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use store::TableError;

use super::process::Process;
use crate::history::History;
use crate::moody_gateway::MoodyGateway;
use crate::oracle::{Actor, Oracle, Role, Rules};
use crate::played_gateway::{GatewayKind, PlayedGateway};
use crate::random_faults::{Odds, RandomFaults};
use crate::schedule::{ActorId, Schedule, now_or_panic};
use crate::stripe_gateway::StripeGateway;

/// Clocks differ from the true one by at most this.
const MAX_SKEW_SECONDS: i64 = 180;
/// Out of so many times one process is not used again.
const ENDS_ONE_IN: u32 = 12;
const API_ENDS_ONE_IN: u32 = 100;
/// Ten of so many processes have a ceiling, of up to ten charges.
const CEILING_ONE_IN: u64 = 100;
/// Of a thousand charges so many meet a gateway that is not at its best, for each percent of faults.
const ODDITIES_PER_PERCENT: f64 = 15.0;

/// What a play takes place in.
pub struct World {
    pub schedule: Schedule,
    pub clock: Arc<SimulatedClock>,
    pub engine: Engine,
    pub config: Config,
    pub faults: Arc<RandomFaults>,
    pub history: Arc<History>,
    pub gateway: Arc<dyn PlayedGateway>,
    /// The same, if it is Stripe.
    pub stripe: Option<Arc<StripeGateway>>,
    pub oracle: Arc<Mutex<Oracle>>,
    pub rng: RefCell<ChaCha8Rng>,
    idle: RefCell<Vec<Rc<Process>>>,
    idle_api: RefCell<Vec<Rc<Process>>>,
    last_actor: Cell<ActorId>,
}

impl World {
    /// An empty world at `now`. The seed of `odds` decides everything.
    pub fn new(config: Config, now: DateTime<Utc>, odds: Odds, gateway: GatewayKind) -> Self {
        // Each of those who decide something has random numbers of its own.
        let mut seeds = ChaCha8Rng::seed_from_u64(odds.seed);
        let (engine, clock) = (Engine::memory(), Arc::new(SimulatedClock::new(now, seeds.random())));
        let schedule = Schedule::new(seeds.random(), clock.clone());
        let oracle = Arc::new(Mutex::new(Oracle::new(Rules::of(&config.billing.policy), config.billing.zone)));
        let history = History::new(engine.clone(), clock.clone(), schedule.clone(), oracle.clone(), seeds.random());
        let (its_clock, its_schedule, its_oracle) = (clock.clone(), schedule.clone(), oracle.clone());
        let moods = (seeds.random(), oddities(odds.faults));
        let (gateway, stripe): (Arc<dyn PlayedGateway>, _) = match gateway {
            GatewayKind::Sandbox => {
                let sandbox = Arc::new(Sandbox::new(Ledger::memory(), clock.clone()));
                (Arc::new(MoodyGateway::new(sandbox, its_clock, its_schedule, its_oracle, moods)), None)
            }
            GatewayKind::Stripe => {
                let stripe = Arc::new(StripeGateway::new(its_clock, its_schedule, its_oracle, moods));
                (stripe.clone(), Some(stripe))
            }
        };
        let faults = Arc::new(RandomFaults::new(Odds { seed: seeds.random(), ..odds }));
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

    /// From now on nothing goes wrong, and nobody goes on who has begun before.
    pub fn calm_down(&self) {
        self.schedule.calm_down();
        self.history.be_calm(true);
        self.gateway.calm_down();
        self.faults.take_gateway_away(false);
        self.idle.borrow_mut().clear();
    }

    /// The oracle.
    pub fn oracle(&self) -> MutexGuard<'_, Oracle> {
        self.oracle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The day at `instant`, in the billing time zone.
    pub fn day_of(&self, instant: DateTime<Utc>) -> NaiveDate {
        instant.with_timezone(&self.config.billing.zone).date_naive()
    }

    /// A process that nobody uses, of a batch or of the API.
    pub fn process(&self, is_api: bool) -> Result<Rc<Process>, TableError> {
        let idle = if is_api { &self.idle_api } else { &self.idle };
        if let Some(idle) = idle.borrow_mut().pop() {
            return Ok(idle);
        }
        let (skew, has_retries, ceiling) = {
            let mut rng = self.rng.borrow_mut();
            let skew = rng.random_range(-MAX_SKEW_SECONDS..=MAX_SKEW_SECONDS);
            (skew, rng.random(), rng.random_range(0..CEILING_ONE_IN))
        };
        let ceiling = (!is_api && !self.schedule.is_calm() && ceiling < 10).then_some(ceiling);
        let process = now_or_panic(Process::start(self, TimeDelta::seconds(skew), has_retries, ceiling))?;
        if is_api {
            now_or_panic(process.serve())?;
        }
        Ok(Rc::new(process))
    }

    /// A process to act in `role`, as the actor that is answered, for what is due on `date`.
    pub fn begin(
        &self,
        role: Role,
        date: Option<NaiveDate>,
        is_prompt: bool,
    ) -> Result<(ActorId, Rc<Process>), TableError> {
        let is_api = matches!(role, Role::Request { .. } | Role::Operator);
        let process = self.process(is_api)?;
        let actor = self.last_actor.get() + 1;
        self.last_actor.set(actor);
        process.turns.act_for(actor, is_prompt);
        let (skew, today) = (process.clock.skew, self.day_of(process.clock.now()));
        let ceiling = process.ceiling().zip(date);
        self.oracle().begins(actor, self.clock.now(), Actor { role, skew, today, ceiling });
        Ok((actor, process))
    }

    /// `process` has done what it was there for.
    pub fn end(&self, actor: ActorId, process: Rc<Process>) {
        process.turns.act_for(0, false);
        self.oracle().ends(actor);
        let (idle, one_in) = match process.has_api() {
            true => (&self.idle_api, API_ENDS_ONE_IN),
            false => (&self.idle, ENDS_ONE_IN),
        };
        if !self.rng.borrow_mut().random_ratio(1, one_in) {
            idle.borrow_mut().push(process);
        }
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of a thousand")]
fn oddities(faults: f64) -> u32 {
    (faults * 100.0 * ODDITIES_PER_PERCENT).round().min(300.0) as u32
}
