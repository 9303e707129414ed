//! Tests of notices, from the change stream of the table to the mail: each notice is sent once, and only if its content
//! is still true.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use billing::{
    LeadDays, MailStatus, PaymentMethod, ReceivedEvent, Refund, RefundStatus, RequestedAmount, Subscription,
    SubscriptionChanges, UnreadableEvent,
};
use chrono::{DateTime, TimeDelta, Utc};
use clock::{Clock as _, SimulatedClock};
use deployment::{Deployment, FaultyService, InMemoryDeployment};
use emulator::{EngineConnection, ExternalOperation, Fault, FaultInjector, TableStream};
use gateway_objects::RefundRequester;
use mail::{Mail, MailFault};
use notices::{CustomerNotifier, NoticeError, NoticeOutcome};
use publishing::{BusEntry, EventBus, FailedEntry, Publisher};
use store::Paging;
use sweep::BatchRequest;
use testkit::{
    FAULTS_AT_EACH_CALL, FaultScript, RecordedMails, fault_at_call, read_test_config, sample_account,
    sample_subscription,
};
use ulid::Ulid;

/// 06:00 UTC on the due date of the subscription.
const DUE_DAY_MORNING: &str = "2026-03-10T06:00:00Z";

/// Parses the time `text`, such as `2026-03-10T06:00:00Z`.
fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

