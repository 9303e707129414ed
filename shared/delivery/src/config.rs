//! The environment variables for publishing and delivering events.

use config::ReadBy::{Api, Deliver, Events, Notices};
use config::Variable;
use config::variables;

variables! {
    EVENT_BUS = Variable::new(&[Events], "DUEDAY_EVENT_BUS", "BUS", "The EventBridge bus that receives the events");
    API_URL = Variable::new(&[Api, Notices], "DUEDAY_API_URL", "URL",
        "The URL of the API, for links in mails and for the way back from a page of the gateway");
    DELIVERY_QUEUE = Variable::new(&[Api, Deliver], "DUEDAY_DELIVERY_QUEUE", "URL", "The SQS queue for pending deliveries");
    QUEUES = Variable::new(&[Api], "DUEDAY_QUEUES", "NAME=URL,...",
        "The SQS queues whose numbers of messages `GET /status` shows");
}
