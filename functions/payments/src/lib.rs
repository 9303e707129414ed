//! The daily payment batch: charges everything due on or before its day.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

use std::sync::Arc;

use clock::Clock;
use config::{BillingConfig, ConfigError, Env};
use lambda_runtime::{Diagnostic, LambdaEvent};
use payments::{ChargeConfig, ChargeDue, GATEWAY_TIMEOUT};
use serde_json::Value;
use store::{PaymentCounts, TableConfig, TableError, sdk};
use sweep::{Answer, Limits, Sweep};

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

/// The batch as its environment describes it. `DUEDAY_GATEWAY` says who takes the charges.
///
/// # Errors
/// [`SetUpError`].
pub async fn set_up(env: Env<'_>, clock: Arc<dyn Clock>) -> Result<Payments, SetUpError> {
    let (config, billing, charging) = (TableConfig::read(env)?, BillingConfig::read(env)?, ChargeConfig::read(env)?);
    let limits = Limits::read(env, billing.zone)?;
    let sdk = sdk().await;
    let gateway = secrets::configured(env, &sdk, GATEWAY_TIMEOUT.to_std().unwrap_or_default()).await?;
    let table = config.over(&sdk);
    let charge_due = ChargeDue::new(table.clone(), gateway, (&billing, &charging), clock.clone());
    charge_due.connect().await;
    Ok(Sweep::new(table, charge_due, (&config, limits), clock).await?)
}

/// One invocation.
///
/// # Errors
/// A `sweep::SweepError`, under its own name.
pub async fn charge(payments: &Payments, event: LambdaEvent<Value>) -> Result<Answer<PaymentCounts>, Diagnostic> {
    let answer = payments.handle(event.payload, event.context.deadline().into()).await;
    answer.map_err(|error| Diagnostic { error_type: error.kind().to_owned(), error_message: error.to_string() })
}
