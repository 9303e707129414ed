//! Tests of `dueday doctor`, with a fake `aws` program, a table on the embedded engine, and the stand-in for Stripe.

mod before;
mod fake_aws;
mod status;

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use billing::{Policy, PolicySetting, StoredPolicy};
use clock::{Clock as _, SystemClock};
use emulator::{Engine, ServerLimits, StripeFault, StripeServer};
use orders_table::OrdersTable;
use serde_json::{Value, json};
use store::{Settings, Table};
use testkit::SmtpServer;

use crate::demo_folder::write_demo_folder;
use crate::terminal::{dueday, output};
use fake_aws::{install_aws, serve_dynamodb, set_response, set_secret};

/// The API key that the stand-in for Stripe accepts.
const KEY: &str = "sk_test_standin";
/// The URL of the deployment's API.
const API: &str = "https://a1b2c3.execute-api.eu-west-1.amazonaws.com";
/// The ARN of the SNS topic of the alarms.
const TOPIC: &str = "arn:aws:sns:eu-west-1:123456789012:dueday-Alarms-1";
/// The ARN of the SNS topic to which Amazon SES sends the bounces and complaints about mails.
const FEEDBACK: &str = "arn:aws:sns:eu-west-1:123456789012:dueday-MailFeedback-1";

/// A fake deployment that `dueday doctor` can check.
struct Deployment {
    folder: tempfile::TempDir,
    dynamodb: String,
    stripe: String,
    stripe_server: Arc<StripeServer>,
    /// The name of the orders table in the outputs of the stack.
    orders_table: &'static str,
}

/// Returns CloudFormation's list of the resources of a stack that sends its mails through a mail server. The list
/// contains only the function `events`, and no resources of Amazon SES.
fn resources_without_ses() -> Value {
    let function = json!({
        "LogicalResourceId": "EventsFunction",
        "PhysicalResourceId": "dueday-EventsFunction-1",
        "ResourceStatus": "CREATE_COMPLETE",
    });
    json!({"StackResourceSummaries": [function]})
}

