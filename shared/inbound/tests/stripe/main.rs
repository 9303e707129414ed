//! What Stripe tells by itself, over a strict stand-in: in any order, again and again, late, and before our own answer.

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
use emulator::{Deployment, Fault, Injector, Limits, STRIPE_KEY, StripeFault, StripeServer, Wire, serve};
use gateways::{SigningSecrets, Stripe};
use inbound::{StripeEvents, Told, ToldError, routes};
use settling::Disputes;
use settling::Refunds;
use settling::Setups;
use store::{Counts as _, Paging, Table};
use sweep::BatchRequest;
use testkit::{InMemory, Letterbox, config, nth, sample};
use tower::ServiceExt as _;
use ulid::Ulid;

const SECRET: &str = "whsec_0123456789abcdef";

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

struct World {
    system: InMemory,
    server: Arc<StripeServer>,
    stripe: Arc<Stripe>,
    events: Arc<StripeEvents>,
    gold: Subscription,
}

impl World {
    /// On the day on which the Gold plan is due, with this card.
    async fn new(card: &str) -> Self {
        Self::with(card, &[]).await
    }

    /// As [`World::new`], with these settings.
    async fn with(card: &str, settings: &[(&'static str, &str)]) -> Self {
        let settings: Vec<_> = [("DUEDAY_SHARDS", "1")].into_iter().chain(settings.iter().copied()).collect();
        let config = config(&settings).unwrap();
        let clock = SimulatedClock::new(at("2026-03-10T06:00:00Z"), 1);
        let system = InMemory::new(config, clock, Arc::new(Letterbox::default())).await.unwrap();
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
        let events = Arc::new(Self::events(&system, table.clone(), &stripe));
        Self { system, server, stripe, events, gold }
    }

    fn events(system: &InMemory, table: Table, stripe: &Arc<Stripe>) -> StripeEvents {
        let secrets = SigningSecrets::parse(SECRET).unwrap();
        StripeEvents::new(table, stripe.clone(), secrets, system.deployment.config.of_webhooks(), system.clock.clone())
    }

    fn table(&self) -> &Table {
        &self.system.deployment.table
    }

    /// The counts of a payment run at that instant.
    async fn run(&self, when: &str) -> Vec<(&'static str, u64)> {
        self.system.clock.set(at(when));
        let deployment = Deployment { gateway: self.stripe.clone(), ..self.system.deployment.clone() };
        let payments = deployment.payments().await.unwrap();
        let request = BatchRequest::on(when[..10].parse().unwrap());
        let report = payments.run(&request, at(when) + TimeDelta::hours(1)).await.unwrap();
        report.counts.named().into_iter().filter(|(_, count)| *count > 0).collect()
    }

    async fn tell(&self, event: &str) -> Result<Told, ToldError> {
        let header = SigningSecrets::parse(SECRET).unwrap().sign(event.as_bytes(), self.system.clock.now());
        self.events.take(&header, event.as_bytes()).await
    }

    async fn stored(&self) -> Subscription {
        self.table().get_subscription(&self.gold.account, self.gold.id).await.unwrap().unwrap()
    }

    async fn receipts(&self) -> Vec<Receipt> {
        let now = self.system.clock.now();
        self.table().get_receipts_by_account(&self.gold.account, &Paging::all(), now).await.unwrap().items
    }

    /// The customer gives another card.
    async fn change_card(&self, card: &str) {
        let (lead, today) = (self.system.deployment.config.billing.policy.lead, self.system.clock.now().date_naive());
        let method =
            PaymentMethod { payment_method: card.parse().unwrap(), ..self.stored().await.payment_method.clone() };
        let changes = Changes { payment_method: Some(method), ..Changes::default() };
        let changed = self.stored().await.change(&changes, lead, today).unwrap();
        self.table().update_subscription(&self.stored().await, &changed).await.unwrap();
    }

    fn disputes(&self) -> Disputes {
        Disputes::new(self.table().clone(), &self.system.deployment.config.billing, self.system.clock.clone())
    }

    /// Each waived period with its reason.
    async fn waived(&self) -> Vec<String> {
        let now = self.system.clock.now();
        let kept = self.table().get_records(&self.gold.account, self.gold.id, now).await.unwrap();
        kept.waived.iter().map(|waived| format!("{} {}", waived.due_on, waived.reason)).collect()
    }

    fn refunds(&self) -> Refunds {
        Refunds::new(self.table().clone(), self.stripe.clone(), self.system.clock.clone())
    }
}

#[tokio::test]
async fn bank_debit_is_settled_when_stripe_tells_and_never_twice() {
    for (card, status, receipts) in
        [("pm_usBankAccount_success", Status::Active, 1), ("pm_usBankAccount_insufficientFunds", Status::PastDue, 0)]
    {
        let world = World::new(card).await;
        assert_eq!(world.run("2026-03-10T06:00:00Z").await, [("processing", 1)]);
        let created = world.server.event("evt_0", "payment_intent.processing", "pi_000001");
        assert_eq!(world.tell(&created).await.unwrap(), Told::Done, "nothing is known yet");
        assert!(world.stored().await.attempt.is_some());
        world.system.clock.set(at("2026-03-12T07:00:00Z"));
        let event = world.server.event("evt_1", "payment_intent.succeeded", "pi_000001");
        assert_eq!(world.tell(&event).await.unwrap(), Told::Done);
        let stored = world.stored().await;
        assert_eq!((stored.status, stored.attempt.is_some()), (status, false), "{card}");
        assert_eq!(world.receipts().await.len(), receipts);
        assert_eq!(world.tell(&event).await.unwrap(), Told::Before);
        let again = world.server.event("evt_2", "payment_intent.succeeded", "pi_000001");
        assert_eq!(world.tell(&again).await.unwrap(), Told::Done);
        assert_eq!(world.stored().await, stored, "told under another name, it comes to the same");
    }
}

#[tokio::test]
async fn event_that_comes_before_our_own_answer_waits_for_it() {
    let world = World::new("pm_card_visa").await;
    // The charge is made, and its answer is lost.
    world.server.next([None, Some(StripeFault::LostAfter)]);
    assert_eq!(world.run("2026-03-10T06:00:00Z").await, [("in_doubt", 1)]);
    let event = world.server.event("evt_1", "payment_intent.succeeded", "pi_000001");
    let held = world.tell(&event).await.unwrap_err();
    assert!(matches!(held, ToldError::Held { .. }) && held.is_transient(), "{held}");
    assert_eq!(world.receipts().await, []);
    world.system.clock.set(at("2026-03-10T08:00:00Z"));
    assert_eq!(world.tell(&event).await.unwrap(), Told::Done);
    assert_eq!(world.receipts().await.len(), 1);
    assert_eq!(world.run("2026-03-11T06:00:00Z").await, []);
    assert_eq!(world.server.intents().len(), 1, "it was charged once");
}

#[tokio::test]
async fn event_of_a_month_that_is_settled_leaves_the_one_that_is_open() {
    let world = World::new("pm_usBankAccount_success").await;
    world.run("2026-03-10T06:00:00Z").await;
    world.system.clock.set(at("2026-03-12T07:00:00Z"));
    world.tell(&world.server.event("evt_1", "payment_intent.succeeded", "pi_000001")).await.unwrap();
    assert_eq!(world.run("2026-04-10T06:00:00Z").await, [("processing", 1)]);
    world.system.clock.set(at("2026-04-10T09:00:00Z"));
    let late = world.server.event("evt_2", "payment_intent.succeeded", "pi_000001");
    assert_eq!(world.tell(&late).await.unwrap(), Told::Done, "April is under way, and March is receipted");
    assert!(world.stored().await.attempt.is_some());
}

#[tokio::test]
async fn card_is_attached_though_the_browser_never_came_back() {
    let world = World::new("pm_card_visa_chargeDeclinedInsufficientFunds").await;
    world.run("2026-03-10T06:00:00Z").await;
    let lead = world.system.deployment.config.billing.policy.lead;
    let setups = Setups::new(world.table().clone(), world.stripe.clone(), lead, world.system.clock.clone());
    let back = |_| "http://127.0.0.1/back".to_owned();
    let setup = setups.open(&sample::account(), None, back).await.unwrap();
    world.table().create_setup(&setup, None).await.unwrap();
    world.system.clock.set(at("2026-03-10T07:00:00Z"));
    let open = world.server.event("evt_1", "checkout.session.completed", setup.page.as_str());
    assert_eq!(world.tell(&open).await.unwrap(), Told::Done, "nothing was given yet, whatever the event says");
    assert_eq!(world.stored().await.status, Status::PastDue);
    let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let given = http.post(&setup.url).header("content-type", "application/x-www-form-urlencoded");
    given.body("payment_method=pm_card_mastercard").send().await.unwrap();
    let event = world.server.event("evt_2", "checkout.session.completed", setup.page.as_str());
    assert_eq!(world.tell(&event).await.unwrap(), Told::Done);
    let stored = world.stored().await;
    assert_eq!(stored.payment_method.payment_method.as_str(), "pm_card_mastercard");
    assert_eq!(stored.next_payment_on, Some("2026-03-10".parse().unwrap()), "what is owed is payable");
}

#[tokio::test]
async fn refund_of_the_dashboard_shows_and_one_that_fails_later_is_taken_back() {
    let world = World::new("pm_card_visa").await;
    world.run("2026-03-10T06:00:00Z").await;
    let refunded = async || world.receipts().await[0].refunded.minor();
    let id = world.server.refund_in_the_dashboard("pi_000001", 500, "pending");
    for (event, status, left) in
        [("evt_1", "pending", 500), ("evt_2", "succeeded", 500), ("evt_3", "failed", 0), ("evt_4", "failed", 0)]
    {
        world.server.refund_comes_to(&id, status);
        let told = world.server.event(event, "refund.updated", &id);
        assert_eq!(world.tell(&told).await.unwrap(), Told::Done, "{status}");
        assert_eq!(refunded().await, left, "{status}");
    }
    // One of ours, which had succeeded.
    let receipt = world.receipts().await.remove(0);
    let ours = Ulid::from_parts(1, 1);
    world.refunds().refund(&receipt.account, &receipt.id(), ours, Some(300)).await.unwrap();
    assert_eq!(refunded().await, 300);
    world.server.refund_comes_to("re_000002", "failed");
    let told = world.server.event("evt_5", "refund.failed", "re_000002");
    assert_eq!(world.tell(&told).await.unwrap(), Told::Done);
    assert_eq!(refunded().await, 0, "it came back from the bank");
    // What was asked for there is not asked for again here.
    let pending = world.server.refund_in_the_dashboard("pi_000001", 200, "pending");
    world.tell(&world.server.event("evt_6", "refund.created", &pending)).await.unwrap();
    let another = Ulid::from_parts(2, 2);
    world.refunds().refund(&receipt.account, &receipt.id(), another, Some(100)).await.unwrap();
    assert_eq!(refunded().await, 300);
}

#[tokio::test]
async fn events_of_others_change_nothing() {
    let world = World::new("pm_card_visa").await;
    world.run("2026-03-10T06:00:00Z").await;
    let before = world.stored().await;
    for event in [
        r#"{"id":"evt_1","object":"event","type":"customer.created","data":{"object":{"id":"cus_1","object":"customer"}}}"#,
        r#"{"id":"evt_2","object":"event","type":"payment_intent.succeeded","data":{"object":{"id":"pi_9","object":"payment_intent"}}}"#,
        r#"{"id":"evt_3","object":"event","type":"refund.created","data":{"object":{"id":"re_9","object":"refund"}}}"#,
        r#"{"id":"evt_4","object":"event","type":"charge.dispute.created","data":{"object":{"id":"dp_9","object":"dispute"}}}"#,
        r#"{"id":"evt_5","object":"event","type":"checkout.session.completed","data":{"object":{"id":"cs_9","object":"checkout.session"}}}"#,
    ] {
        assert_eq!(world.tell(event).await.unwrap(), Told::NotOurs, "{event}");
    }
    assert_eq!(world.stored().await, before);
}

#[tokio::test]
async fn payment_that_contradicts_its_attempt_is_not_receipted() {
    let world = World::new("pm_usBankAccount_success").await;
    world.run("2026-03-10T06:00:00Z").await;
    let dearer = Subscription { price: world.gold.price.currency().price(9_900).unwrap(), ..world.stored().await };
    let attempt = dearer.attempt.clone().map(|open| Attempt { amount: dearer.price, ..open });
    world.table().update_subscription(&world.stored().await, &Subscription { attempt, ..dearer }).await.unwrap();
    world.system.clock.set(at("2026-03-12T07:00:00Z"));
    let event = world.server.event("evt_1", "payment_intent.succeeded", "pi_000001");
    let error = world.tell(&event).await.unwrap_err();
    assert!(matches!(&error, ToldError::NotSettled { .. }) && error.to_string().contains("asked for"), "{error}");
    assert_eq!(world.receipts().await, []);
}

#[tokio::test]
async fn payment_day_that_was_changed_since_finds_its_receipt() {
    let world = World::new("pm_card_visa").await;
    world.run("2026-03-10T06:00:00Z").await;
    let moved = Receipt { due_on: "2026-03-20".parse().unwrap(), ..world.receipts().await.remove(0) };
    // As if the attempt of the 20th was settled by the payment that was asked for on the 10th.
    let mut item = world.system.engine.ask("GetItem", &receipt_key(&world.gold, "2026-03-10")).unwrap()["Item"].clone();
    item["SK"] = receipt_key(&world.gold, "2026-03-20")["Key"]["SK"].clone();
    item["DueDate"] = serde_json::json!({"S": "2026-03-20"});
    world.system.engine.ask("PutItem", &serde_json::json!({"TableName": "dueday", "Item": item})).unwrap();
    world.system.engine.ask("DeleteItem", &receipt_key(&world.gold, "2026-03-10")).unwrap();
    assert_eq!(world.receipts().await, [moved]);
    let event = world.server.event("evt_1", "payment_intent.succeeded", "pi_000001");
    assert_eq!(world.tell(&event).await.unwrap(), Told::Done);
    let id = world.server.refund_in_the_dashboard("pi_000001", 500, "succeeded");
    world.tell(&world.server.event("evt_2", "refund.created", &id)).await.unwrap();
    assert_eq!(world.receipts().await[0].refunded.minor(), 500);
}

fn receipt_key(of: &Subscription, due_on: &str) -> serde_json::Value {
    let sort = format!("REC#{due_on}#SKU#{}#SUB#{}", of.sku, of.id);
    serde_json::json!({"TableName": "dueday", "Key": {"PK": {"S": format!("ACC#{}", of.account)}, "SK": {"S": sort}}})
}

#[tokio::test]
async fn crash_at_any_call_is_mended_by_the_same_event() {
    let cases = [
        ("charge.dispute.created", "dp_000001", "pm_card_visa"),
        ("charge.dispute.closed", "dp_000001", "pm_card_visa"),
        ("refund.updated", "re_000001", "pm_card_visa"),
        ("payment_intent.succeeded", "pi_000001", "pm_usBankAccount_success"),
    ];
    for (kind, of, card) in cases {
        for fault in [Fault::LostBefore, Fault::LostAfter, Fault::CrashBefore, Fault::CrashAfter] {
            let mut calls = 1;
            loop {
                let story = format!("{kind}: {fault:?} of call {calls}");
                let world = World::new(card).await;
                world.run("2026-03-10T06:00:00Z").await;
                world.system.clock.set(at("2026-03-12T07:00:00Z"));
                let status = if kind == "charge.dispute.closed" { "lost" } else { "needs_response" };
                world.server.dispute("pi_000001", status);
                world.server.refund_in_the_dashboard("pi_000001", 500, "succeeded");
                let event = world.server.event("evt_1", kind, of);
                let header = SigningSecrets::parse(SECRET).unwrap().sign(event.as_bytes(), world.system.clock.now());
                let injector = Arc::new(Injector::for_runs(Arc::new(nth(calls, fault))));
                let wired = world.system.over(Arc::new(Wire::through(injector.clone()).and_no_retries()));
                let events = World::events(&world.system, wired.table, &world.stripe);
                let _ = injector.run(events.take(&header, event.as_bytes())).await;
                if injector.calls() < calls {
                    break;
                }
                // It comes again until it is worked on; who was killed may hold the attempt for a while.
                if world.tell(&event).await.is_err() {
                    world.system.clock.set(at("2026-03-12T09:00:00Z"));
                    world.tell(&event).await.unwrap_or_else(|error| panic!("{story}: {error}"));
                }
                let stored = world.stored().await;
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
async fn route_answers_success_only_to_what_is_stripes_and_done() {
    let world = World::new("pm_card_visa").await;
    world.run("2026-03-10T06:00:00Z").await;
    let secrets = SigningSecrets::parse(SECRET).unwrap();
    let (event, now) = (world.server.event("evt_1", "payment_intent.succeeded", "pi_000001"), world.system.clock.now());
    let ask = async |signature: Option<String>, body: &str| {
        let mut request = Request::post("/webhooks/stripe");
        if let Some(signature) = signature {
            request = request.header("Stripe-Signature", signature);
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        routes(world.events.clone()).oneshot(request).await.unwrap().status()
    };
    let signed = |body: &str| Some(secrets.sign(body.as_bytes(), now));
    assert_eq!(ask(None, &event).await, StatusCode::BAD_REQUEST);
    assert_eq!(ask(signed(&event), &event.replace("pi_", "pj_")).await, StatusCode::BAD_REQUEST);
    let old = secrets.sign(event.as_bytes(), now - TimeDelta::seconds(301));
    assert_eq!(ask(Some(old), &event).await, StatusCode::BAD_REQUEST);
    world.server.always(Some(StripeFault::NotBegun));
    assert_eq!(ask(signed(&event), &event).await, StatusCode::SERVICE_UNAVAILABLE, "Stripe sends it again");
    world.server.always(None);
    assert_eq!(ask(signed(&event), &event).await, StatusCode::OK);
    assert_eq!(ask(signed(&event), &event).await, StatusCode::OK);
    assert_eq!(ask(signed("{}"), &"x".repeat(1024 * 1024 + 1)).await, StatusCode::PAYLOAD_TOO_LARGE);
}
