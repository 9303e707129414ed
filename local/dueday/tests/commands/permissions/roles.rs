//! Checks the roles in the template: who may assume them, which queues and streams they open, and who may publish events.

use serde_yaml_ng::Value;

use crate::template::{statements_of_function, template, text};

/// Returns `value` as YAML.
fn yaml(value: &Value) -> String {
    serde_yaml_ng::to_string(value).unwrap().trim().to_owned()
}

/// Returns the names and the properties of the resources of the type `kind`.
fn of_type(template: &Value, kind: &str) -> Vec<(String, Value)> {
    let resources = template["Resources"].as_mapping().unwrap().iter();
    let of_kind = resources.filter(|(_, resource)| resource["Type"] == kind);
    of_kind.map(|(name, resource)| (text(name), resource["Properties"].clone())).collect()
}

/// Asserts that `reference` is `!GetAtt NAME.Arn`, and that the template contains the role NAME.
fn assert_own_role(template: &Value, reference: &Value, name: &str) {
    assert_eq!(yaml(reference), format!("!GetAtt {name}.Arn"), "AWS SAM would create another role than {name}");
    assert_eq!(template["Resources"][name]["Type"], "AWS::IAM::Role", "{name}");
}

/// AWS SAM creates roles without these conditions. `.ci/stack_resources.py` checks the roles after its transform.
#[test]
fn services_may_assume_the_roles_only_for_this_aws_account() {
    let template = template();
    for (name, role) in of_type(&template, "AWS::IAM::Role") {
        let trust = role["AssumeRolePolicyDocument"]["Statement"].as_sequence().unwrap();
        assert_eq!(trust.len(), 1, "{name}");
        let condition = &trust[0]["Condition"]["StringEquals"];
        let account = match text(&trust[0]["Principal"]["Service"]).as_str() {
            // Lambda accepts only roles of the account of the function.
            "lambda.amazonaws.com" => continue,
            "firehose.amazonaws.com" => &condition["sts:ExternalId"],
            _ => &condition["aws:SourceAccount"],
        };
        assert_eq!(yaml(account), "!Ref AWS::AccountId", "{name}");
    }
    for (name, machine) in of_type(&template, "AWS::Serverless::StateMachine") {
        assert_own_role(&template, &machine["Role"], &format!("{name}Role"));
    }
    for kind in ["Function", "StateMachine"] {
        for (name, resource) in of_type(&template, &format!("AWS::Serverless::{kind}")) {
            for (event, declared) in resource["Events"].as_mapping().into_iter().flatten() {
                if declared["Type"] == "ScheduleV2" {
                    let role = format!("{name}{}Role", text(event));
                    assert_own_role(&template, &declared["Properties"]["RoleArn"], &role);
                }
            }
        }
    }
}

#[test]
fn functions_read_only_their_own_queue_or_the_streams_of_the_tables() {
    let template = template();
    let mut readers = Vec::new();
    for (name, function) in of_type(&template, "AWS::Serverless::Function") {
        let statements = statements_of_function(&template, &name);
        let with = |action: &str| -> Vec<String> {
            let all = statements.iter().filter(|statement| yaml(&statement["Action"]).contains(action));
            all.map(|statement| yaml(&statement["Resource"])).collect()
        };
        let (mut queues, mut streams) = (Vec::new(), Vec::new());
        for (_, event) in function["Events"].as_mapping().into_iter().flatten() {
            match text(&event["Type"]).as_str() {
                "SQS" => queues.push(yaml(&event["Properties"]["Queue"])),
                "DynamoDB" => streams.push(
                    "- !Sub ${TableArn.Value}/stream/*\n- !If\n  - HasOrders\n  - !Sub ${OrdersTableArn.Value}/stream/*\n  - !Ref \
                     AWS::NoValue"
                        .to_owned(),
                ),
                _ => continue,
            }
            readers.push(name.clone());
            // For a function without this role, AWS SAM adds a managed policy for all queues or all streams.
            assert_own_role(&template, &function["Role"], &format!("{name}Role"));
        }
        assert_eq!(with("sqs:ReceiveMessage"), queues, "{name}");
        assert_eq!(with("dynamodb:GetRecords"), streams, "{name}");
    }
    assert_eq!(readers, ["NoticesFunction", "EventsFunction", "DeliverFunction", "OrdersFunction"]);
}

#[test]
fn template_names_no_managed_policy_and_functions_with_a_role_have_no_other_policies() {
    let template = template();
    for (name, role) in of_type(&template, "AWS::IAM::Role") {
        assert!(role["ManagedPolicyArns"].is_null(), "{name}");
    }
    for (name, function) in of_type(&template, "AWS::Serverless::Function") {
        let has_role = !function["Role"].is_null();
        // AWS SAM ignores the policies of a function that has a role.
        assert_eq!(has_role, function["Policies"].is_null(), "{name}");
        for policy in function["Policies"].as_sequence().into_iter().flatten() {
            assert!(
                policy["Statement"].is_sequence(),
                "{name} has a managed policy or a template of AWS SAM: {policy:?}"
            );
        }
    }
}

#[test]
fn only_the_events_function_may_publish_on_the_bus() {
    let template = template();
    let policies = of_type(&template, "AWS::Events::EventBusPolicy");
    let [(_, policy)] = &policies[..] else { panic!("{policies:?}") };
    assert_eq!(yaml(&policy["EventBusName"]), "!Ref EventBus");
    let statement = &policy["Statement"];
    let denied = ["Effect", "Principal", "Action"].map(|field| text(&statement[field]));
    assert_eq!(denied, ["Deny", "*", "events:PutEvents"]);
    assert_eq!(yaml(&statement["Resource"]), "!GetAtt EventBus.Arn");
    assert_eq!(
        yaml(&statement["Condition"]),
        "ArnNotEquals:\n  aws:PrincipalArn: !GetAtt EventsFunctionRole.Arn",
        "an explicit denial is stronger than every permission"
    );
}
