//! Reads the IAM policies of the Lambda functions in `template.yaml`, and compares them with recorded requests.

use std::collections::BTreeSet;
use std::fmt;

use emulator::Permission;
use serde_yaml_ng::Value;

use crate::template::template;

/// One IAM action that a policy allows on the table or on an index of the table.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct AllowedAction {
    action: String,
    /// The index; `None` for the table itself.
    index: Option<String>,
    /// The pattern of the partition keys (`dynamodb:LeadingKeys`) for which the action is allowed; `None` for all keys.
    partitions: Option<String>,
}

impl AllowedAction {
    /// Returns whether this allowed action includes the permission `needed`.
    fn includes(&self, needed: &Permission) -> bool {
        let matches = |pattern: &str| {
            let Some(partition) = &needed.partition else { return false };
            match pattern.strip_suffix('*') {
                Some(prefix) => partition.starts_with(prefix),
                None => partition == pattern,
            }
        };
        self.action == needed.action && self.index == needed.index && self.partitions.as_deref().is_none_or(matches)
    }
}

impl fmt::Debug for AllowedAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = self.index.as_deref().unwrap_or("the table");
        write!(f, "{} on {on} in {}", self.action, self.partitions.as_deref().unwrap_or("all partitions"))
    }
}

/// Returns the actions on the table that the policies in the template allow to the Lambda function `function`.
/// `function` can also be the name of a policy that is a resource of its own.
fn allowed_actions(function: &str) -> BTreeSet<AllowedAction> {
    let template = template();
    let properties = &template["Resources"][function]["Properties"];
    let statements: Vec<&Value> = match &properties["PolicyDocument"] {
        Value::Null => {
            let policies = properties["Policies"].as_sequence().unwrap().iter();
            policies.flat_map(|policy| policy["Statement"].as_sequence().unwrap()).collect()
        }
        document => document["Statement"].as_sequence().unwrap().iter().collect(),
    };
    statements.into_iter().flat_map(|statement| allowed_by_statement(function, statement)).collect()
}

/// Returns the DynamoDB actions that one statement of a policy allows.
fn allowed_by_statement(function: &str, statement: &Value) -> Vec<AllowedAction> {
    assert_eq!(statement["Effect"].as_str(), Some("Allow"), "{function}: {statement:?}");
    let texts = |value: &Value| -> Vec<String> {
        match value {
            Value::String(text) => vec![text.clone()],
            several => several.as_sequence().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect(),
        }
    };
    let actions: Vec<String> =
        texts(&statement["Action"]).into_iter().filter(|action| action.starts_with("dynamodb:")).collect();
    if actions.is_empty() {
        return Vec::new();
    }
    let partitions: Vec<Option<String>> = match &statement["Condition"] {
        Value::Null => vec![None],
        condition => {
            let only = "the only condition that this test reads";
            let patterns =
                &condition.as_mapping().filter(|mapping| mapping.len() == 1).expect(only)["ForAllValues:StringLike"];
            let keys = patterns.as_mapping().filter(|mapping| mapping.len() == 1).expect(only);
            texts(&keys["dynamodb:LeadingKeys"]).into_iter().map(Some).collect()
        }
    };
    let Value::Tagged(resource) = &statement["Resource"] else { panic!("{function}: {statement:?}") };
    let indexes = match resource.value.as_str().unwrap() {
        "TableArn.Value" | "OrdersTableArn.Value" | "SandboxTable.Arn" => vec![None],
        "${TableArn.Value}/index/*" | "${OrdersTableArn.Value}/index/*" => {
            vec![Some("GSI-1".to_owned()), Some("GSI-2".to_owned())]
        }
        name => {
            let (table, index) = name.split_once("/index/").expect("an index of a table");
            assert!(["${TableArn.Value}", "${OrdersTableArn.Value}"].contains(&table), "{function}: {name}");
            vec![Some(index.to_owned())]
        }
    };
    let mut allowed = Vec::new();
    for action in actions {
        assert!(!action.contains('*'), "{function}: {action} allows more than the function needs");
        for index in &indexes {
            let of = |partitions: &Option<String>| AllowedAction {
                action: action.clone(),
                index: index.clone(),
                partitions: partitions.clone(),
            };
            allowed.extend(partitions.iter().map(of));
        }
    }
    allowed
}

/// Asserts that the policies of `function` allow `done`, the permissions that the recorded requests needed.
pub fn assert_allowed(function: &str, done: &BTreeSet<Permission>) {
    let allowed = allowed_actions(function);
    let denied: Vec<_> = done.iter().filter(|needed| !allowed.iter().any(|one| one.includes(needed))).collect();
    assert!(denied.is_empty(), "{function} is not allowed {denied:?}");
}

/// Asserts that the policies of `function` allow `done`, the permissions that the recorded requests needed, and no
/// other permissions.
pub fn assert_policy(function: &str, done: &BTreeSet<Permission>) {
    assert_allowed(function, done);
    let unused: Vec<_> =
        allowed_actions(function).into_iter().filter(|one| !done.iter().any(|needed| one.includes(needed))).collect();
    assert!(unused.is_empty(), "{function} may do what no request needs: {unused:?}");
}
