//! `dueday completions`: prints the completion script for a shell.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::commands::Arguments;
use crate::terminal::output;
use crate::{Exit, Failure};

/// The arguments of `dueday completions`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  dueday completions bash > /etc/bash_completion.d/dueday")]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

/// Runs `dueday completions`.
pub fn run_completions_command(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Arguments::command(), "dueday", &mut script);
    output::print_text(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
