//! The environment variables for delivering events.

use config::EnvVariable;
use config::ReadingFunction::{Api, Deliver};
use config::variables;

variables! {
    DELIVERY_QUEUE = EnvVariable::new(&[Api, Deliver], "DUEDAY_DELIVERY_QUEUE", "URL", "The SQS queue for pending deliveries");
    QUEUES = EnvVariable::new(&[Api], "DUEDAY_QUEUES", "NAME=URL,...",
        "The SQS queues whose numbers of messages `GET /status` shows");
}
