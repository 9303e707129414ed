//! The settings of the functions: every environment variable, read once into typed values. One that is set but wrong is an
//! error that names the variable and says what is allowed.

mod env;
mod variables;

use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

use aws_config::stalled_stream_protection::StalledStreamProtectionConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, SdkConfig};
use chrono::TimeDelta;
use chrono_tz::Tz;

use crate::billing::{Ceilings, ContactError, Label, LeadDays, Policy};
use crate::clock::Clock;
use crate::mail::{Merchant, Outbox};
use crate::sweep::Limits;
use crate::table::{Settings, Table};

pub use env::{ConfigError, Env, GatewayChoice};
use env::{number, web_address};
pub use variables::*;

impl Variable {
    /// What is wrong with `text` as its value, and what is allowed.
    ///
    /// # Errors
    /// The same words in which a function would refuse it.
    pub fn check(&self, text: &str) -> Result<(), String> {
        let env = Env(&|name| (name == self.name).then(|| text.to_owned()));
        let checked = Config::read(env).and_then(|_| match env.given(self) {
            Some(_) if self.name == GATEWAY.name => env.gateway().map(drop),
            Some(_) if self.name == MAIL_FROM.name => {
                env.read(self, |from| Outbox::new("", from).map(drop).map_err(|error| error.reason))
            }
            _ => Ok(()),
        });
        checked.map_err(|error| match error {
            ConfigError::Invalid { reason, .. } => reason,
            missing @ ConfigError::Missing { .. } => missing.to_string(),
        })
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
    /// `DUEDAY_REMINDER_LEAD_DAYS`, `DUEDAY_RETRY_GAPS`, `DUEDAY_AFTER_LAST_RETRY`, `DUEDAY_CATCH_UP`,
    /// `DUEDAY_RESUME`, `DUEDAY_AFTER_WON_DISPUTE`.
    pub policy: Policy,
    /// Who mails and receipts are from.
    pub merchant: Merchant,
    /// `DUEDAY_RECEIPT_DAYS`: how long receipts and records are kept.
    pub receipts_kept: TimeDelta,
    /// `DUEDAY_LEASE_MINUTES`: how long a claimed attempt belongs to its worker.
    pub lease: TimeDelta,
    /// `DUEDAY_CONCURRENCY`, `DUEDAY_PAGE_ROWS`.
    pub concurrency: u32,
    pub page_rows: u32,
    /// `DUEDAY_MAX_CHARGES`, `DUEDAY_MAX_SUMS`: a day of more is not begun.
    pub ceilings: Ceilings,
    /// `DUEDAY_MAX_PROCESSING_DAYS`: how long a bank debit may be processing before a run reports it as failed.
    pub max_processing: TimeDelta,
    /// `DUEDAY_GATEWAY_FAILURES`: a run stops after so many requests to the gateway in a row without an answer.
    pub gateway_failures: u32,
    /// `DUEDAY_GATEWAY_RATE`: requests per second; `None` is without limit.
    pub gateway_rate: Option<NonZeroU32>,
}

impl Config {
    /// Reads what every function needs.
    ///
    /// # Errors
    /// [`ConfigError`], naming the first variable that is wrong and what is allowed.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        Ok(Self {
            table: env.text(&TABLE)?,
            endpoint: env.given(&ENDPOINT),
            zone: env.read(&TIME_ZONE, |text| {
                text.parse().map_err(|_| format!("must be an IANA time zone like Europe/Berlin, not {text:?}"))
            })?,
            initial_shards: env.number(&SHARDS)?,
            policy: Policy {
                dunning: env.read(&RETRY_GAPS, FromStr::from_str)?,
                after_last_retry: env.read(&AFTER_LAST_RETRY, FromStr::from_str)?,
                catch_up: env.read(&CATCH_UP, FromStr::from_str)?,
                on_resume: env.read(&RESUME, FromStr::from_str)?,
                after_won_dispute: env.read(&AFTER_WON_DISPUTE, FromStr::from_str)?,
                lead: LeadDays::new(env.number(&REMINDER_LEAD_DAYS)?).unwrap_or_default(),
            },
            merchant: Merchant {
                name: env.text(&MERCHANT)?,
                postal_address: env.read_given(&MERCHANT_ADDRESS, line)?,
                tax_id: env.read_given(&MERCHANT_TAX_ID, line)?,
                logo_url: env.read_given(&MERCHANT_LOGO, web_address)?,
                support_email: env.read_given(&SUPPORT_EMAIL, FromStr::from_str)?,
                reply_to: env.read_given(&REPLY_TO, FromStr::from_str)?,
                account_url: env.read_given(&ACCOUNT_URL, web_address)?,
            },
            receipts_kept: TimeDelta::days(env.number(&RECEIPT_DAYS)?.into()),
            lease: TimeDelta::minutes(env.number(&LEASE_MINUTES)?.into()),
            concurrency: env.number(&CONCURRENCY)?,
            page_rows: env.number(&PAGE_ROWS)?,
            ceilings: Ceilings {
                charges: env.read_given(&MAX_CHARGES, |text| number(&MAX_CHARGES, text))?.map(u64::from),
                sums: env.read_given(&MAX_SUMS, FromStr::from_str)?.unwrap_or_default(),
            },
            max_processing: TimeDelta::days(env.number(&MAX_PROCESSING_DAYS)?.into()),
            gateway_failures: env.number(&GATEWAY_FAILURES)?,
            gateway_rate: NonZeroU32::new(env.number(&GATEWAY_RATE)?),
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
        Settings {
            shards: self.initial_shards,
            charging: true,
            table_id: clock.ulid(),
            gateway: None,
            latest_run_at: None,
        }
    }

