//! The context of every command: the clock, the options, and the output format.

use std::sync::Arc;

use billing::{ActionKind, Actor, ActorName, Label, NewAction, Policy};
use charging::ChargingEngine;
use chrono::NaiveDate;
use clock::{Clock, SystemClock};
use config::{PolicyDifference, variable_of_setting};
use deployment::DeploymentConfig;
use orders_api::StoredPayments;
use orders_table::Requester;
use serde::Serialize;
use store::Table;

use crate::Failure;
use crate::options::Options;
use crate::terminal::output;

/// The context of a command.
#[derive(Clone, Debug)]
pub struct CommandContext {
    pub clock: Arc<dyn Clock>,
    pub options: Options,
    /// The settings, in the form in which the deployed functions use them.
    pub config: DeploymentConfig,
}

impl CommandContext {
    /// Creates a context with the system clock and `options`.
    ///
    /// # Errors
    /// [`Failure::Config`] if a setting is invalid.
    pub fn new(options: Options) -> Result<Self, Failure> {
        Ok(Self { clock: Arc::new(SystemClock), config: options.config()?, options })
    }

    /// Returns the engine that applies decisions and reports of the gateway to the payments of `table`.
    pub fn charging_engine(&self, table: &Table) -> ChargingEngine {
        ChargingEngine::new(table.clone(), self.clock.clone())
    }

    /// Returns today's date in the billing time zone of `table`.
    pub fn today(&self, table: &Table) -> NaiveDate {
        table.policy().date_at(self.clock.now())
    }

    /// Checks that no flag of this command contradicts `stored`, the policy of the table. An environment variable that
    /// contradicts it is only logged.
    ///
    /// # Errors
    /// [`Failure::PolicyFlag`] with both values.
    pub fn check_policy_flags(&self, stored: &Policy) -> Result<(), Failure> {
        let differences = self.config.table.configured_policy.differences_from(stored);
        match differences.into_iter().find(|difference| self.options.is_flag(variable_of_setting(difference.setting))) {
            Some(PolicyDifference { setting, given, stored }) => Err(Failure::PolicyFlag { setting, given, stored }),
            None => Ok(()),
        }
    }

    /// Prints `value` as JSON with `--json`, otherwise `text`.
    ///
    /// # Errors
    /// [`Failure::Output`] if standard output cannot be written.
    pub fn print(&self, value: &impl Serialize, text: impl FnOnce() -> String) -> Result<(), Failure> {
        output::print_text(&self.render(value, text))
    }

    /// Returns `value` as JSON with `--json`, otherwise `text`.
    pub fn render(&self, value: &impl Serialize, text: impl FnOnce() -> String) -> String {
        if self.options.json { output::format_json(value) } else { text() }
    }

    /// Creates the entry of the action log for a change that this command makes now. The entry contains the user of the
    /// command, the kind of the change (`kind`) and the reason.
    pub fn new_log_entry(&self, kind: ActionKind, reason: Option<&Label>) -> NewAction {
        NewAction { at: self.clock.now(), actor: user_of_command(), kind, reason: reason.cloned() }
    }

    /// Creates the requester of the changes that this command makes with the order desk: the user of the command. The
    /// action log in the table `payments` gets an entry for each of these changes.
    pub fn requester(&self, payments: &Table) -> Requester {
        let payments = Arc::new(StoredPayments(payments.clone()));
        Requester { payments, actor: user_of_command(), at: self.clock.now() }
    }

    /// Returns the full command line that runs dueday with `arguments` on the same data folder.
    pub fn command_line(&self, arguments: &str) -> String {
        // Cargo sets this variable for the programs that it runs.
        let dueday = if std::env::var_os("CARGO_MANIFEST_DIR").is_some() { "cargo run --" } else { "dueday" };
        format!("{dueday}{} {arguments}", self.options.data_flag())
    }

    /// Checks that the option `--table` is absent.
    ///
    /// # Errors
    /// [`Failure::LocalOnly`] for `command` if a table on AWS is given.
    pub fn require_local_table(&self, command: &'static str) -> Result<(), Failure> {
        if self.options.table().is_some() { Err(Failure::LocalOnly { command }) } else { Ok(()) }
    }
}

/// Returns the user of this command as the actor of its changes.
fn user_of_command() -> Actor {
    // Unix sets the variable `USER`, and Windows sets `USERNAME`.
    let user = ["USER", "USERNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    Actor::Command(user.as_deref().and_then(ActorName::new))
}
