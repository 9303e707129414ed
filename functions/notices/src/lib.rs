//! A Lambda function that receives events from a queue and sends notices: mails to customers about the outcome of a
//! payment, a change of a subscription or the shipment of an order.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

use std::sync::Arc;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use billing::ReceivedEvent;
use clock::Clock;
use config::{ConfigError, Env};
use lambda_runtime::{Diagnostic, LambdaEvent};
use mail::{API_URL, Merchant};
use notices::{CustomerNotifier, NOTICE_DELAYED, NOTICE_MESSAGE_FAILED, NoticeError, NoticeOutcome};
use ses::MailerError;
use store::{TableConfig, load_sdk_config};

/// The reason why the function could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum NoticesSetUpError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Mailer(#[from] MailerError),
}

/// Creates the sender of notices from the environment variables `env`. The documentation of [`ses::create_configured_mailer`] lists the
/// variables that select the mail service and the sender of the mails.
///
/// # Errors
/// Returns an error if a variable is missing or invalid.
pub async fn set_up_notices(env: Env<'_>, clock: Arc<dyn Clock>) -> Result<CustomerNotifier, NoticesSetUpError> {
    let (config, merchant) = (TableConfig::read(env)?, Merchant::read(env)?);
    let sdk = load_sdk_config().await;
    let table = config.connect(&sdk);
    let mailer = ses::create_configured_mailer(env, &sdk, clock.clone())?;
    let api_url = env.read_optional(&API_URL, |url| {
        config::parse_displayable_url(url).map_err(|allowed| format!("must be {allowed}"))
    })?;
    Ok(CustomerNotifier::new(table, mailer, merchant, clock).with_card_links(api_url))
}

/// Processes a batch of messages. The response lists the messages that must stay in the queue.
///
/// # Errors
/// Never returns an error: a failed message is listed in the response, so that the other messages of the batch are not
/// repeated.
pub async fn handle_notices_invocation(
    notices: &CustomerNotifier,
    event: LambdaEvent<SqsEvent>,
) -> Result<SqsBatchResponse, Diagnostic> {
    let messages = event.payload.records.into_iter();
    let messages = messages.map(|message| (message.message_id.unwrap_or_default(), message.body.unwrap_or_default()));
    let mut response = SqsBatchResponse::default();
    send_notices(notices, messages).await.into_iter().for_each(|id| response.add_failure(id));
    Ok(response)
}

/// Sends the notices about the events in `messages`. Each element is the id and the body of a message. Returns the ids
/// of the messages that must stay in the queue. Logs the numbers of sent, undeliverable and delayed mails and of failed
/// messages in one line, unless all numbers are 0.
pub async fn send_notices(
    notices: &CustomerNotifier,
    messages: impl IntoIterator<Item = (String, String)>,
) -> Vec<String> {
    let mut sent = 0_u64;
    let mut undeliverable = 0_u64;
    let mut delayed = 0_usize;
    let mut to_retry = Vec::new();
    for (id, body) in messages {
        match send_notice_of_message(notices, &body).await {
            Ok(NoticeOutcome::Sent) => sent = sent.saturating_add(1),
            Ok(NoticeOutcome::Undeliverable) => undeliverable = undeliverable.saturating_add(1),
            Ok(NoticeOutcome::AlreadySent | NoticeOutcome::NotNeeded) => {}
            Err(error) if error.concerns_only_recipient() => {
                tracing::warn!(message_id = id, %error, error_type = error.error_type(), "{NOTICE_DELAYED}");
                delayed = delayed.saturating_add(1);
                to_retry.push(id);
            }
            Err(error) => {
                tracing::error!(message = id, %error, error_type = error.error_type(), "{NOTICE_MESSAGE_FAILED}");
                to_retry.push(id);
            }
        }
    }
    if sent > 0 || undeliverable > 0 || !to_retry.is_empty() {
        // `embedded_metrics` reads the numbers from this event.
        let failed = to_retry.len().saturating_sub(delayed);
        tracing::info!(sent, undeliverable, delayed, failed, "mails of a batch of events");
    }
    to_retry
}

/// Reads the event in the body `message`, and sends the notice about this event.
async fn send_notice_of_message(notices: &CustomerNotifier, message: &str) -> Result<NoticeOutcome, NoticeError> {
    notices.notify(&ReceivedEvent::read(message)?).await
}
