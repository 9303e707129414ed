//! Checks which Lambda functions may read each secret, and which may send mails, according to `template.yaml`.

use std::collections::BTreeSet;

use encryption::EncryptionKeys;
use serde_yaml_ng::Value;
use ses::SesMailer;

use crate::template::{statements_of_function, template, text};

#[test]
fn template_allows_only_functions_that_call_stripe_to_read_its_key() {
    let template = template();
    let who_may = template["Resources"].as_mapping().unwrap().iter();
    let who_may =
        who_may.filter(|(_, resource)| serde_yaml_ng::to_string(resource).unwrap().contains("secretsmanager:"));
    let expected = [
        "ApiFunction",
        "DeliverFunctionRole",
        "GatewayKeySecretPolicy",
        "MailLoginPolicy",
        "StripeSecretPolicy",
        "WebhooksFunction",
    ];
    assert_eq!(who_may.map(|(name, _)| text(name)).collect::<BTreeSet<_>>(), expected.map(str::to_owned).into());
    let own = &template["Resources"]["WebhooksFunction"]["Properties"]["Policies"][0]["Statement"][0];
    assert!(
        matches!(&own["Resource"], Value::Tagged(secret) if text(&secret.value) == "StripeWebhookSecret"),
        "{own:?}"
    );
    let policy = &template["Resources"]["StripeSecretPolicy"];
    assert_eq!(text(&policy["Condition"]), "HasStripe");
    let roles = policy["Properties"]["Roles"].as_sequence().unwrap().iter().map(|role| match role {
        Value::Tagged(role) if role.value.is_sequence() => serde_yaml_ng::to_string(&role.value).unwrap(),
        Value::Tagged(role) => text(&role.value),
        other => panic!("{other:?}"),
    });
    let roles: Vec<_> = roles.collect();
    assert_eq!(
        (&roles[..3], roles.len()),
        (&["PaymentsFunctionRole", "ApiFunctionRole", "ReconcileFunctionRole"].map(str::to_owned)[..], 4)
    );
    assert!(roles[3].contains("HasStripeWebhooks") && roles[3].contains("WebhooksFunctionRole"), "{roles:?}");
    let statement = &policy["Properties"]["PolicyDocument"]["Statement"];
    assert_eq!(
        (statement.as_sequence().unwrap().len(), text(&statement[0]["Action"])),
        (1, "secretsmanager:GetSecretValue".to_owned())
    );
    let Value::Tagged(resource) = &statement[0]["Resource"] else { panic!("{statement:?}") };
    assert_eq!(text(&resource.value), "StripeSecret");
}

#[test]
fn template_allows_only_the_api_and_the_deliver_function_to_read_the_encryption_keys() {
    let template = template();
    let resources = template["Resources"].as_mapping().unwrap();
    let names_keys = |value: &Value| serde_yaml_ng::to_string(value).unwrap().contains("!Ref EncryptionKeys");
    let who_may: BTreeSet<String> =
        resources.iter().filter(|(_, resource)| names_keys(resource)).map(|(name, _)| text(name)).collect();
    assert_eq!(who_may, ["ApiFunction", "DeliverFunction", "DeliverFunctionRole"].map(str::to_owned).into());
    for function in ["ApiFunction", "DeliverFunction"] {
        let statements = statements_of_function(&template, function);
        let of_keys: Vec<_> = statements.iter().filter(|statement| names_keys(statement)).collect();
        let [statement] = of_keys[..] else { panic!("{function}: {of_keys:?}") };
        assert_eq!(text(&statement["Action"]), "secretsmanager:GetSecretValue", "{function}");
        assert!(matches!(statement["Resource"], Value::Tagged(_)), "{function}: only this secret");
    }
}

