//! The state that all charges of one run share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use gateways::ChargeResponse;
use store::Settings;
use ulid::Ulid;

use crate::breaker::CircuitBreaker;
use crate::{ChargeRequestMetrics, UncountedCharges};

/// The state of one run, or of one other request, that its charges share while they are made concurrently. A new run
/// charges nothing until it has read the settings.
#[derive(Debug, Default)]
pub struct ChargeRun {
    /// True if charging was switched on when the settings were last read.
    is_charging_enabled: AtomicBool,
    /// The id of the table, from the settings. It never changes.
    table_id: OnceLock<Ulid>,
    /// The charges that are not yet in the stored charge total of the day.
    pub uncounted_charges: UncountedCharges,
    /// Stops the run after too many consecutive failures of the gateway.
    pub breaker: CircuitBreaker,
    /// The charge requests since the last call of [`ChargeRun::take_requests`].
    requests: Mutex<ChargeRequestMetrics>,
}

/// The run, the date and the time limit of a charge.
#[derive(Clone, Copy, Debug)]
pub struct ChargeContext<'a> {
    pub run: &'a ChargeRun,
    /// The current date in the billing time zone.
    pub today: NaiveDate,
    /// The time at which the run must end.
    pub deadline: DateTime<Utc>,
}

impl ChargeRun {
    /// Stores the settings that were just read: the id of the table, the switch for charging, and the number of failures
    /// after which the run stops.
    pub fn apply_settings(&self, settings: &Settings) {
        self.table_id.get_or_init(|| settings.table_id);
        self.is_charging_enabled.store(settings.charging, Ordering::Relaxed);
        self.breaker.stop_at(settings.payment_limits.gateway_failures);
    }

    /// Switches charging off for this run, because the table has no settings or was restored from a backup.
    pub fn disable_charging(&self) {
        self.is_charging_enabled.store(false, Ordering::Relaxed);
    }

    /// Returns whether charging was switched on when the settings were last read.
    pub fn is_charging_enabled(&self) -> bool {
        self.is_charging_enabled.load(Ordering::Relaxed)
    }

    /// Returns the id of the table in which payments may be claimed; `None` if charging is switched off, or if the
    /// settings were not read yet.
    pub fn table_to_charge(&self) -> Option<Ulid> {
        self.table_id.get().copied().filter(|_| self.is_charging_enabled())
    }

    /// Returns the charge requests since the last call.
    pub fn take_requests(&self) -> ChargeRequestMetrics {
        std::mem::take(&mut *self.requests())
    }

    /// Adds a charge request that returned `response` after `duration`.
    pub(crate) fn add_request(&self, response: &ChargeResponse, duration: TimeDelta) {
        self.requests().add(response, duration);
    }

    fn requests(&self) -> MutexGuard<'_, ChargeRequestMetrics> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
