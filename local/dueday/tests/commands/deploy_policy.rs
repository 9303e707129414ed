//! Checks the IAM policies for deployments: `deploy/policy.json`, and the policy of the GitHub workflow in
//! `docs/operations.md`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::template::{template, text};
use crate::terminal::{dueday, output};

/// The largest size of the inline policies of a role, without white space ("IAM and AWS STS quotas" in the user guide
/// of IAM).
const LARGEST_POLICY: usize = 10_240;

/// Actions that CloudFormation needs to create and delete a resource of each type of `template.yaml`. The types of SAM
/// contain the resources that the transform adds.
const ACTIONS_OF_TYPES: [(&str, &[&str]); 32] = [
    ("AWS::CloudWatch::Alarm", &["cloudwatch:PutMetricAlarm", "cloudwatch:DeleteAlarms"]),
    ("AWS::CloudWatch::Dashboard", &["cloudwatch:PutDashboard", "cloudwatch:DeleteDashboards"]),
    ("AWS::Cognito::UserPool", &["cognito-idp:CreateUserPool", "cognito-idp:DeleteUserPool"]),
    ("AWS::Cognito::UserPoolClient", &["cognito-idp:CreateUserPoolClient", "cognito-idp:DeleteUserPoolClient"]),
    ("AWS::Cognito::UserPoolDomain", &["cognito-idp:CreateUserPoolDomain", "cognito-idp:DeleteUserPoolDomain"]),
    ("AWS::Cognito::UserPoolResourceServer", &["cognito-idp:CreateResourceServer", "cognito-idp:DeleteResourceServer"]),
    ("AWS::DynamoDB::Table", &["dynamodb:CreateTable", "dynamodb:DeleteTable", "dynamodb:UpdateContinuousBackups"]),
    ("AWS::Events::EventBus", &["events:CreateEventBus", "events:DeleteEventBus"]),
    ("AWS::Events::EventBusPolicy", &["events:PutPermission", "events:RemovePermission"]),
    ("AWS::Events::Rule", &["events:PutRule", "events:PutTargets", "events:RemoveTargets", "events:DeleteRule"]),
    ("AWS::IAM::Policy", &["iam:PutRolePolicy", "iam:DeleteRolePolicy"]),
    ("AWS::IAM::Role", &["iam:CreateRole", "iam:PassRole", "iam:DeleteRole"]),
    ("AWS::KinesisFirehose::DeliveryStream", &["firehose:CreateDeliveryStream", "firehose:DeleteDeliveryStream"]),
    ("AWS::Lambda::EventInvokeConfig", &["lambda:PutFunctionEventInvokeConfig"]),
    ("AWS::Lambda::EventSourceMapping", &["lambda:CreateEventSourceMapping", "lambda:DeleteEventSourceMapping"]),
    ("AWS::Lambda::Permission", &["lambda:AddPermission", "lambda:RemovePermission"]),
    ("AWS::Logs::LogGroup", &["logs:CreateLogGroup", "logs:PutRetentionPolicy", "logs:DeleteLogGroup"]),
    ("AWS::Logs::LogStream", &["logs:CreateLogStream", "logs:DeleteLogStream"]),
    ("AWS::Logs::MetricFilter", &["logs:PutMetricFilter", "logs:DeleteMetricFilter"]),
    ("AWS::S3::Bucket", &["s3:CreateBucket", "s3:PutLifecycleConfiguration", "s3:DeleteBucket"]),
    ("AWS::S3::BucketPolicy", &["s3:PutBucketPolicy", "s3:DeleteBucketPolicy"]),
    ("AWS::SES::ConfigurationSet", &["ses:CreateConfigurationSet", "ses:DeleteConfigurationSet"]),
    ("AWS::SES::ConfigurationSetEventDestination", &["ses:CreateConfigurationSetEventDestination"]),
    ("AWS::SNS::Subscription", &["sns:Subscribe", "sns:Unsubscribe"]),
    ("AWS::SNS::Topic", &["sns:CreateTopic", "sns:DeleteTopic"]),
    ("AWS::SNS::TopicPolicy", &["sns:SetTopicAttributes"]),
    ("AWS::SQS::Queue", &["sqs:CreateQueue", "sqs:DeleteQueue"]),
    ("AWS::SQS::QueuePolicy", &["sqs:SetQueueAttributes"]),
    ("AWS::SSM::Parameter", &["ssm:PutParameter", "ssm:DeleteParameter"]),
    ("AWS::Scheduler::Schedule", &["scheduler:CreateSchedule", "scheduler:DeleteSchedule"]),
    ("AWS::SecretsManager::Secret", &["secretsmanager:CreateSecret", "secretsmanager:GetRandomPassword"]),
    (
        "AWS::Serverless",
        &[
            "apigateway:POST",
            "apigateway:PUT",
            "cloudformation:CreateChangeSet",
            "lambda:CreateFunction",
            "lambda:CreateFunctionUrlConfig",
            "lambda:DeleteFunction",
            "lambda:UpdateFunctionCode",
            "logs:CreateLogDelivery",
            "states:CreateStateMachine",
            "states:DeleteStateMachine",
        ],
    ),
];

/// Returns the statements of a policy.
fn statements(policy: &Value) -> &Vec<Value> {
    policy["Statement"].as_array().unwrap()
}

/// Returns the texts of a list, or the one text `value`.
fn texts(value: &Value) -> Vec<String> {
    let one = value.as_str().map(str::to_owned);
    one.map_or_else(
        || value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect(),
        |one| vec![one],
    )
}

/// Returns `deploy/policy.json`.
fn policy() -> Value {
    serde_json::from_str(include_str!("../../../../deploy/policy.json")).unwrap()
}

