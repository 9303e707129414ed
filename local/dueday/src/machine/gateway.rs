//! The payment gateway: the sandbox on the data folder's ledger, an HTTP gateway, or Stripe.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use billing::{AmountRules, GatewayAccount, GatewayToken, Payment};
use charging::GATEWAY_TIMEOUT;
use chrono::{DateTime, Utc};
use clock::{Clock, SystemClock};
use config::{ConfigError, CurrentSecret, Env};
use emulator::ServerLimits;
use gateways::{
    ChargeRequest, ChargeResponse, CheckoutPage, CheckoutPageRequest, CheckoutPageState, CheckoutPages, FullGateway,
    GATEWAY_KEY, GatewayError, GatewayRefund, GatewaySigningKeys, GatewayUrl, GatewayUrlError, HttpGateway, IamSigner,
    PaymentGateway, RefundRequest, RefundResponse, Refunds, STRIPE_SECRET_KEY, Stripe, http_gateway_with,
    parse_stripe_key, sandbox_with, stripe_amount_rules, stripe_with,
};
use sandbox::{Ledger, LedgerError, Sandbox};
use store::load_sdk_config;

use super::listen::{listen_on_port, listener_url};
use crate::Failure;
use crate::options::Options;

/// The value of `--gateway` that stands for Stripe.
pub const STRIPE: &str = "stripe";

/// The value of `--gateway` that stands for the sandbox gateway of a stack on AWS.
pub const SANDBOX_OF_STACK: &str = "sandbox";

/// The gateway that the options select.
pub enum SelectedGateway {
    /// The sandbox gateway in this process.
    Sandbox(Arc<Sandbox>),
    /// The HTTP gateway at this URL, with its client.
    Http(String, Box<HttpGateway>),
    Stripe(Arc<Stripe>),
    /// A gateway that this process cannot use, and the reason. Every request to the gateway fails with this reason, but
    /// commands that send no request to the gateway still work.
    Unavailable(UnavailableGateway),
}

impl SelectedGateway {
    /// Opens the gateway that `options` select.
    ///
    /// # Errors
    /// If the ledger of the sandbox cannot be used, or the Stripe key is missing or invalid.
    pub async fn open(options: &Options, clock: Arc<dyn Clock>) -> Result<Self, Failure> {
        match options.gateway() {
            Some(named) => Self::from_name(named).await,
            None => match open_sandbox_gateway(options, clock) {
                Ok(sandbox) => Ok(Self::Sandbox(sandbox)),
                Err(in_use @ LedgerError::InUse { .. }) => {
                    let hint = "If that is `dueday gateway`, give its address with --gateway";
                    Err(Failure::Refused(format!("{in_use}. {hint}")))
                }
                Err(error) => Err(error.into()),
            },
        }
    }

    /// Returns Stripe as the gateway, with the API key from the environment.
    fn stripe() -> Result<Self, Failure> {
        let env = Env::of_process();
        let refused = |error: ConfigError| Failure::Refused(error.to_string());
        let key = env.read(&STRIPE_SECRET_KEY, parse_stripe_key).map_err(refused)?;
        let stripe = stripe_with(env, key.into(), GATEWAY_TIMEOUT).map_err(refused)?;
        Ok(Self::Stripe(Arc::new(stripe)))
    }

    /// Returns the sandbox gateway of a stack on AWS. `env` contains the URL of this gateway. The credentials of the
    /// AWS CLI sign the requests to it.
    ///
    /// # Errors
    /// If the URL is missing or invalid, or the AWS region or the AWS credentials are missing.
    pub async fn sandbox_of_stack(env: Env<'_>) -> Result<Self, Failure> {
        let sdk = load_sdk_config().await;
        let region = sdk.region().ok_or(Failure::NoRegion)?;
        let no_credentials = || Failure::NoCredentials { reason: String::new() };
        let signer = IamSigner::new(sdk.credentials_provider().ok_or_else(no_credentials)?, region.as_ref());
        let refused = |error: ConfigError| Failure::Refused(error.to_string());
        let client = sandbox_with(env, signer, GATEWAY_TIMEOUT, Arc::new(SystemClock)).map_err(refused)?;
        Ok(Self::Http(SANDBOX_OF_STACK.to_owned(), Box::new(client)))
    }

    /// Returns the gateway that `name` selects:
    /// - `stripe`: Stripe, with the API key from the environment
    /// - `sandbox`: the sandbox gateway of a stack on AWS, with the credentials of the AWS CLI
    /// - a URL: the HTTP gateway at this URL
    ///
    /// # Errors
    /// If `name` is not `stripe`, `sandbox` or the URL of a gateway, or if a key, the AWS region or the AWS credentials
    /// are missing or invalid.
    pub async fn from_name(name: &str) -> Result<Self, Failure> {
        let env = Env::of_process();
        let refused = |error: ConfigError| Failure::Refused(error.to_string());
        if name == STRIPE {
            return Self::stripe();
        }
        if name == SANDBOX_OF_STACK {
            return Self::sandbox_of_stack(env).await;
        }
        let invalid = |error: GatewayUrlError| {
            Failure::Refused(format!("the gateway must be {STRIPE}, {SANDBOX_OF_STACK}, or {error}"))
        };
        let url: GatewayUrl = name.parse().map_err(invalid)?;
        let keys = read_gateway_signing_keys(env).map_err(refused)?.map(CurrentSecret::from);
        // The signature of each request contains the time of the system clock, even if the command simulates another
        // time.
        let clock = Arc::new(SystemClock);
        let client = http_gateway_with(&url, &GATEWAY_KEY, keys, GATEWAY_TIMEOUT, clock).map_err(refused)?;
        Ok(Self::Http(url.to_string(), Box::new(client)))
    }

