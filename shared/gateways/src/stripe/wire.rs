//! What is sent to Stripe, and what of its answers is read: no more than is needed, so that nothing else of them can make the
//! outcome of a payment unknown.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use reqwest::StatusCode;
use serde::Deserialize;

use super::super::ChargeRequest;
use super::amount::{self, AmountError};
use super::hard_declines::decline;
use billing::{Card, Decline, GatewayToken, Payment, PaymentStatus, Sku};

/// The names that a payment carries, and is found by.
const TABLE: &str = "dueday_table";
const ACCOUNT: &str = "dueday_account";
const SUBSCRIPTION: &str = "dueday_subscription";
const SKU: &str = "dueday_sku";
const DUE_DATE: &str = "dueday_due_date";
const ATTEMPT: &str = "dueday_attempt";

/// A PaymentIntent.
#[derive(Debug, Deserialize)]
pub struct PaymentIntent {
    pub id: GatewayToken,
    pub status: Status,
    amount: i64,
    currency: String,
    /// Seconds since 1970.
    created: i64,
    #[serde(default)]
    metadata: HashMap<String, String>,
    /// Its charge, where that is written out. What is not as it was is not needed.
    #[serde(default)]
    latest_charge: serde_json::Value,
    #[serde(default)]
    last_payment_error: Option<Error>,
}

/// Where a PaymentIntent stands ("How PaymentIntents work" in Stripe's documentation).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Succeeded,
    Processing,
    Canceled,
    RequiresPaymentMethod,
    RequiresConfirmation,
    RequiresAction,
    RequiresCapture,
}

/// What stands in the body of an answer that is no success.
#[derive(Debug, Deserialize)]
pub struct ErrorBody {
    pub error: Error,
}

/// An error ("Errors" in Stripe's API reference).
#[derive(Debug, Deserialize)]
pub struct Error {
    #[serde(rename = "type", default)]
    pub kind: String,
    #[serde(default)]
    pub code: Option<String>,
    #[serde(default)]
    decline_code: Option<String>,
    /// What the bank advises to do after a decline.
    #[serde(default)]
    advice_code: Option<String>,
    /// Text for a person.
    #[serde(default)]
    message: Option<String>,
    /// The parameter that it is about.
    #[serde(default)]
    param: Option<String>,
    /// The payment method that it is about, written out. Only its id is needed.
    #[serde(default)]
    payment_method: serde_json::Value,
    /// The PaymentIntent that it is about, if one was made.
    #[serde(default)]
    pub payment_intent: Option<Box<PaymentIntent>>,
}

/// A page of a list.
#[derive(Debug, Deserialize)]
pub struct List {
    pub data: Vec<PaymentIntent>,
    pub has_more: bool,
}

/// A customer; of one that was deleted, little else is left.
#[derive(Debug, Deserialize)]
pub struct Customer {
    pub id: String,
    #[serde(default)]
    pub deleted: bool,
}

/// An account.
#[derive(Debug, Deserialize)]
pub struct Account {
    pub id: String,
}

/// The parameters of a PaymentIntent that is created and confirmed in one call, without the customer being there ("Create a
/// PaymentIntent" in Stripe's API reference).
///
/// # Errors
/// [`AmountError`].
pub fn parameters(request: &ChargeRequest) -> Result<Vec<(String, String)>, AmountError> {
    let amount = amount::to_stripe(request.amount)?;
    let metadata = |name: &str, value: String| (format!("metadata[{name}]"), value);
    let mut parameters = vec![
        ("amount".to_owned(), amount.to_string()),
        ("currency".to_owned(), request.amount.currency().code().to_ascii_lowercase()),
        ("customer".to_owned(), request.payment_method.customer.to_string()),
        ("payment_method".to_owned(), request.payment_method.payment_method.to_string()),
        ("confirm".to_owned(), "true".to_owned()),
        ("off_session".to_owned(), "true".to_owned()),
        // Of whatever kind the payment method is; nobody is there to be sent elsewhere.
        ("automatic_payment_methods[enabled]".to_owned(), "true".to_owned()),
        ("automatic_payment_methods[allow_redirects]".to_owned(), "never".to_owned()),
        // With the charge, which says what is printed of the card.
        ("expand[0]".to_owned(), "latest_charge".to_owned()),
        metadata(ACCOUNT, request.account.to_string()),
        metadata(SUBSCRIPTION, request.subscription.to_string()),
        metadata(SKU, request.sku.to_string()),
        metadata(DUE_DATE, request.due_on.to_string()),
        metadata(ATTEMPT, request.attempt_no.to_string()),
    ];
    parameters.extend(request.table.map(|table| metadata(TABLE, table.to_string())));
    Ok(parameters)
}

