//! A whole deployment in memory, on a clock that is set: what simulations and tests run on.

use std::sync::Arc;

use clock::SimulatedClock;
use gateways::{Ledger, Sandbox};
use mail::Mailer;
use store::TableError;

use emulator::{Config, Deployment, Engine, Wire};

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
