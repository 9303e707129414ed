//! Checks that `template.yaml` agrees with the code: tables, streams, environment variables, routes and schedules.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{KeySchemaElement, TableDescription};
use config::{EnvVariable, ReadingFunction};
use deployment::environment_variables;
use emulator::Engine;
use notices::TYPES_WITH_NOTICE;
use orders_table::OrdersTable;
use serde_yaml_ng::Value;
use store::Table;
use sweep::{CONCURRENCY, PAGE_ROWS};
use testkit::sample_account;

use crate::stack;

/// Returns the parsed `template.yaml`, with the parts that `Parts=full` deploys: as if the condition `IsFull` did not
/// exist. The module `stack` evaluates the conditions.
pub fn template() -> Value {
    without_core(stack::parsed_template())
}

/// Returns `value` with the first branch of each `!If` whose condition is `IsFull`, and with the conditions that are
/// equal to another condition in a full stack replaced by this other condition.
fn without_core(value: Value) -> Value {
    match value {
        Value::Tagged(mut tagged) => {
            if tagged.tag == "!If" && tagged.value[0] == "IsFull" {
                return without_core(tagged.value[1].clone());
            }
            tagged.value = without_core(tagged.value);
            Value::Tagged(tagged)
        }
        Value::Sequence(values) => values.into_iter().map(without_core).collect(),
        Value::Mapping(fields) => {
            let fields = fields.into_iter().filter(|(name, value)| name != "Condition" || value != "IsFull");
            Value::Mapping(fields.map(|(name, value)| (name, without_core(value))).collect())
        }
        Value::String(text) => match text.as_str() {
            "WatchesSes" => "HasSes".into(),
            "WatchesMailLogin" => "HasMailLogin".into(),
            "WatchesStripeWebhooks" => "HasStripeWebhooks".into(),
            _ => Value::String(text),
        },
        other => other,
    }
}

/// Returns the string `value`.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not text: {value:?}")).to_owned()
}

/// Returns the statements of the policies of `function`: those in its own policies, and those of its role, if the template contains
/// this role.
pub fn statements_of_function(template: &Value, function: &str) -> Vec<Value> {
    let properties = &template["Resources"][function]["Properties"];
    let own = properties["Policies"].as_sequence().into_iter().flatten().map(|policy| &policy["Statement"]);
    let role = &template["Resources"][format!("{function}Role").as_str()]["Properties"];
    let of_role =
        role["Policies"].as_sequence().into_iter().flatten().map(|policy| &policy["PolicyDocument"]["Statement"]);
    own.chain(of_role).flat_map(|statements| statements.as_sequence().unwrap().clone()).collect()
}

/// Returns the keys of a key schema in the template, such as `PK HASH` and `SK RANGE`, in order.
fn declared_keys(schema: &Value) -> Vec<String> {
    schema
        .as_sequence()
        .unwrap()
        .iter()
        .map(|key| format!("{} {}", text(&key["AttributeName"]), text(&key["KeyType"])))
        .collect()
}

/// Returns the keys of a created table or index, such as `PK HASH` and `SK RANGE`, in order.
fn created_keys(schema: &[KeySchemaElement]) -> Vec<String> {
    schema.iter().map(|key| format!("{} {}", key.attribute_name(), key.key_type().as_str())).collect()
}

