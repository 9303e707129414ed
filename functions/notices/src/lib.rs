//! Notices: mails to customers about what has become of their payments, from a queue of events.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

use std::sync::Arc;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use billing::ReceivedEvent;
use clock::Clock;
use config::{BillingConfig, ConfigError, Env};
use delivery::{NOTICE_COMES_AGAIN, NoticeError, NoticeOutcome, Notices};
use lambda_runtime::{Diagnostic, LambdaEvent};
use mail::{MAIL_FROM, MAIL_URL, MailError, Merchant};
use store::{TableConfig, sdk};

/// Why the function could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetUpError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("DUEDAY_MAIL_URL, DUEDAY_MAIL_FROM: {0}")]
    Mail(#[from] MailError),
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
    let mailer = ses::mailer(&url, &from, &sdk)?;
    Ok(Notices::new(table, mailer, merchant, billing.zone, clock))
}

/// One invocation. The answer names the messages that are to come again.
///
/// # Errors
/// None: what goes wrong with one message is no reason to hand over the others again.
pub async fn handle(notices: &Notices, event: LambdaEvent<SqsEvent>) -> Result<SqsBatchResponse, Diagnostic> {
    let mut answer = SqsBatchResponse::default();
    for message in event.payload.records {
        if let Err(error) = notify(notices, message.body.as_deref().unwrap_or_default()).await {
            let id = message.message_id.unwrap_or_default();
            tracing::error!(message = id, %error, "{NOTICE_COMES_AGAIN}");
            answer.add_failure(id);
        }
    }
    Ok(answer)
}

async fn notify(notices: &Notices, message: &str) -> Result<NoticeOutcome, NoticeError> {
    notices.notify(&ReceivedEvent::read(message)?).await
}
