//! The command `dueday`: runs the whole system on one machine, and is the operator's tool. Each command has its own
//! file.
//!
//! The commands call the same code as the Lambda functions on AWS. This crate adds the data folder, the daily timer and
//! the demo; `simulate` runs the simulation of the crate `simulator`.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]
// Only `terminal::output` prints. If the reader of the output has closed the pipe, a command must end without an error,
// but the print macros would panic.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod commands;
mod context;
mod machine;
mod options;
mod terminal;

pub use commands::Arguments;
use context::CommandContext;
pub use terminal::exit::Exit;
pub use terminal::failure::Failure;
use terminal::output;

impl Arguments {
    /// Parses the command line. Prints help or the error and ends the process if there is no command to run.
    pub fn read() -> Self {
        commands::read_arguments()
    }
}

/// Runs a command. Prints the error if the command fails.
pub async fn run_command_line(mut arguments: Arguments) -> Exit {
    if arguments.asks_for_merchant() {
        arguments.options.ask_for_merchant();
    }
    let is_json = arguments.options.json;
    let result = async {
        let context = CommandContext::new(arguments.options)?;
        match arguments.command {
            None => commands::serve::serve_whole_system(&context, &arguments.serve).await,
            Some(command) => command.run(&context).await,
        }
    };
    match result.await {
        Ok(exit) => exit,
        Err(failure) if failure.is_closed_output() => Exit::Done,
        Err(failure) => {
            output::print_error(&failure.message(), is_json);
            Exit::Failed
        }
    }
}
