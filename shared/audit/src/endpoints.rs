//! The checks of the stored webhook endpoints.

use billing::{StoredSecret, WebhookEndpoint};
use store::{Page, TableError};

use super::{BrokenInvariant, Invariant};

/// Returns the violations in `endpoints`, the items of the webhook endpoints: secrets in plain text. The secrets are not
/// decrypted. [`super::check_other_items`] finds items that cannot be read.
pub fn check_endpoints(endpoints: &Page<WebhookEndpoint>) -> Vec<BrokenInvariant> {
    let plain = endpoints.items.iter().filter(|endpoint| has_plain_secret(endpoint));
    let what = |endpoint: &WebhookEndpoint| format!("a signing secret of {} is stored as plain text", endpoint.id);
    plain.map(|endpoint| endpoint_violation(Invariant::Encrypted, what(endpoint))).collect()
}

/// Returns the violation for a webhook endpoint whose item cannot be read because of `error`.
pub fn unreadable_endpoint(error: &TableError) -> BrokenInvariant {
    endpoint_violation(Invariant::Readable, error.to_string())
}

/// Returns whether the item of `endpoint` contains a secret in plain text.
fn has_plain_secret(endpoint: &WebhookEndpoint) -> bool {
    let previous = endpoint.previous_secret.as_ref().map(|(secret, _)| secret);
    std::iter::once(&endpoint.secret).chain(previous).any(|secret| matches!(secret, StoredSecret::Plain(_)))
}

/// Returns a violation of `invariant` by a webhook endpoint.
fn endpoint_violation(invariant: Invariant, what: String) -> BrokenInvariant {
    BrokenInvariant { invariant, key: "webhook endpoint".to_owned(), what }
}
