//! What of a gateway's list of payments concerns one attempt.

use billing::{Attempt, Payment, Period, Subscription, successes};
use chrono::{DateTime, NaiveTime, TimeDelta, Utc};

/// Look-ups begin this long before the due date, for zones and for clocks that differ.
const LOOK_BACK: TimeDelta = TimeDelta::days(1);

/// Since when payments of the period of `attempt` may have been made, those of earlier attempts among them.
pub fn payments_since(attempt: &Attempt) -> DateTime<Utc> {
    attempt.due_on.and_time(NaiveTime::MIN).and_utc().min(attempt.claimed_at) - LOOK_BACK
}

/// That a period was paid more than once, if it was.
pub fn paid_twice(subscription: &Subscription, attempt: &Attempt, known: &[Payment]) -> Option<String> {
    let made: Vec<String> =
        successes(subscription, attempt, known).iter().map(|payment| payment.id.to_string()).collect();
    let month = Period::of(attempt.due_on);
    (made.len() > 1)
        .then(|| format!("{month} was paid more than once, by {}: refund all but the first", made.join(", ")))
}
