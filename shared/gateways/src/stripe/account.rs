//! The account that a key belongs to, and the marker that names it for a restricted key that may not read the account.

use reqwest::StatusCode;

use super::wire::{Customer, Error};
use super::{Failed, Stripe};
use billing::GatewayAccount;

const KIND: &str = "stripe";
/// Markers are customers, because a restricted key may read and write these.
const MARKER_PREFIX: &str = "cus_";
const RESTRICTED_PREFIX: &str = "rk_";

/// Returns why Stripe refuses the key, with the permission that would be needed, if Stripe names one.
pub(super) fn refusal(status: StatusCode, error: Option<&Error>) -> String {
    match error.and_then(Error::permission) {
        Some(permission) => format!("{status}: the key lacks the permission {permission}"),
        None => status.to_string(),
    }
}

impl Stripe {
    /// Whether the key moves money: keys name their mode ("API keys" in Stripe's documentation).
    fn is_live(&self) -> bool {
        self.key.starts_with("sk_live_") || self.key.starts_with("rk_live_")
    }

    /// The account `id` in the mode of the key.
    pub(super) fn named(&self, id: String) -> GatewayAccount {
        GatewayAccount { kind: KIND.to_owned(), account: id, live: self.is_live() }
    }

    /// Creates a customer that marks the account of a restricted key. `None` for a secret key, which can read the account.
    pub(super) async fn new_marker(&self) -> Result<Option<GatewayAccount>, Failed> {
        if !self.key.starts_with(RESTRICTED_PREFIX) {
            return Ok(None);
        }
        let parameters =
            [("description", "Dueday: names this account. Do not delete."), ("metadata[dueday_marker]", "true")];
        let created: Customer = self.send(self.http.post(self.at("customers")).form(&parameters)).await?;
        Ok(Some(self.named(created.id)))
    }

    /// Whether the key's account, in its mode, has the marker `named`; `None` if `named` is not a marker. A marker that was deleted
    /// counts: its id can still be read, and only in its account.
    pub(super) async fn finds_marker(&self, named: &GatewayAccount) -> Result<Option<bool>, Failed> {
        if named.kind != KIND || !named.account.starts_with(MARKER_PREFIX) {
            return Ok(None);
        }
        if named.live != self.is_live() {
            return Ok(Some(false));
        }
        Ok(Some(self.customer(&named.account).await?.is_some()))
    }
}
