use std::sync::Arc;
use std::time::Duration;

use clock::SystemClock;
use config::{BillingConfig, Env};
use inbound::StripeEvents;
use lambda_http::{Error, run};
use payments::ChargeConfig;
use store::{TableConfig, sdk};

/// Stripe waits for an answer, and an HTTP API gives up after 30 seconds.
const GATEWAY_TIMEOUT: Duration = Duration::from_secs(8);

// A Lambda of 256 MB has a fraction of a core.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    logs::init();
    let env = Env::process();
    let (config, billing, charging) = (TableConfig::read(env)?, BillingConfig::read(env)?, ChargeConfig::read(env)?);
    let sdk = sdk().await;
    let stripe = secrets::stripe(env, &sdk, GATEWAY_TIMEOUT).await?;
    let signing = secrets::signing_secrets(env, &sdk).await?;
    let events = StripeEvents::new(
        config.over(&sdk),
        Arc::new(stripe),
        signing,
        (&billing, charging.lease),
        Arc::new(SystemClock),
    );
    run(rest::router(inbound::routes(Arc::new(events)))).await
}
