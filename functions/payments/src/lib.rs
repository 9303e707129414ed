//! The daily payment batch: charges everything due on or before its day.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

use std::sync::Arc;

use lambda_runtime::{Error, LambdaEvent};
use serde_json::Value;
use shared::ambient::Ambient;
use shared::batch::{ChargeDue, GATEWAY_TIMEOUT, Report, Sweep};
use shared::config::{Config, ConfigError, Env};
use shared::gateway::SandboxClient;
use shared::table::TableError;

/// The payment batch.
pub type Payments = Sweep<ChargeDue>;

/// Why the batch could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetUpError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Table(#[from] TableError),
}

/// The batch as its environment describes it. `DUEDAY_GATEWAY_URL` is where the sandbox gateway answers.
///
/// # Errors
/// [`SetUpError`].
pub async fn set_up(env: Env<'_>, ambient: Arc<dyn Ambient>) -> Result<Payments, SetUpError> {
    let config = Config::read(env)?;
    let url = env.required("DUEDAY_GATEWAY_URL", "where the payment gateway answers, like http://127.0.0.1:7879")?;
    let gateway = Arc::new(SandboxClient::new(&url, GATEWAY_TIMEOUT.to_std().unwrap_or_default()));
    let table = config.connect().await;
    let charge_due = ChargeDue::new(table.clone(), gateway, &config, ambient.clone());
    Ok(Sweep::new(table, charge_due, &config, ambient).await?)
}

/// One invocation.
///
/// # Errors
/// `shared::batch::SweepError`.
pub async fn charge(payments: &Payments, event: LambdaEvent<Value>) -> Result<Report, Error> {
    Ok(payments.handle(event.payload, event.context.deadline().into()).await?)
}
