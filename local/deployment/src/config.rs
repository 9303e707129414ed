//! The settings of all Lambda functions, for a deployment in one process.

use charging::ChargeConfig;
use config::{ConfigError, Env, EnvVariable};
use gateways::GatewayChoice;
use mail::{MAIL_FROM, MERCHANT, Merchant, Outbox};
use store::TableConfig;
use sweep::RunLimits;

/// The settings of the Lambda functions, collected in one struct for a deployment in one process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeploymentConfig {
    pub table: TableConfig,
    /// The sender of mails and the issuer of receipts.
    pub merchant: Merchant,
    /// The limits of the batches.
    pub limits: RunLimits,
    pub charging: ChargeConfig,
}

/// Returns each environment variable that at least one Lambda function reads, in the order of the help text of
/// `dueday`.
pub fn environment_variables() -> impl Iterator<Item = &'static EnvVariable> {
    [
        store::VARIABLES,
        config::VARIABLES,
        mail::VARIABLES,
        sweep::VARIABLES,
        charging::VARIABLES,
        gateways::VARIABLES,
        publishing::VARIABLES,
        outbound::VARIABLES,
        encryption::VARIABLES,
        orders_table::VARIABLES,
        sandbox::VARIABLES,
    ]
    .into_iter()
    .flatten()
}

/// The merchant's name in a local installation if no name is configured. This default never reaches customers: if
/// `DUEDAY_MAIL_URL` is the URL of a mail service, the command `dueday` requires a configured name. A Lambda function
/// has no default and requires the name.
pub const EXAMPLE_MERCHANT: &str = "Example Shop";

/// Returns the default value of `variable` if it is the variable of the merchant's name.
fn default_merchant_name(variable: &str) -> Option<String> {
    (variable == MERCHANT.name).then(|| EXAMPLE_MERCHANT.to_owned())
}

impl DeploymentConfig {
    /// Reads the settings from `env`.
    ///
    /// # Errors
    /// [`ConfigError`] with the first invalid or missing variable and its allowed values.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        let table = TableConfig::read(env)?;
        table.configured_policy.valid_policy()?;
        Ok(Self {
            table,
            merchant: Merchant::read(Env(&|name| env.0(name).or_else(|| default_merchant_name(name))))?,
            limits: RunLimits::read(env)?,
            charging: ChargeConfig::read(env)?,
        })
    }

    /// Checks whether `text` is a valid value of `variable`.
    ///
    /// # Errors
    /// Returns a text that states why the value is invalid, and the allowed values. A Lambda function that reads the
    /// variable fails with the same text.
    pub fn check_value(variable: &EnvVariable, text: &str) -> Result<(), String> {
        let env = Env(&|name| (name == variable.name).then(|| text.to_owned()));
        let checked = Self::read(env).and_then(|_| GatewayChoice::read_if_set(env)).and_then(|_| {
            env.read_optional(&MAIL_FROM, |from| Outbox::new("", from).map(drop).map_err(|error| error.reason))
        });
        checked.map(drop).map_err(|error| match error {
            ConfigError::Invalid { reason, .. } => reason,
            missing @ ConfigError::Missing { .. } => missing.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use config::ConfiguredPolicy;

    use super::*;

    /// Reads the settings from an environment that contains only the variable `name` with the value `value`.
    fn read_config_with_variable(name: &'static str, value: &str) -> Result<DeploymentConfig, ConfigError> {
        DeploymentConfig::read(Env(&|asked| (asked == name).then(|| value.to_owned())))
    }

    #[test]
    fn read_uses_the_default_of_a_variable_that_is_not_set() {
        let DeploymentConfig { table, .. } = read_config_with_variable("DUEDAY_TABLE", " ").unwrap();
        assert_eq!((table.name.as_str(), table.endpoint), ("dueday", None));
        assert_eq!(table.configured_policy, ConfiguredPolicy::default());
    }

    #[test]
    fn read_returns_an_error_with_the_variable_and_its_allowed_values() {
        for (name, value, expected) in [
            ("DUEDAY_TIME_ZONE", "Mars/Olympus", "must be an IANA time zone like Europe/Berlin, not \"Mars/Olympus\""),
            ("DUEDAY_REMINDER_LEAD_DAYS", "28", "must be a whole number from 0 to 27, not \"28\""),
            ("DUEDAY_RETRY_GAPS", "0,1", "each at least 1"),
            ("DUEDAY_AFTER_LAST_RETRY", "give_up", "unpaid or cancelled"),
            ("DUEDAY_CATCH_UP", "all", "must be each or latest"),
            ("DUEDAY_AFTER_WON_DISPUTE", "owe", "must be waive or charge, not \"owe\""),
            ("DUEDAY_SHARDS", "x", "must be a whole number from 1 to 1000, not \"x\""),
        ] {
            let error = read_config_with_variable(name, value).unwrap_err().to_string();
            assert!(error.starts_with(name) && error.contains(expected), "{name}={value}: {error}");
            let variable = environment_variables().find(|variable| variable.name == name).unwrap();
            assert_eq!(format!("{name} {}", DeploymentConfig::check_value(variable, value).unwrap_err()), error);
        }
    }

    #[test]
    fn read_refuses_a_variable_that_is_now_a_setting() {
        let error = read_config_with_variable("DUEDAY_MAX_CHARGES", "100").unwrap_err().to_string();
        assert_eq!(
            error,
            "DUEDAY_MAX_CHARGES is not read any more: unset it, and use `dueday settings set max-charges VALUE`"
        );
    }

    #[test]
    fn check_refuses_an_invalid_mail_sender() {
        assert!(DeploymentConfig::check_value(&MAIL_FROM, "nonsense").unwrap_err().contains("must be an address"));
        assert_eq!(DeploymentConfig::check_value(&MAIL_FROM, "Shop <billing@example.com>"), Ok(()));
    }

    #[test]
    fn every_default_value_is_valid() {
        for variable in environment_variables() {
            let checked = variable.default.map_or(Ok(()), |default| DeploymentConfig::check_value(variable, default));
            assert_eq!(checked, Ok(()), "{}", variable.name);
        }
    }
}
