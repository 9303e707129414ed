//! The stack of a deployment in CloudFormation: its parameters, outputs and resources.

use std::collections::BTreeMap;

use api::DeployedParts;
use serde_json::Value;

use super::aws_cli::{AwsCli, AwsError, Response, list_field, text_field};
use super::check_result::DoctorCheck;

/// The name of the check of the stack.
const CHECK_NAME: &str = "stack";

/// The name of the check whose result is the reason why the resources could not be read.
pub const RESOURCES_CHECK: &str = "resources of the stack";

/// A stack in CloudFormation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stack {
    pub name: String,
    pub parameters: BTreeMap<String, String>,
    pub outputs: BTreeMap<String, String>,
    /// The physical ids of the resources, by their logical ids. Empty if they cannot be read.
    pub resources: BTreeMap<String, String>,
    /// The URLs of the queues in Amazon SQS, by their logical ids. Empty if the resources cannot be read.
    pub queues: BTreeMap<String, String>,
}

impl Stack {
    /// Returns the value of the parameter `name`, which is empty if the parameter does not exist.
    pub fn parameter(&self, name: &str) -> &str {
        self.parameters.get(name).map_or("", String::as_str)
    }

    /// Returns the parts that the stack has. A stack of an earlier version has no parameter `Parts`, and has all parts.
    pub fn parts(&self) -> DeployedParts {
        self.parameter("Parts").parse().unwrap_or_default()
    }

    /// Returns whether the stack charges customers real money. Returns true also for a stack without the parameter
    /// `Stage`, so that it is checked as strictly as production.
    pub fn is_prod(&self) -> bool {
        self.parameter("Stage") != "dev"
    }
}

/// Finds the stack of the table `table`. If `name` is given, only the stack with this name is searched. Returns the
/// stack, if it was found, and the check results.
pub async fn find_stack(aws: &AwsCli, name: Option<&str>, table: &str) -> (Option<Stack>, Vec<DoctorCheck>) {
    let described = match name {
        Some(name) => aws.run(&["cloudformation", "describe-stacks", "--stack-name", name]).await,
        None => aws.run(&["cloudformation", "describe-stacks"]).await,
    };
    let (stack, mut findings) = select_stack(described, table);
    let Some(mut stack) = stack else { return (None, findings) };
    // `list-stack-resources` returns all resources. `describe-stack-resources` would return at most 100 resources.
    let listed = aws.run(&["cloudformation", "list-stack-resources", "--stack-name", &stack.name]).await;
    match listed {
        Ok(listed) => {
            stack.resources = physical_resource_ids(&listed, |_| true);
            // The physical id of a queue is its URL ("AWS::SQS::Queue" in the AWS CloudFormation template reference).
            stack.queues = physical_resource_ids(&listed, |kind| kind == "AWS::SQS::Queue");
        }
        Err(error) => findings.push(DoctorCheck::not_checked(RESOURCES_CHECK, error.to_string())),
    }
    (Some(stack), findings)
}

/// Returns the stack of `table` among the described stacks, and a check result that states whether the last deployment of
/// this stack succeeded.
fn select_stack(described: Response, table: &str) -> (Option<Stack>, Vec<DoctorCheck>) {
    let described = match described {
        Ok(described) => described,
        // CloudFormation reports a stack that does not exist as an invalid parameter.
        Err(AwsError::Refused(code)) if code == "ValidationError" => {
            return (
                None,
                vec![DoctorCheck::wrong(
                    CHECK_NAME,
                    "there is no such stack",
                    "Give the name of the stack with --stack",
                )],
            );
        }
        Err(error) => return (None, vec![DoctorCheck::not_checked(CHECK_NAME, error.to_string())]),
    };
    let pairs = |stack: &Value, name: &str, key: &str, value: &str| -> BTreeMap<String, String> {
        list_field(stack, name)
            .map(|pair| (text_field(pair, key).to_owned(), text_field(pair, value).to_owned()))
            .collect()
    };
    let stacks = list_field(&described, "Stacks").map(|stack| {
        let found = Stack {
            name: text_field(stack, "StackName").to_owned(),
            parameters: pairs(stack, "Parameters", "ParameterKey", "ParameterValue"),
            outputs: pairs(stack, "Outputs", "OutputKey", "OutputValue"),
            ..Stack::default()
        };
        (found, text_field(stack, "StackStatus"))
    });
    let mut of_table = stacks.filter(|(stack, _)| stack.outputs.get("TableName").is_some_and(|name| name == table));
    let Some((stack, status)) = of_table.next() else {
        let detail = format!("no stack in this region has the output TableName={table}");
        let advice = "Deploy it, or check the region and the name of the table";
        return (None, vec![DoctorCheck::wrong(CHECK_NAME, detail, advice)]);
    };
    if let Some((other, _)) = of_table.next() {
        let detail = format!("the stacks {} and {} use the table {table}", stack.name, other.name);
        return (None, vec![DoctorCheck::wrong(CHECK_NAME, detail, "Delete one of them, so that only one charges")]);
    }
    let detail = format!("{}, {status}", stack.name);
    let finding = match status {
        "CREATE_COMPLETE" | "UPDATE_COMPLETE" | "IMPORT_COMPLETE" => DoctorCheck::good(CHECK_NAME, detail),
        _ => DoctorCheck::wrong(
            CHECK_NAME,
            detail,
            format!("See `aws cloudformation describe-stack-events --stack-name {}`", stack.name),
        ),
    };
    (Some(stack), vec![finding])
}

