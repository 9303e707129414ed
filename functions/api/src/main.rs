use std::sync::Arc;
use std::time::Duration;

use api::Api;
use lambda_http::{Error, run, tracing};
use rest::Claims;
use shared::clock::SystemClock;
use shared::config::{Config, DELIVERY_QUEUE, Env};
use shared::gateway;
use shared::webhooks::{Reach, SqsQueue};

/// Somebody waits, and an HTTP API gives up after 30 seconds.
const GATEWAY_TIMEOUT: Duration = Duration::from_secs(10);

// A Lambda of 256 MB has a fraction of a core.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    shared::logs::init();
    let env = Env::process();
    let config = Config::read(env)?;
    let sdk = config.sdk().await;
    let queue = SqsQueue::new(aws_sdk_sqs::Client::new(&sdk), env.text(&DELIVERY_QUEUE)?);
    let api = Api::new(config.over(&sdk), &config, Arc::new(SystemClock))
        .await?
        .with_deliveries(Arc::new(queue), Reach::Public);
    // What needs no gateway is answered without one.
    let api = match gateway::configured(env, &sdk, GATEWAY_TIMEOUT).await {
        Ok(gateway) => api.with_gateway(gateway),
        Err(error) => {
            tracing::error!(%error, "the gateway cannot be used");
            api
        }
    };
    run(rest::behind_gateway(api.router(), Claims::read(env)?)).await
}
