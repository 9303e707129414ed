//! Checks that the metric filters of `template.yaml` match the log lines of the functions.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use serde_yaml_ng::Value;
use tracing_subscriber::layer::SubscriberExt as _;

use crate::template::template;

/// The messages that the metric filters count. Each entry is: the log group, and the message that the code logs there.
const COUNTED_MESSAGES: [(&str, &str); 31] = [
    ("ApiLog", api::INVALID_GATEWAY_SETTINGS_MESSAGE),
    ("ApiLog", config::SECRET_UNREADABLE),
    ("PaymentsLog", config::SECRET_UNREADABLE),
    ("RemindersLog", config::SECRET_UNREADABLE),
    ("ReconcileLog", config::SECRET_UNREADABLE),
    ("WebhooksLog", config::SECRET_UNREADABLE),
    ("NoticesLog", config::SECRET_UNREADABLE),
    ("DeliverLog", config::SECRET_UNREADABLE),
    ("WebhooksLog", inbound::FAILED_EVENT_MESSAGE),
    ("WebhooksLog", charging::PAYMENT_WITHOUT_RECEIPT_MESSAGE),
    ("WebhooksLog", inbound::UNSIGNED_EVENT_MESSAGE),
    ("DeliverLog", outbound::ENDPOINT_DISABLED),
    ("DeliverLog", outbound::ENDPOINT_UNREADABLE),
    ("DeliverLog", outbound::DELIVERY_UNREADABLE),
    ("DeliverLog", outbound::EVENT_NOT_DELIVERED),
    ("NoticesLog", notices::NOTICE_MESSAGE_FAILED),
    ("OrdersLog", orders_desk::SKU_WITHOUT_PRODUCTS_MESSAGE),
    ("OrdersLog", orders_desk::UNRECORDED_PAYMENT_MESSAGE),
    ("EventsFunctionLog", events_function::REFUND_PUBLISHED_MESSAGE),
    ("ReconcileLog", reconciling::DIFFERENCES_MESSAGE),
    ("ReconcileLog", reconciling::DAY_COMPARED_MESSAGE),
    ("AuditLog", audit_function::AUDIT_CONTINUED_MESSAGE),
    ("AuditLog", audit_function::VIOLATIONS_MESSAGE),
    ("AuditLog", audit_function::DAY_NOT_DONE_MESSAGE),
    ("AuditLog", audit_function::DAY_DONE_MESSAGE),
    ("AuditLog", audit_function::CONCERN_MESSAGE),
    ("AuditLog", days::CHARGING_OFF_MESSAGE),
    ("RemindersLog", ses::MAIL_NOT_ACCEPTED),
    ("NoticesLog", ses::MAIL_NOT_ACCEPTED),
    ("EraseLog", erasing::ERASURE_FAILED_MESSAGE),
    ("EraseLog", erasing::ERASURE_OVERDUE_MESSAGE),
];

/// Each log group, and the Lambda function that writes to it.
const LOG_GROUPS: [(&str, &str); 11] = [
    ("PaymentsLog", "PaymentsFunction"),
    ("RemindersLog", "RemindersFunction"),
    ("ApiLog", "ApiFunction"),
    ("WebhooksLog", "WebhooksFunction"),
    ("DeliverLog", "DeliverFunction"),
    ("NoticesLog", "NoticesFunction"),
    ("OrdersLog", "OrdersFunction"),
    ("EventsFunctionLog", "EventsFunction"),
    ("ReconcileLog", "ReconcileFunction"),
    ("AuditLog", "AuditFunction"),
    ("EraseLog", "EraseFunction"),
];

#[test]
fn access_log_has_the_source_address_of_each_request_and_not_its_path() {
    let format = &resources()["Api"]["Properties"]["AccessLogSettings"]["Format"];
    let fields: serde_json::Value = serde_json::from_str(format.as_str().unwrap()).unwrap();
    assert_eq!(fields["source_ip"], "$context.identity.sourceIp");
    assert_eq!(fields["route"], "$context.routeKey");
    let with_links = ["$context.path", "$context.requestTarget"];
    assert!(
        fields.as_object().unwrap().values().all(|value| !with_links.contains(&value.as_str().unwrap())),
        "{fields}"
    );
}

/// Returns the resources of `template.yaml` with `Parts=full`.
pub fn resources() -> Value {
    template()["Resources"].clone()
}

/// Returns the name of the resource to which `value`, a `!Ref`, refers.
fn referenced_name(value: &Value) -> String {
    let Value::Tagged(reference) = value else { panic!("no !Ref: {value:?}") };
    reference.value.as_str().unwrap().to_owned()
}

/// Returns the texts of a filter pattern such as `?"a" ?"b"` or `"a"`. A log line matches if it contains one of the
/// texts.
fn texts(pattern: &str) -> Vec<&str> {
    let texts: Vec<&str> = pattern.split('"').skip(1).step_by(2).collect();
    let is_any_of = pattern.split('"').step_by(2).map(str::trim).all(|mark| mark == "?" || mark.is_empty());
    assert!(is_any_of && (texts.len() == 1 || pattern.starts_with('?')), "unsupported pattern: {pattern}");
    texts
}

