//! The payments of the stand-in for Stripe, as the oracle and an operator read them.

use std::sync::PoisonError;

use billing::{Decline, GatewayToken, Money, Payment, PaymentStatus};
use chrono::{DateTime, Utc};
use clock::Clock as _;
use emulator::StandInPaymentIntent;

use super::ObservedStripeServer;
use crate::schedule::ActorId;

/// Decline codes after which the same card must not be charged again. The test payment methods of a simulation cause no
/// other hard declines.
const HARD_DECLINES: [&str; 2] = ["expired_card", "lost_card"];

/// The status of a PaymentIntent in Stripe's words, such as `succeeded`.
pub type IntentStatus = &'static str;

impl ObservedStripeServer {
    /// Reports the late payments to the oracle: payments that Stripe made after it had responded to the request with an
    /// error.
    pub fn report_late_payments(&self) {
        self.report_changes(None);
    }

    /// Reports to the oracle the payments that Stripe has made for the current request of `actor`.
    pub fn report_payments_of(&self, actor: ActorId) {
        self.report_changes(Some(actor));
    }

    /// Reports new payments and changed statuses to the oracle. `actor` sent the current request; `None` if the
    /// payments belong to no current request.
    fn report_changes(&self, actor: Option<ActorId>) {
        let mut reported = self.reported_statuses.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut made, mut changed, mut unreadable) = (Vec::new(), Vec::new(), Vec::new());
        self.server.read_intents(|intents| {
            for (index, intent) in intents.iter().enumerate() {
                let is_new = match reported.get_mut(index) {
                    Some(status) if *status == intent.status => continue,
                    Some(status) => {
                        *status = intent.status;
                        false
                    }
                    None => {
                        reported.push(intent.status);
                        true
                    }
                };
                if intent.status == "succeeded" {
                    self.events.create_events(&intent.id, self.clock.now());
                }
                match payment_of_intent(intent) {
                    Some(payment) if is_new => made.push((payment, intent.payment_method.clone())),
                    Some(payment) => changed.push(payment),
                    None => unreadable.push(intent.id.clone()),
                }
            }
        });
        let (now, mut oracle) = (self.clock.now(), self.oracle());
        oracle.record_payment_statuses(now, &changed);
        for (payment, payment_method) in made {
            match actor {
                Some(actor) => oracle.record_payment(actor, now, &payment, &payment_method),
                None => oracle.record_late_payment(now, &payment, &payment_method),
            }
        }
        oracle.violations.extend(
            unreadable.iter().map(|id| format!("the metadata of the PaymentIntent {id} does not name its attempt")),
        );
    }

    /// Returns all payments of `customer` that were created at `since` or later.
    pub fn payments(&self, customer: &GatewayToken, since: DateTime<Utc>) -> Vec<Payment> {
        self.server.read_intents(|intents| {
            let of_customer = intents.iter().filter(|intent| intent.customer == customer.as_str());
            of_customer.filter(|intent| intent.created >= since).filter_map(payment_of_intent).collect()
        })
    }
}

/// Converts `intent` to a payment of the attempt that the intent's metadata identifies; `None` if the metadata is
/// incomplete. The status is `Processing` if the payment may still succeed.
fn payment_of_intent(intent: &StandInPaymentIntent) -> Option<Payment> {
    let named = |name: &str| intent.metadata.get(&format!("dueday_{name}")).map(String::as_str);
    let declined =
        |code: &str| PaymentStatus::Declined(Decline { code: code.to_owned(), hard: HARD_DECLINES.contains(&code) });
    Some(Payment {
        id: intent.id.parse().ok()?,
        table: named("table")?.parse().ok(),
        account: named("account")?.parse().ok()?,
        subscription: named("subscription")?.parse().ok()?,
        due_on: named("due_date")?.parse().ok()?,
        attempt_no: named("attempt")?.parse().ok()?,
        // In the currencies of the simulation, Stripe and Dueday count amounts in the same minor unit, so no conversion
        // is needed.
        amount: Money::new(intent.amount, intent.currency.to_ascii_uppercase().parse().ok()?),
        status: match intent.status {
            "succeeded" => PaymentStatus::Succeeded,
            "canceled" => declined(intent.error.unwrap_or("canceled")),
            // A failed bank debit can be confirmed again and then succeed, so it counts as processing.
            _ => PaymentStatus::Processing,
        },
        card: None,
        created_at: intent.created,
    })
}
