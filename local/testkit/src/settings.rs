//! Settings for tests.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use config::{ConfigError, Env};
use emulator::Config;

/// The configuration with these settings, by the names of their environment variables. All others have their defaults,
/// except that the gateway's rate has no limit: the clock stands still.
///
/// # Errors
/// [`ConfigError`].
///
/// # Panics
/// If one of the names is not a variable of the configuration.
pub fn config(settings: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let asked = Mutex::new(HashSet::new());
    let find = |name: &str| {
        asked.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
        settings.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    };
    let mut config = Config::read(Env(&find))?;
    let asked = asked.into_inner().unwrap_or_else(PoisonError::into_inner);
    for (name, _) in settings {
        assert!(asked.contains(*name), "{name} is not a variable of the configuration");
    }
    config.charging.gateway_rate = None;
    Ok(config)
}
