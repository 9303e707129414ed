//! The terms on which all customers are billed: the time zone whose date is today, and the policy.

use std::str::FromStr;

use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::Tz;

use super::variable::ReadBy::Every;
use super::{ConfigError, Env, Variable};
use crate::variables;
use billing::{LeadDays, Policy};

variables! {
    TIME_ZONE = Variable::new(&[Every], "DUEDAY_TIME_ZONE", "ZONE", "The billing time zone, an IANA name")
        .default("UTC").common("time-zone");
    REMINDER_LEAD_DAYS = Variable::new(&[Every], "DUEDAY_REMINDER_LEAD_DAYS", "DAYS", "Days from reminder to payment")
        .within(0, billing::LeadDays::MAX).default("7").common("reminder-lead-days");
    RETRY_GAPS = Variable::new(&[Every], "DUEDAY_RETRY_GAPS", "GAPS", "Days from each soft decline to the next try")
        .default("1,2,2,2").rare("retry-gaps");
    AFTER_LAST_RETRY = Variable::new(&[Every], "DUEDAY_AFTER_LAST_RETRY", "STATUS",
        "What a subscription becomes after the last retry: unpaid or cancelled").default("unpaid").rare("after-last-retry");
    CATCH_UP = Variable::new(&[Every], "DUEDAY_CATCH_UP", "WHICH",
        "Of several months that an outage has missed, charge each or only the latest").default("each").rare("catch-up");
    RESUME = Variable::new(&[Every], "DUEDAY_RESUME", "WHICH",
        "On resuming, charge the last payment that fell due in the pause, or wait for the next")
        .default("charge").rare("resume");
    AFTER_WON_DISPUTE = Variable::new(&[Every], "DUEDAY_AFTER_WON_DISPUTE", "WHICH",
        "After a won dispute, waive the periods that fell due during it, or charge them").default("waive").rare("after-won-dispute");
}

/// What the rules of billing are given by the deployment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BillingConfig {
    /// `DUEDAY_TIME_ZONE`: the billing time zone, an IANA name.
    pub zone: Tz,
    /// `DUEDAY_REMINDER_LEAD_DAYS`, `DUEDAY_RETRY_GAPS`, `DUEDAY_AFTER_LAST_RETRY`, `DUEDAY_CATCH_UP`,
    /// `DUEDAY_RESUME`, `DUEDAY_AFTER_WON_DISPUTE`.
    pub policy: Policy,
}

impl BillingConfig {
    /// Reads it from `env`.
    ///
    /// # Errors
    /// [`ConfigError`], naming the first variable that is wrong and what is allowed.
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
        })
    }

    /// The billing date at `instant`.
    pub fn date_at(&self, instant: DateTime<Utc>) -> NaiveDate {
        instant.with_timezone(&self.zone).date_naive()
    }
}
