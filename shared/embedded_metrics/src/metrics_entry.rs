//! The metrics of one log event.

use std::borrow::Cow;
use std::time::Duration;

use metrique_writer::core::config::EntryDimensions;
use metrique_writer::{Entry, EntryConfig, EntryWriter};

use super::event_fields::EventFields;
use super::{CURRENCY, FUNCTION_NAME};

/// The log events whose fields become metrics: the message, the prefix of the metrics' names, and the names of these
/// fields. If the prefix is `None`, the value of the event's field `batch` is the prefix. Fields that an event does not
/// have are left out.
const EVENTS_WITH_METRICS: [(&str, Option<&str>, &[&str]); 4] = [
    (
        "a run has ended",
        None,
        &[
            "due",
            "paid",
            "declined",
            "rejected",
            "in_doubt",
            "sent",
            "failed",
            "unreminded",
            "oldest_due_days",
            "oldest_in_doubt_hours",
        ],
    ),
    (
        "charges at the gateway",
        Some("charges"),
        &["requests", "unknown", "throttled", "unusable", "mean_ms", "longest_ms"],
    ),
    ("the sum of the payments in one currency", Some("paid"), &["minor"]),
    ("mails of a batch of events", Some("mails"), &["sent", "undeliverable", "delayed", "failed"]),
];

/// The log events that a metric counts: the first words of the message, and the prefix and the name of the metric. The
/// value of the metric is 1 for each event.
const COUNTED_EVENTS: [(&str, &str, &str); 5] = [
    ("an event was delivered", "deliveries", "made"),
    ("a delivery failed and will be retried", "deliveries", "failed"),
    ("an event could not be delivered", "deliveries", "failed"),
    ("a webhook endpoint is disabled", "deliveries", "failed"),
    ("a variable differs from the policy of the table", "policy", "differs"),
];

/// The suffix of the names of fields that contain a time in milliseconds.
const MILLISECONDS_SUFFIX: &str = "_ms";

/// The additional dimension of metrics in one currency.
static DIMENSIONS_OF_CURRENCY: EntryDimensions =
    EntryDimensions::new_static(&[Cow::Borrowed(&[Cow::Borrowed(CURRENCY)])]);

/// Returns whether log events with this message have metrics.
pub(super) fn has_metrics_for_message(message: &str) -> bool {
    EVENTS_WITH_METRICS.iter().any(|(text, ..)| *text == message) || metric_that_counts_message(message).is_some()
}

/// Returns the prefix and the name of the metric that counts log events with this message; `None` if no metric counts
/// them.
fn metric_that_counts_message(message: &str) -> Option<(&'static str, &'static str)> {
    let counted = COUNTED_EVENTS.iter().find(|(first_words, ..)| message.starts_with(first_words));
    counted.map(|(_, prefix, name)| (*prefix, *name))
}

/// The metrics of one log event, with their dimensions.
pub(super) struct MetricsEntry<'a> {
    function: &'a str,
    currency: Option<&'a str>,
    prefix: &'a str,
    values: Vec<(&'static str, u64)>,
}

impl<'a> MetricsEntry<'a> {
    /// Returns the metrics of a log event with `fields`, which the Lambda function `function` has logged; `None` if the
    /// event has no metrics.
    pub fn new(function: &'a str, fields: &'a EventFields) -> Option<Self> {
        let message = fields.texts.get("message")?;
        if let Some((prefix, name)) = metric_that_counts_message(message) {
            return Some(Self { function, currency: None, prefix, values: vec![(name, 1)] });
        }
        let (_, prefix, names) = EVENTS_WITH_METRICS.iter().find(|(text, ..)| text == message)?;
        let batch = || fields.texts.get("batch").map(String::as_str);
        let values = names.iter().filter_map(|name| Some((*name, *fields.numbers.get(name)?)));
        Some(Self {
            function,
            currency: fields.texts.get(CURRENCY).map(String::as_str),
            prefix: prefix.or_else(batch)?,
            values: values.collect(),
        })
    }
}

impl Entry for MetricsEntry<'_> {
    fn write<'w>(&'w self, writer: &mut impl EntryWriter<'w>) {
        writer.value(FUNCTION_NAME, self.function);
        if let Some(currency) = self.currency {
            writer.config(&DIMENSIONS_OF_CURRENCY as &'static dyn EntryConfig);
            writer.value(CURRENCY, currency);
        }
        for (field, value) in &self.values {
            let name = format!("{}-{}", self.prefix, field.replace('_', "-"));
            match field.ends_with(MILLISECONDS_SUFFIX) {
                true => writer.value(name, &Duration::from_millis(*value)),
                false => writer.value(name, value),
            }
        }
    }
}
