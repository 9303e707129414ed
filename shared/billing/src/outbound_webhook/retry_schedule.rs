//! The schedule of the retries of a webhook delivery, and the age after which a delivery fails.

use chrono::TimeDelta;

/// The waiting times after the first, second and each further failed try of a webhook delivery: three days in total.
/// The Standard Webhooks specification recommends this schedule.
pub const RETRY_DELAYS: [TimeDelta; 9] = [
    TimeDelta::seconds(5),
    TimeDelta::minutes(5),
    TimeDelta::minutes(30),
    TimeDelta::hours(2),
    TimeDelta::hours(5),
    TimeDelta::hours(10),
    TimeDelta::hours(14),
    TimeDelta::hours(20),
    TimeDelta::hours(24),
];

/// The longest waiting time that an endpoint can request with the header `Retry-After`. A longer time counts as this time,
/// so that a wrong header cannot stop the deliveries to the endpoint.
pub const MAX_RETRY_AFTER: TimeDelta = TimeDelta::hours(24);

/// The age after which a pending delivery fails instead of being postponed again. The age is counted from the time at
/// which the delivery was created or last restarted. This limit is longer than all [`RETRY_DELAYS`] together. Without
/// the limit, a delivery to an endpoint that is in back-off could wait for ever.
pub const MAX_DELIVERY_AGE: TimeDelta = TimeDelta::days(4);
