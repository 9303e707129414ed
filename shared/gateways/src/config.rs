//! The environment variables that select the payment gateway and configure access to it.

use std::time::Duration;

use super::Stripe;
use super::stripe::STRIPE_API_BASE as DEFAULT_API_BASE;
use config::ReadBy::{Api, Payments, Webhooks};
use config::variables;
use config::{ConfigError, Env, Variable, parse_displayable_url};

/// The secret or restricted key of the Stripe account. There is no command-line flag for it, and it is never printed or
/// logged.
pub const STRIPE_SECRET_KEY: Variable =
    Variable::new(&[], "STRIPE_SECRET_KEY", "KEY", "The secret or restricted key of your Stripe account");
/// The signing secret of our webhook endpoint at Stripe. There is no command-line flag for it, and it is never printed
/// or logged.
pub const STRIPE_WEBHOOK_SECRET: Variable =
    Variable::new(&[], "STRIPE_WEBHOOK_SECRET", "SECRET", "The signing secret of your webhook endpoint at Stripe");
/// The base URL of Stripe's API, or of a server that imitates it.
pub const STRIPE_API_BASE: Variable =
    Variable::new(&[], "STRIPE_API_BASE", "URL", "The base URL of Stripe's API").default(DEFAULT_API_BASE);

variables! {
    GATEWAY = Variable::new(&[Api, Payments, Webhooks], "DUEDAY_GATEWAY", "GATEWAY",
        "The payment gateway: stripe, or the URL of a gateway, such as http://127.0.0.1:7879").rare_flag("gateway");
    STRIPE_KEY_SECRET_NAME = Variable::new(&[Api, Payments, Webhooks], "DUEDAY_STRIPE_KEY_SECRET_NAME", "SECRET",
        "The name or ARN of the secret in AWS Secrets Manager with Stripe's secret or restricted key")
        .former_name("DUEDAY_STRIPE_SECRET");
    STRIPE_WEBHOOK_SECRET_NAME = Variable::new(&[Webhooks], "DUEDAY_STRIPE_WEBHOOK_SECRET_NAME", "SECRET",
        "The name or ARN of the secret in AWS Secrets Manager with the signing secret of the webhook endpoint at Stripe")
        .former_name("DUEDAY_STRIPE_WEBHOOK_SECRET");
}

/// The selected payment gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GatewayChoice {
    Stripe,
    /// A gateway at this URL with the same HTTP API as the sandbox (docs/gateways.md).
    At(String),
}

impl GatewayChoice {
    /// Returns the gateway that `DUEDAY_GATEWAY` selects; `None` if the variable is not set.
    ///
    /// # Errors
    /// [`ConfigError`] if the value is neither `stripe` nor an HTTP URL without a user name, password and query.
    pub fn read_if_given(env: Env<'_>) -> Result<Option<Self>, ConfigError> {
        env.get(&GATEWAY).map(|_| Self::read(env)).transpose()
    }

    /// Returns the gateway that `DUEDAY_GATEWAY` selects.
    ///
    /// # Errors
    /// [`ConfigError`] if the variable is not set, or its value is neither `stripe` nor an HTTP URL without a user
    /// name, password and query.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        env.read(&GATEWAY, |text| match text {
            "stripe" => Ok(Self::Stripe),
            url => parse_displayable_url(url).map(Self::At).map_err(|reason| format!("must be stripe, or {reason}")),
        })
    }
}

/// Returns a client of Stripe with `key`, at the base URL that `env` contains. A request waits at most `timeout` for
/// its response. `from` is the environment variable that contains the key itself, or the name of the key's secret in
/// AWS Secrets Manager. Error messages contain the name of this variable.
///
/// # Errors
/// [`ConfigError`] if the base URL is not an HTTP URL without a user name, password and query, or `key` is not a secret
/// or restricted key of Stripe. The message never contains the key.
pub fn stripe_with(env: Env<'_>, (from, key): (&Variable, &str), timeout: Duration) -> Result<Stripe, ConfigError> {
    const KEY_PREFIXES: [&str; 4] = ["sk_test_", "sk_live_", "rk_test_", "rk_live_"];
    let base =
        env.read(&STRIPE_API_BASE, |text| parse_displayable_url(text).map_err(|reason| format!("must be {reason}")))?;
    let key = key.trim();
    if !KEY_PREFIXES.iter().any(|prefix| key.starts_with(prefix)) {
        let reason = "must be a secret or restricted key of Stripe, as plain text: it begins with sk_ or rk_, then test_ or live_";
        return Err(ConfigError::Invalid { name: from.name, reason: reason.to_owned() });
    }
    Ok(Stripe::new(key, &base, timeout))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_rejects_invalid_gateway_without_repeating_its_password() {
        let read = |url: &'static str| GatewayChoice::read(Env(&|_| Some(url.to_owned())));
        for url in
            ["127.0.0.1:7879", "http://me:secret@127.0.0.1", "http://127.0.0.1:78790", "ftp://127.0.0.1", "http://a?b"]
        {
            let message = read(url).unwrap_err().to_string();
            assert!(
                message.starts_with("DUEDAY_GATEWAY must be stripe, or a URL such as") && !message.contains("secret"),
                "{url}: {message}"
            );
        }
        assert_eq!(read("http://127.0.0.1:7879/"), Ok(GatewayChoice::At("http://127.0.0.1:7879".to_owned())));
        assert_eq!(read("stripe"), Ok(GatewayChoice::Stripe));
    }

    #[test]
    fn stripe_with_rejects_invalid_key_without_repeating_it() {
        for key in ["", "pk_test_published", "secret"] {
            let result = stripe_with(Env(&|_| None), (&STRIPE_SECRET_KEY, key), Duration::from_secs(1));
            let message = result.unwrap_err().to_string();
            assert!(message.starts_with("STRIPE_SECRET_KEY must be") && !message.contains("publ"), "{message}");
        }
    }
}
