//! The JSON of PaymentIntents ("The PaymentIntent object" in the API reference).

use serde_json::{Value, json};

use super::{MisleadingView, StandInPaymentIntent, decline_json};

impl StandInPaymentIntent {
    /// Returns the JSON of the PaymentIntent in a list or in the response that creates it, with its latest charge
    /// expanded if `is_expanded` is true ("Expanding responses" in the API reference).
    pub(super) fn listed_json(&self, is_expanded: bool) -> Value {
        match self.misleading {
            Some(misleading) => misleading.listed_json(self, is_expanded),
            None => self.json(self.status, is_expanded),
        }
    }

    /// Returns the JSON of the PaymentIntent, as a request for this PaymentIntent shows it, with its latest charge
    /// expanded if `is_expanded` is true.
    pub(super) fn retrieved_json(&self, is_expanded: bool) -> Value {
        match self.misleading {
            Some(MisleadingView::CanceledUntilRead { .. }) | None => self.json(self.status, is_expanded),
            Some(misleading) => misleading.listed_json(self, is_expanded),
        }
    }

    /// Returns the JSON of the PaymentIntent with the id of its latest charge, as a request for it shows it.
    pub(super) fn current_json(&self) -> Value {
        self.retrieved_json(false)
    }

    /// Returns the status of the latest charge ("The Charge object").
    pub(super) fn charge_status(&self) -> &'static str {
        match self.status {
            "succeeded" => "succeeded",
            "processing" => "pending",
            _ => "failed",
        }
    }

    /// Returns the JSON of the PaymentIntent with the status `status`, with its latest charge expanded if `is_expanded`
    /// is true.
    pub(super) fn json(&self, status: &str, is_expanded: bool) -> Value {
        let charge = self.id.replace("pi_", "ch_");
        let latest_charge = if is_expanded { self.charge_json(&charge, self.charge_status()) } else { charge.into() };
        json!({
            "id": self.id,
            "object": "payment_intent",
            "status": status,
            "amount": self.amount,
            "amount_received": if status == "succeeded" { self.amount } else { 0 },
            "currency": self.currency,
            "customer": self.customer,
            // A declined PaymentIntent no longer has a payment method ("Create a PaymentIntent").
            "payment_method": self.error.is_none().then_some(&self.payment_method),
            "created": self.created.timestamp(),
            "metadata": self.metadata,
            "livemode": false,
            "latest_charge": latest_charge,
            "last_payment_error": self.error.map(|error| {
                let mut last = decline_json(error, self.advice);
                last["payment_method"] = json!({"id": self.payment_method, "object": "payment_method"});
                last
            }),
        })
    }

    /// Returns the JSON of the charge `id` with the status `status`.
    pub(super) fn charge_json(&self, id: &str, status: &str) -> Value {
        let mut charge = json!({"id": id, "object": "charge", "status": status, "captured": status == "succeeded"});
        let brand = self.payment_method.strip_prefix("pm_card_").and_then(|name| name.split('_').next());
        if let Some(brand) = brand.filter(|_| self.status == "succeeded") {
            let card = json!({"brand": brand, "last4": "4242", "exp_month": 12, "exp_year": 2099});
            charge["payment_method_details"] = json!({"type": "card", "card": card});
        }
        charge
    }
}
