//! Random faults, reproducible by their seed: requests and answers that are lost, refusals, crashes, and a gateway that is
//! away.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use emulator::{Call, Fault, Faults, Operation};
use rand::Rng as _;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

/// How many faults there are, and which.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Odds {
    /// The part of all requests that have a fault.
    pub faults: f64,
    /// Equal seeds make equal faults, outages and customers.
    pub seed: u64,
}

/// Random faults, and how many there were so far.
#[derive(Debug)]
pub struct RandomFaults {
    odds: f64,
    rng: Mutex<ChaCha8Rng>,
    is_gateway_away: AtomicBool,
    injected: AtomicU64,
}

impl RandomFaults {
    /// Faults as `odds` have it, with the gateway there.
    pub fn new(odds: Odds) -> Self {
        Self {
            odds: odds.faults,
            rng: Mutex::new(ChaCha8Rng::seed_from_u64(odds.seed)),
            is_gateway_away: AtomicBool::new(false),
            injected: AtomicU64::new(0),
        }
    }

    /// The random numbers, for whatever else the seed decides.
    pub fn rng(&self) -> MutexGuard<'_, ChaCha8Rng> {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the gateway is away from now on: no request reaches it.
    pub fn take_gateway_away(&self, is_away: bool) {
        self.is_gateway_away.store(is_away, Ordering::Relaxed);
    }

    /// Faults so far, apart from requests to a gateway that was away.
    pub fn injected(&self) -> u64 {
        self.injected.load(Ordering::Relaxed)
    }
}

impl Faults for RandomFaults {
    fn next(&self, call: &Call<'_>) -> Option<Fault> {
        let is_gateways = matches!(call.operation, Operation::Charge | Operation::PaymentsOf | Operation::Http(_));
        if is_gateways && self.is_gateway_away.load(Ordering::Relaxed) {
            return Some(Fault::LostBefore);
        }
        let mut rng = self.rng();
        if !rng.random_bool(self.odds) {
            return None;
        }
        self.injected.fetch_add(1, Ordering::Relaxed);
        Some(match rng.random_range(0..10) {
            0..3 => Fault::LostBefore,
            3..6 => Fault::LostAfter,
            6..8 => match call.operation {
                Operation::DynamoDb("TransactWriteItems") => Fault::Cancelled("TransactionConflict"),
                Operation::DynamoDb(_) => Fault::Refused("ThrottlingException"),
                // The gateway refuses us, and the run stops.
                Operation::Charge | Operation::PaymentsOf | Operation::Http(_) if rng.random_ratio(1, 10) => {
                    Fault::Refused("401")
                }
                _ => Fault::LostBefore,
            },
            8 => Fault::CrashBefore,
            _ => Fault::CrashAfter,
        })
    }
}
