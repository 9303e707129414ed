//! Tests of the queues in `dueday status --table`, with the fake `aws` program.

use std::fs;

use serde_json::{Value, json};

use super::Deployment;
use super::aws::set_response;
use crate::terminal::{dueday, output};

/// Returns the response of CloudFormation with two queues and a function of a stack.
fn resources() -> Value {
    let resource = |kind: &str, name: &str, id: &str| json!({"LogicalResourceId": name, "PhysicalResourceId": id, "ResourceType": kind, "ResourceStatus": "CREATE_COMPLETE"});
    let url = |name: &str| format!("https://sqs.eu-west-1.amazonaws.com/123456789012/dueday-{name}");
    json!({"StackResourceSummaries": [
        resource("AWS::SQS::Queue", "Deliveries", &url("Deliveries")),
        resource("AWS::SQS::Queue", "DeliveriesLost", &url("DeliveriesLost")),
        resource("AWS::Lambda::Function", "EventsFunction", "dueday-EventsFunction-1"),
    ]})
}

/// Returns a response of Amazon SQS in its documented form ("get-queue-attributes" in the AWS CLI reference).
fn attributes(due: &str, delayed: &str, in_progress: &str, redrive_policy: Option<&str>) -> Value {
    let mut attributes = json!({
        "ApproximateNumberOfMessages": due,
        "ApproximateNumberOfMessagesDelayed": delayed,
        "ApproximateNumberOfMessagesNotVisible": in_progress,
    });
    if let Some(policy) = redrive_policy {
        attributes["RedrivePolicy"] = policy.into();
    }
    json!({"Attributes": attributes})
}

#[tokio::test(flavor = "multi_thread")]
async fn status_of_a_table_on_aws_shows_the_queues_of_its_stack() {
    let deployment = Deployment::new(true).await;
    let folder = deployment.path();
    set_response(folder, "cloudformation.list-stack-resources", &resources());
    let status = || {
        let (code, stdout, stderr) = output(deployment.command("status").arg("--json"));
        assert_eq!(stderr, "");
        let status: Value = serde_json::from_str(&stdout).unwrap();
        (code, status["queues"].clone(), status["problems"].to_string())
    };
    let queue = |name: &str, waiting: u64, in_progress: u64, keeps: bool| json!({"name": name, "waiting": waiting, "in_progress": in_progress, "keeps_failed_messages": keeps});

    let policy =
        r#"{"deadLetterTargetArn":"arn:aws:sqs:eu-west-1:123456789012:dueday-DeliveriesLost","maxReceiveCount":5}"#;
    set_response(folder, "sqs.get-queue-attributes", &attributes("3", "4", "2", Some(policy)));
    let (_, queues, problems) = status();
    assert_eq!(queues, json!([queue("Deliveries", 7, 2, false), queue("DeliveriesLost", 7, 2, false)]));
    assert!(!problems.contains("queue"), "{problems}");

    set_response(folder, "sqs.get-queue-attributes", &attributes("1", "0", "0", None));
    let (code, queues, problems) = status();
    assert_eq!((code, &queues[1]), (1, &queue("DeliveriesLost", 1, 0, true)));
    assert!(problems.contains("messages in the queue DeliveriesLost that could not be processed: 1"), "{problems}");

    set_response(folder, "sqs.get-queue-attributes", &attributes("many", "0", "0", None));
    let (code, queues, problems) = status();
    assert_eq!((code, &queues[0]["waiting"]), (1, &Value::Null), "a text that is not a number");
    assert!(problems.contains("the queue Deliveries could not be read"), "{problems}");
    let (_, text, _) = output(&mut deployment.command("status"));
    assert!(text.contains("Deliveries could not be read, DeliveriesLost could not be read"), "{text}");

    let requests = fs::read_to_string(folder.join("requests")).unwrap();
    let expected = "eu-west-1 sqs get-queue-attributes --queue-url \
                    https://sqs.eu-west-1.amazonaws.com/123456789012/dueday-Deliveries --attribute-names \
                    ApproximateNumberOfMessages ApproximateNumberOfMessagesDelayed ApproximateNumberOfMessagesNotVisible \
                    RedrivePolicy --output json";
    assert!(requests.lines().any(|line| line == expected), "{requests}");
}

#[tokio::test(flavor = "multi_thread")]
async fn status_reports_why_the_queues_could_not_be_read() {
    let deployment = Deployment::new(true).await;
    set_response(deployment.path(), "cloudformation.list-stack-resources", &resources());
    // The columns are: the file whose response is missing, and the reason.
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

#[test]
fn status_refuses_the_flag_stack_without_the_flag_table() {
    let folder = tempfile::tempdir().unwrap();
    let (code, _, stderr) = output(dueday(folder.path()).args(["status", "--stack", "dueday"]));
    assert!(code == 2 && stderr.contains("--stack needs --table"), "{stderr}");
}
