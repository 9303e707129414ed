//! The Lambda function for inbound webhooks from Stripe.

use std::sync::Arc;
use std::time::Duration;

use clock::{Clock, SystemClock};
use config::Env;
use gateway_secrets::FirstSecretRead;
use inbound::StripeEventHandler;
use lambda_http::Error;
use store::{TableConfig, load_sdk_config};

/// The timeout of a request to Stripe. It is short, because Stripe waits for the response to its webhook, and API
/// Gateway ends the request after 30 seconds.
const GATEWAY_TIMEOUT: Duration = Duration::from_secs(8);

// A Lambda function with 256 MB has less than one CPU core, so more threads would not help.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    logs::start_logging();
    let env = Env::of_process();
    let config = TableConfig::read(env)?;
    let sdk = load_sdk_config().await;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let stripe = gateway_secrets::create_stripe_client_from_environment(
        env,
        &sdk,
        GATEWAY_TIMEOUT,
        FirstSecretRead::MustSucceed,
        clock.clone(),
    )
    .await?;
    let signing = gateway_secrets::read_stripe_signing_secrets(env, &sdk, clock.clone()).await?;
    let events = StripeEventHandler::new(config.connect(&sdk), Arc::new(stripe), signing, clock);
    api_gateway::serve_router_in_lambda(rest::complete_router(inbound::stripe_webhook_routes(Arc::new(events)))).await
}
