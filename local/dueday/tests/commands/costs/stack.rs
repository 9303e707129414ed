//! Reads the parts of `template.yaml` that determine the costs: the filters, the rules, the batches, and the resources
//! that cost money each month.

use events_function::{NO_WEBHOOK_ENDPOINT, WEBHOOK_ENDPOINTS};
use serde_json::{Value as Json, json};
use serde_yaml_ng::Value;

use super::patterns::is_match;
use crate::template::{template, text};

/// The parameters of the stack whose costs are computed: a stack with Stripe and its webhooks, Amazon SES, and alarms by
/// mail.
const PARAMETERS: [(&str, &str); 5] = [
    ("Gateway", "stripe"),
    ("StripeSecret", "arn:aws:secretsmanager:eu-west-1:123456789012:secret:stripe"),
    ("StripeWebhookSecret", "arn:aws:secretsmanager:eu-west-1:123456789012:secret:webhooks"),
    ("MailUrl", "ses:"),
    ("AlarmEmail", "ops@example.com"),
];

/// How Lambda forms the batches of a function from a stream or a queue.
#[derive(Clone, Copy)]
pub struct Batching {
    /// The largest number of records or messages in an invocation.
    pub size: f64,
    /// How long Lambda waits for a full batch, in seconds; 0 if Lambda does not wait.
    pub window_seconds: f64,
    /// The number of batches of a stream shard that are processed at the same time. 1 for a queue.
    pub parallel: f64,
}

/// The stack that `template.yaml` deploys.
pub struct Stack {
    /// The template with all parts.
    template: Value,
    deployed: crate::stack::Stack,
}

impl Stack {
    /// Reads the template, for a stack with all parts.
    pub fn read() -> Self {
        Self::with_parts("full")
    }

    /// Reads the template, for a stack with the parts `core` or `full`.
    pub fn with_parts(parts: &str) -> Self {
        let parameters: Vec<(&str, &str)> = PARAMETERS.iter().copied().chain([("Parts", parts)]).collect();
        Self { template: template(), deployed: crate::stack::Stack::new(&parameters) }
    }

    /// Returns whether the stack has the resource `name`.
    pub fn has(&self, name: &str) -> bool {
        self.deployed.resources().iter().any(|(deployed, _)| deployed == name)
    }

    /// Returns the properties of the resource `name`.
    pub fn properties(&self, name: &str) -> &Value {
        &self.template["Resources"][name]["Properties"]
    }

    /// Returns the default value of the parameter `name`, which is a number.
    pub fn parameter(&self, name: &str) -> f64 {
        self.template["Parameters"][name]["Default"].as_f64().unwrap_or_else(|| panic!("{name} is not a number"))
    }

    /// Returns the patterns of the filter of the payment table's stream.
    pub fn stream_filters(&self) -> Vec<Json> {
        let stream = &self.properties("EventsFunction")["Events"]["Stream"]["Properties"];
        let filters = stream["FilterCriteria"]["Filters"].as_sequence().unwrap().iter();
        filters.map(|filter| serde_json::from_str(&text(&filter["Pattern"])).unwrap()).collect()
    }

    /// Returns whether the filter of the payment table's stream passes `record`.
    pub fn is_passed(&self, record: &Json) -> bool {
        self.stream_filters().iter().any(|pattern| is_match(pattern, record))
    }

    /// Returns whether the filter of the orders table's stream passes `record`.
    pub fn is_passed_of_orders(&self, record: &Json) -> bool {
        let filters = self.properties("OrdersStream")["FilterCriteria"]["Filters"].as_sequence().unwrap().iter();
        let mut patterns = filters.map(|filter| serde_json::from_str::<Json>(&text(&filter["Pattern"])).unwrap());
        patterns.any(|pattern| is_match(&pattern, record))
    }

    /// Returns whether the rule `name` matches `entry`, an event in the envelope of EventBridge.
    pub fn is_routed(&self, name: &str, entry: &Json) -> bool {
        is_match(&serde_json::to_value(&self.properties(name)["EventPattern"]).unwrap(), entry)
    }

    /// Returns how Lambda forms the batches of `function` from the event source `event`.
    pub fn batching(&self, function: &str, event: &str) -> Batching {
        let properties = &self.properties(function)["Events"][event]["Properties"];
        let number = |name: &str, default: f64| properties[name].as_f64().unwrap_or(default);
        Batching {
            size: number("BatchSize", 10.0),
            window_seconds: number("MaximumBatchingWindowInSeconds", 0.0),
            parallel: number("ParallelizationFactor", 1.0),
        }
    }

