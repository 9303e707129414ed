//! Limits the rate of requests to the gateway: with a token bucket, and with pauses when the gateway refuses a request
//! because of its own rate limit.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use tokio::time::{Instant, sleep_until};

/// The first pause after the gateway has refused a request because of its rate limit, without a `Retry-After` time.
/// Each further pause is twice as long, until the gateway responds.
const SHORTEST_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause, even if the gateway's `Retry-After` time is longer. An attempt that was claimed before the pause
/// can still be charged after it, because an attempt may be charged for five minutes after its claim.
const LONGEST_PAUSE: Duration = Duration::from_secs(240);
/// When the gateway refuses a request because of its rate limit, the rate is halved. After each interval of this length
/// without another refusal, the rate is raised by an eighth of the full rate.
const RAISE_INTERVAL: Duration = Duration::from_secs(5);
/// The value of `PaceState::eighths` at the full rate.
const FULL_RATE: u32 = 8;
/// The largest number of times that the same request is sent in one run, while the gateway refuses it because of its
/// rate limit.
const MAX_TRIES_OF_REQUEST: u32 = 8;

/// Decides when the next request to the gateway may be sent.
#[derive(Debug)]
pub(crate) struct RequestPace {
    /// The configured number of requests per second, which all concurrent runs share; `None` for no limit.
    rate: Option<NonZeroU32>,
    state: Mutex<PaceState>,
}

/// The current rate of requests and the current pause.
#[derive(Debug)]
struct PaceState {
    /// The time between two requests if this run uses its full share of the configured rate; `None` for no limit.
    gap: Option<Duration>,
    /// The part of this run's share of the configured rate that the run currently uses, in eighths.
    eighths: u32,
    /// The time at which `eighths` was set.
    set_at: Instant,
    /// The token bucket, which allows requests at the current rate; `None` for no limit.
    bucket: Option<Arc<DefaultDirectRateLimiter>>,
    /// The end of the latest pause; `None` before the first pause.
    paused_until: Option<Instant>,
    /// The number of pauses since the gateway's last usable response, which can also be a declined charge.
    pauses: u32,
}

/// The number of times that the gateway has throttled the same request (refused it because of its rate limit).
#[derive(Debug, Default)]
pub(crate) struct ThrottleCount(u32);

impl RequestPace {
    /// Creates a pace of `rate` requests per second for one run; `None` for no limit.
    pub fn with_rate(rate: Option<NonZeroU32>) -> Self {
        Self { rate, state: Mutex::new(PaceState::for_run(rate, NonZeroU32::MIN)) }
    }

    /// Begins a new run, one of `runs` concurrent runs: its rate is the configured rate divided by `runs`.
    pub fn start_run(&self, runs: NonZeroU32) {
        *self.state() = PaceState::for_run(self.rate, runs);
    }

    /// Waits until the rate limit and the current pause allow a new request.
    pub async fn wait_for_turn(&self) {
        self.wait_for_pause_end().await;
        let bucket = self.state().token_bucket_at(Instant::now());
        if let Some(bucket) = bucket {
            bucket.until_ready().await;
        }
        self.wait_for_pause_end().await;
    }

    /// Waits for the end of the current pause, if there is one.
    pub async fn wait_for_pause_end(&self) {
        loop {
            let until = self.state().paused_until.filter(|until| Instant::now() < *until);
            match until {
                Some(until) => sleep_until(until).await,
                None => return,
            }
        }
    }

