//! Executes simulations with faults for many seeds. As many simulations run at the same time as the machine has cores.

use deployment::DeploymentConfig;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use chrono::NaiveDate;

use super::{FaultSimulationResult, simulate_with_repairs};
use crate::SimulationError;
use crate::history::SimulatedRecords;
use crate::population::NewSubscriber;
use crate::simulated_gateway::GatewayKind;

/// The settings of a simulation with faults, apart from the seed.
#[derive(Clone, Debug)]
pub struct FaultSimulationSettings {
    pub config: DeploymentConfig,
    pub new_subscribers: Vec<NewSubscriber>,
    pub from: NaiveDate,
    pub months: u32,
    /// The fraction of all requests that have a fault, from 0 to 1.
    pub fault_rate: f64,
    pub gateway: GatewayKind,
}

/// Simulates `settings` with up to `count` seeds, starting with the seed `first_seed`, as long as `should_continue`
/// returns true. Calls `on_result` after each simulation. The field `records` of each returned result is empty. After a
/// simulation that failed or found a violation, no further simulation is started.
///
/// # Errors
/// [`SimulationError`] if a simulation could not be completed.
pub fn simulate_seeds(
    settings: &FaultSimulationSettings,
    first_seed: u64,
    count: u64,
    should_continue: impl Fn() -> bool + Sync,
    on_result: impl Fn(&FaultSimulationResult) + Sync,
) -> Result<Vec<FaultSimulationResult>, SimulationError> {
    let (next, has_violation) = (AtomicU64::new(0), AtomicBool::new(false));
    let all = Mutex::new(Vec::new());
    let simulate_next_seeds = || {
        while !has_violation.load(Ordering::Relaxed) && should_continue() {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return;
            }
            let result = simulate_with_repairs(settings.clone(), first_seed.wrapping_add(number), |_| {});
            let result = result.inspect(&on_result);
            let result = result.map(|result| FaultSimulationResult { records: SimulatedRecords::default(), ..result });
            if result.as_ref().map_or(true, |result| !result.violations.is_empty()) {
                has_violation.store(true, Ordering::Relaxed);
            }
            all.lock().unwrap_or_else(PoisonError::into_inner).push(result);
        }
    };
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    thread::scope(|scope| {
        for _ in 0..cores.min(usize::try_from(count).unwrap_or(cores)) {
            scope.spawn(simulate_next_seeds);
        }
    });
    let mut all =
        all.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().collect::<Result<Vec<_>, _>>()?;
    all.sort_by_key(|result| result.seed);
    Ok(all)
}
