//! Gateways as they are: slow, busy, forgetful, contradictory. What they say, or do not say, never doubles a charge.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use billing::{Decline, GatewayAccount, GatewayToken, Payment, PaymentStatus, Status, Subscription};
use chrono::{DateTime, TimeDelta, Utc};
use clock::SimulatedClock;
use emulator::Wire;
use gateways::{
    ChargeAnswer, ChargeRequest, Entry, GatewayError, HttpGateway, KEY_LIFE, Ledger, PaymentGateway, Sandbox,
};
use payments::ChargeDue;
use sweep::{BatchRequest, Sweep};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::world::{World, another, card, counts, date, morning, new_subscription};

const DAY: &str = "2026-03-10";

/// What a gateway does with the next charges, in order; after that, and in look-ups, it is the sandbox.
#[derive(Debug)]
struct Scripted {
    sandbox: Arc<Sandbox>,
    script: Mutex<Vec<Turn>>,
    /// Charges that were asked for.
    asked: AtomicU32,
}

#[derive(Clone, Debug)]
enum Turn {
    /// It makes nothing, and answers so.
    Nothing(ChargeAnswer),
    /// It makes the charge, and answers so.
    Made(ChargeAnswer),
}

impl Scripted {
    fn new(world: &World, script: &[Turn]) -> Arc<Self> {
        let sandbox = Arc::new(Sandbox::new(Ledger::memory(), world.clock.clone()));
        let script = Mutex::new(script.iter().rev().cloned().collect());
        Arc::new(Self { sandbox, script, asked: AtomicU32::new(0) })
    }

    /// The payments it has made and that succeeded: due date and attempt.
    fn succeeded(&self) -> Vec<(String, u32)> {
        let made = self.sandbox.entries().into_iter().filter_map(|entry| match entry {
            Entry::Payment(made) if made.status == PaymentStatus::Succeeded => {
                Some((made.request.due_on.to_string(), made.request.attempt_no))
            }
            _ => None,
        });
        made.collect()
    }
}

#[async_trait]
impl PaymentGateway for Scripted {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        self.sandbox.account().await
    }

    async fn charge(&self, request: &ChargeRequest) -> ChargeAnswer {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let turn = { self.script.lock().unwrap().pop() };
        match turn {
            None => self.sandbox.charge(request).await,
            Some(Turn::Nothing(answer)) => answer,
            Some(Turn::Made(answer)) => {
                self.sandbox.charge(request).await;
                answer
            }
        }
    }

    async fn payments_of(&self, customer: &GatewayToken, since: DateTime<Utc>) -> Result<Vec<Payment>, GatewayError> {
        self.sandbox.payments_of(customer, since).await
    }

    async fn payment(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        self.sandbox.payment(id).await
    }
}

fn unknown(reason: &str) -> ChargeAnswer {
    ChargeAnswer::Unknown { reason: reason.to_owned() }
}

fn throttled() -> ChargeAnswer {
    ChargeAnswer::Throttled { retry_after: Some(Duration::ZERO) }
}

/// A world with one subscription due on [`DAY`], and the gateway `script` makes.
async fn set(script: &[Turn]) -> (World, Subscription, Arc<Scripted>, Sweep<ChargeDue>) {
    let (world, subscription) = (World::new().await, new_subscription(10, "2026-03-01"));
    world.has(&subscription).await;
    let gateway = Scripted::new(&world, script);
    let payments = world.payments_over(Wire::default(), gateway.clone()).await;
    (world, subscription, gateway, payments)
}

fn after(hours: i64) -> DateTime<Utc> {
    morning(DAY) + TimeDelta::hours(hours)
}

