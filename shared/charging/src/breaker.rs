//! The circuit breaker: stops a run after too many consecutive failed requests to the gateway, so that the run does not
//! try to charge all remaining customers.

use std::sync::atomic::{AtomicU32, Ordering};

use gateways::GatewayError;

/// Counts the consecutive requests of a run to which the gateway returned no usable response.
#[derive(Debug, Default)]
pub struct CircuitBreaker {
    consecutive_failures: AtomicU32,
    /// The number of consecutive failures at which the run stops.
    max: AtomicU32,
}

impl CircuitBreaker {
    /// Sets the limit: the run stops at the `max`th consecutive failed request. Failed requests before this call count
    /// too.
    pub fn stop_at(&self, max: u32) {
        self.max.store(max, Ordering::Relaxed);
    }

    /// Resets the count of consecutive failed requests to zero, after the gateway has responded.
    pub fn reset(&self) {
        self.consecutive_failures.store(0, Ordering::Relaxed);
    }

    /// Counts the failed request that ended with `error`. Returns the reason why the run must stop; `None` if it may
    /// continue. After [`GatewayError::Unusable`], the run must always stop.
    pub fn count_failure(&self, error: &GatewayError) -> Option<String> {
        match error {
            GatewayError::Unusable { .. } => Some(error.to_string()),
            GatewayError::Unknown { .. } | GatewayError::Unreadable { .. } | GatewayError::Throttled { .. } => {
                let consecutive_failures = self.consecutive_failures.fetch_add(1, Ordering::Relaxed).saturating_add(1);
                let is_too_many = consecutive_failures >= self.max.load(Ordering::Relaxed);
                is_too_many.then(|| {
                    format!("the gateway failed {consecutive_failures} times in a row, the last error: {error}")
                })
            }
        }
    }
}
