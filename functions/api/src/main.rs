use std::sync::Arc;

use api::Api;
use lambda_http::{Error, run, tracing};
use rest::Claims;
use shared::clock::SystemClock;
use shared::config::{Config, DELIVERY_QUEUE, Env};
use shared::webhooks::{Reach, SqsQueue};

// A Lambda of 256 MB has a fraction of a core.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let env = Env::process();
    let config = Config::read(env)?;
    let sdk = config.sdk().await;
    let queue = SqsQueue::new(aws_sdk_sqs::Client::new(&sdk), env.text(&DELIVERY_QUEUE)?);
    let api = Api::new(config.over(&sdk), &config, Arc::new(SystemClock))
        .await?
        .with_deliveries(Arc::new(queue), Reach::Public);
    run(rest::behind_gateway(api.router(), Claims::read(env)?)).await
}
