//! The environment variables for publishing and delivering events.

use config::ReadBy::{Api, Deliver, Events};
use config::Variable;
use config::variables;

variables! {
    EVENT_BUS = Variable::new(&[Events], "DUEDAY_EVENT_BUS", "BUS", "The EventBridge bus that receives the events");
    DELIVERY_QUEUE = Variable::new(&[Api, Deliver], "DUEDAY_DELIVERY_QUEUE", "URL", "The SQS queue for pending deliveries");
}