#[tokio::test]
async fn look_up_finds_a_charge_that_timed_out_and_it_is_not_charged_again() {
    let (world, subscription, gateway, payments) = set(&[Turn::Made(unknown("timed out"))]).await;
    assert_eq!(counts(&world.charge_by(&payments, DAY, after(0)).await), [("in_doubt", 1)]);
    assert_eq!(counts(&world.charge_by(&payments, DAY, after(2)).await), [("paid", 1)]);
    assert_eq!((gateway.succeeded(), gateway.asked.load(Ordering::Relaxed)), (vec![(DAY.to_owned(), 1)], 1));
    assert_eq!(world.receipts(&subscription).await, [DAY]);
}

#[tokio::test]
async fn charge_answered_500_for_days_ends_in_another_attempt_if_nothing_was_made() {
    let failed = Turn::Nothing(unknown("500, replayed"));
    let (world, subscription, gateway, payments) = set(&vec![failed; 3]).await;
    let days =
        [(DAY, 0, "in_doubt"), (DAY, 2, "in_doubt"), ("2026-03-11", 24, "in_doubt"), ("2026-03-12", 49, "rejected")];
    for (day, hours, expected) in days {
        assert_eq!(counts(&world.charge_by(&payments, day, after(hours)).await), [(expected, 1)], "{day}");
        assert_eq!(gateway.succeeded(), [], "{day}");
    }
    assert_eq!(counts(&world.charge_by(&payments, "2026-03-13", after(72)).await), [("paid", 1)]);
    assert_eq!(gateway.succeeded(), [(DAY.to_owned(), 2)], "under a number of its own, for the day it was due");
    assert_eq!(world.receipts(&subscription).await, [DAY]);
}

#[tokio::test]
async fn look_up_finds_a_charge_that_was_answered_500() {
    let (world, subscription, gateway, payments) = set(&[Turn::Made(unknown("500"))]).await;
    world.charge_by(&payments, DAY, after(0)).await;
    assert_eq!(counts(&world.charge_by(&payments, "2026-03-13", after(72)).await), [("paid", 1)], "however late");
    assert_eq!((gateway.succeeded().len(), world.receipts(&subscription).await.len()), (1, 1));
}

#[tokio::test]
async fn charge_waits_for_a_request_in_progress_under_the_same_key() {
    // The first is lost on its way; the second makes the charge late; both are told that one is in progress.
    let busy = unknown("409: in progress under this key");
    let (world, subscription, gateway, payments) = set(&[Turn::Nothing(busy.clone()), Turn::Made(busy)]).await;
    for (hours, expected) in [(0, "in_doubt"), (2, "in_doubt"), (4, "paid")] {
        assert_eq!(counts(&world.charge_by(&payments, DAY, after(hours)).await), [(expected, 1)], "{hours}");
    }
    assert_eq!((gateway.succeeded().len(), world.receipts(&subscription).await.len()), (1, 1));
}

#[tokio::test]
async fn look_up_knows_a_payment_whose_idempotency_key_is_forgotten() {
    for (turn, charges) in [(Turn::Made(unknown("lost")), 1), (Turn::Nothing(unknown("lost")), 2)] {
        let (world, subscription, gateway, payments) = set(&[turn]).await;
        world.charge_by(&payments, DAY, after(0)).await;
        let late = morning(DAY) + KEY_LIFE + TimeDelta::hours(6);
        assert_eq!(counts(&world.charge_by(&payments, "2026-03-11", late).await), [("paid", 1)]);
        assert_eq!(gateway.asked.load(Ordering::Relaxed), charges);
        assert_eq!((gateway.succeeded(), world.receipts(&subscription).await.len()), (vec![(DAY.to_owned(), 1)], 1));
    }
}

#[tokio::test]
async fn sandbox_forgets_an_idempotency_key_after_a_day() {
    let (world, subscription, gateway, payments) = set(&[Turn::Nothing(unknown("lost"))]).await;
    world.charge_by(&payments, DAY, after(0)).await;
    let stored = world.stored(&subscription).await;
    let request = ChargeRequest::of(&stored, stored.attempt.as_ref().unwrap());
    for (age, payments) in [(TimeDelta::zero(), 1), (KEY_LIFE - TimeDelta::seconds(1), 1), (KEY_LIFE, 2)] {
        gateway.sandbox.charge_at(&request, after(0) + age).unwrap();
        assert_eq!(gateway.succeeded().len(), payments, "{age} after the first");
    }
}

