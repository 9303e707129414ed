//! Faults in the order that a test lists them.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use emulator::{Call, Fault, Faults, Operation};

/// The faults of the next calls of each operation, in order. A call without one goes well.
#[derive(Debug, Default)]
pub struct Script(Mutex<HashMap<Operation<'static>, VecDeque<Option<Fault>>>>);

impl Script {
    /// Adds what happens to the calls of `operation` that follow.
    pub fn add(&self, operation: Operation<'static>, faults: impl IntoIterator<Item = Option<Fault>>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(operation).or_default().extend(faults);
    }

    /// Takes out what has not happened yet, and answers how many calls of `operation` it was for.
    pub fn clear(&self, operation: Operation<'static>) -> usize {
        let left = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&operation);
        left.map_or(0, |left| left.len())
    }
}

impl Faults for Script {
    fn next(&self, call: &Call<'_>) -> Option<Fault> {
        let mut script = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        script.iter_mut().find(|(operation, _)| **operation == call.operation)?.1.pop_front().flatten()
    }
}

/// `fault` of the call of this number.
pub fn nth(number: u64, fault: Fault) -> impl Fn(&Call<'_>) -> Option<Fault> + Send + Sync + 'static {
    move |call| (call.number == number).then_some(fault)
}

/// `fault` of the first so many calls of `operation`.
pub fn first(
    times: u64,
    operation: Operation<'static>,
    fault: Fault,
) -> impl Fn(&Call<'_>) -> Option<Fault> + Send + Sync + 'static {
    let calls = AtomicU64::new(0);
    move |call| {
        let is_one = call.operation == operation && calls.fetch_add(1, Ordering::SeqCst) < times;
        is_one.then_some(fault)
    }
}
