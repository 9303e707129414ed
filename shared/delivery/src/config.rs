//! Where events go, as the environment says.

use config::ReadBy::{Api, Deliver, Events};
use config::Variable;
use config::variables;

variables! {
    EVENT_BUS = Variable::new(&[Events], "DUEDAY_EVENT_BUS", "BUS", "The EventBridge bus that events are put on");
    DELIVERY_QUEUE = Variable::new(&[Api, Deliver], "DUEDAY_DELIVERY_QUEUE", "URL", "The SQS queue that deliveries wait in");
}
