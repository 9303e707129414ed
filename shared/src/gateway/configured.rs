//! The gateway that the environment names.

use std::sync::Arc;
use std::time::Duration;

use aws_config::SdkConfig;
use aws_sdk_secretsmanager::error::ProvideErrorMetadata as _;

use super::{Processor, SandboxClient};
use crate::config::{ConfigError, Env, GatewayChoice, STRIPE_SECRET, STRIPE_SECRET_KEY};

/// The gateway that `DUEDAY_GATEWAY` names, given at most `timeout` to answer. Stripe's key is the secret in AWS Secrets Manager
/// that `DUEDAY_STRIPE_SECRET` names, reached as `sdk` says; without one it is in `STRIPE_SECRET_KEY`.
///
/// # Errors
/// [`ConfigError`], which never says the key.
pub async fn configured(env: Env<'_>, sdk: &SdkConfig, timeout: Duration) -> Result<Arc<dyn Processor>, ConfigError> {
    match env.gateway()? {
        GatewayChoice::At(url) => Ok(Arc::new(SandboxClient::new(&url, timeout))),
        GatewayChoice::Stripe => {
            let (from, key) = match env.given(&STRIPE_SECRET) {
                Some(secret) => (&STRIPE_SECRET, secret_text(sdk, &secret).await?),
                None => (&STRIPE_SECRET_KEY, env.text(&STRIPE_SECRET_KEY)?),
            };
            Ok(Arc::new(env.stripe((from, &key), timeout)?))
        }
    }
}

async fn secret_text(sdk: &SdkConfig, secret: &str) -> Result<String, ConfigError> {
    let wrong = |reason: String| ConfigError::Invalid { name: STRIPE_SECRET.name, reason };
    let asked = aws_sdk_secretsmanager::Client::new(sdk).get_secret_value().secret_id(secret).send().await;
    // Only its code: an error may hold the whole answer.
    let answer = asked.map_err(|error| {
        wrong(format!("cannot be read: {}", error.code().unwrap_or("Secrets Manager gave no usable answer")))
    })?;
    answer.secret_string.ok_or_else(|| wrong("must name a secret that is text".to_owned()))
}
