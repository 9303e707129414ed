//! Evaluates the conditions and the rules of `template.yaml` for the parameters of a stack.

use std::collections::BTreeMap;

use serde_yaml_ng::Value;

use crate::template::text;

/// Returns the parsed `template.yaml`, with all its conditions.
pub fn parsed_template() -> Value {
    serde_yaml_ng::from_str(include_str!("../../../../template.yaml")).unwrap()
}

/// A stack that `template.yaml` deploys with certain parameters.
pub struct Stack {
    template: Value,
    /// The value of each parameter that has a value.
    parameters: BTreeMap<String, String>,
}

/// Returns the name of the intrinsic function of CloudFormation in `value`, such as `Equals` for `!Equals`, and its
/// arguments.
fn intrinsic_function(value: &Value) -> (String, &Value) {
    let Value::Tagged(tagged) = value else { panic!("no function: {value:?}") };
    (tagged.tag.to_string().trim_start_matches('!').to_owned(), &tagged.value)
}

impl Stack {
    /// Creates the stack whose parameters have their default values, except for `given`.
    pub fn new(given: &[(&str, &str)]) -> Self {
        let template = parsed_template();
        let defaults = template["Parameters"].as_mapping().unwrap().iter();
        let defaults = defaults.filter_map(|(name, parameter)| match &parameter["Default"] {
            Value::Null => None,
            Value::Number(number) => Some((text(name), number.to_string())),
            value => Some((text(name), text(value))),
        });
        let mut parameters: BTreeMap<String, String> = defaults.collect();
        for (name, value) in given {
            assert!(!template["Parameters"][*name].is_null(), "the template has no parameter {name}");
            parameters.insert((*name).to_owned(), (*value).to_owned());
        }
        Self { template, parameters }
    }

    /// Returns the resources that the stack has, with their names.
    pub fn resources(&self) -> Vec<(String, &Value)> {
        let all = self.template["Resources"].as_mapping().unwrap().iter();
        let is_deployed =
            |resource: &Value| resource["Condition"].as_str().is_none_or(|condition| self.is_true(condition));
        all.filter(|(_, resource)| is_deployed(resource)).map(|(name, resource)| (text(name), resource)).collect()
    }

    /// Returns whether the condition `name` of the template is true.
    pub fn is_true(&self, name: &str) -> bool {
        let condition = &self.template["Conditions"][name];
        assert!(!condition.is_null(), "the template has no condition {name}");
        self.evaluate(condition)
    }

    /// Returns whether `condition` is true ("Condition functions" and "Rules section" in the user guide of CloudFormation).
    fn evaluate(&self, condition: &Value) -> bool {
        let (name, arguments) = intrinsic_function(condition);
        if name == "Condition" {
            return self.is_true(&text(arguments));
        }
        let arguments = arguments.as_sequence().unwrap();
        match name.as_str() {
            "And" => arguments.iter().all(|argument| self.evaluate(argument)),
            "Or" => arguments.iter().any(|argument| self.evaluate(argument)),
            "Not" => !self.evaluate(&arguments[0]),
            "Equals" => self.resolve(&arguments[0]) == self.resolve(&arguments[1]),
            "EachMemberEquals" => {
                self.resolve(&arguments[0]).split(',').all(|member| member == self.resolve(&arguments[1]))
            }
            other => panic!("the function {other} is not known here"),
        }
    }

    /// Returns the text of `value`: a text, a number, the value of a parameter, or the members of a list parameter.
    fn resolve(&self, value: &Value) -> String {
        match value {
            Value::Tagged(_) => match intrinsic_function(value) {
                (name, parameter) if name == "Ref" => self.parameters[&text(parameter)].clone(),
                (name, arguments) if name == "Join" && text(&arguments[0]).is_empty() => {
                    self.resolve(&arguments[1]).replace(',', "")
                }
                (name, _) => panic!("the function {name} is not known here"),
            },
            Value::Number(number) => number.to_string(),
            value => text(value),
        }
    }

    /// Evaluates the rule `name`. Returns the descriptions of its assertions that refuse the deployment.
    pub fn refusals_of_rule(&self, name: &str) -> Vec<String> {
        let rule = &self.template["Rules"][name];
        assert!(!rule.is_null(), "the template has no rule {name}");
        if !rule["RuleCondition"].is_null() && !self.evaluate(&rule["RuleCondition"]) {
            return Vec::new();
        }
        let assertions = rule["Assertions"].as_sequence().unwrap().iter();
        let failed = assertions.filter(|assertion| !self.evaluate(&assertion["Assert"]));
        failed.map(|assertion| text(&assertion["AssertDescription"])).collect()
    }
}
