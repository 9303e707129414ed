//! The daily reminder batch: reminds of every payment whose reminder date has come.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

use std::sync::Arc;

use clock::Clock;
use config::{BillingConfig, ConfigError, Env};
use lambda_runtime::{Diagnostic, LambdaEvent};
use mail::{MAIL_FROM, MAIL_URL, MailError, Merchant};
use reminders::RemindDue;
use serde_json::Value;
use store::{ReminderCounts, TableConfig, TableError, sdk};
use sweep::{Answer, Limits, Sweep};

/// The reminder batch.
pub type Reminders = Sweep<RemindDue>;

/// Why the batch could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetUpError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("DUEDAY_MAIL_URL, DUEDAY_MAIL_FROM: {0}")]
    Mail(#[from] MailError),
    #[error(transparent)]
    Table(#[from] TableError),
}

/// The batch as its environment describes it. `DUEDAY_MAIL_URL` is how mails leave, `DUEDAY_MAIL_FROM` their sender.
///
/// # Errors
/// [`SetUpError`].
pub async fn set_up(env: Env<'_>, clock: Arc<dyn Clock>) -> Result<Reminders, SetUpError> {
    let config = TableConfig::read(env)?;
    let limits = Limits::read(env, BillingConfig::read(env)?.zone)?;
    let merchant = Merchant::read(env)?;
    let url = env.text(&MAIL_URL)?;
    let from = env.text(&MAIL_FROM)?;
    let sdk = sdk().await;
    let table = config.over(&sdk);
    let mailer = ses::mailer(&url, &from, &sdk)?;
    let remind_due = RemindDue::new(table.clone(), mailer, merchant, clock.clone());
    Ok(Sweep::new(table, remind_due, (&config, limits), clock).await?)
}

/// One invocation.
///
/// # Errors
/// A `sweep::SweepError`, under its own name.
pub async fn remind(reminders: &Reminders, event: LambdaEvent<Value>) -> Result<Answer<ReminderCounts>, Diagnostic> {
    let answer = reminders.handle(event.payload, event.context.deadline().into()).await;
    answer.map_err(|error| Diagnostic { error_type: error.kind().to_owned(), error_message: error.to_string() })
}
