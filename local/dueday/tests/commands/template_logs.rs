//! Checks that the metric filters of `template.yaml` match the log lines of the functions.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{NaiveDate, TimeDelta};
use chrono_tz::UTC;
use clock::SimulatedClock;
use delivery::Notices;
use emulator::Deployment;
use serde_yaml_ng::Value;
use store::PaymentCounts;
use sweep::{BatchRequest, Report};
use testkit::{InMemoryDeployment, RecordedMails, config, sample};
use tracing_subscriber::layer::SubscriberExt as _;

/// The messages that the metric filters count: the log group, and the message that the code logs there.
const COUNTED_MESSAGES: [(&str, &str); 30] = [
    ("ApiLog", api::GATEWAY_UNUSABLE),
    ("ApiLog", config::SECRET_UNREADABLE),
    ("PaymentsLog", config::SECRET_UNREADABLE),
    ("RemindersLog", config::SECRET_UNREADABLE),
    ("ReconcileLog", config::SECRET_UNREADABLE),
    ("WebhooksLog", config::SECRET_UNREADABLE),
    ("NoticesLog", config::SECRET_UNREADABLE),
    ("DeliverLog", config::SECRET_UNREADABLE),
    ("WebhooksLog", inbound::FAILED_EVENT_MESSAGE),
    ("WebhooksLog", settling::PAYMENT_WITHOUT_RECEIPT_MESSAGE),
    ("WebhooksLog", inbound::UNSIGNED_EVENT_MESSAGE),
    ("DeliverLog", delivery::ENDPOINT_DISABLED),
    ("DeliverLog", delivery::ENDPOINT_UNREADABLE),
    ("DeliverLog", delivery::DELIVERY_UNREADABLE),
    ("DeliverLog", delivery::EVENT_NOT_DELIVERED),
    ("DeliverLog", delivery::EVENT_DELIVERED),
    ("DeliverLog", delivery::DELIVERY_RETRIED),
    ("NoticesLog", delivery::NOTICE_MESSAGE_FAILED),
    ("NoticesLog", delivery::NOTICE_REJECTED),
    ("OrdersLog", orders::SKU_WITHOUT_PRODUCTS_MESSAGE),
    ("ReconcileLog", reconciling::DIFFERENCES_MESSAGE),
    ("ReconcileLog", reconciling::DAY_COMPARED_MESSAGE),
    ("AuditLog", audit_function::AUDIT_CONTINUED_MESSAGE),
    ("AuditLog", audit_function::VIOLATIONS_MESSAGE),
    ("AuditLog", audit_function::DAY_NOT_DONE_MESSAGE),
    ("AuditLog", audit_function::DAY_DONE_MESSAGE),
    ("RemindersLog", ses::MAIL_NOT_ACCEPTED),
    ("NoticesLog", ses::MAIL_NOT_ACCEPTED),
    ("EraseLog", erasing::ERASURE_FAILED_MESSAGE),
    ("EraseLog", erasing::ERASURE_OVERDUE_MESSAGE),
];

/// Each log group, and the Lambda function that writes to it.
const LOG_GROUPS: [(&str, &str); 10] = [
    ("PaymentsLog", "PaymentsFunction"),
    ("RemindersLog", "RemindersFunction"),
    ("ApiLog", "ApiFunction"),
    ("WebhooksLog", "WebhooksFunction"),
    ("DeliverLog", "DeliverFunction"),
    ("NoticesLog", "NoticesFunction"),
    ("OrdersLog", "OrdersFunction"),
    ("ReconcileLog", "ReconcileFunction"),
    ("AuditLog", "AuditFunction"),
    ("EraseLog", "EraseFunction"),
];

/// The beginning of the patterns of the metric filters that read a number from a field of a line with a certain message.
const FIELD_PATTERN: &str = "{ $.fields.message = ";

/// Returns the resources of `template.yaml`.
fn resources() -> Value {
    let template: Value = serde_yaml_ng::from_str(include_str!("../../../../template.yaml")).unwrap();
    template["Resources"].clone()
}

