//! The Lambda function of the daily payment batch, which charges all payments that are due on the day of the batch or
//! earlier.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

use std::sync::Arc;

use charging::{ChargeConfig, GATEWAY_TIMEOUT};
use clock::Clock;
use config::Env;
use gateway_secrets::FirstSecretRead;
use lambda_runtime::{Diagnostic, LambdaEvent};
use payments::{PaymentBatch, PaymentOutcome};
use serde_json::Value;
use store::{TableConfig, TableSetUpError, load_sdk_config};
use sweep::{BatchResponse, RunLimits, Sweep};

/// The payment batch, which runs daily over all due payments.
pub type Payments = Sweep<PaymentBatch>;

/// Creates the payment batch from the environment variables `env`. `DUEDAY_GATEWAY` selects the payment gateway.
///
/// # Errors
/// [`TableSetUpError::Config`] if a variable is missing or not valid. [`TableSetUpError::Table`] if the table could not be read.
pub async fn set_up_payment_batch(env: Env<'_>, clock: Arc<dyn Clock>) -> Result<Payments, TableSetUpError> {
    let config = TableConfig::read(env)?;
    let charging = ChargeConfig::read(env)?;
    let limits = RunLimits::read(env)?;
    let sdk = load_sdk_config().await;
    let gateway = gateway_secrets::create_gateway_from_environment(
        env,
        &sdk,
        GATEWAY_TIMEOUT,
        FirstSecretRead::MustSucceed,
        clock.clone(),
    )
    .await?;
    let table = config.connect(&sdk);
    let batch = PaymentBatch::new(table.clone(), gateway, &charging, clock.clone());
    batch.connect().await;
    Ok(Sweep::new(table, batch, &config, limits, clock).await?)
}

/// Handles one invocation of the function: charges the due payments.
///
/// # Errors
/// A `sweep::SweepError`. The name of its variant is the error type of the invocation.
pub async fn charge_due_payments(
    payments: &Payments,
    event: LambdaEvent<Value>,
) -> Result<BatchResponse<PaymentOutcome>, Diagnostic> {
    let response = payments.handle_invocation(event.payload, event.context.deadline().into()).await;
    response.map_err(|error| Diagnostic { error_type: error.error_type().to_owned(), error_message: error.to_string() })
}
