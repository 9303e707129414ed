//! Which gateway takes the charges, as the environment says.

use std::time::Duration;

use super::Stripe;
use super::stripe::STRIPE_API_BASE as AT_STRIPE;
use config::ReadBy::{Api, Payments, Webhooks};
use config::variables;
use config::{ConfigError, Env, Variable, plain_url};

/// Stripe's secret or restricted key. No flag has it, and nothing shows it.
pub const STRIPE_SECRET_KEY: Variable =
    Variable::new(&[], "STRIPE_SECRET_KEY", "KEY", "the secret or restricted key of your Stripe account");
/// The signing secret of our webhook endpoint at Stripe. No flag has it, and nothing shows it.
pub const STRIPE_WEBHOOK_SECRET: Variable =
    Variable::new(&[], "STRIPE_WEBHOOK_SECRET", "SECRET", "the signing secret of your webhook endpoint at Stripe");
/// Another server that speaks as Stripe does.
pub const STRIPE_API_BASE: Variable =
    Variable::new(&[], "STRIPE_API_BASE", "URL", "Where Stripe answers").default(AT_STRIPE);

variables! {
    GATEWAY = Variable::new(&[Api, Payments, Webhooks], "DUEDAY_GATEWAY", "GATEWAY",
        "The payment gateway: stripe, or the URL of one, such as http://127.0.0.1:7879").rare("gateway");
    STRIPE_KEY_SECRET_NAME = Variable::new(&[Api, Payments, Webhooks], "DUEDAY_STRIPE_KEY_SECRET_NAME", "SECRET",
        "The secret in AWS Secrets Manager that is Stripe's secret or restricted key, by its name or ARN")
        .formerly("DUEDAY_STRIPE_SECRET");
    STRIPE_WEBHOOK_SECRET_NAME = Variable::new(&[Webhooks], "DUEDAY_STRIPE_WEBHOOK_SECRET_NAME", "SECRET",
        "The secret in AWS Secrets Manager that is the signing secret of the webhook endpoint at Stripe, by its name or ARN")
        .formerly("DUEDAY_STRIPE_WEBHOOK_SECRET");
}

/// Which gateway takes the charges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GatewayChoice {
    Stripe,
    /// One that speaks as the sandbox does, at this URL.
    At(String),
}

impl GatewayChoice {
    /// The gateway that `DUEDAY_GATEWAY` names, if it is set.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn read_if_given(env: Env<'_>) -> Result<Option<Self>, ConfigError> {
        env.given(&GATEWAY).map(|_| Self::read(env)).transpose()
    }

    /// The gateway that `DUEDAY_GATEWAY` names.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        env.read(&GATEWAY, |text| match text {
            "stripe" => Ok(Self::Stripe),
            url => plain_url(url).map(Self::At).map_err(|reason| format!("must be stripe, or {reason}")),
        })
    }
}

/// Stripe with the `key` that the variable `from` holds or names, where `env` says that it answers, given at most `timeout` to answer.
///
/// # Errors
/// [`ConfigError`], which never says the key.
pub fn stripe_with(env: Env<'_>, (from, key): (&Variable, &str), timeout: Duration) -> Result<Stripe, ConfigError> {
    const KEYS: [&str; 4] = ["sk_test_", "sk_live_", "rk_test_", "rk_live_"];
    let base = env.read(&STRIPE_API_BASE, |text| plain_url(text).map_err(|reason| format!("must be {reason}")))?;
    let key = key.trim();
    if !KEYS.iter().any(|begin| key.starts_with(begin)) {
        let reason = "must be a secret or restricted key of Stripe's, as plain text: it begins with sk_ or rk_, then test_ or live_";
        return Err(ConfigError::Invalid { name: from.name, reason: reason.to_owned() });
    }
    Ok(Stripe::new(key, &base, timeout))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_refuses_what_is_no_gateway_and_never_says_a_password() {
        let read = |url: &'static str| GatewayChoice::read(Env(&|_| Some(url.to_owned())));
        for url in
            ["127.0.0.1:7879", "http://me:secret@127.0.0.1", "http://127.0.0.1:78790", "ftp://127.0.0.1", "http://a?b"]
        {
            let refused = read(url).unwrap_err().to_string();
            assert!(
                refused.starts_with("DUEDAY_GATEWAY must be stripe, or a URL like") && !refused.contains("secret"),
                "{url}: {refused}"
            );
        }
        assert_eq!(read("http://127.0.0.1:7879/"), Ok(GatewayChoice::At("http://127.0.0.1:7879".to_owned())));
        assert_eq!(read("stripe"), Ok(GatewayChoice::Stripe));
    }

    #[test]
    fn stripe_with_refuses_what_is_no_key_and_never_says_it() {
        for key in ["", "pk_test_published", "secret"] {
            let refused = stripe_with(Env(&|_| None), (&STRIPE_SECRET_KEY, key), Duration::from_secs(1));
            let refused = refused.unwrap_err().to_string();
            assert!(refused.starts_with("STRIPE_SECRET_KEY must be") && !refused.contains("publ"), "{refused}");
        }
    }
}