#[tokio::test]
async fn charge_under_a_key_of_other_parameters_is_looked_up_and_then_given_up() {
    for (turn, first, attempts) in
        [(Turn::Nothing(ChargeAnswer::KeyReused), "rejected", 2), (Turn::Made(ChargeAnswer::KeyReused), "paid", 1)]
    {
        let (world, subscription, gateway, payments) = set(&[turn]).await;
        assert_eq!(counts(&world.charge_by(&payments, DAY, after(0)).await), [(first, 1)]);
        world.charge_by(&payments, "2026-03-11", after(24)).await;
        assert_eq!(gateway.succeeded(), [(DAY.to_owned(), attempts)]);
        assert_eq!(world.receipts(&subscription).await, [DAY]);
    }
}

#[tokio::test]
async fn run_gives_way_to_429_answers_and_leaves_nobody_in_doubt() {
    let world = World::new().await;
    for day in 1..=28 {
        world.has(&another(u32::try_from(day).unwrap(), day, "2026-02-28")).await;
    }
    let gateway = Scripted::new(&world, &vec![Turn::Nothing(throttled()); 7]);
    let payments = world.payments_over(Wire::default(), gateway.clone()).await;
    let report = world.charge_by(&payments, "2026-03-28", morning("2026-03-28")).await;
    assert_eq!((counts(&report), report.stopped), (vec![("paid", 28)], None));
    assert_eq!(gateway.succeeded().len(), 28);
}

#[tokio::test]
async fn run_stops_after_many_429_answers_and_the_next_charges_everyone_once() {
    let world = World::new().await;
    for day in 1..=28 {
        world.has(&new_subscription(day, "2026-02-20")).await;
    }
    // Each charge is tried eight times.
    let gateway = Scripted::new(&world, &vec![Turn::Nothing(throttled()); 26 * 8]);
    let payments = world.payments_over(Wire::default(), gateway.clone()).await;
    // What February still owes is due, too.
    let stopped = world.charge_by(&payments, "2026-03-28", morning("2026-03-28")).await;
    let said = "the gateway failed 20 times in a row, the last time: the gateway is asked too often";
    assert_eq!(stopped.stopped.as_deref(), Some(said));
    for (day, hours) in [("2026-03-28", 2), ("2026-03-29", 24), ("2026-03-30", 48), ("2026-03-31", 72)] {
        world.charge_by(&payments, day, morning("2026-03-28") + TimeDelta::hours(hours)).await;
    }
    let mut paid = gateway.succeeded();
    paid.sort();
    paid.dedup_by_key(|(due_on, _)| due_on.clone());
    assert_eq!((paid.len(), gateway.succeeded().len()), (36, 36), "28 of March, and 8 of February");
}

/// A gateway whose answer comes when the lease has lapsed and another run is through with the payment.
#[derive(Debug)]
struct Slow {
    inner: Arc<Scripted>,
    meanwhile: Mutex<Option<Meanwhile>>,
    /// Whether the charge arrives before the other run, or after.
    is_accepted_first: bool,
}

#[derive(Debug)]
struct Meanwhile {
    payments: Sweep<ChargeDue>,
    clock: Arc<SimulatedClock>,
}

