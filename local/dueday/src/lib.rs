//! `dueday`: the whole system on one machine, and the operator's tool. One file a command.
//!
//! The commands call the same code as the functions on AWS. What is only here: the data folder, the daily timer, the
//! demo, the simulation, and the checker, which has its own calendar and reads the stored items by itself.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod arguments;
mod commands;
mod machine;
mod terminal;

use std::process::ExitCode;

pub use arguments::Arguments;
pub use terminal::failure::Failure;

use arguments::Command;
use clap::CommandFactory as _;
use commands::{
    charging, demo, due, export, gateway, import, look_up, resolve, run, runs, serve, simulate, subscription, why,
};

/// Carries out a command.
///
/// # Errors
/// [`Failure`], to be shown to whoever typed it.
pub async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let settings = &arguments.settings;
    match arguments.command {
        None => {
            settings.local_only("dueday")?;
            serve::serve(settings, &arguments.serve).await
        }
        Some(Command::Demo) => {
            settings.local_only("demo")?;
            demo::demo(settings).await
        }
        Some(Command::Run(command)) => {
            settings.local_only("run")?;
            run::run(settings, &command).await
        }
        Some(Command::Due(command)) => due::due(settings, &command).await,
        Some(Command::Import(command)) => import::import(settings, &command).await,
        Some(Command::Accounts(command)) => look_up::accounts(settings, &command).await,
        Some(Command::Subscriptions(command)) => look_up::subscriptions(settings, &command).await,
        Some(Command::Receipts(command)) => look_up::receipts(settings, &command).await,
        Some(Command::Subscription(command)) => subscription::subscription(settings, &command.action).await,
        Some(Command::Why(command)) => why::why(settings, &command).await,
        Some(Command::Resolve(command)) => resolve::resolve(settings, &command).await,
        Some(Command::Runs(command)) => runs::runs(settings, &command).await,
        Some(Command::Charging(command)) => charging::charging(settings, &command).await,
        Some(Command::Gateway(command)) => {
            settings.local_only("gateway")?;
            gateway::gateway(settings, &command).await
        }
        Some(Command::Export(command)) => export::export(settings, &command).await,
        Some(Command::Completions(command)) => {
            clap_complete::generate(command.shell, &mut Arguments::command(), "dueday", &mut std::io::stdout());
            Ok(ExitCode::SUCCESS)
        }
        Some(Command::Simulate(command)) => {
            settings.local_only("simulate")?;
            simulate::simulate_command(settings, &command).await
        }
    }
}