/// Returns the name of the resource to which `value`, a `!Ref`, refers.
fn referenced_name(value: &Value) -> String {
    let Value::Tagged(reference) = value else { panic!("no !Ref: {value:?}") };
    reference.value.as_str().unwrap().to_owned()
}

/// Returns the texts of a filter pattern such as `?"a" ?"b"` or `"a"`. A line matches if it contains one of them.
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
    let filters = filters.filter(|(_, resource)| !reads_a_field(resource));
    let alarms = resources.as_mapping().unwrap().values();
    let alarms = alarms.filter(|resource| resource["Type"] == "AWS::CloudWatch::Alarm");
    let alarms: Vec<&Value> = alarms.map(|alarm| &alarm["Properties"]).collect();
    let dashboard = serde_yaml_ng::to_string(&resources["Dashboard"]).unwrap();
    let mut matched = BTreeSet::new();
    for (name, filter) in filters {
        let filter = &filter["Properties"];
        let group = referenced_name(&filter["LogGroupName"]);
        let pattern = filter["FilterPattern"].as_str().unwrap();
        matched.extend(texts(pattern).into_iter().map(|text| (group.clone(), text.to_owned())));
        let counted = &filter["MetricTransformations"][0];
        assert_eq!(counted["MetricNamespace"], "Dueday", "{name:?}");
        let Value::Tagged(metric) = &counted["MetricName"] else { panic!("no !Sub: {name:?}") };
        let is_shown = dashboard.contains(&format!("[\"Dueday\", \"{}\"", metric.value.as_str().unwrap()));
        let is_watched = alarms.iter().any(|alarm| {
            alarm["MetricName"] == counted["MetricName"] && alarm["Namespace"] == counted["MetricNamespace"]
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

/// A log writer that keeps the output in memory.
#[derive(Clone, Default)]
struct LogBuffer(Arc<Mutex<Vec<u8>>>);

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
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()).unwrap()
    }
}

