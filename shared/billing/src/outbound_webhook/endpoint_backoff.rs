//! The back-off of a webhook endpoint: after several consecutive failed deliveries, no events are sent to the endpoint
//! for some time.

use chrono::{DateTime, SubsecRound as _, TimeDelta, Utc};
use ulid::Ulid;

/// The number of consecutive failed tries after which the back-off of an endpoint begins.
pub const FAILURES_BEFORE_BACKOFF: u32 = 3;
/// The first waiting time of a back-off. Each further failure doubles the waiting time.
const FIRST_WAIT: TimeDelta = TimeDelta::seconds(5);
/// The longest waiting time of a back-off.
pub const LONGEST_WAIT: TimeDelta = TimeDelta::minutes(15);
/// How long a worker owns a probe, which is the only try at the end of a waiting time. This lease is longer than the
/// timeout of a delivery. The lease is short, because other deliveries to the endpoint wait for the end of the probe.
/// If the worker is killed, another worker may start the next probe after this time.
const PROBE_LEASE: TimeDelta = TimeDelta::seconds(30);

/// The failed tries of a webhook endpoint since its last success, and the time until which no event is sent to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EndpointBackoff {
    /// The number of failed tries since the last success. During a back-off, only probes (the single tries at the end
    /// of a waiting time) are counted.
    pub failures: u32,
    /// The instant until which no event is sent to the endpoint, in whole milliseconds; `None` if there is no back-off.
    pub until: Option<DateTime<Utc>>,
    /// The id of the try that last changed the back-off; `None` if `failures` is 0. Two concurrent tries can compute
    /// equal changes. The stored id shows which of the two tries has made the change.
    pub changed_by: Option<Ulid>,
}

/// Whether an event may be sent to an endpoint now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BackoffState {
    /// The endpoint has no back-off: any number of events may be sent.
    Inactive,
    /// No event may be sent to the endpoint before this instant.
    WaitsUntil(DateTime<Utc>),
    /// The waiting time is over: the worker that claims the probe may send one event.
    ProbeIsDue,
}

impl EndpointBackoff {
    /// Returns whether an event may be sent to the endpoint at `now`.
    pub fn state(&self, now: DateTime<Utc>) -> BackoffState {
        match self.until {
            None => BackoffState::Inactive,
            Some(until) if now < until => BackoffState::WaitsUntil(until),
            Some(_) => BackoffState::ProbeIsDue,
        }
    }

    /// Returns the back-off after a worker has claimed the probe with the id `id` at `now`. Other workers send nothing
    /// to the endpoint until the claim has expired.
    pub fn with_claimed_probe(&self, now: DateTime<Utc>, id: Ulid) -> Self {
        Self { until: time_after_wait(now, PROBE_LEASE), changed_by: Some(id), ..*self }
    }

    /// Returns the back-off after the try with the id `id` failed at `now`. `self` is the stored back-off now, and
    /// `before_try` the stored back-off when the try began. `not_before` is the time before which the endpoint wants no
    /// request, if it has requested a time: a back-off until this time begins with the first failure. Returns `None` if
    /// the try does not count, because another try has started or extended the back-off in the meantime.
    pub fn after_failure(
        &self,
        before_try: &Self,
        now: DateTime<Utc>,
        not_before: Option<DateTime<Utc>>,
        id: Ulid,
    ) -> Option<Self> {
        if self.until != before_try.until {
            return None;
        }
        let failures = self.failures.saturating_add(1);
        let doublings = failures.checked_sub(FAILURES_BEFORE_BACKOFF);
        // After 8 doublings, the waiting time already exceeds the longest waiting time, so do not double it further.
        let wait = doublings.map(|doublings| {
            FIRST_WAIT.checked_mul(1 << doublings.min(8)).map_or(LONGEST_WAIT, |wait| wait.min(LONGEST_WAIT))
        });
        let until =
            wait.and_then(|wait| time_after_wait(now, wait)).max(not_before.map(|until| until.trunc_subsecs(3)));
        Some(Self { failures, until, changed_by: Some(id) })
    }
}

/// Returns `now` plus `wait`, in whole milliseconds, which is the precision of the stored time.
fn time_after_wait(now: DateTime<Utc>, wait: TimeDelta) -> Option<DateTime<Utc>> {
    now.checked_add_signed(wait).map(|at| at.trunc_subsecs(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The id of all tries in these tests.
    const TRY_ID: Ulid = Ulid(1);

    #[test]
    fn third_failure_of_an_endpoint_starts_a_backoff_that_each_failed_probe_doubles_up_to_15_minutes() {
        let (mut now, mut backoff) = (DateTime::UNIX_EPOCH, EndpointBackoff::default());
        let mut waits = Vec::new();
        for _ in 0..13 {
            let before = match backoff.state(now) {
                BackoffState::Inactive => backoff,
                BackoffState::ProbeIsDue => backoff.with_claimed_probe(now, TRY_ID),
                BackoffState::WaitsUntil(until) => panic!("waits until {until}"),
            };
            backoff = before.after_failure(&before, now, None, TRY_ID).unwrap();
            let until = backoff.until.unwrap_or(now);
            waits.push((until - now).num_seconds());
            now = until;
        }
        assert_eq!(waits, [0, 0, 5, 10, 20, 40, 80, 160, 320, 640, 900, 900, 900]);
    }

    #[test]
    fn only_one_worker_starts_the_probe_and_concurrent_failures_count_once() {
        let now = DateTime::UNIX_EPOCH;
        let twice = EndpointBackoff { failures: 2, until: None, changed_by: None };
        let started = twice.after_failure(&twice, now, None, TRY_ID).unwrap();
        assert_eq!(
            started.after_failure(&twice, now, None, TRY_ID),
            None,
            "a try that began before the back-off does not count"
        );
        let until = started.until.unwrap();
        assert_eq!(started.state(until - TimeDelta::milliseconds(1)), BackoffState::WaitsUntil(until));
        assert_eq!(started.state(until), BackoffState::ProbeIsDue);
        let claimed = started.with_claimed_probe(until, TRY_ID);
        assert_eq!(claimed.state(until), BackoffState::WaitsUntil(until + PROBE_LEASE));
        assert_eq!(claimed.state(until + PROBE_LEASE), BackoffState::ProbeIsDue, "the worker was killed");
        let again = claimed.with_claimed_probe(until + PROBE_LEASE, TRY_ID);
        assert_eq!(again.after_failure(&claimed, now, None, TRY_ID), None, "the claim of the first worker has expired");
    }

    #[test]
    fn time_that_the_endpoint_requests_starts_or_extends_the_backoff() {
        let now = DateTime::UNIX_EPOCH;
        let requested = Some(now + TimeDelta::minutes(20));
        let inactive = EndpointBackoff::default();
        let started = inactive.after_failure(&inactive, now, requested, TRY_ID).unwrap();
        assert_eq!((started.failures, started.until), (1, requested));
        let many = EndpointBackoff { failures: 20, ..inactive };
        let soon = Some(now + TimeDelta::minutes(1));
        let waits = many.after_failure(&many, now, soon, TRY_ID).unwrap();
        assert_eq!(waits.until, Some(now + LONGEST_WAIT), "a shorter requested time changes nothing");
    }
}