/// Asserts that `declared`, a table in the template, has the same keys, attributes and indexes as `created`, the table
/// that the code creates.
pub fn assert_declared(declared: &Value, created: &TableDescription) {
    assert_eq!(declared_keys(&declared["KeySchema"]), created_keys(created.key_schema()));
    let attributes = declared["AttributeDefinitions"].as_sequence().unwrap().iter();
    let attributes: BTreeSet<_> = attributes.map(|a| (text(&a["AttributeName"]), text(&a["AttributeType"]))).collect();
    let made = created.attribute_definitions().iter();
    let made = made.map(|a| (a.attribute_name().to_owned(), a.attribute_type().as_str().to_owned()));
    assert_eq!(attributes, made.collect());
    let declared_indexes = declared["GlobalSecondaryIndexes"].as_sequence().map_or(&[][..], Vec::as_slice);
    assert_eq!(declared_indexes.len(), created.global_secondary_indexes().len());
    for index in declared_indexes {
        let name = text(&index["IndexName"]);
        let made = created.global_secondary_indexes().iter().find(|made| made.index_name() == Some(&name)).unwrap();
        assert_eq!(declared_keys(&index["KeySchema"]), created_keys(made.key_schema()), "{name}");
        let projection = made.projection().unwrap();
        let kind = projection.projection_type().unwrap().as_str();
        assert_eq!(text(&index["Projection"]["ProjectionType"]), kind, "{name}");
        let attributes = index["Projection"]["NonKeyAttributes"].as_sequence().into_iter().flatten();
        let declared: BTreeSet<String> = attributes.map(text).collect();
        let made: BTreeSet<String> = projection.non_key_attributes().iter().cloned().collect();
        assert_eq!(declared, made, "{name}");
    }
}

/// Returns the description of the table `table`.
pub async fn describe_table(client: &Client, table: &str) -> TableDescription {
    client.describe_table().table_name(table).send().await.unwrap().table.unwrap()
}

#[tokio::test]
async fn template_declares_the_table_that_the_code_creates() {
    let table = Table::new(Engine::in_memory().client(), "dueday");
    table.create_if_absent().await.unwrap();
    let declared = &template()["Resources"]["Table"]["Properties"];
    assert_declared(declared, &describe_table(table.client(), "dueday").await);
    for index in declared["GlobalSecondaryIndexes"].as_sequence().unwrap() {
        let projected: BTreeSet<String> =
            index["Projection"]["NonKeyAttributes"].as_sequence().unwrap().iter().map(text).collect();
        for never in ["Version", "PaymentDetails", "AttemptNo"] {
            assert!(!projected.contains(never), "{index:?} must not project {never}");
        }
    }
    let ttl = table.client().describe_time_to_live().table_name("dueday").send().await.unwrap();
    let ttl = ttl.time_to_live_description.unwrap();
    assert_eq!(Some(text(&declared["TimeToLiveSpecification"]["AttributeName"])), ttl.attribute_name);
}

#[tokio::test]
async fn template_declares_the_order_desks_table_and_deploys_the_whole_desk_or_nothing() {
    let table = OrdersTable::new(Engine::in_memory().client(), "dueday-orders");
    table.create_if_absent().await.unwrap();
    let template = template();
    let declared = &template["Resources"]["OrdersTable"];
    assert_declared(&declared["Properties"], &describe_table(table.client(), "dueday-orders").await);
    assert_eq!(
        (text(&declared["DeletionPolicy"]), text(&template["Parameters"]["Orders"]["Default"])),
        ("RetainExceptOnCreate".into(), "off".into())
    );
    let ttl = table.client().describe_time_to_live().table_name("dueday-orders").send().await.unwrap();
    let ttl = ttl.time_to_live_description.unwrap();
    let declared_ttl = &declared["Properties"]["TimeToLiveSpecification"]["AttributeName"];
    assert_eq!(Some(text(declared_ttl)), ttl.attribute_name);
    let optional = template["Resources"].as_mapping().unwrap().iter();
    let optional: Vec<String> =
        optional.filter(|(_, resource)| resource["Condition"] == "HasOrders").map(|(name, _)| text(name)).collect();
    assert!(optional.iter().all(|name| name.starts_with("Orders") || name.starts_with("Paid")), "{optional:?}");
    assert_eq!(optional.len(), 22, "{optional:?}");
}

