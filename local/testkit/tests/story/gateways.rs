//! Tests with gateways that are slow or busy, forget idempotency keys, or contradict themselves: no month is charged
//! twice.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use billing::{
    Attempt, ClaimToken, Decline, GatewayAccount, GatewayToken, Payment, PaymentStatus, Subscription,
    SubscriptionStatus,
};
use chrono::{DateTime, TimeDelta, Utc};
use clock::SimulatedClock;
use emulator::EngineConnection;
use gateways::{ChargeRequest, ChargeResponse, GatewayError, PaymentGateway};
use payments::PaymentBatch;
use sandbox::rules::IDEMPOTENCY_KEY_LIFETIME;
use sandbox::{Ledger, LedgerEntry, Sandbox};
use sweep::{BatchRequest, Sweep};
use ulid::Ulid;

use crate::world::{World, billing_time, card, date, new_subscription, nonzero_counts, numbered_subscription};

/// The day on which the subscriptions of these tests are due.
const DAY: &str = "2026-03-10";

/// A gateway that responds to the first charges as listed in `script`. The sandbox carries out later charges and all
/// look-ups.
#[derive(Debug)]
struct ScriptedGateway {
    sandbox: Arc<Sandbox>,
    /// The remaining reactions to charges, in reverse order: the last element is for the next charge.
    script: Mutex<Vec<ScriptedCharge>>,
    /// The number of charge requests.
    charge_requests: AtomicU32,
}

/// The reaction of [`ScriptedGateway`] to a charge request.
#[derive(Clone, Debug)]
enum ScriptedCharge {
    /// The gateway does not charge, and returns this response.
    NotCharged(ChargeResponse),
    /// The gateway charges, and returns this response.
    Charged(ChargeResponse),
}

impl ScriptedGateway {
    /// Creates a gateway with the reactions `script` to its first charges.
    fn new(world: &World, script: &[ScriptedCharge]) -> Arc<Self> {
        let sandbox = Arc::new(Sandbox::new(Ledger::in_memory(), world.clock.clone()));
        let script = Mutex::new(script.iter().rev().cloned().collect());
        Arc::new(Self { sandbox, script, charge_requests: AtomicU32::new(0) })
    }

    /// Returns the due dates and attempt numbers of all successful payments.
    fn successful_payments(&self) -> Vec<(String, u32)> {
        let payments = self.sandbox.entries().into_iter().filter_map(|entry| match entry {
            LedgerEntry::Payment(payment) if payment.status == PaymentStatus::Succeeded => {
                Some((payment.request.due_on.to_string(), payment.request.attempt_no))
            }
            _ => None,
        });
        payments.collect()
    }
}

#[async_trait]
impl PaymentGateway for ScriptedGateway {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        self.sandbox.account().await
    }

    async fn charge(&self, request: &ChargeRequest) -> ChargeResponse {
        self.charge_requests.fetch_add(1, Ordering::Relaxed);
        let scripted = { self.script.lock().unwrap().pop() };
        match scripted {
            None => self.sandbox.charge(request).await,
            Some(ScriptedCharge::NotCharged(response)) => response,
            Some(ScriptedCharge::Charged(response)) => {
                self.sandbox.charge(request).await;
                response
            }
        }
    }

    async fn payments_of_customer(
        &self,
        customer: &GatewayToken,
        since: DateTime<Utc>,
    ) -> Result<Vec<Payment>, GatewayError> {
        self.sandbox.payments_of_customer(customer, since).await
    }

    async fn payment(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        self.sandbox.payment(id).await
    }
}

/// Returns a response that does not show whether the charge succeeded.
fn unknown_response(reason: &str) -> ChargeResponse {
    ChargeResponse::Unknown { reason: reason.to_owned() }
}

fn throttled_response() -> ChargeResponse {
    ChargeResponse::Throttled { retry_after: Some(Duration::ZERO) }
}

