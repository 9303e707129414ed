//! The configuration of the payment batch, from environment variables.

use std::num::NonZeroU32;

use billing::PaymentLimit;
use config::ReadingFunction::Payments;
use config::variables;
use config::{ConfigError, Env, EnvVariable};

variables! {
    GATEWAY_RATE = EnvVariable::new(&[Payments], "DUEDAY_GATEWAY_RATE", "N",
        "The highest number of requests per second to the gateway")
        .in_range(1, 10_000).default("25").rare_flag("gateway-rate");
}

/// Environment variables of earlier versions of Dueday, whose values are now settings in the table. A variable of this
/// list that is still set is an error: the merchant expects a ceiling, and the runs would charge without it.
const MOVED_VARIABLES: [(EnvVariable, PaymentLimit); 4] = [
    (EnvVariable::new(&[], "DUEDAY_MAX_CHARGES", "", ""), PaymentLimit::MaxCharges),
    (EnvVariable::new(&[], "DUEDAY_MAX_SUMS", "", ""), PaymentLimit::MaxSums),
    (EnvVariable::new(&[], "DUEDAY_MAX_PROCESSING_DAYS", "", ""), PaymentLimit::MaxProcessingDays),
    (EnvVariable::new(&[], "DUEDAY_GATEWAY_FAILURES", "", ""), PaymentLimit::GatewayFailures),
];

/// The configuration of the payment batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChargeConfig {
    /// `DUEDAY_GATEWAY_RATE`: the highest number of requests per second to the gateway; `None` for no limit.
    pub gateway_rate: Option<NonZeroU32>,
}

impl ChargeConfig {
    /// Reads the configuration from `env`.
    ///
    /// # Errors
    /// [`ConfigError`] in these cases:
    /// - A variable has an invalid value. The message contains the allowed values.
    /// - A variable of an earlier version of Dueday is set, but its value is now a setting in the table.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        refuse_moved_variables(env)?;
        Ok(Self { gateway_rate: NonZeroU32::new(env.number(&GATEWAY_RATE)?) })
    }
}

/// Checks that no variable is set whose value is now a setting in the table. Earlier versions of Dueday read these
/// variables.
///
/// # Errors
/// [`ConfigError::Invalid`] with the command that changes the setting.
pub fn refuse_moved_variables(env: Env<'_>) -> Result<(), ConfigError> {
    match MOVED_VARIABLES.iter().find(|(variable, _)| env.get(variable).is_some()) {
        Some((variable, limit)) => {
            let reason = format!("is not read any more: unset it, and use `dueday settings set {limit} VALUE`");
            Err(ConfigError::Invalid { name: variable.name, reason })
        }
        None => Ok(()),
    }
}