#[tokio::test]
async fn template_publishes_the_stream_of_the_order_desks_table_like_that_of_the_payments_table() {
    let engine = Engine::in_memory();
    OrdersTable::new(engine.client(), "dueday-orders").create_if_absent().await.unwrap();
    engine.stream("dueday-orders").unwrap();
    let made = engine.client().describe_table().table_name("dueday-orders").send().await.unwrap().table.unwrap();
    let resources = &template()["Resources"];
    assert_eq!(
        text(&resources["OrdersTable"]["Properties"]["StreamSpecification"]["StreamViewType"]),
        made.stream_specification.unwrap().stream_view_type.unwrap().as_str()
    );
    let (orders, payments) = (
        &resources["OrdersStream"]["Properties"],
        &resources["EventsFunction"]["Properties"]["Events"]["Stream"]["Properties"],
    );
    for same in [
        "StartingPosition",
        "BatchSize",
        "MaximumBatchingWindowInSeconds",
        "FunctionResponseTypes",
        "BisectBatchOnFunctionError",
        "MaximumRecordAgeInSeconds",
        "ParallelizationFactor",
    ] {
        assert!(!orders[same].is_null(), "{same}");
        assert_eq!(orders[same], payments[same], "{same}");
    }
    let destination = |source: &Value| source["DestinationConfig"]["OnFailure"]["Destination"].clone();
    assert_eq!(destination(orders), destination(payments));
}

#[tokio::test]
async fn template_enables_the_stream_and_filters_for_items_of_accounts() {
    let engine = Engine::in_memory();
    let table = Table::new(engine.client(), "dueday");
    table.create_if_absent().await.unwrap();
    let stream = engine.stream("dueday").unwrap();
    let made = table.client().describe_table().table_name("dueday").send().await.unwrap().table.unwrap();
    let resources = &template()["Resources"];
    assert_eq!(
        text(&resources["Table"]["Properties"]["StreamSpecification"]["StreamViewType"]),
        made.stream_specification.unwrap().stream_view_type.unwrap().as_str()
    );

    table.put_account(&sample_account()).await.unwrap();
    let batch = stream.records_after(None, 10).unwrap();
    let key = batch["Records"][0]["dynamodb"]["Keys"]["PK"]["S"].as_str().unwrap();
    let function = &resources["EventsFunction"]["Properties"];
    let started = &function["Events"]["Stream"]["Properties"];
    let filter: serde_json::Value =
        serde_json::from_str(&text(&started["FilterCriteria"]["Filters"][0]["Pattern"])).unwrap();
    let prefix = filter["dynamodb"]["Keys"]["PK"]["S"][0]["prefix"].as_str().unwrap();
    assert_eq!(key.strip_prefix(prefix), Some("acme"));
    assert_eq!(started["FunctionResponseTypes"][0], "ReportBatchItemFailures");
    assert!(!started["DestinationConfig"]["OnFailure"]["Destination"].is_null());

    // The only items of the table that the function reads are the webhook endpoints.
    let allowed = statements_of_function(&template(), "EventsFunction");
    let allowed: Vec<_> = allowed.iter().filter(|statement| statement["Action"] == "dynamodb:Query").collect();
    let keys = &allowed[0]["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"];
    assert_eq!(allowed.len(), 1, "{allowed:?}");
    assert_eq!(*keys, serde_yaml_ng::from_str::<Value>("[WEBHOOKS]").unwrap());
}

#[test]
fn template_has_an_alarm_for_every_queue_without_a_redrive_policy() {
    let template = template();
    let resources = template["Resources"].as_mapping().unwrap();
    let is_queue_without_redrive_policy = |resource: &Value| {
        // A queue with a redrive policy moves its failed messages to a dead-letter queue. The dead-letter queue has the
        // alarm.
        resource["Type"] == "AWS::SQS::Queue" && resource["Properties"]["RedrivePolicy"].is_null()
    };
    for (queue, _) in resources.iter().filter(|(_, resource)| is_queue_without_redrive_policy(resource)) {
        let alarm = &template["Resources"][format!("{}Alarm", text(queue)).as_str()]["Properties"];
        // Heartbeats must arrive. Messages in the other queues are failures.
        let (metric, missing) = match text(queue).as_str() {
            "Heartbeats" => ("NumberOfMessagesSent", "breaching"),
            _ => ("ApproximateNumberOfMessagesVisible", "notBreaching"),
        };
        assert_eq!(
            (text(&alarm["MetricName"]), text(&alarm["TreatMissingData"])),
            (metric.into(), missing.into()),
            "{queue:?}"
        );
    }
}

