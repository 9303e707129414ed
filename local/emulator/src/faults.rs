//! Fault injection into calls to external systems, such as DynamoDB and the gateway: the possible faults, the decision
//! about each call, and simulated crashes of the process.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures::FutureExt as _;
use tokio::sync::Notify;

/// A fault of one call to an external system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The request is lost before it takes effect.
    LostBefore,
    /// The request takes effect, and its response is lost.
    LostAfter,
    /// The process ends before the request takes effect: the call never returns.
    CrashBefore,
    /// The process ends after the request took effect: the call never returns.
    CrashAfter,
    /// The request is refused with this error, such as `ThrottlingException`, and takes no effect.
    Refused(&'static str),
    /// The transaction is cancelled for this reason, such as `TransactionConflict`, and takes no effect.
    Cancelled(&'static str),
}

impl Fault {
    /// Returns whether this fault is a crash of the process.
    pub fn is_crash(self) -> bool {
        matches!(self, Self::CrashBefore | Self::CrashAfter)
    }
}

/// An operation of an external system.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ExternalOperation<'a> {
    /// An operation of DynamoDB, such as `UpdateItem`.
    DynamoDb(&'a str),
    /// A charge at the gateway.
    Charge,
    /// A request to the gateway for the payments of a customer.
    PaymentsOf,
    /// A refund at the gateway.
    Refund,
    /// A request to the gateway for the refunds of a payment.
    RefundsOf,
    SendMail,
    /// An HTTP request with this path or operation.
    Http(&'a str),
}

/// One call to an external system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExternalCall<'a> {
    /// The number of the call: the injector counts its calls from 1.
    pub number: u64,
    pub operation: ExternalOperation<'a>,
}

/// A future that is ready when a call may continue, for example when a simulation resumes the call.
pub type CallTurn = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Decides the fault of each call. A closure that takes a call and returns its fault also implements this trait.
pub trait FaultDecider: Send + Sync {
    /// Returns the fault of `call`, if it has one.
    fn fault_of_call(&self, call: &ExternalCall<'_>) -> Option<Fault>;

    /// Returns how many times a call yields to other tasks. The injector asks twice for each call: before the call
    /// takes effect, and before the call returns.
    fn yields_per_call(&self) -> u32 {
        0
    }

    /// Returns a future that a call awaits. Each call asks for two futures: one before the call takes effect
    /// (`is_before_return` is false), and one before the call returns (`is_before_return` is true). If the result is
    /// `None`, the call yields to other tasks [`FaultDecider::yields_per_call`] times instead.
    fn turn_of_call(&self, _operation: ExternalOperation<'_>, _is_before_return: bool) -> Option<CallTurn> {
        None
    }
}

impl<F: Fn(&ExternalCall<'_>) -> Option<Fault> + Send + Sync> FaultDecider for F {
    fn fault_of_call(&self, call: &ExternalCall<'_>) -> Option<Fault> {
        self(call)
    }
}

/// Executes calls and injects faults. One injector represents one process: the process's connection to the table, its
/// gateway and its mailer share the injector. Their calls are counted together, and a crash ends all
/// calls in progress.
pub struct FaultInjector {
    faults: Arc<dyn FaultDecider>,
    /// True while calls are counted and can have faults.
    is_on: AtomicBool,
    calls: AtomicU64,
    /// Stops the current run at once, as if its process had crashed.
    crash: Notify,
}

impl FaultInjector {
    /// Creates an injector that is active from the start.
    pub fn new(faults: Arc<dyn FaultDecider>) -> Self {
        Self { faults, is_on: AtomicBool::new(true), calls: AtomicU64::new(0), crash: Notify::new() }
    }

    /// Creates an injector that is active only during [`FaultInjector::run`].
    pub fn active_during_runs(faults: Arc<dyn FaultDecider>) -> Self {
        Self { is_on: AtomicBool::new(false), ..Self::new(faults) }
    }

    /// Returns the number of calls that were made while the injector was active.
    pub fn call_count(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    /// Executes the future `run`, whose calls are counted and may have faults. Returns `None` if the fault of a call
    /// was a crash, which ended `run`.
    pub async fn run<T>(&self, run: impl Future<Output = T>) -> Option<T> {
        // Discard the notification of a crash of an earlier run, so that it does not end this run.
        let _ = self.crash.notified().now_or_never();
        self.is_on.store(true, Ordering::SeqCst);
        let result = tokio::select! {
            biased;
            () = self.crash.notified() => None,
            result = run => Some(result),
        };
        self.is_on.store(false, Ordering::SeqCst);
        result
    }

    /// Executes `call`, or applies its fault. `failed` creates the result of a call that was refused or got no
    /// response.
    pub async fn call_with_faults<T>(
        &self,
        operation: ExternalOperation<'_>,
        failed: impl FnOnce(Fault) -> T,
        call: impl Future<Output = T>,
    ) -> T {
        self.wait_for_turn(operation, false).await;
        let result = match self.next_fault(operation) {
            None => call.await,
            Some(fault @ (Fault::LostBefore | Fault::Refused(_) | Fault::Cancelled(_))) => failed(fault),
            Some(fault @ Fault::LostAfter) => {
                call.await;
                failed(fault)
            }
            Some(Fault::CrashBefore) => std::future::pending().await,
            Some(Fault::CrashAfter) => {
                call.await;
                std::future::pending().await
            }
        };
        self.wait_for_turn(operation, true).await;
        result
    }

    /// Counts a call, and returns its fault, if it has one. Ends the current run if the fault is a crash.
    fn next_fault(&self, operation: ExternalOperation<'_>) -> Option<Fault> {
        if !self.is_on.load(Ordering::SeqCst) {
            return None;
        }
        let number = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        let fault = self.faults.fault_of_call(&ExternalCall { number, operation });
        if fault.is_some_and(Fault::is_crash) {
            self.crash.notify_one();
        }
        fault
    }

    /// Waits until the call may continue: awaits the future of [`FaultDecider::turn_of_call`], or yields to other tasks.
    async fn wait_for_turn(&self, operation: ExternalOperation<'_>, is_before_return: bool) {
        if let Some(turn) = self.faults.turn_of_call(operation, is_before_return) {
            return turn.await;
        }
        for _ in 0..self.faults.yields_per_call() {
            tokio::task::yield_now().await;
        }
    }
}

impl fmt::Debug for FaultInjector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultInjector").field("is_on", &self.is_on).field("calls", &self.calls).finish_non_exhaustive()
    }
}
