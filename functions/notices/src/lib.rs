//! Notices: mails to customers about what has become of their payments, from a queue of events.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

use std::future::ready;
use std::sync::Arc;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use lambda_runtime::{Diagnostic, LambdaEvent};
use shared::clock::Clock;
use shared::config::{BillingConfig, ConfigError, Env};
use shared::events::{CloudEvent, told};
use shared::mail::{self, MAIL_FROM, MAIL_URL, MailError, Merchant};
use shared::notices::{NoticeError, Noticed, Notices};
use shared::table::{TableConfig, sdk};

/// Why the function could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetUpError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("DUEDAY_MAIL_URL, DUEDAY_MAIL_FROM: {0}")]
    Mail(#[from] MailError),
}

/// Why a message could not be worked on. It comes again.
#[derive(Debug, thiserror::Error)]
pub enum TellError {
    #[error("a message is no event")]
    NoEvent,
    #[error(transparent)]
    Notice(#[from] NoticeError),
}

impl TellError {
    /// Whether the same message may be worked on later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Notice(error) if error.is_transient())
    }
}

/// The function as its environment describes it. `DUEDAY_MAIL_URL` is how mails leave, `DUEDAY_MAIL_FROM` their sender.
///
/// # Errors
/// [`SetUpError`].
pub async fn set_up(env: Env<'_>, clock: Arc<dyn Clock>) -> Result<Notices, SetUpError> {
    let (config, billing, merchant) = (TableConfig::read(env)?, BillingConfig::read(env)?, Merchant::read(env)?);
    let (url, from) = (env.text(&MAIL_URL)?, env.text(&MAIL_FROM)?);
    let sdk = sdk().await;
    let table = config.over(&sdk);
    let mailer = mail::mailer(&url, &from, ready(sdk)).await?;
    Ok(Notices::new(table, mailer, merchant, billing.zone, clock))
}

/// One invocation. The answer names the messages that are to come again.
///
/// # Errors
/// None: what goes wrong with one message is no reason to hand over the others again.
pub async fn handle(notices: &Notices, event: LambdaEvent<SqsEvent>) -> Result<SqsBatchResponse, Diagnostic> {
    let mut answer = SqsBatchResponse::default();
    for message in event.payload.records {
        if let Err(error) = tell(notices, message.body.as_deref().unwrap_or_default()).await {
            let id = message.message_id.unwrap_or_default();
            tracing::error!(message = id, %error, "a message comes again");
            answer.add_failure(id);
        }
    }
    Ok(answer)
}

/// Whether `event`, a CloudEvent in JSON, is one that customers are told of.
pub fn is_told(event: &str) -> bool {
    told(event)
        .and_then(|event| serde_json::from_str::<CloudEvent>(&event).ok())
        .is_some_and(|event| Notices::tells(&event))
}

/// Tells the customer what `event`, a CloudEvent in JSON, says.
///
/// # Errors
/// [`TellError`].
pub async fn tell(notices: &Notices, event: &str) -> Result<Noticed, TellError> {
    let event = told(event).and_then(|event| serde_json::from_str::<CloudEvent>(&event).ok());
    Ok(notices.tell(&event.ok_or(TellError::NoEvent)?).await?)
}
