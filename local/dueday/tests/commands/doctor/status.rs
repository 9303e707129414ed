//! Tests of the queues in `dueday status --table`, with the fake `aws` program.

use std::collections::BTreeSet;
use std::fs;

use days::QUEUE_OF_HEARTBEATS;
use serde_json::{Value, json};

use super::Deployment;
use super::fake_aws::set_response;
use crate::template_logs::resources;
use crate::terminal::{dueday, output};

/// Returns the names of the queues in `template.yaml`.
fn queues_of_template() -> BTreeSet<String> {
    let resources = resources();
    let queues = resources.as_mapping().unwrap().iter().filter(|(_, resource)| resource["Type"] == "AWS::SQS::Queue");
    queues.map(|(name, _)| name.as_str().unwrap().to_owned()).collect()
}

/// Returns CloudFormation's list of the resources of the stack: all queues of the template, and one function.
fn stack_resources() -> Value {
    let resource = |kind: &str, name: &str, id: &str| json!({"LogicalResourceId": name, "PhysicalResourceId": id, "ResourceType": kind, "ResourceStatus": "CREATE_COMPLETE"});
    let function = resource("AWS::Lambda::Function", "EventsFunction", "dueday-EventsFunction-1");
    let queue = |name: &String| {
        resource("AWS::SQS::Queue", name, &format!("https://sqs.eu-west-1.amazonaws.com/123456789012/{name}"))
    };
    let summaries: Vec<Value> = queues_of_template().iter().map(queue).chain([function]).collect();
    json!({"StackResourceSummaries": summaries})
}

/// Sets the response of Amazon SQS about the queue `name`. The response has the documented form ("get-queue-attributes"
/// in the AWS CLI reference).
fn set_queue(
    deployment: &Deployment,
    name: &str,
    [due, delayed, in_progress]: [&str; 3],
    redrive_policy: Option<&str>,
) {
    let mut attributes = json!({
        "ApproximateNumberOfMessages": due,
        "ApproximateNumberOfMessagesDelayed": delayed,
        "ApproximateNumberOfMessagesNotVisible": in_progress,
    });
    if let Some(policy) = redrive_policy {
        attributes["RedrivePolicy"] = policy.into();
    }
    let response = json!({"Attributes": attributes});
    set_response(deployment.path(), &format!("sqs.get-queue-attributes.{name}"), &response);
}

/// Returns a deployment whose queues are empty, except for the queue of the heartbeats.
async fn deployment_with_queues() -> Deployment {
    let deployment = Deployment::new(true).await;
    set_response(deployment.path(), "cloudformation.list-stack-resources", &stack_resources());
    for name in queues_of_template() {
        let due = if name == QUEUE_OF_HEARTBEATS { "4" } else { "0" };
        set_queue(&deployment, &name, [due, "0", "0"], None);
    }
    deployment
}

