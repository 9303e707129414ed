//! Tests of events from Stripe, which a strict stand-in sends: in any order, repeatedly, late, and before it responds
//! to our own request.

mod disputes;
mod disputes_by_seed;
mod findings;
mod mail_feedback;
mod reversals;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use billing::{Attempt, Changes, PaymentMethod, Receipt, Status, Subscription};
use chrono::{DateTime, TimeDelta, Utc};
use clock::{Clock as _, SimulatedClock};
use deployment::{Deployment, InMemoryDeployment};
use emulator::{Call, EngineConnection, Injector, Limits, STRIPE_KEY, StripeFault, StripeServer, serve};
use gateways::{InboundWebhookError, SigningSecrets, Stripe};
use inbound::{InboundError, InboundOutcome, StripeEventHandler, routes};
use settling::Disputes;
use settling::PaymentMethodSetups;
use settling::Refunds;
use store::{Counts as _, Paging, Table};
use sweep::BatchRequest;
use testkit::{FAULTS_AT_EACH_CALL, RecordedMails, config, fault_at_call, replaced_secret, sample};
use tower::ServiceExt as _;
use ulid::Ulid;

/// The signing secret of the inbound webhook.
const SECRET: &str = "whsec_0123456789abcdef";

/// Parses the time `text`, such as `2026-03-10T06:00:00Z`.
fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

/// The environment of the tests: a table with one subscription, a stand-in for Stripe, and the handler of Stripe's
/// events.
struct World {
    system: InMemoryDeployment,
    server: Arc<StripeServer>,
    stripe: Arc<Stripe>,
    events: Arc<StripeEventHandler>,
    gold: Subscription,
}

impl World {
    /// Creates a world with one subscription (the Gold plan), which is paid with `card`, on its due date.
    async fn new(card: &str) -> Self {
        Self::with_settings(card, &[]).await
    }

