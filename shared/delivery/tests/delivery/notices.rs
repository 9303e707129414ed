//! Notices to customers, from the table's stream to the mail: once, and only what still holds.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use billing::{Changes, LeadDays, PaymentMethod, ReceivedEvent, Subscription, UnreadableEvent};
use chrono::{DateTime, TimeDelta, Utc};
use clock::{Clock as _, SimulatedClock};
use delivery::{Bus, Entry, NoticeError, NoticeOutcome, Notices, Publisher, Refused};
use emulator::{Deployment, Fault, Injector, Operation, Stream, Wire};
use mail::Mail;
use sweep::BatchRequest;
use testkit::{Faulty, InMemory, Letterbox, Script, config, nth, sample};

const DAY: &str = "2026-03-10T06:00:00Z";

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

/// The bus: all events so far.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl Bus for Kept {
    async fn put(&self, entries: &[Entry]) -> Vec<Refused> {
        let mut kept = self.0.lock().unwrap();
        kept.extend(entries.iter().map(|entry| serde_json::to_string(&entry.event).unwrap()));
        Vec::new()
    }
}

async fn notify(notices: &Notices, message: &str) -> Result<NoticeOutcome, NoticeError> {
    notices.notify(&ReceivedEvent::read(message)?).await
}

struct World {
    system: InMemory,
    letterbox: Arc<Letterbox>,
    script: Arc<Script>,
    stream: Stream,
    position: Option<String>,
    bus: Kept,
    notices: Notices,
    gold: Subscription,
}

impl World {
    /// On the day on which the Gold plan is due, with this card.
    async fn new(card: &str) -> Self {
        let (letterbox, script) = (Arc::new(Letterbox::default()), Arc::new(Script::default()));
        let mailer = Arc::new(Faulty::new(letterbox.clone(), Arc::new(Injector::new(script.clone()))));
        let config = config(&[("DUEDAY_SHARDS", "1"), ("DUEDAY_TIME_ZONE", "America/New_York")]).unwrap();
        let system = InMemory::new(config, SimulatedClock::new(at(DAY), 1), mailer).await.unwrap();
        let Deployment { table, .. } = &system.deployment;
        let mut gold = sample::subscription(10, "2026-03-01".parse().unwrap());
        gold.payment_method.payment_method = card.parse().unwrap();
        table.put_account(&sample::account()).await.unwrap();
        table.create_subscription(&gold, None).await.unwrap();
        let stream = system.engine.stream("dueday").unwrap();
        let notices = Self::notices(&system, &system.deployment);
        let mut world = Self { letterbox, script, stream, position: None, bus: Kept::default(), notices, gold, system };
        world.happened().await;
        world
    }

    fn notices(system: &InMemory, deployment: &Deployment) -> Notices {
        let config = &deployment.config;
        let (merchant, clock) = (config.merchant.clone(), system.clock.clone());
        Notices::new(deployment.table.clone(), deployment.mailer.clone(), merchant, config.billing.zone, clock)
    }

    /// What has happened since this was last asked.
    async fn happened(&mut self) -> Vec<String> {
        let batch = self.stream.after(self.position.as_deref(), 1_000).unwrap();
        let last = batch["Records"].as_array().unwrap().last();
        self.position =
            last.map(|last| last["dynamodb"]["SequenceNumber"].as_str().unwrap().to_owned()).or(self.position.take());
        Publisher::new(self.bus.clone()).publish(&batch).await.unwrap();
        std::mem::take(&mut *self.bus.0.lock().unwrap())
    }

    /// The batch at `morning`, and what happened.
    async fn charged(&mut self, morning: &str) -> Vec<String> {
        let now = at(morning);
        self.system.clock.set(now);
        let payments = self.system.deployment.payments().await.unwrap();
        let today = now.with_timezone(&self.system.deployment.config.billing.zone).date_naive();
        payments.run(&BatchRequest::on(today), now + TimeDelta::hours(1)).await.unwrap();
        self.happened().await
    }

