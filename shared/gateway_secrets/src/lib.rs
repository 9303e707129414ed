//! Creates the payment gateway that the environment variables select. Reads its keys from AWS Secrets Manager or from
//! the environment.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

use std::sync::Arc;
use std::time::Duration;

use aws_config::SdkConfig;
use config::{ConfigError, Env};
use gateways::{
    FullGateway, GatewayChoice, HttpGateway, STRIPE_KEY_SECRET_NAME, STRIPE_SECRET_KEY, STRIPE_WEBHOOK_SECRET,
    STRIPE_WEBHOOK_SECRET_NAME, SigningSecrets, Stripe, stripe_with,
};

/// Creates the gateway that `DUEDAY_GATEWAY` selects, with `timeout` for each response. The secret key of Stripe is
/// read from AWS Secrets Manager if `DUEDAY_STRIPE_KEY_SECRET_NAME` contains the name of a secret, otherwise from
/// `STRIPE_SECRET_KEY`.
///
/// # Errors
/// [`ConfigError`] if a variable is missing or invalid, or the secret cannot be read. The error never contains the key.
pub async fn gateway_from_environment(
    env: Env<'_>,
    sdk: &SdkConfig,
    timeout: Duration,
) -> Result<Arc<dyn FullGateway>, ConfigError> {
    match GatewayChoice::read(env)? {
        GatewayChoice::At(url) => Ok(Arc::new(HttpGateway::new(&url, timeout))),
        GatewayChoice::Stripe => Ok(Arc::new(stripe_from_environment(env, sdk, timeout).await?)),
    }
}

/// Creates the gateway for Stripe, with its key from the same place as in [`gateway_from_environment`].
///
/// # Errors
/// [`ConfigError`] if a variable is missing or invalid, or the secret cannot be read. The error never contains the key.
pub async fn stripe_from_environment(env: Env<'_>, sdk: &SdkConfig, timeout: Duration) -> Result<Stripe, ConfigError> {
    let (from, key) = secrets::read_secret(env, sdk, (&STRIPE_KEY_SECRET_NAME, &STRIPE_SECRET_KEY)).await?;
    stripe_with(env, (from, &key), timeout)
}

/// Reads the signing secrets of our inbound webhook at Stripe: from AWS Secrets Manager if
/// `DUEDAY_STRIPE_WEBHOOK_SECRET_NAME` contains the name of a secret, otherwise from `STRIPE_WEBHOOK_SECRET`.
///
/// # Errors
/// [`ConfigError`] if a variable is missing or invalid, or the secret cannot be read. The error never contains the
/// secrets.
pub async fn stripe_signing_secrets(env: Env<'_>, sdk: &SdkConfig) -> Result<SigningSecrets, ConfigError> {
    let (from, text) = secrets::read_secret(env, sdk, (&STRIPE_WEBHOOK_SECRET_NAME, &STRIPE_WEBHOOK_SECRET)).await?;
    SigningSecrets::parse(&text).map_err(|error| ConfigError::Invalid { name: from.name, reason: error.to_string() })
}
