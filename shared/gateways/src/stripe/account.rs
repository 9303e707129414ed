//! The identity of the Stripe account that a key belongs to. A restricted key cannot read its account. For such a key,
//! this software creates a customer object in the account as a marker, and recognizes the account by this marker.

use reqwest::StatusCode;

use super::wire_format::{StripeCustomer, StripeError};
use super::{RequestFailure, Stripe};
use billing::GatewayAccount;

/// The kind of gateway in each [`GatewayAccount`] at Stripe.
pub(super) const GATEWAY_KIND: &str = "stripe";
/// The prefix of the id of a marker. Markers are customer objects, because a restricted key for this software has
/// permission to read and write customers.
const MARKER_PREFIX: &str = "cus_";
/// The prefix of a restricted key.
const RESTRICTED_PREFIX: &str = "rk_";

/// Returns the reason why Stripe refuses the key, with the missing permission if Stripe names it.
pub(super) fn describe_refusal(status: StatusCode, error: Option<&StripeError>) -> String {
    match error.and_then(StripeError::permission) {
        Some(permission) => format!("{status}: the key lacks the permission {permission}"),
        None => status.to_string(),
    }
}

/// Returns whether `reason`, a text that [`describe_refusal`] returned, means that the key lacks a permission. Stripe
/// refuses an invalid key with another HTTP status ("Errors" in Stripe's API reference).
pub(super) fn is_missing_permission(reason: &str) -> bool {
    reason.starts_with(StatusCode::FORBIDDEN.as_str())
}

/// Returns whether `key` is a live key, which moves real money. The prefix of a key contains its mode ("API keys" in
/// Stripe's documentation).
pub fn is_live_stripe_key(key: &str) -> bool {
    key.starts_with("sk_live_") || key.starts_with("rk_live_")
}

impl Stripe {
    /// Returns the gateway account with the id `id`, in the mode of the key (test or live). `id` is the id of the
    /// Stripe account, or of the marker in this account.
    pub(super) async fn gateway_account(&self, id: String) -> Result<GatewayAccount, RequestFailure> {
        Ok(GatewayAccount {
            kind: GATEWAY_KIND.to_owned(),
            account: id,
            live: is_live_stripe_key(&self.current_key().await?),
        })
    }

    /// Creates a marker: a customer object at Stripe that later identifies the Stripe account, because a restricted key
    /// cannot read the account. Returns `None` for a secret key, which can read the account.
    pub(super) async fn new_marker(&self) -> Result<Option<GatewayAccount>, RequestFailure> {
        if !self.current_key().await?.starts_with(RESTRICTED_PREFIX) {
            return Ok(None);
        }
        let parameters =
            [("description", "Dueday: names this account. Do not delete."), ("metadata[dueday_marker]", "true")];
        let created: StripeCustomer = self.send(self.http.post(self.api_url("customers")).form(&parameters)).await?;
        self.gateway_account(created.id).await.map(Some)
    }

    /// Returns whether the marker `stored` exists in the account and mode of the key; `None` if `stored` is not a
    /// marker. A deleted marker counts as existing, because Stripe still returns its id to keys of the account, and
    /// only to these keys.
    pub(super) async fn marker_exists(&self, stored: &GatewayAccount) -> Result<Option<bool>, RequestFailure> {
        if stored.kind != GATEWAY_KIND || !stored.account.starts_with(MARKER_PREFIX) {
            return Ok(None);
        }
        if stored.live != is_live_stripe_key(&self.current_key().await?) {
            return Ok(Some(false));
        }
        Ok(Some(self.read_customer(&stored.account).await?.is_some()))
    }
}