#[test]
fn template_shows_every_parameter_in_one_group_with_a_label() {
    let template = template();
    let shown = &template["Metadata"]["AWS::CloudFormation::Interface"];
    let groups = shown["ParameterGroups"].as_sequence().unwrap().iter();
    let mut grouped: Vec<String> =
        groups.flat_map(|group| group["Parameters"].as_sequence().unwrap()).map(text).collect();
    grouped.sort();
    let names = |value: &Value| -> Vec<String> {
        let mut names: Vec<String> = value.as_mapping().unwrap().keys().map(text).collect();
        names.sort();
        names
    };
    assert_eq!(grouped, names(&template["Parameters"]));
    assert_eq!(names(&shown["ParameterLabels"]), names(&template["Parameters"]));
}

#[test]
fn template_requires_a_token_on_every_route_that_is_not_public_and_describes_every_parameter() {
    let template = template();
    for (name, parameter) in template["Parameters"].as_mapping().unwrap() {
        assert!(parameter["Description"].as_str().is_some_and(|text| text.len() > 10), "{name:?} is not described");
    }
    for required in ["Gateway", "MailUrl", "Merchant"] {
        let parameter = &template["Parameters"][required];
        assert!(parameter["Default"].is_null() && !parameter["AllowedPattern"].is_null(), "{required}");
    }
    assert_eq!(text(&template["Resources"]["Api"]["Properties"]["Auth"]["DefaultAuthorizer"]), "Jwt");
    let events = &template["Resources"]["ApiFunction"]["Properties"]["Events"];
    for (name, event) in events.as_mapping().unwrap() {
        let is_open = event["Properties"]["Auth"]["Authorizer"] == "NONE";
        let is_public = ["Health", "Index", "Preflight", "PaymentMethodGiven", "CardLink", "CardLinkOpened"]
            .map(Some)
            .contains(&name.as_str());
        assert_eq!(is_open, is_public, "{name:?}");
    }
}

/// Returns whether an event of a function matches requests to `path`.
fn matches_path(event: &Value, path: &str) -> bool {
    let pattern = event["Properties"]["Path"].as_str().unwrap_or_default();
    match pattern.strip_suffix("/{proxy+}") {
        Some(prefix) => path.strip_prefix(prefix).is_some_and(|rest| rest.len() > 1 && rest.starts_with('/')),
        None => pattern == path,
    }
}

#[test]
fn template_sends_only_the_order_desks_routes_to_its_api_function() {
    let template = template();
    let events = &template["Resources"]["OrdersApiFunction"]["Properties"]["Events"];
    let is_matched = |path: &str| events.as_mapping().unwrap().values().any(|event| matches_path(event, path));
    let paths = |document: &serde_json::Value| -> Vec<String> {
        document["paths"].as_object().unwrap().keys().cloned().collect()
    };
    let (orders, others) = (paths(&orders_api::openapi_document()), paths(&api::openapi_document()));
    assert!(orders.iter().all(|path| is_matched(path)), "{orders:?}");
    assert!(!others.iter().any(|path| is_matched(path)), "{others:?}");
    for event in events.as_mapping().unwrap().values() {
        assert!(orders.iter().any(|path| matches_path(event, path)), "{event:?} matches no route");
        let is_preflight = text(&event["Properties"]["Method"]) == "OPTIONS";
        assert_eq!(event["Properties"]["Auth"].is_null(), !is_preflight, "{event:?}: the default authorizer is used");
    }
}

