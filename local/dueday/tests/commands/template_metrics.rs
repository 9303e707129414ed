//! Checks that the dashboard and the alarms of `template.yaml` use exactly the metrics that the functions write.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use billing::{ReceivedEvent, SigningSecret, WebhookEndpoint};
use chrono::{NaiveDate, TimeDelta};
use clock::{Clock as _, SimulatedClock};
use deployment::{Deployment, InMemoryDeployment};
use embedded_metrics::{CURRENCY, FUNCTION_NAME, MetricsLayer, NAMESPACE};
use emulator::ServerLimits;
use notices::CustomerNotifier;
use outbound::{AllowedAddresses, Deliverer, EndpointSecrets, WebhookSender};
use serde_yaml_ng::Value;
use sweep::BatchRequest;
use testkit::{RecordedMails, encryption_keys, read_test_config, sample_account, sample_subscription};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::layer::SubscriberExt as _;
use ulid::Ulid;

use crate::template_logs::{LogBuffer, resources};

/// A metric: the resource of the function that writes it, its name, and its dimensions.
type Metric = (String, String, Vec<String>);

#[tokio::test]
async fn dashboard_and_alarms_show_exactly_the_metrics_that_the_functions_write() {
    let written = LogBuffer::default();
    run_day(|function| write_metrics(function, &written)).await;
    let lines = written.text();
    let lines = lines.lines().map(|line| serde_json::from_str(line).unwrap());
    let written: BTreeSet<Metric> = lines.flat_map(|line| metrics_in(&line)).collect();
    let resources = resources();
    let shown = shown_metrics(&resources["Dashboard"]);
    assert_eq!(written, shown, "left: the metrics that the functions write; right: the metrics on the dashboard");
    let watched = watched_metrics(&resources);
    assert!(watched.is_subset(&written), "an alarm watches a metric that no function writes: {watched:?}");
    assert!(!watched.is_empty());
}

#[test]
fn each_log_event_about_a_delivery_or_a_contradicted_variable_is_counted() {
    // The columns are: the function, its log message, and the metric that counts it.
    for (function, message, metric) in [
        ("DeliverFunction", outbound::EVENT_DELIVERED, "deliveries-made"),
        ("DeliverFunction", outbound::DELIVERY_RETRIED, "deliveries-failed"),
        ("DeliverFunction", outbound::EVENT_NOT_DELIVERED, "deliveries-failed"),
        ("DeliverFunction", outbound::ENDPOINT_DISABLED, "deliveries-failed"),
        ("PaymentsFunction", store::POLICY_DIFFERS_MESSAGE, "policy-differs"),
    ] {
        let written = LogBuffer::default();
        let function = write_metrics(function, &written);
        tracing::info!("{message}");
        drop(function);
        let line: serde_json::Value = serde_json::from_str(&written.text()).unwrap();
        assert_eq!(line[metric], 1, "{message}: {line}");
    }
}

/// Writes the metrics of all log events to `output`, as the Lambda function `function` would, until the returned guard
/// is dropped.
fn write_metrics(function: &str, output: &LogBuffer) -> DefaultGuard {
    let layer = MetricsLayer::new(function.to_owned(), output.clone());
    testkit::capture_logs(tracing_subscriber::registry().with(layer))
}

/// Runs both batches of a day on which two subscriptions are paid, sends a mail, and delivers an event. Calls
/// `start_function` with the name of each Lambda function before the work of the function, and drops the returned guard
/// after the work.
async fn run_day(start_function: impl Fn(&str) -> DefaultGuard) {
    let day: NaiveDate = "2027-01-31".parse().unwrap();
    let noon = day.and_hms_opt(12, 0, 0).unwrap().and_utc();
    let clock = SimulatedClock::new(noon, 7);
    let mails = Arc::new(RecordedMails::default());
    let config = read_test_config(&[("DUEDAY_MERCHANT", "Shop")]).unwrap();
    let system = InMemoryDeployment::new(config, clock, mails).await.unwrap();
    let table = &system.deployment.table;
    table.put_account(&sample_account()).await.unwrap();
    for n in [30, 31] {
        let subscription = sample_subscription(n, "2027-01-01".parse().unwrap());
        table.create_subscription(&subscription, None).await.unwrap();
    }
    let (request, deadline) = (BatchRequest::for_date(day), noon + TimeDelta::hours(1));
    let reminders = system.deployment.reminder_batch().await.unwrap();
    let function = start_function("RemindersFunction");
    reminders.run(&request, deadline).await.unwrap();
    drop(function);
    let payments = system.deployment.payment_batch().await.unwrap();
    let function = start_function("PaymentsFunction");
    let report = payments.run(&request, deadline).await.unwrap();
    drop(function);
    assert_eq!(report.counts.paid, 2);
    let function = start_function("NoticesFunction");
    send_notice(&system).await;
    drop(function);
    let function = start_function("DeliverFunction");
    deliver_event(&system).await;
    drop(function);
}

/// Returns the sample event about a successful payment, as JSON text.
fn paid_event() -> String {
    let message: serde_json::Value = serde_json::from_str(include_str!("../../../../events/sqs-paid.json")).unwrap();
    message["Records"][0]["body"].as_str().unwrap().to_owned()
}

