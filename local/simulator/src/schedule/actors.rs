//! The actors themselves: futures on one thread, each polled when it is its turn.

use std::collections::BTreeMap;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use super::ActorId;

/// That a future asks to be polled again.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Actor {
    future: Pin<Box<dyn Future<Output = ()>>>,
    woken: Arc<Woken>,
}

/// Those who are there.
#[derive(Default)]
pub struct Actors {
    all: BTreeMap<ActorId, Actor>,
}

impl Actors {
    /// Lets `actor` begin: it comes to its first call, or to its end.
    pub fn begin(&mut self, actor: ActorId, future: impl Future<Output = ()> + 'static) {
        self.all.insert(actor, Actor { future: Box::pin(future), woken: Arc::default() });
        self.go_on(actor);
    }

    /// Whether nobody is there.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether `actor` is there.
    pub fn has(&self, actor: ActorId) -> bool {
        self.all.contains_key(&actor)
    }

    /// Lets `actor` go on until it waits or has come to its end.
    pub fn go_on(&mut self, actor: ActorId) {
        let Some(Actor { future, woken }) = self.all.get_mut(&actor) else { return };
        let waker = Waker::from(woken.clone());
        loop {
            woken.0.store(false, Ordering::Relaxed);
            match future.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(()) => {
                    self.all.remove(&actor);
                    return;
                }
                Poll::Pending if woken.0.load(Ordering::Relaxed) => {}
                Poll::Pending => return,
            }
        }
    }
}

/// The output of a `future` that waits for nothing.
///
/// # Panics
/// If it waits.
pub fn now_or_panic<T>(future: impl Future<Output = T>) -> T {
    let (mut future, woken) = (pin!(future), Arc::new(Woken::default()));
    let waker = Waker::from(woken.clone());
    loop {
        woken.0.store(false, Ordering::Relaxed);
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => assert!(woken.0.load(Ordering::Relaxed), "nothing is waited for here"),
        }
    }
}
