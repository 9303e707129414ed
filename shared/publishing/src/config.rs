//! The environment variable for publishing events.

use config::ReadBy::Events;
use config::Variable;
use config::variables;

variables! {
    EVENT_BUS = Variable::new(&[Events], "DUEDAY_EVENT_BUS", "BUS", "The EventBridge bus that receives the events");
}