    /// Returns whether Lambda logs its own lines about each invocation, which have the level INFO.
    pub fn logs_each_invocation(&self) -> bool {
        self.template["Globals"]["Function"]["LoggingConfig"]["SystemLogLevel"]
            .as_str()
            .is_none_or(|level| level == "INFO")
    }

    /// Returns all deployed resources of the type `kind`, such as `AWS::SQS::Queue`, with their names.
    pub fn resources(&self, kind: &str) -> Vec<(String, &Value)> {
        let deployed = self.deployed.resources().into_iter().filter(|(_, resource)| resource["Type"] == kind);
        deployed.map(|(name, resource)| (name, &resource["Properties"])).collect()
    }

    /// Returns the number of metrics that the alarms watch. If an alarm watches an expression, each metric of the
    /// expression counts.
    pub fn alarm_metrics(&self) -> usize {
        let is_watched = |metric: &Value| match metric {
            // `!If` contains a condition, the metric for a true condition, and no value for a false condition.
            Value::Tagged(conditional) => {
                conditional.value[0].as_str().is_some_and(|condition| self.deployed.is_true(condition))
            }
            metric => !metric["MetricStat"].is_null(),
        };
        let metrics = |alarm: &Value| {
            // An alarm on a query counts as one metric.
            let listed = |all: &Vec<Value>| all.iter().filter(|metric| is_watched(metric)).count().max(1);
            alarm["Metrics"].as_sequence().map_or(1, listed)
        };
        self.resources("AWS::CloudWatch::Alarm").iter().map(|(_, alarm)| metrics(alarm)).sum()
    }

    /// Returns the number of metrics that the functions write at the end of the daily runs and of their mails. The
    /// dashboard shows each metric in its own line, or with a search expression. A search expression counts as one
    /// metric, that is, for one currency. The metrics of deliveries are not counted: without a webhook endpoint, these
    /// metrics do not exist.
    pub fn run_metrics(&self) -> usize {
        let is_of_missing_function = |line: &&str| line.contains("{NoticesFunction}") && !self.has("NoticesFunction");
        let dashboard = serde_yaml_ng::to_string(&self.template["Resources"]["Dashboard"]).unwrap();
        let written = |line: &&str| {
            line.contains("\"Dueday\"") && line.contains("\"FunctionName\"") || line.contains("{Dueday,FunctionName")
        };
        let written = dashboard.lines().filter(written).filter(|line| !is_of_missing_function(line));
        written.filter(|line| !line.contains("{DeliverFunction}")).count()
    }

    /// Returns the number of queues that Lambda polls.
    pub fn polled_queues(&self) -> usize {
        let functions = self.resources("AWS::Serverless::Function");
        let events = functions.iter().flat_map(|(_, function)| function["Events"].as_mapping());
        events.flat_map(|events| events.values()).filter(|event| event["Type"] == "SQS").count()
    }
}

#[test]
fn deliveries_rule_excludes_unreadable_records_and_events_published_without_a_webhook_endpoint() {
    let stack = Stack::read();
    let resources = |resource: &str| json!([resource]);
    for (event_type, resources, expected) in [
        ("payment.succeeded", resources(WEBHOOK_ENDPOINTS), true),
        ("payment.succeeded", resources(NO_WEBHOOK_ENDPOINT), false),
        // An earlier version of the function `events` published its events without a resource.
        ("payment.succeeded", json!([]), true),
        ("payment.succeeded", Json::Null, true),
        ("record.unreadable", resources(WEBHOOK_ENDPOINTS), false),
    ] {
        let entry = json!({ "source": "dueday", "detail-type": event_type, "resources": resources });
        assert_eq!(stack.is_routed("DeliveriesRule", &entry), expected, "{entry}");
        assert!(stack.is_routed("EventsKeptRule", &entry), "each event is archived: {entry}");
    }
}

/// Checks a rule of the Lambda Developer Guide ("Using Lambda with Amazon SQS"): a message must stay invisible for six
/// times the time limit of the function, plus the batching window.
#[test]
fn messages_stay_invisible_while_lambda_waits_for_a_full_batch_and_repeats_it() {
    let stack = Stack::read();
    for (queue, function) in
        [("Deliveries", "DeliverFunction"), ("Notices", "NoticesFunction"), ("Paid", "OrdersFunction")]
    {
        let window = stack.batching(function, "Queue").window_seconds;
        let time_limit = stack.properties(function)["Timeout"].as_f64().unwrap();
        let invisible = stack.properties(queue)["VisibilityTimeout"].as_f64().unwrap();
        assert!(window > 0.0 && invisible >= 6.0 * time_limit + window, "{queue}");
    }
}