    /// Returns the gateway that a running server process uses. `name` is `stripe` or the URL of the gateway, which may
    /// contain any address of this machine on which the gateway listens. Returns [`SelectedGateway::Unavailable`] if this
    /// process cannot use the gateway.
    pub fn of_running_process(name: &str) -> Self {
        let opened = match name {
            STRIPE => Self::stripe(),
            url => read_gateway_signing_keys(Env::of_process())
                .map_err(|error| Failure::Refused(error.to_string()))
                .map(|keys| {
                    let client = HttpGateway::new(url, GATEWAY_TIMEOUT);
                    let clock = Arc::new(SystemClock);
                    let client = keys.map_or(client.clone(), |keys| client.with_keys(keys.into(), clock));
                    Self::Http(url.to_owned(), Box::new(client))
                }),
        };
        let amount_rules = if name == STRIPE { stripe_amount_rules() } else { AmountRules::none() };
        opened.unwrap_or_else(|failure| {
            Self::Unavailable(UnavailableGateway { reason: failure.to_string(), amount_rules })
        })
    }

    /// Returns the client for requests to the gateway.
    pub fn client(&self, clock: Arc<dyn Clock>) -> Arc<dyn FullGateway> {
        match self {
            Self::Sandbox(sandbox) => sandbox.clone(),
            Self::Stripe(stripe) => stripe.clone(),
            Self::Unavailable(gateway) => Arc::new(gateway.clone()),
            Self::Http(_, client) => Arc::new(client.as_ref().clone().with_clock(clock)),
        }
    }
}

/// A gateway at which every request fails for the same reason.
#[derive(Clone, Debug)]
pub struct UnavailableGateway {
    reason: String,
    /// The amounts that the gateway can charge, as far as they are known without a request.
    amount_rules: AmountRules,
}

impl UnavailableGateway {
    /// Returns the error with which each request fails.
    fn error(&self) -> GatewayError {
        GatewayError::Unusable { reason: self.reason.clone() }
    }
}

#[async_trait]
impl PaymentGateway for UnavailableGateway {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        Err(self.error())
    }

    async fn amount_rules(&self) -> Result<AmountRules, GatewayError> {
        Ok(self.amount_rules.clone())
    }

    async fn charge(&self, _: &ChargeRequest) -> ChargeResponse {
        self.error().into()
    }

    async fn payments_of_customer(&self, _: &GatewayToken, _: DateTime<Utc>) -> Result<Vec<Payment>, GatewayError> {
        Err(self.error())
    }

    async fn payment(&self, _: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        Err(self.error())
    }
}

#[async_trait]
impl CheckoutPages for UnavailableGateway {
    async fn create_checkout_page(&self, _: &CheckoutPageRequest) -> Result<CheckoutPage, GatewayError> {
        Err(self.error())
    }

    async fn checkout_page_state(&self, _: &GatewayToken) -> Result<CheckoutPageState, GatewayError> {
        Err(self.error())
    }
}

#[async_trait]
impl Refunds for UnavailableGateway {
    async fn refund(&self, _: &RefundRequest) -> RefundResponse {
        RefundResponse::Unknown(self.error())
    }

    async fn refunds_of_payment(&self, _: &GatewayToken) -> Result<Vec<GatewayRefund>, GatewayError> {
        Err(self.error())
    }
}

/// Returns the keys that sign the requests to a gateway over HTTP; `None` if `DUEDAY_GATEWAY_KEY` is not set.
fn read_gateway_signing_keys(env: Env<'_>) -> Result<Option<GatewaySigningKeys>, ConfigError> {
    env.read_optional(&GATEWAY_KEY, str::parse::<GatewaySigningKeys>)
}

/// Serves `sandbox` over HTTP. Returns the URL of its server. If `DUEDAY_GATEWAY_KEY` is set, requests must be signed.
///
/// # Errors
/// [`Failure::Listen`] if the port cannot be used. [`Failure::Refused`] if `DUEDAY_GATEWAY_KEY` is not valid.
pub async fn serve_sandbox_gateway(sandbox: Arc<Sandbox>, address: IpAddr, port: u16) -> Result<String, Failure> {
    let listener = listen_on_port(address, port, "--gateway-port").await?;
    let url = listener_url(&listener);
    sandbox.set_url(&url);
    let routes =
        match read_gateway_signing_keys(Env::of_process()).map_err(|error| Failure::Refused(error.to_string()))? {
            Some(keys) => sandbox::signed_gateway_router(sandbox, keys, Arc::new(SystemClock)),
            None => sandbox::gateway_router(sandbox),
        };
    tokio::spawn(emulator::serve_http(listener, routes, ServerLimits::default()));
    Ok(url)
}

/// Opens the sandbox gateway, which stores its payments in the ledger of the data folder.
///
/// # Errors
/// If the ledger cannot be used, for example because another process has locked it or a line is damaged.
pub fn open_sandbox_gateway(options: &Options, clock: Arc<dyn Clock>) -> Result<Arc<Sandbox>, LedgerError> {
    Ok(Arc::new(Sandbox::new(Ledger::open(&path_of_sandbox_ledger(options), || clock.ulid())?, clock.clone())))
}

/// Returns the path of the file in which the sandbox gateway stores its payments.
pub fn path_of_sandbox_ledger(options: &Options) -> PathBuf {
    options.data.join("gateway-ledger.jsonl")
}
