//! The environment of one simulation with faults.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::Tz;
use clock::SimulatedClock;
use deployment::DeploymentConfig;
use emulator::Engine;
use rand::Rng as _;
use rand_chacha::ChaCha8Rng;
use sandbox::{Ledger, Sandbox};

use crate::history::TableHistory;
use crate::oracle::{BillingRules, Oracle};
use crate::random_faults::{FaultConfig, RandomFaults};
use crate::schedule::CallSchedule;
use crate::simulated_gateway::{GatewayKind, SimulatedGateway};
use crate::stripe_gateway::StripeGateway;
use crate::unreliable_gateway::UnreliableGateway;

/// For each percent of the configured fault rate, on average this number of 1,000 requests has a fault of the gateway
/// itself. At the sandbox gateway, only charge requests have such faults.
const GATEWAY_FAULTS_PER_PERCENT: f64 = 15.0;

/// The environment of one simulation with faults, which all its processes share.
pub struct SimulationEnvironment {
    pub schedule: CallSchedule,
    pub clock: Arc<SimulatedClock>,
    pub engine: Engine,
    pub config: DeploymentConfig,
    pub faults: Arc<RandomFaults>,
    pub history: Arc<TableHistory>,
    pub gateway: Arc<dyn SimulatedGateway>,
    /// The same gateway as in `gateway` if that gateway is Stripe, otherwise `None`.
    pub stripe: Option<Arc<StripeGateway>>,
    pub oracle: Arc<Mutex<Oracle>>,
}

impl SimulationEnvironment {
    /// Creates an environment with an empty table, whose simulated clock begins at `now`. `seeds` gives each component
    /// the seed of its random number generator.
    pub fn new(
        config: DeploymentConfig,
        now: DateTime<Utc>,
        fault_config: FaultConfig,
        gateway: GatewayKind,
        seeds: &mut ChaCha8Rng,
    ) -> Self {
        let (engine, clock) = (Engine::in_memory(), Arc::new(SimulatedClock::new(now, seeds.random())));
        let schedule = CallSchedule::new(seeds.random(), clock.clone());
        let policy = &config.table.configured_policy.policy;
        let oracle = Arc::new(Mutex::new(Oracle::new(BillingRules::from_policy(policy), policy.zone)));
        let history =
            TableHistory::new(engine.clone(), clock.clone(), schedule.clone(), oracle.clone(), seeds.random());
        let gateway_clock = clock.clone();
        let gateway_schedule = schedule.clone();
        let gateway_oracle = oracle.clone();
        let gateway_seed = seeds.random();
        let faults_per_thousand = gateway_faults_per_thousand(fault_config.rate);
        let (gateway, stripe): (Arc<dyn SimulatedGateway>, _) = match gateway {
            GatewayKind::Sandbox => {
                let sandbox = Arc::new(Sandbox::new(Ledger::in_memory(), clock.clone()));
                (
                    Arc::new(UnreliableGateway::new(
                        sandbox,
                        gateway_clock,
                        gateway_schedule,
                        gateway_oracle,
                        gateway_seed,
                        faults_per_thousand,
                    )),
                    None,
                )
            }
            GatewayKind::Stripe => {
                let stripe = Arc::new(StripeGateway::new(
                    gateway_clock,
                    gateway_schedule,
                    gateway_oracle,
                    gateway_seed,
                    faults_per_thousand,
                ));
                (stripe.clone(), Some(stripe))
            }
        };
        let faults = Arc::new(RandomFaults::new(FaultConfig { seed: seeds.random(), ..fault_config }));
        Self { schedule, clock, engine, config, faults, history: Arc::new(history), gateway, stripe, oracle }
    }

    pub fn oracle(&self) -> MutexGuard<'_, Oracle> {
        self.oracle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the day at `instant` in the billing time zone.
    pub fn day_of(&self, instant: DateTime<Utc>) -> NaiveDate {
        self.config.table.configured_policy.policy.date_at(instant)
    }

    /// Returns the billing time zone.
    pub fn zone(&self) -> Tz {
        self.config.table.configured_policy.policy.zone
    }
}

/// Converts the configured fault rate (from 0 to 1) to the average number of faulty requests per 1,000 requests at the
/// gateway; at most 300.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 300")]
fn gateway_faults_per_thousand(faults: f64) -> u32 {
    (faults * 100.0 * GATEWAY_FAULTS_PER_PERCENT).round().min(300.0) as u32
}
