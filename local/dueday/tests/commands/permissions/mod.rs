//! Checks that the IAM policies in `template.yaml` allow exactly the DynamoDB requests that the Lambda functions make.

mod erasures;
mod orders_desk;
mod policies;
mod roles;
mod sandbox;
mod services;
mod webhooks;

use std::collections::BTreeSet;
use std::sync::Arc;

use api::Api;
use audit_function::TableChecks;
use aws_sdk_dynamodb::types::AttributeValue;
use axum::body::Body;
use axum::http::Request;
use axum::{Extension, Router};
use billing::{CloudEvent, PaymentLimit, PaymentLimits, ReconciledCounts};
use billing::{
    ItemImage, PaymentMethod, Receipt, ReceivedEvent, Subscription, SubscriptionStatus, events_between_images,
};
use billing::{SigningSecret, WebhookEndpoint};
use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Utc};
use clock::{Clock as _, SimulatedClock};
use deployment::{Deployment, FaultyService, InMemoryDeployment};
use emulator::{Engine, EngineConnection, ExternalOperation, Fault, FaultInjector};
use notices::{CustomerNotifier, NoticeOutcome};
use outbound::{AllowedAddresses, Deliverer, EndpointSecrets, EndpointUrlCheck, WebhookSender};
use reconciling::{CorrectionMode, Reconciler};
use rest::{Caller, PublicUrl, Role};
use simulator::{NewSubscriber, generate_subscribers};
use store::{Paging, Settings, WaitingDelivery};
use sweep::{BatchRequest, BatchTask, Sweep};
use testkit::{FaultScript, FixedResolver, RecordedMails, UnreadQueue, encryption_keys, read_test_config};
use testkit::{sample_account, sample_subscription};
use tower::ServiceExt as _;

use policies::{assert_allowed, assert_policy, names_with_table_actions};

/// A deployment in memory whose subscriptions have all kinds of cards, and the record of its DynamoDB requests.
struct World {
    /// The deployment that prepares the data of a test. Its requests are not recorded.
    system: InMemoryDeployment,
    /// The faults that a test injects into the calls to the gateway and to the mailer.
    script: Arc<FaultScript>,
    /// The connection that records the DynamoDB requests of `recorded`.
    connection: Arc<EngineConnection>,
    /// The deployment whose functions are tested. It has the same table as `system`, and `connection` records its
    /// DynamoDB requests.
    recorded: Deployment,
}

impl World {
    /// Creates subscriptions with all kinds of cards on the last day of 2026.
    async fn new(settings: &[(&str, &str)]) -> Self {
        let script = Arc::new(FaultScript::default());
        let injector = Arc::new(FaultInjector::new(script.clone()));
        let clock = SimulatedClock::new(six_oclock("2026-12-31"), 1);
        let mailer = Arc::new(FaultyService::new(Arc::new(RecordedMails::default()), injector.clone()));
        let system = InMemoryDeployment::new(read_test_config(settings).unwrap(), clock, mailer).await.unwrap();
        let cards =
            ["pm_card_visa", "pm_card_visa_chargeDeclined", "pm_card_visa_chargeDeclinedLostCard", "pm_unknown"];
        for (NewSubscriber { account, mut subscription }, card) in
            generate_subscribers(31).into_iter().zip(cards.into_iter().cycle())
        {
            let customer = subscription.payment_method.customer.clone();
            subscription.id = billing::SubscriptionId::new(clock::Clock::ulid(system.clock.as_ref()));
            subscription.payment_method = PaymentMethod { customer, payment_method: card.parse().unwrap() };
            system.deployment.create_subscription(&account, subscription, parse_date("2026-12-31")).await.unwrap();
        }
        let connection = Arc::new(EngineConnection::recording_permissions());
        let gateway = Arc::new(FaultyService::new(system.sandbox.clone(), injector));
        let recorded = Deployment { gateway, ..system.with_connection(connection.clone()) };
        Self { system, script, connection, recorded }
    }

    /// Runs the batch of `sweep` twice on each day from `from` to `to`, between the `begin` and `finish` steps of the
    /// state machine. Ignores the results.
    async fn run_days<T: BatchTask>(&self, sweep: &Sweep<T>, from: &str, to: &str) {
        for day in parse_date(from).iter_days().take_while(|day| *day <= parse_date(to)) {
            let deadline = six_oclock(&day.to_string()) + TimeDelta::hours(3);
            let execution =
                serde_json::json!({"scheduled_time": six_oclock(&day.to_string()), "execution": "e", "at_once": 4});
            let _ = sweep.handle_invocation(serde_json::json!({"begin": execution}), deadline).await;
            for hours in [0, 2] {
                let now = six_oclock(&day.to_string()) + TimeDelta::hours(hours);
                self.system.clock.set(now);
                let _ = sweep.run(&BatchRequest::for_date(day), now + TimeDelta::hours(1)).await;
            }
            let finish = serde_json::json!({"date": day, "begun_at": six_oclock("2027-01-01"), "execution": "e", "has_waited": true});
            let _ = sweep.handle_invocation(serde_json::json!({"finish": finish}), deadline).await;
        }
    }
}

