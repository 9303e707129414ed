//! Why a command could not be carried out, as it is told to whoever typed it.

use std::path::PathBuf;

use local::EngineError;
use shared::batch::SweepError;
use shared::config::ConfigError;
use shared::gateway::LedgerError;
use shared::mail::MailError;
use shared::table::TableError;

/// Why a command could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Engine(#[from] EngineError),
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
    #[error("{0}")]
    Refused(String),
}
