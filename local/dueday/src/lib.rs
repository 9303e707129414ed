//! `dueday`: the whole system on one machine, and the operator's tool. One file a command.
//!
//! The commands call the same code as the functions on AWS. What is only here: the data folder, the daily timer, the
//! demo, the simulation, and the checker, which has its own calendar and reads the stored items by itself.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]
// Only `terminal::output` writes, and a reader that is gone ends a command quietly: these macros panic.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod commands;
mod context;
mod machine;
mod options;
mod terminal;

use clap::Parser as _;

pub use commands::Arguments;
use context::Context;
pub use terminal::exit::Exit;
pub use terminal::failure::Failure;
use terminal::output;

impl Arguments {
    /// What was typed. Ends the process if it is no command, or asks for help.
    pub fn read() -> Self {
        Self::try_parse().unwrap_or_else(|error| commands::with_plain_usage(error, std::env::args_os()).exit())
    }
}

/// Carries out a command, and tells why if it cannot be.
pub async fn run(arguments: Arguments) -> Exit {
    let carried_out = async {
        let context = Context::new(arguments.options)?;
        match arguments.command {
            None => commands::serve::serve(&context, &arguments.serve).await,
            Some(command) => command.run(&context).await,
        }
    };
    match carried_out.await {
        Ok(exit) => exit,
        Err(failure) if failure.is_closed_output() => Exit::Done,
        Err(failure) => {
            output::tell(format!("error: {}", failure.told()));
            Exit::Failed
        }
    }
}
