//! Converts PaymentIntents to payments: recognizes the PaymentIntents of this software, finds contradictions, and reads
//! the metadata, which identifies the payment attempt.

use chrono::{DateTime, Utc};
use serde::Deserialize as _;
use serde_json::Value;
use ulid::Ulid;

use super::amount;
use super::hard_declines::classify_decline;
use super::wire_format::{
    ACCOUNT_METADATA_KEY, ATTEMPT_METADATA_KEY, DUE_DATE_METADATA_KEY, PaymentIntent, SKU_METADATA_KEY,
    SUBSCRIPTION_METADATA_KEY, StripeError, StripePaymentStatus, TABLE_METADATA_KEY,
};
use crate::UnreadableObject;
use crate::list_page::ListedItem;
use billing::{Card, Decline, GatewayToken, Payment, PaymentStatus, Sku};

impl ListedItem for PaymentIntent {
    fn id(&self) -> &GatewayToken {
        &self.id
    }

    fn requesting_table(&self) -> Option<Ulid> {
        self.metadata.get(TABLE_METADATA_KEY)?.parse().ok()
    }
}

impl PaymentIntent {
    /// Returns the reason why the PaymentIntent did not succeed.
    pub fn decline(&self) -> Decline {
        let error = self.last_payment_error.as_ref();
        let on_charge = || self.latest_charge.pointer("/outcome/advice_code").and_then(Value::as_str);
        let advice = error.and_then(|error| error.advice_code.as_deref()).or_else(on_charge);
        classify_decline(error.map_or("canceled", StripeError::most_specific_code), advice)
    }

    /// Describes how the status of the PaymentIntent contradicts the received amount, or the status of the latest
    /// charge. Returns `None` if there is no contradiction. The charge is compared only if the response contains it in
    /// expanded form with its status.
    pub fn contradiction(&self) -> Option<String> {
        let charge = self.latest_charge["status"].as_str().unwrap_or("unknown");
        // A charge that is only authorized has the status `succeeded`, too, but moves no money before its capture.
        let is_paid = charge == "succeeded" && self.latest_charge["captured"] != false;
        let received = self.amount_received;
        let is_contradicted = match self.status {
            StripePaymentStatus::Succeeded => {
                matches!(charge, "failed" | "pending") || received.is_some_and(|received| received < self.amount)
            }
            StripePaymentStatus::Processing => charge == "failed",
            StripePaymentStatus::RequiresPaymentMethod
            | StripePaymentStatus::RequiresConfirmation
            | StripePaymentStatus::RequiresAction => is_paid,
            // A pending charge may still succeed, although the PaymentIntent can no longer be confirmed.
            StripePaymentStatus::Canceled => {
                is_paid || charge == "pending" || received.is_some_and(|received| received > 0)
            }
            // The charge was only authorized, and moves no money before its capture.
            StripePaymentStatus::RequiresCapture => false,
        };
        let received = received.map_or_else(|| "an unknown amount".to_owned(), |received| received.to_string());
        is_contradicted.then(|| {
            format!(
                "{} is {:?}, its latest charge is {charge}, and {received} of {} was received",
                self.id, self.status, self.amount
            )
        })
    }

    /// Returns the payment method of the last failed confirmation. After a failure, the PaymentIntent itself has no
    /// payment method any more.
    pub fn failed_payment_method(&self) -> Option<GatewayToken> {
        self.last_payment_error.as_ref()?.payment_method["id"].as_str()?.parse().ok()
    }

    /// Returns the charged card, if the response contains the charge in expanded form and the payment method is a card.
    fn card(&self) -> Option<Card> {
        let card = self.latest_charge.pointer("/payment_method_details/card")?;
        Card::new(card["brand"].as_str()?, card["last4"].as_str()?).ok()
    }

    /// Returns the SKU of the product that was paid.
    pub fn sku(&self) -> Option<Sku> {
        self.metadata.get(SKU_METADATA_KEY)?.parse().ok()
    }

    /// Returns the payment status without cancelling the PaymentIntent first.
    fn reported_status(&self) -> PaymentStatus {
        match self.status {
            StripePaymentStatus::Succeeded => PaymentStatus::Succeeded,
            StripePaymentStatus::Processing => PaymentStatus::Processing,
            StripePaymentStatus::Canceled
            | StripePaymentStatus::RequiresPaymentMethod
            | StripePaymentStatus::RequiresConfirmation
            | StripePaymentStatus::RequiresAction
            | StripePaymentStatus::RequiresCapture => PaymentStatus::Declined(self.decline()),
        }
    }

