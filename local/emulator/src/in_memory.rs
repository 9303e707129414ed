//! A whole deployment in memory, on a clock that is set: what simulations and tests run on.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use shared::clock::SimulatedClock;
use shared::config::{Config, ConfigError, Env};
use shared::gateway::{Ledger, Sandbox};
use shared::mail::Mailer;
use shared::table::TableError;

use crate::{Deployment, Engine, Wire};

/// A deployment and what it stands on.
#[derive(Clone)]
pub struct InMemory {
    pub engine: Engine,
    pub clock: Arc<SimulatedClock>,
    pub sandbox: Arc<Sandbox>,
    /// Nothing goes wrong on its ways. [`InMemory::over`] makes one where something may.
    pub deployment: Deployment,
}

impl InMemory {
    /// An empty deployment of these settings, whose mail goes to `mailer`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn new(config: Config, clock: SimulatedClock, mailer: Arc<dyn Mailer>) -> Result<Self, TableError> {
        let (engine, clock) = (Engine::memory(), Arc::new(clock));
        let sandbox = Arc::new(Sandbox::new(Ledger::memory(), clock.clone()));
        let client = engine.client_over(Arc::new(Wire::without_tokens()));
        let deployment = Deployment::new(client, config, sandbox.clone(), mailer, clock.clone()).ready().await?;
        Ok(Self { engine, clock, sandbox, deployment })
    }

    /// The same deployment, its table reached over `wire`.
    pub fn over(&self, wire: Arc<Wire>) -> Deployment {
        self.deployment.over(self.engine.client_over(wire))
    }
}

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
    let config = Config::read(Env(&find))?;
    let asked = asked.into_inner().unwrap_or_else(PoisonError::into_inner);
    for (name, _) in settings {
        assert!(asked.contains(*name), "{name} is not a variable of the configuration");
    }
    Ok(Config { gateway_rate: None, ..config })
}
