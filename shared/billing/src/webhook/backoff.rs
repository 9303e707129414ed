//! The back-off of a webhook endpoint whose deliveries fail one after the other.

use chrono::{DateTime, SubsecRound as _, TimeDelta, Utc};
use ulid::Ulid;

/// The number of failed tries without a success in between after which an endpoint is not tried for some time.
pub const FAILURES_BEFORE_BACKOFF: u32 = 3;
/// The first waiting time of a back-off. Each further failure doubles the waiting time.
const FIRST_WAIT: TimeDelta = TimeDelta::seconds(5);
/// The longest waiting time of a back-off.
pub const LONGEST_WAIT: TimeDelta = TimeDelta::minutes(15);
/// How long a worker owns a probe, which is the only try at the end of a back-off. The time is longer than the timeout
/// of a delivery. It is short, because other deliveries to the endpoint wait for the end of the probe. If the worker is
/// killed, another worker may start the next probe after this time.
const PROBE_LEASE: TimeDelta = TimeDelta::seconds(30);

/// The failed tries of a webhook endpoint since its last success, and the time until which no event is sent to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EndpointBackoff {
    /// The number of failed tries without a success in between. During a back-off only probes are counted.
    pub failures: u32,
    /// The instant until which the endpoint is not tried, in whole milliseconds; `None` if there is no back-off.
    pub until: Option<DateTime<Utc>>,
    /// The id of the try that last changed the back-off; `None` if `failures` is 0. Two tries can compute the same
    /// change at the same time. Only the try whose id is stored has made the change; without the id, both tries would
    /// act as if they had made it.
    pub changed_by: Option<Ulid>,
}

/// Whether an endpoint may be tried now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BackoffState {
    /// The endpoint has no back-off: any number of deliveries may be tried.
    Inactive,
    /// The endpoint must not be tried before this instant.
    WaitsUntil(DateTime<Utc>),
    /// The waiting time is over: the worker that claims the probe may try one delivery.
    ProbeIsDue,
}

impl EndpointBackoff {
    /// Returns whether the endpoint may be tried at `now`.
    pub fn state(&self, now: DateTime<Utc>) -> BackoffState {
        match self.until {
            None => BackoffState::Inactive,
            Some(until) if now < until => BackoffState::WaitsUntil(until),
            Some(_) => BackoffState::ProbeIsDue,
        }
    }

    /// Returns the back-off during the probe `id` that a worker starts at `now`: other workers wait until the worker's
    /// claim has expired.
    pub fn with_claimed_probe(&self, now: DateTime<Utc>, id: Ulid) -> Self {
        Self { until: add(now, PROBE_LEASE), changed_by: Some(id), ..*self }
    }

    /// Returns the back-off after the try `id` that failed at `now`. `before_try` is the stored back-off when the try began.
    /// Returns `None` if the try does not count: another try has started or continued the back-off in the meantime.
    pub fn after_failure(&self, before_try: &Self, now: DateTime<Utc>, id: Ulid) -> Option<Self> {
        if self.until != before_try.until {
            return None;
        }
        let failures = self.failures.saturating_add(1);
        let doublings = failures.checked_sub(FAILURES_BEFORE_BACKOFF);
        // More than 8 doublings are not necessary: after 8 doublings, the waiting time is already longer than the
        // longest waiting time.
        let wait = doublings.map(|doublings| {
            FIRST_WAIT.checked_mul(1 << doublings.min(8)).map_or(LONGEST_WAIT, |wait| wait.min(LONGEST_WAIT))
        });
        Some(Self { failures, until: wait.and_then(|wait| add(now, wait)), changed_by: Some(id) })
    }
}

/// Returns `now` plus `wait`, in whole milliseconds, which is the precision of the stored time.
fn add(now: DateTime<Utc>, wait: TimeDelta) -> Option<DateTime<Utc>> {
    now.checked_add_signed(wait).map(|at| at.trunc_subsecs(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The id that each try in these tests has.
    const ID: Ulid = Ulid(1);

    #[test]
    fn third_failure_of_an_endpoint_starts_a_backoff_that_each_failed_probe_doubles_up_to_15_minutes() {
        let (mut now, mut backoff) = (DateTime::UNIX_EPOCH, EndpointBackoff::default());
        let mut waits = Vec::new();
        for _ in 0..13 {
            let before = match backoff.state(now) {
                BackoffState::Inactive => backoff,
                BackoffState::ProbeIsDue => backoff.with_claimed_probe(now, ID),
                BackoffState::WaitsUntil(until) => panic!("waits until {until}"),
            };
            backoff = before.after_failure(&before, now, ID).unwrap();
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
        let started = twice.after_failure(&twice, now, ID).unwrap();
        assert_eq!(started.after_failure(&twice, now, ID), None, "a try that began before the back-off does not count");
        let until = started.until.unwrap();
        assert_eq!(started.state(until - TimeDelta::milliseconds(1)), BackoffState::WaitsUntil(until));
        assert_eq!(started.state(until), BackoffState::ProbeIsDue);
        let claimed = started.with_claimed_probe(until, ID);
        assert_eq!(claimed.state(until), BackoffState::WaitsUntil(until + PROBE_LEASE));
        assert_eq!(claimed.state(until + PROBE_LEASE), BackoffState::ProbeIsDue, "the worker was killed");
        let again = claimed.with_claimed_probe(until + PROBE_LEASE, ID);
        assert_eq!(again.after_failure(&claimed, now, ID), None, "the claim of the first worker has expired");
    }
}
