//! The Lambda function of the sandbox gateway. It serves the HTTP API of a merchant's own gateway, and the checkout
//! page on which a customer chooses a test card.
//!
//! The other functions of the stack call this function at its function URL, which AWS IAM protects. API Gateway passes
//! only requests of browsers for checkout pages to this function.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod checkout_pages;
mod items;
mod payments;
mod refunds;
mod table;

use std::sync::Arc;

use axum::Router;
use clock::Clock;
use config::Env;
use gateways::{GATEWAY_KEY, GatewaySigningKeys};
use sandbox::{SANDBOX_TABLE, gateway_router, signed_gateway_router};
use store::{ENDPOINT, TableSetUpError, create_dynamodb_client, load_sdk_config};

pub use table::SandboxTable;

/// Creates the routes of the function from the environment variables. If `DUEDAY_GATEWAY_KEY` is set, requests must be
/// signed with this key. The sandbox on one machine has the same rule. Creates the table, if it is absent and not on AWS.
///
/// # Errors
/// [`TableSetUpError`] if a variable is missing or not valid, or the table cannot be created.
pub async fn set_up_sandbox_router(env: Env<'_>, clock: Arc<dyn Clock>) -> Result<Router, TableSetUpError> {
    let endpoint = env.get(&ENDPOINT);
    let client = create_dynamodb_client(&load_sdk_config().await, endpoint.as_deref());
    let table = Arc::new(SandboxTable::new(client, env.required_text(&SANDBOX_TABLE)?, clock.clone()));
    if endpoint.is_some() {
        table.create_if_absent().await?;
    }
    Ok(match env.read_optional(&GATEWAY_KEY, str::parse::<GatewaySigningKeys>)? {
        Some(keys) => signed_gateway_router(table, keys, clock),
        None => gateway_router(table),
    })
}
