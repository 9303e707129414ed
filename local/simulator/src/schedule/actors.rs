//! The actors of a simulation. Each actor is a future; all futures are on one thread, and a future is polled when the
//! schedule resumes its actor.

use std::collections::BTreeMap;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use super::ActorId;

/// A waker that records that its future asks to be polled again.
#[derive(Default)]
struct WakeFlag(AtomicBool);

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// An actor that has not finished.
struct UnfinishedActor {
    future: Pin<Box<dyn Future<Output = ()>>>,
    wake_flag: Arc<WakeFlag>,
}

/// All actors that have not finished, by their numbers.
#[derive(Default)]
pub struct UnfinishedActors {
    all: BTreeMap<ActorId, UnfinishedActor>,
}

impl UnfinishedActors {
    /// Starts `actor`, and polls it until it waits or finishes.
    pub fn start(&mut self, actor: ActorId, future: impl Future<Output = ()> + 'static) {
        self.all.insert(actor, UnfinishedActor { future: Box::pin(future), wake_flag: Arc::default() });
        self.resume(actor);
    }

    /// Returns whether no actor is left.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns whether `actor` has not finished.
    pub fn contains(&self, actor: ActorId) -> bool {
        self.all.contains_key(&actor)
    }

    /// Polls `actor` until it waits for the schedule or finishes.
    pub fn resume(&mut self, actor: ActorId) {
        let Some(UnfinishedActor { future, wake_flag }) = self.all.get_mut(&actor) else { return };
        let waker = Waker::from(wake_flag.clone());
        loop {
            wake_flag.0.store(false, Ordering::Relaxed);
            match future.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(()) => {
                    self.all.remove(&actor);
                    return;
                }
                Poll::Pending if wake_flag.0.load(Ordering::Relaxed) => {}
                Poll::Pending => return,
            }
        }
    }
}

/// Polls `future` until it is ready, and returns its output. The future must not wait for its turn in the schedule or
/// for a timer.
///
/// # Panics
/// If the future waits.
pub fn poll_future_until_ready<T>(future: impl Future<Output = T>) -> T {
    let (mut future, wake_flag) = (pin!(future), Arc::new(WakeFlag::default()));
    let waker = Waker::from(wake_flag.clone());
    loop {
        wake_flag.0.store(false, Ordering::Relaxed);
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => assert!(wake_flag.0.load(Ordering::Relaxed), "the future must not wait"),
        }
    }
}
