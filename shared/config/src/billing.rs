//! The billing settings: the billing time zone, which determines the current date, the policy (the merchant's settings
//! for retries, reminders, outages, pauses and disputes), and the duration of a lease.

use std::str::FromStr;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;

use super::variable::ReadBy::Every;
use super::{ConfigError, Env, Variable};
use crate::variables;
use billing::{LeadDays, Policy};

variables! {
    TIME_ZONE = Variable::new(&[Every], "DUEDAY_TIME_ZONE", "ZONE", "The billing time zone, an IANA name")
        .default("UTC").common_flag("time-zone");
    REMINDER_LEAD_DAYS = Variable::new(&[Every], "DUEDAY_REMINDER_LEAD_DAYS", "DAYS",
        "Days from the reminder to the due date")
        .in_range(0, billing::LeadDays::MAX_DAYS).default("7").common_flag("reminder-lead-days");
    RETRY_GAPS = Variable::new(&[Every], "DUEDAY_RETRY_GAPS", "GAPS", "Days from each soft decline to the next try")
        .default("1,2,2,2").rare_flag("retry-gaps");
    AFTER_LAST_RETRY = Variable::new(&[Every], "DUEDAY_AFTER_LAST_RETRY", "STATUS",
        "Status of a subscription after the last retry was declined: unpaid or cancelled")
        .default("unpaid").rare_flag("after-last-retry");
    CATCH_UP = Variable::new(&[Every], "DUEDAY_CATCH_UP", "WHICH",
        "After an outage that missed several months: charge each of them, or only the latest")
        .default("each").rare_flag("catch-up");
    RESUME = Variable::new(&[Every], "DUEDAY_RESUME", "WHICH",
        "After a pause: charge the last payment that fell due during the pause, or wait for the next due date")
        .default("charge").rare_flag("resume");
    AFTER_WON_DISPUTE = Variable::new(&[Every], "DUEDAY_AFTER_WON_DISPUTE", "WHICH",
        "After a won dispute: waive the payments that fell due during the dispute, or charge them")
        .default("waive").rare_flag("after-won-dispute");
    LEASE_MINUTES = Variable::new(&[Every], "DUEDAY_LEASE_MINUTES", "MINUTES",
        "Minutes after which another worker may take over an attempt that a worker has claimed")
        .in_range(10, 1_440).default("20").rare_flag("lease-minutes");
}

/// The billing settings of one installation of Dueday.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BillingConfig {
    /// The billing time zone, from `DUEDAY_TIME_ZONE`.
    pub zone: Tz,
    /// The merchant's settings for billing, from `DUEDAY_REMINDER_LEAD_DAYS`, `DUEDAY_RETRY_GAPS`,
    /// `DUEDAY_AFTER_LAST_RETRY`, `DUEDAY_CATCH_UP`, `DUEDAY_RESUME` and `DUEDAY_AFTER_WON_DISPUTE`.
    pub policy: Policy,
    /// How long a worker leases an attempt that it has claimed, from `DUEDAY_LEASE_MINUTES`.
    pub lease: TimeDelta,
}

impl BillingConfig {
    /// Reads the settings from `env`.
    ///
    /// # Errors
    /// [`ConfigError`] for the first invalid variable.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        Ok(Self {
            zone: env.read(&TIME_ZONE, |text| {
                text.parse().map_err(|_| format!("must be an IANA time zone like Europe/Berlin, not {text:?}"))
            })?,
            policy: Policy {
                dunning: env.read(&RETRY_GAPS, FromStr::from_str)?,
                after_last_retry: env.read(&AFTER_LAST_RETRY, FromStr::from_str)?,
                catch_up: env.read(&CATCH_UP, FromStr::from_str)?,
                on_resume: env.read(&RESUME, FromStr::from_str)?,
                after_won_dispute: env.read(&AFTER_WON_DISPUTE, FromStr::from_str)?,
                lead: LeadDays::new(env.number(&REMINDER_LEAD_DAYS)?).unwrap_or_default(),
            },
            lease: TimeDelta::minutes(env.number(&LEASE_MINUTES)?.into()),
        })
    }

    /// Returns the date of `instant` in the billing time zone.
    pub fn date_at(&self, instant: DateTime<Utc>) -> NaiveDate {
        instant.with_timezone(&self.zone).date_naive()
    }
}