#[test]
fn template_generates_a_valid_encryption_key_and_retains_it() {
    let template = template();
    let secret = &template["Resources"]["EncryptionKeys"];
    assert_eq!(
        (text(&secret["DeletionPolicy"]), text(&secret["UpdateReplacePolicy"])),
        ("RetainExceptOnCreate".into(), "Retain".into())
    );
    let generated = &secret["Properties"]["GenerateSecretString"];
    assert!(generated["ExcludeUppercase"] == true && generated["ExcludePunctuation"] == true, "{generated:?}");
    assert!(generated["RequireEachIncludedType"] == false && generated["IncludeSpace"].is_null(), "{generated:?}");
    let excluded = text(&generated["ExcludeCharacters"]);
    let characters: String = ('0'..='9').chain('a'..='z').filter(|character| !excluded.contains(*character)).collect();
    assert_eq!(
        characters, "0123456789abcdef",
        "every possible character is a hexadecimal digit, with equal probability"
    );
    let length = usize::try_from(generated["PasswordLength"].as_u64().unwrap()).unwrap();
    let key: String = characters.chars().cycle().take(length).collect();
    assert!(EncryptionKeys::parse(&key).is_ok());
}

#[test]
fn stack_with_existing_encryption_keys_creates_no_keys_and_every_use_names_the_existing_secret() {
    let template = template();
    assert_eq!(text(&template["Resources"]["EncryptionKeys"]["Condition"]), "CreatesEncryptionKeys");
    // A reference to the created secret alone would refuse the deployment with existing keys.
    let source = include_str!("../../../../template.yaml");
    let condition = "CreatesEncryptionKeys: !And [!Condition IsFull, !Equals [!Ref ExistingEncryptionKeys, \"\"]]";
    assert!(source.contains(condition));
    let either = "!If [CreatesEncryptionKeys, !Ref EncryptionKeys, !Ref ExistingEncryptionKeys]";
    let in_role = either.replace("!Ref ExistingEncryptionKeys", "!Sub \"${ExistingEncryptionKeys}\"");
    let uses = [either, &in_role].map(|text| source.matches(text).count());
    assert_eq!(uses, [4, 1], "two functions, the policy of one, and the output; the role of the other");
    assert_eq!(source.matches("!Ref EncryptionKeys").count(), 5);
    let pattern = text(&template["Parameters"]["ExistingEncryptionKeys"]["AllowedPattern"]);
    let pattern = regex::Regex::new(&pattern).unwrap();
    let arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:EncryptionKeys-a1B2c3D4e5F6";
    assert!(pattern.is_match("") && pattern.is_match(&format!("{arn}-x1Y2z3")));
    assert!(!pattern.is_match(arn), "IAM needs the complete ARN: {arn}");
}

#[test]
fn template_allows_only_functions_that_call_the_gateway_to_read_its_key_and_to_run_in_the_vpc() {
    let template = template();
    let callers = ["ApiFunction", "PaymentsFunction", "ReconcileFunction"];
    let functions = template["Resources"].as_mapping().unwrap().iter();
    let in_vpc = functions.filter(|(_, resource)| !resource["Properties"]["VpcConfig"].is_null());
    assert_eq!(in_vpc.map(|(name, _)| text(name)).collect::<BTreeSet<_>>(), callers.map(str::to_owned).into());
    for name in callers {
        let config = serde_yaml_ng::to_string(&template["Resources"][name]["Properties"]["VpcConfig"]).unwrap();
        for part in ["!If", "HasVpc", "SubnetIds: !Ref VpcSubnets", "SecurityGroupIds: !Ref VpcSecurityGroups"] {
            assert!(config.contains(part), "{name} {part}: {config}");
        }
    }
    let policy = &template["Resources"]["GatewayKeySecretPolicy"];
    let text_of = |value: &Value| serde_yaml_ng::to_string(value).unwrap();
    assert_eq!(text(&policy["Condition"]), "HasGatewayKey");
    let roles = "- !Ref PaymentsFunctionRole\n- !Ref ApiFunctionRole\n- !Ref ReconcileFunctionRole\n";
    assert_eq!(text_of(&policy["Properties"]["Roles"]), roles);
    let statement = policy["Properties"]["PolicyDocument"]["Statement"].as_sequence().unwrap();
    assert_eq!((statement.len(), text(&statement[0]["Action"])), (1, "secretsmanager:GetSecretValue".to_owned()));
    assert_eq!(text_of(&statement[0]["Resource"]), "!Ref GatewayKeySecret\n");
}

