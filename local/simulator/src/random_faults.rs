//! Random faults, reproducible by their seed: lost requests and responses, refused requests, crashes, and outages of
//! the gateway.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use emulator::{ExternalCall, ExternalOperation, Fault, FaultDecider};
use rand::Rng as _;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

/// The rate and the seed of random faults.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FaultConfig {
    /// The fraction of all requests that have a fault, from 0 to 1.
    pub rate: f64,
    /// The seed of all random choices. Two simulations with the same seed have the same faults, outages and customer
    /// actions.
    pub seed: u64,
}

/// Decides at random which calls have a fault, and counts the faults.
#[derive(Debug)]
pub struct RandomFaults {
    rate: f64,
    rng: Mutex<ChaCha8Rng>,
    is_gateway_down: AtomicBool,
    fault_count: AtomicU64,
}

impl RandomFaults {
    /// Creates random faults as configured, without a gateway outage.
    pub fn new(config: FaultConfig) -> Self {
        Self {
            rate: config.rate,
            rng: Mutex::new(ChaCha8Rng::seed_from_u64(config.seed)),
            is_gateway_down: AtomicBool::new(false),
            fault_count: AtomicU64::new(0),
        }
    }

    /// Locks the random number generator and returns it.
    pub fn rng(&self) -> MutexGuard<'_, ChaCha8Rng> {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins or ends a gateway outage. During an outage no request reaches the gateway.
    pub fn set_gateway_outage(&self, is_down: bool) {
        self.is_gateway_down.store(is_down, Ordering::Relaxed);
    }

    /// Returns the number of faults so far. Requests that were lost in an outage of the gateway are not included.
    pub fn fault_count(&self) -> u64 {
        self.fault_count.load(Ordering::Relaxed)
    }
}

impl FaultDecider for RandomFaults {
    fn fault_of_call(&self, call: &ExternalCall<'_>) -> Option<Fault> {
        let calls_gateway = matches!(
            call.operation,
            ExternalOperation::Charge | ExternalOperation::PaymentsOf | ExternalOperation::Http(_)
        );
        if calls_gateway && self.is_gateway_down.load(Ordering::Relaxed) {
            return Some(Fault::LostBefore);
        }
        let mut rng = self.rng();
        if !rng.random_bool(self.rate) {
            return None;
        }
        self.fault_count.fetch_add(1, Ordering::Relaxed);
        Some(match rng.random_range(0..10) {
            0..3 => Fault::LostBefore,
            3..6 => Fault::LostAfter,
            6..8 => match call.operation {
                ExternalOperation::DynamoDb("TransactWriteItems") => Fault::Cancelled("TransactionConflict"),
                ExternalOperation::DynamoDb(_) => Fault::Refused("ThrottlingException"),
                // Status 401: the gateway rejects the API key. This error stops the whole run.
                ExternalOperation::Charge | ExternalOperation::PaymentsOf | ExternalOperation::Http(_)
                    if rng.random_ratio(1, 10) =>
                {
                    Fault::Refused("401")
                }
                _ => Fault::LostBefore,
            },
            8 => Fault::CrashBefore,
            _ => Fault::CrashAfter,
        })
    }
}
