//! What all functions read of their environment, together: a machine that does the work of all of them reads it once.

use chrono::TimeDelta;
use config::{BillingConfig, ConfigError, Env, Variable};
use gateways::GatewayChoice;
use mail::{MAIL_FROM, Merchant, Outbox};
use payments::ChargeConfig;
use store::TableConfig;
use sweep::Limits;

/// The settings of all functions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    pub table: TableConfig,
    pub billing: BillingConfig,
    /// Who mails and receipts are from.
    pub merchant: Merchant,
    pub limits: Limits,
    pub charging: ChargeConfig,
}

/// The variables of all functions, in the order in which help shows them.
pub fn variables() -> impl Iterator<Item = &'static Variable> {
    [
        store::VARIABLES,
        config::VARIABLES,
        mail::VARIABLES,
        sweep::VARIABLES,
        payments::VARIABLES,
        gateways::VARIABLES,
        delivery::VARIABLES,
        orders::VARIABLES,
    ]
    .into_iter()
    .flatten()
}

impl Config {
    /// Reads it from `env`.
    ///
    /// # Errors
    /// [`ConfigError`], naming the first variable that is wrong and what is allowed.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        let billing = BillingConfig::read(env)?;
        Ok(Self {
            table: TableConfig::read(env)?,
            merchant: Merchant::read(env)?,
            limits: Limits::read(env, billing.zone)?,
            charging: ChargeConfig::read(env)?,
            billing,
        })
    }

    /// What the payments API is made of.
    pub fn of_api(&self) -> (&TableConfig, BillingConfig, Merchant) {
        (&self.table, self.billing.clone(), self.merchant.clone())
    }

    /// What the receiver of Stripe's events is made of.
    pub fn of_webhooks(&self) -> (&BillingConfig, TimeDelta) {
        (&self.billing, self.charging.lease)
    }

    /// What is wrong with `text` as the value of `variable`, and what is allowed.
    ///
    /// # Errors
    /// The same words in which a function would refuse it.
    pub fn check(variable: &Variable, text: &str) -> Result<(), String> {
        let env = Env(&|name| (name == variable.name).then(|| text.to_owned()));
        let checked = Self::read(env).and_then(|_| GatewayChoice::read_if_given(env)).and_then(|_| {
            env.read_given(&MAIL_FROM, |from| Outbox::new("", from).map(drop).map_err(|error| error.reason))
        });
        checked.map(drop).map_err(|error| match error {
            ConfigError::Invalid { reason, .. } => reason,
            missing @ ConfigError::Missing { .. } => missing.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use billing::Policy;
    use chrono_tz::Tz;

    use super::*;

    fn read(name: &'static str, value: &str) -> Result<Config, ConfigError> {
        Config::read(Env(&|asked| (asked == name).then(|| value.to_owned())))
    }

    #[test]
    fn read_takes_the_default_of_what_is_not_set() {
        let Config { table, billing, charging, .. } = read("DUEDAY_TABLE", " ").unwrap();
        assert_eq!((table.name.as_str(), billing.zone, table.endpoint), ("dueday", Tz::UTC, None));
        assert_eq!(billing.policy, Policy::default());
        assert_eq!((table.receipts_kept, charging.lease), (TimeDelta::days(190), TimeDelta::minutes(20)));
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
            let variable = variables().find(|variable| variable.name == name).unwrap();
            assert_eq!(format!("{name} {}", Config::check(variable, value).unwrap_err()), error);
        }
    }

    #[test]
    fn check_refuses_a_sender_that_is_none() {
        assert!(Config::check(&MAIL_FROM, "nonsense").unwrap_err().contains("must be an address"));
        assert_eq!(Config::check(&MAIL_FROM, "Shop <billing@example.com>"), Ok(()));
    }

    #[test]
    fn every_default_is_allowed() {
        for variable in variables() {
            let checked = variable.default.map_or(Ok(()), |default| Config::check(variable, default));
            assert_eq!(checked, Ok(()), "{}", variable.name);
        }
    }
}
