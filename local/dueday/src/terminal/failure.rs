//! The errors of commands. Each message states the problem, the place, and the solution.

use std::io;
use std::path::PathBuf;

use aws_errors::AwsRequestError;
use billing::PolicySetting;
use config::ConfigError;
use deployment::CreateSubscriptionError;
use emulator::{EngineError, TableStreamError};
use mail::MailError;
use orders_desk::DeskError;
use sandbox::LedgerError;
use simulator::SimulationError;
use store::TableError;
use sweep::SweepError;

/// The reason why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    CreateSubscription(#[from] CreateSubscriptionError),
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error("the mailer of DUEDAY_MAIL_URL and DUEDAY_MAIL_FROM cannot be created: {}", .0.reason)]
    Mail(#[from] MailError),
    #[error(transparent)]
    Sweep(#[from] SweepError),
    #[error(transparent)]
    Table(#[from] TableError),
    #[error("cannot use {}: {source}. Choose a writable data folder with --data", path.display())]
    Data { path: PathBuf, source: io::Error },
    #[error(
        "{} belongs to the user with the id {owner}. Only files of the user who runs the command (id {user}) and of root \
         are allowed: run the command as the owner, change the owner with chown, or choose another folder with --data",
        path.display()
    )]
    ForeignOwner { path: PathBuf, owner: u32, user: u32 },
    #[error("cannot create a table in {}. Is its disk full?", path.display())]
    NewTable { path: PathBuf, source: TableError },
    #[error(
        "there is no data in the folder {}. Choose the data folder with --data, or create one with `{demo}`",
        path.display()
    )]
    NoData { path: PathBuf, demo: String },
    #[error("the data file {} {problem}. Restore it from a backup, or choose a new folder with --data", path.display())]
    Damaged { path: PathBuf, problem: String },
    #[error(
        "another version of dueday wrote the data in the folder {}: {reason}. Use that version, or choose a new \
         folder with --data",
        path.display()
    )]
    OtherVersion { path: PathBuf, reason: String },
    #[error(
        "another dueday is using the data folder {} ({user}). Stop it first, or choose another folder with --data",
        path.display()
    )]
    InUse { path: PathBuf, user: String },
    #[error("cannot listen on {address}: {source}. {hint}")]
    Listen { address: String, source: io::Error, hint: String },
    #[error("{}: {reason}", path.display())]
    File { path: PathBuf, reason: String },
    #[error("`{command}` only works on the local table: leave out --table")]
    LocalOnly { command: &'static str },
    #[error("no AWS region is set: set AWS_REGION, such as eu-central-1, or the region of an AWS CLI profile")]
    NoRegion,
    #[error(
        "no AWS credentials were found{reason}: sign in as for the AWS CLI (`aws configure` or `aws sso login`), or \
         set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    )]
    NoCredentials { reason: String },
    #[error("DynamoDB does not respond at {place}. Check --endpoint, the region and the network")]
    Unreachable { place: String, source: AwsRequestError },
    #[error("there is no table {name:?} on AWS in the configured region; deploy it first (sam deploy)")]
    NoTable { name: String },
    #[error(
        "the table {name:?} has no settings yet; the deployed functions create them when they first start (GET /health)"
    )]
    NoSettings { name: String },
    #[error(
        "the table {name:?} has no policy, because an earlier version of Dueday wrote it: deploy this version first, or store \
         the deployed values: `dueday settings adopt --table {name} --time-zone ZONE ...`"
    )]
    NoPolicy { name: String },
    #[error(
        "the data folder {} has no policy, because an earlier version of Dueday wrote it: start `dueday` with the flags of your \
         service first, or store the policy: `dueday settings adopt --time-zone ZONE ...`", path.display()
    )]
    NoLocalPolicy { path: PathBuf },
    #[error(
        "--{setting} {given} contradicts the policy of the table, which has {stored}: leave the flag out, or change the \
         policy with `dueday settings set {setting} {given}` for this table"
    )]
    PolicyFlag { setting: PolicySetting, given: String, stored: String },
    #[error(transparent)]
    Stream(#[from] TableStreamError),
    #[error("events cannot be stored: {reason}. They remain in the table's stream and are stored by a later attempt")]
    EventsNotStored { reason: String },
    #[error(
        "the events in {} do not match the database file, which was replaced by another or an older one. Move the \
         folder of the events away; dueday then creates a new one",
        folder.display()
    )]
    EventsOfOtherTable { folder: PathBuf },
    #[error(transparent)]
    Desk(#[from] DeskError),
    #[error("{failure}. {imported}")]
    ImportEnded {
        failure: Box<Failure>,
        /// A sentence about what was imported before the failure, and how to continue.
        imported: String,
    },
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
    #[error("{0}")]
    Refused(String),
}

impl Failure {
    /// Returns the message for the user: the error and its innermost cause. The message leaves out the causes in
    /// between, which are internal to the AWS SDK, and the numbers of operating system errors.
    pub fn message(&self) -> String {
        if let Self::ImportEnded { failure, imported } = self {
            return format!("{}. {imported}", failure.message());
        }
        let causes = std::iter::successors(std::error::Error::source(self), |error| error.source());
        let (mut message, mut innermost) = (self.to_string(), String::new());
        for cause in causes {
            match cause.downcast_ref::<AwsRequestError>() {
                Some(error) => {
                    message = message.replace(&error.to_string(), &error.short_text());
                    innermost = error.innermost_text().to_owned();
                }
                None => innermost = cause.to_string(),
            }
        }
        let message = if message.contains(&innermost) { message } else { format!("{message}: {innermost}") };
        let advice = ADVICE_ON_STORAGE.iter().find(|(text, _)| message.contains(text)).map_or("", |(_, advice)| advice);
        without_os_error_numbers(&message) + advice
    }

    /// Returns whether the command failed only because the reader of its output has closed the pipe.
    pub fn is_closed_output(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// What a person does about an error of the disk or of the data file: the text of SQLite or of the operating system in
/// the message, and the advice that is added.
const ADVICE_ON_STORAGE: [(&str, &str); 7] = [
    ("disk is full", ". Free space on the disk of the data folder, and run the command again"),
    ("disk I/O error", ". Free space on the disk of the data folder, and run the command again"),
    ("No space left on device", ". Free space on the disk of this file, and run the command again"),
    ("Disk quota exceeded", ". Free space on the disk of this file, and run the command again"),
    ("attempt to write a readonly database", ". Make the data folder writable, and run the command again"),
    ("unable to open database file", ". Check whether the data folder still exists, and run the command again"),
    ("database disk image is malformed", ". Restore the data folder from a backup"),
];

/// Removes the numbers that Rust adds to operating system errors, such as `(os error 28)`.
fn without_os_error_numbers(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |message, part| message + part.split_once(')').map_or("", |(_, rest)| rest))
}
