//! CloudWatch metrics of the Lambda functions, in CloudWatch's embedded metric format. For certain log events, such as
//! those with the numbers of a run or about the delivery of an event, [`MetricsLayer`] writes one more line to the log,
//! from which CloudWatch reads the metrics.
//!
//! The metrics have the namespace [`NAMESPACE`] and the dimension [`FUNCTION_NAME`]. The name of a metric consists of a
//! prefix and the name of the field: the field `in_doubt` of a payment run is the metric `payments-in-doubt`.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod event_fields;
mod metrics_entry;

use std::env;
use std::io::{Stdout, Write, stdout};
use std::sync::{Mutex, PoisonError};

use metrique_writer::core::format::Format as _;
use metrique_writer_format_emf::Emf;
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use event_fields::EventFields;
use metrics_entry::MetricsEntry;

/// The namespace of the metrics in CloudWatch.
pub const NAMESPACE: &str = "Dueday";
/// The dimension that contains the name of the Lambda function.
pub const FUNCTION_NAME: &str = "FunctionName";
/// The additional dimension of the metric for the sum of payments: the currency of the sum.
pub const CURRENCY: &str = "currency";

/// A log layer that writes the metrics of log events to `W`: one line of JSON for each event with metrics.
pub struct MetricsLayer<W> {
    function: String,
    output: Mutex<(Emf, W)>,
}

/// Returns the layer that writes metrics to standard output, for the Lambda function of this process. Returns `None`
/// if Lambda's environment variable with the name of the function is absent.
pub fn create_metrics_layer() -> Option<MetricsLayer<Stdout>> {
    Some(MetricsLayer::new(env::var("AWS_LAMBDA_FUNCTION_NAME").ok()?, stdout()))
}

impl<W: Write> MetricsLayer<W> {
    /// Creates the layer for the Lambda function with the name `function`.
    pub fn new(function: String, output: W) -> Self {
        let format = Emf::all_validations(NAMESPACE.to_owned(), vec![vec![FUNCTION_NAME.to_owned()]]);
        Self { function, output: Mutex::new((format, output)) }
    }
}

impl<S: Subscriber, W: Write + Send + 'static> Layer<S> for MetricsLayer<W> {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if !metrics_entry::has_metrics_for_message(&event_fields::read_log_message(event)) {
            return;
        }
        let fields = EventFields::read(event);
        let Some(entry) = MetricsEntry::new(&self.function, &fields) else { return };
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let (format, writer) = &mut *output;
        if let Err(error) = format.format(&entry, writer).and_then(|()| Ok(writer.flush()?)) {
            // Do not log this error with `tracing`: this layer would receive the log event again, in an endless loop.
            // Lambda writes standard error to the same log.
            eprintln!("the metrics of a log line could not be written: {error}");
        }
    }
}

#[cfg(test)]
mod tests;
