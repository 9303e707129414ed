//! Every environment variable, parsed once, typed. A value that is set but wrong is an error that names the variable.

use std::num::NonZeroU32;
use std::str::FromStr;

use aws_config::BehaviorVersion;
use aws_config::timeout::TimeoutConfig;
use chrono::TimeDelta;
use chrono_tz::Tz;
use std::time::Duration;

use crate::billing::{Ceilings, LeadDays, Policy};
use crate::clock::Clock;
use crate::sweep::Limits;
use crate::table::{Settings, Table};

/// Environment variables, wherever they come from.
#[derive(Clone, Copy)]
pub struct Env<'a>(pub &'a (dyn Fn(&str) -> Option<String> + Sync));

/// A variable that is missing or wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("{name} must be set: {what}")]
    Missing { name: &'static str, what: &'static str },
    #[error("{name} {reason}")]
    Invalid { name: &'static str, reason: String },
}

impl Env<'_> {
    /// The process's own environment.
    pub fn process() -> Env<'static> {
        Env(&|name| std::env::var(name).ok())
    }

    /// The variable `name`; blank is absent.
    pub fn text(&self, name: &str) -> Option<String> {
        (self.0)(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    /// The variable `name`, which must be there.
    ///
    /// # Errors
    /// [`ConfigError::Missing`], which says `what` it is.
    pub fn required(&self, name: &'static str, what: &'static str) -> Result<String, ConfigError> {
        self.text(name).ok_or(ConfigError::Missing { name, what })
    }

    /// The variable `name` read as a `T`, or `default`.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`].
    pub fn parsed<T: FromStr<Err: std::fmt::Display>>(&self, name: &'static str, default: T) -> Result<T, ConfigError> {
        match self.text(name) {
            None => Ok(default),
            Some(text) => text
                .parse()
                .map_err(|error: T::Err| ConfigError::Invalid { name, reason: format!("{error} ({text:?})") }),
        }
    }

    fn whole(
        &self,
        name: &'static str,
        default: u32,
        allowed: std::ops::RangeInclusive<u32>,
    ) -> Result<u32, ConfigError> {
        let value = self.parsed(name, default)?;
        if allowed.contains(&value) {
            Ok(value)
        } else {
            Err(ConfigError::Invalid {
                name,
                reason: format!("must be from {} to {}, not {value}", allowed.start(), allowed.end()),
            })
        }
    }
}

/// What every function needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// `DUEDAY_TABLE`.
    pub table: String,
    /// `DUEDAY_DYNAMODB_ENDPOINT`; blank means AWS.
    pub endpoint: Option<String>,
    /// `DUEDAY_TIME_ZONE`: the billing time zone, an IANA name.
    pub zone: Tz,
    /// `DUEDAY_SHARDS`: only what a new table starts with; the settings are the truth.
    pub initial_shards: u32,
    /// `DUEDAY_REMINDER_LEAD_DAYS`, `DUEDAY_RETRY_GAPS`, `DUEDAY_AFTER_LAST_RETRY`, `DUEDAY_CATCH_UP`.
    pub policy: Policy,
    /// `DUEDAY_MERCHANT`: the name that mails and receipts are signed with.
    pub merchant: String,
    /// `DUEDAY_RECEIPT_DAYS`: how long receipts and records are kept.
    pub receipts_kept: TimeDelta,
    /// `DUEDAY_LEASE_MINUTES`: how long a claimed attempt belongs to its worker.
    pub lease: TimeDelta,
    /// `DUEDAY_CONCURRENCY`, `DUEDAY_PAGE_ROWS`.
    pub concurrency: u32,
    pub page_rows: u32,
    /// `DUEDAY_MAX_CHARGES`, `DUEDAY_MAX_SUMS`: a day of more is not begun.
    pub ceilings: Ceilings,
    /// `DUEDAY_GATEWAY_FAILURES`: a run stops after so many requests to the gateway in a row without an answer.
    pub gateway_failures: u32,
    /// `DUEDAY_GATEWAY_RATE`: charges per second; `None` is without limit.
    pub gateway_rate: Option<NonZeroU32>,
}