    /// The SDK's settings: the region and the credentials that the machine has.
    pub async fn sdk(&self) -> SdkConfig {
        aws_config::defaults(BehaviorVersion::latest())
            .timeout_config(timeouts())
            // It watches over long bodies. Ours are short, and each try has its time.
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .load()
            .await
    }

    /// The table, over a client with the credentials the machine has.
    pub async fn connect(&self) -> Table {
        self.over(&self.sdk().await)
    }

    /// The table, over a client of `sdk`.
    pub fn over(&self, sdk: &SdkConfig) -> Table {
        Table::new(self.dynamodb(sdk), &self.table, self.receipts_kept)
    }

    /// A client of `sdk`, for DynamoDB where it answers.
    pub fn dynamodb(&self, sdk: &SdkConfig) -> aws_sdk_dynamodb::Client {
        let mut config = aws_sdk_dynamodb::config::Builder::from(sdk);
        if let Some(endpoint) = &self.endpoint {
            config = config.endpoint_url(endpoint);
        }
        aws_sdk_dynamodb::Client::from_conf(config.build())
    }
}

/// One line that customers read.
fn line(text: &str) -> Result<String, ContactError> {
    text.parse::<Label>().map(String::from)
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
    fn read_takes_the_default_of_what_is_not_set() {
        let config = read("DUEDAY_TABLE", " ").unwrap();
        assert_eq!((config.table.as_str(), config.zone, config.endpoint), ("dueday", Tz::UTC, None));
        assert_eq!(config.policy, Policy::default());
        assert_eq!((config.receipts_kept, config.lease), (TimeDelta::days(190), TimeDelta::minutes(20)));
    }

    #[test]
    fn read_names_what_is_wrong_and_says_what_is_allowed() {
        for (name, value, said) in [
            ("DUEDAY_TIME_ZONE", "Mars/Olympus", "must be an IANA time zone like Europe/Berlin, not \"Mars/Olympus\""),
            ("DUEDAY_REMINDER_LEAD_DAYS", "28", "must be a whole number from 0 to 27, not \"28\""),
            ("DUEDAY_RETRY_GAPS", "0,1", "each at least 1"),
            ("DUEDAY_AFTER_LAST_RETRY", "give_up", "unpaid or cancelled"),
            ("DUEDAY_MAX_SUMS", "EUR 5", "must be amounts by currency like EUR=100000.00"),
            ("DUEDAY_MAX_CHARGES", "many", "must be a whole number from 0 to 4294967295, not \"many\""),
            ("DUEDAY_CATCH_UP", "all", "must be each or latest"),
            ("DUEDAY_AFTER_WON_DISPUTE", "owe", "must be waive or charge, not \"owe\""),
            ("DUEDAY_MAX_PROCESSING_DAYS", "0", "must be a whole number from 1 to 60, not \"0\""),
            ("DUEDAY_SHARDS", "x", "must be a whole number from 1 to 1000, not \"x\""),
            ("DUEDAY_LEASE_MINUTES", "5", "must be a whole number from 10 to 1440, not \"5\""),
        ] {
            let error = read(name, value).unwrap_err().to_string();
            assert!(error.starts_with(name) && error.contains(said), "{name}={value}: {error}");
            let variable = VARIABLES.iter().find(|variable| variable.name == name).unwrap();
            assert_eq!(format!("{name} {}", variable.check(value).unwrap_err()), error);
        }
    }

    #[test]
    fn check_refuses_a_gateway_and_a_sender_that_are_none() {
        for url in
            ["127.0.0.1:7879", "http://me:secret@127.0.0.1", "http://127.0.0.1:78790", "ftp://127.0.0.1", "http://a?b"]
        {
            let refused = GATEWAY.check(url).unwrap_err();
            assert!(
                refused.starts_with("must be stripe, or a URL like") && !refused.contains("secret"),
                "{url}: {refused}"
            );
        }
        assert_eq!(GATEWAY.check("http://127.0.0.1:7879/"), Ok(()));
        assert_eq!(GATEWAY.check("stripe"), Ok(()));
        for key in ["", "pk_test_published", "secret"] {
            let refused = Env(&|_| None)
                .stripe((&STRIPE_SECRET_KEY, key), std::time::Duration::from_secs(1))
                .unwrap_err()
                .to_string();
            assert!(refused.starts_with("STRIPE_SECRET_KEY must be") && !refused.contains("publ"), "{refused}");
        }
        assert!(MAIL_FROM.check("nonsense").unwrap_err().contains("must be an address"));
        assert_eq!(MAIL_FROM.check("Shop <billing@example.com>"), Ok(()));
    }

    #[test]
    fn every_default_is_allowed() {
        for variable in VARIABLES {
            assert_eq!(variable.default.map_or(Ok(()), |default| variable.check(default)), Ok(()), "{}", variable.name);
        }
    }
}
