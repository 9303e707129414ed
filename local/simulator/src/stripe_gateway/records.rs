//! The books of the stand-in for Stripe, as the oracle and a person read them.

use std::sync::PoisonError;

use billing::{Decline, GatewayToken, Money, Payment, PaymentStatus};
use chrono::{DateTime, Utc};
use clock::Clock as _;
use emulator::Intent;

use super::Books;
use crate::schedule::ActorId;

/// Declines after which the same card is not tried again. The test payment methods of a play know no others.
const HARD: [&str; 2] = ["expired_card", "lost_card"];

/// What the oracle knows of one PaymentIntent: where it stands.
pub type Entry = &'static str;

impl Books {
    /// Tells the oracle of payments that Stripe has made by now of requests that it answered with an error before.
    pub fn show_repairs(&self) {
        self.show_all(None);
    }

    /// Tells the oracle of payments that Stripe has made of the present request of `actor`.
    pub fn show(&self, actor: ActorId) {
        self.show_all(Some(actor));
    }

    fn show_all(&self, actor: Option<ActorId>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut made, mut changed, mut unreadable) = (Vec::new(), Vec::new(), Vec::new());
        self.server.read(|intents| {
            for (index, intent) in intents.iter().enumerate() {
                let is_new = match known.get_mut(index) {
                    Some(status) if *status == intent.status => continue,
                    Some(status) => {
                        *status = intent.status;
                        false
                    }
                    None => {
                        known.push(intent.status);
                        true
                    }
                };
                if intent.status == "succeeded" {
                    self.events.create(&intent.id, self.clock.now());
                }
                match payment(intent) {
                    Some(payment) if is_new => made.push((payment, intent.payment_method.clone())),
                    Some(payment) => changed.push(payment),
                    None => unreadable.push(intent.id.clone()),
                }
            }
        });
        let (now, mut oracle) = (self.clock.now(), self.oracle());
        oracle.known(now, &changed);
        for (payment, payment_method) in made {
            match actor {
                Some(actor) => oracle.made(actor, now, &payment, &payment_method),
                None => oracle.repaired(now, &payment, &payment_method),
            }
        }
        oracle.wrong.extend(unreadable.iter().map(|id| format!("{id} does not name the payment that it is")));
    }

    /// All payments of `customer` since an instant.
    pub fn payments(&self, customer: &GatewayToken, since: DateTime<Utc>) -> Vec<Payment> {
        self.server.read(|intents| {
            let of_customer = intents.iter().filter(|intent| intent.customer == customer.as_str());
            of_customer.filter(|intent| intent.created >= since).filter_map(payment).collect()
        })
    }
}

/// The payment that `intent` is, as its metadata names it. `Processing` is whatever may still succeed.
fn payment(intent: &Intent) -> Option<Payment> {
    let named = |name: &str| intent.metadata.get(&format!("dueday_{name}")).map(String::as_str);
    let declined = |code: &str| PaymentStatus::Declined(Decline { code: code.to_owned(), hard: HARD.contains(&code) });
    Some(Payment {
        id: intent.id.parse().ok()?,
        table: named("table")?.parse().ok(),
        account: named("account")?.parse().ok()?,
        subscription: named("subscription")?.parse().ok()?,
        due_on: named("due_date")?.parse().ok()?,
        attempt_no: named("attempt")?.parse().ok()?,
        // The currencies of a play have two decimals here and at Stripe.
        amount: Money::new(intent.amount, intent.currency.to_ascii_uppercase().parse().ok()?),
        status: match intent.status {
            "succeeded" => PaymentStatus::Succeeded,
            "canceled" => declined(intent.error.unwrap_or("canceled")),
            // A bank debit that failed can be confirmed again, too.
            _ => PaymentStatus::Processing,
        },
        card: None,
        created_at: intent.created,
    })
}