impl Deployment {
    /// Creates a deployment without any problem, if `is_protected` is true. If it is false, the tables have neither
    /// backups nor deletion protection. The stage is `dev`, because the stand-in for Stripe has only test keys.
    async fn new(is_protected: bool) -> Self {
        let engine = Engine::in_memory();
        let table = Table::new(engine.client(), "payments");
        table.create_if_absent().await.unwrap();
        let mut policy = Policy::default();
        policy.set_setting(PolicySetting::TimeZone, "Europe/Vienna").unwrap();
        let settings = Settings { policy: Some(StoredPolicy::from(&policy)), ..Settings::new(4, SystemClock.ulid()) };
        table.init_settings(&settings).await.unwrap();
        OrdersTable::new(engine.client(), "shop-orders").create_if_absent().await.unwrap();
        // These calls enable the streams of the two tables.
        engine.stream("payments").unwrap();
        engine.stream("shop-orders").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (stripe_server, stripe) = serve_stripe().await;
        let dynamodb = serve_dynamodb(engine, is_protected).await;
        let deployment = Self { dynamodb, stripe, stripe_server, folder, orders_table: "shop-orders" };
        deployment.install();
        deployment
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Installs the fake `aws` program with its responses.
    fn install(&self) {
        let folder = self.path();
        install_aws(folder);
        self.set_parameters(&[]);
        let resources = [
            ("EventsFunction", "dueday-EventsFunction-1"),
            ("MailConfigurationSet", "dueday-mails"),
            ("MailFeedback", FEEDBACK),
        ];
        let resources = resources.map(|(logical, physical)| {
            json!({"LogicalResourceId": logical, "PhysicalResourceId": physical, "ResourceStatus": "CREATE_COMPLETE"})
        });
        set_response(folder, "cloudformation.list-stack-resources", &json!({"StackResourceSummaries": resources}));
        let mapping = json!({
            "UUID": "a1b2c3d4",
            "FunctionArn": "arn:aws:lambda:eu-west-1:123456789012:function:dueday-EventsFunction-1",
            "LastProcessingResult": "OK",
            "State": "Enabled",
        });
        set_response(folder, "lambda.list-event-source-mappings", &json!({"EventSourceMappings": [mapping]}));
        let account = json!({
            "EnforcementStatus": "HEALTHY",
            "ProductionAccessEnabled": true,
            "SendQuota": {"Max24HourSend": 50000.0, "MaxSendRate": 14.0, "SentLast24Hours": 0.0},
            "SendingEnabled": true,
        });
        set_response(folder, "sesv2.get-account", &account);
        let identity =
            json!({"IdentityType": "DOMAIN", "VerifiedForSendingStatus": true, "VerificationStatus": "SUCCESS"});
        set_response(folder, "sesv2.get-email-identity", &identity);
        let destination = json!({
            "Name": "feedback",
            "Enabled": true,
            "MatchingEventTypes": ["BOUNCE", "COMPLAINT"],
            "SnsDestination": {"TopicArn": FEEDBACK},
        });
        set_response(
            folder,
            "sesv2.get-configuration-set-event-destinations",
            &json!({"EventDestinations": [destination]}),
        );
        self.set_subscription(&format!("{TOPIC}:8a21d249"));
        set_secret(folder, "stripe", KEY);
        set_secret(folder, "webhooks", "whsec_0123456789abcdef");
        set_secret(folder, "keys", &"0123456789abcdef".repeat(4));
    }

    /// Sets the parameters of the stack. The parameters in `changed` replace the correct parameters.
    fn set_parameters(&self, changed: &[(&str, &str)]) {
        let right = [
            ("Stage", "dev"),
            ("Parts", "full"),
            ("Gateway", "stripe"),
            ("StripeSecret", "arn:aws:secretsmanager:eu-west-1:123456789012:secret:stripe"),
            ("StripeWebhookSecret", "arn:aws:secretsmanager:eu-west-1:123456789012:secret:webhooks"),
            ("MailFrom", "Shop <billing@example.com>"),
            ("MailUrl", "ses:"),
            ("MailLoginSecret", ""),
            ("TimeZone", "Europe/Vienna"),
            ("JwtIssuer", "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_aaaaaaaaa"),
            ("AccountClaim", "sub"),
            ("Orders", "on"),
        ];
        let parameters = right.map(|(name, value)| {
            let changed = changed.iter().find(|(changed, _)| *changed == name).map_or(value, |(_, value)| value);
            json!({"ParameterKey": name, "ParameterValue": changed})
        });
        let outputs = [
            ("TableName", "payments"),
            ("OrdersTableName", self.orders_table),
            ("ApiUrl", API),
            ("AlarmTopicArn", TOPIC),
            ("EncryptionKeysArn", "arn:aws:secretsmanager:eu-west-1:123456789012:secret:keys"),
        ];
        let outputs = outputs.map(|(name, value)| json!({"OutputKey": name, "OutputValue": value}));
        let stack = json!({
            "StackName": "dueday",
            "StackStatus": "UPDATE_COMPLETE",
            "Parameters": parameters,
            "Outputs": outputs,
        });
        set_response(self.path(), "cloudformation.describe-stacks", &json!({"Stacks": [stack]}));
    }

    /// Sets the ARN of the mail subscription to the topic of the alarms; `PendingConfirmation` if it is not confirmed.
    fn set_subscription(&self, arn: &str) {
        let subscription = json!({"Protocol": "email", "Endpoint": "ops@example.com", "SubscriptionArn": arn});
        set_response(self.path(), "sns.list-subscriptions-by-topic", &json!({"Subscriptions": [subscription]}));
    }

    /// Returns the command `dueday doctor` for the table, with the fake `aws` program in its PATH.
    fn doctor(&self) -> Command {
        self.command("doctor")
    }

    /// Returns the command `dueday NAME` for the table, with the fake `aws` program in its PATH.
    fn command(&self, name: &str) -> Command {
        let mut command = dueday(&self.path().join("data"));
        command
            .env("PATH", format!("{}:/usr/bin:/bin", self.path().display()))
            .env("AWS_ACCESS_KEY_ID", "key")
            .env("AWS_SECRET_ACCESS_KEY", "secret")
            .env("AWS_REGION", "eu-west-1")
            .env("DUEDAY_DYNAMODB_ENDPOINT", &self.dynamodb)
            .env("STRIPE_API_BASE", &self.stripe)
            .args([name, "--table", "payments"]);
        command
    }

    /// Runs `dueday doctor`. Returns the exit code and the standard output.
    fn run(&self) -> (i32, String) {
        let (code, stdout, stderr) = output(&mut self.doctor());
        assert_eq!(stderr, "");
        (code, stdout)
    }
}

/// Starts the stand-in for Stripe, with a webhook endpoint for the API. Returns the stand-in and its URL.
async fn serve_stripe() -> (Arc<StripeServer>, String) {
    let server = StripeServer::new(Arc::new(SystemClock));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(emulator::serve_http(listener, server.clone().router(), ServerLimits::default()));
    let events = gateways::NEEDED_EVENTS.into_iter().chain(gateways::DEBIT_EVENTS).enumerate();
    let mut form = vec![("url".to_owned(), format!("{API}/webhooks/stripe"))];
    form.extend(events.map(|(index, event)| (format!("enabled_events[{index}]"), event.to_owned())));
    let create = reqwest::Client::new().post(format!("{url}/v1/webhook_endpoints")).bearer_auth(KEY);
    let created = create.header("Stripe-Version", emulator::STRIPE_VERSION).form(&form).send().await.unwrap();
    assert_eq!(created.status(), 200);
    (server, url)
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_reports_a_correct_deployment_as_good_and_changes_nothing() {
    let deployment = Deployment::new(true).await;
    let (code, text) = deployment.run();
    insta::assert_snapshot!("good", text);
    assert_eq!(code, 0, "{text}");
    let requests = fs::read_to_string(deployment.path().join("requests")).unwrap();
    for request in requests.lines() {
        let operation = request.split(' ').nth(2).unwrap();
        let is_read = ["describe-", "list-", "get-"].iter().any(|start| operation.starts_with(start));
        assert!(is_read && request.starts_with("eu-west-1 "), "{request}");
    }

    let (code, stdout, _) = output(deployment.doctor().arg("--json"));
    let findings: Value = serde_json::from_str(&stdout).unwrap();
    assert!(code == 0 && findings.as_array().unwrap().iter().all(|finding| finding["result"] == "good"), "{findings}");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_reports_a_wrong_deployment_with_advice_and_without_secrets() {
    let deployment = Deployment::new(false).await;
    deployment.set_parameters(&[("Stage", "prod"), ("TimeZone", "Vienna"), ("AccountClaim", "custom:account")]);
    deployment.set_subscription("PendingConfirmation");
    let folder = deployment.path();
    set_secret(folder, "webhooks", "sk_live_stored_here_by_mistake");
    set_response(
        folder,
        "sesv2.get-account",
        &json!({"EnforcementStatus": "HEALTHY", "ProductionAccessEnabled": false, "SendingEnabled": true}),
    );
    set_response(folder, "lambda.list-event-source-mappings", &json!({"EventSourceMappings": []}));
    set_response(
        folder,
        "cognito-idp.list-user-pool-clients",
        &json!({"UserPoolClients": [{"ClientId": "38fj", "ClientName": "App"}]}),
    );
    set_response(
        folder,
        "cognito-idp.describe-user-pool-client",
        &json!({"UserPoolClient": {"ClientId": "38fj", "ClientName": "App", "WriteAttributes": ["name", "custom:account"]}}),
    );
    fs::remove_file(folder.join("sesv2.get-email-identity.json")).unwrap();
    let (code, text) = deployment.run();
    insta::assert_snapshot!("wrong", text);
    assert_eq!(code, 1, "{text}");
    assert!(!text.contains("sk_") && !text.contains("ops@"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_table_is_checked_only_if_the_stack_has_an_order_desk() {
    let mut deployment = Deployment::new(true).await;
    deployment.set_parameters(&[("Orders", "off")]);
    let (code, text) = deployment.run();
    assert!(code == 0 && !text.contains("orders table"), "{text}");

    deployment.orders_table = "other-orders";
    deployment.set_parameters(&[]);
    let (code, text) = deployment.run();
    let line = "wrong        orders table: there is no table \"other-orders\" in this region. Deploy it (sam deploy), or \
                correct the parameter ExistingOrdersTableStream";
    assert!(code == 1 && text.contains(line), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_names_what_a_core_stack_does_not_do_and_reports_it_as_good() {
    let deployment = Deployment::new(true).await;
    deployment.set_parameters(&[("Parts", "core"), ("Orders", "off")]);
    // The core has no function that reads the stream, no topic of bounces and no encryption keys.
    let set = json!({"LogicalResourceId": "MailConfigurationSet", "PhysicalResourceId": "dueday-mails", "ResourceStatus": "CREATE_COMPLETE"});
    set_response(deployment.path(), "cloudformation.list-stack-resources", &json!({"StackResourceSummaries": [set]}));
    for absent in ["lambda.list-event-source-mappings", "secretsmanager.get-secret-value.keys"] {
        fs::remove_file(deployment.path().join(format!("{absent}.json"))).unwrap();
    }
    let (code, text) = deployment.run();
    assert_eq!(code, 0, "{text}");
    let line = text.lines().find(|line| line.contains("Parts=core")).unwrap();
    assert!(line.starts_with("good         parts: Parts=core. Not deployed: mails after payments"), "{line}");
    for checked in ["stream of the table", "secret of Stripe's webhooks", "receivers of alarms"] {
        assert!(text.contains(checked), "{checked}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_server_of_a_stack_must_accept_the_login_in_the_secret() {
    let deployment = Deployment::new(true).await;
    let (server, url) = SmtpServer::start_with_login("dueday", "secret-password").await;
    let secret = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:login";
    deployment.set_parameters(&[("MailUrl", &url), ("MailLoginSecret", secret)]);
    set_response(deployment.path(), "cloudformation.list-stack-resources", &resources_without_ses());
    // The columns are: the secret, the exit code, and the line about the mail server.
    for (login, code, line) in [
        ("dueday:secret-password", 0, "good         mail server: it accepts the user and the password"),
        (
            "dueday:wrong-password",
            1,
            "wrong        mail server: the mail server responded to the connection or the login with 535",
        ),
        ("secret-password", 1, "not checked  mail server: its user and password are not known"),
    ] {
        set_secret(deployment.path(), "login", login);
        let (actual, text) = deployment.run();
        assert!(actual == code && text.contains(line), "{text}");
        assert!(!text.contains("-password"), "{text}");
    }
    assert!(server.received_mails().is_empty(), "no mail is sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_program_and_missing_permissions_never_count_as_good() {
    let deployment = Deployment::new(true).await;
    let not_checked = |text: &str, reason: &str| {
        text.lines().filter(|line| line.starts_with("not checked") && line.contains(reason)).count()
    };
    for (name, reason) in [
        ("sns.list-subscriptions-by-topic", "the permission sns:list-subscriptions-by-topic is missing"),
        ("secretsmanager.get-secret-value.keys", "the permission secretsmanager:get-secret-value is missing"),
        ("cloudformation.list-stack-resources", "the permission cloudformation:list-stack-resources is missing"),
    ] {
        deployment.install();
        fs::remove_file(deployment.path().join(format!("{name}.json"))).unwrap();
        let (code, text) = deployment.run();
        assert!(code == 1 && not_checked(&text, reason) == 1, "{name}: {text}");
    }
    fs::remove_file(deployment.path().join("aws")).unwrap();
    let (code, text) = {
        // A PATH without any program named `aws`.
        let (code, stdout, _) = output(deployment.doctor().env("PATH", deployment.path()));
        (code, stdout)
    };
    assert!(code == 1 && not_checked(&text, "the AWS CLI is not installed") == 2, "{text}");
    assert!(text.contains("good         table: it exists"), "the table is still checked: {text}");
    let orders_table =
        "not checked  orders table: the stack is not known, and therefore not whether it has an order desk";
    assert!(text.contains(orders_table), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn restricted_key_is_checked_without_permission_for_its_account() {
    let deployment = Deployment::new(true).await;
    set_secret(deployment.path(), "stripe", "rk_test_standin");
    let (code, text) = deployment.run();
    assert!(text.contains("the key may not read it, so the first run creates a marker customer"), "{text}");
    assert!(code == 1 && text.contains("the optional permission Webhook Endpoints read (rak_webhook_read)"), "{text}");
    // The first request reads the account. The further requests check the read permissions.
    deployment.stripe_server.set_next_faults([None, Some(StripeFault::Forbidden)]);
    let (code, text) = deployment.run();
    assert!(code == 1 && text.contains("wrong        read permissions at Stripe: the key lacks "), "{text}");
    set_secret(deployment.path(), "stripe", "rk_test_revoked");
    let (code, text) = deployment.run();
    assert!(code == 1 && text.contains("wrong        gateway: the gateway refuses our requests: 401"), "{text}");
}

#[test]
fn doctor_refuses_the_flag_stack_without_the_flag_table() {
    let folder = tempfile::tempdir().unwrap();
    let (code, _, stderr) = output(dueday(folder.path()).args(["doctor", "--stack", "dueday"]));
    assert!(code == 2 && stderr.contains("--stack needs --table"), "{stderr}");
}

/// Returns the command `dueday doctor` for the local installation in `data`, with ports that are free.
fn local_doctor(data: &Path) -> Command {
    let mut command = dueday(data);
    command.arg("doctor");
    for flag in ["--api-port", "--dynamodb-port", "--gateway-port"] {
        command.args([flag, "0"]);
    }
    command
}

#[test]
fn doctor_checks_the_local_machine_and_changes_nothing() {
    use std::os::unix::fs::PermissionsExt as _;
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("data");
    let (code, text, stderr) = output(&mut local_doctor(&data));
    assert!(code == 0 && text.contains("does not exist yet") && !data.exists(), "{text}{stderr}");

    write_demo_folder(&data);
    let (code, text, stderr) = output(&mut local_doctor(&data));
    assert!(
        code == 0 && text.contains("only its owner can read") && text.contains("charging: it is on"),
        "{text}{stderr}"
    );

    let ledger = data.join("gateway-ledger.jsonl");
    fs::set_permissions(&ledger, fs::Permissions::from_mode(0o644)).unwrap();
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let mut command = dueday(&data);
    let (code, text, _) =
        output(command.args(["doctor", "--api-port", &port, "--dynamodb-port", "0", "--gateway-port", "0"]));
    let file = format!("other users have rights on 1 file, such as {}", ledger.display());
    assert!(code == 1 && text.contains(&file) && text.contains(&format!("chmod -R go= {}", data.display())), "{text}");
    assert!(
        text.contains(&format!("port of the API: {port}: is in use. Choose another port with --api-port")),
        "{text}"
    );
    assert_eq!(fs::metadata(&ledger).unwrap().permissions().mode() & 0o777, 0o644, "the command changes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_checks_the_gateway_of_the_local_machine() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let (code, text, _) = output(local_doctor(&data).args(["--gateway", "http://127.0.0.1:9"]));
    assert!(code == 1 && text.contains("wrong        gateway: the gateway returned no usable response"), "{text}");
    let gateway = crate::gateway::Gateway::start(&folder.path().join("gateway"));
    let (code, text, _) = output(local_doctor(&data).args(["--gateway", &gateway.url]));
    assert!(code == 0 && text.contains("good         gateway: it responds"), "{text}");

    let (_, stripe) = serve_stripe().await;
    let with_stripe = |key: &str| {
        let mut command = local_doctor(&data);
        command.args(["--gateway", "stripe"]).env("STRIPE_API_BASE", &stripe).env("STRIPE_SECRET_KEY", key);
        command
    };
    let (code, text, _) = output(&mut with_stripe(KEY));
    assert!(code == 1 && text.contains("stripe listen --forward-to"), "{text}");
    let (code, text, _) = output(with_stripe(KEY).env("STRIPE_WEBHOOK_SECRET", "whsec_0123456789abcdef"));
    assert!(code == 0 && text.contains("gateway account: stripe acct_standin (test)"), "{text}");
    let (code, text, _) = output(with_stripe("").env_remove("STRIPE_SECRET_KEY"));
    assert!(code == 1 && text.contains("wrong        gateway: STRIPE_SECRET_KEY must be set"), "{text}");
}