/// A bus that records the JSON of all published events.
#[derive(Clone, Default)]
struct RecordingBus(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl EventBus for RecordingBus {
    async fn publish_entries(&self, entries: &[BusEntry]) -> Vec<FailedEntry> {
        let mut recorded = self.0.lock().unwrap();
        recorded.extend(entries.iter().map(|entry| serde_json::to_string(&entry.event).unwrap()));
        Vec::new()
    }
}

/// Reads the event in the queue message `message`, and sends the notice about this event.
async fn process_message(notices: &CustomerNotifier, message: &str) -> Result<NoticeOutcome, NoticeError> {
    notices.notify(&ReceivedEvent::read(message)?).await
}

/// The environment of the tests: a deployment in memory with one subscription, its change stream, and the mails that
/// were sent.
pub(crate) struct World {
    pub system: InMemoryDeployment,
    pub mailbox: Arc<RecordedMails>,
    script: Arc<FaultScript>,
    stream: TableStream,
    /// The sequence number of the last stream record whose events were published.
    position: Option<String>,
    bus: RecordingBus,
    pub notices: CustomerNotifier,
    /// The subscription to the Gold plan, as it was created.
    pub gold: Subscription,
}

impl World {
    /// Creates a world at 06:00 UTC on the day on which the subscription to the Gold plan is due, to be charged to
    /// `card`.
    pub async fn new(card: &str) -> Self {
        let mut gold = sample_subscription(10, "2026-03-01".parse().unwrap());
        gold.payment_method.payment_method = card.parse().unwrap();
        Self::with_subscription(gold, &[("DUEDAY_SHARDS", "1"), ("DUEDAY_TIME_ZONE", "America/New_York")]).await
    }

    /// Creates a world at 06:00 UTC on 10 March 2026 with the subscription `gold` and the environment variables
    /// `variables`.
    pub async fn with_subscription(gold: Subscription, variables: &[(&'static str, &str)]) -> Self {
        let (mailbox, script) = (Arc::new(RecordedMails::default()), Arc::new(FaultScript::default()));
        let mailer = Arc::new(FaultyService::new(mailbox.clone(), Arc::new(FaultInjector::new(script.clone()))));
        let config = read_test_config(variables).unwrap();
        let system =
            InMemoryDeployment::new(config, SimulatedClock::new(at(DUE_DAY_MORNING), 1), mailer).await.unwrap();
        let Deployment { table, .. } = &system.deployment;
        table.put_account(&sample_account()).await.unwrap();
        table.create_subscription(&gold, None).await.unwrap();
        let stream = system.engine.stream("dueday").unwrap();
        let notices = Self::notices(&system, &system.deployment);
        let bus = RecordingBus::default();
        let mut world = Self { mailbox, script, stream, position: None, bus, notices, gold, system };
        world.publish_new_events().await;
        world
    }

    /// Creates a sender of notices with the table and the mailer of `deployment`, and the clock of `system`.
    pub fn notices(system: &InMemoryDeployment, deployment: &Deployment) -> CustomerNotifier {
        let config = &deployment.config;
        let (merchant, clock) = (config.merchant.clone(), system.clock.clone());
        CustomerNotifier::new(deployment.table.clone(), deployment.mailer.clone(), merchant, clock)
    }

    /// Publishes and returns the events of all changes since the last call.
    pub async fn publish_new_events(&mut self) -> Vec<String> {
        let batch = self.stream.records_after(self.position.as_deref(), 1_000).unwrap();
        let last = batch["Records"].as_array().unwrap().last();
        self.position =
            last.map(|last| last["dynamodb"]["SequenceNumber"].as_str().unwrap().to_owned()).or(self.position.take());
        Publisher::new(self.bus.clone()).publish(&batch).await.unwrap();
        std::mem::take(&mut *self.bus.0.lock().unwrap())
    }

    /// Runs the payment batch at `time`, and returns the new events.
    pub async fn run_payments(&mut self, time: &str) -> Vec<String> {
        self.system.clock.set(at(time));
        self.charge_due_payments().await;
        self.publish_new_events().await
    }

    /// Runs the payment batch at the present time.
    pub async fn charge_due_payments(&self) {
        let (deployment, now) = (&self.system.deployment, self.system.clock.now());
        let today = deployment.table.policy().date_at(now);
        let payments = deployment.payment_batch().await.unwrap();
        payments.run(&BatchRequest::for_date(today), now + TimeDelta::hours(1)).await.unwrap();
    }

    /// Processes `events` as the notices function does. Returns the outcomes except [`NoticeOutcome::NotNeeded`].
    pub async fn notify(&self, events: &[String]) -> Vec<NoticeOutcome> {
        let mut outcomes = Vec::new();
        for event in events {
            outcomes.push(process_message(&self.notices, event).await.unwrap());
        }
        outcomes.retain(|outcome| *outcome != NoticeOutcome::NotNeeded);
        outcomes
    }

    /// Returns the kind and the text of each mail sent so far.
    pub fn mails(&self) -> Vec<(String, String)> {
        self.mailbox.mails().iter().map(|Mail { kind, text, .. }| (kind.to_string(), text.clone())).collect()
    }

    /// Returns the kind of each mail sent so far.
    pub fn mail_kinds(&self) -> Vec<String> {
        self.mails().into_iter().map(|(kind, _)| kind).collect()
    }

    /// Stores the result of `change` in place of the subscription to the Gold plan.
    pub async fn change_subscription(&self, change: impl Fn(&Subscription) -> Subscription) {
        let table = &self.system.deployment.table;
        let stored = table.get_subscription(&self.gold.account, self.gold.id).await.unwrap().unwrap();
        table.rewrite_subscription(stored, |stored| Ok::<_, ()>(change(stored))).await.unwrap();
    }

    /// Gives the subscription to the Gold plan a card that can be charged.
    pub async fn replace_card(&self) {
        let today = self.system.clock.now().date_naive();
        let payment_method =
            PaymentMethod { payment_method: "pm_card_visa".parse().unwrap(), ..self.gold.payment_method.clone() };
        let changes = SubscriptionChanges { payment_method: Some(payment_method), ..SubscriptionChanges::default() };
        self.change_subscription(|stored| stored.apply_changes(&changes, LeadDays::default(), today).unwrap()).await;
    }
}

#[tokio::test]
async fn disabled_receipt_mail_causes_no_table_request() {
    let mut world = World::new("pm_card_visa").await;
    let events = world.run_payments("2026-03-11T03:00:00Z").await;
    let paid: Vec<&String> = events.iter().filter(|event| event.contains("\"payment.succeeded\"")).collect();
    assert_eq!(paid.len(), 1);
    let connection = Arc::new(EngineConnection::default());
    let mut deployment = world.system.with_connection(connection.clone());
    deployment.config.merchant.unsent_mails = [mail::MailKind::Paid].into();
    let notices = World::notices(&world.system, &deployment);
    assert_eq!(process_message(&notices, paid[0]).await.unwrap(), NoticeOutcome::NotNeeded);
    assert_eq!((connection.request_counts().len(), world.mails().len()), (0, 0), "{:?}", connection.request_counts());
}

#[tokio::test]
async fn receipt_is_sent_once_even_if_its_event_is_redelivered() {
    let mut world = World::new("pm_card_visa").await;
    // No payment is charged yet: it is still March 9 in New York, the billing time zone.
    assert_eq!(world.run_payments("2026-03-10T03:00:00Z").await, Vec::<String>::new());
    let events = world.run_payments("2026-03-11T03:00:00Z").await;
    assert_eq!(world.notify(&events).await, [NoticeOutcome::Sent]);
    assert_eq!(world.notify(&events).await, [NoticeOutcome::AlreadySent]);
    let mails = world.mails();
    assert_eq!(mails.len(), 1);
    let (kind, text) = &mails[0];
    for expected in [
        "Gold plan",
        "Amount: €12.99",
        "Due date: Tuesday, March 10, 2026",
        "Paid on: Tuesday, March 10, 2026",
        "Card: Visa •••• 4242",
        "Month: March 2026",
        "Receipt: 202603-",
    ] {
        assert!(kind == "paid" && text.contains(expected), "{expected}: {text}");
    }
}

#[tokio::test]
async fn each_decline_notice_states_the_next_attempt_and_the_last_notice_says_unpaid() {
    let mut world = World::new("pm_card_visa_chargeDeclinedInsufficientFunds").await;
    let mut next_attempts = Vec::new();
    for morning in ["2026-03-10", "2026-03-11", "2026-03-13", "2026-03-15", "2026-03-17"] {
        let events = world.run_payments(&format!("{morning}T12:00:00Z")).await;
        world.notify(&events).await;
        let (_, text) = world.mails().pop().unwrap();
        let line = text.lines().find_map(|line| line.trim().strip_prefix("Next attempt: ")).unwrap_or("-");
        next_attempts.push(line.to_owned());
    }
    let expected = [
        "Wednesday, March 11, 2026",
        "Friday, March 13, 2026",
        "Sunday, March 15, 2026",
        "Tuesday, March 17, 2026",
        "-",
    ];
    assert_eq!(next_attempts, expected);
    assert_eq!(world.mail_kinds(), ["failed", "failed", "failed", "failed", "unpaid"]);
}

#[tokio::test]
async fn customer_gets_the_kind_of_mail_that_matches_the_event() {
    for (card, kind) in [
        ("pm_card_visa_chargeDeclinedLostCard", "unpaid"),
        ("pm_card_authenticationRequired", "card-needed"),
        ("pm_card_visa", "paid"),
    ] {
        let mut world = World::new(card).await;
        let events = world.run_payments("2026-03-10T12:00:00Z").await;
        world.notify(&events).await;
        assert_eq!(world.mail_kinds(), [kind], "{card}");
    }
    let mut world = World::new("pm_card_visa").await;
    let today = world.system.clock.now().date_naive();
    world.change_subscription(|stored| stored.cancel(today, world.system.clock.now()).subscription).await;
    let events = world.publish_new_events().await;
    world.notify(&events).await;
    assert_eq!(world.mail_kinds(), ["ended"]);
}

#[tokio::test]
async fn outdated_notice_is_not_sent() {
    let mut world = World::new("pm_card_visa_chargeDeclinedLostCard").await;
    let declined = world.run_payments("2026-03-10T12:00:00Z").await;
    world.replace_card().await;
    let mut paid = world.run_payments("2026-03-11T12:00:00Z").await;
    // Use only the event `payment.succeeded`: the other events contain the time of the change stream, which is the real
    // time and not the simulated time.
    paid.retain(|event| event.contains("\"payment.succeeded\""));
    world.notify(&declined).await;
    assert_eq!(world.mail_kinds(), Vec::<String>::new(), "the payment was made since the decline");
    world.system.clock.set(at("2026-03-26T12:00:00Z"));
    assert_eq!(
        world.notify(&paid).await,
        [],
        "an event older than 14 days sends no notice, because the mark of a sent notice may have expired"
    );
}

#[tokio::test]
async fn mail_that_failed_temporarily_is_sent_on_the_next_try() {
    let mut world = World::new("pm_card_visa").await;
    let events = world.run_payments("2026-03-10T12:00:00Z").await;
    let paid = events.iter().find(|event| event.contains("\"payment.succeeded\"")).unwrap();
    world.script.add(ExternalOperation::SendMail, [Some(Fault::Refused("closed"))]);
    let error = process_message(&world.notices, paid).await.unwrap_err();
    assert!(matches!(error, NoticeError::Mail(_)) && error.is_transient(), "{error}");
    assert_eq!(
        process_message(&world.notices, paid).await.unwrap(),
        NoticeOutcome::Sent,
        "the next try sends the notice at once"
    );
    assert!(matches!(process_message(&world.notices, "{}").await, Err(NoticeError::Unreadable(UnreadableEvent))));
}

#[tokio::test]
async fn notice_to_an_address_that_accepts_no_mail_is_undeliverable_and_marks_the_account() {
    let mut world = World::new("pm_card_visa").await;
    let events = world.run_payments("2026-03-10T12:00:00Z").await;
    world.mailbox.refuse_mails_to("billing@acme.example.com", MailFault::RecipientPermanent);
    assert_eq!(world.notify(&events).await, [NoticeOutcome::Undeliverable]);
    let account = world.system.deployment.table.get_account(&world.gold.account).await.unwrap().unwrap();
    assert_eq!(account.mail_status, MailStatus::Bounced);
    world.mailbox.refuse_mails_to("billing@acme.example.com", None);
    assert_eq!(world.notify(&events).await, [NoticeOutcome::AlreadySent], "the notice is finished");
}

#[tokio::test]
async fn notice_whose_recipient_does_not_accept_it_now_stays_in_the_queue_alone() {
    let mut world = World::new("pm_card_visa").await;
    let events = world.run_payments("2026-03-10T12:00:00Z").await;
    let paid = events.iter().find(|event| event.contains("\"payment.succeeded\"")).unwrap();
    for (fault, concerns_only_recipient) in
        [(MailFault::RecipientTransient, true), (MailFault::ServiceTransient, false), (MailFault::Settings, false)]
    {
        world.mailbox.refuse_mails_to("billing@acme.example.com", fault);
        let error = process_message(&world.notices, paid).await.unwrap_err();
        assert_eq!((error.concerns_only_recipient(), error.is_transient()), (concerns_only_recipient, true), "{error}");
    }
    let account = world.system.deployment.table.get_account(&world.gold.account).await.unwrap().unwrap();
    assert_eq!(account.mail_status, MailStatus::Deliverable);
    world.mailbox.refuse_mails_to("billing@acme.example.com", None);
    assert_eq!(process_message(&world.notices, paid).await.unwrap(), NoticeOutcome::Sent);
}

#[tokio::test]
async fn notice_is_sent_at_least_once_and_at_most_twice_after_a_fault_at_any_call() {
    for fault in FAULTS_AT_EACH_CALL {
        let mut calls = 1;
        loop {
            let scenario = format!("{fault:?} at call {calls}");
            let mut world = World::new("pm_card_visa").await;
            let events = world.run_payments("2026-03-10T12:00:00Z").await;
            let paid = events.iter().find(|event| event.contains("\"payment.succeeded\"")).unwrap();
            let injector = Arc::new(FaultInjector::active_during_runs(Arc::new(fault_at_call(calls, fault))));
            let deployment = Deployment {
                mailer: Arc::new(FaultyService::new(world.mailbox.clone(), injector.clone())),
                ..world
                    .system
                    .with_connection(Arc::new(EngineConnection::with_injector(injector.clone()).without_retries()))
            };
            let faulty_notices = World::notices(&world.system, &deployment);
            let _ = injector.run(process_message(&faulty_notices, paid)).await;
            if injector.call_count() < calls {
                break;
            }
            // The queue delivers the message again after its visibility timeout. By then, the lease of the killed
            // worker's claim has expired.
            world.system.clock.set(at("2026-03-10T12:24:00Z"));
            world.notify(std::slice::from_ref(paid)).await;
            let sent = world.mailbox.mails().len();
            assert!((1..=2).contains(&sent), "{scenario}: {sent} mails");
            assert_eq!(world.notify(std::slice::from_ref(paid)).await, [NoticeOutcome::AlreadySent], "{scenario}");
            calls += 1;
        }
        assert!(calls > 4, "sending the notice took only {calls} calls");
    }
}

#[tokio::test]
async fn notice_that_another_worker_claimed_is_not_sent() {
    let mut world = World::new("pm_card_visa").await;
    let events = world.run_payments("2026-03-10T12:00:00Z").await;
    let paid = events.iter().find(|event| event.contains("\"payment.succeeded\"")).unwrap();
    // The first worker reads the policy and claims the notice. It is killed before it sends the mail.
    let injector = Arc::new(FaultInjector::active_during_runs(Arc::new(fault_at_call(3, Fault::CrashBefore))));
    let deployment =
        world.system.with_connection(Arc::new(EngineConnection::with_injector(injector.clone()).without_retries()));
    let _ = injector.run(process_message(&World::notices(&world.system, &deployment), paid)).await;
    let error = process_message(&world.notices, paid).await.unwrap_err();
    assert!(matches!(error, NoticeError::ClaimedByOther { .. }), "{error}");
    assert_eq!(world.mailbox.mails().len(), 0);
}

#[tokio::test]
async fn refund_is_mailed_and_a_late_receipt_of_a_refunded_payment_is_not() {
    let mut world = World::new("pm_card_visa").await;
    let paid = world.run_payments(DUE_DAY_MORNING).await;
    let table = &world.system.deployment.table;
    let receipts = table.get_receipts_by_account(&world.gold.account, &Paging::all(), at(DUE_DAY_MORNING)).await;
    let receipt = receipts.unwrap().items.remove(0);
    let refunds = RefundRequester::new(table.clone(), world.system.sandbox.clone(), world.system.clock.clone());
    refunds.refund(&receipt.account, &receipt.id(), Ulid(1), Some(500), None).await.unwrap();
    let partly = world.publish_new_events().await;
    assert_eq!(world.notify(&partly).await, [NoticeOutcome::Sent]);
    let (kind, text) = world.mails().remove(0);
    assert_eq!(kind, "refunded");
    assert!(text.contains("We refunded €5.00.") && text.contains(&receipt.number().to_string()), "{text}");

    refunds.refund(&receipt.account, &receipt.id(), Ulid(2), None, None).await.unwrap();
    let fully = world.publish_new_events().await;
    assert_eq!(world.notify(&fully).await, [NoticeOutcome::Sent]);
    assert_eq!(world.notify(&paid).await, [], "the mail would thank for a payment that was refunded");
    assert_eq!(world.mail_kinds(), ["refunded", "refunded"]);
}

#[tokio::test]
async fn pending_refund_of_the_whole_amount_does_not_hold_back_the_receipt() {
    let mut world = World::new("pm_card_visa").await;
    let paid = world.run_payments(DUE_DAY_MORNING).await;
    let table = &world.system.deployment.table;
    let receipts = table.get_receipts_by_account(&world.gold.account, &Paging::all(), at(DUE_DAY_MORNING)).await;
    let receipt = receipts.unwrap().items.remove(0);
    let now = at(DUE_DAY_MORNING);
    let pending = Refund {
        id: Ulid(1),
        account: receipt.account.clone(),
        receipt: receipt.id(),
        payment: receipt.payment.clone(),
        amount: receipt.amount,
        requested: Some(RequestedAmount::Remainder),
        status: RefundStatus::Pending,
        gateway_refund: None,
        code: None,
        created_at: now,
        leased_until: now,
        settled_at: None,
        expires: now.timestamp() + 86_400,
        version: 1,
    };
    assert!(table.reserve_refund(&pending, &receipt, None, None).await.unwrap());

    assert_eq!(world.notify(&paid).await, [NoticeOutcome::Sent], "the customer has paid, and has nothing back yet");
    let (kind, text) = world.mails().remove(0);
    assert_eq!(kind, "paid");
    assert!(!text.contains("refund"), "a pending refund may fail: {text}");
}