/// Returns the names of the stacks in the resources of `policy`, without the stack that the AWS SAM CLI manages.
fn stacks(policy: &Value) -> BTreeSet<String> {
    let resources = statements(policy).iter().flat_map(|statement| texts(&statement["Resource"]));
    let stacks = resources.filter_map(|resource| Some(resource.split_once(":stack/")?.1.split_once('/')?.0.to_owned()));
    stacks.filter(|stack| !stack.starts_with("aws-sam-cli")).collect()
}

/// Returns the names of the stacks in the profiles that `dueday deploy init` writes, by the names of the profiles.
fn stacks_of_init() -> BTreeMap<&'static str, String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("template.yaml"), "").unwrap();
    let mut init = dueday(folder.path());
    init.args(["deploy", "init", "--folder"]).arg(folder.path());
    init.args(["--name", "Shop", "--sender", "shop@example.com", "--zone", "UTC", "--tokens", "none"]);
    init.args(["--charge-with", "arn:aws:secretsmanager:eu-west-1:123456789012:secret:stripe-a1b2c3"]);
    let (code, _, stderr) = output(init.args(["--alarms", "ops@example.com", "--parts", "full"]));
    assert_eq!(code, 0, "{stderr}");
    let written: toml::Table = std::fs::read_to_string(folder.path().join("samconfig.toml")).unwrap().parse().unwrap();
    let stack = |profile: &str| written[profile]["deploy"]["parameters"]["stack_name"].as_str().unwrap().to_owned();
    ["dev", "prod"].map(|profile| (profile, stack(profile))).into()
}

#[test]
fn policy_of_the_person_who_deploys_passes_the_roles_to_every_service_of_the_template() {
    let policy = policy();
    let statements = statements(&policy);
    let pass = statements.iter().find(|statement| statement["Sid"] == "PassRoles").unwrap();
    let passed: BTreeSet<String> =
        texts(&pass["Condition"]["StringEquals"]["iam:PassedToService"]).into_iter().collect();
    let template = template();
    let roles = template["Resources"].as_mapping().unwrap().values().filter(|role| role["Type"] == "AWS::IAM::Role");
    let trusts = roles.map(|role| serde_yaml_ng::to_string(&role["Properties"]["AssumeRolePolicyDocument"]).unwrap());
    let services = regex::Regex::new(r"[a-z]+\.amazonaws\.com").unwrap();
    let mut needed: BTreeSet<String> = trusts
        .flat_map(|trust| services.find_iter(&trust).map(|found| found.as_str().to_owned()).collect::<Vec<_>>())
        .collect();
    // AWS SAM creates the roles of functions, state machines and their schedules.
    needed.extend(["lambda", "scheduler", "states"].map(|service| format!("{service}.amazonaws.com")));
    assert_eq!(passed, needed);
}

#[test]
fn policy_of_the_person_who_deploys_covers_every_resource_type_of_the_template() {
    let policy = policy();
    let allowed: BTreeSet<String> =
        statements(&policy).iter().flat_map(|statement| texts(&statement["Action"])).collect();
    let template = template();
    let types: BTreeSet<String> =
        template["Resources"].as_mapping().unwrap().values().map(|resource| text(&resource["Type"])).collect();
    for kind in types {
        let known =
            ACTIONS_OF_TYPES.iter().find(|(known, _)| kind == *known || kind.starts_with(&format!("{known}::")));
        let (_, needed) =
            known.unwrap_or_else(|| panic!("add {kind} to this test, and its actions to deploy/policy.json"));
        let missing: Vec<_> = needed.iter().filter(|action| !allowed.contains(**action)).collect();
        assert!(missing.is_empty(), "{kind}: deploy/policy.json lacks {missing:?}");
    }
}

#[test]
fn policy_of_the_person_who_deploys_names_resources_and_fits_into_a_role() {
    let policy = policy();
    // The policy simulator accepts no wildcard in an action.
    for statement in statements(&policy) {
        assert!(texts(&statement["Action"]).iter().all(|action| !action.contains('*')), "{statement}");
    }
    let is_for_all = |statement: &&Value| texts(&statement["Resource"]).contains(&"*".to_owned());
    let for_all: Vec<_> = statements(&policy).iter().filter(is_for_all).map(|statement| &statement["Sid"]).collect();
    assert_eq!(for_all, ["WithoutResource", "EventSources"]);
    let event_sources = statements(&policy).iter().find(|statement| statement["Sid"] == "EventSources").unwrap();
    assert!(event_sources["Condition"]["ArnLike"]["lambda:FunctionArn"].is_string());
    let filled = policy.to_string().replace("ACCOUNT", "123456789012").replace("REGION", "ap-southeast-1");
    assert!(filled.len() <= LARGEST_POLICY, "{}", filled.len());
}

#[test]
fn policies_name_the_stacks_that_deploy_init_names() {
    let names = stacks_of_init();
    assert_eq!(stacks(&policy()), names.values().cloned().collect());
    let document = include_str!("../../../../docs/operations.md");
    let (_, section) = document.split_once("### Deploy from GitHub").unwrap();
    let (section, _) = section.split_once("\n### ").unwrap();
    let policies = section.split("```json\n").skip(1).map(|rest| rest.split_once("```").unwrap().0);
    let policies: Vec<Value> = policies.map(|policy| serde_json::from_str(policy).unwrap()).collect();
    let [trust, rights] = &policies[..] else { panic!("{policies:?}") };
    let subject =
        trust["Statement"][0]["Condition"]["StringEquals"]["token.actions.githubusercontent.com:sub"].as_str();
    assert_eq!(subject, Some("repo:OWNER/REPOSITORY:environment:prod"));
    assert_eq!(stacks(rights), [names["prod"].clone()].into());
}