#[async_trait]
impl PaymentGateway for Slow {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        self.inner.account().await
    }

    async fn charge(&self, request: &ChargeRequest) -> ChargeAnswer {
        let first = if self.is_accepted_first { Some(self.inner.charge(request).await) } else { None };
        let meanwhile = { self.meanwhile.lock().unwrap().take() };
        if let Some(Meanwhile { payments, clock }) = meanwhile {
            clock.set(after(1));
            let request = BatchRequest::on(date(DAY));
            let report = payments.run(&request, after(2)).await.unwrap();
            assert!(matches!(counts(&report)[..], [("paid" | "declined", 1)]), "{report:?}");
        }
        match first {
            Some(answer) => answer,
            None => self.inner.charge(request).await,
        }
    }

    async fn payments_of(&self, customer: &GatewayToken, since: DateTime<Utc>) -> Result<Vec<Payment>, GatewayError> {
        self.inner.payments_of(customer, since).await
    }

    async fn payment(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        self.inner.payment(id).await
    }
}

#[tokio::test]
async fn charge_answered_or_accepted_after_its_lease_changes_nothing() {
    for (method, outcome) in [("pm_card_visa", "paid"), ("pm_card_visa_chargeDeclined", "declined")] {
        for is_accepted_first in [true, false] {
            let story = format!("{method}, accepted first {is_accepted_first}");
            let world = World::new().await;
            let subscription = Subscription { payment_method: card(method), ..new_subscription(10, "2026-03-01") };
            world.has(&subscription).await;
            let inner = Scripted::new(&world, &[]);
            let payments = world.payments_over(Wire::default(), inner.clone()).await;
            let meanwhile = Mutex::new(Some(Meanwhile { payments, clock: world.clock.clone() }));
            let slow = Arc::new(Slow { inner: inner.clone(), meanwhile, is_accepted_first });
            let late = world.payments_over(Wire::default(), slow).await;
            assert_eq!(counts(&world.charge_by(&late, DAY, after(0)).await), [(outcome, 1)], "{story}");
            assert_eq!(inner.sandbox.entries().len(), 1, "{story}: one charge under one key");
            let stored = world.stored(&subscription).await;
            assert_eq!((stored.attempt, stored.failed_attempts), (None, u32::from(outcome == "declined")), "{story}");
            assert_eq!(world.receipts(&subscription).await.len(), usize::from(outcome == "paid"), "{story}");
        }
    }
}

#[tokio::test]
async fn charge_accepted_after_its_sender_died_is_found_or_replayed() {
    for is_late in [false, true] {
        let (world, subscription, gateway, payments) = set(&[Turn::Nothing(unknown("died"))]).await;
        world.charge_by(&payments, DAY, after(0)).await;
        let stored = world.stored(&subscription).await;
        let request = ChargeRequest::of(&stored, stored.attempt.as_ref().unwrap());
        if !is_late {
            gateway.sandbox.charge(&request).await;
        }
        assert_eq!(counts(&world.charge_by(&payments, DAY, after(2)).await), [("paid", 1)]);
        if is_late {
            let answer = gateway.sandbox.charge(&request).await;
            assert!(matches!(answer, ChargeAnswer::Succeeded(_)), "the first answer again: {answer:?}");
        }
        assert_eq!((gateway.succeeded().len(), world.receipts(&subscription).await.len()), (1, 1));
    }
}

#[tokio::test]
async fn look_up_receipts_a_decline_that_became_a_success_and_the_retry_is_not_made() {
    let declined = ChargeAnswer::Declined(Decline { code: "card_declined".to_owned(), hard: false });
    let (world, subscription, gateway, payments) = set(&[Turn::Made(declined), Turn::Nothing(unknown("lost"))]).await;
    assert_eq!(counts(&world.charge_by(&payments, DAY, after(0)).await), [("declined", 1)]);
    assert_eq!(counts(&world.charge_by(&payments, "2026-03-11", after(24)).await), [("in_doubt", 1)]);
    assert_eq!(counts(&world.charge_by(&payments, "2026-03-11", after(26)).await), [("paid", 1)]);
    assert_eq!(gateway.succeeded(), [(DAY.to_owned(), 1)], "the first attempt's payment counts");
    let stored = world.stored(&subscription).await;
    assert_eq!((stored.status, stored.due_on), (Status::Active, date("2026-04-10")));
    assert_eq!(world.receipts(&subscription).await, [DAY]);
}

