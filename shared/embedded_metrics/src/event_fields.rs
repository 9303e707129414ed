//! The fields of a log event that are needed for its metrics.

use std::collections::BTreeMap;
use std::fmt::Debug;

use tracing::Event;
use tracing::field::{Field, Visit};

/// The message of a log event. It is read before all other fields, because most log events have no metrics.
#[derive(Default)]
struct MessageVisitor(String);

/// Returns the message of `event`; an empty text if the event has no message.
pub(super) fn read_log_message(event: &Event<'_>) -> String {
    let mut message = MessageVisitor::default();
    event.record(&mut message);
    message.0
}

impl Visit for MessageVisitor {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

/// The numbers and the texts of a log event, by the names of the fields.
#[derive(Default, Debug)]
pub(super) struct EventFields {
    pub numbers: BTreeMap<&'static str, u64>,
    pub texts: BTreeMap<&'static str, String>,
}

impl EventFields {
    /// Reads all fields of `event`.
    pub fn read(event: &Event<'_>) -> Self {
        let mut fields = Self::default();
        event.record(&mut fields);
        fields
    }
}

impl Visit for EventFields {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.numbers.insert(field.name(), value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        // The numbers that become metrics are never negative.
        self.numbers.insert(field.name(), u64::try_from(value).unwrap_or_default());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.texts.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.texts.insert(field.name(), format!("{value:?}"));
    }
}
