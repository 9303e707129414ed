//! Writes the dashboard of `template.yaml`.

use std::fmt::Write as _;

use super::alarms::namespace_and_name;
use super::table::{ShownMetric, Widget};

/// The height of a widget.
const HEIGHT: usize = 6;
/// The width of a widget: two are in a row.
const WIDTH: usize = 12;

/// Returns `metric` as an element of the list of metrics of a widget.
fn element(metric: &ShownMetric) -> String {
    let (namespace, name) = namespace_and_name(&metric.metric);
    let (dimension, resource) = namespace_and_name(&metric.dimension);
    let mut options = format!("\"label\": {}", serde_json::to_string(&metric.label).unwrap());
    for (option, value) in [("stat", &metric.statistic), ("yAxis", &metric.axis)] {
        if let Some(value) = value {
            write!(options, ", \"{option}\": \"{value}\"").unwrap();
        }
    }
    format!("[\"{namespace}\", \"{name}\", \"{dimension}\", \"${{{resource}}}\", {{{options}}}]")
}

/// Returns the name of the variable with the metrics of the widget number `index` that exist under `condition`.
fn variable_name(index: usize, condition: &str) -> String {
    format!("Widget{index}{condition}")
}

/// Returns the conditions of the metrics of `widget`, each once.
fn conditions(widget: &Widget) -> Vec<&str> {
    let mut conditions: Vec<&str> = widget.metrics.iter().filter_map(|metric| metric.condition.as_deref()).collect();
    conditions.dedup();
    conditions
}

/// Returns the resource with the dashboard. A metric of a resource that exists under a condition is in a variable.
pub fn write_dashboard(widgets: &[Widget]) -> String {
    let mut yaml = String::from(
        "  Dashboard:\n    Type: AWS::CloudWatch::Dashboard\n    Condition: IsFull\n    Properties:\n      \
         DashboardName: !Ref \"AWS::StackName\"\n      DashboardBody: !Sub\n        - |\n          {\n            \"widgets\": [\n",
    );
    yaml.push_str(concat!(
        "              {\"type\": \"text\", \"x\": 0, \"y\": 0, \"width\": 24, \"height\": 1, \"properties\": {\"markdown\": ",
        "\"**${AWS::StackName}**: `dueday status --table ${TableName.Value}` says what needs a person. Alarms: docs/operations.md\"}}"
    ));
    for (index, widget) in widgets.iter().enumerate() {
        let (x, y) = (index % 2 * WIDTH, 1 + index / 2 * HEIGHT);
        let Widget { title, statistic, period, .. } = widget;
        write!(
            yaml,
            ",\n              {{\"type\": \"metric\", \"x\": {x}, \"y\": {y}, \"width\": {WIDTH}, \"height\": {HEIGHT}, \
             \"properties\": {{\"title\": {}, \"region\": \"${{AWS::Region}}\", \"stat\": \"{statistic}\", \"period\": {period}, \
             \"view\": \"timeSeries\", \"stacked\": false, \"metrics\": [\n",
            serde_json::to_string(title).unwrap()
        )
        .unwrap();
        let always = widget.metrics.iter().filter(|metric| metric.condition.is_none());
        let mut elements: Vec<String> = always.map(|metric| format!("                {}", element(metric))).collect();
        if let Some(search) = &widget.search {
            let search = format!("SEARCH('{search}', '{statistic}', {period})");
            elements.push(format!(
                "                [{{\"expression\": {}, \"id\": \"found\"}}]",
                serde_json::to_string(&search).unwrap()
            ));
        }
        yaml.push_str(&elements.join(",\n"));
        for condition in conditions(widget) {
            write!(yaml, "${{{}}}", variable_name(index, condition)).unwrap();
        }
        yaml.push_str("\n              ]}}");
    }
    yaml.push_str("\n            ]\n          }\n        # The metrics of functions, queues and tables that exist only under a condition.\n");
    let mut start = "        - ";
    for (index, widget) in widgets.iter().enumerate() {
        for condition in conditions(widget) {
            let of_condition = widget.metrics.iter().filter(|metric| metric.condition.as_deref() == Some(condition));
            let elements: String = of_condition.map(|metric| format!(", {}", element(metric))).collect();
            let name = variable_name(index, condition);
            writeln!(
                yaml,
                "{start}{name}: !If\n            - {condition}\n            - !Sub '{elements}'\n            - \"\""
            )
            .unwrap();
            start = "          ";
        }
    }
    yaml
}
