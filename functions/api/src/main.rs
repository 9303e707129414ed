//! The Lambda function of the HTTP API.

mod queues;

use std::sync::Arc;

use api::{Api, DeployedParts, INVALID_GATEWAY_SETTINGS_MESSAGE, PARTS};
use axum::Extension;
use charging::{ChargeConfig, SIGN_UP_GATEWAY_TIMEOUT};
use clock::SystemClock;
use config::{Env, SECRET_UNREADABLE};
use gateway_secrets::FirstSecretRead;
use lambda_http::{Error, tracing};
use mail::{API_URL, Merchant};
use mimalloc::MiMalloc;
use outbound::{AllowedAddresses, DELIVERY_QUEUE, EndpointUrlCheck, QUEUES};
use queues::{QueueUrls, SqsQueues};
use rest::{PublicUrl, TokenRules};
use sqs::SqsQueue;
use store::{TableConfig, load_sdk_config};

// The allocator mimalloc is faster here than the default allocator: a request spends most of its time in the AWS SDK,
// which makes many small allocations.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

// A single thread is enough: a Lambda function with 256 MB of memory has only a fraction of a CPU core.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    logs::start_logging();
    let env = Env::of_process();
    let (config, charging) = (TableConfig::read(env)?, ChargeConfig::read(env)?);
    let merchant = Merchant::read(env)?;
    let sdk = load_sdk_config().await;
    let sqs = aws_sdk_sqs::Client::new(&sdk);
    let parts = env.read(&PARTS, str::parse::<DeployedParts>)?;
    let api = Api::new(config.connect(&sdk), &config, merchant, Arc::new(SystemClock)).await?.with_parts(parts);
    let api = match parts {
        DeployedParts::Core => api,
        DeployedParts::Full => {
            let queue = SqsQueue::new(sqs.clone(), env.required_text(&DELIVERY_QUEUE)?);
            let api = api.with_deliveries(Arc::new(queue), EndpointUrlCheck::new(AllowedAddresses::PublicOnly));
            // Without the encryption keys, only the routes that create a webhook endpoint or rotate its secret return 503.
            match secrets::read_encryption_keys(env, &sdk).await {
                Ok(keys) => api.with_encryption(keys),
                Err(error) => {
                    tracing::error!(%error, error_type = "Secret", "{SECRET_UNREADABLE}: routes that need the encryption keys return 503");
                    api
                }
            }
        }
    };
    // Without a gateway, the routes that need a gateway return 503. All other routes still work. If the gateway is
    // configured but its secret cannot be read now, the function starts, and reads the secret again when a route needs
    // the gateway.
    let api = match gateway_secrets::create_gateway_from_environment(
        env,
        &sdk,
        SIGN_UP_GATEWAY_TIMEOUT,
        FirstSecretRead::MayFail,
        Arc::new(SystemClock),
    )
    .await
    {
        Ok(gateway) => api.with_gateway(gateway, &charging),
        Err(error) => {
            tracing::error!(%error, error_type = "Config", "{INVALID_GATEWAY_SETTINGS_MESSAGE}");
            api.with_known_amount_rules(env)
        }
    };
    let api = match env.read_optional(&QUEUES, QueueUrls::parse)? {
        Some(urls) => api.with_queues(Arc::new(SqsQueues::new(sqs, urls))),
        None => api,
    };
    let router = match env.read_optional(&API_URL, PublicUrl::parse)? {
        Some(public_url) => api.router().layer(Extension(public_url)),
        None => api.router(),
    };
    api_gateway::serve_router_in_lambda(api_gateway::add_api_gateway_middlewares(router, TokenRules::read(env)?)).await
}
