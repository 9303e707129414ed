//! Time and randomness: what code must not reach for by itself. Handed in from the edge.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use ulid::Ulid;

/// A source of instants and identifiers.
pub trait Clock: Send + Sync + fmt::Debug {
    /// The present instant, in whole milliseconds as the table keeps it.
    fn now(&self) -> DateTime<Utc>;
    /// A new identifier, never given before.
    fn ulid(&self) -> Ulid;
    /// Bytes that nobody can guess, for a secret.
    fn secret(&self) -> [u8; 32];
    /// Whether it is the machine's own, which may be wrong; not one that is set to play other days.
    fn is_machines_own(&self) -> bool {
        false
    }
}

/// A clock that can also wait.
#[async_trait]
pub trait Timer: Clock {
    /// Waits until `duration` has passed on this clock.
    async fn sleep(&self, duration: Duration);
}

/// The machine's clock and randomness.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> DateTime<Utc> {
        Utc::now().trunc_subsecs(3)
    }

    fn ulid(&self) -> Ulid {
        Ulid::generate()
    }

    fn secret(&self) -> [u8; 32] {
        rand::random()
    }

    fn is_machines_own(&self) -> bool {
        true
    }
}

#[async_trait]
impl Timer for SystemClock {
    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// A clock that stands still until it is set, and identifiers in an order fixed by a seed.
#[derive(Debug)]
pub struct SimulatedClock {
    now: Mutex<DateTime<Utc>>,
    seed: u64,
    given: AtomicU64,
}

impl SimulatedClock {
    /// A clock standing at `now`; equal seeds give equal identifiers.
    pub fn new(now: DateTime<Utc>, seed: u64) -> Self {
        Self { now: Mutex::new(now), seed, given: AtomicU64::new(0) }
    }

    /// Sets the clock.
    pub fn set(&self, now: DateTime<Utc>) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }
}

impl Clock for SimulatedClock {
    fn now(&self) -> DateTime<Utc> {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ulid(&self) -> Ulid {
        let given = self.given.fetch_add(1, Ordering::Relaxed);
        let milliseconds = u64::try_from(self.now().timestamp_millis()).unwrap_or(0);
        Ulid::from_parts(milliseconds, (u128::from(self.seed) << 64) | u128::from(given))
    }

    fn secret(&self) -> [u8; 32] {
        let ulid = self.ulid().to_bytes();
        std::array::from_fn(|place| ulid[place % ulid.len()])
    }
}

/// Sets the clock forward instead of waiting.
#[async_trait]
impl Timer for SimulatedClock {
    async fn sleep(&self, duration: Duration) {
        self.set(self.now() + TimeDelta::from_std(duration).unwrap_or(TimeDelta::MAX));
    }
}
