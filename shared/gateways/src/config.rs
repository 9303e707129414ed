//! The environment variables that select the payment gateway and configure access to it.

use std::sync::Arc;
use std::time::Duration;

use super::stripe::{STRIPE_API_BASE as DEFAULT_API_BASE, stripe_amount_rules};
use super::{GatewaySigningKeys, GatewayUrl, GatewayUrlError, HttpGateway, IamSigner, Stripe};
use billing::AmountRules;
use clock::Clock;
use config::ReadingFunction::{Api, Payments, Reconcile, Webhooks};
use config::variables;
use config::{ConfigError, CurrentSecret, Env, EnvVariable, parse_displayable_url};

/// The secret or restricted key of the Stripe account. No command-line flag sets this key, and the key is never printed
/// or logged.
pub const STRIPE_SECRET_KEY: EnvVariable =
    EnvVariable::new(&[], "STRIPE_SECRET_KEY", "KEY", "The secret or restricted key of your Stripe account");
/// The signing secret of our webhook endpoint at Stripe. No command-line flag sets this secret, and the secret is never
/// printed or logged.
pub const STRIPE_WEBHOOK_SECRET: EnvVariable =
    EnvVariable::new(&[], "STRIPE_WEBHOOK_SECRET", "SECRET", "The signing secret of your webhook endpoint at Stripe");
/// The base URL of Stripe's API, or of a server that imitates it.
pub const STRIPE_API_BASE: EnvVariable =
    EnvVariable::new(&[], "STRIPE_API_BASE", "URL", "The base URL of Stripe's API").default(DEFAULT_API_BASE);

/// The keys that sign the requests to a merchant's own gateway. No command-line flag sets these keys, and the keys are
/// never printed or logged.
pub const GATEWAY_KEY: EnvVariable = EnvVariable::new(
    &[],
    "DUEDAY_GATEWAY_KEY",
    "KEY",
    "The key (whsec_...) that signs the requests to your own gateway. While you replace the key: the new key, a space, and the old key",
);

variables! {
    GATEWAY = EnvVariable::new(&[Api, Payments, Reconcile, Webhooks], "DUEDAY_GATEWAY", "GATEWAY",
        "The payment gateway: stripe, sandbox, or the URL of a gateway, such as http://127.0.0.1:7879").rare_flag("gateway");
    SANDBOX_URL = EnvVariable::new(&[Api, Payments, Reconcile], "DUEDAY_SANDBOX_URL", "URL",
        "The function URL of the stack's sandbox gateway. Required if DUEDAY_GATEWAY is sandbox");
    GATEWAY_KEY_SECRET_NAME = EnvVariable::new(&[Api, Payments, Reconcile], "DUEDAY_GATEWAY_KEY_SECRET_NAME", "SECRET",
        "The name or ARN of the secret in AWS Secrets Manager with the key that signs the requests to your own gateway");
    STRIPE_KEY_SECRET_NAME = EnvVariable::new(&[Api, Payments, Reconcile, Webhooks], "DUEDAY_STRIPE_KEY_SECRET_NAME", "SECRET",
        "The name or ARN of the secret in AWS Secrets Manager with Stripe's secret or restricted key")
        .former_name("DUEDAY_STRIPE_SECRET");
    STRIPE_WEBHOOK_SECRET_NAME = EnvVariable::new(&[Webhooks], "DUEDAY_STRIPE_WEBHOOK_SECRET_NAME", "SECRET",
        "The name or ARN of the secret in AWS Secrets Manager with the signing secret of the webhook endpoint at Stripe")
        .former_name("DUEDAY_STRIPE_WEBHOOK_SECRET");
}

/// The selected payment gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GatewayChoice {
    Stripe,
    /// The sandbox gateway of the same stack. Only the functions of the stack can reach it.
    Sandbox,
    /// A gateway at this URL with the same HTTP API as the sandbox (docs/gateways.md).
    At(GatewayUrl),
}

impl GatewayChoice {
    /// Returns the gateway that `DUEDAY_GATEWAY` selects; `None` if the variable is not set.
    ///
    /// # Errors
    /// [`ConfigError`] if the value is not `stripe`, `sandbox` or a [`GatewayUrl`].
    pub fn read_if_set(env: Env<'_>) -> Result<Option<Self>, ConfigError> {
        env.get(&GATEWAY).map(|_| Self::read(env)).transpose()
    }

    /// Returns the gateway that `DUEDAY_GATEWAY` selects.
    ///
    /// # Errors
    /// [`ConfigError`] if the variable is not set, or its value is not `stripe`, `sandbox` or a [`GatewayUrl`].
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        env.read(&GATEWAY, |text| match text {
            "stripe" => Ok(Self::Stripe),
            "sandbox" => Ok(Self::Sandbox),
            url => {
                let at = url.parse().map(Self::At);
                at.map_err(|reason: GatewayUrlError| format!("must be stripe, sandbox, or {reason}"))
            }
        })
    }

    /// Returns the amounts that the gateway can charge, if they are known without a request; otherwise no rules.
    pub fn known_amount_rules(&self) -> AmountRules {
        match self {
            Self::Stripe => stripe_amount_rules(),
            Self::Sandbox | Self::At(_) => AmountRules::none(),
        }
    }
}

/// Returns the amounts that the gateway of `DUEDAY_GATEWAY` can charge, if they are known without a request and without
/// a key; otherwise no rules.
pub fn configured_amount_rules(env: Env<'_>) -> AmountRules {
    GatewayChoice::read(env).map_or_else(|_| AmountRules::none(), |chosen| chosen.known_amount_rules())
}

