//! The payment gateway: the sandbox on the data folder's ledger, an HTTP gateway, or Stripe.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use billing::{GatewayAccount, GatewayToken, Payment};
use chrono::{DateTime, Utc};
use clock::Clock;
use config::Env;
use emulator::Limits;
use gateways::{
    ChargeRequest, ChargeResponse, CheckoutPage, CheckoutPageRequest, CheckoutPageState, CheckoutPages, FullGateway,
    GatewayError, GatewayRefund, HttpGateway, Ledger, LedgerError, PaymentGateway, RefundRequest, RefundResponse,
    Refunds, STRIPE_SECRET_KEY, Sandbox, Stripe, stripe_with,
};
use payments::GATEWAY_TIMEOUT;

use super::listen::{listen, url};
use crate::Failure;
use crate::options::Options;

/// The value of `--gateway` that stands for Stripe.
pub const STRIPE: &str = "stripe";

/// The gateway that the options select.
pub enum Gateway {
    /// The sandbox gateway in this process.
    Sandbox(Arc<Sandbox>),
    /// The HTTP gateway at this URL.
    Url(String),
    Stripe(Arc<Stripe>),
    /// A gateway that this process cannot use, with the reason. Every request fails; commands that need no gateway
    /// still work.
    Unavailable(String),
}

impl Gateway {
    /// Opens the gateway that `options` select.
    ///
    /// # Errors
    /// If the ledger of the sandbox cannot be used, or the Stripe key is missing or invalid.
    pub fn open(options: &Options, clock: Arc<dyn Clock>) -> Result<Self, Failure> {
        match options.gateway() {
            Some(named) => Self::from_name(named),
            None => match open_sandbox(options, clock) {
                Ok(sandbox) => Ok(Self::Sandbox(sandbox)),
                Err(in_use @ LedgerError::InUse { .. }) => {
                    let hint = "If that is `dueday gateway`, give its address with --gateway";
                    Err(Failure::Refused(format!("{in_use}. {hint}")))
                }
                Err(error) => Err(error.into()),
            },
        }
    }

    /// Returns the gateway that `name` selects: Stripe for `stripe`, with the key from the environment, otherwise the
    /// HTTP gateway at the URL `name`.
    ///
    /// # Errors
    /// If the Stripe key is missing or invalid, or `name` is neither `stripe` nor a URL.
    pub fn from_name(name: &str) -> Result<Self, Failure> {
        match name {
            STRIPE => {
                let timeout = GATEWAY_TIMEOUT.to_std().unwrap_or_default();
                let env = Env::process();
                let stripe =
                    env.text(&STRIPE_SECRET_KEY).and_then(|key| stripe_with(env, (&STRIPE_SECRET_KEY, &key), timeout));
                stripe.map(|stripe| Self::Stripe(Arc::new(stripe))).map_err(|error| Failure::Refused(error.to_string()))
            }
            url => match url::Url::parse(url) {
                Ok(parsed) if matches!(parsed.scheme(), "http" | "https") => Ok(Self::Url(url.to_owned())),
                _ => Err(Failure::Refused(format!(
                    "the gateway {url} must be `stripe`, or a URL that begins with http:// or https://"
                ))),
            },
        }
    }

    /// Returns the gateway that `name` selects, or [`Gateway::Unavailable`] if that gateway cannot be used.
    pub fn from_name_or_unavailable(name: &str) -> Self {
        Self::from_name(name).unwrap_or_else(|failure| Self::Unavailable(failure.to_string()))
    }

    /// Returns the client for requests to the gateway.
    pub fn client(&self, clock: Arc<dyn Clock>) -> Arc<dyn FullGateway> {
        match self {
            Self::Sandbox(sandbox) => sandbox.clone(),
            Self::Stripe(stripe) => stripe.clone(),
            Self::Unavailable(reason) => Arc::new(UnavailableGateway(reason.clone())),
            Self::Url(url) => {
                let timeout = GATEWAY_TIMEOUT.to_std().unwrap_or_default();
                Arc::new(HttpGateway::new(url, timeout).with_clock(clock))
            }
        }
    }
}

/// A gateway at which every request fails for the same reason.
#[derive(Debug)]
struct UnavailableGateway(String);

impl UnavailableGateway {
    fn error(&self) -> GatewayError {
        GatewayError::Unusable { reason: self.0.clone() }
    }
}

#[async_trait]
impl PaymentGateway for UnavailableGateway {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        Err(self.error())
    }

    async fn charge(&self, _: &ChargeRequest) -> ChargeResponse {
        self.error().into()
    }

    async fn payments_of(&self, _: &GatewayToken, _: DateTime<Utc>) -> Result<Vec<Payment>, GatewayError> {
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

    async fn refunds_of(&self, _: &GatewayToken) -> Result<Vec<GatewayRefund>, GatewayError> {
        Err(self.error())
    }
}

/// Serves `sandbox` over HTTP. Returns the URL of its server.
///
/// # Errors
/// [`Failure::Listen`] if the port cannot be used.
pub async fn serve_sandbox(sandbox: Arc<Sandbox>, address: IpAddr, port: u16) -> Result<String, Failure> {
    let listener = listen(address, port, "--gateway-port").await?;
    let url = url(&listener);
    sandbox.set_url(&url);
    let routes = emulator::gateway_router(sandbox);
    tokio::spawn(emulator::serve(listener, routes, Limits::default()));
    Ok(url)
}

/// Opens the sandbox gateway, which stores its payments in the ledger of the data folder.
///
/// # Errors
/// If the ledger cannot be used, for example because another process has locked it or a line is damaged.
pub fn open_sandbox(options: &Options, clock: Arc<dyn Clock>) -> Result<Arc<Sandbox>, LedgerError> {
    Ok(Arc::new(Sandbox::new(Ledger::open(&ledger_path(options), || clock.ulid())?, clock.clone())))
}

/// Returns the path of the file in which the sandbox gateway stores its payments.
pub fn ledger_path(options: &Options) -> PathBuf {
    options.data.join("gateway-ledger.jsonl")
}
