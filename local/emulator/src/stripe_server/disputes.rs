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
    reason: &'static str,
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
            "reason": self.reason,
            // "Inquiries": no money is withdrawn, and the charge can be refunded still.
            "is_charge_refundable": self.status.starts_with("warning_"),
            "charge": self.payment_intent.replace("pi_", "ch_"),
            "payment_intent": self.payment_intent,
            "created": self.created,
            "livemode": false,
        })
    }
}

/// Whether a dispute in the status `from` can be in the status `to` later ("The Dispute object", "How disputes work").
fn comes_to(from: &str, to: &str) -> bool {
    let next: &[&str] = match from {
        "warning_needs_response" => {
            &["warning_under_review", "warning_closed", "needs_response", "under_review", "won", "lost"]
        }
        "warning_under_review" => &["warning_closed", "needs_response", "under_review", "won", "lost"],
        "needs_response" => &["under_review", "won", "lost"],
        "under_review" => &["won", "lost"],
        _ => &[],
    };
    from == to || next.contains(&to)
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

    /// The charge `id` ("The Charge object"), as far as an event needs it.
    fn charge(&self, id: &str) -> Option<Value> {
        let intent = self.intents.iter().find(|intent| intent.id.replace("pi_", "ch_") == id)?;
        let status = if intent.status == "succeeded" { "succeeded" } else { "failed" };
        Some(json!({"id": id, "object": "charge", "payment_intent": intent.id, "status": status}))
    }
}

impl StripeServer {
    /// Opens a dispute of the PaymentIntent `id` in `status`, or moves its dispute to `status`. Returns the dispute's id.
    ///
    /// # Panics
    /// If there is no such PaymentIntent, it has not succeeded, or its dispute cannot come to that status.
    pub fn dispute(&self, id: &str, status: &'static str) -> String {
        self.dispute_for(id, status, "fraudulent")
    }

    /// Opens an inquiry about the PaymentIntent `id` ("Inquiries" in the documentation): no money is withdrawn. Returns its id.
    ///
    /// # Panics
    /// As [`StripeServer::dispute`].
    pub fn inquire(&self, id: &str) -> String {
        self.dispute_for(id, "warning_needs_response", "unrecognized")
    }

    /// Takes the bank debit `id` back after it succeeded ("SEPA Direct Debit payment disputes", "ACH Direct Debit disputes" in the
    /// documentation): a dispute that is lost at once, while the PaymentIntent stays succeeded. Returns the dispute's id.
    ///
    /// # Panics
    /// As [`StripeServer::dispute`].
    pub fn take_back(&self, id: &str, reason: &'static str) -> String {
        self.dispute_for(id, "lost", reason)
    }

    /// Lets the PaymentIntent `id` fail with `code` after it succeeded.
    ///
    /// # Panics
    /// If there is no such PaymentIntent, or it has not succeeded.
    pub fn fail_after_success(&self, id: &str, code: &'static str) {
        let (now, mut books) = (self.clock.now(), self.books());
        let intent = books.intents.iter_mut().find(|intent| intent.id == id).expect("a PaymentIntent");
        intent.passes(now);
        assert_eq!(intent.status, "succeeded", "{id}");
        (intent.status, intent.error) = ("requires_payment_method", Some(code));
    }

    fn dispute_for(&self, id: &str, status: &'static str, reason: &'static str) -> String {
        let (now, mut books) = (self.clock.now(), self.books());
        if let Some(before) = books.disputes.iter_mut().find(|dispute| dispute.payment_intent == id) {
            assert!(comes_to(before.status, status), "{} cannot become {status}", before.status);
            before.status = status;
            return before.id.clone();
        }
        let intent = books.intents.iter_mut().find(|intent| intent.id == id).expect("a PaymentIntent");
        intent.passes(now);
        assert_eq!(intent.status, "succeeded", "{id}");
        let intent = intent.clone();
        let dispute = Dispute {
            id: id.replace("pi_", "dp_"),
            payment_intent: intent.id,
            status,
            reason,
            amount: intent.amount,
            currency: intent.currency,
            created: now.timestamp(),
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
        books.pass_to(now);
        let object = books.object(of, now).or_else(|| books.charge(of)).expect("an object");
        let event = json!({
            "id": id,
            "object": "event",
            "type": kind,
            "api_version": super::STRIPE_VERSION,
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
