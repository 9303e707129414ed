//! The breaker: a gateway that fails again and again is better tried later than for every customer in turn.

use std::sync::atomic::{AtomicU32, Ordering};

use gateways::GatewayError;

/// Failures in a row, and how many are too many.
#[derive(Debug)]
pub struct Breaker {
    in_a_row: AtomicU32,
    max: u32,
}

impl Breaker {
    /// No failure yet; `max` are too many.
    pub fn at_most(max: u32) -> Self {
        Self { in_a_row: AtomicU32::new(0), max }
    }

    /// The gateway has answered: it no longer fails.
    pub fn reset(&self) {
        self.in_a_row.store(0, Ordering::Relaxed);
    }

    /// Counts one more failure. Returns why the run must stop, if it must.
    pub fn count(&self, error: &GatewayError) -> Option<String> {
        match error {
            GatewayError::Unusable { .. } => Some(error.to_string()),
            GatewayError::Unknown { .. } | GatewayError::Throttled { .. } => {
                let in_a_row = self.in_a_row.fetch_add(1, Ordering::Relaxed).saturating_add(1);
                let is_too_many = in_a_row >= self.max;
                is_too_many.then(|| format!("the gateway failed {in_a_row} times in a row, the last time: {error}"))
            }
        }
    }
}