impl Error {
    /// Whether it says that what `parameter` names is not there.
    pub fn is_of(&self, parameter: &str) -> bool {
        self.code.as_deref() == Some("resource_missing") && self.param.as_deref() == Some(parameter)
    }

    /// Whether a response with `status` and this error proves that Stripe made nothing. Only `invalid_request_error` does, as a bad
    /// request or an unknown object ("Errors" in Stripe's API reference): a card may have been charged before any other error.
    pub fn proves_nothing_was_made(&self, status: StatusCode) -> bool {
        matches!(status, StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND)
            && self.kind == "invalid_request_error"
            && self.payment_intent.is_none()
    }

    /// Returns the permission that a restricted key would need ("Having the 'rak_...' permission would allow this request"), if the
    /// message names one.
    pub fn permission(&self) -> Option<&str> {
        let mut quoted = self.message.as_deref()?.split('\'').skip(1).step_by(2);
        quoted.find(|name| name.starts_with("rak_"))
    }

    /// The most specific name of the error: its decline code, its code, or its type.
    pub fn name(&self) -> &str {
        self.decline_code.as_deref().or(self.code.as_deref()).unwrap_or(&self.kind)
    }
}

impl PaymentIntent {
    /// Why it did not succeed.
    pub fn decline(&self) -> Decline {
        let error = self.last_payment_error.as_ref();
        let on_charge = || self.latest_charge.pointer("/outcome/advice_code").and_then(serde_json::Value::as_str);
        let advice = error.and_then(|error| error.advice_code.as_deref()).or_else(on_charge);
        decline(error.map_or("canceled", Error::name), advice)
    }

    /// Returns how the PaymentIntent and its latest charge contradict each other, if they do. Only the statuses that exclude each other
    /// count; a charge that is not expanded has none.
    pub fn contradiction(&self) -> Option<String> {
        let charge = self.latest_charge["status"].as_str()?;
        let is_contradicted = match self.status {
            Status::Succeeded => matches!(charge, "failed" | "pending"),
            Status::Processing => charge == "failed",
            Status::RequiresPaymentMethod => charge == "succeeded",
            // A new confirmation, a capture or a cancellation may follow any charge.
            Status::Canceled | Status::RequiresConfirmation | Status::RequiresAction | Status::RequiresCapture => false,
        };
        is_contradicted.then(|| format!("{} is {:?}, and its latest charge is {charge}", self.id, self.status))
    }

    /// The payment method of the last try, if that failed. A PaymentIntent that failed has no payment method any more.
    pub fn failed_payment_method(&self) -> Option<GatewayToken> {
        self.last_payment_error.as_ref()?.payment_method["id"].as_str()?.parse().ok()
    }

    /// The card that was charged.
    fn card(&self) -> Option<Card> {
        let card = self.latest_charge.pointer("/payment_method_details/card")?;
        Card::new(card["brand"].as_str()?, card["last4"].as_str()?).ok()
    }

    /// The product that it is for.
    pub fn sku(&self) -> Option<Sku> {
        self.metadata.get(SKU)?.parse().ok()
    }

