//! The wire format of Stripe's API: the parameters of requests, and the fields of responses. Only the fields that are
//! needed are read, so that an unexpected value in another field cannot make the outcome of a payment unknown.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use reqwest::StatusCode;
use serde::Deserialize;

use super::super::ChargeRequest;
use super::amount::{self, AmountError};
use super::hard_declines::decline;
use super::lists::ListedObject;
use billing::{Card, Decline, GatewayToken, Payment, PaymentStatus, Sku};

// The metadata keys of a PaymentIntent. Their values identify the payment attempt.
const TABLE_METADATA_KEY: &str = "dueday_table";
const ACCOUNT_METADATA_KEY: &str = "dueday_account";
const SUBSCRIPTION_METADATA_KEY: &str = "dueday_subscription";
const SKU_METADATA_KEY: &str = "dueday_sku";
const DUE_DATE_METADATA_KEY: &str = "dueday_due_date";
const ATTEMPT_METADATA_KEY: &str = "dueday_attempt";

/// A PaymentIntent.
#[derive(Debug, Deserialize)]
pub struct PaymentIntent {
    pub id: GatewayToken,
    pub status: Status,
    amount: i64,
    currency: String,
    /// The time at which the PaymentIntent was created, in seconds since 1970.
    created: i64,
    #[serde(default)]
    metadata: HashMap<String, String>,
    /// The latest charge if the response contains the charge in expanded form, otherwise the id of the latest charge.
    /// The charge is kept as untyped JSON, so that an unexpected value in it cannot make the PaymentIntent unreadable.
    #[serde(default)]
    latest_charge: serde_json::Value,
    #[serde(default)]
    last_payment_error: Option<Error>,
}

/// The status of a PaymentIntent ("How PaymentIntents work" in Stripe's documentation).
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

/// The body of an error response.
#[derive(Debug, Deserialize)]
pub struct ErrorBody {
    pub error: Error,
}

/// An error from Stripe ("Errors" in Stripe's API reference).
#[derive(Debug, Deserialize)]
pub struct Error {
    #[serde(rename = "type", default)]
    pub kind: String,
    #[serde(default)]
    pub code: Option<String>,
    #[serde(default)]
    decline_code: Option<String>,
    /// The bank's advice after a decline, such as `try_again_later`.
    #[serde(default)]
    advice_code: Option<String>,
    /// The error message in English.
    #[serde(default)]
    message: Option<String>,
    /// The request parameter that caused the error.
    #[serde(default)]
    param: Option<String>,
    /// The payment method of the failed payment, in expanded form. Only its id is read.
    #[serde(default)]
    payment_method: serde_json::Value,
    /// The PaymentIntent of the failed request, if it exists.
    #[serde(default)]
    pub payment_intent: Option<Box<PaymentIntent>>,
}

/// A list page of PaymentIntents.
#[derive(Debug, Deserialize)]
pub struct PaymentIntentList {
    pub data: Vec<PaymentIntent>,
    pub has_more: bool,
}

/// A customer. For a deleted customer, Stripe returns little more than these fields.
#[derive(Debug, Deserialize)]
pub struct Customer {
    pub id: String,
    #[serde(default)]
    pub deleted: bool,
}

/// A Stripe account.
#[derive(Debug, Deserialize)]
pub struct Account {
    pub id: String,
}

/// Returns the parameters of a PaymentIntent that is created and confirmed in one request, without the customer being
/// present ("Create a PaymentIntent" in Stripe's API reference).
///
/// # Errors
/// [`AmountError`] if Stripe's API cannot express the amount.
pub fn payment_intent_parameters(request: &ChargeRequest) -> Result<Vec<(String, String)>, AmountError> {
    let amount = amount::to_stripe(request.amount)?;
    let metadata = |name: &str, value: String| (format!("metadata[{name}]"), value);
    let mut parameters = vec![
        ("amount".to_owned(), amount.to_string()),
        ("currency".to_owned(), request.amount.currency().code().to_ascii_lowercase()),
        ("customer".to_owned(), request.payment_method.customer.to_string()),
        ("payment_method".to_owned(), request.payment_method.payment_method.to_string()),
        ("confirm".to_owned(), "true".to_owned()),
        ("off_session".to_owned(), "true".to_owned()),
        // Accept any type of payment method, but no redirects: the customer is not present.
        ("automatic_payment_methods[enabled]".to_owned(), "true".to_owned()),
        ("automatic_payment_methods[allow_redirects]".to_owned(), "never".to_owned()),
        // Request the charge in expanded form: it contains the brand and the last four digits of the card.
        ("expand[0]".to_owned(), "latest_charge".to_owned()),
        metadata(ACCOUNT_METADATA_KEY, request.account.to_string()),
        metadata(SUBSCRIPTION_METADATA_KEY, request.subscription.to_string()),
        metadata(SKU_METADATA_KEY, request.sku.to_string()),
        metadata(DUE_DATE_METADATA_KEY, request.due_on.to_string()),
        metadata(ATTEMPT_METADATA_KEY, request.attempt_no.to_string()),
    ];
    parameters.extend(request.table.map(|table| metadata(TABLE_METADATA_KEY, table.to_string())));
    Ok(parameters)
}