/// Mails the receipt for the sample event about a successful payment, as the Lambda function `notices` does.
async fn send_notice(system: &InMemoryDeployment) {
    let Deployment { table, config, .. } = &system.deployment;
    let mails = Arc::new(RecordedMails::default());
    let notices = CustomerNotifier::new(table.clone(), mails.clone(), config.merchant.clone(), system.clock.clone());
    assert_eq!(
        notices_function::send_notices(&notices, [("m-1".to_owned(), paid_event())]).await,
        Vec::<String>::new()
    );
    assert_eq!(mails.mails().len(), 1);
}

/// Delivers an event to a webhook endpoint that accepts the event, and to another webhook endpoint that refuses it.
async fn deliver_event(system: &InMemoryDeployment) {
    let listener = tokio::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let accepting = Router::new().route("/accepts", post(|| async { StatusCode::OK }));
    tokio::spawn(emulator::serve_http(listener, accepting, ServerLimits::default()));
    let table = &system.deployment.table;
    let secrets = EndpointSecrets::new(encryption_keys(), system.clock.clone());
    for (n, path) in [(1, "accepts"), (2, "does-not-exist")] {
        let id = Ulid::from_parts(1, n);
        let secret = secrets.encrypt(id, &SigningSecret::new([1; 32]));
        let endpoint = WebhookEndpoint::new(id, format!("{url}/{path}").parse().unwrap(), secret, system.clock.now());
        table.create_webhook_endpoint(&endpoint, None).await.unwrap();
    }
    let sender = WebhookSender::new(AllowedAddresses::Any, Duration::from_secs(5)).unwrap();
    let deliverer = Deliverer::new(table.clone(), sender, encryption_keys(), system.clock.clone());
    let event = ReceivedEvent::read(&paid_event()).unwrap();
    for key in deliverer.fan_out(&[event]).await.unwrap() {
        deliverer.deliver(&key).await.unwrap();
    }
}

/// Returns the metrics of a log line in CloudWatch's embedded metric format. Panics if a value is not a number.
fn metrics_in(line: &serde_json::Value) -> Vec<Metric> {
    let directive = &line["_aws"]["CloudWatchMetrics"][0];
    assert_eq!(directive["Namespace"], NAMESPACE, "{line}");
    let dimensions: Vec<String> = serde_json::from_value(directive["Dimensions"][0].clone()).unwrap();
    let function = line[FUNCTION_NAME].as_str().unwrap();
    if dimensions.contains(&CURRENCY.to_owned()) {
        assert_eq!(line[CURRENCY], "EUR", "{line}");
    }
    let names = directive["Metrics"].as_array().unwrap().iter().map(|metric| metric["Name"].as_str().unwrap());
    names
        .map(|name| {
            assert!(line[name].is_number(), "{name} in {line}");
            (function.to_owned(), name.to_owned(), dimensions.clone())
        })
        .collect()
}

/// Returns the metrics with the dimension `FunctionName` on the dashboard.
fn shown_metrics(dashboard: &Value) -> BTreeSet<Metric> {
    let body = &dashboard["Properties"]["DashboardBody"];
    let Value::Tagged(body) = body else { panic!("no !Sub: {body:?}") };
    let lines = body.value[0]
        .as_str()
        .unwrap()
        .lines()
        .filter(|line| line.contains(&format!("{NAMESPACE}\"")) || line.contains(&format!("{{{NAMESPACE},")));
    let metrics = lines.filter(|line| line.contains(FUNCTION_NAME)).map(|line| {
        let name = line.split('"').find(|text| text.contains('-')).unwrap_or_else(|| panic!("no metric: {line}"));
        let function = line.split("${").last().and_then(|rest| rest.split('}').next()).unwrap();
        let currency = line.contains(&format!(",{CURRENCY}}}")).then_some(CURRENCY);
        let dimensions = [FUNCTION_NAME].into_iter().chain(currency).map(str::to_owned).collect();
        (function.to_owned(), name.trim_end_matches('\\').to_owned(), dimensions)
    });
    metrics.collect()
}

/// Returns the metrics with the dimension `FunctionName` that an alarm watches.
fn watched_metrics(resources: &Value) -> BTreeSet<Metric> {
    let alarms = resources.as_mapping().unwrap().values();
    let alarms =
        alarms.filter(|resource| resource["Type"] == "AWS::CloudWatch::Alarm").map(|alarm| &alarm["Properties"]);
    let alarms =
        alarms.filter(|alarm| alarm["Namespace"] == NAMESPACE && alarm["Dimensions"][0]["Name"] == FUNCTION_NAME);
    let metrics = alarms.map(|alarm| {
        let Value::Tagged(function) = &alarm["Dimensions"][0]["Value"] else { panic!("no !Ref: {alarm:?}") };
        let names = [function.value.as_str().unwrap(), alarm["MetricName"].as_str().unwrap()].map(str::to_owned);
        let [function, name] = names;
        (function, name, vec![FUNCTION_NAME.to_owned()])
    });
    metrics.collect()
}
