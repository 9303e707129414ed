//! The state of one run of the payment batch.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use billing::{Money, SubscriptionId};
use chrono::{DateTime, NaiveDate, Utc};
use sweep::Totals;

use super::breaker::Breaker;

/// The state of one run, which the rows that are worked on at the same time share.
#[derive(Debug)]
pub struct PaymentRun {
    /// The kill switch in the settings, as of the last page.
    is_charging: AtomicBool,
    /// Stops the run when the gateway fails again and again.
    pub(super) breaker: Breaker,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The totals since they were last taken.
    totals: Totals,
    /// The subscriptions that the first lane has counted and left open: the second lane passes them by.
    left_open: HashSet<SubscriptionId>,
}

/// The conditions of the work on one row.
#[derive(Clone, Copy)]
pub(super) struct Work<'a> {
    pub run: &'a PaymentRun,
    /// The present day.
    pub today: NaiveDate,
    pub deadline: DateTime<Utc>,
}

impl PaymentRun {
    /// A run that stops after `max_failures` failures of the gateway in a row.
    pub(super) fn new(is_charging: bool, max_failures: u32) -> Self {
        Self {
            is_charging: AtomicBool::new(is_charging),
            breaker: Breaker::at_most(max_failures),
            state: Mutex::default(),
        }
    }

    /// Whether charging is switched on.
    pub(super) fn is_charging(&self) -> bool {
        self.is_charging.load(Ordering::Relaxed)
    }

    /// Records whether charging is switched on by now.
    pub(super) fn set_charging(&self, is_charging: bool) {
        self.is_charging.store(is_charging, Ordering::Relaxed);
    }

    /// Adds a payment to the totals.
    pub(super) fn add_paid(&self, amount: Money, was_reminded: bool) {
        let totals = &mut self.state().totals;
        totals.sums.paid.add(amount);
        totals.unreminded += u64::from(!was_reminded);
    }

    /// Adds a declined payment to the totals.
    pub(super) fn add_declined(&self, amount: Money) {
        self.state().totals.sums.declined.add(amount);
    }

    /// Returns the totals since the last call.
    pub(super) fn take_totals(&self) -> Totals {
        std::mem::take(&mut self.state().totals)
    }

    /// Records that the first lane has counted `subscription` and left it open.
    pub(super) fn leave_open(&self, subscription: SubscriptionId) {
        self.state().left_open.insert(subscription);
    }

    /// Whether the first lane has counted `subscription` and left it open.
    pub(super) fn has_left_open(&self, subscription: SubscriptionId) -> bool {
        self.state().left_open.contains(&subscription)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