impl Error {
    /// Returns whether the error means that the object in the request parameter `parameter` does not exist.
    pub fn is_missing(&self, parameter: &str) -> bool {
        self.code.as_deref() == Some("resource_missing") && self.param.as_deref() == Some(parameter)
    }

    /// Returns whether a response with `status` and this error proves that Stripe made no payment. Only
    /// `invalid_request_error` with status 400 (bad request) or 404 (unknown object) proves this ("Errors" in Stripe's
    /// API reference). With any other error the card may have been charged.
    pub fn proves_no_payment_was_made(&self, status: StatusCode) -> bool {
        matches!(status, StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND)
            && self.kind == "invalid_request_error"
            && self.payment_intent.is_none()
    }

    /// Returns the permission that the restricted key lacks, if the message names it ("Having the 'rak_...' permission
    /// would allow this request").
    pub fn permission(&self) -> Option<&str> {
        let mut quoted = self.message.as_deref()?.split('\'').skip(1).step_by(2);
        quoted.find(|name| name.starts_with("rak_"))
    }

    /// Returns the most specific name of the error: its decline code, its code, or its type.
    pub fn most_specific_code(&self) -> &str {
        self.decline_code.as_deref().or(self.code.as_deref()).unwrap_or(&self.kind)
    }
}

impl ListedObject for PaymentIntent {
    fn id(&self) -> &GatewayToken {
        &self.id
    }
}

impl PaymentIntent {
    /// Returns the reason why the PaymentIntent did not succeed.
    pub fn decline(&self) -> Decline {
        let error = self.last_payment_error.as_ref();
        let on_charge = || self.latest_charge.pointer("/outcome/advice_code").and_then(serde_json::Value::as_str);
        let advice = error.and_then(|error| error.advice_code.as_deref()).or_else(on_charge);
        decline(error.map_or("canceled", Error::most_specific_code), advice)
    }

    /// Describes the contradiction between the status of the PaymentIntent and the status of its latest charge. Returns
    /// `None` if there is no contradiction, or if the response does not contain the charge in expanded form with its
    /// status.
    pub fn contradiction(&self) -> Option<String> {
        let charge = self.latest_charge["status"].as_str()?;
        let is_contradicted = match self.status {
            Status::Succeeded => matches!(charge, "failed" | "pending"),
            Status::Processing => charge == "failed",
            Status::RequiresPaymentMethod => charge == "succeeded",
            // These statuses never contradict the charge: a PaymentIntent can have them whatever the status of its
            // latest charge is.
            Status::Canceled | Status::RequiresConfirmation | Status::RequiresAction | Status::RequiresCapture => false,
        };
        is_contradicted.then(|| format!("{} is {:?}, and its latest charge is {charge}", self.id, self.status))
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

    /// Returns the payment status without cancelling the PaymentIntent first. A payment that is returned as declined
    /// may therefore still succeed.
    pub fn reported_status(&self) -> PaymentStatus {
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

    /// Returns the payment with `status`; `None` if the PaymentIntent was not created by this software.
    pub fn payment(&self, status: PaymentStatus) -> Option<Payment> {
        let metadata = |key: &str| self.metadata.get(key);
        Some(Payment {
            id: self.id.clone(),
            table: metadata(TABLE_METADATA_KEY).and_then(|table| table.parse().ok()),
            account: metadata(ACCOUNT_METADATA_KEY)?.parse().ok()?,
            subscription: metadata(SUBSCRIPTION_METADATA_KEY)?.parse().ok()?,
            due_on: metadata(DUE_DATE_METADATA_KEY)?.parse().ok()?,
            attempt_no: metadata(ATTEMPT_METADATA_KEY)?.parse().ok()?,
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

    /// Returns a PaymentIntent with `status`, the last payment error `error`, and the latest charge `charge`.
    fn intent(status: &str, error: serde_json::Value, charge: serde_json::Value) -> PaymentIntent {
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
            let intent = intent("requires_payment_method", error, charge);
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
            ("canceled", json!({"status": "failed"}), false),
            ("succeeded", json!("ch_1"), false),
            ("succeeded", json!(null), false),
        ] {
            let intent = intent(status, json!(null), charge.clone());
            assert_eq!(intent.contradiction().is_some(), contradicts, "{status}, {charge}");
        }
    }

    #[test]
    fn missing_permission_is_read_from_the_error_message() {
        let error = |message: &str| serde_json::from_value::<Error>(json!({ "message": message })).unwrap();
        let error_with_permission = error(
            "The provided key 'rk_live_***x' does not have the required permissions for this endpoint on account \
                          'acct_1'. Having the 'rak_charge_read' permission would allow this request to continue.",
        );
        assert_eq!(error_with_permission.permission(), Some("rak_charge_read"));
        assert_eq!(error("This is a restricted API key, but the permissions are not available.").permission(), None);
    }
}
