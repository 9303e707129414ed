//! `dueday`: the whole system on one machine, and the operator's tool. One file a command.
//!
//! The commands call the same code as the functions on AWS. What is only here: the data folder, the daily timer, the
//! demo, the simulation, and the checker, which has its own calendar and reads the stored items by itself.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod arguments;
pub mod books;
mod check;
mod data;
mod demo;
mod due;
mod failure;
mod import_file;
mod load;
mod output;
mod play;
mod run;
mod serve;
mod simulate;
mod timetable;

use std::process::ExitCode;

pub use arguments::Arguments;
pub use check::{Finding, check};
pub use failure::Failure;
pub use simulate::{Simulated, population, simulate};

use arguments::Command;

/// Carries out a command.
///
/// # Errors
/// [`Failure`], to be shown to whoever typed it.
pub async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let settings = &arguments.settings;
    match arguments.command {
        None => serve::serve(settings, &arguments.serve).await,
        Some(Command::Demo) => demo::demo(settings).await,
        Some(Command::Run(command)) => run::run(settings, &command).await,
        Some(Command::Due(command)) => due::due(settings, &command).await,
        Some(Command::Simulate(command)) => simulate::command(settings, &command).await,
    }
}