#[test]
fn template_metric_filters_match_exactly_the_logged_messages() {
    let resources = resources();
    let filters = resources.as_mapping().unwrap().iter();
    let filters = filters.filter(|(_, resource)| resource["Type"] == "AWS::Logs::MetricFilter");
    let alarms = resources.as_mapping().unwrap().values();
    let alarms = alarms.filter(|resource| resource["Type"] == "AWS::CloudWatch::Alarm");
    let alarms: Vec<&Value> = alarms.map(|alarm| &alarm["Properties"]).collect();
    let dashboard = serde_yaml_ng::to_string(&resources["Dashboard"]).unwrap();
    let mut matched = BTreeSet::new();
    for (name, filter) in filters {
        let filter = &filter["Properties"];
        let group = referenced_name(&filter["LogGroupName"]);
        let pattern = filter["FilterPattern"].as_str().unwrap();
        match group.as_str() {
            "ApiAccessLog" => assert_matches_access_log(pattern),
            _ => matched.extend(texts(pattern).into_iter().map(|text| (group.clone(), text.to_owned()))),
        }
        let counted = &filter["MetricTransformations"][0];
        assert_eq!(counted["MetricNamespace"], "Dueday", "{name:?}");
        let Value::Tagged(metric) = &counted["MetricName"] else { panic!("no !Sub: {name:?}") };
        let is_shown = dashboard.contains(&format!("[\"Dueday\", \"{}\"", metric.value.as_str().unwrap()));
        let is_watched = alarms.iter().any(|alarm| {
            let listed =
                alarm["Metrics"].as_sequence().into_iter().flatten().map(|metric| &metric["MetricStat"]["Metric"]);
            [*alarm].into_iter().chain(listed).any(|watched| {
                watched["MetricName"] == counted["MetricName"] && watched["Namespace"] == counted["MetricNamespace"]
            })
        });
        assert!(is_watched || is_shown, "no alarm and no dashboard shows the metric of the filter {name:?}");
    }
    let logged = COUNTED_MESSAGES.map(|(group, text)| (group.to_owned(), text.to_owned()));
    assert_eq!(
        matched,
        BTreeSet::from(logged),
        "left: the texts in the metric filters; right: the messages that the code logs"
    );
    for (group, function) in LOG_GROUPS {
        assert_eq!(referenced_name(&resources[function]["Properties"]["LoggingConfig"]["LogGroup"]), group);
    }
}

/// Asserts that `pattern` compares a field of the access log with a text, as in `{ $.status = "401" }`. The access log has the status
/// as a text, so a number would match no line.
fn assert_matches_access_log(pattern: &str) {
    let comparison = regex::Regex::new(r#"^\{ \$\.(\w+) = "(\d{3})" \}$"#).unwrap();
    let compared = comparison.captures(pattern).unwrap_or_else(|| panic!("unsupported pattern: {pattern}"));
    let format = &resources()["Api"]["Properties"]["AccessLogSettings"]["Format"];
    let line = format.as_str().unwrap().replace("$context.status", &compared[2]);
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(line[&compared[1]], serde_json::json!(&compared[2]), "{pattern}");
}

/// A log writer that keeps the output in memory.
#[derive(Clone, Default)]
pub struct LogBuffer(Arc<Mutex<Vec<u8>>>);

impl Write for LogBuffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl LogBuffer {
    /// Returns the log output so far.
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()).unwrap()
    }
}

/// A metric filter searches the whole log line. So the log line must contain the text of the filter unchanged, although
/// JSON escapes some characters.
#[test]
fn template_metric_filters_match_log_lines_as_text_and_as_json() {
    for is_json in [true, false] {
        let kept = LogBuffer::default();
        let writer = kept.clone();
        let lines = logs::create_line_layer(is_json, move || writer.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), || {
            COUNTED_MESSAGES.iter().for_each(|(_, text)| tracing::error!(error = "a \"reason\"", "{text}"));
        });
        let logged = kept.text();
        assert_eq!(logged.lines().count(), COUNTED_MESSAGES.len(), "{logged}");
        for ((_, text), line) in COUNTED_MESSAGES.iter().zip(logged.lines()) {
            assert!(line.contains(text), "{text} is not in {line}");
        }
    }
}

/// Lambda uses the level of a JSON line only if the line also has a timestamp in the format of RFC 3339.
#[test]
fn json_lines_have_the_level_and_the_timestamp_that_lambda_reads() {
    let kept = LogBuffer::default();
    let writer = kept.clone();
    let lines = logs::create_line_layer(true, move || writer.clone());
    tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), || {
        tracing::error!("a failure");
    });
    let line: serde_json::Value = serde_json::from_str(kept.text().trim()).unwrap();
    assert_eq!(line["level"], "ERROR");
    let timestamp = line["timestamp"].as_str().unwrap();
    assert!(chrono::DateTime::parse_from_rfc3339(timestamp).is_ok(), "{timestamp}");
}