/// A gateway that answers every request with `status` and `body`.
async fn answering(status: &'static str, body: &'static str) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut request = [0; 4_096];
            let read = socket.read(&mut request).await.unwrap_or(0);
            // Whose account it is, it says all the same.
            let is_account = request[..read].starts_with(b"GET /v1/account");
            let account = r#"{"Kind":"sandbox","Account":"sandbox_in_memory","Live":false}"#;
            let (status, body) = if is_account { ("200 OK", account) } else { (status, body) };
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nretry-after: 0\r\nconnection: close\r\n\r\n{body}"
            );
            let _ = socket.write_all(answer.as_bytes()).await;
        }
    });
    url
}

#[tokio::test]
async fn run_counts_only_its_own_gateway_failures() {
    let world = World::with(&[("DUEDAY_GATEWAY_FAILURES", "10"), ("DUEDAY_CONCURRENCY", "3")]).await;
    for day in 1..=25 {
        world.has(&new_subscription(day, "2026-02-28")).await;
    }
    let away = Arc::new(HttpGateway::new(&answering("503 Service Unavailable", "").await, Duration::from_secs(5)));
    let payments = world.payments_over(Wire::default(), away).await;
    for hours in [0, 2] {
        let now = morning("2026-03-25") + TimeDelta::hours(hours);
        let report = world.charge_by(&payments, "2026-03-25", now).await;
        let stopped = report.stopped.as_deref().unwrap_or_default();
        assert!(stopped.contains("times in a row"), "after {hours} hours: {stopped:?}");
        // Those of other accounts that had begun meanwhile are ended.
        assert!((10..13).contains(&report.counts.in_doubt), "after {hours} hours: {report:?}");
    }
    let report = world.charge_by(&payments, "2026-03-25", morning("2026-03-25") + TimeDelta::hours(4)).await;
    assert_eq!((report.stopped, report.complete), (None, true), "of the rest, and of look-ups none is too many");
}

const SUCCEEDED_AND_PROCESSING: &str = r#"{"succeeded":{"id":"pay_1","account":"acme","subscription":"0000000001000000000000000A","due_on":"2026-03-10","attempt_no":1,"amount":1299,"currency":"EUR","status":"processing","created_at":"2026-03-10T06:00:00Z"}}"#;

#[tokio::test]
async fn charge_stays_in_doubt_after_any_http_answer_that_is_none() {
    for (status, body, stops) in [
        ("409 Conflict", "{}", false),
        ("429 Too Many Requests", "{}", false),
        ("500 Internal Server Error", "{}", false),
        ("502 Bad Gateway", "<html>", false),
        ("200 OK", "<html>", false),
        ("200 OK", "{\"won\":1}", false),
        // They contradict themselves.
        ("200 OK", r#"{"declined":{"code":"lost_card","hard":true,"status":"succeeded"}}"#, false),
        ("200 OK", r#"{"rejected":{"code":"no_such_card","status":"processing"}}"#, false),
        ("200 OK", SUCCEEDED_AND_PROCESSING, false),
        ("401 Unauthorized", "{}", true),
        ("403 Forbidden", "{}", true),
    ] {
        let (world, subscription) = (World::new().await, new_subscription(10, "2026-03-01"));
        world.has(&subscription).await;
        let url = answering(status, body).await;
        let client = Arc::new(HttpGateway::new(&url, Duration::from_secs(5)));
        let payments = world.payments_over(Wire::default(), client).await;
        let report = world.charge_by(&payments, DAY, after(0)).await;
        assert_eq!((counts(&report), report.stopped.is_some()), (vec![("in_doubt", 1)], stops), "{status} {body}");
        assert!(world.stored(&subscription).await.attempt.is_some(), "{status} {body}: it stays open");
        assert_eq!(counts(&world.charge("2026-03-11").await), [("paid", 1)], "{status} {body}");
    }
}