/// Creates a world with one subscription that is due on [`DAY`], a gateway with this `script`, and a payment batch with
/// this gateway.
async fn world_with_scripted_gateway(
    script: &[ScriptedCharge],
) -> (World, Subscription, Arc<ScriptedGateway>, Sweep<PaymentBatch>) {
    let (world, subscription) = (World::new().await, new_subscription(10, "2026-03-01"));
    world.store(&subscription).await;
    let gateway = ScriptedGateway::new(&world, script);
    let payments = world.separate_payment_batch(EngineConnection::default(), gateway.clone()).await;
    (world, subscription, gateway, payments)
}

/// Returns the time `hours` after the billing time of [`DAY`].
fn hours_later(hours: i64) -> DateTime<Utc> {
    billing_time(DAY) + TimeDelta::hours(hours)
}

#[tokio::test]
async fn charge_that_timed_out_is_found_by_look_up_and_not_charged_again() {
    let (world, subscription, gateway, payments) =
        world_with_scripted_gateway(&[ScriptedCharge::Charged(unknown_response("timed out"))]).await;
    assert_eq!(nonzero_counts(&world.run_payment_batch(&payments, DAY, hours_later(0)).await), [("in_doubt", 1)]);
    assert_eq!(nonzero_counts(&world.run_payment_batch(&payments, DAY, hours_later(2)).await), [("paid", 1)]);
    assert_eq!(
        (gateway.successful_payments(), gateway.charge_requests.load(Ordering::Relaxed)),
        (vec![(DAY.to_owned(), 1)], 1)
    );
    assert_eq!(world.receipt_due_dates(&subscription).await, [DAY]);
}

#[tokio::test]
async fn attempt_with_500_responses_and_no_payment_is_replaced_by_a_new_attempt() {
    let failed = ScriptedCharge::NotCharged(unknown_response("500, replayed"));
    let (world, subscription, gateway, payments) = world_with_scripted_gateway(&vec![failed; 3]).await;
    let days =
        [(DAY, 0, "in_doubt"), (DAY, 2, "in_doubt"), ("2026-03-11", 24, "in_doubt"), ("2026-03-12", 49, "rejected")];
    for (day, hours, expected) in days {
        assert_eq!(
            nonzero_counts(&world.run_payment_batch(&payments, day, hours_later(hours)).await),
            [(expected, 1)],
            "{day}"
        );
        assert_eq!(gateway.successful_payments(), [], "{day}");
    }
    assert_eq!(nonzero_counts(&world.run_payment_batch(&payments, "2026-03-13", hours_later(72)).await), [("paid", 1)]);
    assert_eq!(gateway.successful_payments(), [(DAY.to_owned(), 2)], "the second attempt, for the original due date");
    assert_eq!(world.receipt_due_dates(&subscription).await, [DAY]);
}

#[tokio::test]
async fn charge_with_a_500_response_is_found_by_look_up() {
    let (world, subscription, gateway, payments) =
        world_with_scripted_gateway(&[ScriptedCharge::Charged(unknown_response("500"))]).await;
    world.run_payment_batch(&payments, DAY, hours_later(0)).await;
    assert_eq!(
        nonzero_counts(&world.run_payment_batch(&payments, "2026-03-13", hours_later(72)).await),
        [("paid", 1)],
        "the look-up finds the charge also days later"
    );
    assert_eq!((gateway.successful_payments().len(), world.receipt_due_dates(&subscription).await.len()), (1, 1));
}

#[tokio::test]
async fn charge_stays_in_doubt_while_a_request_with_the_same_key_is_in_progress() {
    // The first charge request has no effect, and the second request charges. Both responses state that a request with
    // the same key is in progress.
    let busy = unknown_response("409: in progress under this key");
    let (world, subscription, gateway, payments) =
        world_with_scripted_gateway(&[ScriptedCharge::NotCharged(busy.clone()), ScriptedCharge::Charged(busy)]).await;
    for (hours, expected) in [(0, "in_doubt"), (2, "in_doubt"), (4, "paid")] {
        assert_eq!(
            nonzero_counts(&world.run_payment_batch(&payments, DAY, hours_later(hours)).await),
            [(expected, 1)],
            "{hours}"
        );
    }
    assert_eq!((gateway.successful_payments().len(), world.receipt_due_dates(&subscription).await.len()), (1, 1));
}

