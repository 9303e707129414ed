//! The tasks that the actors of a simulation execute: batch runs, API requests, event deliveries and operator actions.

use std::rc::Rc;

use billing::{GatewayToken, Payment, PaymentStatus};
use charging::StatedOutcome;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use clock::Clock as _;
use rand::Rng as _;
use serde_json::{Value, json};
use store::RunCounts;
use sweep::{BatchRequest, BatchTask, Outcome, RunReport, Sweep, SweepError};

use super::process::SimulatedProcess;
use super::world::SimulatedWorld;
use crate::calendar::month_of;
use crate::oracle::{ActorRole, CompletedRun, CustomerAction, RequestOutcome};
use crate::schedule::ActorId;
use crate::simulated_gateway::GatewayEvent;
use crate::stored_items::SubscriptionName;

/// The time limits of one invocation of a batch: first the limit on AWS, then the limit in a local installation. On
/// AWS, 5 seconds are reserved for the end of the invocation.
const INVOCATION_TIME_LIMITS: [TimeDelta; 2] = [TimeDelta::seconds(15 * 60 - 5), TimeDelta::minutes(60)];
/// The maximum number of invocations of a run. Each invocation continues where the previous invocation ended.
const MAX_INVOCATIONS: u32 = 30;
/// The maximum number of times that the same request is sent.
const MAX_TRIES: u32 = 4;

/// Executes a run of the payment batch for `date`.
pub async fn run_payments(world: Rc<SimulatedWorld>, process: Rc<SimulatedProcess>, date: NaiveDate) {
    run_sweep(&world, &process, &process.payments, ActorRole::Payments, date).await;
}

/// Executes a run of the reminder batch for `date`.
pub async fn run_reminders(world: Rc<SimulatedWorld>, process: Rc<SimulatedProcess>, date: NaiveDate) {
    run_sweep(&world, &process, &process.reminders, ActorRole::Reminders, date).await;
}

/// Executes a run of `sweep` for `date` with one or more invocations, and reports a complete run to the oracle.
async fn run_sweep<T: BatchTask>(
    world: &SimulatedWorld,
    process: &SimulatedProcess,
    sweep: &Sweep<T>,
    role: ActorRole,
    date: NaiveDate,
) {
    let started_at = world.clock.now();
    let mut next = None;
    let mut rows_left = 0;
    for _ in 0..MAX_INVOCATIONS {
        let request = BatchRequest { next: next.take(), ..BatchRequest::for_date(date) };
        let is_local = world.rng.borrow_mut().random_ratio(1, 3);
        let deadline = process.clock.now() + INVOCATION_TIME_LIMITS[usize::from(is_local)];
        let Some(report) = check_run_report(world, sweep.run(&request, deadline).await) else { return };
        let counts: RunCounts = report.counts.into();
        rows_left += match counts {
            // Of the reminders, only the failed reminders are counted as left for a later run. Reminders that another
            // worker has claimed are not counted, because the oracle knows all reminder claims.
            RunCounts::Reminders(counts) => counts.failed,
            RunCounts::Payments(_) => counts.unfinished(),
        };
        if report.stopped.is_some() {
            return;
        }
        if report.complete {
            world.oracle().record_completed_run(world.clock.now(), &CompletedRun { role, date, started_at, rows_left });
            return;
        }
        next = report.next;
    }
}

/// Returns the report of a run; `None` if the run ended with an error. Adds a violation if the counts in the report do
/// not add up.
fn check_run_report<O: Outcome>(
    world: &SimulatedWorld,
    report: Result<RunReport<O>, SweepError>,
) -> Option<RunReport<O>> {
    let report = report.ok()?;
    if !report.adds_up() {
        world.oracle().violations.push(format!("the counts of a run do not add up: {:?}", report.counts));
    }
    Some(report)
}

/// An API request, which an actor sends until it gets a response.
struct ApiRequest<'a> {
    method: &'a str,
    path: &'a str,
    /// The idempotency key of the request, if it has one.
    key: Option<String>,
    body: &'a Value,
}

/// Sends the API request for a customer's `action`, and reports its outcome to the oracle.
pub async fn send_customer_request(
    world: Rc<SimulatedWorld>,
    process: Rc<SimulatedProcess>,
    actor: ActorId,
    (account, id): SubscriptionName,
    action: CustomerAction,
) {
    let path = format!("/accounts/{account}/subscriptions/{id}");
    let customer = format!("cus_{account}");
    let (method, path, body) = match &action {
        CustomerAction::Pause => ("POST", format!("{path}/pause"), json!({})),
        CustomerAction::Resume => ("POST", format!("{path}/resume"), json!({})),
        CustomerAction::Cancel => ("POST", format!("{path}/cancel"), json!({})),
        CustomerAction::CancelAtPeriodEnd => ("POST", format!("{path}/cancel"), json!({"at_period_end": true})),
        CustomerAction::Uncancel => ("POST", format!("{path}/uncancel"), json!({})),
        CustomerAction::CorrectPrice(price) => {
            ("POST", format!("{path}/correct-price"), json!({"amount": price, "reason": "wrong price"}))
        }
        CustomerAction::WaiveMonth((year, month), reason) => {
            let route = if *reason == "merchant" { "waive" } else { "paid-elsewhere" };
            let body = json!({"month": format!("{year:04}-{month:02}"), "reason": "a decision"});
            ("POST", format!("{path}/{route}"), body)
        }
        CustomerAction::ChangePrice(price) => ("PATCH", path, json!({"amount": price})),
        CustomerAction::ChangePaymentDay(day) => ("PATCH", path, json!({"payment_day": day})),
        CustomerAction::ChangeCard(card) => {
            ("PATCH", path, json!({"payment_method": {"customer": customer, "payment_method": card}}))
        }
    };
    let key = (method == "POST").then(|| format!("request-{actor}"));
    let request = ApiRequest { method, path: &path, key, body: &body };
    if let Some(outcome) = send_request_until_outcome(&world, &process, actor, request).await {
        world.oracle().record_api_response(actor, world.clock.now(), outcome);
    }
}

