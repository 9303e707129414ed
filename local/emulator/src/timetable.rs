//! The timetable of the daily runs: one run at the billing time and one run two hours later, in the billing time zone.
//! On AWS, EventBridge Scheduler starts these runs.

use chrono::{DateTime, Days, NaiveDate, NaiveTime, TimeDelta, Utc};
use chrono_tz::Tz;

/// The time between the two runs of a day. The second run processes the rows that the first run left unfinished.
pub const SECOND_RUN_DELAY: TimeDelta = TimeDelta::hours(2);

/// Returns the instants of the two runs of a day.
pub fn run_times_on(day: NaiveDate, billing_time: NaiveTime, zone: Tz) -> [DateTime<Utc>; 2] {
    [billing_time, billing_time + SECOND_RUN_DELAY].map(|time| {
        let local = day.and_time(time);
        // The billing time exists on every day in every time zone. If it occurs twice on a day, the run starts at the
        // first occurrence.
        local.and_local_timezone(zone).earliest().map_or_else(|| local.and_utc(), |instant| instant.with_timezone(&Utc))
    })
}

/// Returns the instant of the first run after `now`.
pub fn next_run_time(now: DateTime<Utc>, billing_time: NaiveTime, zone: Tz) -> DateTime<Utc> {
    let today = now.with_timezone(&zone).date_naive();
    let days = [Some(today), today.checked_add_days(Days::new(1)), today.checked_add_days(Days::new(2))];
    let runs = days.into_iter().flatten().flat_map(|day| run_times_on(day, billing_time, zone));
    runs.into_iter().find(|run| *run > now).unwrap_or(now + TimeDelta::days(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_run_time_returns_the_time_of_the_next_daily_run() {
        let time = NaiveTime::from_hms_opt(6, 0, 0).unwrap();
        for (now, zone, expected) in [
            ("2026-03-10T05:59:59Z", Tz::UTC, "2026-03-10T06:00:00Z"),
            ("2026-03-10T06:00:00Z", Tz::UTC, "2026-03-10T08:00:00Z"),
            ("2026-03-10T08:00:00Z", Tz::UTC, "2026-03-11T06:00:00Z"),
            // On 29 March 2026, daylight saving time begins in Berlin. On 1 November 2026, it ends in New York.
            ("2026-03-28T12:00:00Z", Tz::Europe__Berlin, "2026-03-29T04:00:00Z"),
            ("2026-03-28T04:00:00Z", Tz::Europe__Berlin, "2026-03-28T05:00:00Z"),
            ("2026-11-01T05:30:00Z", Tz::America__New_York, "2026-11-01T11:00:00Z"),
        ] {
            let next = next_run_time(now.parse().unwrap(), time, zone);
            assert_eq!(next, expected.parse::<DateTime<Utc>>().unwrap(), "{now} {zone}");
        }
    }
}
