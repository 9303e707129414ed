//! Why a command could not be carried out, as it is told to whoever typed it.

use std::path::PathBuf;

use emulator::{EngineError, EnrolError};
use shared::config::ConfigError;
use shared::gateway::LedgerError;
use shared::mail::MailError;
use shared::sweep::SweepError;
use shared::table::TableError;
use simulator::SimulationError;

/// Why a command could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Enrol(#[from] EnrolError),
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error("DUEDAY_MAIL_FROM: {0}")]
    Mail(#[from] MailError),
    #[error(transparent)]
    Sweep(#[from] SweepError),
    #[error(transparent)]
    Table(#[from] TableError),
    #[error("cannot use the data folder {}: {source}", path.display())]
    Data { path: PathBuf, source: std::io::Error },
    #[error("another dueday is using the data folder {} ({what}). Stop it first, or choose another folder with --data", path.display())]
    InUse { path: PathBuf, what: String },
    #[error("cannot listen on {address}: {source}.{hint}")]
    Listen { address: String, source: std::io::Error, hint: String },
    #[error("{}: {reason}", path.display())]
    File { path: PathBuf, reason: String },
    #[error("{command} works on the local table only, not with --table")]
    LocalOnly { command: &'static str },
    #[error("there is no table {name:?} on AWS in the region that is set; deploy it first (sam deploy)")]
    NoTable { name: String },
    #[error(
        "the table {name:?} has no settings yet; the deployed functions make them when they first start (GET /health)"
    )]
    Unused { name: String },
    #[error("cannot write: {0}")]
    Output(#[from] std::io::Error),
    #[error("{0}")]
    Refused(String),
}

impl Failure {
    /// What went wrong and why, from the outermost to the innermost.
    pub fn told(&self) -> String {
        let mut told = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            let text = error.to_string();
            if !told.contains(&text) {
                told += &format!(": {text}");
            }
            cause = error.source();
        }
        told
    }
}
