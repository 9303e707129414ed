//! The Lambda function of the daily reminder batch. It sends the reminders of all payments whose reminder date is today
//! or earlier.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

use std::sync::Arc;

use clock::Clock;
use config::{ConfigError, Env};
use lambda_runtime::{Diagnostic, LambdaEvent};
use mail::Merchant;
use reminders::{ReminderBatch, ReminderOutcome};
use serde_json::Value;
use ses::MailerError;
use store::{TableConfig, TableError, load_sdk_config};
use sweep::{BatchResponse, RunLimits, Sweep};

/// The reminder batch, which runs daily over all due reminders.
pub type Reminders = Sweep<ReminderBatch>;

/// The reason why the reminder batch could not be created at the start of the function.
#[derive(Debug, thiserror::Error)]
pub enum RemindersSetUpError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Mailer(#[from] MailerError),
    #[error(transparent)]
    Table(#[from] TableError),
}

/// Creates the reminder batch from the environment variables `env`. The documentation of [`ses::create_configured_mailer`] lists the
/// variables that select the mail service and the sender of the mails.
pub async fn set_up_reminder_batch(env: Env<'_>, clock: Arc<dyn Clock>) -> Result<Reminders, RemindersSetUpError> {
    let config = TableConfig::read(env)?;
    let limits = RunLimits::read(env)?;
    let merchant = Merchant::read(env)?;
    let sdk = load_sdk_config().await;
    let table = config.connect(&sdk);
    let mailer = ses::create_configured_mailer(env, &sdk, clock.clone())?;
    let reminder_task = ReminderBatch::new(table.clone(), mailer, merchant, clock.clone());
    Ok(Sweep::new(table, reminder_task, &config, limits, clock).await?)
}

/// Handles one invocation of the function: sends the due reminders.
///
/// # Errors
/// A `sweep::SweepError`. The name of its variant is the error type of the invocation.
pub async fn send_due_reminders(
    reminders: &Reminders,
    event: LambdaEvent<Value>,
) -> Result<BatchResponse<ReminderOutcome>, Diagnostic> {
    let response = reminders.handle_invocation(event.payload, event.context.deadline().into()).await;
    response.map_err(|error| Diagnostic { error_type: error.error_type().to_owned(), error_message: error.to_string() })
}
