//! Why a command could not be carried out, as it is told to whoever typed it: what is wrong, where, and what to do.

use std::io;
use std::path::PathBuf;

use aws_sdk_dynamodb::error::ErrorMetadata;
use config::ConfigError;
use emulator::{EngineError, EnrolError, StreamError};
use gateways::LedgerError;
use mail::MailError;
use orders::DeskError;
use simulator::SimulationError;
use store::TableError;
use sweep::SweepError;

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
    #[error("DUEDAY_MAIL_URL, DUEDAY_MAIL_FROM: {0}")]
    Mail(#[from] MailError),
    #[error(transparent)]
    Sweep(#[from] SweepError),
    #[error(transparent)]
    Table(#[from] TableError),
    #[error("cannot use {}: {source}. Name a data folder that can be written with --data", path.display())]
    Data { path: PathBuf, source: io::Error },
    #[error("cannot make a table in {}. Is its disk full?", path.display())]
    NewTable { path: PathBuf, source: TableError },
    #[error(
        "there is no data in the folder {}. Name the data folder with --data, or begin one with `{demo}`",
        path.display()
    )]
    NoData { path: PathBuf, demo: String },
    #[error("the data file {} {what}. Restore it from a copy, or begin anew in another folder with --data", path.display())]
    Damaged { path: PathBuf, what: String },
    #[error(
        "the data in the folder {} is of another version of dueday: {reason}. Use that version, or begin anew in \
         another folder with --data",
        path.display()
    )]
    OtherVersion { path: PathBuf, reason: String },
    #[error("another dueday is using the data folder {} ({what}). Stop it first, or choose another folder with --data", path.display())]
    InUse { path: PathBuf, what: String },
    #[error("cannot listen on {address}: {source}. {hint}")]
    Listen { address: String, source: io::Error, hint: String },
    #[error("{}: {reason}", path.display())]
    File { path: PathBuf, reason: String },
    #[error("`{command}` works on the local table only: leave out --table")]
    LocalOnly { command: &'static str },
    #[error("no AWS region is set: set AWS_REGION, such as eu-central-1, or the region of an AWS CLI profile")]
    NoRegion,
    #[error(
        "no AWS credentials were found{reason}: sign in as for the AWS CLI (`aws configure` or `aws sso login`), or set \
         AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    )]
    NoCredentials { reason: String },
    #[error("DynamoDB does not answer at {place}. Check --endpoint, the region and the network")]
    Unreachable { place: String, source: TableError },
    #[error("there is no table {name:?} on AWS in the region that is set; deploy it first (sam deploy)")]
    NoTable { name: String },
    #[error(
        "the table {name:?} has no settings yet; the deployed functions make them when they first start (GET /health)"
    )]
    Unused { name: String },
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error("events cannot be kept: {reason}. They are in the table's stream, and will be kept once they can be")]
    Events { reason: String },
    #[error(
        "{} is of another table, or of a later state of it: the table was replaced. Move that folder away, and events \
         are kept anew",
        folder.display()
    )]
    OtherEvents { folder: PathBuf },
    #[error(transparent)]
    Desk(#[from] DeskError),
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
    #[error("{0}")]
    Refused(String),
}

impl Failure {
    /// What went wrong, and its innermost cause. What stands between them is the SDK's, and says nothing to its user; nor
    /// does the number of an error of the operating system.
    pub fn told(&self) -> String {
        let causes = std::iter::successors(std::error::Error::source(self), |error| error.source());
        let texts = causes.map(|error| match error.downcast_ref::<ErrorMetadata>() {
            Some(metadata) => metadata.message().unwrap_or_default().to_owned(),
            None => error.to_string(),
        });
        let (told, innermost) = (self.to_string(), texts.last().unwrap_or_default());
        // The SDK says the code of an error twice.
        let code = told.rsplit(": ").next().unwrap_or_default();
        let cause = innermost.strip_prefix(code).map_or(innermost.as_str(), |cause| cause.trim_start_matches(": "));
        let told = if told.contains(cause) { told } else { format!("{told}: {cause}") };
        let is_disk = ["disk is full", "disk I/O error"].iter().any(|text| told.contains(text));
        let advice = if is_disk { ". Make room on the disk of the data folder, and run it again" } else { "" };
        without_numbers(&told) + advice
    }

    /// Whether it is only that the reader of the output is gone.
    pub fn is_closed_output(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// `text` without the numbers that Rust adds to an error of the operating system.
fn without_numbers(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |told, part| told + part.split_once(')').map_or("", |(_, rest)| rest))
}
