//! Writes the alarms and the metric filters of `template.yaml`.

use std::fmt::Write as _;

use super::table::{Alarm, Filter, ListedMetric, Part};

/// The largest number of characters in a line of a comment.
const COMMENT_WIDTH: usize = 124;

/// Returns `text` in double quotes, as in JSON, which is also YAML.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

/// Splits a metric such as `AWS/Lambda Errors` into its namespace and its name.
pub fn namespace_and_name(metric: &str) -> (&str, &str) {
    metric.split_once(' ').unwrap_or_else(|| panic!("no namespace and name: {metric}"))
}

/// Returns the name of a counted metric in the template.
fn counted_name(counted: &str) -> String {
    format!("!Sub \"${{AWS::StackName}}-{counted}\"")
}

/// Returns a dimension such as `QueueName GetAtt Paid.QueueName` as YAML.
fn dimension(text: &str) -> String {
    let parts: Vec<&str> = text.split(' ').collect();
    let [name, function, argument] = parts[..] else { panic!("not a dimension: {text}") };
    format!("{{ Name: {name}, Value: !{function} {argument} }}")
}

/// Adds the comment, the name, the type and the condition of a resource.
fn add_head(yaml: &mut String, comment: Option<&str>, name: &str, kind: &str, condition: Option<&str>) {
    for line in comment.map(|comment| wrap(comment, COMMENT_WIDTH)).into_iter().flatten() {
        writeln!(yaml, "  # {line}").unwrap();
    }
    writeln!(yaml, "  {name}:\n    Type: {kind}").unwrap();
    if let Some(condition) = condition {
        writeln!(yaml, "    Condition: {condition}").unwrap();
    }
    yaml.push_str("    Properties:\n");
}

/// Splits `text` into lines of at most `width` characters.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Adds the metric filter `filter`, which counts the metric `counted` of `alarm`.
fn add_filter(yaml: &mut String, filter: &Filter, alarm: &Alarm, counted: &str) {
    let condition = filter.condition.as_deref().or(alarm.condition());
    add_head(yaml, filter.comment.as_deref(), &filter.name, "AWS::Logs::MetricFilter", condition);
    let pattern = match (&filter.pattern, filter.texts.as_slice()) {
        (Some(pattern), []) => pattern.clone(),
        (None, [text]) => format!("\"{text}\""),
        (Some(_), _) | (None, []) => panic!("{} needs either texts or a pattern", filter.name),
        (None, texts) => texts.iter().map(|text| format!("?\"{text}\"")).collect::<Vec<_>>().join(" "),
    };
    writeln!(yaml, "      LogGroupName: !Ref {}\n      FilterPattern: '{pattern}'", filter.log).unwrap();
    writeln!(yaml, "      MetricTransformations:\n        - MetricName: {}", counted_name(counted)).unwrap();
    yaml.push_str("          MetricNamespace: Dueday\n          MetricValue: \"1\"\n\n");
}

/// Adds a metric of the expression of `alarm`.
fn add_listed_metric(yaml: &mut String, listed: &ListedMetric, alarm: &Alarm) {
    let metric = match (&listed.metric, &listed.counted) {
        (Some(metric), None) => {
            let (namespace, name) = namespace_and_name(metric);
            format!("Namespace: {namespace}, MetricName: {name}")
        }
        (None, Some(counted)) => format!("Namespace: Dueday, MetricName: {}", counted_name(counted)),
        _ => panic!("{}: {} needs either metric or counted", alarm.name, listed.id),
    };
    let index = listed.index.iter().map(|index| format!("{{ Name: GlobalSecondaryIndexName, Value: {index} }}"));
    let dimensions: Vec<String> = listed.dimension.iter().map(|text| dimension(text)).chain(index).collect();
    let dimensions = match dimensions.is_empty() {
        true => String::new(),
        false => format!(", Dimensions: [{}]", dimensions.join(", ")),
    };
    let statistic = alarm.statistic.as_deref().unwrap_or("Sum");
    let stat = format!("{{ Metric: {{ {metric}{dimensions} }}, Stat: {statistic}, Period: {} }}", alarm.period);
    let indent = match &listed.condition {
        Some(condition) => {
            writeln!(yaml, "        - !If\n          - {condition}").unwrap();
            "          "
        }
        None => "        ",
    };
    writeln!(yaml, "{indent}- Id: {}\n{indent}  ReturnData: false\n{indent}  MetricStat: {stat}", listed.id).unwrap();
    if listed.condition.is_some() {
        yaml.push_str("          - !Ref \"AWS::NoValue\"\n");
    }
}

