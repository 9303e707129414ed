//! Sources of time and randomness. The other crates get the current time and random numbers from a [`Clock`]. Each
//! program passes its clock to these crates, so that tests can control the time and the random numbers.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use ulid::Ulid;

/// A source of the current time, of identifiers and of random secrets.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Returns the current time in whole milliseconds, which is the precision of times in the table.
    fn now(&self) -> DateTime<Utc>;
    /// Returns a new unique identifier.
    fn ulid(&self) -> Ulid;
    /// Returns unpredictable random bytes for a new signing secret.
    fn random_secret(&self) -> [u8; 32];
    /// Returns whether this is the clock of the machine. The clock of a machine may be wrong, so a run compares its
    /// time with the time in DynamoDB's responses. The time of a simulated clock is not compared.
    fn is_system_clock(&self) -> bool {
        false
    }
}

/// A clock that can also wait.
#[async_trait]
pub trait Timer: Clock {
    /// Waits until `duration` has passed on this clock.
    async fn sleep(&self, duration: Duration);
}

/// The clock and the random numbers of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> DateTime<Utc> {
        Utc::now().trunc_subsecs(3)
    }

    fn ulid(&self) -> Ulid {
        Ulid::generate()
    }

    fn random_secret(&self) -> [u8; 32] {
        rand::random()
    }

    fn is_system_clock(&self) -> bool {
        true
    }
}

#[async_trait]
impl Timer for SystemClock {
    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// A clock that shows the same time until a test sets it or waits with it. Its identifiers are reproducible.
#[derive(Debug)]
pub struct SimulatedClock {
    now: Mutex<DateTime<Utc>>,
    seed: u64,
    ulid_count: AtomicU64,
}

impl SimulatedClock {
    /// Creates a clock that shows `now`. Clocks with equal seeds and times create equal identifiers.
    pub fn new(now: DateTime<Utc>, seed: u64) -> Self {
        Self { now: Mutex::new(now), seed, ulid_count: AtomicU64::new(0) }
    }

    /// Sets the time of the clock to `now`.
    pub fn set(&self, now: DateTime<Utc>) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }
}

impl Clock for SimulatedClock {
    fn now(&self) -> DateTime<Utc> {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ulid(&self) -> Ulid {
        let number = self.ulid_count.fetch_add(1, Ordering::Relaxed);
        let milliseconds = u64::try_from(self.now().timestamp_millis()).unwrap_or(0);
        Ulid::from_parts(milliseconds, (u128::from(self.seed) << 64) | u128::from(number))
    }

    fn random_secret(&self) -> [u8; 32] {
        let ulid = self.ulid().to_bytes();
        std::array::from_fn(|place| ulid[place % ulid.len()])
    }
}

/// `sleep` moves the clock forward instead of waiting.
#[async_trait]
impl Timer for SimulatedClock {
    async fn sleep(&self, duration: Duration) {
        self.set(self.now() + TimeDelta::from_std(duration).unwrap_or(TimeDelta::MAX));
    }
}
