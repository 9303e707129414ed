//! Creates the payment gateway that the environment variables select. Reads the keys of the gateway from AWS Secrets
//! Manager or from the environment. An operator may replace a key in AWS Secrets Manager while a function is running.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

use std::sync::Arc;
use std::time::Duration;

use aws_config::SdkConfig;
use clock::Clock;
use config::{ConfigError, CurrentSecret, Env, EnvVariable};
use gateways::{
    FullGateway, GATEWAY_KEY, GATEWAY_KEY_SECRET_NAME, GatewayChoice, GatewaySigningKeys, HttpGateway, IamSigner,
    STRIPE_KEY_SECRET_NAME, STRIPE_SECRET_KEY, STRIPE_WEBHOOK_SECRET, STRIPE_WEBHOOK_SECRET_NAME, SigningSecrets,
    Stripe, http_gateway_with, parse_stripe_key, sandbox_with, stripe_with,
};
use secrets::ParseSecret;

/// Whether a function starts if it cannot read the secret of the gateway.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FirstSecretRead {
    /// The error is returned, and the function does not start.
    MustSucceed,
    /// The failed read is logged, and the secret is read again when it is needed.
    MayFail,
}

/// Creates the gateway that `DUEDAY_GATEWAY` selects. A request waits at most `timeout` for its response. A secret is
/// read again when its value is older than five minutes, by the time of `clock`. The secret key of Stripe is read from
/// AWS Secrets Manager if `DUEDAY_STRIPE_KEY_SECRET_NAME` contains the name of a secret, otherwise from
/// `STRIPE_SECRET_KEY`. In the same way, the key of a merchant's own gateway is read from the secret in
/// `DUEDAY_GATEWAY_KEY_SECRET_NAME`, otherwise from `DUEDAY_GATEWAY_KEY`.
///
/// # Errors
/// [`ConfigError`] in these cases: a variable is missing or invalid; or the secret cannot be read, and `first_read` is
/// [`FirstSecretRead::MustSucceed`]. The error never contains the key.
pub async fn create_gateway_from_environment(
    env: Env<'_>,
    sdk: &SdkConfig,
    timeout: Duration,
    first_read: FirstSecretRead,
    clock: Arc<dyn Clock>,
) -> Result<Arc<dyn FullGateway>, ConfigError> {
    match GatewayChoice::read(env)? {
        GatewayChoice::At(url) => {
            let parse = |text: &str| text.parse::<GatewaySigningKeys>().map_err(|error| error.to_string());
            let keys =
                match create_optional_secret(env, sdk, &GATEWAY_KEY_SECRET_NAME, &GATEWAY_KEY, parse, clock.clone())? {
                    Some(keys) => Some(read_secret_for_first_time(keys, first_read).await?),
                    None => None,
                };
            Ok(Arc::new(http_gateway_with(&url, &GATEWAY_KEY_SECRET_NAME, keys, timeout, clock)?))
        }
        GatewayChoice::Sandbox => Ok(Arc::new(create_sandbox_client_from_environment(env, sdk, timeout, clock)?)),
        GatewayChoice::Stripe => {
            Ok(Arc::new(create_stripe_client_from_environment(env, sdk, timeout, first_read, clock).await?))
        }
    }
}

/// Creates the client of the sandbox gateway in the same stack. The client signs its requests with the credentials in
/// `sdk`.
///
/// # Errors
/// [`ConfigError`] if `DUEDAY_SANDBOX_URL` is missing or not valid, or `sdk` contains no credentials or no region.
pub fn create_sandbox_client_from_environment(
    env: Env<'_>,
    sdk: &SdkConfig,
    timeout: Duration,
    clock: Arc<dyn Clock>,
) -> Result<HttpGateway, ConfigError> {
    let missing = |name, help| ConfigError::Missing { name, help };
    let credentials =
        sdk.credentials_provider().ok_or_else(|| missing("AWS_ACCESS_KEY_ID", "The credentials of AWS"))?;
    let region = sdk.region().ok_or_else(|| missing("AWS_REGION", "The region of AWS"))?;
    sandbox_with(env, IamSigner::new(credentials, region.as_ref()), timeout, clock)
}

