//! The environment variables for delivering events.

use config::ReadBy::{Api, Deliver};
use config::Variable;
use config::variables;

variables! {
    DELIVERY_QUEUE = Variable::new(&[Api, Deliver], "DUEDAY_DELIVERY_QUEUE", "URL", "The SQS queue for pending deliveries");
    QUEUES = Variable::new(&[Api], "DUEDAY_QUEUES", "NAME=URL,...",
        "The SQS queues whose numbers of messages `GET /status` shows");
}
