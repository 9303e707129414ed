//! A whole deployment in memory with a simulated clock, for simulations and tests.

use std::sync::Arc;

use clock::{Clock as _, SimulatedClock};
use emulator::{Engine, EngineConnection};
use mail::Mailer;
use sandbox::{Ledger, Sandbox};
use store::TableError;

use crate::{Deployment, DeploymentConfig};

/// The random seed of the clock of a copied deployment. It differs from the seeds in the tests, so that a copy creates
/// other identifiers than those that it contains.
const SEED_OF_COPIES: u64 = 1_000_003;

/// A deployment in memory, with its engine, its clock and its sandbox gateway.
#[derive(Clone)]
pub struct InMemoryDeployment {
    pub engine: Engine,
    pub clock: Arc<SimulatedClock>,
    pub sandbox: Arc<Sandbox>,
    /// The deployment without injected faults. [`InMemoryDeployment::with_connection`] returns a deployment whose
    /// requests to the table may fail.
    pub deployment: Deployment,
}

impl InMemoryDeployment {
    /// Creates an empty deployment with this configuration, which sends its mails with `mailer`.
    pub async fn new(
        config: DeploymentConfig,
        clock: SimulatedClock,
        mailer: Arc<dyn Mailer>,
    ) -> Result<Self, TableError> {
        let (engine, clock) = (Engine::in_memory(), Arc::new(clock));
        let sandbox = Arc::new(Sandbox::new(Ledger::in_memory(), clock.clone()));
        let client = engine.client_with_connection(Arc::new(EngineConnection::without_tokens()));
        let deployment =
            Deployment::new(client, config, sandbox.clone(), mailer, clock.clone()).create_table_if_absent().await?;
        Ok(Self { engine, clock, sandbox, deployment })
    }

    /// Creates a deployment with copies of the table, the clock and the gateway's payments. A test that needs the same
    /// situation many times creates it once, and copies it. The copy sends its mails with the same mailer.
    #[must_use]
    pub fn copy(&self) -> Self {
        let (engine, clock) = (self.engine.copy(), Arc::new(SimulatedClock::new(self.clock.now(), SEED_OF_COPIES)));
        let sandbox = Arc::new(self.sandbox.copy_in_memory(clock.clone()));
        let client = engine.client_with_connection(Arc::new(EngineConnection::without_tokens()));
        let deployment =
            Deployment { gateway: sandbox.clone(), clock: clock.clone(), ..self.deployment.with_client(client) };
        Self { engine, clock, sandbox, deployment }
    }

    /// Returns the same deployment, but its requests to the table pass through `connection`, which may inject faults.
    pub fn with_connection(&self, connection: Arc<EngineConnection>) -> Deployment {
        self.deployment.with_client(self.engine.client_with_connection(connection))
    }
}
