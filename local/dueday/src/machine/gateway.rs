//! Who takes the charges: the sandbox on the data folder's ledger, or a gateway elsewhere.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use emulator::Limits;
use shared::clock::Clock;
use shared::config::Env;
use shared::gateway::{Ledger, LedgerError, PaymentGateway, Sandbox, SandboxClient, Stripe};
use shared::payments::GATEWAY_TIMEOUT;

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
                let stripe = Env::process().stripe(timeout);
                stripe.map(|stripe| Self::Stripe(Arc::new(stripe))).map_err(|error| Failure::Refused(error.to_string()))
            }
            url => Ok(Self::At(url.to_owned())),
        }
    }

    /// What charges through it.
    pub fn client(&self, clock: Arc<dyn Clock>) -> Arc<dyn PaymentGateway> {
        match self {
            Self::Inside(sandbox) => sandbox.clone(),
            Self::Stripe(stripe) => stripe.clone(),
            Self::At(url) => {
                let timeout = GATEWAY_TIMEOUT.to_std().unwrap_or_default();
                Arc::new(SandboxClient::new(url, timeout).on_clock(clock))
            }
        }
    }
}

/// Serves `sandbox`, and answers where.
///
/// # Errors
/// [`Failure::Listen`].
pub async fn serve(sandbox: Arc<Sandbox>, address: IpAddr, port: u16) -> Result<String, Failure> {
    let listener = listen(address, port, "--gateway-port").await?;
    let url = url(&listener);
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
