//! The environment variable for publishing events.

use config::EnvVariable;
use config::ReadingFunction::Events;
use config::variables;

variables! {
    EVENT_BUS = EnvVariable::new(&[Events], "DUEDAY_EVENT_BUS", "BUS", "The EventBridge bus that receives the events");
}
