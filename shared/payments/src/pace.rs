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
/// A rate at which the gateway was asked too often is halved, and raised by an eighth of the whole each time that this has
/// gone well for so long.
const RAISED_AFTER: Duration = Duration::from_secs(5);
const WHOLE: u32 = 8;
/// A request is made this many times before it is left for a later run.
const MAX_TRIES: u32 = 8;

/// When the next request may be made.
#[derive(Debug)]
pub(super) struct Pace {
    /// Requests per second, of all runs that go on at the same time; `None` is without limit.
    rate: Option<NonZeroU32>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Between two requests at this run's whole share of the rate.
    gap: Option<Duration>,
    /// Eighths of the share that are used.
    eighths: u32,
    /// When that was set.
    set_at: Instant,
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
        Self { rate, state: Mutex::new(State::of(rate, NonZeroU32::MIN)) }
    }

    /// A run begins that is one of `runs` at the same time: it has its share of the rate, however small.
    pub fn share(&self, runs: NonZeroU32) {
        *self.state() = State::of(self.rate, runs);
    }

    /// Waits for the turn of a new request.
    pub async fn turn(&self) {
        self.pause().await;
        let bucket = self.state().bucket(Instant::now());
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

    /// How long nothing may be asked yet, because the gateway has said that it is asked too often.
    pub fn pause_left(&self) -> Duration {
        let until = self.state().paused_until;
        until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()))
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
    fn of(rate: Option<NonZeroU32>, runs: NonZeroU32) -> Self {
        let gap = rate.map(|rate| Duration::from_secs(runs.get().into()) / rate.get());
        let mut state =
            Self { gap, eighths: WHOLE, set_at: Instant::now(), bucket: None, paused_until: None, pauses: 0 };
        state.use_eighths(WHOLE, Instant::now());
        state
    }

    fn use_eighths(&mut self, eighths: u32, now: Instant) {
        (self.eighths, self.set_at) = (eighths, now);
        let quota = self.gap.and_then(|gap| Quota::with_period(gap * WHOLE / eighths));
        self.bucket = quota.map(|quota| Arc::new(RateLimiter::direct(quota.allow_burst(NonZeroU32::MIN))));
    }

    /// The bucket from which a request is taken `now`.
    fn bucket(&mut self, now: Instant) -> Option<Arc<DefaultDirectRateLimiter>> {
        if self.eighths < WHOLE && now.duration_since(self.set_at) >= RAISED_AFTER {
            self.use_eighths(self.eighths + 1, now);
        }
        self.bucket.clone()
    }

    fn give_way(&mut self, now: Instant, retry_after: Option<Duration>) {
        // Of many requests that were under way together, the first one sets the pause.
        if self.paused_until.is_some_and(|until| now < until) {
            return;
        }
        let doubled = SHORTEST_PAUSE.saturating_mul(1 << self.pauses.min(8));
        let pause = retry_after.unwrap_or(doubled).min(LONGEST_PAUSE);
        self.paused_until = Some(now + pause);
        self.pauses += 1;
        // Requests that go on as before would only be refused again after the pause.
        self.use_eighths((self.eighths / 2).max(1), now + pause);
        tracing::warn!(
            pause_ms = pause.as_millis(),
            eighths_of_rate = self.eighths,
            "the gateway is asked too often: nothing is asked for a while, and less after it"
        );
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
        let (mut state, began) = (State::of(None, NonZeroU32::MIN), Instant::now());
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
    fn give_way_halves_the_rate_which_then_rises_by_an_eighth_each_five_seconds() {
        let (mut state, began) = (State::of(rate(10), NonZeroU32::MIN), Instant::now());
        let at = |ms: u64| began + Duration::from_millis(ms);
        let mut eighths_at = |ms: u64, is_refused: bool| {
            if is_refused {
                state.give_way(at(ms), Some(Duration::from_secs(1)));
            }
            state.bucket(at(ms));
            state.eighths
        };
        let asked = [(0, true), (10, true), (5_999, false), (6_000, false), (6_001, true)];
        assert_eq!(asked.map(|(ms, is_refused)| eighths_at(ms, is_refused)), [4, 4, 4, 5, 2]);
        assert_eq!([12_001, 17_001, 60_000].map(|ms| eighths_at(ms, false)), [3, 4, 5]);
        assert_eq!((0..8).map(|n| eighths_at(61_000 + n * 2_000, true)).last(), Some(1), "it never comes to a stop");
    }

    #[test]
    fn an_eighth_of_the_rate_waits_eight_times_as_long() {
        let mut state = State::of(rate(1), NonZeroU32::new(1_000).unwrap());
        state.use_eighths(1, Instant::now());
        let bucket = state.bucket(Instant::now()).unwrap();
        assert!(bucket.check().is_ok(), "the first request needs no wait");
        let wait = bucket.check().unwrap_err().wait_time_from(governor::clock::Clock::now(bucket.clock()));
        assert!((7_900..=8_000).contains(&wait.as_secs()), "{wait:?}");
    }

    #[test]
    fn pause_left_is_as_long_as_the_gateway_asks_and_no_longer_than_the_longest_pause() {
        for (retry_after, least, most) in [(None, 0, 1), (Some(7), 6, 7), (Some(3_600), 239, 240)] {
            let pace = Pace::at(None);
            assert_eq!(pace.pause_left(), Duration::ZERO, "nothing was refused");
            pace.give_way(retry_after.map(Duration::from_secs), &mut Tries::default());
            let left = pace.pause_left();
            assert!(
                (Duration::from_secs(least)..=Duration::from_secs(most)).contains(&left),
                "{retry_after:?}: {left:?}"
            );
        }
    }

    #[test]
    fn give_way_leaves_a_request_for_a_later_run_the_eighth_time() {
        let (pace, mut tries) = (Pace::at(None), Tries::default());
        let again: Vec<bool> = (0..8).map(|_| pace.give_way(None, &mut tries)).collect();
        assert_eq!(again, [true, true, true, true, true, true, true, false]);
    }
}
