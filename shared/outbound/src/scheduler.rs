//! Chooses which deliveries are tried next, so that a slow webhook endpoint does not delay deliveries to other
//! endpoints.

use std::collections::{BTreeMap, BTreeSet};

use billing::DeliveryKey;
use chrono::{DateTime, Utc};
use ulid::Ulid;

use super::NextTryTime;

/// The largest numbers of deliveries in progress.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConcurrencyLimits {
    /// The largest number of deliveries in progress to one endpoint.
    pub per_endpoint: usize,
    /// The largest number of deliveries in progress to all endpoints together.
    pub total: usize,
}

/// The deliveries of a worker that wait for a try or are in progress. The scheduler only decides and sends no requests:
/// the caller starts each delivery that [`DeliveryScheduler::start_next`] returns, and passes its result to
/// [`DeliveryScheduler::finish`].
#[derive(Clone, Debug)]
pub struct DeliveryScheduler {
    limits: ConcurrencyLimits,
    endpoints: BTreeMap<Ulid, EndpointQueue>,
    /// The number of deliveries in progress to all endpoints.
    in_progress: usize,
}

/// The deliveries to one endpoint.
#[derive(Clone, Debug, Default)]
struct EndpointQueue {
    /// The waiting deliveries: the time of the next try, and the id of the event.
    waiting: BTreeSet<(DateTime<Utc>, String)>,
    /// The ids of the events whose delivery is in progress.
    in_progress: BTreeSet<String>,
    /// The instant until which no delivery to the endpoint is started; `None` if the endpoint is not paused. After this
    /// instant, only one delivery is started at first. The other deliveries to the endpoint wait for its result.
    paused_until: Option<DateTime<Utc>>,
}

impl EndpointQueue {
    /// Returns the first waiting delivery that may be started at `now`; `None` if there is none.
    fn next_startable_delivery(&self, now: DateTime<Utc>, per_endpoint: usize) -> Option<&(DateTime<Utc>, String)> {
        let limit = match self.paused_until {
            None => per_endpoint,
            Some(until) if until <= now => 1,
            Some(_) => 0,
        };
        if self.in_progress.len() >= limit {
            return None;
        }
        let mut due = self.waiting.iter().take_while(|(then, _)| *then <= now);
        // If an operator restarts a delivery during its try, the delivery is waiting and in progress at the same time.
        // Do not start it a second time until the first try has ended.
        due.find(|(_, event)| !self.in_progress.contains(event))
    }
}

impl DeliveryScheduler {
    /// Creates a scheduler without deliveries.
    pub fn new(limits: ConcurrencyLimits) -> Self {
        Self { limits, endpoints: BTreeMap::new(), in_progress: 0 }
    }

    /// Adds the delivery `key`, which must not be tried before `then`.
    pub fn add(&mut self, then: DateTime<Utc>, DeliveryKey { endpoint, event }: DeliveryKey) {
        self.endpoints.entry(endpoint).or_default().waiting.insert((then, event));
    }

    /// Removes and returns a delivery that is due at `now` and does not exceed the limits of concurrent deliveries (for
    /// each endpoint and in total); `None` if there is none. Prefers the endpoint with the fewest deliveries in
    /// progress, and then the delivery that has been due for longest.
    pub fn start_next(&mut self, now: DateTime<Utc>) -> Option<DeliveryKey> {
        if self.in_progress >= self.limits.total {
            return None;
        }
        let per_endpoint = self.limits.per_endpoint;
        let candidates = self.endpoints.iter().filter_map(|(endpoint, queue)| {
            let (then, event) = queue.next_startable_delivery(now, per_endpoint)?;
            Some((queue.in_progress.len(), *then, *endpoint, event.clone()))
        });
        let (_, then, endpoint, event) = candidates.min()?;
        let queue = self.endpoints.entry(endpoint).or_default();
        queue.waiting.remove(&(then, event.clone()));
        queue.in_progress.insert(event.clone());
        self.in_progress += 1;
        Some(DeliveryKey { endpoint, event })
    }

    /// Ends the try of a delivery, with the result `next_try`. If there is a next try, the delivery waits for it. If
    /// the result is [`NextTryTime::EndpointWaits`], no delivery to the endpoint is started before that instant.
    pub fn finish(&mut self, DeliveryKey { endpoint, event }: DeliveryKey, next_try: NextTryTime) {
        let queue = self.endpoints.entry(endpoint).or_default();
        if queue.in_progress.remove(&event) {
            self.in_progress -= 1;
        }
        queue.paused_until = match next_try {
            NextTryTime::Done | NextTryTime::At(_) => None,
            NextTryTime::EndpointWaits(until) => Some(until),
        };
        queue.waiting.extend(next_try.earliest_instant().map(|then| (then, event)));
        if queue.waiting.is_empty() && queue.in_progress.is_empty() && queue.paused_until.is_none() {
            self.endpoints.remove(&endpoint);
        }
    }

    /// Returns the number of waiting deliveries.
    pub fn waiting_count(&self) -> usize {
        self.endpoints.values().map(|queue| queue.waiting.len()).sum()
    }