#[test]
fn template_sets_every_variable_the_functions_read() {
    /// Variables that the template does not set, because a function gets only what AWS must give it: the table stores the
    /// policy and the numbers of shards and buckets, and `DUEDAY_MAIL_SETTINGS` contains the settings of mails.
    const NOT_SET: [EnvVariable; 20] = [
        PAGE_ROWS,
        CONCURRENCY,
        store::SHARDS,
        orders_table::ORDER_BUCKETS,
        config::REMINDER_LEAD_DAYS,
        config::RETRY_GAPS,
        config::AFTER_LAST_RETRY,
        config::CATCH_UP,
        config::RESUME,
        config::AFTER_WON_DISPUTE,
        config::RECEIPT_DAYS,
        config::ACTION_DAYS,
        mail::MERCHANT_ADDRESS,
        mail::MERCHANT_TAX_ID,
        mail::MERCHANT_LOGO,
        mail::SUPPORT_EMAIL,
        mail::REPLY_TO,
        mail::ACCOUNT_URL,
        mail::MAILS_OFF,
        mail::MAILS_SENT_ELSEWHERE,
    ];
    let template = template();
    let set = |of: &Value| -> BTreeSet<String> {
        of["Environment"]["Variables"].as_mapping().unwrap().keys().map(text).collect()
    };
    for (read_by, of) in [
        (ReadingFunction::Every, &template["Globals"]["Function"]),
        (ReadingFunction::OrdersApi, &template["Resources"]["OrdersApiFunction"]["Properties"]),
        (ReadingFunction::Api, &template["Resources"]["ApiFunction"]["Properties"]),
        (ReadingFunction::Reminders, &template["Resources"]["RemindersFunction"]["Properties"]),
        (ReadingFunction::Payments, &template["Resources"]["PaymentsFunction"]["Properties"]),
        (ReadingFunction::Events, &template["Resources"]["EventsFunction"]["Properties"]),
        (ReadingFunction::Orders, &template["Resources"]["OrdersFunction"]["Properties"]),
        (ReadingFunction::Notices, &template["Resources"]["NoticesFunction"]["Properties"]),
        (ReadingFunction::Webhooks, &template["Resources"]["WebhooksFunction"]["Properties"]),
        (ReadingFunction::Deliver, &template["Resources"]["DeliverFunction"]["Properties"]),
        (ReadingFunction::Sandbox, &template["Resources"]["SandboxFunction"]["Properties"]),
        (ReadingFunction::Reconcile, &template["Resources"]["ReconcileFunction"]["Properties"]),
        (ReadingFunction::Audit, &template["Resources"]["AuditFunction"]["Properties"]),
        (ReadingFunction::Erase, &template["Resources"]["EraseFunction"]["Properties"]),
    ] {
        let is_read = |variable: &&EnvVariable| variable.read_by.contains(&read_by);
        let read = environment_variables()
            .chain(rest::VARIABLES)
            .chain(api::VARIABLES)
            .filter(is_read)
            .map(|variable| variable.name);
        let read: BTreeSet<_> = read.filter(|name| NOT_SET.iter().all(|left| left.name != *name)).collect();
        assert_eq!(read.into_iter().map(str::to_owned).collect::<BTreeSet<_>>(), set(of), "{read_by:?}");
    }
}

