//! Checks that `template.yaml` deploys either all resources of the sandbox gateway or none. Also checks that only
//! functions of the stack may send requests to the sandbox gateway, and that the template refuses the sandbox gateway
//! in production.

use std::collections::BTreeSet;
use std::sync::Arc;

use clock::SystemClock;
use emulator::Engine;
use sandbox_function::SandboxTable;
use serde_yaml_ng::Value;

use crate::template::{assert_declared, describe_table, template, text};

/// Returns `value` as YAML text.
fn yaml(value: &Value) -> String {
    serde_yaml_ng::to_string(value).unwrap()
}

#[tokio::test]
async fn template_declares_the_sandbox_table_and_deploys_the_whole_sandbox_or_nothing() {
    let client = Engine::in_memory().client();
    SandboxTable::new(client.clone(), "dueday-sandbox", Arc::new(SystemClock)).create_if_absent().await.unwrap();
    let template = template();
    let declared = &template["Resources"]["SandboxTable"]["Properties"];
    assert_declared(declared, &describe_table(&client, "dueday-sandbox").await);
    let ttl = client.describe_time_to_live().table_name("dueday-sandbox").send().await.unwrap();
    let ttl = ttl.time_to_live_description.unwrap();
    assert_eq!(Some(text(&declared["TimeToLiveSpecification"]["AttributeName"])), ttl.attribute_name);
    let resources = template["Resources"].as_mapping().unwrap().iter();
    let of_sandbox: BTreeSet<String> = resources
        .filter(|(name, resource)| text(name).starts_with("Sandbox") || resource["Condition"] == "HasSandbox")
        .map(|(name, resource)| format!("{} {}", text(name), text(&resource["Condition"])))
        .collect();
    let expected = ["SandboxFailedAlarm", "SandboxFunction", "SandboxLog", "SandboxPolicy", "SandboxTable"];
    assert_eq!(of_sandbox, expected.map(|name| format!("{name} HasSandbox")).into());
}

#[test]
fn template_lets_only_the_functions_that_charge_or_compare_reach_the_sandbox() {
    let template = template();
    let resources = template["Resources"].as_mapping().unwrap();
    let function = &template["Resources"]["SandboxFunction"]["Properties"];
    assert_eq!(yaml(&function["FunctionUrlConfig"]), "AuthType: AWS_IAM\n", "no other site, and no public access");
    let paths = function["Events"].as_mapping().unwrap().values().map(|event| text(&event["Properties"]["Path"]));
    assert_eq!(paths.collect::<BTreeSet<_>>(), ["/pages/{page}".to_owned()].into(), "only the checkout page is public");

    let names_function = |value: &Value| yaml(value).contains("SandboxFunction");
    let naming = resources.iter().filter(|(name, resource)| *name != "SandboxFunction" && names_function(resource));
    let naming: BTreeSet<String> = naming.map(|(name, _)| text(name)).collect();
    let (users, watchers) = (
        ["ApiFunction", "PaymentsFunction", "SandboxPolicy", "SandboxFailedAlarm", "ReconcileFunction"],
        ["OptionalFunctionsThrottledAlarm", "Dashboard"],
    );
    assert_eq!(naming, [users.as_slice(), &watchers].concat().into_iter().map(str::to_owned).collect());
    for name in ["ApiFunction", "PaymentsFunction", "ReconcileFunction"] {
        let url = yaml(&template["Resources"][name]["Properties"]["Environment"]["Variables"]["DUEDAY_SANDBOX_URL"]);
        assert_eq!(url, "!If\n- HasSandbox\n- !GetAtt SandboxFunctionUrl.FunctionUrl\n- ''\n", "{name}");
    }
    let policy = &template["Resources"]["SandboxPolicy"]["Properties"];
    let roles = "- !Ref PaymentsFunctionRole\n- !Ref ApiFunctionRole\n- !Ref ReconcileFunctionRole\n";
    assert_eq!(yaml(&policy["Roles"]), roles);
    let statements = policy["PolicyDocument"]["Statement"].as_sequence().unwrap().iter().map(|statement| {
        let condition = yaml(&statement["Condition"]).replace('\n', " ");
        (text(&statement["Action"]), yaml(&statement["Resource"]), condition)
    });
    let arn = || "!GetAtt SandboxFunction.Arn\n".to_owned();
    assert_eq!(
        statements.collect::<Vec<_>>(),
        [
            (
                "lambda:InvokeFunctionUrl".to_owned(),
                arn(),
                "StringEquals:   lambda:FunctionUrlAuthType: AWS_IAM ".to_owned()
            ),
            ("lambda:InvokeFunction".to_owned(), arn(), "Bool:   lambda:InvokedViaFunctionUrl: true ".to_owned()),
        ]
    );
}

#[test]
fn template_refuses_the_sandbox_in_production() {
    let template = template();
    let rule = &template["Rules"]["ProdRefusesSandbox"];
    assert_eq!(yaml(&rule["RuleCondition"]), "!Equals\n- !Ref Stage\n- prod\n");
    let assertions = rule["Assertions"].as_sequence().unwrap();
    assert_eq!(assertions.len(), 1);
    assert_eq!(yaml(&assertions[0]["Assert"]), "!Not\n- !Equals\n  - !Ref Gateway\n  - sandbox\n");
    assert_eq!(yaml(&template["Conditions"]["HasSandbox"]), "!Equals\n- !Ref Gateway\n- sandbox\n");
}
