//! The environment variables that SAM gives a function on a local machine: the variables that `template.yaml` declares, with
//! the default values of its parameters.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_yaml_ng::Value;

/// Returns the content of a file of the project.
///
/// # Panics
/// If the file cannot be read.
pub fn read_project_file(path: &str) -> String {
    let full = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path);
    std::fs::read_to_string(full).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The parsed template.
struct SamTemplate(Value);

/// Returns the variables that the template declares for `function`, with the values that SAM computes from the defaults of
/// the parameters.
///
/// # Panics
/// If the template contains a value that this module cannot compute.
pub fn declared_variables(function: &str) -> BTreeMap<String, String> {
    let template = SamTemplate(serde_yaml_ng::from_str(&read_project_file("template.yaml")).expect("YAML"));
    let variables =
        |properties: &Value| properties["Environment"]["Variables"].as_mapping().cloned().unwrap_or_default();
    let global = variables(&template.0["Globals"]["Function"]);
    let own = variables(&template.0["Resources"][function]["Properties"]);
    let named = global.into_iter().chain(own);
    named.map(|(name, value)| (name.as_str().unwrap_or_default().to_owned(), template.resolve_text(&value))).collect()
}

impl SamTemplate {
    /// Returns the value of the parameter `name` without a deployment: its default, or an empty text. Returns `None` if
    /// there is no such parameter.
    fn default_of_parameter(&self, name: &str) -> Option<String> {
        let parameter = self.0["Parameters"].get(name)?;
        Some(self.resolve_text(parameter.get("Default").unwrap_or(&Value::Null)))
    }

    /// Returns the text of `value`.
    fn resolve_text(&self, value: &Value) -> String {
        let Value::Tagged(tagged) = value else {
            return match value {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                other => serde_yaml_ng::to_string(other).expect("YAML").trim().to_owned(),
            };
        };
        let content = &tagged.value;
        match tagged.tag.to_string().as_str() {
            // The reference to a resource is its logical id.
            "!Ref" => {
                self.default_of_parameter(&self.resolve_text(content)).unwrap_or_else(|| self.resolve_text(content))
            }
            "!GetAtt" => self.resolve_text(content),
            "!If" => self.resolve_text(
                &content[if self.is_named_condition_true(&self.resolve_text(&content[0])) { 1 } else { 2 }],
            ),
            "!Sub" => self.substitute_parameters(&self.resolve_text(content)),
            "!Join" => {
                let parts = content[1].as_sequence().into_iter().flatten().map(|part| self.resolve_text(part));
                parts.collect::<Vec<_>>().join(&self.resolve_text(&content[0]))
            }
            other => panic!("{other} is not known"),
        }
    }

    /// Replaces each `${NAME}` in `text`.
    fn substitute_parameters(&self, text: &str) -> String {
        let mut parts = text.split("${");
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |substituted, part| {
            let (name, rest) = part.split_once('}').expect("${NAME}");
            let value = self.default_of_parameter(name).unwrap_or_else(|| name.trim_start_matches("AWS::").to_owned());
            substituted + &value + rest
        })
    }

    /// Returns whether the condition `name` is true.
    fn is_named_condition_true(&self, name: &str) -> bool {
        self.is_condition_true(&self.0["Conditions"][name])
    }

    /// Returns whether the condition function `value` is true.
    fn is_condition_true(&self, value: &Value) -> bool {
        let Value::Tagged(tagged) = value else { panic!("no condition: {value:?}") };
        let operands = || tagged.value.as_sequence().into_iter().flatten();
        match tagged.tag.to_string().as_str() {
            "!Equals" => self.resolve_text(&tagged.value[0]) == self.resolve_text(&tagged.value[1]),
            "!Not" => !self.is_condition_true(&tagged.value[0]),
            "!And" => operands().all(|operand| self.is_condition_true(operand)),
            "!Or" => operands().any(|operand| self.is_condition_true(operand)),
            "!Condition" => self.is_named_condition_true(&self.resolve_text(&tagged.value)),
            other => panic!("{other} is not known"),
        }
    }
}