#[test]
fn schedules_start_the_daily_runs_and_nothing_else() {
    let template = template();
    let resources = template["Resources"].as_mapping().unwrap();
    let of_type = |kind: &str| -> Vec<(String, &Value)> {
        let of =
            resources.iter().filter(|(_, resource)| resource["Type"] == format!("AWS::Serverless::{kind}").as_str());
        of.map(|(name, resource)| (text(name), &resource["Properties"])).collect()
    };
    for (name, function) in of_type("Function") {
        let events = function["Events"].as_mapping().into_iter().flat_map(|events| events.values());
        let starts: &[&str] = match name.as_str() {
            "EventsFunction" => &["DynamoDB"],
            "NoticesFunction" => &["SQS"],
            // The schedule starts the function each minute, which then sends the due deliveries to its queue.
            "DeliverFunction" => &["SQS", "ScheduleV2"],
            "MailFeedbackFunction" => &["SNS"],
            // The schedule starts the function each minute, which then fills backordered orders.
            "OrdersFunction" => &["SQS", "ScheduleV2"],
            // The schedule starts the function every hour of the night, which then compares the day before with the
            // gateway.
            "ReconcileFunction" => &["ScheduleV2"],
            // One schedule audits the table. Another schedule checks that the runs of the day are complete.
            "AuditFunction" => &["ScheduleV2"],
            // The schedule continues the requested erasures.
            "EraseFunction" => &["ScheduleV2"],
            _ => &["HttpApi"],
        };
        let is_known = |event: &Value| starts.contains(&text(&event["Type"]).as_str());
        assert!(events.into_iter().all(is_known), "{name} has an event of another type");
    }
    let mut scheduled = Vec::new();
    for (name, machine) in of_type("StateMachine") {
        let path = format!("{}/../../{}", env!("CARGO_MANIFEST_DIR"), text(&machine["DefinitionUri"]));
        let definition = std::fs::read_to_string(path).unwrap();
        let (mut rest, mut named) = (definition.as_str(), BTreeSet::new());
        while let Some((_, after)) = rest.split_once("${") {
            let (value, after) = after.split_once('}').unwrap();
            named.insert(value.to_owned());
            rest = after;
        }
        let given: BTreeSet<String> =
            machine["DefinitionSubstitutions"].as_mapping().unwrap().keys().map(text).collect();
        assert_eq!(named, given, "{name}");
        for event in machine["Events"].as_mapping().into_iter().flat_map(|events| events.values()) {
            let schedule = &event["Properties"];
            assert_eq!((text(&event["Type"]).as_str(), schedule["OmitName"].as_bool()), ("ScheduleV2", Some(true)));
            assert_eq!(text(&schedule["Input"]), r#"{"scheduled_time": "<aws.scheduler.scheduled-time>"}"#);
            scheduled.push(name.clone());
        }
        for (alarm, metric) in [("NotDone", "ExecutionsFailed"), ("NotSeenDone", "ExecutionsSucceeded")] {
            let alarm = &template["Resources"][name.replace("Daily", alarm).as_str()];
            assert!(name.ends_with("Walk") || alarm["Properties"]["MetricName"] == metric, "{name}: no alarm");
        }
    }
    assert_eq!(scheduled, ["RemindersDaily", "PaymentsDaily"]);
}

#[test]
fn template_passes_each_event_with_a_notice_to_the_queue_of_the_notices() {
    let passed = template()["Resources"]["NoticesRule"]["Properties"]["EventPattern"]["detail-type"].clone();
    let passed: BTreeSet<String> = passed.as_sequence().unwrap().iter().map(text).collect();
    assert_eq!(passed, TYPES_WITH_NOTICE.iter().map(ToString::to_string).collect());
}

#[test]
fn template_starts_the_daily_runs_only_at_hours_that_no_time_zone_skips() {
    let parameters = &template()["Parameters"];
    let allowed = regex::Regex::new(&text(&parameters["BillingHours"]["AllowedPattern"])).unwrap();
    let hours = |pair: fn(u32) -> String| (0..100).filter(|hour| allowed.is_match(&pair(*hour))).collect::<Vec<u32>>();
    // Both batches must be done when the day is checked.
    let check = &template()["Resources"]["AuditFunction"]["Properties"]["Events"]["DayDone"]["Properties"];
    assert_eq!(text(&check["ScheduleExpression"]), "cron(0 20 * * ? *)");
    assert!(emulator::RUN_HOURS.contains(&20));
    let expected: Vec<u32> = emulator::RUN_HOURS.filter(|hour| *hour <= 18).collect();
    assert_eq!(hours(|hour| format!("{hour},6")), expected);
    assert_eq!(hours(|hour| format!("6,{hour}")), expected);
}
