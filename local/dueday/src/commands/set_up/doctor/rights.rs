//! Checks that the user or role that deploys has the permissions in `deploy/policy.json`, with the policy simulator of IAM.

use std::collections::BTreeSet;

use futures::{StreamExt as _, stream};
use serde_json::Value;

use super::aws_cli::{AwsCli, AwsError, Response, list_field, text_field};
use super::check_result::DoctorCheck;

/// The name of the check of the permissions.
const CHECK_NAME: &str = "permissions to deploy";
/// The policy with all permissions for a deployment of the stacks `dueday` and `dueday-dev`.
const POLICY: &str = include_str!("../../../../../../deploy/policy.json");
/// The number of simulations that run at the same time.
const SIMULATIONS_AT_ONCE: usize = 4;
/// The number of missing actions that the check result lists.
const LISTED_ACTIONS: usize = 6;

/// A request to the policy simulator: actions on one resource, in a context.
#[derive(Clone, PartialEq, Eq, Debug)]
struct PolicySimulation {
    actions: Vec<String>,
    resource: String,
    /// The context key of the condition of the policy, and its value.
    context: Option<(String, String)>,
}

/// Checks that `caller`, the response of AWS STS, may deploy the stack `stack`.
pub async fn check_deployment_rights(aws: &AwsCli, caller: &Response, stack: &str) -> DoctorCheck {
    let not_checked = |error: AwsError| DoctorCheck::not_checked(CHECK_NAME, error.to_string());
    let caller = match caller {
        Ok(caller) => caller,
        Err(error) => return not_checked(error.clone()),
    };
    let principal = match principal_arn(aws, text_field(caller, "Arn")).await {
        Ok(Some(principal)) => principal,
        Ok(None) => {
            return DoctorCheck::not_checked(CHECK_NAME, "the policy simulator knows only users and roles of IAM");
        }
        Err(error) => return not_checked(error),
    };
    let simulations = required_policy_simulations(text_field(caller, "Account"), &principal, &aws.region, stack);
    let number = simulations.iter().flat_map(|simulation| &simulation.actions).collect::<BTreeSet<_>>().len();
    let mut denied = BTreeSet::new();
    let mut responses = stream::iter(&simulations)
        .map(|simulation| run_policy_simulation(aws, &principal, simulation))
        .buffered(SIMULATIONS_AT_ONCE);
    while let Some(response) = responses.next().await {
        match response {
            Ok(response) => denied.extend(denied_actions(&response)),
            Err(error) => return not_checked(error),
        }
    }
    if denied.is_empty() {
        return DoctorCheck::good(CHECK_NAME, format!("{principal} has all {number}"));
    }
    let listed = denied.iter().take(LISTED_ACTIONS).cloned().collect::<Vec<_>>().join(", ");
    let more = match denied.len().saturating_sub(LISTED_ACTIONS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    DoctorCheck::wrong(
        CHECK_NAME,
        format!("{principal} lacks {listed}{more}"),
        "Give it the policy deploy/policy.json, with the name of this stack in place of dueday",
    )
}

/// Returns the ARN of the user or role of IAM that `caller` is or has assumed. Returns `None` for the root user and for
/// other kinds of callers.
async fn principal_arn(aws: &AwsCli, caller: &str) -> Result<Option<String>, AwsError> {
    let name = caller.rsplit(':').next().unwrap_or_default();
    match name.split('/').collect::<Vec<_>>()[..] {
        ["user", ..] => Ok(Some(caller.to_owned())),
        // The ARN of a session does not contain the path of the role.
        ["assumed-role", role, _] => {
            let response = aws.run(&["iam", "get-role", "--role-name", role]).await?;
            Ok(Some(text_field(&response["Role"], "Arn").to_owned()))
        }
        _ => Ok(None),
    }
}

/// Returns the simulations that cover the policy, for the stack `stack` in the account and region. The partition of AWS
/// is that of `principal`.
fn required_policy_simulations(account: &str, principal: &str, region: &str, stack: &str) -> Vec<PolicySimulation> {
    let partition = principal.split(':').nth(1).unwrap_or("aws");
    let fill = |text: &str| {
        text.replace("PARTITION", partition)
            .replace("REGION", region)
            .replace("ACCOUNT", account)
            .replace("stack/dueday/", &format!("stack/{stack}/"))
            .replace("dueday-*", &format!("{stack}-*"))
            .replace("dashboard/dueday*", &format!("dashboard/{stack}"))
    };
    // The simulator needs the name of a resource.
    let fill_resource = |text: &str| if text == "*" { text.to_owned() } else { fill(text).replace('*', "example") };
    let policy: Value = serde_json::from_str(POLICY).unwrap_or_default();
    let mut simulations = Vec::new();
    for statement in list_field(&policy, "Statement") {
        let actions: Vec<String> = list_of_texts(&statement["Action"]);
        let resources = list_of_texts(&statement["Resource"]);
        for resource in resources.iter().filter(|resource| !resource.contains(":stack/dueday-dev/")) {
            for context in condition_context_values(&statement["Condition"]) {
                let context = context.map(|(key, value)| (key, fill(&value).replace('*', "example")));
                simulations.push(PolicySimulation {
                    actions: actions.clone(),
                    resource: fill_resource(resource),
                    context,
                });
            }
        }
    }
    simulations
}

/// Returns each value of each context key in `condition`, the condition of a statement. Returns one `None` if the
/// statement has no condition.
fn condition_context_values(condition: &Value) -> Vec<Option<(String, String)>> {
    let operators = condition.as_object().into_iter().flat_map(|operators| operators.values());
    let keys = operators.filter_map(Value::as_object).flatten();
    let contexts: Vec<_> = keys
        .flat_map(|(key, values)| list_of_texts(values).into_iter().map(|value| Some((key.clone(), value))))
        .collect();
    if contexts.is_empty() { vec![None] } else { contexts }
}

/// Returns the texts of a list, or the one text `value`.
fn list_of_texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        value => value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect(),
    }
}

