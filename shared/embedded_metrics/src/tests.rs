use std::io;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tracing_subscriber::layer::SubscriberExt as _;

use super::*;

/// An output of the layer that keeps the written lines in memory.
#[derive(Clone, Default)]
struct MemoryOutput(Arc<Mutex<Vec<u8>>>);

impl Write for MemoryOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the lines that the layer writes for the log events that `events` logs.
fn metric_lines_of_events(events: impl FnOnce()) -> Vec<Value> {
    let lines = MemoryOutput::default();
    let layer = MetricsLayer::new("shop-PaymentsFunction-1".to_owned(), lines.clone());
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), events);
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let parse = |line: &str| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        assert!(line["_aws"]["Timestamp"].take().is_u64());
        line
    };
    text.lines().map(parse).collect()
}

#[test]
fn numbers_of_a_run_become_metrics_of_the_function() {
    let lines = metric_lines_of_events(|| {
        tracing::info!(batch = %"payments", is_done = true, due = 3_u64, in_doubt = 1_u64, skipped = 7_u64, oldest_due_days = 2_i64, "a run has ended");
        tracing::info!(requests = 3_u64, mean_ms = 250_u64, "charges at the gateway");
        tracing::info!(due = 3_u64, "another message");
    });
    let metrics =
        |metrics: Value| json!([{ "Namespace": "Dueday", "Dimensions": [["FunctionName"]], "Metrics": metrics }]);
    let expected = [
        json!({
            "_aws": {
                "CloudWatchMetrics": metrics(json!([
                    { "Name": "payments-due" }, { "Name": "payments-in-doubt" }, { "Name": "payments-oldest-due-days" },
                ])),
                "Timestamp": null,
            },
            "FunctionName": "shop-PaymentsFunction-1", "payments-due": 3, "payments-in-doubt": 1, "payments-oldest-due-days": 2,
        }),
        json!({
            "_aws": {
                "CloudWatchMetrics": metrics(json!([
                    { "Name": "charges-requests" }, { "Name": "charges-mean-ms", "Unit": "Milliseconds" },
                ])),
                "Timestamp": null,
            },
            "FunctionName": "shop-PaymentsFunction-1", "charges-requests": 3, "charges-mean-ms": 250,
        }),
    ];
    assert_eq!(lines, expected);
}

#[test]
fn sum_of_payments_has_its_currency_as_a_dimension() {
    let lines = metric_lines_of_events(|| {
        tracing::info!(currency = %"EUR", minor = 2_598_i64, "the sum of the payments in one currency");
    });
    assert_eq!(lines[0]["_aws"]["CloudWatchMetrics"][0]["Dimensions"], json!([["FunctionName", "currency"]]));
    assert_eq!((&lines[0]["currency"], &lines[0]["paid-minor"]), (&json!("EUR"), &json!(2_598)));
}

#[test]
fn log_events_about_deliveries_are_counted() {
    let lines = metric_lines_of_events(|| {
        tracing::info!(endpoint = %"01", attempts = 2_u64, "an event was delivered");
        tracing::error!(endpoint = %"01", "an event could not be delivered; its endpoint accepts other events");
        tracing::error!("a webhook endpoint cannot be read");
    });
    let counts: Vec<_> = lines.iter().map(|line| (&line["deliveries-made"], &line["deliveries-failed"])).collect();
    assert_eq!(counts, [(&json!(1), &Value::Null), (&Value::Null, &json!(1))]);
}
