//! Tests of `dueday doctor --before`, with a fake `aws` program.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::fake_aws::{install_aws, set_response};
use crate::terminal::{dueday, output};

/// The role of the person who deploys.
const ROLE: &str = "arn:aws:iam::123456789012:role/team/deployer";

/// Returns a folder with the profiles of `dueday deploy init` and with a fake `aws` program, in whose account everything is good.
fn account() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let template = concat!(env!("CARGO_MANIFEST_DIR"), "/../../template.yaml");
    fs::copy(template, folder.path().join("template.yaml")).unwrap();
    let mut init = dueday(folder.path());
    init.args(["deploy", "init", "--folder"]).arg(folder.path());
    init.args(["--name", "Shop", "--sender", "Shop <billing@example.com>", "--zone", "Europe/Vienna"]);
    init.args(["--charge-with", "arn:aws:secretsmanager:eu-west-1:123456789012:secret:stripe-a1b2c3"]);
    init.args(["--tokens", "none", "--alarms", "ops@example.com", "--parts", "full"]);
    assert_eq!(output(&mut init).0, 0);
    install_aws(folder.path());
    let session = "arn:aws:sts::123456789012:assumed-role/deployer/mary";
    set_response(
        folder.path(),
        "sts.get-caller-identity",
        &json!({"UserId": "AROAEXAMPLE:mary", "Account": "123456789012", "Arn": session}),
    );
    set_response(folder.path(), "iam.get-role", &json!({"Role": {"RoleName": "deployer", "Arn": ROLE}}));
    set_simulation(folder.path(), &[]);
    set_quota(folder.path(), 1000);
    let account = json!({"EnforcementStatus": "HEALTHY", "ProductionAccessEnabled": true, "SendingEnabled": true});
    set_response(folder.path(), "sesv2.get-account", &account);
    let identity = json!({"IdentityType": "DOMAIN", "VerifiedForSendingStatus": true, "VerificationStatus": "SUCCESS"});
    set_response(folder.path(), "sesv2.get-email-identity", &identity);
    folder
}

/// Sets the quota of Lambda.
fn set_quota(folder: &Path, quota: u32) {
    let limit = json!({"ConcurrentExecutions": quota, "UnreservedConcurrentExecutions": quota});
    set_response(folder, "lambda.get-account-settings", &json!({"AccountLimit": limit}));
}

/// Sets the response of the policy simulator: it denies the actions `denied`, and allows another one.
fn set_simulation(folder: &Path, denied: &[&str]) {
    let result = |action: &str, decision: &str| json!({"EvalActionName": action, "EvalDecision": decision});
    let mut results = vec![result("sqs:CreateQueue", "allowed")];
    results.extend(denied.iter().map(|action| result(action, "implicitDeny")));
    let response = json!({"EvaluationResults": results});
    set_response(folder, "iam.simulate-principal-policy", &response);
    // The fake program adds the name of a secret.
    set_response(folder, "iam.simulate-principal-policy.EncryptionKeys-example", &response);
}

/// Runs `dueday doctor` with `arguments` in `folder`. Returns the exit code, the standard output and the standard error.
fn doctor(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let mut command: Command = dueday(&folder.join("data"));
    command
        .current_dir(folder)
        .env("PATH", format!("{}:/usr/bin:/bin", folder.display()))
        .env("AWS_ACCESS_KEY_ID", "key")
        .env("AWS_SECRET_ACCESS_KEY", "secret")
        .env("AWS_REGION", "eu-west-1")
        .arg("doctor")
        .args(arguments);
    output(&mut command)
}