    /// Returns how long the current pause lasts; zero if there is no pause.
    pub fn remaining_pause(&self) -> Duration {
        let until = self.state().paused_until;
        until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()))
    }

    /// Starts a pause after the gateway has refused a request because of its rate limit; `retry_after` is the time that
    /// the gateway wants us to wait. Returns whether the same request may be sent again after
    /// [`RequestPace::wait_for_pause_end`].
    pub fn back_off(&self, retry_after: Option<Duration>, throttle_count: &mut ThrottleCount) -> bool {
        self.state().back_off(Instant::now(), retry_after);
        throttle_count.0 += 1;
        throttle_count.0 < MAX_TRIES_OF_REQUEST
    }

    /// Records that the gateway has returned a usable response, which can also be a declined charge: the next pause is
    /// short again.
    pub fn record_response(&self) {
        self.state().pauses = 0;
    }

    fn state(&self) -> MutexGuard<'_, PaceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PaceState {
    /// Creates the state of one of `runs` concurrent runs, which starts with its full share of `rate`.
    fn for_run(rate: Option<NonZeroU32>, runs: NonZeroU32) -> Self {
        let gap = rate.map(|rate| Duration::from_secs(runs.get().into()) / rate.get());
        let mut state =
            Self { gap, eighths: FULL_RATE, set_at: Instant::now(), bucket: None, paused_until: None, pauses: 0 };
        state.set_rate_in_eighths(FULL_RATE, Instant::now());
        state
    }

    /// Sets the current rate to `eighths`/8 of this run's share of the configured rate. Replaces the token bucket.
    fn set_rate_in_eighths(&mut self, eighths: u32, now: Instant) {
        (self.eighths, self.set_at) = (eighths, now);
        let quota = self.gap.and_then(|gap| Quota::with_period(gap * FULL_RATE / eighths));
        self.bucket = quota.map(|quota| Arc::new(RateLimiter::direct(quota.allow_burst(NonZeroU32::MIN))));
    }

    /// Returns the token bucket; `None` if there is no rate limit. First raises the rate if [`RAISE_INTERVAL`] has
    /// passed at `now`.
    fn token_bucket_at(&mut self, now: Instant) -> Option<Arc<DefaultDirectRateLimiter>> {
        if self.eighths < FULL_RATE && now.duration_since(self.set_at) >= RAISE_INTERVAL {
            self.set_rate_in_eighths(self.eighths + 1, now);
        }
        self.bucket.clone()
    }

    /// Starts a pause at `now`, after which requests continue at half the rate.
    fn back_off(&mut self, now: Instant, retry_after: Option<Duration>) {
        // If several concurrent requests are refused, only the first of them starts a pause.
        if self.paused_until.is_some_and(|until| now < until) {
            return;
        }
        let doubled = SHORTEST_PAUSE.saturating_mul(1 << self.pauses.min(8));
        let pause = retry_after.unwrap_or(doubled).min(LONGEST_PAUSE);
        self.paused_until = Some(now + pause);
        self.pauses += 1;
        // At the same rate as before, the gateway would refuse requests again after the pause.
        self.set_rate_in_eighths((self.eighths / 2).max(1), now + pause);
        tracing::warn!(
            pause_ms = pause.as_millis(),
            eighths_of_rate = self.eighths,
            "the gateway refused a request because of too many requests: requests pause, and continue at a lower rate"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a rate of `per_second` requests per second.
    fn rate(per_second: u32) -> Option<NonZeroU32> {
        NonZeroU32::new(per_second)
    }

    #[test]
    fn start_run_divides_the_rate_by_the_number_of_concurrent_runs() {
        let pace = RequestPace::with_rate(rate(1));
        pace.start_run(NonZeroU32::new(1_000).unwrap());
        let bucket = pace.state().bucket.clone().unwrap();
        assert!(bucket.check().is_ok(), "the first request needs no wait");
        let refused = bucket.check().unwrap_err();
        let wait = refused.wait_time_from(governor::clock::Clock::now(bucket.clock()));
        assert!((998..=1_000).contains(&wait.as_secs()), "{wait:?}");
        assert!(RequestPace::with_rate(None).state().bucket.is_none());
    }

    #[test]
    fn back_off_pauses_for_retry_after_or_else_twice_as_long_each_time() {
        let (mut state, began) = (PaceState::for_run(None, NonZeroU32::MIN), Instant::now());
        let at = |ms: u64| began + Duration::from_millis(ms);
        // The columns are: the time of the refusal in milliseconds, its `Retry-After` in seconds, and the end of the
        // pause in milliseconds.
        for (now, retry_after, until) in [
            (0, Some(3), 3_000),
            // A concurrent request that is also refused does not change the pause.
            (10, Some(9), 3_000),
            (3_000, None, 4_000),
            (5_000, None, 7_000),
            (7_000, Some(3_600), 247_000),
        ] {
            state.back_off(at(now), retry_after.map(Duration::from_secs));
            assert_eq!(state.paused_until, Some(at(until)), "at {now} ms, Retry-After {retry_after:?} s");
        }
        state.pauses = 0;
        state.back_off(at(250_000), None);
        assert_eq!(state.paused_until, Some(at(250_500)), "the gateway has responded since the last pause");
    }

    #[test]
    fn back_off_halves_the_rate_which_then_rises_by_an_eighth_every_five_seconds() {
        let (mut state, began) = (PaceState::for_run(rate(10), NonZeroU32::MIN), Instant::now());
        let at = |ms: u64| began + Duration::from_millis(ms);
        let mut eighths_at = |ms: u64, is_refused: bool| {
            if is_refused {
                state.back_off(at(ms), Some(Duration::from_secs(1)));
            }
            state.token_bucket_at(at(ms));
            state.eighths
        };
        // The pairs are: a time in milliseconds, and whether the gateway refuses a request at this time.
        let requests = [(0, true), (10, true), (5_999, false), (6_000, false), (6_001, true)];
        assert_eq!(requests.map(|(ms, is_refused)| eighths_at(ms, is_refused)), [4, 4, 4, 5, 2]);
        assert_eq!([12_001, 17_001, 60_000].map(|ms| eighths_at(ms, false)), [3, 4, 5]);
        assert_eq!((0..8).map(|n| eighths_at(61_000 + n * 2_000, true)).last(), Some(1), "the rate never becomes zero");
    }

    #[test]
    fn requests_at_one_eighth_of_the_rate_wait_eight_times_as_long() {
        let mut state = PaceState::for_run(rate(1), NonZeroU32::new(1_000).unwrap());
        state.set_rate_in_eighths(1, Instant::now());
        let bucket = state.token_bucket_at(Instant::now()).unwrap();
        assert!(bucket.check().is_ok(), "the first request needs no wait");
        let wait = bucket.check().unwrap_err().wait_time_from(governor::clock::Clock::now(bucket.clock()));
        assert!((7_900..=8_000).contains(&wait.as_secs()), "{wait:?}");
    }

    #[test]
    fn remaining_pause_is_retry_after_but_at_most_the_longest_pause() {
        // The columns are, in seconds: the `Retry-After` time, and the shortest and the longest allowed remaining
        // pause.
        for (retry_after, least, most) in [(None, 0, 1), (Some(7), 6, 7), (Some(3_600), 239, 240)] {
            let pace = RequestPace::with_rate(None);
            assert_eq!(pace.remaining_pause(), Duration::ZERO, "no request was refused");
            pace.back_off(retry_after.map(Duration::from_secs), &mut ThrottleCount::default());
            let left = pace.remaining_pause();
            assert!(
                (Duration::from_secs(least)..=Duration::from_secs(most)).contains(&left),
                "{retry_after:?}: {left:?}"
            );
        }
    }

    #[test]
    fn back_off_allows_no_further_try_of_a_request_after_eight_refusals() {
        let (pace, mut throttle_count) = (RequestPace::with_rate(None), ThrottleCount::default());
        let may_repeat: Vec<bool> = (0..8).map(|_| pace.back_off(None, &mut throttle_count)).collect();
        assert_eq!(may_repeat, [true, true, true, true, true, true, true, false]);
    }
}