    /// Creates a world like [`World::new`], with additional environment variables.
    async fn with_settings(card: &str, settings: &[(&'static str, &str)]) -> Self {
        let settings: Vec<_> = [("DUEDAY_SHARDS", "1")].into_iter().chain(settings.iter().copied()).collect();
        let config = config(&settings).unwrap();
        let clock = SimulatedClock::new(at("2026-03-10T06:00:00Z"), 1);
        let system = InMemoryDeployment::new(config, clock, Arc::new(RecordedMails::default())).await.unwrap();
        let mut gold = sample::subscription(10, "2026-03-01".parse().unwrap());
        gold.payment_method.payment_method = card.parse().unwrap();
        let table = &system.deployment.table;
        table.put_account(&sample::account()).await.unwrap();
        table.create_subscription(&gold, None).await.unwrap();
        let server = StripeServer::new(system.clock.clone());
        let listener = tokio::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(serve(listener, server.clone().router(), Limits::default()));
        let stripe = Arc::new(Stripe::new(STRIPE_KEY, &url, Duration::from_secs(5)));
        let events = Arc::new(Self::event_handler(&system, table.clone(), &stripe));
        Self { system, server, stripe, events, gold }
    }

    /// Creates a handler of Stripe's events about the payments in `table`.
    fn event_handler(system: &InMemoryDeployment, table: Table, stripe: &Arc<Stripe>) -> StripeEventHandler {
        let secrets = SigningSecrets::parse(SECRET).unwrap();
        StripeEventHandler::new(table, stripe.clone(), secrets, &system.deployment.config.billing, system.clock.clone())
    }

    /// Returns the payments table.
    fn table(&self) -> &Table {
        &self.system.deployment.table
    }

    /// Runs the payment batch at the time `when`. Returns the number of rows for each outcome. Leaves out outcomes with
    /// the number 0.
    async fn run_payments(&self, when: &str) -> Vec<(&'static str, u64)> {
        self.system.clock.set(at(when));
        let deployment = Deployment { gateway: self.stripe.clone(), ..self.system.deployment.clone() };
        let payments = deployment.payments().await.unwrap();
        let request = BatchRequest::for_date(when[..10].parse().unwrap());
        let report = payments.run(&request, at(when) + TimeDelta::hours(1)).await.unwrap();
        report.counts.counts_by_name().into_iter().filter(|(_, count)| *count > 0).collect()
    }

    /// Signs `event` and handles it like an inbound webhook.
    async fn send_event(&self, event: &str) -> Result<InboundOutcome, InboundError> {
        let header = SigningSecrets::parse(SECRET).unwrap().sign(event.as_bytes(), self.system.clock.now());
        self.events.handle(&header, event.as_bytes()).await
    }

    /// Returns the subscription as it is stored now.
    async fn stored_subscription(&self) -> Subscription {
        self.table().get_subscription(&self.gold.account, self.gold.id).await.unwrap().unwrap()
    }

    /// Returns the stored receipts of the account, the newest due date first.
    async fn receipts(&self) -> Vec<Receipt> {
        let now = self.system.clock.now();
        self.table().get_receipts_by_account(&self.gold.account, &Paging::all(), now).await.unwrap().items
    }

    /// Changes the payment method of the subscription.
    async fn change_card(&self, card: &str) {
        let (lead, today) = (self.system.deployment.config.billing.policy.lead, self.system.clock.now().date_naive());
        let method = PaymentMethod {
            payment_method: card.parse().unwrap(),
            ..self.stored_subscription().await.payment_method.clone()
        };
        let changes = Changes { payment_method: Some(method), ..Changes::default() };
        let changed = self.stored_subscription().await.change(&changes, lead, today).unwrap();
        self.table().update_subscription(&self.stored_subscription().await, &changed).await.unwrap();
    }

    /// Sends `event` to a handler. At the request to the table with the number `call`, sets the clock to `later`. Returns
    /// whether the handler made this request.
    async fn send_event_and_pass_time(&self, event: &str, call: u64, later: &'static str) -> bool {
        let clock = self.system.clock.clone();
        let header = SigningSecrets::parse(SECRET).unwrap().sign(event.as_bytes(), clock.now());
        let pass_time = move |made: &Call<'_>| {
            if made.number == call {
                clock.set(at(later));
            }
            None
        };
        let injector = Arc::new(Injector::active_during_runs(Arc::new(pass_time)));
        let connection = EngineConnection::with_injector(injector.clone());
        let table = self.system.with_connection(Arc::new(connection)).table;
        let events = Self::event_handler(&self.system, table, &self.stripe);
        injector.run(events.handle(&header, event.as_bytes())).await.unwrap().unwrap();
        injector.calls() >= call
    }

    /// Creates the service that stores disputes.
    fn disputes(&self) -> Disputes {
        Disputes::new(self.table().clone(), &self.system.deployment.config.billing, self.system.clock.clone())
    }

    /// Returns each waived period with its reason.
    async fn waived_periods(&self) -> Vec<String> {
        let now = self.system.clock.now();
        let kept = self.table().get_records(&self.gold.account, self.gold.id, now).await.unwrap();
        kept.waived.iter().map(|waived| format!("{} {}", waived.due_on, waived.reason)).collect()
    }

    /// Creates the service that makes refunds.
    fn refunds(&self) -> Refunds {
        Refunds::new(self.table().clone(), self.stripe.clone(), self.system.clock.clone())
    }
}

#[tokio::test]
async fn bank_debit_is_settled_once_by_its_event() {
    for (card, status, receipts) in
        [("pm_usBankAccount_success", Status::Active, 1), ("pm_usBankAccount_insufficientFunds", Status::PastDue, 0)]
    {
        let world = World::new(card).await;
        assert_eq!(world.run_payments("2026-03-10T06:00:00Z").await, [("processing", 1)]);
        let created = world.server.event("evt_0", "payment_intent.processing", "pi_000001");
        assert_eq!(
            world.send_event(&created).await.unwrap(),
            InboundOutcome::Processed,
            "the bank has not decided yet"
        );
        assert!(world.stored_subscription().await.attempt.is_some());
        world.system.clock.set(at("2026-03-12T07:00:00Z"));
        let event = world.server.event("evt_1", "payment_intent.succeeded", "pi_000001");
        assert_eq!(world.send_event(&event).await.unwrap(), InboundOutcome::Processed);
        let stored = world.stored_subscription().await;
        assert_eq!((stored.status, stored.attempt.is_some()), (status, false), "{card}");
        assert_eq!(world.receipts().await.len(), receipts);
        assert_eq!(world.send_event(&event).await.unwrap(), InboundOutcome::AlreadyProcessed);
        let again = world.server.event("evt_2", "payment_intent.succeeded", "pi_000001");
        assert_eq!(world.send_event(&again).await.unwrap(), InboundOutcome::Processed);
        assert_eq!(
            world.stored_subscription().await,
            stored,
            "another event about the same payment has the same result"
        );
    }
}

#[tokio::test]
async fn event_is_rejected_while_a_worker_has_leased_its_attempt() {
    let world = World::new("pm_card_visa").await;
    // Stripe makes the charge, and the response is lost.
    world.server.set_next_faults([None, Some(StripeFault::LostAfter)]);
    assert_eq!(world.run_payments("2026-03-10T06:00:00Z").await, [("in_doubt", 1)]);
    let event = world.server.event("evt_1", "payment_intent.succeeded", "pi_000001");
    let error = world.send_event(&event).await.unwrap_err();
    assert!(matches!(error, InboundError::AttemptLeased { .. }) && error.is_transient(), "{error}");
    assert_eq!(world.receipts().await, []);
    world.system.clock.set(at("2026-03-10T08:00:00Z"));
    assert_eq!(world.send_event(&event).await.unwrap(), InboundOutcome::Processed);
    assert_eq!(world.receipts().await.len(), 1);
    assert_eq!(world.run_payments("2026-03-11T06:00:00Z").await, []);
    assert_eq!(world.server.intents().len(), 1, "the customer was charged once");
}

#[tokio::test]
async fn event_of_a_settled_month_does_not_change_the_open_month() {
    let world = World::new("pm_usBankAccount_success").await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    world.system.clock.set(at("2026-03-12T07:00:00Z"));
    world.send_event(&world.server.event("evt_1", "payment_intent.succeeded", "pi_000001")).await.unwrap();
    assert_eq!(world.run_payments("2026-04-10T06:00:00Z").await, [("processing", 1)]);
    world.system.clock.set(at("2026-04-10T09:00:00Z"));
    let late = world.server.event("evt_2", "payment_intent.succeeded", "pi_000001");
    assert_eq!(
        world.send_event(&late).await.unwrap(),
        InboundOutcome::Processed,
        "the attempt of April is processing, and March has its receipt"
    );
    assert!(world.stored_subscription().await.attempt.is_some());
}

#[tokio::test]
async fn card_is_attached_by_event_without_return_of_the_browser() {
    let world = World::new("pm_card_visa_chargeDeclinedInsufficientFunds").await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    let lead = world.system.deployment.config.billing.policy.lead;
    let setups =
        PaymentMethodSetups::new(world.table().clone(), world.stripe.clone(), lead, world.system.clock.clone());
    let back = |_| "http://127.0.0.1/back".to_owned();
    let setup = setups.open(&sample::account(), None, back).await.unwrap();
    world.table().create_setup(&setup, None).await.unwrap();
    world.system.clock.set(at("2026-03-10T07:00:00Z"));
    let open = world.server.event("evt_1", "checkout.session.completed", setup.page.as_str());
    assert_eq!(
        world.send_event(&open).await.unwrap(),
        InboundOutcome::Processed,
        "the customer has not entered a card yet, although the event says that the session is complete"
    );
    assert_eq!(world.stored_subscription().await.status, Status::PastDue);
    let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let submitted = http.post(&setup.url).header("content-type", "application/x-www-form-urlencoded");
    submitted.body("payment_method=pm_card_mastercard").send().await.unwrap();
    let event = world.server.event("evt_2", "checkout.session.completed", setup.page.as_str());
    assert_eq!(world.send_event(&event).await.unwrap(), InboundOutcome::Processed);
    let stored = world.stored_subscription().await;
    assert_eq!(stored.payment_method.payment_method.as_str(), "pm_card_mastercard");
    assert_eq!(stored.next_payment_on, Some("2026-03-10".parse().unwrap()), "the next run charges the owed payment");
}

#[tokio::test]
async fn dashboard_refund_is_stored_and_failed_refund_is_undone() {
    let world = World::new("pm_card_visa").await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    let refunded = async || world.receipts().await[0].refunded.minor();
    let id = world.server.refund_in_the_dashboard("pi_000001", 500, "pending");
    // The columns are: the id of the event, the status of the refund, and the refunded amount after the event.
    for (event, status, left) in
        [("evt_1", "pending", 500), ("evt_2", "succeeded", 500), ("evt_3", "failed", 0), ("evt_4", "failed", 0)]
    {
        world.server.set_refund_status(&id, status);
        let event = world.server.event(event, "refund.updated", &id);
        assert_eq!(world.send_event(&event).await.unwrap(), InboundOutcome::Processed, "{status}");
        assert_eq!(refunded().await, left, "{status}");
    }
    // A refund that Dueday requested succeeds first and fails later.
    let receipt = world.receipts().await.remove(0);
    let refund_id = Ulid::from_parts(1, 1);
    world.refunds().refund(&receipt.account, &receipt.id(), refund_id, Some(300), None).await.unwrap();
    assert_eq!(refunded().await, 300);
    world.server.set_refund_status("re_000002", "failed");
    let event = world.server.event("evt_5", "refund.failed", "re_000002");
    assert_eq!(world.send_event(&event).await.unwrap(), InboundOutcome::Processed);
    assert_eq!(refunded().await, 0, "the bank returned the money");
    // A refund that was created in Stripe's dashboard is pending. A new refund must not request it again.
    let pending = world.server.refund_in_the_dashboard("pi_000001", 200, "pending");
    world.send_event(&world.server.event("evt_6", "refund.created", &pending)).await.unwrap();
    let another = Ulid::from_parts(2, 2);
    world.refunds().refund(&receipt.account, &receipt.id(), another, Some(100), None).await.unwrap();
    assert_eq!(refunded().await, 300);
}

#[tokio::test]
async fn events_of_other_programs_are_ignored() {
    let world = World::new("pm_card_visa").await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    let before = world.stored_subscription().await;
    for event in [
        r#"{"id":"evt_1","object":"event","type":"customer.created","data":{"object":{"id":"cus_1","object":"customer"}}}"#,
        r#"{"id":"evt_2","object":"event","type":"payment_intent.succeeded","data":{"object":{"id":"pi_9","object":"payment_intent"}}}"#,
        r#"{"id":"evt_3","object":"event","type":"refund.created","data":{"object":{"id":"re_9","object":"refund"}}}"#,
        r#"{"id":"evt_4","object":"event","type":"charge.dispute.created","data":{"object":{"id":"dp_9","object":"dispute"}}}"#,
        r#"{"id":"evt_5","object":"event","type":"checkout.session.completed","data":{"object":{"id":"cs_9","object":"checkout.session"}}}"#,
    ] {
        assert_eq!(world.send_event(event).await.unwrap(), InboundOutcome::Ignored, "{event}");
    }
    assert_eq!(world.stored_subscription().await, before);
}

#[tokio::test]
async fn payment_that_contradicts_its_attempt_gets_no_receipt() {
    let world = World::new("pm_usBankAccount_success").await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    let more_expensive =
        Subscription { price: world.gold.price.currency().price(9_900).unwrap(), ..world.stored_subscription().await };
    let attempt = more_expensive.attempt.clone().map(|open| Attempt { amount: more_expensive.price, ..open });
    world
        .table()
        .update_subscription(&world.stored_subscription().await, &Subscription { attempt, ..more_expensive })
        .await
        .unwrap();
    world.system.clock.set(at("2026-03-12T07:00:00Z"));
    let event = world.server.event("evt_1", "payment_intent.succeeded", "pi_000001");
    let error = world.send_event(&event).await.unwrap_err();
    assert!(
        matches!(&error, InboundError::NotSettled { .. }) && error.to_string().contains("was requested"),
        "{error}"
    );
    assert_eq!(world.receipts().await, []);
}

#[tokio::test]
async fn receipt_is_found_after_change_of_payment_day() {
    let world = World::new("pm_card_visa").await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    let moved = Receipt { due_on: "2026-03-20".parse().unwrap(), ..world.receipts().await.remove(0) };
    // Move the receipt, as if the payment that was requested on the 10th had settled the attempt of the 20th.
    let mut item =
        world.system.engine.execute("GetItem", &receipt_key(&world.gold, "2026-03-10")).unwrap()["Item"].clone();
    item["SK"] = receipt_key(&world.gold, "2026-03-20")["Key"]["SK"].clone();
    item["DueDate"] = serde_json::json!({"S": "2026-03-20"});
    world.system.engine.execute("PutItem", &serde_json::json!({"TableName": "dueday", "Item": item})).unwrap();
    world.system.engine.execute("DeleteItem", &receipt_key(&world.gold, "2026-03-10")).unwrap();
    assert_eq!(world.receipts().await, [moved]);
    let event = world.server.event("evt_1", "payment_intent.succeeded", "pi_000001");
    assert_eq!(world.send_event(&event).await.unwrap(), InboundOutcome::Processed);
    let id = world.server.refund_in_the_dashboard("pi_000001", 500, "succeeded");
    world.send_event(&world.server.event("evt_2", "refund.created", &id)).await.unwrap();
    assert_eq!(world.receipts().await[0].refunded.minor(), 500);
}

/// Returns a DynamoDB request with the key of a receipt: the receipt of the subscription `of` for the payment due on
/// `due_on`.
fn receipt_key(of: &Subscription, due_on: &str) -> serde_json::Value {
    let sort = format!("REC#{due_on}#SKU#{}#SUB#{}", of.sku, of.id);
    serde_json::json!({"TableName": "dueday", "Key": {"PK": {"S": format!("ACC#{}", of.account)}, "SK": {"S": sort}}})
}

#[tokio::test]
async fn crash_at_any_call_is_repaired_by_repeating_the_event() {
    // The columns are: the type of the event, the id of its object, and the payment method.
    let cases = [
        ("charge.dispute.created", "dp_000001", "pm_card_visa"),
        ("charge.dispute.closed", "dp_000001", "pm_card_visa"),
        ("refund.updated", "re_000001", "pm_card_visa"),
        ("payment_intent.succeeded", "pi_000001", "pm_usBankAccount_success"),
    ];
    for (kind, of, card) in cases {
        for fault in FAULTS_AT_EACH_CALL {
            let mut calls = 1;
            loop {
                let story = format!("{kind}: {fault:?} of call {calls}");
                let world = World::new(card).await;
                world.run_payments("2026-03-10T06:00:00Z").await;
                world.system.clock.set(at("2026-03-12T07:00:00Z"));
                let status = if kind == "charge.dispute.closed" { "lost" } else { "needs_response" };
                world.server.dispute("pi_000001", status);
                world.server.refund_in_the_dashboard("pi_000001", 500, "succeeded");
                let event = world.server.event("evt_1", kind, of);
                let header = SigningSecrets::parse(SECRET).unwrap().sign(event.as_bytes(), world.system.clock.now());
                let injector = Arc::new(Injector::active_during_runs(Arc::new(fault_at_call(calls, fault))));
                let deployment = world
                    .system
                    .with_connection(Arc::new(EngineConnection::with_injector(injector.clone()).without_retries()));
                let events = World::event_handler(&world.system, deployment.table, &world.stripe);
                let _ = injector.run(events.handle(&header, event.as_bytes())).await;
                if injector.calls() < calls {
                    break;
                }
                // Stripe sends the event until it is processed. The killed worker may have leased the attempt, so send
                // the event again two hours later, after the end of the lease.
                if world.send_event(&event).await.is_err() {
                    world.system.clock.set(at("2026-03-12T09:00:00Z"));
                    world.send_event(&event).await.unwrap_or_else(|error| panic!("{story}: {error}"));
                }
                let stored = world.stored_subscription().await;
                match kind {
                    "payment_intent.succeeded" => {
                        assert_eq!((world.receipts().await.len(), stored.attempt), (1, None), "{story}");
                    }
                    "refund.updated" => assert_eq!(world.receipts().await[0].refunded.minor(), 500, "{story}"),
                    _ => {
                        assert!(stored.disputed_at.is_some(), "{story}");
                        let kept = world.table().get_disputes_by_account(&stored.account).await.unwrap();
                        assert_eq!(kept.len(), 1, "{story}");
                        let reversal = world.receipts().await[0].reversal;
                        assert_eq!(reversal.is_some(), status == "lost", "{story}");
                    }
                }
                calls += 1;
            }
            assert!(calls > 3, "{kind}: {calls} calls");
        }
    }
}

#[tokio::test]
async fn webhook_route_returns_success_only_for_verified_and_processed_events() {
    let world = World::new("pm_card_visa").await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    let secrets = SigningSecrets::parse(SECRET).unwrap();
    let (event, now) = (world.server.event("evt_1", "payment_intent.succeeded", "pi_000001"), world.system.clock.now());
    let status_of_request = async |signature: Option<String>, body: &str| {
        let mut request = Request::post("/webhooks/stripe");
        if let Some(signature) = signature {
            request = request.header("Stripe-Signature", signature);
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        routes(world.events.clone()).oneshot(request).await.unwrap().status()
    };
    let signed = |body: &str| Some(secrets.sign(body.as_bytes(), now));
    assert_eq!(status_of_request(None, &event).await, StatusCode::BAD_REQUEST);
    assert_eq!(status_of_request(signed(&event), &event.replace("pi_", "pj_")).await, StatusCode::BAD_REQUEST);
    let old = secrets.sign(event.as_bytes(), now - TimeDelta::seconds(301));
    assert_eq!(status_of_request(Some(old), &event).await, StatusCode::BAD_REQUEST);
    world.server.set_permanent_fault(Some(StripeFault::NotBegun));
    assert_eq!(
        status_of_request(signed(&event), &event).await,
        StatusCode::SERVICE_UNAVAILABLE,
        "Stripe sends it again"
    );
    world.server.set_permanent_fault(None);
    assert_eq!(status_of_request(signed(&event), &event).await, StatusCode::OK);
    assert_eq!(status_of_request(signed(&event), &event).await, StatusCode::OK);
    assert_eq!(status_of_request(signed("{}"), &"x".repeat(1024 * 1024 + 1)).await, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn event_is_verified_with_the_signing_secret_that_has_replaced_the_known_one() {
    let world = World::new("pm_card_visa").await;
    world.run_payments("2026-03-10T06:00:00Z").await;
    let parse = |text: &str| SigningSecrets::parse(text).unwrap();
    let secret = replaced_secret(parse("whsec_fedcba9876543210"), parse(SECRET), &world.system.clock).await;
    let config = &world.system.deployment.config.billing;
    let clock = world.system.clock.clone();
    let handler = StripeEventHandler::new(world.table().clone(), world.stripe.clone(), secret, config, clock);
    let event = world.server.event("evt_1", "payment_intent.succeeded", "pi_000001");
    let signed = |secret: &str| parse(secret).sign(event.as_bytes(), world.system.clock.now());
    let outcome = handler.handle(&signed(SECRET), event.as_bytes()).await.unwrap();
    assert_eq!(outcome, InboundOutcome::Processed);
    let refused = handler.handle(&signed("whsec_aaaaaaaaaaaaaaaa"), event.as_bytes()).await;
    assert!(matches!(refused, Err(InboundError::NotVerified(InboundWebhookError::NotSigned))), "{refused:?}");
}
