//! What every command is handed: the clock, the options, and how to print.

use std::sync::Arc;

use chrono::NaiveDate;
use clock::{Clock, SystemClock};
use config::{REMINDER_LEAD_DAYS, TIME_ZONE};
use emulator::Config;
use serde::Serialize;

use crate::Failure;
use crate::options::Options;
use crate::terminal::output;

/// What a command is handed.
#[derive(Clone, Debug)]
pub struct Context {
    pub clock: Arc<dyn Clock>,
    pub options: Options,
    /// The settings, as the functions read them.
    pub config: Config,
}

impl Context {
    /// The machine's clock, and what `options` say.
    ///
    /// # Errors
    /// [`Failure::Config`].
    pub fn new(options: Options) -> Result<Self, Failure> {
        Ok(Self { clock: Arc::new(SystemClock), config: options.config()?, options })
    }

    /// The present day in the billing time zone.
    pub fn today(&self) -> NaiveDate {
        self.clock.now().with_timezone(&self.config.billing.zone).date_naive()
    }

    /// Prints `value` as JSON if that is asked for, else `text`.
    ///
    /// # Errors
    /// [`Failure::Output`].
    pub fn print(&self, value: &impl Serialize, text: impl FnOnce() -> String) -> Result<(), Failure> {
        output::print(&self.said(value, text))
    }

    /// `value` as JSON if that is asked for, else `text`.
    pub fn said(&self, value: &impl Serialize, text: impl FnOnce() -> String) -> String {
        if self.options.json { output::json(value) } else { text() }
    }

    /// How to type the command `arguments` so that it works on the same data.
    pub fn hint(&self, arguments: &str) -> String {
        // Cargo says so to what it runs.
        let dueday = if std::env::var_os("CARGO_MANIFEST_DIR").is_some() { "cargo run --" } else { "dueday" };
        format!("{dueday}{} {arguments}", self.options.flags())
    }

    /// That `command` is not asked to work on AWS.
    ///
    /// # Errors
    /// [`Failure::LocalOnly`].
    pub fn local_only(&self, command: &'static str) -> Result<(), Failure> {
        if self.options.table().is_some() { Err(Failure::LocalOnly { command }) } else { Ok(()) }
    }

    /// That a command which writes dates to a table on AWS is told what the functions there were deployed with.
    ///
    /// # Errors
    /// [`Failure::Refused`].
    pub fn deployed_as_told(&self) -> Result<(), Failure> {
        let is_told = [TIME_ZONE, REMINDER_LEAD_DAYS].iter().all(|variable| self.options.given(variable).is_some());
        if self.options.table().is_none() || is_told {
            return Ok(());
        }
        Err(Failure::Refused(
            "with --table, give --time-zone and --reminder-lead-days as they are deployed (the parameters TimeZone and \
             ReminderLeadDays of the stack)"
                .to_owned(),
        ))
    }
}