#[tokio::test]
async fn look_up_finds_a_payment_whose_idempotency_key_has_expired() {
    // Each case contains the gateway's reaction to the first charge request, and the total number of charge requests.
    for (reaction, charges) in [
        (ScriptedCharge::Charged(unknown_response("lost")), 1),
        (ScriptedCharge::NotCharged(unknown_response("lost")), 2),
    ] {
        let (world, subscription, gateway, payments) = world_with_scripted_gateway(&[reaction]).await;
        world.run_payment_batch(&payments, DAY, hours_later(0)).await;
        let late = billing_time(DAY) + IDEMPOTENCY_KEY_LIFETIME + TimeDelta::hours(6);
        assert_eq!(nonzero_counts(&world.run_payment_batch(&payments, "2026-03-11", late).await), [("paid", 1)]);
        assert_eq!(gateway.charge_requests.load(Ordering::Relaxed), charges);
        assert_eq!(
            (gateway.successful_payments(), world.receipt_due_dates(&subscription).await.len()),
            (vec![(DAY.to_owned(), 1)], 1)
        );
    }
}

#[tokio::test]
async fn idempotency_key_expires_in_the_sandbox_after_a_day() {
    let (world, subscription, gateway, payments) =
        world_with_scripted_gateway(&[ScriptedCharge::NotCharged(unknown_response("lost"))]).await;
    world.run_payment_batch(&payments, DAY, hours_later(0)).await;
    let stored = world.load(&subscription).await;
    let request = ChargeRequest::from_attempt(&stored, stored.attempt.as_ref().unwrap());
    for (age, payments) in
        [(TimeDelta::zero(), 1), (IDEMPOTENCY_KEY_LIFETIME - TimeDelta::seconds(1), 1), (IDEMPOTENCY_KEY_LIFETIME, 2)]
    {
        gateway.sandbox.charge_at(&request, hours_later(0) + age).unwrap();
        assert_eq!(gateway.successful_payments().len(), payments, "{age} after the first charge");
    }
}

#[tokio::test]
async fn attempt_with_a_reused_key_is_looked_up_and_rejected_if_it_was_not_charged() {
    // Each case contains the gateway's reaction to the first charge request, the outcome of the first run, and the
    // number of the successful attempt.
    for (reaction, first, attempts) in [
        (ScriptedCharge::NotCharged(ChargeResponse::KeyReused), "rejected", 2),
        (ScriptedCharge::Charged(ChargeResponse::KeyReused), "paid", 1),
    ] {
        let (world, subscription, gateway, payments) = world_with_scripted_gateway(&[reaction]).await;
        assert_eq!(nonzero_counts(&world.run_payment_batch(&payments, DAY, hours_later(0)).await), [(first, 1)]);
        world.run_payment_batch(&payments, "2026-03-11", hours_later(24)).await;
        assert_eq!(gateway.successful_payments(), [(DAY.to_owned(), attempts)]);
        assert_eq!(world.receipt_due_dates(&subscription).await, [DAY]);
    }
}

#[tokio::test]
async fn month_that_was_paid_twice_is_reported_although_the_key_of_its_attempt_was_reused() {
    // Each response makes the run look the attempt up before it settles the attempt.
    for response in [ChargeResponse::KeyReused, ChargeResponse::Inconclusive { code: "api_error".to_owned() }] {
        let (world, subscription, gateway, payments) =
            world_with_scripted_gateway(&[ScriptedCharge::Charged(response.clone())]).await;
        // The merchant has charged the same month by hand.
        let attempt = Attempt {
            no: 99,
            claim_token: ClaimToken(Ulid::from_parts(9, 9)),
            claimed_at: hours_later(0),
            leased_until: hours_later(1),
            due_on: subscription.due_on,
            amount: subscription.price,
            payment_method: subscription.payment_method.clone(),
            table: None,
        };
        let by_hand = ChargeRequest::from_attempt(&subscription, &attempt);
        gateway.sandbox.charge_at(&by_hand, hours_later(0)).unwrap();
        let report = world.run_payment_batch(&payments, DAY, hours_later(0)).await;
        assert_eq!(nonzero_counts(&report), [("failed", 1)], "{response:?}");
        let reason = &report.failures[0].reason;
        assert!(reason.starts_with("2026-03 was paid more than once, by pay_"), "{reason}");
        assert_eq!(world.receipt_due_dates(&subscription).await, [DAY]);
    }
}

