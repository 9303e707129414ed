//! Checks that the alarms and the dashboard of `template.yaml` cover every function, queue, table and secret.

use std::collections::{BTreeMap, BTreeSet};

use serde_yaml_ng::Value;

use crate::template::{statements_of_function, template, text};

/// The largest number of metrics that CloudWatch allows in one alarm.
const MAX_METRICS: usize = 10;

/// Returns the names of the resources of the type `kind`, such as `AWS::SQS::Queue`, each with its condition.
fn of_type(template: &Value, kind: &str) -> BTreeMap<String, Option<String>> {
    let all = template["Resources"].as_mapping().unwrap().iter();
    let found = all.filter(|(_, resource)| resource["Type"] == kind);
    found.map(|(name, resource)| (text(name), resource["Condition"].as_str().map(str::to_owned))).collect()
}

/// Returns the text of `value` as YAML.
fn yaml(value: &Value) -> String {
    serde_yaml_ng::to_string(value).unwrap()
}

/// Returns the metrics of the alarm `name`, each with its condition. Leaves out the alarm's expressions.
fn metrics<'a>(template: &'a Value, name: &str) -> Vec<(Option<String>, &'a Value)> {
    let listed = template["Resources"][name]["Properties"]["Metrics"].as_sequence().unwrap().iter();
    let listed = listed.map(|metric| match metric {
        Value::Tagged(conditional) => (Some(text(&conditional.value[0])), &conditional.value[1]),
        metric => (None, metric),
    });
    listed.filter(|(_, metric)| !metric["MetricStat"].is_null()).collect()
}

/// Returns the name in a `!Ref`.
fn name_in_ref(value: &Value) -> String {
    let Value::Tagged(reference) = value else { panic!("no !Ref: {value:?}") };
    text(&reference.value)
}

#[test]
fn template_alarms_about_throttled_functions_cover_each_function_once() {
    let template = template();
    let mut watched = BTreeMap::new();
    for alarm in ["FunctionsThrottledAlarm", "OptionalFunctionsThrottledAlarm"] {
        for (condition, metric) in metrics(&template, alarm) {
            let metric = &metric["MetricStat"]["Metric"];
            assert_eq!(text(&metric["MetricName"]), "Throttles", "{alarm}");
            let function = name_in_ref(&metric["Dimensions"][0]["Value"]);
            assert_eq!(watched.insert(function, condition), None, "{alarm}");
        }
    }
    assert_eq!(watched, of_type(&template, "AWS::Serverless::Function"));
    // CloudFormation would refuse an alarm without a metric.
    let conditions: BTreeSet<String> = watched.into_values().flatten().collect();
    let Value::Tagged(both) = &template["Conditions"]["WatchesOptionalFunctions"] else { panic!("no !And") };
    assert_eq!(name_in_ref(&both.value[0]), "IsFull");
    let Value::Tagged(any) = &both.value[1] else { panic!("no !Or") };
    let any: BTreeSet<String> = any.value.as_sequence().unwrap().iter().map(name_in_ref).collect();
    assert_eq!(conditions, any);
    let condition = &template["Resources"]["OptionalFunctionsThrottledAlarm"]["Condition"];
    assert_eq!(text(condition), "WatchesOptionalFunctions");
}