/// Adds `alarm` without its metric filters.
fn add_alarm(yaml: &mut String, alarm: &Alarm) {
    add_head(yaml, alarm.comment.as_deref(), &alarm.name, "AWS::CloudWatch::Alarm", alarm.condition());
    writeln!(yaml, "      AlarmDescription: {}", quoted(&alarm.meaning)).unwrap();
    let single = match (&alarm.metric, &alarm.counted, &alarm.expression) {
        (Some(metric), None, None) => {
            let (namespace, name) = namespace_and_name(metric);
            Some((namespace, name.to_owned()))
        }
        (None, Some(counted), None) => Some(("Dueday", counted_name(counted))),
        (None, None, Some(expression)) => {
            let label = alarm.label.as_deref().unwrap_or_else(|| panic!("{} needs a label", alarm.name));
            yaml.push_str("      Metrics:\n        - Id: result");
            match &alarm.otherwise {
                Some(otherwise) => writeln!(
                    yaml,
                    "\n          Expression: !If\n            - {}\n            - {expression}\n            - {}",
                    otherwise.unless, otherwise.expression
                ),
                None => writeln!(yaml, "\n          Expression: {expression}"),
            }
            .unwrap();
            writeln!(yaml, "          Label: {label}").unwrap();
            // An expression without metrics is a query, which has a period of its own.
            if alarm.metrics.is_empty() {
                writeln!(yaml, "          Period: {}", alarm.period).unwrap();
            }
            alarm.metrics.iter().for_each(|listed| add_listed_metric(yaml, listed, alarm));
            None
        }
        _ => panic!("{} needs exactly one of metric, counted and expression", alarm.name),
    };
    if let Some((namespace, name)) = single {
        writeln!(yaml, "      Namespace: {namespace}\n      MetricName: {name}").unwrap();
        if let Some(text) = &alarm.dimension {
            writeln!(yaml, "      Dimensions: [{}]", dimension(text)).unwrap();
        }
        let statistic = alarm.statistic.as_deref().unwrap_or("Sum");
        writeln!(yaml, "      Statistic: {statistic}\n      Period: {}", alarm.period).unwrap();
    }
    writeln!(yaml, "      EvaluationPeriods: {}", alarm.periods.unwrap_or(1)).unwrap();
    if let Some(number) = alarm.of_these {
        writeln!(yaml, "      DatapointsToAlarm: {number}").unwrap();
    }
    let (threshold, comparison, missing) = match (&alarm.at_least, &alarm.below) {
        (Some(threshold), None) => (threshold, "GreaterThanOrEqualToThreshold", "notBreaching"),
        (None, Some(threshold)) => (threshold, "LessThanThreshold", "breaching"),
        _ => panic!("{} needs either at_least or below", alarm.name),
    };
    writeln!(yaml, "      Threshold: {threshold}\n      ComparisonOperator: {comparison}").unwrap();
    writeln!(yaml, "      TreatMissingData: {missing}\n      AlarmActions: [!Ref Alarms]\n").unwrap();
}

/// Returns the metric filters and the alarms of `part`, as they are in the template.
pub fn write_alarms(alarms: &[Alarm], part: Part) -> String {
    let mut yaml = String::new();
    for alarm in alarms.iter().filter(|alarm| alarm.part == part) {
        let counted = alarm.counted.as_deref().or(alarm.metrics.iter().find_map(|listed| listed.counted.as_deref()));
        for filter in &alarm.filters {
            let counted = counted.unwrap_or_else(|| panic!("{} counts no metric", alarm.name));
            add_filter(&mut yaml, filter, alarm, counted);
        }
        add_alarm(&mut yaml, alarm);
    }
    yaml.trim_end().to_owned() + "\n"
}