impl Config {
    /// Reads what every function needs.
    ///
    /// # Errors
    /// [`ConfigError`], naming the first variable that is wrong and what is allowed.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        let lead_days = env.whole("DUEDAY_REMINDER_LEAD_DAYS", 7, 0..=LeadDays::MAX)?;
        Ok(Self {
            table: env.parsed("DUEDAY_TABLE", "dueday".to_owned())?,
            endpoint: env.text("DUEDAY_DYNAMODB_ENDPOINT"),
            zone: env.parsed("DUEDAY_TIME_ZONE", Tz::UTC)?,
            initial_shards: env.whole("DUEDAY_SHARDS", 4, 1..=1_000)?,
            policy: Policy {
                dunning: env.parsed("DUEDAY_RETRY_GAPS", Default::default())?,
                after_last_retry: env.parsed("DUEDAY_AFTER_LAST_RETRY", Default::default())?,
                catch_up: env.parsed("DUEDAY_CATCH_UP", Default::default())?,
                lead: LeadDays::new(lead_days).unwrap_or_default(),
            },
            merchant: env.parsed("DUEDAY_MERCHANT", "Dueday".to_owned())?,
            receipts_kept: TimeDelta::days(env.whole("DUEDAY_RECEIPT_DAYS", 190, 1..=3_650)?.into()),
            lease: TimeDelta::minutes(env.whole("DUEDAY_LEASE_MINUTES", 20, 10..=1_440)?.into()),
            concurrency: env.whole("DUEDAY_CONCURRENCY", 16, 1..=256)?,
            page_rows: env.whole("DUEDAY_PAGE_ROWS", 200, 1..=1_000)?,
            ceilings: Ceilings {
                charges: env.text("DUEDAY_MAX_CHARGES").map(|_| env.parsed("DUEDAY_MAX_CHARGES", 0)).transpose()?,
                sums: env.parsed("DUEDAY_MAX_SUMS", Default::default())?,
            },
            gateway_failures: env.whole("DUEDAY_GATEWAY_FAILURES", 20, 1..=1_000)?,
            gateway_rate: NonZeroU32::new(env.whole("DUEDAY_GATEWAY_RATE", 25, 1..=10_000)?),
        })
    }

    /// How a sweep goes about its work.
    pub fn limits(&self) -> Limits {
        Limits {
            concurrency: usize::try_from(self.concurrency).unwrap_or(1),
            page_rows: i32::try_from(self.page_rows).unwrap_or(i32::MAX),
            zone: self.zone,
        }
    }

    /// What a new table's settings are.
    pub fn initial_settings(&self, clock: &dyn Clock) -> Settings {
        Settings { shards: self.initial_shards, charging: true, table_id: clock.ulid() }
    }

    /// The table, over a client with the credentials the machine has.
    pub async fn connect(&self) -> Table {
        let mut loader = aws_config::defaults(BehaviorVersion::latest()).timeout_config(timeouts());
        if let Some(endpoint) = &self.endpoint {
            loader = loader.endpoint_url(endpoint);
        }
        Table::new(aws_sdk_dynamodb::Client::new(&loader.load().await), &self.table, self.receipts_kept)
    }
}

/// The SDK has no operation, attempt or read time-out by default.
pub fn timeouts() -> TimeoutConfig {
    TimeoutConfig::builder()
        .connect_timeout(Duration::from_secs(2))
        .operation_attempt_timeout(Duration::from_secs(3))
        .operation_timeout(Duration::from_secs(10))
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &'static str, value: &str) -> Result<Config, ConfigError> {
        Config::read(Env(&|asked| (asked == name).then(|| value.to_owned())))
    }

    #[test]
    fn what_is_not_set_has_the_documented_default() {
        let config = read("DUEDAY_TABLE", " ").unwrap();
        assert_eq!((config.table.as_str(), config.zone, config.endpoint), ("dueday", Tz::UTC, None));
        assert_eq!(config.policy, Policy::default());
        assert_eq!((config.receipts_kept, config.lease), (TimeDelta::days(190), TimeDelta::minutes(20)));
    }

    #[test]
    fn what_is_wrong_is_named_with_what_is_allowed() {
        for (name, value, said) in [
            ("DUEDAY_TIME_ZONE", "Mars/Olympus", "DUEDAY_TIME_ZONE"),
            ("DUEDAY_REMINDER_LEAD_DAYS", "28", "must be from 0 to 27, not 28"),
            ("DUEDAY_RETRY_GAPS", "0,1", "each at least 1"),
            ("DUEDAY_AFTER_LAST_RETRY", "give_up", "unpaid or cancelled"),
            ("DUEDAY_MAX_SUMS", "EUR 5", "must be amounts by currency like EUR=100000.00"),
            ("DUEDAY_MAX_CHARGES", "many", "DUEDAY_MAX_CHARGES"),
            ("DUEDAY_CATCH_UP", "all", "must be each or latest"),
            ("DUEDAY_SHARDS", "x", "DUEDAY_SHARDS"),
            ("DUEDAY_LEASE_MINUTES", "5", "must be from 10 to 1440"),
        ] {
            let error = read(name, value).unwrap_err().to_string();
            assert!(error.starts_with(name) && error.contains(said), "{name}={value}: {error}");
        }
    }
}