#[test]
fn template_allows_only_mail_functions_to_send_by_ses() {
    let template = template();
    let who_may = template["Resources"].as_mapping().unwrap().iter();
    let who_may = who_may.filter(|(_, resource)| serde_yaml_ng::to_string(resource).unwrap().contains("ses:Send"));
    assert_eq!(who_may.map(|(name, _)| text(name)).collect::<Vec<_>>(), ["SesPolicy"]);
    let policy = &template["Resources"]["SesPolicy"];
    assert_eq!(text(&policy["Condition"]), "HasSes");
    let tagged = |value: &Value| match value {
        Value::Tagged(value) => text(&value.value),
        other => panic!("{other:?}"),
    };
    let all = |values: &Value| values.as_sequence().unwrap().iter().map(tagged).collect::<Vec<_>>();
    assert_eq!(all(&policy["Properties"]["Roles"]), ["RemindersFunctionRole", "NoticesFunctionRole"]);
    let statements = policy["Properties"]["PolicyDocument"]["Statement"].as_sequence().unwrap();
    let [statement] = statements.as_slice() else { panic!("{statements:?}") };
    let actions = statement["Action"].as_sequence().unwrap().iter().map(text);
    assert_eq!(actions.collect::<Vec<_>>(), ["ses:SendEmail", "ses:SendRawEmail"]);
    // The allowed resources are: the identity of the sender, any address in the sender's domain unless the parameter
    // SesIdentity is set, and the stack's own configuration set.
    let resources: Vec<String> = statement["Resource"]
        .as_sequence()
        .unwrap()
        .iter()
        .map(|resource| serde_yaml_ng::to_string(resource).unwrap())
        .collect();
    let here = "arn:${AWS::Partition}:ses:${AWS::Region}:${AWS::AccountId}:";
    let ends = ["identity/${Identity}", "identity/*@${Domain}", "configuration-set/${MailConfigurationSet}"];
    assert_eq!(resources.len(), ends.len());
    for (resource, end) in resources.iter().zip(ends) {
        assert!(resource.contains(&format!("{here}{end}")), "{resource}");
    }
    assert!(resources[1].starts_with("!If\n- HasSesIdentity\n- !Ref AWS::NoValue"), "{}", resources[1]);
}

#[test]
fn template_passes_the_configuration_set_in_the_mail_url() {
    let template = template();
    let sdk = aws_config::SdkConfig::builder()
        .behavior_version(aws_config::BehaviorVersion::latest())
        .region(aws_config::Region::new("eu-west-1"))
        .build();
    for function in ["RemindersFunction", "NoticesFunction"] {
        let url = &template["Resources"][function]["Properties"]["Environment"]["Variables"]["DUEDAY_MAIL_URL"];
        let Value::Tagged(url) = url else { panic!("{url:?}") };
        assert_eq!((url.tag.to_string().as_str(), text(&url.value[0]).as_str()), ("!If", "HasSes"));
        let (Value::Tagged(named), Value::Tagged(otherwise)) = (&url.value[1], &url.value[2]) else {
            panic!("{url:?}")
        };
        assert_eq!(text(&otherwise.value), "MailUrl", "{function}");
        let named = text(&named.value).replace("${MailConfigurationSet}", "receipts_1-a");
        for url in [named.as_str(), "ses:"] {
            assert!(SesMailer::new(url, "Shop <billing@example.com>", &sdk).is_ok(), "{function}: {url}");
        }
    }
}

#[test]
fn template_refuses_a_password_in_the_mail_url() {
    let template = template();
    let pattern = text(&template["Parameters"]["MailUrl"]["AllowedPattern"]);
    let pattern = regex::Regex::new(&pattern).unwrap();
    for allowed in ["ses:", "smtps://mail.example.com:465", "smtp://mail.example.com:587?tls=required"] {
        assert!(pattern.is_match(allowed), "{allowed}");
    }
    for refused in [
        "smtps://user:password@mail.example.com:465",
        "smtp://user@mail.example.com:587?tls=required",
        "smtp://mail.example.com:587",
        "smtp://mail.example.com:587?tls=required&user=a@b",
    ] {
        assert!(!pattern.is_match(refused), "{refused}");
    }
    let policy = &template["Resources"]["MailLoginPolicy"];
    assert_eq!(text(&policy["Condition"]), "HasMailLogin");
    let roles = serde_yaml_ng::to_string(&policy["Properties"]["Roles"]).unwrap();
    assert_eq!(roles, "- !Ref RemindersFunctionRole\n- !Ref NoticesFunctionRole\n");
}
