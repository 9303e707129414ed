//! The table of alarms and of the dashboard, `docs/alarms.yaml`.

use serde::Deserialize;
use serde_yaml_ng::Number;

/// The table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Monitoring {
    pub alarms: Vec<Alarm>,
    pub dashboard: Vec<Widget>,
}

/// A section of the template.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, strum::EnumIter, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Part {
    Core,
    Mails,
    Events,
    Orders,
    Operations,
    Sandbox,
}

impl Part {
    /// Returns the condition of the alarms of this part that name no condition; `None` if every stack has them.
    fn condition(self) -> Option<&'static str> {
        match self {
            Self::Core => None,
            Self::Mails | Self::Events | Self::Operations => Some("IsFull"),
            Self::Orders => Some("HasOrders"),
            Self::Sandbox => Some("HasSandbox"),
        }
    }
}

/// An alarm. `docs/alarms.yaml` describes the fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alarm {
    pub name: String,
    pub part: Part,
    condition: Option<String>,
    pub comment: Option<String>,
    pub meaning: String,
    pub metric: Option<String>,
    pub dimension: Option<String>,
    pub counted: Option<String>,
    #[serde(default)]
    pub filters: Vec<Filter>,
    pub expression: Option<String>,
    pub otherwise: Option<Otherwise>,
    pub label: Option<String>,
    #[serde(default)]
    pub metrics: Vec<ListedMetric>,
    pub statistic: Option<String>,
    pub period: u32,
    pub periods: Option<u32>,
    pub of_these: Option<u32>,
    pub at_least: Option<Number>,
    pub below: Option<Number>,
    pub what_to_do: Option<String>,
    pub described_with: Option<String>,
}

impl Alarm {
    /// Returns the condition of the alarm in the template; `None` if every stack has the alarm.
    pub fn condition(&self) -> Option<&str> {
        self.condition.as_deref().or(self.part.condition())
    }
}

/// A metric filter: it counts the lines of the log group `log` that contain one of the texts, or that match the pattern.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filter {
    pub name: String,
    /// The condition of the filter, if it is not that of its alarm.
    pub condition: Option<String>,
    pub comment: Option<String>,
    pub log: String,
    #[serde(default)]
    pub texts: Vec<String>,
    /// A filter pattern for lines of JSON, in place of `texts`.
    pub pattern: Option<String>,
}

/// The expression of an alarm in a stack in which the condition `unless` is false.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Otherwise {
    pub unless: String,
    pub expression: String,
}

/// A metric of an expression.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedMetric {
    pub id: String,
    pub metric: Option<String>,
    pub counted: Option<String>,
    pub dimension: Option<String>,
    pub index: Option<String>,
    pub condition: Option<String>,
}

/// A widget of the dashboard.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Widget {
    pub title: String,
    pub statistic: String,
    pub period: u32,
    #[serde(default)]
    pub metrics: Vec<ShownMetric>,
    /// A search for metrics, in place of `metrics`.
    pub search: Option<String>,
}

/// A metric in a widget.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShownMetric {
    pub metric: String,
    pub dimension: String,
    pub label: String,
    pub statistic: Option<String>,
    pub axis: Option<String>,
    pub condition: Option<String>,
}

impl Monitoring {
    /// Reads the table.
    pub fn read() -> Self {
        serde_yaml_ng::from_str(include_str!("../../../../../docs/alarms.yaml")).unwrap()
    }
}
