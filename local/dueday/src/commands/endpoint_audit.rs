//! The part of `dueday audit` that checks the webhook endpoints.

use audit::{BrokenInvariant, Invariant};
use billing::{StoredSecret, WebhookEndpoint};
use chrono::{DateTime, Utc};
use delivery::EndpointSecrets;
use encryption::ENCRYPTION_KEYS;
use store::{Paging, TableError};

use crate::Failure;
use crate::context::Context;
use crate::machine::open_table::OpenTable;
use crate::terminal::output;

/// Returns the violations in the items of the webhook endpoints: items that cannot be read, secrets that cannot be
/// decrypted at `now`, and secrets in plain text. Without encryption keys, prints that no secret was decrypted.
///
/// # Errors
/// If the endpoints cannot be listed, or the encryption keys are invalid.
pub async fn audit_endpoints(
    context: &Context,
    open_table: &OpenTable,
    now: DateTime<Utc>,
) -> Result<Vec<BrokenInvariant>, Failure> {
    let page = open_table.table.get_webhook_endpoints(&Paging::all()).await?;
    let unreadable = |error: &TableError| violation(Invariant::Readable, error.to_string());
    let mut broken: Vec<_> = page.unreadable.iter().map(unreadable).collect();
    broken.extend(page.items.iter().filter(|endpoint| has_plain_secret(endpoint)).map(|endpoint| {
        violation(Invariant::Encrypted, format!("a signing secret of {} is stored as plain text", endpoint.id))
    }));
    match open_table.encryption_keys(context)? {
        Some(keys) => {
            let secrets = EndpointSecrets::new(keys, context.clock.clone());
            let decrypted = page.items.iter().map(|endpoint| secrets.signing_secrets(endpoint, now));
            broken.extend(decrypted.filter_map(Result::err).map(|error| unreadable(&error)));
        }
        None if page.items.is_empty() => {}
        None => output::print_message(format!(
            "the secrets of the webhook endpoints were not decrypted, because {} is not set",
            ENCRYPTION_KEYS.name
        )),
    }
    Ok(broken)
}

/// Returns whether the item of `endpoint` contains a secret in plain text.
fn has_plain_secret(endpoint: &WebhookEndpoint) -> bool {
    let previous = endpoint.previous_secret.as_ref().map(|(secret, _)| secret);
    std::iter::once(&endpoint.secret).chain(previous).any(|secret| matches!(secret, StoredSecret::Plain(_)))
}

/// Returns the violation of `invariant` by a webhook endpoint.
fn violation(invariant: Invariant, what: String) -> BrokenInvariant {
    BrokenInvariant { invariant, key: "webhook endpoint".to_owned(), what }
}