/// Parses a secret or restricted key of Stripe.
///
/// # Errors
/// An error text, which is the end of a sentence that begins with "must be". The text never contains the key.
pub fn parse_stripe_key(text: &str) -> Result<String, &'static str> {
    const KEY_PREFIXES: [&str; 4] = ["sk_test_", "sk_live_", "rk_test_", "rk_live_"];
    let key = text.trim();
    if KEY_PREFIXES.iter().any(|prefix| key.starts_with(prefix)) {
        Ok(key.to_owned())
    } else {
        Err(
            "must be a secret or restricted key of Stripe, as plain text: it begins with sk_ or rk_, then test_ or live_",
        )
    }
}

/// Returns a client of Stripe with `key`, at the base URL that `env` contains. A request waits at most `timeout` for
/// its response.
///
/// # Errors
/// [`ConfigError`] if the base URL is not an HTTP URL without a user name, password and query.
pub fn stripe_with(env: Env<'_>, key: CurrentSecret<String>, timeout: Duration) -> Result<Stripe, ConfigError> {
    let base =
        env.read(&STRIPE_API_BASE, |text| parse_displayable_url(text).map_err(|reason| format!("must be {reason}")))?;
    Ok(Stripe::new("", &base, timeout).with_key(key))
}

/// Returns a client of the stack's sandbox gateway. `env` contains the URL of the gateway. `signer` signs the requests
/// of the client for AWS IAM, at the time of `clock`. A request waits at most `timeout` for its response.
///
/// # Errors
/// [`ConfigError`] if `DUEDAY_SANDBOX_URL` is missing or is not a [`GatewayUrl`].
pub fn sandbox_with(
    env: Env<'_>,
    signer: IamSigner,
    timeout: Duration,
    clock: Arc<dyn Clock>,
) -> Result<HttpGateway, ConfigError> {
    let url: GatewayUrl =
        env.read(&SANDBOX_URL, |text| text.parse().map_err(|reason: GatewayUrlError| format!("must be {reason}")))?;
    Ok(HttpGateway::new(url.as_str(), timeout).with_iam(signer, clock))
}

/// Returns a client of the gateway at `url`, which signs its requests with `keys` at the time of `clock`. A request
/// waits at most `timeout` for its response.
///
/// # Errors
/// [`ConfigError::Missing`] for the variable `key_variable` if there are no keys and the gateway is not on this
/// machine.
pub fn http_gateway_with(
    url: &GatewayUrl,
    key_variable: &EnvVariable,
    keys: Option<CurrentSecret<GatewaySigningKeys>>,
    timeout: Duration,
    clock: Arc<dyn Clock>,
) -> Result<HttpGateway, ConfigError> {
    let gateway = HttpGateway::new(url.as_str(), timeout);
    match keys {
        Some(keys) => Ok(gateway.with_keys(keys, clock)),
        None if url.is_local() => Ok(gateway),
        None => Err(ConfigError::Missing { name: key_variable.name, help: key_variable.help }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_rejects_invalid_gateway_without_repeating_its_password() {
        let read = |url: &'static str| GatewayChoice::read(Env(&|_| Some(url.to_owned())));
        for url in
            ["127.0.0.1:7879", "http://me:secret@127.0.0.1", "http://127.0.0.1:78790", "ftp://127.0.0.1", "https://a?b"]
        {
            let message = read(url).unwrap_err().to_string();
            assert!(
                message.starts_with("DUEDAY_GATEWAY must be stripe, sandbox, or an https URL such as")
                    && !message.contains("secret"),
                "{url}: {message}"
            );
        }
        assert_eq!(read("http://127.0.0.1:7879/"), Ok(GatewayChoice::At("http://127.0.0.1:7879".parse().unwrap())));
        assert_eq!((read("stripe"), read("sandbox")), (Ok(GatewayChoice::Stripe), Ok(GatewayChoice::Sandbox)));
    }

    #[test]
    fn invalid_stripe_key_is_rejected_without_repeating_it() {
        for key in ["", "pk_test_published", "secret"] {
            let message = parse_stripe_key(key).unwrap_err();
            assert!(
                message.starts_with("must be a secret or restricted key") && !message.contains("publ"),
                "{message}"
            );
        }
    }

    #[test]
    fn amounts_of_stripe_are_known_without_a_key() {
        let rules = |gateway: &'static str| configured_amount_rules(Env(&|_| Some(gateway.to_owned())));
        assert_eq!(rules("stripe"), stripe_amount_rules());
        for gateway in ["sandbox", "https://gateway.example.com", "none"] {
            assert_eq!(rules(gateway), AmountRules::none(), "{gateway}");
        }
    }

    #[test]
    fn gateway_on_another_machine_needs_a_key() {
        let client = |url: &str, keys| {
            let (variable, clock) = (&GATEWAY_KEY_SECRET_NAME, Arc::new(clock::SystemClock));
            http_gateway_with(&url.parse().unwrap(), variable, keys, Duration::from_secs(1), clock)
        };
        let error = client("https://gateway.example.com", None).unwrap_err().to_string();
        assert!(error.starts_with("DUEDAY_GATEWAY_KEY_SECRET_NAME must be set"), "{error}");
        assert!(client("http://127.0.0.1:7879", None).is_ok());
        let keys: GatewaySigningKeys = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap();
        assert!(client("https://gateway.example.com", Some(keys.into())).is_ok());
    }
}
