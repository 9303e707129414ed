//! What one run of the payment batch remembers of itself.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use billing::{Money, SubscriptionId};
use store::RunSums;

/// What a run has charged and left so far.
#[derive(Debug, Default)]
pub(super) struct Tally(Mutex<Counted>);

#[derive(Debug, Default)]
struct Counted {
    /// What was settled since it was last asked for.
    sums: RunSums,
    /// Payments that were charged before their reminder was sent.
    unreminded: u64,
    /// What was counted in the first lane and not done with: the second passes it by.
    left: HashSet<SubscriptionId>,
}

impl Tally {
    /// A run begins.
    pub fn begin(&self) {
        *self.counted() = Counted::default();
    }

    /// A payment was charged.
    pub fn charge(&self, amount: Money, was_reminded: bool) {
        let mut counted = self.counted();
        counted.sums.paid.add(amount);
        counted.unreminded += u64::from(!was_reminded);
    }

    /// A payment was declined.
    pub fn decline(&self, amount: Money) {
        self.counted().sums.declined.add(amount);
    }

    /// What was settled since this was last asked for.
    pub fn take_sums(&self) -> RunSums {
        std::mem::take(&mut self.counted().sums)
    }

    /// Payments that this run has charged before their reminder was sent.
    pub fn unreminded(&self) -> u64 {
        self.counted().unreminded
    }

    /// The first lane has counted `subscription`, and is not done with it.
    pub fn leave(&self, subscription: SubscriptionId) {
        self.counted().left.insert(subscription);
    }

    /// Whether the first lane has counted `subscription`, and is not done with it.
    pub fn has_left(&self, subscription: SubscriptionId) -> bool {
        self.counted().left.contains(&subscription)
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
