//! Reads secrets from AWS Secrets Manager or from the environment.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

use std::sync::Arc;

use async_trait::async_trait;
use aws_config::SdkConfig;
use aws_errors::AwsRequestError;

use clock::Clock;
use config::{ConfigError, CurrentSecret, Env, EnvVariable, SecretReader};
use encryption::{ENCRYPTION_KEYS, ENCRYPTION_KEYS_SECRET_NAME, EncryptionKeys};

/// Reads the keys that encrypt the secrets in the table: from AWS Secrets Manager if
/// `DUEDAY_ENCRYPTION_KEYS_SECRET_NAME` contains the name of a secret, otherwise from `DUEDAY_ENCRYPTION_KEYS`.
///
/// # Errors
/// [`ConfigError`] if a variable is missing or invalid, or the secret cannot be read. The error never contains the
/// keys.
pub async fn read_encryption_keys(env: Env<'_>, sdk: &SdkConfig) -> Result<EncryptionKeys, ConfigError> {
    let (from, text) = read_configured_secret(env, sdk, &ENCRYPTION_KEYS_SECRET_NAME, &ENCRYPTION_KEYS).await?;
    EncryptionKeys::parse(&text).map_err(|error| ConfigError::Invalid { name: from.name, reason: error.to_string() })
}

/// Returns the secret, and the variable from which it comes. If `name_variable` is set, its value is the name of the
/// secret in AWS Secrets Manager; otherwise `value_variable` contains the secret itself.
///
/// # Errors
/// [`ConfigError`] if neither variable is set, or the secret cannot be read. The error never contains the secret.
pub async fn read_configured_secret<'a>(
    env: Env<'_>,
    sdk: &SdkConfig,
    name_variable: &'a EnvVariable,
    value_variable: &'a EnvVariable,
) -> Result<(&'a EnvVariable, String), ConfigError> {
    match env.get(name_variable) {
        Some(name) => Ok((name_variable, read_secret_from_secrets_manager(sdk, name_variable, &name).await?)),
        None => Ok((value_variable, env.required_text(value_variable)?)),
    }
}

/// Returns the text of the secret `name` in AWS Secrets Manager. `name_variable` is the variable that contains this
/// name.
///
/// # Errors
/// [`ConfigError`] if the secret cannot be read. The error never contains the secret.
pub async fn read_secret_from_secrets_manager(
    sdk: &SdkConfig,
    name_variable: &EnvVariable,
    name: &str,
) -> Result<String, ConfigError> {
    let invalid = |reason: String| ConfigError::Invalid { name: name_variable.name, reason };
    let result = aws_sdk_secretsmanager::Client::new(sdk).get_secret_value().secret_id(name).send().await;
    let response = result.map_err(|error| {
        invalid(format!("cannot be read from AWS Secrets Manager: {}", AwsRequestError::new(&error)))
    })?;
    response.secret_string.ok_or_else(|| invalid("must be the name of a secret that contains text".to_owned()))
}

/// A function that parses the text of a secret. The text in `Err` completes an error message that begins with the name
/// of a variable, and never contains the secret.
pub type ParseSecret<T> = fn(&str) -> Result<T, String>;

/// Returns the secret with the name `name` in AWS Secrets Manager, which may be replaced while the function runs.
/// `name_variable` is the variable that contains this name. The secret is read when it is needed.
pub fn create_current_secret<T: Clone + PartialEq + 'static>(
    sdk: &SdkConfig,
    name_variable: &'static EnvVariable,
    name: String,
    parse: ParseSecret<T>,
    clock: Arc<dyn Clock>,
) -> CurrentSecret<T> {
    CurrentSecret::new(SecretInManager { sdk: sdk.clone(), name_variable, name, parse }, clock)
}

/// A secret in AWS Secrets Manager, and the function that parses its text.
struct SecretInManager<T> {
    sdk: SdkConfig,
    /// The variable that contains the name of the secret.
    name_variable: &'static EnvVariable,
    name: String,
    parse: ParseSecret<T>,
}

#[async_trait]
impl<T: 'static> SecretReader<T> for SecretInManager<T> {
    async fn read_secret(&self) -> Result<T, ConfigError> {
        let text = read_secret_from_secrets_manager(&self.sdk, self.name_variable, &self.name).await?;
        (self.parse)(&text).map_err(|reason| ConfigError::Invalid { name: self.name_variable.name, reason })
    }
}