/// Sends the API request that creates a subscription.
pub async fn create_subscription(
    world: Rc<SimulatedWorld>,
    process: Rc<SimulatedProcess>,
    actor: ActorId,
    account: String,
    new: Value,
) {
    let path = format!("/accounts/{account}/subscriptions");
    let key = Some(format!("create-{actor}"));
    let request = ApiRequest { method: "POST", path: &path, key, body: &new };
    let created = send_request_until_outcome(&world, &process, actor, request).await;
    // A person sends the same sign-up again, without the key of the first request. It must be refused, unless the first
    // subscription was cancelled in the meantime: then the oracle finds nothing wrong either.
    if created == Some(RequestOutcome::Done) && world.rng.borrow_mut().random_ratio(1, 2) {
        let request_without_key = ApiRequest { method: "POST", path: &path, key: None, body: &new };
        let again = send_request_until_outcome(&world, &process, actor, request_without_key).await;
        if again == Some(RequestOutcome::Done) && world.oracle().active_subscriptions_of(&account, &new) > 1 {
            world.oracle().violations.push(format!("{account} was signed up twice: {new}"));
        }
    }
}

/// Sends the same request with the same idempotency key until a response states whether the change was made. Returns
/// `None` if [`MAX_TRIES`] requests got no such response, or after another response: this response is a violation,
/// unless an item of the account was corrupted.
async fn send_request_until_outcome(
    world: &SimulatedWorld,
    process: &SimulatedProcess,
    actor: ActorId,
    ApiRequest { method, path, key, body }: ApiRequest<'_>,
) -> Option<RequestOutcome> {
    for _ in 0..MAX_TRIES {
        match process.send_api_request(method, path, key.as_deref(), &body.to_string()).await {
            (200 | 201, _) => return Some(RequestOutcome::Done),
            // A 409 of type `in-progress` means that another request is changing the same items, so this request is
            // sent again. Any other 409 means that the action was refused.
            (409, problem) if !problem.contains("in-progress") => return Some(RequestOutcome::Refused),
            (409 | 500.., _) => {
                let later = world.clock.now() + TimeDelta::seconds(2);
                world.schedule.wait_for_turn(actor, Some(later), None).await;
            }
            // If an item of the account was corrupted, any other response is accepted: the account may be unreadable,
            // or the subscription may be missing.
            (..) if path.split('/').nth(2).is_some_and(|account| world.oracle().is_account_corrupted(account)) => {
                return None;
            }
            (status, problem) => {
                world.oracle().violations.push(format!("{method} {path} {body} got the response {status}: {problem}"));
                return None;
            }
        }
    }
    None
}

/// Resolves the open payment attempt of `subscription`, like an operator who looks up the payments on the website of
/// the gateway. Does nothing if the attempt is not in doubt, or if a later batch run can settle the attempt.
pub async fn resolve_attempt(world: Rc<SimulatedWorld>, process: Rc<SimulatedProcess>, subscription: SubscriptionName) {
    let (Ok(account), Ok(id)) = (subscription.0.parse(), subscription.1.parse()) else { return };
    let table = &process.deployment.table;
    let Ok(Some(stored)) = table.get_subscription(&account, id).await else { return };
    let Some(open) = stored.attempt.filter(|open| open.is_in_doubt(process.clock.now())) else { return };
    let is_of_month =
        |payment: &Payment| payment.subscription == id && month_of(payment.due_on) == month_of(open.due_on);
    let payments = world.gateway.payments_for_operator(&open.payment_method.customer, DateTime::<Utc>::UNIX_EPOCH);
    let payments: Vec<Payment> = payments.into_iter().filter(is_of_month).collect();
    world.oracle().record_payment_statuses(world.clock.now(), &payments);
    let paid: Option<GatewayToken> =
        payments.iter().find(|payment| payment.status == PaymentStatus::Succeeded).map(|payment| payment.id.clone());
    let is_at_gateway =
        payments.iter().any(|payment| payment.attempt_no == open.no || payment.status == PaymentStatus::Processing);
    let stated = match paid {
        Some(payment) => StatedOutcome::Charged(payment),
        // The gateway has a payment for this attempt, or a payment for the month that is still processing. A later run
        // of the payment batch looks up this payment and settles the attempt, so the operator does nothing.
        None if is_at_gateway => return,
        None => StatedOutcome::NotCharged,
    };
    let (gateway, today) = (process.deployment.gateway.as_ref(), world.day_of(process.clock.now()));
    let engine = process.deployment.charging_engine();
    // The result is ignored, because the oracle checks what the engine writes to the table.
    drop(engine.resolve_attempt(Some(gateway), &account, id, &stated, today).await);
}

/// Delivers an event of Stripe to the webhook receiver of `process`.
pub async fn deliver_event(world: Rc<SimulatedWorld>, process: Rc<SimulatedProcess>, event: GatewayEvent) {
    if let (Some(stripe), Some(receiver)) = (&world.stripe, &process.receiver) {
        stripe.send_event(&event, receiver, process.process_schedule.clone(), process.injector.clone()).await;
    }
}

/// Switches charging on (if `is_on` is true) or off, for the whole deployment.
pub async fn switch_charging(process: Rc<SimulatedProcess>, is_on: bool) {
    for _ in 0..MAX_TRIES {
        if process.deployment.table.set_charging(is_on, None).await.is_ok() {
            return;
        }
    }
}
