//! Functions for the look-up of one attempt in the gateway's list of the customer's payments.

use billing::{Attempt, Payment, Period, Subscription, successful_payments};
use chrono::{DateTime, NaiveTime, TimeDelta, Utc};

/// The margin before the due date or the claim of an attempt (whichever is earlier), from which a look-up of the
/// attempt lists payments. The margin is necessary because time zones and clocks differ.
const LIST_START_MARGIN: TimeDelta = TimeDelta::days(1);

/// Returns the time from which a look-up of `attempt` must list payments. All payments of the period of `attempt`, also
/// those of earlier attempts, were made after this time.
pub fn payments_since(attempt: &Attempt) -> DateTime<Utc> {
    attempt.due_on.and_time(NaiveTime::MIN).and_utc().min(attempt.claimed_at) - LIST_START_MARGIN
}

/// Returns a message for the operator if `listed`, the gateway's list, contains more than one successful payment of the
/// period of `attempt`; otherwise `None`.
pub fn describe_double_payment(subscription: &Subscription, attempt: &Attempt, listed: &[Payment]) -> Option<String> {
    let made: Vec<String> =
        successful_payments(subscription, attempt, listed).iter().map(|payment| payment.id.to_string()).collect();
    let month = Period::from_day(attempt.due_on);
    (made.len() > 1)
        .then(|| format!("{month} was paid more than once, by {}: refund all except the first", made.join(", ")))
}
