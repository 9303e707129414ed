//! The order desk's queue, as Lambda brings it. On a schedule the desk looks again at all that waits, so that what a crash left
//! behind is filled without anybody noticing.

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use billing::ReceivedEvent;
use lambda_runtime::{Diagnostic, LambdaEvent};
use orders::{Filled, NO_PRODUCTS, OrderDesk, PlaceOutcome, TakeError};
use serde::{Deserialize, Serialize};

use crate::fill_waiting::fill_waiting;

/// What an invocation is for.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Request {
    /// Messages of the queue.
    Queue(SqsEvent),
    /// The schedule: to look again at all that waits.
    Fill { fill: Waiting },
}

/// Which orders are looked at again.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Waiting {
    Waiting,
}

/// What an invocation answers.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Done {
    /// The messages that are to come again.
    Queue(SqsBatchResponse),
    Fill {
        filled: u32,
        still_waiting: u32,
    },
}

/// One invocation.
///
/// # Errors
/// Of the schedule: what could not be looked at. Of the queue none: what goes wrong with one message is no reason to hand
/// over the others again.
pub async fn handle(desk: &OrderDesk, event: LambdaEvent<Request>) -> Result<Done, Diagnostic> {
    match event.payload {
        Request::Queue(queue) => Ok(Done::Queue(take_all(desk, queue).await)),
        Request::Fill { fill: Waiting::Waiting } => {
            let Filled { filled, still_waiting, .. } = fill_waiting(desk, event.context.deadline().into()).await?;
            Ok(Done::Fill { filled, still_waiting })
        }
    }
}

async fn take_all(desk: &OrderDesk, queue: SqsEvent) -> SqsBatchResponse {
    let mut answer = SqsBatchResponse::default();
    for message in queue.records {
        match take(desk, message.body.as_deref().unwrap_or_default()).await {
            Ok(Some(PlaceOutcome::NoProducts { sku, is_news: true })) => {
                // Said first: after a crash here nobody would say it.
                tracing::warn!(%sku, "{NO_PRODUCTS}: what is paid of it makes no orders");
                if let Err(error) = desk.table.note_without_products(&sku).await {
                    tracing::warn!(%error, "it will be said again");
                }
            }
            Ok(_) => {}
            Err(error) => {
                let id = message.message_id.unwrap_or_default();
                tracing::error!(message = id, %error, "a message comes again");
                answer.add_failure(id);
            }
        }
    }
    answer
}

async fn take(desk: &OrderDesk, message: &str) -> Result<Option<PlaceOutcome>, TakeError> {
    orders::take(desk, &ReceivedEvent::read(message)?).await
}
