use std::sync::Arc;
use std::time::Duration;

use lambda_http::{Error, run};
use shared::clock::SystemClock;
use shared::config::{BillingConfig, Env};
use shared::gateway;
use shared::payments::ChargeConfig;
use shared::table::{TableConfig, sdk};
use webhooks::StripeEvents;

/// Stripe waits for an answer, and an HTTP API gives up after 30 seconds.
const GATEWAY_TIMEOUT: Duration = Duration::from_secs(8);

// A Lambda of 256 MB has a fraction of a core.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    shared::logs::init();
    let env = Env::process();
    let (config, billing, charging) = (TableConfig::read(env)?, BillingConfig::read(env)?, ChargeConfig::read(env)?);
    let sdk = sdk().await;
    let stripe = gateway::stripe(env, &sdk, GATEWAY_TIMEOUT).await?;
    let secrets = gateway::signing_secrets(env, &sdk).await?;
    let events = StripeEvents::new(
        config.over(&sdk),
        Arc::new(stripe),
        secrets,
        (&billing, charging.lease),
        Arc::new(SystemClock),
    );
    run(rest::router(webhooks::routes(Arc::new(events)))).await
}
