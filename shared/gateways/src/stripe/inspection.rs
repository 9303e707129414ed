//! Checks a Stripe account and its key before the first charge, with requests that change nothing.

use futures::future::join_all;
use serde::Deserialize;

use super::account::is_missing_permission;
use super::{GatewayError, RequestFailure, Stripe};
use billing::GatewayToken;

/// The lists of the objects that this software needs to read, each with the permission that the key needs to read the
/// list. The response to a request for a list shows whether the key has the permission ("Restricted API keys" in
/// Stripe's documentation; docs/cards.md lists the permissions).
const LISTS_WITH_PERMISSIONS: [(&str, &str); 8] = [
    ("payment_intents", "PaymentIntents read"),
    ("charges", "Charges read"),
    ("checkout/sessions", "Checkout Sessions read"),
    ("setup_intents", "SetupIntents read"),
    ("payment_methods", "PaymentMethods read"),
    ("customers", "Customers read"),
    ("refunds", "Refunds read"),
    ("disputes", "Disputes read"),
];

/// A webhook endpoint of the Stripe account ("The Webhook Endpoint object" in Stripe's API reference).
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct StripeWebhookEndpoint {
    pub id: GatewayToken,
    pub url: String,
    /// `enabled` or `disabled`.
    pub status: String,
    /// The types of the events that Stripe sends, or `*` for all types.
    pub enabled_events: Vec<String>,
}

impl Stripe {
    /// Returns the read permissions that the key lacks. Sends one request for each permission. Write permissions are
    /// not checked, because this would require a change in the account.
    ///
    /// # Errors
    /// [`GatewayError`] if a response does not show whether the permission is missing, for example because Stripe
    /// refuses the key.
    pub async fn missing_read_permissions(&self) -> Result<Vec<String>, GatewayError> {
        let checks =
            join_all(LISTS_WITH_PERMISSIONS.map(|(path, permission)| self.check_permission(path, permission))).await;
        let missing: Result<Vec<Option<String>>, GatewayError> = checks.into_iter().collect();
        Ok(missing?.into_iter().flatten().collect())
    }

    /// If the key lacks the permission to read the list at `path`, returns the text `permission`, with Stripe's own
    /// name of the permission if Stripe returned it. Otherwise returns `None`.
    async fn check_permission(&self, path: &str, permission: &str) -> Result<Option<String>, GatewayError> {
        let first = self.http.get(self.api_url(path)).query(&[("limit", "1")]);
        match self.send::<serde_json::Value>(first).await {
            Ok(_) => Ok(None),
            Err(RequestFailure::Unusable(reason)) if is_missing_permission(&reason) => {
                let name = reason.rsplit(' ').next().filter(|name| name.starts_with("rak_"));
                Ok(Some(name.map_or(permission.to_owned(), |name| format!("{permission} ({name})"))))
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// Returns the webhook endpoints of the account; `None` if the key lacks the permission to read them. An endpoint
    /// that cannot be read is left out: the caller then reports that our endpoint is missing.
    ///
    /// # Errors
    /// [`GatewayError`] if there is no usable response.
    pub async fn webhook_endpoints(&self) -> Result<Option<Vec<StripeWebhookEndpoint>>, GatewayError> {
        match self.list_all("webhook_endpoints", &[]).await {
            Ok(listed) => {
                Ok(Some(listed.items.iter().filter_map(|listed| Deserialize::deserialize(listed).ok()).collect()))
            }
            Err(RequestFailure::Unusable(reason)) if is_missing_permission(&reason) => Ok(None),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Returns whether Stripe accepts the key, but the key lacks the permission to read the Stripe account to which it
    /// belongs.
    ///
    /// # Errors
    /// [`GatewayError`] if there is no usable response, or Stripe refuses the key.
    pub async fn is_account_unreadable(&self) -> Result<bool, GatewayError> {
        match self.send::<serde_json::Value>(self.http.get(self.api_url("account"))).await {
            Ok(_) => Ok(false),
            Err(RequestFailure::Unusable(reason)) if is_missing_permission(&reason) => Ok(true),
            Err(failure) => Err(failure.into()),
        }
    }
}
