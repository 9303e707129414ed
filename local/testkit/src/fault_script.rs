//! Faults that a test injects at certain external calls.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use emulator::{ExternalCall, ExternalOperation, Fault, FaultDecider, FaultInjector};

/// The faults of the next calls of each operation, in the order of the calls. A call has no fault if its entry is
/// `None`, or if the list of its operation is used up.
#[derive(Debug, Default)]
pub struct FaultScript(Mutex<HashMap<ExternalOperation<'static>, VecDeque<Option<Fault>>>>);

impl FaultScript {
    /// Appends `faults` for further calls of `operation`. `None` is a call without a fault.
    pub fn add(&self, operation: ExternalOperation<'static>, faults: impl IntoIterator<Item = Option<Fault>>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(operation).or_default().extend(faults);
    }

    /// Removes the entries for all further calls of `operation`, and returns their number.
    pub fn clear(&self, operation: ExternalOperation<'static>) -> usize {
        let removed = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&operation);
        removed.map_or(0, |removed| removed.len())
    }
}

impl FaultDecider for FaultScript {
    fn fault_of_call(&self, call: &ExternalCall<'_>) -> Option<Fault> {
        let mut script = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        script.iter_mut().find(|(operation, _)| **operation == call.operation)?.1.pop_front().flatten()
    }
}

/// Returns a closure that injects `fault` at the call with this number.
pub fn fault_at_call(number: u64, fault: Fault) -> impl Fn(&ExternalCall<'_>) -> Option<Fault> + Send + Sync + 'static {
    move |call| (call.number == number).then_some(fault)
}

/// The faults with which tests interrupt each call of a run. [`Fault::CrashBefore`] is not one of them, because a crash
/// before a call leaves the same state as a crash after the call before it.
pub const FAULTS_AT_EACH_CALL: [Fault; 3] = [Fault::LostBefore, Fault::LostAfter, Fault::CrashAfter];

/// Those of the [`FAULTS_AT_EACH_CALL`] that happen after the call took effect. A retry of the SDK hides a request that
/// was lost before it took effect.
pub const FAULTS_AFTER_EACH_CALL: [Fault; 2] = [Fault::LostAfter, Fault::CrashAfter];

/// Returns an injector that is active only during its runs, and injects no fault.
pub fn without_faults() -> Arc<FaultInjector> {
    Arc::new(FaultInjector::active_during_runs(Arc::new(|_: &ExternalCall<'_>| None)))
}

/// Calls `test` once for each combination of a fault in `faults` and a number of a call. The arguments of `test` are an
/// injector that injects this fault at this call, and a text that names the fault and the call. Continues with the next
/// fault when `test` has made fewer calls than the number.
///
/// # Panics
/// If `test` makes fewer than `min_calls` calls in the runs of its injector.
pub async fn test_fault_at_each_call(faults: &[Fault], min_calls: u64, test: impl AsyncFn(&Arc<FaultInjector>, &str)) {
    for fault in faults {
        for at in 1.. {
            let injector = Arc::new(FaultInjector::active_during_runs(Arc::new(fault_at_call(at, *fault))));
            // The future is boxed, because it may be too large for the stack of the thread.
            Box::pin(test(&injector, &format!("{fault:?} at call {at}"))).await;
            let calls = injector.call_count();
            if at > calls {
                assert!(calls >= min_calls, "{calls} calls were made");
                break;
            }
        }
    }
}

/// Returns a closure that injects `fault` at the first `times` calls of `operation`.
pub fn fault_in_first_calls(
    times: u64,
    operation: ExternalOperation<'static>,
    fault: Fault,
) -> impl Fn(&ExternalCall<'_>) -> Option<Fault> + Send + Sync + 'static {
    let calls = AtomicU64::new(0);
    move |call| {
        let is_faulty = call.operation == operation && calls.fetch_add(1, Ordering::SeqCst) < times;
        is_faulty.then_some(fault)
    }
}