#[test]
fn template_stops_no_meant_loop_and_has_an_alarm_about_stopped_loops_of_all_functions() {
    let template = template();
    let query = &template["Resources"]["RecursiveLoopsAlarm"]["Properties"]["Metrics"][0]["Expression"];
    assert_eq!(text(query), r#"SELECT SUM(RecursiveInvocationsDropped) FROM SCHEMA("AWS/Lambda", FunctionName)"#);
    let queues: BTreeMap<String, Value> = template["Resources"]
        .as_mapping()
        .unwrap()
        .iter()
        .filter(|(_, resource)| resource["Type"] == "AWS::Serverless::Function")
        .map(|(name, function)| (text(name), function["Properties"].clone()))
        .collect();
    // A function that may send to the queue that invokes it is in a loop.
    let has_loop = |name: &str, function: &Value| {
        let events = function["Events"].as_mapping().into_iter().flatten();
        let invoking =
            events.filter(|(_, event)| event["Type"] == "SQS").map(|(_, event)| yaml(&event["Properties"]["Queue"]));
        let statements = statements_of_function(&template, name);
        let sends = statements.iter().filter(|statement| yaml(&statement["Action"]).contains("sqs:SendMessage"));
        let targets: Vec<String> = sends.map(|statement| yaml(&statement["Resource"])).collect();
        invoking.into_iter().any(|queue| targets.iter().any(|target| target.contains(queue.trim())))
    };
    for (name, function) in queues {
        let expected = has_loop(&name, &function).then_some("Allow");
        assert_eq!(function["RecursiveLoop"].as_str(), expected, "{name}");
    }
}

#[test]
fn template_alarms_have_at_most_the_number_of_metrics_that_cloudwatch_allows() {
    let template = template();
    for alarm in of_type(&template, "AWS::CloudWatch::Alarm").keys() {
        let listed = &template["Resources"][alarm.as_str()]["Properties"]["Metrics"];
        let is_query = listed[0]["Expression"].as_str().is_some_and(|expression| expression.starts_with("SELECT "));
        if !listed.is_null() && !is_query {
            let number = metrics(&template, alarm).len();
            assert!((1..=MAX_METRICS).contains(&number), "{alarm} has {number} metrics");
        }
    }
}

#[test]
fn template_alarms_about_throttled_tables_cover_reads_and_writes_of_each_table_and_of_its_indexes() {
    let template = template();
    for (table, name) in [("Table", "TableName.Value"), ("OrdersTable", "OrdersTableName.Value")] {
        let alarm = format!("{table}ThrottledAlarm");
        let mut watched = BTreeSet::new();
        for (condition, metric) in metrics(&template, &alarm) {
            assert_eq!(condition, None, "{alarm}");
            let metric = &metric["MetricStat"]["Metric"];
            let dimensions = metric["Dimensions"].as_sequence().unwrap();
            assert_eq!(name_in_ref(&dimensions[0]["Value"]), name);
            let index = dimensions.get(1).map(|dimension| text(&dimension["Value"]));
            watched.insert((index, text(&metric["MetricName"])));
        }
        // DynamoDB publishes no value while it throttles no request. So the expression fills missing values with 0.
        let expression = &template["Resources"][alarm.as_str()]["Properties"]["Metrics"][0]["Expression"];
        assert_eq!(text(expression), "SUM(FILL(METRICS(), 0))", "{alarm}");
        let indexes = template["Resources"][table]["Properties"]["GlobalSecondaryIndexes"].as_sequence().unwrap();
        let indexes = indexes.iter().map(|index| Some(text(&index["IndexName"])));
        let expected: BTreeSet<_> = std::iter::once(None)
            .chain(indexes)
            .flat_map(|index| {
                ["ReadThrottleEvents", "WriteThrottleEvents"].map(|name| (index.clone(), name.to_owned()))
            })
            .collect();
        assert_eq!(watched, expected, "{alarm}");
    }
    assert_eq!(text(&template["Resources"]["OrdersTableThrottledAlarm"]["Condition"]), "HasOrders");
}

/// Each schedule of the stack, and the alarm that fires if the schedule does not start.
const ALARMS_OF_SCHEDULES: [(&str, &str); 9] = [
    ("AuditFunction.Audit", "AuditContinuedAlarm"),
    ("AuditFunction.DayDone", "DayCheckedAlarm"),
    ("DeliverFunction.Due", "SchedulesNotStartedAlarm"),
    ("EraseFunction.Schedule", "SchedulesNotStartedAlarm"),
    ("HeartbeatSchedule", "HeartbeatsAlarm"),
    ("OrdersFunction.Fill", "SchedulesNotStartedAlarm"),
    ("PaymentsDaily.Schedule", "PaymentsNotSeenDone"),
    ("ReconcileFunction.Schedule", "DayComparedAlarm"),
    ("RemindersDaily.Schedule", "RemindersNotSeenDone"),
];

#[test]
fn template_has_an_alarm_for_each_schedule_that_does_not_start() {
    let template = template();
    let mut schedules = BTreeSet::new();
    for (name, resource) in template["Resources"].as_mapping().unwrap() {
        let name = text(name);
        for (event, declared) in resource["Properties"]["Events"].as_mapping().into_iter().flatten() {
            if declared["Type"] == "ScheduleV2" {
                schedules.insert(format!("{name}.{}", text(event)));
            }
        }
        if resource["Type"] == "AWS::Scheduler::Schedule" {
            schedules.insert(name);
        }
    }
    assert_eq!(schedules, ALARMS_OF_SCHEDULES.map(|(schedule, _)| schedule.to_owned()).into());
    for (schedule, alarm) in ALARMS_OF_SCHEDULES {
        let alarm = &template["Resources"][alarm]["Properties"];
        let wanted = (&alarm["TreatMissingData"], &alarm["ComparisonOperator"]);
        assert_eq!(wanted, (&"breaching".into(), &"LessThanThreshold".into()), "{schedule}");
    }
    let watched: BTreeSet<(String, Option<String>)> = metrics(&template, "SchedulesNotStartedAlarm")
        .into_iter()
        .map(|(condition, metric)| {
            let metric = &metric["MetricStat"]["Metric"];
            assert_eq!(text(&metric["MetricName"]), "Invocations");
            (name_in_ref(&metric["Dimensions"][0]["Value"]), condition)
        })
        .collect();
    let orders = ("OrdersFunction".to_owned(), Some("HasOrders".to_owned()));
    let always = ["DeliverFunction", "EraseFunction"].map(|function| (function.to_owned(), None));
    assert_eq!(watched, always.into_iter().chain([orders]).collect());
}

#[test]
fn template_alarms_about_errors_cover_each_function() {
    let template = template();
    let mut watched = BTreeMap::new();
    let of_batches = metrics(&template, "BatchesFailedAlarm");
    for (condition, metric) in metrics(&template, "FunctionsFailedAlarm").into_iter().chain(of_batches) {
        let metric = &metric["MetricStat"]["Metric"];
        assert_eq!(text(&metric["MetricName"]), "Errors");
        watched.insert(name_in_ref(&metric["Dimensions"][0]["Value"]), condition);
    }
    let alarms = of_type(&template, "AWS::CloudWatch::Alarm");
    for (alarm, condition) in alarms {
        let alarm = &template["Resources"][alarm.as_str()]["Properties"];
        if alarm["MetricName"] == "Errors" {
            watched.insert(name_in_ref(&alarm["Dimensions"][0]["Value"]), condition);
        }
    }
    assert_eq!(watched, of_type(&template, "AWS::Serverless::Function"));
}

#[test]
fn template_watches_the_log_of_each_function_that_reads_a_secret() {
    let template = template();
    let resources = template["Resources"].as_mapping().unwrap();
    let reads_secret = |function: &Value| {
        let variables = function["Properties"]["Environment"]["Variables"].as_mapping();
        variables.is_some_and(|all| all.keys().any(|name| text(name).ends_with("_SECRET_NAME")))
    };
    let functions = of_type(&template, "AWS::Serverless::Function");
    let readers = functions.keys().map(|name| &template["Resources"][name.as_str()]).filter(|one| reads_secret(one));
    let readers: BTreeSet<String> =
        readers.map(|function| name_in_ref(&function["Properties"]["LoggingConfig"]["LogGroup"])).collect();
    assert!(readers.len() >= 7, "{readers:?}");
    let watched = &template["Resources"]["SecretUnreadableAlarm"]["Properties"]["MetricName"];
    let filters = resources.values().filter(|resource| {
        resource["Type"] == "AWS::Logs::MetricFilter"
            && resource["Properties"]["MetricTransformations"][0]["MetricName"] == *watched
    });
    let mut found = BTreeSet::new();
    for filter in filters {
        assert_eq!(text(&filter["Properties"]["FilterPattern"]), format!("\"{}\"", config::SECRET_UNREADABLE));
        found.insert(name_in_ref(&filter["Properties"]["LogGroupName"]));
    }
    assert_eq!(found, readers);
}

/// Returns the body of the dashboard of a stack in which only the conditions `on` are true. The names of resources,
/// such as `${PaymentsFunction}`, are not replaced.
fn dashboard(template: &Value, on: &BTreeSet<String>) -> String {
    let body = &template["Resources"]["Dashboard"]["Properties"]["DashboardBody"];
    let Value::Tagged(body) = body else { panic!("no !Sub") };
    let mut filled = text(&body.value[0]);
    for (name, value) in body.value[1].as_mapping().unwrap() {
        let Value::Tagged(either) = value else { panic!("no !If: {name:?}") };
        let text_of = |value: &Value| match value {
            Value::Tagged(substituted) => text(&substituted.value),
            value => text(value),
        };
        let chosen = &either.value[if on.contains(&text(&either.value[0])) { 1 } else { 2 }];
        let mark = format!("${{{}}}", text(name));
        assert_eq!(filled.matches(&mark).count(), 1, "{mark}");
        filled = filled.replace(&mark, &text_of(chosen));
    }
    filled
}

#[test]
fn template_dashboard_shows_each_function_and_each_queue_that_the_stack_has() {
    let template = template();
    let conditions = ["HasStripeWebhooks", "HasSes", "HasOrders", "HasSandbox"].map(str::to_owned);
    let all = [of_type(&template, "AWS::Serverless::Function"), of_type(&template, "AWS::SQS::Queue")];
    for bits in 0..1_u32 << conditions.len() {
        let on = conditions.iter().enumerate().filter(|(bit, _)| bits & (1 << bit) != 0);
        let on: BTreeSet<String> = on.map(|(_, condition)| condition.clone()).collect();
        let body = dashboard(&template, &on);
        let parsed: serde_json::Value = serde_json::from_str(&body).unwrap_or_else(|error| panic!("{on:?}: {error}"));
        assert!(parsed["widgets"].as_array().unwrap().len() >= 13);
        for (name, condition) in all.iter().flatten().filter(|(name, _)| name.as_str() != "Heartbeats") {
            let is_deployed = condition.as_ref().is_none_or(|condition| on.contains(condition));
            let shown = [format!("\"${{{name}}}\""), format!("\"${{{name}.QueueName}}\"")];
            assert_eq!(shown.iter().any(|text| body.contains(text)), is_deployed, "{name} {on:?}");
        }
    }
    let yaml = yaml(&template["Resources"]["Dashboard"]);
    assert!(yaml.contains("!If"), "{yaml}");
}
