//! The gateway that the environment names.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

use std::sync::Arc;
use std::time::Duration;

use aws_config::SdkConfig;
use aws_sdk_secretsmanager::error::ProvideErrorMetadata as _;

use config::{ConfigError, Env, Variable};
use gateways::{
    GatewayChoice, HttpGateway, Processor, STRIPE_KEY_SECRET_NAME, STRIPE_SECRET_KEY, STRIPE_WEBHOOK_SECRET,
    STRIPE_WEBHOOK_SECRET_NAME, SigningSecrets, Stripe, stripe_with,
};

/// The gateway that `DUEDAY_GATEWAY` names, given at most `timeout` to answer. Stripe's key is the secret in AWS Secrets Manager
/// that `DUEDAY_STRIPE_KEY_SECRET_NAME` names, reached as `sdk` says; without one it is in `STRIPE_SECRET_KEY`.
///
/// # Errors
/// [`ConfigError`], which never says the key.
pub async fn configured(env: Env<'_>, sdk: &SdkConfig, timeout: Duration) -> Result<Arc<dyn Processor>, ConfigError> {
    match GatewayChoice::read(env)? {
        GatewayChoice::At(url) => Ok(Arc::new(HttpGateway::new(&url, timeout))),
        GatewayChoice::Stripe => Ok(Arc::new(stripe(env, sdk, timeout).await?)),
    }
}

/// Stripe, as [`configured`] says.
///
/// # Errors
/// [`ConfigError`], which never says the key.
pub async fn stripe(env: Env<'_>, sdk: &SdkConfig, timeout: Duration) -> Result<Stripe, ConfigError> {
    let (from, key) = secret(env, sdk, (&STRIPE_KEY_SECRET_NAME, &STRIPE_SECRET_KEY)).await?;
    stripe_with(env, (from, &key), timeout)
}

/// The signing secrets of our webhook endpoint at Stripe: the secret in AWS Secrets Manager that `DUEDAY_STRIPE_WEBHOOK_SECRET_NAME` names;
/// without one they are in `STRIPE_WEBHOOK_SECRET`.
///
/// # Errors
/// [`ConfigError`], which never says them.
pub async fn signing_secrets(env: Env<'_>, sdk: &SdkConfig) -> Result<SigningSecrets, ConfigError> {
    let (from, text) = secret(env, sdk, (&STRIPE_WEBHOOK_SECRET_NAME, &STRIPE_WEBHOOK_SECRET)).await?;
    SigningSecrets::parse(&text).map_err(|error| ConfigError::Invalid { name: from.name, reason: error.to_string() })
}

/// What is kept under the name that `named` holds, or else in `held`; and which of them it is from.
async fn secret<'a>(
    env: Env<'_>,
    sdk: &SdkConfig,
    (named, held): (&'a Variable, &'a Variable),
) -> Result<(&'a Variable, String), ConfigError> {
    match env.given(named) {
        Some(secret) => Ok((named, secret_text(sdk, named, &secret).await?)),
        None => Ok((held, env.text(held)?)),
    }
}

async fn secret_text(sdk: &SdkConfig, named: &Variable, secret: &str) -> Result<String, ConfigError> {
    let wrong = |reason: String| ConfigError::Invalid { name: named.name, reason };
    let asked = aws_sdk_secretsmanager::Client::new(sdk).get_secret_value().secret_id(secret).send().await;
    // Only its code: an error may hold the whole answer.
    let answer = asked.map_err(|error| {
        wrong(format!("cannot be read: {}", error.code().unwrap_or("Secrets Manager gave no usable answer")))
    })?;
    answer.secret_string.ok_or_else(|| wrong("must name a secret that is text".to_owned()))
}
