//! Who takes the charges: the sandbox on the data folder's ledger, or a gateway elsewhere; and `dueday gateway`, the
//! sandbox alone.

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use shared::clock::{Clock, SystemClock};
use shared::gateway::{Ledger, LedgerError, PaymentGateway, Sandbox, SandboxClient};
use shared::payments::GATEWAY_TIMEOUT;

use crate::Failure;
use crate::arguments::{self, Settings};
use crate::machine::listen::{listen, url};
use crate::terminal::output;

/// A gateway.
pub enum Gateway {
    /// The sandbox in this process, which holds the ledger.
    Inside(Arc<Sandbox>),
    /// The one at this URL.
    At(String),
}

impl Gateway {
    /// The gateway that `settings` name.
    ///
    /// # Errors
    /// [`Failure`]: a ledger that cannot be used.
    pub fn open(settings: &Settings, clock: Arc<dyn Clock>) -> Result<Self, Failure> {
        match &settings.gateway {
            Some(url) => Ok(Self::At(url.clone())),
            None => match sandbox(settings, clock) {
                Ok(sandbox) => Ok(Self::Inside(sandbox)),
                Err(held @ LedgerError::Held { .. }) => {
                    let hint = "If that is `dueday gateway`, give its address with --gateway";
                    Err(Failure::Refused(format!("{held}. {hint}")))
                }
                Err(error) => Err(error.into()),
            },
        }
    }

    /// What charges through it.
    pub fn client(&self, clock: Arc<dyn Clock>) -> Arc<dyn PaymentGateway> {
        match self {
            Self::Inside(sandbox) => sandbox.clone(),
            Self::At(url) => {
                let timeout = GATEWAY_TIMEOUT.to_std().unwrap_or_default();
                Arc::new(SandboxClient::new(url, timeout).on_clock(clock))
            }
        }
    }
}

pub async fn gateway(settings: &Settings, command: &arguments::Gateway) -> Result<ExitCode, Failure> {
    std::fs::create_dir_all(&settings.data).map_err(|source| Failure::Data { path: settings.data.clone(), source })?;
    let sandbox = sandbox(settings, Arc::new(SystemClock))?;
    let url = serve(sandbox, command.listen, command.gateway_port).await?;
    let ledger = ledger(settings);
    output::print(&format!(
        "The sandbox gateway is running: no money moves. Stop it with Ctrl-C.\n\
         \n\
         \x20 gateway     {url}\n\
         \x20 ledger      {}\n\
         \n\
         Try next, in another terminal\n\
         \x20 cargo run -- --gateway {url}\n\
         \n",
        ledger.display()
    ))?;
    tokio::signal::ctrl_c().await?;
    println!("\nStopped. Everything is kept in {}.", ledger.display());
    Ok(ExitCode::SUCCESS)
}

/// Serves `sandbox`, and answers where.
///
/// # Errors
/// [`Failure::Listen`].
pub async fn serve(sandbox: Arc<Sandbox>, address: IpAddr, port: u16) -> Result<String, Failure> {
    let listener = listen(address, port, "--gateway-port").await?;
    let url = url(&listener);
    let routes = emulator::gateway_router(sandbox);
    tokio::spawn(async move { axum::serve(listener, routes).await });
    Ok(url)
}

fn sandbox(settings: &Settings, clock: Arc<dyn Clock>) -> Result<Arc<Sandbox>, LedgerError> {
    Ok(Arc::new(Sandbox::new(Ledger::open(&ledger(settings))?, clock)))
}

fn ledger(settings: &Settings) -> PathBuf {
    settings.data.join("gateway-ledger.jsonl")
}