/// A metric filter searches the whole log line. So the text of the filter must appear in the line unchanged, even if
/// JSON escapes some characters.
#[test]
fn template_metric_filters_match_log_lines_as_text_and_as_json() {
    for is_json in [true, false] {
        let kept = LogBuffer::default();
        let writer = kept.clone();
        let lines = logs::line_layer(is_json, move || writer.clone());
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

/// Returns whether the metric filter `resource` reads a number from a field of a line.
fn reads_a_field(resource: &Value) -> bool {
    resource["Properties"]["FilterPattern"].as_str().is_some_and(|pattern| pattern.starts_with(FIELD_PATTERN))
}

#[tokio::test]
async fn template_metric_filters_read_numbers_from_the_lines_of_a_run() {
    let resources = resources();
    // When a log statement is executed for the first time, `tracing` stores whether it is enabled. If another test executed
    // it for the first time while the subscriber below is set, its line could be missing. So execute all log statements
    // once before.
    payments_of_a_day().await;
    let kept = LogBuffer::default();
    let writer = kept.clone();
    let lines = logs::line_layer(true, move || writer.clone());
    let subscriber = tracing_subscriber::registry().with(lines);
    let logging = tracing::subscriber::set_default(subscriber);
    let shop = payments_of_a_day().await;
    drop(logging);
    assert_eq!(shop.counts.paid, 2);
    let logged: Vec<serde_json::Value> = kept.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let filters = resources.as_mapping().unwrap().iter().filter(|(_, resource)| reads_a_field(resource));
    let dashboard = serde_yaml_ng::to_string(&resources["Dashboard"]).unwrap();
    let mut read = 0;
    for (name, filter) in filters {
        let group = referenced_name(&filter["Properties"]["LogGroupName"]);
        let metric = &filter["Properties"]["MetricTransformations"][0];
        let message = message_of(filter);
        let batch = if group == "RemindersLog" { "reminders" } else { "payments" };
        let is_meant = |line: &&serde_json::Value| {
            line["fields"]["message"] == message
                && (line["fields"]["batch"].is_null() || line["fields"]["batch"] == batch)
        };
        let line = logged.iter().find(is_meant).unwrap_or_else(|| panic!("{name:?}: no line {message:?}"));
        let field = metric["MetricValue"].as_str().unwrap().strip_prefix("$.fields.").unwrap();
        let Value::Tagged(shown) = &metric["MetricName"] else { panic!("no !Sub: {name:?}") };
        assert!(dashboard.contains(shown.value.as_str().unwrap()), "the dashboard does not show {name:?}");
        assert!(line["fields"][field].is_u64() || line["fields"][field].is_i64(), "{name:?} reads {field} from {line}");
        for dimension in metric["Dimensions"].as_sequence().into_iter().flatten() {
            let field = dimension["Value"].as_str().unwrap().strip_prefix("$.fields.").unwrap();
            assert_eq!(line["fields"][field], "EUR", "{name:?} reads {field} from {line}");
        }
        read += 1;
    }
    assert_eq!(read, 23);
}

/// Returns the message in the pattern of a metric filter that reads a field.
fn message_of(filter: &Value) -> String {
    let pattern = filter["Properties"]["FilterPattern"].as_str().unwrap();
    pattern.split('"').nth(1).unwrap().to_owned()
}

/// Runs both batches of a day on which two subscriptions are paid. Returns the report of the payments.
async fn payments_of_a_day() -> Report<PaymentCounts> {
    let day: NaiveDate = "2027-01-31".parse().unwrap();
    let noon = day.and_hms_opt(12, 0, 0).unwrap().and_utc();
    let clock = SimulatedClock::new(noon, 7);
    let mails = Arc::new(RecordedMails::default());
    let config = config(&[("DUEDAY_MERCHANT", "Shop")]).unwrap();
    let system = InMemoryDeployment::new(config, clock, mails).await.unwrap();
    let table = &system.deployment.table;
    table.put_account(&sample::account()).await.unwrap();
    for n in [30, 31] {
        let subscription = sample::subscription(n, "2027-01-01".parse().unwrap());
        table.create_subscription(&subscription, None).await.unwrap();
    }
    let (request, deadline) = (BatchRequest::for_date(day), noon + TimeDelta::hours(1));
    system.deployment.reminders().await.unwrap().run(&request, deadline).await.unwrap();
    let report = system.deployment.payments().await.unwrap().run(&request, deadline).await.unwrap();
    send_a_notice(&system).await;
    report
}

/// Processes a batch with the sample event of a payment of the account.
async fn send_a_notice(system: &InMemoryDeployment) {
    let message: serde_json::Value = serde_json::from_str(include_str!("../../../../events/sqs-paid.json")).unwrap();
    let body = message["Records"][0]["body"].as_str().unwrap().to_owned();
    let Deployment { table, config, .. } = &system.deployment;
    let mails = Arc::new(RecordedMails::default());
    let notices = Notices::new(table.clone(), mails.clone(), config.merchant.clone(), UTC, system.clock.clone());
    assert_eq!(notices_function::send_notices(&notices, [("m-1".to_owned(), body)]).await, Vec::<String>::new());
    assert_eq!(mails.mails().len(), 1);
}

/// Lambda uses the level of a JSON line only if the line also has a timestamp in the format of RFC 3339.
#[test]
fn json_lines_have_the_level_and_the_timestamp_that_lambda_reads() {
    let kept = LogBuffer::default();
    let writer = kept.clone();
    let lines = logs::line_layer(true, move || writer.clone());
    tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), || {
        tracing::error!("a failure");
    });
    let line: serde_json::Value = serde_json::from_str(kept.text().trim()).unwrap();
    assert_eq!(line["level"], "ERROR");
    let timestamp = line["timestamp"].as_str().unwrap();
    assert!(chrono::DateTime::parse_from_rfc3339(timestamp).is_ok(), "{timestamp}");
}