    async fn notify(&self, events: &[String]) -> Vec<NoticeOutcome> {
        let mut outcomes = Vec::new();
        for event in events {
            outcomes.push(notify(&self.notices, event).await.unwrap());
        }
        outcomes.retain(|outcome| *outcome != NoticeOutcome::Nothing);
        outcomes
    }

    fn mails(&self) -> Vec<(String, String)> {
        self.letterbox.mails().iter().map(|Mail { occasion, text, .. }| (occasion.to_string(), text.clone())).collect()
    }

    fn occasions(&self) -> Vec<String> {
        self.mails().into_iter().map(|(occasion, _)| occasion).collect()
    }

    async fn changes(&self, change: impl Fn(&Subscription) -> Subscription) {
        let table = &self.system.deployment.table;
        let stored = table.get_subscription(&self.gold.account, self.gold.id).await.unwrap().unwrap();
        table.rewrite_subscription(stored, |stored| Ok::<_, ()>(change(stored))).await.unwrap();
    }

    async fn another_card(&self) {
        let today = self.system.clock.now().date_naive();
        let payment_method =
            PaymentMethod { payment_method: "pm_card_visa".parse().unwrap(), ..self.gold.payment_method.clone() };
        let changes = Changes { payment_method: Some(payment_method), ..Changes::default() };
        self.changes(|stored| stored.change(&changes, LeadDays::default(), today).unwrap()).await;
    }
}

#[tokio::test]
async fn receipt_is_sent_once_however_often_its_event_comes() {
    let mut world = World::new("pm_card_visa").await;
    // Still the ninth in New York.
    assert_eq!(world.charged("2026-03-10T03:00:00Z").await, Vec::<String>::new());
    let events = world.charged("2026-03-11T03:00:00Z").await;
    assert_eq!(world.notify(&events).await, [NoticeOutcome::Sent]);
    assert_eq!(world.notify(&events).await, [NoticeOutcome::SentBefore]);
    let mails = world.mails();
    assert_eq!(mails.len(), 1);
    let (occasion, text) = &mails[0];
    for said in [
        "Gold plan",
        "Amount: €12.99",
        "Date: Tuesday, March 10, 2026",
        "Paid on: Tuesday, March 10, 2026",
        "Receipt: 202603-",
    ] {
        assert!(occasion == "paid" && text.contains(said), "{said}: {text}");
    }
}

#[tokio::test]
async fn customer_whose_card_was_declined_is_told_when_it_is_tried_again_and_at_last_that_it_is_not() {
    let mut world = World::new("pm_card_visa_chargeDeclinedInsufficientFunds").await;
    let mut next = Vec::new();
    for morning in ["2026-03-10", "2026-03-11", "2026-03-13", "2026-03-15", "2026-03-17"] {
        let events = world.charged(&format!("{morning}T12:00:00Z")).await;
        world.notify(&events).await;
        let (_, text) = world.mails().pop().unwrap();
        let line = text.lines().find_map(|line| line.trim().strip_prefix("Next try: ")).unwrap_or("-");
        next.push(line.to_owned());
    }
    let tried = [
        "Wednesday, March 11, 2026",
        "Friday, March 13, 2026",
        "Sunday, March 15, 2026",
        "Tuesday, March 17, 2026",
        "-",
    ];
    assert_eq!(next, tried);
    assert_eq!(world.occasions(), ["failed", "failed", "failed", "failed", "unpaid"]);
}

#[tokio::test]
async fn mail_is_that_of_what_has_happened() {
    for (card, occasion) in [
        ("pm_card_visa_chargeDeclinedLostCard", "unpaid"),
        ("pm_card_authenticationRequired", "card-needed"),
        ("pm_card_visa", "paid"),
    ] {
        let mut world = World::new(card).await;
        let events = world.charged("2026-03-10T12:00:00Z").await;
        world.notify(&events).await;
        assert_eq!(world.occasions(), [occasion], "{card}");
    }
    let mut world = World::new("pm_card_visa").await;
    let today = world.system.clock.now().date_naive();
    world.changes(|stored| stored.cancel(today, world.system.clock.now()).subscription).await;
    let events = world.happened().await;
    world.notify(&events).await;
    assert_eq!(world.occasions(), ["ended"]);
}

