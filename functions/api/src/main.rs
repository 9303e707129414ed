use std::sync::Arc;

use api::Api;
use clock::SystemClock;
use config::{BillingConfig, Env};
use delivery::DELIVERY_QUEUE;
use delivery::Reach;
use lambda_http::{Error, run, tracing};
use mail::Merchant;
use payments::{ChargeConfig, TIME_TO_WAIT};
use rest::Claims;
use sqs::SqsQueue;
use store::{TableConfig, sdk};

// A Lambda of 256 MB has a fraction of a core.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    logs::init();
    let env = Env::process();
    let (config, charging) = (TableConfig::read(env)?, ChargeConfig::read(env)?);
    let terms = (&config, BillingConfig::read(env)?, Merchant::read(env)?);
    let sdk = sdk().await;
    let queue = SqsQueue::new(aws_sdk_sqs::Client::new(&sdk), env.text(&DELIVERY_QUEUE)?);
    let api = Api::new(config.over(&sdk), terms, Arc::new(SystemClock))
        .await?
        .with_deliveries(Arc::new(queue), Reach::Public);
    // What needs no gateway is answered without one.
    let api = match secrets::configured(env, &sdk, TIME_TO_WAIT.to_std()?).await {
        Ok(gateway) => api.with_gateway(gateway, &charging),
        Err(error) => {
            tracing::error!(%error, "the gateway cannot be used");
            api
        }
    };
    run(rest::behind_gateway(api.router(), Claims::read(env)?)).await
}
