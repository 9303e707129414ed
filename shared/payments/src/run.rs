//! The state of one run of the payment batch.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use billing::{Money, SubscriptionId};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use gateways::ChargeResponse;
use settling::UncountedCharges;
use store::Settings;
use sweep::RunTotals;

use super::breaker::CircuitBreaker;
use super::charge_request_metrics::ChargeRequestMetrics;

/// The state of one run, which is shared by all rows that are processed concurrently. A new run charges nothing until
/// it has read the settings.
#[derive(Debug, Default)]
pub struct PaymentRun {
    /// True if charging was switched on in the settings when the last list page was read.
    is_charging_enabled: AtomicBool,
    /// The number of days for which the bank may process a debit, from the settings that were read together with the
    /// most recent list page of due rows.
    max_processing_days: AtomicU32,
    /// The charges of the run that are not yet in the stored charge total of the day.
    pub(super) uncounted_charges: UncountedCharges,
    /// Stops the run after too many consecutive failures of the gateway.
    pub(super) breaker: CircuitBreaker,
    state: Mutex<State>,
}

/// The part of a run's state that rows change under the lock.
#[derive(Debug, Default)]
struct State {
    /// The totals of the payments since the last call of [`PaymentRun::take_totals`].
    totals: RunTotals,
    /// The charge requests since the last call of [`PaymentRun::take_totals`].
    charge_metrics: ChargeRequestMetrics,
    /// The subscriptions whose rows the first lane (due payments) has counted, and whose attempts it has left open. The
    /// second lane (open attempts) skips these subscriptions.
    left_open: HashSet<SubscriptionId>,
}

/// The run, the date and the time limit with which one row is processed.
#[derive(Clone, Copy)]
pub(super) struct RowContext<'a> {
    pub run: &'a PaymentRun,
    /// The current date in the billing time zone.
    pub today: NaiveDate,
    /// The time at which the run must end.
    pub deadline: DateTime<Utc>,
}

impl PaymentRun {
    /// Stores the settings that were just read: the switch for charging, and the limits of the batch.
    pub(super) fn apply_settings(&self, settings: &Settings) {
        let limits = &settings.payment_limits;
        self.is_charging_enabled.store(settings.charging, Ordering::Relaxed);
        self.max_processing_days.store(limits.max_processing_days, Ordering::Relaxed);
        self.breaker.stop_at(limits.gateway_failures);
    }

    /// Switches charging off for this run, because the table has no settings.
    pub(super) fn disable_charging(&self) {
        self.is_charging_enabled.store(false, Ordering::Relaxed);
    }

    /// Returns how long the bank may process a debit before the run reports the row of the payment as failed.
    pub(super) fn max_processing(&self) -> TimeDelta {
        TimeDelta::days(self.max_processing_days.load(Ordering::Relaxed).into())
    }

    /// Returns whether charging was switched on when the settings were last read.
    pub(super) fn is_charging_enabled(&self) -> bool {
        self.is_charging_enabled.load(Ordering::Relaxed)
    }

    /// Adds a successful payment of `amount` to the totals of the run. `was_reminded` is false if no reminder of the
    /// payment was sent before the charge.
    pub(super) fn add_paid(&self, amount: Money, was_reminded: bool) {
        let totals = &mut self.state().totals;
        totals.sums.paid.add(amount);
        totals.unreminded += u64::from(!was_reminded);
    }

    /// Adds a declined payment of `amount` to the totals of the run.
    pub(super) fn add_declined(&self, amount: Money) {
        self.state().totals.sums.declined.add(amount);
    }

    /// Adds an attempt in doubt that was first claimed at `claimed_at`. Its outcome is unknown because the gateway
    /// returned no usable response, another worker has leased the attempt, or an error ended its processing.
    pub(super) fn add_in_doubt(&self, claimed_at: DateTime<Utc>) {
        self.state().totals.add_in_doubt(claimed_at);
    }

    /// Adds a charge request that returned `response` after `duration`.
    pub(super) fn add_charge(&self, response: &ChargeResponse, duration: TimeDelta) {
        self.state().charge_metrics.add(response, duration);
    }

    /// Returns the totals since the last call, and resets them to zero. Logs the charge requests since the last call.
    pub(super) fn take_totals(&self) -> RunTotals {
        let mut state = self.state();
        std::mem::take(&mut state.charge_metrics).log();
        std::mem::take(&mut state.totals)
    }

    /// Records that this run has counted the row of `subscription` while it processed the due payments, and that the
    /// attempt may still be open.
    pub(super) fn mark_left_open(&self, subscription: SubscriptionId) {
        self.state().left_open.insert(subscription);
    }

    /// Returns whether this run has counted the row of `subscription` while it processed the due payments, and the attempt
    /// may still be open. When the run processes the open attempts, it skips the subscription, so that its row is not
    /// counted twice.
    pub(super) fn was_left_open(&self, subscription: SubscriptionId) -> bool {
        self.state().left_open.contains(&subscription)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
