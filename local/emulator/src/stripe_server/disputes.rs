//! Disputes ("Disputes" in the API reference), and what else happens at Stripe without being asked for from outside.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::refunds::{Listed, Refund, list};
use super::{Answer, Books, StripeFault, StripeServer};

/// A dispute.
pub(super) struct Dispute {
    id: String,
    payment_intent: String,
    status: &'static str,
    amount: i64,
    currency: String,
    created: i64,
}

impl Dispute {
    pub(super) fn is(&self, id: &str) -> bool {
        self.id == id
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "id": self.id,
            "object": "dispute",
            "status": self.status,
            "amount": self.amount,
            "currency": self.currency,
            "reason": "fraudulent",
            "charge": self.payment_intent.replace("pi_", "ch_"),
            "payment_intent": self.payment_intent,
            "created": self.created,
            "livemode": false,
        })
    }
}

impl Books {
    /// Lists the disputes, the newest first ("List all disputes" in the API reference).
    pub(super) fn list_disputes(&self, parameters: &BTreeMap<String, String>) -> Answer {
        let disputes = self.disputes.iter().map(|dispute| Listed {
            id: &dispute.id,
            payment_intent: &dispute.payment_intent,
            created: dispute.created,
            json: dispute.json(),
        });
        list("/v1/disputes", disputes.rev(), parameters)
    }
}

impl StripeServer {
    /// The customer of the PaymentIntent `id` disputes it, or its dispute comes to `status`. Answers the dispute's id.
    ///
    /// # Panics
    /// If there is no such PaymentIntent.
    pub fn dispute(&self, id: &str, status: &'static str) -> String {
        let (now, mut books) = (self.clock.now().timestamp(), self.books());
        if let Some(before) = books.disputes.iter_mut().find(|dispute| dispute.payment_intent == id) {
            before.status = status;
            return before.id.clone();
        }
        let intent = books.intents.iter().find(|intent| intent.id == id).expect("a PaymentIntent").clone();
        let dispute = Dispute {
            id: id.replace("pi_", "dp_"),
            payment_intent: intent.id,
            status,
            amount: intent.amount,
            currency: intent.currency,
            created: now,
        };
        let id = dispute.id.clone();
        books.disputes.push(dispute);
        id
    }

    /// The merchant gives back `amount` of the PaymentIntent `id` in the dashboard. Answers the refund's id.
    ///
    /// # Panics
    /// If there is no such PaymentIntent.
    pub fn refund_in_the_dashboard(&self, id: &str, amount: i64, status: &'static str) -> String {
        let (now, mut books) = (self.clock.now(), self.books());
        let intent = books.intents.iter().find(|intent| intent.id == id).expect("a PaymentIntent").clone();
        let refund = Refund::new(&books.refunds, &intent, amount, now).in_status(status);
        let id = refund.id.clone();
        books.refunds.push(refund);
        id
    }

    /// Returns the amount and status of each refund, the oldest first.
    pub fn refunds(&self) -> Vec<(i64, &'static str)> {
        self.books().refunds.iter().map(|refund| (refund.amount, refund.status)).collect()
    }

    /// The bank says what has become of the refund `id`.
    pub fn refund_comes_to(&self, id: &str, status: &'static str) {
        let mut books = self.books();
        if let Some(refund) = books.refunds.iter_mut().find(|refund| refund.id == id) {
            refund.status = status;
        }
    }

    /// The event `id` of `kind` about the object `of`, as it stands now ("The Event object" in the API reference).
    ///
    /// # Panics
    /// If there is no such object.
    pub fn event(&self, id: &str, kind: &str, of: &str) -> String {
        let now = self.clock.now();
        let mut books = self.books();
        books.intents.iter_mut().for_each(|intent| intent.passes(now));
        let object = books.object(of, now).expect("an object");
        let event = json!({
            "id": id,
            "object": "event",
            "type": kind,
            "api_version": "2024-06-20",
            "created": now.timestamp(),
            "livemode": false,
            "data": {"object": object},
        });
        event.to_string()
    }

    /// What goes wrong with each request from now on, until it is told otherwise.
    pub fn always(&self, fault: Option<StripeFault>) {
        self.books().always = fault;
    }
}
