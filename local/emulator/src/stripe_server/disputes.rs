//! Disputes ("Disputes" in the API reference), and other changes at Stripe that no API request causes.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::refunds::{ListedObject, Refund};
use super::{JsonResponse, ServerState, StripeFault, StripeServer};

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
    pub(super) fn has_id(&self, id: &str) -> bool {
        self.id == id
    }

    /// Returns the JSON of the dispute, as Stripe's API shows it.
    pub(super) fn json(&self) -> Value {
        json!({
            "id": self.id,
            "object": "dispute",
            "status": self.status,
            "amount": self.amount,
            "currency": self.currency,
            "reason": self.reason,
            // An inquiry withdraws no money, and its charge can still be refunded ("Inquiries").
            "is_charge_refundable": self.status.starts_with("warning_"),
            "charge": self.payment_intent.replace("pi_", "ch_"),
            "payment_intent": self.payment_intent,
            "created": self.created,
            "livemode": false,
        })
    }
}

/// Returns whether a dispute in the status `from` can later have the status `to` ("The Dispute object", "How disputes
/// work").
fn is_status_change_allowed(from: &str, to: &str) -> bool {
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

impl ServerState {
    /// Lists the disputes, the newest first ("List all disputes" in the API reference).
    pub(super) fn list_disputes(&self, parameters: &BTreeMap<String, String>) -> JsonResponse {
        let disputes = self.disputes.iter().map(|dispute| ListedObject {
            id: &dispute.id,
            payment_intent: &dispute.payment_intent,
            created: dispute.created,
            json: dispute.json(),
        });
        self.list_page("/v1/disputes", disputes.rev(), parameters)
    }

    /// Returns the charge `id`, with the attributes that an event needs ("The Charge object").
    pub(super) fn find_charge(&self, id: &str) -> Option<Value> {
        let intent = self.intents.iter().find(|intent| intent.id.replace("pi_", "ch_") == id)?;
        Some(json!({"id": id, "object": "charge", "payment_intent": intent.id, "status": intent.charge_status()}))
    }
}

impl StripeServer {
    /// Opens a dispute of the PaymentIntent `id` with the status `status`. If the PaymentIntent already has a dispute,
    /// changes the status of that dispute. Returns the dispute's id.
    ///
    /// # Panics
    /// If the PaymentIntent does not exist or has not succeeded, or its dispute cannot change to `status`.
    pub fn set_dispute_status(&self, id: &str, status: &'static str) -> String {
        self.open_or_update_dispute(id, status, "fraudulent")
    }

    /// Opens an inquiry about the PaymentIntent `id` ("Inquiries" in the documentation): a dispute that withdraws no
    /// money. Returns the dispute's id.
    ///
    /// # Panics
    /// Under the same conditions as [`StripeServer::set_dispute_status`].
    pub fn open_inquiry(&self, id: &str) -> String {
        self.open_or_update_dispute(id, "warning_needs_response", "unrecognized")
    }

    /// Reverses the bank debit `id` after it succeeded ("SEPA Direct Debit payment disputes", "ACH Direct Debit
    /// disputes" in the documentation). This opens a dispute that is lost immediately; the PaymentIntent keeps the
    /// status `succeeded`. Returns the dispute's id.
    ///
    /// # Panics
    /// Under the same conditions as [`StripeServer::set_dispute_status`].
    pub fn reverse_bank_debit(&self, id: &str, reason: &'static str) -> String {
        self.open_or_update_dispute(id, "lost", reason)
    }

    /// Makes the bank debit `id` (a PaymentIntent) fail with the decline code `code` after the debit succeeded.
    ///
    /// # Panics
    /// If the PaymentIntent does not exist or has not succeeded.
    pub fn fail_debit_after_success(&self, id: &str, code: &'static str) {
        let (now, mut state) = (self.clock.now(), self.lock_state());
        let intent = state.intents.iter_mut().find(|intent| intent.id == id).expect("a PaymentIntent");
        intent.apply_due_bank_outcome(now);
        assert_eq!(intent.status, "succeeded", "{id}");
        (intent.status, intent.error) = ("requires_payment_method", Some(code));
    }

    /// Opens a dispute of the PaymentIntent `id` with `status` and `reason`, or changes the status of its existing
    /// dispute to `status`. Returns the dispute's id.
    fn open_or_update_dispute(&self, id: &str, status: &'static str, reason: &'static str) -> String {
        let (now, mut state) = (self.clock.now(), self.lock_state());
        if let Some(existing) = state.disputes.iter_mut().find(|dispute| dispute.payment_intent == id) {
            assert!(is_status_change_allowed(existing.status, status), "{} cannot become {status}", existing.status);
            existing.status = status;
            return existing.id.clone();
        }
        let intent = state.intents.iter_mut().find(|intent| intent.id == id).expect("a PaymentIntent");
        intent.apply_due_bank_outcome(now);
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
        state.disputes.push(dispute);
        id
    }

    /// Refunds `amount` of the PaymentIntent `id`, as the merchant does in the dashboard. Returns the refund's id.
    ///
    /// # Panics
    /// If the PaymentIntent does not exist.
    pub fn refund_in_the_dashboard(&self, id: &str, amount: i64, status: &'static str) -> String {
        let (now, mut state) = (self.clock.now(), self.lock_state());
        let intent = state.intents.iter().find(|intent| intent.id == id).expect("a PaymentIntent").clone();
        let refund = Refund::new(&state.refunds, &intent, amount, now).with_status(status);
        let id = refund.id.clone();
        state.refunds.push(refund);
        id
    }

    /// Returns the amount and status of each refund, the oldest first.
    pub fn refunds(&self) -> Vec<(i64, &'static str)> {
        self.lock_state().refunds.iter().map(|refund| (refund.amount, refund.status)).collect()
    }

    /// Sets the status of the refund `id`, as the bank's response does.
    pub fn set_refund_status(&self, id: &str, status: &'static str) {
        let mut state = self.lock_state();
        if let Some(refund) = state.refunds.iter_mut().find(|refund| refund.id == id) {
            refund.status = status;
        }
    }

    /// Returns the body of the event `id` of type `kind` about the current state of the object `object_id` ("The Event
    /// object" in the API reference).
    ///
    /// # Panics
    /// If the object does not exist.
    pub fn event_body(&self, id: &str, kind: &str, object_id: &str) -> String {
        let now = self.clock.now();
        let mut state = self.lock_state();
        state.advance_to(now);
        let object = state.find_object(object_id, now).or_else(|| state.find_charge(object_id)).expect("an object");
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

    /// Sets the fault of all further requests for which no other fault was set; `None` means no fault.
    pub fn set_permanent_fault(&self, fault: Option<StripeFault>) {
        self.lock_state().permanent_fault = fault;
    }
}