#[test]
fn account_that_is_ready_is_good_and_every_action_of_the_policy_is_simulated() {
    let folder = account();
    let (code, text, stderr) = doctor(folder.path(), &["--before"]);
    assert!(code == 0 && text.contains("5 good, 0 wrong, 0 not checked."), "{text}{stderr}");
    assert!(text.contains(&format!("permissions to deploy: {ROLE} has all ")), "{text}");
    let requests = fs::read_to_string(folder.path().join("requests")).unwrap();
    let is_read = |request: &str| {
        let operation = request.split(' ').nth(2).unwrap();
        ["get-", "simulate-"].iter().any(|start| operation.starts_with(start))
    };
    assert!(requests.lines().all(is_read), "{requests}");
    let simulated: BTreeSet<&str> = requests.split_whitespace().collect();
    let policy: Value = serde_json::from_str(include_str!("../../../../../deploy/policy.json")).unwrap();
    let statements = policy["Statement"].as_array().unwrap().iter();
    let actions = statements.flat_map(|statement| statement["Action"].as_array().unwrap());
    for action in actions.map(|action| action.as_str().unwrap()) {
        assert!(simulated.contains(action), "{action} is not simulated");
    }
    let stack = "arn:aws:cloudformation:eu-west-1:123456789012:stack/dueday/example";
    assert!(simulated.contains(stack) && simulated.contains(ROLE), "{requests}");
}

#[test]
fn account_that_is_not_ready_is_reported_with_advice() {
    let folder = account();
    set_simulation(folder.path(), &["iam:CreateRole", "sqs:DeleteQueue"]);
    set_quota(folder.path(), 10);
    let sandbox = json!({"EnforcementStatus": "HEALTHY", "ProductionAccessEnabled": false, "SendingEnabled": true});
    set_response(folder.path(), "sesv2.get-account", &sandbox);
    let unverified =
        json!({"IdentityType": "DOMAIN", "VerifiedForSendingStatus": false, "VerificationStatus": "PENDING"});
    set_response(folder.path(), "sesv2.get-email-identity", &unverified);
    let (code, text, _) = doctor(folder.path(), &["--before", "prod"]);
    for line in [
        "sender of mails: example.com is not verified (PENDING)",
        "Amazon SES: it is in the sandbox, so customers get no mails",
        "concurrency of Lambda: the quota is 10",
        "lacks iam:CreateRole, sqs:DeleteQueue. Give it the policy deploy/policy.json",
    ] {
        assert!(code == 1 && text.lines().any(|found| found.starts_with("wrong") && found.contains(line)), "{text}");
    }
    let (_, text, _) = doctor(folder.path(), &["--before", "dev"]);
    assert!(text.contains("good         Amazon SES") && text.contains("good         concurrency"), "{text}");
}

#[test]
fn missing_permissions_for_the_checks_never_count_as_good() {
    let folder = account();
    for (missing, reason) in [
        (
            "iam.simulate-principal-policy",
            "permissions to deploy: the permission iam:simulate-principal-policy is missing",
        ),
        ("iam.get-role", "permissions to deploy: the permission iam:get-role is missing"),
        ("lambda.get-account-settings", "concurrency of Lambda: the permission lambda:get-account-settings is missing"),
    ] {
        fs::remove_file(folder.path().join(format!("{missing}.json"))).unwrap();
        let (code, text, _) = doctor(folder.path(), &["--before"]);
        assert!(code == 1 && text.contains(&format!("not checked  {reason}")), "{text}");
    }
    let root = json!({"Account": "123456789012", "Arn": "arn:aws:iam::123456789012:root"});
    set_response(folder.path(), "sts.get-caller-identity", &root);
    let (code, text, _) = doctor(folder.path(), &["--before"]);
    assert!(code == 1 && text.contains("the policy simulator knows only users and roles of IAM"), "{text}");
}

#[test]
fn profile_must_exist_and_the_table_must_not_be_given() {
    let folder = account();
    let (code, _, stderr) = doctor(folder.path(), &["--before", "staging"]);
    assert!(code == 2 && stderr.contains("no profile staging in the form of dueday deploy init"), "{stderr}");
    let (code, _, stderr) = doctor(folder.path(), &["--before", "--table", "payments"]);
    assert!(code == 2 && stderr.contains("leave --table out"), "{stderr}");
}
