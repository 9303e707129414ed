//! Checks the IAM policies of the functions for all services except DynamoDB. The policies must allow a function to use
//! exactly the services whose clients its program contains, and only the resources of the stack.

use std::collections::{BTreeMap, BTreeSet};

use serde_yaml_ng::Value;

use crate::architecture::Crates;
use crate::template::{statements_of_function, template, text};

/// Each crate that sends requests to an AWS service, and the IAM actions of these requests. `gateway-secrets` creates
/// the client of the sandbox gateway. The function URL of the sandbox gateway needs both listed actions.
const ACTIONS_OF_CLIENTS: [(&str, &[&str]); 5] = [
    ("aws-sdk-eventbridge", &["events:PutEvents"]),
    ("aws-sdk-secretsmanager", &["secretsmanager:GetSecretValue"]),
    ("aws-sdk-sesv2", &["ses:SendEmail", "ses:SendRawEmail"]),
    ("aws-sdk-sqs", &["sqs:SendMessage"]),
    ("gateway-secrets", &["lambda:InvokeFunction", "lambda:InvokeFunctionUrl"]),
];

/// Exceptions: functions whose program is linked with the client of a service, but sends no request with this client.
/// Each entry is: function, crate of the client, reason.
const UNUSED_CLIENTS: [(&str, &str, &str); 3] = [
    (
        "MailFeedbackFunction",
        "aws-sdk-secretsmanager",
        "it is a program of the same crate as the webhooks function, which reads Stripe's keys",
    ),
    ("MailFeedbackFunction", "gateway-secrets", "as above"),
    ("WebhooksFunction", "gateway-secrets", "it receives the events of Stripe only"),
];

/// Additional actions that only one function needs, and other functions with the same client do not need. Each entry
/// is: function, action, reason.
const FURTHER_ACTIONS: [(&str, &str, &str); 1] =
    [("ApiFunction", "sqs:GetQueueAttributes", "`GET /status` shows the numbers of messages in the queues")];

/// The actions of Lambda itself in the role of a function that reads a queue or a stream. AWS SAM adds those of the other functions.
const ACTIONS_OF_LOGS: [&str; 2] = ["logs:CreateLogStream", "logs:PutLogEvents"];
const ACTIONS_OF_QUEUES: [&str; 3] = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"];
/// Sends the positions of records that the function could not publish.
const ACTION_OF_STREAMS: &str = "sqs:SendMessage";

/// Returns the actions of Lambda itself in the role of the function with these properties.
fn actions_of_lambda(properties: &Value) -> Vec<&'static str> {
    let events: Vec<String> =
        properties["Events"].as_mapping().into_iter().flatten().map(|(_, event)| text(&event["Type"])).collect();
    let has = |kind: &str| events.iter().any(|event| event == kind);
    let logs = ACTIONS_OF_LOGS.into_iter().filter(|_| !properties["Role"].is_null());
    let queues = ACTIONS_OF_QUEUES.into_iter().filter(|_| has("SQS"));
    logs.chain(queues).chain([ACTION_OF_STREAMS].into_iter().filter(|_| has("DynamoDB"))).collect()
}

/// Returns the strings of a list, or the one string `value`.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Sequence(several) => several.iter().map(text).collect(),
        one => vec![text(one)],
    }
}

/// Returns the policy statements of each function, without the statements for DynamoDB. They are the statements in the
/// function's own policies, and the statements of the policies that name the role of the function.
fn statements_by_function() -> BTreeMap<String, Vec<Value>> {
    let template = template();
    let mut statements: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (name, resource) in template["Resources"].as_mapping().unwrap() {
        let (name, properties) = (text(name), &resource["Properties"]);
        match resource["Type"].as_str().unwrap() {
            "AWS::Serverless::Function" => {
                let all = statements_of_function(&template, &name);
                statements.entry(name).or_default().extend(all);
            }
            "AWS::IAM::Policy" => {
                for role in properties["Roles"].as_sequence().unwrap() {
                    let Some(function) = name_in_ref(role).strip_suffix("Role").map(str::to_owned) else { continue };
                    let all = properties["PolicyDocument"]["Statement"].as_sequence().unwrap();
                    statements.entry(function).or_default().extend(all.iter().cloned());
                }
            }
            _ => {}
        }
    }
    let is_for_another_service =
        |statement: &Value| !texts(&statement["Action"]).iter().any(|action| action.starts_with("dynamodb:"));
    statements.values_mut().for_each(|all| all.retain(is_for_another_service));
    statements
}

/// Returns the name in `!Ref NAME`, or in the first branch of `!If [CONDITION, !Ref NAME, …]`.
fn name_in_ref(value: &Value) -> String {
    let Value::Tagged(tagged) = value else { panic!("{value:?}") };
    match tagged.tag.to_string().as_str() {
        "!Ref" => text(&tagged.value),
        "!If" => name_in_ref(&tagged.value[1]),
        other => panic!("{other}"),
    }
}

#[test]
fn functions_may_use_exactly_the_services_whose_clients_they_contain() {
    let (template, crates) = (template(), Crates::of_project());
    for (function, statements) in statements_by_function() {
        let resource = &template["Resources"][function.as_str()];
        let program = text(&resource["Metadata"]["BuildProperties"]["Binary"]);
        let package = crates.workspace_crates().find(|name| crates.programs(name).contains(&program));
        let dependencies = crates.all_dependencies(package.unwrap());
        let is_used = |client: &str| {
            dependencies.contains(client)
                && !UNUSED_CLIENTS.iter().any(|(of, name, _)| (*of, *name) == (function.as_str(), client))
        };
        let expected =
            ACTIONS_OF_CLIENTS.iter().filter(|(client, _)| is_used(client)).flat_map(|(_, actions)| *actions);
        let further = FURTHER_ACTIONS.iter().filter(|(of, ..)| *of == function).map(|(_, action, _)| action);
        let of_lambda = actions_of_lambda(&resource["Properties"]);
        let expected: BTreeSet<String> =
            expected.chain(further).chain(&of_lambda).map(|action| (*action).to_owned()).collect();
        let allowed: BTreeSet<String> = statements.iter().flat_map(|statement| texts(&statement["Action"])).collect();
        assert_eq!(
            allowed, expected,
            "{function}; left: allowed by the template, right: needed by the program {program}"
        );
    }
}

#[test]
fn statements_name_the_resources_of_the_stack_and_allow_no_more() {
    for (function, statements) in statements_by_function() {
        for statement in statements {
            assert_eq!(text(&statement["Effect"]), "Allow", "{function}");
            let resources = match &statement["Resource"] {
                Value::Sequence(several) => several.clone(),
                one => vec![one.clone()],
            };
            for resource in resources {
                let written = serde_yaml_ng::to_string(&resource).unwrap();
                assert!(matches!(resource, Value::Tagged(_)), "{function}: {written} is not a resource of the stack");
                assert!(!written.contains(":*"), "{function}: {written} is every resource of a service");
            }
        }
    }
}
