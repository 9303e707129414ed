//! The state of one run of the payment batch.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use billing::{Money, SubscriptionId};
use charging::{ChargeContext, ChargeRun};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use store::Settings;

use super::totals::PaymentTotals;

/// The state of one run, which is shared by all rows that are processed concurrently. A new run charges nothing until
/// it has read the settings.
#[derive(Debug, Default)]
pub struct PaymentRun {
    /// The state that the charges of the run share.
    pub(super) charges: ChargeRun,
    /// The number of days for which the bank may process a debit, from the settings that were read together with the
    /// most recent list page of due rows.
    max_processing_days: AtomicU32,
    state: Mutex<RunState>,
}

/// The part of a run's state that rows change under the lock.
#[derive(Debug, Default)]
struct RunState {
    /// The totals of the payments since the last call of [`PaymentRun::take_totals`].
    totals: PaymentTotals,
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

impl<'a> RowContext<'a> {
    /// Returns the run, the date and the time limit for a charge.
    pub(super) fn charge_context(self) -> ChargeContext<'a> {
        ChargeContext { run: &self.run.charges, today: self.today, deadline: self.deadline }
    }
}

impl PaymentRun {
    /// Creates the state of a new run, whose charges share `charges`.
    pub(super) fn with_charges(charges: ChargeRun) -> Self {
        Self { charges, ..Self::default() }
    }

    /// Stores the settings that were just read: the switch for charging, and the limits of the batch.
    pub(super) fn apply_settings(&self, settings: &Settings) {
        self.max_processing_days.store(settings.payment_limits.max_processing_days, Ordering::Relaxed);
        self.charges.apply_settings(settings);
    }

    /// Returns how long the bank may process a debit before the run reports the row of the payment as failed.
    pub(super) fn max_processing(&self) -> TimeDelta {
        TimeDelta::days(self.max_processing_days.load(Ordering::Relaxed).into())
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

    /// Returns the totals since the last call, and resets them to zero.
    pub(super) fn take_totals(&self) -> PaymentTotals {
        let totals = std::mem::take(&mut self.state().totals);
        PaymentTotals { charge_metrics: self.charges.take_requests(), ..totals }
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

    fn state(&self) -> MutexGuard<'_, RunState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