#[tokio::test]
async fn run_retries_after_429_responses_and_leaves_no_attempt_in_doubt() {
    let world = World::new().await;
    for day in 1..=28 {
        world.store(&numbered_subscription(u32::try_from(day).unwrap(), day, "2026-02-28")).await;
    }
    let gateway = ScriptedGateway::new(&world, &vec![ScriptedCharge::NotCharged(throttled_response()); 7]);
    let payments = world.separate_payment_batch(EngineConnection::default(), gateway.clone()).await;
    let report = world.run_payment_batch(&payments, "2026-03-28", billing_time("2026-03-28")).await;
    assert_eq!((nonzero_counts(&report), report.stopped), (vec![("paid", 28)], None));
    assert_eq!(gateway.successful_payments().len(), 28);
}

#[tokio::test]
async fn run_stops_after_many_429_responses_and_later_runs_charge_each_month_once() {
    let world = World::new().await;
    for day in 1..=28 {
        world.store(&new_subscription(day, "2026-02-20")).await;
    }
    // The run sends each charge request up to eight times.
    let gateway = ScriptedGateway::new(&world, &vec![ScriptedCharge::NotCharged(throttled_response()); 26 * 8]);
    let payments = world.separate_payment_batch(EngineConnection::default(), gateway.clone()).await;
    // The eight payments with the payment days 21 to 28 are owed for February, too.
    let stopped = world.run_payment_batch(&payments, "2026-03-28", billing_time("2026-03-28")).await;
    let expected = "the gateway failed 20 times in a row, the last error: the gateway refused the request because too many requests were sent";
    assert_eq!(stopped.stopped.as_deref(), Some(expected));
    for (day, hours) in [("2026-03-28", 2), ("2026-03-29", 24), ("2026-03-30", 48), ("2026-03-31", 72)] {
        world.run_payment_batch(&payments, day, billing_time("2026-03-28") + TimeDelta::hours(hours)).await;
    }
    let mut paid = gateway.successful_payments();
    paid.sort();
    paid.dedup_by_key(|(due_on, _)| due_on.clone());
    assert_eq!((paid.len(), gateway.successful_payments().len()), (36, 36), "28 payments of March and 8 of February");
}

/// A gateway whose first response to a charge is late: before the response arrives, the lease expires and another run
/// settles the payment.
#[derive(Debug)]
struct SlowGateway {
    inner: Arc<ScriptedGateway>,
    /// The run that takes place during the first charge; `None` after the first charge.
    other_run: Mutex<Option<ConcurrentRun>>,
    /// Whether the gateway makes the slow charge before `other_run` (true) or after `other_run` (false).
    is_charged_first: bool,
}

/// A payment run that takes place during a slow charge. The run starts an hour after the billing time.
#[derive(Debug)]
struct ConcurrentRun {
    payments: Sweep<PaymentBatch>,
    clock: Arc<SimulatedClock>,
}

#[async_trait]
impl PaymentGateway for SlowGateway {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        self.inner.account().await
    }

    async fn charge(&self, request: &ChargeRequest) -> ChargeResponse {
        let response = if self.is_charged_first { Some(self.inner.charge(request).await) } else { None };
        let other_run = { self.other_run.lock().unwrap().take() };
        if let Some(ConcurrentRun { payments, clock }) = other_run {
            clock.set(hours_later(1));
            let request = BatchRequest::for_date(date(DAY));
            let report = payments.run(&request, hours_later(2)).await.unwrap();
            assert!(matches!(nonzero_counts(&report)[..], [("paid" | "declined", 1)]), "{report:?}");
        }
        match response {
            Some(response) => response,
            None => self.inner.charge(request).await,
        }
    }

    async fn payments_of_customer(
        &self,
        customer: &GatewayToken,
        since: DateTime<Utc>,
    ) -> Result<Vec<Payment>, GatewayError> {
        self.inner.payments_of_customer(customer, since).await
    }

    async fn payment(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        self.inner.payment(id).await
    }
}