    /// Removes and returns all waiting deliveries, each with the instant before which it must not be tried.
    pub fn take_waiting(&mut self) -> Vec<(DateTime<Utc>, DeliveryKey)> {
        let mut waiting = Vec::new();
        for (endpoint, queue) in &mut self.endpoints {
            let until = queue.paused_until.unwrap_or(DateTime::UNIX_EPOCH);
            let events = std::mem::take(&mut queue.waiting).into_iter();
            waiting.extend(events.map(|(then, event)| (then.max(until), DeliveryKey { endpoint: *endpoint, event })));
        }
        waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;

    /// The limits of the scheduler in the tests.
    const LIMITS: ConcurrencyLimits = ConcurrencyLimits { per_endpoint: 2, total: 3 };

    /// Returns the key of the delivery of `event` to the endpoint number `endpoint`.
    fn delivery_key(endpoint: u128, event: &str) -> DeliveryKey {
        DeliveryKey { endpoint: Ulid(endpoint), event: event.to_owned() }
    }

    /// Returns the instant that is `seconds` seconds after the start of the test.
    fn test_time(seconds: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
    }

    /// Starts all deliveries that may be tried at `now`, and returns their keys in this order.
    fn start_all_deliveries(scheduler: &mut DeliveryScheduler, now: DateTime<Utc>) -> Vec<DeliveryKey> {
        std::iter::from_fn(|| scheduler.start_next(now)).collect()
    }

    #[test]
    fn endpoint_with_many_deliveries_leaves_room_for_other_endpoints() {
        let mut scheduler = DeliveryScheduler::new(LIMITS);
        for event in ["a", "b", "c", "d"] {
            scheduler.add(test_time(0), delivery_key(1, event));
        }
        scheduler.add(test_time(5), delivery_key(2, "a"));
        assert_eq!(
            start_all_deliveries(&mut scheduler, test_time(4)),
            [delivery_key(1, "a"), delivery_key(1, "b")],
            "two for each endpoint"
        );
        scheduler.add(test_time(5), delivery_key(2, "b"));
        assert_eq!(start_all_deliveries(&mut scheduler, test_time(5)), [delivery_key(2, "a")], "three in all");
        scheduler.finish(delivery_key(1, "a"), NextTryTime::Done);
        assert_eq!(
            start_all_deliveries(&mut scheduler, test_time(5)),
            [delivery_key(1, "c")],
            "the earliest, if both have one in progress"
        );
        scheduler.finish(delivery_key(1, "b"), NextTryTime::At(test_time(9)));
        scheduler.finish(delivery_key(1, "c"), NextTryTime::Done);
        assert_eq!(start_all_deliveries(&mut scheduler, test_time(9)), [delivery_key(1, "d"), delivery_key(2, "b")]);
        scheduler.finish(delivery_key(2, "b"), NextTryTime::Done);
        assert_eq!(start_all_deliveries(&mut scheduler, test_time(9)), [delivery_key(1, "b")]);
    }

    #[test]
    fn endpoint_after_a_pause_gets_only_one_delivery_first() {
        let mut scheduler = DeliveryScheduler::new(LIMITS);
        for event in ["a", "b", "c"] {
            scheduler.add(test_time(0), delivery_key(1, event));
        }
        assert_eq!(start_all_deliveries(&mut scheduler, test_time(0)).len(), 2);
        scheduler.finish(delivery_key(1, "a"), NextTryTime::EndpointWaits(test_time(10)));
        assert_eq!(start_all_deliveries(&mut scheduler, test_time(9)), [], "b is in progress, c may not be tried yet");
        scheduler.finish(delivery_key(1, "b"), NextTryTime::EndpointWaits(test_time(10)));
        assert_eq!(start_all_deliveries(&mut scheduler, test_time(10)), [delivery_key(1, "c")], "the probe");
        scheduler.finish(delivery_key(1, "c"), NextTryTime::EndpointWaits(test_time(30)));
        assert_eq!(start_all_deliveries(&mut scheduler, test_time(29)), []);
        assert_eq!(start_all_deliveries(&mut scheduler, test_time(30)).len(), 1);
        scheduler.finish(delivery_key(1, "a"), NextTryTime::Done);
        assert_eq!(
            start_all_deliveries(&mut scheduler, test_time(30)),
            [delivery_key(1, "b"), delivery_key(1, "c")],
            "the probe succeeded"
        );
    }

    #[test]
    fn delivery_in_progress_is_not_started_twice_and_waiting_deliveries_keep_the_pause_of_their_endpoint() {
        let mut scheduler = DeliveryScheduler::new(LIMITS);
        scheduler.add(test_time(0), delivery_key(1, "a"));
        assert_eq!(scheduler.start_next(test_time(0)), Some(delivery_key(1, "a")));
        scheduler.add(test_time(1), delivery_key(1, "a"));
        assert_eq!(scheduler.start_next(test_time(1)), None);
        scheduler.add(test_time(1), delivery_key(2, "b"));
        scheduler.finish(delivery_key(1, "a"), NextTryTime::EndpointWaits(test_time(7)));
        assert_eq!(
            scheduler.take_waiting(),
            [
                (test_time(7), delivery_key(1, "a")),
                (test_time(7), delivery_key(1, "a")),
                (test_time(1), delivery_key(2, "b"))
            ],
            "the times of the tries"
        );
        assert_eq!(scheduler.take_waiting(), []);
    }
}
