//! Reads the IAM policies of the Lambda functions in `template.yaml`, and compares them with recorded requests.

use std::collections::BTreeSet;
use std::fmt;

use emulator::Permission;
use serde_yaml_ng::Value;

use crate::template::{statements_of_function, template};

/// The actions of Lambda itself, which reads the stream for the function. `roles.rs` checks them.
const STREAM_ACTIONS: [&str; 4] =
    ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator", "dynamodb:ListStreams"];

/// The functions that may use all partitions of the payments table, and the reasons. All others need a condition with
/// `dynamodb:LeadingKeys`.
const FUNCTIONS_FOR_ALL_PARTITIONS: [(&str, &str); 6] = [
    ("ApiFunction", "its routes read and change items of all kinds"),
    (
        "RemindersFunction",
        "a condition would check each of the millions of requests, and a missing partition would miss a day",
    ),
    ("PaymentsFunction", "as above"),
    ("ReconcileFunction", "it scans the table"),
    ("AuditFunction", "it scans the table"),
    ("EraseFunction", "it scans the table, and deletes items of an account in all partitions"),
];

/// One IAM action that a policy allows on the table or on an index of the table.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct AllowedAction {
    action: String,
    /// The name of the table in the tests.
    table: &'static str,
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
        let is_same = self.table == needed.table && self.action == needed.action && self.index == needed.index;
        is_same && self.partitions.as_deref().is_none_or(matches)
    }
}

impl fmt::Debug for AllowedAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = self.index.as_deref().unwrap_or("the table");
        write!(
            f,
            "{} on {on} of {} in {}",
            self.action,
            self.table,
            self.partitions.as_deref().unwrap_or("all partitions")
        )
    }
}

/// Returns the actions on the table that the policies in the template allow to the Lambda function `function`.
/// `function` can also be the name of a policy that is a resource of its own.
fn allowed_actions(function: &str) -> BTreeSet<AllowedAction> {
    let template = template();
    let properties = &template["Resources"][function]["Properties"];
    let statements: Vec<Value> = match &properties["PolicyDocument"] {
        Value::Null => statements_of_function(&template, function),
        document => document["Statement"].as_sequence().unwrap().clone(),
    };
    statements.iter().flat_map(|statement| allowed_by_statement(function, statement)).collect()
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
    let is_of_function =
        |action: &String| action.starts_with("dynamodb:") && !STREAM_ACTIONS.contains(&action.as_str());
    let actions: Vec<String> = texts(&statement["Action"]).into_iter().filter(is_of_function).collect();
    if actions.is_empty() {
        return Vec::new();
    }
    let partitions: Vec<Option<String>> = match &statement["Condition"] {
        Value::Null => vec![None],
        condition => {
            let only = "the only condition that this test reads";
            let condition = condition.as_mapping().unwrap();
            assert_eq!(condition.len(), 1, "{function}: {only}");
            let patterns = &condition["ForAllValues:StringLike"];
            let keys = patterns.as_mapping().filter(|mapping| mapping.len() == 1).expect(only);
            let patterns = texts(&keys["dynamodb:LeadingKeys"]);
            for pattern in patterns.iter().filter_map(|pattern| pattern.strip_suffix('*')) {
                // Such as `ACC#`. A shorter text would begin the keys of several kinds of items.
                let is_prefix = pattern.ends_with('#') && pattern.matches('#').count() == 1 && pattern.len() > 2;
                assert!(is_prefix, "{function}: {pattern}* is not the prefix of the keys of one kind of items");
            }
            patterns.into_iter().map(Some).collect()
        }
    };
    let Value::Tagged(resource) = &statement["Resource"] else { panic!("{function}: {statement:?}") };
    let resource = resource.value.as_str().unwrap();
    let table = match resource.trim_start_matches("${").split('.').next().unwrap() {
        "TableArn" => "dueday",
        "OrdersTableArn" => "dueday-orders",
        "SandboxTable" => "dueday-sandbox",
        other => panic!("{function}: {other} is not a table of the template"),
    };
    let indexes = match resource {
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
                table,
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
    if FUNCTIONS_FOR_ALL_PARTITIONS.iter().all(|(name, _)| *name != function) {
        let in_all = |one: &AllowedAction| one.table == "dueday" && one.partitions.is_none();
        let unlimited: Vec<_> = allowed_actions(function).into_iter().filter(in_all).collect();
        assert!(unlimited.is_empty(), "{function} needs a condition with dynamodb:LeadingKeys: {unlimited:?}");
    }
}

/// Returns the names of the functions and of the policies in the template that allow actions on the items of a table.
pub fn names_with_table_actions() -> BTreeSet<String> {
    let template = template();
    let resources = template["Resources"].as_mapping().unwrap().iter();
    let kinds = ["AWS::Serverless::Function", "AWS::IAM::Policy"];
    let names = resources.filter(|(_, resource)| kinds.contains(&resource["Type"].as_str().unwrap()));
    names.map(|(name, _)| crate::template::text(name)).filter(|name| !allowed_actions(name).is_empty()).collect()
}