    /// Where it stands, without anything being done about it.
    pub fn told(&self) -> PaymentStatus {
        match self.status {
            Status::Succeeded => PaymentStatus::Succeeded,
            Status::Processing => PaymentStatus::Processing,
            Status::Canceled
            | Status::RequiresPaymentMethod
            | Status::RequiresConfirmation
            | Status::RequiresAction
            | Status::RequiresCapture => PaymentStatus::Declined(self.decline()),
        }
    }

    /// The payment that it is, as it stands by `status`; `None` if it is none of ours.
    pub fn payment(&self, status: PaymentStatus) -> Option<Payment> {
        let named = |name: &str| self.metadata.get(name);
        Some(Payment {
            id: self.id.clone(),
            table: named(TABLE).and_then(|table| table.parse().ok()),
            account: named(ACCOUNT)?.parse().ok()?,
            subscription: named(SUBSCRIPTION)?.parse().ok()?,
            due_on: named(DUE_DATE)?.parse().ok()?,
            attempt_no: named(ATTEMPT)?.parse().ok()?,
            amount: amount::from_stripe(self.amount, self.currency.to_ascii_uppercase().parse().ok()?)?,
            status,
            card: self.card().map(Box::new),
            created_at: DateTime::<Utc>::from_timestamp(self.created, 0)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn intent(status: &str, error: serde_json::Value, charge: serde_json::Value) -> PaymentIntent {
        let intent = json!({
            "id": "pi_1", "status": status, "amount": 1, "currency": "eur", "created": 0,
            "last_payment_error": error, "latest_charge": charge,
        });
        serde_json::from_value(intent).unwrap()
    }

    #[test]
    fn decline_takes_the_advice_of_the_error_or_else_of_the_charge() {
        let error = |advice: Option<&str>| json!({"code": "card_declined", "advice_code": advice});
        let charge = |advice: &str| json!({"id": "ch_1", "outcome": {"advice_code": advice}});
        for (error, charge, hard) in [
            (error(Some("do_not_try_again")), json!("ch_1"), true),
            (error(None), charge("do_not_try_again"), true),
            (error(Some("confirm_card_data")), charge("do_not_try_again"), false),
            (error(None), json!({"id": "ch_1", "outcome": null}), false),
            (error(None), json!(null), false),
        ] {
            let intent = intent("requires_payment_method", error, charge);
            assert_eq!(intent.decline(), Decline { code: "card_declined".to_owned(), hard }, "{intent:?}");
        }
    }

    #[test]
    fn contradiction_is_found_between_a_payment_intent_and_its_charge() {
        for (status, charge, contradicts) in [
            ("succeeded", json!({"status": "succeeded"}), false),
            ("succeeded", json!({"status": "pending"}), true),
            ("succeeded", json!({"status": "failed"}), true),
            ("processing", json!({"status": "pending"}), false),
            ("processing", json!({"status": "failed"}), true),
            ("requires_payment_method", json!({"status": "failed"}), false),
            ("requires_payment_method", json!({"status": "succeeded"}), true),
            ("canceled", json!({"status": "failed"}), false),
            ("succeeded", json!("ch_1"), false),
            ("succeeded", json!(null), false),
        ] {
            let intent = intent(status, json!(null), charge.clone());
            assert_eq!(intent.contradiction().is_some(), contradicts, "{status}, {charge}");
        }
    }

    #[test]
    fn permission_is_read_from_the_message() {
        let of = |message: &str| serde_json::from_value::<Error>(json!({ "message": message })).unwrap();
        let refused =
            of("The provided key 'rk_live_***x' does not have the required permissions for this endpoint on account \
                          'acct_1'. Having the 'rak_charge_read' permission would allow this request to continue.");
        assert_eq!(refused.permission(), Some("rak_charge_read"));
        assert_eq!(of("This is a restricted API key, but the permissions are not available.").permission(), None);
    }
}