#[tokio::test]
async fn charge_or_response_after_the_lease_has_expired_changes_nothing() {
    for (method, outcome) in [("pm_card_visa", "paid"), ("pm_card_visa_chargeDeclined", "declined")] {
        for is_charged_first in [true, false] {
            let case = format!("{method}, charged first {is_charged_first}");
            let world = World::new().await;
            let subscription = Subscription { payment_method: card(method), ..new_subscription(10, "2026-03-01") };
            world.store(&subscription).await;
            let inner = ScriptedGateway::new(&world, &[]);
            let payments = world.separate_payment_batch(EngineConnection::default(), inner.clone()).await;
            let other_run = Mutex::new(Some(ConcurrentRun { payments, clock: world.clock.clone() }));
            let slow = Arc::new(SlowGateway { inner: inner.clone(), other_run, is_charged_first });
            let slow_batch = world.separate_payment_batch(EngineConnection::default(), slow).await;
            let report = world.run_payment_batch(&slow_batch, DAY, hours_later(0)).await;
            assert_eq!(nonzero_counts(&report), [(outcome, 1)], "{case}");
            assert_eq!(inner.sandbox.entries().len(), 1, "{case}: one charge for the idempotency key");
            let stored = world.load(&subscription).await;
            assert_eq!((stored.attempt, stored.failed_attempts), (None, u32::from(outcome == "declined")), "{case}");
            assert_eq!(world.receipt_due_dates(&subscription).await.len(), usize::from(outcome == "paid"), "{case}");
        }
    }
}

#[tokio::test]
async fn charge_made_after_its_worker_was_killed_is_found_or_not_repeated() {
    for is_charged_late in [false, true] {
        let (world, subscription, gateway, payments) =
            world_with_scripted_gateway(&[ScriptedCharge::NotCharged(unknown_response("died"))]).await;
        world.run_payment_batch(&payments, DAY, hours_later(0)).await;
        let stored = world.load(&subscription).await;
        let request = ChargeRequest::from_attempt(&stored, stored.attempt.as_ref().unwrap());
        if !is_charged_late {
            gateway.sandbox.charge(&request).await;
        }
        assert_eq!(nonzero_counts(&world.run_payment_batch(&payments, DAY, hours_later(2)).await), [("paid", 1)]);
        if is_charged_late {
            let response = gateway.sandbox.charge(&request).await;
            assert!(matches!(response, ChargeResponse::Succeeded(_)), "the key's stored response: {response:?}");
        }
        assert_eq!((gateway.successful_payments().len(), world.receipt_due_dates(&subscription).await.len()), (1, 1));
    }
}

#[tokio::test]
async fn decline_that_became_a_success_gets_a_receipt_instead_of_a_retry() {
    let declined = ChargeResponse::Declined(Decline { code: "card_declined".to_owned(), hard: false });
    let (world, subscription, gateway, payments) = world_with_scripted_gateway(&[
        ScriptedCharge::Charged(declined),
        ScriptedCharge::NotCharged(unknown_response("lost")),
    ])
    .await;
    assert_eq!(nonzero_counts(&world.run_payment_batch(&payments, DAY, hours_later(0)).await), [("declined", 1)]);
    assert_eq!(
        nonzero_counts(&world.run_payment_batch(&payments, "2026-03-11", hours_later(24)).await),
        [("in_doubt", 1)]
    );
    assert_eq!(nonzero_counts(&world.run_payment_batch(&payments, "2026-03-11", hours_later(26)).await), [("paid", 1)]);
    assert_eq!(gateway.successful_payments(), [(DAY.to_owned(), 1)], "only the payment of the first attempt");
    let stored = world.load(&subscription).await;
    assert_eq!((stored.status, stored.due_on), (SubscriptionStatus::Active, date("2026-04-10")));
    assert_eq!(world.receipt_due_dates(&subscription).await, [DAY]);
}
