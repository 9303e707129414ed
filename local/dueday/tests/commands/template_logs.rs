//! Metric filters of `template.yaml` match what the functions log: each text of a filter is the text of a log line.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use serde_yaml_ng::Value;
use tracing_subscriber::layer::SubscriberExt as _;

/// The log group that is filtered, and the text of the line that the code logs there.
const LINES: [(&str, &str); 9] = [
    ("WebhooksLog", inbound::EVENT_FAILED),
    ("WebhooksLog", settling::NO_RECEIPT),
    ("WebhooksLog", inbound::NOT_SIGNED),
    ("DeliverLog", delivery::ENDPOINT_DISABLED),
    ("DeliverLog", delivery::ENDPOINT_UNREADABLE),
    ("DeliverLog", delivery::EVENT_GIVEN_UP),
    ("NoticesLog", delivery::NOTICE_COMES_AGAIN),
    ("NoticesLog", delivery::NOTICE_REFUSED),
    ("OrdersLog", orders::NO_PRODUCTS),
];

/// Which function writes to each log group.
const LOG_GROUPS: [(&str, &str); 4] = [
    ("WebhooksLog", "WebhooksFunction"),
    ("DeliverLog", "DeliverFunction"),
    ("NoticesLog", "NoticesFunction"),
    ("OrdersLog", "OrdersFunction"),
];

fn resources() -> Value {
    let template: Value = serde_yaml_ng::from_str(include_str!("../../../../template.yaml")).unwrap();
    template["Resources"].clone()
}

/// The value of `!Ref`.
fn named(value: &Value) -> String {
    let Value::Tagged(reference) = value else { panic!("no !Ref: {value:?}") };
    reference.value.as_str().unwrap().to_owned()
}

/// The texts of which one must be in a line, from a pattern such as `?"a" ?"b"` or `"a"`.
fn texts(pattern: &str) -> Vec<&str> {
    let texts: Vec<&str> = pattern.split('"').skip(1).step_by(2).collect();
    let is_any_of = pattern.split('"').step_by(2).map(str::trim).all(|mark| mark == "?" || mark.is_empty());
    assert!(is_any_of && (texts.len() == 1 || pattern.starts_with('?')), "a pattern of another kind: {pattern}");
    texts
}

#[test]
fn template_filters_match_the_texts_that_are_logged_and_no_others() {
    let resources = resources();
    let filters = resources.as_mapping().unwrap().iter();
    let filters = filters.filter(|(_, resource)| resource["Type"] == "AWS::Logs::MetricFilter");
    let mut matched = BTreeSet::new();
    for (name, filter) in filters {
        let filter = &filter["Properties"];
        let group = named(&filter["LogGroupName"]);
        let pattern = filter["FilterPattern"].as_str().unwrap();
        matched.extend(texts(pattern).into_iter().map(|text| (group.clone(), text.to_owned())));
        let alarm = format!("{}Alarm", name.as_str().unwrap());
        let (counted, watched) = (&filter["MetricTransformations"][0], &resources[alarm.as_str()]["Properties"]);
        assert_eq!(counted["MetricName"], watched["MetricName"], "{alarm} does not watch what {name:?} counts");
        assert_eq!(counted["MetricNamespace"], watched["Namespace"], "{alarm}");
    }
    let logged = LINES.map(|(group, text)| (group.to_owned(), text.to_owned()));
    assert_eq!(matched, BTreeSet::from(logged), "the texts of the filters, and those of the log lines");
    for (group, function) in LOG_GROUPS {
        assert_eq!(named(&resources[function]["Properties"]["LoggingConfig"]["LogGroup"]), group);
    }
}

/// Keeps what is logged.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Kept {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()).unwrap()
    }
}

/// A filter matches the whole line: a text must stand in it as it is, also where JSON escapes what it must.
#[test]
fn template_filters_match_lines_in_both_formats_of_the_functions() {
    for is_json in [true, false] {
        let kept = Kept::default();
        let writer = kept.clone();
        let lines = logs::lines(is_json, move || writer.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), || {
            LINES.iter().for_each(|(_, text)| tracing::error!(error = "a \"reason\"", "{text}"));
        });
        let logged = kept.text();
        assert_eq!(logged.lines().count(), LINES.len(), "{logged}");
        for ((_, text), line) in LINES.iter().zip(logged.lines()) {
            assert!(line.contains(text), "{text} is not in {line}");
        }
    }
}
