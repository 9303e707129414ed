//! The wire format of Stripe's API: the parameters of requests, and the fields of responses. Only the fields that are
//! needed are read, so that an unexpected value in another field cannot make the outcome of a payment unknown.

use std::collections::HashMap;

use reqwest::StatusCode;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::super::ChargeRequest;
use super::amount::{self, AmountError};
use billing::GatewayToken;

// The metadata keys of a PaymentIntent. Their values identify the payment attempt.
pub(super) const TABLE_METADATA_KEY: &str = "dueday_table";
pub(super) const ACCOUNT_METADATA_KEY: &str = "dueday_account";
pub(super) const SUBSCRIPTION_METADATA_KEY: &str = "dueday_subscription";
pub(super) const SKU_METADATA_KEY: &str = "dueday_sku";
pub(super) const DUE_DATE_METADATA_KEY: &str = "dueday_due_date";
pub(super) const ATTEMPT_METADATA_KEY: &str = "dueday_attempt";

/// Reads a field that Stripe may return as `null`, and reads `null` as the default value (the types of stripe-node state
/// which fields can be `null`).
pub(super) fn null_as_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// A PaymentIntent.
#[derive(PartialEq, Debug, Deserialize)]
pub struct PaymentIntent {
    pub id: GatewayToken,
    pub status: StripePaymentStatus,
    pub amount: i64,
    /// The part of `amount` that was received; `None` if the response does not contain it.
    #[serde(default)]
    pub amount_received: Option<i64>,
    pub currency: String,
    /// The time at which the PaymentIntent was created, in seconds since 1970.
    pub created: i64,
    #[serde(default, deserialize_with = "null_as_default")]
    pub metadata: HashMap<String, String>,
    /// The latest charge if the response contains the charge in expanded form, otherwise the id of the latest charge.
    /// The charge is kept as untyped JSON, so that an unexpected value in it cannot make the PaymentIntent unreadable.
    #[serde(default)]
    pub latest_charge: Value,
    #[serde(default)]
    pub last_payment_error: Option<StripeError>,
}

/// The status of a PaymentIntent ("How PaymentIntents work" in Stripe's documentation).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StripePaymentStatus {
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
pub struct StripeErrorBody {
    pub error: StripeError,
}

/// An error from Stripe ("Errors" in Stripe's API reference).
#[derive(PartialEq, Debug, Deserialize)]
pub struct StripeError {
    #[serde(rename = "type", default, deserialize_with = "null_as_default")]
    pub kind: String,
    #[serde(default)]
    pub code: Option<String>,
    #[serde(default)]
    decline_code: Option<String>,
    /// The bank's advice after a decline, such as `try_again_later`.
    #[serde(default)]
    pub advice_code: Option<String>,
    /// The error message in English.
    #[serde(default)]
    message: Option<String>,
    /// The request parameter that caused the error.
    #[serde(default)]
    param: Option<String>,
    /// The payment method of the failed payment, in expanded form. Only its id is read.
    #[serde(default)]
    pub payment_method: Value,
    /// The PaymentIntent of the failed request, if it exists.
    #[serde(default)]
    pub payment_intent: Option<Box<PaymentIntent>>,
}

/// A customer. For a deleted customer, Stripe returns little more than these fields.
#[derive(Debug, Deserialize)]
pub struct StripeCustomer {
    pub id: String,
    #[serde(default, deserialize_with = "null_as_default")]
    pub deleted: bool,
}

/// A Stripe account.
#[derive(Debug, Deserialize)]
pub struct StripeAccount {
    pub id: String,
}

/// Returns the parameters of a PaymentIntent that is created and confirmed in one request, without the customer being
/// present ("Create a PaymentIntent" in Stripe's API reference).
///
/// # Errors
/// [`AmountError`] if Stripe's API cannot express the amount.
pub fn payment_intent_parameters(request: &ChargeRequest) -> Result<Vec<(String, String)>, AmountError> {
    let amount = amount::to_stripe_amount(request.amount)?;
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

impl StripeError {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn missing_permission_is_read_from_the_error_message() {
        let error = |message: &str| serde_json::from_value::<StripeError>(json!({ "message": message })).unwrap();
        let error_with_permission = error(
            "The provided key 'rk_live_***x' does not have the required permissions for this endpoint on account \
                          'acct_1'. Having the 'rak_charge_read' permission would allow this request to continue.",
        );
        assert_eq!(error_with_permission.permission(), Some("rak_charge_read"));
        assert_eq!(error("This is a restricted API key, but the permissions are not available.").permission(), None);
    }
}
