//! Creates the payment gateway that the environment variables select. Reads its keys from AWS Secrets Manager or from
//! the environment.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

use std::sync::Arc;
use std::time::Duration;

use aws_config::SdkConfig;
use aws_sdk_secretsmanager::error::ProvideErrorMetadata as _;

use config::{ConfigError, Env, Variable};
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
    let (from, key) = read_secret(env, sdk, (&STRIPE_KEY_SECRET_NAME, &STRIPE_SECRET_KEY)).await?;
    stripe_with(env, (from, &key), timeout)
}

/// Reads the signing secrets of our inbound webhook at Stripe: from AWS Secrets Manager if
/// `DUEDAY_STRIPE_WEBHOOK_SECRET_NAME` contains the name of a secret, otherwise from `STRIPE_WEBHOOK_SECRET`.
///
/// # Errors
/// [`ConfigError`] if a variable is missing or invalid, or the secret cannot be read. The error never contains the
/// secrets.
pub async fn stripe_signing_secrets(env: Env<'_>, sdk: &SdkConfig) -> Result<SigningSecrets, ConfigError> {
    let (from, text) = read_secret(env, sdk, (&STRIPE_WEBHOOK_SECRET_NAME, &STRIPE_WEBHOOK_SECRET)).await?;
    SigningSecrets::parse(&text).map_err(|error| ConfigError::Invalid { name: from.name, reason: error.to_string() })
}

/// Returns the secret, and the variable from which it comes. If `name_variable` is set, its value is the name of the
/// secret in AWS Secrets Manager; otherwise `value_variable` contains the secret itself.
async fn read_secret<'a>(
    env: Env<'_>,
    sdk: &SdkConfig,
    (name_variable, value_variable): (&'a Variable, &'a Variable),
) -> Result<(&'a Variable, String), ConfigError> {
    match env.get(name_variable) {
        Some(name) => Ok((name_variable, secret_from_secrets_manager(sdk, name_variable, &name).await?)),
        None => Ok((value_variable, env.text(value_variable)?)),
    }
}

/// Returns the text of the secret `name` in AWS Secrets Manager. `name_variable` is the variable that contains this
/// name.
async fn secret_from_secrets_manager(
    sdk: &SdkConfig,
    name_variable: &Variable,
    name: &str,
) -> Result<String, ConfigError> {
    let invalid = |reason: String| ConfigError::Invalid { name: name_variable.name, reason };
    let result = aws_sdk_secretsmanager::Client::new(sdk).get_secret_value().secret_id(name).send().await;
    // Use only the code of the error, because the error may contain the whole response.
    let response = result.map_err(|error| {
        invalid(format!("cannot be read: {}", error.code().unwrap_or("no usable response from AWS Secrets Manager")))
    })?;
    response.secret_string.ok_or_else(|| invalid("must be the name of a secret that contains text".to_owned()))
}
