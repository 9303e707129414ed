//! Checks which resources `template.yaml` deploys with `Parts=core`, and that no resource changes its name or its type: a
//! renamed table would be replaced by an empty one.

use std::collections::{BTreeMap, BTreeSet};

use serde_yaml_ng::Value;

use crate::stack::{Stack, parsed_template};
use crate::template::text;

/// The parameters of a stack with Stripe and its webhooks, Amazon SES, and alarms by mail.
const STRIPE: [(&str, &str); 5] = [
    ("Gateway", "stripe"),
    ("StripeSecret", "arn:aws:secretsmanager:eu-west-1:123456789012:secret:stripe"),
    ("StripeWebhookSecret", "arn:aws:secretsmanager:eu-west-1:123456789012:secret:webhooks"),
    ("MailUrl", "ses:"),
    ("AlarmEmail", "ops@example.com"),
];

/// Returns the resources of a stack with `Parts=core`, Stripe and Amazon SES, except for the parameters in `changes`.
fn core_resources(changes: &[(&str, &str)]) -> BTreeSet<String> {
    let given: Vec<(&str, &str)> = STRIPE.iter().chain(&[("Parts", "core")]).chain(changes).copied().collect();
    Stack::new(&given).resources().into_iter().map(|(name, _)| name).collect()
}

/// Splits `names` at white space.
fn names(names: &str) -> BTreeSet<String> {
    names.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn core_has_the_api_the_batches_the_table_and_their_alarms() {
    let resources = core_resources(&[("StripeWebhookSecret", "")]);
    let expected = names(
        "Table TableName TableArn Alarms AlarmsPolicy AlarmsByMail Api ApiAccessLog ApiLog ApiFunction ApiFailedAlarm \
         PaymentsLog PaymentsFunction PaymentsWalk PaymentsDaily PaymentsNotDone PaymentsNotSeenDone \
         RemindersLog RemindersFunction RemindersWalk RemindersDaily RemindersNotDone RemindersNotSeenDone \
         PaymentsWalkRole PaymentsDailyRole PaymentsDailyScheduleRole \
         RemindersWalkRole RemindersDailyRole RemindersDailyScheduleRole \
         StripeSecretPolicy SesPolicy MailConfigurationSet",
    );
    assert_eq!(resources, expected);
}

#[test]
fn core_with_stripe_also_has_the_inbound_webhooks() {
    let added: BTreeSet<String> =
        core_resources(&[]).difference(&core_resources(&[("StripeWebhookSecret", "")])).cloned().collect();
    let expected = names(
        "WebhooksFunction WebhooksLog WebhooksNotDone WebhooksNotDoneAlarm WebhooksRefused WebhooksRefusedAlarm \
         WebhooksFailedAlarm",
    );
    assert_eq!(added, expected);
}

#[test]
fn order_desk_needs_all_parts() {
    let refusals =
        |given: &[(&str, &str)]| Stack::new(&[&STRIPE[..], given].concat()).refusals_of_rule("OrdersNeedFullParts");
    assert_eq!(refusals(&[("Parts", "core"), ("Orders", "on")]), ["Orders=on needs Parts=full"]);
    assert_eq!(refusals(&[("Parts", "core")]), [""; 0]);
    assert_eq!(refusals(&[("Orders", "on")]), [""; 0]);
}

#[test]
fn existing_stack_keeps_all_its_parts() {
    assert_eq!(text(&parsed_template()["Parameters"]["Parts"]["Default"]), "full");
}

/// The largest number of parameters that a person can still overlook.
const MAX_PARAMETERS: usize = 35;

#[test]
fn template_has_few_parameters_and_none_for_the_policy() {
    let template = parsed_template();
    let names: BTreeSet<String> = template["Parameters"].as_mapping().unwrap().keys().map(text).collect();
    assert!(names.len() <= MAX_PARAMETERS, "{} parameters", names.len());
    for setting in billing::Policy::setting_names().filter(|setting| *setting != billing::PolicySetting::TimeZone) {
        let words = setting.to_string();
        let words = words.split('-').map(|word| word[..1].to_uppercase() + &word[1..]);
        let name: String = words.collect();
        assert!(!names.contains(&name), "{name} is stored in the table");
    }
}

/// Returns the type in CloudFormation of a resource of the type `kind`, after the transform of AWS SAM.
fn transformed_type(kind: &str) -> &str {
    match kind {
        "AWS::Serverless::Function" => "AWS::Lambda::Function",
        "AWS::Serverless::StateMachine" => "AWS::StepFunctions::StateMachine",
        "AWS::Serverless::HttpApi" => "AWS::ApiGatewayV2::Api",
        kind => kind,
    }
}

/// `stack_resources.txt` contains the resources after the transform of AWS SAM, each with its type. `.ci/stack_resources.py`
/// compares all of them.
#[test]
fn no_resource_of_an_earlier_version_has_another_name_or_another_type() {
    let template = parsed_template();
    let resources = template["Resources"].as_mapping().unwrap().iter();
    let present: BTreeMap<String, &str> =
        resources.map(|(name, resource)| (text(name), transformed_type(resource["Type"].as_str().unwrap()))).collect();
    let stored = include_str!("stack_resources.txt").lines().map(|line| line.split_once(' ').unwrap());
    let stored: BTreeMap<&str, &str> = stored.collect();
    for (name, kind) in &present {
        assert_eq!(stored.get(name.as_str()), Some(kind), "{name}: run .ci/stack_resources.py --update");
    }
    let is_generated_by_sam = |name: &str| present.keys().any(|owner| name.starts_with(owner.as_str()));
    for name in stored.keys() {
        assert!(is_generated_by_sam(name), "the resource {name} is no longer in the template");
    }
    let table = &template["Resources"]["Table"];
    assert!(matches!(&table["DeletionPolicy"], Value::String(policy) if policy == "RetainExceptOnCreate"));
}
