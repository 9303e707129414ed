//! The Lambda function that processes the messages of the queue `Paid`. A schedule also invokes the function each
//! minute, to fill backordered orders.

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use billing::ReceivedEvent;
use lambda_runtime::{Diagnostic, LambdaEvent};
use orders_desk::{FillCounts, OrderDesk, ProcessEventError};
use serde::{Deserialize, Serialize};

use crate::fill_waiting_orders::fill_waiting_orders;

/// The payload of an invocation of the Lambda function.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum OrdersQueueRequest {
    /// Messages from the queue.
    Queue(SqsEvent),
    /// The request of the schedule to fill backordered orders.
    Fill { fill: OrdersToFill },
}

/// The orders that the schedule requests to fill.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrdersToFill {
    /// The backordered orders for which a fill task (a stored request to try again to fill orders) exists.
    Waiting,
}

/// The response of the function to an invocation.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum OrdersQueueResponse {
    /// The messages that failed and that the queue must deliver again.
    Queue(SqsBatchResponse),
    /// The result of filling the backordered orders.
    Fill {
        /// The number of orders for which the stock was reserved.
        filled: u32,
        /// The number of fill tasks that are not finished, and that the next invocation continues.
        unfinished_tasks: u32,
    },
}

/// Handles one invocation of the function.
///
/// # Errors
/// Only a request of the schedule can fail: if an order or a fill task failed. If a message of the
/// queue fails, the response lists the message instead, so that the queue delivers only this message again.
pub async fn handle_orders_queue_invocation(
    desk: &OrderDesk,
    event: LambdaEvent<OrdersQueueRequest>,
) -> Result<OrdersQueueResponse, Diagnostic> {
    match event.payload {
        OrdersQueueRequest::Queue(queue) => Ok(OrdersQueueResponse::Queue(process_payment_messages(desk, queue).await)),
        OrdersQueueRequest::Fill { fill: OrdersToFill::Waiting } => {
            let FillCounts { filled, unfinished_tasks, .. } =
                fill_waiting_orders(desk, event.context.deadline().into()).await?;
            Ok(OrdersQueueResponse::Fill { filled, unfinished_tasks })
        }
    }
}

/// Processes the messages of the queue one after the other, and returns those that failed.
async fn process_payment_messages(desk: &OrderDesk, queue: SqsEvent) -> SqsBatchResponse {
    let mut response = SqsBatchResponse::default();
    for message in queue.records {
        match process_payment_message(desk, message.body.as_deref().unwrap_or_default()).await {
            Ok(()) => {}
            Err(error) => {
                let id = message.message_id.unwrap_or_default();
                tracing::error!(message = id, %error, error_type = error.error_type(), "failed to process a message; the queue will deliver it again");
                response.add_failure(id);
            }
        }
    }
    response
}

/// Processes the payment event in one message.
async fn process_payment_message(desk: &OrderDesk, message: &str) -> Result<(), ProcessEventError> {
    orders_desk::process_event(desk, &ReceivedEvent::read(message)?).await
}
