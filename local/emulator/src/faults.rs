//! Fault injection: what can go wrong with one call to the outside, who decides it, and the run that it ends.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures::FutureExt as _;
use tokio::sync::Notify;

/// What happens to one call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The request is lost before it takes effect.
    LostBefore,
    /// The request takes effect, and its answer is lost.
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
    /// Whether the process ends by it.
    pub fn is_crash(self) -> bool {
        matches!(self, Self::CrashBefore | Self::CrashAfter)
    }
}

/// What is asked of the outside.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operation<'a> {
    /// An operation of DynamoDB, such as `UpdateItem`.
    DynamoDb(&'a str),
    Charge,
    PaymentsOf,
    Refund,
    RefundsOf,
    SendMail,
    /// A request to a stand-in of a test, by what is asked.
    Http(&'a str),
}

/// One call to the outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Call<'a> {
    /// Counted from 1 by the injector that the call passes.
    pub number: u64,
    pub operation: Operation<'a>,
}

/// A wait until a call may go on.
pub type Turn = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Decides what happens to each call. A closure that answers with a fault is one, too.
pub trait Faults: Send + Sync {
    /// The fault of `call`, if it has one.
    fn next(&self, call: &Call<'_>) -> Option<Fault>;

    /// How many times other tasks go first, before a call takes effect and again before it is answered.
    fn turns(&self) -> u32 {
        0
    }

    /// What a call of `operation` waits for before it takes effect, and again before it is answered. `None`: for other
    /// tasks, as [`Faults::turns`] says.
    fn turn(&self, _operation: Operation<'_>, _is_answer: bool) -> Option<Turn> {
        None
    }
}

impl<F: Fn(&Call<'_>) -> Option<Fault> + Send + Sync> Faults for F {
    fn next(&self, call: &Call<'_>) -> Option<Fault> {
        self(call)
    }
}

/// Carries out calls, and injects the faults that are decided. A wire, a gateway and a mailer that share an injector
/// belong to one process: their calls are counted together, and a crash ends all of it.
pub struct Injector {
    faults: Arc<dyn Faults>,
    is_on: AtomicBool,
    calls: AtomicU64,
    crash: Notify,
}

impl Injector {
    /// An injector that is on from the start.
    pub fn new(faults: Arc<dyn Faults>) -> Self {
        Self { faults, is_on: AtomicBool::new(true), calls: AtomicU64::new(0), crash: Notify::new() }
    }

    /// An injector that is on only during [`Injector::run`].
    pub fn for_runs(faults: Arc<dyn Faults>) -> Self {
        Self { is_on: AtomicBool::new(false), ..Self::new(faults) }
    }

    /// Calls so far, while it was on.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    /// Makes `run`. `None` if a crash ended it.
    pub async fn run<T>(&self, run: impl Future<Output = T>) -> Option<T> {
        // A crash that is left over from an earlier run does not end this one.
        let _ = self.crash.notified().now_or_never();
        self.is_on.store(true, Ordering::SeqCst);
        let ended = tokio::select! {
            biased;
            () = self.crash.notified() => None,
            ended = run => Some(ended),
        };
        self.is_on.store(false, Ordering::SeqCst);
        ended
    }

    /// Makes `call`, or does to it what is decided; `failed` makes the answer of a call that got none or was refused.
    pub async fn call<T>(
        &self,
        operation: Operation<'_>,
        failed: impl FnOnce(Fault) -> T,
        call: impl Future<Output = T>,
    ) -> T {
        self.wait(operation, false).await;
        let answer = match self.next(operation) {
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
        self.wait(operation, true).await;
        answer
    }

    fn next(&self, operation: Operation<'_>) -> Option<Fault> {
        if !self.is_on.load(Ordering::SeqCst) {
            return None;
        }
        let number = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        let fault = self.faults.next(&Call { number, operation });
        if fault.is_some_and(Fault::is_crash) {
            self.crash.notify_one();
        }
        fault
    }

    async fn wait(&self, operation: Operation<'_>, is_answer: bool) {
        if let Some(turn) = self.faults.turn(operation, is_answer) {
            return turn.await;
        }
        for _ in 0..self.faults.turns() {
            tokio::task::yield_now().await;
        }
    }
}

impl fmt::Debug for Injector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Injector").field("is_on", &self.is_on).field("calls", &self.calls).finish_non_exhaustive()
    }
}