    /// Reads a PaymentIntent that this software created from `object`. Returns `None` if another program created it: its
    /// metadata names no subscription.
    pub fn read_own(object: &Value) -> Option<Result<Self, UnreadableObject>> {
        let metadata = &object["metadata"];
        metadata.get(SUBSCRIPTION_METADATA_KEY)?;
        let table = || metadata[TABLE_METADATA_KEY].as_str()?.parse().ok();
        let unreadable = |error| UnreadableObject { table: table(), ..UnreadableObject::new(object, None, error) };
        Some(Self::deserialize(object).map_err(unreadable))
    }

    /// Returns this PaymentIntent as an object that cannot be read for `reason`.
    pub fn unreadable(&self, reason: String) -> UnreadableObject {
        UnreadableObject { id: self.id.to_string(), payment: None, table: self.requesting_table(), reason }
    }

    /// Returns the payment with `status`.
    ///
    /// # Errors
    /// [`UnreadableObject`] if the currency, the amount, the time or the metadata of the PaymentIntent is not valid.
    pub fn payment(&self, status: PaymentStatus) -> Result<Payment, UnreadableObject> {
        let invalid = |field: &str| self.unreadable(format!("it has no valid {field}"));
        let metadata = |key: &str| self.metadata.get(key).map(String::as_str).unwrap_or_default();
        let currency = self.currency.to_ascii_uppercase().parse().map_err(|_| invalid("currency"))?;
        Ok(Payment {
            id: self.id.clone(),
            table: self.requesting_table(),
            account: metadata(ACCOUNT_METADATA_KEY).parse().map_err(|_| invalid(ACCOUNT_METADATA_KEY))?,
            subscription: metadata(SUBSCRIPTION_METADATA_KEY)
                .parse()
                .map_err(|_| invalid(SUBSCRIPTION_METADATA_KEY))?,
            due_on: metadata(DUE_DATE_METADATA_KEY).parse().map_err(|_| invalid(DUE_DATE_METADATA_KEY))?,
            attempt_no: metadata(ATTEMPT_METADATA_KEY).parse().map_err(|_| invalid(ATTEMPT_METADATA_KEY))?,
            amount: amount::money_from_stripe_amount(self.amount, currency).ok_or_else(|| invalid("amount"))?,
            status,
            card: self.card().map(Box::new),
            created_at: DateTime::<Utc>::from_timestamp(self.created, 0).ok_or_else(|| invalid("creation time"))?,
        })
    }

