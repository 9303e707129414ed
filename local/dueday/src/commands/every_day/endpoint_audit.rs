//! The part of `dueday audit` that checks the webhook endpoints.

use audit::{BrokenInvariant, check_endpoints, unreadable_endpoint};
use chrono::{DateTime, Utc};
use encryption::ENCRYPTION_KEYS;
use outbound::EndpointSecrets;
use store::Paging;

use crate::Failure;
use crate::context::CommandContext;
use crate::machine::open_table::OpenTable;
use crate::terminal::output;

/// Returns the violations in the items of the webhook endpoints: endpoints whose secrets cannot be decrypted at the time
/// `now`, and secrets in plain text. Without encryption keys, prints that no secret was
/// decrypted.
///
/// # Errors
/// If the endpoints cannot be listed, or the encryption keys are invalid.
pub async fn audit_endpoints(
    context: &CommandContext,
    open_table: &OpenTable,
    now: DateTime<Utc>,
) -> Result<Vec<BrokenInvariant>, Failure> {
    let page = open_table.table.get_webhook_endpoints(&Paging::all()).await?;
    let mut broken = check_endpoints(&page);
    match open_table.encryption_keys(context)? {
        Some(keys) => {
            let secrets = EndpointSecrets::new(keys, context.clock.clone());
            let decrypted = page.items.iter().map(|endpoint| secrets.signing_secrets(endpoint, now));
            broken.extend(decrypted.filter_map(Result::err).map(|error| unreadable_endpoint(&error)));
        }
        None if page.items.is_empty() => {}
        None => output::print_message(format!(
            "the secrets of the webhook endpoints were not decrypted, because {} is not set",
            ENCRYPTION_KEYS.name
        )),
    }
    Ok(broken)
}
