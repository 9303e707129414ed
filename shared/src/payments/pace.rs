//! The pace at which the gateway is asked: a token bucket, and the gateway's own word when it is too fast all the same.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use tokio::time::{Instant, sleep_until};

/// How long nothing is asked when the gateway does not say how long; doubled while it says so again.
const SHORTEST_PAUSE: Duration = Duration::from_millis(500);
/// No pause is longer, whatever the gateway says: after it, what was claimed before may still be charged, which it may be for
/// five minutes.
const LONGEST_PAUSE: Duration = Duration::from_secs(240);
/// A request is made this many times before it is left for a later run.
const MAX_TRIES: u32 = 8;

/// When the next request may be made.
#[derive(Debug)]
pub(super) struct Pace {
    /// Requests per second, of all runs that go on at the same time; `None` is without limit.
    rate: Option<NonZeroU32>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    bucket: Option<Arc<DefaultDirectRateLimiter>>,
    paused_until: Option<Instant>,
    /// Pauses since the gateway answered last.
    pauses: u32,
}

/// How often a request was made so far.
#[derive(Debug, Default)]
pub(super) struct Tries(u32);

impl Pace {
    pub fn at(rate: Option<NonZeroU32>) -> Self {
        let pace = Self { rate, state: Mutex::default() };
        pace.share(NonZeroU32::MIN);
        pace
    }

    /// A run begins that is one of `runs` at the same time: it has its share of the rate, however small.
    pub fn share(&self, runs: NonZeroU32) {
        let bucket = self.rate.and_then(|rate| {
            let quota = Quota::with_period(Duration::from_secs(runs.get().into()) / rate.get())?;
            Some(Arc::new(RateLimiter::direct(quota.allow_burst(NonZeroU32::MIN))))
        });
        *self.state() = State { bucket, ..State::default() };
    }

    /// Waits for the turn of a new request.
    pub async fn turn(&self) {
        self.pause().await;
        let bucket = self.state().bucket.clone();
        if let Some(bucket) = bucket {
            bucket.until_ready().await;
        }
        self.pause().await;
    }

    /// Waits until the gateway may be asked again, if it has said that it is asked too often.
    pub async fn pause(&self) {
        loop {
            let until = self.state().paused_until.filter(|until| Instant::now() < *until);
            match until {
                Some(until) => sleep_until(until).await,
                None => return,
            }
        }
    }

    /// The gateway has refused a request because there were too many, and asks to wait for `retry_after`. Answers whether
    /// the same request may be made again after a [`Pace::pause`].
    pub fn give_way(&self, retry_after: Option<Duration>, tries: &mut Tries) -> bool {
        self.state().give_way(Instant::now(), retry_after);
        tries.0 += 1;
        tries.0 < MAX_TRIES
    }

    /// The gateway has answered.
    pub fn answered(&self) {
        self.state().pauses = 0;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn give_way(&mut self, now: Instant, retry_after: Option<Duration>) {
        // Of many requests that were under way together, the first one sets the pause.
        if self.paused_until.is_some_and(|until| now < until) {
            return;
        }
        let doubled = SHORTEST_PAUSE.saturating_mul(1 << self.pauses.min(8));
        let pause = retry_after.unwrap_or(doubled).min(LONGEST_PAUSE);
        self.paused_until = Some(now + pause);
        self.pauses += 1;
        tracing::warn!(pause_ms = pause.as_millis(), "the gateway is asked too often: nothing is asked for a while");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(per_second: u32) -> Option<NonZeroU32> {
        NonZeroU32::new(per_second)
    }

    #[test]
    fn share_divides_the_rate_however_small_it_becomes() {
        let pace = Pace::at(rate(1));
        pace.share(NonZeroU32::new(1_000).unwrap());
        let bucket = pace.state().bucket.clone().unwrap();
        assert!(bucket.check().is_ok(), "the first request needs no wait");
        let refused = bucket.check().unwrap_err();
        let wait = refused.wait_time_from(governor::clock::Clock::now(bucket.clock()));
        assert!((998..=1_000).contains(&wait.as_secs()), "{wait:?}");
        assert!(Pace::at(None).state().bucket.is_none());
    }

    #[test]
    fn give_way_pauses_for_as_long_as_the_gateway_says_and_longer_each_time_when_it_does_not() {
        let (mut state, began) = (State::default(), Instant::now());
        let at = |ms: u64| began + Duration::from_millis(ms);
        for (now, retry_after, until) in [
            (0, Some(3), 3_000),
            // It was under way at the same time.
            (10, Some(9), 3_000),
            (3_000, None, 4_000),
            (5_000, None, 7_000),
            (7_000, Some(3_600), 247_000),
        ] {
            state.give_way(at(now), retry_after.map(Duration::from_secs));
            assert_eq!(state.paused_until, Some(at(until)), "at {now} ms, told {retry_after:?} s");
        }
        state.pauses = 0;
        state.give_way(at(250_000), None);
        assert_eq!(state.paused_until, Some(at(250_500)), "the gateway had answered in between");
    }

    #[test]
    fn give_way_leaves_a_request_for_a_later_run_the_eighth_time() {
        let (pace, mut tries) = (Pace::at(None), Tries::default());
        let again: Vec<bool> = (0..8).map(|_| pace.give_way(None, &mut tries)).collect();
        assert_eq!(again, [true, true, true, true, true, true, true, false]);
    }
}