    /// Returns the payment with the status that the PaymentIntent reports, without cancelling the PaymentIntent first.
    /// A payment that is returned as declined may therefore still succeed.
    ///
    /// # Errors
    /// [`UnreadableObject`] if the PaymentIntent contradicts itself, or a field is not valid.
    pub fn reported_payment(&self) -> Result<Payment, UnreadableObject> {
        match self.contradiction() {
            Some(contradiction) => Err(self.unreadable(contradiction)),
            None => self.payment(self.reported_status()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns a PaymentIntent with `status`, the last payment error `error`, and the latest charge `charge`.
    fn sample_payment_intent(status: &str, error: Value, charge: Value) -> PaymentIntent {
        let intent = json!({
            "id": "pi_1", "status": status, "amount": 1, "currency": "eur", "created": 0,
            "last_payment_error": error, "latest_charge": charge,
        });
        serde_json::from_value(intent).unwrap()
    }

    #[test]
    fn decline_uses_advice_code_of_error_or_of_charge() {
        let error = |advice: Option<&str>| json!({"code": "card_declined", "advice_code": advice});
        let charge = |advice: &str| json!({"id": "ch_1", "outcome": {"advice_code": advice}});
        // The columns are: the last payment error, the latest charge, and whether the decline is hard.
        for (error, charge, hard) in [
            (error(Some("do_not_try_again")), json!("ch_1"), true),
            (error(None), charge("do_not_try_again"), true),
            (error(Some("confirm_card_data")), charge("do_not_try_again"), false),
            (error(None), json!({"id": "ch_1", "outcome": null}), false),
            (error(None), json!(null), false),
        ] {
            let intent = sample_payment_intent("requires_payment_method", error, charge);
            assert_eq!(intent.decline(), Decline { code: "card_declined".to_owned(), hard }, "{intent:?}");
        }
    }

    #[test]
    fn contradiction_between_payment_intent_and_charge_is_found() {
        // The columns are: the status of the PaymentIntent, its latest charge, and whether the two contradict each
        // other.
        for (status, charge, contradicts) in [
            ("succeeded", json!({"status": "succeeded"}), false),
            ("succeeded", json!({"status": "pending"}), true),
            ("succeeded", json!({"status": "failed"}), true),
            ("processing", json!({"status": "pending"}), false),
            ("processing", json!({"status": "failed"}), true),
            ("requires_payment_method", json!({"status": "failed"}), false),
            ("requires_payment_method", json!({"status": "succeeded"}), true),
            ("requires_action", json!({"status": "succeeded"}), true),
            ("requires_capture", json!({"status": "succeeded", "captured": false}), false),
            ("canceled", json!({"status": "failed"}), false),
            ("canceled", json!({"status": "succeeded"}), true),
            ("canceled", json!({"status": "succeeded", "captured": true}), true),
            ("canceled", json!({"status": "succeeded", "captured": false}), false),
            ("canceled", json!({"status": "pending"}), true),
            ("canceled", json!("ch_1"), false),
            ("succeeded", json!("ch_1"), false),
            ("succeeded", json!(null), false),
        ] {
            let intent = sample_payment_intent(status, json!(null), charge.clone());
            assert_eq!(intent.contradiction().is_some(), contradicts, "{status}, {charge}");
        }
    }

    #[test]
    fn contradiction_between_payment_intent_and_received_amount_is_found() {
        // The columns are: the status of a PaymentIntent of 1299, its received amount, and whether the two contradict
        // each other.
        for (status, received, contradicts) in [
            ("succeeded", json!(1_299), false),
            ("succeeded", json!(null), false),
            ("succeeded", json!(1_298), true),
            ("succeeded", json!(0), true),
            ("canceled", json!(0), false),
            ("canceled", json!(1), true),
            ("requires_payment_method", json!(0), false),
        ] {
            let intent: PaymentIntent = serde_json::from_value(json!({
                "id": "pi_1", "status": status, "amount": 1_299, "currency": "eur", "created": 0,
                "amount_received": received,
            }))
            .unwrap();
            assert_eq!(intent.contradiction().is_some(), contradicts, "{status}, {received}");
        }
    }

    #[test]
    fn payment_intent_is_recognized_before_it_is_read() {
        let own = json!({
            "dueday_account": "acme", "dueday_subscription": "01JZXCVBNM0123456789ABCDEG",
            "dueday_due_date": "2027-01-31", "dueday_attempt": "1", "dueday_table": "01JZXCVBNM0123456789ABCDEF",
        });
        let with = |field: &str, value: Value, metadata: &Value| {
            let mut object = json!({
                "id": "pi_1", "status": "succeeded", "amount": 1, "currency": "eur", "created": 0, "metadata": metadata,
            });
            object[field] = value;
            object
        };
        // Each case contains a PaymentIntent of this software, changed by another value in one field, and the end of the
        // reason why it cannot be read.
        for (field, value, expected) in [
            ("created", json!(0), None),
            ("last_payment_error", json!({"type": null, "code": null, "payment_method": null}), None),
            ("currency", json!("xyz"), Some("it has no valid currency")),
            ("amount", json!(1.5), Some("expected i64")),
            ("status", json!("on_the_moon"), Some("expected one of")),
            ("metadata", json!({"dueday_subscription": "unknown"}), Some("it has no valid dueday_account")),
        ] {
            let object = with(field, value.clone(), &own);
            let read = PaymentIntent::read_own(&object).unwrap().and_then(|intent| intent.reported_payment());
            match (&read, expected) {
                (Ok(_), None) => {}
                (Err(UnreadableObject { id, reason, .. }), Some(expected)) => {
                    assert_eq!((id.as_str(), reason.contains(expected)), ("pi_1", true), "{field}: {reason}");
                }
                _ => panic!("{field}: {read:?}"),
            }
            for foreign in [json!({}), json!(null), json!({"order": "7"})] {
                let object = with(field, value.clone(), &foreign);
                assert!(field == "metadata" || PaymentIntent::read_own(&object).is_none(), "{object}");
            }
        }
    }
}