/// Runs `dueday status`. Returns the shown queues, and the reported problems that concern queues.
fn status(deployment: &Deployment, arguments: &[&str]) -> (Value, Vec<String>) {
    let (code, stdout, stderr) = output(deployment.command("status").arg("--json").args(arguments));
    assert_eq!(stderr, "");
    let status: Value = serde_json::from_str(&stdout).unwrap();
    let problems: Vec<String> = serde_json::from_value(status["problems"].clone()).unwrap();
    assert_eq!(code, i32::from(!problems.is_empty()), "{problems:?}");
    (status["queues"].clone(), problems.into_iter().filter(|problem| problem.contains("queue")).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn status_of_a_table_on_aws_shows_the_queues_of_its_stack() {
    let deployment = deployment_with_queues().await;
    let (queues, problems) = status(&deployment, &["--stack", "dueday"]);
    let names: BTreeSet<&str> =
        queues.as_array().unwrap().iter().map(|queue| queue["name"].as_str().unwrap()).collect();
    let all = queues_of_template();
    assert_eq!(names, all.iter().map(String::as_str).filter(|name| *name != QUEUE_OF_HEARTBEATS).collect());
    assert_eq!(problems, [""; 0], "the heartbeats are no problem");

    let policy = r#"{"deadLetterTargetArn":"arn:aws:sqs:eu-west-1:123456789012:DeliveriesLost","maxReceiveCount":5}"#;
    set_queue(&deployment, "Deliveries", ["3", "4", "2"], Some(policy));
    set_queue(&deployment, "DeliveriesLost", ["1", "0", "0"], None);
    set_queue(&deployment, "Notices", ["many", "0", "0"], Some(policy));
    fs::remove_file(deployment.path().join("sqs.get-queue-attributes.Paid.json")).unwrap();
    let (queues, problems) = status(&deployment, &[]);
    let queue = |name: &str| queues.as_array().unwrap().iter().find(|queue| queue["name"] == name).unwrap();
    let numbers =
        |name: &str| ["waiting", "in_progress", "keeps_failed_messages"].map(|field| queue(name)[field].clone());
    assert_eq!(numbers("Deliveries"), [json!(7), json!(2), json!(false)]);
    assert_eq!(numbers("DeliveriesLost"), [json!(1), json!(0), json!(true)]);
    assert_eq!(numbers("Notices"), [(); 3].map(|()| Value::Null));
    let expected = [
        "messages in the queue DeliveriesLost that could not be processed: 1",
        "the queue Notices could not be read: ApproximateNumberOfMessages is \"many\": invalid digit found in string",
        "the queue Paid could not be read: the permission sqs:get-queue-attributes is missing",
    ];
    assert_eq!(problems, expected);

    let (_, text, _) = output(&mut deployment.command("status"));
    assert!(text.contains("Deliveries 9, DeliveriesLost 1") && text.contains("Paid could not be read"), "{text}");
    let requests = fs::read_to_string(deployment.path().join("requests")).unwrap();
    let attributes = days::SQS_ATTRIBUTES.join(" ");
    let url = "https://sqs.eu-west-1.amazonaws.com/123456789012/Deliveries";
    let expected =
        format!("eu-west-1 sqs get-queue-attributes --queue-url {url} --attribute-names {attributes} --output json");
    assert!(requests.lines().any(|line| line == expected), "{requests}");
}

#[tokio::test(flavor = "multi_thread")]
async fn status_reports_why_the_queues_could_not_be_read() {
    let deployment = deployment_with_queues().await;
    // The columns are: the removed file of the fake `aws` program, and the reason in the output.
    for (missing, reason) in [
        ("cloudformation.list-stack-resources.json", "the permission cloudformation:list-stack-resources is missing"),
        ("cloudformation.describe-stacks.json", "the permission cloudformation:describe-stacks is missing"),
        ("aws", "the AWS CLI is not installed: there is no program `aws`"),
    ] {
        fs::remove_file(deployment.path().join(missing)).unwrap();
        let mut command = deployment.command("status");
        if missing == "aws" {
            // A PATH without any program named `aws`.
            command.env("PATH", deployment.path());
        }
        let (code, text, _) = output(&mut command);
        assert!(code == 1 && text.contains(&format!("the queues could not be read: {reason}")), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn status_of_a_core_stack_has_no_queues_and_names_what_is_not_deployed() {
    let deployment = Deployment::new(true).await;
    deployment.set_parameters(&[("Parts", "core"), ("Orders", "off")]);
    let (queues, problems) = status(&deployment, &[]);
    assert_eq!((queues, problems), (json!([]), Vec::new()));
    let (_, text, _) = output(&mut deployment.command("status"));
    let has_line = |start: &str, end: &str| text.lines().any(|line| line.starts_with(start) && line.ends_with(end));
    assert!(has_line("queues ", " none") && has_line("not deployed (core only)  mails after", "dashboard"), "{text}");
}

#[test]
fn api_and_command_show_the_same_queues() {
    let resources = resources();
    let functions = resources.as_mapping().unwrap();
    let api = serde_yaml_ng::to_string(&functions["ApiFunction"]["Properties"]["Environment"]).unwrap();
    let queues = queues_of_template();
    for name in &queues {
        let is_shown = api.contains(&format!("{name}=${{{name}}}"));
        assert_eq!(is_shown, name != QUEUE_OF_HEARTBEATS, "{name}");
    }
    assert!(queues.contains(QUEUE_OF_HEARTBEATS));
}

#[test]
fn status_refuses_the_flag_stack_without_the_flag_table() {
    let folder = tempfile::tempdir().unwrap();
    let (code, _, stderr) = output(dueday(folder.path()).args(["status", "--stack", "dueday"]));
    assert!(code == 2 && stderr.contains("--stack needs --table"), "{stderr}");
}