/// Asks the policy simulator whether `principal` has the permissions of `simulation`.
async fn run_policy_simulation(aws: &AwsCli, principal: &str, simulation: &PolicySimulation) -> Response {
    let mut arguments = vec!["iam", "simulate-principal-policy", "--policy-source-arn", principal, "--resource-arns"];
    arguments.extend([simulation.resource.as_str(), "--action-names"]);
    arguments.extend(simulation.actions.iter().map(String::as_str));
    let context = simulation
        .context
        .as_ref()
        .map(|(key, value)| format!("ContextKeyName={key},ContextKeyType=string,ContextKeyValues={value}"));
    if let Some(context) = &context {
        arguments.extend(["--context-entries", context]);
    }
    aws.run(&arguments).await
}

/// Returns the actions that are not allowed according to `response`, the response of the policy simulator.
fn denied_actions(response: &Value) -> impl Iterator<Item = String> {
    let denied = list_field(response, "EvaluationResults").filter(|result| result["EvalDecision"] != "allowed");
    denied.map(|result| text_field(result, "EvalActionName").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulations_name_the_resources_of_the_stack_and_every_service_that_gets_a_role() {
        let all = required_policy_simulations(
            "123456789012",
            "arn:aws-cn:iam::123456789012:user/mary",
            "cn-north-1",
            "dueday-dev",
        );
        let has = |action: &str, resource: &str| {
            all.iter()
                .any(|simulation| simulation.actions.contains(&action.to_owned()) && simulation.resource == resource)
        };
        let cn = |rest: &str| format!("arn:aws-cn:{rest}");
        assert!(has("dynamodb:CreateTable", &cn("dynamodb:cn-north-1:123456789012:table/dueday-dev-example")));
        assert!(has(
            "cloudformation:ExecuteChangeSet",
            &cn("cloudformation:cn-north-1:123456789012:stack/dueday-dev/example")
        ));
        assert!(has("cloudwatch:PutDashboard", &cn("cloudwatch::123456789012:dashboard/dueday-dev")));
        assert!(has("cloudformation:GetTemplateSummary", "*"));
        let text = format!("{all:?}");
        for unfilled in ["PARTITION", "REGION", "ACCOUNT", "dueday-*", "stack/dueday/"] {
            assert!(!text.contains(unfilled), "{unfilled}: {text}");
        }
        let passed: Vec<_> = all.iter().filter(|simulation| simulation.actions == ["iam:PassRole"]).collect();
        let services: Vec<_> = passed.iter().filter_map(|simulation| simulation.context.as_ref()).collect();
        assert!(services.len() == 5 && services.iter().all(|(key, _)| key == "iam:PassedToService"), "{services:?}");
    }
}