fn parse_date(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

fn six_oclock(day: &str) -> DateTime<Utc> {
    parse_date(day).and_time(NaiveTime::from_hms_opt(6, 0, 0).unwrap()).and_utc()
}

#[tokio::test]
async fn policy_of_payments_function_matches_the_requests_of_months_with_faults() {
    let mut done = BTreeSet::new();
    for (settings, max_charges) in [
        (&[][..], None),
        (&[("DUEDAY_CATCH_UP", "latest")], Some("100")),
        (&[("DUEDAY_AFTER_LAST_RETRY", "cancelled")], Some("1")),
    ] {
        let world = World::new(settings).await;
        if let Some(max_charges) = max_charges {
            let mut limits = PaymentLimits::default();
            limits.set_limit(PaymentLimit::MaxCharges, max_charges).unwrap();
            let stored =
                world.system.deployment.table.set_payment_limits(&PaymentLimits::default(), &limits, None).await;
            assert!(stored.unwrap());
        }
        let payments = world.recorded.payment_batch().await.unwrap();
        let lost = [Some(Fault::LostBefore), None, Some(Fault::LostAfter)].into_iter().cycle().take(30);
        world.script.add(ExternalOperation::Charge, lost);
        world.run_days(&payments, "2027-01-01", "2027-01-20").await;
        // After that, some subscriptions are cancelled, charging is switched off while attempts are open, and no run
        // happens for two months.
        let mut all = Vec::new();
        let each = |subscription| {
            all.push(subscription);
            std::ops::ControlFlow::Continue(())
        };
        let table = &world.system.deployment.table;
        table.scan_subscriptions(each).await.unwrap();
        for stored in all.into_iter().map(Result::unwrap).step_by(5) {
            let cancelled = |stored: &Subscription| Ok::<_, ()>(stored.cancel(stored.due_on, stored.created_at));
            table.write_settlement(stored, cancelled).await.unwrap();
        }
        world.script.add(ExternalOperation::Charge, [Some(Fault::LostAfter); 10]);
        world.run_days(&payments, "2027-01-21", "2027-01-25").await;
        table.set_charging(false, None).await.unwrap();
        world.run_days(&payments, "2027-01-26", "2027-01-28").await;
        table.set_charging(true, None).await.unwrap();
        world.run_days(&payments, "2027-04-05", "2027-04-08").await;
        done.extend(world.connection.recorded_permissions());
    }
    assert_policy("PaymentsFunction", &done);
}

#[tokio::test]
async fn policy_of_reminders_function_matches_the_requests_of_a_month() {
    let world = World::new(&[]).await;
    let reminders = world.recorded.reminder_batch().await.unwrap();
    world.script.add(ExternalOperation::SendMail, [None, Some(Fault::LostAfter), Some(Fault::LostBefore)]);
    world.run_days(&reminders, "2027-01-01", "2027-01-31").await;
    assert_policy("RemindersFunction", &world.connection.recorded_permissions());
}

#[tokio::test]
async fn policy_of_reconcile_function_matches_its_requests() {
    let world = World::new(&[]).await;
    let (deployment, recorded) = (&world.system.deployment, &world.recorded);
    // A table that imitates a table restored from a backup. The backup was made before the payments.
    let engine = Engine::in_memory();
    let restored = deployment.with_client(engine.client_with_connection(world.connection.clone())).table;
    let unrecorded = deployment.with_client(engine.client()).table;
    unrecorded.create_if_absent().await.unwrap();
    unrecorded.copy_missing_items(&deployment.table).await.unwrap();
    world.run_days(&deployment.payment_batch().await.unwrap(), "2027-01-01", "2027-01-05").await;
    world.system.clock.set(six_oclock("2027-01-06"));
    let table_id = deployment.table.get_settings().await.unwrap().unwrap().table_id;
    for (table, corrections) in [
        (recorded.table.clone(), CorrectionMode::SettleOrStoreFinding),
        (restored, CorrectionMode::WriteReceiptsOfRestoredTable),
    ] {
        let mut reconciler = Reconciler::new(
            table,
            table_id,
            world.system.sandbox.clone(),
            corrections,
            recorded.clock.clone(),
            parse_date("2027-01-06"),
        );
        let mut counts = ReconciledCounts::default();
        for day in parse_date("2027-01-01").iter_days().take(5) {
            let day = reconciler.reconcile(day, None).await.unwrap();
            assert!(day.is_clean(), "{day:?}");
            counts.payments += day.counts.payments;
            counts.settled += day.counts.settled;
        }
        let is_restored = corrections == CorrectionMode::WriteReceiptsOfRestoredTable;
        assert!(counts.payments > 0 && (counts.settled == counts.payments) == is_restored, "{counts:?}");
    }
    assert_policy("ReconcileFunction", &world.connection.recorded_permissions());
}

#[tokio::test]
async fn policy_of_audit_function_matches_its_requests() {
    let world = World::new(&[]).await;
    let recorded = &world.recorded;
    let (table, clock) = (recorded.table.clone(), recorded.clock.clone());
    let checks = TableChecks::new(table, clock);
    let deadline = six_oclock("2027-01-06");
    world.system.clock.set(deadline);
    // The first invocation starts at its deadline, so it stops immediately. The second invocation continues its audit.
    for (check, deadline) in [("table", deadline), ("table", deadline + TimeDelta::minutes(15)), ("day", deadline)] {
        checks.run_requested_check(serde_json::json!({ "check": check }), deadline).await.unwrap();
    }
    assert_policy("AuditFunction", &world.connection.recorded_permissions());
}

#[tokio::test]
async fn every_function_may_create_the_settings() {
    let world = World::new(&[]).await;
    let initial: Settings = world.recorded.config.table.initial_settings(world.recorded.clock.as_ref());
    let table = &world.system.deployment.table;
    let key = || AttributeValue::S("CTL#settings".to_owned());
    let delete = table.client().delete_item().table_name(table.name()).key("PK", key()).key("SK", key());
    delete.send().await.unwrap();
    world.recorded.table.init_settings(&initial).await.unwrap();
    for function in ["ApiFunction", "RemindersFunction", "PaymentsFunction"] {
        assert_allowed(function, &world.connection.recorded_permissions());
    }
}

/// Every function and every policy with actions on a table needs a test that compares it with recorded requests.
#[test]
fn policy_of_each_function_has_a_test() {
    let tests = [
        include_str!("mod.rs"),
        include_str!("erasures.rs"),
        include_str!("orders_desk.rs"),
        include_str!("sandbox.rs"),
        include_str!("webhooks.rs"),
    ];
    let calls = regex::Regex::new(r#"assert_policy\("(\w+)""#).unwrap();
    let tested: BTreeSet<String> =
        tests.iter().flat_map(|test| calls.captures_iter(test).map(|call| call[1].to_owned())).collect();
    assert_eq!(names_with_table_actions(), tested, "left: in the template; right: tested");
}

/// Sends `request`, such as `GET /runs`. Returns the status of the response.
async fn send(router: &Router, request: &str, body: &str) -> u16 {
    send_and_read(router, request, body).await.0
}

/// Sends `request`, such as `GET /runs`. Returns the status and the body of the response.
async fn send_and_read(router: &Router, request: &str, body: &str) -> (u16, serde_json::Value) {
    let (method, path) = request.split_once(' ').unwrap();
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let request = request.header("idempotency-key", "key-1").body(Body::from(body.to_owned())).unwrap();
    let public_url = PublicUrl::parse("https://api.example.com").unwrap();
    let router = router.clone().layer(Extension(Caller::Operator(Role::Admin))).layer(Extension(public_url));
    let response = router.oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let bytes = axum::body::to_bytes(response.into_body(), 1_000_000).await.unwrap();
    (status, serde_json::from_slice(&bytes).unwrap_or_default())
}

/// Runs the payments of the first ten days of 2027. Returns the API path of a receipt of these payments.
async fn sample_receipt(world: &World) -> String {
    let deployment = &world.system.deployment;
    world.run_days(&deployment.payment_batch().await.unwrap(), "2027-01-01", "2027-01-10").await;
    let mut partitions = deployment.table.account_partitions();
    while let Some(partition) = partitions.next().await.unwrap() {
        if let Some(receipt) = partition.receipts.first() {
            return format!("/accounts/{}/receipts/{}", receipt.account, receipt.id());
        }
    }
    panic!("no receipt was written")
}

#[tokio::test]
async fn policy_of_api_function_matches_the_requests_of_its_routes() {
    let world = World::new(&[]).await;
    world.system.clock.set(six_oclock("2027-01-02"));
    let Deployment { table, config, clock, .. } = &world.recorded;
    let api = Api::new(table.clone(), &config.table, config.merchant.clone(), clock.clone()).await.unwrap();
    world.system.sandbox.set_url("http://127.0.0.1:7879");
    let addresses = EndpointUrlCheck::public_only_with(Arc::new(FixedResolver));
    let api = api.with_deliveries(Arc::new(UnreadQueue), addresses).with_encryption(encryption_keys());
    let router = api.with_gateway(world.system.sandbox.clone(), &world.system.deployment.config.charging).router();
    let account = r#"{"email":"a@example.com","name":"A"}"#;
    let new = r#"{"sku":"s","product_name":"P","payment_day":10,"amount":599,"currency":"EUR",
        "payment_method":{"customer":"cus_1","payment_method":"pm_card_visa"}}"#;
    assert_eq!(send(&router, "PUT /accounts/new", account).await, 201);
    assert_eq!(send(&router, "PUT /accounts/new", &account.replace("\"A\"", "\"B\"")).await, 200);
    assert_eq!(send(&router, "POST /accounts/new/subscriptions", new).await, 201);
    let (account, all) = ("new".parse().unwrap(), Paging::all());
    let page = world.system.deployment.table.get_subscriptions_by_account(&account, &all).await.unwrap();
    let subscription = format!("/accounts/new/subscriptions/{}", page.items[0].id);
    let receipt = sample_receipt(&world).await;
    assert_eq!(send(&router, &format!("POST {receipt}/refund"), r#"{"amount": 100, "reason": "late"}"#).await, 201);
    let (status, setup) = send_and_read(&router, "POST /accounts/new/payment-method-setups", "{}").await;
    assert_eq!(status, 201, "{setup}");
    let setup = setup["id"].as_str().unwrap();
    let page = format!("page_{setup}").parse().unwrap();
    let card = "pm_card_mastercard".parse().unwrap();
    assert!(world.system.sandbox.complete_page_at(&page, &card, world.system.clock.now()).unwrap());
    assert_eq!(send(&router, "POST /webhook-endpoints", r#"{"url": "https://example.com"}"#).await, 201);
    let endpoints = world.system.deployment.table.get_webhook_endpoints(&all).await.unwrap();
    let endpoint = format!("/webhook-endpoints/{}", endpoints.items[0].id);
    let now = new
        .replacen('{', "{\"allow_second\":true,", 1)
        .replace("\"payment_day\":10", "\"payment_day\":10,\"first_payment_date\":\"2027-01-10\",\"charge_now\":true");
    assert_eq!(send(&router, "POST /accounts/new/subscriptions", &now).await, 201);
    assert_eq!(send(&router, &format!("POST {subscription}/retry"), "{}").await, 409, "nothing is owed");
    for (request, body) in [
        (format!("PATCH {subscription}"), r#"{"amount": 700}"#),
        (format!("POST {subscription}/pause"), "{}"),
        (format!("POST {subscription}/resume"), "{}"),
        (format!("POST {subscription}/cancel"), r#"{"at_period_end": true}"#),
        (format!("POST {subscription}/uncancel"), "{}"),
        (format!("GET {subscription}"), ""),
        (format!("GET /payment-method-setups/{setup}/return"), ""),
        (format!("GET /accounts/new/payment-method-setups/{setup}"), ""),
        (format!("GET {subscription}/schedule"), ""),
        (format!("GET {subscription}/why"), ""),
        ("GET /accounts/new".to_owned(), ""),
        ("GET /accounts/new/subscriptions".to_owned(), ""),
        ("GET /accounts/new/receipts".to_owned(), ""),
        ("GET /due/payments".to_owned(), ""),
        ("GET /due/reminders".to_owned(), ""),
        ("GET /runs".to_owned(), ""),
        ("GET /audits".to_owned(), ""),
        ("GET /reports/days".to_owned(), ""),
        ("GET /status".to_owned(), ""),
        (format!("GET {endpoint}"), ""),
        (format!("PATCH {endpoint}"), r#"{"enabled": false}"#),
        (format!("POST {endpoint}/rotate-secret"), "{}"),
        (format!("GET {endpoint}/deliveries"), ""),
        ("GET /webhook-endpoints".to_owned(), ""),
        ("GET /health".to_owned(), ""),
    ] {
        assert_eq!(send(&router, &request, body).await, 200, "{request}");
    }
    assert_eq!(send(&router, &format!("DELETE {endpoint}"), "").await, 204);
    assert_policy("ApiFunction", &world.connection.recorded_permissions());
}

#[tokio::test]
async fn policy_of_notices_function_matches_its_requests() {
    let world = World::new(&[]).await;
    let mailer = Arc::new(FaultyService::new(
        world.system.deployment.mailer.clone(),
        Arc::new(FaultInjector::new(world.script.clone())),
    ));
    let merchant = world.recorded.config.merchant.clone();
    let clock = world.system.clock.clone();
    let notices = CustomerNotifier::new(world.recorded.table.clone(), mailer, merchant, clock.clone())
        .with_card_links(Some("https://api.example.com".to_owned()));
    let (account, gold) = (sample_account(), sample_subscription(10, parse_date("2026-12-01")));
    world.system.deployment.table.put_account(&account).await.unwrap();
    world.system.deployment.table.create_subscription(&gold, None).await.unwrap();
    let receipt = ItemImage::Receipt(Receipt {
        account: account.id.clone(),
        subscription: gold.id,
        sku: gold.sku.clone(),
        product_name: gold.product_name.clone(),
        email: None,
        due_on: gold.due_on,
        amount: gold.price,
        payment: "pay_1".parse().unwrap(),
        customer: None,
        card: None,
        processed_at: clock.now(),
        refunded: billing::Money::new(0, gold.price.currency()),
        refunded_at: None,
        reversal: None,
    });
    let cancelled = Subscription { status: SubscriptionStatus::Cancelled, ..gold.clone() };
    let unpaid = Subscription { status: SubscriptionStatus::Unpaid, ..gold.clone() };
    let image = |subscription: &Subscription| ItemImage::Subscription(Box::new(subscription.clone()));
    let table = &world.system.deployment.table;
    table.update_subscription(&gold, &unpaid).await.unwrap();
    let (gold, cancelled, unpaid) = (image(&gold), image(&cancelled), image(&unpaid));
    for happened in [
        events_between_images(None, Some(&receipt), clock.now()),
        events_between_images(Some(&gold), Some(&unpaid), clock.now()),
        events_between_images(Some(&gold), Some(&cancelled), clock.now()),
    ] {
        let event = CloudEvent::new(happened[0].clone(), "dueday").into();
        assert_eq!(notices.notify(&event).await.unwrap(), NoticeOutcome::Sent);
    }
    assert_policy("NoticesFunction", &world.connection.recorded_permissions());
}

#[tokio::test]
async fn policy_of_events_function_matches_its_request() {
    let world = World::new(&[]).await;
    assert!(!world.recorded.table.has_webhook_endpoints().await.unwrap());
    assert_policy("EventsFunction", &world.connection.recorded_permissions());
}

#[tokio::test]
async fn policy_of_deliver_function_matches_its_requests_until_an_endpoint_is_disabled() {
    let world = World::new(&[]).await;
    let clock = world.system.clock.clone();
    // The deliverer refuses this address, because it is not public.
    let url = "https://127.0.0.1/".parse().unwrap();
    let id = clock.ulid();
    let secrets = EndpointSecrets::new(encryption_keys(), clock.clone());
    let secret = secrets.encrypt(id, &SigningSecret::new(clock.random_secret()));
    let endpoint = WebhookEndpoint::new(id, url, secret, clock.now());
    world.system.deployment.table.create_webhook_endpoint(&endpoint, None).await.unwrap();
    let sender = WebhookSender::new(AllowedAddresses::PublicOnly, std::time::Duration::from_secs(1)).unwrap();
    let deliverer = Deliverer::new(world.recorded.table.clone(), sender, encryption_keys(), clock.clone());
    let event = ReceivedEvent::read(r#"{"specversion":"1.0","id":"e1","type":"account.created"}"#).unwrap();
    let keys = deliverer.fan_out(&[event]).await.unwrap();
    while let Some(next_try_at) = deliverer.deliver(&keys[0]).await.unwrap().earliest_instant() {
        let waiting = WaitingDelivery { delivery: keys[0].clone(), next_try_at, id: clock.ulid() };
        assert!(deliverer.add_waiting(&[waiting]).await.is_empty());
        clock.set(next_try_at);
        assert_eq!(deliverer.send_due(&UnreadQueue).await.unwrap(), 1);
    }
    let stored = world.system.deployment.table.get_webhook_endpoint(endpoint.id).await.unwrap().unwrap();
    assert!(stored.disabled_because.is_some());
    assert_policy("DeliverFunction", &world.connection.recorded_permissions());
}