/// Returns the physical ids, by their logical ids, of the resources whose type `is_wanted` accepts.
fn physical_resource_ids(listed: &Value, is_wanted: impl Fn(&str) -> bool) -> BTreeMap<String, String> {
    let all =
        list_field(listed, "StackResourceSummaries").filter(|resource| is_wanted(text_field(resource, "ResourceType")));
    all.map(|resource| {
        (text_field(resource, "LogicalResourceId").to_owned(), text_field(resource, "PhysicalResourceId").to_owned())
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns a response of `describe-stacks`, as documented in the AWS CLI reference.
    fn describe_stacks(stacks: &[(&str, &str, &str)]) -> Value {
        let stacks = stacks.iter().map(|(name, table, status)| {
            json!({
                "StackId": format!("arn:aws:cloudformation:eu-west-1:123456789012:stack/{name}/1"),
                "StackName": name,
                "StackStatus": status,
                "Parameters": [
                    {"ParameterKey": "Stage", "ParameterValue": "dev"},
                    {"ParameterKey": "MailUrl", "ParameterValue": "****"},
                ],
                "Outputs": [{"OutputKey": "TableName", "OutputValue": table, "Description": "The name of the table"}],
            })
        });
        json!({"Stacks": stacks.collect::<Vec<_>>()})
    }

    #[test]
    fn stack_is_found_by_the_name_of_its_table_and_must_be_complete() {
        let both = describe_stacks(&[("other", "t2", "CREATE_COMPLETE"), ("dueday", "t1", "UPDATE_COMPLETE")]);
        let (stack, findings) = select_stack(Ok(both.clone()), "t1");
        let stack = stack.unwrap();
        assert_eq!((stack.name.as_str(), stack.parameter("Stage"), stack.is_prod()), ("dueday", "dev", false));
        assert_eq!(findings, [DoctorCheck::good(CHECK_NAME, "dueday, UPDATE_COMPLETE")]);
        assert!(Stack::default().is_prod(), "an unknown stage is checked strictly");

        let (stack, findings) = select_stack(Ok(both), "t3");
        assert!(stack.is_none() && !findings[0].is_good(), "{findings:?}");
        let (stack, findings) =
            select_stack(Ok(describe_stacks(&[("dueday", "t1", "UPDATE_ROLLBACK_COMPLETE")])), "t1");
        assert!(stack.is_some() && !findings[0].is_good(), "{findings:?}");
        let twice = describe_stacks(&[("a", "t1", "CREATE_COMPLETE"), ("b", "t1", "CREATE_COMPLETE")]);
        let (stack, findings) = select_stack(Ok(twice), "t1");
        assert!(stack.is_none() && !findings[0].is_good(), "two stacks charge the same table: {findings:?}");
    }

    #[test]
    fn missing_permission_and_missing_stack_are_different_findings() {
        let (_, denied) = select_stack(Err(AwsError::Denied("cloudformation:DescribeStacks".to_owned())), "t1");
        assert_eq!(
            denied,
            [DoctorCheck::not_checked(CHECK_NAME, "the permission cloudformation:DescribeStacks is missing")]
        );
        let (_, missing) = select_stack(Err(AwsError::Refused("ValidationError".to_owned())), "t1");
        assert_eq!(
            missing,
            [DoctorCheck::wrong(CHECK_NAME, "there is no such stack", "Give the name of the stack with --stack")]
        );
    }
}
