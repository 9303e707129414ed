//! What the actors of a play do: runs, requests, and people.

use std::rc::Rc;

use billing::{GatewayToken, Payment, PaymentStatus};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use clock::Clock as _;
use rand::Rng as _;
use serde_json::{Value, json};
use settling::{Known, Resolving, Settling};
use store::{Counts, RunCounts};
use sweep::{BatchRequest, Report, Sweep, SweepError, Task};

use super::process::Process;
use super::world::World;
use crate::calendar::month_of;
use crate::oracle::{Act, Answered, Role, Walked};
use crate::played_gateway::Event;
use crate::schedule::ActorId;
use crate::stored::Who;

/// An invocation is given this long on AWS and on one machine, and keeps back what it needs to end.
const INVOCATIONS: [TimeDelta; 2] = [TimeDelta::seconds(15 * 60 - 5), TimeDelta::minutes(60)];
/// A run is so many invocations at most, each going on where the last one ended.
const MAX_INVOCATIONS: u32 = 30;
/// A request is tried again so often when it got no answer.
const MAX_TRIES: u32 = 4;

/// A run of the payment batch for `date`.
pub async fn payments(world: Rc<World>, process: Rc<Process>, date: NaiveDate) {
    run(&world, &process, &process.payments, Role::Payments, date).await;
}

/// A run of the reminder batch for `date`.
pub async fn reminders(world: Rc<World>, process: Rc<Process>, date: NaiveDate) {
    run(&world, &process, &process.reminders, Role::Reminders, date).await;
}

async fn run<T: Task>(world: &World, process: &Process, sweep: &Sweep<T>, role: Role, date: NaiveDate) {
    let (started_at, mut next, mut left) = (world.clock.now(), None, 0);
    for _ in 0..MAX_INVOCATIONS {
        let request = BatchRequest { next: next.take(), ..BatchRequest::on(date) };
        let is_local = world.rng.borrow_mut().random_ratio(1, 3);
        let deadline = process.clock.now() + INVOCATIONS[usize::from(is_local)];
        let Some(report) = reported(world, sweep.run(&request, deadline).await) else { return };
        let counts: RunCounts = report.counts.into();
        left += match counts {
            // The oracle knows which reminders another worker holds.
            RunCounts::Reminders(counts) => counts.failed,
            RunCounts::Payments(_) => counts.left_behind(),
        };
        if report.stopped.is_some() {
            return;
        }
        if report.complete {
            world.oracle().walked(world.clock.now(), &Walked { role, date, started_at, left });
            return;
        }
        next = report.next;
    }
}

/// A report that adds up; `None` if the run could not go on.
fn reported<C: Counts>(world: &World, report: Result<Report<C>, SweepError>) -> Option<Report<C>> {
    let report = report.ok()?;
    if !report.adds_up() {
        world.oracle().wrong.push(format!("a run does not add up: {:?}", report.counts));
    }
    Some(report)
}

/// A request to the API that asks for `act`.
pub async fn request(world: Rc<World>, process: Rc<Process>, actor: ActorId, (account, id): Who, act: Act) {
    let path = format!("/accounts/{account}/subscriptions/{id}");
    let customer = format!("cus_{account}");
    let (method, path, body) = match &act {
        Act::Pause => ("POST", format!("{path}/pause"), json!({})),
        Act::Resume => ("POST", format!("{path}/resume"), json!({})),
        Act::Cancel => ("POST", format!("{path}/cancel"), json!({})),
        Act::End => ("POST", format!("{path}/cancel"), json!({"at_period_end": true})),
        Act::Keep => ("POST", format!("{path}/uncancel"), json!({})),
        Act::Price(price) => ("PATCH", path, json!({"amount": price})),
        Act::Day(day) => ("PATCH", path, json!({"payment_day": day})),
        Act::Card(card) => ("PATCH", path, json!({"payment_method": {"customer": customer, "payment_method": card}})),
    };
    let key = (method == "POST").then(|| format!("request-{actor}"));
    if let Some(answer) = asked(&world, &process, actor, (method, &path, key, &body)).await {
        world.oracle().answered(actor, world.clock.now(), answer);
    }
}

/// A request that creates a subscription.
pub async fn create(world: Rc<World>, process: Rc<Process>, actor: ActorId, account: String, new: Value) {
    let path = format!("/accounts/{account}/subscriptions");
    asked(&world, &process, actor, ("POST", &path, Some(format!("create-{actor}")), &new)).await;
}

/// Asks until there is an answer: the same request, under the same key.
async fn asked(
    world: &World,
    process: &Process,
    actor: ActorId,
    (method, path, key, body): (&str, &str, Option<String>, &Value),
) -> Option<Answered> {
    for _ in 0..MAX_TRIES {
        match process.request(method, path, key.as_deref(), &body.to_string()).await {
            (200 | 201, _) => return Some(Answered::Done),
            // Another request has the same items at this moment.
            (409, problem) if !problem.contains("in-progress") => return Some(Answered::Refused),
            (409 | 500.., _) => {
                let later = world.clock.now() + TimeDelta::seconds(2);
                world.schedule.wait(actor, Some(later), None).await;
            }
            (status, problem) => {
                world.oracle().wrong.push(format!("{method} {path} {body} was answered {status}: {problem}"));
                return None;
            }
        }
    }
    None
}

/// Somebody looks at a payment that is open for long, and settles it by what the gateway's records say.
pub async fn resolve(world: Rc<World>, process: Rc<Process>, who: Who) {
    let (Ok(account), Ok(id)) = (who.0.parse(), who.1.parse()) else { return };
    let table = &process.deployment.table;
    let Ok(Some(stored)) = table.get_subscription(&account, id).await else { return };
    let Some(open) = stored.attempt.filter(|open| open.is_in_doubt(process.clock.now())) else { return };
    let of_month = |payment: &Payment| payment.subscription == id && month_of(payment.due_on) == month_of(open.due_on);
    let payments = world.gateway.records(&open.payment_method.customer, DateTime::<Utc>::UNIX_EPOCH);
    let payments: Vec<Payment> = payments.into_iter().filter(of_month).collect();
    world.oracle().known(world.clock.now(), &payments);
    let paid: Option<GatewayToken> =
        payments.iter().find(|payment| payment.status == PaymentStatus::Succeeded).map(|payment| payment.id.clone());
    let is_known =
        payments.iter().any(|payment| payment.attempt_no == open.no || payment.status == PaymentStatus::Processing);
    let known = match paid {
        Some(payment) => Known::Charged(payment),
        // What the gateway knows the next run settles.
        None if is_known => return,
        None => Known::NotCharged,
    };
    let settling = Settling::new(table.clone(), world.config.billing.policy.clone(), process.clock.clone());
    let by_hand = Resolving {
        settling: &settling,
        gateway: Some(process.deployment.gateway.as_ref()),
        lease: world.config.charging.lease,
    };
    // What comes of it shows in the table.
    drop(by_hand.resolve((&account, id), &known, world.day_of(process.clock.now())).await);
}

/// An event of the gateway is delivered.
pub async fn event(world: Rc<World>, process: Rc<Process>, event: Event) {
    if let (Some(stripe), Some(receiver)) = (&world.stripe, &process.receiver) {
        stripe.send(&event, receiver, process.turns.clone(), process.injector.clone()).await;
    }
}

/// Switches charging on or off.
pub async fn switch(process: Rc<Process>, is_on: bool) {
    for _ in 0..MAX_TRIES {
        if process.deployment.table.set_charging(is_on).await.is_ok() {
            return;
        }
    }
}
