//! The configuration of test deployments.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use config::{ConfigError, Env};
use deployment::DeploymentConfig;

/// Returns the configuration with the environment variables `settings` (name, value). All other variables have their
/// defaults, except that the rate of requests to the gateway is unlimited, because a simulated clock does not advance
/// while the rate limiter waits.
///
/// # Errors
/// Returns an error if the value of a variable is invalid.
///
/// # Panics
/// If the configuration does not read a variable of `settings`.
pub fn read_test_config(settings: &[(&str, &str)]) -> Result<DeploymentConfig, ConfigError> {
    let known = Mutex::new(HashSet::new());
    let find = |name: &str| {
        known.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
        settings.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned())
    };
    let mut config = DeploymentConfig::read(Env(&find))?;
    let known = known.into_inner().unwrap_or_else(PoisonError::into_inner);
    for (name, _) in settings {
        assert!(known.contains(*name), "{name} is not an environment variable of the configuration");
    }
    config.charging.gateway_rate = None;
    Ok(config)
}
