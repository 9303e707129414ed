//! Who takes the charges: the sandbox on the data folder's ledger, or a gateway elsewhere.

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
    ChargeAnswer, ChargeRequest, GatewayError, HttpGateway, Ledger, LedgerError, Page, PageRequest, PageState,
    PaymentGateway, PaymentMethodPages, Processor, RefundAnswer, RefundMade, RefundRequest, Refunds, STRIPE_SECRET_KEY,
    Sandbox, Stripe, stripe_with,
};
use payments::GATEWAY_TIMEOUT;

use super::listen::{listen, url};
use crate::Failure;
use crate::options::Options;

/// What `--gateway` calls Stripe.
pub const STRIPE: &str = "stripe";

/// A gateway.
pub enum Gateway {
    /// The sandbox in this process, which holds the ledger.
    Inside(Arc<Sandbox>),
    /// The one at this URL.
    At(String),
    Stripe(Arc<Stripe>),
    /// One that this process cannot use, and why. Whatever is asked of it is refused; what needs no gateway is done.
    Unusable(String),
}

impl Gateway {
    /// The gateway that `options` name.
    ///
    /// # Errors
    /// [`Failure`]: a ledger that cannot be used.
    pub fn open(options: &Options, clock: Arc<dyn Clock>) -> Result<Self, Failure> {
        match options.gateway() {
            Some(named) => Self::named(named),
            None => match sandbox(options, clock) {
                Ok(sandbox) => Ok(Self::Inside(sandbox)),
                Err(held @ LedgerError::Held { .. }) => {
                    let hint = "If that is `dueday gateway`, give its address with --gateway";
                    Err(Failure::Refused(format!("{held}. {hint}")))
                }
                Err(error) => Err(error.into()),
            },
        }
    }

    /// The gateway that is called so: `stripe`, with the key of this environment, or a URL.
    ///
    /// # Errors
    /// [`Failure`]: there is no such key.
    pub fn named(name: &str) -> Result<Self, Failure> {
        match name {
            STRIPE => {
                let timeout = GATEWAY_TIMEOUT.to_std().unwrap_or_default();
                let env = Env::process();
                let stripe =
                    env.text(&STRIPE_SECRET_KEY).and_then(|key| stripe_with(env, (&STRIPE_SECRET_KEY, &key), timeout));
                stripe.map(|stripe| Self::Stripe(Arc::new(stripe))).map_err(|error| Failure::Refused(error.to_string()))
            }
            url => Ok(Self::At(url.to_owned())),
        }
    }

    /// As [`Gateway::named`]; one that cannot be used is known when something is asked of it.
    pub fn if_asked(name: &str) -> Self {
        Self::named(name).unwrap_or_else(|failure| Self::Unusable(failure.to_string()))
    }

    /// What charges through it.
    pub fn client(&self, clock: Arc<dyn Clock>) -> Arc<dyn Processor> {
        match self {
            Self::Inside(sandbox) => sandbox.clone(),
            Self::Stripe(stripe) => stripe.clone(),
            Self::Unusable(reason) => Arc::new(Unusable(reason.clone())),
            Self::At(url) => {
                let timeout = GATEWAY_TIMEOUT.to_std().unwrap_or_default();
                Arc::new(HttpGateway::new(url, timeout).on_clock(clock))
            }
        }
    }
}

/// What refuses whatever is asked of it, and why.
#[derive(Debug)]
struct Unusable(String);

impl Unusable {
    fn refused(&self) -> GatewayError {
        GatewayError::Unusable { reason: self.0.clone() }
    }
}

#[async_trait]
impl PaymentGateway for Unusable {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        Err(self.refused())
    }

    async fn charge(&self, _: &ChargeRequest) -> ChargeAnswer {
        self.refused().into()
    }

    async fn payments_of(&self, _: &GatewayToken, _: DateTime<Utc>) -> Result<Vec<Payment>, GatewayError> {
        Err(self.refused())
    }

    async fn payment(&self, _: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        Err(self.refused())
    }
}

#[async_trait]
impl PaymentMethodPages for Unusable {
    async fn open_page(&self, _: &PageRequest) -> Result<Page, GatewayError> {
        Err(self.refused())
    }

    async fn page_state(&self, _: &GatewayToken) -> Result<PageState, GatewayError> {
        Err(self.refused())
    }
}

#[async_trait]
impl Refunds for Unusable {
    async fn refund(&self, _: &RefundRequest) -> RefundAnswer {
        RefundAnswer::NotKnown(self.refused())
    }

    async fn refunds_of(&self, _: &GatewayToken) -> Result<Vec<RefundMade>, GatewayError> {
        Err(self.refused())
    }
}

/// Serves `sandbox`, and answers where.
///
/// # Errors
/// [`Failure::Listen`].
pub async fn serve(sandbox: Arc<Sandbox>, address: IpAddr, port: u16) -> Result<String, Failure> {
    let listener = listen(address, port, "--gateway-port").await?;
    let url = url(&listener);
    sandbox.served_at(&url);
    let routes = emulator::gateway_router(sandbox);
    tokio::spawn(emulator::serve(listener, routes, Limits::default()));
    Ok(url)
}

/// The sandbox on the data folder's ledger.
///
/// # Errors
/// [`LedgerError`].
pub fn sandbox(options: &Options, clock: Arc<dyn Clock>) -> Result<Arc<Sandbox>, LedgerError> {
    Ok(Arc::new(Sandbox::new(Ledger::open(&ledger(options), || clock.ulid())?, clock.clone())))
}

/// The file of the data folder's ledger.
pub fn ledger(options: &Options) -> PathBuf {
    options.data.join("gateway-ledger.jsonl")
}
