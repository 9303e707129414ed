//! The timetable of the daily runs: one run at the billing time and one run two hours later, in the billing time zone.
//! On AWS, EventBridge Scheduler starts these runs.

use std::ops::RangeInclusive;

use chrono::{DateTime, Days, NaiveDate, NaiveTime, TimeDelta, Utc};
use chrono_tz::Tz;

/// The time between the two runs of a day. The second run processes the rows that the first run left unfinished.
pub const SECOND_RUN_DELAY: TimeDelta = TimeDelta::hours(2);

/// The hours in which a run may start. No time zone skips a time in these hours when its clocks are set forward: see the
/// test below. A run whose time was skipped would not start on AWS ("Daylight savings time on EventBridge Scheduler" in
/// its documentation).
pub const RUN_HOURS: RangeInclusive<u32> = 4..=21;

/// Returns the instants of the two runs of a day. The times of both runs must be in the [`RUN_HOURS`].
pub fn batch_run_times_on(day: NaiveDate, billing_time: NaiveTime, zone: Tz) -> [DateTime<Utc>; 2] {
    [billing_time, billing_time + SECOND_RUN_DELAY].map(|time| {
        let local = day.and_time(time);
        // The times of the runs exist on every day in every time zone. If a time occurs twice on a day, the run starts at
        // the first occurrence.
        local.and_local_timezone(zone).earliest().map_or_else(|| local.and_utc(), |instant| instant.with_timezone(&Utc))
    })
}

/// Returns the instant of the first run after `now`.
pub fn next_run_time(now: DateTime<Utc>, billing_time: NaiveTime, zone: Tz) -> DateTime<Utc> {
    let today = now.with_timezone(&zone).date_naive();
    let days = [Some(today), today.checked_add_days(Days::new(1)), today.checked_add_days(Days::new(2))];
    let runs = days.into_iter().flatten().flat_map(|day| batch_run_times_on(day, billing_time, zone));
    runs.into_iter().find(|run| *run > now).unwrap_or(now + TimeDelta::days(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::{Offset as _, TimeZone as _};

    /// Returns the days from 2020 to 2040 on which the offset of `zone` from UTC changes, and the days before and after
    /// them. On other days no time is skipped.
    fn days_near_changes(zone: Tz) -> Vec<NaiveDate> {
        let first = NaiveDate::from_ymd_opt(2020, 1, 1).unwrap();
        let days: Vec<_> =
            first.iter_days().take_while(|day| *day < NaiveDate::from_ymd_opt(2041, 1, 1).unwrap()).collect();
        let offset = |day: &NaiveDate| zone.offset_from_utc_datetime(&day.and_time(NaiveTime::MIN)).fix();
        let offsets: Vec<_> = days.iter().map(offset).collect();
        let near = (0..days.len()).filter(|index| {
            let around = &offsets[index.saturating_sub(2)..(index + 3).min(offsets.len())];
            around.iter().any(|offset| *offset != around[0])
        });
        near.map(|index| days[index]).collect()
    }

    #[test]
    fn both_runs_of_each_day_start_at_their_local_time_in_every_time_zone() {
        let (first, last) = (*RUN_HOURS.start(), *RUN_HOURS.end());
        // On AWS, the payments start half an hour after the reminders.
        let minutes = [0, 30, 59];
        let times =
            (first..=last - 2).flat_map(|hour| minutes.map(|minute| NaiveTime::from_hms_opt(hour, minute, 0).unwrap()));
        let (times, mut checked) = (times.collect::<Vec<_>>(), 0);
        for zone in chrono_tz::TZ_VARIANTS {
            for day in days_near_changes(zone) {
                for time in &times {
                    let started =
                        batch_run_times_on(day, *time, zone).map(|run| run.with_timezone(&zone).naive_local());
                    assert_eq!(started, [day.and_time(*time), day.and_time(*time + SECOND_RUN_DELAY)], "{zone}");
                    checked += 1;
                }
            }
        }
        assert!(checked > 1_000_000, "{checked}");
    }

    #[test]
    fn run_hours_are_as_many_as_possible() {
        let skips = |zone: Tz, day: &str, hour| {
            let day: NaiveDate = day.parse().unwrap();
            let local = day.and_hms_opt(hour, 0, 0).unwrap();
            zone.from_local_datetime(&local).earliest().is_none()
        };
        assert!(skips(Tz::Antarctica__Casey, "2021-10-03", RUN_HOURS.start() - 1));
        assert!(skips(Tz::Pacific__Easter, "2026-09-05", RUN_HOURS.end() + 1));
        assert!(skips(Tz::America__Nuuk, "2027-03-27", RUN_HOURS.end() + 2));
    }

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