#[tokio::test]
async fn what_no_longer_holds_when_its_turn_comes_is_not_told() {
    let mut world = World::new("pm_card_visa_chargeDeclinedLostCard").await;
    let declined = world.charged("2026-03-10T12:00:00Z").await;
    world.another_card().await;
    let paid = world.charged("2026-03-11T12:00:00Z").await;
    world.notify(&declined).await;
    assert_eq!(world.occasions(), Vec::<String>::new(), "it is paid by now");
    world.system.clock.set(at("2026-03-26T12:00:00Z"));
    assert_eq!(world.notify(&paid).await, [], "it may have been sent, and be forgotten");
}

#[tokio::test]
async fn mail_server_that_is_away_delays_a_mail_and_one_that_refuses_it_for_good_ends_it() {
    let mut world = World::new("pm_card_visa").await;
    let events = world.charged("2026-03-10T12:00:00Z").await;
    let paid = events.iter().find(|event| event.contains("\"payment.succeeded\"")).unwrap();
    world.script.add(Operation::SendMail, [Some(Fault::Refused("closed"))]);
    let error = notify(&world.notices, paid).await.unwrap_err();
    assert!(matches!(error, NoticeError::Mail(_)) && error.is_transient(), "{error}");
    assert_eq!(notify(&world.notices, paid).await.unwrap(), NoticeOutcome::Sent, "at once when it comes again");
    assert!(matches!(notify(&world.notices, "{}").await, Err(NoticeError::Unreadable(UnreadableEvent))));
}

#[tokio::test]
async fn notice_is_sent_at_least_once_and_at_most_twice_after_a_fault_at_any_call() {
    for fault in [Fault::LostBefore, Fault::LostAfter, Fault::CrashBefore, Fault::CrashAfter] {
        let mut calls = 1;
        loop {
            let story = format!("{fault:?} of call {calls}");
            let mut world = World::new("pm_card_visa").await;
            let events = world.charged("2026-03-10T12:00:00Z").await;
            let paid = events.iter().find(|event| event.contains("\"payment.succeeded\"")).unwrap();
            let injector = Arc::new(Injector::for_runs(Arc::new(nth(calls, fault))));
            let wired = Deployment {
                mailer: Arc::new(Faulty::new(world.letterbox.clone(), injector.clone())),
                ..world.system.over(Arc::new(Wire::through(injector.clone()).and_no_retries()))
            };
            let disturbed = World::notices(&world.system, &wired);
            let _ = injector.run(notify(&disturbed, paid)).await;
            if injector.calls() < calls {
                break;
            }
            // It comes again when the queue's time is over, and so is the lease.
            world.system.clock.set(at("2026-03-10T12:24:00Z"));
            world.notify(std::slice::from_ref(paid)).await;
            let sent = world.letterbox.mails().len();
            assert!((1..=2).contains(&sent), "{story}: {sent} mails");
            assert_eq!(world.notify(std::slice::from_ref(paid)).await, [NoticeOutcome::SentBefore], "{story}");
            calls += 1;
        }
        assert!(calls > 4, "only {calls} calls");
    }
}

#[tokio::test]
async fn notice_is_sent_by_one_of_two_at_the_same_time() {
    let mut world = World::new("pm_card_visa").await;
    let events = world.charged("2026-03-10T12:00:00Z").await;
    let paid = events.iter().find(|event| event.contains("\"payment.succeeded\"")).unwrap();
    // The first is suspended after its claim.
    let injector = Arc::new(Injector::for_runs(Arc::new(nth(2, Fault::CrashBefore))));
    let wired = world.system.over(Arc::new(Wire::through(injector.clone()).and_no_retries()));
    let _ = injector.run(notify(&World::notices(&world.system, &wired), paid)).await;
    let error = notify(&world.notices, paid).await.unwrap_err();
    assert!(matches!(error, NoticeError::HeldElsewhere { .. }), "{error}");
    assert_eq!(world.letterbox.mails().len(), 0);
}