/// Creates the client of Stripe. Reads the key of Stripe from the same variables as [`create_gateway_from_environment`].
///
/// # Errors
/// The same errors as in [`create_gateway_from_environment`].
pub async fn create_stripe_client_from_environment(
    env: Env<'_>,
    sdk: &SdkConfig,
    timeout: Duration,
    first_read: FirstSecretRead,
    clock: Arc<dyn Clock>,
) -> Result<Stripe, ConfigError> {
    let parse = |text: &str| parse_stripe_key(text).map_err(str::to_owned);
    let key = create_required_secret(env, sdk, &STRIPE_KEY_SECRET_NAME, &STRIPE_SECRET_KEY, parse, clock)?;
    stripe_with(env, read_secret_for_first_time(key, first_read).await?, timeout)
}

/// Returns the signing secrets of our inbound webhook at Stripe: from AWS Secrets Manager if
/// `DUEDAY_STRIPE_WEBHOOK_SECRET_NAME` contains the name of a secret, otherwise from `STRIPE_WEBHOOK_SECRET`.
///
/// # Errors
/// [`ConfigError`] if a variable is missing or invalid, or the secret cannot be read. The error never contains the
/// secrets.
pub async fn read_stripe_signing_secrets(
    env: Env<'_>,
    sdk: &SdkConfig,
    clock: Arc<dyn Clock>,
) -> Result<CurrentSecret<SigningSecrets>, ConfigError> {
    let parse = |text: &str| SigningSecrets::parse(text).map_err(|error| error.to_string());
    let secrets = create_required_secret(env, sdk, &STRIPE_WEBHOOK_SECRET_NAME, &STRIPE_WEBHOOK_SECRET, parse, clock)?;
    read_secret_for_first_time(secrets, FirstSecretRead::MustSucceed).await
}

/// Reads `secret` for the first time, so that its value is in memory, and returns `secret`. If the read fails,
/// `first_read` decides whether the function returns the error.
async fn read_secret_for_first_time<T: Clone + PartialEq>(
    secret: CurrentSecret<T>,
    first_read: FirstSecretRead,
) -> Result<CurrentSecret<T>, ConfigError> {
    match secret.get().await {
        Err(error) if first_read == FirstSecretRead::MustSucceed => Err(error),
        _ => Ok(secret),
    }
}

/// Returns the secret whose name in AWS Secrets Manager is the value of `name_variable`. If that variable is not set,
/// `value_variable` contains the secret itself.
fn create_required_secret<T: Clone + PartialEq + 'static>(
    env: Env<'_>,
    sdk: &SdkConfig,
    name_variable: &'static EnvVariable,
    value_variable: &'static EnvVariable,
    parse: ParseSecret<T>,
    clock: Arc<dyn Clock>,
) -> Result<CurrentSecret<T>, ConfigError> {
    let missing = ConfigError::Missing { name: value_variable.name, help: value_variable.help };
    create_optional_secret(env, sdk, name_variable, value_variable, parse, clock)?.ok_or(missing)
}

/// Like [`create_required_secret`], but returns `None` if neither variable is set.
fn create_optional_secret<T: Clone + PartialEq + 'static>(
    env: Env<'_>,
    sdk: &SdkConfig,
    name_variable: &'static EnvVariable,
    value_variable: &'static EnvVariable,
    parse: ParseSecret<T>,
    clock: Arc<dyn Clock>,
) -> Result<Option<CurrentSecret<T>>, ConfigError> {
    let Some(name) = env.get(name_variable) else {
        return Ok(env.read_optional(value_variable, parse)?.map(CurrentSecret::from));
    };
    Ok(Some(secrets::create_current_secret(sdk, name_variable, name, parse, clock)))
}
